"""What recurrent layers need on a GPU: no autocast, and their weights in one block of memory.

Autocast would round their states at every step, and cuDNN's layers return float16 even where
autocast is set to bfloat16. Their products are TensorFloat-32 where PyTorch allows that.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def without_autocast(
    *tensors: Tensor,
) -> tuple[AbstractContextManager[object], tuple[Tensor, ...]]:
    """A context to compute in, and the tensors to compute with.

    Under autocast on a GPU: a context that switches it off, and the tensors in float32 (float64
    stays). Elsewhere: a context that does nothing, and the tensors themselves.
    """
    if not (tensors[0].is_cuda and torch.is_autocast_enabled("cuda")):
        return nullcontext(), tensors
    promoted = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in tensors)
    return torch.autocast("cuda", enabled=False), tuple(promoted)


def flatten_weights(weights: Iterable[Tensor]) -> list[Tensor]:
    """The weights as views of one new block of memory, which cuDNN reads without a copy.

    As `nn.LSTM.flatten_parameters`, but gradients flow through; all of one dtype and device.
    """
    weights = list(weights)
    parts = torch.cat([w.flatten() for w in weights]).split([w.numel() for w in weights])
    return [part.view_as(w) for part, w in zip(parts, weights, strict=True)]
