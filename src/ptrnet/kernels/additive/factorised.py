"""Plain PyTorch without the (B, M, N, H) tensor: for devices that have no compiled kernel.

With `A = exp(2 keys)` and `C = exp(2 queries)`,

    tanh(keys + queries) = 1 - 2 r,    r = 1 / (1 + A C),    d tanh = 4 r (1 - r),

so the exponentials are taken once for each key and each query, not for each pair of them. Queries
are visited one by one, in the forward and in the recomputing backward pass: memory `(B, N, H)`.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ptrnet.kernels.additive import reference
from ptrnet.kernels.additive.arguments import check_arguments, check_shapes, promote, score_mask
from ptrnet.kernels.gradients import needs_plain
from ptrnet.masks import length_mask

# Keys and queries below this are factorised: exp(2 * 43) * exp(2 * 43) is inf, and 1 / (1 + inf) =
# 0 is right; but exp(2 * 45) is inf by itself and inf * 0 is NaN. Clipping would be wrong: keys 60,
# queries -50 must give tanh(10).
MAX_MAGNITUDE = {torch.float32: 43.0, torch.float64: 350.0}


def can_factorise(x: Tensor) -> bool:
    """Whether the exponentials of keys or queries stay finite and above zero (NaN's do not).

    False while a CUDA graph is recorded: it will be replayed with values not known now.
    """
    if x.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    bound = MAX_MAGNITUDE[x.dtype]
    return not x.numel() or all(bool(-bound < end < bound) for end in x.aminmax())


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """As `ptrnet.kernels.additive_scores`, on any device; one pass over the keys for each query."""
    arguments = promote(check_arguments(keys, queries, v, key_lengths, query_lengths))
    scores = _Scores.apply(arguments.keys, arguments.queries, arguments.v)
    return scores.masked_fill(~score_mask(arguments), 0.0)


def prepared_scores(
    keys: Tensor, v: Tensor, key_lengths: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """As `ptrnet.kernels.prepared_scores`, for few keys and queries: memory `(B, M, N, H)`."""
    keys, _, v, lengths, _ = promote(check_arguments(keys, keys, v, key_lengths, None))
    padding = ~length_mask(lengths, keys.shape[1])[:, None, :]
    a = torch.exp(2 * keys) if can_factorise(keys) else None

    def scores(queries: Tensor) -> Tensor:
        check_shapes(keys, queries, v)
        queries = queries.to(v.dtype)
        if a is None or not can_factorise(queries):
            return additive_scores(keys, queries, v, lengths)
        with torch.autocast(keys.device.type, enabled=False):
            c = torch.exp(2 * queries)
            r = (1 + a[:, None] * c[:, :, None]).reciprocal_()
            return (v.sum() - 2 * (r @ v)).masked_fill(padding, 0.0)

    return scores


class _Scores(torch.autograd.Function):
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
            return reference.gradients(arguments, grad)[:3]
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
    """A function of i that returns `tanh(keys + queries[:, i])`, `(B, N, H)`."""
    if not (can_factorise(keys) and can_factorise(queries)):
        return lambda i: torch.tanh(keys + queries[:, i, None])
    a, c = torch.exp(2 * keys), torch.exp(2 * queries)
    return lambda i: 1 - 2 / (1 + a * c[:, i, None])
