"""Let docling read the blocks of a page in the order of the model `reading-order`.

    pip install docling
    python examples/docling_reading_order.py [FILE.pdf]

`ReadingOrderPredictor` takes the place of the class of the same name in docling-ibm-models 3, whose
rules decide on the order. Captions, footnotes and paragraphs that go on in the next column follow
from the order; docling's own functions find them. The script prints the order of a small page or,
given a file, the file as Markdown.
"""

import sys
from itertools import groupby

import ptrnet
from ptrnet.pages.labels import LABELS

try:
    from docling_ibm_models.reading_order.reading_order_rb import ReadingOrderPredictor as Rules
except ImportError:  # then there is only `predict_reading_order`
    Rules = object

# docling's labels that are called otherwise here. The model reads all others as missing.
SAME_AS = {"paragraph": "text", "chart": "picture", "key_value_region": "form"}


class ReadingOrderPredictor(Rules):
    """Order the elements of pages by the shipped model.

    Args:
        solver: the model; None: the shipped model.
    """

    def __init__(self, solver=None):
        super().__init__()
        self.solver = solver or ptrnet.load("reading-order")

    def predict_reading_order(self, page_elements):
        """Return the elements in reading order, page after page.

        Args:
            page_elements: a list of docling's `PageElement`, of one page or many.
        """
        elements = sorted(page_elements, key=lambda element: element.page_no)
        pages = [list(page) for _, page in groupby(elements, lambda element: element.page_no)]
        orders = self.solver.solve([instance(page) for page in pages]) if pages else []
        return [page[k] for page, order in zip(pages, orders, strict=True) for k in order]


def instance(page):
    """Return a page as the model reads it: boxes with y down, and a label or None for each."""
    boxes, labels = [], []
    for element in page:
        height = element.page_size.height
        box = element.to_bottom_left_origin(height)
        boxes.append([box.l, height - box.t, box.r, height - box.b])
        label = getattr(element.label, "value", element.label)
        label = SAME_AS.get(label, label)
        labels.append(label if label in LABELS else None)
    return {"boxes": boxes, "labels": labels}


def convert(path):
    """Return a PDF as Markdown, converted by docling with the order of the model."""
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter

    converter = DocumentConverter()
    converter.initialize_pipeline(InputFormat.PDF)
    for pipeline in converter.initialized_pipelines.values():
        pipeline.reading_order_model.ro_model = ReadingOrderPredictor()
    return converter.convert(path).document.export_to_markdown()


def small_page():
    """Return docling's elements of a page with a title and two columns."""
    from docling_core.types.doc.base import CoordOrigin, Size
    from docling_ibm_models.reading_order.reading_order_rb import PageElement

    boxes = {
        "right column": (310, 100, 540, 700, "text"),
        "page 7": (290, 800, 310, 812, "page_footer"),
        "left column": (60, 100, 290, 700, "text"),
        "title": (60, 40, 540, 70, "title"),
    }
    return [
        PageElement(
            cid=cid,
            text=text,
            page_no=0,
            page_size=Size(width=600, height=842),
            label=label,
            l=left,
            t=842 - top,
            r=right,
            b=842 - bottom,
            coord_origin=CoordOrigin.BOTTOMLEFT,
        )
        for cid, (text, (left, top, right, bottom, label)) in enumerate(boxes.items())
    ]


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(convert(sys.argv[1]))
    elif Rules is object:
        print("this needs docling-ibm-models: pip install docling")
    else:
        print([e.text for e in ReadingOrderPredictor().predict_reading_order(small_page())])
