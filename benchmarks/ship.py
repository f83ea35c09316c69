"""Turn a trained run into a shipped model: half precision, scores on fresh instances, a card.

    python benchmarks/ship.py runs/hull --commit COMMIT \
        --minutes 70 --machine "2 cores of an AMD EPYC (Zen 4, AVX512-BF16)"

The model is called like its task, or `--name`; its recipe is the one of that name.

The test instances are drawn by NumPy's generator from seeds that no training uses. Hulls and
triangulations are labelled by Qhull, not by this project's own algorithm; tours are proved the
shortest by labeller `exact`.
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

from ptrnet import Beam, Greedy, Solver, tasks
from ptrnet.decoding import Decoder
from ptrnet.errors import OutOfDistributionWarning
from ptrnet.files import atomic_path, checksum
from ptrnet.metrics.interval import Measure
from ptrnet.models.base import num_weights
from ptrnet.pretrained import card as pretrained_card
from ptrnet.pretrained import model_folder
from ptrnet.training.recipe import Recipe
from ptrnet.training.run_card import Card, markdown_table
from ptrnet.types import Example

SPREAD = {"mixed": " of all kinds of `--points`"}
SIZES = {
    "hull": (5, 10, 50, 100, 200, 500),
    "delaunay": (5, 6, 7, 8, 9, 10, 12, 15),
    "tsp": (5, 10, 20, 30, 50, 100),
    "sort": (2, 5, 10, 15, 20, 25),
}
COUNT = 10_000
FEWER = {  # sizes whose answers take longer, or for which the papers have no number
    ("hull", 200): 1000,
    ("hull", 500): 1000,
    **{("delaunay", n): 2000 for n in (6, 7, 8, 9, 12, 15)},
}
# The metrics that a card shows for unconstrained greedy decoding, and for constrained decoders.
# `ptrnet models` lists the first of the latter.
FREE = {
    "hull": ("accuracy", "simple", "area"),
    "delaunay": ("accuracy", "triangle_coverage"),
    "tsp": ("valid", "gap"),
    "sort": ("accuracy",),
}
CONSTRAINED = {
    "hull": ("accuracy",),
    "delaunay": ("accuracy", "triangle_coverage"),
    "tsp": ("gap", "length"),
    "sort": ("accuracy",),
}
FREE_COUNTS = {"tsp": 1000}  # how many instances to decode without constraint; other tasks: all
BEAM_COUNTS = {"tsp": 256}  # beams answer the first of the instances; 1000 of other tasks
PROVED = 50  # cities; larger tours are compared with those of a local search
SEED = 20_260_000
LABELS = {
    "hull": "labels by Qhull",
    "delaunay": "labels by Qhull",
    "tsp": "gaps are to tours that are proved to be the shortest (above 50 cities, to tours of a "
    "local search), over valid tours",
    "sort": "labels by NumPy",
}
SUBJECT = {
    "hull": "planar convex hull: the vertices of the hull of points in the plane",
    "delaunay": "planar Delaunay triangulation: the triangles whose circumcircles contain no point",
    "tsp": "the travelling salesman in the plane: a short closed tour of all cities",
    "sort": "sorting: the order of numbers",
}
NETWORK = {
    "ptr-net": "A Pointer Network (Vinyals et al. 2015, section 2.3)",
    "transformer-ptr-net": "A transformer over the set that points at its elements",
    "remaining-ptr-net": "A network that encodes what remains at every step (docs/models.md)",
}
EDGE = {"last": "last edge", "open": "edge that is continued"}
LIMITS = {
    "sort": (
        "We trained this model on 2 to 20 numbers of all kinds of `--points`, including equal\n"
        "ones. It also reads the numbers as sines and cosines in ten octaves. Accuracy falls for\n"
        "more than 25 numbers, because neighbours are then closer together than in training, and\n"
        "if each number occurs many times. Under the constraint every answer is a permutation,\n"
        "but not always the right one."
    ),
    "delaunay": (
        "At every step the network sees the position of each point relative to the edge that is\n"
        "continued. So it learns which point comes next, not what an angle is. We trained it on 5\n"
        "to 15 points, uniform in the unit square. It makes most mistakes if four points are\n"
        "nearly on one circle, and if points coincide. The constraint allows each edge in at most\n"
        "two triangles, but it does not make the triangles Delaunay. If the answer has to be\n"
        "right, use the labeller `qhull`."
    ),
    "hull": (
        "At every step the network sees the position of each point relative to the last edge. So\n"
        "it learns which point comes next, not what an angle is. We trained it on sets of 1 to 50\n"
        "points, uniform and of other kinds (`--points mixed`). It makes most mistakes if points\n"
        "are nearly on one line. Under the constraint an answer has no vertex twice, but it is\n"
        "not always the hull. If the answer has to be right, use the labeller `monotone-chain`."
    ),
    "hull-ptr-net": (
        "We trained this model on points that are uniform in the unit square. Accuracy falls on\n"
        "sets that are larger than those of the training, and on sets with a very different\n"
        "distribution: points in a thin band, in distant clusters, or on a circle, where every\n"
        "point is a vertex. Under the constraint an answer has no vertex twice, but it is not\n"
        "always the hull. If the answer has to be right, use the labeller `monotone-chain`."
    ),
    "delaunay-ptr-net": (
        "We trained this model on 5 to 10 points, uniform in the unit square and sorted from left\n"
        "to right. On larger sets few answers are completely right. If the answer has to be\n"
        "right, use the labeller `qhull`. The constraint makes complete, increasing triples, but\n"
        "it does not make them Delaunay."
    ),
    "tsp": (
        "We trained this model on 5 to 50 cities, uniform in the unit square. Every step encodes\n"
        "the remaining cities (at most the hundred nearest to the last one), so answers take long\n"
        "for more than a few hundred cities. Tours get longer if the cities have a very different\n"
        "distribution. Several views (`--augment 8`) or `--decoder reconstruct` make them\n"
        "shorter. If a tour has to be the shortest, use the labeller `exact`."
    ),
    "tsp-ptr-net": (
        "We trained this model on 5 to 20 cities, uniform in the unit square and sorted from left\n"
        "to right, with exact labels. Tours get longer for more than 20 cities, and if the cities\n"
        "have a very different distribution; without the constraint, fewer and fewer answers are\n"
        "valid. If a tour has to be short, use the labeller `exact` or `local-search`."
    ),
    "sort-ptr-net": (
        "We trained this model on numbers that are uniform in [0, 1]. Accuracy falls for more\n"
        "than 20 numbers, and if neighbours are closer together than in such sets. Under the\n"
        "constraint every answer is a permutation, but not always the right one."
    ),
}


def examples(task: str, n: int, count: int) -> list[Example]:
    """Fresh instances of one size, with answers by another library."""
    rng = np.random.default_rng(SEED + n)
    if task == "sort":
        return [Example(x, np.argsort(x[:, 0])) for x in rng.random((count, n, 1))]
    points = rng.random((count, n, 2))
    if task == "hull":
        return [Example(x, ConvexHull(x).vertices.astype(np.int64)) for x in points]
    if task == "delaunay":
        return [Example(x, Delaunay(x).simplices.astype(np.int64)) for x in points]
    tours = tasks.get(task).label(points, "exact" if n <= PROVED else "local-search").rows()
    return [Example(x, t) for x, t in zip(points, tours, strict=True)]


def free_note(task: str) -> str:
    """Describe how many instances are decoded without constraint; empty if all of them are."""
    return f", on the first {FREE_COUNTS[task]:,} instances" if task in FREE_COUNTS else ""


def beam_count(task: str) -> int:
    """The number of instances that beams answer."""
    return BEAM_COUNTS.get(task, 1000)


def measured(solver: Solver, test: list[Example], decoder: Decoder) -> dict[str, Measure]:
    """The task's metrics of constrained answers."""
    answers = [example.outputs for example in solver.predict(test, decoder)]
    return solver.task.measure(test, answers)


