"""A step of a transformer's decoder layer for few prefixes, compiled, on a CPU.

The formulas are those of `ptrnet.models.parts.attention`, which computes all else: with gradients,
on a GPU, in other types, and where PyTorch records. Of one prefix they are some fifty operations,
each of which takes longer than all of the arithmetic.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ptrnet.errors import ShapeError

# Multiplications by weights, of all prefixes, beyond which PyTorch is faster: its products read the
# weights once for many rows.
MAX_PRODUCTS = 1_500_000


class Step:
    """The steps of a layer whose rows attend to the same others, as in decoding.

    All tensors are float32 on a CPU. Weights and others are those of its making.

    Args:
        heads: of both attentions.
        others: keys and values `(B, heads, L, D)` of the rows that cross-attention attends to.
        bias: `(B, 1, 1, L)`, -inf on padding, which comes last.
        maps: of self-attention inward and outward, of cross-attention's queries and outward, of the
            feed-forward's two.
    """

    def __init__(
        self,
        heads: int,
        others: tuple[Tensor, Tensor],
        bias: Tensor,
        maps: Sequence[torch.nn.Linear],
    ) -> None:
        from ptrnet.kernels.decoder_layer import loops
        from ptrnet.kernels.numerics import as_array

        self._step, self._as_array, self._heads = loops.step, as_array, heads
        self._others = [as_array(tensor) for tensor in (*others, bias[:, 0, 0])]
        self._weights = tuple(as_array(part.weight) for part in maps)
        self._biases = tuple(as_array(part.bias) for part in maps)
        self._max_rows = MAX_PRODUCTS // sum(weight.size for weight in self._weights)

    def is_fast(self, rows: Tensor) -> bool:
        """Whether PyTorch would take longer for `(B, K, H)` rows."""
        return rows.shape[0] * rows.shape[1] <= self._max_rows

    def __call__(
        self, rows: Tensor, earlier: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """As `DecoderLayer.step`: of `(B, K, H)` rows, and of `(B, K, t, H)` keys and values.

        Raises:
            ShapeError: shapes that do not fit each other.
        """
        batch, prefixes, units = rows.shape
        steps = earlier[0].shape[2]
        for past in earlier:
            if past.shape != (batch, prefixes, steps, units) or batch != len(self._others[0]):
                raise ShapeError(
                    f"expected keys and values of {len(self._others[0])} x {prefixes} prefixes of "
                    f"{units} units, got {tuple(past.shape)} for rows {tuple(rows.shape)}"
                )
        rows = rows.clone(memory_format=torch.contiguous_format)
        keys, values = rows.new_empty(2, batch, prefixes, steps + 1, units)
        keys[:, :, :steps], values[:, :, :steps] = earlier
        arrays = map(self._as_array, (rows, keys, values))
        self._step(self._heads, *arrays, *self._others, self._weights, self._biases)
        return rows, (keys, values)
