"""Make a shipped model of a trained run: half precision, scores on fresh instances, a card.

    python benchmarks/ship.py runs/hull --commit COMMIT \
        --minutes 70 --machine "2 cores of an AMD EPYC (Zen 4, AVX512-BF16)"

The model gets the name of its task, or `--name`. The run must have been trained by the recipe of
that name.

NumPy's generator draws the test instances, from seeds that no training uses. Qhull, and not this
project's own algorithm, labels hulls and triangulations. The labeller `exact` finds and proves the
shortest tours. The order of pages is that of the grammar which draws them.
"""

import argparse
import json
import shlex
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import ConvexHull, Delaunay

from ptrnet import Beam, Greedy, Solver, labellers, model_folder, tasks
from ptrnet.decoding import Decoder
from ptrnet.errors import OutOfDistributionWarning
from ptrnet.files import atomic_path, checksum
from ptrnet.metrics import Measure, summary
from ptrnet.models.base import num_weights
from ptrnet.pages.labels import LABEL
from ptrnet.solver.scoring import score_answers
from ptrnet.training.recipe import Recipe
from ptrnet.training.run_card import Card, markdown_table
from ptrnet.types import Dataset, Example

SPREAD = {"mixed": " of all kinds of `--points`"}
SIZES = {
    "hull": (5, 10, 50, 100, 200, 500),
    "delaunay": (5, 6, 7, 8, 9, 10, 12, 15),
    "tsp": (5, 10, 20, 30, 50, 100),
    "sort": (2, 5, 10, 15, 20, 25),
    "reading-order": (5, 10, 20, 40, 80, 160),
}
COUNT = 10_000
FEWER = {  # for sizes that take longer, and for sizes without a number in the papers
    ("hull", 200): 1000,
    ("hull", 500): 1000,
    ("tsp", 50): 4000,
    ("tsp", 100): 1000,
    **{("delaunay", n): 2000 for n in (6, 7, 8, 9, 12, 15)},
    **{("reading-order", n): 2000 for n in (5, 10, 20, 40)},
    **{("reading-order", n): 500 for n in (80, 160)},
}
# The metrics that a card shows for unconstrained greedy decoding, and for constrained decoders.
# `ptrnet models` lists the first of the latter.
FREE = {
    "hull": ("accuracy", "simple", "area"),
    "delaunay": ("accuracy", "triangle_coverage"),
    "tsp": ("valid", "gap"),
    "sort": ("accuracy",),
    "reading-order": ("accuracy",),
}
CONSTRAINED = {
    "hull": ("accuracy",),
    "delaunay": ("accuracy", "triangle_coverage"),
    "tsp": ("gap", "length"),
    "sort": ("accuracy",),
    "reading-order": ("accuracy", "edit_distance"),
}
FREE_COUNTS = {"tsp": 1000}  # how many instances to decode without constraint; other tasks: all
BEAM_COUNTS = {
    "tsp": 256,
    "reading-order": 500,
}  # beams answer the first of the instances; 1000 of other tasks
PROVED = 50  # cities; larger tours are compared with those of a local search
SEED = 20_260_000
LABELS = {
    "hull": "Qhull labelled them.",
    "delaunay": "Qhull labelled them.",
    "tsp": "Gaps compare the valid tours with proved shortest tours, or above 50 cities with\n"
    "tours of a local search. Lengths are in units of the square's side, not in percent.",
    "sort": "NumPy labelled them.",
    "reading-order": "They are drawn pages without labels, whose order is that of the grammar.\n"
    "results/reading-order.md has real pages, and pages with labels.",
}
SUBJECT = {
    "hull": "the convex hull of points in the plane: its vertices, counter-clockwise",
    "delaunay": "the Delaunay triangulation of points in the plane: the triangles whose "
    "circumcircles contain no other point",
    "tsp": "the travelling salesman problem in the plane: a short closed tour through all cities",
    "sort": "sorting numbers in increasing order",
    "reading-order": "the reading order of a page: the boxes of its blocks or lines, in the order "
    "in which people read them",
}
NETWORK = {
    "ptr-net": "A Pointer Network (Vinyals et al. 2015, section 2.3)",
    "transformer-ptr-net": "A transformer that reads a set and points at its elements,",
    "remaining-ptr-net": "A network that encodes the remaining elements again at every step",
    "box-ptr-net": "A transformer that says of each pair of boxes which must come first,",
}
EDGE = {"last": "the last edge", "open": "the edge that is to get its triangle"}
LIMITS = {
    "reading-order": (
        "We trained this model on drawn pages of 1 to 160 boxes, and on no real page. It reads\n"
        "neither text nor images. So it cannot follow a story to another page, and it does not\n"
        "know which of two equally near columns continues a text. People disagree about the\n"
        "place of marginal notes; the model reads a note where its top is. If an order has to be\n"
        "right, let a person look at the pages whose answers are unlikely (`--doubt`)."
    ),
    "sort": (
        "We trained this model on 2 to 20 numbers of all kinds of `--points`, including equal\n"
        "ones. It also reads the sines and cosines of each number in ten octaves. Accuracy falls\n"
        "for more than 25 numbers, because neighbours are then closer together than in training.\n"
        "It also falls if each number occurs many times. Under the constraint every answer is a\n"
        "permutation, but not always the right one."
    ),
    "delaunay": (
        "At every step the network sees the position of each point relative to one edge. So it\n"
        "has to learn which point comes next, but not what an angle is. We trained it on 5 to 15\n"
        "points, uniform in the unit square. It makes most mistakes if four points are nearly on\n"
        "one circle, or if points coincide. The constraint allows each edge in at most two\n"
        "triangles, but the triangles need not be Delaunay. If the answer has to be right, use\n"
        "the labeller `qhull`."
    ),
    "hull": (
        "At every step the network sees the position of each point relative to the last edge. So\n"
        "it has to learn which point comes next, but not what an angle is. We trained it on sets\n"
        "of 1 to 50 points, uniform and of other kinds (`--points mixed`). It makes most mistakes\n"
        "if points are nearly on one line. Under the constraint no vertex occurs twice in an\n"
        "answer, but the answer is not always the hull. If it has to be right, use the labeller\n"
        "`monotone-chain`."
    ),
    "hull-ptr-net": (
        "We trained this model on points that are uniform in the unit square. Accuracy falls on\n"
        "sets that are larger than those of the training, and on sets with a very different\n"
        "distribution: points in a thin band, in distant clusters, or on a circle, where every\n"
        "point is a vertex. Under the constraint no vertex occurs twice in an answer, but the\n"
        "answer is not always the hull. If it has to be right, use the labeller `monotone-chain`."
    ),
    "delaunay-ptr-net": (
        "We trained this model on 5 to 10 points, uniform in the unit square and sorted from left\n"
        "to right. On larger sets few answers are completely right. Under the constraint answers\n"
        "consist of complete triples of increasing indices, but the triangles need not be\n"
        "Delaunay. If the answer has to be right, use the labeller `qhull`."
    ),
    "tsp": (
        "We trained this model on 5 to 100 cities, uniform in the unit square. Every step encodes\n"
        "the remaining cities (at most the hundred nearest to the last one), so it is slow for\n"
        "more than a few hundred cities. Tours get longer if the cities have a very different\n"
        "distribution. Several views (`--augment 8`) or `--decoder reconstruct` make them\n"
        "shorter. If a tour has to be the shortest, use the labeller `exact`."
    ),
    "tsp-ptr-net": (
        "We trained this model on 5 to 20 cities, uniform in the unit square and sorted from left\n"
        "to right, with exact labels. Tours get longer for more than 20 cities, or if the cities\n"
        "have a very different distribution. Without the constraint, fewer answers are then\n"
        "valid. If a tour has to be short, use the labeller `exact` or `local-search`."
    ),
    "sort-ptr-net": (
        "We trained this model on numbers that are uniform in [0, 1]. Accuracy falls for more\n"
        "than 20 numbers, or if neighbours are closer together than in such sets. Under the\n"
        "constraint every answer is a permutation, but not always the right one."
    ),
}


