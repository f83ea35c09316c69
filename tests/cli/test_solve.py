"""`ptrnet solve`."""

import json
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import ptrnet as library
from ptrnet import sinks, tasks
from ptrnet.data import formats
from ptrnet.errors import AmbiguousInputWarning
from ptrnet.run import CHUNK
from ptrnet.types import Example
from tests.cli.test_bulk import interrupted
from tests.support.pages import BOXES, hocr

COUNT = 2 * CHUNK + 40
TABLE = "id,x,y\n7,0,0\n8,1,0\n9,0,1\n10,0.2,0.2\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model, instances of three sizes, and the library's answers to them."""
    folder = tmp_path_factory.mktemp("bulk")
    rng = np.random.default_rng(0)
    numbers = [rng.random((int(n), 1)) for n in rng.integers(2, 5, COUNT)]
    formats.write(
        str(folder / "in.jsonl"),
        [Example(x, extra={"name": k}) for k, x in enumerate(numbers)],
        tasks.get("sort"),
    )
    library.fit(
        [(x, np.argsort(x[:, 0])) for x in numbers[:40]],
        "permutation",
        steps=3,
        hidden_size=8,
        output=folder / "model",
    )
    solver = library.load(folder / "model")
    answered = [
        Example(x, a, extra={"name": k})
        for k, (x, a) in enumerate(zip(numbers, solver.solve(numbers), strict=True))
    ]
    formats.write(str(folder / "out.jsonl"), answered, solver.task)
    return folder


def test_a_stopped_job_resumes_to_the_same_file(ptrnet, folder, tmp_path, monkeypatch):
    """One process starts the job, two resume it: the answers equal the library's in one call."""
    solve = ["solve", "--model", folder / "model", folder / "in.jsonl"]
    output, write = tmp_path / "out.jsonl", sinks._write_chunk

    def write_and_stop(*arguments):
        write(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(sinks, "_write_chunk", write_and_stop)
    assert ptrnet(*solve, "--output", output, "--jobs", 1)[0] == 130
    monkeypatch.undo()
    (first,) = (tmp_path / "out.jsonl.partial").glob("000000-*.jsonl")
    done = first.read_bytes()
    assert done.count(b"\n") == CHUNK and not output.exists()
    code, _, errors = ptrnet(*solve, "--output", output, "--jobs", 2)
    assert code == 0 and f"resuming after {CHUNK} examples" in errors
    assert output.read_bytes() == (folder / "out.jsonl").read_bytes()
    assert output.read_bytes().startswith(done)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.jsonl"]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (["--decoder", "beam"], "decoder"),
        (["--free"], "constrained"),
        (["--augment", "2"], "augment"),
    ],
)
def test_a_job_with_other_options_is_not_resumed(
    ptrnet, folder, tmp_path, monkeypatch, other, what
):
    solve = ["solve", "--model", folder / "model", folder / "in.jsonl"]
    solve += ["--output", tmp_path / "out.jsonl"]
    monkeypatch.setattr("ptrnet.sinks._join", interrupted)
    assert ptrnet(*solve)[0] == 130
    monkeypatch.undo()
    code, _, errors = ptrnet(*solve, *other)
    assert code == 2 and f"unfinished job with other options ({what}" in errors


