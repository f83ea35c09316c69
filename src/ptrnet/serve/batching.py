"""Requests that share batches: instances of many users go through a model together.

A batch has instances of one model, one method and about one size (n up to the same power of two),
as many as memory allows and as are likely to be answered in half a second. Its first instance is
that of the request that has waited longest; a request that does not fit goes on behind the others.
Instances that take long have a thread of their own, beside that of others.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import NamedTuple, Self, TypeVar

import torch

from ptrnet.serve.abandoning import Abandonable, AbandonedError
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.pace import SECONDS, Pace
from ptrnet.serve.requests.schemas import Method
from ptrnet.solver import Solver
from ptrnet.types import Example

WINDOW = 0.002  # seconds in which others may join the first of an idle service
BATCH_ELEMENTS = 16_384  # of a batch, padding and prefixes included
QUICK_ELEMENTS = 512  # of an instance, prefixes and views included, that keeps no other waiting

Result = TypeVar("Result")


class Key(NamedTuple):
    """What the instances of a batch have in common."""

    solver: Solver
    method: Method
    size: int  # the least power of two that is n or more

    @property
    def elements(self) -> int:
        """How many an instance has, padding, prefixes and views included."""
        return self.size * self.method.decoder.size * self.method.augment

    @property
    def is_quick(self) -> bool:
        """Whether an instance takes little time."""
        return self.elements <= QUICK_ELEMENTS

    @property
    def kind(self) -> tuple[Solver, str, int]:
        """The same for batches whose instances take about the same time."""
        return self.solver, self.method.decoder.name, self.elements.bit_length()


class _Request:
    """The instances of one request, and who waits for them."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples, self._missing = list(examples), len(examples)
        self.future: asyncio.Future[list[Example]] = asyncio.get_running_loop().create_future()

    def put(self, index: int, answered: Example) -> None:
        """Takes the answer to an instance; with the last one the waiting is over."""
        self.examples[index] = answered
        self._missing -= 1
        if not self._missing and not self.future.done():
            self.future.set_result(self.examples)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Part(NamedTuple):
    """Those instances of a request that can share a batch, by their indices."""

    key: Key
    request: _Request
    indices: deque[int]


Items = list[tuple[_Request, int]]  # of a batch: whose instance, and which


class Batcher:
    """Answers instances in batches, in two threads: one for those that are quick, and one more.

    Args:
        metrics: get to know of each batch.
        threads: of torch; None: as many as it takes by itself.
    """

    def __init__(self, metrics: Metrics, threads: int | None = None) -> None:
        self._quick = _Queue(metrics, threads, Pace(BATCH_ELEMENTS))
        self._slow = _Queue(metrics, threads, Pace(1))  # of which one alone may take seconds

    async def __aenter__(self) -> Self:
        for queue in (self._quick, self._slow):
            queue.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        for queue in (self._quick, self._slow):
            queue.stop()

    async def solve(
        self, solver: Solver, method: Method, examples: Sequence[Example]
    ) -> list[Example]:
        """The examples with the model's answers, as `Solver.predict` gives them.

        A caller that is cancelled gives up what it has not got.

        Raises:
            PtrnetError: of `Solver.predict`.
        """
        if not examples:
            return []
        request = _Request(examples)
        parts: dict[int, _Part] = {}
        for index, example in enumerate(examples):
            size = 1 << (len(example.inputs) - 1).bit_length()
            if size not in parts:
                parts[size] = _Part(Key(solver, method, size), request, deque())
            parts[size].indices.append(index)
        for part in parts.values():
            (self._quick if part.key.is_quick else self._slow).put(part)
        return await request.future


class _Queue:
    """Parts of requests that wait, and the thread that answers them; arguments as of `Batcher`."""

    def __init__(self, metrics: Metrics, threads: int | None, pace: Pace) -> None:
        self._metrics, self._pace = metrics, pace
        self._thread = ThreadPoolExecutor(1, "answering", partial(_use_threads, threads))
        self._waiting: deque[_Part] = deque()
        self._arrived = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._answer())

    def stop(self) -> None:
        self._task.cancel()
        self._thread.shutdown(cancel_futures=True)

    def put(self, part: _Part) -> None:
        """Takes a part; its batch begins when others had the time to join it."""
        self._waiting.append(part)
        self._arrived.set()

    async def run(self, function: Callable[[], Result]) -> Result:
        """The result of a function that is called between two batches."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def _answer(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(WINDOW)
            while items := self._next_batch():
                await self._decode(*items)
            self._arrived.clear()

    def _next_batch(self) -> tuple[Key, Items] | None:
        """The key and items of a batch; None where nobody waits."""
        waiting = [part for part in self._waiting if not part.request.future.done()]
        self._waiting.clear()
        if not waiting:
            return None
        key = waiting[0].key
        room = min(max(1, BATCH_ELEMENTS // key.elements), self._pace.room(key.kind))
        items: Items = []
        later = []  # behind those that have got nothing
        for part in waiting:
            if part.key != key or len(items) == room:
                self._waiting.append(part)
                continue
            while part.indices and len(items) < room:
                items.append((part.request, part.indices.popleft()))
            if part.indices:
                later.append(part)
        self._waiting.extend(later)
        return key, items

    async def _decode(self, key: Key, items: Items) -> None:
        """Answers the items; where they fail together each request is tried alone."""
        requests = list(dict.fromkeys(request for request, _ in items))
        examples = [request.examples[index] for request, index in items]
        start = perf_counter()
        try:
            answered = await self.run(partial(_solve, key, examples, requests))
            self._pace.note(key.kind, len(items), perf_counter() - start)
            self._metrics.batch(len(items), perf_counter() - start)
            for (request, index), example in zip(items, answered, strict=True):
                request.put(index, example)
        except AbandonedError:
            if (seconds := perf_counter() - start) > SECONDS:  # of less time nothing is known
                self._pace.note(key.kind, len(items), seconds)
        except Exception as error:  # of a user's input, or a defect: whoever waits gets it
            if len(requests) == 1:
                requests[0].fail(error)
                return
            for alone in requests:
                await self._decode(key, [item for item in items if item[0] is alone])


def _solve(key: Key, examples: list[Example], requests: list[_Request]) -> list[Example]:
    decoder, constrained, augment = key.method
    watched = Abandonable(decoder, lambda: all(r.future.done() for r in requests))
    answers = key.solver.predict(examples, watched, constrained=constrained, augment=augment)
    return list(answers)


def _use_threads(threads: int | None) -> None:
    if threads is not None:
        torch.get_num_threads()  # the first read of a thread resets that thread's setting
        torch.set_num_threads(threads)
