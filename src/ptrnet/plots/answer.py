"""Pictures of an instance with an answer, and animations of a network's steps."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptrnet.errors import InputError
from ptrnet.geometry.distances import EXPLICIT
from ptrnet.labels import reference_answer
from ptrnet.metrics import summary
from ptrnet.plots.figure import axes, check_matplotlib, check_picture
from ptrnet.plots.labels import draw_labels, element_names, feature_names
from ptrnet.run import Result, Sink, Source
from ptrnet.sinks import Shown
from ptrnet.tasks.base import Bar, Drawing, Task
from ptrnet.types import Dataset, Example, Floats, Indices, Page

if TYPE_CHECKING:
    from ptrnet.solver import Solver

NETWORK = "a pointer network"
MILLISECONDS = 500  # duration of each step of an animation
MIN_PROBABILITY = 0.005  # lines for smaller probabilities would be too thin to see
# These colours are visible on light and on dark backgrounds. Names, and points outside of the
# answer, have the colour of text in matplotlib's style.
ANSWER_COLOR, TRUTH_COLOR, MISSING_COLOR = "#2f72d6", "#d1495b", "#e0aab0"
QUIET_COLOR, GRID_ALPHA = "#8a8f98", 0.2
MAX_NAMES = 60  # more names would hide the points
MIN_NAMED_BAR = 0.02  # share of a schedule's time; shorter bars have no room for a number
MAX_COORDINATE = 1e300  # with larger coordinates, the axes' margins would be infinite


def check_plot(path: Path, task: Task) -> None:
    """Raise InputError if no picture of an answer can be written. Call this before any work."""
    if not task.facts.has_picture:
        raise InputError(
            f"--plot: problem {task.name} has no picture: its class does not define `draw`"
        )
    check_picture(path)


def check_drawable(example: Example) -> None:
    """Raise InputError if an example has a matrix of distances instead of points."""
    if example.distance == EXPLICIT:
        raise InputError(
            f"{example.source}: has distances and no coordinates, so there is no picture of it; "
            "leave out --plot"
        )


@contextmanager
def plotting(
    path: Path, task: Task, answered: Example, known: Indices | None, author: str = NETWORK
) -> Iterator[None]:
    """Draw an answer, run the block, and write the picture if the block succeeds.

    See `draw_answered` for the arguments and errors.
    """
    with axes(path, *picture_size(task, answered)) as ax:
        draw_answered(ax, task, answered, known, author)
        yield


class Picture(Shown[Result]):
    """Draw the answer to one instance, and let another sink write all answers.

    If the drawing or the other sink, `inner`, fails, neither writes anything. The run has to read
    `watched`. The instance has the given index. See `draw_answered` for the author.
    """

    def __init__(
        self, inner: Sink[Result], path: Path, task: Task, index: int, author: str = NETWORK
    ) -> None:
        super().__init__(inner, lambda data: data)
        self._path, self._task, self._author = path, task, author
        self._index, self._first = index, 0
        self._example: Example | None = None
        self._answered: Example | None = None

    def watched(self, source: Source) -> Source:
        """Return the source. While it is read, the instance to draw is remembered.

        Reading raises InputError if there is no such instance, or if it cannot be drawn.
        """
        return source._replace(chunks=self._watched(source.chunks))

    def _watched(self, chunks: Iterable[Dataset]) -> Iterator[Dataset]:
        count = 0
        for chunk in chunks:
            if 0 <= self._index - count < len(chunk):
                self._example = chunk[self._index - count]
                check_drawable(self._example)
            count += len(chunk)
            yield chunk
        check_index(self._index, count)

    def show(self, picked: Dataset) -> None:
        if 0 <= self._index - self._first < len(picked):
            self._answered = picked[self._index - self._first]
        self._first += len(picked)

    def result(self) -> Result:
        """Return the result of the other sink."""
        assert self._example is not None and self._answered is not None
        # An algorithm's answer is compared with the file's answer only if answers have costs.
        is_comparable = self._author == NETWORK or self._task.facts.has_costs
        known = self._example.outputs if is_comparable else None
        with plotting(self._path, self._task, self._answered, known, self._author):
            return self.inner.result()


def check_index(index: int, count: int) -> None:
    """Raise InputError if no instance has this index."""
    if index >= count:
        raise InputError(f"--index: expected 0 to {count - 1}, got {index}")


def draw_answered(
    ax: Any,
    task: Task,
    answered: Example,
    known: Indices | None,
    author: str = NETWORK,
    title: str | None = None,
) -> None:
    """Draw an answer to an example. If the true answer is better, draw it dashed, too.

    In a triangulation, wrong triangles are shaded and missing triangles are hatched. Elements are
    named by the example's table, or by the elements' fields. Names that do not fit are left out.

    Args:
        known: the true answer from a file, or None. If the author is a network, `known` is only
            used for problems, whose labellers may take long, and for tasks without labellers. For
            other tasks, the first labeller computes the true answer.
        author: what gave the answer, for the title: a network, the name of a labeller, or an empty
            text if the answer is from a file.
        title: the title; None for the author, the size, the cost and the gap.

    Raises:
        InputError: a coordinate is larger than `MAX_COORDINATE`, or the example has no coordinates.
    """
    inputs, outputs = answered.inputs, answered.outputs
    assert outputs is not None
    truth, best = known, "known answer"
    if author == NETWORK and task.facts.labellers and task.facts.quick_labels:
        truth, is_proved = reference_answer(task, answered)
        best = "optimum" if is_proved else "best known"
    if title is None:
        title = _title(task, answered, truth, best, author)
    ax.set_title(title, fontsize=11, loc="left")
    if truth is not None and summary.is_correct(task, answered.replace(outputs=truth), outputs):
        truth = None
    answer = _drawing(task, answered, outputs)
    # Name the axes before the points' names are placed in the remaining space.
    _name_axes(ax, feature_names(answered) or list(filter(None, answer.axes)))
    quieten(ax)
    if answer.bars:
        _draw_bars(ax, answer.bars)
        return
    if abs(answer.points).max(initial=0) > MAX_COORDINATE:
        raise InputError(f"coordinates beyond {MAX_COORDINATE:g} cannot be drawn")
    if answer.outlines:
        _draw_page(ax, answered, answer, None if truth is None else _drawing(task, answered, truth))
        return
    lines = list(answer.lines)
    if truth is not None:
        if task.facts.item_size > 1 and task.facts.num_features == 2:
            _mark_items(ax, inputs, outputs, truth)
        true_drawing = _drawing(task, answered, truth)
        lines += true_drawing.lines
        _plot_lines(ax, true_drawing, "--", TRUTH_COLOR, "true answer")
    label = "network's answer" if author == NETWORK else "answer"
    _plot_lines(ax, answer, "-", ANSWER_COLOR, label)
    pointed_at = [int(i) for i in dict.fromkeys(outputs.ravel()) if i >= task.facts.fixed]
    others = np.delete(answer.points, [*range(task.facts.fixed), *pointed_at], axis=0)
    ax.plot(*others.T, "o", color=text_color(), ms=3, zorder=3)
    if not answer.has_colors:  # otherwise, the points have the colour of their line
        ax.plot(*answer.points[pointed_at].T, "o", color=ANSWER_COLOR, ms=4.5, zorder=4)
    if task.facts.fixed:  # elements such as a depot
        ax.plot(*answer.points[: task.facts.fixed].T, "s", color=text_color(), ms=7, zorder=5)
    ax.margins(0.06)
    if answer.equal_axes:
        ax.set_aspect("equal", adjustable="datalim")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(
            loc="upper right",
            bbox_to_anchor=(1, 0),  # below the frame, next to the axis' name
            borderaxespad=1.9,
            borderpad=0,
            ncols=4,
            frameon=False,
            fontsize=9,
        )
    names = element_names(answered)
    if len(names) <= MAX_NAMES:
        printable = ["".join(c for c in name if c.isprintable()) for name in names]
        draw_labels(ax, printable, answer.points, pointed_at, lines)


def _draw_page(ax: Any, answered: Example, answer: Drawing, truth: Drawing | None) -> None:
    """Draw outlines with their places in the answer, and lines, over the image of the page."""
    assert answered.outputs is not None
    page = answered.page
    image = None if page is None else image_of(page)
    if page is not None and image is not None:
        width, height = page.size or image.shape[1::-1]
        ax.imshow(image, extent=(0, width, -height, 0), alpha=0.5, cmap="gray", zorder=0)
    for place, i in enumerate(answered.outputs.tolist(), 1):
        outline = answer.outlines[i]
        ax.plot(*outline.T, color=QUIET_COLOR, lw=0.8, zorder=2)
        corner = outline[:, 0].min(), outline[:, 1].max()
        ax.text(
            *corner,
            str(place),
            ha="left",
            va="top",
            fontsize=7,
            color="white",
            bbox={"boxstyle": "round,pad=0.15", "fc": ANSWER_COLOR, "lw": 0},
            zorder=6,
        )
    if truth is not None:
        label = "true answer" if page is None else "order in the file"
        _plot_lines(ax, truth, "--", TRUTH_COLOR, label)
    _plot_lines(ax, answer, "-", ANSWER_COLOR, "answer")
    ax.set_aspect("equal")
    ax.margins(0.02)
    ax.set_axis_off()
    if truth is not None:
        ax.legend(loc="upper right", bbox_to_anchor=(1, 0), ncols=2, frameon=False, fontsize=9)


def image_of(page: Page) -> Any:
    """Return the image of a page as an array; None if there is none, or if it cannot be read."""
    try:
        if page.image.endswith(".pdf"):
            from pypdfium2 import PdfDocument

            with closing(PdfDocument(page.image)) as document:
                return document[int(page.name) - 1].render(scale=2).to_numpy()
        from matplotlib.image import imread

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as that an image is very large
            return imread(page.image) if page.image else None
    except Exception:  # the library of an image's format may raise any exception
        return None


def _drawing(task: Task, example: Example, outputs: Indices) -> Drawing:
    """Return the drawing of an answer. An open path is drawn without the line back to its start."""
    check_drawable(example)
    drawing = task.draw(example.inputs, outputs)
    if not example.rules.is_open:
        return drawing
    return replace(drawing, lines=[line[:-1] for line in drawing.lines])


def _title(task: Task, answered: Example, truth: Indices | None, best: str, author: str) -> str:
    """Return a title with the task and the size. If the task has costs, add the cost and the gap.

    The gap is to `truth`, which the title calls `best`, such as "optimum".
    """
    kind = f"{task.name} of " if task.facts.labellers else ""
    title = f"{kind}{len(answered.inputs)} elements"
    if author:
        title += f", answered by {author}"
    for name, value in summary.answer_stats(task, answered).items():
        title += f", {name} {value:,.6g}"
    if truth is None or not task.facts.has_costs:
        return title
    costs = task.costs(answered, [np.asarray(answered.outputs), truth])
    assert costs is not None
    cost, best_cost = costs
    if not np.isfinite(cost) or best_cost == 0:
        return title
    gap = 100 * (cost - best_cost) / abs(best_cost)
    return f"{title}\n{best} {best_cost:,.6g}, gap {gap:.2f}%"


def _mark_items(ax: Any, points: Floats, outputs: Indices, truth: Indices) -> None:
    """Shade the wrong items of an answer, and hatch the missing items. An item is a triangle."""
    known, answered = (
        {tuple(sorted(item)) for item in items.tolist()} for items in (truth, outputs)
    )
    for items, others, label, style in (
        (outputs, known, "wrong", {"facecolor": TRUTH_COLOR, "alpha": 0.25}),
        (truth, answered, "missing", {"fill": False, "hatch": "///", "edgecolor": MISSING_COLOR}),
    ):
        different = [item for item in items if tuple(sorted(item.tolist())) not in others]
        for k, item in enumerate(different):
            ax.fill(*points[item].T, label=None if k else label, zorder=1, lw=0, **style)


def picture_size(task: Task, answered: Example) -> tuple[float, float]:
    """Return a width and height in inches that suit the instance."""
    assert answered.outputs is not None
    drawing = _drawing(task, answered, answered.outputs)
    if drawing.bars:
        rows = 1 + max(bar.row for bar in drawing.bars)
        return 10.0, float(np.clip(1.5 + 0.35 * rows, 3.0, 10.0))
    with np.errstate(all="ignore"):
        width, height = np.ptp(drawing.points, axis=0)
        ratio = height / width if drawing.equal_axes and width > 0 else 0.75
    highest = 1.5 if drawing.outlines else 1.0
    return 8.0, 8.0 * float(np.clip(np.nan_to_num(ratio), 0.5, highest)) + 0.6


def text_color() -> str:
    """Return the colour of text in matplotlib's style. In dark styles, this colour is light."""
    import matplotlib

    return str(matplotlib.rcParams["text.color"])


