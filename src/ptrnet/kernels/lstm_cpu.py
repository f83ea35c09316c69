"""The LSTM layer on the CPU, forward and backward, for float32 and bfloat16 products.

The layer is faster than a loop of cells, and than oneDNN's layer under autocast, for these reasons:

- The batch is cut into a slice for each thread, and each thread computes all steps of its slice.
  So threads do not wait for each other at every step, and the recurrent weights stay in the core's
  cache.
- One compiled pass computes the gates of a step, instead of a dozen of PyTorch's operations.
- Weights are converted to bfloat16 once, not at every step.
- Inputs of few features, such as coordinates, are fused: `W_ih x` is computed together with the
  gates. This product is float32, because bfloat16's 8 bits would blur the points.
- A single product over all steps computes the gradient of the recurrent weights.

In this file, tensors are `(N, B, ...)`, with the step first. So a step is one block of memory.
PyTorch computes the products. Each thread has a separate buffer for the products of its slice.

The compiled functions at the end of this file compute the gates of step `t` for a slice of the
batch, rows `first` to `last - 1`. In these functions, bfloat16 arrays are uint16. `load` turns a
number of a bfloat16 array into a float32. `store(x, element)` rounds x to the type of `element`,
whose value is not read. Both functions leave float32 unchanged. `widest_vectors` lets loops use
vectors of 512 bits.

The arrays of fused inputs are `x` `(N, B, d)` and `w` `(d + 1, 4H)`. `w` is `W_ih` transposed, with
the sum of the biases as its last row. d is 0 if the inputs are not fused. `lengths` is `(B,)`.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from ptrnet.kernels import needs_plain, plain_gradients
from ptrnet.kernels.lstm_formula import Weights, naive_lstm
from ptrnet.kernels.numerics import (
    as_array,
    exp32,
    load,
    reassociating_inline,
    reassociating_jit,
    store,
    widest_vectors,
)
from ptrnet.kernels.threads import even_cuts, run_slices
from ptrnet.masks import length_mask

MIN_SLICE_ROWS = 16  # fewer rows of the batch are not worth another thread
MAX_FUSED = 16  # with more features than this, a separate product is faster than fused inputs

_ONE, _TWO = np.float32(1), np.float32(2)


def compiled_lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Compute `lstm` for float32 tensors on the CPU.

    Raises:
        ValueError: the shapes do not fit each other.
    """
    _check_shapes(inputs, lengths, state, weights)
    autocast = torch.is_autocast_enabled("cpu")
    bfloat16 = autocast and torch.get_autocast_dtype("cpu") == torch.bfloat16
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    h0, c0 = (s.float() for s in state)
    outputs, h, c = _Layer.apply(inputs, lengths, h0, c0, *weights, dtype)
    return outputs.transpose(0, 1), (h, c)


