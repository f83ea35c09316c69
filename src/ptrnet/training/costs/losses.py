"""What is learned from samples and their costs. No Lightning here."""

import torch
from torch import Tensor

from ptrnet.training.costs.sampler import Samples


def self_labelling_loss(log_probs: Tensor, cheapest: Samples) -> Tensor:
    """The mean negative log-likelihood of a token of the cheapest sample of each instance.

    The model's own best answer is taken as the true one (self-labelling: Corsini et al. 2024).

    Args:
        log_probs: `(B, 1)` of these samples.
        cheapest: of all samples of the model as it is now.
    """
    return -log_probs.sum() / cheapest.lengths.sum()


def reinforce_loss(log_probs: Tensor, samples: Samples, baseline: Tensor) -> Tensor:
    """The mean over tokens of `(cost - baseline) log p`, whose gradient is that of the mean cost.

    That is REINFORCE (Williams 1992). The advantages `cost - baseline` are divided by their
    standard deviation over the batch, so that the unit of the costs does not matter.

    Args:
        log_probs: `(B, K)` of the samples.
        samples: of the model as it is now.
        baseline: what each sample's cost is compared with; broadcast to `(B, K)`.
    """
    advantages = samples.costs - baseline
    scale = advantages.square().mean().sqrt()
    advantages = torch.where(scale > 0, advantages / scale, 0)
    return (advantages * log_probs).sum() / samples.lengths.sum()


def mean_of_others(costs: Tensor) -> Tensor:
    """`(B, K)`: the mean cost of the other samples of the same instance (Kool et al. 2019)."""
    return (costs.sum(1, keepdim=True) - costs) / (costs.shape[1] - 1)
