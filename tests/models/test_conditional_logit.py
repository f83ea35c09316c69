"""The network of a conditional logit: its formula, padding, and what it refuses."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

import ptrnet
from ptrnet import models, tasks
from ptrnet.errors import InputError
from ptrnet.export.folder import export_onnx

WEIGHTS = np.array([1.5, -2.0, 0.5])


@pytest.fixture
def logit():
    task = tasks.get("custom", kind="choice", center=(0.5, 0.0, 1.0), spread=(2.0, 1.0, 0.5))
    model = models.build(models.LOGIT, 3, 1)
    with torch.no_grad():
        model.weights.copy_(torch.from_numpy(WEIGHTS))
    return ptrnet.Solver(model, task, {"n": "2-7"})


def instances(count=20):
    rng = np.random.default_rng(1)
    return [rng.normal(size=(rng.integers(2, 8), 3)) for _ in range(count)]


def expected(logit, x):
    features = (x - np.array(logit.task.center)) / np.array(logit.task.spread)
    return log_softmax(features @ WEIGHTS)


def test_probabilities_are_the_softmax_of_linear_scores(logit):
    for x, p in zip(instances(), logit.predict_proba(instances()), strict=True):
        np.testing.assert_allclose(np.log(p), expected(logit, x), rtol=1e-4, atol=1e-5)


def test_the_answer_is_the_most_probable_element(logit):
    answers = logit.solve(instances())
    assert [a.tolist() for a in answers] == [[expected(logit, x).argmax()] for x in instances()]
    beam = logit.solve(instances(), ptrnet.Beam(3))
    assert [a.tolist() for a in beam] == [a.tolist() for a in answers]


def test_padding_changes_nothing(logit):
    together = logit.scores(instances())
    for x, scores in zip(instances(), together, strict=True):
        np.testing.assert_allclose(logit.scores(x), scores, atol=1e-6)


def test_a_saved_model_has_the_same_weights(logit, tmp_path):
    logit.save_pretrained(tmp_path / "m")
    loaded = ptrnet.load(tmp_path / "m")
    assert torch.equal(loaded.model.weights, logit.model.weights)
    assert loaded.model.settings() == logit.model.settings()


def test_an_export_gives_the_same_answers(logit, tmp_path):
    export_onnx(logit, tmp_path / "onnx", instances=10)  # raises an error if they differ
    assert (tmp_path / "onnx" / "step.onnx").exists()


@pytest.mark.parametrize("settings", [{"hidden_size": 8}, {"ensemble": 2}, {"dropout": 0.1}])
def test_it_has_no_settings_to_choose(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        models.build(models.LOGIT, 3, 1, **settings)
