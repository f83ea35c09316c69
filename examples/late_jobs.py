"""An order over what are no points: jobs on one machine, so that little is late.

    python examples/late_jobs.py [STEPS [EXAMPLES]]

A job has a time that it takes, a day that it is due, and a cost for each day that it is late. The
examples are the best of all orders. A second network is told no order, only what its own orders
cost. The plain baselines go by the due day, and by cost over time.
"""

import sys
from itertools import permutations

import numpy as np

import ptrnet

JOBS = 6
ORDERS = np.array(list(permutations(range(JOBS))))


def cost(jobs, orders):
    """What orders `(..., JOBS)` of one list of jobs cost for being late."""
    time, due, weight = np.moveaxis(jobs[orders], -1, 0)
    return (weight * np.maximum(0, time.cumsum(-1) - due)).sum(-1)


def best(jobs):
    """Of the orders that cost least, the one that starts with the earliest due days."""
    by_due = np.argsort(jobs[:, 1])
    return by_due[ORDERS[np.argmin(cost(jobs[by_due], ORDERS))]]


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
count = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
rng = np.random.default_rng(0)
time = rng.integers(1, 20, (count + 1000, JOBS))
due = rng.uniform(0.1, 0.9, time.shape) * time.sum(1, keepdims=True)
weight = rng.integers(1, 10, time.shape)
examples = [(jobs, best(jobs)) for jobs in np.stack([time, due, weight], -1)]
train, test = examples[:-1000], examples[-1000:]

model = ptrnet.fit(train, "permutation", augment=True, steps=steps, hidden_size=128)
learner = ptrnet.fit(
    [jobs for jobs, _ in train], "permutation", cost=cost, steps=steps, hidden_size=128
)
orders = {
    "as they come": [np.arange(JOBS) for _ in test],
    "by due day": [np.argsort(jobs[:, 1]) for jobs, _ in test],
    "by cost over time": [np.argsort(-jobs[:, 2] / jobs[:, 0]) for jobs, _ in test],
    "pointer network": model.solve([jobs for jobs, _ in test], ptrnet.Beam(8)),
    "from costs alone": learner.solve([jobs for jobs, _ in test], ptrnet.Beam(8)),
    "the best order": [order for _, order in test],
}
least = np.mean([cost(jobs, order) for jobs, order in test])
print(f"the mean cost of {len(test)} lists of {JOBS} jobs that are new, the least being 1")
for name, answers in orders.items():
    costs = [cost(jobs, order) for (jobs, _), order in zip(test, answers, strict=True)]
    print(f"{name:18} {np.mean(costs) / least:6.3f}")
