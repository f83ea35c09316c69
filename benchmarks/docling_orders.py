"""Order pages by docling's rules: JSON lines from standard input to standard output.

    python -m venv DIR
    DIR/bin/pip install --no-deps docling-ibm-models==3.9.1
    DIR/bin/pip install docling-core rtree
    DIR/bin/python benchmarks/docling_orders.py < pages.jsonl > orders.jsonl

The rules need none of docling's models, so this environment has no torch. It does not need ptrnet.
A line has "boxes", "page" (width and height) and "labels" (a name of docling or null for each box).
The result has the "order", 0-based, and the "seconds" that the rules took. A box without a label is
text. docling does not know the labels of old prints, which are text, too.
"""

import json
import sys
import time

from docling_core.types.doc.base import CoordOrigin, Size
from docling_core.types.doc.labels import DocItemLabel
from docling_ibm_models.reading_order.reading_order_rb import PageElement, ReadingOrderPredictor

NAMES = {label.value for label in DocItemLabel}
predictor = ReadingOrderPredictor()
for line in sys.stdin:
    page = json.loads(line)
    size = Size(width=page["page"][0], height=page["page"][1])
    elements = [
        PageElement(
            cid=k,
            page_no=0,
            page_size=size,
            label=DocItemLabel(label if label in NAMES else "text"),
            l=left,
            r=right,
            t=size.height - top,
            b=size.height - bottom,
            coord_origin=CoordOrigin.BOTTOMLEFT,
        )
        for k, ((left, top, right, bottom), label) in enumerate(
            zip(page["boxes"], page["labels"], strict=True)
        )
    ]
    began = time.perf_counter()
    ordered = predictor.predict_reading_order(elements)
    seconds = time.perf_counter() - began
    print(json.dumps({"order": [element.cid for element in ordered], "seconds": seconds}))
