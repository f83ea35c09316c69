"""State of the process and of its threads that other programs changed, or that changed theirs."""

import asyncio
import contextlib
import copy
import logging
import pickle
import random
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import ptrnet
from ptrnet import weights
from ptrnet.errors import MissingExtraError

POINTS = np.random.default_rng(0).random((12, 2))
TINY = {"steps": 2, "hidden_size": 4, "batch_size": 8, "ensemble": 1}
X = np.random.default_rng(1).random((20, 3, 2))
Y = X[..., :1].argmax(1)


@pytest.fixture(scope="module")
def hull():
    return ptrnet.load("hull")


def fitted(**options):
    """Return the weights of a small training."""
    return list(ptrnet.fit(X, Y, "choice", **TINY, **options).model.state_dict().values())


@pytest.mark.parametrize("name", weights.names())
def test_answers_do_not_depend_on_the_default_device(name):
    """Transformers: `torch.set_default_device` put some tensors of a model on another device."""
    solver = ptrnet.load(name)
    instances = list(solver.task.sample(np.random.default_rng(0), 2, 8))
    expected = [answer.tolist() for answer in solver.solve(instances)]
    with torch.device("meta"):  # has no numbers, so each tensor on it makes the call fail
        again = ptrnet.load(name)
        assert [answer.tolist() for answer in again.solve(instances)] == expected
        if name == "tsp":
            for decoder in (ptrnet.Beam(2), ptrnet.Sample(2), ptrnet.Sample(2, seed=1)):
                again.solve(instances, decoder)
            again.sample(instances, 2, seed=1)
            again.evaluate(list(zip(instances, expected, strict=True)))
            again.answer(instances[0])


@pytest.mark.parametrize("model", ["set-ptr-net", "ptr-net", "transformer-ptr-net"])
def test_trainings_do_not_depend_on_the_default_device(model):
    """Lightning: with a default device, the loader's generator was on another one."""
    expected = fitted(model=model)
    with torch.device("meta"):
        actual = fitted(model=model)
        solver = ptrnet.fit(X, Y, "choice", **TINY)
        solver.predict_proba(X)
        solver.evaluate(list(zip(X, Y, strict=True)))
        assert torch.get_default_device().type == "meta"
    assert all(map(torch.equal, actual, expected))


def test_costs_are_learned_from_whatever_the_default_device():
    """Stable-baselines: samples of a policy were on the default device."""
    cost = {"cost": lambda x, y: float(y[0]), "constraint": "permutation", "samples": 2}
    with torch.device("meta"):
        ptrnet.fit(X, **cost, **{**TINY, "steps": 1})


def test_floating_point_errors_may_raise(hull):
    """SciPy: harmless underflows raised under `np.seterr(all="raise")` of the user."""
    expected = hull.solve(POINTS).tolist()
    with np.errstate(all="raise"):
        assert hull.solve(POINTS).tolist() == expected
        for name in ("tsp", "knapsack", "orienteering"):
            solver = ptrnet.load(name)
            instances = solver.task.sample(np.random.default_rng(0), 2, 6)
            with contextlib.suppress(MissingExtraError):
                ptrnet.label(name, list(instances))
            solver.solve(list(instances))
        fitted()


