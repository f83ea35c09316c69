"""The arithmetic of one LSTM step, compiled: all gates of a slice of the batch in one pass.

Arrays are time-first; `t` is the step and `first` the row of the batch at which the slice
starts. Half-precision arrays hold bfloat16 as uint16, which is the upper half of a float32.
"""

import math

import numba
import numpy as np
from numba.extending import overload

_jit = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"}
)

# exp(x) = 2^k * exp(r), |r| <= ln(2) / 2, with the series of exp(r) up to r^7: an error of 1e-8.
_LOG2E = np.float32(1 / math.log(2))
_LN2 = np.float32(math.log(2))
_C2, _C3, _C4, _C5, _C6, _C7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))
_ONE, _TWO = np.float32(1), np.float32(2)
_RANGE = np.float32(80)  # exp(80) is finite, and so is its square root's inverse: no infinities


@_jit
def _exp(x):
    """exp for -80..80 (clipped there), in operations that the compiler can vectorise."""
    x = min(max(x, -_RANGE), _RANGE)
    k = np.floor(x * _LOG2E + np.float32(0.5))
    r = x - k * _LN2
    p = _C6 + r * _C7
    p = _C5 + r * p
    p = _C4 + r * p
    p = _C3 + r * p
    p = _C2 + r * p
    p = _ONE + r * (_ONE + r * p)
    return p * np.int32((np.int32(k) + 127) << 23).view(np.float32)


@_jit
def _sigmoid(x):
    return _ONE / (_ONE + _exp(-x))


@_jit
def _tanh(x):
    return _ONE - _TWO / (_ONE + _exp(_TWO * x))


def _up(x):
    """A stored number as float32."""


@overload(_up, inline="always")
def _up_typed(x):
    if x == numba.uint16:
        return lambda x: np.uint32(np.uint32(x) << 16).view(np.float32)
    return lambda x: x


def _down(x, like):
    """A float32 as it is stored in arrays of `like`'s type; bfloat16 is rounded to even."""


@overload(_down, inline="always")
def _down_typed(x, like):
    if like == numba.uint16:

        def rounded(x, like):
            bits = np.float32(x).view(np.uint32)
            odd = (bits >> 16) & 1
            return np.uint16((bits + 0x7FFF + odd) >> 16)

        return rounded
    return lambda x, like: x


@_jit
def forward_step(t, first, last, x, w, gates, c, h, lengths):
    """`i, f, o = sigmoid, g = tanh` of `W x + b + U h`; `c' = f c + i g`, `h' = o tanh(c')`.

    `w` is `(d + 1, 4H)` with the bias as its last row. `gates[t]` holds `U h` and is overwritten
    by the activations; the states at `t + 1` are written. A sequence that has ended keeps its
    state.
    """
    units, features = c.shape[2], x.shape[2]
    sums = np.empty(4 * units, np.float32)
    for b in range(first, last):
        if t >= lengths[b]:
            for k in range(units):
                c[t + 1, b, k] = c[t, b, k]
                h[t + 1, b, k] = h[t, b, k]
            continue
        out = gates[t, b]
        for k in range(4 * units):
            sums[k] = w[features, k] + _up(out[k])
        for j in range(features):
            for k in range(4 * units):
                sums[k] += x[t, b, j] * w[j, k]
        for k in range(units):
            i = _sigmoid(sums[k])
            f = _sigmoid(sums[units + k])
            g = _tanh(sums[2 * units + k])
            o = _sigmoid(sums[3 * units + k])
            cell = f * c[t, b, k] + i * g
            c[t + 1, b, k] = cell
            h[t + 1, b, k] = _down(o * _tanh(cell), h[t, b, k])
            out[k] = _down(i, out[k])
            out[units + k] = _down(f, out[k])
            out[2 * units + k] = _down(g, out[k])
            out[3 * units + k] = _down(o, out[k])


@_jit
def backward_step(
    t,
    first,
    back,
    dh,
    dc,
    grads,
    gates,
    c,
    lengths,
):
    """The gradient of `forward_step`: `gates[t]` turns into the gradient of the sums.

    The gradient of `h[t + 1]` is `grads[t] + back + dh`: from the outputs, from the products of
    step t + 1, and from the padding behind it. `dc` is the gradient of `c[t + 1]` and becomes
    that of `c[t]`.
    """
    units = c.shape[2]
    for row in range(back.shape[0]):
        b = first + row
        a = gates[t, b]
        if t >= lengths[b]:
            for k in range(units):
                dh[row, k] += _up(grads[t, b, k]) + _up(back[row, k])
            a[:] = 0
            continue
        for k in range(units):
            i, f = _up(a[k]), _up(a[units + k])
            g, o = _up(a[2 * units + k]), _up(a[3 * units + k])
            d = _up(grads[t, b, k]) + _up(back[row, k]) + dh[row, k]
            dh[row, k] = 0
            tc = _tanh(c[t + 1, b, k])
            dcell = dc[row, k] + d * o * (_ONE - tc * tc)
            dc[row, k] = dcell * f
            a[k] = _down(dcell * g * i * (_ONE - i), a[k])
            a[units + k] = _down(dcell * c[t, b, k] * f * (_ONE - f), a[k])
            a[2 * units + k] = _down(dcell * i * (_ONE - g * g), a[k])
            a[3 * units + k] = _down(d * tc * o * (_ONE - o), a[k])
