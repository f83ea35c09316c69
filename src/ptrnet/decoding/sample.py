"""Sampling from the model's distribution. The solver takes the best of an instance's samples."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.search import Hypotheses, Search, Selection
from ptrnet.errors import InputError
from ptrnet.masks import length_mask

# What random numbers are counted by: far enough apart for 65,537 samples with one seed, and for
# a million tokens at one step.
SEED_STRIDE, STEP_STRIDE = 0x10001, 0x100003


@dataclass(frozen=True)
class Sample(Search):
    """Draws `size` answers of each instance, token by token, from `p^(1/temperature)`.

    What is drawn depends on the seed and on the instance alone: not on its batch, its padding or
    the device. An instance that stands twice gets the same answers twice.

    Args:
        size: answers of an instance, K.
        temperature: above 0; near 0 is greedy, 1 the model's own distribution.
        seed: of the random numbers.
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

    def selector(self, inputs: Tensor, lengths: Tensor) -> "GumbelSelector":
        samples = torch.arange(self.size, device=inputs.device)
        keys = splitmix64(samples + (self.seed * SEED_STRIDE) % 2**62)
        return GumbelSelector(
            splitmix64(hash_instance(inputs, lengths)[:, None] ^ keys), self.temperature
        )

    def is_finished(self, ended: Tensor) -> bool:
        return bool(ended.all())

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        tokens, lengths, log_probs = hypotheses
        order = log_probs.argsort(dim=1, descending=True, stable=True)
        tokens = tokens.gather(1, order[..., None].expand_as(tokens))
        return Hypotheses(tokens, lengths.gather(1, order), log_probs.gather(1, order))


class GumbelSelector:
    """Draws each prefix's next token by the Gumbel-max trick.

    The argmax of log-probabilities with Gumbel noise added is a draw from their softmax.

    Args:
        keys: `(B, K)` int64, one of each sample; together with the step and the token they
            make the random numbers.
        temperature: what log-probabilities are divided by.
    """

    def __init__(self, keys: Tensor, temperature: float) -> None:
        self._keys, self._temperature = keys, temperature
        self._step = 0

    def select(self, scores: Tensor, log_probs: Tensor) -> Selection:
        """Each prefix with a token drawn for it; at first, K times the empty one."""
        self._step += 1
        batch, prefixes, num_tokens = log_probs.shape
        size = self._keys.shape[1]
        parents = torch.arange(size, device=scores.device).clamp(max=prefixes - 1)
        parents = parents.expand(batch, -1)
        log_probs = log_probs.expand(-1, size, -1)
        counters = torch.arange(num_tokens, device=scores.device) + self._step * STEP_STRIDE
        noise = gumbel_noise(splitmix64(self._keys[..., None] ^ splitmix64(counters)))
        relative = log_probs.double() - log_probs.amax(-1, keepdim=True)  # 0 for the likeliest
        tokens = (relative / self._temperature + noise).argmax(-1)
        gained = log_probs.gather(2, tokens[..., None])[..., 0]
        return Selection(scores.gather(1, parents) + gained, parents, tokens)


def hash_instance(inputs: Tensor, lengths: Tensor) -> Tensor:
    """`(B,)` int64: a number for each instance, made of its coordinates without padding."""
    bits = inputs.float().contiguous().view(torch.int32).long()
    counters = torch.arange(bits[0].numel(), device=bits.device).view(bits.shape[1:])
    real = length_mask(lengths, bits.shape[1])[..., None]
    return torch.where(real, splitmix64(bits ^ splitmix64(counters)), 0).sum((1, 2))


def splitmix64(x: Tensor) -> Tensor:
    """SplitMix64's finaliser (Steele, Lea, Flood 2014): every bit depends on every bit."""
    x = (x ^ _unsigned_shift(x, 30)) * -4658895280553007687
    x = (x ^ _unsigned_shift(x, 27)) * -7723592293110705685
    return x ^ _unsigned_shift(x, 31)


def gumbel_noise(bits: Tensor) -> Tensor:
    """Draws from the standard Gumbel distribution, in float64, of 64 random bits each."""
    uniform = (_unsigned_shift(bits, 11).double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def _unsigned_shift(x: Tensor, bits: int) -> Tensor:
    """`x >> bits` of int64 read as unsigned: zeros come in from the left."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
