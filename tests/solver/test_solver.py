from functools import partial

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import labellers, models, tasks
from ptrnet.data.batches import bucket_by_size
from ptrnet.run import CHUNK
from ptrnet.solver import predict as solver_batches
from ptrnet.solver import scoring
from ptrnet.types import Example
from ptrnet.views import canonicalize_valid


def test_one_array_gives_one_answer_and_a_list_a_list(small):
    solver = small()
    points = np.random.default_rng(0).random((3, 6, 2))
    one = solver.solve(points[0])
    assert one.dtype == np.int64 and one.ndim == 1
    many = solver.solve(list(points))
    assert isinstance(many, list) and many[0].tolist() == one.tolist()
    assert [a.tolist() for a in solver.solve(points)] == [a.tolist() for a in many]
    assert solver.solve([]) == []


def test_shifted_and_scaled_points_get_the_same_answer(small):
    solver = small(scale=8.0)
    points = np.random.default_rng(1).random((9, 2))
    points = (points - points.min(0)) / (points - points.min(0)).max()
    distant = points * 7e5 + [4e6, -2e6]
    assert solver.solve(distant).tolist() == solver.solve(points).tolist()


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        (np.zeros((0, 2)), "instance 1: expected 1 to 100000 elements, got 0"),
        (np.zeros((3, 3)), r"instance 1: expected shape \(n, 2\) for hull, got \(3, 3\)"),
        ([[0, np.inf]], "instance 1: element 1, number 2: expected a finite number"),
        ([["a", "b"]], "instance 1: expected elements of 2 numbers each, got strings"),
        ([[1, 2], [3]], "instance 1: expected elements of 2 numbers each"),
    ],
)
def test_bad_instances_are_named(small, instance, message):
    with pytest.raises(ptrnet.InputError, match=message) as error:
        small().solve([np.zeros((2, 2)), instance])
    assert isinstance(error.value, ValueError)


def test_batches_keep_to_the_budget_and_answers_to_their_order(small, monkeypatch):
    solver = small(scale=8.0)
    rng = np.random.default_rng(3)
    examples = [Example(rng.random((n, 2))) for n in rng.integers(1, 20, 60)]
    at_once = [e.outputs.tolist() for e in solver.predict(examples)]
    monkeypatch.setattr(solver_batches, "MAX_BATCH_ELEMENTS", 25)
    in_batches = [e.outputs.tolist() for e in solver.predict(iter(examples))]
    assert at_once == in_batches
    batches = list(bucket_by_size([3, 30, 1, 5, 4, 4], 25))
    assert batches == [[2, 0, 4, 5, 3], [1]]


@pytest.mark.parametrize("options", [{}, {"activity": "solving"}, {"jobs": 2}])
def test_many_instances_use_compiled_kernels_from_the_first_step_on(small, monkeypatch, options):
    """So the number of processes does not change the bits."""
    seen = []

    def answered(chunk):
        return chunk.with_answers([np.arange(3)] * len(chunk))

    def note(compute, chunks, jobs, backend):
        predictor, encode = compute.args
        seen.append(predictor.always_compiled)
        return map(partial(compute.func, answered, encode), chunks)

    monkeypatch.setattr("ptrnet.run.ordered_map", note)
    points = [Example(x) for x in np.random.default_rng(0).random((CHUNK + 1, 4, 2))]
    small().predict(points, **options)
    small().predict(points[1:], **options)
    assert seen == [True, False]


def test_log_likelihoods_do_not_depend_on_where_a_files_answer_starts(small):
    solver = small(scale=8.0)
    points = np.random.default_rng(4).random((8, 2))
    answer = labellers.label(solver.task, points[None])[0]
    same = [np.roll(answer, 2), answer[::-1], answer]
    values = solver.log_likelihoods([Example(points, a) for a in same])
    assert values[0] == values[1] == values[2] < 0


def test_likelihoods_of_large_answers_are_taken_step_by_step(small, monkeypatch):
    solver = small("sort", scale=8.0)
    rng = np.random.default_rng(6)
    examples = [Example(x, np.argsort(x[:, 0])) for x in (rng.random((n, 1)) for n in (3, 9, 6))]
    at_once = solver.log_likelihoods(examples)
    monkeypatch.setattr(scoring, "MAX_BATCH_ELEMENTS", 10)
    monkeypatch.setattr(scoring, "MAX_KNOWN_ELEMENTS", 10)
    monkeypatch.setattr(scoring, "SCORES_PER_ELEMENT", 1)
    np.testing.assert_allclose(solver.log_likelihoods(examples), at_once, rtol=1e-5)


def test_a_beam_that_no_memory_holds_is_refused(small):
    with pytest.raises(ptrnet.InputError, match="100000000 prefixes times 7 tokens"):
        small().solve(np.zeros((6, 2)), ptrnet.Beam(100_000_000))


def test_the_log_probability_is_that_of_the_answer(small):
    solver = small("sort", scale=8.0)
    examples = [Example(x) for x in np.random.default_rng(7).random((5, 6, 1))]
    answered = list(solver.predict(examples, ptrnet.Beam(3)))
    log_probs = [e.log_prob for e in answered]
    np.testing.assert_allclose(log_probs, solver.log_likelihoods(answered), rtol=1e-4)


