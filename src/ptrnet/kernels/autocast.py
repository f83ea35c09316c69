"""Recurrent layers on a GPU leave autocast, which rounds their states at every step.

cuDNN's come out in float16 even where bfloat16 is asked for. Their products are TensorFloat-32
where PyTorch allows that.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def left(*tensors: Tensor) -> tuple[AbstractContextManager[object], tuple[Tensor, ...]]:
    """What to compute in, and the tensors in float32 or better; both unchanged on a CPU."""
    if not tensors[0].is_cuda:
        return nullcontext(), tensors
    least = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in tensors)
    return torch.autocast("cuda", enabled=False), tuple(least)
