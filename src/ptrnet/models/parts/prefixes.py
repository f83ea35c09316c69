"""The state of prefixes for networks: the elements that they begin and end with."""

from typing import NamedTuple

import torch
from torch import Tensor


class PrefixEnds(NamedTuple):
    """The elements that prefixes begin and end with, as tokens `(B, K)`; 0 where none is."""

    first: Tensor
    previous: Tensor  # the last but one
    last: Tensor

    @classmethod
    def empty(cls, tokens: Tensor) -> "PrefixEnds":
        """The ends of empty prefixes, of as many as there are `(B, K)` tokens."""
        return cls(*[torch.zeros_like(tokens)] * 3)

    def append(self, tokens: Tensor, num_specials: int) -> "PrefixEnds":
        """The ends after one more token `(B, K)` of each prefix; special slots are no elements."""
        is_element = tokens >= num_specials
        return PrefixEnds(
            torch.where(is_element & (self.first == 0), tokens, self.first),
            torch.where(is_element, self.last, self.previous),
            torch.where(is_element, tokens, self.last),
        )
