"""A search on a GPU as CUDA graphs, recorded for a shape of batch that comes again.

A step launches some 40 small kernels, which takes the processor several times as long as the GPU
needs to run them. Some steps are recorded together. After each such graph the search ends if it
may, with the prefixes of the first step at which it might: the answers are the plain loop's.
"""

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ptrnet.decoding.steps import Hypotheses, Prefixes, Steps
from ptrnet.kernels import cuda_graph
from ptrnet.models.base import PointerModel

STEPS = 4  # of a graph
# Of one model. Batches of further shapes take the plain loop, and so do searches of so many tokens
# over all steps, which keep a GPU busy by themselves.
MAX_SHAPES, MAX_TOKENS = 32, 2**23
MAX_NEW_SHAPES = 4096  # that came once, and are remembered
MIN_EQUAL = 0.9  # of a batch's answers: products that are recorded may be rounded otherwise


class SearchBatch(NamedTuple):
    """What a search answers, as `Decoder.decode` takes it."""

    inputs: Tensor  # (B, N, d)
    lengths: Tensor  # (B,)
    max_lengths: Tensor  # (B,)


Begin = Callable[[Tensor, Tensor, Tensor], Steps]  # of the tensors of a batch


def run(
    model: PointerModel, kind: Hashable, size: int, begin: Begin, batch: SearchBatch
) -> Hypotheses:
    """The answers of a search on a GPU, as `Steps.run` gives them.

    The second batch of a shape is recorded, and those after it are answered by what was recorded.

    Args:
        model: that the search asks; what merely stands for one is not recorded.
        kind: equal for searches that differ in their batch alone.
        size: the most prefixes of an instance, K.
        begin: begins a search of this kind.
        batch: that is searched.
    """
    contents, num_steps = _Contents.of(model), int(batch.max_lengths.max()) + 1
    num_tokens = batch.inputs[..., 0].numel() * size * num_steps
    if contents is None or num_tokens > MAX_TOKENS or not _is_hashable(kind):
        return begin(*batch).run()
    key = (kind, num_steps, *((t.shape, t.dtype, t.device) for t in batch), *_precision())
    graphs = _graphs.setdefault(model, _ModelGraphs())
    device = torch.cuda.device_of(batch.inputs)  # type: ignore[no-untyped-call]
    with graphs.lock, device:
        graphs.forget_unless(contents)
        if key not in graphs.searches:
            hypotheses = begin(*batch).run()
            graphs.add(key, begin, batch, num_steps, hypotheses)
            return hypotheses
        search = graphs.searches[key]
        if search is not None:
            model.check_lengths(batch.lengths)
            return search.run(batch)
    return begin(*batch).run()


def _is_hashable(kind: Hashable) -> bool:
    """Whether its parts are, too: a constraint of others may not be."""
    try:
        hash(kind)
    except TypeError:
        return False
    return True


