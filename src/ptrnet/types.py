"""The words every floor shares. Shapes are batch-first; indices are 0-based in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # labellers and metrics do without torch
    from torch import Tensor

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# Tokens are what a model points at: 0 is the end of the sequence (fed to the decoder, the same
# number is the start symbol), further special slots follow, then the elements of the instance.
END = 0


class Table(NamedTuple):
    """The file that a table's instance was read from, as text."""

    header: list[str] | None
    rows: list[list[str]]
    numeric: list[int]  # the columns that are features


class Nodes(NamedTuple):
    """What a TSPLIB file calls an instance and its elements."""

    name: str
    ids: list[int]  # n, in the order of the elements


class Example(NamedTuple):
    """An instance with its answer."""

    inputs: Floats  # (n, d)
    outputs: Indices | None = None  # (m,) 0-based, triangles (t, 3); None where none is given
    where: str = ""  # the file and line it came from, for complaints
    kept: Mapping[str, Any] = {}  # what else a JSON line or a row says of it
    table: Table | None = None
    nodes: Nodes | None = None
    distance: str = "euclidean"  # between elements: a name of `ptrnet.distances`
    log_prob: float | None = None  # of the answer, where a model gave it


class Answers(NamedTuple):
    """The answers of a batch, flat and padded: row `b` is `indices[b, :lengths[b]]`."""

    indices: Indices  # (B, W)
    lengths: Indices  # (B,)

    def rows(self) -> list[Indices]:
        """The answers without padding."""
        return [row[:k] for row, k in zip(self.indices, self.lengths, strict=True)]


class Batch(NamedTuple):
    """What a model is trained on. Padding is told by the lengths, never by a value."""

    inputs: Tensor  # (B, N, d) float32
    lengths: Tensor  # (B,) int64, 1..N
    targets: Tensor  # (B, M) int64 tokens, each sequence closed by END
    target_lengths: Tensor  # (B,) int64, END included


class CutBatch(NamedTuple):
    """What is learned behind the beginnings of answers."""

    batch: Batch
    known: int  # tokens of every answer that are given
