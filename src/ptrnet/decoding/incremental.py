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
        specials = model.num_specials
        in_answer = torch.zeros(batch, specials + n, dtype=torch.bool, device=inputs.device)
        tokens = torch.full((batch, int(max_lengths.max()) + 1), END, device=inputs.device)
        log_probs = inputs.new_zeros(batch)
        window = min(self.window, n)  # a window above n is the same as n, but may exceed int64
        for start in range(0, int(lengths.max()), window):
            rows = torch.nonzero(lengths > start)[:, 0]  # the instances that have elements left
            group = (positions >= start) & (positions < start + window)
            members = (in_answer[rows, specials:] | group) & real[rows]
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
            answers = hypotheses.tokens[:, 0]  # elements are numbered within their group
            numbers = elements.gather(1, (answers - specials).clamp(min=0))  # in the instance
            answers = torch.where(answers < specials, answers, numbers + specials)
            tokens[rows] = functional.pad(
                answers, (0, tokens.shape[1] - answers.shape[1]), value=END
            )
            log_probs[rows] = hypotheses.log_probs[:, 0].to(log_probs.dtype)
            in_answer[rows] = torch.zeros_like(in_answer[rows]).scatter(1, answers, True)
        return Hypotheses(tokens[:, None], (tokens != END).sum(1)[:, None], log_probs[:, None])
