"""What recurrent layers want on a GPU: no autocast, and their weights in one piece.

Autocast would round their states at every step; cuDNN's layers come out in float16 even where
bfloat16 is asked for. Their products are TensorFloat-32 where PyTorch allows that.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def without_autocast(
    *tensors: Tensor,
) -> tuple[AbstractContextManager[object], tuple[Tensor, ...]]:
    """What to compute in, and the tensors in float32 or better; both unchanged where there is none,
    and on a CPU.
    """
    if not (tensors[0].is_cuda and torch.is_autocast_enabled("cuda")):
        return nullcontext(), tensors
    least = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in tensors)
    return torch.autocast("cuda", enabled=False), tuple(least)


def in_one_piece(weights: Iterable[Tensor]) -> list[Tensor]:
    """The same as views of one block of memory, where cuDNN reads them without a copy."""
    given = list(weights)
    parts = torch.cat([w.flatten() for w in given]).split([w.numel() for w in given])
    return [part.view_as(w) for part, w in zip(parts, given, strict=True)]
