"""Compare the lab's models with their formulas, in plain loops and float64."""

import pytest
import torch

from tests.models.gradients import check_gradients
from tests.models.test_formulas import (
    OPTIONS,
    TARGETS,
    Formulas,
    N,
    build,
    dot,
    plus,
    softmax,
    times,
)

FREE_RUNNING = ["soft-ptr-net", "hard-ptr-net", "multi-ptr-net"]
NAMES = [*FREE_RUNNING, "memory-ptr-net", "seq2seq", "seq2seq-attention"]


class LabFormulas(Formulas):
    """The formulas on the weights of a model, which may run free."""

    def __init__(self, name, model, free_running=True):
        super().__init__(model)
        self.name, self.free_running = name, free_running and name in FREE_RUNNING

    def probabilities(self, points, targets):
        is_dictionary = "embedding.weight" in self.w
        formula = self.over_a_dictionary if is_dictionary else super().probabilities
        return formula(points, targets)

    def remembered(self, points, outputs):
        return self.read("memory", points)[0] if self.name == "memory-ptr-net" else outputs

    def next_input(self, a, inputs, target):
        return self.mixture(a, inputs) if self.free_running else inputs[target]

    def mixture(self, a, inputs):
        columns = list(zip(*inputs, strict=True))
        if self.name == "soft-ptr-net":
            return [dot(a, column) for column in columns]
        likely = [j for j, p in enumerate(a) if p >= self.settings.get("threshold", 2)]
        likely = likely or [a.index(max(a))]
        return [sum(column[j] for j in likely) / len(likely) for column in columns]

    def over_a_dictionary(self, points, targets):
        outputs, states = self.read("encoder", points)
        attends, last = self.name == "seq2seq-attention", 0
        d, mixed = states[-1][0], [0.0] * self.settings["hidden_size"]
        for target in targets:
            x = self.w["embedding.weight"][last]
            d, states = self.decode(x + d + mixed if attends else x, states)
            seen = d
            if attends:
                a = softmax([self.score(e, d) for e in outputs])
                mixed = [dot(a, column) for column in zip(*outputs, strict=True)]
                seen = d + mixed
            yield softmax(plus(times(self.w["output.weight"], seen), self.w["output.bias"]))
            last = target


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "-")
@pytest.mark.parametrize("name", NAMES)
def test_log_probs_equal_the_formula(name, options):
    model = build(name, options).eval()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    log_probs = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    expected = LabFormulas(name, model).log_probs(points[0].tolist(), TARGETS)
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("teacher_forcing", [True, False])
@pytest.mark.parametrize("name", FREE_RUNNING)
def test_decoder_reads_true_elements_only_in_training_with_teacher_forcing(name, teacher_forcing):
    model = build(name, {}, teacher_forcing=teacher_forcing).train()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    log_probs = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    rows = {
        runs_free: LabFormulas(name, model, runs_free).log_probs(points[0].tolist(), TARGETS)
        for runs_free in (True, False)
    }
    torch.testing.assert_close(log_probs, rows[not teacher_forcing], rtol=0, atol=1e-11)
    assert (rows[True] - rows[False]).abs().max() > 1e-3


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.9])
def test_multi_ptr_net_equals_the_formula_at_other_thresholds(threshold):
    model = build("multi-ptr-net", {}, threshold=threshold).eval()
    points = torch.rand(1, N, 2, dtype=torch.float64)
    log_probs = model.log_probs(points, None, torch.tensor([TARGETS]))[0]
    expected = LabFormulas("multi-ptr-net", model).log_probs(points[0].tolist(), TARGETS)
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", [*FREE_RUNNING, "seq2seq-attention", "memory-ptr-net"])
def test_gradients_equal_finite_differences(name):
    """Choices of elements without a gradient do not change by a small step, either."""
    settings = {"teacher_forcing": False} if name in FREE_RUNNING else {}
    model = build(name, {}, **settings).train()
    points, targets = torch.rand(3, N, 2, dtype=torch.float64), torch.tensor([TARGETS] * 3)

    check_gradients(model, points, targets, 1e-6)
