"""A trained model together with its task: from raw instances to answers."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from ptrnet import hub, model_files
from ptrnet.constraints import Constraint, Free
from ptrnet.data import checks
from ptrnet.data.batches import batch_of, near_sizes
from ptrnet.data.padding import pad_answers, pad_instances
from ptrnet.data.symmetries import view
from ptrnet.decoding import Decoder, Greedy
from ptrnet.errors import InputError
from ptrnet.models.base import PointerModel
from ptrnet.tasks.base import Task
from ptrnet.types import Batch, Example, Floats, Indices
from ptrnet.votes import Candidate, best, canonical

# What is decoded at a time: elements, padding and beams included. 64 MB of keys at 256 units.
ELEMENTS_AT_ONCE = 65_536
# What an element may hold of the scores of known answers, as much as its states: 64 MB again.
SCORES_AN_ELEMENT = 256
# Examples that are read before the first is answered, so that sizes near each other meet.
WINDOW = 4096


class Solver:
    """Answers instances of one task with one trained network.

    Args:
        model: the network.
        task: what it was trained for, with its settings.
        trained: facts about the training, kept in the model's files.
    """

    def __init__(
        self, model: PointerModel, task: Task, trained: dict[str, Any] | None = None
    ) -> None:
        self.model, self.task, self.trained = model.eval(), task, trained or {}

    def solve(
        self,
        instances: np.ndarray | Sequence[ArrayLike],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> Any:
        """The answer to one instance, or to each of a list.

        Args:
            instances: an array `(n, d)`, or a list of such (an array `(B, n, d)` counts as one).
                Numbers outside the unit square are moved into it by one shift and one scale; of
                a user's own task each feature is scaled as it was learned.
            decoder: `ptrnet.Greedy()` when None; `ptrnet.Beam(8)` searches wider.
            constrained: whether only what the task allows as an answer is considered.
            augment: how many looks at an instance are answered, turned, mirrored and shuffled;
                the best answer by the task's measure is given, or the one most likely in all.

        Returns:
            0-based indices, an array; for a list of instances a list of them.

        Raises:
            InputError: an instance that is empty, misshapen, too large or not finite.
        """
        one = isinstance(instances, np.ndarray) and instances.ndim < 3
        examples = [
            Example(checks.instance(instance, self.task, f"instance {k}"))
            for k, instance in enumerate([instances] if one else instances)
        ]
        found = self.answered(examples, decoder, constrained=constrained, augment=augment)
        answers = [e.outputs for e in found]
        return answers[0] if one else answers

    def answered(
        self,
        examples: Iterable[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> Iterator[Example]:
        """The same examples, in their order, with the model's answers and their log-probability."""
        decoder = decoder or Greedy()
        if decoder.for_subsets and not self.task.subset:
            raise InputError(f"{decoder.name} decoding does not serve {self.task.name}")
        if decoder.for_tours and not self.task.circular:
            raise InputError(f"{decoder.name} decoding does not serve {self.task.name}")
        if not isinstance(augment, int) or augment < 1:
            raise InputError(f"augment: expected a whole number of 1 or more, got {augment!r}")
        rule = self.task.rule if constrained else Free(self.task.least)
        rest = iter(examples)
        while window := list(islice(rest, WINDOW)):
            found: dict[int, Candidate] = {}
            sizes = [len(e.inputs) * decoder.size for e in window]
            for places in near_sizes(sizes, ELEMENTS_AT_ONCE):
                instances = [self.task.scaled(window[i].inputs) for i in places]
                views = [self._view(v, instances, decoder, rule) for v in range(augment)]
                for i, *candidates in zip(places, *views, strict=True):
                    found[i] = best(self.task, window[i], list(chain(*candidates)))
            for i, example in enumerate(window):
                yield example._replace(outputs=found[i].outputs, log_prob=found[i].log_prob)

    def _view(
        self, number: int, instances: Sequence[Floats], decoder: Decoder, rule: Constraint
    ) -> list[list[Candidate]]:
        """What the decoder finds for each instance, looked at in the way of that number."""
        shown, orders = zip(*(view(number, self.task, i) for i in instances), strict=True)
        longest = torch.tensor([self.task.longest(len(i)) for i in instances])
        asked = (*pad_instances(shown), longest)
        inputs, lengths, longest = (tensor.to(self._device) for tensor in asked)
        result = decoder.decode(self.model, inputs, lengths, longest, rule)
        rows = zip(
            orders,
            result.tokens.cpu().numpy(),
            result.lengths.tolist(),
            result.log_probs.tolist(),
            strict=True,
        )
        return [
            [
                Candidate(order[self.task.answer(t[:end])], log_prob, number)
                for t, end, log_prob in zip(tokens, ends, log_probs, strict=True)
            ]
            for order, tokens, ends, log_probs in rows
        ]

    @torch.no_grad()
    def log_likelihoods(self, examples: Sequence[Example]) -> Floats:
        """`log p(C | P)` of each example's own answer, in the order the model was trained for."""
        values = np.empty(len(examples))
        counts = [len(e.inputs) for e in examples]
        sizes = [max(n, n * self.task.longest(n) // SCORES_AN_ELEMENT) for n in counts]
        for places in near_sizes(sizes, ELEMENTS_AT_ONCE):
            batch = batch_of([examples[i] for i in places], self.task)
            batch = Batch(*(tensor.to(self._device) for tensor in batch))
            likely = self._likelihoods(batch)
            steps = torch.arange(batch.targets.shape[1], device=self._device)
            real = steps < batch.target_lengths[:, None]
            values[places] = torch.where(real, likely, 0).double().sum(1).cpu().numpy()
        return values

    @torch.no_grad()
    def attention(self, answered: Example) -> tuple[Floats, Indices]:
        """Where the pointer looked for each token of an answer (V 2.3: attention is the answer).

        Returns:
            Probabilities `(M, S + n)`, special slots first, and the tokens `(M,)` that the model
            emits for the answer, END included. Each row is given the tokens before it.
        """
        assert answered.outputs is not None
        seen, order = view(0, self.task, self.task.scaled(answered.inputs))
        place = np.argsort(order)  # of each element in what the model sees
        outputs = place[answered.outputs]
        if self.task.order != "given":
            outputs = canonical(self.task, seen, outputs)
        tokens = self.task.tokens(pad_answers([outputs])).indices[0]
        given = (*pad_instances([seen]), torch.from_numpy(tokens[None]))
        log_probs = self.model.log_probs(*(tensor.to(self._device) for tensor in given))
        slots = np.arange(self.task.specials)
        names, places = (np.append(slots, i + len(slots)) for i in (order, place))
        return log_probs[0].double().exp().cpu().numpy()[:, places], names[tokens]

    def _likelihoods(self, batch: Batch) -> torch.Tensor:
        """`(B, M)` log-probabilities of the targets; for large answers without `(B, M, N)`."""
        rows, steps = batch.targets.shape
        if rows * steps * batch.inputs.shape[1] <= 2 * ELEMENTS_AT_ONCE * SCORES_AN_ELEMENT:
            return self.model.log_probs(*batch).gather(2, batch.targets[..., None])[..., 0]
        encoded = self.model.encode(batch.inputs, batch.lengths)
        state, last = encoded.state, torch.zeros_like(batch.targets[:, :1])
        columns = []
        for step in range(steps):
            target = batch.targets[:, step : step + 1]
            log_probs, state = self.model.step(encoded, state, last)
            columns.append(log_probs[:, 0].gather(1, target))
            last = target
        return torch.cat(columns, 1)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes `config.json` and `model.safetensors`; the folder is made where it is missing."""
        model_files.save(Path(folder), model_files.Saved(self.model, self.task, self.trained))

    @classmethod
    def from_pretrained(cls, name: str | Path) -> Self:
        """The solver that a folder holds, or a repository of the Hugging Face hub.

        Raises:
            ModelError: the files are missing or broken, or the hub has none of that name.
        """
        there = os.path.exists(name)  # noqa: PTH110  Path.exists raises for names that are too long
        folder = Path(name) if there else hub.fetch(str(name))
        return cls(*model_files.load(folder))

    def push_to_hub(self, repository: str, private: bool = False) -> str:
        """Uploads the files to "owner/name" on the Hugging Face hub; gives the address.

        Raises:
            ModelError: the hub refuses, or is not reached.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return hub.push(Path(folder), repository, private)