def examples(task: str, n: int, count: int) -> list[Example]:
    """Draw fresh instances of one size, with answers of another library."""
    rng = np.random.default_rng(SEED + n)
    if task == "reading-order":
        pages, answers = labellers.draw(tasks.get(task), rng, count, n)
        pages[..., LABEL] = 0
        return [Example(x, y) for x, y in zip(pages, answers, strict=True)]
    if task == "sort":
        return [Example(x, np.argsort(x[:, 0])) for x in rng.random((count, n, 1))]
    points = rng.random((count, n, 2))
    if task == "hull":
        return [Example(x, ConvexHull(x).vertices.astype(np.int64)) for x in points]
    if task == "delaunay":
        return [Example(x, Delaunay(x).simplices.astype(np.int64)) for x in points]
    tours = labellers.label(tasks.get(task), points, "exact" if n <= PROVED else "local-search")
    return [Example(x, t) for x, t in zip(points, tours, strict=True)]


def free_note(task: str) -> str:
    """Say how many instances we decode without constraint; empty if we decode all of them."""
    if task not in FREE_COUNTS:
        return ""
    return f" Without the constraint we decode only the first {FREE_COUNTS[task]:,} instances."


def beam_count(task: str) -> int:
    """Number of instances that beams answer."""
    return BEAM_COUNTS.get(task, 1000)


