"""The types that all of ptrnet shares. Indices are 0-based.

Shapes are batch-first and mostly use these letters:

- B: instances in a batch
- N: elements, including padding; n: elements of one instance
- M: tokens or steps, including padding; m: indices of one answer
- K: prefixes or hypotheses of an instance
- H: hidden units; d: features of an element; S: special slots
- R: rows, one for each prefix of each instance; P: parts of instances
- W: elements of a part, or remaining elements
- E: edges; T: triangles, including padding; t: triangles of one answer
- Q: queries of attention; L: rows that are attended to; D: units of a head
- F: features of an edge frame; U: hidden units of an edge frame
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, short

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# A model points at tokens: the S special slots, then the elements of the instance. Slot 0 is END,
# the end of the sequence. The first input of the decoder is also 0, as a start symbol.
END = 0
# Slot 1 in sequences of apexes (`ptrnet.constraints.triangulations`). The first two tokens are an
# edge. Each later token decides the triangle on the left of an edge. NONE means that the edge has
# no triangle on its left.
NONE = 1

# The generator of a random stream is `np.random.default_rng([seed, number, ...])`. Streams with
# different numbers are independent, although they share a seed. Do not change the numbers: a
# resumed training would draw other batches.
TRAIN, VALID = 0, 1  # instances that the task draws
GENERATED = 2  # instances of `ptrnet generate`
FILE_ORDER, FILE_TRANSFORMS = 3, 4  # order and augmentation of the examples of a dataset
HELD_OUT = 5  # which examples of a dataset are held out for validation
CUTS = 6  # where answers are cut in training
INSTANCE_ORDER = 7  # order of instances without answers
EXPORTED = 8  # instances on which an exported graph is compared with its model
DROPOUT = 9  # units that dropout leaves out at a training step


class CsvText(NamedTuple):
    """The text of the .csv file from which an instance was read."""

    header: list[str] | None
    rows: list[list[str]]
    numeric: list[int]  # indices of the columns that are features


class Nodes(NamedTuple):
    """The name of an instance in a TSPLIB file, and the ids of its elements."""

    name: str
    ids: list[int]  # n ids, in the order of the elements


class Document(NamedTuple):
    """A file that describes pages, and into which their reading orders can be written."""

    path: str
    content: bytes  # the file's text in UTF-8
    encoding: str  # the encoding of the file
    kind: str  # which reader of `ptrnet.data.formats` knows the document, such as "alto"


class Page(NamedTuple):
    """The page from which an instance of task `reading-order` was read. It has n boxes."""

    name: str  # the id or the number of the page in its file
    document: Document | None = None  # None if orders are not written into the file
    ids: Sequence[str] = ()  # the n ids of the boxes in the document
    place: Any = None  # where the document holds the order; only its reader knows the form
    texts: Sequence[str] = ()  # the n texts of the boxes; empty if its format has none
    size: tuple[float, float] | None = None  # width and height, in the unit of the boxes
    image: str = ""  # the path of the page's image, which may not exist; empty if unknown


class TourRules(NamedTuple):
    """The rules of a tour of task `tsp`, besides visiting each city once. Cities are indices."""

    start: int | None = None  # the first city
    end: int | None = None  # the last city
    is_open: bool = False  # whether the tour does not return to the first city
    # Required edges (i, j). If distances depend on the direction, an edge runs from i to j.
    fixed: tuple[tuple[int, int], ...] = ()


class Ends(NamedTuple):
    """The first and last city that a user asks for: ids of a TSPLIB file, or indices."""

    start: int | None = None
    end: int | None = None
    is_open: bool = False  # whether tours do not return to the first city


CLOSED = TourRules()  # a closed tour that may begin anywhere


# Columns with one value for each row, and the values that rows have if the column is missing.
DEFAULTS: Mapping[str, Any] = {
    "source": "",
    "extra": {},
    "table": None,
    "nodes": None,
    "distance": "euclidean",
    "rules": CLOSED,
    "log_prob": None,
    "elements": None,
    "rows": None,
    "weight": 1.0,
    "group": None,
    "page": None,
}


@dataclass(frozen=True, eq=False)
class Dataset(Sequence["Example"]):
    """B instances, which may have different sizes. All elements are stored one after another.

    Row i is an instance with the elements `elements[starts[i]:starts[i + 1]]`. A dataset is a
    sequence of `Example`s, which are views of its rows: `data[3]` is a row, and `data[10:20]` is a
    view of ten rows. The arrays may be memory maps.

    Args:
        elements: `(num_elements, d)` float64, the elements of all instances. d is 0 if the elements
            are dictionaries that no schema has encoded.
        starts: `(B + 1,)`, the index in `elements` where each instance begins. The last entry is
            num_elements.
        answers: `(num_indices,)` 0-based indices of all answers, flat; None if no answer is known.
        answer_starts: `(B + 1,)`, the index in `answers` where each answer begins. The last entry
            is num_indices.
        is_answered: `(B,)`, which answers are known; None if all answers or no answers are known.
        item_size: the number of indices in one item of an answer, such as 3 for triangles.
        grades: `(num_elements,)`, the grade of each element, NaN in rows without grades. None if
            no row has grades.
        columns: all other attributes of `Example`: B values for each name. Names whose values are
            all equal to their `DEFAULTS` may be missing.
        fingerprint: identifies the content of memory maps and long tables; empty for other data.

    Examples:
        >>> data = Dataset.of([Example([[0.3], [0.1]]), Example([[0.5], [0.2], [0.4]])])
        >>> len(data), data.elements.ravel().tolist(), data.starts.tolist()
        (2, [0.3, 0.1, 0.5, 0.2, 0.4], [0, 2, 5])
        >>> data[1].inputs.tolist()
        [[0.5], [0.2], [0.4]]
    """

    elements: Floats
    starts: Indices
    answers: Indices | None = None
    answer_starts: Indices | None = None
    is_answered: NDArray[np.bool_] | None = None
    item_size: int = 1
    grades: Floats | None = None
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    fingerprint: str = ""

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Dataset:
        """Return a dataset of examples, which must have the same number of features.

        A `Dataset` is returned unchanged.
        """
        if isinstance(examples, Dataset):
            return examples
        runs: list[tuple[Dataset, int, int]] = []  # consecutive rows of a dataset are one slice
        for example in examples:
            data, row = example._data, example._row
            if runs and runs[-1][0] is data and runs[-1][2] == row:
                runs[-1] = (data, runs[-1][1], row + 1)
            else:
                runs.append((data, row, row + 1))
        return cls.join(
            data if stop - first == len(data) else data[first:stop] for data, first, stop in runs
        )

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Dataset:
        """Return a dataset, given the arguments of `Example` for each row, which are not checked.

        It is faster than `of` for many rows.
        """
        if not rows:
            return cls.join([])
        inputs = [row["inputs"] for row in rows]
        columns = {
            name: [row.get(name, default) for row in rows]
            for name, default in DEFAULTS.items()
            if any(row.get(name, default) != default for row in rows)
        }
        data = cls(np.concatenate(inputs), np.cumsum([0, *map(len, inputs)]), columns=columns)
        if any(row.get("outputs") is not None for row in rows):
            outputs = [row.get("outputs") for row in rows]
            data = data.with_answers(outputs, columns.get("log_prob"))
        grades = [row.get("grades") for row in rows]
        if any(part is not None for part in grades):
            filled = [
                np.full(len(elements), np.nan) if part is None else part
                for elements, part in zip(inputs, grades, strict=True)
            ]
            data = replace(data, grades=np.concatenate(filled))
        return data

    @classmethod
    def join(cls, parts: Iterable[Dataset]) -> Dataset:
        """Return the rows of all parts, one part after another."""
        parts = [part for part in parts if len(part)]
        if not parts:
            return cls(np.zeros((0, 1)), np.zeros(1, np.int64))
        if len(parts) == 1:
            return parts[0]
        widths = {part.elements.shape[1] for part in parts}
        if len(widths) > 1:  # possible for `tsp`: matrices of distances, and points in space
            raise InputError(
                "expected elements with the same number of features in all instances, got "
                f"{sorted(widths)}"
            )
        grades = answers = answer_starts = is_answered = None
        if any(part.grades is not None for part in parts):
            nan = [np.full(len(part.elements), np.nan) for part in parts]
            grades = np.concatenate(
                [g if p.grades is None else p.grades for p, g in zip(parts, nan, strict=True)]
            )
        if any(part.answers is not None for part in parts):
            if any(part.answers is None for part in parts):
                parts = [
                    p if p.answers is not None else p.with_answers([None] * len(p)) for p in parts
                ]
            answers = np.concatenate([p.answers for p in parts if p.answers is not None])
            answer_starts = _joined_starts(
                [p.answer_starts for p in parts if p.answer_starts is not None]
            )
            if any(part.is_answered is not None for part in parts):
                is_answered = np.concatenate([part.has_answers for part in parts])
        names = dict.fromkeys(name for part in parts for name in part.columns)
        return cls(
            np.concatenate([part.elements for part in parts]),
            _joined_starts([part.starts for part in parts]),
            answers,
            answer_starts,
            is_answered,
            max(part.item_size for part in parts),
            grades,
            {name: [v for part in parts for v in part.column(name)] for name in names},
        )

    def with_answers(
        self, answers: Sequence[Indices | None], log_probs: Sequence[float] | Floats | None = None
    ) -> Dataset:
        """Return the same instances with other answers.

        Args:
            answers: B answers, `(m,)` or `(t, item_size)` each; None for an unknown answer.
            log_probs: B log-probabilities of the answers; None if no model gave the answers.
        """
        known = [np.zeros(0, np.int64) if a is None else a for a in answers]
        columns = {name: values for name, values in self.columns.items() if name != "log_prob"}
        if log_probs is not None:
            columns["log_prob"] = np.asarray(log_probs).tolist()
        return replace(
            self,
            answers=np.concatenate([np.zeros(0, np.int64), *(a.ravel() for a in known)]),
            answer_starts=np.cumsum([0, *(a.size for a in known)], dtype=np.int64),
            is_answered=np.array([a is not None for a in answers], bool),
            item_size=max((a.shape[1] for a in known if a.ndim == 2), default=1),
            columns=columns,
        )

    def with_columns(self, **columns: Sequence[Any]) -> Dataset:
        """Return the same rows with other values in some columns."""
        return replace(self, columns={**self.columns, **columns})

    def column(self, name: str) -> Sequence[Any]:
        """Return the B values of a column, which are the default if the column is missing."""
        values = self.columns.get(name)
        return [DEFAULTS[name]] * len(self) if values is None else values

    @cached_property
    def sizes(self) -> Indices:
        """`(B,)`: the number of elements of each instance."""
        return np.diff(self.starts)

    @cached_property
    def lengths(self) -> Indices:
        """`(B,)`: the number of indices of each answer; 0 for an unknown answer."""
        if self.answer_starts is None:
            return np.zeros(len(self), np.int64)
        return np.diff(self.answer_starts)

    @property
    def has_answers(self) -> NDArray[np.bool_]:
        """`(B,)`: which answers are known."""
        if self.is_answered is None:
            return np.full(len(self), self.answers is not None)
        return self.is_answered

    @cached_property
    def weights(self) -> Floats | None:
        """`(B,)`: the weights of the instances in the losses of a training; None if all are 1."""
        values = self.columns.get("weight")
        return None if values is None else np.asarray(values, np.float64)

    @property
    def groups(self) -> Indices | None:
        """`(B,)`: the code of each instance's group; None if the instances have no groups."""
        codes = self.columns.get("group")
        return None if codes is None else np.asarray(codes, np.int64)

    @property
    def indices(self) -> Indices:
        """`(num_indices,)`: a flat copy of all answers."""
        return np.zeros(0, np.int64) if self.answers is None else self.answers.astype(np.int64)

    def inputs(self, row: int) -> Floats:
        """Return the elements `(n, d)` of one row."""
        return np.asarray(self.elements[self.starts[row] : self.starts[row + 1]])

    def outputs(self, row: int) -> Indices | None:
        """Return the answer of one row, `(m,)` or `(t, item_size)`; None if it is unknown."""
        if self.answers is None or self.answer_starts is None:
            return None
        if self.is_answered is not None and not self.is_answered[row]:
            return None
        flat = self.answers[self.answer_starts[row] : self.answer_starts[row + 1]]
        outputs = np.asarray(flat, np.int64)
        return outputs if self.item_size == 1 else outputs.reshape(-1, self.item_size)

    def all_outputs(self) -> list[Indices]:
        """Return the answers of all rows, which must be known."""
        assert self.has_answers.all()
        return [self.outputs(row) for row in range(len(self))]  # type: ignore[misc]

    def grades_of(self, row: int) -> Floats | None:
        """Return the grades `(n,)` of one row's elements; None if the row has none."""
        begin, end = self.starts[row], self.starts[row + 1]
        if self.grades is None or begin == end or np.isnan(self.grades[begin]):
            return None
        return np.asarray(self.grades[begin:end])

    def rows_of_one_size(self, rows: Indices) -> tuple[Floats, list[Indices]]:
        """Return inputs `(B, n, d)` and the answers of rows with n elements each."""
        assert self.answers is not None and self.answer_starts is not None
        elements = np.arange(self.sizes[rows[0]])
        inputs = self.elements[self.starts[rows][:, None] + elements]
        starts, lengths = self.answer_starts[rows], self.lengths[rows]
        stops = np.cumsum(lengths)
        places = np.repeat(starts + lengths - stops, lengths) + np.arange(stops[-1])
        flat = self.answers[places].astype(np.int64)
        if self.item_size > 1:
            flat, stops = flat.reshape(-1, self.item_size), stops // self.item_size
        return inputs, [flat[i:j] for i, j in pairwise([0, *stops.tolist()])]

    def chunks(self, size: int) -> Iterator[Dataset]:
        """Yield views of `size` consecutive rows; the last view may have fewer rows."""
        for first in range(0, len(self), size):
            yield self[first : first + size]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Example | Dataset:
        if not isinstance(index, slice):  # `range` resolves negative indices, or raises IndexError
            return Example._view(self, range(len(self))[index])
        first, stop, step = index.indices(len(self))
        if step != 1:
            raise InputError(f"Dataset: expected a slice of step 1, got {step}")
        stop = max(first, stop)
        rows, elements = slice(first, stop), slice(self.starts[first], self.starts[stop])
        answers, answer_starts = self.answers, self.answer_starts
        if answers is not None and answer_starts is not None:
            answers = answers[answer_starts[first] : answer_starts[stop]]
            answer_starts = answer_starts[first : stop + 1] - answer_starts[first]
        return replace(
            self,
            elements=self.elements[elements],
            starts=self.starts[first : stop + 1] - self.starts[first],
            answers=answers,
            answer_starts=answer_starts,
            is_answered=None if self.is_answered is None else self.is_answered[rows],
            grades=None if self.grades is None else self.grades[elements],
            columns={name: values[rows] for name, values in self.columns.items()},
        )


