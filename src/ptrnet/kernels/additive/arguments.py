"""What every face of the kernel takes: one shape check, and lengths that are always there."""

from typing import NamedTuple

import torch
from torch import Tensor

from ptrnet.errors import ShapeError


class Arguments(NamedTuple):
    keys: Tensor
    queries: Tensor
    v: Tensor
    key_lengths: Tensor
    query_lengths: Tensor


def check_arguments(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None,
    query_lengths: Tensor | None,
) -> Arguments:
    """The arguments with lengths filled in. Raises ShapeError for what does not fit."""
    check_shapes(keys, queries, v)
    return Arguments(
        keys,
        queries,
        v,
        _lengths("key_lengths", key_lengths, keys),
        _lengths("query_lengths", query_lengths, queries),
    )


def check_shapes(keys: Tensor, queries: Tensor, v: Tensor) -> None:
    """Raises ShapeError for what does not fit."""
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


def precise(arguments: Arguments) -> Arguments:
    """The same in one float type: float64 where one of them is, else float32."""
    keys, queries, v, *lengths = arguments
    double = torch.float64 in (keys.dtype, queries.dtype, v.dtype)
    dtype = torch.float64 if double else torch.float32
    return Arguments(keys.to(dtype), queries.to(dtype), v.to(dtype), *lengths)


def _lengths(name: str, lengths: Tensor | None, padded: Tensor) -> Tensor:
    batch, longest = padded.shape[:2]
    if lengths is None:
        return torch.full((batch,), longest, dtype=torch.int64, device=padded.device)
    if lengths.shape != (batch,):
        raise ShapeError(f"additive_scores: {name} must be ({batch},); got {tuple(lengths.shape)}")
    # The compiled kernel reads as far as it is told to; a look at tensors on a GPU would cost time.
    if lengths.device.type == "cpu" and not ((lengths >= 0) & (lengths <= longest)).all():
        raise ShapeError(f"additive_scores: {name} must be in 0..{longest}; got {lengths.tolist()}")
    return lengths.to(dtype=torch.int64, device=padded.device)


def valid(lengths: Tensor, longest: int) -> Tensor:
    """`(B, longest)` boolean: True before each length."""
    return torch.arange(longest, device=lengths.device) < lengths[:, None]
