"""Training without answers: the model learns from the costs of answers that it samples.

The losses of self-labelling and REINFORCE also teach the model which tokens are allowed. The model
could not learn this from the costs of samples alone. Samples are drawn under the constraint, which
hides the probability that the model gives to forbidden tokens. But beam search ranks prefixes by
the model's probabilities without the constraint. Probability that goes to forbidden tokens makes
this ranking worse.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.nn import functional

from ptrnet.data.batches import Batch
from ptrnet.decoding import Decoder, Greedy, Hypotheses, Sample
from ptrnet.decoding.log_probs import SequenceLogProbs, sequence_log_probs
from ptrnet.errors import InputError
from ptrnet.masks import gather_rows
from ptrnet.models.base import PointerModel
from ptrnet.tasks.base import Task
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.types import END, Example, Floats, Indices
from ptrnet.views import max_lengths_of

# (instance `(n, d)`, K answers) -> `(K,)` costs; lower is better.
Costs = Callable[[Floats, Sequence[Indices]], Floats]


class Sampler:
    """Decodes answers under the task's constraint, and computes the costs of the answers.

    `costs` gets each instance with its elements in the order in which the model reads them.
    """

    def __init__(self, model: PointerModel, task: Task, costs: Costs) -> None:
        self.model, self.task, self.costs = model, task, costs

    def sample(self, batch: Batch, size: int, seed: int) -> tuple[Hypotheses, Tensor]:
        """Draw K = `size` answers to each instance from the model, with costs `(B, K)` float32."""
        return self._decode(batch, Sample(size, seed=seed))

    def greedy_costs(self, batch: Batch) -> Tensor:
        """Return the costs `(B,)` of the greedy answers."""
        return self._decode(batch, Greedy())[1][:, 0]

    def log_probs(self, batch: Batch, samples: Hypotheses) -> SequenceLogProbs:
        """Return the log-probability of each sample, with and without the constraint."""
        inputs, lengths = batch[:2]
        tokens, most = samples.tokens, max_lengths_of(self.task, lengths)
        if tokens.shape[2] == int(samples.lengths.max()):  # some answer has no room for END
            tokens = functional.pad(tokens, (0, 1), value=END)
        return sequence_log_probs(
            self.model, inputs, lengths, tokens, samples.lengths + 1, most, self.task
        )

    def _decode(self, batch: Batch, decoder: Decoder) -> tuple[Hypotheses, Tensor]:
        most = max_lengths_of(self.task, batch.lengths)
        found = decoder.decode(self.model, batch.inputs, batch.lengths, most, self.task)
        # Work around older PyTorch: autocast reuses weights that it has cast without gradients, so
        # the weights would get none (https://github.com/pytorch/pytorch/pull/165068).
        torch.clear_autocast_cache()
        costs = torch.from_numpy(self._costs(batch, found.tokens, found.lengths))
        return found, costs.to(found.tokens.device, torch.float32)

    def _costs(self, batch: Batch, tokens: Tensor, lengths: Tensor) -> Floats:
        """Return the costs `(B, K)` of the answers. Raises InputError if a cost is not finite."""
        costs = np.empty(lengths.shape)
        rows = zip(batch.instances, tokens.cpu().numpy(), lengths.tolist(), strict=True)
        for b, (instance, answers, sizes) in enumerate(rows):
            outputs = [
                self.task.from_tokens(answer[:size])
                for answer, size in zip(answers, sizes, strict=True)
            ]
            costs[b] = self.costs(instance, outputs)
            if not np.isfinite(costs[b]).all():
                k = int(np.argmin(np.isfinite(costs[b])))
                raise InputError(
                    f"cost: expected a finite number, got {costs[b, k]} for the answer "
                    f"{outputs[k].tolist()} to an instance of {len(instance)} elements"
                )
        return costs


def self_labelling_loss(log_probs: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean negative log-likelihood per token of the cheapest answers.

    Self-labelling takes the model's cheapest sample as the true answer (Corsini et al. 2024).

    Args:
        log_probs: `(B, 1)` log-probabilities of the cheapest answers, without the constraint.
        lengths: `(B, 1)` number of tokens of the cheapest answers, including END.
    """
    return -log_probs.sum() / lengths.sum()


