"""What the network sees of a job shop."""

import numpy as np

from ptrnet import tasks


def test_features_do_not_grow_with_the_number_of_jobs():
    """Else a network that learned from few jobs fails for many."""
    task = tasks.get("job-shop", machines=10)
    largest = {}
    for jobs in (10, 100):
        state = task.start(task.sample(np.random.default_rng(0), 2, jobs))
        seen = []
        for step in range(jobs * 9):  # until a tenth of the operations is left
            if step % 10 == 0:
                parts = task.features(state)
                seen.append([np.abs(part).reshape(-1, part.shape[-1]).max(0) for part in parts])
            state = task.step(state, task.allowed(state).argmax(1))
        largest[jobs] = [np.max(part, axis=0) for part in zip(*seen, strict=True)]
    for few, many in zip(largest[10], largest[100], strict=True):
        assert (many < np.maximum(2 * few, 2.5)).all()
