"""Each verb does what its help says."""

import json
from pathlib import Path

import pytest

from ptrnet.training.run_folder import next_numbered


def test_generate_is_deterministic_by_seed(tmp_path, ptrnet, points):
    again, other = tmp_path / "again.txt", tmp_path / "other.txt"
    ptrnet("generate", "hull", "--n", "3-9", "--count", "30", "--output", again, "--jobs", "2")
    ptrnet("generate", "hull", "--n", "3-9", "--count", "30", "--output", other, "--seed", "1")
    assert points.read_bytes() == again.read_bytes() != other.read_bytes()
    assert len(points.read_text().splitlines()) == 30


def test_generate_spreads_points_as_it_is_told(ptrnet, refused):
    arguments = ("generate", "hull", "--n", "30", "--count", "4", "--output", "-")
    code, out, _ = ptrnet(*arguments, "--points", "duplicates")
    assert code == 0
    for line in out.splitlines():
        numbers = line.split(" output ")[0].split()
        assert len(set(zip(numbers[::2], numbers[1::2], strict=True))) < 30
    refused(ptrnet(*arguments, "--points", "square"), "task hull: unknown points 'square'")


def test_solve_writes_the_files_own_format(tmp_path, ptrnet, model, points):
    code, out, _ = ptrnet("solve", "hull", points, "--model", model)
    assert code == 0
    solved, read = out.splitlines()[0], points.read_text().splitlines()[0]
    assert solved.split(" output ")[0] == read.split(" output ")[0]
    answer = tmp_path / "answer.jsonl"
    assert ptrnet("solve", points, "--model", model, "--output", answer)[:2] == (0, "")
    rows = [json.loads(line) for line in answer.read_text().splitlines()]
    ones = [[int(i) - 1 for i in line.split(" output ")[1].split()] for line in out.splitlines()]
    assert [row["outputs"] for row in rows] == [one[:-1] or one for one in ones]


def test_solve_json_is_one_document(ptrnet, model, points):
    code, out, _ = ptrnet(
        "solve", points, "--model", model, "--decoder", "beam", "--beam-size", "3", "--json"
    )
    document = json.loads(out)
    assert code == 0 and len(document["answers"]) == 30
    assert document["decoder"] == "beam" and document["task"] == "hull"
    assert all(a["log_likelihood"] <= 0 for a in document["answers"])


def test_solve_csv_gives_rows_in_the_answers_order(tmp_path, ptrnet, model):
    table = tmp_path / "towns.csv"
    table.write_text("town,x,y\nA,0,0\nB,4,0\nC,0,3\n")
    code, out, _ = ptrnet("solve", table, "--model", model)
    assert code == 0
    header, *rows = out.splitlines()
    assert header == "town,x,y" and rows and set(rows) <= {"A,0,0", "B,4,0", "C,0,3"}


def test_solve_random_and_plot(tmp_path, ptrnet, model):
    picture = tmp_path / "p.png"
    first = ptrnet("solve", "--model", model, "--random", "6", "--plot", picture, "--seed", "3")
    assert first[0] == 0 and first == ptrnet("solve", "--model", model, "--random", 6, "--seed", 3)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000
    drawn = tmp_path / "p.svg"
    for _ in range(2):
        assert ptrnet("solve", "--model", model, "--random", 6, "--plot", drawn)[0] == 0
    text = drawn.read_text()
    assert "<svg" in text and "network" in text


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


def test_constrained_answers_have_no_vertex_twice_and_free_ones_may(ptrnet, model, points):
    def longest_repeat(*more):
        _, out, _ = ptrnet("solve", points, "--model", model, "--json", *more)
        answers = [a["outputs"] for a in json.loads(out)["answers"]]
        return max(len(a) - len(set(a)) for a in answers)

    assert longest_repeat() == 0 < longest_repeat("--free")


def test_label_replaces_answers(tmp_path, ptrnet, points):
    bare = tmp_path / "bare.txt"
    bare.write_text("".join(f"{x.split(' output ')[0]}\n" for x in points.read_text().splitlines()))
    labelled = tmp_path / "labelled.txt"
    arguments = ("--labeller", "monotone-chain", "--output", labelled)
    assert ptrnet("label", "hull", bare, *arguments)[0] == 0
    assert labelled.read_bytes() == points.read_bytes()


def test_models_lists_and_shows(ptrnet):
    code, out, _ = ptrnet("models")
    assert code == 0 and "hull" in out and "sort" in out
    listed = json.loads(ptrnet("models", "--json")[1])["models"]
    assert {row["task"] for row in listed} >= {"hull", "sort"}
    assert all(row["scores"] and Path(row["file"]).exists() for row in listed)
    code, out, _ = ptrnet("models", "show", "hull")
    assert code == 0 and out.startswith("# hull")


