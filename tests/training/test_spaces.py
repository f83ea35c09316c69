"""Fitting `Spaces`: the maximum, what examples hold out, and what they teach."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax

from ptrnet import tasks
from ptrnet.training import spaces as fitting
from ptrnet.training.sets import Sets
from ptrnet.types import Dataset, Example

TASK = {
    kind: tasks.get("custom", kind=kind, center=(0.0,) * 3, spread=(1.0,) * 3)
    for kind in ("choice", "grades")
}
MOST = 400


def examples(count, kind="choice", seed=0, utility=None, sizes=(2, 6), group=1):
    """Sets of random elements with 3 features, by default of a linear utility."""
    rng = np.random.default_rng(seed)
    utility = utility or (lambda x: x @ [1.5, -1.0, 0.0])
    made = []
    for k in range(count):
        x = rng.normal(size=(int(rng.integers(*sizes)), 3))
        noisy = utility(x) + rng.gumbel(size=len(x))
        if kind == "choice":
            made.append(Example(x, np.array([noisy.argmax()]), group=k // group))
        else:
            grades = np.clip(np.round(noisy), 0, 4)
            order = np.argsort(-grades, kind="stable")
            made.append(Example(x, order, grades=grades, group=k // group))
    return made


def fit(made, kind="choice"):
    return fitting.fit_spaces(Dataset.of(made), TASK[kind], MOST)


def scores(spaces, x):
    x = torch.from_numpy(np.asarray(x)).float()[None]
    with torch.no_grad():
        return spaces(x, torch.ones(x.shape[:2], dtype=torch.bool))[0].double().numpy()


def mean_log_likelihood(spaces, made):
    return np.mean([log_softmax(scores(spaces, e.inputs))[e.outputs[0]] for e in made])


@pytest.mark.parametrize("kind", ["choice", "grades"])
def test_newton_finds_the_maximum_that_scipy_finds(kind):
    sets = Sets.of(Dataset.of(examples(40, kind)), TASK[kind])
    sets = sets._replace(weights=np.random.default_rng(1).uniform(0.5, 2, 40))
    x = sets.features.astype(float)
    learns = np.column_stack([np.ones(40), np.arange(40) % 3 != 0])
    start = np.array([[0.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
    found = fitting.newton(x, sets, learns, np.array([2.0, 0.3]), start)
    parts = np.split(np.arange(len(x)), np.cumsum(sets.sizes)[:-1])
    for m, strength in enumerate((2.0, 0.3)):

        def loss(w, m=m, strength=strength):
            fits = [
                learns[k, m] * sets.weights[k] * sets.targets[part] @ log_softmax(x[part] @ w)
                for k, part in enumerate(parts)
            ]
            return strength / 2 * np.sum((w - start[:, m]) ** 2) - sum(fits)

        best = minimize(loss, np.zeros(3), options={"gtol": 1e-8}).x
        np.testing.assert_allclose(found[:, m], best, atol=1e-5)


def test_held_out_scores_are_those_of_a_fit_without_the_persons_fold():
    made = examples(30, group=2)
    sets = Sets.of(Dataset.of(made), TASK["choice"])
    _, z, p = fitting._standardised(sets)
    folds, num_groups = fitting._folds(sets, z, p, np.array([e.group for e in made]))
    assert num_groups == 15 and len({*folds.tolist()}) == fitting.FOLDS
    assert (folds[::2] == folds[1::2]).all()
    space = fitting._linear(z, fitting.SHIPPED)
    _, held_out = fitting._members(space, sets, folds)
    for fold in range(fitting.FOLDS):
        kept = np.repeat(folds != fold, sets.sizes)
        rest = Sets(
            sets.features[kept],
            sets.sizes[folds != fold],
            sets.targets[kept],
            sets.weights[folds != fold],
        )
        every = np.ones((len(rest.sizes), len(space.strengths)))
        start = np.zeros((space.x.shape[1], len(space.strengths)))
        weights = fitting.newton(space.x[kept], rest, every, space.strengths, start)
        np.testing.assert_allclose(held_out[~kept], space.x[~kept] @ weights, atol=1e-6)


@pytest.mark.parametrize("kind", ["choice", "grades"])
@pytest.mark.parametrize("group", [1, 4])
def test_no_order_changes_an_answer(kind, group):
    """Not that of examples, of their elements, or of features."""
    made = examples(25, kind, group=group)
    x = np.random.default_rng(9).normal(size=(6, 3))
    expected = scores(fit(made, kind), x)
    rng = np.random.default_rng(2)
    features, others = rng.permutation(3), []
    for k in rng.permutation(len(made)):
        example = made[k]
        order = rng.permutation(len(example.inputs))
        outputs = np.argsort(order)[example.outputs]
        grades = None if example.grades is None else example.grades[order]
        inputs = example.inputs[order][:, features]
        others.append(Example(inputs, outputs, grades=grades, group=example.group))
    np.testing.assert_allclose(scores(fit(others, kind), x[:, features]), expected, atol=1e-4)


def test_units_change_nothing():
    made = examples(25)
    factor, shift = np.array([100.0, 0.01, 7.0]), np.array([5.0, 0.0, -3.0])
    scaled = [Example(e.inputs * factor + shift, e.outputs, group=e.group) for e in made]
    x = np.random.default_rng(9).normal(size=(6, 3))
    expected = scores(fit(made), x)
    np.testing.assert_allclose(scores(fit(scaled), x * factor + shift), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "utility", "lost"),
    [
        ("linear", lambda x: x @ [1.5, -1.0, 0.0], 0.03),
        ("product", lambda x: 2 * x[:, 0] * x[:, 1], 0.12),
        ("place", lambda x: 3.0 * (x[:, 0] == x[:, 0].max()), 0.06),
        ("nothing", lambda x: x @ [0.0, 0.0, 0.0], 0.02),
    ],
)
def test_200_examples_teach_most_of_what_there_is(name, utility, lost):
    """The log-likelihood of new choices is near that of the true utilities."""
    new = examples(1000, seed=5, utility=utility, sizes=(4, 5))
    truth = np.mean([log_softmax(utility(e.inputs))[e.outputs[0]] for e in new])
    found = mean_log_likelihood(fit(examples(200, utility=utility, sizes=(4, 5))), new)
    assert found > truth - lost
    if name != "nothing":
        assert truth - lost > np.log(1 / 4) + 0.1


def test_choices_of_few_persons_are_believed_less():
    """Twenty choices each of five persons, who differ, say less than a hundred persons' choices."""
    rng = np.random.default_rng(3)
    tastes = rng.normal(0, 1.5, (65, 3))

    def made(persons):
        of = []
        for person in persons:
            for _ in range(20):
                x = rng.normal(size=(4, 3))
                utility = x @ tastes[person] + rng.gumbel(size=4)
                of.append(Example(x, np.array([utility.argmax()]), group=int(person)))
        return of

    learned, new = made(range(5)), made(range(5, 65))
    known = mean_log_likelihood(fit(learned), new)
    alone = [Example(e.inputs, e.outputs, group=k) for k, e in enumerate(learned)]
    assert known > mean_log_likelihood(fit(alone), new) + 0.02


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_handful_of_examples_is_enough_to_answer(count):
    found = scores(fit(examples(count)), np.eye(3))
    assert np.isfinite(found).all()


