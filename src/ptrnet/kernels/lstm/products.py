"""What the steps multiply: states by the recurrent weights, and wide inputs by theirs.

In two ways. Packed: sums are float32, and it is faster, but for bfloat16 and for processors and
sizes that fit. Rounded: PyTorch's product, whose sums have the weights' type. Tensors are time
first and of the whole batch; each thread asks for the rows of its slice.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from ptrnet.kernels import bfloat16
from ptrnet.kernels.numerics import array

Sums = Callable[[int, int], Iterator[np.ndarray]]
Back = Callable[[int, int], tuple[Tensor, Callable[[int], object]]]


def sums(h: Tensor, gates: Tensor, w_hidden: Tensor, wide: tuple[Tensor, Tensor] | None) -> Sums:
    """`U h[t] + W x[t]` of the rows first to last, `(rows, 4H)`, for each step t.

    A step's states are read, and its sums overwrite the last step's, when it is asked for.

    Args:
        h: `(T + 1, B, H)`, of which the first is there.
        gates: `(T, B, 4H)`, which may be used for the sums.
        w_hidden: U, `(4H, H)`.
        wide: x `(T, B, d)` and W `(4H, d)`, where they are to be added.
    """
    features = wide[0].shape[2] if wide else 0
    return (_packed_sums if _fits(w_hidden, features) else _rounded_sums)(h, gates, w_hidden, wide)


def back(gates: Tensor, w_hidden: Tensor) -> Back:
    """The gradient `(rows, at least H)` that a step hands to the one before, zero at first.

    With it comes what computes it: `gates[t] U`, given t.
    """
    return (_packed_back if _fits(w_hidden, 0) else _rounded_back)(gates, w_hidden)


def _fits(w_hidden: Tensor, features: int) -> bool:
    sizes = w_hidden.shape[1] % bfloat16.LANES == 0 and features % 2 == 0
    return sizes and w_hidden.dtype == torch.bfloat16 and bfloat16.available()


def _packed_sums(
    h: Tensor, gates: Tensor, w_hidden: Tensor, wide: tuple[Tensor, Tensor] | None
) -> Sums:
    states, recurrent = array(h), bfloat16.pack(array(w_hidden).T)
    if wide:
        x, w_input = array(wide[0]), bfloat16.pack(array(wide[1]).T)

    def of(first: int, last: int) -> Iterator[np.ndarray]:
        found = np.empty((last - first, gates.shape[2]), np.float32)
        for t in range(len(gates)):
            bfloat16.product(states[t, first:last], recurrent, found)
            if wide:
                bfloat16.add_product(x[t, first:last], w_input, found)
            yield found

    return of


def _rounded_sums(
    h: Tensor, gates: Tensor, w_hidden: Tensor, wide: tuple[Tensor, Tensor] | None
) -> Sums:
    if wide:
        torch.mm(wide[0].flatten(0, 1), wide[1].t(), out=gates.flatten(0, 1))
    found, recurrent = array(gates), w_hidden.t()

    def of(first: int, last: int) -> Iterator[np.ndarray]:
        for t in range(len(gates)):
            rows, states = gates[t, first:last], h[t, first:last]
            if wide:
                rows.addmm_(states, recurrent)
            else:
                torch.mm(states, recurrent, out=rows)
            yield found[t, first:last]

    return of


def _packed_back(gates: Tensor, w_hidden: Tensor) -> Back:
    rows, recurrent = array(gates), bfloat16.pack(array(w_hidden))

    def of(first: int, last: int) -> tuple[Tensor, Callable[[int], object]]:
        found = torch.zeros(last - first, len(recurrent) * bfloat16.COLUMNS)
        out = array(found)
        return found, lambda t: bfloat16.product(rows[t, first:last], recurrent, out)

    return of


def _rounded_back(gates: Tensor, w_hidden: Tensor) -> Back:
    def of(first: int, last: int) -> tuple[Tensor, Callable[[int], object]]:
        found = torch.zeros(last - first, w_hidden.shape[1], dtype=gates.dtype)
        return found, lambda t: torch.mm(gates[t, first:last], w_hidden, out=found)

    return of
