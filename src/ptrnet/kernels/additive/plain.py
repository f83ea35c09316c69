"""Additive attention scores in plain PyTorch: the formula, and a version that needs less memory.

Tests compare the kernels with `naive_scores`, the formula. `factorised_scores` stores no
(B, M, N, H) tensor, as `ptrnet.kernels.additive` explains.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ptrnet.errors import ShapeError
from ptrnet.kernels.eager import is_eager, needs_plain, plain_gradients
from ptrnet.masks import length_mask


class Arguments(NamedTuple):
    """The arguments of `additive_scores`, with all lengths given."""

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


def promote(arguments: Arguments) -> Arguments:
    """Return the arguments in one float type: float64 if any tensor is float64, else float32."""
    keys, queries, v, *lengths = arguments
    has_double = torch.float64 in (keys.dtype, queries.dtype, v.dtype)
    dtype = torch.float64 if has_double else torch.float32
    return Arguments(keys.to(dtype), queries.to(dtype), v.to(dtype), *lengths)


def _without_padding(arguments: Arguments) -> tuple[Arguments, Tensor]:
    """Return the arguments in one float type with 0 on padding, and the mask `(B, M, N)` of scores.

    The mask is False if the key or the query is padding. Padding may hold any value. A NaN there
    would reach gradients as zero times NaN, so we set padding to 0.
    """
    keys, queries, v, key_lengths, query_lengths = promote(arguments)
    is_key = length_mask(key_lengths, keys.shape[1])
    is_query = length_mask(query_lengths, queries.shape[1])
    keys = keys.masked_fill(~is_key[..., None], 0)
    queries = queries.masked_fill(~is_query[..., None], 0)
    mask = is_query[:, :, None] & is_key[:, None]
    return Arguments(keys, queries, v, key_lengths, query_lengths), mask


def _check_lengths(parameter: str, lengths: Tensor | None, padded: Tensor) -> Tensor:
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


def naive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """Compute `additive_scores` by the formula, on any device.

    The function needs memory for a tensor `(B, M, N, H)`. PyTorch can record and transform its
    operations. Gradients of any order are possible. Tests compare the fast kernels with this
    function.
    """
    (keys, queries, v, *_), mask = _without_padding(
        check_arguments(keys, queries, v, key_lengths, query_lengths)
    )
    with torch.autocast(keys.device.type, enabled=False):
        scores = torch.tanh(keys[:, None] + queries[:, :, None]) @ v
    return scores.masked_fill(~mask, 0.0)


def naive_gradients(
    arguments: Arguments, grad: Tensor, scores: Callable[..., Tensor] = naive_scores
) -> tuple[Tensor | None, ...]:
    """Return the gradients of keys, queries and `v`, then None for the two lengths.

    An autograd function's `backward` returns this tuple. If gradients are enabled, the returned
    gradients can be differentiated again.

    Args:
        arguments: the arguments of the forward pass.
        grad: `(B, M, N)` gradient of the scores.
        scores: the function to differentiate, such as `naive_scores`.
    """
    keys, queries, v, *lengths = arguments

    def formula(*tensors: Tensor) -> tuple[Tensor]:
        return (scores(*tensors, *lengths),)

    return (*plain_gradients(formula, (keys, queries, v), [grad]), None, None)


# We compute exp(2 key) exp(2 query) only if the magnitudes of keys and queries are below this.
# exp(2 * 43) * exp(2 * 43) is inf, and 1 / (1 + inf) = 0 is right. But exp(2 * 45) alone is inf,
# and inf * 0 is NaN. Clipping keys and queries would be wrong, because a key of 60 and a query of
# -50 must give tanh(10).
MAX_MAGNITUDE = {torch.float32: 43.0, torch.float64: 350.0}


def can_factorise(x: Tensor) -> bool:
    """Whether the exponentials of keys or queries stay finite and above zero. False for NaN.

    Also False while a CUDA graph is recorded, because the graph will be replayed with other values.
    """
    if x.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    bound = MAX_MAGNITUDE[x.dtype]
    return not x.numel() or all(bool(-bound < end < bound) for end in x.aminmax())


def factorised_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """Compute `additive_scores` on any device, one query after another."""
    arguments, mask = _without_padding(
        check_arguments(keys, queries, v, key_lengths, query_lengths)
    )
    scores = _FactorisedScores.apply(arguments.keys, arguments.queries, arguments.v)
    return scores.masked_fill(~mask, 0.0)


def prepared_factorised_scores(
    keys: Tensor, v: Tensor, key_lengths: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """Return the function that `prepared_scores` returns for few keys and queries.

    The function needs memory for a tensor `(B, M, N, H)`.
    """
    keys, _, v, lengths, _ = promote(check_arguments(keys, keys, v, key_lengths, None))
    padding = ~length_mask(lengths, keys.shape[1])[:, None, :]
    a = torch.exp(2 * keys) if can_factorise(keys) else None

    def scores(queries: Tensor) -> Tensor:
        check_shapes(keys, queries, v)
        queries = queries.to(v.dtype)
        if a is None or not can_factorise(queries):
            return factorised_scores(keys, queries, v, lengths)
        with torch.autocast(keys.device.type, enabled=False):
            c = torch.exp(2 * queries)
            r = (1 + a[:, None] * c[:, :, None]).reciprocal_()
            return (v.sum() - 2 * (r @ v)).masked_fill(padding, 0.0)

    return scores


class _FactorisedScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, keys: Tensor, queries: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(keys, queries, v)
        scores = keys.new_empty(len(keys), queries.shape[1], keys.shape[1])
        with torch.autocast(keys.device.type, enabled=False):
            tanh = _tanh_of_sums(keys, queries)
            for i in range(queries.shape[1]):
                scores[:, i] = tanh(i) @ v
        return scores

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        keys, queries, v = ctx.saved_tensors  # type: ignore[attr-defined]
        if needs_plain(grad):
            arguments = check_arguments(keys, queries, v, None, None)
            return naive_gradients(arguments, grad)[:3]
        grad_keys = torch.zeros_like(keys)
        grad_queries = torch.zeros_like(queries)
        grad_v = torch.zeros_like(v)
        with torch.autocast(keys.device.type, enabled=False):
            tanh = _tanh_of_sums(keys, queries)
            for i in range(queries.shape[1]):
                t = tanh(i)
                g = grad[:, i]
                grad_v += torch.einsum("bn,bnh->h", g, t)
                slope = (1 - t * t) * g[..., None]
                grad_keys += slope
                grad_queries[:, i] = slope.sum(1)
        return grad_keys * v, grad_queries * v, grad_v


def _tanh_of_sums(keys: Tensor, queries: Tensor) -> Callable[[int], Tensor]:
    """Return a function of i that computes `tanh(keys + queries[:, i])`, `(B, N, H)`."""
    if not (can_factorise(keys) and can_factorise(queries)):
        return lambda i: torch.tanh(keys + queries[:, i, None])
    a, c = torch.exp(2 * keys), torch.exp(2 * queries)
    return lambda i: 1 - 2 / (1 + a * c[:, i, None])