def _joined_starts(parts: Sequence[Indices]) -> Indices:
    """Return the starts of joined parts, given the starts of each part."""
    counts, totals = [len(part) - 1 for part in parts], [part[-1] for part in parts]
    offsets = np.cumsum([0, *totals[:-1]])
    ends = np.concatenate([part[1:] for part in parts]) + np.repeat(offsets, counts)
    return np.concatenate([np.zeros(1, np.int64), ends])


class Example:
    """An instance with its answer: a view of a row of a `Dataset`.

    An example unpacks as the pair `(inputs, outputs)`. The constructor makes a dataset with this
    row.

    Args:
        inputs: the instance: numbers `(n, d)`, or `(n,)` if d is 1. Or n dictionaries, which no
            schema has encoded.
        outputs: the answer, `(m,)` or triangles `(t, 3)`; None if the answer is not known.
        source: the file and line of the example, for error messages.
        extra: the other keys of a JSON line, or the other columns of a row.
        table: the text of the table, if the instance was read from a table.
        nodes: name and ids, if the instance was read from a TSPLIB file.
        distance: the name of the distance between elements, from `ptrnet.geometry.distances`.
        rules: the rules that a tour must obey.
        log_prob: the log-probability of the answer, if a model gave the answer.
        elements: the n dictionaries that the user gave; None if the user gave numbers.
        rows: the positions of the elements in the long table from which the instance was read.
        grades: `(n,)`, grades of the elements. The elements of a right answer go from the highest
            grade to the lowest, with equal grades in any order. None if the user gave neither
            grades nor ranks with ties.
        weight: the weight of the example in the losses of a training: 2 is as if it occurred twice,
            0 leaves it out.
        group: the code of the group to which the instance belongs, such as a person or a household;
            see `ptrnet.data.groups`. None if the instance belongs to no group.
        page: the page, if the instance was read from a file of pages.

    Raises:
        InputError: the inputs are not numbers in the shape `(n, d)`, or the outputs are not whole
            numbers. Nothing else is checked before the example is used.

    Examples:
        >>> example = Example(np.array([[0.7], [0.2]]), np.array([1, 0]))
        >>> inputs, outputs = example
    """

    __slots__ = ("_data", "_row")
    _data: Dataset
    _row: int
    source: str
    extra: Mapping[str, Any]
    table: CsvText | None
    nodes: Nodes | None
    distance: str
    rules: TourRules
    log_prob: float | None
    elements: Sequence[Mapping[str, Any]] | None
    rows: Sequence[int] | None
    weight: float
    group: int | None
    page: Page | None

    def __init__(
        self,
        inputs: Any,
        outputs: Any = None,
        source: str = "",
        extra: Mapping[str, Any] = DEFAULTS["extra"],
        table: CsvText | None = None,
        nodes: Nodes | None = None,
        distance: str = DEFAULTS["distance"],
        rules: TourRules = CLOSED,
        log_prob: float | None = None,
        elements: Sequence[Mapping[str, Any]] | None = None,
        rows: Sequence[int] | None = None,
        grades: Floats | None = None,
        weight: float = 1.0,
        group: int | None = None,
        page: Page | None = None,
    ) -> None:
        if isinstance(inputs, Sequence) and inputs and isinstance(inputs[0], Mapping):
            inputs, elements = np.zeros((len(inputs), 0)), inputs
        if hasattr(type(inputs), "columns"):  # an array would lose the names of its fields
            raise InputError("inputs: expected an array or dictionaries, got a frame")
        features = _array(inputs, "inputs", "biuf", "numbers in the shape (n, d)")
        features = features[:, None] if features.ndim == 1 else features
        if features.ndim != 2:
            raise InputError(f"inputs: expected the shape (n, d), got {features.shape}")
        answers = answer_starts = None
        item_size = 1
        if outputs is not None:
            answers = _array(outputs, "outputs", "iu", "whole numbers")
            item_size = answers.shape[1] if answers.ndim == 2 else 1
            answers = answers.astype(np.int64, copy=False).ravel()
            answer_starts = np.array([0, len(answers)])
        columns = {
            "source": source, "extra": extra, "table": table, "nodes": nodes, "distance": distance,
            "rules": rules, "log_prob": log_prob, "elements": elements, "rows": rows,
            "weight": weight, "group": group, "page": page,
        }  # fmt: skip
        self._row = 0
        self._data = Dataset(
            features,
            np.array([0, len(features)]),
            answers,
            answer_starts,
            item_size=item_size,
            grades=grades,
            columns={
                name: [value]
                for name, value in columns.items()
                if value is not DEFAULTS[name] and value != DEFAULTS[name]
            },
        )

    @classmethod
    def _view(cls, data: Dataset, row: int) -> Self:
        example = cls.__new__(cls)
        example._data, example._row = data, row
        return example

    def replace(self, **changes: Any) -> Example:
        """Return a copy with other values in some fields."""
        return Example(**self.to_row() | changes)

    def to_row(self) -> dict[str, Any]:
        """Return the arguments of `Example` that differ from their defaults; see `of_rows`."""
        kept = ("inputs", "outputs", "grades", *self._data.columns)
        return {name: getattr(self, name) for name in kept}

    def __repr__(self) -> str:
        row = self.to_row().items()
        return f"Example({', '.join(f'{k}={v!r}' for k, v in row if v is not None)})"

    def __getattr__(self, name: str) -> Any:
        """Return the row's value of a column."""
        if name not in DEFAULTS:
            raise AttributeError(f"Example has no attribute {name}")
        values = self._data.columns.get(name)
        return DEFAULTS[name] if values is None else values[self._row]

    @property
    def inputs(self) -> Floats:
        """The instance, `(n, d)`; or dictionaries that no schema has encoded."""
        if self._data.elements.shape[1] == 0 and self.elements is not None:
            return self.elements  # type: ignore[return-value]
        return self._data.inputs(self._row)

    @property
    def outputs(self) -> Indices | None:
        """The answer, `(m,)` or `(t, 3)`, or None."""
        return self._data.outputs(self._row)

    @property
    def grades(self) -> Floats | None:
        """The grades of the elements, `(n,)`, or None."""
        return self._data.grades_of(self._row)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.inputs, self.outputs))

    def __getitem__(self, index: int) -> Any:
        return (self.inputs, self.outputs)[index]

    def __len__(self) -> int:
        return 2