def measured(solver: Solver, test: list[Example], decoder: Decoder) -> dict[str, Measure]:
    """Measure constrained answers by the task's metrics."""
    answers = [example.outputs for example in solver.predict(test, decoder)]
    return summary.measure(solver.task, test, answers)


def scores(solver: Solver, n: int, beam: int) -> dict:
    """Measure free greedy decoding and constrained decoders on instances of one size."""
    main, *others = CONSTRAINED[solver.task.name]
    test = examples(solver.task.name, n, FEWER.get((solver.task.name, n), COUNT))
    some = test[: FREE_COUNTS.get(solver.task.name, COUNT)]
    answered = solver.predict(some, Greedy(), constrained=False)
    free = score_answers(solver.model, solver.task, Dataset.of(some), answered)
    greedy = measured(solver, test, Greedy())
    few = test[: beam_count(solver.task.name)]
    beams = measured(solver, few, Beam(beam))
    row = {"n": n, **{name: m.to_dict() for name, m in free.items()}}
    for name, measures in (("constrained", greedy), (f"beam_{beam}", beams)):
        row[name] = measures[main].to_dict()
        row |= {f"{name}_{other}": measures[other].to_dict() for other in others}
    return row


def kept_scores(solver: Solver, folder: Path, run: Path, beam: int) -> list[dict]:
    """Measure the scores of every size, and keep them in the run. The next call reads them there.

    Args:
        solver: the model as it is shipped.
        folder: the folder of the shipped weights.
        run: the folder in which the scores are kept.
        beam: number of prefixes of the beam.
    """
    weights = checksum(folder / model_folder.TENSORS)[:12]
    rows = []
    for n in SIZES[solver.task.name]:
        count = FEWER.get((solver.task.name, n), COUNT)
        path = run / f"scores-{weights}-{n}-{count}-{beam}.json"
        if not path.exists():
            row = scores(solver, n, beam)
            with atomic_path(path) as temporary:
                temporary.write_text(json.dumps(row), encoding="utf-8")
        rows.append(json.loads(path.read_text(encoding="utf-8")))
        print(f"n={n}: {rows[-1]['constrained']}", flush=True)
    return rows


def cell(metric: str, measure: dict) -> str:
    """Format a metric with its interval; shares are in percent."""
    digits, scale = {"length": (3, 1), "gap": (2, 100)}.get(metric, (1, 100))
    return Measure(**measure).text(digits, scale)


