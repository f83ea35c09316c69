"""The tables of the package have all rows of the papers, with recipes that run."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from ptrnet import tasks, weights
from ptrnet.decoding import Beam, Reconstruct
from ptrnet.errors import InputError
from ptrnet.labels import generate_dataset
from ptrnet.training.examples import make_valid_batches, open_stream
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train
from ptrnet_lab.models.free_running import HardPtrNet, MultiPtrNet, SoftPtrNet
from ptrnet_lab.reproduce import figures, tables
from ptrnet_lab.reproduce.run import Job, jobs_of
from ptrnet_lab.reproduce.tables import BUDGETS
from ptrnet_lab.reproduce.testsets import SEED
from ptrnet_lab.reproduce.trainings import folder_of, solver_of

ROWS = {
    "vinyals2015/table1": 11,
    "vinyals2015/delaunay": 3,
    "vinyals2015/table2": 11,
    "wang2016/table1": 9 + 9 + (1 + 2 + 3 + 4 + 5 * 5),  # windows smaller than n
    "chan2016/table1": 4 * 3 * 2,
    "chan2016/table2": 9,
}


def recipes():
    for row in tables.select(""):
        for name, line in row.lines.items():
            if line.recipe:
                yield row, name, line.recipe


def test_every_row_of_the_papers_is_there():
    assert {name: len(tables.read(name).rows) for name in tables.names()} == ROWS


@pytest.mark.parametrize(
    ("row", "published"),
    [
        ("vinyals2015/table1/lstm-50", {"accuracy": 1.9, "area": "FAIL"}),
        ("vinyals2015/table1/ptr-net-5-50-n200", {"accuracy": 22.1, "area": 99.9}),
        ("vinyals2015/delaunay/ptr-net-10", {"accuracy": 22.6, "triangle_coverage": 81.3}),
        ("vinyals2015/table2/ptr-net-50-a3", {"length": 6.09, "a1": 6.46, "a2": 5.84, "a3": 5.79}),
        ("wang2016/table1/memory-n100", {"accuracy": 58.95, "simple": 100.0, "area": 99.92}),
        ("wang2016/table1/incremental-w50-n500", {"accuracy": 3.28, "simple": 99.3, "area": 99.87}),
        ("chan2016/table1/multi-256-n10-own", {"accuracy": 78.7}),
        ("chan2016/table2/hard-1000k", {"accuracy": 74.3}),
    ],
)
def test_published_numbers_equal_those_of_the_papers(row, published):
    (row,) = tables.select(row)
    assert row.published == published


@pytest.mark.parametrize(
    ("row", "decoder", "text"),
    [
        ("vinyals2015/table2/ptr-net-5-20-n20", Beam(8), "beam 8, valid"),
        (
            "vinyals2015/table2/ptr-net-5-20-n50",
            Reconstruct(rounds=50, part=20),
            "reconstruct 20, 50 rounds, valid",
        ),
    ],
)
def test_rows_have_the_papers_decoders(row, decoder, text):
    (row,) = tables.select(row)
    how = row.lines["ours"].decoding
    assert how.build() == decoder
    assert str(how) == text


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('decoder = "bean"', "did you mean 'beam'"),
        ('decoder = "greedy"\nbeam_size = 4', "beam_size has no effect with greedy decoding"),
    ],
)
def test_an_unknown_decoder_or_option_is_refused(monkeypatch, tmp_path, keys, message):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "table.toml").write_text(
        'title = "T"\nnotes = ""\nmetrics = []\n[rows.row]\nmethod = "M"\ntrained_on = "5"\n'
        f'task = "hull"\ntest_n = 5\npublished = {{}}\n[rows.row.best]\nweights = "hull"\n{keys}\n'
    )
    monkeypatch.setattr(tables, "RECIPES", tmp_path)
    with pytest.raises(InputError, match=message):
        tables.select("")[0].lines["best"].decoding.build()


def test_every_row_has_lines_with_a_decoder_and_a_model_of_its_task():
    for row in tables.select(""):
        assert {"paper", "ours"} <= row.lines.keys(), row
        for line in row.lines.values():
            line.decoding.build()
            if line.recipe is None:
                assert weights.summary(line.weights)["task"] == row.task.name
            else:
                assert line.recipe.task.name == row.task.name


def test_paper_lines_train_as_the_papers_say():
    by_paper = {row.table.partition("/")[0]: r for row, name, r in recipes() if name == "paper"}
    v, w, c = (by_paper[name] for name in ("vinyals2015", "wang2016", "chan2016"))
    given = v.optimiser
    assert (given.optimizer, given.learning_rate, given.schedule) == ("sgd", 1.0, "constant")
    assert (given.warmup, given.clip) == (0.0, 2.0)
    assert (w.optimiser.optimizer, w.network.hidden_size, w.task.start) == (
        *("adadelta-rmsprop", 512),
        "lower-left",
    )
    given = c.optimiser
    assert (given.optimizer, given.learning_rate, given.weight_decay) == ("adamw", 1e-3, 0)
    assert c.network.hidden_size == 512
    assert all(r.data.batch_size == 128 for _, name, r in recipes() if name == "paper")


def test_rows_of_one_recipe_share_its_training(tmp_path):
    rows = tables.select("vinyals2015/table1")
    jobs = jobs_of(rows, ["paper"], BUDGETS["full"])
    folders = [folder_of(job.recipe, tmp_path) for job in jobs]
    assert len(set(folders)) == 6
    changes = [a != b for a, b in pairwise(folders)]
    assert sum(changes) == 5  # jobs of the same training are neighbours
    baseline = [r for r in tables.select("wang2016") if r.name.startswith("baseline")]
    assert len({folder_of(row.lines["paper"].recipe, tmp_path) for row in baseline}) == 1
    shipped = [row.lines["ours"].weights for row in [*rows, *baseline] if row.trained_on == "5-50"]
    assert set(shipped) == {"hull-ptr-net"}


def test_models_that_share_a_training_learn_equal_weights(tmp_path):
    """A short training of each kind gives the same bits."""
    pairs = {
        (line.recipe.task.name, line.recipe.model, line.decoding.model)
        for row in tables.select("")
        for line in row.lines.values()
        if line.recipe and line.decoding.model
    }
    trained = "ptr-net"
    answering = ("soft-ptr-net", "hard-ptr-net", "multi-ptr-net")
    assert pairs == {("hull", trained, model) for model in answering}
    learned = {}
    for model in (trained, *answering):
        table = {"task": "hull", "model": model, "n": "6", "hidden_size": 16, "batch_size": 16}
        recipe = Recipe.from_table({**table, "steps": 12, "valid_every": 6, "valid_batches": 1})
        learned[model] = train(recipe, tmp_path / model).model.state_dict()
    for model in answering:
        assert learned[model].keys() == learned[trained].keys()
        for name, weight in learned[model].items():
            assert torch.equal(weight, learned[trained][name]), (model, name)


def test_three_methods_share_one_training_and_answer_by_their_own_models(tmp_path, monkeypatch):
    rows = [row for row in tables.select("chan2016/table2") if row.name.endswith("-100k")]
    jobs = jobs_of(rows, ["ours"], BUDGETS["full"])
    table, changes = jobs[0].recipe.table(), {"hidden_size": 16, "valid_batches": 0}
    recipe = Recipe.from_table(table, n="6", steps=2, **changes)
    monkeypatch.setattr(Job, "recipe", recipe)
    solvers = [solver_of(job.line, job.recipe, tmp_path) for job in jobs]
    assert [p.name for p in tmp_path.iterdir()] == [folder_of(recipe, tmp_path).name]
    assert [type(solver.model) for solver in solvers] == [SoftPtrNet, HardPtrNet, MultiPtrNet]
    assert len({job.digest() for job in jobs}) == 3
    assert str(jobs[0].line.decoding) == "greedy, by soft-ptr-net"


def test_no_training_draws_an_instance_of_a_test():
    """Compares the first batches. Later batches have other seeds, which differ in the same way."""
    seeds, drawn = set(), {}
    for _, _, recipe in recipes():
        seeds.add((recipe.run.seed, recipe.data.n, recipe.task.name))
    assert all(seed < 2**32 and seed != SEED for seed, _, _ in seeds)
    for seed, n, name in sorted(seeds):
        recipe = next(
            r for _, _, r in recipes() if (r.run.seed, r.data.n, r.task.name) == (seed, n, name)
        )
        if recipe.task.name == "tsp" or recipe.model.startswith("seq2seq"):
            continue  # slow labels; other rows have these sizes, too
        stream = open_stream(recipe)
        valid = make_valid_batches(recipe.replace(valid_batches=2), [])
        batches = [*valid, *(stream.batch(k) for k in range(3))]
        for batch in batches:
            drawn.setdefault(name, set()).update(np.float32(batch.inputs[:, 0]).ravel().tolist())
    for name, seen in drawn.items():
        test = generate_dataset(tasks.get(name), [5, 10, 50], 64, SEED)
        tested = {float(np.float32(x)) for e in test for x in e.inputs[0]}
        assert len(tested & seen) <= 2, name  # of 24 bits each, two may be equal by chance


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("vinyals2016", "unknown paper 'vinyals2016'; did you mean 'vinyals2015'"),
        ("vinyals2015/table3", "unknown table 'vinyals2015/table3'; did you mean"),
        ("chan2016/table2/hard-10", "unknown row of chan2016/table2 'hard-10'; did you mean"),
    ],
)
def test_unknown_names_suggest_the_nearest(what, message):
    with pytest.raises(InputError, match=message):
        tables.select(what)


def test_figures_name_rows_that_exist():
    assert figures.names() == ["chan2016/figure4", "vinyals2015/figure3"]
    assert {row.task.name for row in figures.read("vinyals2015/figure3").rows} == {
        *("hull", "delaunay", "tsp"),
    }
    assert len(figures.read("chan2016/figure4").rows) == 1
