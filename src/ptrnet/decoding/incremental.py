"""Incremental decoding (W 3): an instance is solved group by group.

The first `window` elements are solved; then what was answered is solved together with the next
group, until all elements have been seen. Sound where an answer is a subset that only shrinks as
elements are added, as the hull of a set is the hull of its parts' hulls.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ptrnet.constraints import Constraint
from ptrnet.decoding.beam import Greedy
from ptrnet.decoding.search import Decoder, Hypotheses
from ptrnet.errors import InputError
from ptrnet.models.base import PointerModel
from ptrnet.types import END


@dataclass(frozen=True)
class Incremental(Decoder):
    """Solves groups of `window` elements one behind another.

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
        longest: Tensor,
        constraint: Constraint | None = None,
    ) -> Hypotheses:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        spare = longest - lengths
        kept = torch.zeros(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        tokens = torch.zeros(len(inputs), 0, dtype=torch.int64, device=inputs.device)
        log_probs = inputs.new_zeros(len(inputs))
        for start in range(0, int(lengths.max()), self.window):
            rows = torch.nonzero(lengths > start)[:, 0]  # the others are solved
            group = (places >= start) & (places < start + self.window)
            inside = (kept[rows] | group) & (places < lengths[rows, None])
            count = inside.sum(1)
            members = (~inside).long().argsort(dim=1, stable=True)[:, : int(count.max())]
            part = inputs[rows].gather(1, members[..., None].expand(-1, -1, inputs.shape[2]))
            found = self.inner.decode(model, part, count, count + spare[rows], constraint)
            answer = _in_whole(found.tokens[:, 0], members, model.num_specials)
            tokens = torch.nn.functional.pad(
                tokens, (0, max(0, answer.shape[1] - tokens.shape[1])), value=END
            )
            tokens[rows] = END
            tokens[rows, : answer.shape[1]] = answer
            log_probs[rows] = found.log_probs[:, 0].to(log_probs.dtype)
            marked = torch.zeros(
                len(rows),
                inputs.shape[1] + model.num_specials,
                dtype=torch.bool,
                device=inputs.device,
            )
            kept[rows] = marked.scatter(1, answer, True)[:, model.num_specials :]
        return Hypotheses(tokens[:, None], (tokens != END).sum(1)[:, None], log_probs[:, None])


def _in_whole(tokens: Tensor, members: Tensor, num_specials: int) -> Tensor:
    """Tokens of a part as tokens of the whole; the part has the elements `members` `(B, P)`."""
    elements = members.gather(1, (tokens - num_specials).clamp(min=0)) + num_specials
    return torch.where(tokens < num_specials, tokens, elements)
