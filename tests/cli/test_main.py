"""The program: exit codes, standard streams, encodings, and full disks."""

import errno
import os
import resource
import subprocess
import sys
from json import loads
from pathlib import Path

import pytest

from tests.cli.test_bulk import GENERATE
from tests.support.fork_server import ForkServer


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
        (
            "solve reading-order a.xml b.xml",
            "a.xml b.xml; FILE may be a folder of documents of pages",
        ),
        ("solve none.txt", "FILE with --model; got: none.txt; TASK is one of delaunay, hull"),
        ("solve sort none.txt --model hull", "model hull is for task hull, not for sort"),
        ("solve hull --random 100001", "n: expected 1 <= A <= B <= 100000"),
        ("evaluate hull", "expected TASK FILE"),
        ("evaluate hull none.txt --plot p.png", "to draw an answer, use --plot of ptrnet solve"),
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
        ("train hull --constraint free", "--constraint needs --data FILE, and no TASK"),
        ("train mine.jsonl", "did you mean --data mine.jsonl?"),
        ("train sort --start leftmost", "unknown recipe key 'start'"),
        ("models show hul", "unknown model 'hul'; did you mean 'hull'"),
    ],
)
def test_wrong_calls_are_refused_in_one_line(tmp_path, monkeypatch, ptrnet, line, message, refused):
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


def test_an_interrupt_exits_with_130(monkeypatch, ptrnet):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ptrnet.tasks.get", interrupt)
    assert ptrnet("label", "hull", "a.txt") == (130, "", "")


LABEL = """
from ptrnet.cli import run
raise SystemExit(run(["label", "orienteering", "a.jsonl", "--output", "b.jsonl"]))
"""


