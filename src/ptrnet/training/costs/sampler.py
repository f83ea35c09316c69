"""A model's own answers to a batch of instances, and what they cost. No Lightning here."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptrnet.decoding import Decoder, Greedy, Sample
from ptrnet.decoding.log_probs import SequenceLogProbs, sequence_log_probs
from ptrnet.errors import InputError
from ptrnet.masks import gather_rows
from ptrnet.models.base import PointerModel
from ptrnet.tasks.base import Task
from ptrnet.types import END, Floats, Indices, InstanceBatch

# What each of several answers to one instance `(n, d)` costs; less is better.
Costs = Callable[[Floats, Sequence[Indices]], Floats]


class Samples(NamedTuple):
    """K answers to each of B instances, and their costs."""

    tokens: Tensor  # (B, K, M), closed by END and padded with it
    lengths: Tensor  # (B, K) tokens, END included
    costs: Tensor  # (B, K) float32

    def cheapest(self) -> "Samples":
        """The cheapest answer to each instance alone: K = 1."""
        best = self.costs.argmin(1, keepdim=True)
        return Samples(
            gather_rows(self.tokens, best), self.lengths.gather(1, best), self.costs.gather(1, best)
        )


class Sampler:
    """Answers instances under the task's constraint, and asks for the costs of the answers.

    Args:
        model: the network.
        task: of the instances.
        costs: of answers to an instance, whose elements stand as the model reads them.
    """

    def __init__(self, model: PointerModel, task: Task, costs: Costs) -> None:
        self.model, self.task, self.costs = model, task, costs
        self.constraint = task.build_constraint()

    def sample(self, batch: InstanceBatch, size: int, seed: int) -> Samples:
        """`size` answers to each instance, drawn from the model's distribution."""
        return self._decode(batch, Sample(size, seed=seed))

    def greedy_costs(self, batch: InstanceBatch) -> Tensor:
        """`(B,)` costs of the answers by greedy decoding."""
        return self._decode(batch, Greedy()).costs[:, 0]

    def log_probs(self, batch: InstanceBatch, samples: Samples) -> SequenceLogProbs:
        """Log p of each sample under the constraint, from which it was drawn, and without it."""
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
        if tokens.shape[2] == int(answer_lengths.max()):  # one at least has no END
            tokens = torch.nn.functional.pad(tokens, (0, 1), value=END)
        costs = torch.from_numpy(self._costs(batch, tokens, answer_lengths))
        return Samples(tokens, answer_lengths + 1, costs.to(tokens.device, torch.float32))

    def _costs(self, batch: InstanceBatch, tokens: Tensor, lengths: Tensor) -> Floats:
        """`(B, K)` costs of the answers. Raises InputError for one that is no finite number."""
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
        """`(R,)` the most tokens, END left out, that answers to so many elements have."""
        most = [self.task.max_length(n) for n in lengths.tolist()]
        return torch.tensor(most, device=lengths.device)
