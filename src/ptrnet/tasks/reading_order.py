"""The reading order of a page: boxes of blocks or lines, in the order in which a person reads them.

No algorithm computes the answer. Pages are drawn by a grammar (`ptrnet.pages`), which draws the
boxes in their order. The labellers of the task are the rules that other programs use.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ptrnet.errors import InputError, short, unknown, warn_ambiguous
from ptrnet.pages.labels import BOTTOM, LABEL, LABELS, LEFT, RIGHT, TOP
from ptrnet.settings import setting
from ptrnet.tasks.base import Drawing, Facts, Task, duplicate_error
from ptrnet.types import Example, Floats, Indices

if TYPE_CHECKING:
    from ptrnet.metrics import Scores


@dataclass(frozen=True)
class ReadingOrder(Task):
    """The task `reading-order`: the boxes of a page in the order in which they are read.

    An instance is `(n, 5)`: left, top, right, bottom in any unit, y down, and the label of the box,
    a number of `LABELS`, or 0 if it is missing. Arrays `(n, 4)` have no labels. An answer is
    `(n,)`.

    The model reads boxes relative to the smallest rectangle that has them all, so units and the
    size of the page do not matter.

    Metrics:

    - `accuracy`: the share of pages that are entirely right
    - `edit_distance`: the fewest boxes to insert, remove or replace in the answer to make it right,
      divided by n

    Args:
        direction: how people read a line: `ltr` from left to right; `rtl` from right to left, as in
            Arabic and Hebrew; `vertical` from top to bottom, with lines from right to left, as in
            Japanese books.

    Examples:
        >>> model = ptrnet.load("reading-order")
        >>> model.solve([[55, 10, 95, 90], [5, 10, 45, 90], [5, 2, 95, 6]])  # a title, two columns
        array([2, 1, 0])
    """

    name: ClassVar[str] = "reading-order"

    direction: Literal["ltr", "rtl", "vertical"] = setting(
        "ltr", "how people read a line of a page"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.points != "uniform":
            raise InputError(f"points: task {self.name} has no such setting")

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            num_features=5,
            optional_features=1,
            machine="permutation",
            labellers=("xy-cut", "xy-cut-widest", "xy-cut-plus-plus", "top-to-bottom"),
            labelled_as=self._left_to_right,
            answer="all",
            drawn_in_order=True,
            quick_labels=False,
            metric="accuracy",
            field_names=("boxes", "labels", "page"),
            number_names=("left", "top", "right", "bottom", "label"),
            stdout_format="jsonl",
            scaling={"kind": "boxes", "direction": self.direction, "labels": len(LABELS)},
            instance_format={"kind": "boxes", "labels": LABELS},
            recipe={"model": "box-ptr-net", "n": "1-60"},
            free_settings=("direction",),
        )

    def max_length(self, n: int) -> int:
        return n

    def answer_error(self, n: int, outputs: Indices, first: int = 0) -> str | None:
        if len(outputs) != n:
            return f"expected all {n} indices, got {len(outputs)}"
        return duplicate_error(outputs, first)

    def instance_error(self, inputs: Floats) -> str | None:
        for which, (low, high) in {"left": (LEFT, RIGHT), "top": (TOP, BOTTOM)}.items():
            wrong = np.flatnonzero(inputs[:, low] > inputs[:, high])
            if len(wrong):
                other = "right" if which == "left" else "bottom"
                k = wrong[0]
                return (
                    f"box {k + 1}: expected {which} <= {other}, got {inputs[k, low]:g} and "
                    f"{inputs[k, high]:g}"
                )
        labels = inputs[:, LABEL]
        wrong = np.flatnonzero((labels != np.round(labels)) | (labels < 0) | (labels > len(LABELS)))
        if len(wrong):
            return (
                f"box {wrong[0] + 1}: label: expected a number from 0 to {len(LABELS)}, got "
                f"{labels[wrong[0]]:g}"
            )
        return None

    def sample(self, rng: np.random.Generator, count: int, n: int) -> Floats:
        """Draw pages `(count, n, 5)` whose boxes are in reading order."""
        from ptrnet.pages import sample_page

        pages = np.stack([sample_page(rng, n) for _ in range(count)])
        left, top, right, bottom, label = (pages[..., k] for k in range(5))
        if self.direction == "rtl":
            left, right = -right, -left
        elif self.direction == "vertical":  # the inverse of `_left_to_right`
            left, top, right, bottom = -bottom, left, -top, right
        return np.stack([left, top, right, bottom, label], -1)

    def _left_to_right(self, inputs: Floats) -> Floats:
        """Mirror or turn pages `(..., n, 5)` so that lines run from left to right."""
        left, top, right, bottom, label = np.moveaxis(inputs, -1, 0)
        if self.direction == "rtl":
            left, right = -right, -left
        elif self.direction == "vertical":
            left, top, right, bottom = top, -right, bottom, -left
        return np.stack([left, top, right, bottom, label], -1)

    def normalize(self, inputs: Floats) -> Floats:
        """Scale boxes to the unit square, and turn pages so that lines run from left to right.

        The label is divided by the number of labels.
        """
        left, top, right, bottom, label = np.moveaxis(self._left_to_right(inputs), -1, 0)
        columns = []
        for low, high in ((left, right), (top, bottom)):
            start = low.min(-1, keepdims=True)
            extent = high.max(-1, keepdims=True) - start
            extent = np.where(extent > 0, extent, 1.0)
            columns.append(((low - start) / extent, (high - start) / extent))
        (left, right), (top, bottom) = columns
        return np.stack([left, top, right, bottom, label / len(LABELS)], -1)

    def read_instance(self, row: dict[str, Any], source: str) -> Any:
        boxes, labels = row.pop("boxes", row.pop("inputs", None)), row.pop("labels", None)
        if labels is None:
            warn_of_classes(row, "labels")
        if boxes is None:
            raise InputError(f'{source}: expected the key "boxes"')
        if not _is_list(boxes):
            raise InputError(f'{source}: "boxes": expected a list of boxes, got {short(boxes)}')
        if not len(boxes):
            raise InputError(f"{source}: expected at least one box")
        for k, box in enumerate(boxes, 1):
            size = len(box) if _is_list(box) else 0
            is_box = size == LABEL or (size == LABEL + 1 and labels is None)
            if not (is_box and all(isinstance(x, Real) and not isinstance(x, bool) for x in box)):
                raise InputError(
                    f"{source}: box {k}: expected the numbers left, top, right and bottom, got "
                    f"{short(box)}"
                )
        if labels is None:
            return boxes
        if not _is_list(labels) or len(labels) != len(boxes):
            raise InputError(
                f'{source}: "labels": expected a label or null for each of {len(boxes)} boxes'
            )
        numbers = [label_number(label, f"{source}: box {k}") for k, label in enumerate(labels, 1)]
        return [[*box, number] for box, number in zip(boxes, numbers, strict=True)]

    def write_instance(self, example: Example) -> dict[str, Any]:
        boxes = example.inputs[:, :LABEL]
        fields: dict[str, Any] = {"boxes": boxes.tolist()}
        if example.inputs[:, LABEL].any():
            fields["labels"] = [label_name(number) for number in example.inputs[:, LABEL]]
        return fields

    def score(self, examples: Sequence[Example], answers: Iterable[Indices]) -> dict[str, "Scores"]:
        from ptrnet.metrics.ranking import score_orders

        return score_orders(examples, answers)

    def draw(self, inputs: Floats, outputs: Indices) -> Drawing:
        """Draw the boxes, and a line through their centers in the order of the answer."""
        left, top, right, bottom = (inputs[:, k] for k in range(4))
        centers = np.column_stack([left + right, -(top + bottom)]) / 2
        corners = np.stack(
            [np.column_stack([x, -y]) for x, y in
             ((left, top), (right, top), (right, bottom), (left, bottom), (left, top))], 1
        )  # fmt: skip
        return Drawing(centers, [centers[outputs]], outlines=list(corners))


def _is_list(value: Any) -> bool:
    """Whether a value is a list, a tuple, an array or the like."""
    return np.iterable(value) and not isinstance(value, str | Mapping)


def warn_of_classes(names: Iterable[str], expected: str) -> None:
    """Warn if a key or a column probably has the classes of boxes, but not the expected name."""
    for name in {"label", "labels", "class", "classes", "category", "categories"} & {*names}:
        warn_ambiguous(f'"{name}" is not read as the classes of boxes; name them "{expected}"')


def label_number(label: Any, source: str) -> int:
    """Return the number of a label's name; 0 for None.

    Raises:
        InputError: there is no such label. The message suggests the nearest name.
    """
    if label is None:
        return 0
    if label not in LABELS:
        raise InputError(f"{source}: {unknown('label', str(label), LABELS)}")
    return LABELS.index(label) + 1


def label_name(number: float) -> str | None:
    """Return the name of a label's number; None for 0."""
    return LABELS[int(number) - 1] if number else None


TASK = ReadingOrder
