"""Training without answers: the model learns from the costs of answers that it samples.

Both losses also teach the model which tokens are allowed. Samples alone would not, because they are
drawn under the constraint, which hides the probability that the model gives to forbidden tokens.
Beam search ranks prefixes by the model's own log-probabilities, so probability that is wasted on
forbidden tokens would distort its ranking.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.data.dataset import Dataset
from ptrnet.data.random_streams import VALID
from ptrnet.data.streams import FreshInstances, KnownInstances, instance_batch
from ptrnet.decoding import Decoder, Greedy, Sample
from ptrnet.decoding.log_probs import SequenceLogProbs, sequence_log_probs
from ptrnet.errors import InputError
from ptrnet.files import checksum
from ptrnet.masks import gather_rows
from ptrnet.models.base import PointerModel
from ptrnet.tasks.base import Task
from ptrnet.training.examples import TrainingExamples
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.types import END, Example, Floats, Indices, InstanceBatch

# (instance `(n, d)`, K answers) -> `(K,)` costs; lower is better.
Costs = Callable[[Floats, Sequence[Indices]], Floats]


class Samples(NamedTuple):
    """K answers to each of B instances, and their costs."""

    tokens: Tensor  # (B, K, M), ended by END and padded with END
    lengths: Tensor  # (B, K) number of tokens, including END
    costs: Tensor  # (B, K) float32

    def cheapest(self) -> "Samples":
        """Return only the cheapest answer to each instance, so K = 1."""
        best = self.costs.argmin(1, keepdim=True)
        return Samples(
            gather_rows(self.tokens, best), self.lengths.gather(1, best), self.costs.gather(1, best)
        )


class Sampler:
    """Decodes answers under the task's constraint, and computes their costs.

    Args:
        model: the network.
        task: the task of the instances.
        costs: computes costs. It gets the elements of an instance in the order in which the model
            reads them.
    """

    def __init__(self, model: PointerModel, task: Task, costs: Costs) -> None:
        self.model, self.task, self.costs = model, task, costs
        self.constraint = task.build_constraint()

    def sample(self, batch: InstanceBatch, size: int, seed: int) -> Samples:
        """Draw `size` answers to each instance from the model's distribution."""
        return self._decode(batch, Sample(size, seed=seed))

    def greedy_costs(self, batch: InstanceBatch) -> Tensor:
        """Return the costs `(B,)` of the greedy answers."""
        return self._decode(batch, Greedy()).costs[:, 0]

    def log_probs(self, batch: InstanceBatch, samples: Samples) -> SequenceLogProbs:
        """Return the log-probability of each sample, with and without the constraint."""
        inputs, lengths = batch[:2]
        return sequence_log_probs(
            self.model,
            inputs,
            lengths,
            samples.tokens,
            samples.lengths,
            self._max_lengths(lengths),
            self.constraint,
        )

    def _decode(self, batch: InstanceBatch, decoder: Decoder) -> Samples:
        lengths = batch.lengths
        tokens, answer_lengths, _ = decoder.decode(
            self.model, batch.inputs, lengths, self._max_lengths(lengths), self.constraint
        )
        if tokens.shape[2] == int(answer_lengths.max()):  # at least one answer has no room for END
            tokens = torch.nn.functional.pad(tokens, (0, 1), value=END)
        costs = torch.from_numpy(self._costs(batch, tokens, answer_lengths))
        return Samples(tokens, answer_lengths + 1, costs.to(tokens.device, torch.float32))

    def _costs(self, batch: InstanceBatch, tokens: Tensor, lengths: Tensor) -> Floats:
        """Return the costs `(B, K)` of the answers. Raises InputError if one is not finite."""
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

    def _max_lengths(self, lengths: Tensor) -> Tensor:
        """Return the maximum number of tokens of an answer to each instance, without END."""
        most = [self.task.max_length(n) for n in lengths.tolist()]
        return torch.tensor(most, device=lengths.device)


def self_labelling_loss(log_probs: SequenceLogProbs, cheapest: Samples) -> Tensor:
    """Mean negative log-likelihood per token of the cheapest sample of each instance.

    Self-labelling takes the model's own best answer as the true one (Corsini et al. 2024).

    Args:
        log_probs: log-probabilities of `cheapest`, `(B, 1)` each.
        cheapest: the cheapest of the samples that the current model drew.
    """
    return -log_probs.unconstrained.sum() / cheapest.lengths.sum()


