"""Searches: what they measure, against trainings by hand; and how they stop, resume and refuse."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ptrnet
from ptrnet.cli import run
from ptrnet.errors import DivergedError, InputError, MissingExtraError
from ptrnet.metrics import Measure
from ptrnet.training import tuning
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.tuning import Tuning, fold_scores, search_space, tune
from ptrnet.types import Dataset

optuna = pytest.importorskip("optuna")

COLUMNS = {"set_id": "order", "chosen": "bought"}
TINY = {"steps": 4, "batch_size": 4, "ensemble": 2, "hidden_size": 8, "trees": 0}
HEADER = "order,store,price,quality,weight,bought"


def written(path, orders=60, stores=8):
    """Write choices among three offers. Each store has several orders."""
    rng = np.random.default_rng(0)
    lines = [HEADER]
    for k in range(orders):
        price, quality = rng.random(3).round(3), rng.random(3).round(3)
        best = int((quality - price + 0.3 * rng.gumbel(size=3)).argmax())
        rows = zip(price, quality, strict=True)
        lines += [
            f"o{k},s{k % stores},{p},{q},{1 + k % 2},{int(j == best)}"
            for j, (p, q) in enumerate(rows)
        ]
    path.write_text("\n".join([*lines, ""]))
    return str(path)


@pytest.fixture
def orders(tmp_path):
    return written(tmp_path / "orders.csv")


@pytest.fixture
def drawn(monkeypatch):
    """Replace trainings by scores that depend on the settings; return the list of all calls.

    The least dropout is best by far, and a learning rate of 0.008 diverges.
    """
    calls = []

    def scores(recipe, learned, tested, metric):
        calls.append(recipe)
        if recipe.optimiser.learning_rate == 0.008:
            raise DivergedError("diverged")
        rng = np.random.default_rng(int(tested.elements.sum() * 1000))
        difficulty = rng.normal()  # of the fold
        noise = rng.normal(size=len(tested)) - recipe.network.octaves / 100
        return 0.1 * noise - recipe.network.dropout - difficulty

    monkeypatch.setattr(tuning, "fold_scores", scores)
    return calls


def trials_of(folder):
    """Return the settings and values of the trials that ended, as Optuna's journal has them."""
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "study.journal"))
    study = optuna.load_study(study_name="ptrnet", storage=optuna.storages.JournalStorage(backend))
    return [
        (trial.params, trial.value)
        for trial in study.trials
        if trial.state.name in ("COMPLETE", "PRUNED")
    ]


def test_the_first_trial_is_what_the_defaults_give_by_hand_on_the_same_folds(
    orders, tmp_path, monkeypatch, capsys
):
    """By hand: files of each fold and of the rest, `ptrnet train` and `ptrnet evaluate`."""
    folds = []

    def recorded(recipe, learned, tested, metric):
        folds.append((learned, tested))
        return fold_scores(recipe, learned, tested, metric)

    monkeypatch.setattr(tuning, "fold_scores", recorded)
    found = tune(
        orders, output=tmp_path / "tuned", trials=1, folds=2, group="store", weight="weight",
        **COLUMNS, **TINY,
    )  # fmt: skip
    header, *lines = (tmp_path / "orders.csv").read_text().splitlines()
    names = ["--set-id=order", "--chosen=bought", "--group=store", "--weight=weight"]
    options = [f"--{key.replace('_', '-')}={value}" for key, value in TINY.items()]
    total = weights = 0.0
    for k, (learned, tested) in enumerate(folds):
        assert not {*learned.groups} & {*tested.groups}
        for name, part in (("rest", learned), ("fold", tested)):
            rows = [lines[row] for rows in part.column("rows") for row in rows]
            (tmp_path / f"{name}{k}.csv").write_text("\n".join([header, *rows, ""]))
        rest, fold, model = (
            str(tmp_path / name) for name in (f"rest{k}.csv", f"fold{k}.csv", f"m{k}")
        )
        assert run(["train", "--data", rest, *names, *options, "--output", model]) == 0
        capsys.readouterr()
        assert run(["evaluate", "--model", model, fold, *names, "--json"]) == 0
        metrics = json.loads(capsys.readouterr().out)["metrics"]
        total += metrics["log_likelihood"]["value"] * tested.weights.sum()
        weights += tested.weights.sum()
    assert sum(len(tested) for _, tested in folds) == 60
    assert found.metric == "log_likelihood" and found.defaults.value == pytest.approx(
        total / weights
    )
    assert found.options == {} and found.best_trial == 0


