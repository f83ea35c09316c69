"""One warning for instances outside the range of the training."""

import warnings

import numpy as np
import pytest

import ptrnet
from ptrnet.cli import run
from ptrnet.decoding import Incremental
from ptrnet.solver.trained_range import TrainedRange
from ptrnet.types import Example


def said(action):
    """Return the messages of an action's warnings of this kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught if w.category is ptrnet.OutOfDistributionWarning]


def of_sizes(*sizes):
    return list(map(np.random.default_rng(0).random, [(n, 2) for n in sizes]))


def test_each_class_of_sizes_is_named_once(small):
    solver = small()
    solver = type(solver)(solver.model, solver.task, {"n": "4-6,9"})
    messages = said(lambda: solver.solve(of_sizes(4, 6, 9, 7, 8, 12, 20, 3)))
    assert [message.split("this one has ")[1].split(";")[0] for message in messages] == [
        "7",
        "12",
        "3",
    ]
    assert messages[0].startswith("the model was trained on instances of 4-6,9 elements")
    assert messages[0].endswith("ptrnet label hull computes answers by an algorithm")
    assert said(lambda: solver.solve(of_sizes(7, 30, 3))) == []


@pytest.mark.parametrize("trained", [{}, {"n": "many"}, {"n": None}])
def test_without_known_sizes_there_is_no_warning(small, trained):
    solver = small()
    assert said(lambda: type(solver)(solver.model, solver.task, trained).solve(of_sizes(7))) == []


def test_incremental_decoding_does_not_warn_about_size(small):
    assert said(lambda: small().solve(of_sizes(9), Incremental(window=2))) == []


def test_far_features_are_reported_once_with_their_mean(small):
    task = {"center": (10.0, 0.0), "spread": (1.0, 5.0), "kind": "sequence"}
    trained = TrainedRange(small("custom", **task).task, {})
    near, far = np.array([[19.0, 49.0]]), np.array([[10.0, 51.0], [-3.0, 0.0]])
    assert said(lambda: trained.warn(trained.feature_messages(Example(near)))) == []
    twice = [*trained.feature_messages(Example(far))] * 2
    messages = said(lambda: trained.warn(twice))
    assert [message[:18] for message in messages] == ["feature 1 is 13 or", "feature 2 is 10 or"]
    assert messages[0].endswith("mean, 10")


@pytest.mark.parametrize(("gap", "is_said"), [(1.0, False), (0.0, False), (1e-7, True)])
def test_custom_elements_that_float32_makes_equal_are_named(small, gap, is_said):
    task = {"center": (0.0,), "spread": (1.0,), "kind": "sequence"}
    trained = TrainedRange(small("custom", **task).task, {})
    instance = np.array([[3.0], [5.0], [4.0], [5.0 + gap]])
    messages = said(lambda: trained.warn(trained.feature_messages(Example(instance))))
    expected = "the model cannot tell elements 2 and 4 apart: they are equal in float32, in which "
    assert messages == [expected + "it computes"] * is_said


def test_the_command_line_prints_warnings_on_standard_error(small, tmp_path, capsys):
    small().save_pretrained(tmp_path)
    assert run(["solve", "--model", str(tmp_path), "--random", "7"]) == 0
    printed = capsys.readouterr()
    assert printed.err == (
        "ptrnet: the model was trained on instances of 5 elements, this one has 7; "
        "ptrnet label hull computes answers by an algorithm\n"
    )
    assert "trained" not in printed.out
    (tmp_path / "long.csv").write_text("x,y\n" + "0,1\n" * 7)
    assert run(["solve", "--model", str(tmp_path), str(tmp_path / "long.csv")]) == 0
    expected = "; a .csv is read as one instance: ptrnet convert --set-id splits it\n"
    assert capsys.readouterr().err.endswith(expected)


def test_a_warning_is_printed_once_for_any_number_of_processes(small, tmp_path, capfd):
    small().save_pretrained(tmp_path)
    line = '{"inputs": [[0, 1], [0.5, 0.2], [0.7, 0.7]]}\n'
    (tmp_path / "long.jsonl").write_text(line * 600)
    code = run(["solve", "--model", f"{tmp_path}", f"{tmp_path}/long.jsonl", "--jobs", "2"])
    assert (code, capfd.readouterr().err.count("ptrnet: the model was trained on")) == (0, 1)


@pytest.mark.parametrize("name", ["sort", "hull", "delaunay", "tsp"])
def test_a_far_outlier_is_reported(name):
    """Once, such instances got wrong answers without a warning."""
    solver = ptrnet.load(name)
    instance = np.random.default_rng(0).random((10, solver.task.num_features))
    assert said(lambda: solver.solve(instance)) == []
    instance[3] = 1000  # the model answers nearly all of these right
    assert said(lambda: solver.solve(instance)) == []
    instance[3] = 1e6
    (message,) = said(lambda: solver.solve(instance))
    assert message.startswith("half of the elements lie within 1/")
    assert message.endswith(f"; ptrnet label {name} computes answers by an algorithm")
    (warning,) = solver.answer(instance).warnings
    assert warning == message
    instance[:8] = instance[0]
    answered = []
    assert said(lambda: answered.append(solver.answer(instance))) == []
    assert answered[0].warnings == ()


@pytest.mark.parametrize("kind", ["uniform", "mixed"])
@pytest.mark.parametrize("name", ["hull", "delaunay", "tsp"])
def test_instances_like_those_of_the_training_give_no_warning(small, name, kind):
    trained = TrainedRange(small(name, points=kind).task, {})
    instances = small(name, points=kind).task.sample(np.random.default_rng(0), 2000, 20)
    assert sum(len([*trained.feature_messages(Example(x))]) for x in instances) <= 4
