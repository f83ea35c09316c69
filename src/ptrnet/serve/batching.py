"""Batching across requests: instances of many users go through a model together.

All instances of a batch have the same model and the same `Method` of decoding. Their sizes are also
the same after rounding up to a power of two. Two limits apply to a batch of several instances. To
bound its memory, it has at most BATCH_ELEMENTS elements. To bound its time, it has at most as many
instances as the model can probably answer in half a second. A batch begins with instances of the
request at the front of the queue. If not all of them fit into the batch, the rest of them queue
again behind all other requests. A separate thread decodes slow instances, so that quick instances
do not wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Self, cast

import torch

from ptrnet.data.dataset import Dataset
from ptrnet.models.base import PointerModel
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.schemas import Method
from ptrnet.solver import Solver
from ptrnet.solver.scoring import element_scores
from ptrnet.tasks.custom import Custom
from ptrnet.types import Example

WINDOW = 0.002  # seconds that an idle service waits for more requests after the first request
# Maximum number of elements of a batch of several instances, with padding. The model reads
# `augment` views (augmented copies) of an instance, and the decoder has `decoder.size` prefixes
# (partial answers) for each view. So an element counts `decoder.size * augment` times.
BATCH_ELEMENTS = 16_384
QUICK_ELEMENTS = 512  # maximum for a quick instance, counted as for BATCH_ELEMENTS
SCORES = "scores"  # key of `extra` for the `element_scores` of an answered instance
BATCH_SECONDS = 0.5  # how long decoding a batch should take at most


class Batcher:
    """Decodes instances in batches, in two threads: one for quick and one for slow instances.

    Args:
        metrics: where each batch is recorded.
        threads: number of PyTorch threads for each of the two decoding threads. If None,
            PyTorch's default.
    """

    def __init__(self, metrics: Metrics, threads: int | None = None) -> None:
        self._quick = _BatchQueue(metrics, threads, AdaptiveBatchSize(BATCH_ELEMENTS))
        # A slow instance may take seconds, so the first batch of each kind has only one instance.
        self._slow = _BatchQueue(metrics, threads, AdaptiveBatchSize(1))

    async def __aenter__(self) -> Self:
        for queue in (self._quick, self._slow):
            queue.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        for queue in (self._quick, self._slow):
            queue.stop()

    async def solve(self, solver: Solver, method: Method, data: Dataset) -> Dataset:
        """Return the instances with the model's answers, as `Solver.predict` does.

        If the model was trained on a user's own examples, `extra` has the SCORES of elements.

        If the caller is cancelled, its instances that are still queued are not decoded.

        Raises:
            PtrnetError: from `Solver.predict`.
        """
        if not len(data):
            return data
        request = _Request(data)
        parts: dict[int, _Part] = {}
        for index, n in enumerate(data.sizes.tolist()):
            size = 1 << (n - 1).bit_length()
            if size not in parts:
                parts[size] = _Part(BatchKey(solver, method, size), request, deque())
            parts[size].indices.append(index)
        for part in parts.values():
            (self._quick if part.key.is_quick else self._slow).put(part)
        return await request.future


class BatchKey(NamedTuple):
    """Properties that all instances of a batch share."""

    solver: Solver
    method: Method
    size: int  # n rounded up to a power of two

    @property
    def elements(self) -> int:
        """Number of elements, with padding, in all prefixes and views of an instance."""
        return self.size * self.method.decoder.size * self.method.augment

    @property
    def is_quick(self) -> bool:
        """Whether decoding an instance takes little time."""
        return self.elements <= QUICK_ELEMENTS

    @property
    def kind(self) -> Hashable:
        """Key that is equal for batches whose instances take about the same time to decode."""
        return self.solver, self.method.decoder.name, self.elements.bit_length()


class AdaptiveBatchSize:
    """Maximum number of instances in a batch, learned for each kind of instances (`BatchKey.kind`).

    The maximum doubles after a full batch that took at most `BATCH_SECONDS`, and shrinks after a
    slower batch. `BATCH_ELEMENTS` bounds only the memory of a batch. This class bounds the time,
    because the time per element differs a hundredfold between models and decoders.

    Args:
        first: the maximum for a kind that has not been decoded yet.
    """

    def __init__(self, first: int) -> None:
        self._first, self._sizes = first, dict[Hashable, int]()

    def get(self, kind: Hashable) -> int:
        """Return the maximum number of instances in a batch, at least 1."""
        return self._sizes.get(kind, self._first)

    def update(self, kind: Hashable, count: int, seconds: float) -> None:
        """Adapt the maximum after a batch of `count` instances that took `seconds`.

        For an abandoned batch, `seconds` is the time until the batch was abandoned.
        """
        if seconds > BATCH_SECONDS:
            self._sizes[kind] = max(1, int(count * BATCH_SECONDS / seconds))
        elif count >= self.get(kind):
            self._sizes[kind] = 2 * count


class _Request:
    """The instances of a request, and the future that its caller awaits."""

    def __init__(self, data: Dataset) -> None:
        self.data, self._answered = data, dict[int, Example]()
        self.future: asyncio.Future[Dataset] = asyncio.get_running_loop().create_future()

    def set_answer(self, index: int, answered: Example) -> None:
        self._answered[index] = answered
        if len(self._answered) == len(self.data) and not self.future.done():
            rows = (self._answered[row] for row in range(len(self.data)))
            self.future.set_result(Dataset.of(rows, self.data.item_size))

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Part(NamedTuple):
    """Instances of a request with the same key, which can share a batch."""

    key: BatchKey
    request: _Request
    indices: deque[int]


# For each instance of a batch: its request, and the instance's index in the request.
Items = list[tuple[_Request, int]]


class _BatchQueue:
    """A queue of parts, and the thread that decodes them."""

    def __init__(
        self, metrics: Metrics, threads: int | None, batch_size: AdaptiveBatchSize
    ) -> None:
        self._metrics, self._batch_size = metrics, batch_size
        self._thread = ThreadPoolExecutor(1, "answering", partial(_set_num_threads, threads))
        self._waiting: deque[_Part] = deque()
        self._arrived = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._answer_forever())

    def stop(self) -> None:
        self._task.cancel()
        self._thread.shutdown(cancel_futures=True)

    def put(self, part: _Part) -> None:
        self._waiting.append(part)
        self._arrived.set()

    async def _answer_forever(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(WINDOW)
            while (batch := self._next_batch()) is not None:
                await self._answer(*batch)
            self._arrived.clear()

    def _next_batch(self) -> tuple[BatchKey, Items] | None:
        """Take a batch off the queue. Return None if no request waits."""
        waiting = [part for part in self._waiting if not part.request.future.done()]
        self._waiting.clear()
        if not waiting:
            return None
        key = waiting[0].key
        room = min(max(1, BATCH_ELEMENTS // key.elements), self._batch_size.get(key.kind))
        items: Items = []
        unfinished = []  # parts with instances left; they queue again behind all other parts
        for part in waiting:
            if part.key != key or len(items) == room:
                self._waiting.append(part)
                continue
            while part.indices and len(items) < room:
                items.append((part.request, part.indices.popleft()))
            if part.indices:
                unfinished.append(part)
        self._waiting.extend(unfinished)
        return key, items

    async def _answer(self, key: BatchKey, items: Items) -> None:
        """Decode a batch and answer its requests.

        If the batch fails, decode each of its requests alone, so that a bad request does not fail
        the other requests.
        """
        requests = list(dict.fromkeys(request for request, _ in items))
        examples = [request.data[index] for request, index in items]
        solve = partial(_solve, key, examples, requests)
        start = perf_counter()
        try:
            answered = await asyncio.get_running_loop().run_in_executor(self._thread, solve)
        except AbandonedError:
            # If the batch was abandoned early, we do not know how long it would have taken.
            if (seconds := perf_counter() - start) > BATCH_SECONDS:
                self._batch_size.update(key.kind, len(items), seconds)
        except Exception as error:  # wrong input or a defect; `Batcher.solve` raises it
            if len(requests) == 1:
                requests[0].fail(error)
                return
            for alone in requests:
                await self._answer(key, [item for item in items if item[0] is alone])
        else:
            seconds = perf_counter() - start
            self._batch_size.update(key.kind, len(items), seconds)
            self._metrics.batch(len(items), seconds)
            for (request, index), example in zip(items, answered, strict=True):
                request.set_answer(index, example)


def _solve(key: BatchKey, examples: list[Example], requests: list[_Request]) -> list[Example]:
    def is_abandoned() -> bool:
        return all(request.future.done() for request in requests)

    decoder, constrained, augment, improve = key.method
    solver = copy(key.solver)
    solver.model = cast(PointerModel, _AbandonableModel(key.solver.model, is_abandoned))
    solved = solver.predict(
        examples, decoder, constrained=constrained, augment=augment, improve=improve
    )
    if not isinstance(solver.task, Custom):
        return list(solved)
    scores = element_scores(solver.model, solver.task, solved)
    pairs = zip(solved, scores, strict=True)
    return [row.replace(extra={**row.extra, SCORES: of_row}) for row, of_row in pairs]


def _set_num_threads(threads: int | None) -> None:
    if threads is not None:
        # The first call of `get_num_threads` in a thread resets the thread's setting. So call
        # `get_num_threads` before `set_num_threads`.
        torch.get_num_threads()
        torch.set_num_threads(threads)


class AbandonedError(Exception):
    """Raised in the decoding thread if no caller waits for the batch any more."""


class _AbandonableModel:
    """Wrapper of a model. Its `step` raises AbandonedError if no caller waits for the batch."""

    def __init__(self, model: PointerModel, is_abandoned: Callable[[], bool]) -> None:
        self._model, self._is_abandoned = model, is_abandoned

    def step(self, *arguments: Any) -> Any:
        if self._is_abandoned():
            raise AbandonedError
        return self._model.step(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
