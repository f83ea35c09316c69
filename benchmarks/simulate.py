"""Check the answers of `ptrnet simulate` on drawn choices, whose true answers are known.

    python benchmarks/simulate.py --machine "2 cores of an AMD EPYC" --commit COMMIT \
        [--logits 40] [--networks 6] [--large 3] [--runs DIR]

A world draws sets of three modes, and their choices. We fit a model to 500 or 5,000 sets, simulate
these sets, and compare with the true probabilities in 20,000 other sets of the same world. So the
error has two sources: a model that was fitted to a sample, and a sample of sets.

The numbers of each sample are kept in DIR, by default runs/simulate, so a stopped run can be
resumed. The page is results/simulate.md.
"""

import argparse
import contextlib
import io
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from ptrnet import runtime

RESULT = Path(__file__).parents[1] / "results" / "simulate.md"
SIZES, POPULATION = (500, 5_000), 20_000
MODES = ("bus", "car", "train")
LIKING, TIME, COST = np.array([0.0, 0.6, 0.1]), -0.05, -0.3
DISSIMILARITY = 0.5  # of the nest of bus and train
STEP = 1e-4
Arrays = tuple[Any, Any, Any]  # times and costs (B, 3), and whether a set has a high income (B,)


def logit(time: Any, cost: Any, is_rich: Any) -> Any:
    return softmax(LIKING + TIME * time + COST * cost, 1)


def nested_logit(time: Any, cost: Any, is_rich: Any) -> Any:
    """Bus and train are alike: a nest with the parameter DISSIMILARITY."""
    v = LIKING + TIME * time + COST * cost
    of_nest = v[:, [0, 2]] / DISSIMILARITY
    inclusive = DISSIMILARITY * logsumexp(of_nest, 1)
    p_nest = softmax(np.column_stack([inclusive, v[:, 1]]), 1)
    inside = softmax(of_nest, 1) * p_nest[:, :1]
    return np.column_stack([inside[:, 0], p_nest[:, 1], inside[:, 1]])


def interactions(time: Any, cost: Any, is_rich: Any) -> Any:
    """Costs matter three times as much to half of the sets, and long times more than short ones."""
    of_cost = np.where(is_rich, COST / 2, 1.5 * COST)[:, None]
    return softmax(LIKING + TIME / 40 * time**2 + of_cost * cost, 1)


WORLDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "logit": logit,
    "nested logit": nested_logit,
    "interactions": interactions,
}
METHODS: dict[str, dict[str, Any]] = {
    "conditional logit": {"model": "conditional-logit"},
    "nested logit": {"model": "conditional-logit", "nests": "mode: bus+train"},
    "ptrnet": {},
}


