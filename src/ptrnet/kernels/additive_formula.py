"""Additive attention scores by the formula, and the checks of the arguments.

`additive.py` chooses between the formula and a kernel.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ptrnet.errors import ShapeError
from ptrnet.kernels import is_eager, plain_gradients
from ptrnet.masks import Lengths, length_mask


def naive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Lengths = None,
    query_lengths: Lengths = None,
) -> Tensor:
    """Compute `additive_scores` by the formula, on any device.

    The function needs memory for a tensor `(B, M, N, H)`. PyTorch can record and transform its
    operations. Gradients of any order are possible.
    """
    keys, queries, v, key_lengths, query_lengths = in_one_type(
        check_arguments(keys, queries, v, key_lengths, query_lengths)
    )
    is_key = length_mask(key_lengths, keys.shape[1])
    is_query = length_mask(query_lengths, queries.shape[1])
    # Padding may hold any value. A NaN there would reach gradients as zero times NaN.
    keys = keys.masked_fill(~is_key[..., None], 0)
    queries = queries.masked_fill(~is_query[..., None], 0)
    with torch.autocast(keys.device.type, enabled=False):
        scores = torch.tanh(keys[:, None] + queries[:, :, None]) @ v
    return scores.masked_fill(~(is_query[:, :, None] & is_key[:, None]), 0.0)


def chunked_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Lengths = None,
    query_lengths: Lengths = None,
) -> Tensor:
    """Compute `naive_scores` one query after another, with memory for a tensor `(B, N, H)`.

    The backward pass computes the scores again.
    """
    arguments = in_one_type(check_arguments(keys, queries, v, key_lengths, query_lengths))
    scores = [
        checkpoint(
            naive_scores,
            arguments.keys,
            arguments.queries[:, i : i + 1],
            arguments.v,
            arguments.key_lengths,
            (arguments.query_lengths - i).clamp(0, 1),
            use_reentrant=False,
            preserve_rng_state=False,
        )
        for i in range(queries.shape[1])
    ]
    return torch.cat(scores, 1) if scores else naive_scores(*arguments)


class Arguments(NamedTuple):
    """The arguments of `additive_scores`, with all lengths given."""

    keys: Tensor  # (B, N, H)
    queries: Tensor  # (B, M, H)
    v: Tensor  # (H,)
    key_lengths: Tensor  # (B,) int64
    query_lengths: Tensor  # (B,) int64


def check_arguments(
    keys: Tensor, queries: Tensor, v: Tensor, key_lengths: Lengths, query_lengths: Lengths
) -> Arguments:
    """Return the arguments of `additive_scores`, with full lengths in place of None.

    Raises:
        ShapeError: the shapes do not fit each other, or a length on the CPU is out of range.
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
    """Raise ShapeError unless the shapes are `(B, N, H)`, `(B, M, H)` and `(H,)`."""
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


def _check_lengths(parameter: str, lengths: Lengths, padded: Tensor) -> Tensor:
    batch, size = padded.shape[:2]
    if lengths is None:
        return torch.full((batch,), size, dtype=torch.int64, device=padded.device)
    if lengths.shape != (batch,):
        raise ShapeError(
            f"additive_scores: {parameter} must be ({batch},); got {tuple(lengths.shape)}"
        )
    # With lengths out of range, the compiled kernel would read beyond its arrays. Lengths on a GPU
    # are not checked, because reading them would wait for the GPU.
    is_known = lengths.device.type == "cpu" and is_eager(lengths)
    if is_known and not ((lengths >= 0) & (lengths <= size)).all():
        raise ShapeError(
            f"additive_scores: {parameter} must be in 0..{size}; got {lengths.tolist()}"
        )
    return lengths.to(dtype=torch.int64, device=padded.device)


def in_one_type(arguments: Arguments) -> Arguments:
    """Return the arguments in one float type: float64 if any tensor is float64, else float32."""
    keys, queries, v, *lengths = arguments
    has_double = torch.float64 in (keys.dtype, queries.dtype, v.dtype)
    dtype = torch.float64 if has_double else torch.float32
    return Arguments(keys.to(dtype), queries.to(dtype), v.to(dtype), *lengths)


def gradients_by_formula(
    arguments: Arguments, grad: Tensor, scores: Callable[..., Tensor] = naive_scores
) -> tuple[Tensor | None, ...]:
    """Return the gradients of keys, queries and `v`, then None for the two lengths.

    A kernel's `backward` returns this tuple if it cannot use the kernel. If gradients are enabled,
    the returned gradients can be differentiated again. `grad` `(B, M, N)` is the gradient of the
    scores. The formula is `naive_scores` or `chunked_scores`.
    """
    keys, queries, v, *lengths = arguments

    def formula(*tensors: Tensor) -> tuple[Tensor]:
        return (scores(*tensors, *lengths),)

    return (*plain_gradients(formula, (keys, queries, v), [grad]), None, None)
