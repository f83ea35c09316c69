"""Memory maps hold what the reader reads, and are built once for each content of the file."""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats, stored
from ptrnet.data.formats import parts
from ptrnet.data.infer_task import task_of
from ptrnet.data.stored import open_file
from ptrnet.errors import InputError
from ptrnet.tasks.schema import Schema
from ptrnet.types import Example

HULL, TSP, DELAUNAY, SORT = (tasks.get(name) for name in ("hull", "tsp", "delaunay", "sort"))


def as_lists(examples):
    """Return the inputs and the answer of each example as lists."""
    each = [examples.rows_of_one_size(np.array([k])) for k in range(len(examples.sizes))]
    return [(i[0].tolist(), a[0].ravel().tolist()) for i, a in each]


@pytest.fixture
def small_blocks(monkeypatch):
    """Read blocks of one or two lines, in all processes. Lines here have 20 bytes or more."""
    monkeypatch.setattr(parts, "BLOCK", 30)
    monkeypatch.setattr(stored, "BLOCK", 30)


def test_every_number_equals_the_float_of_its_text(tmp_path, small_blocks):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**63, 400).tolist()
    doubles = [struct.unpack("<d", struct.pack("<q", b))[0] for b in bits]
    texts = [repr(x) for x in doubles if np.isfinite(x)]
    texts += [f"{x:.12g}" for x in rng.random(200)] + [repr(x) for x in rng.random(200).tolist()]
    texts += ["5", "-.5", "1.", "+2e-3", "1E5", "0.1000000000000000055511151231257827021181583404"]
    texts += ["4.9e-324", "2.2250738585072011e-308", "9007199254740994", "-0.0"]
    texts = texts[: len(texts) // 6 * 6]
    path = tmp_path / "f.txt"
    rows = [texts[k : k + 6] for k in range(0, len(texts), 6)]
    path.write_text("".join(" ".join(row) + " output 1 2 3\n" for row in rows))
    examples = as_lists(open_file(str(path), HULL))
    assert len(examples) == len(rows)
    for (inputs, answer), row in zip(examples, rows, strict=True):
        flat = [value for element in inputs for value in element]
        assert list(map(repr, flat)) == [repr(float(text)) for text in row]
        assert answer == [0, 1, 2]


# Answers are kept as they are in the file. The second one is not canonical.
CONVENTIONS = [
    (HULL, "0 0 1 0 0 1 .1 .1 output 1 2 3 1", [0, 1, 2]),
    (HULL, "0 0 1 0 0 1 .1 .1 output 1 3 2", [0, 2, 1]),
    (TSP, "0 0 1 0 0 1 1 1 output 1 3 4 2 1", [0, 2, 3, 1]),
    (TSP, "0\t0 1 0  0 1 1 1 output 1 3 4 2", [0, 2, 3, 1]),
    (DELAUNAY, "0 0 1 0 0 1 1 1.5 output 1 2 3 <ENDT> 2 3 4", [0, 1, 2, 1, 2, 3]),
    (DELAUNAY, "0 0 1 0 0 1 1 1.5 output 1 2 3 2 3 4", [0, 1, 2, 1, 2, 3]),
    (SORT, "0.5 0.25 0.75 output 2 1 3", [1, 0, 2]),
]


@pytest.mark.parametrize(("task", "line", "answer"), CONVENTIONS)
def test_reads_every_form_of_the_text_format(tmp_path, small_blocks, task, line, answer):
    path = tmp_path / "f.txt"
    path.write_bytes(f"\ufeff{line}\n\n{line} \r\n{line}".encode())
    examples = as_lists(open_file(str(path), task))
    assert [a for _, a in examples] == [answer] * 3
    numbers = list(map(float, line.split("output")[0].split()))
    assert np.ravel(examples[2][0]).tolist() == numbers


GOOD = "0 0 1 0 0 1 output 1 2 3 1\n"
BAD = [
    "0 0 1",
    "0 0 1 x output 1",
    "0 0 nan 1 output 1",
    "1_0 0 output 1",
    "0 0 1 1 output",
    "0 0 1 1 output 1 3",
    "0 0 1 1 output 1 2.5",
    "0 0 1 1 output 1 2 2",
    "0 0 1 1 output +1 2",
    "0 0 1 1 output \uff11 2",
    "0 0 1 0\r0 1 1 1",
    b"0 \xff\xfe",
]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("before", [0, 1, 7])
def test_errors_equal_those_of_the_reader(tmp_path, small_blocks, bad, before):
    bad = bad if isinstance(bad, bytes) else bad.encode()
    path = tmp_path / "f.txt"
    path.write_bytes((GOOD * before + "\n \n").encode() + bad + b"\n" + GOOD.encode() * 9 + bad)
    with pytest.raises(InputError) as reader:
        list(formats.read(str(path), HULL))
    with pytest.raises(InputError) as memmap:
        open_file(str(path), HULL)
    assert str(memmap.value) == str(reader.value)
    assert str(memmap.value).startswith(f"{path}:{before + 3}:")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("extension", ["txt", "jsonl"])
def test_refuses_answers_that_break_the_rules_of_a_problem(tmp_path, extension):
    knapsack = tasks.get("knapsack")
    (inputs,) = knapsack.sample(np.random.default_rng(0), 1, 5)
    path = str(tmp_path / f"f.{extension}")
    formats.write(path, [Example(inputs, np.arange(5))], knapsack)  # too heavy
    with pytest.raises(InputError, match=r"f\.\w+:1: answer: .*element 4 is not allowed"):
        open_file(path, knapsack)


@pytest.mark.parametrize("extension", ["txt", "jsonl"])
def test_refuses_examples_without_an_answer(tmp_path, extension):
    path = tmp_path / f"f.{extension}"
    with_, without = {
        "txt": (GOOD, "0 0 1 0 0 1\n"),
        "jsonl": ('{"inputs": [[0, 0]], "outputs": [0]}\n', '{"inputs": [[0, 0]]}\n'),
    }[extension]
    path.write_text(with_ * 4 + without + with_)
    with pytest.raises(InputError, match=r"f\.\w+:5: has no answer to train on"):
        open_file(str(path), HULL)
    assert list(tmp_path.iterdir()) == [path]


def test_refuses_a_line_that_is_too_long(tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr(parts, "LONGEST_LINE", 1000)
    # A single block is read in this process. Other processes would not be patched.
    monkeypatch.setattr(stored, "BLOCK", 2**22)
    path = tmp_path / "f.txt"
    path.write_text(GOOD * 3 + "0 " * 5000)
    with pytest.raises(InputError, match=r"f\.txt:4: the line is longer than 1000 bytes"):
        open_file(str(path), HULL)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.txt", "No such file"),
        ("", "cannot be read"),
        (".", "expected a regular file"),
        ("/dev/null", "expected a regular file"),
        ("-", "cannot be read"),
        ("n" * 300 + ".txt", "cannot be read"),
        ("a\0b.txt", "cannot be read"),
        ("empty.txt", "holds no instance"),
        ("blank.txt", "holds no instance"),
        ("f.unknown", "unknown file format"),
    ],
)
def test_refuses_paths_without_examples(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    contents = {"empty.txt": "", "blank.txt": "\n \n", "f.unknown": GOOD}
    for file, text in contents.items():
        (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=message):
        open_file(name, HULL)
    assert {path.name for path in tmp_path.iterdir()} == set(contents)


def arrays(path):
    return sorted(path.with_name(f"{path.name}.packed").glob("*/*.npy"))


def test_builds_arrays_once_and_again_if_the_content_changes(tmp_path, monkeypatch):
    path = tmp_path / "f.txt"
    path.write_text(GOOD)
    first = open_file(str(path), HULL)
    written = arrays(path)
    assert len(written) == 4 and not [p for p in written if p.stat().st_mode & 0o222 == 0]
    before = path.stat()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    with monkeypatch.context() as patch:
        patch.setattr(stored, "build", None)  # must not be called
        touched = open_file(str(path), HULL)
    assert as_lists(touched) == as_lists(first) and touched.fingerprint == first.fingerprint
    path.write_text(GOOD.replace("1 2 3 1", "1 3 2 1"))  # the same size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))  # and the same time
    assert as_lists(open_file(str(path), HULL))[0][1] == [0, 2, 1]
    assert len(arrays(path)) == 4 and not set(arrays(path)) & set(written)
    assert as_lists(first)[0][1] == [0, 1, 2], "an open map keeps its content"
    assert as_lists(open_file(str(path), TSP))[0][1] == [0, 2, 1]
    assert len(arrays(path)) == 8, "each task has its own arrays"


CITIES = """\
DIMENSION : 3
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 30 0
3 30 {y}
"""
TOUR = "TYPE : TOUR\nTOUR_SECTION\n1\n2\n3\n-1\n"
CUSTOMERS = "TYPE : CVRP\nCAPACITY : 9\n" + CITIES
CUSTOMERS += "DEMAND_SECTION\n1 0\n2 1\n3 1\nDEPOT_SECTION\n1\n-1\n"
ROUTE = "Route #1: {customers}\n"


@pytest.mark.parametrize(
    ("name", "text", "companion", "old", "new", "expected"),
    [
        ("s.tour", TOUR, "s.tsp", CITIES.format(y=40), CITIES.format(y=50), (50, [0, 1, 2])),
        ("s.opt.tour", TOUR, "s.atsp", CITIES.format(y=40), CITIES.format(y=50), (50, [0, 1, 2])),
        (
            "s.sol",
            ROUTE.format(customers="1 2"),
            "s.vrp",
            CUSTOMERS.format(y=40),
            CUSTOMERS.format(y=50),
            (50, [1, 2]),
        ),
        (
            "s.vrp",
            CUSTOMERS.format(y=40),
            "s.sol",
            ROUTE.format(customers="1 2"),
            ROUTE.format(customers="2 1"),
            (40, [2, 1]),
        ),
    ],
    ids=["tour", "opt-tour", "sol", "vrp"],
)
def test_builds_arrays_again_if_a_file_that_is_read_with_it_changes(
    tmp_path, name, text, companion, old, new, expected
):
    task = tasks.get("tsp" if "tour" in name else "cvrp")
    path, other = tmp_path / name, tmp_path / companion
    path.write_text(text)
    other.write_text(old)
    (before,) = as_lists(open_file(str(path), task))
    other.write_text(new)
    ((inputs, answer),) = as_lists(open_file(str(path), task))
    assert (inputs[2][1], answer) == expected != (before[0][2][1], before[1])
    assert len(arrays(path)) == 4, "the outdated arrays are removed"
    other.write_text(old)
    assert as_lists(open_file(str(path), task)) == [before]
    other.unlink()
    with pytest.raises(InputError):
        open_file(str(path), task)


def test_refuses_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "f.txt"
    path.write_text(GOOD)
    build = stored.build

    def build_and_change(*arguments):
        build(*arguments)
        path.write_text(GOOD * 2)

    monkeypatch.setattr(stored, "build", build_and_change)
    with pytest.raises(InputError, match=r"f\.txt: was changed while it was read"):
        open_file(str(path), HULL)
    assert list(tmp_path.iterdir()) == [path]


def test_uses_the_cache_folder_if_the_files_folder_is_not_writable(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for folder, text in (("a", GOOD), ("b", GOOD * 2)):  # two files with one name
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "f.txt"
        path.write_text(text)
        path.with_name("f.txt.packed").write_text("in the way")
        assert len(open_file(str(path), HULL).sizes) == len(text) // len(GOOD)
    assert len(list((tmp_path / "cache" / "ptrnet").iterdir())) == 2
    (tmp_path / "no").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no"))
    with pytest.raises(InputError, match=r"b/f.txt.packed: cannot be written, nor can .*/no/"):
        open_file(str(path), HULL)


def cut(values):
    return values[:-1]


def negated(values):
    return -values


def as_nan(values):
    return values * np.nan


def shifted(values):
    return values + (np.arange(len(values)) == 5)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("inputs", cut),
        ("inputs", as_nan),
        ("answers", negated),
        ("starts", shifted),
        ("answer_starts", shifted),
    ],
)
def test_damaged_arrays_are_built_again(tmp_path, capsys, name, damage):
    path = tmp_path / "f.txt"
    path.write_text(GOOD * 100)
    whole = as_lists(open_file(str(path), HULL))
    (array,) = (p for p in arrays(path) if p.stem == name)
    values = np.load(array)
    np.save(array, damage(values).astype(values.dtype))
    assert as_lists(open_file(str(path), HULL)) == whole
    line = f"{array.parent}: damaged: its arrays do not match checksum.txt; building it again\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("text", ["", "5", "\u20ac"])
