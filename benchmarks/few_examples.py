"""Compare the model `chooser` with other methods by the number of examples.

    pip install -e '.[train,trees,benchmark]'
    OMP_NUM_THREADS=1 python benchmarks/few_examples.py --machine "2 cores of an AMD EPYC" \
        --commit COMMIT [--rank rank.train rank.test] [--swissmetro swissmetro.dat] \
        [--sets mode travel] [--methods chooser ptrnet] [--runs DIR] [--page]

The data sets and the other methods are those of `real_data.py`, whose options name the files. A
draw has examples of groups in a random order, and up to 1,000 questions of other groups. A group is
a household, a person or, if there are neither, a single set.

The scores of all questions are kept in DIR, by default runs/few-examples, so a stopped comparison
can be resumed. With --page, nothing is measured. The page is results/few-examples.md.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import real_data
from real_data import LAMBDARANK, LOGIT, OURS, SWISSMETRO, XENDCG, Sets
from scipy.stats import ttest_1samp

from ptrnet.metrics import Measure
from ptrnet.types import Floats

RESULT = Path(__file__).parents[1] / "results" / "few-examples.md"
CHOOSER, TUNED = "chooser", "conditional logit, tuned ridge"
METHODS = (CHOOSER, OURS, LOGIT, TUNED, XENDCG, LAMBDARANK)
NAMES = ("mode", "heating", "travel", "fishing", "yogurt", "car")
CHOICE_METRICS, RANK_METRICS = ("log-likelihood", "accuracy"), ("NDCG@10",)
CONFIDENCE = "overconfidence"
RIDGES = (1e-4, 0.1, 1.0, 10.0, 100.0)
COUNTS = (20, 50, 100, 200, 500)
QUESTIONS, LEAST_SHARE = 1000, 0.3  # the most questions; the least share of sets for questions
DRAWS, MAIN_DRAWS = 10, 20  # of most counts, and of the count that readers see first
SLOW_DRAWS = 3  # of most counts, of methods that take many seconds


def main_count(name: str) -> int:
    return 50 if name == "rank" else 100


def num_draws(name: str, count: int, method: str) -> int:
    if count == main_count(name):
        return MAIN_DRAWS
    return SLOW_DRAWS if method == OURS else DRAWS


def counts(sets: Sets) -> list[int]:
    """Return the counts of examples that leave enough questions."""
    return [n for n in COUNTS if len(sets.elements) - n >= LEAST_SHARE * len(sets.elements)]


def methods(name: str) -> list[str]:
    return [m for m in METHODS if not (m in (LOGIT, TUNED) and name == "rank")]


def draw(sets: Sets, count: int, seed: int) -> tuple[list[int], list[int]]:
    """Return the indices of examples and of questions, which are of different groups."""
    groups = np.array(sets.groups or range(len(sets.elements)))
    rng = np.random.default_rng(seed)
    examples: list[int] = []
    taken = set()
    for group in rng.permutation(np.unique(groups)):
        if len(examples) >= count:
            break
        taken.add(group)
        examples += np.flatnonzero(groups == group)[: count - len(examples)].tolist()
    rest = np.array([k for k, group in enumerate(groups) if group not in taken])
    if len(rest) > QUESTIONS:
        rest = np.sort(rng.permutation(rest)[:QUESTIONS])
    return examples, rest.tolist()


# ---- Measuring


def fit(train: Sets) -> Any:
    """Fit a chooser to dictionaries of fields or, if sets have grades, to a long table."""
    import pandas as pd

    import ptrnet

    if train.kind == "choice":
        outputs = [[int(grades.argmax())] for grades in train.grades]
        groups = {"group": list(train.groups)} if train.groups else {}
        return ptrnet.fit(train.elements, outputs, "choice", model=CHOOSER, **groups)
    rows = [
        {"set": k, "grade": int(grade), **element}
        for k, (elements, grades) in enumerate(zip(train.elements, train.grades, strict=True))
        for element, grade in zip(elements, grades, strict=True)
    ]
    columns = {"set_id": "set", "grade": "grade"}
    return ptrnet.fit(pd.DataFrame(rows), kind=train.kind, model=CHOOSER, **columns)


def tuned_logit(train: Sets, test: Sets) -> list[Floats]:
    """A conditional logit whose ridge is that of RIDGES with the best log-likelihood.

    It is measured on five folds of the examples by group, or by set if there is a single group.
    """
    from sklearn.model_selection import GroupKFold

    groups = train.groups if len(set(train.groups)) > 1 else range(len(train.elements))
    folds = GroupKFold(min(5, len(set(groups)))).split(train.grades, groups=groups)
    parts = [(train.rows(learned), train.rows(left_out)) for learned, left_out in folds]

    def log_likelihood(ridge: float) -> float:
        scores = [s for part in parts for s in real_data.logit(*part, ridge)]
        grades = [g for _, left_out in parts for g in left_out.grades]
        return sum(s @ g for s, g in zip(scores, grades, strict=True))

    return real_data.logit(train, test, max(RIDGES, key=log_likelihood))


def answer(method: str, train: Sets, test: Sets) -> list[Floats]:
    if method == CHOOSER:
        return list(fit(train).scores(test.elements))
    if method == TUNED:
        return tuned_logit(train, test)
    return real_data.METHODS[method](train, test)


def run_file(runs: Path, name: str, count: int, seed: int, method: str) -> Path:
    return runs / f"{name}-{count}-{seed}-{method.replace(', ', '-').replace(' ', '-')}.npz"


def jobs(all_sets: dict[str, Sets]) -> Iterator[tuple[str, int, int, str]]:
    """Yield data sets, counts, draws and methods, the first draws of all data sets first."""
    for seed in range(MAIN_DRAWS):
        for name, sets in all_sets.items():
            for count in counts(sets):
                for method in methods(name):
                    if seed < num_draws(name, count, method):
                        yield name, count, seed, method


def measure(sets: Sets, count: int, seed: int, method: str, file: Path) -> None:
    train, test = map(sets.rows, draw(sets, count, seed))
    began, before = time.perf_counter(), real_data.cpu_seconds()
    try:
        scores = answer(method, train, test)
    except subprocess.CalledProcessError:  # the command has said why
        return
    seconds = time.perf_counter() - began, real_data.cpu_seconds() - before
    np.savez_compressed(file, scores=np.concatenate(scores), seconds=seconds)


def times(sets: Sets, count: int) -> dict[str, float]:
    """Measure the chooser in a process that has fitted one before; the median of three times."""
    examples, questions = draw(sets, count, 0)
    train, test = sets.rows(examples), sets.rows(np.resize(questions, QUESTIONS).tolist())
    fit(train).scores(test.elements[:10])
    taken = []
    for _ in range(3):
        began = time.process_time()
        model = fit(train)
        fitted = time.process_time()
        model.scores(test.elements)
        taken.append((fitted - began, time.process_time() - fitted))
    return dict(zip(("fit", "answer"), np.median(taken, 0).tolist(), strict=True))


# ---- The page


INTRODUCTION = f"""\
`OMP_NUM_THREADS=1 python benchmarks/few_examples.py`, commit {{commit}}, on {{machine}}, one thread
a training. Other work shared the machine.

