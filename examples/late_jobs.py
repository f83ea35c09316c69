"""Order the jobs of one machine so that the total cost of lateness is small.

    python examples/late_jobs.py [STEPS [EXAMPLES]]

A job has a duration, a due day, and a cost for each day that it is late. The first network learns
from examples with the best orders. The second network sees no orders, only the costs of the orders
that it tried. The baselines sort by due day, and by cost divided by duration.
"""

import sys
from itertools import permutations

import numpy as np

import ptrnet

JOBS = 6
ORDERS = np.array(list(permutations(range(JOBS))))


def cost(jobs, orders):
    """Return the costs of orders `(..., JOBS)` of one list of jobs."""
    time, due, weight = np.moveaxis(jobs[orders], -1, 0)
    return (weight * np.maximum(0, time.cumsum(-1) - due)).sum(-1)


def best(jobs):
    """Return the order with the least cost; of several, the one with early due days first."""
    by_due = np.argsort(jobs[:, 1])
    return by_due[ORDERS[np.argmin(cost(jobs[by_due], ORDERS))]]


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
count = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
rng = np.random.default_rng(0)
time = rng.integers(1, 20, (count + count // 20, JOBS))
due = rng.uniform(0.1, 0.9, time.shape) * time.sum(1, keepdims=True)
weight = rng.integers(1, 10, time.shape)
examples = [(jobs, best(jobs)) for jobs in np.stack([time, due, weight], -1)]
train, test = examples[:count], examples[count:]

model = ptrnet.fit(train, "permutation", augment=True, steps=steps, hidden_size=128)
learner = ptrnet.fit(
    [jobs for jobs, _ in train], "permutation", cost=cost, steps=steps, hidden_size=128
)
orders = {
    "as given": [np.arange(JOBS) for _ in test],
    "by due day": [np.argsort(jobs[:, 1]) for jobs, _ in test],
    "by cost over time": [np.argsort(-jobs[:, 2] / jobs[:, 0]) for jobs, _ in test],
    "pointer network": model.solve([jobs for jobs, _ in test], ptrnet.Beam(8)),
    "from costs alone": learner.solve([jobs for jobs, _ in test], ptrnet.Beam(8)),
    "the best order": [order for _, order in test],
}
least = np.mean([cost(jobs, order) for jobs, order in test])
print(f"mean cost of {len(test)} new lists of {JOBS} jobs, relative to the best orders")
for name, answers in orders.items():
    costs = [cost(jobs, order) for (jobs, _), order in zip(test, answers, strict=True)]
    print(f"{name:18} {np.mean(costs) / least:6.3f}")
