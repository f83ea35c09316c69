"""Padding masks, and gathering of rows and tokens in batches."""

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """Boolean mask `(B, size)`: True for the first `lengths` `(B,)` positions, False on padding."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """`rows[b, indices[b, k]]`: `(B, K, ...)` of rows `(B, N, ...)` and indices `(B, K)`."""
    for _ in rows.shape[2:]:
        indices = indices[..., None]
    return rows.gather(1, indices.expand(-1, -1, *rows.shape[2:]))


def gather_tokens(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """`log_probs[b, m, tokens[b, m]]`: `(B, M)` of `(B, M, S + N)` and tokens `(B, M)`."""
    return log_probs.gather(2, tokens[..., None])[..., 0]
