"""The service: it admits requests to a bounded queue and answers them before a deadline."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from ptrnet.data.dataset import Dataset
from ptrnet.decoding.trace import Traced
from ptrnet.errors import unknown
from ptrnet.serve.batching import SCORES, Batcher
from ptrnet.serve.limits import Limits
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.problems import RETRY, Problem
from ptrnet.serve.requests import BodyReader, Parse, Question
from ptrnet.serve.schemas import (
    Answer,
    EvaluateResponse,
    ExactAnswer,
    Method,
    SolveResponse,
    TraceResponse,
)
from ptrnet.serve.tracing import ExactAnswers, compare, steps_of
from ptrnet.solver import Solver
from ptrnet.solver.answer import finite_cost
from ptrnet.solver.evaluating import score_answers
from ptrnet.solver.scoring import to_probabilities
from ptrnet.tasks.custom import own_task
from ptrnet.types import Example

# Number of bytes. It is faster to parse a smaller body than to hand it to a thread. A larger body
# would hold up the event loop.
SMALL_BODY = 16_384
EXACT_SECONDS = 1.0  # how long a trace waits for the exact answer after the model's answer

Result = TypeVar("Result")


class Service:
    """The models, and the queue, thread and cache that requests share.

    The queue has a fixed number of places. A request takes a place when its body is complete, so
    that slow senders do not block other requests. The request holds the place until it is answered.

    Args:
        models: the models to serve. The keys are the models' names in the URL.
        limits: limits of a request and of the queue.
    """

    def __init__(self, models: Mapping[str, Solver], limits: Limits) -> None:
        self.models, self.limits, self.metrics = models, limits, Metrics()
        self.num_waiting = 0  # requests that hold a place in the queue
        self.bodies, self.batcher = BodyReader(limits), Batcher(self.metrics)
        self._exact = ExactAnswers()

    def model(self, name: str) -> Solver:
        """Return a model by its name. Raises Problem 404, which suggests a similar name."""
        if name not in self.models:
            raise Problem(404, str(unknown("model", name, self.models)))
        return self.models[name]

    @property
    def is_full(self) -> bool:
        """Whether the queue has no free place."""
        return self.num_waiting >= self.limits.queue

    def check_room(self) -> None:
        """Raise Problem 429 if the queue is full."""
        if self.is_full:
            raise Problem(429, f"all {self.limits.queue} places of the queue are taken", RETRY)

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Hold a place in the queue within the context, at most until the deadline.

        Raises:
            Problem: 429 if the queue is full, 503 if the deadline passes.
        """
        self.check_room()
        self.num_waiting += 1
        self.metrics.in_queue.inc()
        try:
            async with asyncio.timeout(self.limits.answer_seconds):
                yield
        except TimeoutError:
            raise Problem(503, f"no answer after {self.limits.answer_seconds:g} seconds") from None
        finally:
            self.num_waiting -= 1
            self.metrics.in_queue.dec()

    async def solve(self, name: str, body: bytes, parse: Parse) -> SolveResponse:
        """Answer the instances of a body."""
        start, solver = perf_counter(), self.models[name]
        (_, method), answered = await self._answered(name, body, parse)
        answers = [_answer(solver, method, example) for example in answered]
        seconds = perf_counter() - start
        return SolveResponse(**_header(name, solver, method), answers=answers, seconds=seconds)

    async def evaluate(self, name: str, body: bytes, parse: Parse) -> EvaluateResponse:
        """Compare the model's answers with the true answers of a body."""
        start, solver = perf_counter(), self.models[name]
        (data, method), answered = await self._answered(name, body, parse)
        measures = await asyncio.to_thread(score_answers, solver.model, solver.task, data, answered)
        return EvaluateResponse(
            **_header(name, solver, method),
            instances=len(data),
            metrics={metric: measure.to_dict() for metric, measure in measures.items()},
            warnings=[m.text for m in solver.trained_range.messages_of(data, method.decoder)],
            seconds=perf_counter() - start,
        )

    async def trace(self, name: str, body: bytes, parse: Parse) -> TraceResponse:
        """Answer the instance of a body, and return the steps of the search.

        If the exact answer is ready at most `EXACT_SECONDS` after the model's answer, compare both.
        """
        start, solver = perf_counter(), self.models[name]
        task = solver.task
        (_, method), (solved,) = await self._answered(name, body, parse)
        assert isinstance(method.decoder, Traced)
        tokens, steps = await asyncio.to_thread(steps_of, task, solved, method.decoder)
        exact: ExactAnswer | None = None
        pending = True
        with suppress(TimeoutError):
            async with asyncio.timeout(EXACT_SECONDS):
                exact = await self._exact.get(task, solved)
                pending = False
        correct, metrics = compare(task, solved, exact)
        return TraceResponse(
            **_header(name, solver, method),
            special_names=list(task.special_names),
            tokens=tokens,
            steps=steps,
            answer=_answer(solver, method, solved),
            exact=exact,
            pending=pending,
            correct=correct,
            metrics=metrics,
            seconds=perf_counter() - start,
        )

    async def _answered(self, name: str, body: bytes, parse: Parse) -> tuple[Question, Dataset]:
        """Return the question in a body, and its instances with the answers of a model."""
        solver = self.models[name]
        parse = partial(parse, body, solver.task, self.limits)
        question = parse() if len(body) <= SMALL_BODY else await asyncio.to_thread(parse)
        answered = await self.batcher.solve(solver, question.method, question.data)
        self.metrics.instances.labels(name).inc(len(answered))
        return question, answered


def _header(name: str, solver: Solver, method: Method) -> dict[str, Any]:
    return {"task": solver.task.name, "model": name, "decoder": method.decoder.name}


def _answer(solver: Solver, method: Method, solved: Example) -> Answer:
    assert solved.outputs is not None and solved.log_prob is not None
    scores, probabilities = solved.extra.get(SCORES), None
    if scores is not None:
        probabilities = to_probabilities(own_task(solver.task), scores).tolist()
        scores = scores.tolist()
    return Answer(
        outputs=solved.outputs.tolist(),
        log_likelihood=solved.log_prob,
        cost=finite_cost(solver.task, solved),
        warnings=[m.text for m in solver.trained_range.messages_of([solved], method.decoder)],
        scores=scores,
        probabilities=probabilities,
    )


async def while_connected(
    receive: Callable[[], Awaitable[Mapping[str, Any]]], answer: Awaitable[Result]
) -> Result | None:
    """Await the answer. If the client disconnects first, cancel the answer.

    Returns:
        The answer, or None if the client disconnected.
    """

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(leave())
    try:
        await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        return await answering if answering.done() else None
    finally:
        answering.cancel()
        leaving.cancel()
