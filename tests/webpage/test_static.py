"""The page without a service: the browser gives the solver's answers."""

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.decoding import Beam, Greedy
from ptrnet.export.graphs import ENCODER, OnnxModel
from ptrnet.export.page import export_page
from ptrnet.solver import Solver
from ptrnet.tasks.reading_order import label_number
from ptrnet.types import Example
from tests.webpage.conftest import BOXES, TASKS, Page, served, to_rows

SIZES = {
    "hull": (1, 5, 12),
    "delaunay": (3, 5, 12),
    "tsp": (1, 5, 12),
    "sort": (1, 5, 20),
}
PAGES = {"reading-order": "ltr", "pages-rtl": "rtl", "pages-vertical": "vertical"}
ASK = """async questions => {
  const { Onnx } = await import(new URL('page/sources/onnx.js', document.baseURI));
  globalThis.onnx ??= new Onnx();
  const traces = [];
  for (const question of questions) traces.push(await globalThis.onnx.trace(question));
  return traces;
}"""
SERVED = ASK.replace("onnx.js", "service.js").replace("Onnx", "Service")


def questions():
    rng = np.random.default_rng(11)
    for task, sizes in SIZES.items():
        for n in sizes:
            for decoder in ("greedy", "beam"):
                scale = {12: 50, 5: 1e-6}.get(n, 1)  # outside the unit square; too close
                instance = rng.random((n, 1 if task == "sort" else 2)) * scale
                yield {
                    "model": task,
                    "instance": instance.tolist(),
                    "decoder": decoder,
                    "beamSize": 3,
                }
    for name, direction in PAGES.items():
        task = tasks.get("reading-order", direction=direction)
        for n, decoder in ((1, "greedy"), (7, "beam"), (30, "greedy")):
            page = task.sample(rng, 1, n)[0][rng.permutation(n)] * [1000, 1400, 1000, 1400, n > 7]
            yield {"model": name, "instance": to_rows(page), "decoder": decoder, "beamSize": 3}


def array_of(question):
    """Return the instance of a question, `(n, d)`."""
    rows = question["instance"]
    if question["model"] not in PAGES:
        return np.array(rows)
    labels = [label_number(row[4] if len(row) > 4 else None, "") for row in rows]
    return np.column_stack([[row[:4] for row in rows], labels])


@pytest.fixture(scope="module")
def static_page(browser, static):
    """A single tab, because a browser takes seconds to compile onnxruntime."""
    page = Page(browser, static[0])
    page.open("#task=hull&elements=0.1,0.2;0.8,0.1;0.9,0.7;0.5,0.9;0.4,0.4")
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def traces(static_page):
    """The questions, and the browser's answers."""
    sent = list(questions())
    return sent, static_page.tab.evaluate(ASK, sent)


def test_answers_equal_those_of_the_solver(traces, models):
    sent, answered = traces
    for question, trace in zip(sent, answered, strict=True):
        solver, instance = models[question["model"]], array_of(question)
        decoder = Beam(3) if question["decoder"] == "beam" else Greedy()
        expected = solver.answer(instance, decoder, improve=False)
        log_prob = trace["answer"]["log_likelihood"]
        assert log_prob == pytest.approx(expected.log_prob, rel=1e-4, abs=1e-4)
        if trace["answer"]["outputs"] != expected.outputs.tolist():  # equally likely
            other = Example(instance, np.array(trace["answer"]["outputs"]))
            assert solver.log_likelihoods(other) == pytest.approx(expected.log_prob, rel=1e-4)
        if expected.cost is not None:
            assert trace["answer"]["cost"] == pytest.approx(expected.cost)
        warned = [text.partition(";")[0] for text in expected.warnings]
        assert trace["answer"]["warnings"] == warned


def test_nearly_equal_points_are_warned_of(static_page):
    """Equal points get no warning, nor do points that are apart after scaling."""
    sent = []
    for gap in (0, 1e-6, 1e-2, 0.5):
        instance = [[0, 0], [100, 0], [100, 100], [50, 40], [50 + gap, 40]]
        sent.append({"model": "hull", "instance": instance, "decoder": "greedy"})
    warned = [trace["answer"]["warnings"] for trace in static_page.tab.evaluate(ASK, sent)]
    near = ["elements 3 and 4 are nearer than the model can tell apart"]
    assert warned == [[], near, [], []]


def test_traces_equal_those_of_the_service(traces, page, service):
    shipped = [pair for pair in zip(*traces, strict=True) if "pages" not in pair[0]["model"]]
    sent, answered = zip(*shipped, strict=True)
    page.tab.goto(service)
    others = page.tab.evaluate(SERVED, sent)
    for mine, other in zip(answered, others, strict=True):
        assert (mine["tokens"], mine["special_names"]) == (other["tokens"], other["special_names"])
        for step, known in zip(mine["steps"], other["steps"], strict=True):
            for row, expected in zip(step["probabilities"], known["probabilities"], strict=False):
                assert [p is None for p in row] == [p is None for p in expected]
                numbers = [p for p in row if p is not None]
                assert numbers == pytest.approx([p for p in expected if p is not None], abs=1e-3)
        if other["exact"] and mine["exact"]["proved"]:
            assert mine["correct"] == other["correct"]


