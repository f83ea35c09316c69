"""Whether code that PyTorch cannot look into may compute: every fast kernel asks here.

A compiled kernel reads memory. While PyTorch records operations there is nothing that it could
record, and where a tensor stands for others (a batch under `vmap`, a value with its tangent) its
memory is not what it stands for. Then the plain formulas are taken, which PyTorch follows.
"""

import torch
from torch import Tensor, nn
from torch._C import _functorch
from torch.autograd import forward_ad
from torch.nn import Parameter
from torch.utils import _python_dispatch


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
