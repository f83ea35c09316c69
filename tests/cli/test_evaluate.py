"""`ptrnet evaluate`: fresh instances equal those of `generate`; rows by n equal files of one n."""

import json

import numpy as np
import pytest

import ptrnet as ptrnet_package
from ptrnet import load, tasks
from ptrnet.data import formats
from ptrnet.labels import generate_dataset
from ptrnet.run import CHUNK
from ptrnet.solver import evaluating
from ptrnet.solver.predict import predictor_of
from ptrnet.types import Dataset
from tests.cli.test_bulk import interrupted


def evaluated(ptrnet, *arguments):
    code, out, err = ptrnet("evaluate", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_fresh_instances_are_those_of_generate(tmp_path, ptrnet, model):
    path = tmp_path / "a.jsonl"
    options = ("--n", "3-9", "--seed", "4")
    ptrnet("generate", "hull", "--count", "40", "--output", path, *options)
    expected = evaluated(ptrnet, "--model", model, path)
    fresh = evaluated(ptrnet, "hull", "--model", model, "--random", "40", *options)
    assert fresh == expected
    other = evaluated(ptrnet, "hull", "--model", model, "--random", "40", "--n", "3-9")
    assert other != expected


def test_an_evaluation_shows_its_measures(small, tmp_path):
    ptrnet_package.generate("hull", 5, 9, output=tmp_path / "a.jsonl")
    evaluation = small(scale=8.0).evaluate_file(tmp_path / "a.jsonl")
    accuracy = evaluation.measures()["accuracy"].text(4)
    assert repr(evaluation).startswith(f"Evaluation of 9 examples: accuracy {accuracy}, simple ")


def test_fresh_instances_are_kept_with_their_scores(tmp_path, ptrnet, model, monkeypatch):
    """A stopped evaluation can be resumed, and two processes give the same scores as one."""
    output = tmp_path / "scores.jsonl"
    options = ("--model", model, "--random", CHUNK + 9, "--n", "3-6")
    alone = evaluated(ptrnet, *options)
    assert evaluated(ptrnet, *options, "--jobs", 2) == alone
    monkeypatch.setattr("ptrnet.sinks._join", interrupted)
    assert ptrnet("evaluate", *options, "--output", output)[0] == 130
    monkeypatch.undo()
    code, out, err = ptrnet("evaluate", *options, "--output", output, "--json")
    assert code == 0 and "resuming after 259 examples" in err
    assert json.loads(out) == alone
    drawn = generate_dataset(tasks.get("hull"), range(3, 7), CHUNK + 9, seed=0)
    kept = formats.read(str(output), tasks.get("hull"))
    for example, row in zip(drawn, kept, strict=True):
        assert np.array_equal(example.inputs, row.inputs) and "answer" in row.extra


def test_random_instances_of_other_sizes_give_a_warning(tmp_path, ptrnet, small):
    solver = small(seed=1)
    solver.trained["n"] = "3-6"
    solver.save_pretrained(tmp_path / "m")
    options = ("evaluate", "--model", tmp_path / "m", "--random", 5)
    assert ptrnet(*options)[2] == ""
    for n in ("3-9", "9"):
        text = "trained on instances of 3-6 elements, this one has 9"
        assert text in ptrnet(*options, "--n", n)[2]


def test_rows_by_n_are_those_of_files_of_one_n(tmp_path, ptrnet, model):
    path = tmp_path / "a.jsonl"
    ptrnet("generate", "hull", "--n", "3-5", "--count", "40", "--output", path)
    document = evaluated(ptrnet, "--model", model, path)
    lines = path.read_text().splitlines()
    assert [row["n"] for row in document["by_n"]] == ["3", "4", "5"]
    for row in document["by_n"]:
        part = tmp_path / "part.jsonl"
        kept = [line for line in lines if len(json.loads(line)["inputs"]) == int(row["n"])]
        part.write_text("\n".join(kept) + "\n")
        alone = evaluated(ptrnet, "--model", model, part)
        assert "by_n" not in alone and alone["instances"] == row["instances"] == len(kept)
        for metric, expected in alone["metrics"].items():
            for key, value in expected.items():
                close = None if value is None else pytest.approx(value, rel=1e-4, abs=1e-6)
                assert row["metrics"][metric][key] == close, metric
    text = ptrnet("evaluate", "--model", model, path)[1]
    assert [line.split()[0] for line in text.splitlines()[-4:]] == ["n", "3", "4", "5"]


def test_many_sizes_share_rows(ptrnet, model):
    document = evaluated(ptrnet, "--model", model, "--random", "200", "--n", "3-42")
    rows = document["by_n"]
    assert len(rows) == 12 and rows[0]["n"].startswith("3-")
    assert sum(row["instances"] for row in rows) == document["instances"] == 200


def test_points_option_changes_the_distribution(ptrnet, model):
    outs = [
        ptrnet("solve", "--model", model, "--random", "6", "--points", kind)[1]
        for kind in ("uniform", "grid")
    ]
    assert outs[0] == ptrnet("solve", "--model", model, "--random", "6")[1] != outs[1]
    options = ("--model", model, "--random", "20", "--n", "5")
    assert evaluated(ptrnet, *options) != evaluated(ptrnet, *options, "--points", "clustered")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a.txt", "--n", "5"], "--n needs --random"),
        (["a.txt", "--points", "grid"], "--points needs --random"),
        (["--random", "5", "--points", "gird"], "unknown points 'gird'; did you mean 'grid'?"),
        (["--random", "5", "--n", "0"], "n: expected 1 <= A <= B"),
        (["--random", "5", "--output", "b.txt"], "b.txt: cannot hold scores"),
        (["a.txt", "--output", "b.txt"], "b.txt: cannot hold scores; write to .jsonl or .par"),
    ],
)
def test_wrong_options_are_refused(ptrnet, model, options, message, refused):
    refused(ptrnet("evaluate", "--model", model, *options), message)


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_scores_are_kept_and_add_up(tmp_path, ptrnet, model, monkeypatch, extension):
    """Some answers of a model without the constraint are not simple polygons, and have no area."""
    path, output = tmp_path / "a.jsonl", tmp_path / f"scores.{extension}"
    ptrnet("generate", "hull", "--n", "3-6", "--count", CHUNK + 9, "--output", path)
    options = ("--model", model, path, "--free")
    alone = evaluated(ptrnet, *options)
    assert alone["metrics"]["area"]["fail"]
    monkeypatch.setattr("ptrnet.sinks._join", interrupted)
    assert ptrnet("evaluate", *options, "--output", output)[0] == 130
    monkeypatch.undo()
    assert evaluated(ptrnet, *options, "--output", output) == alone

    solver = load(model)
    examples = list(formats.read(str(path), solver.task))
    answers = list(solver.predict(examples, constrained=False))
    rows = list(formats.read(str(output), solver.task))
    assert len(rows) == alone["instances"] == CHUNK + 9
    for example, answered, row in zip(examples, answers, rows, strict=True):
        (is_right,) = solver.task.score([example], [answered.outputs])["accuracy"]
        assert row.outputs.tolist() == example.outputs.tolist()
        assert row.extra["answer"] == answered.outputs.tolist()
        assert row.extra["accuracy"] is bool(is_right)
        assert ("area" in row.extra) == row.extra["simple"]
    likelihoods = [row.extra["log_likelihood"] for row in rows]
    assert alone["metrics"]["log_likelihood"]["value"] == pytest.approx(np.mean(likelihoods))
    accuracy = np.mean([row.extra["accuracy"] for row in rows])
    assert alone["metrics"]["accuracy"]["value"] == accuracy
    again = [row.replace(extra={**row.extra, "area": 0.5}) for row in rows]
    predictor = predictor_of(solver.model, solver.task, constrained=False)
    known = evaluating.evaluated(predictor, Dataset.of(again))
    assert [{*row.extra} for row in known] == [
        {*row.extra} for row in rows
    ]  # no score of the former model stays
    assert all(row.extra.get("area") != 0.5 for row in known)
    by_hand = solver.evaluate(examples, constrained=False)
    for metric, expected in alone["metrics"].items():
        value = expected["value"]
        close = None if value is None else pytest.approx(value, rel=1e-5)
        assert by_hand[metric]["value"] == close, metric


