"""Standard streams, pipes, encodings and full disks."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest


def test_a_full_disk_leaves_nothing_behind(tmp_path, program, refused):
    output = tmp_path / "a.txt"

    def limit_file_size():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    outcome = program(
        *("generate", "hull", "--n", "50", "--count", "100", "--output", output),
        preexec_fn=limit_file_size,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},  # its cache would meet the limit first
    )
    refused(outcome, "a.txt: cannot be written: File too large")
    assert not list(tmp_path.iterdir())


def test_standard_streams(streams, model, refused):
    code, out, _ = streams("solve", "-", "--model", model, input="0 0 1 0 0 1\n")
    assert code == 0 and out.startswith("0.0 0.0 1.0 0.0 0.0 1.0 output ")
    refused(streams("label", "hull", "-", input="0 0 x 1\n"), "standard input:1: field 3")


def test_standard_input_that_begins_with_a_brace_is_json(streams, model):
    """Also after a byte order mark and blank lines; other keys are kept."""
    line = '{"inputs": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "outputs": [0, 1, 2], "id": 7}\n'
    for command in (("label", "hull", "-"), ("label", "hull", "-", "--output", "-")):
        assert streams(*command, input=f"\ufeff\n{line}") == (0, line, "")
    code, out, _ = streams("solve", "-", "--model", model, input=line * 2)
    assert code == 0 and out.count('"id": 7}\n') == 2


def shell(command, **options):
    """The exit code, standard output and standard error of a command of bash."""
    command = command.format(ptrnet=f"{sys.executable} -m ptrnet")
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=240, **options
    )
    return done.returncode, done.stdout, done.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path, points):
    """More is printed than a pipe holds, and only a line of it is read."""
    path = tmp_path / "many.txt"
    path.write_text(points.read_text() * 300)
    command = "{ptrnet} label hull - --jobs 1 | head -n 1; exit ${{PIPESTATUS[0]}}"
    with path.open() as stdin:
        code, out, err = shell(command, stdin=stdin)
    assert (code, err) == (0, "") and out.count("\n") == 1


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
NO_SPACE = "ptrnet: standard output: cannot be written: No space left on device\n"


@FULL
def test_output_that_cannot_be_written_is_one_line(points):
    assert shell(f"{{ptrnet}} label hull {points} > /dev/full") == (2, "", NO_SPACE)


@FULL
@pytest.mark.parametrize("arguments", ["--help", "train --help", "--version", ""])
def test_help_that_cannot_be_printed_is_one_line(monkeypatch, ptrnet, arguments):
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code, _, err = ptrnet(*arguments.split())
    assert (code, err) == (2, NO_SPACE)


@FULL
def test_a_report_that_cannot_be_written_is_one_line(monkeypatch, ptrnet, model, points):
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        code, _, err = ptrnet("evaluate", "--model", model, points)
    assert code == 2 and err.endswith(f"an algorithm\n{NO_SPACE}"), err  # warnings of sizes first


def test_closed_streams_are_no_crash(points):
    code, _, err = shell(f"{{ptrnet}} label hull {points} >&- <&-")
    assert code == 2
    assert err == "ptrnet: standard output: cannot be written: it is closed\n"


def test_what_is_quoted_is_cut(tmp_path, ptrnet, refused):
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
    """Python gives such bytes of an argument as surrogates."""
    code, _, err = streams("label", "hull", "\udcff.txt")
    assert code == 2 and "\\udcff.txt: cannot be read" in err


def test_text_is_utf8_whatever_the_locale(tmp_path, streams):
    path = tmp_path / "towns.csv"
    path.write_text("town,x,y\nK\u00f8benhavn,0,0\nB,1,0\nC,0,1\n", encoding="utf-8")
    code, out, err = streams("label", "hull", path, encoding="ascii")
    assert code == 0 and "K\u00f8benhavn" in out, err
