"""A search on a GPU as CUDA graphs, recorded for a shape of batch that comes again.

A step launches dozens of small kernels, which takes the processor several times as long as the GPU
needs to run them. Some steps are recorded together. After each such graph the search ends if it
may, with the prefixes of the first step at which it might: the answers are the plain loop's.

Only what is ptrnet's own is recorded: of other code nobody knows what else decides its results.
"""

import warnings
from collections.abc import Callable, Hashable
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from ptrnet.decoding.steps import Hypotheses, Prefixes, Steps
from ptrnet.kernels import cuda_graph
from ptrnet.kernels.eager import is_transformed
from ptrnet.models.base import PointerModel

STEPS = 4  # of a graph
# Longer searches take the plain loop, and so do those of so many tokens over all steps that they
# keep a GPU busy by themselves, and those of further shapes: MAX_SHAPES are recorded of a model.
MAX_STEPS, MAX_TOKENS, MAX_SHAPES = 512, 2**23, 32
MAX_NEW_SHAPES = 4096  # that came once, and are remembered


class SearchBatch(NamedTuple):
    """What a search answers, as `Decoder.decode` takes it."""

    inputs: Tensor  # (B, N, d)
    lengths: Tensor  # (B,)
    max_lengths: Tensor  # (B,)


Begin = Callable[[Tensor, Tensor, Tensor], Steps]  # of the tensors of a batch


def run(
    model: PointerModel, kind: tuple[object, ...], size: int, begin: Begin, batch: SearchBatch
) -> Hypotheses:
    """The answers of a search on a GPU, as `Steps.run` gives them.

    The second batch of a shape is recorded, and those after it are answered by what was recorded.

    Args:
        model: that the search asks.
        kind: what decides the answers beside model and batch; equal where it is the same.
        size: the most prefixes of an instance, K.
        begin: begins a search of this kind.
        batch: that is searched.
    """
    global _has_failed
    contents = None if _has_failed or not all(map(_is_own, kind)) else _Contents.of(model)
    if contents is None:
        return begin(*batch).run()
    num_steps = int(batch.max_lengths.max()) + 1
    num_tokens = batch.inputs[..., 0].numel() * size * num_steps
    if num_steps > MAX_STEPS or num_tokens > MAX_TOKENS:
        return begin(*batch).run()
    types = ((tensor.shape, tensor.dtype, tensor.device) for tensor in batch)
    key = (kind, num_steps, contents.values, *types, *_modes())
    device = torch.cuda.device_of(batch.inputs)  # type: ignore[no-untyped-call]
    with _lock, device:
        searches = _searches.get(model)
        if searches is None or searches.contents.places != contents.places:
            searches = _searches[model] = _Searches(contents)
        search = searches.recorded.get(key)
        if search is not None:
            model.check_lengths(batch.lengths)
            return search.run(batch)
    hypotheses = begin(*batch).run()
    with _lock, device:
        try:
            complaint = searches.add(key, begin, batch, num_steps, hypotheses)
        except Exception as error:
            _has_failed = True  # it may have left PyTorch unable to record anything
            complaint = f"{type(error).__name__}: {error}".splitlines()[0]
    if complaint:
        warnings.warn(f"decoding without CUDA graphs: {complaint}", stacklevel=2)
    return hypotheses


def forget(model: PointerModel) -> None:
    """Gives back what was recorded of a model."""
    _searches.pop(model, None)


_lock = Lock()  # all graphs of a GPU share its products' memory
_has_failed = False


def _is_own(part: object) -> bool:
    """Whether a model's part, a decoder or a constraint is of a class of ptrnet or PyTorch."""
    return type(part).__module__.startswith(("ptrnet.", "torch.nn.modules."))


