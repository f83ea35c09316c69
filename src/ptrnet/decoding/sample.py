"""Sampling: draw K answers to each instance from the model's distribution."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ptrnet.decoding.options import SampleSettings
from ptrnet.decoding.search import Hypotheses, Search, Selection
from ptrnet.masks import gather_rows, gather_tokens, length_mask

# The random numbers are counter-based, as in Philox: each number is a hash of the seed, the
# instance, the sample, the step and the token. There is no state, so the order of the draws does
# not matter.
# Sample k of seed s has the counter s * SEED_STRIDE + k, so counters of neighbouring seeds differ
# for up to 65,537 samples. Token j of step t = 1, 2, ... has the counter t * STEP_STRIDE + j, so
# counters of neighbouring steps differ for up to a million tokens.
SEED_STRIDE, STEP_STRIDE = 0x10001, 0x100003


@dataclass(frozen=True)
class Sample(SampleSettings, Search):
    """Draw `size` answers to each instance, token by token, from `p^(1/temperature)`.

    p is the model's distribution of the next token. With a seed, the random numbers depend on the
    seed and the instance alone, and not on the batch, the padding or the device. So two equal
    instances get the same answers.

    Args:
        size: number of answers to each instance, K.
        temperature: above 0. Near 0, sampling equals greedy decoding. At 1, draws are from p.
        seed: seed of the random numbers. With a seed, the same call draws the same answers again.
            None: each call draws a new seed from torch's generator.

    Examples:
        >>> tour = ptrnet.load("tsp").solve(points, ptrnet.Sample(100, seed=1))  # the shortest
    """

    name = "sample"

    def selector(self, inputs: Tensor, lengths: Tensor) -> "GumbelSelector":
        samples = torch.arange(self.size, device=inputs.device)
        seed = int(torch.randint(2**62, (), device="cpu")) if self.seed is None else self.seed
        keys = splitmix64(samples + (seed * SEED_STRIDE) % 2**62)
        return GumbelSelector(
            splitmix64(hash_instance(inputs, lengths)[:, None] ^ keys), self.temperature
        )


class GumbelSelector:
    """Draw each prefix's next token by the Gumbel-max trick.

    If independent Gumbel noise is added to log-probabilities, the argmax of the sums is a draw from
    the distribution (Gumbel 1954).

    Args:
        keys: `(B, K)` int64, a key for each sample. The random number for a token at a step is a
            hash of the key, the step and the token.
        temperature: the divisor of the log-probabilities.
    """

    def __init__(self, keys: Tensor, temperature: float) -> None:
        self._keys, self._temperature = keys, temperature

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        """Extend each prefix by one drawn token.

        At the first step, extend the empty prefix K times. See `Selector.select`.
        """
        batch, prefixes, num_tokens = log_probs.shape
        size = self._keys.shape[1]
        parents = torch.arange(size, device=scores.device).clamp(max=prefixes - 1)
        parents = parents.expand(batch, -1)
        log_probs = log_probs.expand(-1, size, -1)
        counters = torch.arange(num_tokens, device=scores.device) + (step + 1) * STEP_STRIDE
        noise = gumbel_noise(splitmix64(self._keys[..., None] ^ splitmix64(counters)))
        # Shift log-probabilities so that the highest is 0. Otherwise, division by a temperature
        # near 0 could make all of them -inf.
        relative = log_probs.double() - log_probs.amax(-1, keepdim=True)
        tokens = (relative / self._temperature + noise).argmax(-1)
        token_log_probs = gather_tokens(log_probs, tokens)
        return Selection(scores.gather(1, parents) + token_log_probs, parents, tokens)

    def is_finished(self, tokens: Tensor) -> bool:
        """Whether all samples have ended."""
        return not tokens.any()  # END is 0

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """Return all samples, the likeliest first."""
        tokens, lengths, log_probs = hypotheses
        order = log_probs.argsort(dim=1, descending=True, stable=True)
        return Hypotheses(
            gather_rows(tokens, order), lengths.gather(1, order), log_probs.gather(1, order)
        )


def hash_instance(inputs: Tensor, lengths: Tensor) -> Tensor:
    """Return `(B,)` int64 hashes of instances `(B, N, d)`, which ignore the padding."""
    # Models compute in float32 by default, so instances that are equal in float32 get equal hashes.
    bits = inputs.float().contiguous().view(torch.int32).long()
    counters = torch.arange(bits[0].numel(), device=bits.device).view(bits.shape[1:])
    real = length_mask(lengths, bits.shape[1])[..., None]
    return torch.where(real, splitmix64(bits ^ splitmix64(counters)), 0).sum((1, 2))


def splitmix64(x: Tensor) -> Tensor:
    """Hash each int64 by the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ _unsigned_shift(x, 30)) * -4658895280553007687  # 0xBF58476D1CE4E5B9, signed
    x = (x ^ _unsigned_shift(x, 27)) * -7723592293110705685  # 0x94D049BB133111EB, signed
    return x ^ _unsigned_shift(x, 31)


def gumbel_noise(bits: Tensor) -> Tensor:
    """Turn each int64 of random bits into a float64 draw from the standard Gumbel distribution."""
    # A float64 holds 53 bits. Adding a half keeps the uniform number above 0.
    uniform = (_unsigned_shift(bits, 11).double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def _unsigned_shift(x: Tensor, bits: int) -> Tensor:
    """Shift int64 right as if it were unsigned: zeros come in from the left."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
