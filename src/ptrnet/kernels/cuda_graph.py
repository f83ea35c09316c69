"""CUDA graphs: what a function launches on a GPU, recorded once and then launched as one.

A graph reads and writes the memory of the tensors that it was recorded with. Nothing runs while it
is recorded, so the function may ask for no value.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from ptrnet.kernels.eager import is_eager

T = TypeVar("T")


def can_record(*tensors: Tensor) -> bool:
    """Whether a computation of these tensors may be recorded: they are on a GPU, all of it runs."""
    on_gpu = all(tensor.is_cuda for tensor in tensors)
    return on_gpu and is_eager(*tensors) and not torch.cuda.is_current_stream_capturing()


def new_pool() -> Any:
    """Memory for graphs that are replayed one after another, each to its end."""
    return torch.cuda.graph_pool_handle()


def warm_up(run: Callable[[], object]) -> None:
    """Runs a function aside, so that all its kernels are compiled and chosen before a recording."""
    stream, current = torch.cuda.Stream(), torch.cuda.current_stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        run()
    current.wait_stream(stream)


def record(run: Callable[[], T], pool: Any) -> tuple[torch.cuda.CUDAGraph, T]:
    """The graph of a function, and what the function returned: the tensors that a replay fills.

    Raises:
        RuntimeError: the function asked for a value, or for what cannot be recorded.
    """
    graph = torch.cuda.CUDAGraph()
    stream = _recording_stream(torch.cuda.current_device())
    autocast, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    with (
        # Other threads may use the GPU's driver meanwhile.
        torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"),
        # Without the cache: the casts in it are of the weights of now.
        torch.autocast("cuda", dtype, autocast, cache_enabled=False),
    ):
        outputs = run()
    return graph, outputs


@cache
def _recording_stream(device: int) -> torch.cuda.Stream:
    """One for each GPU: products have memory of their own on every stream, which they keep."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