Each draw takes examples of groups in a random order, and up to {QUESTIONS:,} questions of other
groups. A group is a household in `yogurt`, a person in `swissmetro`, and a single set in the other
data sets. All methods get the same examples and questions. A value is the mean over the draws:
{MAIN_DRAWS} draws of 100 examples (`rank`: 50), and {DRAWS} draws of other counts. ptrnet's
defaults take longer, so other counts have at most {SLOW_DRAWS} draws of them. If a value has fewer
draws than the chooser's, their number is in brackets. Compare such values by the rows *ahead of*.

*ahead* is the chooser's value minus the other method's on the same draws, with its 95% t-interval
over these draws. A difference on a single draw has no interval. The best other method is the best
one on these draws, which favours it a little. Draws share sets, so the interval does not cover
other data of the same kind. Some settings of the chooser were tried on other draws of the same
sets, which favours it a little (`docs/dev/own-data-defaults.md`). *Not clearly different* means
that the interval includes 0. We left
out a count if fewer than {LEAST_SHARE:.0%} of the sets would be questions.

- *chooser* is `ptrnet.fit(..., model="chooser")`.
- *ptrnet* is `ptrnet train --data FILE --kind KIND`, with the extra `trees`. It refuses examples of
  a single group, which some draws of 20 examples of `yogurt` are.