def test_runs_without_a_folder_are_numbered(ptrnet, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    options = ["--n", "3", "--steps", "2", "--hidden-size", "4", "--batch-size", "4"]
    options += ["--valid-batches", "0"]
    assert ptrnet("train", "sort", *options)[:2] == (0, "runs/sort-1\n")
    assert ptrnet("train", "sort", *options)[:2] == (0, "runs/sort-2\n")
    assert ptrnet("train", "sort", *options, "--resume")[:2] == (0, "runs/sort-2\n")
    assert ptrnet("train", "sort", "--resume")[:2] == (0, "runs/sort-2\n")
    again = ("--output", "runs/sort-1", "--resume")
    assert ptrnet("train", "sort", *again)[:2] == (0, "runs/sort-1\n")
    refused(ptrnet("train", "hull", *again), "the run is of task sort, asked to resume hull")
    refused(ptrnet("train", "sort", *again, "--seed", "9"), "the run has seed = 1, asked to resume")
    refused(ptrnet("train", "hull", "--resume"), "runs/hull-1: there is no run to resume")
    refused(ptrnet("train", "hull", "--data", "none.txt"), "none.txt: cannot be read")
    assert not list(Path("runs").glob("hull*"))
    with next_numbered(Path("runs"), "sort") as one, next_numbered(Path("runs"), "sort") as other:
        # Of two that were begun together one was refused.
        assert (one.name, other.name) == ("sort-3", "sort-4")
    Path("runs/sort-7").mkdir()  # of a training that was killed before it began
    assert ptrnet("train", "sort", "--resume")[:2] == (0, "runs/sort-2\n")
    Path("runs/sort-2").rename("runs/sort-10")
    Path("runs/sort-mine").mkdir()
    assert ptrnet("train", "sort", *options)[:2] == (0, "runs/sort-11\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("solv", "Did you mean 'solve'"),
        ("solve hull a.txt --decoderr greedy", "--decoder"),
        ("solve hul a.txt", "unknown task 'hul'; did you mean 'hull'"),
        ("solve hull none.txt", "none.txt: cannot be read: No such file or directory"),
        ("solve hull none.txt --model hulll", "unknown model 'hulll'; did you mean 'hull'"),
        ("solve hull none.txt --decoder gredy", "unknown decoder 'gredy'; did you mean 'greedy'"),
        ("solve hull none.txt --decoder beam --beam-size 0", "--beam-size: expected a whole"),
        ("solve hull none.txt --plot p.gif", "p.gif: expected a picture's name"),
        (
            "solve hull none.txt --plot no/p.png",
            "no/p.png: cannot be written: there is no folder no",
        ),
        ("solve hull none.txt --output a.xls", "unknown file format 'xls'"),
        ("solve hull", "expected TASK FILE, or FILE with --model; got: hull"),
        ("solve none.txt", "expected TASK FILE, or FILE with --model; got: none.txt"),
        ("solve sort none.txt --model hull", "model hull serves task hull, asked for sort"),
        ("solve hull --random 100001", "n: expected 1 <= A <= B <= 100000"),
        ("evaluate hull", "expected TASK FILE"),
        ("generate hull --n 5 --count 2 --output no/a.txt", "no/a.txt: cannot be written"),
        ("generate hull --n x --count 2 --output a.txt", "n: expected"),
        ("generate hull --n 5 --count 0 --output a.txt", "--count"),
        ("generate hull --n 5 --count 2 --jobs 0 --output a.txt", "jobs: expected 1 or more"),
        ("generate hull --n 5 --count 2 --labeller held --output a.txt", "unknown labeller"),
        ("label hull none.txt --output a.txt", "none.txt: cannot be read"),
        ("train hull --step 5", "--steps"),
        ("train hull --lr 1", "no such option: --lr; did you mean --learning-rate?"),
        ("train hull --epochs 1", "did you mean --steps, the updates of the weights"),
        ("train hull --device gpu", "unknown device 'gpu'; did you mean 'cuda'?"),
        ("train hull --steps x", "--steps"),
        ("train hull --optimizer adam", "unknown optimizer 'adam'; did you mean 'adamw'"),
        ("train none.toml", "none.toml: no such recipe"),
        ("train", "expected TASK, RECIPE.toml or --data FILE"),
        ("train custom", "leave out TASK to train on a file of your own"),
        ("train hull --constraint free", "--constraint goes with --data FILE and no TASK"),
        ("train mine.jsonl", "did you mean --data mine.jsonl?"),
        ("train sort --start leftmost", "unknown recipe key 'start'"),
        ("models show hul", "unknown model 'hul'; did you mean 'hull'"),
    ],
)
def test_refused_in_one_line(tmp_path, monkeypatch, ptrnet, line, message, refused):
    monkeypatch.chdir(tmp_path)
    refused(ptrnet(*line.split()), message)
    assert not list(tmp_path.iterdir())


