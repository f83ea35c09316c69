"""What the service does with a request that has been read: answer it, or measure its answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from ptrnet.decoding.search import Search
from ptrnet.decoding.trace import Traced
from ptrnet.errors import unknown
from ptrnet.serve.batching import Batcher
from ptrnet.serve.exact import ExactAnswers
from ptrnet.serve.limits import Limits
from ptrnet.serve.metrics import Metrics
from ptrnet.serve.places import Places
from ptrnet.serve.problems import Problem, out_of_time
from ptrnet.serve.requests.bodies import Bodies
from ptrnet.serve.requests.parsing import Question
from ptrnet.serve.requests.schemas import Method
from ptrnet.serve.tracing import compare, steps_of
from ptrnet.solver import Solver
from ptrnet.solver.answer import finite_cost
from ptrnet.types import Example

SMALL = 16_384  # bytes of a body that is parsed in the loop; a larger one, in a thread
TURN = 0.001  # seconds of a turn of the loop in which it had something to do
TURNS = 8  # that a request leaves to others
EXACT_SECONDS = 1.0  # that a trace waits for the exact answer, once it has the model's

Result = TypeVar("Result")


class Served(NamedTuple):
    """A model of the service."""

    name: str
    solver: Solver


@dataclass(frozen=True)
class Service:
    """The models, and what requests share."""

    models: Mapping[str, Served]
    limits: Limits
    batcher: Batcher
    places: Places
    bodies: Bodies
    metrics: Metrics
    measuring: Executor  # one thread: what takes long there keeps nobody's answers waiting
    exact: ExactAnswers
    parsing: Executor  # one thread: each that runs Python makes the loop wait for its turn longer

    def model(self, name: str) -> Served:
        """A model by its name. Raises Problem 404, with the nearest name."""
        if name not in self.models:
            detail = str(unknown("model", name, self.models))
            raise Problem(HTTPStatus.NOT_FOUND, detail)
        return self.models[name]

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """A place in the queue, and a deadline. Raises Problem 429 or 503."""
        seconds = self.limits.answer_seconds
        with self.places.take():
            self.metrics.in_queue.inc()
            try:
                async with asyncio.timeout(seconds):
                    yield
            except TimeoutError:
                raise out_of_time(f"no answer after {seconds:g} seconds") from None
            finally:
                self.metrics.in_queue.dec()

    async def solve(
        self, served: Served, body: bytes, parse: Callable[[bytes], Question]
    ) -> dict[str, Any]:
        """The `SolveResponse` to a body."""
        start = perf_counter()
        question = await self._aside(len(body), partial(parse, body))
        solved = await self.batcher.solve(served.solver, question.method, question.examples)
        answers = await self._aside(len(body), partial(_answers, served, question.method, solved))
        self.metrics.answered(served.name, len(solved))
        seconds = perf_counter() - start
        return {**_header(served, question.method), "answers": answers, "seconds": seconds}

    async def evaluate(
        self, served: Served, body: bytes, parse: Callable[[bytes], Question]
    ) -> dict[str, Any]:
        """The `EvaluateResponse` to a body."""
        start = perf_counter()
        examples, method = await self._aside(len(body), partial(parse, body))
        answered = await self.batcher.solve(served.solver, method, examples)
        measures = await asyncio.get_running_loop().run_in_executor(
            self.measuring, partial(served.solver.score, examples, answered)
        )
        self.metrics.answered(served.name, len(answered))
        return {
            **_header(served, method),
            "instances": len(examples),
            "metrics": {name: measure.to_dict() for name, measure in measures.items()},
            "seconds": perf_counter() - start,
        }

    async def trace(
        self, served: Served, body: bytes, parse: Callable[[bytes], Question]
    ) -> dict[str, Any]:
        """The `TraceResponse` to a body."""
        start, solver = perf_counter(), served.solver
        task = solver.task
        (example,), method = await self._aside(len(body), partial(parse, body))
        assert isinstance(method.decoder, Search)
        traced = Traced(method.decoder)  # equal to no other: it shares no batch
        labelling = self.exact.ask(task, example)
        (solved,) = await self.batcher.solve(solver, method._replace(decoder=traced), [example])
        await asyncio.wait([asyncio.wrap_future(labelling)], timeout=EXACT_SECONDS)
        pending = not labelling.done()
        exact = None if pending else labelling.result()
        # Longer than a body, and all of it numbers.
        steps = await self._aside(SMALL + 1, partial(steps_of, task, example, traced))
        self.metrics.answered(served.name, 1)
        return {
            **_header(served, method),
            "special_names": list(task.special_names),
            **steps,
            "answer": _answer(solver, method, solved),
            "exact": exact,
            "pending": pending,
            **compare(task, solved, exact),
            "seconds": perf_counter() - start,
        }

    async def _aside(self, size: int, function: Callable[[], Result]) -> Result:
        """The result of a function, in the other thread where it takes long: the loop goes on."""
        if size <= SMALL:
            return function()
        await _let_others_pass()
        return await asyncio.get_running_loop().run_in_executor(self.parsing, function)


async def _let_others_pass() -> None:
    """Waits while the loop has much to do, a few of its turns at most.

    A thread that runs Python takes the interpreter at each of the loop's system calls, and keeps
    it for milliseconds. Of a crowd that comes in one moment each refusal would wait for that.
    """
    for _ in range(TURNS):
        start = perf_counter()
        await asyncio.sleep(0)
        if perf_counter() - start < TURN:
            return


def _header(served: Served, method: Method) -> dict[str, str]:
    task, decoder = served.solver.task.name, method.decoder.name
    return {"task": task, "model": served.name, "decoder": decoder}


def _answers(served: Served, method: Method, solved: list[Example]) -> list[dict[str, Any]]:
    return [_answer(served.solver, method, example) for example in solved]


def _answer(solver: Solver, method: Method, solved: Example) -> dict[str, Any]:
    """The `Answer` to one instance."""
    assert solved.outputs is not None
    return {
        "outputs": solved.outputs.tolist(),
        "log_likelihood": solved.log_prob,
        "cost": finite_cost(solver.task, solved),
        "warnings": [text for _, text in solver.messages_of(solved, method.decoder)],
    }


async def while_connected(
    receive: Callable[[], Awaitable[Mapping[str, Any]]], answer: Awaitable[Result]
) -> Result | None:
    """The answer; None, and it is given up, where the client leaves before."""

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
