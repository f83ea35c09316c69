"""Answers with their metadata: log-probability, cost, decoder, time, warnings."""

import warnings

import numpy as np
import pytest

import ptrnet
from ptrnet.plots.answer import animate
from ptrnet.types import Example, TourRules

POINTS = np.random.default_rng(0).random((9, 2))


def test_outputs_equal_those_of_solve(small):
    solver = small("tsp", scale=8.0)
    many = [POINTS, POINTS[:4]]
    for decoder in (None, ptrnet.Beam(3)):
        answers = solver.answer(many, decoder)
        expected = solver.solve(many, decoder)
        assert [a.outputs.tolist() for a in answers] == [e.tolist() for e in expected]
    one = solver.answer(POINTS)
    assert isinstance(one, ptrnet.Answer) and len(one) == 9
    assert np.array_equal(POINTS[one], POINTS[one.outputs])
    assert np.asarray(one, np.int32).dtype == np.int32


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 copies despite `copy=False`")
def test_an_array_that_must_not_be_copied_is_the_answers_own(small):
    answer = small("hull", scale=8.0).answer(POINTS)
    assert np.shares_memory(np.array(answer, copy=False), answer.outputs)
    assert not np.shares_memory(np.array(answer, copy=True), answer.outputs)
    with pytest.raises(ValueError, match="copy"):
        np.array(answer, dtype=float, copy=False)


def test_log_prob_cost_and_decoder_are_those_of_the_answer(small):
    solver = small("tsp", scale=8.0)
    answer = solver.answer(POINTS, ptrnet.Beam(2))
    steps = POINTS[answer.outputs] - np.roll(POINTS[answer.outputs], 1, axis=0)
    assert answer.cost == pytest.approx(np.hypot(*steps.T).sum())
    (solved,) = solver.predict([Example(POINTS)], ptrnet.Beam(2))
    assert answer.log_prob == solved.log_prob < 0
    assert answer.decoder == "beam" and answer.seconds > 0
    assert small("hull").answer(POINTS).cost is None


def test_each_answer_has_its_own_warnings(small):
    solver = small("hull")  # trained on 5 elements
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = solver.answer([POINTS[:5], POINTS, POINTS])
    assert [a.is_inside_training for a in answers] == [True, False, False]
    assert answers[1].warnings == answers[2].warnings and "this one has 9" in answers[1].warnings[0]
    parts = solver.answer(POINTS, ptrnet.Incremental(2))
    assert parts.is_inside_training  # parts have other sizes than the whole instance


def test_an_answer_can_be_plotted(small):
    pytest.importorskip("matplotlib")
    solver = small("hull", scale=8.0)
    answer = solver.answer(POINTS)
    assert answer._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
    lines = [line.get_xydata().tolist() for line in solver.plot(answer).lines]
    assert lines == [line.get_xydata().tolist() for line in answer.plot().lines]
    assert len(solver.plot_attention(answer).images) == 1


def test_an_animation_has_a_frame_for_each_step(small, tmp_path):
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    solver = small("hull", scale=8.0)
    answer = solver.answer(POINTS)
    animate(solver, answer.example).save(tmp_path / "a.gif", writer="pillow")
    with image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == len(answer) + 2  # END is a step, and the complete answer follows
    with pytest.raises(ptrnet.InputError, match="points of the plane, got 1 features"):
        animate(small("sort"), [0.1, 0.2])


def test_an_answer_leaves_the_filters_of_warnings_alone(small, monkeypatch):
    """Filters belong to all threads. Two threads that saved and restored them could mix them up."""
    solver = small()
    monkeypatch.setattr(warnings, "catch_warnings", None)
    monkeypatch.setattr(warnings, "simplefilter", None)
    assert solver.answer(np.random.default_rng(0).random((9, 2))).warnings


def test_an_answer_is_a_sequence_of_indices(small):
    answer = small("hull", scale=8.0).answer(POINTS)
    assert list(answer) == answer.outputs.tolist() == [answer[k] for k in range(len(answer))]


def test_invalid_instances_axes_and_decoders_are_refused(small):
    hull, sort = small("hull"), small("sort")
    for draw in (sort.plot, sort.plot_attention):
        with pytest.raises(ptrnet.InputError, match="an answer of task sort, got one of hull"):
            draw(hull.answer(POINTS))
    for decoder in ("beam", ptrnet.Beam, 3):
        with pytest.raises(ptrnet.InputError, match="decoder: expected one such as"):
            hull.solve(POINTS, decoder)
    with pytest.raises(ptrnet.InputError, match="instances: expected at least one"):
        hull.sample([])
    with pytest.raises(ptrnet.InputError, match=r"expected a model as ptrnet\.load"):
        ptrnet.export_onnx("sort", "folder")


def test_the_path_of_a_file_is_refused_with_the_functions_for_files(small, tmp_path):
    hull = small("hull")
    for ask, name in ((hull.solve, "instances"), (hull.evaluate, "examples")):
        for path in ("points.jsonl", tmp_path / "points.jsonl"):
            with pytest.raises(ptrnet.InputError, match=f"^{name}: .*, got the file .*solve_file"):
                ask(path)


def test_rules_that_no_network_obeys_are_refused(small):
    solver = small("tsp")
    example = Example(POINTS, rules=TourRules(fixed=((0, 4),)))
    for method in (solver.solve, solver.answer):
        with pytest.raises(ptrnet.InputError, match="fixed edges, which networks do not keep"):
            method([example])
