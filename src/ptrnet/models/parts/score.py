"""Attention scores of queries and keys: B's additive score, and the two that are products.

Each is a projection of the encoder's states to keys, one of the decoder's states to queries, and
the vector `v` where there is one:

- additive: `v' tanh(W1 e + W2 d)`,
- dot: `d' e`,
- general: `d' W e`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ptrnet.kernels import additive_scores, prepared_scores
from ptrnet.kernels.eager import is_eager
from ptrnet.kernels.linear import linear


class Linear(nn.Linear):
    """`W x`, with the parameters of `nn.Linear`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight)


def key_projection(score: str, units: int) -> nn.Module:
    """W1 of the additive score, W of the general one."""
    return nn.Identity() if score == "dot" else Linear(units, units)


def query_projection(score: str, units: int) -> nn.Module:
    """W2 of the additive score."""
    return Linear(units, units) if score == "additive" else nn.Identity()


def score_vector(score: str, units: int) -> nn.Parameter | None:
    """`v` of the additive score."""
    return nn.Parameter(torch.empty(units)) if score == "additive" else None


def scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor | None,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """`(B, M, N)` of `(B, N, H)` keys and `(B, M, H)` queries; arbitrary on padding.

    The lengths `(B,)` save time where they can; None: without padding. Without `v` the score is a
    product.
    """
    if v is None:
        return matmul_float32(queries, keys.transpose(1, 2))
    return additive_scores(keys, queries, v, key_lengths, query_lengths)


@dataclass
class Scorer:
    """`scores` of the same keys for queries that come one after the other, as in decoding.

    Without gradients the first call prepares the keys for all that follow.
    """

    keys: Tensor  # (B, N, H)
    v: Tensor | None
    key_lengths: Tensor | None = None  # (B,)
    _prepared: Callable[[Tensor], Tensor] | None = field(default=None, init=False)

    def __call__(self, queries: Tensor) -> Tensor:
        """`(B, K, N)` of queries `(B, K, H)`."""
        if self.v is None or torch.is_grad_enabled() or not is_eager(self.keys, queries):
            return scores(self.keys, queries, self.v, self.key_lengths)
        if self._prepared is None:
            self._prepared = prepared_scores(self.keys, self.v, self.key_lengths)
        return self._prepared(queries)


def matmul_float32(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices in float32 or better, under autocast, too."""
    dtype = torch.promote_types(torch.promote_types(a.dtype, b.dtype), torch.float32)
    with torch.autocast(a.device.type, enabled=False):
        return a.to(dtype) @ b.to(dtype)
