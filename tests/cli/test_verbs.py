"""Each verb does what its help says."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest


def refused(outcome, words):
    """Exit 2, one clear line on standard error, nothing else."""
    code, out, err = outcome
    assert code == 2 and out == "", (code, out, err)
    assert err.startswith("ptrnet: ") and err.count("\n") == 1, err
    assert words in err, err


def test_generate_is_deterministic_by_seed(tmp_path, ptrnet, points):
    again, other = tmp_path / "again.txt", tmp_path / "other.txt"
    ptrnet("generate", "hull", "--n", "3-9", "--count", "30", "--output", again, "--jobs", "2")
    ptrnet("generate", "hull", "--n", "3-9", "--count", "30", "--output", other, "--seed", "1")
    assert points.read_bytes() == again.read_bytes() != other.read_bytes()
    assert len(points.read_text().splitlines()) == 30


def test_solve_writes_the_files_own_format(tmp_path, ptrnet, model, points):
    code, out, _ = ptrnet("solve", "hull", points, "--model", model)
    assert code == 0
    first, given = out.splitlines()[0], points.read_text().splitlines()[0]
    assert first.split(" output ")[0] == given.split(" output ")[0]
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
    assert list(document) == ["task", "model", "decoder", "instances", "metrics"]
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


@pytest.mark.parametrize(
    "verb", ["", "solve", "evaluate", "train", "generate", "label", "convert", "models", "bench"]
)
def test_help_has_an_example(ptrnet, verb):
    code, out, _ = ptrnet(*verb.split(), "--help")
    assert code == 0 and (not verb or "Example: ptrnet " in out)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("solv", "Did you mean 'solve'"),
        ("solve hull a.txt --decoderr greedy", "--decoder"),
        ("solve hul a.txt", "unknown task 'hul'; did you mean 'hull'"),
        ("solve hull none.txt", "none.txt: cannot be read: No such file or directory"),
        ("solve hull none.txt --model hulll", "unknown model 'hulll'; did you mean 'hull'"),
        ("solve hull none.txt --decoder gredy", "unknown decoder 'gredy'; did you mean 'greedy'"),
        ("solve hull none.txt --decoder beam --beam-size 0", "beam size"),
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
        ("generate hull --n 5 --count 2 --jobs 0 --output a.txt", "--jobs: expected 1 or more"),
        ("generate hull --n 5 --count 2 --labeller held --output a.txt", "unknown labeller"),
        ("label hull none.txt --output a.txt", "none.txt: cannot be read"),
        ("train hull --step 5", "--steps"),
        ("train hull --steps x", "--steps"),
        ("train hull --optimizer adam", "unknown optimizer 'adam'; did you mean 'adamw'"),
        ("train none.toml", "none.toml: no such recipe"),
        ("train", "expected TASK, RECIPE.toml or --data FILE"),
        ("train own", "leave out TASK to train on a file of your own"),
        ("train hull --constraint free", "--constraint goes with --data FILE and no TASK"),
        ("train mine.jsonl", "did you mean --data mine.jsonl?"),
        ("train sort --start leftmost", "unknown recipe key 'start'"),
        ("models show hul", "unknown model 'hul'; did you mean 'hull'"),
    ],
)
def test_refused_in_one_line(tmp_path, monkeypatch, ptrnet, line, words):
    monkeypatch.chdir(tmp_path)
    refused(ptrnet(*line.split()), words)
    assert not list(tmp_path.iterdir())


def test_broken_input_leaves_no_output(tmp_path, ptrnet, model, points):
    points.write_text(points.read_text() + "0 0 1\n")
    output, picture = tmp_path / "out.txt", tmp_path / "p.png"
    for verb in ("solve", "evaluate"):
        refused(ptrnet(verb, points, "--model", model), "points.txt:31: expected 2 numbers")
    refused(ptrnet("solve", points, "--model", model, "--output", output, "--plot", picture), ":31")
    there = tmp_path / "no" / "a.txt"
    refused(
        ptrnet("solve", points, "--model", model, "--output", there, "--plot", picture), "a.txt"
    )
    refused(ptrnet("label", "hull", points, "--output", output), "points.txt:31")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "points.txt"]


def test_evaluate_needs_answers(tmp_path, ptrnet, model):
    path = tmp_path / "a.txt"
    path.write_text("0 0 1 0 0 1 output 1 2 3\n0 0 1 1\n")
    refused(ptrnet("evaluate", path, "--model", model), "a.txt:2: has no answer")


def test_plot_index_is_checked(tmp_path, ptrnet, model, points):
    picture = tmp_path / "p.png"
    outcome = ptrnet("solve", points, "--model", model, "--plot", picture, "--index", "30")
    refused(outcome, "--index: expected 0 to 29, got 30")
    assert not picture.exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path, program):
    output = tmp_path / "a.txt"

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    outcome = program(
        *("generate", "hull", "--n", "50", "--count", "100", "--output", output),
        preexec_fn=little_room,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},  # its cache would meet the limit first
    )
    refused(outcome, "a.txt: cannot be written: File too large")
    assert not list(tmp_path.iterdir())


def test_standard_streams(program, model):
    found = program("solve", "-", "--model", model, input="0 0 1 0 0 1\n")
    assert found[0] == 0 and found[1].startswith("0.0 0.0 1.0 0.0 0.0 1.0 output ")
    refused(program("label", "hull", "-", input="0 0 x 1\n"), "standard input:1: field 3")


def test_interrupted_is_130(monkeypatch, ptrnet):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ptrnet.tasks.get", interrupt)
    assert ptrnet("label", "hull", "a.txt") == (130, "", "")


def test_nothing_is_printed_before_all_is_read(tmp_path, ptrnet):
    path = tmp_path / "long.txt"
    path.write_text("0 0 1 0 0 1\n" * 1500 + "0 0 x\n")
    refused(ptrnet("label", "hull", path), "long.txt:1501: ")


def test_a_reader_that_leaves_early_is_no_error(tmp_path, points):
    path = tmp_path / "many.txt"
    path.write_text(points.read_text() * 300)
    command = f"{sys.executable} -m ptrnet label hull {path} | head -n 1; exit ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "") and found.stdout.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("verb", ["label hull", "evaluate --model {model}"])
def test_output_that_cannot_be_written_is_one_line(points, model, verb):
    command = f"{sys.executable} -m ptrnet {verb.format(model=model)} {points} > /dev/full"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert found.returncode == 2
    assert found.stderr == "ptrnet: standard output: cannot be written: No space left on device\n"


def test_closed_streams_are_no_crash(points):
    command = f"{sys.executable} -m ptrnet label hull {points} >&- <&-; echo $?"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert found.stdout == "2\n"
    assert found.stderr == "ptrnet: standard output: cannot be written: it is closed\n"


def test_names_that_are_not_utf8_are_shown_escaped(tmp_path):
    command = f"{sys.executable} -m ptrnet label hull $'\\xff.txt'"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 2 and "\\udcff.txt: cannot be read" in found.stderr


def test_text_is_utf8_whatever_the_locale(tmp_path, program):
    path = tmp_path / "towns.csv"
    path.write_text("town,x,y\nK\u00f8benhavn,0,0\nB,1,0\nC,0,1\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    code, out, err = program("label", "hull", path, env=environment, encoding="utf-8")
    assert code == 0 and "K\u00f8benhavn" in out, err


def test_bare_ptrnet_is_help(ptrnet):
    code, out, _ = ptrnet()
    assert code == 0 and out.startswith("Usage: ptrnet")


def test_version(ptrnet):
    assert ptrnet("--version")[1] == "ptrnet 0.1.0\n"


@pytest.mark.parametrize("n", ["1", "2"])
def test_too_few_random_points_are_refused(ptrnet, small, tmp_path, n):
    small("delaunay").save_pretrained(tmp_path / "m")
    code, out, errors = ptrnet("solve", "--model", tmp_path / "m", "--random", n)
    assert code == 2 and not out and f"expected 3 or more for delaunay, got {n}" in errors


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--beam-size", "4"], "--beam-size does nothing with greedy decoding"),
        (["--decoder", "beam", "--window", "4"], "--window does nothing with beam decoding"),
        (["--decoder", "sample", "--inner", "beam"], "--inner does nothing with sample decoding"),
        (["--decoder", "incremental", "--samples", "4"], "--samples does nothing with greedy"),
        (["--decoder", "incremental", "--inner", "bean"], "did you mean 'beam'"),
        (["--decoder", "beam", "--seconds", "1"], "--seconds does nothing with beam decoding"),
        (["--decoder", "reconstruct"], "reconstruct decoding does not serve hull"),
        (["--decoder", "incrementa"], "did you mean 'incremental'"),
    ],
)
def test_options_of_another_decoder_are_refused(ptrnet, points, options, complaint):
    code, out, errors = ptrnet("solve", "hull", points, *options)
    assert code == 2 and not out and complaint in errors


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
    found = json.loads(out)
    assert code == 0 and found["metrics"]["accuracy"]["value"] > 0.8
    assert found["decoder"] == (options[1] if options[0] == "--decoder" else "greedy")