def test_unknown_names_of_any_length_give_an_error_message():
    for name in ("m" * 5000, "a/" + "m" * 5000):
        with pytest.raises(ptrnet.InputError):
            ptrnet.load(name)


OF_POINTS = [name for name in tasks.names() if name != "reading-order"]
ORDERS = [
    (task, order)
    for task in OF_POINTS
    for order in ("lexicographic", "hilbert")
    if (task, order) != ("sort", "hilbert")
]


# A network sees the ordered elements alone, so each model has one task of each order.
@pytest.mark.parametrize(
    ("model", "task", "order", "augment"),
    [
        *(("ptr-net", *case, augment) for case in ORDERS for augment in (1, 3)),
        *((model, "hull", "lexicographic", 3) for model in models.names()),
        *((model, "tsp", "hilbert", 1) for model in models.names()),
    ],
)
def test_a_model_with_an_element_order_ignores_the_order_of_the_input(
    small, model, task, order, augment
):
    solver = small(task, model, scale=8.0, order=order)
    rng = np.random.default_rng(5)
    instance, new = rng.random((6, solver.task.facts.num_features)), rng.permutation(6)
    example = Example(instance, solver.solve(instance, augment=augment))
    moved = Example(instance[new], solver.solve(instance[new], augment=augment))
    assert solver.task.answer_error(6, example.outputs) is None
    assert solver.task.answer_error(6, moved.outputs) is None
    back = canonicalize_valid(solver.task, instance, new[moved.outputs])
    assert back.tolist() == example.outputs.tolist()
    log_probs = solver.log_likelihoods([example, moved, Example(instance, back)])
    np.testing.assert_allclose(log_probs, log_probs[0], rtol=1e-5)


@pytest.mark.parametrize("task", OF_POINTS)
def test_attention_has_a_column_for_each_element_of_the_input_in_its_order(small, task):
    """The columns of a sorted instance, permuted, must equal those of the shuffled one."""
    solver = small(task, scale=4.0, order="lexicographic")
    rng = np.random.default_rng(6)
    instance, slots = (
        rng.random((7, solver.task.facts.num_features)),
        np.arange(solver.task.facts.num_specials),
    )
    instance = instance[np.lexsort(instance.T[::-1])]
    new = rng.permutation(7)
    for example, names in ((instance, np.arange(7)), (instance[new], new)):
        answered = solver.predict([Example(example)])[0]
        probabilities, tokens = solver.attention(answered)
        np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
        log_prob = np.log(probabilities[np.arange(len(tokens)), tokens]).sum()
        np.testing.assert_allclose(log_prob, answered.log_prob, rtol=1e-4)
        sorted_columns = np.empty_like(probabilities)
        sorted_columns[:, np.append(slots, names + len(slots))] = probabilities
        if example is instance:
            expected = sorted_columns
    np.testing.assert_allclose(sorted_columns, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("instances", "expected"), [(1, 1), (9, 2)])
def test_few_small_instances_take_one_thread_and_give_the_others_back(small, instances, expected):
    solver, seen = small(), []
    step = solver.model.step

    def watched(*arguments):
        seen.append(torch.get_num_threads())
        return step(*arguments)

    solver.model.step = watched
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        solver.solve(np.random.default_rng(0).random((instances, 5, 2)))
        assert set(seen) == {expected} and torch.get_num_threads() == 2
        solver.model.step = None
        with pytest.raises(TypeError):
            solver.solve(np.random.default_rng(0).random((instances, 5, 2)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_answers_are_those_of_evaluation_mode_if_the_network_was_left_in_training_mode():
    """With dropout, probabilities once changed by up to 0.66 after `model.model.train()`."""
    task = tasks.get("custom", kind="choice", center=(0.0, 0.0), spread=(1.0, 1.0))
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "encoder_layers": 1, "feed_forward": 8, "dropout": 0.5}
    network = models.build("set-ptr-net", 2, task.facts.num_specials, answer="one", **sizes)
    solver = ptrnet.Solver(network, task)
    points = np.random.default_rng(0).normal(size=(40, 5, 2))
    examples = [(instance, [k % 5]) for k, instance in enumerate(points)]
    known = solver.predict([Example(instance) for instance in points])
    actions = {
        "solve": lambda: np.array(solver.solve(points)),
        "predict": lambda: solver.predict(known).column("log_prob"),
        "answer": lambda: [answer.log_prob for answer in solver.answer(points)],
        "sample": lambda: solver.sample(points, 3, seed=1)[1].detach().numpy(),
        "scores": lambda: np.array(solver.scores(points)),
        "predict_proba": lambda: np.array(solver.predict_proba(points)),
        "log_likelihoods": lambda: solver.log_likelihoods(examples),
        "attention": lambda: solver.attention(points[0])[0],
        "evaluate": lambda: solver.evaluate(examples)["log_likelihood"]["value"],
        "explain": lambda: solver.explain(examples)["importance"]["feature 1"]["value"],
    }
    expected = {name: action() for name, action in actions.items()}
    for name, action in actions.items():
        solver.model.train()
        np.testing.assert_array_equal(action(), expected[name], name)
        solver.model.eval()
        solver.model.encoder.train()  # only a part
        np.testing.assert_array_equal(action(), expected[name], name)