def reinforce_loss(log_probs: SequenceLogProbs, samples: Samples, baseline: Tensor) -> Tensor:
    """REINFORCE (Williams 1992), as the mean over tokens of `advantage * log p - log a`.

    The advantage is `cost - baseline`, divided by its root mean square over the batch, so that the
    unit of the costs does not matter. The gradient of the first term is proportional to an estimate
    of the gradient of the mean cost. In the second term, a is the probability that the model gives
    to allowed tokens, multiplied over the tokens of the sample.

    Args:
        log_probs: log-probabilities of `samples`, `(B, K)` each.
        samples: samples that the current model drew.
        baseline: the cost that each sample is compared with, broadcast to `(B, K)`.
    """
    advantages = samples.costs - baseline
    scale = advantages.square().mean().sqrt()
    advantages = torch.where(scale > 0, advantages / scale, 0)
    allowed = log_probs.unconstrained - log_probs.constrained
    return (advantages * log_probs.constrained - allowed).sum() / samples.lengths.sum()


def mean_of_others(costs: Tensor) -> Tensor:
    """Mean cost `(B, K)` of the other samples of the same instance (Kool et al. 2019)."""
    return (costs.sum(1, keepdim=True) - costs) / (costs.shape[1] - 1)


SEED_STRIDE = 2**32  # above any number of steps, so that no two seeds share samples


class CostModule(TrainingModule):
    """Samples answers and makes the cheaper ones more likely. Validates by the mean greedy cost."""

    def __init__(self, model: PointerModel, recipe: Recipe, task: Task, costs: Costs) -> None:
        super().__init__(model, recipe)
        self.sampler = Sampler(model, task, costs)

    def training_step(self, batch: InstanceBatch, index: int) -> dict[str, Tensor]:  # type: ignore[override]
        seed = self.recipe.seed * SEED_STRIDE + self.global_step
        samples = self.sampler.sample(batch, self.recipe.samples, seed)
        return {"loss": self._loss(batch, samples), "cost": samples.costs.mean()}

    def _loss(self, batch: InstanceBatch, samples: Samples) -> Tensor:
        if self.recipe.learning == "self-labelling":
            cheapest = samples.cheapest()
            return self_labelling_loss(self.sampler.log_probs(batch, cheapest), cheapest)
        log_probs = self.sampler.log_probs(batch, samples)
        if self.recipe.baseline == "greedy":
            return reinforce_loss(log_probs, samples, self.sampler.greedy_costs(batch)[:, None])
        return reinforce_loss(log_probs, samples, mean_of_others(samples.costs))

    @torch.no_grad()
    def validation_step(self, batch: InstanceBatch, index: int) -> None:  # type: ignore[override]
        costs = self.sampler.greedy_costs(batch)
        self.valid_losses.append(costs)
        values = {"valid_loss": costs.mean(), "valid_cost": costs.mean()}
        self.log_dict(values, batch_size=len(batch.lengths))


class CostProblem(NamedTuple):
    """A user's instances, and the function that computes the costs of answers."""

    instances: Dataset
    costs: Costs


def task_costs(task: Task) -> Costs:
    """Return the task's own cost function.

    Raises:
        InputError: the task has no costs.
    """
    if not task.has_costs:
        raise InputError(
            f"task {task.name} has no cost of its own: ptrnet.fit(instances, cost=...) takes one"
        )

    def costs(instance: Floats, answers: Sequence[Indices]) -> Floats:
        known = task.costs(Example(instance), answers)
        assert known is not None
        return known

    return costs


def open_instances(
    recipe: Recipe, task: Task, problem: CostProblem | None, first: int
) -> TrainingExamples:
    """Open the instances of a recipe that learns from costs.

    Args:
        recipe: the recipe of the training.
        task: the task of the instances.
        problem: a user's instances. If None, the task draws fresh ones.
        first: the number of the first batch. It is above 0 if the run is resumed.

    Raises:
        InputError: there is no instance to train on.
    """
    sizes, batch_size = recipe.n, recipe.batch_size
    if problem is None:
        fresh = FreshInstances(task, sizes, batch_size, recipe.seed, first=first)
        valid = FreshInstances(task, sizes, batch_size, recipe.seed, VALID)
        batches = [valid.batch(k) for k in range(recipe.valid_batches)]
        return TrainingExamples(fresh, [], batches)
    data = problem.instances
    content = checksum(data.starts.tobytes() + data.elements.tobytes())
    known = KnownInstances(
        replace(data, fingerprint=f"{task.name}-{content}"),
        task,
        sizes,
        batch_size,
        recipe.seed,
        first=first,
        name="instances",
        valid_share=recipe.valid_share,
        max_valid=recipe.valid_batches * batch_size,
    )
    held_out = sorted((example.inputs for part in known.held_out for example in part), key=len)
    starts = range(0, len(held_out), batch_size)
    batches = [instance_batch(held_out[k : k + batch_size], task) for k in starts]
    return TrainingExamples(known, [], batches)
