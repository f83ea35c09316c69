"""Incremental decoding (W 3): an instance is solved group by group.

The first `window` elements are solved; then the elements of that answer are solved together with
the next group, until all elements have been seen. This is sound for a decomposable task: its
answer is a subset that only shrinks as elements are added, as the hull of a set is the hull of
its parts' hulls.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from ptrnet.constraints import Constraint
from ptrnet.decoding.beam import Greedy
from ptrnet.decoding.search import Decoder, Hypotheses
from ptrnet.errors import InputError
from ptrnet.masks import length_mask
from ptrnet.models.base import PointerModel, gather_rows
from ptrnet.types import END


@dataclass(frozen=True)
class Incremental(Decoder):
    """Solves groups of `window` elements one after another.

    The log-probabilities that it gives are those of the last group's answers.

    Args:
        window: elements in a group, 1 or more; W tries 1, 5, 10, 25 and 50.
        inner: solves each group.
    """

    window: int = 25
    inner: Decoder = field(default_factory=Greedy)
    size: int = field(init=False)

    name = "incremental"
    needs_decomposable = True

    def __post_init__(self) -> None:
        if not isinstance(self.window, int) or self.window < 1:
            raise InputError(f"window: expected a whole number of 1 or more, got {self.window!r}")
        object.__setattr__(self, "size", self.inner.size)

    @torch.no_grad()
    def decode(
        self,
        model: PointerModel,
        inputs: Tensor,
        lengths: Tensor,
        max_lengths: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        batch, size, _ = inputs.shape
        positions = torch.arange(size, device=inputs.device)
        real = length_mask(lengths, size)
        extra = max_lengths - lengths  # tokens of an answer beyond one for each element
        in_answer = torch.zeros(batch, size, dtype=torch.bool, device=inputs.device)
        tokens = torch.full((batch, int(max_lengths.max()) + 1), END, device=inputs.device)
        log_probs = inputs.new_zeros(batch)
        for start in range(0, int(lengths.max()), self.window):
            rows = torch.nonzero(lengths > start)[:, 0]  # instances that are not solved yet
            group = (positions >= start) & (positions < start + self.window)
            members = (in_answer[rows] | group) & real[rows]
            counts = members.sum(1)
            # The positions of the members come first, in their order; the rest is padding.
            elements = (~members).long().argsort(dim=1, stable=True)[:, : int(counts.max())]
            hypotheses = self.inner.decode(
                model, gather_rows(inputs[rows], elements), counts, counts + extra[rows], constraint
            )
            answers = _tokens_of_instance(hypotheses.tokens[:, 0], elements, model.num_specials)
            tokens[rows] = functional.pad(
                answers, (0, tokens.shape[1] - answers.shape[1]), value=END
            )
            log_probs[rows] = hypotheses.log_probs[:, 0].to(log_probs.dtype)
            in_answer[rows] = _elements_in(answers, size, model.num_specials)
        return Hypotheses(tokens[:, None], (tokens != END).sum(1)[:, None], log_probs[:, None])


def _tokens_of_instance(tokens: Tensor, elements: Tensor, num_specials: int) -> Tensor:
    """Tokens that count the elements of a group, as tokens that count those of the instance.

    The group's elements are those at the positions `elements`, one row for each instance.
    """
    positions = elements.gather(1, (tokens - num_specials).clamp(min=0))
    return torch.where(tokens < num_specials, tokens, positions + num_specials)


def _elements_in(tokens: Tensor, size: int, num_specials: int) -> Tensor:
    """`(B, size)` boolean: the elements that stand in answers of `(B, M)` tokens."""
    mask = torch.zeros(len(tokens), num_specials + size, dtype=torch.bool, device=tokens.device)
    return mask.scatter(1, tokens, True)[:, num_specials:]