def cheapest(samples: Hypotheses, costs: Tensor) -> Hypotheses:
    """Return only the answer to each instance with the lowest of its costs `(B, K)`."""
    best = costs.argmin(1, keepdim=True)
    return Hypotheses(*(gather_rows(part, best) for part in samples))


def reinforce_loss(
    log_probs: SequenceLogProbs, lengths: Tensor, costs: Tensor, baseline: Tensor
) -> Tensor:
    """Return the loss of REINFORCE (Williams 1992).

    The loss is the sum of `advantage * log p - log a` over the samples, divided by the number of
    tokens in all samples:

    - p is the probability of a sample under the constraint. The gradient of the first term
      estimates the gradient of the mean cost, up to a factor.
    - The advantage is `cost - baseline`, divided by its root mean square over the batch, so that
      the unit of the costs does not matter.
    - At each step of a sample, add up the probabilities that the model gives to the allowed tokens.
      a is the product of these sums over all steps of the sample. The second term brings this
      product closer to 1, so the model learns which tokens are allowed.

    Args:
        log_probs: log-probabilities of samples that the current model drew, `(B, K)` each.
        lengths: `(B, K)` number of tokens of the samples, including END.
        costs: `(B, K)` costs of the samples.
        baseline: costs to compare the samples' costs with. The shape broadcasts to `(B, K)`.
    """
    advantages = costs - baseline
    scale = advantages.square().mean().sqrt()
    advantages = torch.where(scale > 0, advantages / scale, 0)
    allowed = log_probs.unconstrained - log_probs.constrained
    return (advantages * log_probs.constrained - allowed).sum() / lengths.sum()


def mean_of_others(costs: Tensor) -> Tensor:
    """Return `(B, K)`: for each sample, the mean cost of all other samples of its instance.

    This is the baseline of Kool et al. (2019).
    """
    return (costs.sum(1, keepdim=True) - costs) / (costs.shape[1] - 1)


SEED_STRIDE = 2**32  # above any number of steps, so that different seeds draw different samples


class CostModule(TrainingModule):
    """Samples answers and makes those more likely that are cheaper by `costs`.

    The validation loss is the mean cost of greedy answers.
    """

    def __init__(self, model: PointerModel, recipe: Recipe, fabric: Fabric, costs: Costs) -> None:
        super().__init__(model, recipe, fabric)
        self.sampler = Sampler(model, recipe.task, costs)

    def forward(self, batch: Batch, step: int) -> dict[str, Tensor]:
        """Return the loss of a training batch after `step` steps, and the mean cost of samples."""
        seed = self.recipe.run.seed * SEED_STRIDE + step
        samples, costs = self.sampler.sample(batch, self.recipe.objective.samples, seed)
        if self.recipe.objective.learning == "self-labelling":
            best = cheapest(samples, costs)
            of_best = self.sampler.log_probs(batch, best).unconstrained
            loss = self_labelling_loss(of_best, best.lengths + 1)
        else:
            baseline = mean_of_others(costs)
            if self.recipe.objective.baseline == "greedy":
                baseline = self.sampler.greedy_costs(batch)[:, None]
            log_probs = self.sampler.log_probs(batch, samples)
            loss = reinforce_loss(log_probs, samples.lengths + 1, costs, baseline)
        return {"loss": loss, "cost": costs.mean()}

    def validate(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor | float]]:
        """Return the costs `(B,)` of greedy answers, and their mean."""
        costs = self.sampler.greedy_costs(batch)
        return costs, {"loss": costs.mean(), "cost": costs.mean()}


def task_costs(task: Task) -> Costs:
    """Return the cost function that the task defines.

    Raises:
        InputError: the task has no costs.
    """
    if not task.facts.has_costs:
        raise InputError(
            f"task {task.name} has no cost of its own: ptrnet.fit(instances, cost=...) takes one"
        )

    def costs(instance: Floats, answers: Sequence[Indices]) -> Floats:
        known = task.costs(Example(instance), answers)
        assert known is not None
        return known

    return costs
