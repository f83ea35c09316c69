"""Documents of pages in all formats: orders that are read back, pages that are left out."""

import difflib
import json
import re
from itertools import permutations

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.cli import run
from ptrnet.data import formats
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.types import Example
from tests.support.pages import BOXES, DOCUMENTS, alto, coco, hocr, page_xml
from tests.support.text import begins

TASK = tasks.get("reading-order")
KINDS = pytest.mark.parametrize("kind", DOCUMENTS)


def make(tmp_path, kind, name="in", **how):
    extension, function = DOCUMENTS[kind]
    path = tmp_path / f"{name}.{extension}"
    path.write_text(function(**how), encoding="utf-8")
    return path


def read(path):
    return list(formats.read(str(path), TASK))


@KINDS
def test_boxes_labels_and_size_are_read(tmp_path, kind):
    (example,) = read(make(tmp_path, kind))
    by_box = {tuple(row[:4]): row[4] for row in example.inputs.tolist()}
    text, header = (0, 0) if kind == "hocr" else (1, 2)  # hOCR has no class for headings
    assert by_box == {
        (110.0, 50.0, 190.0, 280.0): text,
        (10.0, 50.0, 90.0, 280.0): text,
        (10.0, 10.0, 190.0, 40.0): header,
    }
    assert example.extra["page"] == [200, 300]


@KINDS
@pytest.mark.parametrize("outputs", permutations(range(3)))
def test_order_is_written_and_read_back(tmp_path, kind, outputs):
    path = make(tmp_path, kind)
    target = path.with_stem("out")
    (example,) = read(path)
    formats.write(str(target), [example.replace(outputs=np.array(outputs))], TASK)
    (copy,) = read(target)
    assert copy.outputs.tolist() == list(outputs)
    assert copy.inputs.tolist() == example.inputs.tolist()
    # Another order over the first one leaves nothing of it behind.
    again = path.with_stem("again")
    formats.write(str(again), [copy.replace(outputs=np.array([2, 0, 1]))], TASK)
    direct = path.with_stem("direct")
    formats.write(str(direct), [example.replace(outputs=np.array([2, 0, 1]))], TASK)
    assert again.read_bytes() == direct.read_bytes()


@KINDS
def test_only_lines_of_the_order_change(tmp_path, kind):
    path = make(tmp_path, kind)
    (example,) = read(path)
    target = path.with_stem("out")
    formats.write(str(target), [example.replace(outputs=np.array([1, 0, 2]))], TASK)
    before, after = path.read_text().splitlines(), target.read_text().splitlines()
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "-+"]
    if kind in ("page-xml", "alto"):
        assert all(line[0] == "+" and ("Ord" in line or "Ref" in line) for line in changed)
    elif kind in ("hocr", "docling"):  # exchanged elements
        assert changed and sorted(before) == sorted(after)
    else:  # elements that got a key
        kept = {re.sub(r', "(order|outputs)": [^}]*', "", line).strip(" ,]") for line in after}
        assert changed and kept == {line.strip(" ,]") for line in before}
    formats.write(str(target), [example.replace(outputs=None)], TASK)
    assert target.read_bytes() == path.read_bytes()


@KINDS
@pytest.mark.parametrize("line_break", ["\r\n", "\n"])
def test_bytes_outside_of_the_order_stay_in_other_line_breaks(tmp_path, kind, line_break):
    path = make(tmp_path, kind)
    path.write_bytes(path.read_text(encoding="utf-8").replace("\n", line_break).encode())
    target = path.with_stem("out")
    (example,) = read(path)
    order = np.array([2, 1, 0])
    formats.write(str(target), [example.replace(outputs=order)], TASK)
    content = target.read_bytes()
    assert read(target)[0].outputs.tolist() == [2, 1, 0]
    assert content.count(b"\r") == (content.count(b"\n") if line_break == "\r\n" else 0)


@KINDS
def test_boxes_without_area_equal_boxes_and_boxes_outside_the_page_are_read(tmp_path, kind):
    boxes = {"a": (5, 5, 5, 5), "b": (5, 5, 5, 5), "c": (-90, -50, 900, 700), "d": (1, 2, 3, 2)}
    path = make(tmp_path, kind, boxes=boxes)
    (example,) = read(path)
    target = path.with_stem("out")
    formats.write(str(target), [example.replace(outputs=np.array([3, 1, 0, 2]))], TASK)
    assert read(target)[0].outputs.tolist() == [3, 1, 0, 2]


@KINDS
def test_page_without_boxes_is_refused_in_one_line(tmp_path, kind):
    path = make(tmp_path, kind, boxes={})
    with pytest.raises(InputError) as error:
        read(path)
    message = str(error.value)
    assert message.startswith(str(path)) and "\n" not in message
    assert "box" in message or "page" in message


