"""The pointer network for `ptrnet.problems`. It encodes the state of the problem at every step.

After some choices, the rest of a problem is a smaller problem of the same kind. So all layers run
again at every step, as in Drakulic et al. (BQ-NCO, 2023) and Luo et al. (LEHD, 2023).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ptrnet.kernels import is_recorded
from ptrnet.masks import Lengths
from ptrnet.models.base import Encoded, PointerModel
from ptrnet.models.parts.attention import Encoder, attention_bias, normal_vectors
from ptrnet.models.parts.remaining import Rest
from ptrnet.models.settings import LayerSettings, ModelSettings

if TYPE_CHECKING:
    from ptrnet.problems.base import ProblemTask, State
    from ptrnet.tasks.base import Task

# The largest number of elements to encode at once, including padding. Larger chunks would not fit
# into the processor's cache, and would need more padding.
MAX_POSITIONS = 2**12


@dataclass(frozen=True)
class Started(Encoded):
    """Instances before the first choice."""

    names: Sequence[str]  # the names of the arrays in `state`, in the same order


class StatePtrNet(PointerModel):
    """`p = softmax(u)`. A transformer's layers encode the rows `h = [whole; remaining elements]`.

    Row 0 is for the whole instance, and each further row for a remaining element. Before encoding,
    a row is a linear function of the `Problem.features` of the instance or the element. `h_0` gives
    the score `u_0 = v' h_0` of END. `h_j` gives the scores `u_j = W h_j` of element j: one score
    for each way to reach the element (see `Problem.ways`).

    Tokens that the problem does not allow get probability 0. If the problem allows only one token,
    that token gets probability 1, and the network does not run. The problem computes in float64,
    even if the weights have less precision.

    In shapes, R = B K is the number of prefixes, and T = 1 + N * ways is the number of tokens.
    """

    Settings = LayerSettings
    exact_inputs = True
    one_size = True
    obeys_task = True

    def __init__(self, task: "ProblemTask", settings: LayerSettings) -> None:
        super().__init__(task.facts.num_features, task.facts.num_specials, settings)
        units = settings.hidden_size
        self.task, self.ways = task, task.facts.ways
        assert task.facts.feature_sizes is not None
        of_elements, of_whole = task.facts.feature_sizes()
        self.elements, self.whole = nn.Linear(of_elements, units), nn.Linear(of_whole, units)
        self.whole_mark = nn.Parameter(normal_vectors(units, divisor=10))
        self.layers = Encoder(settings)
        self.end, self.pointer = nn.Linear(units, 1), nn.Linear(units, self.ways)

    @classmethod
    def for_task(cls, task: "Task", settings: ModelSettings) -> "StatePtrNet":
        return cls(task, settings)  # type: ignore[arg-type]

    def num_tokens(self, n: int) -> int:
        return 1 + n * self.ways

    def example_inputs(self, batch: int, n: int) -> Tensor:
        return torch.from_numpy(self.task.sample(np.random.default_rng(0), batch, n))

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> Started:
        state = self.task.begin(inputs, lengths)
        return Started(self.num_tokens(inputs.shape[1]), tuple(state.values()), tuple(state))

    def step(
        self, encoded: Started, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        named = dict(zip(encoded.names, state, strict=True))
        advanced = self.task.advance(named, None, tokens)
        rows = {name: part.flatten(0, 1)[:, None] for name, part in advanced.items()}
        log_probs = self._log_probs(rows).view(*tokens.shape, -1)
        return log_probs, tuple(advanced[name] for name in encoded.names)

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        """See `PointerModel`. All steps are computed at once. Instances may differ in size."""
        sizes = [inputs.shape[1]] if lengths is None else sorted(set(lengths.tolist()))
        if lengths is not None and len(sizes) > 1:
            return self._log_probs_by_size(inputs, lengths, targets, sizes)
        states = [self.task.begin(inputs, lengths)]
        for i in range(targets.shape[1] - 1):
            states.append(self.task.advance(states[-1], None, targets[:, i : i + 1]))
        rows = {name: torch.cat([state[name] for state in states]) for name in states[0]}
        log_probs = self._log_probs(rows)
        return log_probs.view(len(states), -1, log_probs.shape[-1]).transpose(0, 1)

    def _log_probs_by_size(
        self, inputs: Tensor, lengths: Tensor, targets: Tensor, sizes: list[int]
    ) -> Tensor:
        num_tokens = 1 + inputs.shape[1] * self.ways
        every = self.whole_mark.new_full((*targets.shape, num_tokens), -torch.inf)
        for n in sizes:
            rows = (lengths == n).nonzero()[:, 0]
            some = self.log_probs(inputs[rows, :n], None, targets[rows])
            some = nn.functional.pad(some, (0, num_tokens - some.shape[-1]), value=-torch.inf)
            every = every.index_put((rows,), some)
        return every

    def _log_probs(self, state: "State") -> Tensor:
        """Log-probabilities `(R, T)` of the next tokens, given states `(R, 1, ...)`."""
        allowed = self.task.mask(state)[:, 0]
        is_open = allowed.sum(1) > 1
        if is_recorded():  # shapes must not depend on values
            log_probs = self._scores(state).masked_fill(~allowed, -torch.inf).log_softmax(-1)
            return torch.where(is_open[:, None], log_probs, torch.where(allowed, 0.0, -torch.inf))
        log_probs = self.whole_mark.new_zeros(allowed.shape).masked_fill(~allowed, -torch.inf)
        if not is_open.any():  # no token depends on the weights, but a training needs a gradient
            return log_probs + 0 * self.whole_mark.sum()
        state = {name: rows[is_open] for name, rows in state.items()}
        if torch.is_grad_enabled():
            scores = self._scores(state)
        else:
            # Score equal rows only once. The prefixes of an instance's samples are equal at first.
            first, copies = _distinct_rows(state)
            scores = self._scores({name: rows[first] for name, rows in state.items()})[copies]
        scores = scores.masked_fill(~allowed[is_open], -torch.inf)
        return log_probs.index_put((is_open,), scores.log_softmax(-1))

    def _scores(self, state: "State") -> Tensor:
        """Finite scores `(R, T)`, computed in chunks of rows with similar numbers of elements."""
        of_elements, of_whole, remaining = (part[:, 0] for part in self.task.features(state))
        of_elements, of_whole = (part.to(self.whole_mark.dtype) for part in (of_elements, of_whole))
        if is_recorded():
            return self._scores_of_chunk(of_elements, of_whole, remaining)
        counts = remaining.sum(1)
        order = counts.argsort(stable=True)
        scores = [
            self._scores_of_chunk(of_elements[rows], of_whole[rows], remaining[rows])
            for rows in _chunks(order, counts[order].tolist())
        ]
        return torch.cat(scores)[order.argsort()]

    def _scores_of_chunk(self, of_elements: Tensor, of_whole: Tensor, remaining: Tensor) -> Tensor:
        rest = Rest.of_all(remaining)
        of_elements = of_elements.gather(
            1, rest.elements[..., None].expand(-1, -1, of_elements.shape[-1])
        )
        with torch.autocast(of_whole.device.type, enabled=False):  # keep features exact
            whole = (self.whole(of_whole) + self.whole_mark)[:, None]
            rows = torch.cat([whole, self.elements(of_elements)], 1)
        mask = nn.functional.pad(rest.mask, (1, 0), value=True)
        bias = attention_bias(mask, rows.dtype)[:, None, None]
        rows = self.layers(rows, bias)
        with torch.autocast(of_whole.device.type, enabled=False):
            end, scores = self.end(rows[:, 0]), self.pointer(rows[:, 1:])
        every = scores.new_zeros(rows.shape[0], rest.size, self.ways)
        indices = rest.elements[..., None].expand(scores.shape)
        every = every.scatter(1, indices, torch.where(rest.mask[..., None], scores, 0))
        return torch.cat([end, every.flatten(1)], 1)


def _distinct_rows(state: "State") -> tuple[Tensor, Tensor]:
    """Return the indices of distinct rows, and for each row its position among distinct rows."""
    parts = [rows.flatten(1) if rows.ndim > 1 else rows[:, None] for rows in state.values()]
    bits = [p.double().view(torch.int64) if p.is_floating_point() else p.long() for p in parts]
    distinct, copies = torch.unique(torch.cat(bits, 1), dim=0, return_inverse=True)
    rows = torch.arange(len(copies), device=copies.device)
    first = rows.new_empty(len(distinct)).scatter_reduce(
        0, copies, rows, "amin", include_self=False
    )
    return first, copies


def _chunks(order: Tensor, counts: list[int]) -> Iterator[Tensor]:
    """Split rows into chunks of at most MAX_POSITIONS elements, padding included.

    A row with more than MAX_POSITIONS elements is a chunk of its own. `order` has the rows by their
    numbers of remaining elements, and `counts` these numbers in the same order.
    """
    first = 0
    for k, count in enumerate(counts):
        # The last row of a chunk is the largest, so all rows are padded to its size.
        if k > first and (k + 1 - first) * max(count, 1) > MAX_POSITIONS:
            yield order[first:k]
            first = k
    yield order[first:]


MODEL = StatePtrNet
