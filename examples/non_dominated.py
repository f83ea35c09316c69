"""Find a subset: the vectors of five numbers that no other vector beats in all five.

    python examples/non_dominated.py [STEPS [EXAMPLES]]

The vectors could be grades of offers, in five respects. The baseline chooses all vectors whose sum
is at most a margin below the largest sum. The margin is fitted on the same examples.
"""

import sys

import numpy as np

import ptrnet


def offers(rng):
    """Draw 5 to 12 vectors. The five numbers of a vector vary around its own random mean."""
    n = rng.integers(5, 13)
    return rng.normal(size=(n, 1)) + rng.normal(size=(n, 5))


def non_dominated(x):
    """Return the indices of the vectors that are not beaten, the largest sum first."""
    beaten = (x[None] >= x[:, None]).all(2) & (x[None] > x[:, None]).any(2)
    remaining = np.flatnonzero(~beaten.any(1))
    return remaining[np.argsort(-x[remaining].sum(1))]


def near_the_best(x, margin):
    """Return the indices that the baseline chooses."""
    sums = x.sum(1)
    return np.flatnonzero(sums >= sums.max() - margin)


def mean_f1(answers, known):
    """Return the mean F1 of sets of indices: 1 if all sets are equal."""
    pairs = zip(answers, known, strict=True)
    return np.mean([2 * len(np.intersect1d(a, o)) / (len(a) + len(o)) for a, (_, o) in pairs])


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
count = int(sys.argv[2]) if len(sys.argv) > 2 else 19_000
rng = np.random.default_rng(0)
examples = [(x, non_dominated(x)) for x in (offers(rng) for _ in range(count + count // 19))]
train, test = examples[:count], examples[count:]

margins = np.linspace(0, 15, 61)
scores = [mean_f1([near_the_best(x, m) for x, _ in train[:3000]], train[:3000]) for m in margins]
margin = margins[np.argmax(scores)]
baseline = [near_the_best(x, margin) for x, _ in test]

model = ptrnet.fit(train, "subset", augment=True, steps=steps, hidden_size=128)
network = model.solve([x for x, _ in test])

print(f"{len(test)} new sets, with {np.mean([len(x) for x, _ in test]):.1f} vectors on average")
for name, answers in (("sums near the largest", baseline), ("pointer network", network)):
    same = np.mean([set(a) == set(o) for a, (_, o) in zip(answers, test, strict=True)])
    print(f"{name:22} exactly right {same:6.1%}   F1 {mean_f1(answers, test):.3f}")
