"""A pointer network that encodes the remaining elements again at every step.

After some tokens, the rest of a problem is a smaller problem of the same kind. The smaller problem
depends only on the remaining elements and on the first and the last element of the answer so far.
So all layers run again at every step, as in Drakulic et al. (BQ-NCO, 2023) and Luo et al. (LEHD,
2023).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ptrnet.errors import InputError
from ptrnet.kernels import is_recorded
from ptrnet.masks import Lengths, gather_rows, length_mask
from ptrnet.models.base import Encoded, PointerModel, full_lengths, shift_right
from ptrnet.models.parts.attention import Encoder, attention_bias, normal_vectors
from ptrnet.models.parts.frames import PrefixEnds
from ptrnet.models.parts.remaining import DistanceBias, RelativePositions, Rest
from ptrnet.models.settings import RemainingSettings


@dataclass(frozen=True)
class Instances(Encoded):
    """The instances, not yet encoded. All encoding happens in the steps."""

    inputs: Tensor  # (B, N, d)
    mask: Tensor  # (B, N) boolean: False on padding


class PrefixState(NamedTuple):
    """The state of K prefixes of each instance. See `PrefixEnds` for the fields after `seen`."""

    seen: Tensor  # (B, K, N) boolean: whether the prefix has the element
    first: Tensor  # (B, K)
    previous: Tensor  # (B, K)
    last: Tensor  # (B, K)

    def append(self, tokens: Tensor, num_specials: int) -> "PrefixState":
        """Return the state after one more token `(B, K)` of each prefix."""
        seen, *ends = self
        element_tokens = torch.arange(seen.shape[-1], device=seen.device) + num_specials
        seen = seen | (element_tokens == tokens[..., None])
        return PrefixState(seen, *PrefixEnds(*ends).append(tokens, num_specials))


class RemainingPtrNet(PointerModel):
    """`p = softmax(u)`, `u_j = (W1 h_0)' W2 h_j / sqrt(H)`.

    At every step, the layers of a transformer encode the rows
    `h = [last token; special slots; remaining elements]`.

    - The row of the last token has the coordinates of the answer's last element so far. A tour ends
      where it began, so the rows of special slots have the coordinates of the first element. If the
      answer is still empty, all these rows have the mean of all elements. Learned vectors (marks)
      are added to distinguish these rows from elements.
    - With `repeats`, elements of the answer stay among the remaining elements. The mark `seen_mark`
      is added to the rows of these elements.
    - If `nearest` is above 0, `step` encodes only that many elements: those nearest to the last
      element.
    - Coordinates and scores are computed in float32 even under autocast.

    In shapes, R = B K is the number of prefixes, and S the number of special slots. W is the
    largest number of elements that are encoded after a prefix.
    """

    Settings = RemainingSettings

    def __init__(self, features: int, num_specials: int, settings: RemainingSettings) -> None:
        super().__init__(features, num_specials, settings)
        units, heads = settings.hidden_size, settings.heads
        self.repeats, self.nearest = settings.repeats, settings.nearest
        if settings.align and features != 2:
            raise InputError(f"align: expected points in the plane, got {features} features")
        self.places = RelativePositions(features, units, settings.octaves, settings.align)
        self.distances = DistanceBias(heads) if settings.see_distances else None
        self.layers = Encoder(settings)
        self.query, self.key = (nn.Linear(units, units, bias=False) for _ in range(2))
        # Marks of the last token of a prefix: a mark for each special slot, and a mark that all
        # elements share. An empty prefix has END's mark.
        self.last_marks = nn.Parameter(normal_vectors(num_specials + 1, units, divisor=10))
        self.slot_marks = nn.Parameter(normal_vectors(num_specials, units, divisor=10))
        self.seen_mark = nn.Parameter(normal_vectors(units, divisor=10)) if self.repeats else None

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> Instances:
        lengths = full_lengths(inputs) if lengths is None else lengths
        size = inputs.shape[1]
        mask = length_mask(lengths, size)
        state = PrefixState(torch.zeros_like(mask)[:, None], *PrefixEnds.empty(lengths[:, None]))
        return Instances(self.num_specials + size, state, inputs, mask)

    def step(
        self, encoded: Instances, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        prefixes = PrefixState(*state).append(tokens, self.num_specials)
        rest, states = self._encode_rest(encoded, prefixes, tokens, self.nearest)
        log_probs = rest.log_probs(self._scores(states[:, :1], states))
        return log_probs.view(*tokens.shape, -1), prefixes

    def rest_log_probs(
        self,
        inputs: Tensor,
        lengths: Lengths,
        targets: Tensor,
        target_lengths: Lengths,
        num_known: int,
    ) -> Tensor:
        """See `PointerModel`. The remaining elements are encoded once, after the known tokens.

        Let t_1, t_2, ... be the tokens after the known tokens. Row 0 predicts t_1, and its query is
        the state of the last known token. Row r predicts t_(r+1), and its query is the state of
        t_r. With `repeats`, an element may have several successors, so only row 0 is returned.
        """
        encoded = self.encode(inputs, lengths)
        prefixes, last_tokens = PrefixState(*encoded.state), shift_right(targets)
        for i in range(num_known + 1):
            prefixes = prefixes.append(last_tokens[:, i : i + 1], self.num_specials)
        last = last_tokens[:, num_known : num_known + 1]
        rest, states = self._encode_rest(encoded, prefixes, last, nearest=0)
        query_states = states[:, :1]
        if not self.repeats:
            positions = 1 + rest.positions(targets[:, num_known:-1], self.num_specials)
            query_states = torch.cat([query_states, gather_rows(states, positions)], 1)
        return rest.log_probs(self._scores(query_states, states))

    def _encode_rest(
        self, encoded: Instances, prefixes: PrefixState, last_tokens: Tensor, nearest: int
    ) -> tuple[Rest, Tensor]:
        """Return the elements that remain after each prefix, and the states that encode them.

        The states `(R, 1 + S + W, H)` are those of the last token, the special slots and the
        remaining elements. If `nearest` is not 0, encode only so many elements, those nearest to
        the last element.
        """
        remaining = encoded.mask[:, None].expand_as(prefixes.seen)
        if not self.repeats:
            remaining = remaining & ~prefixes.seen
        current, goal = self._current_and_goal(encoded.inputs, prefixes, remaining)
        if nearest > 0 and (is_recorded() or nearest < remaining.shape[-1]):
            differences = encoded.inputs[:, None] - current
            dist = differences.square().sum(-1)
            rest = Rest.of_nearest(remaining.flatten(0, 1), dist.flatten(0, 1), nearest)
        else:
            rest = Rest.of_all(remaining.flatten(0, 1))
        current, goal = current.flatten(0, 1), goal.flatten(0, 1)
        points = self._points(encoded.inputs, rest, current, goal)
        states = self.places(points, current, goal)
        states = states + self._marks(prefixes.seen.flatten(0, 1), rest, last_tokens)
        mask = nn.functional.pad(rest.mask, (1 + self.num_specials, 0), value=True)
        bias = attention_bias(mask, states.dtype)[:, None, None]
        if self.distances is not None:
            bias = bias + self.distances(points, mask)
        return rest, self.layers(states, bias)

    def _current_and_goal(
        self, inputs: Tensor, prefixes: PrefixState, remaining: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The coordinates of the last and of the first element of prefixes, each `(B, K, 1, d)`.

        An empty prefix has the mean of all elements instead.
        """
        weights = remaining.to(inputs.dtype)
        with torch.autocast(inputs.device.type, enabled=False):
            mean = (weights @ inputs) / weights.sum(-1, keepdim=True).clamp(min=1)
        current, goal = (
            torch.where(
                (tokens > 0)[..., None],
                gather_rows(inputs, (tokens - self.num_specials).clamp(min=0)),
                mean,
            )[..., None, :]
            for tokens in (prefixes.last, prefixes.first)
        )
        return current, goal

    def _points(self, inputs: Tensor, rest: Rest, current: Tensor, goal: Tensor) -> Tensor:
        """The points `(R, 1 + S + W, d)` to encode; `current` and `goal` are `(R, 1, d)`."""
        points = gather_rows(inputs, rest.elements.reshape(inputs.shape[0], -1))
        points = points.view(*rest.elements.shape, self.features)
        points = torch.where(rest.mask[..., None], points, current)
        return torch.cat([current, goal.expand(-1, self.num_specials, -1), points], 1)

    def _marks(self, seen: Tensor, rest: Rest, last_tokens: Tensor) -> Tensor:
        """Learned marks of the last token, special slots and seen elements, `(R, 1 + S + W, H)`."""
        last = self.last_marks[last_tokens.clamp(max=self.num_specials).view(-1, 1)]
        marks = torch.cat([last, self.slot_marks.expand(last.shape[0], -1, -1)], 1)
        marks = nn.functional.pad(marks, (0, 0, 0, rest.elements.shape[1]))
        if self.seen_mark is None:
            return marks
        is_seen = nn.functional.pad(seen.gather(1, rest.elements), (1 + self.num_specials, 0))
        return marks + is_seen[..., None] * self.seen_mark

    def _scores(self, query_states: Tensor, states: Tensor) -> Tensor:
        """Scores `(R, Q, S + W)` of all states except the first, for Q queries `(R, Q, H)`."""
        keys, queries = self.key(states[:, 1:]), self.query(query_states)
        with torch.autocast(keys.device.type, enabled=False):
            keys, queries = keys.to(states.dtype), queries.to(states.dtype)
            return torch.bmm(queries * keys.shape[-1] ** -0.5, keys.transpose(1, 2))


MODEL = RemainingPtrNet
