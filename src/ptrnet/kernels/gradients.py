"""Gradients of a fast kernel by its plain formula: where they are differentiated once more."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ptrnet.kernels.eager import is_eager


def needs_plain(*grads: Tensor) -> bool:
    """Whether a backward pass must not be a kernel's: PyTorch records it, or transforms `grads`.

    The pass of `create_graph=True` runs with gradients enabled: what it computes has a gradient.
    """
    return torch.is_grad_enabled() or not is_eager(*grads)


def plain_gradients(
    formula: Callable[..., tuple[Tensor, ...]],
    tensors: Sequence[Tensor],
    grads: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """The gradients of a formula: for the `backward` of an autograd function, by its float inputs.

    Args:
        formula: of `tensors`, in operations that PyTorch differentiates as often as wanted.
        tensors: the float inputs, as they were saved in the forward pass.
        grads: of the outputs of `formula`.

    Returns:
        The gradient of each of `tensors`, zeros where none reaches it; under
        `create_graph=True` with a graph that leads to `tensors` and `grads`.
    """
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views: where one tensor was computed from another, its gradient is its own part alone.
        views = [tensor.view_as(tensor) for tensor in tensors]
        views = [v if v.requires_grad else v.detach().requires_grad_() for v in views]
        outputs = formula(*views)
    return torch.autograd.grad(
        outputs, views, grads, create_graph=create_graph, allow_unused=True, materialize_grads=True
    )
