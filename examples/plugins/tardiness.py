"""Example of a problem: order the jobs of one machine so that lateness costs little.

    ptrnet check examples/plugins/tardiness.py
    ptrnet train examples/plugins/tardiness.py --n 10 --steps 1000

docs/problems.md explains this file.
"""

from dataclasses import dataclass

import numpy as np

from ptrnet.problems import Problem, register


@register
@dataclass(frozen=True)
class Tardiness(Problem):
    """Order of jobs. A job that ends after its due time costs its weight times the delay."""

    name = "tardiness"
    element_fields = {"duration": 1, "due": 1, "weight": 1}

    def sample(self, rng, count, n):
        duration, weight = rng.uniform(1, 10, (2, count, n))
        due = rng.uniform(0, 1, (count, n)) * duration.sum(1, keepdims=True)
        return self.pack(duration=duration, due=due, weight=weight)

    def start(self, instance):
        jobs = self.unpack(instance)
        waiting = np.ones(jobs["due"].shape, bool)
        return {**jobs, "waiting": waiting, "time": np.zeros(len(instance))}

    def allowed(self, state):
        return state["waiting"]

    def remaining(self, state):
        return state["waiting"]

    def features(self, state):
        mean = state["duration"].mean(1, keepdims=True)
        slack = (state["due"] - state["time"][:, None] - state["duration"]) / mean
        of_jobs = [state["duration"] / mean, slack / 5, slack < 0, state["weight"] / 5]
        return np.stack(of_jobs, -1), state["waiting"].mean(1, keepdims=True)

    def step(self, state, choice):
        rows = np.arange(len(choice))
        waiting = state["waiting"].copy()
        waiting[rows, choice] = False
        return {
            **state,
            "waiting": waiting,
            "time": state["time"] + state["duration"][rows, choice],
        }

    def cost(self, instance, answers):
        jobs = {
            name: np.take_along_axis(v, answers, 1) for name, v in self.unpack(instance).items()
        }
        late = np.maximum(jobs["duration"].cumsum(1) - jobs["due"], 0)
        return (jobs["weight"] * late).sum(1)