def quieten(ax: Any) -> None:
    """Give the axes a light grid, small grey ticks, and no box around them."""
    ax.spines[:].set_visible(False)
    ax.grid(color=QUIET_COLOR, alpha=GRID_ALPHA, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=8, labelcolor=QUIET_COLOR)


def _name_axes(ax: Any, features: Sequence[str]) -> None:
    """If there are one or two features, name the axes after the features."""
    if not 0 < len(features) <= 2:
        return
    for name, axis in zip(["position", *features][-2:], (ax.xaxis, ax.yaxis), strict=True):
        axis.set_label_text(name, parse_math=False, fontsize=9, color=QUIET_COLOR)


def _plot_lines(ax: Any, drawing: Drawing, style: str, color: str, label: str) -> None:
    if drawing.has_colors and style == "-":
        for k, line in enumerate(drawing.lines):
            ax.plot(*line.T, "o-", color=f"C{k}", lw=1.4, ms=4.5, zorder=4)
        return
    for k, line in enumerate(drawing.lines):  # label one line, for one entry in the legend
        ax.plot(*line.T, style, color=color, lw=1.4, label=label if k == 0 else None)


def _draw_bars(ax: Any, bars: Sequence[Bar]) -> None:
    """Draw a Gantt chart, and a vertical line where the last bar ends."""
    end = max(bar.start + bar.length for bar in bars)
    for row, start, length, group in bars:
        ax.barh(row, length, left=start, color=f"C{group}", edgecolor="white", lw=0.5)
        if length >= MIN_NAMED_BAR * end:
            middle = start + length / 2
            ax.text(middle, row, str(group), ha="center", va="center", fontsize=7, color="white")
    ax.axvline(end, color=text_color(), lw=1, ls="--")
    ax.set_yticks(range(1 + max(bar.row for bar in bars)))
    ax.invert_yaxis()
    ax.set_xlim(0, end * 1.01 or 1)