def test_broken_input_leaves_no_output(tmp_path, ptrnet, model, points, refused):
    points.write_text(points.read_text() + "0 0 1\n")
    output, picture = tmp_path / "out.txt", tmp_path / "p.png"
    for verb in ("solve", "evaluate"):
        refused(ptrnet(verb, points, "--model", model), "points.txt:31: expected 2 numbers")
    refused(ptrnet("solve", points, "--model", model, "--output", output, "--plot", picture), ":31")
    no_folder = tmp_path / "no" / "a.txt"
    refused(
        ptrnet("solve", points, "--model", model, "--output", no_folder, "--plot", picture), "a.txt"
    )
    refused(ptrnet("label", "hull", points, "--output", output), "points.txt:31")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "points.txt"]


def test_evaluate_needs_answers(tmp_path, ptrnet, model, refused):
    path = tmp_path / "a.txt"
    path.write_text("0 0 1 0 0 1 output 1 2 3\n0 0 1 1\n")
    refused(ptrnet("evaluate", path, "--model", model), "a.txt:2: has no answer")


def test_plot_index_is_checked(tmp_path, ptrnet, model, points, refused):
    picture = tmp_path / "p.png"
    outcome = ptrnet("solve", points, "--model", model, "--plot", picture, "--index", "30")
    refused(outcome, "--index: expected 0 to 29, got 30")
    assert not picture.exists()


def test_interrupted_is_130(monkeypatch, ptrnet):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ptrnet.tasks.get", interrupt)
    assert ptrnet("label", "hull", "a.txt") == (130, "", "")


def test_nothing_is_printed_before_all_is_read(tmp_path, ptrnet, refused):
    path = tmp_path / "long.txt"
    path.write_text("0 0 1 0 0 1\n" * 1500 + "0 0 x\n")
    refused(ptrnet("label", "hull", path), "long.txt:1501: ")


def test_bare_ptrnet_is_help(ptrnet):
    code, out, _ = ptrnet()
    assert code == 0 and out.startswith("Usage: ptrnet")


def test_version(ptrnet):
    assert ptrnet("--version")[1] == "ptrnet 0.1.0\n"


@pytest.mark.parametrize("n", ["1", "2"])
def test_too_few_random_points_are_refused(ptrnet, small, tmp_path, n, refused):
    small("delaunay").save_pretrained(tmp_path / "m")
    outcome = ptrnet("solve", "--model", tmp_path / "m", "--random", n)
    refused(outcome, f"expected 3 or more for delaunay, got {n}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam-size", "4"], "--beam-size does nothing with greedy decoding"),
        (["--decoder", "beam", "--window", "4"], "--window does nothing with beam decoding"),
        (["--decoder", "sample", "--inner", "beam"], "--inner does nothing with sample decoding"),
        (["--decoder", "incremental", "--samples", "4"], "--samples does nothing with greedy"),
        (["--decoder", "incremental", "--inner", "bean"], "did you mean 'beam'"),
        (["--decoder", "beam", "--seconds", "1"], "--seconds does nothing with beam decoding"),
        (["--decoder", "sample", "--rounds", "2"], "--rounds does nothing with sample decoding"),
        (["--decoder", "beam", "--part", "9"], "--part does nothing with beam decoding"),
        (["--decoder", "reconstruct"], "reconstruct decoding does not serve hull"),
        (["--decoder", "incrementa"], "did you mean 'incremental'"),
    ],
)
def test_options_of_another_decoder_are_refused(ptrnet, points, options, message, refused):
    refused(ptrnet("solve", "hull", points, *options), message)


@pytest.mark.parametrize(
    "options",
    [
        ["--decoder", "sample", "--samples", "3", "--temperature", "0.5"],
        ["--decoder", "incremental", "--window", "4"],
        ["--decoder", "incremental", "--inner", "beam", "--beam-size", "3"],
        ["--augment", "4"],
    ],
)
def test_every_decoder_is_reached(ptrnet, points, options):
    code, out, _ = ptrnet("evaluate", "hull", points, "--json", *options)
    document = json.loads(out)
    assert code == 0 and document["metrics"]["accuracy"]["value"] > 0.8
    assert document["decoder"] == (options[1] if options[0] == "--decoder" else "greedy")


def test_parts_of_tours_are_solved_again(ptrnet, small, tmp_path):
    small("tsp", "remaining-ptr-net").save_pretrained(tmp_path / "m")
    solve = ("solve", "--model", tmp_path / "m", "--random", "12", "--decoder", "reconstruct")
    code, out, _ = ptrnet(*solve, "--rounds", "20")
    assert code == 0 and ptrnet(*solve, "--rounds", "20")[1] == out
    assert ptrnet(*solve, "--rounds", "0")[1] != out
    assert ptrnet(*solve, "--rounds", "20", "--part", "50")[1] == out
    assert ptrnet(*solve, "--rounds", "20", "--part", "5")[1] != out
