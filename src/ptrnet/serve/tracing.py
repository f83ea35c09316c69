"""Traces: the steps of a search, and the exact answer for comparison."""

import asyncio
from collections.abc import Hashable
from concurrent.futures import Future
from math import isfinite
from threading import Thread

import numpy as np

from ptrnet.decoding.trace import Step, Traced
from ptrnet.labels import reference_answer
from ptrnet.metrics import summary
from ptrnet.serve.schemas import ExactAnswer, Prefix, TraceStep
from ptrnet.solver.answer import finite_cost
from ptrnet.tasks.base import Task
from ptrnet.types import END, Example, Indices
from ptrnet.views import augmented_view

DIGITS = 6  # decimal places of the probabilities
MAX_ANSWERS = 1024  # number of exact answers in the cache


def steps_of(task: Task, example: Example, traced: Traced) -> tuple[list[int], list[TraceStep]]:
    """Return the tokens of the answer and the steps of the search.

    The last batch that the search decoded must contain only this instance. If the model has read
    the elements in another order, the tokens are converted to the order of the instance.
    """
    _, order = augmented_view(0, task, task.normalize(example.inputs))
    special_tokens, ways = np.arange(task.facts.num_specials), np.arange(task.facts.ways)
    from_read, to_read = (
        np.append(special_tokens, i[:, None] * task.facts.ways + ways + task.facts.num_specials)
        for i in (order, order.argsort())
    )
    steps: list[TraceStep] = []
    for step in traced.steps:
        steps.append(_step(step, len(steps[-1].prefixes) if steps else 1, from_read, to_read))
    return _tokens(steps), steps


def _step(step: Step, count: int, from_read: Indices, to_read: Indices) -> TraceStep:
    """Convert a step of the search to a `TraceStep`. Drop prefixes that the constraint forbids.

    Forbidden tokens have probability 0. Their log-probability is -inf, or very low if the model
    obeys the task by itself. Forbidden prefixes come last, so the indices of all other prefixes
    stay valid.
    """
    log_probs = step.log_probs[0, :count].double().cpu().numpy()[:, to_read]
    probabilities = np.exp(log_probs)
    rounded = np.round(probabilities, DIGITS).astype(object)
    rounded[probabilities == 0] = None
    scores, parents, tokens = (part[0].tolist() for part in step.selection)
    prefixes = [
        Prefix(parent=parent, token=int(from_read[token]), log_likelihood=score)
        for score, parent, token in zip(scores, parents, tokens, strict=True)
        if isfinite(score) and parent < count and probabilities[parent, from_read[token]] > 0
    ]
    # Skip pydantic's slow validation, because these lists are valid by construction.
    return TraceStep.model_construct(probabilities=rounded.tolist(), prefixes=prefixes)


def _tokens(steps: list[TraceStep]) -> list[int]:
    """Return the tokens of the first prefix of the last step, up to END."""
    tokens, k = [], 0
    for step in reversed(steps):
        prefix = step.prefixes[k]
        tokens.append(prefix.token)
        k = prefix.parent
    tokens.reverse()
    return tokens[: tokens.index(END) + 1] if END in tokens else tokens


def compare(
    task: Task, solved: Example, exact: ExactAnswer | None
) -> tuple[bool | None, dict[str, float | None]]:
    """Compare the model's answer with the exact answer.

    Returns:
        Two values. First, whether the model's answer is as good as the exact answer, or None if no
        exact answer is proved. Second, the metrics of the model's answer by name, or {} if there is
        no exact answer.
    """
    if exact is None or solved.outputs is None:
        return None, {}
    known = solved.replace(outputs=np.array(exact.outputs, np.int64))
    measures = summary.measure(task, [known], [solved.outputs])
    is_correct = summary.is_correct(task, known, solved.outputs) if exact.proved else None
    return is_correct, {name: measure.to_dict()["value"] for name, measure in measures.items()}


def exact_of(task: Task, example: Example) -> ExactAnswer | None:
    """Return the answer of the task's first labeller.

    Return None if the labeller has no answer, or if labellers only follow rules that are often
    wrong, as those of pages.
    """
    if task.facts.drawn_in_order:
        return None
    outputs, is_proved = reference_answer(task, example)
    if outputs is None:
        return None
    return ExactAnswer(
        outputs=outputs.tolist(),
        cost=finite_cost(task, example.replace(outputs=outputs)),
        labeller=task.facts.labellers[0],
        proved=is_proved,
    )


class ExactAnswers:
    """Computes and caches exact answers, one at a time for each task.

    The threads are daemons, because an exact tour may take a minute and must not keep the process
    alive.
    """

    def __init__(self) -> None:
        self._futures: dict[Hashable, Future[ExactAnswer | None]] = {}
        self._latest: dict[str, Future[ExactAnswer | None]] = {}  # by the name of the task

    async def get(self, task: Task, example: Example) -> ExactAnswer | None:
        """Return the exact answer to an instance (see `exact_of`).

        A caller waits while the thread of its task computes the answer to another instance. If the
        caller leaves meanwhile, its own computation never begins. If it leaves later, the cache
        keeps the answer for the next caller.
        """
        key = (task, example.inputs.shape, example.inputs.tobytes())
        while key not in self._futures:
            latest = self._latest.get(task.name)
            if latest is None or latest.done():
                self._start(key, task, example)
            else:
                await asyncio.wait([asyncio.wrap_future(latest)])
        try:
            return await asyncio.wrap_future(self._futures[key])
        except Exception:  # such as a lack of memory; the next caller tries again
            self._futures.pop(key, None)
            raise

    def _start(self, key: Hashable, task: Task, example: Example) -> None:
        future: Future[ExactAnswer | None] = Future()
        future.set_running_or_notify_cancel()  # so that a caller who leaves does not cancel it

        def compute() -> None:
            try:
                future.set_result(exact_of(task, example))
            except Exception as error:
                future.set_exception(error)

        if len(self._futures) == MAX_ANSWERS:
            del self._futures[next(iter(self._futures))]
        self._latest[task.name] = self._futures[key] = future
        Thread(target=compute, daemon=True).start()
