"""Sampling from the model's distribution: K answers of each instance."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.search import Search
from ptrnet.decoding.settings import SampleSettings
from ptrnet.decoding.steps import Hypotheses, Selection
from ptrnet.masks import gather_rows, gather_tokens, length_mask

# Random numbers are counter-based, as Philox's: each is a hash of the seed, the instance, the
# sample, the step and the token, and no state advances. Sample k of seed s has the counter
# s * SEED_STRIDE + k: a seed has 65,537 of its own. Token j of step t has t * STEP_STRIDE + j: a
# step has a million.
SEED_STRIDE, STEP_STRIDE = 0x10001, 0x100003


@dataclass(frozen=True)
class Sample(SampleSettings, Search):
    """Draws `size` answers of each instance, token by token, from `p^(1/temperature)`.

    With a seed, what is drawn depends on it and on the instance alone: not on its batch, its
    padding or the device. An instance that occurs twice gets the same answers twice.

    Args:
        size: answers of an instance, K.
        temperature: above 0; near 0 it is as greedy decoding, at 1 p is the model's own.
        seed: of the random numbers: the same call draws the same answers again. None: each call
            draws anew, from torch's generator.
    """

    name = "sample"

    @property
    def is_repeatable(self) -> bool:
        return self.seed is not None

    def selector(self, inputs: Tensor, lengths: Tensor) -> "GumbelSelector":
        samples = torch.arange(self.size, device=inputs.device)
        seed = int(torch.randint(2**62, ())) if self.seed is None else self.seed
        keys = splitmix64(samples + (seed * SEED_STRIDE) % 2**62)
        return GumbelSelector(
            splitmix64(hash_instance(inputs, lengths)[:, None] ^ keys), self.temperature
        )


class GumbelSelector:
    """Draws each prefix's next token by the Gumbel-max trick.

    The argmax of log-probabilities with Gumbel noise added is a draw from their softmax.

    Args:
        keys: `(B, K)` int64, one for each sample. The random number for a token at a step is a
            hash of the key, the step and the token.
        temperature: log-probabilities are divided by it.
    """

    def __init__(self, keys: Tensor, temperature: float) -> None:
        self._keys, self._temperature = keys, temperature

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        """Extends each prefix by one drawn token; at the first step, the empty prefix K times.

        See `Selector.select`.
        """
        batch, prefixes, num_tokens = log_probs.shape
        size = self._keys.shape[1]
        parents = torch.arange(size, device=scores.device).clamp(max=prefixes - 1)
        parents = parents.expand(batch, -1)
        log_probs = log_probs.expand(-1, size, -1)
        counters = torch.arange(num_tokens, device=scores.device) + (step + 1) * STEP_STRIDE
        noise = gumbel_noise(splitmix64(self._keys[..., None] ^ splitmix64(counters)))
        # 0 for the likeliest token, so that one is finite at the lowest temperature too.
        relative = log_probs.double() - log_probs.amax(-1, keepdim=True)
        tokens = (relative / self._temperature + noise).argmax(-1)
        token_log_probs = gather_tokens(log_probs, tokens)
        return Selection(scores.gather(1, parents) + token_log_probs, parents, tokens)

    def is_finished(self, ended: Tensor) -> Tensor:
        """Whether all samples have ended."""
        return ended.all()

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """All samples, the likeliest first."""
        tokens, lengths, log_probs = hypotheses
        order = log_probs.argsort(dim=1, descending=True, stable=True)
        return Hypotheses(
            gather_rows(tokens, order), lengths.gather(1, order), log_probs.gather(1, order)
        )


def hash_instance(inputs: Tensor, lengths: Tensor) -> Tensor:
    """`(B,)` int64: a hash of each instance of `(B, N, d)` inputs, as float32, without padding."""
    bits = inputs.float().contiguous().view(torch.int32).long()
    counters = torch.arange(bits[0].numel(), device=bits.device).view(bits.shape[1:])
    real = length_mask(lengths, bits.shape[1])[..., None]
    return torch.where(real, splitmix64(bits ^ splitmix64(counters)), 0).sum((1, 2))


def splitmix64(x: Tensor) -> Tensor:
    """SplitMix64's hash of each int64 (Steele, Lea, Flood 2014): every bit depends on every bit."""
    x = (x ^ _unsigned_shift(x, 30)) * -4658895280553007687  # 0xBF58476D1CE4E5B9, signed
    x = (x ^ _unsigned_shift(x, 27)) * -7723592293110705685  # 0x94D049BB133111EB, signed
    return x ^ _unsigned_shift(x, 31)


def gumbel_noise(bits: Tensor) -> Tensor:
    """Draws from the standard Gumbel distribution, float64: one from the bits of each int64."""
    uniform = (_unsigned_shift(bits, 11).double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def _unsigned_shift(x: Tensor, bits: int) -> Tensor:
    """`x >> bits` of int64 taken as unsigned: zeros come in from the left."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
