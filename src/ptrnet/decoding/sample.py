"""Sampling from the model's distribution; the best of the answers is taken by who asked."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.search import Choice, Hypotheses, Search
from ptrnet.errors import InputError


@dataclass(frozen=True)
class Sample(Search):
    """Draws `size` answers of each instance, token by token, from `p^(1/temperature)`.

    What is drawn depends on the seed and on the instance alone: not on its batch, its padding or
    the device. An instance that stands twice gets the same answers twice.

    Args:
        size: answers of an instance.
        temperature: above 0; near 0 is greedy, 1 the model's own distribution.
        seed: of the draws.
    """

    size: int = 16
    temperature: float = 1.0
    seed: int = 0

    name = "sample"

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or self.size < 1:
            raise InputError(f"samples: expected a whole number of 1 or more, got {self.size!r}")
        if not 0 < self.temperature < math.inf:
            raise InputError(f"temperature: expected a number above 0, got {self.temperature!r}")

    def choice(self, inputs: Tensor, lengths: Tensor) -> Choice:
        streams = torch.arange(self.size, device=inputs.device) + (self.seed * 0x10001) % 2**62
        draws = splitmix64(hash_instance(inputs, lengths)[:, None] ^ splitmix64(streams))  # (B, K)
        steps = 0

        def draw(scores: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            nonlocal steps
            steps += 1
            batch, prefixes, tokens = log_probs.shape
            parents = torch.arange(self.size, device=scores.device).clamp(max=prefixes - 1)
            parents = parents.expand(batch, -1)
            likely = log_probs.expand(-1, self.size, -1)
            counted = torch.arange(tokens, device=scores.device) + steps * 0x100003
            # Gumbel's noise on log-probabilities: the largest is a draw from the softmax.
            noise = _gumbel(splitmix64(draws[..., None] ^ splitmix64(counted)))
            likelier = likely.double() - likely.amax(-1, keepdim=True)  # 0 for the likeliest
            last = (likelier / self.temperature + noise).argmax(-1)
            gained = likely.gather(2, last[..., None])[..., 0]
            return scores.gather(1, parents) + gained, parents, last

        return draw

    def is_finished(self, done: Tensor) -> bool:
        return bool(done.all())

    def finalize(self, found: Hypotheses) -> Hypotheses:
        order = found.log_probs.argsort(dim=1, descending=True, stable=True)
        tokens = found.tokens.gather(1, order[..., None].expand_as(found.tokens))
        return Hypotheses(tokens, found.lengths.gather(1, order), found.log_probs.gather(1, order))


def hash_instance(inputs: Tensor, lengths: Tensor) -> Tensor:
    """`(B,)` int64: a number for each instance, made of its coordinates without padding."""
    bits = inputs.float().contiguous().view(torch.int32).long()
    places = torch.arange(bits[0].numel(), device=bits.device).view(bits.shape[1:])
    real = torch.arange(bits.shape[1], device=bits.device) < lengths[:, None]
    return torch.where(real[..., None], splitmix64(bits ^ splitmix64(places)), 0).sum((1, 2))


def splitmix64(x: Tensor) -> Tensor:
    """SplitMix64's finaliser (Steele, Lea, Flood 2014): every bit depends on every bit."""
    x = (x ^ _shifted(x, 30)) * -4658895280553007687
    x = (x ^ _shifted(x, 27)) * -7723592293110705685
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, by: int) -> Tensor:
    """To the right, filled with zeros, as of an unsigned number."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _gumbel(bits: Tensor) -> Tensor:
    uniform = (_shifted(bits, 11).double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))