@pytest.mark.parametrize("groups", [None, "store"])
@pytest.mark.parametrize("folds", [2, 3, 7])
def test_folds_have_each_example_once_and_whole_groups(
    orders, tmp_path, monkeypatch, folds, groups
):
    tested = []

    def recorded(recipe, learned, part, metric):
        sides = [{*data.column("source")} for data in (learned, part)]
        assert not sides[0] & sides[1] and len(sides[0]) + len(sides[1]) == 60
        if groups:
            assert not {*learned.groups} & {*part.groups}
        tested.append(part)
        return np.zeros(len(part))

    monkeypatch.setattr(tuning, "fold_scores", recorded)
    named = {"group": groups} if groups else {}
    tune(orders, output=tmp_path / "tuned", trials=1, folds=folds, **named, **COLUMNS)
    assert len(tested) == folds and sum(map(len, tested)) == 60
    if not groups:
        assert max(map(len, tested)) - min(map(len, tested)) <= 1


@pytest.mark.parametrize(
    ("lines", "options", "metric"),
    [
        (
            ["set,shown,price,grade"]
            + [f"{k},{j % 3},{(k * 7 + j) % 5},{(k + j) % 3}" for k in range(12) for j in range(4)],
            {"set_id": "set", "grade": "grade", "position": "shown"},
            "ndcg@10",
        ),
        (
            ["car_cost,bus_cost,choice"]
            + [f"{k % 5},{k % 3},{'car' if k % 2 else 'bus'}" for k in range(12)],
            {"alternatives": "car,bus", "chosen": "choice"},
            "log_likelihood",
        ),
        (
            [
                json.dumps(
                    {
                        "inputs": [[k % 5, 1], [k % 3, 2], [4, k]],
                        "outputs": [k % 3, (k + 1) % 3, (k + 2) % 3],
                    }
                )
                for k in range(12)
            ],
            {},
            "kendall_tau",
        ),
    ],
    ids=["grades of clicks", "wide table", "permutations"],
)
def test_all_kinds_and_tables_are_measured_by_their_metric(tmp_path, lines, options, metric):
    path = tmp_path / ("mine.csv" if options else "mine.jsonl")
    path.write_text("\n".join([*lines, ""]))
    tiny = {**TINY, "ensemble": 1}
    del tiny["trees"]
    found = tune(str(path), output=tmp_path / "tuned", trials=2, folds=2, **options, **tiny)
    assert found.metric == metric and found.defaults.count == 12
    assert found.best.value >= found.defaults.value


def test_a_category_that_only_the_fold_has_counts_as_none(orders):
    header, *rows = Path(orders).read_text().splitlines()
    colours = ["rare" if row.startswith("o3,") else "ab"[k % 2] for k, row in enumerate(rows)]
    lines = [f"{header},colour", *map(",".join, zip(rows, colours, strict=True))]
    Path(orders).write_text("\n".join([*lines, ""]))
    recipe, _, data = infer_recipe(orders, {**COLUMNS, **TINY})
    tested = Dataset.of([data[3]])
    learned = Dataset.of([data[row] for row in range(len(data)) if row != 3])
    rare = recipe.task.facts.schema.feature_names.index("colour = rare")
    assert tested.elements[:, rare].all() and not learned.elements[:, rare].any()
    elements = tested.elements.copy()
    elements[:, rare] = 0
    plain = replace(tested, elements=elements)
    scores = [fold_scores(recipe, learned, part, "log_likelihood") for part in (tested, plain)]
    assert scores[0] == scores[1]


def test_a_search_that_was_killed_has_the_same_trials_as_one_that_was_not(
    orders, tmp_path, monkeypatch, drawn
):
    """A trial that was killed does not train again on the folds that it had finished."""
    given = {"trials": 9, "folds": 3, **COLUMNS}
    expected = tune(orders, output=tmp_path / "whole", **given)
    count, scores = len(drawn), tuning.fold_scores
    for kill_at in (1, 5, 7):
        calls = []

        def killed(*arguments, last=kill_at, calls=calls):
            calls.append(0)
            if len(calls) == last:
                raise KeyboardInterrupt
            return scores(*arguments)

        monkeypatch.setattr(tuning, "fold_scores", killed)
        with pytest.raises(KeyboardInterrupt):
            tune(orders, output=tmp_path / "stopped", **given)
        with (tmp_path / "stopped" / "study.journal").open("a") as journal:
            journal.write('{"op_code": 8, "wor')  # a line that was being written
        (tmp_path / "stopped" / "study.journal.lock").symlink_to("study.journal")
    monkeypatch.setattr(tuning, "fold_scores", scores)
    found = tune(orders, output=tmp_path / "stopped", **given)
    assert trials_of(tmp_path / "stopped") == trials_of(tmp_path / "whole")
    assert len(drawn) == 2 * count
    assert (found.best, found.difference, found.options) == (
        expected.best, expected.difference, expected.options,
    )  # fmt: skip


