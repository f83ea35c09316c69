"""The arguments of the additive scores, as every kernel takes them: checked, with lengths."""

from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.errors import ShapeError
from ptrnet.kernels.eager import is_eager
from ptrnet.masks import length_mask


class Arguments(NamedTuple):
    """Those of `additive_scores`, without None."""

    keys: Tensor  # (B, N, H)
    queries: Tensor  # (B, M, H)
    v: Tensor  # (H,)
    key_lengths: Tensor  # (B,) int64
    query_lengths: Tensor  # (B,) int64


def check_arguments(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None,
    query_lengths: Tensor | None,
) -> Arguments:
    """The arguments of `additive_scores` with full lengths in the place of None.

    Raises:
        ShapeError: shapes that do not fit each other; lengths on the CPU that are out of range.
    """
    check_shapes(keys, queries, v)
    return Arguments(
        keys,
        queries,
        v,
        _check_lengths("key_lengths", key_lengths, keys),
        _check_lengths("query_lengths", query_lengths, queries),
    )


def check_shapes(keys: Tensor, queries: Tensor, v: Tensor) -> None:
    """Raises ShapeError unless they are `(B, N, H)`, `(B, M, H)` and `(H,)`."""
    if keys.ndim != 3 or queries.ndim != 3 or v.ndim != 1:
        raise ShapeError(
            "additive_scores expects keys (B, N, H), queries (B, M, H) and v (H,); got "
            f"{tuple(keys.shape)}, {tuple(queries.shape)} and {tuple(v.shape)}"
        )
    batch, _, units = keys.shape
    if queries.shape[0] != batch or queries.shape[2] != units or v.shape[0] != units:
        raise ShapeError(
            f"additive_scores: keys are {tuple(keys.shape)}, so queries must be "
            f"({batch}, M, {units}) and v ({units},); got {tuple(queries.shape)} and "
            f"{tuple(v.shape)}"
        )


def promote(arguments: Arguments) -> Arguments:
    """The arguments in one float type: float64 where one of them is float64, else float32."""
    keys, queries, v, *lengths = arguments
    has_double = torch.float64 in (keys.dtype, queries.dtype, v.dtype)
    dtype = torch.float64 if has_double else torch.float32
    return Arguments(keys.to(dtype), queries.to(dtype), v.to(dtype), *lengths)


def score_mask(arguments: Arguments) -> Tensor:
    """`(B, M, N)` boolean: True where neither the key nor the query is padding."""
    is_key = length_mask(arguments.key_lengths, arguments.keys.shape[1])
    is_query = length_mask(arguments.query_lengths, arguments.queries.shape[1])
    return is_query[:, :, None] & is_key[:, None, :]


def _check_lengths(parameter: str, lengths: Tensor | None, padded: Tensor) -> Tensor:
    batch, size = padded.shape[:2]
    if lengths is None:
        return torch.full((batch,), size, dtype=torch.int64, device=padded.device)
    if lengths.shape != (batch,):
        raise ShapeError(
            f"additive_scores: {parameter} must be ({batch},); got {tuple(lengths.shape)}"
        )
    # The compiled kernel would read beyond its arrays; to read lengths on a GPU would cost time.
    is_known = lengths.device.type == "cpu" and is_eager(lengths)
    if is_known and not ((lengths >= 0) & (lengths <= size)).all():
        raise ShapeError(
            f"additive_scores: {parameter} must be in 0..{size}; got {lengths.tolist()}"
        )
    return lengths.to(dtype=torch.int64, device=padded.device)
