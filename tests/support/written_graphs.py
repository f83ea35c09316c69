"""CUDA graphs where there is no GPU: operations that are written down, and run again.

They run again as a graph does: on the memory of the tensors that they were recorded with, which
until then holds nothing of use.
"""

from types import SimpleNamespace

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ptrnet.decoding import search
from ptrnet.kernels import cuda_graph

# They ask for values, what no graph can do.
FORBIDDEN = {"_local_scalar_dense", "nonzero", "masked_select", "equal"}


class WrittenGraph(TorchDispatchMode):
    """The operations of a function."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        if name in FORBIDDEN:
            raise RuntimeError(f"{name} is not permitted when stream is capturing")
        outputs = operation(*args, **(kwargs or {}))
        if name == "lift_fresh" and outputs.dim():
            raise RuntimeError("numbers of Python's would be copied to the GPU")
        if not _shares_memory(outputs, (args, kwargs)) or operation._schema.is_mutable:
            self.calls.append((operation, args, kwargs or {}, outputs))
        return outputs

    def spoil(self):
        """Leaves nothing of what was computed while it was written down."""
        for operation, _, _, outputs in self.calls:
            for tensor in _tensors(outputs):
                if not operation._schema.is_mutable:
                    tensor.fill_(torch.nan if tensor.is_floating_point() else 1)

    def replay(self):
        """Runs all of it again."""
        for operation, args, kwargs, outputs in self.calls:
            results = operation(*args, **kwargs)
            if not operation._schema.is_mutable:
                for tensor, result in zip(_tensors(outputs), _tensors(results), strict=True):
                    tensor.copy_(result)


def record(run, pool):
    """As `cuda_graph.record`."""
    graph = WrittenGraph()
    with graph:
        outputs = run()
    graph.spoil()
    return graph, outputs


def use_written_graphs(monkeypatch):
    """Searches on the CPU are recorded, as those on a GPU are."""
    monkeypatch.setattr(search, "can_record", lambda *tensors: True)
    monkeypatch.setattr(cuda_graph, "new_pool", lambda: "pool")
    monkeypatch.setattr(cuda_graph, "warm_up", lambda run: run())
    monkeypatch.setattr(cuda_graph, "record", record)
    stream = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)


def _tensors(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _shares_memory(outputs, inputs):
    storages = {tensor.untyped_storage()._cdata for tensor in _tensors(inputs)}
    return any(tensor.untyped_storage()._cdata in storages for tensor in _tensors(outputs))