@KINDS
def test_verbs_take_documents(tmp_path, kind, capsys):
    path = make(tmp_path, kind)
    target = path.with_stem("out")
    assert (
        run(["label", TASK.name, str(path), "--labeller", "xy-cut", "--output", str(target)]) == 0
    )
    assert run(["label", TASK.name, str(path), "--labeller", "xy-cut"]) == 0
    assert capsys.readouterr().out.startswith('{"boxes": [[')
    lines = tmp_path / "out.jsonl"
    assert run(["convert", str(target), str(lines), "--task", TASK.name]) == 0
    (example,) = read(lines)
    corners = [[*map(int, example.inputs[i, :4])] for i in example.outputs]
    assert corners == [list(BOXES[id]) for id in "hlr"]


def test_labelled_in_memory(tmp_path):
    data = ptrnet.label(TASK, make(tmp_path, "alto"), labeller="xy-cut")
    assert data[0].outputs.tolist() == [2, 1, 0]


def test_folder_is_read_and_written_as_one_file(tmp_path, capsys):
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for name, content in {
        "1.xml": page_xml(), "2.xml": alto(), "3.html": hocr(), "4.json": coco(),
        "bad.xml": "<PcGts>", "mets.xml": "<mets/>", "empty.xml": page_xml(boxes={}),
        "notes.md": "?",
    }.items():  # fmt: skip
        (source / name).write_text(content, encoding="utf-8")
    command = ["label", TASK.name, str(source), "--labeller", "xy-cut", "--output"]
    assert run([*command, f"{target}/"]) == 0
    assert sorted(path.name for path in target.iterdir()) == ["1.xml", "2.xml", "3.html", "4.json"]
    errors = capsys.readouterr().err.splitlines()
    expected = [
        "bad.xml:1: not XML",
        "empty.xml:4: the page has no boxes",
        "mets.xml:1: expected PAGE-XML (root element PcGts) or ALTO (alto), got 'mets'",
    ]
    assert len(errors) == 3
    for line, message in zip(errors, expected, strict=True):
        assert begins(line, f"ptrnet: left out: {source}/{message}"), line
    for path in target.iterdir():
        (example,) = read(path)
        assert [BOXES["hlr"[k]][0] for k in range(3)] == [
            example.inputs[i, 0] for i in example.outputs
        ]
    assert run([*command, str(tmp_path / "all.jsonl")]) == 0
    assert len(read(tmp_path / "all.jsonl")) == 4
    assert run([*command, str(tmp_path / "all.csv")]) == 0
    assert len(read(tmp_path / "all.csv")) == 4
    capsys.readouterr()
    assert run([*command, str(target)]) == 2
    assert "the folder is not empty; name a new one" in capsys.readouterr().err


def test_pages_of_tables_and_lines_that_cannot_be_used_are_left_out(tmp_path, capsys):
    lines, table = tmp_path / "in.jsonl", tmp_path / "in.csv"
    usable = '{"boxes": [[1, 5, 9, 6], [1, 1, 9, 2]], "id": 7}'
    lines.write_text(f'{{"boxes": []}}\nno JSON\n{usable}\n{{"boxes": [[9, 0, 1, 1]]}}\n')
    table.write_text("page,x0,y0,x1,y1\na,1,?,2,2\nb,1,5,9,6\nb,1,1,9,2\nc,9,0,1,1\n")
    for path, places in ((lines, "124"), (table, "25")):
        target = path.with_stem("out")
        command = ["label", TASK.name, str(path), "--labeller", "xy-cut", "--output", str(target)]
        assert run(command) == 0
        (example,) = read(target)
        assert example.inputs[:, 1].tolist() == ([5, 1] if path == lines else [1, 5])
        errors = capsys.readouterr().err.splitlines()
        for line, place in zip(errors, places, strict=True):
            assert line.startswith(f"ptrnet: left out: {path}:{place}: "), line
        path.write_text(path.read_text().replace("5, 9, 6", "5, 0, 6").replace("5,9,6", "5,0,6"))
        before = target.read_bytes()
        assert run(command) == 2 and target.read_bytes() == before
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith(f"ptrnet: {path}:{places[0]}: "), last


def test_folder_without_documents_or_for_another_task_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no documents of pages \(.hocr, .json, .pdf or .xml\)"):
        read(tmp_path)
    with pytest.raises(InputError, match="folders are for task reading-order, not for hull"):
        list(formats.read(str(tmp_path), tasks.get("hull")))


def test_documents_hold_only_their_own_pages(tmp_path):
    (example,), (other,) = (read(make(tmp_path, kind)) for kind in ("page-xml", "hocr"))
    for path, examples in {
        "a.json": [example],
        "a.xml": [Example(example.inputs)],
        "b.xml": [
            example,
            example.replace(page=example.page._replace(document=other.page.document)),
        ],
    }.items():
        with pytest.raises(InputError, match="file holds only the document that was read"):
            formats.write(str(tmp_path / path), examples, TASK)
    assert {path.name for path in tmp_path.iterdir()} == {"in.xml", "in.hocr"}


