"""Reading order by XY-Cut++ (Liu, Li and Wei 2025, arXiv:2504.10258v1).

Elements that disturb cuts are set aside (masked): titles, pictures, tables and captions, if boxes
have labels, and wide boxes over several columns. The other boxes are ordered by the XY-cut. Then
each masked box is put next to the nearest box that has its place already.

The paper leaves some questions open. Our answers:

- A box covers several columns if it is wide, and two boxes that are side by side overlap it
  horizontally (equation 2). Any two boxes would do in the equation; then most paragraphs of a page
  with a single column would be masked. The authors' program, PaddleX, also asks for neighbors.
- A picture divides the page if it is near the center and no text is beside it (equation 3).
- The density of a set of boxes is their area (equation 4).
- The distance between boxes is 0 along an axis on which they overlap (phi_2).
- `w_edge` has a weight for masked boxes to the left, to the right, above and below (equation 10).
- Masked boxes are compared with all boxes that have a place already (equation 7).
- Both sides of the page have 1000 pixels (equation 9).
- Text runs in the direction of the longer side of a title; all other text is horizontal.
"""

import numpy as np
from numpy.typing import NDArray

from ptrnet.labellers import cuts, xy_cut
from ptrnet.pages.labels import BOTTOM, LABEL, LABELS, LEFT, RIGHT, TOP
from ptrnet.types import Floats, Indices

HEURISTIC = True
_SECTION_HEADER, _TITLE, _CAPTION, _TABLE, _PICTURE = (
    LABELS.index(name) + 1 for name in ("section_header", "title", "caption", "table", "picture")
)
_PAGE_SIZE = 1000.0
_WIDE = 1.3  # beta: how many times the median width a box over several columns exceeds
_CENTRAL = 0.2  # how far from the center a picture may be that divides the page, in diagonals
_DENSE = 0.9  # theta_v: the share of wide boxes above which the page is cut into columns first
_OVERLAP = 0.1  # alpha of figure 5 and tau_overlap, which the paper does not give
_DISTANCE_WEIGHTS = (_PAGE_SIZE**2, _PAGE_SIZE, 1.0, 1 / _PAGE_SIZE)  # w_k, equation 9
# The stages in which masked boxes get their places, and their w_edge: left, right, above, below.
_PLACED, _WIDE_TEXT, _TITLES, _VISION = range(4)
_EDGE_WEIGHTS = {
    _WIDE_TEXT: (1.0, 1.0, 0.1, 1.0),
    _TITLES: (1.0, 0.1, 0.1, 1.0),
    _VISION: (1.0, 1.0, 1.0, 0.1),
}
_EDGE_WEIGHTS_VERTICAL_TITLE = (0.2, 0.1, 1.0, 1.0)


def label(inputs: Floats) -> list[Indices]:
    """Return the orders of pages `(B, n, 5)`."""
    return [
        _order(cuts.fit_page(boxes) * _PAGE_SIZE, boxes[:, LABEL].astype(int)) for boxes in inputs
    ]


def _order(boxes: Floats, labels: Indices) -> Indices:
    stages = _stages(boxes, labels)
    order = _order_unmasked(boxes, stages)
    title_rank = np.select([labels == _TITLE, labels == _SECTION_HEADER], [0, 1], 2)
    for stage in _EDGE_WEIGHTS:
        pending = np.flatnonzero(stages == stage)
        if not len(pending):
            continue
        pending = pending[cuts.top_to_bottom(boxes[pending])]
        nearest = _distances(boxes, pending, order, stage).argmin(1)
        together = np.concatenate([order, pending])
        positions = np.concatenate([np.arange(len(order)), nearest])
        # Algorithm 1, line 21: by index, label, top, left.
        keys = (boxes[together, LEFT], boxes[together, TOP], title_rank[together], positions)
        order = together[np.lexsort(keys)]
    return order