def test_a_finished_search_says_so_and_goes_on_with_more_trials(orders, tmp_path, drawn, capsys):
    given = {"output": tmp_path / "tuned", "folds": 3, **COLUMNS}
    first = tune(orders, trials=5, **given)
    count = len(drawn)
    capsys.readouterr()
    assert tune(orders, trials=5, **given) == first and len(drawn) == count
    assert "the search is finished, with 5 trials" in capsys.readouterr().err
    assert tune(orders, trials=8, **given).trials == 8
    assert tune(orders, trials=8, **{**given, "output": tmp_path / "other"}).trials == 8
    assert trials_of(tmp_path / "tuned") == trials_of(tmp_path / "other")
    tune(orders, trials=8, **{**given, "output": tmp_path / "seed"}, seed=2)
    assert trials_of(tmp_path / "seed") != trials_of(tmp_path / "other")


def test_other_settings_and_other_data_are_refused_in_the_same_folder(orders, tmp_path, drawn):
    given = {"output": tmp_path / "tuned", "trials": 2, "folds": 3, **COLUMNS}
    tune(orders, **given)
    before = (tmp_path / "tuned" / "study.journal").read_bytes()
    for other, message in (
        ({"folds": 4}, "has a search with folds = 3, which cannot go on with 4"),
        ({"seed": 2}, "has a search with seed = 1"),
        ({"dropout": 0.1}, "has a search with dropout = 0.3"),
    ):
        with pytest.raises(InputError, match=message):
            tune(orders, **{**given, **other})
    written(tmp_path / "orders.csv", orders=50)
    with pytest.raises(InputError, match=r"orders\.csv: has changed since the search began"):
        tune(orders, **given)
    assert (tmp_path / "tuned" / "study.journal").read_bytes() == before
    (tmp_path / "tuned" / "study.journal").write_text("no journal\n")
    with pytest.raises(InputError, match="is damaged"):
        tune(orders, **given)


def test_trials_that_are_clearly_worse_stop_early_and_those_that_diverge_do_not_end_it(
    orders, tmp_path, drawn, capsys
):
    written(tmp_path / "orders.csv", orders=120)
    found = tune(orders, output=tmp_path / "tuned", trials=20, folds=4, **COLUMNS)
    assert found.options["dropout"] < 0.2 and found.difference.low > 0
    lines = capsys.readouterr().err.splitlines()[-20:]
    assert sum("stopped after 1 of 4 folds" in line for line in lines) >= 5
    assert sum(": diverged, with" in line for line in lines) >= 1
    assert found.stopped == sum("stopped after" in line or "diverged" in line for line in lines)
    assert len(drawn) <= 20 * 4 - 5 * 3
    params = [tuple(params.items()) for params, _ in trials_of(tmp_path / "tuned")]
    assert len({*params}) == 20
    text = str(found)
    assert "contains 0" not in text and "expect a smaller difference" in text
    with pytest.raises(DivergedError):
        tune(orders, output=tmp_path / "defaults", learning_rate=0.008, **COLUMNS)


def test_a_search_ends_when_all_settings_were_tried(orders, tmp_path, drawn):
    fixed = {"hidden_size": 8, "learning_rate": 1e-3, "dropout": 0.1, "weight_decay": 0.1}
    fixed["octaves"] = 0
    found = tune(orders, output=tmp_path / "tuned", folds=2, **COLUMNS, **fixed)
    assert found.trials == 3
    values = [params["encoder_layers"] for params, _ in trials_of(tmp_path / "tuned")]
    assert values[0] == 1 and sorted(values) == [1, 2, 3]


def test_seconds_end_a_search_but_not_its_defaults(orders, tmp_path, drawn, capsys):
    given = {"output": tmp_path / "tuned", "trials": 4, "folds": 3, **COLUMNS}
    assert tune(orders, **given, seconds=1e-9).trials == 1
    assert "stopped after 1e-09 seconds, with 1 of 4 trials" in capsys.readouterr().err
    assert tune(orders, **given).trials == 4


