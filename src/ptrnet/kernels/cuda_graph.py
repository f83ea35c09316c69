"""CUDA graphs: what a function launches on a GPU, recorded once and then launched as one.

A graph reads and writes the memory of the tensors that it was recorded with. Nothing runs while it
is recorded, so the function may ask for no value.
"""

import os
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import torch
from torch import Tensor

from ptrnet.kernels.eager import is_eager

T = TypeVar("T")

SWITCH = "PTRNET_CUDA_GRAPHS"  # of the environment: 0 switches the graphs of searches off
_recording = Lock()  # PyTorch records in one thread at a time


def can_record(*tensors: Tensor) -> bool:
    """Whether a computation of these tensors may be recorded: they are on a GPU, all of it runs."""
    on_gpu = all(tensor.is_cuda for tensor in tensors) and os.environ.get(SWITCH) != "0"
    return on_gpu and is_eager(*tensors) and not torch.cuda.is_current_stream_capturing()


def new_pool() -> Any:
    """Memory for graphs that are replayed one after another, each to its end."""
    return torch.cuda.graph_pool_handle()


def warm_up(run: Callable[[], object]) -> None:
    """Runs a function where it will be recorded: then all its kernels are compiled and chosen."""
    stream, current = _recording_stream(torch.cuda.current_device()), torch.cuda.current_stream()
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
        _recording,
        # A recording that fails would leave its own stream as the thread's.
        torch.cuda.stream(torch.cuda.current_stream()),
        # Without the cache: the casts in it are of the weights of now.
        torch.autocast("cuda", dtype, autocast, cache_enabled=False),
        # Other threads may use the GPU's driver meanwhile.
        torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"),
    ):
        outputs = run()
    return graph, outputs


@cache
def _recording_stream(device: int) -> torch.cuda.Stream:
    """One for each GPU: products have memory of their own on every stream, which they keep."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
