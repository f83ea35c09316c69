"""A trained model together with its task: from raw instances to answers."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from huggingface_hub import ModelHubMixin, snapshot_download
from numpy.typing import ArrayLike

from ptrnet import model_files
from ptrnet.data import checks
from ptrnet.data.padding import pad_answers, pad_instances
from ptrnet.decoding import Decoder, Greedy
from ptrnet.models import PointerModel
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices

# What is decoded at a time: elements, padding and beams included. 64 MB of keys at 256 units.
ELEMENTS_AT_ONCE = 65_536
# Examples that are read before the first is answered, so that sizes near each other meet.
WINDOW = 4096


class Solver(ModelHubMixin):  # type: ignore[misc]
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
    ) -> Any:
        """The answer to one instance, or to each of a list.

        Args:
            instances: an array `(n, d)`, or a list of such (an array `(B, n, d)` counts as one).
                Numbers outside the unit square are moved into it by one shift and one scale.
            decoder: `ptrnet.Greedy()` when None; `ptrnet.Beam(8)` searches wider.
            constrained: whether only what the task allows as an answer is considered.

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
        answers = [e.outputs for e in self.answered(examples, decoder, constrained=constrained)]
        return answers[0] if one else answers

    def answered(
        self,
        examples: Iterable[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
    ) -> Iterator[Example]:
        """The same examples, in their order, with the model's answers as their outputs."""
        decoder = decoder or Greedy()
        rule = self.task.constraint if constrained else None
        rest = iter(examples)
        while window := list(islice(rest, WINDOW)):
            found: dict[int, Indices] = {}
            for places in _groups([len(e.inputs) * decoder.size for e in window]):
                inputs, lengths = self._padded([window[i] for i in places])
                longest = torch.tensor([self.task.longest(len(window[i].inputs)) for i in places])
                result = decoder.decode(
                    self.model, inputs, lengths, longest.to(inputs.device), rule
                )
                tokens, ends = result.tokens.cpu().numpy(), result.lengths.tolist()
                for i, row, end in zip(places, tokens, ends, strict=True):
                    found[i] = self.task.answer(row[:end])
            for i, example in enumerate(window):
                yield example._replace(outputs=found[i])

    @torch.no_grad()
    def log_likelihoods(self, examples: Sequence[Example]) -> Floats:
        """`log p(C | P)` of each example's own answer, in the order the model was trained for."""
        values = np.empty(len(examples))
        for places in _groups([len(e.inputs) for e in examples]):
            chosen = [examples[i] for i in places]
            inputs, lengths = self._padded(chosen)
            targets, ends = (torch.from_numpy(a).to(inputs.device) for a in self._targets(chosen))
            log_probs = self.model.log_probs(inputs, lengths, targets, ends)
            likely = log_probs.gather(2, targets[..., None])[..., 0]
            real = torch.arange(targets.shape[1], device=inputs.device) < ends[:, None]
            values[places] = torch.where(real, likely, 0).double().sum(1).cpu().numpy()
        return values

    def _targets(self, examples: Sequence[Example]) -> Any:
        ordered = [
            self.task.canonical(e.inputs[None], pad_answers([_known(e)])).rows()[0]
            for e in examples
        ]
        return self.task.tokens(pad_answers(ordered))

    def _padded(self, examples: Sequence[Example]) -> tuple[torch.Tensor, torch.Tensor]:
        device = next(self.model.parameters()).device
        inputs, lengths = pad_instances([self.task.scaled(e.inputs) for e in examples])
        return inputs.to(device), lengths.to(device)

    def _save_pretrained(self, save_directory: Path) -> None:
        saved = model_files.Saved(self.model, self.task, self.trained)
        model_files.save(Path(save_directory), saved)

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """The solver whose files a folder holds. Raises ModelError: see `model_files.load`."""
        return cls(*model_files.load(folder))

    @classmethod
    def _from_pretrained(
        cls,
        *,
        model_id: str,
        revision: str | None,
        cache_dir: str | Path | None,
        force_download: bool,
        local_files_only: bool,
        token: str | bool | None,
        **_: Any,
    ) -> Self:
        if Path(model_id).is_dir():
            return cls.from_folder(Path(model_id))
        folder = snapshot_download(
            model_id,
            revision=revision,
            cache_dir=cache_dir,
            force_download=force_download,
            local_files_only=local_files_only,
            token=token,
            allow_patterns=[model_files.CONFIG, model_files.TENSORS, model_files.CARD],
        )
        return cls.from_folder(Path(folder))


def _groups(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Places of items to take together: of near sizes, at most ELEMENTS_AT_ONCE with padding."""
    group: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if group and sizes[place] * (len(group) + 1) > ELEMENTS_AT_ONCE:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _known(example: Example) -> Indices:
    assert example.outputs is not None
    return example.outputs