def _modes() -> tuple[object, ...]:
    """What decides how the calling thread computes, beside the types of tensors."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if hasattr(matmul, "fp32_precision"):  # since PyTorch 2.9; the older flags may not be read then
        precision = matmul.fp32_precision, cudnn.rnn.fp32_precision  # type: ignore[attr-defined]
    else:
        precision = matmul.allow_tf32, cudnn.allow_tf32
    autocast = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    return *precision, *autocast, torch.is_inference_mode_enabled()


class _Contents(NamedTuple):
    """What a model is made of. Its graphs read its tensors where they lay."""

    places: tuple[int, ...]
    values: tuple[object, ...]  # of its parts: their kinds, flags and numbers
    tensors: tuple[Tensor, ...]

    @classmethod
    def of(cls, model: PointerModel) -> "_Contents | None":
        """None where something else has a part in what the model computes, such as hooks."""
        if torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks:
            return None
        if not isinstance(model, nn.Module):
            return None
        slots, values = [], []
        for part in model.modules():
            own = vars(part)
            if not _is_own(part) or part._forward_hooks or part._forward_pre_hooks:
                return None
            if not own.keys().isdisjoint({"forward", "encode", "step"}):
                return None
            values += [type(part), *(x for x in own.values() if isinstance(x, int | float))]
            slots += [*part._parameters.values(), *part._buffers.values()]
        tensors = tuple(tensor for tensor in slots if tensor is not None)
        if is_transformed(*tensors):
            return None
        return cls(tuple(tensor.data_ptr() for tensor in tensors), tuple(values), tensors)


class _Searches:
    """The recorded searches of one model, whose tensors are where they were."""

    def __init__(self, contents: _Contents) -> None:
        self.contents = contents
        # Their memory, whatever becomes of them: nothing else comes to lie where graphs read.
        self._memory = [tensor.detach() for tensor in contents.tensors]
        self.recorded: dict[Hashable, _RecordedSearch | None] = {}  # None: not to be recorded
        self._new: set[Hashable] = set()
        self._pool: Any = None

    def add(
        self,
        key: Hashable,
        begin: Begin,
        batch: SearchBatch,
        num_steps: int,
        expected: Hypotheses,
    ) -> str:
        """Records a search whose key comes for the second time, and compares it with what it must
        give.

        It is recorded with the batch's instances the other way round, as what it did not read again
        would else pass.

        Returns:
            Why it will not be used; empty where it will.
        """
        if key in self.recorded or len(self.recorded) >= MAX_SHAPES:
            return ""
        if key not in self._new:
            if len(self._new) >= MAX_NEW_SHAPES:
                self._new.clear()
            self._new.add(key)
            return ""
        self.recorded[key] = None
        self._pool = self._pool or cuda_graph.new_pool()
        other = SearchBatch(*(tensor.flip(0) for tensor in batch))
        search = _RecordedSearch(begin, other, num_steps, self._pool)
        if not _are_equal(search.run(batch), expected):
            return "a search that was recorded answered otherwise"
        self.recorded[key] = search
        return ""


_searches: WeakKeyDictionary[PointerModel, _Searches] = WeakKeyDictionary()


class _Part(NamedTuple):
    """Some steps of a search, recorded."""

    graph: torch.cuda.CUDAGraph
    finished: Tensor  # (STEPS,) boolean: whether the search may stop after each
    outcomes: list[tuple[Tensor, Tensor]]  # tokens and scores of the prefixes after each


class _RecordedSearch:
    """Searches of batches of one shape, of so many steps at most."""

    def __init__(self, begin: Begin, batch: SearchBatch, num_steps: int, pool: Any) -> None:
        self._batch = SearchBatch(*(tensor.clone() for tensor in batch))
        start = partial(_start, begin, self._batch)
        cuda_graph.warm_up(lambda: _extend(*start(), num_steps))
        self._opening, (steps, prefixes) = cuda_graph.record(start, pool)
        self._selector = steps.selector
        self._parts = []
        for first in range(0, num_steps, STEPS):
            extend = partial(_extend, steps, prefixes, min(STEPS, num_steps - first))
            graph, (prefixes, finished, outcomes) = cuda_graph.record(extend, pool)
            self._parts.append(_Part(graph, finished, outcomes))

    def run(self, batch: SearchBatch) -> Hypotheses:
        """The answers of a batch of the shape."""
        for recorded, tensor in zip(self._batch, batch, strict=True):
            recorded.copy_(tensor)
        self._opening.replay()
        for part in self._parts:
            part.graph.replay()
            finished = part.finished.tolist()
            if any(finished):
                break
        tokens, scores = part.outcomes[finished.index(True) if any(finished) else -1]
        hypotheses = self._selector.finalize(Hypotheses.of(tokens, scores))
        hypotheses = Hypotheses(*(tensor.clone() for tensor in hypotheses))
        torch.cuda.current_stream().synchronize()  # before another thread may replay
        return hypotheses


def _start(begin: Begin, batch: SearchBatch) -> tuple[Steps, Prefixes]:
    """The steps of a batch, and its empty prefixes."""
    steps = begin(*batch)
    return steps, steps.start()


def _extend(
    steps: Steps, prefixes: Prefixes, count: int
) -> tuple[Prefixes, Tensor, list[tuple[Tensor, Tensor]]]:
    """The prefixes after so many steps; whether the search may stop after each, with what."""
    finished, outcomes = [], []
    for _ in range(count):
        prefixes = steps.extend(prefixes)
        finished.append(steps.selector.is_finished(prefixes.ended))
        outcomes.append((prefixes.tokens, prefixes.scores))
    return prefixes, torch.stack(finished), outcomes


def _are_equal(actual: Hypotheses, expected: Hypotheses) -> bool:
    """Whether the answers are the same, and their log-probabilities but for rounding."""
    if not torch.equal(actual.tokens, expected.tokens):
        return False
    return torch.allclose(actual.log_probs, expected.log_probs, 1e-4, 1e-4, equal_nan=True)