def test_a_job_with_another_network_is_not_resumed(folder, tmp_path, monkeypatch):
    solver = library.load(folder / "model")
    monkeypatch.setattr("ptrnet.sinks._join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.solve_file(folder / "in.jsonl", tmp_path / "out.jsonl")
    monkeypatch.undo()
    next(solver.model.parameters()).data[0] += 1
    with pytest.raises(library.InputError, match=r"unfinished job with other options \(weights"):
        solver.solve_file(folder / "in.jsonl", tmp_path / "out.jsonl")


def test_a_line_that_cannot_be_used_leaves_nothing(ptrnet, folder, tmp_path):
    lines = (folder / "in.jsonl").read_text().splitlines()
    lines[CHUNK + 3] = '{"inputs": [["x"]]}'
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    command = ["solve", "--model", folder / "model", tmp_path / "bad.jsonl"]
    code, out, errors = ptrnet(*command, "--output", tmp_path / "out.jsonl")
    assert (code, out) == (2, "") and f"bad.jsonl:{CHUNK + 4}: " in errors
    assert [p.name for p in tmp_path.iterdir()] == ["bad.jsonl"]
    code, out, errors = ptrnet(*command)
    assert (code, out) == (2, "") and f"bad.jsonl:{CHUNK + 4}: " in errors


def test_a_doubt_about_many_lines_is_printed_once(ptrnet, tmp_path, monkeypatch):
    """Once, it was printed for each chunk, because filters of warnings had changed."""
    read = formats.read_instances

    def doubting(*arguments):
        for example in read(*arguments):
            warnings.warn("in.txt: a doubt", AmbiguousInputWarning, stacklevel=1)
            yield example

    monkeypatch.setattr(formats, "read_instances", doubting)
    (tmp_path / "in.txt").write_text("0 1\n" * 3 * CHUNK)
    _, _, errors = ptrnet("solve", "sort", tmp_path / "in.txt", "--output", tmp_path / "o.txt")
    assert errors == "ptrnet: in.txt: a doubt\n"


def test_one_document_is_the_same_by_many_processes(ptrnet, folder):
    command = ["solve", "--model", folder / "model", folder / "in.jsonl", "--json"]
    code, document, _ = ptrnet(*command)
    assert code == 0 and len(json.loads(document)["answers"]) > CHUNK
    assert ptrnet(*command, "--jobs", "2")[:2] == (0, document)


def test_lines_of_standard_input_are_answered_as_they_arrive():
    """Each before the next is written; what cannot be used ends it, after the answers before."""
    command = [sys.executable, "-m", "ptrnet", "solve", "sort", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        for line, answer in (("0.5 0.1 0.9", "2 1 3"), ("0.7 0.2", "2 1")):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{line} output {answer}\n"
        out, errors = process.communicate("0.4 0.3\n0.1 x\n", timeout=120)
        assert out == "0.4 0.3 output 2 1\n"
        assert process.returncode == 2 and "standard input:4: " in errors
        assert errors.count("\n") == 1


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


def test_solve_json_names_pages_and_their_boxes(tmp_path, ptrnet):
    """Readers sort boxes and leave out pages, so indices alone do not tell which ones are meant."""
    page, out = tmp_path / "a.hocr", tmp_path / "b.hocr"
    empty = "<div class='ocr_page' id='p0'></div>"
    page.write_text(hocr().replace("<div class='ocr_page'", f"{empty}<div class='ocr_page'"))
    code, document, _ = ptrnet("solve", "reading-order", page, "--json", "--output", out)
    (answer,) = json.loads(document)["answers"]
    assert code == 0 and answer["source"] == f"{page}:6"
    ids = [answer["ids"][i] for i in answer["outputs"]]
    assert ids == re.findall("<div class='ocr_carea' id='(.)'", out.read_text()) != [*BOXES]


def test_solve_csv_gives_rows_in_the_answers_order(tmp_path, ptrnet, model):
    table = tmp_path / "towns.csv"
    table.write_text("town,x,y\nA,0,0\nB,4,0\nC,0,3\n")
    code, out, _ = ptrnet("solve", table, "--model", model)
    assert code == 0
    header, *rows = out.splitlines()
    assert header == "town,x,y" and rows and set(rows) <= {"A,0,0", "B,4,0", "C,0,3"}


@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl"])
def test_a_long_table_is_answered_alike_with_plot_and_json(tmp_path, ptrnet, model, extension):
    if extension == "parquet":
        pytest.importorskip("pyarrow")
    table, picture = tmp_path / "t.csv", tmp_path / "p.svg"
    text = "set,town,x,y\n1,A,0,0\n2,D,5,5\n1,B,1,0\n2,E,6,5\n1,C,0,1\n2,F,5,6\n"
    table.write_text(text)
    command = ["solve", table, "--model", model, "--set-id", "set"]
    expected, drawn, both = (tmp_path / f"{name}.{extension}" for name in ("a", "b", "c"))
    assert ptrnet(*command, "--output", expected)[0] == 0
    plot = ["--plot", picture, "--index", "1"]
    assert ptrnet(*command, "--output", drawn, *plot)[:2] == (0, "") and picture.exists()
    _, document, _ = ptrnet(*command, "--output", both, "--json")
    assert drawn.read_bytes() == both.read_bytes() == expected.read_bytes()
    printed = ptrnet(*command)[1]
    assert printed.startswith("set,town,x,y,place\n") and ptrnet(*command, *plot)[1] == printed
    table.write_text(text.replace("town", "place"))  # --json adds no column of this name
    assert json.loads(ptrnet(*command, "--json")[1])["answers"] == json.loads(document)["answers"]
    assert ptrnet(*command, *plot)[0] == 2


@pytest.mark.parametrize("more", [(), ("--json",), ("--plot",)])
def test_a_column_of_answers_never_replaces_a_column_of_the_table(
    tmp_path, ptrnet, small, refused, more
):
    """Once, `--chosen price` wrote ones and zeros over the prices."""
    own = {"kind": "choice", "fields": ("price",), "categories": ((),)}
    small("custom", **own, center=(0.0,), spread=(1.0,)).save_pretrained(tmp_path / "own")
    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    table.write_text("set,price,town\n1,3,A\n1,4,B\n")
    command = ("solve", table, "--model", tmp_path / "own", "--set-id", "set", "--output", out)
    more += (tmp_path / "p.svg",) * ("--plot" in more)
    for name in ("price", "town"):
        complaint = f'has a column "{name}" already; name another column for the answers (--chosen)'
        refused(ptrnet(*command, "--chosen", name, *more), complaint)
        assert not out.exists()
    assert ptrnet(*command, "--chosen", "bought", *more)[0] == 0
    assert out.read_text().startswith("set,price,town,bought\n1,3,A,")


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


def test_constrained_answers_have_no_vertex_twice_and_free_ones_may(ptrnet, model, points):
    def longest_repeat(*more):
        _, out, _ = ptrnet("solve", points, "--model", model, "--json", *more)
        answers = [a["outputs"] for a in json.loads(out)["answers"]]
        return max(len(a) - len(set(a)) for a in answers)

    assert longest_repeat() == 0 < longest_repeat("--free")


def test_plot_index_is_checked(tmp_path, ptrnet, model, points, refused):
    picture = tmp_path / "p.png"
    outcome = ptrnet("solve", points, "--model", model, "--plot", picture, "--index", "30")
    refused(outcome, "--index: expected 0 to 29, got 30")
    assert not picture.exists()


@pytest.mark.parametrize("n", ["1", "2"])
def test_too_few_random_points_are_refused(ptrnet, small, tmp_path, n, refused):
    small("delaunay").save_pretrained(tmp_path / "m")
    outcome = ptrnet("solve", "--model", tmp_path / "m", "--random", n)
    refused(outcome, f"expected 3 or more for delaunay, got {n}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam-size", "4"], "--beam-size has no effect with greedy decoding"),
        (["--decoder", "beam", "--window", "4"], "--window has no effect with beam decoding"),
        (["--decoder", "sample", "--inner", "beam"], "--inner has no effect with sample decoding"),
        (
            ["--decoder", "incremental", "--samples", "4"],
            "--samples has no effect with incremental decoding and --inner greedy",
        ),
        (
            ["--decoder", "incremental", "--seconds", "1"],
            "--seconds has no effect with incremental decoding",
        ),
        (["--decoder", "incremental", "--inner", "bean"], "did you mean 'beam'"),
        (["--decoder", "beam", "--seconds", "1"], "--seconds has no effect with beam decoding"),
        (["--decoder", "sample", "--rounds", "2"], "--rounds has no effect with sample decoding"),
        (["--decoder", "beam", "--part", "9"], "--part has no effect with beam decoding"),
        (["--decoder", "reconstruct"], "reconstruct decoding cannot be used with task hull"),
        (["--decoder", "incrementa"], "did you mean 'incremental'"),
    ],
)
def test_options_of_another_decoder_are_refused(ptrnet, points, options, message, refused):
    refused(ptrnet("solve", "hull", points, *options), message)