def _stages(boxes: Floats, labels: Indices) -> Indices:
    """Return the stage in which each box gets its place: section 3, steps 2 and 3."""
    stages = np.full(len(boxes), _PLACED)
    stages[np.isin(labels, (_TITLE, _SECTION_HEADER))] = _TITLES
    stages[np.isin(labels, (_PICTURE, _TABLE, _CAPTION))] = _VISION
    text = np.flatnonzero(stages == _PLACED)
    if not len(text):
        return np.full(len(boxes), _PLACED)
    width = boxes[text, RIGHT] - boxes[text, LEFT]
    shared = _overlap(boxes[text], boxes[text], LEFT)
    overlaps = (shared > _OVERLAP * (width + width[:, None] - shared)).astype(float)
    side_by_side = (_overlap(boxes[text], boxes[text], TOP) > 0) & (shared == 0)
    covers_columns = (overlaps * (overlaps @ side_by_side)).any(1)
    stages[text[(width > _WIDE * np.median(width)) & covers_columns]] = _WIDE_TEXT
    return stages


def _order_unmasked(boxes: Floats, stages: Indices) -> Indices:
    """Return the order of the boxes that are not masked: section 3.1, phases 2 and 3."""
    center_y = (boxes[:, TOP] + boxes[:, BOTTOM]) / 2
    regions = np.searchsorted(np.sort(center_y[_divides_page(boxes, stages)]), center_y)
    area = (boxes[:, RIGHT] - boxes[:, LEFT]) * (boxes[:, BOTTOM] - boxes[:, TOP])
    order = []
    for region in np.unique(regions):
        inside = np.flatnonzero((regions == region) & (stages == _PLACED))
        if len(inside):
            wide = (regions == region) & (stages == _WIDE_TEXT)
            is_dense = area[wide].sum() > _DENSE * area[inside].sum()
            split = xy_cut.columns_first if is_dense else xy_cut.rows_first
            order.append(inside[cuts.order_by_cuts(boxes[inside], split)])
    return np.concatenate(order)


def _divides_page(boxes: Floats, stages: Indices) -> NDArray[np.bool_]:
    """Whether each box is a picture near the center of the page without text beside it."""
    is_text = (stages == _PLACED) | (stages == _WIDE_TEXT)
    is_alone = ~(_overlap(boxes, boxes[is_text], TOP) > 0).any(1)
    from_center = (boxes[:, [LEFT, TOP]] + boxes[:, [RIGHT, BOTTOM]] - _PAGE_SIZE) / 2
    distance = np.hypot(*from_center.T) / np.hypot(_PAGE_SIZE, _PAGE_SIZE)
    return (stages == _VISION) & is_alone & (distance <= _CENTRAL)


def _distances(boxes: Floats, pending: Indices, order: Indices, stage: int) -> Floats:
    """Return the distances `(p, m)` of p masked boxes from m ordered boxes: equation 8."""
    masked, placed = boxes[pending], boxes[order]
    size = boxes[:, [RIGHT, BOTTOM]] - boxes[:, [LEFT, TOP]]
    is_vertical = (size[:, 1] > size[:, 0]) & (stage == _TITLES)
    edge_weights = np.where(
        is_vertical[pending, None], _EDGE_WEIGHTS_VERTICAL_TITLE, _EDGE_WEIGHTS[stage]
    )
    narrower = np.minimum(size[pending, 0, None], size[order, 0])
    is_apart = _overlap(masked, placed, LEFT) < np.maximum(_OVERLAP * narrower, 1e-12)
    apart = is_apart | is_vertical[pending, None]
    # Gaps if the masked box is left of, right of, above or below the placed box, else 0.
    gaps = np.stack(
        [
            placed[:, LEFT] - masked[:, RIGHT, None],
            masked[:, LEFT, None] - placed[:, RIGHT],
            placed[:, TOP] - masked[:, BOTTOM, None],
            masked[:, TOP, None] - placed[:, BOTTOM],
        ],
        -1,
    ).clip(min=0)
    edge = (gaps * edge_weights[:, None]).sum(-1)
    is_below = (stage == _WIDE_TEXT) & (masked[:, TOP, None] > placed[:, BOTTOM])
    continuity = np.where(is_below, -placed[:, BOTTOM], placed[:, TOP])
    terms = (apart, edge, continuity, np.broadcast_to(placed[:, LEFT], edge.shape))
    distances: Floats = sum(w * term for w, term in zip(_DISTANCE_WEIGHTS, terms, strict=True))
    return distances


def _overlap(first: Floats, second: Floats, axis: int) -> Floats:
    """Return the lengths `(p, m)` of the overlaps of p boxes with m boxes along an axis."""
    starts = np.maximum(first[:, axis, None], second[:, axis])
    ends = np.minimum(first[:, axis + 2, None], second[:, axis + 2])
    return (ends - starts).clip(min=0)
