"""The range of a model's training data, and warnings about instances outside of it."""

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ptrnet.data.checks import labeller_advice
from ptrnet.errors import InputError, OutOfDistributionWarning
from ptrnet.geometry.points import first_equal
from ptrnet.sizes import Sizes
from ptrnet.tasks import CUSTOM
from ptrnet.tasks.base import Task
from ptrnet.types import Example

if TYPE_CHECKING:
    from ptrnet.tasks.custom import Custom

MAX_DEVIATIONS = 10.0  # warn if a feature is more standard deviations from its mean than this
# Warn if half of the elements lie within less than this share of the instance's extent. Networks do
# not tell these elements apart well. We moved one of ten numbers, or one of twenty points, far from
# the others. The ratio is the extent of the instance, divided by the extent of the other elements:
#                ratio    sorted lists right    hulls right
#           1,000                95%                99%
#          10,000                10%                86%
MIN_SPREAD = 3e-4
# Never warn about the spread of at most this many elements: their middle half is too small.
MIN_QUARTERED = 4


class Message(NamedTuple):
    """A warning about an instance."""

    subject: object  # if several messages have the same subject, only the first is shown
    text: str


class TrainedRange:
    """The range of a model's training data: the sizes and, for your own examples, the features.

    `warn` warns once about each of these subjects:

    - too few elements
    - too many elements
    - a number of elements between two sizes of the training
    - each feature that is far from its mean in the training
    - elements that the model can hardly tell apart

    In spite of a warning, the model may answer the instance well.

    Args:
        task: the task of the model.
        trained: facts about the training. Without the key `n`, there are no messages about sizes.
    """

    def __init__(self, task: Task, trained: dict[str, Any]) -> None:
        self._task, self._n = task, str(trained.get("n", ""))
        try:
            self._sizes = frozenset(Sizes(self._n))
        except InputError:  # users may store any value of `n`
            self._sizes = frozenset()
        self._said: set[object] = set()

    def size_messages(self, example: Example) -> Iterator[Message]:
        """Yield a message if the number of elements is not among the sizes of the training."""
        n = len(example.inputs)
        if not self._sizes or n in self._sizes:
            return
        advice = labeller_advice(self._task)
        if example.table and n > max(self._sizes):
            advice += "; a .csv is read as one instance: ptrnet convert --set-id splits it"
        yield Message(
            (n < min(self._sizes), n > max(self._sizes)),
            f"the model was trained on instances of {self._n} elements, this one has {n}{advice}",
        )

    def feature_messages(self, example: Example) -> Iterator[Message]:
        """Yield messages about extreme values.

        - The task `custom`: a message for each feature that is far from its mean in the training.
          If different elements are equal in float32, there is another message.
        - Other tasks: a message if half of the elements are very close together, and others are
          far away.
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
        """Yield a message if different elements are equal in float32."""
        seen = self._task.normalize(example.inputs).astype(np.float32).astype(float)
        hidden = np.flatnonzero(first_equal(seen) != first_equal(example.inputs))
        if len(hidden):
            k = hidden[0]
            j = first_equal(seen)[k]
            yield Message(
                "float32",
                f"the model cannot tell elements {j + 1} and {k + 1} apart: they are equal in "
                "float32, in which it computes",
            )

    def _spread_messages(self, example: Example) -> Iterator[Message]:
        """Yield a message if half of the elements are very close together, and others far away."""
        values = np.sort(example.inputs / 2, axis=0)  # halved, so that differences do not overflow
        n = len(values)
        extent = (values[-1] - values[0]).max()
        spread = (values[3 * n // 4] - values[n // 4]).max() if n > MIN_QUARTERED else extent
        if 0 < spread < MIN_SPREAD * extent:  # if the spread is 0, half of the elements are equal
            yield Message(
                "spread",
                f"half of the elements lie within 1/{extent / spread:,.0f} of the instance's "
                "extent: the model can hardly tell them apart, because others are far away"
                f"{labeller_advice(self._task)}",
            )

    def _feature_name(self, k: int) -> str:
        schema = self._task.schema
        return f"feature {k + 1}" if schema is None else f'"{schema.feature_names[k]}"'

    def warn(self, messages: Iterable[Message]) -> None:
        """Warn with the first message of each subject. Ignore later messages of that subject."""
        for subject, text in messages:
            if subject not in self._said:
                self._said.add(subject)
                warnings.warn(text, OutOfDistributionWarning, stacklevel=2)