def card(name: str, saved: model_folder.Saved, rows: list[dict], beam: int, facts: dict) -> Card:
    """Return the model's card."""
    task, recipe = saved.task.name, Recipe.read(recipe_path(name))
    summary = f"{NETWORK[recipe.model]} for {SUBJECT[task]}."
    if getattr(recipe.network, "edge_frames", False):
        summary += (
            f" At every step it sees the points relative to {EDGE[recipe.network.frame_edge]} "
            "(edge frames: docs/models.md)."
        )
    columns = [(key, key, key.replace("_", " ")) for key in FREE[task]]
    for key, decoder in (
        ("constrained", "constrained"),
        (f"beam_{beam}", f"constrained beam {beam}"),
    ):
        main, *others = CONSTRAINED[task]
        columns.append((key, main, f"{main}, {decoder}"))
        columns += [(f"{key}_{o}", o, f"{o.replace('_', ' ')}, {decoder}") for o in others]
    table = markdown_table(
        ["n", "instances", *(title for _, _, title in columns)],
        [
            [
                str(row["n"]),
                str(row["constrained"]["count"]),
                *(cell(metric, row[key]) for key, metric, _ in columns),
            ]
            for row in rows
        ],
    )
    trained = saved.trained
    fresh = (
        f"fresh instances of {trained['n']} elements{SPREAD.get(saved.task.points, '')}, "
        f"{'drawn in order' if task == 'reading-order' else 'labelled during the training'}"
    )
    return Card(
        title=name,
        summary=summary,
        facts=[
            f"Network: {num_weights(saved.model):,} weights, "
            f"{saved.model.settings()['hidden_size']} units",
            f"Trained on: {facts.get('trained_on') or fresh}",
            f"Recipe: `ptrnet train src/ptrnet/recipes/{name}.toml --output my-{name}`\n"
            f"  ({trained['steps']:,} steps of {trained['batch_size']} examples, "
            f"seed {trained['seed']}){facts['note']}",
            f"Commit: {facts['commit']}",
            f"Time: {facts['minutes']} minutes on {facts['machine']}",
            "Precision: half for the stored weights, single for the computation",
        ],
        scores=(
            "Scores are in percent, with 95% intervals, on fresh instances that no training used.\n"
            f"{LABELS[task]} We decode greedily, and without the constraint unless a column says\n"
            f"so.{free_note(task)} Beams answer the first {beam_count(task):,} instances.\n"
            "The script `benchmarks/ship.py` wrote this table, and contains the seeds."
        ),
        table=table,
        limits=LIMITS[name],
    )


def recipe_path(name: str) -> Path:
    """Return the path of a shipped model's recipe."""
    return Path("src/ptrnet/recipes") / f"{name}.toml"


def main() -> None:
    """Read the folder of a run, and write the folder of the shipped model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    for fact in ("commit", "minutes", "machine"):
        parser.add_argument(f"--{fact}", required=True)
    parser.add_argument("--name", help="name of the shipped model; default: its task")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--note", default="", help="a note on the training for the card")
    parser.add_argument("--trained-on", help="its examples, if they were not drawn during training")
    parser.add_argument("--n", help="sizes of all trainings, if the run continued another one")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    # We measure the models outside their trained sizes on purpose.
    warnings.simplefilter("ignore", OutOfDistributionWarning)
    saved = model_folder.load(options.run)
    name = options.name or saved.task.name
    recipe = Recipe.read(options.run / "recipe.toml")
    if recipe.table() != Recipe.read(recipe_path(name)).table():
        parser.error(f"{options.run} was not trained by the recipe of {name}")
    results = Path("results") / f"{name}.json"
    results.parent.mkdir(exist_ok=True)
    trained = {key: recipe.table()[key] for key in ("n", "steps", "batch_size", "seed")}
    trained["n"] = options.n or str(recipe.data.n)
    folder = Path("src/ptrnet/weights") / name
    model_folder.save(folder, saved._replace(trained=trained), torch.float16)
    saved = model_folder.load(folder)  # so that we measure the shipped weights
    rows = kept_scores(Solver(*saved), folder, options.run, options.beam)
    key = "constrained" if saved.task.name == "tsp" else "accuracy"
    saved.trained["scores"] = [
        {"n": row["n"], "metric": CONSTRAINED[saved.task.name][0], **row[key]} for row in rows
    ]
    model_folder.save(folder, saved, torch.float16)
    model_folder.write_card(folder, card(name, saved, rows, options.beam, vars(options)).text())
    document = {
        "model": name,
        "seed": SEED,
        "command": shlex.join(sys.argv),
        **{k: str(v) for k, v in vars(options).items()},
    }
    results.write_text(json.dumps({**document, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
