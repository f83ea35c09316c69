"""What a model was trained on, and one line on an instance outside of it."""

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ptrnet.data.checks import labeller_advice
from ptrnet.data.sizes import Sizes
from ptrnet.errors import InputError, OutOfDistributionWarning
from ptrnet.geometry.points import first_equal
from ptrnet.tasks import CUSTOM
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    from ptrnet.tasks.custom import Custom

MAX_DEVIATIONS = 10.0  # standard deviations of a feature, beyond which it is said
# Of the extent of an instance; where half of it lies within less, networks tell elements apart too
# badly. Where one of ten numbers is 1,000 times as large as the others, 95 lists of 100 are sorted,
# and 99 hulls of 100 of twenty such points right; 10,000 times as large, 10 and 86.
MIN_SPREAD = 3e-4
MIN_QUARTERED = 4  # elements; of fewer no half is known


class Message(NamedTuple):
    """What is to be said of an instance."""

    subject: object  # the same for messages of which one is enough
    text: str


class TrainedRange:
    """The sizes that a model was trained on; of a user's own examples also their features.

    Says once what is outside: for fewer elements than any trained size, for more, for a number
    between two, and for each feature. A model may well serve what it was not trained on.

    Args:
        task: of the model.
        trained: facts about the training; nothing is said of sizes where it has no `n`.
    """

    def __init__(self, task: Task, trained: dict[str, Any]) -> None:
        self._task, self._n = task, str(trained.get("n", ""))
        try:
            self._sizes = frozenset(Sizes(self._n))
        except InputError:  # facts are the trainer's: anything may stand there
            self._sizes = frozenset()
        self._said: set[object] = set()

    def size_messages(self, example: Example) -> Iterator[Message]:
        """At most one, whatever was said before: of a number of elements that is no trained one."""
        n = len(example.inputs)
        if not self._sizes or n in self._sizes:
            return
        advice = labeller_advice(self._task)
        if example.table and n > max(self._sizes):
            advice += "; a .csv is one instance, and ptrnet convert --set-id takes a long one apart"
        yield Message(
            (n < min(self._sizes), n > max(self._sizes)),
            f"the model was trained on instances of {self._n} elements, this one has {n}{advice}",
        )

    def feature_messages(self, example: Example) -> Iterator[Message]:
        """A message for each feature that is far from the trained ones, said before or not.

        Of the task `custom` also one for elements that float32 cannot tell apart.
        """
        if self._task.name != CUSTOM:  # other tasks move points into the unit square
            yield from self._spread_messages(example)
            return
        largest = np.abs(self._task.normalize(example.inputs)).max(0, initial=0)
        for k in np.flatnonzero(largest > MAX_DEVIATIONS):
            name = self._feature_name(int(k))
            yield Message(
                int(k),
                f"{name} is {largest[k]:.0f} or more standard deviations from the "
                f"trained examples' mean, {cast('Custom', self._task).center[k]:.4g}",
            )
        yield from self._float32_messages(example)

    def _float32_messages(self, example: Example) -> Iterator[Message]:
        """At most one: of different elements that are equal in float32."""
        seen = self._task.normalize(example.inputs).astype(np.float32).astype(float)
        hidden = np.flatnonzero(first_equal(seen) != first_equal(example.inputs))
        if len(hidden):
            k = hidden[0]
            j = first_equal(seen)[k]
            yield Message(
                "float32",
                f"the model reads elements as equal that differ, such as elements {j + 1} and "
                f"{k + 1}: it computes in float32",
            )

    def _spread_messages(self, example: Example) -> Iterator[Message]:
        """At most one: of elements most of which are nearly one, beside others far away."""
        values = np.sort(example.inputs / 2, axis=0)  # halves, whose differences are finite
        n = len(values)
        extent = (values[-1] - values[0]).max()
        spread = (values[3 * n // 4] - values[n // 4]).max() if n > MIN_QUARTERED else extent
        if 0 < spread < MIN_SPREAD * extent:  # 0: they are one
            yield Message(
                "spread",
                f"half of the elements lie within 1/{extent / spread:,.0f} of the instance's "
                "extent: the model sees them as nearly one, beside those far away"
                f"{labeller_advice(self._task)}",
            )

    def _feature_name(self, k: int) -> str:
        schema = self._task.schema
        return f"feature {k + 1}" if schema is None else f'"{schema.feature_names[k]}"'

    def warn(self, messages: Iterable[Message]) -> None:
        """Warns of each subject the first time that it comes."""
        for subject, text in messages:
            if subject not in self._said:
                self._said.add(subject)
                warnings.warn(text, OutOfDistributionWarning, stacklevel=2)
