"""Compare CUDA graphs with plain losses, and test without a GPU which graph a batch gets."""

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ptrnet import models, tasks
from ptrnet.data.batches import Batch
from ptrnet.training import cuda_graphs
from ptrnet.training.cuda_graphs import mean_loss

# Operations that read a tensor's value, which a graph cannot record.
FORBIDDEN = {"_local_scalar_dense", "nonzero", "masked_select", "equal"}

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
N = 6


def model_of(name):
    torch.manual_seed(3)
    one_n = {"n": N} if "n" in models.setting_names(name) else {}
    task = tasks.get("hull")
    return models.build(
        name, task.facts.num_features, task.facts.num_specials, hidden_size=16, **one_n
    ).cuda()


def batch_of(seed, steps=5, ragged=True, device="cuda"):
    """Draw random tokens. The padding of inputs and answers has arbitrary values."""
    torch.manual_seed(seed)
    lengths = torch.randint(3, N + 1, (8,)) if ragged else torch.full((8,), N)
    ends = torch.randint(2, steps + 1, (8,))
    targets = torch.randint(1, 4, (8, steps))
    targets[torch.arange(8), ends - 1] = 0
    batch = Batch(torch.rand(8, N, 2), lengths, targets, ends)
    return Batch(*(tensor.to(device) for tensor in batch[:4]))


def with_gradients(outputs, model, scale=1.0):
    loss, right = outputs
    model.zero_grad()
    (scale * loss).backward()
    return loss.detach(), right, [p.grad for p in model.parameters()]


@needs_gpu
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", models.names())
def test_a_replayed_graph_equals_the_plain_computation(name, precision):
    """For several batches of the same shape, with other lengths, weights and loss scales."""
    model = model_of(name)
    graph_losses = cuda_graphs.GraphLosses(model)
    for seed, steps, scale in ((0, 5, 1.0), (1, 5, 1.0), (2, 3, 0.5), (3, 9, 1.0), (4, 5, 2.0)):
        batch = batch_of(seed, steps, ragged="n" not in models.setting_names(name))
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
            loss, right, grads = with_gradients(graph_losses(batch), model, scale)
            plain = with_gradients(mean_loss(model, batch), model, scale)
        torch.testing.assert_close(loss, plain[0], rtol=1e-5, atol=1e-6)
        assert torch.equal(right, plain[1])
        for grad, expected in zip(grads, plain[2], strict=True):
            tolerance = 3e-2 if precision == "bfloat16" else 1e-4
            assert (grad is None) == (expected is None)
            if expected is not None:
                torch.testing.assert_close(
                    grad, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item()
                )
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p), alpha=0.01)
    assert len(graph_losses._graphs) == 2  # 3 and 5 tokens are padded to 8, 9 to 16


