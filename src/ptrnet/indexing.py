"""Rows of a batch by their indices."""

from torch import Tensor


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """`rows[b, indices[b, k]]` of `(B, N, ...)` rows, for `(B, K)` indices: `(B, K, ...)`."""
    for _ in rows.shape[2:]:
        indices = indices[..., None]
    return rows.gather(1, indices.expand(-1, -1, *rows.shape[2:]))
