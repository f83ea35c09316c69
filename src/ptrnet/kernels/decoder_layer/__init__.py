"""A step of a transformer's decoder layer for few prefixes, compiled, on a CPU.

The formulas are those of `ptrnet.models.parts.attention`, which computes all else: with gradients,
on a GPU, in other types, and where PyTorch records. Of one prefix they are some fifty operations,
each of which takes longer than all of the arithmetic.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ptrnet.kernels import loading
from ptrnet.kernels.eager import is_eager

# PyTorch is faster for more: its products take many rows at a time.
MAX_ROWS = 32


def is_compiled(rows: Tensor) -> bool:
    """Whether a `Step` computes `(B, K, H)` rows: it can, and to load it is worth while."""
    return (
        rows.device.type == "cpu"
        and rows.dtype == torch.float32
        and rows.shape[0] * rows.shape[1] <= MAX_ROWS
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and is_eager(rows)
        and loading.is_worthwhile(rows.shape[0] * rows.shape[1])
    )


class Step:
    """The steps of a layer whose rows attend to the same others, as in decoding.

    Args:
        heads: of both attentions.
        others: keys and values `(B, heads, T, D)` of the rows that cross-attention attends to.
        bias: `(B, 1, 1, T)`, -inf on padding, which comes last.
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

    def __call__(
        self, rows: Tensor, earlier: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """As `DecoderLayer.step`: of `(B, K, H)` rows, and of `(B, K, t, H)` keys and values."""
        rows = rows.clone(memory_format=torch.contiguous_format)
        keys, values = (torch.nn.functional.pad(past, (0, 0, 0, 1)) for past in earlier)
        arrays = map(self._as_array, (rows, keys, values))
        self._step(self._heads, *arrays, *self._others, self._weights, self._biases)
        return rows, (keys, values)