def test_generated_pages_are_not_written_into_documents(tmp_path, capsys):
    words = ["generate", TASK.name, "--n", "3", "--count", "2", "--output", str(tmp_path / "a.xml")]
    assert run(words) == 2
    assert "is written only from the document" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_document_can_be_overwritten_with_its_answer(tmp_path):
    path = make(tmp_path, "page-xml")
    words = ["label", TASK.name, str(path), "--labeller", "xy-cut", "--output", str(path)]
    assert run(words) == 0
    assert read(path)[0].outputs.tolist() == [2, 1, 0]


def test_texts_are_written_in_reading_order(tmp_path):
    for kind in ("page-xml", "alto", "hocr", "docling"):
        target = tmp_path / "out.txt"
        (example,) = read(make(tmp_path, kind))
        corners = example.inputs[:, :2].tolist()
        order = [corners.index([x, y]) for x, y in ((10, 10), (10, 50), (110, 50))]
        formats.write(str(target), [example.replace(outputs=np.array(order))], TASK)
        assert target.read_text(encoding="utf-8") == "héad\nleft\nright & last\n\f"


def test_pages_without_texts_are_empty_in_plain_text(tmp_path):
    target = tmp_path / "out.txt"
    for kind in ("page-xml", "alto", "hocr", "docling"):
        (full,) = read(make(tmp_path, kind))
        (empty,) = read(make(tmp_path, kind, boxes={"x": (1, 2, 3, 4)}))
        formats.write(str(target), [full, empty], TASK)
        *_, first, second, end = target.read_text(encoding="utf-8").split("\f")
        assert "right & last" in first and second == end == ""


def test_a_folder_names_what_it_cannot_hold(tmp_path, capsys):
    path = tmp_path / "boxes.jsonl"
    path.write_text('{"boxes": [[0, 0, 1, 1]]}\n')
    words = ["label", TASK.name, str(path), "--labeller", "xy-cut", "--output"]
    assert run([*words, f"{tmp_path}/out/"]) == 2
    message = "boxes.jsonl:1: a folder holds only documents into which answers are written; write"
    assert message in capsys.readouterr().err
    assert run([*words, f"{tmp_path}/out"]) == 2
    assert "or for a new folder of pages a slash at the end" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [path]


def test_a_bad_page_among_others_is_left_out_with_a_warning(tmp_path):
    path = tmp_path / "a.json"
    text = coco().replace('"images": [', '"images": [{"id": 6, "file_name": "b.png"}, ')
    path.write_text(text, encoding="utf-8")
    with pytest.warns(AmbiguousInputWarning, match="image 'b.png': the page has no boxes"):
        assert len(read(path)) == 1
    path.write_text('[{"boxes": [[0, 0, 1, 1]]}, {"boxes": []}, {"boxes": [[0, 0, 2, 2]]}]')
    with pytest.warns(AmbiguousInputWarning, match="page 2: expected at least one box"):
        first, third = read(path)
    formats.write(str(path), [first.replace(outputs=[0]), third.replace(outputs=[0])], TASK)
    kept = [row.get("outputs") for row in json.loads(path.read_text())]
    assert kept == [[0], None, [0]]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("page-xml", "<pc:Page ", '<pc:Page readingDirection="right-to-left" '),
        ("page-xml", "<pc:TextRegion ", '<pc:TextRegion readingDirection="right-to-left" '),
        ("hocr", "<p>", "<p class='ocr_par' dir='rtl'>"),
    ],
)
def test_a_document_from_right_to_left_is_doubted_unless_it_is_read_so(tmp_path, kind, old, new):
    path = make(tmp_path, kind)
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.warns(AmbiguousInputWarning, match="from right to left, .*--direction rtl"):
        read(path)
    assert list(formats.read(str(path), tasks.get("reading-order", direction="rtl")))
    path.write_text(path.read_text(encoding="utf-8").replace(new, old, 2), encoding="utf-8")
    if "Page" not in old:
        assert read(path)  # most boxes have no direction


def test_a_folder_does_not_tell_a_task(tmp_path):
    make(tmp_path, "alto")
    with pytest.raises(InputError, match="a folder does not say how many numbers an element has"):
        list(formats.instances(str(tmp_path)))


def test_processes_take_documents(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for k in range(3):
        make(source, "page-xml", name=str(k))
    words = ["label", TASK.name, str(source), "--labeller", "xy-cut", "--output", f"{target}/"]
    assert run([*words, "--jobs", "2"]) == 0
    assert [example.outputs.tolist() for example in read(target)] == [[2, 1, 0]] * 3
