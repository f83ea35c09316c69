"""The LSTM layer on the CPU, forward and backward, for float32 and bfloat16 products.

What makes it faster than a loop of cells, and than oneDNN's layer under autocast:

- the batch is cut into a slice for each core, and each slice runs through time on its own
  thread: no two threads wait for each other at every step, and the recurrent weights stay in
  the core's cache;
- the gates are one compiled pass over a step, not a dozen of PyTorch's operations;
- weights are converted to bfloat16 and packed once, not at every step, and sums stay in float32
  (`products.py`, where the processor has the instruction); coordinates are not converted at all:
  `W_ih x` is computed in float32, where 8 bits would blur the points;
- the recurrent weights' gradients are one product over all steps.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from ptrnet.kernels.lstm import products
from ptrnet.kernels.lstm.gates import backward_step, forward_step
from ptrnet.kernels.lstm.weights import Weights
from ptrnet.kernels.numerics import array
from ptrnet.kernels.threads import even, over_slices

# Rows of the batch below which a second thread does not pay.
ROWS = 16
# Features up to which `W_ih x` is summed with the gates: for so few no product is worth it.
NARROW = 16


def lstm(
    inputs: Tensor, lengths: Tensor, state: tuple[Tensor, Tensor], weights: Weights
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """As `ptrnet.kernels.lstm`; float32 tensors on the CPU."""
    _check(inputs, state, weights)
    low = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    dtype = torch.bfloat16 if low else torch.float32
    h0, c0 = (s.float() for s in state)
    if torch.is_grad_enabled():
        outputs, h, c = _Layer.apply(inputs, lengths, h0, c0, *weights, dtype)
    else:
        run = _read(inputs, lengths, h0, c0, weights, dtype, kept=1)
        outputs, h, c = run.outputs()
    return outputs.transpose(0, 1), (h, c)


def _check(inputs: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> None:
    """Refuses shapes that do not fit: the compiled code would read what is not there."""
    (batch, units), features = state[0].shape, inputs.shape[2]
    found = [tuple(tensor.shape) for tensor in (state[1], *weights)]
    expected = [(batch, units), (4 * units, features), (4 * units, units), *[(4 * units,)] * 2]
    if found != expected or len(inputs) != batch:
        raise ValueError(
            f"lstm: expected, with states {(batch, units)} and inputs {tuple(inputs.shape)}, a "
            f"cell state and weights of {expected}, got {found}"
        )


class _Run(NamedTuple):
    """What reading a batch has computed, time first."""

    x: Tensor  # (T, B, d) inputs, zero on padding
    low: Tensor  # (4H, H) recurrent weights as they were multiplied
    gates: Tensor  # (T, B, 4H), or of the last step only
    c: Tensor  # (T + 1, B, H) cells, or of the last two steps only
    h: Tensor  # (T + 1, B, H) states

    def outputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs `(T, B, H)` and the last states `(B, H)`."""
        steps = len(self.h) - 1
        last = self.h[steps].to(torch.float32, copy=True)  # not a view that keeps all of them
        return self.h[1:], last, self.c[steps % len(self.c)].clone()


def _read(
    inputs: Tensor,
    lengths: Tensor,
    h0: Tensor,
    c0: Tensor,
    weights: Weights,
    dtype: torch.dtype,
    kept: int,
) -> _Run:
    """Reads a batch with products of `dtype`; `kept` steps' gates and cells stay: all, or one."""
    w_input, w_hidden, b_input, b_hidden = (w.detach() for w in weights)
    batch, steps, _ = inputs.shape
    units = h0.shape[1]
    # What stands in padding reaches no sum, not even as zero times NaN. Time first: a step is
    # one block.
    padding = torch.arange(steps) >= lengths[:, None]
    x = inputs.detach().masked_fill(padding[..., None], 0).transpose(0, 1).contiguous()
    low = w_hidden.to(dtype)
    h = torch.empty(steps + 1, batch, units, dtype=dtype)
    c = torch.empty(kept + 1, batch, units, dtype=torch.float32)
    gates = torch.empty(kept, batch, 4 * units, dtype=dtype)
    h[0], c[0] = h0.detach(), c0.detach()
    few = _few(x)
    wide = None if few.shape[2] else (x.to(dtype), w_input.to(dtype))
    # Rows of W_ih transposed, the biases' sum last.
    fed = torch.cat([_few(w_input).t(), (b_input + b_hidden)[None]])
    arrays = (*(array(part) for part in (few, fed, gates, c, h)), lengths.numpy())

    with torch.autocast("cpu", enabled=False):
        sums = products.sums(h, gates, low, wide)

        def run(_: int, first: int, last: int) -> None:
            for t, found in enumerate(sums(first, last)):
                forward_step(t, first, last, found, *arrays)

        over_slices(run, even(batch, batch // ROWS))
    return _Run(x, low, gates, c, h)


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
        weights = Weights(w_input, w_hidden, b_input, b_hidden)
        run = _read(inputs, lengths, h0, c0, weights, dtype, kept=inputs.shape[1])
        ctx.save_for_backward(run.x, lengths, w_input, run.low, run.c, run.h)
        ctx.gates = run.gates  # type: ignore[attr-defined]
        return run.outputs()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: FunctionCtx, grad_outputs: Tensor, grad_h: Tensor, grad_c: Tensor
    ) -> tuple[Tensor | None, ...]:
        x, lengths, w_input, low, c, h = ctx.saved_tensors  # type: ignore[attr-defined]
        # The largest buffer is overwritten by its own gradient, so there is one backward pass.
        gates, ctx.gates = ctx.gates, None  # type: ignore[attr-defined]
        if gates is None:
            raise RuntimeError("the LSTM kernel's backward pass runs once for each forward pass")
        steps, batch, units = grad_outputs.shape
        dh = grad_h.clone(memory_format=torch.contiguous_format)  # what padding hands back
        dc = grad_c.clone(memory_format=torch.contiguous_format)
        grads = array(grad_outputs.to(gates.dtype))
        few = _few(x)
        arrays = (grads, array(few), array(gates), array(c), lengths.numpy())
        cuts = even(batch, batch // ROWS)
        dw = torch.zeros(len(cuts) - 1, few.shape[2] + 1, 4 * units, dtype=torch.float32)

        with torch.autocast("cpu", enabled=False):
            back = products.back(gates, low)

            def run(k: int, first: int, last: int) -> None:
                found, multiply = back(first, last)
                own = array(found), dh[first:last].numpy(), dc[first:last].numpy(), array(dw[k])
                for t in reversed(range(steps)):
                    backward_step(t, first, *own, *arrays)
                    multiply(t)
                dh[first:last] += found[:, :units]

            over_slices(run, cuts)
            fed = dw.sum(0).t()
            flat = gates.flatten(0, 1)
            d_hidden = (flat.t() @ h[:-1].flatten(0, 1)).float()
            d_input, bias = fed[:, :-1], fed[:, -1]
            if not few.shape[2]:
                d_input = (flat.t() @ x.flatten(0, 1).to(gates.dtype)).float()
            dx = None
            if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
                dx = (flat @ w_input.to(gates.dtype)).float().view_as(x).transpose(0, 1)
        return dx, None, dh, dc, d_input, d_hidden, bias, bias, None


def _few(rows: Tensor) -> Tensor:
    """The features whose products with the weights are summed with the gates: all, or none."""
    return rows[..., : rows.shape[-1] if rows.shape[-1] <= NARROW else 0].contiguous()
