"""Compare methods that find the reading order of pages, and write results/reading-order.md.

    python benchmarks/reading_order.py pages.jsonl more.jsonl --generated 1000 \
        --docling DIR/bin/python --machine "2 cores of an AMD EPYC" --commit COMMIT

The files have pages as `ptrnet solve reading-order` reads them, with the right orders ("outputs").
`--generated` is the number of pages that `ptrnet.pages` draws, and a fifth as many for each kind.
`--docling` is the Python of an environment with docling's rules; `benchmarks/docling_orders.py`
says how to make one. Without it, or without the model, the page lacks their rows. `--output -`
prints the page.

Each method answers all pages, one page at a time, in one run.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ptrnet
from ptrnet import labellers, tasks
from ptrnet.data import formats
from ptrnet.errors import PtrnetError
from ptrnet.kernels import use_compiled_kernels
from ptrnet.metrics import Measure, Moments
from ptrnet.metrics.ranking import score_orders
from ptrnet.pages.labels import BOTTOM, LABEL, LEFT, RIGHT, TOP
from ptrnet.tasks.reading_order import label_name
from ptrnet.types import Example, Floats, Indices

RESULT = Path(__file__).parents[1] / "results" / "reading-order.md"
RULES = ("top-to-bottom", "xy-cut", "xy-cut-widest", "xy-cut-plus-plus")
USES_LABELS = ("xy-cut-plus-plus",)
ALONE, LABELLED = "", ", with classes"
SEED, RESAMPLES = 20_270_000, 10_000
LARGEST = 60  # boxes of a generated page
BESIDE = 0.02  # by how much of the page's height boxes are side by side
BINS = (0, 0.5, 0.8, 0.9, 0.95, 1.000001)  # of the reliability line

INTRODUCTION = """\
*Exact* is the share of pages whose whole order is right. *Edit distance* is the fewest boxes to
insert, remove or replace in an answer, divided by the number of boxes, as a mean over the pages;
lower is better. Intervals are 95%: Wilson's for shares, and of 10,000 bootstrap samples of the
pages for distances. *Side by side* are the pages with boxes next to each other over more than 2% of
the page's height. Times are for one page after the other, in one process, without reading files.

`top-to-bottom` sorts boxes by their top. `xy-cut` cuts pages into rows, and rows into columns (Nagy
and Seth 1984). `xy-cut-widest` cuts them at the widest gap, and counts gaps between columns double.
`xy-cut-plus-plus` is ours, after the paper; its authors' program sets more classes apart. docling
is the `ReadingOrderPredictor` of docling-ibm-models 3.9.1; boxes without a class are text to it.

*dp-bench* are every other page of DP-Bench (opendataloader-bench), blocks with docling's classes.
*ocr-d* are every other page of OCR-D's gt_structure_text, German prints of 1500 to 1900, regions
without classes. *cases* are small pages after reports about other programs.

