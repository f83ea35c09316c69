"""Padding masks, and gathering of rows and tokens in batches."""

import torch
from torch import Tensor

Lengths = Tensor | None  # (B,) int64, how many rows of padded sequences are real; None: no padding


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """Return a mask `(B, size)`, True for the first `lengths` `(B,)` positions, else False."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def gather_rows(rows: Tensor, indices: Tensor) -> Tensor:
    """Return `(B, K, ...)`: `rows[b, indices[b, k]]` of rows `(B, N, ...)` and indices `(B, K)`."""
    for _ in rows.shape[2:]:
        indices = indices[..., None]
    return rows.gather(1, indices.expand(-1, -1, *rows.shape[2:]))


def gather_tokens(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """Return `(B, M)`: `log_probs[b, m, tokens[b, m]]` of `(B, M, S + N)` and tokens `(B, M)`."""
    return log_probs.gather(2, tokens[..., None])[..., 0]


def gather_prefixes(rows: Tensor, parents: Tensor) -> Tensor:
    """Return, for each new prefix, the row of its parent: `rows[b, parents[b, k]]`."""
    # Greedy decoding has one prefix, whose only parent is itself: there is nothing to copy.
    return rows if rows.shape[1] == parents.shape[1] == 1 else gather_rows(rows, parents)
