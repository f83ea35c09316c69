"""The arithmetic of one LSTM step, compiled: all gates of a slice of the batch in one pass.

Arrays are step first, `(N, B, ...)`; `t` is the step, and the slice is the rows `first` to
`last - 1` of the batch. bfloat16 arrays are uint16: of `numerics.py`, `load` makes a number of such
an array a float32, and `store(x, element)` rounds x to the type of `element`, whose value is not
read; both leave float32 as it is. `widest_vectors` lets a kernel's loops take vectors of 512 bits.

Inputs of few features are fused: they are multiplied here, and not beforehand in `products.py`.
Their arrays are `x` `(N, B, d)` and `w` `(d + 1, 4H)`, which is `W_ih` transposed with the sum of
the biases as its last row; d is 0 where the inputs are not fused. `lengths` is `(B,)`.
"""

import numpy as np

from ptrnet.kernels.numerics import (
    exp32,
    load,
    reassociating_inline,
    reassociating_jit,
    store,
    widest_vectors,
)

_ONE, _TWO = np.float32(1), np.float32(2)


@reassociating_inline
def _sigmoid(x):
    return _ONE / (_ONE + exp32(-x))


@reassociating_inline
def _tanh(x):
    return _ONE - _TWO / (_ONE + exp32(_TWO * x))


@reassociating_inline
def write_step(t, first, last, products, x, w, gates, c, h, lengths):
    """`i, f, o = sigmoid, g = tanh` of `W_ih x + b + W_hh h`; `c' = f c + i g`, `h' = o tanh(c')`.

    `products` `(rows, 4H or more)` is the part of the sum that is not fused, for each row of the
    slice: `W_hh h`, or `W_hh h + W_ih x`. Writes the activations of the gates to `gates[t]` and the
    states to `c[t + 1]` and `h[t + 1]`. A sequence that has ended keeps its state.

    `h` and `c` are `(N + 1, B, H)` and `gates` is `(N, B, 4H)`. Where no backward pass needs them,
    `c` is `(2, B, H)` and `gates` `(1, B, 4H)`, and later steps overwrite earlier ones.
    """
    widest_vectors()
    units, features = c.shape[2], x.shape[2]
    before, after = t % len(c), (t + 1) % len(c)  # where `c` holds these states
    sums = np.empty(4 * units, np.float32)
    for b in range(first, last):
        if t >= lengths[b]:
            for k in range(units):
                c[after, b, k] = c[before, b, k]
                h[t + 1, b, k] = h[t, b, k]
            continue
        out = gates[t % len(gates), b]
        for k in range(4 * units):
            sums[k] = w[features, k] + load(products[b - first, k])
        for j in range(features):
            for k in range(4 * units):
                sums[k] += x[t, b, j] * w[j, k]
        # Two loops: the processor computes several units at once if each is a short chain of
        # operations; with one long chain for each unit, too few of them fit into its window.
        for k in range(units):
            i = _sigmoid(sums[k])
            f = _sigmoid(sums[units + k])
            g = _tanh(sums[2 * units + k])
            c[after, b, k] = f * c[before, b, k] + i * g
            out[k] = store(i, out[k])
            out[units + k] = store(f, out[k])
            out[2 * units + k] = store(g, out[k])
        for k in range(units):
            o = _sigmoid(sums[3 * units + k])
            h[t + 1, b, k] = store(o * _tanh(c[after, b, k]), h[t, b, k])
            out[3 * units + k] = store(o, out[k])


@reassociating_jit
def forward_step(t, first, last, products, x, w, gates, c, h, lengths):
    """`write_step`, as Python calls it."""
    write_step(t, first, last, products, x, w, gates, c, h, lengths)


@reassociating_jit
def backward_step(t, first, dh_next, dh_end, dc, dw, grads, x, gates, c, lengths):
    """The gradient of `forward_step`; `gates[t]` is overwritten by the gradient of the sums.

    The gradient of `h[t + 1]` has three parts: `grads[t]` `(B, H)` comes from the outputs,
    `dh_next` `(rows, H or more)` from the products of step t + 1, and `dh_end` `(rows, H)` from the
    last state. On padding they are summed in `dh_end`, which a sequence's last step takes up and
    sets to 0. `dc` `(rows, H)` is the gradient of `c[t + 1]` and becomes that of `c[t]`. The
    gradient of `w` is added to `dw` `(d + 1, 4H)`. `c` and `gates` hold all steps.
    """
    widest_vectors()
    units, features = c.shape[2], x.shape[2]
    for row in range(dh_next.shape[0]):
        b = first + row
        a = gates[t, b]  # (4H,) activations, replaced by gradients
        if t >= lengths[b]:
            for k in range(units):
                dh_end[row, k] += load(grads[t, b, k]) + load(dh_next[row, k])
            a[:] = 0
            continue
        for k in range(units):
            i, f = load(a[k]), load(a[units + k])
            g, o = load(a[2 * units + k]), load(a[3 * units + k])
            dh = load(grads[t, b, k]) + load(dh_next[row, k]) + dh_end[row, k]
            dh_end[row, k] = 0
            tanh_c = _tanh(c[t + 1, b, k])
            dcell = dc[row, k] + dh * o * (_ONE - tanh_c * tanh_c)
            dc[row, k] = dcell * f
            a[k] = store(dcell * g * i * (_ONE - i), a[k])
            a[units + k] = store(dcell * c[t, b, k] * f * (_ONE - f), a[k])
            a[2 * units + k] = store(dcell * i * (_ONE - g * g), a[k])
            a[3 * units + k] = store(dh * tanh_c * o * (_ONE - o), a[k])
        for k in range(4 * units):
            dw[features, k] += load(a[k])
        for j in range(features):
            for k in range(4 * units):
                dw[j, k] += x[t, b, j] * load(a[k])