def _array(values: Any, name: str, kinds: str, expected: str) -> NDArray[Any]:
    """Convert values to an array whose dtype is of one of these kinds."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: expected {expected}, got lists of different lengths") from None
    if array.size and array.dtype.kind not in kinds:
        raise InputError(f"{name}: expected {expected}, got {array.dtype}")
    return array


def is_permutation(outputs: Indices, n: int) -> bool:
    """Whether `outputs` contains each of 0..n-1 once."""
    return np.array_equal(np.sort(outputs), np.arange(n))


def ranking(grades: Floats) -> Indices:
    """Return the elements sorted by grades `(n,)`, highest first; ties keep their order."""
    return np.argsort(-grades, kind="stable")


def pad(rows: Sequence[Indices | Sequence[int]]) -> tuple[Indices, Indices]:
    """Return answers as one array `(B, M)`, flat and padded with 0, and their lengths `(B,)`.

    Examples:
        >>> pad([[2, 0, 1], [1]])
        (array([[2, 0, 1],
               [1, 0, 0]]), array([3, 1]))
    """
    flat = [row.ravel() if isinstance(row, np.ndarray) else np.array(row) for row in rows]
    lengths = np.fromiter(map(len, flat), np.int64, len(flat))
    padded = np.zeros((len(flat), int(lengths.max(initial=0))), np.int64)
    if len(flat):
        padded[real(lengths, padded.shape[1])] = np.concatenate(flat)
    return padded, lengths


def trim(padded: Indices, lengths: Indices) -> list[Indices]:
    """Return the rows `padded[b, :lengths[b]]` of an array `(B, M)` or `(B, M, ...)`."""
    return [row[:length] for row, length in zip(padded, lengths.tolist(), strict=True)]


def real(lengths: Indices, width: int) -> NDArray[np.bool_]:
    """Return `(B, width)` booleans: True for the first `lengths[b]` entries of row b."""
    mask: NDArray[np.bool_] = np.arange(width) < lengths[:, None]
    return mask


# The maximum size of an instance that is read, generated or solved. We refuse larger instances
# before we allocate memory for them.
LARGEST = 100_000


class Sizes(tuple[int, ...]):
    """Sizes of instances in increasing order. `str` returns the text that `__new__` parsed.

    Examples:
        >>> list(Sizes("5,10-12"))
        [5, 10, 11, 12]
    """

    _text: str

    def __new__(cls, text: str | int) -> Self:
        """Parse a text or a number.

        Raises:
            InputError: the text is not a list of numbers and ranges, a range ends before it begins,
                or a size is not in 1..LARGEST.
        """
        text, sizes = str(text), set[int]()
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            is_valid = first.isdecimal() and (not dash or last.isdecimal()) and part.isascii()
            if not is_valid or len(part) > 20:
                raise InputError(f"n: expected 50, 5-50 or 5,10,20-30, got {short(text)}")
            start, end = int(first), int(last or first)
            if not 1 <= start <= end <= LARGEST:
                raise InputError(f"n: expected 1 <= A <= B <= {LARGEST}, got {short(part.strip())}")
            sizes.update(range(start, end + 1))
        self = super().__new__(cls, sorted(sizes))
        self._text = text
        return self

    @classmethod
    def parse(cls, text: str | int) -> Self:
        """Parse the value of a setting; `ptrnet.settings.check` calls this method."""
        return cls(text)

    @classmethod
    def of(cls, sizes: Iterable[int]) -> Self:
        """Return sizes from numbers in any order. Repeated numbers count once."""
        runs = groupby(enumerate(sorted({int(n) for n in sizes})), lambda pair: pair[1] - pair[0])
        ends = ([n for _, n in run] for _, run in runs)
        return cls(",".join(f"{run[0]}-{run[-1]}" if run[1:] else f"{run[0]}" for run in ends))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Sizes({self._text!r})"

    def __getnewargs__(self) -> tuple[str]:
        """Return the argument of `__new__` for `copy` and `pickle`."""
        return (self._text,)
