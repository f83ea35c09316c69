"""Example of a plug-in: a task, a labeller (an algorithm), a model and a file format.

    ptrnet --plugins examples/plugins/pareto.py train pareto --model pooled-ptr-net --n 5-20
    ptrnet --plugins examples/plugins/pareto.py generate pareto --n 5 --count 3 --output fronts.pts

An offer has two numbers, such as price and weight; smaller is better. The answer consists of the
offers that no other offer beats in both numbers, the cheapest first. The model is a Ptr-Net whose
encoder is not recurrent.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from ptrnet import labellers, models, tasks
from ptrnet.data import formats
from ptrnet.errors import InputError
from ptrnet.masks import length_mask
from ptrnet.metrics.ranking import score_subsets
from ptrnet.models.ptr_net import PtrNet
from ptrnet.models.settings import AttentionSettings
from ptrnet.settings import setting
from ptrnet.tasks.base import Drawing, Facts, Task, duplicate_error
from ptrnet.types import Example


class sweep:  # noqa: N801  stands in for a module: ptrnet only calls its function `label`
    """Sort the offers by price, and keep those that beat all cheaper ones in the second number."""

    @staticmethod
    def label(inputs):
        """Return the answers of instances `(B, n, 2)`: B arrays of indices."""
        order = np.lexsort((inputs[..., 1], inputs[..., 0]), axis=-1)
        second = np.take_along_axis(inputs[..., 1], order, -1)
        best_before = np.minimum.accumulate(second, -1)[:, :-1]
        stays = np.pad(second[:, 1:] < best_before, ((0, 0), (1, 0)), constant_values=True)
        return [offers[kept] for offers, kept in zip(order, stays, strict=True)]


@tasks.register
@dataclass(frozen=True)
class Pareto(Task):
    """The task `pareto`: the offers that no other offer beats, the cheapest first."""

    name = "pareto"
    facts = Facts(num_features=2, machine="subset", labellers=("sweep",))

    def max_length(self, n):
        return n

    def answer_error(self, n, outputs, first=0):
        return duplicate_error(outputs, first)

    def score(self, examples, answers):
        return score_subsets(examples, answers)

    def draw(self, inputs, outputs):
        return Drawing(inputs, [inputs[outputs]])


@dataclass(frozen=True, kw_only=True)
class PooledSettings(AttentionSettings):
    """Settings of `pooled-ptr-net`."""

    pool: Literal["mean", "max"] = setting("mean", "pooled-ptr-net: first state of the decoder")


class PooledPtrNet(PtrNet):
    """A Ptr-Net that encodes each element alone. The decoder starts from their mean or maximum."""

    Settings = PooledSettings

    def __init__(self, features, num_specials, settings):
        super().__init__(features, num_specials, settings)
        units = settings.hidden_size
        self.encoder = nn.Sequential(nn.Linear(features, units), nn.ReLU(), nn.Linear(units, units))

    def run_encoder(self, inputs, lengths):
        states = self.encoder(inputs)
        real = length_mask(lengths, inputs.shape[1])[..., None]
        if self._settings.pool == "max":
            pooled = states.masked_fill(~real, -torch.inf).amax(1)
        else:
            pooled = (states * real).sum(1) / lengths[:, None]
        parts = [pooled.tanh(), pooled]  # an LSTM's state is an output and a cell
        return states, tuple(parts if self._settings.cell == "lstm" else parts[:1])


class pts:  # noqa: N801
    """Files with a line `x,y;x,y;... > i i ...` for each example; indices start at 0."""

    CAPABILITIES = formats.Capabilities()

    @staticmethod
    def read(path, task):
        with open(path, encoding="utf-8") as lines:  # noqa: PTH123
            for number, line in enumerate(lines, 1):
                points, _, outputs = line.partition(">")
                try:
                    inputs = np.array([[float(x) for x in p.split(",")] for p in points.split(";")])
                    known = np.array(outputs.split(), np.int64) if outputs else None
                except ValueError:
                    raise InputError(f"{path}:{number}: expected x,y;x,y;... > i i ...") from None
                yield Example(inputs, known, source=f"{path}:{number}")

    @staticmethod
    def write(stream, examples, task):
        for example in examples:
            points = ";".join(",".join(map(repr, point)) for point in example.inputs.tolist())
            answer = "" if example.outputs is None else " > " + " ".join(map(str, example.outputs))
            stream.write(f"{points}{answer}\n")


labellers.register("sweep", sweep)
models.register("pooled-ptr-net", PooledPtrNet)
formats.register("pts", pts)