def test_a_damaged_cache_of_compiled_code_is_named(tmp_path, monkeypatch):
    """An empty file makes numba raise EOFError, which typer takes for the end of the input."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))  # numba reads it at import
    fields = '{"position": [[0, 0], [1, 0], [0, 1]], "prize": [0, 1, 1], "limit": 3}'
    (tmp_path / "a.jsonl").write_text(fields)
    server = ForkServer("import numba, ptrnet.cli")
    assert server.run(LABEL, cwd=tmp_path).returncode == 0
    for extension in ("nbi", "nbc"):
        files = {path: path.read_bytes() for path in cache.rglob(f"*.{extension}")}
        assert files
        damages = (lambda data: data[: len(data) // 2], lambda _: b"", lambda data: data[::-1])
        for damage in damages:
            for path, data in files.items():
                path.write_bytes(damage(data))
            (tmp_path / "b.jsonl").unlink(missing_ok=True)
            done = server.run(LABEL, cwd=tmp_path)
            message = f"ptrnet: the cache of compiled code is damaged; remove the folder {cache}\n"
            assert (done.returncode, done.stderr.lstrip("\n")) == (2, message)
            assert not (tmp_path / "b.jsonl").exists()
        for path, data in files.items():
            path.write_bytes(data)
    assert server.run(LABEL, cwd=tmp_path).returncode == 0
    server.close()


def test_nothing_is_printed_before_all_is_read(tmp_path, ptrnet, refused):
    path = tmp_path / "long.txt"
    path.write_text("0 0 1 0 0 1\n" * 1500 + "0 0 x\n")
    refused(ptrnet("label", "hull", path), "long.txt:1501: ")


def test_ptrnet_without_arguments_prints_help(ptrnet):
    code, out, _ = ptrnet()
    assert code == 0 and out.startswith("Usage: ptrnet")


def test_version_is_printed(ptrnet):
    assert ptrnet("--version")[1] == "ptrnet 0.1.0\n"


def test_a_full_disk_leaves_nothing_behind(tmp_path, program, refused):
    output = tmp_path / "a.txt"

    def limit_file_size():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    outcome = program(
        *("generate", "hull", "--n", "50", "--count", "5", "--output", output),
        preexec_fn=limit_file_size,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},  # its cache would be too large
    )
    refused(outcome, "a.txt: cannot be written: File too large")
    assert not list(tmp_path.iterdir())


def test_dash_is_standard_input_and_output(streams, model, refused):
    code, out, _ = streams("solve", "-", "--model", model, input="0 0 1 0 0 1\n")
    assert code == 0 and out.startswith("0.0 0.0 1.0 0.0 0.0 1.0 output ")
    code, out, _ = streams("solve", "-", "--model", model, "--json", input="0 0 1 0 0 1\n")
    assert code == 0 and len(loads(out)["answers"]) == 1
    refused(streams("label", "hull", "-", input="0 0 x 1\n"), "standard input:1: field 3")


def test_standard_input_that_begins_with_a_brace_is_json(streams, model):
    """Also after a byte order mark and blank lines. Other keys are kept."""
    line = '{"inputs": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "outputs": [0, 1, 2], "id": 7}\n'
    for command in (("label", "hull", "-"), ("label", "hull", "-", "--output", "-")):
        assert streams(*command, input=f"\ufeff\n{line}") == (0, line, "")
    code, out, _ = streams("solve", "-", "--model", model, input=line * 2)
    assert code == 0 and out.count('"id": 7}\n') == 2


def shell(command, **options):
    """Run a command in bash; return exit code, standard output and standard error."""
    command = command.format(ptrnet=f"{sys.executable} -m ptrnet")
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=600, **options
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def numbers(tmp_path):
    """A file of numbers. Sorting them imports less than other tasks do."""
    path = tmp_path / "numbers.txt"
    path.write_text("0.5 0.25\n")
    return path


def test_a_closed_pipe_is_not_an_error(numbers):
    """The program prints more than a pipe holds, and the reader takes only one line."""
    numbers.write_text(numbers.read_text() * 9000)
    command = "{ptrnet} label sort - --jobs 1 | head -n 1; exit ${{PIPESTATUS[0]}}"
    with numbers.open() as stdin:
        code, out, err = shell(command, stdin=stdin)
    assert (code, err) == (0, "") and out.count("\n") == 1


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
NO_SPACE = "ptrnet: standard output: cannot be written: No space left on device\n"


@FULL
def test_output_that_cannot_be_written_is_one_line(numbers):
    assert shell(f"{{ptrnet}} label sort {numbers} > /dev/full") == (2, "", NO_SPACE)


@FULL
def test_a_report_that_cannot_be_written_is_one_line(monkeypatch, ptrnet, model, points):
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code, _, err = ptrnet("evaluate", "--model", model, points)
    assert code == 2 and err.endswith(f"an algorithm\n{NO_SPACE}"), err  # after warnings


def test_closed_standard_streams_do_not_crash(numbers):
    code, _, err = shell(f"{{ptrnet}} label sort {numbers} >&- <&-")
    assert code == 2
    assert err == "ptrnet: standard output: cannot be written: it is closed\n"


def test_long_values_are_truncated_in_error_messages(tmp_path, ptrnet, refused):
    digits = "1" * 100_000
    (tmp_path / "a.jsonl").write_text(f'{{"inputs": [[0, 1e{digits}]]}}\n')
    (tmp_path / "b.jsonl").write_text(f'{{"inputs": [[0, 1]], "outputs": [{digits[:4000]}]}}\n')
    for arguments in (
        ["label", "hull", tmp_path / "a.jsonl"],
        ["evaluate", "hull", tmp_path / "b.jsonl"],
        ["label", "x" * 100_000, tmp_path / "a.jsonl"],
        ["generate", "hull", "--n", digits, "--count", 1, "--output", "-"],
    ):
        outcome = ptrnet(*arguments)
        refused(outcome, "got" if arguments[1] == "hull" else "unknown")
        assert len(outcome[2]) < 400, arguments


def test_names_that_are_not_utf8_are_shown_escaped(streams):
    """Python represents such bytes of an argument by surrogates."""
    code, _, err = streams("label", "hull", "\udcff.txt")
    assert code == 2 and "\\udcff.txt: cannot be read" in err


def test_text_is_utf8_whatever_the_locale(tmp_path, streams):
    path = tmp_path / "towns.csv"
    path.write_text("town,x,y\nK\u00f8benhavn,0,0\nB,1,0\nC,0,1\n", encoding="utf-8")
    code, out, err = streams("label", "hull", path, encoding="ascii")
    assert code == 0 and "K\u00f8benhavn" in out, err


def test_a_full_disk_loses_nothing(ptrnet, tmp_path, monkeypatch):
    output, write = tmp_path / "a.txt", Path.write_bytes

    def full(path, content):
        if path.name.startswith("000002"):
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    code, _, errors = ptrnet(*GENERATE, "--count", 1000, "--output", output)
    assert code == 2 and "No space left" in errors and "kept in" in errors
    monkeypatch.undo()
    code, _, errors = ptrnet(*GENERATE, "--count", 1000, "--output", output)
    assert code == 0 and "resuming after 500 examples" in errors
    assert len(output.read_text().splitlines()) == 1000


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_anywhere_is_one_line(ptrnet, tmp_path, monkeypatch, number):
    """For example where other packages write a training's logs."""

    def failing(*_, **__):
        raise OSError(number, os.strerror(number), "a/hparams.yaml")

    monkeypatch.setattr("ptrnet.labels.run", failing)
    code, _, errors = ptrnet(*GENERATE, "--count", 10, "--output", tmp_path / "a.txt")
    assert (code, errors) == (2, f"ptrnet: a/hparams.yaml: {os.strerror(number)}\n")


def test_a_disk_that_is_full_at_the_end_loses_nothing(ptrnet, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    output = tmp_path / "a.parquet"

    def full(stream, examples, task):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ptrnet.data.formats.parquet.write", full)
    code, _, errors = ptrnet(*GENERATE, "--count", 600, "--output", output)
    assert code == 2 and "No space left" in errors and "kept in" in errors
    assert not output.exists()
    monkeypatch.undo()
    code, _, errors = ptrnet(*GENERATE, "--count", 600, "--output", output)
    assert code == 0 and "resuming after 600 examples" in errors
    assert parquet.read_metadata(output).num_rows == 600


def test_with_closed_standard_error_no_message_is_among_the_answers():
    command = [sys.executable, "-m", "ptrnet", "label", "sort", "nothing.txt"]
    with_closed = ["bash", "-c", '"$@" 2>&-', "bash", *command]
    done = subprocess.run(with_closed, capture_output=True, timeout=600)
    assert (done.returncode, done.stdout) == (2, b"")
