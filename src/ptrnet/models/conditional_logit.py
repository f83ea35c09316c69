"""The conditional logit (McFadden 1974): the choice of one element by a linear score."""

import torch
from torch import Tensor, nn

from ptrnet.masks import Lengths, length_mask
from ptrnet.models.base import full_lengths
from ptrnet.models.parts.scores_once import ScoredSet, ScoresOnce, scored
from ptrnet.models.settings import LogitSettings


class ConditionalLogit(ScoresOnce):
    """`u_j = b' x_j`, and element j is chosen with the probability `softmax(u)_j`.

    `x_j` has the features of element j, and `b` are the weights. They are 0 in a new model.
    `ptrnet.training.conditional_logit` sets them to the maximum of the likelihood.
    """

    Settings = LogitSettings
    answer, repeats = "one", False

    def __init__(self, features: int, num_specials: int, settings: LogitSettings) -> None:
        super().__init__(features, num_specials, settings)
        self.weights = nn.Parameter(torch.zeros(features))

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> ScoredSet:
        lengths = full_lengths(inputs) if lengths is None else lengths
        with torch.autocast(inputs.device.type, enabled=False):
            scores = nn.functional.pad(inputs @ self.weights, (self.num_specials, 0))
        is_token = length_mask(lengths + self.num_specials, scores.shape[1])
        return scored(scores.masked_fill(~is_token, -torch.inf))


MODEL = ConditionalLogit
