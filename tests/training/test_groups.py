"""Groups from training to intervals: no person is on both sides of a split."""

import json
import re

import numpy as np
import pytest
from scipy import stats

import ptrnet
from ptrnet.cli import run
from ptrnet.data.groups import code_of
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.training.examples import make_valid_batches, open_stream, open_valid, valid_groups
from ptrnet.training.own_data import infer_recipe
from ptrnet.training.recipe import Recipe

COLUMNS = {"set_id": "trip", "chosen": "bought"}
TINY = {"steps": 2, "hidden_size": 8, "batch_size": 4, "ensemble": 2}
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
NAMED = ["--set-id=trip", "--chosen=bought"]


def panel(persons, choices, seed=0, alternatives=4):
    """Return the rows of a panel. A person always chooses the same brand.

    Only `mark`, a number of which each person has a different one, tells the brand.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(persons):
        taste, mark = int(rng.integers(alternatives)), float(rng.normal())
        for trip in range(person * choices, (person + 1) * choices):
            for brand in range(alternatives):
                fields = {"mark": mark, "brand": "abcd"[brand], "price": float(rng.random())}
                bought = int(brand == taste)
                rows.append({"trip": trip, "person": f"p{person}", **fields, "bought": bought})
    return rows


def written(path, rows):
    lines = [",".join(map(str, row.values())) for row in rows]
    path.write_text("\n".join([",".join(rows[0]), *lines, ""]))
    return str(path)


def as_lines(path, rows, **keys):
    """Write the sets of a panel as lines. `keys` map new keys of lines to columns."""
    sets = ptrnet.read_table(rows, **COLUMNS)
    with path.open("w") as stream:
        for example in sets:
            inputs = [{k: e[k] for k in ("mark", "brand", "price")} for e in example.elements]
            extra = {key: example.elements[0][column] for key, column in keys.items()}
            row = {"inputs": inputs, "outputs": example.outputs.tolist(), **extra}
            print(json.dumps(row), file=stream)
    return str(path)


def scores_of(folder):
    """Return the constrained scores in a card, by metric: value, low and high."""
    table = re.findall(r"^\| (\w+) \|.*\| (\S+) \((\S+) to (\S+)\) \|$", card(folder), re.M)
    return {metric: tuple(map(float, numbers)) for metric, *numbers in table}


def card(folder):
    return (folder / "README.md").read_text()


def test_a_taste_that_only_a_persons_mark_tells_is_not_claimed_for_new_persons(tmp_path):
    """Chance has the accuracy .25 and the log-likelihood -1.39."""
    rows, new = panel(60, 20), panel(30, 20, seed=1)
    small = {"seed": 1, "steps": 180, "hidden_size": 16, "ensemble": 2, "fields": ["mark", "brand"]}
    small |= {"trees": 0, "spaces": 0}  # which only take time here
    by_set = tmp_path / "by-set"
    with pytest.warns(AmbiguousInputWarning, match='"person" looks like an id.*--group person'):
        ptrnet.fit(rows, **COLUMNS, **small, output=by_set)
    assert scores_of(by_set)["accuracy"][0] > 0.45  # of persons that the training saw
    assert "split by set, not by group" in card(by_set)
    by_person = tmp_path / "by-person"
    model = ptrnet.fit(rows, **COLUMNS, **small, output=by_person, group="person")
    accuracy, low, high = scores_of(by_person)["accuracy"]
    assert low <= 0.25 <= high and accuracy < 0.45
    assert -1.6 < scores_of(by_person)["log_likelihood"][0] < -1.3
    assert "split by group (`person`): they belong to 24 groups" in card(by_person)
    measured = model.evaluate(new, **COLUMNS, group="person")["accuracy"]
    right = round(30 * measured["value"])  # each person is right or wrong as a whole
    expected = stats.binomtest(right, 30).proportion_ci(method="wilson")
    assert measured["count"] == 600 and measured["value"] == pytest.approx(right / 30)
    assert measured["low"] == pytest.approx(expected.low, abs=0.005)
    assert measured["high"] == pytest.approx(expected.high, abs=0.005)
    with pytest.warns(AmbiguousInputWarning, match='"person".* 600 sets.*too narrow.*--group per'):
        alone = model.evaluate(new, **COLUMNS)["accuracy"]
    assert alone["high"] - alone["low"] < 0.3 * (measured["high"] - measured["low"])


def test_no_group_is_on_both_sides_of_the_split_of_a_network(tmp_path):
    data = written(tmp_path / "t.csv", panel(12, 5))
    options = {**COLUMNS, "group": "person", "valid_share": 0.2, "ensemble": 3}
    recipe, _, dataset = infer_recipe(data, options)
    assert recipe.task.fields == ("mark", "brand", "price")
    stream = open_stream(recipe, 0, dataset)
    valid = open_valid(recipe, stream)
    held_out = [{e.group for e in part} for part in valid]
    assert sum(map(len, held_out)) == len(set.union(*held_out)) == 9  # 3 persons for each network
    for k, persons in enumerate(held_out):
        assert len(valid[k]) == 15
        learned = {example.group for example in stream.learned_by(k, 1000)}
        assert persons | learned == {code_of(f"p{person}") for person in range(12)}
        assert not persons & learned
    batches = [batch.held_out_by[0].item() for batch in make_valid_batches(recipe, valid)]
    assert batches == sorted(batches)
    expected = [example.group for part in valid for example in part]
    assert valid_groups(valid).tolist() == expected


def test_lists_names_keys_and_files_of_groups_train_the_same_weights(tmp_path):
    rows = panel(8, 3)
    sets = ptrnet.read_table(rows, **COLUMNS)
    fields = ("mark", "brand", "price")
    examples = [([{k: e[k] for k in fields} for e in s.elements], s.outputs) for s in sets]
    persons = [s.elements[0]["person"] for s in sets]
    models = [
        ptrnet.fit(examples, "choice", group=persons, **TINY),
        ptrnet.fit(*zip(*examples, strict=True), "choice", group=np.array(persons), **TINY),
        ptrnet.fit(sets, "choice", group="person", fields=["mark", "brand", "price"], **TINY),
        ptrnet.fit(rows, **COLUMNS, group="person", **TINY),
    ]
    for name, keys, options in (
        ("key", {"group": "person"}, []),
        ("named", {"person": "person"}, ["--group=person"]),
    ):
        path, folder = as_lines(tmp_path / f"{name}.jsonl", rows, **keys), str(tmp_path / name)
        data = ["--data", path, "--kind=choice"]
        assert run(["train", *data, *options, *OPTIONS, "--output", folder]) == 0
        models.append(ptrnet.load(folder))
    for other in models[1:]:
        assert other.task.fields == models[0].task.fields
        states = (m.model.state_dict().values() for m in (models[0], other))
        assert all(a.equal(b) for a, b in zip(*states, strict=True))


def test_a_field_of_the_context_can_be_the_group_and_is_not_read(tmp_path, capsys):
    line = {"inputs": [{"price": 1.0}, {"price": 2.5}], "outputs": [0]}
    path, model = tmp_path / "c.jsonl", str(tmp_path / "m")
    lines = [{**line, "context": {"user": 7 + k // 3, "day": k}} for k in range(18)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = ["train", "--data", str(path), "--kind=choice", *OPTIONS]
    assert run([*data, "--output", str(tmp_path / "no")]) == 0
    warned = capsys.readouterr().err
    assert 'c.jsonl: "user" looks like an id: 18 sets share 6 values.' in warned
    assert "--group user" in warned and "the network also reads this field" in warned
    assert run([*data, "--group=user", "--output", model]) == 0
    assert "18 examples in 6 groups" in (warned := capsys.readouterr().err)
    assert "looks like an id" not in warned
    assert ptrnet.load(model).task.fields == ("price", "day")
    assert run(["evaluate", "--model", model, str(path), "--group=user", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"] == 6


def test_resuming_notices_other_groups(tmp_path, capsys):
    rows = panel(8, 3)
    data, model = written(tmp_path / "t.csv", rows), str(tmp_path / "m")
    command = ["train", "--data", data, *NAMED, "--fields=price", *OPTIONS, "--output", model]
    assert run([*command, "--group=person"]) == 0
    assert run(["train", "--output", model, "--resume"]) == 0
    capsys.readouterr()
    assert run([*command, "--group=trip", "--resume"]) == 2
    assert "the run has group = 'person', and cannot be resumed" in capsys.readouterr().err
    assert run([*command, "--resume"]) == 2
    assert "t.csv: has changed since the run began" in capsys.readouterr().err
    written(tmp_path / "t.csv", [{**row, "person": f"q{row['trip'] % 5}"} for row in rows])
    assert run(["train", "--output", model, "--resume"]) == 2
    assert "t.csv: has changed since the run began" in capsys.readouterr().err


def test_a_run_of_fit_keeps_its_groups(tmp_path):
    rows, model = panel(8, 3), tmp_path / "m"
    sets = ptrnet.read_table(rows, **COLUMNS)
    persons = [example.elements[0]["person"] for example in sets]
    ptrnet.fit(sets, "choice", fields=["price"], group=persons, output=model, **TINY)
    recipe = Recipe.read(model / "recipe.toml")
    groups = open_stream(recipe).examples.groups.tolist()
    assert groups == [code_of(person) for person in persons]
    assert "they belong to 4 groups" in card(model)


def test_a_validation_file_must_have_other_groups(tmp_path, capsys):
    rows = panel(8, 3)
    data = as_lines(tmp_path / "t.jsonl", rows, group="person")
    options = ["train", "--data", data, "--kind=choice", *OPTIONS, "--output", str(tmp_path / "m")]
    for name, groups, complaint in (
        ("same", {"group": "person"}, "v.jsonl:1: its group is also in"),
        ("none", {}, "v.jsonl:1: expected a group, as in"),
    ):
        valid = as_lines(tmp_path / "v.jsonl", rows, **groups)
        assert run([*options, "--valid", valid]) == 2, name
        assert complaint in capsys.readouterr().err and not (tmp_path / "m").exists()
    others = [{**row, "person": f"new {row['person']}"} for row in panel(3, 4)]
    valid = as_lines(tmp_path / "v.jsonl", others, group="person")
    assert run([*options, "--valid", valid]) == 0
    assert "they belong to 3 groups" in card(tmp_path / "m")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"group": "price"}, r'row 1: "price": expected one group in all rows of trip 0'),
        ({"group": "who"}, r'expected the column "who"'),
        ({"group": "person", "fields": ["person"]}, r'fields: "person" is the id of a group'),
        ({"group": ["p0"] * 6}, r"group: expected the name of a column"),
    ],
)
def test_refuses_groups_that_cannot_be_used(options, complaint):
    with pytest.raises(InputError, match=complaint):
        ptrnet.fit(panel(2, 3), **COLUMNS, **options, **TINY)


def test_a_single_group_cannot_be_split():
    rows = [{**row, "person": 7} for row in panel(2, 3)]
    with pytest.raises(InputError, match="6 examples of one group, all held out for validation"):
        ptrnet.fit(rows, **COLUMNS, group="person", **TINY)


def test_intervals_by_group_are_the_same_in_all_ways_to_evaluate(tmp_path, capsys):
    rows = panel(9, 30)
    model, data = str(tmp_path / "m"), written(tmp_path / "t.csv", rows)
    # The model reads the group, because it was trained without --group.
    with pytest.warns(AmbiguousInputWarning, match="the network also reads this field"):
        solver = ptrnet.fit(rows, **COLUMNS, **{**TINY, "valid_batches": 0}, output=model)
    expected = solver.evaluate(rows, **COLUMNS, group="person")
    with pytest.warns(AmbiguousInputWarning, match="too narrow"):
        alone = solver.evaluate(rows, **COLUMNS)
    assert expected["log_likelihood"]["low"] < alone["log_likelihood"]["low"]
    evaluate = ["evaluate", "--model", model, data, *NAMED, "--group=person", "--json"]
    output = str(tmp_path / "scores.jsonl")
    capsys.readouterr()
    for options in ([], ["--output", output, "--jobs=2"], ["--output", output]):
        assert run([*evaluate, *options]) == 0
        measured = json.loads(capsys.readouterr().out)
        assert (measured["instances"], measured["groups"]) == (270, 9)
        for metric, row in expected.items():
            assert measured["metrics"][metric] == pytest.approx(row), metric
