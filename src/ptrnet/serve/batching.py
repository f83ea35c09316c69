"""One queue and one thread: instances of many users go through a model together.

Requests that arrive while a batch is decoded join the next one. A batch has the request at the
front of the queue, and the compatible requests behind it (see `_Key`), up to `BATCH_ELEMENTS`.
"""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple, Self

from ptrnet.data.dataset import chunks_by_elements
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.schemas import Method
from ptrnet.solver import Solver
from ptrnet.solver.scoring import element_scores
from ptrnet.types import Dataset

# A batch gets no further request beyond this number of elements. The model reads `augment` views
# (augmented copies) of an instance, and the decoder has `decoder.size` prefixes (partial answers)
# for each view. So an element counts `decoder.size * augment` times.
BATCH_ELEMENTS = 4_096
SCORES = "scores"  # key of `extra` for the `element_scores` of an answered instance


class _Key(NamedTuple):
    """What the requests of a batch have in common."""

    solver: Solver
    method: Method
    # Number of bits of the largest number of elements. A batch takes as long as its largest
    # instance, so small instances do not share a batch with much larger ones.
    size: int


@dataclass(eq=False)
class _Part:
    """Instances of a request that are decoded together, and the future that the request awaits."""

    key: _Key
    examples: Dataset
    answered: asyncio.Future[Dataset]

    @property
    def elements(self) -> int:
        """Number of elements, counted as for BATCH_ELEMENTS."""
        method = self.key.method
        count = len(self.examples.elements)
        return count * method.decoder.size * method.augment


class Batcher:
    """Decodes instances in batches.

    Use it as an asynchronous context manager, which starts and stops the thread that decodes. Each
    batch is recorded in the metrics.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._waiting: deque[_Part] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "decoding")

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._decode_forever())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        self._thread.shutdown(cancel_futures=True)

    async def solve(self, solver: Solver, method: Method, data: Dataset) -> Dataset:
        """Return the instances with the model's answers, as `Solver.predict` does.

        If the model was trained on a user's own examples, `extra` has the SCORES of elements.

        A request larger than a batch joins the queue once for each part, so that other requests are
        answered between its parts. If the caller is cancelled, parts that wait are not decoded.

        Raises:
            PtrnetError: from `Solver.predict`.
        """
        answered: list[Dataset] = []
        num_elements = BATCH_ELEMENTS // (method.decoder.size * method.augment)
        for examples in chunks_by_elements(data, num_elements):
            size = int(examples.sizes.max()).bit_length()
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(_Part(_Key(solver, method, size), examples, future))
            self._arrived.set()
            answered.append(await future)
        return Dataset.join(answered)

    async def _decode_forever(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while batch := self._next_batch():
                await self._decode(batch)

    def _next_batch(self) -> list[_Part]:
        """Take compatible parts off the queue. Drop parts that no caller awaits any more."""
        waiting = [part for part in self._waiting if not part.answered.done()]
        self._waiting.clear()
        batch, elements = waiting[:1], sum(part.elements for part in waiting[:1])
        for part in waiting[1:]:
            if part.key == batch[0].key and elements + part.elements <= BATCH_ELEMENTS:
                batch.append(part)
                elements += part.elements
            else:
                self._waiting.append(part)
        return batch

    async def _decode(self, batch: list[_Part]) -> None:
        """Decode a batch, and hand the answers to its callers.

        If the batch fails, decode each of its parts alone, so that a bad request does not fail the
        others.
        """
        start = perf_counter()
        examples = Dataset.join(part.examples for part in batch)
        solve = partial(_solve, batch[0].key, examples)
        try:
            solved = await asyncio.get_running_loop().run_in_executor(self._thread, solve)
        except Exception as error:  # wrong input or a defect; `solve` raises it
            if len(batch) > 1:
                for part in batch:
                    await self._decode([part])
            elif not batch[0].answered.done():
                batch[0].answered.set_exception(error)
            return
        self._metrics.batch_instances.observe(len(examples))
        self._metrics.batch_seconds.observe(perf_counter() - start)
        first = 0
        for part in batch:
            last = first + len(part.examples)
            if not part.answered.done():
                part.answered.set_result(solved[first:last])
            first = last


def _solve(key: _Key, examples: Dataset) -> Dataset:
    """Answer instances, and score their elements. Runs in the thread that decodes."""
    solver = key.solver
    solved = solver.predict(examples, **key.method._asdict())
    if not solver.task.facts.kind:
        return solved
    scores = element_scores(solver.model, solver.task, solved)
    pairs = zip(solved.column("extra"), scores, strict=True)
    return solved.with_columns(extra=[{**extra, SCORES: of_row} for extra, of_row in pairs])
