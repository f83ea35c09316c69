"""Whether code that PyTorch cannot look into computes: every fast kernel asks here.

A compiled kernel reads memory. While PyTorch records operations there is nothing that it could
record, and where a tensor stands for others (a batch under `vmap`, a value with its tangent) its
memory is not what it stands for. Then the plain formulas are taken, which PyTorch follows.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch._C import _functorch
from torch.autograd import forward_ad
from torch.nn import Parameter
from torch.utils import _python_dispatch

# Loading compiled code takes longer than PyTorch takes for a few answers, and if the code is not in
# the cache, numba compiles it for ten seconds. So PyTorch computes the first steps of a process.
# After STEPS_BEFORE steps it has taken a third of the time that loading takes, and compiled code is
# loaded. A step counts once more for every ROWS_OF_A_STEP prefixes.
STEPS_BEFORE, ROWS_OF_A_STEP = 100, 32

_steps = 0  # computed by PyTorch in this process


def is_eager(*tensors: Tensor) -> bool:
    """Whether operations run as they are called, on tensors that are just their own values.

    False while they are traced, compiled or exported; inside a transform of `torch.func`, and in
    forward-mode differentiation; under a dispatch mode, such as that of fake tensors; and where one
    of `tensors` is of a subclass, or a batch of tensors as `is_grads_batched` makes it.
    """
    return not is_recorded() and not is_transformed(*tensors)


def is_plain_float32(*tensors: Tensor) -> bool:
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
    for part in module.modules():  # one pass, as it is asked before every search
        if type(part) not in kinds or part._forward_hooks or part._forward_pre_hooks:
            return False
        if any(p is not None and p.dtype != torch.float32 for p in part._parameters.values()):
            return False
    return True


def is_recorded() -> bool:
    """Whether operations are written down, to run later: traced, compiled or exported."""
    return _is_captured() or _python_dispatch._len_torch_dispatch_stack() > 0


def can_read_values(*tensors: Tensor) -> bool:
    """Whether shapes may follow from values: where `is_eager`, and where a mode only looks on.

    A mode says so by an attribute `looks_on`: it runs every operation as it comes.
    """
    if _is_captured() or is_transformed(*tensors):  # first: a compiler cannot read the modes
        return False
    modes = _python_dispatch._get_current_dispatch_mode_stack()
    return all(getattr(mode, "looks_on", False) for mode in modes)


def _is_captured() -> bool:
    compiling = torch.compiler.is_compiling()
    return compiling or torch.jit.is_tracing() or torch.jit.is_scripting()


def is_transformed(*tensors: Tensor) -> bool:
    """Whether `torch.func`, forward-mode differentiation or a subclass gives tensors a meaning."""
    if torch.compiler.is_compiling():  # it looks through transforms by itself
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
    """Whether compiled code computes the next step, of `rows` prefixes; counts the step if not.

    The answer depends on the steps before and on nothing else, so that the same commands run the
    same code again.
    """
    global _steps
    if _steps >= STEPS_BEFORE:
        return True
    _steps += 1 + rows // ROWS_OF_A_STEP
    return False


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
