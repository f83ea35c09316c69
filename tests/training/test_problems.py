"""Trainings of problems lower costs, can be resumed, and leave a usable model."""

import csv
import shutil

import numpy as np
import pytest
import torch

from ptrnet import Solver, labellers, models, tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.problems import names
from ptrnet.training.recipe import Recipe
from ptrnet.training.reports import Hooks
from ptrnet.training.run import train
from ptrnet.types import Example

SMALL = {
    "n": "6",
    "batch_size": 8,
    "samples": 6,
    "valid_batches": 1,
    "hidden_size": 16,
    "heads": 2,
    "encoder_layers": 1,
    "feed_forward": 32,
    "precision": "float32",
}


def mean_cost(solver, instances):
    answers = solver.solve(instances)
    task = solver.task
    pairs = zip(instances, answers, strict=True)
    return np.mean([task.costs(Example(x), [a])[0] for x, a in pairs])


@pytest.mark.parametrize("learning", ["self-labelling", "reinforce"])
def test_training_lowers_the_cost(learning, tmp_path):
    recipe = Recipe.from_table(SMALL, task="knapsack", learning=learning, steps=60)
    instances = list(recipe.task.sample(np.random.default_rng(5), 64, 6))
    before = Solver(untrained(recipe), recipe.task)
    after = Solver(*train(recipe, tmp_path / "run"))
    assert mean_cost(after, instances) < mean_cost(before, instances)


@pytest.mark.parametrize("name", names())
def test_a_resumed_run_gives_the_same_weights(name, tmp_path):
    recipe = Recipe.from_table(SMALL, task=name, n="5", steps=4, checkpoint_every=2)
    run, killed = tmp_path / "run", tmp_path / "killed"

    def copy(step, metrics):  # as a kill would leave the folder
        if step == 3:
            shutil.copytree(run, killed)

    straight = train(recipe, run, hooks=Hooks((copy,))).model.state_dict()
    assert torch.load(killed / "checkpoint.ckpt", weights_only=True)["global_step"] == 2
    resumed = train(recipe, killed, resume=True).model.state_dict()
    assert all(torch.equal(straight[key], resumed[key]) for key in straight)


def test_problems_learn_from_answers_of_a_labeller(tmp_path):
    recipe = Recipe.from_table(SMALL, task="knapsack", learning="answers", steps=40)
    solver = Solver(*train(recipe, tmp_path / "run"))
    task = recipe.task
    inputs = task.sample(np.random.default_rng(0), 16, 6)
    examples = [
        Example(x, outputs)
        for x, outputs in zip(inputs, labellers.label(task, inputs), strict=True)
    ]
    fresh = Solver(untrained(recipe), task)
    assert solver.log_likelihoods(examples).sum() > fresh.log_likelihoods(examples).sum()


def test_validation_measures_the_gap_of_instances_of_several_sizes(tmp_path):
    task = tasks.get("knapsack")
    rng = np.random.default_rng(0)
    examples = []
    for n in (4, 6):
        inputs = task.sample(rng, 10, n)
        pairs = zip(inputs, labellers.label(task, inputs), strict=True)
        examples += [Example(x, outputs) for x, outputs in pairs]
    file = str(tmp_path / "examples.jsonl")
    formats.write(file, examples, task)
    learned = {"task": "knapsack", "learning": "answers", "data": file, "valid": file}
    recipe = Recipe.from_table({**SMALL, **learned, "n": "4,6", "steps": 2, "batch_size": 20})
    solver = Solver(*train(recipe, tmp_path / "run"))
    (log,) = (tmp_path / "run").glob("logs/csv/*/metrics.csv")
    lines = log.read_text().splitlines()
    gaps = [row["valid_gap"] for row in csv.DictReader(lines) if row["valid_gap"]]
    answers = solver.solve([example.inputs for example in examples])
    expected = task.score(examples, answers)["gap"].mean()
    assert float(gaps[-1]) == pytest.approx(expected, abs=1e-6)


def untrained(recipe):
    torch.manual_seed(0)
    return models.kind(recipe.model).for_task(recipe.task, recipe.network)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (
            {"task": "knapsack", "model": "ptr-net", "hidden_size": 8},
            "knapsack needs model state-ptr-net",
        ),
        (
            {"task": "hull", "model": "state-ptr-net"},
            "model state-ptr-net is only for problems, and hull is a task",
        ),
        ({"task": "orienteering", "learning": "answers", "n": "22"}, "at most 21"),
    ],
)
def test_models_and_problems_that_do_not_fit_are_refused(table, complaint):
    with pytest.raises(InputError, match=complaint):
        Recipe.from_table(table)


def test_built_in_problems_have_defaults_for_everything():
    for name in names():
        recipe = Recipe.from_table(task=name)
        assert recipe.model == "state-ptr-net"
        assert Recipe.from_table(recipe.table()) == recipe
        assert tasks.get(name) == recipe.task