def animate(model: "Solver", points: Any) -> Any:
    """Animate how an answer is built: a frame for each step, then the whole answer.

    In the frame of a step, lines lead from the latest element of the answer to other elements. In
    the first frame, they begin at the mean of all elements. The width of a line shows the
    probability that the element at the line's end comes next.

    Args:
        points: an instance as in `Solver.solve`, or an example, such as `Answer.example`. The
            elements must be points of the plane. If the example has no answer, the model answers.

    Returns:
        matplotlib's `FuncAnimation`. `save("answer.gif")` writes it, and `to_jshtml()` returns a
        player for a notebook.

    Raises:
        InputError: as in `Solver.plot`, or the elements are not points of the plane.
        MissingExtraError: matplotlib is not installed.

    Examples:
        >>> from ptrnet.plots.answer import animate
        >>> square = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
        >>> animate(ptrnet.load("hull"), square).save("hull.gif")
    """
    from ptrnet.data.dataset import one_example

    example = one_example(points, model.task)
    inputs = example.inputs
    if inputs.shape[1] != 2:
        raise InputError(f"animation: expected points of the plane, got {inputs.shape[1]} features")
    check_matplotlib()
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

    probabilities, tokens = model.attention(example)
    figure = Figure(figsize=(5.0, 5.0), layout="constrained")
    ax = figure.add_subplot()

    def draw(step: int) -> None:
        ax.clear()
        _draw_step(ax, model.task, inputs, probabilities, tokens, step)

    return FuncAnimation(figure, draw, frames=len(tokens) + 1, interval=MILLISECONDS)


