"""What the steps multiply: states by the recurrent weights, and wide inputs by theirs.

In two ways. Packed: sums are float32, and it is faster, but for processors and sizes that fit.
Rounded: PyTorch's product, whose sums have the weights' type. Tensors are time first and of the
whole batch; each thread asks for the rows of its slice.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from ptrnet.kernels import packed
from ptrnet.kernels.numerics import array

Sums = Callable[[int, int], Iterator[np.ndarray]]
Back = Callable[[int, int], tuple[Tensor, Callable[[int], object]]]


def sums(h: Tensor, gates: Tensor, w_hidden: Tensor, wide: tuple[Tensor, Tensor] | None) -> Sums:
    """`U h[t] + W x[t]` of the rows first to last, `(rows, 4H)`, for each step t.

    A step's states are read, and its sums overwrite the last step's, when it is asked for.

    Args:
        h: `(T + 1, B, H)`, of which the first is there.
        gates: `(T, B, 4H)` or `(1, B, 4H)`, which may be used for the sums.
        w_hidden: U, `(4H, H)`.
        wide: x `(T, B, d)` and W `(4H, d)`, where they are to be added.
    """
    fit = packs(h.shape[2], wide[0].shape[2] if wide else 0, w_hidden.dtype)
    return (_packed_sums if fit else _rounded_sums)(h, gates, w_hidden, wide)


def back(gates: Tensor, w_hidden: Tensor) -> Back:
    """The gradient `(rows, at least H)` that a step hands to the one before, zero at first.

    With it comes what computes it: `gates[t] U`, given t.
    """
    fit = packs(w_hidden.shape[1], 0, w_hidden.dtype)
    return (_packed_back if fit else _rounded_back)(gates, w_hidden)


def packs(units: int, features: int, dtype: torch.dtype) -> bool:
    """Whether products are packed: of so many units and wide features, of that type."""
    pairs = dtype != torch.bfloat16 or features % 2 == 0
    return pairs and 4 * units % packed.COLUMNS == 0 and packed.available(dtype)


def _packed_sums(
    h: Tensor, gates: Tensor, w_hidden: Tensor, wide: tuple[Tensor, Tensor] | None
) -> Sums:
    states, recurrent = array(h), packed.pack(array(w_hidden).T)
    if wide:
        x, w_input = array(wide[0]), packed.pack(array(wide[1]).T)

    def of(first: int, last: int) -> Iterator[np.ndarray]:
        found = array(torch.empty(last - first, gates.shape[2], dtype=torch.float32))
        for t in range(len(states) - 1):
            packed.product(states[t, first:last], recurrent, found)
            if wide:
                packed.add_product(x[t, first:last], w_input, found)
            yield found

    return of


def _rounded_sums(
    h: Tensor, gates: Tensor, w_hidden: Tensor, wide: tuple[Tensor, Tensor] | None
) -> Sums:
    found, recurrent = array(gates), w_hidden.t()

    def of(first: int, last: int) -> Iterator[np.ndarray]:
        for t in range(len(h) - 1):
            place = t % len(gates)
            rows = gates[place, first:last]
            torch.mm(h[t, first:last], recurrent, out=rows)
            if wide:
                rows.addmm_(wide[0][t, first:last], wide[1].t())
            yield found[place, first:last]

    return of


def _packed_back(gates: Tensor, w_hidden: Tensor) -> Back:
    rows, recurrent = array(gates), packed.pack(array(w_hidden))

    def of(first: int, last: int) -> tuple[Tensor, Callable[[int], object]]:
        found = torch.zeros(last - first, len(recurrent) * packed.COLUMNS, dtype=torch.float32)
        out = array(found)
        return found, lambda t: packed.product(rows[t, first:last], recurrent, out)

    return of


def _rounded_back(gates: Tensor, w_hidden: Tensor) -> Back:
    def of(first: int, last: int) -> tuple[Tensor, Callable[[int], object]]:
        found = torch.zeros(last - first, w_hidden.shape[1], dtype=gates.dtype)
        return found, lambda t: torch.mm(gates[t, first:last], w_hidden, out=found)

    return of
