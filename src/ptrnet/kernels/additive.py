"""Additive attention scores, and the choice of the kernel that computes them.

`additive_scores` uses the compiled kernel on a CPU (`additive_cpu.py`), and the Triton kernel on a
GPU (`additive_gpu.py`). `naive_scores` is the formula, which PyTorch can record and transform. We
use it while PyTorch records or transforms operations (see `is_eager`), on devices without a kernel,
and as the reference in tests. A batch has B instances with N keys and M queries of H units each.

The kernels store no (B, M, N, H) tensor. With `A = exp(2 keys)` and `C = exp(2 queries)`,

    tanh(keys + queries) = 1 - 2 r,    r = 1 / (1 + A C),    d tanh = 4 r (1 - r),

so exponentials are computed for each key and each query, and not for each pair of a key and a
query. The backward pass computes r again.
"""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ptrnet.kernels import is_eager
from ptrnet.kernels.additive_formula import chunked_scores, naive_scores


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
    kernel = kernel_on(keys.device) if is_eager(keys, queries, v) else naive_scores
    return kernel(keys, queries, v, key_lengths, query_lengths)


def kernel_on(device: torch.device) -> Callable[..., Tensor]:
    """Return the implementation of `additive_scores` for a device."""
    if device.type == "cpu":
        from ptrnet.kernels.additive_cpu import compiled_scores as kernel  # imports numba
    elif device.type == "cuda" and _triton_runs(device):
        from ptrnet.kernels.additive_gpu import triton_scores as kernel
    else:
        return chunked_scores
    return kernel


@cache
def _triton_runs(device: torch.device) -> bool:
    """Whether Triton is installed and works on the device. We try Triton once for each device.

    Unlike PyTorch, Triton needs a C compiler, Python's headers, and a GPU that is not too old.
    """
    if find_spec("triton") is None:
        return False
    try:
        from ptrnet.kernels.additive_gpu import triton_scores as kernel

        tensor = torch.zeros(1, 1, 1, device=device)
        kernel(tensor, tensor, tensor[0, 0])
    except Exception as error:  # the errors of Triton, of a C compiler and of CUDA
        warnings.warn(
            f"additive_scores uses plain PyTorch on {device}, where Triton does not run: {error}",
            stacklevel=2,
        )
        return False
    return True
