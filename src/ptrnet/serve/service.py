"""The service: it admits requests to a bounded queue and answers them before a deadline."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from ptrnet.decoding.trace import Traced
from ptrnet.errors import unknown
from ptrnet.serve.batching import SCORES, Batcher
from ptrnet.serve.errors import RETRY, Refusal
from ptrnet.serve.limits import Limits
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.requests import BodyReader, Parse, Question, media_type
from ptrnet.serve.schemas import Answer, ExactAnswer, Header, Method
from ptrnet.serve.tracing import ExactAnswers, compare, steps_of
from ptrnet.solver import Solver
from ptrnet.solver.answer import finite_cost
from ptrnet.solver.scoring import score_answers, to_probabilities
from ptrnet.tasks.custom import own_task
from ptrnet.types import Dataset, Example

# Number of bytes. It is faster to parse a smaller body than to hand it to a thread. A larger body
# would hold up the event loop.
SMALL_BODY = 16_384
EXACT_SECONDS = 1.0  # how long a trace waits for the exact answer after the model's answer
CLIENT_LEFT = 499  # seen only in the metrics, because the client has closed the connection

Result = TypeVar("Result")
Kind = TypeVar("Kind", bound=Header)
Fields = dict[str, Any]
Describe = Callable[[Solver, Question, Dataset], Awaitable[Fields]]


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
        self._bodies, self.batcher = BodyReader(limits), Batcher(self.metrics)
        self._exact = ExactAnswers()

    def model(self, name: str) -> Solver:
        """Return a model by its name. Raises Refusal 404, which suggests a similar name."""
        if name not in self.models:
            raise Refusal(404, str(unknown("model", name, self.models)))
        return self.models[name]

    @property
    def is_full(self) -> bool:
        """Whether the queue has no free place."""
        return self.num_waiting >= self.limits.queue

    def _check_room(self) -> None:
        """Raise Refusal 429 if the queue is full."""
        if self.is_full:
            raise Refusal(429, f"all {self.limits.queue} places of the queue are taken", RETRY)

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[None]:
        """Hold a place in the queue within the context, at most until the deadline.

        Raises:
            Refusal: 429 if the queue is full, 503 if the deadline passes.
        """
        self._check_room()
        self.num_waiting += 1
        self.metrics.in_queue.inc()
        try:
            async with asyncio.timeout(self.limits.answer_seconds):
                yield
        except TimeoutError:
            raise Refusal(503, f"no answer after {self.limits.answer_seconds:g} seconds") from None
        finally:
            self.num_waiting -= 1
            self.metrics.in_queue.dec()

    async def respond(
        self,
        request: Request,
        name: str,
        kind: type[Kind],
        parsers: Mapping[str, Parse],
        describe: Describe,
    ) -> Kind | Response:
        """Answer a request: read, parse and decode it. Stop if the client disconnects.

        Args:
            name: name of the model.
            parsers: parsers of bodies by media type.
            describe: returns the response's own fields.

        Raises:
            Refusal: 404, 413, 415, 422, 429 or 503.
            InputError: see `parsers`.
        """
        solver = self.model(name)
        parse = partial(parsers[media_type(request, parsers)], task=solver.task, limits=self.limits)
        self._check_room()  # checked first: if the queue is full, we do not read the body
        try:
            body = await self._bodies.read(request)
        except ClientDisconnect:
            return Response(status_code=CLIENT_LEFT)

        async def answer() -> Kind:
            start = perf_counter()
            small = len(body) <= SMALL_BODY
            question = parse(body) if small else await asyncio.to_thread(parse, body)
            answered = await self.batcher.solve(solver, question.method, question.data)
            self.metrics.instances.labels(name).inc(len(answered))
            fields = await describe(solver, question, answered)
            fields["seconds"] = perf_counter() - start
            decoder = question.method.decoder.name
            return kind(task=solver.task.name, model=name, decoder=decoder, **fields)

        async with self._admitted():
            response = await _while_connected(request.receive, answer())
        return Response(status_code=CLIENT_LEFT) if response is None else response

    async def answers(self, solver: Solver, question: Question, answered: Dataset) -> Fields:
        """Return the fields of a `SolveResponse`."""
        return {"answers": [_answer(solver, question.method, example) for example in answered]}

    async def measures(self, solver: Solver, question: Question, answered: Dataset) -> Fields:
        """Compare answers with the true answers. Return the fields of an `EvaluateResponse`."""
        data, method = question
        measures = await asyncio.to_thread(score_answers, solver.model, solver.task, data, answered)
        return {
            "instances": len(data),
            "metrics": {metric: measure.to_dict() for metric, measure in measures.items()},
            "warnings": _warnings(solver, method, data),
        }

    async def steps(self, solver: Solver, question: Question, answered: Dataset) -> Fields:
        """Return the fields of a `TraceResponse`: the steps of the search for one answer.

        If the exact answer is ready at most `EXACT_SECONDS` after the model's answer, compare both.
        """
        task, method, (solved,) = solver.task, question.method, answered
        assert isinstance(method.decoder, Traced)
        tokens, steps = await asyncio.to_thread(steps_of, task, solved, method.decoder)
        exact: ExactAnswer | None = None
        pending = True
        with suppress(TimeoutError):
            async with asyncio.timeout(EXACT_SECONDS):
                exact = await self._exact.get(task, solved)
                pending = False
        correct, metrics = compare(task, solved, exact)
        return {
            "special_names": list(task.facts.special_names),
            "tokens": tokens,
            "steps": steps,
            "answer": _answer(solver, method, solved),
            "exact": exact,
            "pending": pending,
            "correct": correct,
            "metrics": metrics,
        }


def _warnings(solver: Solver, method: Method, data: Iterable[Example]) -> list[str]:
    return [message.text for message in solver.trained_range.messages(data, method.decoder)]


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
        warnings=_warnings(solver, method, [solved]),
        scores=scores,
        probabilities=probabilities,
        alternatives=solver.task.facts.layout.names_in(solved.elements),
    )


async def _while_connected(
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
