"""Padding masks, and the rows and tokens of a batch by their indices."""

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """`(B, size)` boolean: True before each of the `(B,)` lengths, False on the padding after."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """`rows[b, indices[b, k]]` of `(B, N, ...)` rows, for `(B, K)` indices: `(B, K, ...)`."""
    for _ in rows.shape[2:]:
        indices = indices[..., None]
    return rows.gather(1, indices.expand(-1, -1, *rows.shape[2:]))


def gather_tokens(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """`log_probs[b, m, tokens[b, m]]` of `(B, M, S + N)`, for `(B, M)` tokens: `(B, M)`."""
    return log_probs.gather(2, tokens[..., None])[..., 0]
