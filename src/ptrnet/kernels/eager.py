"""Decide whether a compiled kernel may compute, or the plain formula must. Every kernel asks here.

A compiled kernel reads memory, and PyTorch cannot record what it does. If a tensor stands for
others (a batch under `vmap`, a value with its tangent), its memory does not hold their values. In
these cases the plain formulas compute, whose operations PyTorch can follow.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

# PyTorch 2.13 has no public functions for what we ask these three modules: which transforms of
# `torch.func`, levels of forward-mode differentiation and dispatch modes are active.
from torch._C import _functorch
from torch.autograd import forward_ad
from torch.nn import Parameter
from torch.utils import _python_dispatch

# PyTorch answers a few instances in less time than compiled code takes to load. If the code is not
# in the cache, numba compiles it, which takes ten seconds. So PyTorch computes the first steps of
# a process. STEPS_BEFORE of them take a third of the time of loading. Then we load compiled code.
# A step counts once more for every ROWS_OF_A_STEP prefixes.
STEPS_BEFORE, ROWS_OF_A_STEP = 100, 32

_steps = 0  # steps that PyTorch has computed in this process


def is_eager(*tensors: Tensor) -> bool:
    """Whether operations run immediately, on ordinary tensors.

    False while PyTorch traces, compiles or exports, inside a transform of `torch.func` or
    forward-mode differentiation, under a dispatch mode (as for fake tensors), and if one of
    `tensors` is of a subclass, or is a batch that `is_grads_batched` made.
    """
    return not is_recorded() and not is_transformed(*tensors)


def is_plain_float32(*tensors: Tensor) -> bool:
    """Whether all tensors are float32 on a CPU, without gradients, autocast or recording."""
    return (
        not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)
        and is_eager(*tensors)
    )


def is_unchanged(module: nn.Module, kinds: tuple[type[nn.Module], ...]) -> bool:
    """Whether all parts of a module are exactly of these kinds, without hooks, and in float32.

    Compiled code would ignore an adapter, a hook, or a part that the user replaced.
    """
    for part in module.modules():  # a single pass, because every search begins with this check
        if type(part) not in kinds or part._forward_hooks or part._forward_pre_hooks:
            return False
        if any(p is not None and p.dtype != torch.float32 for p in part._parameters.values()):
            return False
    return True


def is_recorded() -> bool:
    """Whether PyTorch traces, compiles, exports, or runs in a dispatch mode, which may record."""
    return _is_captured() or _python_dispatch._len_torch_dispatch_stack() > 0


def can_read_values(*tensors: Tensor) -> bool:
    """Whether code may read values of tensors, for example to choose shapes.

    It may if `is_eager`, and also under a dispatch mode with an attribute `looks_on`, which only
    observes operations and runs each immediately.
    """
    if _is_captured() or is_transformed(*tensors):  # first: a compiler cannot read the modes
        return False
    modes = _python_dispatch._get_current_dispatch_mode_stack()
    return all(getattr(mode, "looks_on", False) for mode in modes)


def _is_captured() -> bool:
    compiling = torch.compiler.is_compiling()
    return compiling or torch.jit.is_tracing() or torch.jit.is_scripting()


def is_transformed(*tensors: Tensor) -> bool:
    """Whether a tensor may stand for other values than those in its memory.

    This is so inside `torch.func` and forward-mode differentiation, and for a subclass.
    """
    if torch.compiler.is_compiling():  # the compiler handles transforms by itself
        return False
    if _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
        return True
    return not all(
        type(tensor) in (Tensor, Parameter) and not _functorch.is_legacy_batchedtensor(tensor)
        for tensor in tensors
    )


def use_compiled_kernels() -> None:
    """Use compiled code from the next step on, so that resumed work computes the same bits."""
    global _steps
    _steps = STEPS_BEFORE


def is_loaded_for(rows: int) -> bool:
    """Whether compiled code computes the next step, of `rows` prefixes. If not, count the step.

    The result depends only on earlier steps, and not on time, so that a command that is run again
    runs the same code and gives the same bits.
    """
    global _steps
    if _steps >= STEPS_BEFORE:
        return True
    _steps += 1 + rows // ROWS_OF_A_STEP
    return False


def needs_plain(*grads: Tensor) -> bool:
    """Whether the plain formula must compute a backward pass.

    It must if PyTorch transforms `grads`, or if gradients are enabled: `create_graph=True` does so
    to differentiate the backward pass itself.
    """
    return torch.is_grad_enabled() or not is_eager(*grads)


def plain_gradients(
    formula: Callable[..., tuple[Tensor, ...]],
    tensors: Sequence[Tensor],
    grads: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """Return the gradients of a formula, for the `backward` of an autograd function.

    Args:
        formula: a function of `tensors`, in operations that PyTorch can differentiate repeatedly.
        tensors: the float inputs, as they were saved in the forward pass.
        grads: gradients of the outputs of `formula`.

    Returns:
        The gradient of each of `tensors`, zero if none reaches it. Under `create_graph=True` it has
        a graph that leads to `tensors` and `grads`.
    """
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # Differentiate with respect to views. If one tensor was computed from another, its gradient
        # would otherwise also flow into the other's.
        views = [tensor.view_as(tensor) for tensor in tensors]
        views = [v if v.requires_grad else v.detach().requires_grad_() for v in views]
        outputs = formula(*views)
    return torch.autograd.grad(
        outputs, views, grads, create_graph=create_graph, allow_unused=True, materialize_grads=True
    )