def state():
    """Return what a library should leave as it is."""
    return {
        "threads": torch.get_num_threads(),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "torch numbers": torch.get_rng_state().tolist(),
        "numbers": random.getstate(),
        "NumPy's numbers": str(np.random.get_state()),
        "NumPy's errors": np.geterr(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "log": (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
        "hooks": (sys.excepthook, threading.excepthook, warnings.showwarning),
        "filters": list(warnings.filters),
        "recursion": sys.getrecursionlimit(),
    }


def test_the_settings_of_the_process_stay(hull):
    """LightGBM, Lightning and absl: threads, signals, log handlers or filters were changed."""
    fitted()  # imports of other packages come before
    before = state()
    hull.solve([POINTS] * 20)
    hull.solve(POINTS, ptrnet.Sample(3, seed=1))
    ptrnet.label("tsp", POINTS)
    ptrnet.generate("tsp", n=5, count=2)
    fitted()
    after = state()
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.parametrize("streams", ["none", "no file"])
def test_standard_streams_need_not_be_files(hull, monkeypatch, streams):
    """Tqdm: `sys.stderr` is None under pythonw, and has no `fileno` in notebooks and IDLE."""

    class Terminal:
        def write(self, text):
            return len(text)

        def flush(self):
            pass

        def isatty(self):
            return True

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None if streams == "none" else Terminal())
    fitted()
    assert len(ptrnet.generate("tsp", n=5, count=2)) == 2
    hull.solve(POINTS)


def test_a_running_event_loop_does_not_matter(hull):
    """IPython: `asyncio.run` cannot be called in a notebook."""

    async def main():
        return hull.solve(POINTS).tolist(), fitted()

    answer, ours = asyncio.run(main())
    assert answer == hull.solve(POINTS).tolist() and all(map(torch.equal, ours, fitted()))


def test_deterministic_algorithms_may_be_required(hull):
    """PyTorch: some operators have no deterministic form."""
    expected = hull.solve(POINTS).tolist()
    torch.use_deterministic_algorithms(True)
    try:
        assert hull.solve(POINTS).tolist() == expected
        fitted()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "context", [torch.inference_mode, torch.no_grad, torch.autograd.detect_anomaly]
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_contexts_of_autograd_do_not_matter(hull, context):
    """PyTorch: inference tensors cannot be saved for a backward pass."""
    expected, weights = hull.solve(POINTS).tolist(), fitted()
    with context():
        assert hull.solve(POINTS).tolist() == expected
        assert all(map(torch.equal, fitted(), weights))


def test_copies_in_threads_give_the_same_answers(hull):
    """ONNX Runtime: sessions could not be pickled, and joblib's workers got broken copies."""
    expected = hull.solve(POINTS).tolist()
    copies = [hull, copy.deepcopy(hull), pickle.loads(pickle.dumps(hull))]
    with ThreadPoolExecutor(6) as threads:
        answers = [*threads.map(lambda k: copies[k % 3].solve(POINTS).tolist(), range(24))]
    assert answers == [expected] * 24


def test_answers_in_threads_leave_the_filters_of_warnings_alone():
    """Python: `warnings.catch_warnings` changes the filters of all threads."""
    filters, tsp = list(warnings.filters), ptrnet.load("tsp")
    with ThreadPoolExecutor(4) as threads:
        said = [answer.warnings for answer in threads.map(tsp.answer, [POINTS[:3]] * 8)]
    assert all("trained on instances of" in texts[0] for texts in said)
    assert list(warnings.filters) == filters


VIEWS = {
    "PyTorch: negative strides": lambda a: a[::-1][::-1].copy()[::-1][::-1],
    "PyTorch: bytes in another order": lambda a: a.astype(">f8"),
    "scikit-learn: memory that is mapped read-only": lambda a: np.frombuffer(a.tobytes()).reshape(
        a.shape
    ),
    "scikit-learn: columns in Fortran's order": np.asfortranarray,
    "NumPy: matrices": lambda a: a.view(np.matrix),
    "PyTorch: gradients": lambda a: torch.tensor(a, requires_grad=True),
    "PyTorch: sparse tensors": lambda a: torch.tensor(a).to_sparse(),
}


@pytest.mark.parametrize("view", [pytest.param(view, id=seen) for seen, view in VIEWS.items()])
def test_the_memory_of_an_array_does_not_matter(hull, view):
    assert hull.solve(view(POINTS)).tolist() == hull.solve(POINTS).tolist()


# ---- Cross-validation.


def test_cross_validation_in_threads_gives_the_scores_of_one_after_the_other():
    """PyTorch: all threads share one global generator."""
    joblib = pytest.importorskip("joblib")
    selection = pytest.importorskip("sklearn.model_selection")
    orders = X[..., 0].argsort(1)
    recipe = {"ensemble": 2, "dropout": 0.3, "valid_batches": 0}
    estimator = ptrnet.PointerEstimator(
        "permutation", hidden_size=4, steps=2, batch_size=8, random_state=1, recipe=recipe
    )
    expected = selection.cross_val_score(estimator, X, orders, cv=3).tolist()
    for _ in range(2):
        with joblib.parallel_backend("threading", n_jobs=3):
            assert selection.cross_val_score(estimator, X, orders, cv=3).tolist() == expected


def test_a_training_leaves_the_users_random_numbers_alone():
    """Lightning: `seed_everything` in a library gave the user the same number each time."""
    numbers = []
    for _ in range(2):
        fitted()
        numbers.append(torch.rand(1).item())
    assert numbers[0] != numbers[1]


def test_probabilities_of_a_cross_validation_are_refused_with_a_reason():
    """Scikit-learn: `cross_val_predict` needs `classes_`, but answers here are positions."""
    selection = pytest.importorskip("sklearn.model_selection")
    estimator = ptrnet.PointerEstimator("choice", hidden_size=8, steps=2, recipe={"ensemble": 1})
    with pytest.raises(AttributeError, match="positions in an instance: instead of cross_val_pr"):
        selection.cross_val_predict(estimator, X, Y, cv=2, method="predict_proba")
    assert not hasattr(estimator, "classes_")
