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

from ptrnet.errors import ModelError
from ptrnet.models.base import Encoded, PointerModel
from ptrnet.models.parts.attention import (
    EncoderLayer,
    attention_bias,
    encode_rows,
    layer_norm,
    normal_vectors,
)
from ptrnet.models.parts.remaining import Rest
from ptrnet.models.settings import LayerSettings, ModelSettings

if TYPE_CHECKING:
    from ptrnet.problems.base import Problem, State
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

    def __init__(self, problem: "Problem", settings: LayerSettings) -> None:
        super().__init__(problem.num_features, problem.num_specials, settings)
        units, heads = settings.hidden_size, settings.heads
        self.problem = problem
        of_elements, of_whole = problem.feature_sizes
        self.elements, self.whole = nn.Linear(of_elements, units), nn.Linear(of_whole, units)
        self.whole_mark = nn.Parameter(normal_vectors(units, divisor=10))
        self.layers = nn.ModuleList(
            EncoderLayer(units, heads, settings.feed_forward)
            for _ in range(settings.encoder_layers)
        )
        self.end, self.pointer = nn.Linear(units, 1), nn.Linear(units, problem.ways)

    @classmethod
    def for_task(cls, task: "Task", settings: ModelSettings) -> "StatePtrNet":
        return cls(task, settings)  # type: ignore[arg-type]

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Started:
        state = self._start(inputs, lengths)
        tensors = tuple(_to_tensor(rows, inputs.device)[:, None] for rows in state.values())
        return Started(1 + inputs.shape[1] * self.problem.ways, tensors, tuple(state))

    def step(
        self, encoded: Started, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        rows = {
            name: part.flatten(0, 1).cpu().numpy()
            for name, part in zip(encoded.names, state, strict=True)
        }
        rows = self.problem.advance(rows, _choices(tokens.flatten()))
        log_probs = self._log_probs([rows], tokens.device)[0].view(*tokens.shape, -1)
        parts = (_to_tensor(rows[name], tokens.device) for name in encoded.names)
        return log_probs, tuple(part.view(*tokens.shape, *part.shape[1:]) for part in parts)

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        """See `PointerModel`. All steps are computed at once. Instances may differ in size."""
        sizes = [inputs.shape[1]] if lengths is None else sorted(set(lengths.tolist()))
        if lengths is not None and len(sizes) > 1:
            return self._log_probs_by_size(inputs, lengths, targets, sizes)
        state = self._start(inputs, lengths)
        states = [state]
        for i in range(targets.shape[1] - 1):
            state = self.problem.advance(state, _choices(targets[:, i]))
            states.append(state)
        return self._log_probs(states, inputs.device).transpose(0, 1)

    def _log_probs_by_size(
        self, inputs: Tensor, lengths: Tensor, targets: Tensor, sizes: list[int]
    ) -> Tensor:
        num_tokens = 1 + inputs.shape[1] * self.problem.ways
        every = self.whole_mark.new_full((*targets.shape, num_tokens), -torch.inf)
        for n in sizes:
            rows = (lengths == n).nonzero()[:, 0]
            some = self.log_probs(inputs[rows, :n], None, targets[rows])
            some = nn.functional.pad(some, (0, num_tokens - some.shape[-1]), value=-torch.inf)
            every = every.index_put((rows,), some)
        return every

    def _start(self, inputs: Tensor, lengths: Tensor | None) -> "State":
        """The state of instances before the first choice.

        Raises:
            ModelError: the instances have different sizes.
        """
        n = inputs.shape[1]
        if lengths is not None:
            if (lengths != lengths[0]).any():
                raise ModelError("expected instances of one size in a batch")
            n = int(lengths[0])
        return self.problem.start(inputs[:, :n].double().cpu().numpy())

    def _log_probs(self, states: "list[State]", device: torch.device) -> Tensor:
        """Log-probabilities `(M, R, T)` of the next tokens in M states, each with R rows."""
        decisions = [self.problem.decisions(state) for state in states]
        is_open = [allowed.sum(1) > 1 for allowed in decisions]
        open_states = [
            {name: rows[some] for name, rows in state.items()}
            for state, some in zip(states, is_open, strict=True)
            if some.any()
        ]
        allowed = torch.from_numpy(np.stack(decisions)).to(device)
        log_probs = self.whole_mark.new_zeros(allowed.shape).masked_fill(~allowed, -torch.inf)
        if not open_states:  # no token depends on the weights, but a training needs a gradient
            return log_probs + 0 * self.whole_mark.sum()
        scores = self._scores(open_states, device)
        where = torch.from_numpy(np.stack(is_open)).to(device)
        scores = scores.masked_fill(~allowed[where], -torch.inf)
        return log_probs.index_put((where,), scores.log_softmax(-1))

    def _scores(self, states: "list[State]", device: torch.device) -> Tensor:
        """Finite scores `(rows, T)` of the tokens, for the rows of all states together."""
        state = {name: np.concatenate([rows[name] for rows in states]) for name in states[0]}
        if torch.is_grad_enabled():
            return self._scores_of_rows(state, device)
        # Score equal rows only once. The prefixes of an instance's samples are equal at first.
        first, copies = _distinct_rows(state)
        distinct = {name: rows[first] for name, rows in state.items()}
        return self._scores_of_rows(distinct, device)[torch.from_numpy(copies).to(device)]

    def _scores_of_rows(self, state: "State", device: torch.device) -> Tensor:
        """Compute `_scores` in chunks of rows with similar numbers of remaining elements."""
        of_elements, of_whole = (
            torch.from_numpy(rows).to(device, self.whole_mark.dtype)
            for rows in self.problem.features(state)
        )
        remaining = self.problem.remaining(state)
        counts = remaining.sum(1)
        order = counts.argsort(kind="stable")
        mask = torch.from_numpy(remaining).to(device)
        scores = [
            self._scores_of_chunk(of_elements[rows], of_whole[rows], mask[rows])
            for rows in map(torch.from_numpy, _chunks(order, counts))
        ]
        return torch.cat(scores)[torch.from_numpy(order.argsort()).to(device)]

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
        rows = layer_norm(encode_rows(self.layers, rows, bias))
        with torch.autocast(of_whole.device.type, enabled=False):
            end, scores = self.end(rows[:, 0]), self.pointer(rows[:, 1:])
        every = scores.new_zeros(len(rows), rest.size, self.problem.ways)
        indices = rest.elements[..., None].expand(scores.shape)
        every = every.scatter(1, indices, torch.where(rest.mask[..., None], scores, 0))
        return torch.cat([end, every.flatten(1)], 1)


def _distinct_rows(state: "State") -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of distinct rows, and for each row its position among distinct rows."""
    parts = [
        np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8) for rows in state.values()
    ]
    rows = np.concatenate(parts, 1)
    _, first, copies = np.unique(
        rows.view(np.dtype((np.void, rows.shape[1])))[:, 0], return_index=True, return_inverse=True
    )
    return first, copies


def _chunks(order: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
    """Split the rows of a state into chunks of at most MAX_POSITIONS elements, padding included.

    `order` sorts the rows by `counts`, the numbers of remaining elements. A row with more than
    MAX_POSITIONS elements is a chunk of its own.
    """
    sizes = np.maximum(counts[order], 1)
    while len(order):
        # The last row of a chunk is the largest, so k rows are padded to k * (last row's size).
        k = max(
            1, int(np.searchsorted(sizes * np.arange(1, len(sizes) + 1), MAX_POSITIONS, "right"))
        )
        yield order[:k]
        order, sizes = order[k:], sizes[k:]


def _choices(tokens: Tensor) -> np.ndarray:
    """Convert tokens `(R,)` to choices. Token 0 (END, or the start symbol) becomes STAY."""
    return (tokens - 1).cpu().numpy()


def _to_tensor(rows: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.require(rows, requirements=["C", "W"])).to(device)


MODEL = StatePtrNet
