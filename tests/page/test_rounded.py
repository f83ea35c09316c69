"""A page with rounded graphs: the browser computes the same as onnxruntime elsewhere."""

import numpy as np
import pytest

from ptrnet.decoding import Greedy
from ptrnet.export.graphs import ENCODER, OnnxModel
from ptrnet.export.page import export_page
from ptrnet.solver import Solver
from tests.page.conftest import Page, served
from tests.page.test_static import ASK


def test_the_browser_answers_as_python_does(models, runtime, browser, tmp_path):
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
