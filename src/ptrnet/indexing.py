"""Entries of a batch by their indices."""

from torch import Tensor


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """`rows[b, indices[b, k]]` of `(B, N, ...)` rows, for `(B, K)` indices: `(B, K, ...)`."""
    for _ in rows.shape[2:]:
        indices = indices[..., None]
    return rows.gather(1, indices.expand(-1, -1, *rows.shape[2:]))


def gather_tokens(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """`log_probs[b, m, tokens[b, m]]` of `(B, M, S + N)`, for `(B, M)` tokens: `(B, M)`."""
    return log_probs.gather(2, tokens[..., None])[..., 0]
