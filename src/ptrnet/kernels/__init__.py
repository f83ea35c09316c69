"""Fast kernels for the formulas that take most of the time, each beside its formula.

| formula | compiled for a CPU | for a GPU | used by |
|---|---|---|---|
| `additive_formula.py` | `additive_cpu.py` | `additive_gpu.py` | recurrent networks |
| `lstm_formula.py` | `lstm_cpu.py` | PyTorch's layer | recurrent networks |
| `DecoderLayer.step` in `models/parts` | `decoder_layer_cpu.py` | | `transformer-ptr-net` |
| `frames.py` | `frames_cpu.py` | | `transformer-ptr-net` |
| `BoxPtrNet.encode` and `boxes.py` | `boxes_cpu.py` | | `box-ptr-net` |

`additive.py` and `lstm.py` decide between a kernel and the formula. For the others, the network
decides. The package imports no models and no tasks.

This file has the conditions under which a compiled kernel may replace the formula. PyTorch cannot
record what a compiled kernel does, so we use the formula if PyTorch records. A kernel also reads
the memory of tensors. Some tensors stand for values that are not in their memory: a batch under
`vmap`, or a value with its tangent. For such tensors we use the formula, too, because PyTorch can
transform its operations.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual
from torch.nn import Parameter

# PyTorch 2.13 has no public function that tells which dispatch modes are active in this thread. The
# flag that `is_in_torch_dispatch_mode` reads is shared by all threads, and stays set if two threads
# leave their modes in the order in which they entered them.
from torch.utils import _python_dispatch

# PyTorch answers a few instances in less time than compiled code takes to load. If the code is not
# in the cache, numba compiles the code, which takes ten seconds. So PyTorch computes the first
# STEPS_BEFORE decoder steps of a process. These steps take a third of the time that loading takes.
# Afterwards we load compiled code. A step of R prefixes counts as 1 + R // ROWS_OF_A_STEP steps.
STEPS_BEFORE, ROWS_OF_A_STEP = 100, 32

_steps = 0  # steps that PyTorch has computed in this process, counted as above


def is_eager(*tensors: Tensor) -> bool:
    """Whether operations run immediately, on ordinary tensors.

    False if PyTorch records (see `is_recorded`) or transforms (see `is_transformed`).
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


Structure = list[tuple[type[nn.Module], list[tuple[str, torch.Size]]]]
T = TypeVar("T")


class Prepared(NamedTuple):
    """What `prepare` returned for a module, and what the module was like."""

    kinds: list[type]  # the classes of its parts
    weights: list[Tensor]  # kept, so that no other object gets their addresses
    places: list[tuple[int, int]]  # the addresses of the weights and of their numbers
    made: Any


_prepared = WeakKeyDictionary[nn.Module, Prepared]()


def structure_of(module: nn.Module) -> Structure:
    """Return the classes of a module and its parts, with names and shapes of their weights."""
    return [
        (type(part), [(name, w.shape) for name, w in part._parameters.items() if w is not None])
        for part in parts_of(module)
    ]


def prepare(module: nn.Module, built: Structure, make: Callable[[], T]) -> T | None:
    """Return what compiled code reads of a module, or None if it cannot compute the module.

    Compiled code would ignore an adapter, a hook, or a part or a `forward` that the user replaced,
    and weights that `torch.func` passes, which are not of the class `Parameter`.

    Args:
        module: has to be in float32 on a CPU, without hooks, and of the structure `built`.
        built: `structure_of(module)` when it was built.
        make: makes the result, which may hold parts, or arrays that share the weights' memory, but
            no copies. It is called again only if weights were replaced or moved: every answer
            begins with this function, and making takes longer than the check.
    """
    kinds, weights = list[type](), list[Tensor]()
    for part in parts_of(module):
        if part._forward_hooks or part._forward_pre_hooks or "forward" in part.__dict__:
            return None
        kinds.append(type(part))
        weights += [weight for weight in part._parameters.values() if weight is not None]
    if any(type(weight) is not Parameter for weight in weights):
        return None
    places = [(id(weight), weight.data_ptr()) for weight in weights]
    known = _prepared.get(module)
    if known is not None and known.kinds == kinds and known.places == places:
        return cast("T", known.made)
    is_readable = all(
        w.dtype == torch.float32 and w.device.type == "cpu" and w.is_contiguous() for w in weights
    )
    if not is_readable or structure_of(module) != built:
        return None
    made = make()
    _prepared[module] = Prepared(kinds, weights, places, made)
    return made