def test_reconstruct_decoding_is_available(ptrnet, small, tmp_path):
    small("tsp", "remaining-ptr-net").save_pretrained(tmp_path / "m")
    solve = ("solve", "--model", tmp_path / "m", "--random", "12", "--decoder", "reconstruct")
    code, out, _ = ptrnet(*solve, "--rounds", "20")
    assert code == 0 and ptrnet(*solve, "--rounds", "20")[1] == out
    assert ptrnet(*solve, "--rounds", "0")[1] != out
    assert ptrnet(*solve, "--rounds", "20", "--part", "50")[1] == out
    assert ptrnet(*solve, "--rounds", "20", "--part", "5")[1] != out


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize("header", ["id,x,y", "Index,lon,lat", ",x,y", "#,y,x"])
def test_numbers_that_are_ids_are_no_coordinates(ptrnet, table, header):
    table.write_text(TABLE.replace("id,x,y", header))
    code, out, _ = ptrnet("solve", "hull", table)
    expected = {"7,0,0", "8,1,0", "9,0,1"}
    assert code == 0 and out.splitlines()[0] == header and {*out.splitlines()[1:]} == expected


@pytest.mark.parametrize("header", ["x,y,z", "height,x,y", "7,0,0"])
def test_other_numbers_are_not_left_out(ptrnet, table, header, refused):
    """Otherwise the model would answer points in space by two of their coordinates."""
    table.write_text(TABLE.replace("id,x,y", header))
    refused(ptrnet("solve", "hull", table), "expected 2 numeric columns and any number of others")


@pytest.mark.parametrize("verb", [("solve",), ("solve", "--json"), ("label",)])
def test_output_to_the_input_file_is_refused(ptrnet, table, verb, refused):
    name, *options = verb
    answered = ptrnet(name, "hull", table, "--output", table.parent / "." / table.name, *options)
    refused(answered, "the answer would overwrite the instance")
    assert table.read_text() == TABLE


def test_a_table_on_standard_input_is_refused(ptrnet, table, refused, monkeypatch):
    with table.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        refused(ptrnet("solve", "hull", "-"), "standard input has to be .txt or .jsonl; name a")


def test_doubtful_answers_are_named(ptrnet, folder, tmp_path):
    solve = ["solve", "--model", folder / "model", folder / "in.jsonl"]
    log_probs = [
        answer.log_prob
        for answer in library.load(folder / "model").answer(
            [json.loads(t)["inputs"] for t in (folder / "in.jsonl").read_text().splitlines()]
        )
    ]
    least = float(np.exp(np.median(log_probs)))
    code, _, err = ptrnet(*solve, "--output", tmp_path / "out.jsonl", "--doubt", least)
    assert code == 0
    named = [line.split(": ")[0] for line in err.splitlines() if "check this answer" in line]
    unlikely = [k for k, log_prob in enumerate(log_probs, 1) if np.exp(log_prob) < least]
    assert named == [f"{folder / 'in.jsonl'}:{k}" for k in unlikely]
    assert COUNT / 4 < len(unlikely) < COUNT
