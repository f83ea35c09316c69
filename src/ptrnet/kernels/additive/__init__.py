"""Additive attention scores, and the choice of the kernel that computes the scores.

`additive_scores` uses the compiled kernel on a CPU (`cpu.py`), the Triton kernel on a GPU
(`gpu.py`), and `factorised_scores` elsewhere. `naive_scores` is the plain formula, which PyTorch
can record and transform. We use `naive_scores` while PyTorch records or transforms operations
(see `is_eager`), and as the reference in tests. In this package, B is the size of the batch, and
an instance has N keys and M queries of H units.

`factorised_scores` stores no (B, M, N, H) tensor. With `A = exp(2 keys)` and `C = exp(2 queries)`,

    tanh(keys + queries) = 1 - 2 r,    r = 1 / (1 + A C),    d tanh = 4 r (1 - r),

so exponentials are computed for each key and each query, and not for each pair of a key and a
query. The forward and the backward pass visit queries one by one, so they need memory for a tensor
`(B, N, H)`. The backward pass computes r again.
"""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ptrnet.kernels.additive.plain import (
    check_arguments,
    factorised_scores,
    naive_scores,
    prepared_factorised_scores,
)
from ptrnet.kernels.eager import is_eager

__all__ = [
    "MAX_PLAIN_ENTRIES",
    "additive_scores",
    "factorised_scores",
    "kernel_on",
    "naive_scores",
    "prepared_scores",
]

# On a CPU, `prepared_scores` uses plain PyTorch for at most this many products `v[h] * r`, and the
# compiled kernel for more. So a short run need not load the kernel. Loading the kernel takes a
# third as long as importing torch. At this size, plain PyTorch takes about 20 microseconds longer
# than the kernel.
MAX_PLAIN_ENTRIES = 2**16


def additive_scores(
    keys: Tensor,
    queries: Tensor,
    v: Tensor,
    key_lengths: Tensor | None = None,
    query_lengths: Tensor | None = None,
) -> Tensor:
    """Return the scores `u[b,i,j] = sum_h v[h] tanh(keys[b,j,h] + queries[b,i,h])`.

    This is the additive score of Bahdanau et al. 2015, and equation 3 of Vinyals et al. 2015.

    Args:
        keys: `(B, N, H)`, the projected encoder states `W1 e`, in float32, float64 or a half type.
        queries: `(B, M, H)`, the projected decoder states `W2 d`.
        v: `(H,)`.
        key_lengths: `(B,)` integers in 0..N, the number of keys before the padding. None: no
            padding.
        query_lengths: `(B,)` integers in 0..M, the number of queries before the padding. None: no
            padding.

    Returns:
        `(B, M, N)` scores, float32 (float64 for float64 inputs). If the key or the query is
        padding, the score is zero, and no gradient flows through it.

    Raises:
        ShapeError: the shapes do not fit each other, or (on a CPU only) a length is out of range.

    Examples:
        >>> keys, queries, v = torch.rand(8, 50, 128), torch.rand(8, 1, 128), torch.rand(128)
        >>> additive_scores(keys, queries, v).shape
        torch.Size([8, 1, 50])
    """
    if not is_eager(keys, queries, v):
        return naive_scores(keys, queries, v, key_lengths, query_lengths)
    return kernel_on(keys.device)(keys, queries, v, key_lengths, query_lengths)


def prepared_scores(
    keys: Tensor, v: Tensor, key_lengths: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """Return a function of queries that computes their `additive_scores` with fixed keys.

    Decoding needs scores of the same keys in every step. On a CPU, the exponentials of the keys are
    computed only once.

    Args:
        keys: `(B, N, H)`, as for `additive_scores`.
        v: `(H,)`.
        key_lengths: `(B,)` integers in 0..N. None: no padding.

    Returns:
        A function of queries `(B, M, H)` that returns their scores `(B, M, N)`. The queries should
        have the type of the keys or of `v`. Gradients are not supported.

    Raises:
        ShapeError: keys, `v` and lengths do not fit each other. The returned function also raises
            this error if its queries do not fit.
    """
    check_arguments(keys, keys, v, key_lengths, None)
    if keys.device.type != "cpu" or not is_eager(keys, v):
        return lambda queries: additive_scores(keys, queries, v, key_lengths)
    is_small = keys.numel() <= MAX_PLAIN_ENTRIES
    prepared: Callable[[Tensor], Tensor]
    if is_small:
        prepared = prepared_factorised_scores(keys, v, key_lengths)
    else:
        from ptrnet.kernels.additive.cpu import prepared_scores as prepare

        prepared = prepare(keys, v, key_lengths)

    def scores(queries: Tensor) -> Tensor:
        is_large = is_small and keys.numel() * queries.shape[1] > MAX_PLAIN_ENTRIES
        if is_large or not is_eager(queries):
            return additive_scores(keys, queries, v, key_lengths)
        return prepared(queries)

    return scores


def kernel_on(device: torch.device) -> Callable[..., Tensor]:
    """Return the implementation of `additive_scores` for a device."""
    if device.type == "cpu":
        from ptrnet.kernels.additive.cpu import additive_scores as kernel
    elif device.type == "cuda" and _triton_runs(device):
        from ptrnet.kernels.additive.gpu import additive_scores as kernel
    else:
        return factorised_scores
    return kernel


@cache
def _triton_runs(device: torch.device) -> bool:
    """Whether Triton is installed and works on the device. We try Triton once for each device.

    Unlike PyTorch, Triton needs a C compiler, Python's headers, and a GPU that is not too old.
    """
    if find_spec("triton") is None:
        return False
    try:
        from ptrnet.kernels.additive.gpu import additive_scores as kernel

        tensor = torch.zeros(1, 1, 1, device=device)
        kernel(tensor, tensor, tensor[0, 0])
    except Exception as error:  # the errors of Triton, of a C compiler and of CUDA
        warnings.warn(
            f"additive_scores uses plain PyTorch on {device}, where Triton does not run: {error}",
            stacklevel=2,
        )
        return False
    return True