def _check_shapes(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> None:
    """Raise ValueError if shapes do not fit. Compiled code would read beyond the arrays."""
    (batch, units), features = state[0].shape, inputs.shape[2]
    shapes = [tuple(tensor.shape) for tensor in (state[1], *weights)]
    expected = [(batch, units), (4 * units, features), (4 * units, units), *[(4 * units,)] * 2]
    if shapes != expected or len(inputs) != batch:
        raise ValueError(
            f"lstm: expected shapes {expected} of the cell state and the weights, for states "
            f"{(batch, units)} and inputs {tuple(inputs.shape)}, got {shapes}"
        )
    if lengths.shape != (batch,):
        raise ValueError(f"lstm: expected lengths of {(batch,)}, got {tuple(lengths.shape)}")


class _Saved(NamedTuple):
    """The results of a forward pass that a backward pass needs."""

    x: Tensor  # (N, B, d) inputs, zero on padding
    w_hidden: Tensor  # (4H, H) recurrent weights in the type of the products
    gates: Tensor  # (N, B, 4H) activations
    c: Tensor  # (N + 1, B, H) cell states, the initial state first
    h: Tensor  # (N + 1, B, H) hidden states, the initial state first


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        inputs: Tensor,
        lengths: Tensor,
        h0: Tensor,
        c0: Tensor,
        w_input: Tensor,
        w_hidden: Tensor,
        b_input: Tensor,
        b_hidden: Tensor,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the layer. `dtype` is the type of the products, the outputs and the gates."""
        arguments = (inputs, h0, c0, w_input, w_hidden, b_input, b_hidden)
        (batch, n, _), units = inputs.shape, h0.shape[1]
        # Padding may hold NaN. Multiplying by zero would not help, because zero times NaN is NaN.
        padding = ~length_mask(lengths, n)
        x = inputs.masked_fill(padding[..., None], 0).transpose(0, 1).contiguous()
        w_hidden = w_hidden.to(dtype).contiguous()
        h = x.new_empty(n + 1, batch, units, dtype=dtype)
        c = x.new_empty(n + 1, batch, units, dtype=torch.float32)
        gates = x.new_empty(n, batch, 4 * units, dtype=dtype)
        h[0], c[0] = h0, c0

        fused_x = _fused(x)
        # W_ih transposed, and the biases' sum as its last row.
        fused_w = torch.cat([_fused(w_input).t(), (b_input + b_hidden)[None]])
        is_fused, hidden_columns = fused_x.shape[2] > 0, w_hidden.t()
        by_input = None if is_fused else (x.to(dtype), w_input.to(dtype).t())
        # In the order of the parameters of `forward_step`, from `x` on.
        arrays = (*map(as_array, (fused_x, fused_w, gates, c, h)), lengths.numpy())

        def run(_: int, first: int, last: int) -> None:
            sums = w_hidden.new_empty(last - first, 4 * units)
            sums_array = as_array(sums)  # shares the memory of `sums`
            for t in range(n):
                torch.mm(h[t, first:last], hidden_columns, out=sums)
                if by_input is not None:
                    sums.addmm_(by_input[0][t, first:last], by_input[1])
                forward_step(t, first, last, sums_array, *arrays)

        with torch.autocast("cpu", enabled=False):
            run_slices(run, even_cuts(batch, batch // MIN_SLICE_ROWS))
        ctx.save_for_backward(*arguments, lengths, x, w_hidden, c, h)
        ctx.gates = gates  # type: ignore[attr-defined]
        # The last states are copies. Views would keep all states in memory.
        return h[1:], h[-1].to(torch.float32, copy=True), c[-1].clone()

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *arguments, lengths, x, w_hidden, c, h = ctx.saved_tensors  # type: ignore[attr-defined]
        # To save memory, the gradient overwrites `gates`, the largest tensor. So a second backward
        # pass does not have the gates, and differentiates `naive_lstm` instead.
        if needs_plain(*grads) or ctx.gates is None:  # type: ignore[attr-defined]
            return _plain_gradients(arguments, lengths, h.dtype, grads)
        gates, ctx.gates = ctx.gates, None  # type: ignore[attr-defined]
        saved, w_input = _Saved(x, w_hidden, gates, c, h), Weights(*arguments[3:]).input
        with torch.autocast("cpu", enabled=False):
            dh, dc, dw = _backward_steps(saved, lengths, *grads)
            d_gates = gates.flatten(0, 1)
            d_hidden = (d_gates.t() @ h[:-1].flatten(0, 1)).float()
            d_input, d_bias = dw[:, :-1], dw[:, -1]
            if not d_input.shape[1]:  # the inputs were not fused
                d_input = (d_gates.t() @ x.flatten(0, 1).to(gates.dtype)).float()
            dx = None
            if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
                dx = (d_gates @ w_input.to(gates.dtype)).float().view_as(x).transpose(0, 1)
        return dx, None, dh, dc, d_input, d_hidden, d_bias, d_bias, None


def _plain_gradients(
    arguments: list[Tensor], lengths: Tensor, dtype: torch.dtype, grads: tuple[Tensor, ...]
) -> tuple[Tensor | None, ...]:
    """Compute `_Layer.backward` by the formula in float32. The result can be differentiated.

    The arguments are inputs, h0, c0 and the four weights. `dtype` is the type of the outputs.
    """

    def formula(x: Tensor, h0: Tensor, c0: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        outputs, (h, c) = naive_lstm(x, lengths, (h0, c0), Weights(*weights))
        return outputs.transpose(0, 1).to(dtype), h, c

    with torch.autocast("cpu", enabled=False):
        dx, *others = plain_gradients(formula, arguments, grads)
    return dx, None, *others, None


def _backward_steps(
    saved: _Saved, lengths: Tensor, grad_outputs: Tensor, grad_h: Tensor, grad_c: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `h0`, of `c0`, and of the fused weights and the bias, `(4H, d + 1)`.

    Overwrites `saved.gates` with the gradients of the sums to which sigmoid and tanh were applied.
    The gradients of the outputs are `(N, B, H)`, those of the last hidden and cell state `(B, H)`.
    """
    n, batch, units = grad_outputs.shape
    gates = saved.gates
    dh_end = grad_h.clone(memory_format=torch.contiguous_format)
    dc = grad_c.clone(memory_format=torch.contiguous_format)
    fused_x = _fused(saved.x)
    # In the order of the parameters of `backward_step`, from `grads` on.
    tensors = (grad_outputs.to(gates.dtype), fused_x, gates, saved.c)
    arrays = (*(as_array(tensor) for tensor in tensors), lengths.numpy())
    cuts = even_cuts(batch, batch // MIN_SLICE_ROWS)
    # Each slice has a separate row of `dw`, so that no two threads add to the same number.
    dw = fused_x.new_zeros(len(cuts) - 1, fused_x.shape[2] + 1, 4 * units, dtype=torch.float32)

    def run(k: int, first: int, last: int) -> None:
        dh_next = gates.new_zeros(last - first, units)
        gradients = dh_end[first:last].numpy(), dc[first:last].numpy(), as_array(dw[k])
        dh_next_array = as_array(dh_next)  # shares the memory of `dh_next`
        for t in reversed(range(n)):
            backward_step(t, first, dh_next_array, *gradients, *arrays)
            torch.mm(gates[t, first:last], saved.w_hidden, out=dh_next)
        # Now `dh_next` is the gradient of `h0` from the products of step 0. `dh_end` is 0, except
        # for empty sequences, whose last state is `h0`. The sum is the whole gradient of `h0`.
        dh_end[first:last] += dh_next

    run_slices(run, cuts)
    return dh_end, dc, dw.sum(0).t()


def _fused(inputs: Tensor) -> Tensor:
    """Return the features of inputs `(..., d)` to fuse: all if d <= MAX_FUSED, else none."""
    features = inputs.shape[-1]
    return inputs[..., : features if features <= MAX_FUSED else 0].contiguous()


@reassociating_inline
def _sigmoid(x):
    return _ONE / (_ONE + exp32(-x))


@reassociating_inline
def _tanh(x):
    return _ONE - _TWO / (_ONE + exp32(_TWO * x))


@reassociating_jit
def forward_step(t, first, last, products, x, w, gates, c, h, lengths):
    """Compute the gates and the next states of a step.

    The gates are `i, f, o = sigmoid` and `g = tanh` of the sums `W_ih x + b + W_hh h`. The states
    are `c' = f c + i g` and `h' = o tanh(c')`. Gates are written to `gates[t]`, and states to
    `c[t + 1]` and `h[t + 1]`. A sequence that has ended keeps its state.

    `products` `(rows, 4H)` is the part of the sums that is not fused: `W_hh h`, or
    `W_hh h + W_ih x`. `h` and `c` are `(N + 1, B, H)`, and `gates` is `(N, B, 4H)`.
    """
    widest_vectors()
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
            sums[k] = w[features, k] + load(products[b - first, k])
        for j in range(features):
            for k in range(4 * units):
                sums[k] += x[t, b, j] * w[j, k]
        # Two loops make each unit a short chain of operations. The processor then computes several
        # units at once. If each unit were one long chain, too few chains would fit into the window
        # of instructions that the processor reorders.
        for k in range(units):
            i = _sigmoid(sums[k])
            f = _sigmoid(sums[units + k])
            g = _tanh(sums[2 * units + k])
            c[t + 1, b, k] = f * c[t, b, k] + i * g
            out[k] = store(i, out[k])
            out[units + k] = store(f, out[k])
            out[2 * units + k] = store(g, out[k])
        for k in range(units):
            o = _sigmoid(sums[3 * units + k])
            h[t + 1, b, k] = store(o * _tanh(c[t + 1, b, k]), h[t, b, k])
            out[3 * units + k] = store(o, out[k])


@reassociating_jit
def backward_step(t, first, dh_next, dh_end, dc, dw, grads, x, gates, c, lengths):
    """Compute the gradient of `forward_step`. Overwrites `gates[t]` with the gradient of the sums.

    The gradient of `h[t + 1]` has three parts:

    - `grads[t]` `(B, H)` from the outputs
    - `dh_next` `(rows, H)` from the products of step t + 1
    - `dh_end` `(rows, H)` from the last state

    On padding, the first two parts are added to `dh_end`. The sequence's last step uses this sum,
    and sets `dh_end` to 0. `dc` `(rows, H)` is the gradient of `c[t + 1]`, and is replaced by the
    gradient of `c[t]`. The gradient of `w` is added to `dw` `(d + 1, 4H)`.
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
