"""One warning for instances outside the range of the training."""

import warnings

import numpy as np
import pytest

import ptrnet
from ptrnet import tasks
from ptrnet.cli import run
from ptrnet.decoding import Greedy, Incremental
from ptrnet.solver.trained_range import TrainedRange
from ptrnet.types import Dataset, Example
from tests.support.text import begins, matches


def said(action):
    """Return the messages of an action's warnings of this kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught if w.category is ptrnet.OutOfDistributionWarning]


def of_sizes(*sizes):
    return list(map(np.random.default_rng(0).random, [(n, 2) for n in sizes]))


def test_sizes_are_named_in_one_line_with_their_counts(small):
    solver = small()
    solver = type(solver)(solver.model, solver.task, {"n": "4-6,9"})
    (message,) = said(lambda: solver.solve(of_sizes(4, 6, 9, 7, 8, 12, 12, 3)))
    expected = "... 4-9 elements, 2 of 8 have 12 and 1 of 8 has 3; ptrnet label hull ..."
    assert matches(message, expected)
    assert said(lambda: solver.solve(of_sizes(7, 30, 3))) == []
    assert solver.answer(of_sizes(7)[0]).warnings == ()
    (warning,) = solver.answer(of_sizes(12)[0]).warnings
    assert matches(warning, "... 4-9 elements, this one has 12; ptrnet label hull ...")


@pytest.mark.parametrize("n", ["1,4-6,8-25,27", "1-27"])
def test_own_examples_may_have_any_size_between_those_of_the_training(small, n):
    task = {"center": (0.5, 0.5), "spread": (1.0, 1.0), "kind": "choice"}
    solver = small("custom", **task)
    solver = type(solver)(solver.model, solver.task, {"n": n})
    assert said(lambda: solver.solve(of_sizes(*range(1, 28)))) == []
    (message,) = said(lambda: solver.solve(of_sizes(7, 30, 40)))
    assert matches(message, "... trained on ... 1-27 elements, 2 of 3 have 30 to 40")


@pytest.mark.parametrize("trained", [{}, {"n": "many"}, {"n": None}])
def test_without_known_sizes_there_is_no_warning(small, trained):
    solver = small()
    assert said(lambda: type(solver)(solver.model, solver.task, trained).solve(of_sizes(7))) == []


def test_incremental_decoding_does_not_warn_about_size(small):
    assert said(lambda: small().solve(of_sizes(9), Incremental(window=2))) == []


FAR = "more than 10 standard deviations from the mean of the training: "


def test_far_features_are_reported_in_one_line_with_their_means(small):
    task = {"center": (10.0, 0.0), "spread": (1.0, 5.0), "kind": "sequence"}
    trained = TrainedRange(small("custom", **task).task, {})
    near, far = Example(np.array([[19.0, 49.0]])), Example(np.array([[10.0, 60.0], [-3.0, 0.0]]))
    assert trained.messages([near]) == []
    (message,) = said(lambda: trained.warn(trained.messages([far]) * 2))
    assert matches(message, f"{FAR}feature 1 by 13 (mean 10); feature 2 by 12 (mean 0)")
    farther = Example(np.array([[10.0, -80.0]]))
    ((*_, text),) = trained.messages([near, farther, far, near])
    expected = "feature 2 in 2 of 4 ... 16 (mean 0); feature 1 in 1 of 4 ... 13 (mean 10)"
    assert matches(text, FAR + expected)


def test_a_line_names_the_features_that_are_far_most_often(small):
    task = {"center": (0.0,) * 9, "spread": (1.0,) * 9, "kind": "sequence"}
    trained = TrainedRange(small("custom", **task).task, {})
    instances = [Example(50 * np.tri(9)[k : k + 1]) for k in range(9)]
    ((*_, text),) = trained.messages(instances)
    expected = "feature 1 in 9 of 9 ... 50 (mean 0); feature 2 in 8 ...; feature 5 in 5 of 9 ..."
    assert matches(text, f"{FAR}{expected}; 4 more features")


def test_a_file_gives_one_line_for_each_kind_of_warning(small, tmp_path, capsys):
    """Sizes, far features and elements that are equal in float32, in chunks of a file."""
    task = {"center": (0.0,), "spread": (1.0,), "kind": "choice"}
    small("custom", **task).save_pretrained(tmp_path / "m")
    rows = [[[1.0], [1.0 + 1e-9], [k / 20]] for k in range(600)]
    lines = [f'{{"inputs": {inputs}, "outputs": [0]}}\n' for inputs in rows]
    (tmp_path / "d.jsonl").write_text("".join(lines))
    assert run(["evaluate", "--model", f"{tmp_path / 'm'}", f"{tmp_path / 'd.jsonl'}"]) == 0
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "ptrnet: the model was trained on instances of 5 elements, 600 of 600 have 3",
        f"ptrnet: {FAR}feature 1 in 399 of 600 instances, by up to 30 (mean 0)",
        "ptrnet: in 600 of 600 instances, the model cannot tell some elements apart: they are "
        "equal in float32, in which it computes",
    ]


def test_a_line_names_the_first_fields_with_values_that_training_did_not_see(small):
    fields = tuple(f"f{k}" for k in range(8))
    task = {"fields": fields, "categories": (("a", "b"),) * 8, "kind": "choice"}
    task = small("custom", **task, center=(0.0,) * 16, spread=(1.0,) * 16).task
    elements = [dict.fromkeys(fields, "z")]
    inputs = task.facts.schema.encode(elements, "x")
    (message,) = TrainedRange(task, {}).messages([Example(inputs, elements=elements)])
    assert message.text.count("'z' (1 element)") == 5
    assert message.text.endswith("; \"f4\": 'z' (1 element); 3 more fields")


def test_a_stream_gives_a_line_for_each_kind_at_once_and_one_for_all_that_followed(small):
    task = {"center": (0.0,) * 9, "spread": (1.0,) * 9, "kind": "sequence"}
    solver = small("custom", **task)
    chunks = [Dataset.of([Example(np.full((5, 9), k) * np.eye(9)[k % 9])]) for k in range(60)]
    lines = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in solver.trained_range.warned(chunks, Greedy(), at_once=True):
            lines.append(len(caught))
    assert lines == [0] * 11 + [1] * 49
    first, last = (str(warning.message) for warning in caught)
    assert first == f"{FAR}feature 3 in 1 of 12 instances, by up to 11 (mean 0)"
    assert last.startswith(f"{FAR}feature 3 in 6 of 60 instances, by up to 56 (mean 0); feature ")
    assert last.endswith("; 4 more features")


@pytest.mark.parametrize(("gap", "is_said"), [(1.0, False), (0.0, False), (1e-7, True)])
def test_custom_elements_that_float32_makes_equal_are_named(small, gap, is_said):
    task = {"center": (0.0,), "spread": (1.0,), "kind": "sequence"}
    trained = TrainedRange(small("custom", **task).task, {})
    instance = np.array([[3.0], [5.0], [4.0], [5.0 + gap]])
    messages = said(lambda: trained.warn(trained.messages([Example(instance)])))
    assert len(messages) == is_said
    assert all(matches(text, "... elements 2 and 4 ... equal in float32 ...") for text in messages)


def test_the_command_line_prints_warnings_on_standard_error(small, tmp_path, capsys):
    small().save_pretrained(tmp_path)
    assert run(["solve", "--model", str(tmp_path), "--random", "7"]) == 0
    printed = capsys.readouterr()
    assert begins(printed.err[:-1], "ptrnet: ... instances of 5 elements, this one has 7")
    assert "trained" not in printed.out
    (tmp_path / "long.csv").write_text("x,y\n" + "0,1\n" * 7)
    assert run(["solve", "--model", str(tmp_path), str(tmp_path / "long.csv")]) == 0
    assert matches(capsys.readouterr().err, "...; a table ... ptrnet convert --set-id ...")


def test_a_long_table_of_own_examples_needs_the_column_of_its_sets(small, tmp_path, capsys):
    small("custom", kind="permutation", center=(0.0, 0.0), spread=(1.0, 1.0)).save_pretrained(
        tmp_path
    )
    (tmp_path / "long.csv").write_text("x,y\n" + "0,1\n" * 50)
    assert run(["solve", "--model", str(tmp_path), str(tmp_path / "long.csv")]) == 0
    assert matches(capsys.readouterr().err, "...; a table ... unless --set-id ...")


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
    instance = np.random.default_rng(0).random((10, solver.task.facts.num_features))
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
    assert sum(len(trained.messages([Example(x)])) for x in instances) <= 4


def test_an_outlier_may_be_farther_than_floats_can_say():
    trained = TrainedRange(tasks.get("sort"), {})
    numbers = np.array([[1e308], [-1e308], [0.0], [5e-324], [1.0]])
    ((*_, text),) = trained.messages([Example(numbers)])  # a warning of NumPy is an error here
    assert "the model can hardly tell them apart" in text


def test_facts_about_the_whole_set_that_differ_between_elements_are_named(small):
    """Networks compare elements by such a fact, although no training example has a difference."""
    solver = small(
        "custom",
        kind="choice",
        fields=("price", "income", "city"),
        categories=((), (), ("Bonn", "Jena")),
        context=("income", "city"),
        center=(0.0,) * 4,
        spread=(1.0,) * 4,
    )
    solver = type(solver)(solver.model, solver.task)  # trained on unknown sizes
    offers = [{"price": price, "income": 1, "city": "Jena"} for price in (3, 1, 2)]
    assert said(lambda: solver.solve([offers, offers[:1]])) == []
    wrong = [offers[0], {**offers[1], "income": 2}, offers[2]]
    worse = [offers[0], {**offers[1], "income": 2, "city": "Bonn"}, offers[2]]
    (message,) = said(lambda: solver.solve([offers, wrong, worse]))
    expected = '... whole set ... differ between elements: "income" in 2 of 3 instances; "city" ...'
    assert matches(message, expected)
    assert said(lambda: solver.solve(wrong)) == []
    (warning,) = solver.answer(wrong).warnings
    assert warning.endswith('differ between elements: "income"')
