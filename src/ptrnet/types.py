"""The types that all of ptrnet shares. Indices are 0-based.

Shapes are batch-first, in one alphabet: B batch, N elements (n of one instance), M steps or tokens
of an answer (m indices of one), H hidden units, K prefixes or hypotheses, d features, S special
slots. Where a part of them is meant: R rows (a row for each prefix of each instance), P parts of
instances, W elements of a part or of what remains, E edges, T triangles (t in one answer, or other
items of several indices). Of attention: Q queries, L rows that are attended to, D units of a head.
Of an edge frame: F features, U hidden units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # labellers and metrics do without torch
    from torch import Tensor

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# Tokens are what a model points at: the S special slots, then the elements of the instance. Slot 0
# is END, the end of the sequence; as the decoder's input the same number is the start symbol.
END = 0
# Slot 1 of a triangulation that is continued edge by edge: no triangle at the edge's left.
NONE = 1


class Table(NamedTuple):
    """The file that a table's instance was read from, as text."""

    header: list[str] | None
    rows: list[list[str]]
    numeric: list[int]  # the columns that are features


class Nodes(NamedTuple):
    """The name of an instance in a TSPLIB file, and the ids of its elements."""

    name: str
    ids: list[int]  # n, in the order of the elements


class TourRules(NamedTuple):
    """What a tour of task `tsp` must obey besides visiting every city once; cities are indices."""

    start: int | None = None  # its first city
    end: int | None = None  # its last city
    is_open: bool = False  # whether there is no way back from the last city to the first
    fixed: tuple[tuple[int, int], ...] = ()  # edges that it must have; if directed, in this order


class Ends(NamedTuple):
    """Where a user wants tours to begin and end; cities are ids of a TSPLIB file, else indices."""

    start: int | None = None
    end: int | None = None
    is_open: bool = False  # whether there is no way back from the last city to the first


CLOSED = TourRules()  # a closed tour, which may begin anywhere


@dataclass(frozen=True, eq=False)
class Example:
    """An instance with its answer: a row of a `ptrnet.data.dataset.Dataset`.

    It unpacks as the pair `(inputs, outputs)`: `inputs, outputs = example`.

    Attributes:
        inputs: `(n, d)`.
        outputs: `(m,)`, of triangles `(t, 3)`; None if it is not known.
        source: the file and line that it was read from, for error messages.
        extra: the other keys of a JSON line, the other columns of a row.
        table: the file, if the instance is a table's.
        nodes: names and ids, if the instance is TSPLIB's.
        distance: between elements, a name of `ptrnet.geometry.distances`.
        rules: that a tour must obey.
        log_prob: of the answer, if a model gave it.
        elements: the n dictionaries that the user gave; None if the user gave numbers.
        grades: `(n,)`, how right each element is, as an order with ties: the right answers begin
            with the elements of the highest grade, in any order. None if answers have no ties.
    """

    inputs: Floats
    outputs: Indices | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    table: Table | None = None
    nodes: Nodes | None = None
    distance: str = "euclidean"
    rules: TourRules = CLOSED
    log_prob: float | None = None
    elements: Sequence[Mapping[str, Any]] | None = None
    grades: Floats | None = None

    def replace(self, **changes: Any) -> Example:
        """Return a copy with other values in some fields."""
        return replace(self, **changes)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.inputs, self.outputs))

    def __getitem__(self, index: int) -> Any:
        return (self.inputs, self.outputs)[index]

    def __len__(self) -> int:
        return 2


def ranking(grades: Floats) -> Indices:
    """Return the elements by their grades `(n,)`, the highest first; equal ones as they come."""
    return np.argsort(-grades, kind="stable")


class Answers(NamedTuple):
    """The answers of a batch, flat and padded: row `b` is `indices[b, :lengths[b]]`."""

    indices: Indices  # (B, M)
    lengths: Indices  # (B,)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """`(B, M)`: True at the indices, False at the padding after them."""
        return np.arange(self.indices.shape[1]) < self.lengths[:, None]

    def rows(self) -> list[Indices]:
        """The answers without padding."""
        return [row[:k] for row, k in zip(self.indices, self.lengths, strict=True)]


def pad_answers(answers: Sequence[Indices | Sequence[int]]) -> Answers:
    """Return answers of different lengths as one array `(B, M)`: each flat, and padded with 0."""
    rows = [np.ravel(answer) for answer in answers]
    lengths = np.array([len(row) for row in rows], np.int64)
    padded = np.zeros((len(rows), int(lengths.max(initial=0))), np.int64)
    for padded_row, row in zip(padded, rows, strict=True):
        padded_row[: len(row)] = row
    return Answers(padded, lengths)


class Batch(NamedTuple):
    """A batch of examples to train a model on. Lengths say what is padding, never a value does."""

    inputs: Tensor  # (B, N, d) float32
    lengths: Tensor  # (B,) int64, 1..N
    targets: Tensor  # (B, M) int64 tokens, each sequence closed by END
    target_lengths: Tensor  # (B,) int64, END included
    # (B, N) float32: elements of equal grades are equally right; None if no two are. A right answer
    # is any that differs from the targets by elements of equal grades.
    grades: Tensor | None = None


class CutBatch(NamedTuple):
    """A batch whose answers are cut: the tokens before the cut are known, the rest is learned."""

    inputs: Tensor  # these five as in a `Batch`
    lengths: Tensor
    targets: Tensor
    target_lengths: Tensor
    grades: Tensor | None
    num_known: int  # the tokens before the cut, of every answer


class InstanceBatch(NamedTuple):
    """Instances without answers."""

    inputs: Tensor  # (B, N, d) float32, as a model reads them
    lengths: Tensor  # (B,) int64, 1..N
    instances: Sequence[Floats]  # each (n, d): as they came, the elements in the order of `inputs`
