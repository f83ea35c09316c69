"""Order boxes of 0 to 1000, as programs do that use LayoutReader.

    python examples/boxes_to_order.py

`predict` takes the boxes that LayoutReader takes, and returns what its `parse_logits` returns: the
indices of the boxes in reading order. Such programs go on with `[lines[i] for i in orders]`. The
model needs neither text nor image, and takes pages of more than LayoutReader's 510 boxes.
"""

from functools import cache

import ptrnet


@cache
def model():
    """Load the model once."""
    return ptrnet.load("reading-order")


def predict(boxes, solver=None):
    """Return the reading order of boxes: a list of 0-based indices.

    Args:
        boxes: a list of [left, top, right, bottom], each from 0 to 1000, y down. Coordinates in
            another order are sorted, because detectors of text may give them so.
        solver: the model; None: the shipped model.
    """
    if not boxes:
        return []
    upright = [[min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)] for x1, y1, x2, y2 in boxes]
    return (solver or model()).solve(upright).tolist()


if __name__ == "__main__":
    lines = {
        "left column, first line": [80, 200, 470, 220],
        "right column, first line": [530, 200, 920, 220],
        "left column, second line": [80, 225, 470, 245],
        "right column, second line": [530, 225, 920, 245],
        "a title over both columns": [80, 80, 920, 130],
    }
    names, boxes = list(lines), list(lines.values())
    print("\n".join(names[i] for i in predict(boxes)))
