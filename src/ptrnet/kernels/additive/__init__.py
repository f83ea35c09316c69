"""Which kernel serves a call: compiled on the CPU, Triton's on a GPU, plain PyTorch elsewhere."""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ptrnet.kernels.additive.arguments import check_arguments

# Entries v[h] * r of scores for which plain PyTorch takes some 20 microseconds more than a compiled
# kernel, which a short run then need not load: that takes a third of what importing torch takes.
FEW = 2**16


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """Scores `u[b,i,j] = sum_h v[h] tanh(keys[b,j,h] + queries[b,i,h])` (V eq. 3, B's concat).

    Args:
        keys: `(B, N, H)`, the projected encoder states `W1 e`; float32, float64 or a half type.
        queries: `(B, M, H)`, the projected decoder states `W2 d`.
        v: `(H,)`.
        key_lengths: `(B,)` integers in 0..N; keys from there on are padding. None: all count.
        query_lengths: `(B,)` integers in 0..M; likewise for queries.

    Returns:
        `(B, M, N)`, float32 (float64 for float64 inputs). Zero wherever the key or the query is
        padding; no gradient flows there.

    Raises:
        ShapeError: shapes that do not fit each other.
    """
    arguments = check_arguments(keys, queries, v, key_lengths, query_lengths)
    return _kernel(keys.device)(*arguments)


def prepared_scores(
    keys: Tensor, v: Tensor, key_lengths: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """`additive_scores` of the same keys for queries that come one after the other, as decoding has
    them: a function of queries `(B, M, H)`, in the type of keys and `v`. Not for gradients.

    Raises:
        ShapeError: keys, `v` or lengths that do not fit each other; later, queries that do not.
    """
    check_arguments(keys, keys, v, key_lengths, None)
    if keys.device.type != "cpu":
        return lambda queries: additive_scores(keys, queries, v, key_lengths)
    if keys.numel() > FEW:
        from ptrnet.kernels.additive.cpu import prepared_scores as prepare

        return prepare(keys, v, key_lengths)
    from ptrnet.kernels.additive.factorised import prepared_scores as prepare_few

    few = prepare_few(keys, v, key_lengths)

    def scores(queries: Tensor) -> Tensor:
        if keys.numel() * queries.shape[1] > FEW:
            return additive_scores(keys, queries, v, key_lengths)
        return few(queries)

    return scores


def _kernel(device: torch.device) -> Callable[..., Tensor]:
    if device.type == "cpu":
        from ptrnet.kernels.additive.cpu import additive_scores as kernel
    elif device.type == "cuda" and _triton_runs(device):
        from ptrnet.kernels.additive.gpu import additive_scores as kernel
    else:
        from ptrnet.kernels.additive.factorised import additive_scores as kernel
    return kernel


@cache
def _triton_runs(device: torch.device) -> bool:
    """Whether Triton is installed and serves the device; tried once.

    It wants what PyTorch does without: a C compiler, Python's headers, a GPU that is not too old.
    """
    if find_spec("triton") is None:
        return False
    try:
        from ptrnet.kernels.additive.gpu import additive_scores as kernel

        one = torch.zeros(1, 1, 1, device=device)
        kernel(one, one, one[0, 0])
    except Exception as error:
        warnings.warn(
            f"additive_scores: plain PyTorch on {device}, as Triton does not run there: {error}",
            stacklevel=2,
        )
        return False
    return True