def parts_of(module: nn.Module) -> Iterator[nn.Module]:
    """Yield a module and all its parts, like `module.modules()`, in a third of the time.

    A part that is at several places comes several times.
    """
    waiting: list[nn.Module | None] = [module]
    while waiting:
        if (part := waiting.pop()) is not None:
            yield part
            waiting.extend(part._modules.values())


def is_recorded() -> bool:
    """Whether PyTorch traces, compiles or exports, or a dispatch mode is active and may record."""
    return _is_captured() or _python_dispatch._len_torch_dispatch_stack() > 0


def can_read_values(*tensors: Tensor) -> bool:
    """Whether code may read values of tensors, for example to choose shapes.

    Like `is_eager`, but also True under dispatch modes that have a true attribute `only_observes`:
    such a mode runs each operation immediately.
    """
    if _is_captured() or is_transformed(*tensors):  # check first: a compiler cannot read the modes
        return False
    modes = _python_dispatch._get_current_dispatch_mode_stack()
    return all(getattr(mode, "only_observes", False) for mode in modes)


def _is_captured() -> bool:
    compiling = torch.compiler.is_compiling()
    return compiling or torch.jit.is_tracing() or torch.jit.is_scripting()


def is_transformed(*tensors: Tensor) -> bool:
    """Whether a tensor may stand for other values than the values in its memory.

    True for tensors inside `torch.func`, for a batch that `is_grads_batched` made, for a tensor
    with a tangent, and for a subclass of `Tensor` other than `Parameter`.
    """
    if torch.compiler.is_compiling():  # the compiler handles transforms by itself
        return False
    return not all(map(_is_ordinary, tensors))


def _is_ordinary(tensor: Tensor) -> bool:
    if type(tensor) not in (Tensor, Parameter):
        return False
    try:
        tensor.data_ptr()
    except RuntimeError:  # a batch, or a value that is differentiated, has no memory
        return False
    return unpack_dual(tensor).tangent is None


def use_compiled_kernels() -> None:
    """Use compiled code from the next decoder step on.

    The bits of a result then do not depend on how many steps the process computed before. So a
    resumed job gives the same bits as a job that was not interrupted.
    """
    global _steps
    _steps = STEPS_BEFORE


def may_use_compiled(rows: int) -> bool:
    """Whether compiled code computes the next step of `rows` prefixes. If False, count the step.

    The result depends only on the earlier steps, and not on time. So a repeated command runs the
    same code and gives the same bits.
    """
    global _steps
    if _steps >= STEPS_BEFORE:
        return True
    _steps += 1 + rows // ROWS_OF_A_STEP
    return False


def needs_plain(*grads: Tensor) -> bool:
    """Whether the plain formula must compute a backward pass.

    True if PyTorch records or transforms the pass, or if gradients are enabled during the pass.
    `create_graph=True` enables gradients, so that the backward pass itself can be differentiated.
    """
    return torch.is_grad_enabled() or not is_eager(*grads)


def plain_gradients(
    formula: Callable[..., tuple[Tensor, ...]], tensors: Sequence[Tensor], grads: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return the gradients of a formula, for the `backward` of an autograd function.

    Args:
        formula: a function of `tensors`, in operations that PyTorch can differentiate repeatedly.
        tensors: the float inputs, as the forward pass saved them.
        grads: gradients of the outputs of `formula`.

    Returns:
        The gradient of each of `tensors`. If no output depends on a tensor, its gradient is zero.
        Under `create_graph=True`, the gradients can be differentiated by `tensors` and `grads`.
    """
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # Differentiate with respect to views. Otherwise, if tensor y was computed from tensor x,
        # the gradient of x would also include the part that flows through y.
        views = [tensor.view_as(tensor) for tensor in tensors]
        views = [v if v.requires_grad else v.detach().requires_grad_() for v in views]
        outputs = formula(*views)
    return torch.autograd.grad(
        outputs, views, grads, create_graph=create_graph, allow_unused=True, materialize_grads=True
    )
