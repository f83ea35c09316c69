"""Losses of a training step as a CUDA graph: recorded once for each batch shape, then replayed.

A step launches several hundred small kernels. The CPU takes several times longer to launch the
kernels than the GPU takes to run them. A graph launches all kernels of a step at once.

A replay reads and writes the same memory as the recording. Kernels do not run during the recording,
so the code of the model must not read the value of a tensor.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from ptrnet.data.batches import Batch
from ptrnet.models.base import PointerModel
from ptrnet.training.losses import losses

T = TypeVar("T")

# Limits on the memory of graphs. Once a limit is reached, batches of new shapes use no graph.
MAX_GRAPHS, MAX_GRADIENT_BYTES = 128, 2**30
TOKENS = 8  # answers are padded to a multiple of this number, so that shapes recur


class GraphLosses:
    """Computes mean `losses` and gradients on a GPU, with a CUDA graph for each batch shape.

    The graphs hold the addresses of the parameters, so the parameters must not move in memory.
    Calls with and without autocast have separate graphs. All calls with autocast must use the same
    autocast dtype.
    """

    def __init__(self, model: PointerModel) -> None:
        self._model = model
        self._graphs: dict[tuple[object, ...], _Graph] = {}
        gradient_bytes = sum(p.nbytes for p in model.parameters())
        self._max_graphs = min(MAX_GRAPHS, MAX_GRADIENT_BYTES // gradient_bytes)
        self._pool = torch.cuda.graph_pool_handle()  # safe to share: replays do not overlap

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the mean of the `losses`, and which answers `(B,)` are right.

        Call `backward` on the mean before you call this object again. Each call overwrites the
        gradients of earlier calls.
        """
        self._model.check_lengths(batch.lengths)
        if batch.grades is not None or batch.weights is not None:  # not tried on a GPU
            return mean_loss(self._model, batch)
        batch = _pad_targets(batch)
        autocast = torch.is_autocast_enabled("cuda")
        key = (batch.inputs.shape, batch.targets.shape, self._model.training, autocast)
        if key not in self._graphs:
            if len(self._graphs) >= self._max_graphs:
                return mean_loss(self._model, batch)
            self._graphs[key] = _Graph(self._model, batch, self._pool)
        graph = self._graphs[key]
        graph.load(batch)
        outputs: tuple[Tensor, Tensor] = _Replay.apply(graph, *graph.parameters)  # type: ignore[no-untyped-call]
        return outputs


def mean_loss(model: PointerModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the mean of the `losses` of a batch, and which answers `(B,)` are right."""
    of_each, right = losses(model, batch)
    return of_each.mean(), right


def _pad_targets(batch: Batch) -> Batch:
    """Pad targets to a multiple of TOKENS. `losses` masks all tokens after an END."""
    targets = batch.targets
    return batch._replace(targets=nn.functional.pad(targets, (0, -targets.shape[1] % TOKENS)))


class _Graph:
    """Recorded forward and backward pass for batches of one shape."""

    def __init__(self, model: PointerModel, batch: Batch, pool: Any) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self._batch = batch.map(Tensor.clone)
        with torch.enable_grad():
            self._graph, outputs = record(lambda: self._run(model), pool)
        self.loss, self.right, self.grads = outputs

    def load(self, batch: Batch) -> None:
        """Copy a batch into the tensors that the graph reads."""
        for recorded, tensor in zip(self._batch[:4], batch[:4], strict=True):
            recorded.copy_(tensor)

    def replay(self) -> None:
        """Compute the `loss`, `right` and `grads` of the loaded batch, in place."""
        self._graph.replay()

    def _run(self, model: PointerModel) -> tuple[Tensor, Tensor, tuple[Tensor | None, ...]]:
        loss, right = mean_loss(model, self._batch)
        grads = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        return loss.detach(), right, grads


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, graph: _Graph, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        graph.replay()
        ctx.grads = graph.grads  # type: ignore[attr-defined]
        right = graph.right.clone()
        ctx.mark_non_differentiable(right)  # type: ignore[attr-defined]
        return graph.loss.clone(), right

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grads = ctx.grads  # type: ignore[attr-defined]
        scaled = iter(torch._foreach_mul([g for g in grads if g is not None], grad))
        return None, *(None if g is None else next(scaled) for g in grads)


def record(run: Callable[[], T], pool: Any) -> tuple[torch.cuda.CUDAGraph, T]:
    """Record a function as a CUDA graph. Return the graph and the tensors that a replay fills.

    We call the function twice before recording, so that its kernels are already compiled and
    chosen. Graphs whose replays never overlap may share a memory pool. Raises RuntimeError if the
    function read a tensor's value, or did something else that CUDA graphs cannot record.
    """
    graph = torch.cuda.CUDAGraph()
    autocast, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    # Disable autocast's cache. The weights change between replays, so each replay of the graph must
    # cast them again.
    with torch.autocast("cuda", dtype, autocast, cache_enabled=False):
        warmup = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        warmup.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warmup):
            for _ in range(2):
                run()
        torch.cuda.current_stream().wait_stream(warmup)
        # "thread_local": the thread that makes examples may call CUDA during the recording.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            return graph, run()