@needs_gpu
def test_further_shapes_are_computed_without_a_graph(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MAX_GRAPHS", 1)
    model = model_of("ptr-net")
    graph_losses = cuda_graphs.GraphLosses(model)
    for steps in (5, 17):
        batch = batch_of(1, steps)
        loss, _, _ = with_gradients(graph_losses(batch), model)
        torch.testing.assert_close(loss, mean_loss(model, batch)[0].detach())
    assert len(graph_losses._graphs) == 1


class WrittenGraph(TorchDispatchMode):
    """Replaces a CUDA graph without a GPU: records operations and runs them again.

    They run again as a graph does: on the memory of the tensors that they were recorded with, which
    until then holds nothing of use. What only a GPU does (streams, memory that graphs share, a
    recording that fails) is not shown.
    """

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
        if not shares_memory(outputs, (args, kwargs)) or operation._schema.is_mutable:
            self.calls.append((operation, args, kwargs or {}, outputs))
        return outputs

    def spoil(self):
        """Overwrite everything that was computed during recording."""
        for operation, _, _, outputs in self.calls:
            for tensor in tensors_in(outputs):
                if not operation._schema.is_mutable:
                    tensor.fill_(torch.nan if tensor.is_floating_point() else 1)

    def replay(self):
        """Run all operations again."""
        for operation, args, kwargs, outputs in self.calls:
            results = operation(*args, **kwargs)
            if not operation._schema.is_mutable:
                for tensor, result in zip(tensors_in(outputs), tensors_in(results), strict=True):
                    tensor.copy_(result)


def tensors_in(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def shares_memory(outputs, inputs):
    storages = {tensor.untyped_storage()._cdata for tensor in tensors_in(inputs)}
    return any(tensor.untyped_storage()._cdata in storages for tensor in tensors_in(outputs))


def record_by_writing(run, pool):
    """Replaces `cuda_graphs.record`."""
    run()
    graph = WrittenGraph()
    with graph:
        outputs = run()
    graph.spoil()
    return graph, outputs


@pytest.mark.parametrize("name", models.names())
def test_replayed_losses_equal_plain_ones_without_a_gpu(monkeypatch, name):
    """For other batches of the same shape and other weights, in float64."""
    monkeypatch.setattr(cuda_graphs, "record", record_by_writing)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    torch.manual_seed(3)
    one_n = {"n": N} if "n" in models.setting_names(name) else {}
    model = models.build(name, 2, 1, hidden_size=16, **one_n).double()
    graph_losses = cuda_graphs.GraphLosses(model)
    for seed, steps, scale in ((0, 5, 1.0), (1, 5, 0.5), (2, 9, 1.0), (3, 5, 2.0)):
        batch = batch_of(seed, steps, ragged="n" not in models.setting_names(name), device="cpu")
        batch = batch._replace(inputs=batch.inputs.double())
        actual = with_gradients(graph_losses(batch), model, scale)
        expected = with_gradients(mean_loss(model, batch), model, scale)
        torch.testing.assert_close(actual[0], expected[0])
        assert torch.equal(actual[1], expected[1])
        torch.testing.assert_close(actual[2], expected[2])
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p), alpha=0.01)
    assert len(graph_losses._graphs) == 2


class NoGraph:
    """Replaces a graph without a GPU: takes batches of one shape, and computes the loss."""

    def __init__(self, model, batch, pool):
        self.model, self.shapes = model, [t.shape for t in batch[:4]]
        self.parameters = list(model.parameters())

    def load(self, batch):
        assert [t.shape for t in batch[:4]] == self.shapes
        self.batch = batch

    def replay(self):
        with torch.enable_grad():
            self.loss, self.right = mean_loss(self.model, self.batch)
        self.grads = torch.autograd.grad(self.loss, self.parameters, allow_unused=True)


def test_batches_find_the_graph_of_their_shape(monkeypatch):
    """Batches are padded to that shape. When there are enough graphs, other shapes get none."""
    monkeypatch.setattr(cuda_graphs, "_Graph", NoGraph)
    monkeypatch.setattr(cuda_graphs, "MAX_GRAPHS", 3)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    torch.manual_seed(0)
    model = models.build("ptr-net", 2, 1, hidden_size=16)
    graph_losses = cuda_graphs.GraphLosses(model)
    num_graphs = []
    for steps, training in ((5, True), (8, True), (5, False), (9, True), (17, True), (3, False)):
        model.train(training)
        batch = batch_of(steps, steps, device="cpu")
        loss, right, grads = with_gradients(graph_losses(batch), model, 3.0)
        expected = with_gradients(mean_loss(model, batch), model, 3.0)
        torch.testing.assert_close(loss, expected[0])
        assert torch.equal(right, expected[1])
        torch.testing.assert_close(grads, expected[2])
        num_graphs.append(len(graph_losses._graphs))
    assert num_graphs == [1, 1, 2, 3, 3, 3]


def test_gradients_of_graphs_have_a_limit(monkeypatch):
    monkeypatch.setattr(cuda_graphs, "MAX_GRADIENT_BYTES", 1)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    model, batch = models.build("ptr-net", 2, 1, hidden_size=16), batch_of(1, device="cpu")
    graph_losses = cuda_graphs.GraphLosses(model)
    assert torch.equal(graph_losses(batch)[0], mean_loss(model, cuda_graphs._pad_targets(batch))[0])
    assert not graph_losses._graphs
