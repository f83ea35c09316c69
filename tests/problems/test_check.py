"""`ptrnet check`: correct problems pass, and each defect gets one line."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from ptrnet import tasks
from ptrnet.errors import InputError
from ptrnet.problems import Problem, names
from ptrnet.problems.check import check_problem


@dataclass(frozen=True)
class Right(Problem):
    """A correct problem: elements in any order. Each costs its number times its place."""

    name: ClassVar[str] = "right"
    element_fields: ClassVar[dict[str, int]] = {"price": 1}

    def sample(self, rng, count, n):
        return self.pack(price=rng.random((count, n)))

    def start(self, instance):
        state = self.unpack(instance)
        return {**state, "left": np.ones(state["price"].shape, bool)}

    def allowed(self, state):
        return state["left"]

    def features(self, state):
        left = state["left"]
        return np.stack([state["price"], left], -1), left.mean(1, keepdims=True)

    def step(self, state, choice):
        left = state["left"].copy()
        left[np.arange(len(choice)), choice] = False
        return {**state, "left": left}

    def cost(self, instance, answers):
        prices = np.take_along_axis(self.unpack(instance)["price"], answers, 1)
        return (prices * np.arange(answers.shape[1])).sum(1)


class UnboundedAnswers(Right):
    """A problem whose answers never end."""

    def step(self, state, choice):
        return state


class StepInPlace(Right):
    def step(self, state, choice):
        state["left"][np.arange(len(choice)), choice] = False
        return state


class FeaturesOfTheBatch(Right):
    def features(self, state):
        of_elements, of_whole = super().features(state)
        return of_elements - of_elements.mean(0), of_whole


class FeaturesOfIndices(Right):
    def features(self, state):
        of_elements, of_whole = super().features(state)
        return of_elements + np.arange(of_elements.shape[1])[:, None], of_whole


class UnseededSample(Right):
    def sample(self, rng, count, n):
        return super().sample(np.random.default_rng(), count, n)


class CostOfTheBatch(Right):
    def cost(self, instance, answers):
        return super().cost(instance, answers) + len(answers)


class LargeFeatures(Right):
    def features(self, state):
        of_elements, of_whole = super().features(state)
        return 1e6 * of_elements, of_whole


class RemainsLess(Right):
    def remaining(self, state):
        return np.zeros_like(state["left"])


class Raises(Right):
    def allowed(self, state):
        return state["missing"]


class BackwardsWithoutAnswers(Right):
    def backwards(self, inputs):
        return inputs


class BackwardsOnce(Right):
    """Reading the instances backwards twice doubles the prices twice."""

    def backwards(self, inputs):
        return 2 * inputs

    def answers_backwards(self, inputs, answers):
        return answers


class CostlyBackwards(Right):
    """High prices become low ones, so an answer in the same order may cost more."""

    def backwards(self, inputs):
        return 1 - inputs  # exact for some numbers only, so the sample rounds

    def sample(self, rng, count, n):
        return np.round(64 * super().sample(rng, count, n)) / 64

    def answers_backwards(self, inputs, answers):
        return answers


def test_a_correct_problem_passes():
    assert "all checks passed" in check_problem(Right())


@pytest.mark.parametrize("name", names())
def test_built_in_problems_pass_all_checks(name):
    assert "all checks passed" in check_problem(tasks.kind(name)(), sizes=(4, 9))


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (UnboundedAnswers, "max_length: expected at most"),
        (StepInPlace, "step: changed its argument in place"),
        (FeaturesOfTheBatch, "features: after 0 choices, the result for instance 0 alone differs"),
        (FeaturesOfIndices, "features: depend on the order of the elements"),
        (UnseededSample, "sample: the same seed drew other instances"),
        (CostOfTheBatch, "cost: instance 0 costs"),
        (LargeFeatures, "features: expected magnitudes of about 1"),
        (RemainsLess, "remaining: expected True for all elements that are allowed"),
        (Raises, "allowed: raised KeyError"),
        (BackwardsWithoutAnswers, "backwards: expected backwards and answers_backwards"),
        (BackwardsOnce, "backwards: expected the same instances again after two calls"),
        (CostlyBackwards, "answers_backwards: expected a cost of at most"),
    ],
)
def test_each_fault_gives_its_message(kind, complaint):
    with pytest.raises(InputError, match=complaint):
        check_problem(kind())


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed: expected a whole number of 0 or more, got -1"):
        check_problem(Right(), seed=-1)
