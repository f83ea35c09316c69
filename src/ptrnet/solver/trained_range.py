"""The range of a model's training data, and warnings about instances outside of it."""

import contextlib
import warnings
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.checks import labeller_advice
from ptrnet.errors import LISTED, InputError, OutOfDistributionWarning, short
from ptrnet.geometry import first_equal
from ptrnet.tasks import CUSTOM
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import Schema
from ptrnet.types import Dataset, Example, Floats, Sizes

if TYPE_CHECKING:
    from ptrnet.decoding import Decoder

Chunk = TypeVar("Chunk", bound=Iterable[Example])

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
    """A warning about one or several instances. There is at most one message of each kind."""

    kind: str
    subjects: frozenset[Hashable]  # not shown if earlier messages had all of these subjects
    text: str


class TrainedRange:
    """The range of a model's training data: the sizes and, for your own examples, the features.

    `warn` shows one message for each of these kinds:

    - fewer or more elements than in any instance of the training
    - features that are far from their mean in the training
    - values that training did not see, which the model treats as missing
    - facts about the whole set, such as the customer's income, that differ within an instance
    - elements that the model can hardly tell apart

    In spite of a warning, the model may answer the instances well.

    Args:
        trained: facts about the training. Without the key `n`, there are no messages about sizes.
    """

    def __init__(self, task: Task, trained: dict[str, Any]) -> None:
        self.task, self.sizes_text = task, str(trained.get("n", ""))
        self.sizes = range(0)
        with contextlib.suppress(InputError):  # users may store any value of `n`
            sizes = Sizes(self.sizes_text)
            self.sizes = range(sizes[0], sizes[-1] + 1)
            self.sizes_text = f"{sizes[0]}-{sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
        self._said: set[Hashable] = set()

    def messages(
        self, examples: Iterable[Example], decoder: "Decoder | None" = None
    ) -> list[Message]:
        """Return a message for each way in which instances are out of distribution.

        `decoder` is the search that answers them. The sizes do not matter to `Incremental`.
        """
        tally = _Tally(self, decoder)
        tally.add(examples)
        return list(tally.messages())

    def check_readable(self, example: Example) -> None:
        """Raise InputError if no network can read an instance, such as a matrix of distances."""
        ends = self.task.facts.ends
        if ends and (reason := ends.unreadable(example)):
            raise InputError(f"{example.source}: {reason}")

    def warn_of(self, examples: Iterable[Example], decoder: "Decoder | None" = None) -> None:
        """Warn about out-of-distribution instances: one line for each kind, with counts.

        Raises:
            InputError: no network can read an instance.
        """
        for _ in self.warned([Dataset.of(examples)], decoder):
            pass

    def warned(
        self, chunks: Iterable[Chunk], decoder: "Decoder | None", at_once: bool = False
    ) -> Iterator[Chunk]:
        """Yield the chunks. At the end, warn about the out-of-distribution instances of all chunks.

        This generator runs in the user's process, even if other processes answer the chunks.

        Args:
            at_once: whether to warn already before the first chunk of each kind, because the end
                may never come. At the end, only warn if more features or values were found.
        """
        tally, kinds = _Tally(self, decoder), set()
        for chunk in chunks:
            if self.task.facts.ends:
                for example in chunk:
                    self.check_readable(example)
            tally.add(chunk)
            if at_once:
                new = [message for message in tally.messages() if message.kind not in kinds]
                kinds |= {message.kind for message in new}
                self.warn(new)
            yield chunk
        self.warn(tally.messages())

    def warn(self, messages: Iterable[Message]) -> None:
        """Warn with each message, unless all of its subjects have been warned of before."""
        for _, subjects, text in messages:
            if not subjects <= self._said:
                self._said |= subjects
                warnings.warn(text, OutOfDistributionWarning, stacklevel=2)


def _as_read(normalized: Floats) -> NDArray[np.float32]:
    """Return features as a model reads them. -0 becomes 0, so equal elements have equal bytes."""
    return normalized.astype(np.float32) + np.float32(0)


