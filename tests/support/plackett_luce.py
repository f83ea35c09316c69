"""A network with fixed scores: an element's score is its first feature, that of the end is 0."""

from dataclasses import dataclass

import torch

from ptrnet.masks import length_mask
from ptrnet.models.base import Encoded, PointerModel
from ptrnet.models.settings import ModelSettings
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom


@dataclass(frozen=True)
class EncodedScores(Encoded):
    scores: torch.Tensor  # (B, S + N)


class PlackettLuce(PointerModel):
    """Probabilities of remaining tokens are proportional to the exponentials of their scores."""

    def __init__(self, features=1):
        super().__init__(features, 1, ModelSettings())
        self.weight = torch.nn.Parameter(torch.ones(()))

    def encode(self, inputs, lengths=None):
        of_elements = self.weight * inputs[..., 0]
        if lengths is not None:
            of_elements = of_elements.masked_fill(
                ~length_mask(lengths, inputs.shape[1]), -torch.inf
            )
        scores = torch.nn.functional.pad(of_elements, (1, 0))
        return EncodedScores(scores.shape[1], (torch.zeros_like(scores)[:, None],), scores)

    def step(self, encoded, state, tokens):
        (gone,) = state
        gone = gone.scatter(-1, tokens[..., None], 1) * (tokens > 0)[..., None]
        logits = encoded.scores[:, None].masked_fill(gone > 0, -torch.inf)
        return logits.log_softmax(-1), (gone,)


def plackett_luce(kind, features=1):
    """Return a solver for a kind of own examples, with such a network."""
    task = Custom(kind=kind, center=(0.0,) * features, spread=(1.0,) * features)
    return Solver(PlackettLuce(features), task)