def _precision() -> tuple[object, ...]:
    """What decides how products are rounded, beside the types of tensors."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    autocast = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    if hasattr(matmul, "fp32_precision"):  # since PyTorch 2.9; the older flags may not be read then
        return *autocast, matmul.fp32_precision, cudnn.rnn.fp32_precision  # type: ignore[attr-defined]
    return *autocast, matmul.allow_tf32, cudnn.allow_tf32


@dataclass(frozen=True)
class _Contents:
    """What a model is made of: its graphs read its tensors where they lay, and nothing else."""

    places: tuple[int, ...]
    values: tuple[object, ...]  # of its parts: their kinds, flags and numbers
    tensors: tuple[Tensor, ...] = field(compare=False)  # kept: nothing else comes to lie there

    @classmethod
    def of(cls, model: PointerModel) -> "_Contents | None":
        """None of what is no model itself, or has hooks: Python has a part in what it computes."""
        if not isinstance(model, nn.Module):
            return None
        tensors, values = [], []
        for part in model.modules():
            if part._forward_hooks or part._forward_pre_hooks:
                return None
            values += [type(part), *(x for x in vars(part).values() if isinstance(x, int | float))]
            tensors += [*part._parameters.values(), *part._buffers.values()]
        kept = tuple(tensor.detach() for tensor in tensors if tensor is not None)
        return cls(tuple(tensor.data_ptr() for tensor in kept), tuple(values), kept)


class _ModelGraphs:
    """The recorded searches of one model."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.searches: dict[Hashable, _RecordedSearch | None] = {}  # None: not to be recorded
        self._new: set[Hashable] = set()
        self._contents: _Contents | None = None
        self._pool: Any = None

    def forget_unless(self, contents: _Contents) -> None:
        """Drops all that was recorded of other contents."""
        if contents != self._contents:
            self._contents = contents
            self.searches.clear()
            self._new.clear()

    def add(
        self,
        key: Hashable,
        begin: Begin,
        batch: SearchBatch,
        num_steps: int,
        expected: Hypotheses,
    ) -> None:
        """Records a search whose key comes for the second time; what it must give is expected."""
        if key not in self._new:
            if len(self._new) < MAX_NEW_SHAPES:
                self._new.add(key)
        elif len(self.searches) < MAX_SHAPES:
            self._pool = self._pool or cuda_graph.new_pool()
            self.searches[key] = _record(begin, batch, num_steps, expected, self._pool)


_graphs: WeakKeyDictionary[PointerModel, _ModelGraphs] = WeakKeyDictionary()


class _Part(NamedTuple):
    """Some steps of a search, recorded."""

    graph: torch.cuda.CUDAGraph
    finished: Tensor  # (STEPS,) boolean: whether the search may stop after each
    outcomes: list[tuple[Tensor, Tensor]]  # tokens and scores of the prefixes after each


class _RecordedSearch:
    """Searches of batches of one shape, of so many steps at most."""

    def __init__(self, begin: Begin, batch: SearchBatch, num_steps: int, pool: Any) -> None:
        self._batch = batch = SearchBatch(*(tensor.clone() for tensor in batch))
        cuda_graph.warm_up(lambda: begin(*batch).run())

        def open_search() -> tuple[Steps, Prefixes]:
            steps = begin(*batch)
            return steps, steps.start()

        self._opening, (steps, prefixes) = cuda_graph.record(open_search, pool)
        self._selector = steps.selector
        self._parts = []
        for first in range(0, num_steps, STEPS):
            count = min(STEPS, num_steps - first)
            extend = partial(_extend, steps, prefixes, count)
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


def _record(
    begin: Begin, batch: SearchBatch, num_steps: int, expected: Hypotheses, pool: Any
) -> _RecordedSearch | None:
    """Graphs that give what is expected of the batch; None, and a warning, where there are none.

    They are recorded with its instances the other way round, as what they did not read would else
    pass.
    """
    other = SearchBatch(*(tensor.flip(0) for tensor in batch))
    try:
        search = _RecordedSearch(begin, other, num_steps, pool)
        num_equal = _num_equal(search.run(batch), expected)
        if num_equal >= MIN_EQUAL * len(batch.inputs):
            return search
        why = f"they answer {num_equal} of {len(batch.inputs)} instances alike"
    except RuntimeError as error:
        why = str(error).splitlines()[0]
    warnings.warn(f"searches without CUDA graphs, as they cannot be recorded: {why}", stacklevel=2)
    return None


def _num_equal(actual: Hypotheses, expected: Hypotheses) -> int:
    """How many instances have the same answers."""
    if actual.tokens.shape != expected.tokens.shape:
        return 0
    alike = (actual.tokens == expected.tokens).all(2) | expected.log_probs.isnan()
    alike &= actual.log_probs.isclose(expected.log_probs, 1e-3, 1e-3, equal_nan=True)
    return int(alike.all(1).sum())
