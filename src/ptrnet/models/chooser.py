"""A model of choices and rankings that is fitted to a few hundred examples in a moment."""

import torch
from torch import Tensor, nn

from ptrnet.masks import length_mask
from ptrnet.models.base import full_lengths
from ptrnet.models.parts.scores_once import ScoredSet, ScoresOnce, scored
from ptrnet.models.parts.spaces import Spaces
from ptrnet.models.settings import ChooserSettings


class Chooser(ScoresOnce):
    """`u_j = f(x_j)`, where `f` is linear in three spaces of the features; see `Spaces`.

    All scores of a new model are 0. `ptrnet.training.spaces` fits `f`.
    """

    Settings = ChooserSettings
    repeats = False

    def __init__(self, features: int, num_specials: int, settings: ChooserSettings) -> None:
        super().__init__(features, num_specials, settings)
        self.answer = settings.answer
        self.spaces = Spaces(features, settings.spaces)

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> ScoredSet:
        lengths = full_lengths(inputs) if lengths is None else lengths
        is_element = length_mask(lengths, inputs.shape[1])
        with torch.autocast(inputs.device.type, enabled=False):
            scores = self.spaces(inputs, is_element).masked_fill(~is_element, -torch.inf)
        padded = nn.functional.pad(scores, (self.num_specials, 0))
        is_token = length_mask(lengths + self.num_specials, padded.shape[1])
        return scored(padded.masked_fill(~is_token, -torch.inf))


MODEL = Chooser
