"""Makes a trained run a shipped model: half precision, scores on fresh instances, and a card.

    python tools/ship.py runs/hull --commit COMMIT \
        --minutes 70 --machine "2 cores of an AMD EPYC (Zen 4, AVX512-BF16)"

The test instances are drawn by NumPy's generator from seeds that no training uses, and hulls
are labelled by Qhull, not by this project's own algorithm.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import ConvexHull

from ptrnet import Beam, Greedy, Solver, model_files
from ptrnet.evaluation import evaluate
from ptrnet.training.recipe import Recipe
from ptrnet.types import Example

SIZES = {"hull": (5, 10, 50, 100, 200, 500), "sort": (2, 5, 10, 15, 20, 25)}
COUNTS = {200: 2000, 500: 1000}
SEED = 20_260_000
SUBJECT = {
    "hull": "planar convex hull: the vertices of the hull of points in the plane",
    "sort": "sorting: the order of numbers",
}
LIMITS = {
    "hull": (
        "Trained on points uniform in the unit square. Accuracy falls as sets grow beyond the\n"
        "sizes of the training, and on point sets that are spread very differently: points in a\n"
        "thin band, in far clusters or on a circle, where every point is a vertex. An answer\n"
        "under the constraint has no vertex twice, but it need not be the hull: where it must\n"
        "be right, use the labeller `monotone-chain`."
    ),
    "sort": (
        "Trained on numbers uniform in [0, 1]. Accuracy falls beyond 20 numbers and where\n"
        "neighbours lie closer together than such numbers do. Under the constraint every answer\n"
        "is a permutation, but it need not be the right one."
    ),
}


def examples(task: str, n: int, count: int) -> list[Example]:
    """Fresh instances of one size, with answers by another library."""
    rng = np.random.default_rng(SEED + n)
    if task == "sort":
        return [Example(x, np.argsort(x[:, 0])) for x in rng.random((count, n, 1))]
    return [Example(x, ConvexHull(x).vertices.astype(np.int64)) for x in rng.random((count, n, 2))]


def scores(solver: Solver, beam: int) -> list[dict]:
    """A row for each size: the metrics of greedy decoding, and the accuracies of others."""
    rows = []
    for n in SIZES[solver.task.name]:
        known = examples(solver.task.name, n, COUNTS.get(n, 10_000))
        free = evaluate(solver, known, solver.answered(known, Greedy(), constrained=False))
        held = evaluate(solver, known, solver.answered(known, Greedy()))
        wide = evaluate(solver, known, solver.answered(known, Beam(beam)))
        row = {"n": n, **{name: m.table() for name, m in free.items()}}
        row["constrained"] = held["accuracy"].table()
        row[f"beam_{beam}"] = wide["accuracy"].table()
        rows.append(row)
        print(f"n={n}: {free['accuracy'].value:.4f}", flush=True)
    return rows


def share(measure: dict) -> str:
    """A share in percent with its interval, as cards show it."""
    if measure.get("fail"):
        return "FAIL"
    if measure["value"] is None:
        return "-"
    value, low, high = (100 * measure[key] for key in ("value", "low", "high"))
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def card(name: str, saved: model_files.Saved, rows: list[dict], beam: int, facts: dict) -> str:
    """The model's README."""
    columns = [key for key in ("accuracy", "simple", "area") if key in rows[0]]
    columns += ["constrained", f"beam_{beam}"]
    titles = {
        "constrained": "accuracy, constrained",
        f"beam_{beam}": f"accuracy, constrained beam {beam}",
    }
    head = " | ".join(["n", "instances", *(titles.get(c, c) for c in columns)])
    lines = [f"| {head} |", "|---" * (len(columns) + 2) + "|"]
    for row in rows:
        cells = " | ".join(share(row[c]) for c in columns)
        lines.append(f"| {row['n']} | {row['accuracy']['count']} | {cells} |")
    trained = saved.trained
    weights = sum(p.numel() for p in saved.model.parameters())
    return f"""# {name}

A Pointer Network (Vinyals et al. 2015, section 2.3) for {SUBJECT[name]}.

- Network: {weights:,} weights, encoder and decoder of {saved.model.settings()["hidden_size"]} units
- Trained on: fresh instances of {trained["n"]} elements, labelled exactly as they were drawn
- Recipe: `ptrnet train src/ptrnet/recipes/{name}.toml --output my-{name}`
  ({trained["steps"]:,} steps of {trained["batch_size"]} examples, seed {trained["seed"]})
- Commit: {facts["commit"]}
- Time: {facts["minutes"]} minutes on {facts["machine"]}
- Stored in half precision, computed in single precision

## Scores

Percent, with 95% intervals, over fresh instances that no training used; the answers were
computed by another library. Greedy decoding without constraint unless the column says so.
Made by `python tools/ship.py`, which holds the seeds.

{chr(10).join(lines)}

## Limits

{LIMITS[name]}
"""


def main() -> None:
    """Reads a run's folder, writes the package's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    for fact in ("commit", "minutes", "machine"):
        parser.add_argument(f"--{fact}", required=True)
    parser.add_argument("--beam", type=int, default=4)
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    saved = model_files.load(given.run)
    name = saved.task.name
    recipe = Recipe.read(given.run / "recipe.toml")
    shipped = Recipe.read(Path("src/ptrnet/recipes") / f"{saved.task.name}.toml")
    if recipe.table() != shipped.table():
        parser.error(f"{given.run} was not trained by the recipe of {saved.task.name}")
    results = Path("results") / f"{saved.task.name}.json"
    results.parent.mkdir(exist_ok=True)
    trained = {key: getattr(recipe, key) for key in ("n", "steps", "batch_size", "seed")}
    folder = Path("src/ptrnet/weights") / name
    model_files.save(folder, saved._replace(trained=trained), torch.float16)
    saved = model_files.load(folder)  # scored as it is shipped
    rows = scores(Solver(*saved), given.beam)
    saved.trained["scores"] = [
        {"n": row["n"], "instances": row["accuracy"]["count"], **row["accuracy"]} for row in rows
    ]
    model_files.save(folder, saved, torch.float16)
    (folder / model_files.CARD).write_text(card(name, saved, rows, given.beam, vars(given)))
    document = {
        "model": name,
        "seed": SEED,
        "command": shlex.join(sys.argv),
        **{k: str(v) for k, v in vars(given).items()},
    }
    results.write_text(json.dumps({**document, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