The model learned from drawn pages alone. No page of dp-bench or ocr-d was in a training, in a
validation or in a choice of its settings. Those who wrote the grammar looked at pictures of such
pages, to see what pages are like. We judged the grammar by pages that Chromium typeset from HTML
(`tests/pages/test_typesetting.py`), and the network by pages of the grammar. Details of our
rules, such as how much boxes may overlap, were compared on the real pages, in their favour.
"""

DOUBT = """\
The share of all wrong pages, and of the sum of all edit distances, that is in the tenth of the
pages whose answers are least probable. *Reliability*: for the answers in each of five ranges of
probability, their mean probability, the share that is exact, and their number in brackets.
"""

# Figures of others: method, pages, figure, source.
LAYOUT_READER = "[LayoutReader's README](https://github.com/ppaanngggg/layoutreader)"
XY_CUT_PLUS_PLUS = "[Liu, Li and Wei 2025](https://arxiv.org/abs/2504.10258v1), tables 3 to 5"
SURYA = "[Surya's README](https://github.com/VikParuchuri/surya) of the versions with a benchmark"
PADDLE = (
    "[PaddleOCR's documentation]"
    "(https://www.paddleocr.ai/main/en/version3.x/algorithm/PP-StructureV3/PP-StructureV3.html)"
)
ODL = "[opendataloader-bench](https://github.com/opendataloader-project/opendataloader-bench)"
PUBLISHED = (
    ("LayoutReader (Wang et al. 2021)", "ReadingBank, words", "BLEU 0.982", LAYOUT_READER),
    ("LayoutReader without text", "ReadingBank, words", "BLEU 0.973", LAYOUT_READER),
    ("`hantian/layoutreader`", "ReadingBank, spans, shuffled", "BLEU 0.948", LAYOUT_READER),
    ("XY-Cut++", "DocBench-100", "BLEU-4 0.988, 781 pages/s", XY_CUT_PLUS_PLUS),
    ("MinerU", "DocBench-100", "BLEU-4 0.873, 10 pages/s", XY_CUT_PLUS_PLUS),
    ("XY-Cut", "DocBench-100", "BLEU-4 0.797, 685 pages/s", XY_CUT_PLUS_PLUS),
    ("LayoutReader", "DocBench-100", "BLEU-4 0.788, 17 pages/s", XY_CUT_PLUS_PLUS),
    ("Surya", "noisy labels, 0.4 s a page on an A10", "88% of pairs in order", SURYA),
    ("PP-StructureV3", "OmniDocBench, en and zh", "edit distance 0.069, 0.091", PADDLE),
    ("MinerU 1.3.11", "OmniDocBench, en and zh", "edit distance 0.083, 0.232", PADDLE),
    ("Marker 1.2.3", "OmniDocBench, en and zh", "edit distance 0.114, 0.34", PADDLE),
    ("docling 2.14.0", "OmniDocBench, en and zh", "edit distance 0.313, 0.837", PADDLE),
    ("opendataloader, hybrid", "DP-Bench", "similarity of texts 0.934", ODL),
    ("docling", "DP-Bench", "similarity of texts 0.898", ODL),
    ("marker", "DP-Bench", "similarity of texts 0.890", ODL),
)
NOT_COMPARABLE = """\
We did not run these, and they cannot be compared with the tables above or with each other: other
pages, other measures, and, on OmniDocBench and DP-Bench, texts that each program found by itself.
"""


class Result(NamedTuple):
    """What a method answered to a set of pages."""

    answers: list[Indices]
    seconds: list[float]
    log_probs: list[float]  # empty if the method gives no probabilities


# A method takes pages, whose boxes have labels only if the method may use them.
Method = Callable[[Sequence[Example]], Result]


# ---- Methods


def one_by_one(answer: Callable[[Example], tuple[Indices, float | None]]) -> Method:
    """Return a method that times each page."""

    def method(pages: Sequence[Example]) -> Result:
        use_compiled_kernels()  # from the first page on
        answer(pages[0])  # imports and compiles
        result = Result([], [], [])
        for page in pages:
            began = time.perf_counter()
            order, log_prob = answer(page)
            result.seconds.append(time.perf_counter() - began)
            result.answers.append(order)
            if log_prob is not None:
                result.log_probs.append(log_prob)
        return result

    return method


def rule(name: str) -> Method:
    label = labellers.get(name)
    return one_by_one(lambda page: (label(page.inputs[None])[0], None))


def network(solver: ptrnet.Solver) -> Method:
    def answer(page: Example) -> tuple[Indices, float]:
        found = solver.answer(page.inputs)
        return found.outputs, found.log_prob

    return one_by_one(answer)


def docling(python: str) -> Method:
    def method(pages: Sequence[Example]) -> Result:
        script = Path(__file__).with_name("docling_orders.py")
        lines = []
        for page in pages:
            size = page_size(page)
            boxes = (
                page.inputs[:, :LABEL] / np.tile(size, 2) * 1000
            )  # the rules have pixels in mind
            labels = [label_name(number) for number in page.inputs[:, LABEL]]
            row = {"boxes": boxes.tolist(), "labels": labels, "page": [1000, 1000]}
            lines.append(json.dumps(row))
        done = subprocess.run(
            [python, str(script)],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=True,
        )
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        orders = [np.array(row["order"], np.int64) for row in rows]
        return Result(orders, [row["seconds"] for row in rows], [])

    return method


def methods_of(options: argparse.Namespace) -> Iterator[tuple[str, Method, bool]]:
    """Yield the name of each method, the method, and whether it uses labels."""
    for name in RULES:
        yield name, rule(name), False
        if name in USES_LABELS:
            yield name + LABELLED, rule(name), True
    check = [options.docling, "-c", "import docling_ibm_models.reading_order.reading_order_rb"]
    if options.docling and subprocess.run(check, capture_output=True).returncode == 0:
        yield "docling", docling(options.docling), False
        yield "docling" + LABELLED, docling(options.docling), True
    else:
        print("without docling: --docling has no docling-ibm-models", file=sys.stderr)
    try:
        solver = ptrnet.load(options.model)
    except PtrnetError as error:
        print(f"without a model: {error}", file=sys.stderr)
    else:
        yield "ptrnet", network(solver), False
        yield "ptrnet" + LABELLED, network(solver), True


# ---- Pages


def read(path: str) -> list[Example]:
    pages = list(formats.read(path, tasks.get("reading-order")))
    if any(page.outputs is None for page in pages):
        raise SystemExit(f"{path}: expected the right order of each page")
    return pages


def generated(count: int, kind: str | None = None) -> list[Example]:
    """Draw pages of 1 to 60 boxes, as in the training, with their boxes shuffled.

    If the kind is given, the numbers of boxes are those that are natural for it.
    """
    from ptrnet.pages.layouts import KINDS
    from ptrnet.pages.sampling import sample_page

    stream = list(KINDS).index(kind) if kind else len(KINDS)
    fewest, most = (KINDS[kind].fewest, KINDS[kind].most) if kind else (1, LARGEST)
    rng = np.random.default_rng([SEED, stream])
    pages = []
    for _ in range(count):
        n = int(rng.integers(fewest, min(most, LARGEST) + 1))
        boxes, order = sample_page(rng, n, kind), rng.permutation(n)
        pages.append(Example(boxes[order], np.argsort(order)))
    return pages


def page_size(page: Example) -> Floats:
    """Return width and height; 1 if boxes are shares of the page."""
    known = (page.extra or {}).get("page")
    if known:
        return np.array(known, float)
    ends: Floats = page.inputs[:, [RIGHT, BOTTOM]].max(0)
    return np.ones(2) if (ends <= 1).all() else ends


def is_side_by_side(page: Example) -> bool:
    boxes = page.inputs / np.append(np.tile(page_size(page), 2), 1)
    across, down = (
        np.minimum(boxes[:, None, end], boxes[:, end])
        - np.maximum(boxes[:, None, start], boxes[:, start])
        for start, end in ((LEFT, RIGHT), (TOP, BOTTOM))
    )
    return bool(((down > BESIDE) & (across <= 0)).any())


# ---- Tables


def bootstrap(values: Floats) -> Measure:
    """Return the mean with the interval of resampled pages."""
    rng = np.random.default_rng(SEED)
    means = [rng.choice(values, len(values)).mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Measure(float(values.mean()), float(low), float(high), len(values))


def scores_of(pages: Sequence[Example], result: Result) -> tuple[Any, Floats]:
    """Return whether each answer is exact, and its edit distance."""
    scores = score_orders(pages, result.answers)
    return scores["accuracy"], scores["edit_distance"].astype(float)


def cell(values: Any, digits: int = 3) -> str:
    return f"{np.mean(values):.{digits}f}" if len(values) else "-"


def table(title: str, pages: Sequence[Example], results: dict[str, Result]) -> Iterator[str]:
    beside = np.array([is_side_by_side(page) for page in pages])
    boxes = [len(page.inputs) for page in pages]
    yield from ("", f"## {title}", "")
    yield f"{len(pages)} pages of {min(boxes)} to {max(boxes)} boxes, {beside.sum()} side by side."
    yield ""
    columns = "exact | edit distance | side by side: exact | side by side: distance | ms a page"
    yield f"| method | {columns} |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, result in results.items():
        exact, distance = scores_of(pages, result)
        cells = (
            Moments.of(exact).measure().text(3),
            bootstrap(distance).text(3),
            cell(exact[beside]),
            cell(distance[beside]),
            cell(1000 * np.array(result.seconds), 2),
        )
        yield f"| {name} | {' | '.join(cells)} |"


def doubt(title: str, pages: Sequence[Example], results: dict[str, Result]) -> Iterator[str]:
    """Yield how well the probabilities of the answers tell which are wrong."""
    for name, result in results.items():
        if not result.log_probs:
            continue
        exact, distance = scores_of(pages, result)
        log_probs = np.array(result.log_probs)
        least = np.argsort(log_probs)[: max(1, len(pages) // 10)]
        shares = [
            f"{x[least].sum() / x.sum():.0%}" if x.sum() else "-" for x in (~exact * 1.0, distance)
        ]
        bins = np.digitize(np.exp(log_probs), BINS)
        parts = [
            f"{np.exp(log_probs[k]).mean():.2f}: {exact[k].mean():.2f} ({k.sum()})"
            for k in (bins == b for b in range(1, len(BINS)))
            if k.any()
        ]
        yield f"| {title} | {name} | {shares[0]} | {shares[1]} | {', '.join(parts)} |"


def by_kind(
    kinds: dict[str, list[Example]], methods: Sequence[tuple[str, Method, bool]]
) -> Iterator[str]:
    count = len(next(iter(kinds.values())))
    yield ""
    yield f"Edit distance and, in brackets, exact pages, of {count} pages of each kind:"
    yield ""
    yield f"| kind | {' | '.join(name for name, _, _ in methods)} |"
    yield "|---|" + "---:|" * len(methods)
    for kind, pages in kinds.items():
        scores = [scores_of(pages, result) for result in answers(pages, methods).values()]
        yield f"| {kind} | {' | '.join(f'{cell(d)} ({cell(e, 2)})' for e, d in scores)} |"


def answers(
    pages: Sequence[Example], methods: Sequence[tuple[str, Method, bool]]
) -> dict[str, Result]:
    """Return the results of all methods that the pages have something for."""
    has_labels = any(page.inputs[:, LABEL].any() for page in pages)
    bare = [
        Example(page.inputs * [1, 1, 1, 1, 0], page.outputs, extra=page.extra) for page in pages
    ]
    return {
        name: method(pages if uses_labels else bare)
        for name, method, uses_labels in methods
        if has_labels or not uses_labels
    }


def page(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    methods = list(methods_of(options))
    yield "# The reading order of pages"
    yield ""
    yield f"`python benchmarks/reading_order.py`, commit {options.commit}, on {options.machine}."
    yield ""
    yield INTRODUCTION.rstrip()
    sets = {Path(path).stem: read(path) for path in options.files}
    kinds: dict[str, list[Example]] = {}
    if options.generated:
        from ptrnet.pages.layouts import KINDS

        sets["Generated pages"] = generated(options.generated)
        kinds = {kind: generated(options.generated // 5, kind) for kind in KINDS}
    results = {title: answers(pages, methods) for title, pages in sets.items()}
    for title, pages in sets.items():
        yield from table(title, pages, results[title])
    if kinds:
        yield from by_kind(kinds, methods)
    rows = [row for title, pages in sets.items() for row in doubt(title, pages, results[title])]
    if rows:
        yield from ("", "## Doubt", "")
        yield DOUBT.rstrip()
        yield ""
        yield "| pages | model | wrong pages | edit distance | reliability |"
        yield "|---|---|---:|---:|---|"
        yield from rows
    yield from ("", "## Published by others", "", NOT_COMPARABLE)
    yield "| method | pages | published | source |"
    yield "|---|---|---|---|"
    for row in PUBLISHED:
        yield f"| {' | '.join(row)} |"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--generated", type=int, default=0, metavar="COUNT")
    parser.add_argument("--docling", default="", metavar="PYTHON")
    parser.add_argument("--model", default="reading-order")
    parser.add_argument("--output", default=str(RESULT))
    for fact in ("machine", "commit"):
        parser.add_argument(f"--{fact}", required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ptrnet.OutOfDistributionWarning)
    text = "\n".join(page(options)) + "\n"
    if options.output == "-":
        print(text, end="")
    else:
        Path(options.output).write_text(text)


if __name__ == "__main__":
    main()
