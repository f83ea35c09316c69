"""PDF: lines are boxes, and an answer is printed as text."""

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.errors import InputError
from tests.support.pages import pdf

pytest.importorskip("pypdfium2")
TASK = tasks.get("reading-order")
# In the order of a typesetter who goes across columns: each line of the left, then of the right.
LINES = [(20, 270, "Title"), (20, 200, "left one"), (120, 200, "right one"),
         (20, 180, "left two"), (120, 180, "right two")]  # fmt: skip


def read(path, content):
    path.write_bytes(content)
    return list(formats.read(str(path), TASK))


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_lines_are_split_between_columns_and_turned_with_the_page(tmp_path, rotation):
    (example,) = read(tmp_path / "a.pdf", pdf(LINES, rotation))
    assert sorted(example.page.texts) == sorted(text for _, _, text in LINES)
    assert example.page.size == ((200, 300) if rotation % 180 == 0 else (300, 200))
    left, top, right, bottom = example.inputs[example.page.texts.index("left one"), :4]
    near = {  # the lower left corner of "left one", which is near x = 20 and y = 200 from below
        0: (left, bottom, 20, 100),
        90: (left, top, 200, 20),
        180: (right, top, 180, 200),
        270: (right, bottom, 100, 180),
    }[rotation]
    assert np.abs(np.subtract(near[:2], near[2:])).max() < 4
    assert (right - left > bottom - top) == (rotation % 180 == 0)


def test_text_is_printed_in_reading_order(tmp_path, capsys):
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(LINES))
    words = ["label", TASK.name, str(path), "--labeller", "xy-cut-widest"]
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert printed == "Title\nleft one\nleft two\nright one\nright two\n\f"
    assert run([*words, "--output", str(tmp_path / "a.txt")]) == 0
    assert (tmp_path / "a.txt").read_text() == printed
    assert run([*words, "--output", str(tmp_path / "a.jsonl")]) == 0
    (example,) = formats.read(str(tmp_path / "a.jsonl"), TASK)
    assert example.outputs.tolist() == [0, 1, 3, 2, 4] and example.extra["page"] == [200, 300]


def test_letters_beyond_16_bits_and_unknown_letters_are_written(tmp_path, capsys):
    path = tmp_path / "a.pdf"
    names = "/Encoding << /Type /Encoding /Differences [65 /u1F600 /u1D4B3 /uniD83D] >> >>"
    content = pdf([(20, 270, "one A B"), (20, 240, r"C\000 two")])
    path.write_bytes(content.replace(b"/Helvetica >>", b"/Helvetica " + names.encode()))
    assert run(["label", TASK.name, str(path), "--labeller", "top-to-bottom"]) == 0
    assert capsys.readouterr().out == "one \U0001f600 \U0001d4b3\n\ufffd\ufffd two\n\f"


def test_pages_are_not_written_into_a_pdf(tmp_path, capsys):
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(LINES))
    words = ["label", TASK.name, str(path), "--labeller", "xy-cut", "--output"]
    assert run([*words, str(tmp_path / "b.pdf")]) == 2
    assert "b.pdf: cannot hold answers; write them to .txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"%PDF-1.4", "cannot be read as PDF"), (pdf([]), "page 1: the page has no boxes")],
)
def test_refused_in_one_line(tmp_path, content, complaint):
    with pytest.raises(InputError, match=complaint):
        read(tmp_path / "a.pdf", content)