@pytest.mark.parametrize("key", ["accuracy", "answer", "log_likelihood"])
def test_scores_do_not_overwrite_keys_of_a_line(tmp_path, ptrnet, model, refused, key):
    path, output = tmp_path / "a.jsonl", tmp_path / "scores.jsonl"
    path.write_text(f'{{"inputs": [[0, 0], [1, 0], [0, 1]], "outputs": [0, 1, 2], "{key}": 7}}\n')
    command = ("evaluate", "--model", model, path)
    refused(ptrnet(*command, "--output", output), f'a.jsonl:1: "{key}" is the name of a score')
    assert not output.exists() and ptrnet(*command)[0] == 0


def test_an_example_without_an_answer_is_named(tmp_path, refused, ptrnet, model):
    path, output = tmp_path / "a.jsonl", tmp_path / "scores.jsonl"
    path.write_text(
        '{"inputs": [[0, 0], [1, 0], [0, 1]], "outputs": [0, 1, 2]}\n'
        '{"inputs": [[0, 0], [1, 0], [0, 1]]}\n'
    )
    result = ptrnet("evaluate", "--model", model, path, "--output", output)
    refused(result, "a.jsonl:2: has no answer to measure against")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "model"]


def test_evaluate_has_the_documented_shape(ptrnet, model, points):
    code, out, _ = ptrnet("evaluate", "hull", points, "--model", model, "--json")
    document = json.loads(out)
    assert code == 0
    assert list(document)[:5] == ["task", "model", "decoder", "instances", "metrics"]
    assert document["instances"] == 30 and document["decoder"] == "greedy"
    assert list(document["metrics"]) == ["accuracy", "simple", "area", "log_likelihood"]
    for name, measure in document["metrics"].items():
        assert {"value", "low", "high", "count"} <= set(measure), name
        assert measure.get("fail") or measure["low"] <= measure["value"] <= measure["high"]
    code, out, _ = ptrnet("evaluate", points, "--model", model)
    assert code == 0 and out.splitlines()[0] == (f"30 instances, model {model}, greedy decoding")


