"""Incremental decoding (Wang, Wang 2016): solve an instance group by group.

The first group has the first `window` elements. Each further group has the elements of the previous
group's answer and the next `window` elements, until all elements have been in a group. The task
must be decomposable: an element that is not in the answer to a part is never in the answer to the
whole instance. The task `hull` is decomposable: we can compute the hulls of the parts of a set, and
then the hull of all their vertices.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from ptrnet.constraints import Constraint
from ptrnet.decoding.options import IncrementalSettings
from ptrnet.decoding.search import Decoder, Greedy, Hypotheses
from ptrnet.masks import gather_rows, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import END


@dataclass(frozen=True)
class Incremental(IncrementalSettings, Decoder):
    """Solve groups of `window` elements one after another.

    The result is one answer for each instance. The log-probability of this answer is the
    log-probability of the last group's answer. There is no out-of-distribution warning about the
    number of elements, because the network only reads groups.

    Args:
        window: number of new elements in a group, 1 or more. The paper tries 1, 5, 10, 25 and 50.
        inner: the decoder that solves each group. Only the likeliest answer to a group is used.

    Examples:
        >>> hull = ptrnet.load("hull").solve(points, ptrnet.Incremental(window=25))
    """

    inner: Decoder = field(default_factory=Greedy)
    size: int = field(init=False)

    name = "incremental"
    needs_decomposable = True

    def __post_init__(self) -> None:
        super().__post_init__()
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
        batch, n, _ = inputs.shape
        positions = torch.arange(n, device=inputs.device)
        real = length_mask(lengths, n)
        extra_tokens = max_lengths - lengths  # such as the repeated first element of a closed hull
        in_answer = torch.zeros(batch, n, dtype=torch.bool, device=inputs.device)
        tokens = torch.full((batch, int(max_lengths.max()) + 1), END, device=inputs.device)
        log_probs = inputs.new_zeros(batch)
        window = min(self.window, n)  # a window above n is the same as n, but may exceed int64
        for start in range(0, int(lengths.max()), window):
            rows = torch.nonzero(lengths > start)[:, 0]  # the instances that have elements left
            group = (positions >= start) & (positions < start + window)
            members = (in_answer[rows] | group) & real[rows]
            counts = members.sum(1)
            # A stable sort moves the members to the front, in their order. The rest is padding.
            elements = (~members).long().argsort(dim=1, stable=True)[:, : int(counts.max())]
            hypotheses = self.inner.decode(
                model,
                gather_rows(inputs[rows], elements),
                counts,
                counts + extra_tokens[rows],
                constraint,
            )
            answers = _tokens_of_instance(hypotheses.tokens[:, 0], elements, model.num_specials)
            tokens[rows] = functional.pad(
                answers, (0, tokens.shape[1] - answers.shape[1]), value=END
            )
            log_probs[rows] = hypotheses.log_probs[:, 0].to(log_probs.dtype)
            in_answer[rows] = _elements_in(answers, n, model.num_specials)
        return Hypotheses(tokens[:, None], (tokens != END).sum(1)[:, None], log_probs[:, None])


def _tokens_of_instance(tokens: Tensor, elements: Tensor, num_specials: int) -> Tensor:
    """Return the tokens `(B, M)` of groups as tokens of their instances.

    Args:
        tokens: `(B, M)` tokens, whose elements are numbered within their group.
        elements: `(B, N)` the positions that the N elements of each group have in the instance.
        num_specials: number of special slots, S. Tokens below S stay as they are.
    """
    positions = elements.gather(1, (tokens - num_specials).clamp(min=0))
    return torch.where(tokens < num_specials, tokens, positions + num_specials)


def _elements_in(tokens: Tensor, n: int, num_specials: int) -> Tensor:
    """Return `(B, n)` boolean: which of n elements are in answers of `(B, M)` tokens."""
    mask = torch.zeros(len(tokens), num_specials + n, dtype=torch.bool, device=tokens.device)
    return mask.scatter(1, tokens, True)[:, num_specials:]
