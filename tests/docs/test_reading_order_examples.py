"""Interfaces of docling and LayoutReader; the former also with docling-ibm-models, if installed."""

import runpy
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from ptrnet import labellers, tasks
from ptrnet.tasks.reading_order import label_number
from tests.docs.blocks import ROOT


class Stub:
    """A solver that reads boxes from right to left, and keeps what it was asked."""

    def __init__(self):
        self.pages = []

    def solve(self, pages):
        self.pages += pages
        return [np.argsort([-box[0] for box in page["boxes"]]) for page in pages]


@dataclass
class Element:
    """What the example needs of docling's `PageElement`."""

    cid: int
    page_no: int
    l: float  # noqa: E741
    t: float
    r: float
    b: float
    label: object
    y_is_up: bool = False

    @property
    def page_size(self):
        return SimpleNamespace(width=600.0, height=800.0)

    def to_bottom_left_origin(self, page_height):
        if self.y_is_up:
            return self
        return replace(self, t=page_height - self.t, b=page_height - self.b, y_is_up=True)


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(ROOT / "examples" / "docling_reading_order.py"))


def test_the_model_reads_boxes_with_y_down_and_known_labels(example):
    elements = [
        Element(0, 1, 10, 700, 50, 780, SimpleNamespace(value="page_footer")),
        Element(1, 0, 300, 20, 500, 90, "chart"),
        Element(2, 0, 10, 780, 200, 710, "empty_value", y_is_up=True),
    ]
    stub = Stub()
    ordered = example["ReadingOrderPredictor"](stub).predict_reading_order(elements)
    assert [element.cid for element in ordered] == [1, 2, 0]
    assert stub.pages == [
        {"boxes": [[300, 20, 500, 90], [10, 20, 200, 90]], "labels": ["picture", None]},
        {"boxes": [[10, 700, 50, 780]], "labels": ["page_footer"]},
    ]


def test_no_elements_have_no_order(example):
    assert example["ReadingOrderPredictor"](Stub()).predict_reading_order([]) == []


class XYCut:
    """A solver that answers by a rule."""

    def solve(self, pages):
        task = tasks.get("reading-order")
        instances = [
            [[*box, label_number(label, "")] for box, label in zip(*page.values(), strict=True)]
            for page in pages
        ]
        return [labellers.label(task, np.array(p, float)[None], "xy-cut")[0] for p in instances]


def page_of_docling(page_no=0):
    """Return the elements of a page in a wrong order: the columns are swapped."""
    base = pytest.importorskip("docling_core.types.doc.base")
    rules = pytest.importorskip("docling_ibm_models.reading_order.reading_order_rb")
    boxes = [
        (310, 100, 540, 300, "picture", ""),
        (60, 40, 540, 70, "title", "A page"),
        (310, 310, 540, 330, "caption", "Figure 1"),
        (310, 340, 540, 700, "text", "goes on here."),
        (60, 100, 290, 700, "text", "A sentence that"),
        (60, 20, 200, 30, "page_header", "7"),
    ]
    return rules, [
        rules.PageElement(
            cid=cid + len(boxes) * page_no,
            page_no=page_no,
            page_size=base.Size(width=600, height=800),
            label=label,
            text=text,
            l=left,
            t=800 - top,
            r=right,
            b=800 - bottom,
            coord_origin=base.CoordOrigin.BOTTOMLEFT,
        )
        for cid, (left, top, right, bottom, label, text) in enumerate(boxes)
    ]


def test_it_returns_what_doclings_rules_return(example):
    rules, first = page_of_docling()
    elements = first + page_of_docling(1)[1]
    ours = example["ReadingOrderPredictor"](XYCut())
    theirs = rules.ReadingOrderPredictor()
    assert isinstance(ours, rules.ReadingOrderPredictor)
    ordered, expected = (p.predict_reading_order(list(elements)) for p in (ours, theirs))
    assert [e.cid for e in ordered] == [5, 1, 4, 0, 2, 3, 11, 7, 10, 6, 8, 9]
    assert ordered == expected
    for find in ("predict_to_captions", "predict_to_footnotes", "predict_merges"):
        assert getattr(ours, find)(ordered) == getattr(theirs, find)(expected)
    assert ours.predict_to_captions(ordered) == {0: [2], 6: [8]}


def test_the_small_page_of_the_example_is_doclings(example):
    pytest.importorskip("docling_ibm_models.reading_order.reading_order_rb")
    ordered = example["ReadingOrderPredictor"](XYCut()).predict_reading_order(
        example["small_page"]()
    )
    assert [e.text for e in ordered] == ["title", "left column", "right column", "page 7"]


def test_boxes_to_order_returns_indices_as_layout_reader_does():
    class Plain:
        def solve(self, boxes):
            assert all(left <= right and top <= bottom for left, top, right, bottom in boxes)
            return np.argsort([top for _, top, _, _ in boxes])

    predict = runpy.run_path(str(ROOT / "examples" / "boxes_to_order.py"))["predict"]
    boxes = [[500, 300, 900, 320], [900, 120, 500, 100], [100, 200, 400, 220]]
    orders = predict(boxes, Plain())
    assert orders == [1, 2, 0]
    assert all(type(k) is int for k in orders)
    assert predict([]) == []
