"""Fresh examples: without end, or a number of them that come once in every epoch."""

import torch

from ptrnet import tasks
from ptrnet.data.streams import ExampleStream


def test_every_batch_comes_once_in_an_epoch():
    task = tasks.get("sort")
    endless = ExampleStream(task, [3, 4], 8, seed=2)
    epochs = ExampleStream(task, [3, 4], 8, seed=2, num_batches=6)
    first = {endless.batch(k).inputs.numpy().tobytes(): k for k in range(6)}
    orders = [
        [first[epochs.batch(6 * epoch + k).inputs.numpy().tobytes()] for k in range(6)]
        for epoch in range(4)
    ]
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    assert torch.equal(epochs.batch(20).inputs, epochs.batch(20).inputs)
