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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # labellers and metrics must not import torch
    from torch import Tensor

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# A model points at tokens: the S special slots, then the elements of the instance. Slot 0 is END,
# the end of the sequence. The first input of the decoder is also 0, as a start symbol.
END = 0
# Slot 1 in sequences of apexes (`ptrnet.constraints.triangulations`). The first two tokens are an
# edge. Each later token decides the triangle on the left of an edge. NONE means that the edge has
# no triangle on its left.
NONE = 1


class CsvText(NamedTuple):
    """The text of the .csv file from which an instance was read."""

    header: list[str] | None
    rows: list[list[str]]
    numeric: list[int]  # indices of the columns that are features


class Nodes(NamedTuple):
    """The name of an instance in a TSPLIB file, and the ids of its elements."""

    name: str
    ids: list[int]  # n ids, in the order of the elements


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


@dataclass(frozen=True, eq=False)
class Example:
    """An instance with its answer: a row of a `ptrnet.data.dataset.Dataset`.

    An example unpacks as the pair `(inputs, outputs)`.

    Attributes:
        inputs: the instance, `(n, d)`.
        outputs: the answer, `(m,)` or triangles `(t, 3)`; None if the answer is not known.
        source: the file and line of the example, for error messages.
        extra: the other keys of a JSON line, or the other columns of a row.
        table: the text of the table, if the instance was read from a table.
        nodes: name and ids, if the instance was read from a TSPLIB file.
        distance: the name of the distance between elements, from `ptrnet.geometry.distances`.
        rules: the rules that a tour must obey.
        log_prob: the log-probability of the answer, if a model gave the answer.
        elements: the n dictionaries that the user gave; None if the user gave numbers.
        grades: `(n,)`, grades of the elements. The elements of a right answer go from the highest
            grade to the lowest, with equal grades in any order. None if the user gave neither
            grades nor ranks with ties.
        weight: the weight of the example in the losses of a training: 2 is as if it occurred twice,
            0 leaves it out.
        group: the code of the group to which the instance belongs, such as a person or a household;
            see `ptrnet.data.groups`. None if the instance belongs to no group.

    Examples:
        >>> example = Example(np.array([[0.7], [0.2]]), np.array([1, 0]))
        >>> inputs, outputs = example
    """

    inputs: Floats
    outputs: Indices | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    table: CsvText | None = None
    nodes: Nodes | None = None
    distance: str = "euclidean"
    rules: TourRules = CLOSED
    log_prob: float | None = None
    elements: Sequence[Mapping[str, Any]] | None = None
    grades: Floats | None = None
    weight: float = 1.0
    group: int | None = None

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
    """Return the elements sorted by grades `(n,)`, highest first; ties keep their order."""
    return np.argsort(-grades, kind="stable")


class Batch(NamedTuple):
    """A batch of training examples. Only the lengths tell which entries are padding."""

    inputs: Tensor  # (B, N, d) float32, or float64 for tasks of `ptrnet.problems`
    lengths: Tensor  # (B,) int64, 1..N
    targets: Tensor  # (B, M) int64 tokens; each sequence ends with END
    target_lengths: Tensor  # (B,) int64, including END
    # (B, N) float32. An answer is right if it equals the targets up to swaps of elements with equal
    # grades. None if there are no ties.
    grades: Tensor | None = None
    # (B,) int64, for an ensemble: the index of the network that does not learn from the example, or
    # -1 if all networks learn from the example. None if all networks learn from all examples.
    held_out_by: Tensor | None = None
    weights: Tensor | None = None  # (B,) float32, the weights in the loss. None if all are 1.


class CutBatch(NamedTuple):
    """A batch with cut answers. Tokens before a cut are known, tokens after a cut are learned."""

    inputs: Tensor  # the first five fields have the same meaning as in `Batch`
    lengths: Tensor
    targets: Tensor
    target_lengths: Tensor
    grades: Tensor | None
    num_known: int  # the number of tokens before the cut, the same for all answers
    held_out_by: Tensor | None = None  # as in `Batch`
    weights: Tensor | None = None  # as in `Batch`


class InstanceBatch(NamedTuple):
    """Instances without answers."""

    inputs: Tensor  # (B, N, d) as a model reads them, in a dtype as in `Batch`
    lengths: Tensor  # (B,) int64, 1..N
    instances: Sequence[Floats]  # (n, d), not scaled, with elements in the order of `inputs`
