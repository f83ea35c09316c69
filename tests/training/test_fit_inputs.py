"""`ptrnet.fit` learns the same from arrays of any library as from lists of pairs."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch

import ptrnet
from ptrnet import tasks
from ptrnet.errors import InputError
from ptrnet.types import Example

OPTIONS = {"steps": 2, "hidden_size": 4, "batch_size": 8, "ensemble": 1}
X = np.random.default_rng(0).integers(0, 99, (20, 5, 1)) / 64
Y = np.argsort(X[..., 0], axis=1, kind="stable")


def weights(*examples, **options):
    return list(ptrnet.fit(*examples, **{**OPTIONS, **options}).model.state_dict().values())


def test_two_sequences_train_the_weights_of_pairs():
    expected = weights([(x.tolist(), y.tolist()) for x, y in zip(X, Y, strict=True)])
    assert all(map(torch.equal, weights(torch.tensor(X, requires_grad=True), Y), expected))


def test_every_form_becomes_the_same_dataset(monkeypatch):
    """A training sees only the dataset of its examples."""

    class Stopped(Exception):
        pass

    def read(inferred, data, overrides):
        raise Stopped(inferred.examples, overrides.get("kind"))

    monkeypatch.setattr("ptrnet.training.fit.recipe_of", read)

    def dataset(*examples):
        with pytest.raises(Stopped) as stopped:
            ptrnet.fit(*examples)
        data, kind = stopped.value.args
        columns = (data.elements, data.starts, data.answers, data.answer_starts)
        return [column.tolist() for column in columns], kind

    expected, _ = dataset([(x.tolist(), y.tolist()) for x, y in zip(X, Y, strict=True)])
    assert expected[0] == X.reshape(-1, 1).tolist() and expected[2] == Y.ravel().tolist()
    forms = [
        (X, Y),
        (X[..., 0], Y),  # flat, for one feature
        (torch.tensor(X, requires_grad=True), torch.tensor(Y)),
        (list(X), Y.tolist()),
        (X.tolist(), list(Y)),
        (zip(X, Y, strict=True),),
        ([Example(x, y) for x, y in zip(X, Y, strict=True)],),
        ([(torch.tensor(x), y.astype(np.uint8)) for x, y in zip(X, Y, strict=True)],),
    ]
    for form in forms:
        assert dataset(*form) == (expected, None)
    assert dataset(X, Y, "permutation") == (expected, "permutation")
    assert dataset(list(zip(X, Y, strict=True)), "permutation") == (expected, "permutation")


def test_instances_of_every_form_are_learned_from_costs():
    options = {"cost": lambda x, y: float(y[0]), "constraint": "permutation", "samples": 2}
    expected = weights(list(X), **options)
    for instances in (torch.tensor(X, requires_grad=True), X.tolist()):
        assert all(map(torch.equal, weights(instances, **options), expected))


@pytest.mark.parametrize(
    ("arguments", "options", "complaint"),
    [
        ((X, Y[:3]), {}, "expected as many outputs as inputs, got 3 outputs and 20 inputs"),
        ((X, 5), {}, "outputs: expected a list or an array, got int"),
        ((5,), {}, "examples: expected a list or an array, got int"),
        ((X, Y), {"cost": len, "constraint": "free"}, "expected a cost or outputs, got both"),
        ((X, Y + 0.5), {}, "example 0: outputs: expected a list of whole numbers, got float64"),
        ((np.ma.array(X), Y), {}, "inputs: expected a list or an array, got a masked array"),
        ((X * 1j, Y), {}, "example 0: inputs: .*got complex numbers"),
        ((X, Y), {"lr": 0.1}, "unknown recipe key 'lr'; did you mean 'learning_rate'?"),
        ((X, Y), {"epochs": 3}, "unknown recipe key 'epochs'; did you mean 'steps', the updates"),
        ((X, Y), {"random_state": 3}, "unknown recipe key 'random_state'; did you mean 'seed'?"),
        ((X, Y), {"sample_weight": [1] * 20}, "'sample_weight'; did you mean 'weight'?"),
        ((X, Y), {"weight": [1] * 19}, "^weight: expected a number for each of 20 sets, got 19"),
        ((X, Y), {"weight": np.ones((20, 1))}, "20 sets, got shape .20, 1."),
        ((X, Y), {"weight": [1] * 19 + [-1]}, "^example 19: weight: expected 0, or a number fr"),
        ((X, Y), {"weight": [1] * 19 + [np.nan]}, "^example 19: weight: expected 0, or a number"),
        ((X, Y), {"weight": [1] * 19 + [1e31]}, "number from 1e-30 to 1e.30, got 1e.31"),
        ((X, Y), {"weight": ["1"] * 20}, "^weight: expected 20 numbers, got strings"),
        ((X, Y), {"weight": [0] * 20}, "^weight: expected a number above 0, got only zeros"),
        ((X, Y), {"weight": "w"}, "^weight: needs set_id"),
        ((X,), {"weight": [1] * 20, "cost": len}, "expected a cost or the weights"),
        (("t.csv", "set"), {"cost": len}, "^fit: with a cost, expected a list of instances, got t"),
    ],
)
def test_invalid_inputs_are_refused_in_one_line(arguments, options, complaint):
    with pytest.raises(InputError, match=complaint) as error:
        ptrnet.fit(*arguments, **{**OPTIONS, **options})
    assert "\n" not in str(error.value)


def test_a_frame_is_one_instance_and_its_rows_are_not_instances():
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "y": [0.3, 0.2, 0.1]})
    with pytest.raises(InputError, match=r"^inputs: expected a list of instances, got one"):
        ptrnet.fit(frame, [[0, 1]] * 3, **OPTIONS)
    with pytest.raises(InputError, match=r"^instances: expected a list of instances, got one"):
        ptrnet.fit(frame, cost=lambda x, y: 0.0, constraint="permutation", **OPTIONS)


def test_an_example_of_a_table_is_named_by_its_set():
    """The user needs to know where in a long table the value is missing."""
    table = pd.DataFrame({"set": list("aabb"), "price": [1, 2, 3, np.nan], "place": [1, 2, 1, 2]})
    examples = ptrnet.read_table(table, set_id="set", rank="place")
    with pytest.raises(InputError, match=r"^example 1 \(set 'b'\): inputs: element 2"):
        ptrnet.fit(examples, fields=["price"], missing="refuse", **OPTIONS)


def test_argument_names_of_other_libraries_suggest_ours():
    from ptrnet.training.recipe import ELSEWHERE, recipe_options

    known = set(recipe_options(tasks.names()))
    assert not known & set(ELSEWHERE)
    assert {hint.split("'")[1] for hint in ELSEWHERE.values()} <= known


def test_errors_about_examples_in_memory_name_no_file():
    with pytest.raises(InputError, match=r"^examples: 1 example, all held out for validation"):
        ptrnet.fit([([[1.0], [0.0]], [1, 0])], steps=1, hidden_size=8)


def test_validation_without_examples_and_a_table_without_set_id_are_refused():
    examples = [(np.random.default_rng(k).random((3, 2)), [0, 1]) for k in range(4)]
    with pytest.raises(InputError, match="valid_batches: there are no examples for it"):
        ptrnet.fit(examples, steps=1, hidden_size=8, valid_share=0, valid_batches=1)
    frame = pytest.importorskip("pandas").DataFrame({"order": [1, 1], "x": [2, 3]})
    with pytest.raises(InputError, match="fit: expected set_id, the column that says"):
        ptrnet.fit(frame)


def test_texts_in_arrays_are_refused_for_any_number_of_features():
    pairs = [([["a", "b"], ["c", "d"]], [0, 1])]
    with pytest.raises(InputError, match="expected elements of 2 numbers each, got strings"):
        ptrnet.fit(pairs, steps=1)


def test_deeply_nested_lists_are_refused_in_one_line():
    """`fit` counts features before it checks examples. Both use recursion."""
    nested = 0
    for _ in range(900):
        nested = [None, nested]
    with pytest.raises(InputError, match=r"inputs: expected elements of .*different lengths"):
        ptrnet.fit([(nested, [0])], steps=1)
    with pytest.raises(InputError, match=r"expected elements of .*different lengths"):
        ptrnet.fit([nested], "permutation", cost=lambda x, y: 0.0, steps=1)


def test_examples_of_weight_0_are_neither_learned_nor_validated_on():
    """Sets of weight 0 have the opposite order. The others are the only ones that batches have."""
    wrong = Y[:, ::-1]
    pairs = [*zip(X, Y, strict=True), *zip(X, wrong, strict=True)]
    count = [1.0] * len(X) + [0.0] * len(X)
    options = {"steps": 60, "hidden_size": 16, "batch_size": 8, "learning_rate": 1e-2}
    options |= {"ensemble": 1, "dropout": 0.0}
    model = ptrnet.fit(pairs, "permutation", weight=count, **options)
    assert model.evaluate(pairs[: len(X)])["kendall_tau"]["value"] > 0.9
    examples = [Example(x, y, weight=w) for (x, y), w in zip(pairs, count, strict=True)]
    again = ptrnet.fit(examples, "permutation", **options)
    weights = (m.model.state_dict().values() for m in (model, again))
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_a_training_changes_no_random_numbers_of_the_user():
    weights(X, Y)  # imports that draw numbers come before
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    numbers = torch.rand(3), np.random.rand(3), random.random()
    torch.manual_seed(5), np.random.seed(5), random.seed(5)
    weights(X, Y, ensemble=2, dropout=0.3, valid_every=1, patience=3)
    assert torch.equal(torch.rand(3), numbers[0])
    assert (np.random.rand(3) == numbers[1]).all() and random.random() == numbers[2]


def test_trainings_in_threads_give_the_weights_of_one_after_the_other():
    """Another thread of the user draws random numbers meanwhile."""
    seeds = range(1, 4)

    def trained(seed):
        return weights(X, Y, seed=seed, model="set-ptr-net", dropout=0.3, ensemble=2)

    expected = [*map(trained, seeds)]
    is_over = threading.Event()

    def draw():
        while not is_over.wait(1e-4):
            torch.rand(1)

    drawing = threading.Thread(target=draw)
    drawing.start()
    try:
        with ThreadPoolExecutor(len(seeds)) as threads:
            actual = [*threads.map(trained, seeds)]
    finally:
        is_over.set()
        drawing.join()
    for ours, theirs in zip(actual, expected, strict=True):
        assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_training_works_in_contexts_without_gradients(context):
    expected = weights(X, Y)
    with context():
        actual = weights(X, Y)
        assert not torch.is_grad_enabled()
    assert all(map(torch.equal, actual, expected))
    assert not any(tensor.is_inference() for tensor in actual)


@pytest.mark.parametrize("names", [list, np.array, pd.Index])
def test_names_of_fields_may_be_in_an_array_or_an_index(names):
    rows = [
        ([{"price": a, "age": 9}, {"price": 1 - a, "age": 9}], [int(a > 0.5)])
        for a in np.linspace(0, 1, 20).tolist()
    ]
    task = ptrnet.fit(rows, fields=names(["price", "age"]), context=names(["age"]), **OPTIONS).task
    assert task.fields == ("price", "age") and task.context == ("age",)