def test_sets_of_one_element_and_features_that_never_differ_teach_nothing():
    made = [Example(np.ones((1, 3)), np.array([0]), group=k) for k in range(5)]
    assert not scores(fit(made), np.eye(3)).any()


def test_an_example_of_weight_0_teaches_nothing():
    made = examples(25)
    extra = [Example(e.inputs, e.outputs, group=100 + k, weight=0.0) for k, e in enumerate(made)]
    sets = Sets.of(Dataset.of([*made, *extra]), TASK["choice"])
    alone = Sets.of(Dataset.of(made), TASK["choice"])
    start, strengths = np.zeros((3, 1)), np.ones(1)
    found, expected = (
        fitting.newton(s.features.astype(float), s, np.ones((len(s.sizes), 1)), strengths, start)
        for s in (sets, alone)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_at_most_as_many_rows_as_asked_are_kept():
    spaces = fitting.fit_spaces(Dataset.of(examples(100)), TASK["choice"], 50)
    assert len(spaces) == 50


def test_memory_does_not_grow_with_the_sets(monkeypatch):
    """A long set does not pad the others, and few elements at a time have kernels."""
    made = [*examples(60), *examples(1, sizes=(300, 301))]
    numbers = []

    def recorded(function):
        def record(x, *args, **options):
            numbers.append(x.numel())
            return function(x, *args, **options)

        return record

    for name in ("kernel", "places"):
        monkeypatch.setattr(fitting, name, recorded(getattr(fitting, name)))
    at_once = fit(made)
    monkeypatch.setattr(fitting, "KERNELS_AT_ONCE", 7)
    numbers.clear()
    in_parts = fit(made)
    assert max(numbers) == MOST * 3 < sum(len(e.inputs) for e in made) * 3
    x = made[0].inputs
    np.testing.assert_allclose(scores(in_parts, x), scores(at_once, x), atol=1e-6)
