"""hOCR: which elements are blocks, and how lenient HTML is exchanged."""

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from tests.support.pages import hocr
from tests.support.text import begins

TASK = tasks.get("reading-order")


def read(path, content):
    path.write_text(content, encoding="utf-8")
    return list(formats.read(str(path), TASK))


@pytest.mark.parametrize("kind", ["ocr_carea", "ocrx_block", "ocr_par", "ocr_line", "ocrx_line"])
def test_blocks_are_careas_or_else_paragraphs_or_lines(tmp_path, kind):
    (example,) = read(tmp_path / "a.html", hocr(kind=kind))
    assert len(example.inputs) == 3 and example.outputs.tolist() == [2, 1, 0]


def test_paragraphs_and_lines_outside_of_blocks_are_boxes(tmp_path):
    line = "<span class=ocr_line title='bbox 0 {0} 9 {0}'>{1}</span>"
    content = (
        f"<div class=ocr_page>{line.format(8, 'alone')}<div class=ocr_carea title='bbox 0 0 9 3'>"
        f"<p class=ocr_par>{line.format(0, 'in')}</p></div><p class=ocr_par title='bbox 0 5 9 6'>"
        f"{line.format(5, 'one')}{line.format(6, 'two')}</p></div>"
    )
    (example,) = read(tmp_path / "a.hocr", content)
    assert [*example.page.texts] == ["in", "one\ntwo", "alone"]
    assert example.outputs.tolist() == [2, 0, 1]


def test_inner_elements_move_with_their_block(tmp_path):
    content = (
        "<div class=ocr_page title='bbox 0 0 9 9'>"
        "<div class='ocr_carea x' title='bbox 5 5 6 6; x_wconf 9'><p class=ocr_par>a<p>b<br>c</div>"
        "<img class=ocr_photo title='bbox 1 1 2 2'><!-- </div> -->"
        "<div class=ocr_separator title='bbox 0 4 9 4'></div>"
        "<div class=ocr_carea title='bbox 3 3 4 4'>d</div></div>"
    )
    (example,) = read(tmp_path / "a.hocr", content)
    assert example.inputs[:, 0].tolist() == [1, 3, 5] and example.outputs.tolist() == [2, 0, 1]
    target = tmp_path / "b.hocr"
    formats.write(str(target), [example.replace(outputs=np.array([0, 1, 2]))], TASK)
    carea = content[content.index("<div class='ocr_carea") : content.index("<img")]
    last = "<div class=ocr_carea title='bbox 3 3 4 4'>d</div>"
    expected = content.replace(last, "@").replace(
        carea, "<img class=ocr_photo title='bbox 1 1 2 2'>", 1
    )
    photo = expected.rindex("<img")
    expected = expected[:photo] + last + expected[expected.index("<!--") :]
    assert target.read_text() == expected.replace("@", carea)


def test_paragraphs_without_end_tags_end_at_the_next_one(tmp_path):
    content = (
        "<div class=ocr_page><p class=ocr_par title='bbox 0 5 1 6'>low\n"
        "<p class=ocr_par title='bbox 0 1 1 2'>high\n</div>"
    )
    (example,) = read(tmp_path / "a.htm", content)
    target = tmp_path / "b.htm"
    formats.write(str(target), [example.replace(outputs=np.array([0, 1]))], TASK)
    assert target.read_text() == (
        "<div class=ocr_page><p class=ocr_par title='bbox 0 1 1 2'>high\n"
        "<p class=ocr_par title='bbox 0 5 1 6'>low\n</div>"
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("<p>text</p>", ": expected hOCR, got no element of class ocr_page"),
        ("<div class=ocr_page>", ":1: the page has no boxes"),
        ("<div class=ocr_page>\n<p class=ocr_par>", ":2: expected a title with bbox and four"),
        (
            "<div class=ocr_page>\n<p class=ocr_par title='bbox 1 2 x 4'>",
            ":2: bbox: expected a number, got 'x'",
        ),
        (
            "<div class=ocr_page>\n<p class=ocr_par title='bbox 1 2 3 1'>",
            ":1: box 1: expected top <= bottom, got 2 and 1",
        ),
    ],
)
def test_refused_with_file_and_line(tmp_path, content, complaint):
    path = tmp_path / "a.hocr"
    with pytest.raises(InputError) as error:
        read(path, content)
    assert begins(str(error.value), f"{path}{complaint}"), str(error.value)
