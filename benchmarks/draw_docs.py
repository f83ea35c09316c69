"""Draw the pictures of docs/papers.md from the shipped models and the numbers in results/.

    python benchmarks/draw_docs.py [NAME ...]

writes docs/pictures/NAME.svg; by default all of them, and the pictures of README.md and index.md.
Each run on one machine writes the same bytes.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from readme_scores import PAPERS, measures

import ptrnet
from ptrnet import labellers, tasks
from ptrnet.cli import run

matplotlib.use("Agg")
from matplotlib import pyplot

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
DARK = "#0d1117"  # the background of pages in dark mode
BLUE, RED, INK, QUIET, LIGHT = "#1f5fbf", "#d1495b", "#333333", "#8a8f98", "#d9dce1"
STYLE = {
    "svg.hashsalt": "ptrnet",
    "svg.fonttype": "none",  # write text as text, not as outlines
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlecolor": INK,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextmanager
def panels(name: str, width: float, height: float, columns: int, plane: bool = True) -> Iterator:
    """Yield axes side by side, and save them as `name`.svg. Hide the axes if they show a plane."""
    with matplotlib.rc_context(STYLE):
        figure, row = pyplot.subplots(
            1, columns, figsize=(width, height), layout="constrained", squeeze=False
        )
        for ax in row[0] if plane else ():
            ax.set_aspect("equal")
            ax.set_axis_off()
        yield list(row[0])
        figure.savefig(PICTURES / f"{name}.svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)


def uniform(seed: int, n: int) -> Any:
    """Draw n points in the unit square."""
    return np.random.default_rng(seed).random((n, 2))


def draw_points(ax: Any, points: Any, weights: Any = None, color: str = INK) -> None:
    """Draw points. Weights from 0 to 1 set the sizes of discs around them."""
    if weights is not None:
        ax.scatter(*points.T, s=16 + 420 * np.asarray(weights), c=BLUE, alpha=0.28, lw=0)
    ax.scatter(*points.T, s=9, c=color, zorder=3, lw=0)


def draw_path(ax: Any, path: Any, color: str = BLUE, style: str = "-") -> None:
    """Draw a line from point to point."""
    ax.plot(*np.asarray(path).T, style, color=color, lw=1.5, solid_capstyle="round")


def dictionary() -> None:
    """Compare the outputs of a fixed dictionary with those of a pointer."""
    points = uniform(116, 8)
    probabilities, _ = ptrnet.load("hull-ptr-net").attention(points)
    with panels("dictionary", 8.4, 2.6, 2, plane=False) as (left, right):
        titles = ("a fixed dictionary, made for n = 6", "a pointer, for any n")
        for ax, title in zip((left, right), titles, strict=True):
            ax.set_title(title, loc="left")
            ax.set(xlim=(0.3, 8.9), ylim=(-0.72, 1.15))
            ax.set_axis_off()
            for j in range(1, 9):
                is_known = ax is right or j <= 6
                ax.text(j, -0.5, f"$P_{j}$", ha="center", va="center")
                ax.add_patch(
                    pyplot.Rectangle((j - 0.36, -0.64), 0.72, 0.28, fill=False, ec=QUIET, lw=0.8)
                )
                if ax is right:
                    height = probabilities[2, j]
                    ax.bar(j, height, 0.6, color=BLUE, alpha=0.75)
                    ax.plot([j, j], [-0.34, -0.03], color=LIGHT, lw=1)
                elif is_known:
                    ax.bar(j, 1 / 6, 0.6, color=QUIET, alpha=0.55)
                    ax.text(j, 0.24, f"“{j}”", ha="center", color=QUIET)
                else:
                    ax.bar(j, 1 / 6, 0.6, fill=False, ec=RED, ls="--", lw=0.9)
                    ax.text(j, 0.24, "none", ha="center", color=RED)
            ax.plot([0.5, 8.5], [0, 0], color=QUIET, lw=0.8)
        left.text(0.6, 0.85, "softmax over entries 1 to 6: an output layer of fixed width")
        right.text(0.6, 1.05, "softmax over the inputs themselves: a bar for each", va="top")


def attention() -> None:
    """Show the attention of a Ptr-Net at each step of a hull."""
    points = uniform(24, 11)
    probabilities, tokens = ptrnet.load("hull-ptr-net").attention(points)
    with panels("attention", 10.5, 2.0, len(tokens)) as axes:
        for i, ax in enumerate(axes):
            before = tokens[:i] - 1
            draw_points(ax, points, probabilities[i, 1:])
            if len(before):
                draw_path(ax, points[before])
                ax.plot(*points[before[-1]], "o", color=BLUE, ms=5)
            likely = probabilities[i, tokens[i]]
            what = f"point {tokens[i] - 1}" if tokens[i] else "end"
            ax.set_title(f"{i + 1}. {what}, {likely:.0%}")
            ax.margins(0.2)


def decoders() -> None:
    """Show the tours of a network for several decoders."""
    model, cities = ptrnet.load("tsp-ptr-net"), uniform(20, 30)

    def length(tour: Any) -> float:
        path = cities[[*tour, tour[0]]]
        return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())

    shortest = labellers.label(tasks.get("tsp"), cities[None], "exact")[0]
    answers = [
        ("greedy, free", model.solve(cities, constrained=False)),
        ("greedy, valid tours only", model.solve(cities)),
        ("beam of 16", model.solve(cities, ptrnet.Beam(16))),
        ("the shortest tour", shortest),
    ]
    with panels("decoders", 10.5, 2.9, 4) as axes:
        for ax, (name, tour) in zip(axes, answers, strict=True):
            missed = np.setdiff1d(np.arange(len(cities)), tour)
            is_tour = not len(missed) and len(tour) == len(cities)
            draw_path(ax, cities[[*tour, tour[0]]], BLUE if is_tour else QUIET)
            draw_points(ax, cities)
            ax.plot(*cities[missed].T, "o", mfc="none", mec=RED, ms=8)
            said = f"length {length(tour):.2f}" if is_tour else f"{len(missed)} cities missed"
            ax.set_title(f"{name}\n{said}", loc="left")


def incremental() -> None:
    """Show incremental decoding of a hull, group by group."""
    model, points, window = ptrnet.load("hull-ptr-net"), uniform(4, 60), 20
    hull = np.empty(0, int)
    with panels("incremental", 9, 3.1, 3) as axes:
        for k, ax in enumerate(axes):
            group = np.arange(k * window, (k + 1) * window)
            members = np.sort(np.union1d(hull, group))
            dropped = np.setdiff1d(np.arange(group[-1] + 1), members)
            draw_points(ax, points[dropped], color=LIGHT)
            draw_points(ax, points[group])
            ax.plot(*points[hull].T, "o", color=BLUE, ms=6, mfc="white")
            hull = members[model.solve(points[members])]
            draw_path(ax, points[[*hull, hull[0]]])
            first = f"{window} points" if not k else f"the last answer and {window} more"
            ax.set_title(f"{k + 1}. {first}", loc="left")
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def edge_frames() -> None:
    """Show the angle that tells the next vertex in edge frames."""
    points = uniform(2, 12)
    hull = ptrnet.load("hull").solve(points)
    a, b, c = points[hull[1]], points[hull[2]], points[hull[3]]
    with panels("edge-frames", 4.4, 3.4, 1) as (ax,):
        rest = np.delete(points, hull[:3], axis=0)
        for p in rest:
            ax.plot(*np.stack([b, p]).T, color=LIGHT, lw=0.9, zorder=0)
        draw_path(ax, points[hull[:3]])
        draw_path(ax, [b, b + 0.55 * (b - a)], QUIET, ":")
        draw_path(ax, [b, c], RED)
        start, end = (np.arctan2(*(v - b)[::-1]) for v in (2 * b - a, c))
        turns = np.linspace(start, start + (end - start) % (2 * np.pi), 30)
        ax.plot(*(b[:, None] + 0.13 * np.stack([np.cos(turns), np.sin(turns)])), color=RED, lw=1)
        draw_points(ax, points)
        for name, p in zip("abc", (a, b, c), strict=True):
            offset = (-12, -4) if name == "c" else (6, -10)
            ax.annotate(f"${name}$", p, xytext=offset, textcoords="offset points", fontsize=11)
        ax.margins(0.1)


def remaining() -> None:
    """Show the input of the shipped model for tours at three steps."""
    model, cities = ptrnet.load("tsp"), uniform(34, 16)
    probabilities, tokens = model.attention(cities)
    tour = tokens[tokens > 0] - 1
    with panels("remaining", 9, 3.0, 3) as axes:
        for ax, step in zip(axes, (2, 6, 11), strict=True):
            inner, rest = tour[1 : step - 1], tour[step:]
            draw_path(ax, cities[tour[:step]], LIGHT)
            draw_points(ax, cities[inner], color=LIGHT)
            draw_points(ax, cities[rest], probabilities[step, 1 + rest])
            ax.plot(*cities[tour[0]], "s", color=INK, ms=6)
            ax.plot(*cities[tour[step - 1]], "o", color=BLUE, ms=7)
            ax.set_title(f"{step} cities visited, {len(rest)} remain", loc="left")
            ax.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))


def newer() -> None:
    """Plot scores by size: the papers, the shipped Ptr-Nets and the newer networks."""
    whats = {"hull": "hulls answered exactly", "tsp": "tours longer than the shortest by"}
    with panels("newer", 9, 3.1, 2, plane=False) as axes:
        for ax, (task, what) in zip(axes, whats.items(), strict=True):
            papers = {n: float(value) for (name, n), value in PAPERS.items() if name == task}
            curves = [("shipped model", measures(task), BLUE), ("Ptr-Net here", None, QUIET)]
            for label, rows, color in curves:
                rows = rows or measures(f"{task}-ptr-net")
                sizes = sorted(n for n in rows if n >= 5)
                values = [100 * rows[n].value for n in sizes]
                ax.plot(sizes, values, "o-", color=color, ms=3.5, lw=1.5, label=label)
            ax.plot(*zip(*sorted(papers.items()), strict=True), "s--", color=RED, ms=3.5, lw=1)
            ax.lines[-1].set_label("papers")
            ax.set_title(what, loc="left")
            ax.set_xscale("log")
            ticks = (5, 10, 20, 50, 100, 200, 500)
            ax.set_xticks([n for n in ticks if n <= 500 and (task == "hull" or n <= 100)])
            ax.xaxis.set_major_formatter("{x:.0f}")
            ax.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
            ax.yaxis.set_major_formatter("{x:.0f}%")
            ax.set_xlabel("elements of an instance, n")
            ax.tick_params(colors=QUIET, labelcolor=INK)
            ax.legend(frameon=False)


def fence() -> None:
    """Draw the tutorial's first picture, by the tutorial's file and command."""
    tutorial = (PICTURES.parent / "tutorial.md").read_text()
    (trees,) = re.findall(r"```csv\n(.*?)```", tutorial, re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trees.csv"
        file.write_text(trees)
        picture = str(PICTURES / "fence.svg")
        run(["solve", "hull", str(file), "--plot", picture, "--output", f"{folder}/fence.csv"])


def newspaper() -> None:
    """Draw README's picture of a page."""
    docs = PICTURES.parent
    page = docs.parent / "examples" / "newspaper.xml"
    with tempfile.TemporaryDirectory() as folder:
        output, picture = f"{folder}/ordered.xml", str(docs / "newspaper.png")
        run(["solve", "reading-order", str(page), "--plot", picture, "--output", output])


def capitals() -> None:
    """Draw the picture of docs/index.md for light and dark backgrounds."""
    docs = PICTURES.parent
    table = docs.parent / "examples" / "capitals.csv"
    dark = {"figure.facecolor": DARK, "axes.facecolor": DARK, "text.color": "#e6e8eb"}
    for name, style in (("capitals", {}), ("capitals-dark", dark)):
        with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context(style):
            output = str(Path(folder) / "hull.csv")
            picture = str(docs / f"{name}.png")
            run(["solve", "hull", str(table), "--plot", picture, "--output", output])


DRAWINGS = {
    "fence": fence,
    "dictionary": dictionary,
    "attention": attention,
    "decoders": decoders,
    "incremental": incremental,
    "edge-frames": edge_frames,
    "remaining": remaining,
    "newer": newer,
}


def main(names: list[str]) -> None:
    """Draw the pictures with these names, or all of them."""
    PICTURES.mkdir(exist_ok=True)
    for name in names or DRAWINGS:
        DRAWINGS[name]()
    if not names:
        newspaper()
        capitals()


if __name__ == "__main__":
    main(sys.argv[1:])