class _Tally:
    """Counts the instances that are out of distribution."""

    def __init__(self, trained: TrainedRange, decoder: "Decoder | None") -> None:
        self._task, self._trained = trained.task, trained
        # `Incremental` reads only small groups of elements, so the sizes of instances do not matter
        self._with_sizes = decoder is None or not decoder.needs_decomposable
        self._count = 0
        self._sizes: dict[str, Counter[int]] = defaultdict(Counter)  # untrained sizes, by side
        self._far: Counter[int] = Counter()  # for each feature, the instances in which it is far
        self._largest: dict[int, float] = {}  # for each of these features, its largest deviation
        self._num_equal, self._equal = 0, (0, 0)  # instances, and two equal elements of the first
        self._num_spread, self._extent = 0, 0.0  # instances, and the largest of their extents
        self._has_table = False
        self._unseen: Counter[tuple[str, str]] = Counter()  # elements, by field and value
        self._facts: Counter[str] = Counter()  # instances, by the fact that differs within them

    def add(self, examples: Iterable[Example]) -> None:
        """Count instances."""
        if self._task.name != CUSTOM:
            for example in examples:
                self._count += 1
                self._add_size(example)
                if self._task.name != "reading-order":  # it reads the order of coordinates
                    self._add_extent(example.inputs)
            return
        data, sizes = Dataset.of(examples), self._trained.sizes
        self._count += len(data)
        if sizes:
            is_other = (data.sizes < sizes[0]) | (data.sizes > sizes[-1])
            for row in np.flatnonzero(is_other).tolist():
                self._add_size(data[row])
        if self._task.facts.schema is not None:
            given = (elements for elements in data.column("elements") if elements is not None)
            self._unseen += self._task.facts.schema.unseen([*chain.from_iterable(given)])
            self._add_facts(data, self._task.facts.schema)
        for row in np.flatnonzero(self._may_be_unlike(data)).tolist():
            self._add_features(data[row].inputs)

    def _add_size(self, example: Example) -> None:
        """Count an instance of a size that the training did not see."""
        n, sizes = len(example.inputs), self._trained.sizes
        if self._with_sizes and sizes and n not in sizes:
            side = "fewer" if n < sizes[0] else "more"
            self._sizes[side][n] += 1
            self._has_table |= example.table is not None and n > sizes[-1]

    def _add_facts(self, data: Dataset, schema: Schema) -> None:
        """Count instances within which a fact about the whole set differs."""
        for field, features in zip(schema.fields, schema.slices, strict=True):
            if field in schema.context and len(data):
                values = data.elements[:, features]
                lowest, highest = (
                    extreme.reduceat(values, data.starts[:-1])
                    for extreme in (np.minimum, np.maximum)
                )
                if count := int((lowest < highest).any(1).sum()):
                    self._facts[field] += count

    def _may_be_unlike(self, data: Dataset) -> NDArray[np.bool_]:
        """Return `(B,)`, the instances that may have far features or equal elements.

        Few instances have any. To look at all of them together takes a fraction of the time of
        looking at each.
        """
        numbers = np.repeat(np.arange(len(data)), data.sizes)
        normalized = self._task.normalize(data.elements)
        is_found = (np.abs(normalized) > MAX_DEVIATIONS).any(1)
        # Equal elements of an instance have equal hashes. Sums and products wrap around.
        columns = np.column_stack([_as_read(normalized).view(np.uint32), numbers]).astype(np.uint64)
        factors = np.random.default_rng(0).integers(2**64, size=columns.shape[1], dtype=np.uint64)
        hashes = columns @ (factors | np.uint64(1))
        _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        is_found |= counts[places] > 1
        may_be = np.zeros(len(data), bool)
        may_be[numbers[is_found]] = True
        return may_be

    def _add_features(self, inputs: Floats) -> None:
        """Find features that are far from their mean, and elements that are equal in float32."""
        normalized = self._task.normalize(inputs)
        largest = np.abs(normalized).max(0, initial=0)
        for k in np.flatnonzero(largest > MAX_DEVIATIONS).tolist():
            self._far[k] += 1
            self._largest[k] = max(self._largest.get(k, 0), float(largest[k]))
        read = _as_read(normalized)
        if len({row.tobytes() for row in read}) == len(read):
            return  # no elements are equal in float32
        seen = first_equal(read.astype(float))
        hidden = np.flatnonzero(seen != first_equal(inputs))
        if len(hidden):
            self._num_equal += 1
            self._equal = self._equal if self._num_equal > 1 else (seen[hidden[0]], hidden[0])

    def _add_extent(self, inputs: Floats) -> None:
        """Find out whether half of the elements are very close together, and others far away."""
        values = np.sort(inputs / 2, axis=0)  # halved, so that differences do not overflow
        n = len(values)
        extent = (values[-1] - values[0]).max()
        spread = (values[3 * n // 4] - values[n // 4]).max() if n > MIN_QUARTERED else extent
        if 0 < spread < MIN_SPREAD * extent:  # if the spread is 0, half of the elements are equal
            self._num_spread += 1
            with np.errstate(over="ignore"):  # the quotient may be infinite
                self._extent = max(self._extent, extent / spread)

    def messages(self) -> Iterator[Message]:
        """Yield a message for each kind that occurred."""
        advice = labeller_advice(self._task)
        if self._sizes:
            text = f"the model was trained on instances of {self._trained.sizes_text} elements, "
            text += f"{' and '.join(map(self._have, self._sizes.values()))}{advice}"
            if self._has_table:
                text += (
                    "; a table is one instance unless --set-id names the column of its sets"
                    if self._task.facts.kind
                    else "; a table is read as one instance: ptrnet convert --set-id splits it"
                )
            yield Message("sizes", frozenset(self._sizes), text)
        if self._far:
            yield Message("far", frozenset(self._far), self._far_text())
        if self._unseen:
            yield Message("unseen", frozenset(self._unseen), self._unseen_text())
        if self._facts:
            yield Message("facts", frozenset(self._facts), self._facts_text())
        if self._num_equal:
            which = f"elements {self._equal[0] + 1} and {self._equal[1] + 1}"
            text = (
                f"{self._among(self._num_equal)}the model cannot tell "
                f"{which if self._count == 1 else 'some elements'} apart: they are equal in "
                "float32, in which it computes"
            )
            yield Message("float32", frozenset(["float32"]), text)
        if self._num_spread:
            text = (
                f"{self._among(self._num_spread)}half of the elements lie within "
                f"1/{self._extent:,.0f} of the instance's extent: the model can hardly tell them "
                f"apart, because others are far away{advice}"
            )
            yield Message("spread", frozenset(["spread"]), text)

    def _have(self, sizes: Counter[int]) -> str:
        low, high, count = min(sizes), max(sizes), sizes.total()
        if self._count == 1:
            return f"this one has {low}"
        numbers = f"{low} to {high}" if low < high else f"{low}"
        return f"{count} of {self._count} {'have' if count > 1 else 'has'} {numbers}"

    def _among(self, count: int) -> str:
        return "" if self._count == 1 else f"in {count} of {self._count} instances, "

    def _unseen_text(self) -> str:
        by_field: dict[str, Counter[str]] = defaultdict(Counter)
        for (field, value), count in self._unseen.items():
            by_field[field][value] = count
        parts = []
        for field, values in list(by_field.items())[:LISTED]:
            shown = [
                f"{short(value) if value else 'no value'} ({n} element{'s' * (n > 1)})"
                for value, n in values.most_common(LISTED)
            ]
            if len(values) > LISTED:
                shown.append(f"{len(values) - LISTED} more ({values.total()} elements in all)")
            parts.append(f'"{field}": {", ".join(shown)}')
        if len(by_field) > LISTED:
            parts.append(f"{len(by_field) - LISTED} more fields")
        return f"treated as missing, because no training example had it: {'; '.join(parts)}"

    def _facts_text(self) -> str:
        parts = [
            f'"{field}"' + f" in {count} of {self._count} instances" * (self._count > 1)
            for field, count in self._facts.most_common(LISTED)
        ]
        if len(self._facts) > LISTED:
            parts.append(f"{len(self._facts) - LISTED} more fields")
        return (
            "facts about the whole set, which had one value in each training example, differ "
            f"between elements: {'; '.join(parts)}"
        )

    def _far_text(self) -> str:
        schema, center = self._task.facts.schema, self._task.facts.scaling["center"]
        parts = []
        for k, count in self._far.most_common(LISTED):
            name = f"feature {k + 1}" if schema is None else f'"{schema.feature_names[k]}"'
            by = f"{self._largest[k]:.0f} (mean {center[k]:.4g})"
            among = f" in {count} of {self._count} instances, by up to " * (self._count > 1)
            parts.append(f"{name}{among or ' by '}{by}")
        if len(self._far) > LISTED:
            parts.append(f"{len(self._far) - LISTED} more features")
        return (
            f"more than {MAX_DEVIATIONS:.0f} standard deviations from the mean of the training: "
            + "; ".join(parts)
        )