def test_the_difference_is_an_interval_over_groups(orders, tmp_path, monkeypatch):
    """The scores of a store are equal, so 8 stores are 8 observations."""

    def scores(recipe, learned, tested, metric):
        return (tested.groups % 7 + 1) * (recipe.network.dropout != 0.3) / 10.0

    monkeypatch.setattr(tuning, "fold_scores", scores)
    written(tmp_path / "orders.csv", orders=64)  # of each store equally many
    found = tune(orders, output=tmp_path / "a", trials=4, folds=2, group="store", **COLUMNS)
    groups = infer_recipe(orders, {**COLUMNS, "group": "store"})[2].groups
    gains = (np.unique(groups) % 7 + 1) / 10
    error = gains.std(ddof=1) / np.sqrt(8)
    assert found.difference.value == pytest.approx(gains.mean())
    assert found.difference.low == pytest.approx(gains.mean() - 1.959964 * error)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            "set-ptr-net",
            {
                "hidden_size",
                "learning_rate",
                "encoder_layers",
                "octaves",
                "dropout",
                "weight_decay",
            },
        ),
        (
            "transformer-ptr-net",
            {
                "hidden_size",
                "learning_rate",
                "encoder_layers",
                "decoder_layers",
                "octaves",
                "weight_decay",
            },
        ),
        ("ptr-net", {"hidden_size", "learning_rate", "layers", "weight_decay"}),
    ],
)
def test_the_space_has_settings_that_the_network_has_with_their_defaults(orders, model, expected):
    given = {**COLUMNS, "model": model}
    recipe = infer_recipe(orders, given)[0]
    space = search_space(recipe, given)
    assert {*space} == expected
    for key, values in space.items():
        assert recipe.table()[key] in values and len(values) >= 2
        for value in values:  # `ptrnet train` accepts each
            assert infer_recipe(orders, {**given, key: value})[0].table()[key] == value
    assert {*search_space(recipe, {**given, "learning_rate": 1e-3})} == expected - {"learning_rate"}


def test_the_command_of_the_report_trains_the_best_settings(orders, tmp_path, monkeypatch, drawn):
    monkeypatch.chdir(tmp_path)
    tiny = {"steps": 2, "batch_size": 4, "ensemble": 1, "trees": 0, "augment": False}
    found = tune("orders.csv", output="a b", trials=10, folds=2, fields=["price", "quality"],
                 **COLUMNS, **tiny)  # fmt: skip
    assert found.options["dropout"] < 0.3
    program, *words = shlex.split(str(found).splitlines()[-1])
    assert program == "ptrnet" and run(words) == 0
    trained = ptrnet.load("a b/model")
    recipe = infer_recipe("orders.csv", {**COLUMNS, **tiny, **found.options})[0]
    assert trained.task.fields == ("price", "quality")
    assert trained.model.settings()["encoder_layers"] == recipe.network.encoder_layers
    assert "--no-augment" in words and "--fields price,quality" in " ".join(words)


def test_the_report_says_if_the_defaults_do_as_well():
    given = {"metric": "f1", "examples": "9 examples, 3 folds", "trials": 30, "stopped": 4}
    measure, better = Measure(0.5, 0.4, 0.6, 9), Measure(0.51, 0.41, 0.61, 9)
    difference = Measure(0.01, -0.01, 0.03, 9)
    text = str(
        Tuning("f1", {"dropout": 0.1}, measure, better, difference, "9 examples", 7, 30, 4, "C")
    )
    assert "the interval of the difference contains 0: the defaults do as well" in text
    assert "chance helped to choose the best of 30 trials" in text
    assert text.endswith("to train the best settings on all examples:\nC")
    text = str(Tuning("f1", {}, measure, measure, difference, given["examples"], 0, 30, 4, "C"))
    assert "no trial is better than the defaults" in text and "chance" not in text


def test_what_cannot_be_searched_is_refused_before_anything_is_written(orders, tmp_path):
    every = dict.fromkeys(("encoder_layers", "octaves"), 1) | {
        "hidden_size": 8, "learning_rate": 1e-3, "dropout": 0.1, "weight_decay": 0.1,
    }  # fmt: skip
    for options, message in (
        ({"trials": 0}, "trials: expected a whole number of 1 or more"),
        ({"folds": 1}, "folds: expected a whole number of 2 or more"),
        ({"folds": 9, "group": "store"}, "has 8 groups, which are too few for 9 folds"),
        ({"folds": 61}, "has 60 examples, which are too few"),
        ({"seconds": 0}, "seconds: expected a number above 0"),
        ({"n": "3"}, "n cannot be given"),
        ({"devices": 2}, "devices cannot be given"),
        ({"model": "conditional-logit"}, "no setting of model conditional-logit"),
        (every, "no setting of model set-ptr-net"),
        ({"dropuot": 1}, "did you mean 'dropout'"),
        ({"chosen": "price"}, "price"),
    ):
        with pytest.raises(InputError, match=message):
            tune(orders, output=tmp_path / "tuned", **{**COLUMNS, **options})
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize(("package", "extra"), [("optuna", "tune"), ("lightning_fabric", "train")])
def test_the_missing_extra_is_named(orders, tmp_path, monkeypatch, package, extra):
    monkeypatch.setattr("ptrnet.errors.find_spec", lambda name: None if name == package else True)
    with pytest.raises(MissingExtraError, match=rf'pip install "ptrnet\[{extra}\]"'):
        tune(orders, output=tmp_path / "tuned", **COLUMNS)
