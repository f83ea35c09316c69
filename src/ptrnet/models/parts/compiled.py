"""What of a network compiled code may stand for: it reads numbers, and calls no module."""

import torch
from torch import Tensor, nn

from ptrnet.kernels.eager import is_eager


def can_read(*tensors: Tensor) -> bool:
    """Whether all are float32 on a CPU, without gradients, and nothing records or rounds."""
    return (
        not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)
        and is_eager(*tensors)
    )


def is_unchanged(module: nn.Module, kinds: tuple[type[nn.Module], ...]) -> bool:
    """Whether all parts of a module are of just these kinds, without hooks, and in float32.

    Of an adapter, or a part that somebody put in another's place, compiled code would not know.
    """
    has_hooks = any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    return (
        not has_hooks
        and all(type(part) in kinds for part in module.modules())
        and all(weight.dtype == torch.float32 for weight in module.parameters())
    )
