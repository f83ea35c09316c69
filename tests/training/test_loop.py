"""Which weights early stopping keeps."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ptrnet import tasks
from ptrnet.tasks.custom import Custom
from ptrnet.training.loop import BestWeights
from ptrnet.training.recipe import Data, Recipe, Run
from ptrnet.training.reports import Progress


def own(kind):
    return Custom(kind=kind, center=(0.0,), spread=(1.0,))


FINER = ("permutation", "subset", "sequence", "set")  # kinds with a finer metric


@pytest.fixture
def validate():
    """Return a function that shows validations to a `BestWeights`, and returns its step."""

    def run(best, *validations, first=1):
        for step, losses in enumerate(validations, first):
            model = SimpleNamespace(state_dict=lambda step=step: {"step": torch.tensor(step)})
            best.update(step, torch.tensor(losses).double(), model)
        assert not best.patience or best.weights["step"] == best.step
        return best.step

    return run


BEST = [1.0, 2.0, 3.0, 4.0]
WITHIN = [1.4, 1.8, 3.3, 3.9]  # 0.1 more; the standard error of the difference is 0.15
WORSE = [1.2, 2.2, 3.2, 4.3]  # 0.225 more; the standard error is 0.025


def test_the_latest_validation_within_a_standard_error_is_kept(validate):
    saved = []
    best = BestWeights(0, saved.append)
    assert validate(best, WORSE, BEST, WORSE, WITHIN, WORSE, WORSE) == 4
    assert saved == [1, 2, 4]
    assert best.waited == 4  # validations since the lowest loss


def test_weights_are_compared_with_the_lowest_loss_and_not_with_the_kept_one(validate):
    """Else the loss could grow by a standard error at each validation."""
    best = BestWeights(0, lambda step: None)
    # 0.15 more than WITHIN, with a standard error of 0.21; 0.25 more than BEST, with one of 0.06.
    further = [1.2, 2.4, 3.1, 4.3]
    assert validate(best, BEST, WITHIN, further) == 2


def test_examples_of_a_group_count_as_one_observation(validate):
    """The mean differences of the groups are 0.1 and 0.1, or 0.4 and -0.15."""
    pairs, others = np.array([7, 7, 9, 9]), np.array([7, 9, 7, 9])
    assert validate(BestWeights(0, lambda step: None, pairs), BEST, WITHIN) == 1
    assert validate(BestWeights(0, lambda step: None, others), BEST, WITHIN) == 2
    further = [1.5, 2.5, 3.0, 4.0]  # 0.25 more; the standard error is 0.14, by group 0.25
    assert validate(BestWeights(0, lambda step: None), BEST, further) == 1
    assert validate(BestWeights(0, lambda step: None, pairs), BEST, further) == 2


def test_a_single_example_keeps_the_lowest_loss(validate):
    best = BestWeights(0, lambda step: None)
    assert validate(best, [2.0], [1.0], [1.5]) == 2


def test_a_resumed_run_keeps_the_same_weights(validate):
    best, resumed = BestWeights(3, lambda step: None), BestWeights(3, lambda step: None)
    validate(best, WORSE, BEST, WORSE)
    resumed.load_state_dict(best.state_dict())
    for each in (best, resumed):
        assert validate(each, WITHIN, WORSE, first=4) == 4
        assert each.has_ended


@pytest.mark.parametrize("metric", ["gap", "kendall_tau", "f1", "in_place", "ndcg@10"])
def test_the_progress_line_shows_the_metric_of_the_task(metric):
    progress = Progress(Recipe.from_table(task="hull"), 0, lambda metrics, step: None)
    progress.add_validation(1, {"valid_loss": 1.0, "valid_accuracy": 0.5, f"valid_{metric}": 0.125})
    assert progress.valid == f" valid {metric} 0.125"


@pytest.mark.parametrize(
    ("task", "right", "status"),
    [
        (tasks.get("hull"), 0.0, "loss 1.500 accuracy 0.0%"),
        (own("choice"), 0.0, "loss 1.500 accuracy 0.0%"),
        (own("grades"), 0.5, "loss 1.500"),
        *((own(kind), 0.0, "loss 1.500") for kind in FINER),
        *((own(kind), 0.0004, "loss 1.500") for kind in FINER),
        *((own(kind), 0.5, "loss 1.500 accuracy 50.0%") for kind in FINER),
    ],
)
def test_the_progress_line_has_an_accuracy_that_says_something(task, right, status, capsys):
    recipe, logged = SimpleNamespace(task=task, data=Data(batch_size=4), run=Run(steps=1)), {}
    with Progress(recipe, 0, lambda metrics, step: logged.update(metrics)) as progress:
        progress.add(1, {"loss": 1.5, "accuracy": right})
    assert capsys.readouterr().err.startswith(f"step 1/1 {status} ")
    assert logged["accuracy"] == right