def _draw_step(
    ax: Any, task: Task, inputs: Floats, probabilities: Floats, tokens: Indices, step: int
) -> None:
    """Draw the answer before a step and that step's probabilities; after the last, the answer."""
    num_specials = task.facts.num_specials
    pointed_at = tokens[:step][tokens[:step] >= num_specials] - num_specials
    ax.plot(*inputs.T, "o", color=text_color(), ms=4, zorder=3)
    if step < len(tokens):
        ax.plot(*inputs[pointed_at].T, "o-", color=ANSWER_COLOR, lw=1.6, ms=6, zorder=4)
        start = inputs[pointed_at[-1]] if len(pointed_at) else inputs.mean(0)
        for j in np.flatnonzero(probabilities[step, num_specials:] >= MIN_PROBABILITY):
            p = float(probabilities[step, num_specials + j])
            line = np.stack([start, inputs[j]])
            ax.plot(*line.T, color=QUIET_COLOR, lw=0.5 + 5 * p, alpha=0.25 + 0.6 * p, zorder=2)
        ended = float(probabilities[step, 0])
        title = f"step {step + 1}: probability of the end {ended:.0%}"
        ax.set_title(title, fontsize=11, loc="left")
    else:
        outputs = task.from_tokens(tokens[tokens != 0])
        for line in task.draw(inputs, outputs).lines:
            ax.plot(*line.T, color=ANSWER_COLOR, lw=1.6, zorder=2)
        ax.plot(*inputs[pointed_at].T, "o", color=ANSWER_COLOR, ms=6, zorder=4)
        ax.set_title("the answer", fontsize=11, loc="left")
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.08)
    ax.set_axis_off()