- The *conditional logit* (McFadden 1974) is linear in the same fields, with a ridge of {RIDGES[0]}.
  *Tuned ridge* chooses among ridges of {RIDGES[0]} to {RIDGES[-1]:.0f} by cross-validation.
- *LightGBM* has its defaults, with two objectives. Its scores are not log-probabilities, so they
  have no log-likelihood.

*Overconfidence* is the mean probability of the most probable element, minus the accuracy: 0 is
calibrated.

Seconds are processor time, from elements in memory to the scores of all questions: the median over
the draws. Those of *ptrnet* include the start of its command. The other methods ran in a process
that had imported their libraries."""
TIMES = f"""\
*fit* is the processor time from elements in memory to the model, and *questions* that from
questions to their scores. Both are medians of three measurements. If a draw has fewer than
{QUESTIONS:,} questions, we asked some of them again."""


def read_draws(runs: Path, name: str, sets: Sets) -> Any:
    """Return a table with a row for each draw, and columns (metric, method, count)."""
    import pandas as pd

    values: dict[tuple[str, str, int], dict[int, float]] = {}
    for count in counts(sets):
        for seed in range(MAIN_DRAWS):
            test = sets.rows(draw(sets, count, seed)[1])
            for method in methods(name):
                file = run_file(runs, name, count, seed, method)
                if not file.exists():
                    continue
                with np.load(file) as read:
                    scores, seconds = real_data.split(read["scores"], test), read["seconds"][1]
                metrics = real_data.measured(test, method, scores)
                if "log-likelihood" in metrics:
                    tops = [float(np.exp(of_set.max())) for of_set in scores]
                    metrics[CONFIDENCE] = [np.mean(tops) - np.mean(metrics["accuracy"])]
                for metric, of_sets in {**metrics, "seconds": [seconds]}.items():
                    values.setdefault((metric, method, count), {})[seed] = float(np.mean(of_sets))
    return pd.DataFrame(values)


def mean(draws: Any, metric: str, method: str, count: int) -> str:
    """Return the mean over the draws, and their number if it is less than planned."""
    if (metric, method, count) not in draws:
        return ""
    values = draws[metric, method, count].dropna()
    if metric == "seconds":  # the first draw imports libraries
        return f"{values.median():.2g}"
    planned = draws["seconds", CHOOSER, count].count()
    return f"{values.mean():.3f}" + (f" ({len(values)})" if len(values) < planned else "")


def ahead(draws: Any, metric: str, other: str, count: int) -> Measure:
    """Return how far the chooser is ahead on the draws of both, with a t-interval."""
    if (metric, other, count) not in draws:
        return Measure(None, None, None, 0)
    values = (draws[metric, CHOOSER, count] - draws[metric, other, count]).dropna()
    low, high = ttest_1samp(values, 0).confidence_interval() if len(values) > 1 else (None, None)
    return Measure(float(values.mean()), low, high, len(values))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["", *(f"| {' | '.join(row)} |" for row in cells), ""]


def best_other(draws: Any, metric: str, count: int) -> tuple[str, Measure]:
    """Return the best method that has been measured on all draws, and how far it is behind."""
    known = [m for m in METHODS if (metric, m, count) in draws]
    all_of_ours = draws[metric, CHOOSER, count].count()
    others = [m for m in known[1:] if draws[metric, m, count].count() == all_of_ours]
    best = min(others, key=lambda m: ahead(draws, metric, m, count).value)
    return best, ahead(draws, metric, best, count)


def summary(all_draws: dict[str, Any], metric: str, shown: str) -> list[str]:
    """Compare with the best of the methods that have the metric, for the main count of examples."""
    also = [shown] if shown != metric else []
    head = ["data set", metric, "best other", f"its {metric}", "ahead"]
    head += [title for m in also for title in (m, f"its {m}")]
    head += [f"{method}: {shown}" for method in (XENDCG, LAMBDARANK)] + ["seconds", "its seconds"]
    rows = []
    for name, draws in all_draws.items():
        count = main_count(name)
        best, by = best_other(draws, metric, count)
        asked = [(m, method) for m in (metric, *also) for method in (CHOOSER, best)]
        asked += [(shown, XENDCG), (shown, LAMBDARANK), ("seconds", CHOOSER), ("seconds", best)]
        ours, *cells = (mean(draws, *key, count) for key in asked)
        rows.append([name, ours, best, cells[0], by.text(3), *cells[1:]])
    return [*table(head, rows), *(line for m in (metric, *also) for line in verdict(all_draws, m))]


def verdict(all_draws: dict[str, Any], metric: str) -> list[str]:
    """Say where the chooser is better than the best other method, and where it is not."""
    parts: dict[str, str] = dict.fromkeys(("higher", "lower", "not clearly different"), "")
    for name, draws in all_draws.items():
        best, by = best_other(draws, metric, main_count(name))
        low, high = by.low or 0, by.high or 0
        word = "higher" if low > 0 else "lower" if high < 0 else "not clearly different"
        parts[word] += f"\n  - `{name}`: {by.text(3)} against {best}"
    said = [f"- {word}:{names}" for word, names in parts.items() if names]
    return [
        f"The chooser's {metric} compared with the highest one of other methods:",
        "",
        *said,
        "",
    ]


def curves(draws: Any, name: str, sets: Sets, metrics: Sequence[str]) -> list[str]:
    of_groups = f" of {len(set(sets.groups)):,} groups" if sets.groups else ""
    lines = [f"## {name}: {len(sets.elements):,} sets{of_groups}", ""]
    for metric in (*metrics, "seconds"):
        known = [m for m in methods(name) if any((metric, m, n) in draws for n in counts(sets))]
        rows = [[m, *(mean(draws, metric, m, n) for n in counts(sets))] for m in known]
        for other in known[1:] if metric == metrics[0] else ():
            measures = [ahead(draws, metric, other, n) for n in counts(sets)]
            rows.append([f"ahead of {other}", *(m.text(3) if m.count else "" for m in measures)])
        lines += table([f"{metric} by examples", *map(str, counts(sets))], rows)
    return lines


def page(runs: Path, all_sets: dict[str, Sets], machine: str, commit: str) -> str:
    all_draws = {name: read_draws(runs, name, sets) for name, sets in all_sets.items()}
    choices = {name: draws for name, draws in all_draws.items() if name != "rank"}
    ranked = {name: draws for name, draws in all_draws.items() if name == "rank"}
    lines = ["# Choices and rankings of few examples", ""]
    lines += [INTRODUCTION.format(commit=commit, machine=machine), ""]
    if choices:
        lines += ["## 100 examples of choices", *summary(choices, *CHOICE_METRICS)]
    if ranked:
        lines += ["## 50 examples of a ranking", *summary(ranked, *RANK_METRICS * 2)]
    lines += ["## Seconds of the chooser", "", TIMES]
    rows = []
    for name in all_sets:
        seconds = json.loads(times_file(runs, name).read_text()).values()
        rows.append([name, str(main_count(name)), *(f"{value:.2f}" for value in seconds)])
    lines += table(["data set", "examples", "fit", f"{QUESTIONS:,} questions"], rows)
    for name, draws in all_draws.items():
        metrics = RANK_METRICS if name == "rank" else (*CHOICE_METRICS, CONFIDENCE)
        lines += curves(draws, name, all_sets[name], metrics)
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def times_file(runs: Path, name: str) -> Path:
    return runs / f"{name}-{CHOOSER}-times.json"


def main() -> None:
    parser = real_data.parser_of(__doc__, NAMES, METHODS, "runs/few-examples")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        parser.error("set OMP_NUM_THREADS=1, so that each method has one thread")
    files = {SWISSMETRO: options.swissmetro, "rank": options.rank}
    files = {name: file for name, file in files.items() if file}
    all_sets = {name: real_data.read_sets(name, files) for name in (*options.sets, *files)}
    options.runs.mkdir(parents=True, exist_ok=True)
    for name, count, seed, method in () if options.page else jobs(all_sets):
        file = run_file(options.runs, name, count, seed, method)
        if method in options.methods and not file.exists():
            print(f"{name}, {count} examples, draw {seed}, {method}", flush=True)
            measure(all_sets[name], count, seed, method, file)
    for name, sets in all_sets.items():
        file = times_file(options.runs, name)
        if not file.exists():
            file.write_text(json.dumps(times(sets, main_count(name))) + "\n")
    options.output.write_text(page(options.runs, all_sets, options.machine, options.commit))


if __name__ == "__main__":
    main()