def draw(count: int, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    time = rng.integers(10, 60, (count, 3)).astype(float)
    return time, rng.gamma(4, 1, (count, 3)).round(2), rng.random(count) < 0.5


def true_answers(world: str) -> dict[str, float]:
    """Return the true answers, by the definitions of `Solver.simulate`."""
    probabilities = WORLDS[world]
    time, cost, is_rich = draw(POPULATION, 10**6)
    p = probabilities(time, cost, is_rich)
    after = probabilities(time, cost * [1, 1, 1.2], is_rich)
    answers = {f"share of {mode}": p.mean(0)[k] for k, mode in enumerate(MODES)}
    answers["share of train after +20%"] = after.mean(0)[2]
    slopes = dict.fromkeys(("time", "cost"), 0.0)
    for j, mode in enumerate(MODES):
        unit = np.eye(3)[j]
        ends = [probabilities(time, cost * (1 + s * STEP * unit), is_rich) for s in (1, -1)]
        change = (ends[0] - ends[1]).mean(0) / (2 * STEP)
        elasticities = change / p.mean(0)
        answers[f"elasticity of {mode}, own"] = elasticities[j]
        for k, other in enumerate(MODES):
            if k != j:
                answers[f"elasticity of {other} to {mode}"] = elasticities[k]
        for name in slopes:
            moved = [
                probabilities(
                    time + s * STEP * unit * (name == "time"),
                    cost + s * STEP * unit * (name == "cost"),
                    is_rich,
                )[:, j]
                for s in (1, -1)
            ]
            slopes[name] += (moved[0] - moved[1]).mean()
    answers["time/cost"] = slopes["time"] / slopes["cost"]
    path = np.linspace(1, 1.2, 101)
    on_path = [probabilities(time, cost * [1, 1, f], is_rich)[:, 2] for f in path]
    answers["surplus"] = -(np.trapezoid(on_path, path, axis=0) * cost[:, 2]).mean()
    return {name: float(value) for name, value in answers.items()}


def sample(world: str, count: int, seed: int) -> pd.DataFrame:
    """Return trips of a world with their choices, a row for each mode."""
    times, costs, is_rich = draw(count, seed)
    p = WORLDS[world](times, costs, is_rich)
    chosen = (np.random.default_rng([seed, 1]).random(count)[:, None] > p.cumsum(1)).sum(1)
    return pd.DataFrame(
        {
            "trip": np.arange(count).repeat(3),
            "mode": MODES * count,
            "time": times.ravel(),
            "cost": costs.ravel(),
            "income": np.where(is_rich, "high", "low").repeat(3),
            "chosen": (chosen[:, None] == np.arange(3)).astype(int).ravel(),
        }
    )


def estimates(world: str, method: str, sets: int, seed: int) -> dict[str, Any]:
    """Fit a model to a sample of sets. Return answers with their intervals, and the seconds."""
    import ptrnet

    began = time.process_time()
    trips = sample(world, sets, seed)
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ptrnet.fit(trips, set_id="trip", chosen="chosen", **METHODS[method])
        found = model.simulate(
            trips,
            set_id="trip",
            by="mode",
            change="cost * 1.2",
            where="mode == train",
            elasticity="cost",
            wtp="time/cost",
            surplus="cost",
        )
    return {"answers": answers_of(found), "seconds": time.process_time() - began}


def answers_of(found: dict[str, Any]) -> dict[str, list[float]]:
    """Return the answers in tables, by the names of `true_answers`, each with its interval."""
    answers = {}
    for row in found["shares"].to_dict("records"):
        answers[f"share of {row['mode']}"] = _cells(row, "before")
        if row["mode"] == "train" and "after" in row:
            answers["share of train after +20%"] = _cells(row, "after")
    for row in found["elasticities"].to_dict("records"):
        j, k = row["cost of mode"], row["share of mode"]
        name = f"elasticity of {j}, own" if j == k else f"elasticity of {k} to {j}"
        answers[name] = _cells(row, "elasticity")
    answers["time/cost"] = _cells(found["wtp"].to_dict("records")[0], "wtp")
    if "surplus" in found:
        answers["surplus"] = _cells(found["surplus"].to_dict("records")[0], "surplus")
    return answers


def _cells(row: dict[str, float], name: str) -> list[float]:
    return [row[name], row[f"{name}_low"], row[f"{name}_high"]]


def samples(
    world: str, method: str, sets: int, count: int, folder: Path
) -> Iterator[dict[str, Any]]:
    for seed in range(count):
        path = folder / f"{world}-{method}-{sets}-{seed}.json".replace(" ", "-")
        if not path.exists():
            path.write_text(json.dumps(estimates(world, method, sets, seed)))
            print(path, flush=True)
        yield json.loads(path.read_text())


KINDS = {
    "shares": "share of",
    "own elasticities": ", own",
    "cross elasticities": " to ",
    "time/cost": "time/cost",
    "surplus": "surplus",
}


def rows_of(world: str, method: str, sets: int, found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a row of the page for each kind of answer."""
    truth = true_answers(world)
    for kind, part in KINDS.items():
        names = [name for name in truth if part in name]
        true = np.array([truth[name] for name in names])
        cells = np.array([[sample["answers"][name] for name in names] for sample in found])
        value, low, high = cells[..., 0], cells[..., 1], cells[..., 2]
        bias = np.abs(value.mean(0) / true - 1).mean()
        error = np.abs(value / true - 1).mean()
        covered = ((low <= true) & (true <= high)).mean()
        width = ((high - low) / np.abs(true)).mean()
        numbers = f"{100 * bias:.1f} | {100 * error:.1f} | {100 * width:.0f} | {100 * covered:.0f}"
        yield f"| {world} | {method} | {sets:,} | {kind} | {len(names)} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--machine", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--logits", type=int, default=40, help="samples of each world")
    parser.add_argument("--networks", type=int, default=6, help="samples of each world")
    parser.add_argument("--large", type=int, default=3, help="samples of the larger size")
    parser.add_argument("--runs", type=Path, default=Path("runs/simulate"))
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    counts = {
        **dict.fromkeys(("conditional logit", "nested logit"), (options.logits, options.large)),
        "ptrnet": (options.networks, options.large),
    }
    rows, seconds = [], []
    for method, of_sizes in counts.items():
        for sets, count in zip(SIZES, of_sizes, strict=True):
            of_worlds = [
                list(samples(world, method, sets, count, options.runs)) for world in WORLDS
            ]
            for world, found in zip(WORLDS, of_worlds, strict=True):
                rows += rows_of(world, method, sets, found)
            seconds.append(np.mean([one["seconds"] for found in of_worlds for one in found]))
    text = PAGE.format(
        *(f"{value:.1f}" for value in seconds),
        rows="\n".join(rows),
        few=f"{SIZES[0]:,}",
        many=f"{SIZES[1]:,}",
        population=f"{POPULATION:,}",
        dissimilarity=DISSIMILARITY,
        machine=options.machine,
        commit=options.commit,
        logits=options.logits,
        networks=options.networks,
        large=options.large,
    )
    RESULT.write_text(text)


PAGE = """# What-if questions: are the answers right?

`benchmarks/simulate.py` draws choices of three modes, whose true probabilities are known, fits a
model to {few} or {many} sets, and answers questions about these sets by
[`ptrnet simulate`](../docs/simulate.md). The truth is that of {population} other sets of the same
world. Commit {commit}, {machine}. There are {large} samples of {many} sets. Of {few}
sets there are {logits} for logits and {networks} for ptrnet's default, an ensemble of mixtures. A
sample took {0} and {1} seconds of processor with a conditional logit, and {4} and {5} with the
default: the training, all answers, and 1,000 draws.

- *logit*: the choices follow a conditional logit.
- *nested logit*: bus and train are in a nest with the parameter {dissimilarity}. A conditional
  logit has the wrong form.
- *interactions*: costs matter three times as much to sets of low income, and the disutility of time
  is quadratic. A logit has the wrong form.

The model *nested logit* is told that bus and train may be alike: `--nests "mode: bus+train"`.

All numbers are percent, as means over the answers of a kind. *bias* is the absolute difference of
the mean estimate from the truth. *error* is the mean absolute difference of an estimate. *width* is
that of the 95% interval. *covered* is the share of intervals that hold the truth.

| world | model | sets | answers | number | bias | error | width | covered |
|---|---|---:|---|---:|---:|---:|---:|---:|
{rows}
"""


if __name__ == "__main__":
    runtime.tune()
    main()