def go(page, task, elements):
    """Follow a link within the page."""
    page.tab.evaluate("hash => { location.hash = hash }", f"task={task}&elements={elements}")
    page.see("#model", task)


def test_a_damaged_model_is_refused(static_page):
    """The browser compares it with its manifest's checksum. The next request fetches it again."""
    path = "**/models/sort/step.onnx"
    static_page.tab.route(path, lambda route: route.fulfill(status=200, body=b"damaged"))
    go(static_page, "sort", "0.5;0.2")
    static_page.see("#verdict", "No answer")
    static_page.see("#error", ".")
    static_page.tab.unroute(path)
    go(static_page, "sort", "0.5;0.2;0.9;0.3")
    static_page.see("#verdict", "^Right")
    static_page.complaints = [c for c in static_page.complaints if "integrity" not in c]
    static_page.check()


@pytest.mark.parametrize("task", TASKS)
def test_the_static_page_answers_without_a_service(static_page, task):
    points = "0.1,0.2;0.8,0.1;0.9,0.7;0.5,0.9;0.4,0.4;0.3,0.8"
    go(static_page, task, "0.5;0.2;0.9;0.4" if task == "sort" else points)
    static_page.see("#facts", f"^{task}, greedy .* compared with")
    static_page.see("#verdict", "^Right")
    static_page.see("#origin", "in this browser")
    static_page.tab.click("#back")
    static_page.see("#step-title", r"^Step \d+ of \d+$")
    static_page.check()


def test_the_static_page_reads_pages(static_page):
    go(static_page, "reading-order", BOXES)
    static_page.see("#facts", "^reading-order, greedy · log-probability")
    static_page.see("#verdict", "^Read in this order, .* sure")
    numbers = static_page.tab.locator(".point text:not(.label)").all_text_contents()
    assert numbers == ["3.", "1.", "4.", "2.", "5."]
    go(static_page, "reading-order", BOXES.replace("caption", "capton"))
    static_page.see("#error", "box 3: unknown label 'capton'; known: text, ")
    static_page.check()


def test_a_long_search_keeps_the_page_responsive(static_page):
    """The search ends when the user asks for something else."""
    rng = np.random.default_rng(0)
    points = ";".join(f"{x:.3f},{y:.3f}" for x, y in rng.random((150, 2)))
    go(static_page, "tsp", "0.1,0.2;0.8,0.1;0.9,0.7")
    static_page.see("#verdict", "^Right")
    turns = static_page.tab.evaluate(
        """async points => {
          location.hash = `#task=tsp&elements=${points}`;
          let turns = 0;
          const end = Date.now() + 60000;
          return new Promise(resolve => {
            const timer = setInterval(() => {
              const busy = document.body.classList.contains('busy');
              turns += busy;
              if (turns > 5 || (turns && !busy) || Date.now() > end) {
                clearInterval(timer);
                resolve(turns);
              }
            }, 5);
          });
        }""",
        points,
    )
    assert turns > 5
    go(static_page, "tsp", "0.1,0.2;0.8,0.1;0.9,0.7")
    static_page.see("#verdict", "^Right")


def test_the_folder_has_all_files_that_the_page_loads(static_page, static):
    _, folder = static
    policy = static_page.tab.get_attribute("meta[http-equiv]", "content")
    assert "default-src 'none'" in policy and "script-src 'self' 'wasm-unsafe-eval'" in policy
    assert (folder / "runtime" / "LICENSE").read_text().startswith("MIT License")
    index = (folder / "index.html").read_text()
    assert index.count('<meta name="source"') == 1 and 'content="onnx"' in index


def test_rounded_graphs_answer_as_they_do_in_python(models, runtime, browser, tmp_path):
    solver, folder = models["hull"], tmp_path / "site"
    export_page({"hull": solver}, folder, runtime=runtime, instances=2, weights="int8")
    (graphs,) = (path.parent for path in folder.rglob(ENCODER))
    expected = Solver(OnnxModel(graphs, solver.model), solver.task)
    instances = [np.random.default_rng(n).random((n, 2)) for n in (5, 12, 30)]
    sent = [{"model": "hull", "instance": x.tolist(), "decoder": "greedy"} for x in instances]
    with served(folder) as address:
        page = Page(browser, address)
        page.open("#task=hull&elements=0.1,0.2;0.8,0.1;0.9,0.7;0.5,0.9;0.4,0.4")
        traces = page.tab.evaluate(ASK, sent)
        page.context.close()
    for instance, trace in zip(instances, traces, strict=True):
        answer = expected.answer(instance, Greedy())
        assert trace["answer"]["outputs"] == answer.outputs.tolist()
        assert trace["answer"]["log_likelihood"] == pytest.approx(answer.log_prob, abs=0.05)