def test_arrays_with_a_damaged_checksum_are_built_again(tmp_path, capsys, text):
    path = tmp_path / "f.txt"
    path.write_text(GOOD)
    whole = as_lists(open_file(str(path), HULL))
    (recorded,) = tmp_path.rglob("checksum.txt")
    recorded.write_text(text, encoding="iso8859-15")
    assert as_lists(open_file(str(path), HULL)) == whole
    assert capsys.readouterr().err.endswith("; building it again\n")


def test_refuses_damaged_arrays_that_cannot_be_removed(tmp_path, monkeypatch):
    path = tmp_path / "f.txt"
    path.write_text(GOOD)
    open_file(str(path), HULL)
    next(tmp_path.rglob("inputs.npy")).write_bytes(b"")

    def refuse(folder, ignore_errors):
        pass

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(InputError, match=r"damaged: its arrays do not match checksum\.txt$"):
        open_file(str(path), HULL)


def test_concurrent_runs_build_one_set_of_arrays(tmp_path):
    path = tmp_path / "f.txt"
    path.write_text(GOOD * 2000)
    code = (
        "import os, sys; from ptrnet import tasks; from ptrnet.data.stored import open_file;"
        "import numpy as np; hull = tasks.get('hull'); other = os.fork();"
        "examples = open_file(sys.argv[1], hull);"
        "inputs, answers = examples.rows_of_one_size(np.arange(2000));"
        "os.write(1, f'{inputs.sum()} {sum(map(np.sum, answers))}\\n'.encode());"
        "other and os.waitpid(other, 0)"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout == "4000.0 6000\n" * 2, done.stderr
    (folder,) = path.parent.glob("*.packed")
    assert len(list(folder.iterdir())) == 1 and len(arrays(path)) == 4


def test_txt_and_jsonl_give_the_same_arrays(tmp_path):
    text, lines_ = tmp_path / "f.txt", tmp_path / "f.jsonl"
    text.write_text(CONVENTIONS[4][1] + "\n" + CONVENTIONS[5][1] + "\n")
    formats.write(str(lines_), formats.read(str(text), DELAUNAY), DELAUNAY)
    assert as_lists(open_file(str(text), DELAUNAY)) == as_lists(open_file(str(lines_), DELAUNAY))


def test_removes_outdated_arrays_but_not_those_of_other_schemas(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text('{"inputs": [{"x": 1, "y": 2}, {"x": 3, "y": 0}], "outputs": [1]}\n')
    by_x, by_y = (task_of(Schema((name,), ((),))) for name in "xy")
    open_file(str(path), by_x)
    open_file(str(path), by_y)
    assert len(arrays(path)) == 8
    path.write_text(path.read_text() * 2)
    open_file(str(path), by_x)
    assert len(arrays(path)) == 4
