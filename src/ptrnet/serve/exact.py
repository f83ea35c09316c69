"""Exact answers beside those of models: computed aside, and kept for whoever asks again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import partial
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from ptrnet.errors import InputError
from ptrnet.solver.answer import finite_cost
from ptrnet.tasks.base import Task
from ptrnet.types import Example

MAX_ANSWERS = 256  # held, of the instances that were asked last
MAX_WAITING = 16  # instances of a task: of more, those that were asked first are given up

Result = TypeVar("Result")


class ExactAnswers:
    """Computes them, each task's in a thread of its own: a hard tour keeps no hull waiting.

    The threads end with the process, in the midst of an answer, too: one may take a minute.
    """

    def __init__(self) -> None:
        self._threads: dict[str, _NewestFirst[dict[str, Any] | None]] = {}

    def ask(self, task: Task, example: Example) -> "Future[dict[str, Any] | None]":
        """What `exact_of` gives; of an instance that was asked before, what was computed then."""
        if task.name not in self._threads:
            self._threads[task.name] = _NewestFirst(f"exact {task.name}")
        key = (task, example.inputs.shape, example.inputs.tobytes())
        return self._threads[task.name].submit(key, partial(exact_of, task, example))


def exact_of(task: Task, example: Example) -> dict[str, Any] | None:
    """The `ExactAnswer` by the task's first labeller; None where it serves no such instance."""
    if not task.labellers:
        return None
    try:
        task.check_labeller(None)
        task.check_max_elements(None, len(example.inputs))
    except InputError:
        return None
    answers, proved = task.label_with_proof(example.inputs[None])
    (outputs,) = task.unpad(answers)
    if not len(outputs):
        return None
    return {
        "outputs": outputs.tolist(),
        "cost": finite_cost(task, example.replace(outputs=outputs)),
        "labeller": task.labellers[0],
        "proved": bool(proved[0]),
    }


class _NewestFirst(Generic[Result]):
    """Calls functions in a thread, that which was asked last first, and keeps what they give."""

    def __init__(self, name: str) -> None:
        self._futures: OrderedDict[Hashable, Future[Result]] = OrderedDict()
        self._waiting: OrderedDict[Hashable, tuple[Callable[[], Result], Future[Result]]] = (
            OrderedDict()
        )
        self._changed = Condition()
        Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, key: Hashable, function: Callable[[], Result]) -> Future[Result]:
        """The result of a function; of a key that is known, that of the former one."""
        with self._changed:
            if key not in self._futures:
                self._futures[key] = Future()
                self._waiting[key] = function, self._futures[key]
                self._changed.notify()
            self._futures.move_to_end(key)
            if key in self._waiting:
                self._waiting.move_to_end(key)
            if len(self._waiting) > MAX_WAITING:
                oldest, _ = self._waiting.popitem(last=False)
                self._futures.pop(oldest, None)
            if len(self._futures) > MAX_ANSWERS:
                self._futures.popitem(last=False)
            return self._futures[key]

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                key, (function, future) = self._waiting.popitem()
            future.set_running_or_notify_cancel()
            try:
                future.set_result(function())
            except Exception as error:
                with self._changed:  # it may be computed when it is asked again
                    if self._futures.get(key) is future:
                        del self._futures[key]
                future.set_exception(error)