def test_evaluate_needs_answers(tmp_path, ptrnet, model, refused):
    path = tmp_path / "a.txt"
    path.write_text("0 0 1 0 0 1 output 1 2 3\n0 0 1 1\n")
    refused(ptrnet("evaluate", path, "--model", model), "a.txt:2: has no answer")


@pytest.mark.parametrize(
    "options",
    [
        ["--decoder", "sample", "--samples", "3", "--temperature", "0.5"],
        ["--decoder", "incremental", "--window", "4"],
        ["--decoder", "incremental", "--inner", "beam", "--beam-size", "3"],
        ["--augment", "4"],
    ],
)
def test_each_decoder_can_be_chosen(ptrnet, points, options):
    code, out, _ = ptrnet("evaluate", "hull", points, "--json", *options)
    document = json.loads(out)
    assert code == 0 and document["metrics"]["accuracy"]["value"] > 0.8
    assert document["decoder"] == (options[1] if options[0] == "--decoder" else "greedy")


def test_the_cutoffs_gains_and_irrelevant_sets_are_those_of_the_options(tmp_path, ptrnet):
    rng = np.random.default_rng(1)
    rows = [
        {"inputs": rng.random((4, 1)).tolist(), "grades": grades}
        for grades in [[0, 1, 2, 0]] * 20 + [[0, 0, 0, 0]] * 20
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    ptrnet("train", "--data", path, "--kind", "grades", "--steps", 2, "--gains", "0,1,2",
           "--output", tmp_path / "model")  # fmt: skip
    assert load(tmp_path / "model").task.gains == (0, 1, 2)
    usual, out = (
        evaluated(ptrnet, "--model", tmp_path / "model", path, *options)["metrics"]
        for options in ((), ("--at", "2,3", "--gains", "0,1,9", "--irrelevant", "out"))
    )
    assert {"ndcg@1", "ndcg@5", "ndcg@10"} <= usual.keys()
    assert {"ndcg@2", "ndcg@3"} == {name for name in out if name.startswith("ndcg")}
    assert (usual["mrr"]["count"], out["mrr"]["count"]) == (40, 20)
    assert 2 * usual["mrr"]["value"] == pytest.approx(1 + out["mrr"]["value"])
    code, _, err = ptrnet("evaluate", "--model", tmp_path / "model", path, "--at", "3,x")
    assert code == 2 and "--at: expected numbers such as 1,5,10, got '3,x'" in err
    code, _, err = ptrnet("evaluate", "--model", tmp_path / "model", path, "--gains", "0,1")
    assert code == 2 and "got grade 2" in err
