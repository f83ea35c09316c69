"""JSON documents of pages: docling's, layouts like COCO's, and objects with boxes."""

import json

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.pages.labels import LABELS
from tests.support.pages import coco
from tests.support.text import begins

TASK = tasks.get("reading-order")


def read(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return list(formats.read(str(path), TASK))


def item(label, page, *corners, origin="TOPLEFT", **others):
    box = {**dict(zip("ltrb", corners, strict=True)), "coord_origin": origin}
    return {"label": label, "prov": [{"page_no": page, "bbox": box}], **others}


def refs(*names):
    return [{"$ref": f"#/{name}"} for name in names]


def test_groups_are_one_box_and_captions_stay_with_their_picture(tmp_path):
    value = {
        "body": {"children": refs("texts/2", "groups/0", "texts/5", "pictures/0", "texts/4")},
        "groups": [{"children": refs("texts/0", "texts/1")}],
        "texts": [
            item("list_item", 1, 10, 50, 90, 60),
            item("list_item", 1, 12, 70, 95, 80),
            item("text", 1, 110, 290, 190, 20, origin="BOTTOMLEFT"),
            item("caption", 1, 0, 0, 1, 1),
            item("text", 2, 0, 0, 1, 1),
            {"label": "text", "text": "has no place"},
        ],
        "pictures": [item("picture", 1, 10, 0, 90, 40, children=refs("texts/3"))],
        "pages": {"1": {"size": {"width": 200, "height": 300}}},
    }
    first, second = read(tmp_path / "a.json", value)
    assert first.inputs[:, :4].tolist() == [[10, 50, 95, 80], [10, 0, 90, 40], [110, 10, 190, 280]]
    names = [LABELS[int(k) - 1] for k in first.inputs[:, 4]]
    assert names == ["list_item", "picture", "text"]
    assert first.outputs.tolist() == [2, 0, 1] and second.outputs.tolist() == [0]
    target = tmp_path / "b.json"
    formats.write(str(target), [first.replace(outputs=np.array([1, 0, 2])), second], TASK)
    changed = json.loads(target.read_text())
    order = ("pictures/0", "groups/0", "texts/5", "texts/2", "texts/4")
    assert changed["body"]["children"] == refs(*order)
    assert {**changed, "body": 0} == {**value, "body": 0}


def test_texts_of_captions_tables_and_inner_lists_are_kept(tmp_path):
    cells = [
        {"text": text, "start_row_offset_idx": row, "start_col_offset_idx": column}
        for row, line in enumerate((("a", "b"), ("c", "d")))
        for column, text in enumerate(line)
    ]
    value = {
        "body": {"children": refs("tables/0", "groups/0")},
        "groups": [{"children": refs("texts/0")}, {"children": refs("texts/1", "texts/2")}],
        "texts": [
            item("list_item", 1, 0, 50, 9, 60, text="one", children=refs("groups/1")),
            item("list_item", 1, 2, 60, 9, 70, text="one.one"),
            item("list_item", 1, 2, 70, 9, 80, text="one.two"),
            item("caption", 1, 0, 40, 9, 45, text="caption"),
        ],
        "tables": [
            item("table", 1, 0, 0, 9, 39, data={"table_cells": cells}, children=refs("texts/3"))
        ],
    }
    (example,) = read(tmp_path / "a.json", value)
    texts = {"one\none.one\none.two", "a b\nc d\ncaption"}
    assert {*example.page.texts} == texts


def test_order_replaces_another_order(tmp_path):
    (example,) = read(tmp_path / "a.json", coco().replace('"id": 0,', '"order": 5, "id": 0,'))
    assert example.outputs is None  # only one annotation has an order
    target = tmp_path / "b.json"
    formats.write(str(target), [example.replace(outputs=np.array([1, 2, 0]))], TASK)
    annotations = json.loads(target.read_text())["annotations"]
    assert [(a["id"], a["order"]) for a in annotations] == [(1, 0), (2, 1), (0, 2)]


def test_an_object_with_boxes_keeps_its_keys(tmp_path):
    text = '{\n  "name": "p", "boxes": [[0, 0, 1, 1]],\n  "outputs": [ 0 ], "page": [1, 2.0]\n}\n'
    (example,) = read(tmp_path / "a.json", text)
    assert example.extra == {"name": "p", "page": [1, 2.0]}
    target = tmp_path / "b.json"
    formats.write(str(target), [example], TASK)
    assert target.read_text() == text.replace("[ 0 ]", "[0]")


def test_words_of_texts_do_not_set_the_encoding(tmp_path):
    text = "Write charset=iso-8859-1, encoding='x', é"
    value = {"boxes": [[0, 0, 1, 1]], "name": text}
    (example,) = read(tmp_path / "a.json", json.dumps(value, ensure_ascii=False))
    assert example.extra["name"] == text


DOCLING = {"body": {"children": refs("texts/0")}, "texts": [item("text", 1, 0, 0, 1, 1)]}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("{", ": not JSON at column 2"),
        ("[]", ": expected docling's JSON"),
        ({"points": [1]}, ": expected docling's JSON (with the key \"body\"), ... got 'points'"),
        ({"body": []}, ": not in the form of its kind"),
        ({**DOCLING, "texts": []}, ": there is no #/texts/0"),
        ({**DOCLING, "body": {"children": refs("body")}}, ": expected a reference such as"),
        ({**DOCLING, "texts": [{"prov": [{"page_no": 1}]}]}, ": page 1: expected the key 'bbox'"),
        (
            {**DOCLING, "texts": [item("text", 1, 0, 0, 1, "x")]},
            ": page 1: #/texts/0: b: expected a",
        ),
        ({**DOCLING, "texts": [item("text", 1, 5, 0, 1, 1)]}, ": page 1: box 1: expected left <="),
        (coco().replace("[10, 50", "[50"), ": image 'a.png': annotation 1: bbox: expected x, y, w"),
        (coco().replace('"id": 1, "im', '"id": 0, "im'), ": image 'a.png': two annotations have"),
        (coco().replace("categories", "kinds"), ": expected docling's JSON"),
        (
            coco().replace('"category_id": 2', '"category_id": "2"'),
            ": image 'a.png': annotation 2: category_id: expected an id of \"categories\", got '2'",
        ),
        (
            [{"boxes": [[0, 0, 1, 1]], "labels": ["txt"]}],
            ": page 1: box 1: unknown label 'txt'",
        ),
        ({"boxes": [[1, 0, 0, 1]]}, ': "boxes": box 1: expected left <= right'),
        ({"boxes": []}, ": expected at least one"),
    ],
)
def test_refused_in_one_line(tmp_path, value, complaint):
    path = tmp_path / "a.json"
    with pytest.raises(InputError) as error:
        read(path, value)
    assert begins(str(error.value), f"{path}{complaint}"), str(error.value)
