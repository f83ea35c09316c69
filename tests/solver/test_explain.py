import numpy as np
import pytest

from ptrnet.errors import InputError
from ptrnet.solver import Solver
from ptrnet.solver.explain import field_columns
from ptrnet.tasks.custom import Custom
from ptrnet.types import Example
from tests.support.plackett_luce import PlackettLuce, plackett_luce
from tests.support.small_models import small_solver


def choices(count, n=4, seed=0):
    """Return sets whose chosen element has the largest first feature; the second one is noise."""
    rng = np.random.default_rng(seed)
    instances = rng.normal(size=(count, n, 2))
    return [(x, [int(x[:, 0].argmax())]) for x in instances]


def test_a_shuffled_field_loses_everything_above_chance():
    """The model reads only the first feature. Without it, it is right in 1 of 4 cases."""
    explained = plackett_luce("choice", 2).explain(choices(2000), repeats=3)
    assert explained["metric"] == "accuracy" and explained["value"] == 1
    assert explained["count"] == 2000
    assert list(explained["importance"]) == ["feature 1", "feature 2"]
    lost = explained["importance"]["feature 1"]
    assert lost["low"] < 3 / 4 < lost["high"] and lost["high"] - lost["low"] < 0.04
    none = explained["importance"]["feature 2"]
    assert (none["value"], none["low"], none["high"]) == (0, 0, 0)


def test_the_same_seed_gives_the_same_importances():
    solver, examples = plackett_luce("choice", 2), choices(50)
    assert solver.explain(examples) == solver.explain(examples)
    assert solver.explain(examples, seed=1) != solver.explain(examples)


def test_a_field_that_a_set_shares_is_shuffled_among_sets():
    """All elements of a set share its value, so shuffling among elements would change nothing."""

    class Sum(PlackettLuce):
        def encode(self, inputs, lengths=None):
            return super().encode(inputs.sum(-1, keepdim=True), lengths)

    rng = np.random.default_rng(1)
    examples = []
    for n in rng.integers(2, 6, 200):
        x = np.column_stack([rng.normal(size=n), np.full(n, rng.normal())])
        examples.append((x, [int(x[:, 0].argmax())]))
    task = Custom(kind="choice", center=(0.0,) * 2, spread=(1.0,) * 2)
    importance = Solver(Sum(2), task).explain(examples)["importance"]
    assert importance["feature 2"]["value"] == 0 < importance["feature 1"]["low"]


def test_all_features_of_a_field_are_shuffled_together():
    task = Custom(
        kind="choice",
        fields=("price", "colour", "size"),
        categories=((), ("blue", "red", "white"), ()),
        filled=("size",),  # with a feature that marks missing values
        center=(0.0,) * 6,
        spread=(1.0,) * 6,
    )
    columns = field_columns(task)
    assert [*columns] == ["price", "colour", "size"]
    assert [np.arange(6)[part].tolist() for part in columns.values()] == [[0], [1, 2, 3], [4, 5]]


def test_importance_of_grades_is_measured_by_ndcg():
    x = np.array([[2.0], [1.0], [0.0]])
    example = Example(x, np.arange(3), grades=np.array([2.0, 1, 0]))
    explained = plackett_luce("grades").explain([example] * 40)
    assert explained["metric"] == "ndcg@10" and explained["value"] == 1
    assert explained["importance"]["feature 1"]["low"] > 0


def test_explain_refuses_invalid_arguments_and_other_tasks():
    with pytest.raises(InputError, match="repeats: expected"):
        plackett_luce("choice", 2).explain(choices(3), repeats=0)
    with pytest.raises(InputError, match="seed: expected a whole number of 0 or more, got -1"):
        plackett_luce("choice", 2).explain(choices(3), seed=-1)
    with pytest.raises(InputError, match="expected at least one, got none"):
        plackett_luce("choice", 2).explain([])
    with pytest.raises(InputError, match="model of your own examples, got one of task sort"):
        small_solver("sort").explain([([[1.0], [0.5]], [1, 0])])
