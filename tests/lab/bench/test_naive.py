"""The naive Ptr-Net computes the same results as the library's, so ratios compare equal work."""

import torch

from ptrnet.data.streams import FreshStream
from ptrnet.decoding import Greedy
from ptrnet.training.losses import losses
from ptrnet_lab.bench.naive import NaivePtrNet


def test_log_probs_loss_and_gradients_equal_those_of_the_library(small):
    for task, settings in (("hull", {}), ("delaunay", {"separator": True}), ("sort", {})):
        solver = small(task, scale=8.0, **settings)
        model, naive = solver.model, NaivePtrNet.from_ptr_net(solver.model)
        batch = FreshStream(solver.task, [9], 5, seed=0).batch(0)
        with torch.no_grad():
            expected = model.log_probs(*batch[:4])
            log_probs = naive.log_probs(batch.inputs, batch.targets)
        for row, end in enumerate(batch.target_lengths):
            torch.testing.assert_close(
                log_probs[row, :end], expected[row, :end], atol=1e-4, rtol=1e-4
            )

        naive.loss(batch).backward()
        loss = losses(model, batch)[0].mean()
        loss.backward()
        torch.testing.assert_close(naive.loss(batch), loss, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(naive.v.weight.grad[0], model.v.grad, atol=1e-4, rtol=1e-3)


def test_greedy_answers_equal_those_of_the_library(small):
    solver = small("hull", scale=8.0)
    inputs = torch.rand(20, 9, 2, generator=torch.Generator().manual_seed(0))
    lengths, longest = torch.full((20,), 9), torch.full((20,), 7)
    expected = Greedy().decode(solver.model, inputs, lengths, longest).tokens[:, 0]
    tokens = NaivePtrNet.from_ptr_net(solver.model).greedy(inputs, 7)
    assert tokens.shape[1] <= 8 and len(expected.unique()) > 3
    width = min(tokens.shape[1], 7)  # the library's search ends at END
    assert torch.equal(tokens[:, :width], expected[:, :width])
