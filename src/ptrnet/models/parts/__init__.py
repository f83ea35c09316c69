"""Layers that several networks share: recurrent layers, attention, scores, edge frames, dropout.

This file has the random numbers of networks, which do not come from torch's global generator.
All threads share torch's global generator, and users draw from it, too. A training takes its
initial weights and its dropout masks from generators of its own. So its result depends only on its
seed, and the numbers of the user and of other trainings do not change.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

# Some operators take a generator only in another overload.
_WITH_GENERATOR = {"default": "generator", "low": "low_generator"}


class DrawFrom(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """In this context, all random numbers of this thread come from a generator.

    Code that we cannot pass the generator to, such as `nn.Linear`, also draws from it.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.generator = generator

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        other = _WITH_GENERATOR.get(func._overloadname, "")
        if other in func.overloadpacket.overloads():
            func = getattr(func.overloadpacket, other)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            kwargs = {"generator": self.generator, **kwargs}
        return func(*args, **kwargs)


class Dropout(nn.Dropout):
    """`nn.Dropout` whose masks come from `generator`, or from the global generator if it is None.

    Both generators give the same masks from the same seed.
    """

    generator: torch.Generator | None = None

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return input
        if self.generator is None:
            return super().forward(input)
        mask = torch.empty_like(input).bernoulli_(1 - self.p, generator=self.generator)
        return input * mask.div_(1 - self.p)
