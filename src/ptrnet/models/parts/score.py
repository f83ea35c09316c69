"""Attention scores of queries and keys.

Encoder states `e` are projected to keys, and decoder states `d` to queries:

- additive: `v' tanh(W1 e + W2 d)` (Bahdanau et al. 2015; Vinyals et al. 2015, equation 3)
- dot: `d' e` (Luong et al. 2015)
- general: `d' W e` (Luong et al. 2015)
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ptrnet.kernels import is_plain_float32, may_use_compiled
from ptrnet.kernels.additive import additive_scores
from ptrnet.kernels.additive_formula import naive_scores
from ptrnet.masks import Lengths

if TYPE_CHECKING:
    from ptrnet.kernels.additive_cpu import PreparedScores


def key_projection(score: str, units: int) -> nn.Module:
    """The projection of encoder states: W1 of the additive score, W of the general score."""
    return nn.Identity() if score == "dot" else nn.Linear(units, units, bias=False)


def query_projection(score: str, units: int) -> nn.Module:
    """The projection of decoder states: W2 of the additive score."""
    return nn.Linear(units, units, bias=False) if score == "additive" else nn.Identity()


def score_vector(score: str, units: int) -> nn.Parameter | None:
    """The vector `v` of the additive score, or None for other scores."""
    return nn.Parameter(torch.empty(units)) if score == "additive" else None


def scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor | None,
    key_lengths: Lengths = None,
    query_lengths: Lengths = None,
) -> Tensor:
    """Scores `(B, M, N)` of keys for queries, arbitrary on padding.

    Args:
        keys: `(B, N, H)`.
        queries: `(B, M, H)`.
        v: the vector of the additive score; None: the product of keys and queries.
        key_lengths: `(B,)`; None: no padding. Kernels may skip padding to save time.
        query_lengths: `(B,)`; None: no padding of queries. Kernels may skip this padding, too.
    """
    if v is None:
        return matmul_float32(queries, keys.transpose(1, 2))
    return additive_scores(keys, queries, v, key_lengths, query_lengths)


@dataclass
class Scorer:
    """Scores the same keys at each step of a decoder.

    On a CPU and without gradients, a compiled kernel prepares the keys once for all steps.
    """

    keys: Tensor  # (B, N, H)
    v: Tensor | None
    key_lengths: Tensor | None = None  # (B,)
    _prepared: "PreparedScores | None" = field(default=None, init=False)

    def __call__(self, queries: Tensor) -> Tensor:
        """Scores `(B, K, N)` for queries `(B, K, H)`."""
        if self.v is None or not is_plain_float32(self.keys, queries, self.v):
            return scores(self.keys, queries, self.v, self.key_lengths)
        if not may_use_compiled(queries.shape[0] * queries.shape[1]):
            return naive_scores(self.keys, queries, self.v, self.key_lengths)
        if self._prepared is None:
            from ptrnet.kernels.additive_cpu import PreparedScores  # imports numba

            self._prepared = PreparedScores(self.keys, self.v, self.key_lengths)
        return self._prepared(queries)


def matmul_float32(a: Tensor, b: Tensor) -> Tensor:
    """The product of matrices in float32 or better, even under autocast."""
    dtype = torch.promote_types(torch.promote_types(a.dtype, b.dtype), torch.float32)
    with torch.autocast(a.device.type, enabled=False):
        return a.to(dtype) @ b.to(dtype)