def scores(solver: Solver, n: int, beam: int) -> dict:
    """The metrics of greedy decoding and of constrained decoders for one size."""
    main, *others = CONSTRAINED[solver.task.name]
    test = examples(solver.task.name, n, FEWER.get((solver.task.name, n), COUNT))
    some = test[: FREE_COUNTS.get(solver.task.name, COUNT)]
    free = solver.measure(some, Greedy(), constrained=False)
    greedy = measured(solver, test, Greedy())
    few = test[: beam_count(solver.task.name)]
    beams = measured(solver, few, Beam(beam))
    row = {"n": n, **{name: m.to_dict() for name, m in free.items()}}
    for name, measures in (("constrained", greedy), (f"beam_{beam}", beams)):
        row[name] = measures[main].to_dict()
        row |= {f"{name}_{other}": measures[other].to_dict() for other in others}
    return row


def kept_scores(solver: Solver, folder: Path, run: Path, beam: int) -> list[dict]:
    """The scores of every size; those that a former call has kept in the run are not taken again.

    Args:
        solver: the model as it is shipped.
        folder: with the shipped weights, to which the scores belong.
        run: where they are kept.
        beam: prefixes of the beam.
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
    """The model's card."""
    task, recipe = saved.task.name, Recipe.read(recipe_path(name))
    network = NETWORK[recipe.model]
    if getattr(recipe.network, "edge_frames", False):
        edge = EDGE[recipe.network.frame_edge]
        network += (
            f", which sees the geometry of the {edge} at every step (edge frames: docs/models.md),"
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
    return Card(
        title=name,
        summary=f"{network} for {SUBJECT[task]}.",
        facts=[
            f"Network: {num_weights(saved.model):,} weights, encoder and decoder of "
            f"{saved.model.settings()['hidden_size']} units",
            f"Trained on: fresh instances of {trained['n']} elements"
            f"{SPREAD.get(saved.task.points, '')}, labelled during the training",
            f"Recipe: `ptrnet train src/ptrnet/recipes/{name}.toml --output my-{name}`\n"
            f"  ({trained['steps']:,} steps of {trained['batch_size']} examples, "
            f"seed {trained['seed']}){facts['note']}",
            f"Commit: {facts['commit']}",
            f"Time: {facts['minutes']} minutes on {facts['machine']}",
            "Weights are stored in half precision; the model computes in single precision",
        ],
        scores=(
            "In percent, with 95% intervals, on fresh instances that no training used; "
            f"{LABELS[task]}.\n"
            "Greedy decoding; without constraint unless the column says so"
            f"{free_note(task)}. Beams on the\nfirst {beam_count(task):,} instances. "
            "`python benchmarks/ship.py`, which contains the seeds, wrote this table."
        ),
        table=table,
        limits=LIMITS[name],
    )


def recipe_path(name: str) -> Path:
    """The recipe of a shipped model."""
    return Path("src/ptrnet/recipes") / f"{name}.toml"


def main() -> None:
    """Read the folder of a run, and write the folder of the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    for fact in ("commit", "minutes", "machine"):
        parser.add_argument(f"--{fact}", required=True)
    parser.add_argument("--name", help="name of the shipped model; default: its task")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--note", default="", help="a note on the training for the card")
    parser.add_argument("--n", help="sizes of all trainings, if this one continued another")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    # The models are measured outside their trained sizes on purpose.
    warnings.simplefilter("ignore", OutOfDistributionWarning)
    saved = model_folder.load(options.run)
    name = options.name or saved.task.name
    recipe = Recipe.read(options.run / "recipe.toml")
    if recipe.table() != Recipe.read(recipe_path(name)).table():
        parser.error(f"{options.run} was not trained by the recipe of {name}")
    results = Path("results") / f"{name}.json"
    results.parent.mkdir(exist_ok=True)
    trained = {key: getattr(recipe, key) for key in ("n", "steps", "batch_size", "seed")}
    trained["n"] = options.n or str(recipe.n)
    folder = Path("src/ptrnet/weights") / name
    model_folder.save(folder, saved._replace(trained=trained), torch.float16)
    saved = model_folder.load(folder)  # scores are those of the shipped weights
    rows = kept_scores(Solver(*saved), folder, options.run, options.beam)
    key = "constrained" if saved.task.name == "tsp" else "accuracy"
    saved.trained["scores"] = [
        {"n": row["n"], "metric": CONSTRAINED[saved.task.name][0], **row[key]} for row in rows
    ]
    model_folder.save(folder, saved, torch.float16)
    pretrained_card.write(folder, card(name, saved, rows, options.beam, vars(options)).text())
    document = {
        "model": name,
        "seed": SEED,
        "command": shlex.join(sys.argv),
        **{k: str(v) for k, v in vars(options).items()},
    }
    results.write_text(json.dumps({**document, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
