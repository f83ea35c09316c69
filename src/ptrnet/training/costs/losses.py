"""What is learned from samples and their costs. No Lightning here.

Both losses also teach the model what is allowed. Samples alone would not: they are drawn under the
constraint, which hides what the model would give to forbidden tokens. But a beam ranks prefixes
by log-probabilities of the model itself, and what is wasted on those tokens ranks them wrong.
"""

import torch
from torch import Tensor

from ptrnet.decoding.log_probs import SequenceLogProbs
from ptrnet.training.costs.sampler import Samples


def self_labelling_loss(log_probs: SequenceLogProbs, cheapest: Samples) -> Tensor:
    """The mean negative log-likelihood of a token of the cheapest sample of each instance.

    The model's own best answer is taken as the true one (self-labelling: Corsini et al. 2024).

    Args:
        log_probs: `(B, 1)` each, of these samples.
        cheapest: of all samples of the model as it is now.
    """
    return -log_probs.unconstrained.sum() / cheapest.lengths.sum()


def reinforce_loss(log_probs: SequenceLogProbs, samples: Samples, baseline: Tensor) -> Tensor:
    """The mean over tokens of `(cost - baseline) log p - log a`, a being the share that is allowed.

    The gradient of the first term is that of the mean cost.

    That is REINFORCE (Williams 1992). The advantages `cost - baseline` are divided by their
    standard deviation over the batch, so that the unit of the costs does not matter.

    Args:
        log_probs: `(B, K)` each, of the samples.
        samples: of the model as it is now.
        baseline: what each sample's cost is compared with; broadcast to `(B, K)`.
    """
    advantages = samples.costs - baseline
    scale = advantages.square().mean().sqrt()
    advantages = torch.where(scale > 0, advantages / scale, 0)
    allowed = log_probs.unconstrained - log_probs.constrained
    return (advantages * log_probs.constrained - allowed).sum() / samples.lengths.sum()


def mean_of_others(costs: Tensor) -> Tensor:
    """`(B, K)`: the mean cost of the other samples of the same instance (Kool et al. 2019)."""
    return (costs.sum(1, keepdim=True) - costs) / (costs.shape[1] - 1)
