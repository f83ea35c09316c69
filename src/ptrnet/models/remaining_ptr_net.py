"""A pointer network that encodes what remains anew at every step.

Light encoder, heavy decoder, as in Drakulic et al. (BQ-NCO, 2023) and Luo et al. (LEHD, 2023): what
is left of a problem is a problem of the same kind, and of what was answered only the two ends
matter for the rest.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ptrnet.errors import InputError
from ptrnet.masks import length_mask
from ptrnet.models.base import Encoded, PointerModel, full_lengths, gather_rows, shift_right
from ptrnet.models.parts.attention import EncoderLayer, attention_bias, layer_norm
from ptrnet.models.parts.relative_positions import RelativePositions
from ptrnet.models.settings import RemainingSettings
from ptrnet.types import END

MARGIN = 10.0  # by so much is the score of an element too distant to encode below all the others


@dataclass(frozen=True)
class Instances(Encoded):
    """The instances as they came: nothing is encoded before a step."""

    inputs: Tensor  # (B, N, d)
    mask: Tensor  # (B, N) boolean: the elements that are no padding


class PrefixState(NamedTuple):
    """What a step has to know of K prefixes of each instance."""

    seen: Tensor  # (B, K, N) boolean: the elements that were pointed at
    first: Tensor  # (B, K) the first token of these that is an element; END: none yet
    last: Tensor  # (B, K) the last one


@dataclass(frozen=True)
class EncodedRest:
    """What remains behind R = B K prefixes, W elements at most, encoded."""

    states: Tensor  # (R, 1 + S + W, H): of the last token, the special slots, the elements
    elements: Tensor  # (R, W) which elements of the instance these are
    bias: Tensor  # (R, 1 + S + W): 0, and -inf on padding
    distant: Tensor | None  # (R, N) boolean: what remains too, but is not encoded; None: nothing


class RemainingPtrNet(PointerModel):
    """`p = softmax(u)`, `u_j = (W1 h_0)' W2 h_j / sqrt(H)`; `h` is `[last; special slots; what
    remains]`, encoded by the layers of a transformer.

    The last token has the position of the last element, and the special slots that of the first
    one: to end is to close the tour. Before the first element both have the mean of all. They get
    learned marks, and so do elements that were pointed at, where `repeats` leaves them among what
    remains. With `nearest`, only that many elements near the last one are encoded.
    """

    Settings = RemainingSettings

    def __init__(self, features: int, num_specials: int, settings: RemainingSettings) -> None:
        super().__init__(features, num_specials, settings)
        units, heads = settings.hidden_size, settings.heads
        if units % heads:
            raise InputError(f"hidden_size: expected a multiple of {heads} heads, got {units}")
        self.repeats, self.nearest = settings.repeats, settings.nearest
        self.places = RelativePositions(features, units, settings.octaves)
        self.layers = nn.ModuleList(
            EncoderLayer(units, heads, settings.feed_forward)
            for _ in range(settings.encoder_layers)
        )
        self.query, self.key = (nn.Linear(units, units, bias=False) for _ in range(2))
        # The last token is a special one, of which END is the start, or else any element.
        self.last_marks = nn.Parameter(torch.randn(num_specials + 1, units) / 10)
        self.slot_marks = nn.Parameter(torch.randn(num_specials, units) / 10)
        self.seen_mark = nn.Parameter(torch.randn(units) / 10) if self.repeats else None

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Instances:
        batch, size, _ = inputs.shape
        mask = length_mask(full_lengths(inputs) if lengths is None else lengths, size)
        no_element = torch.full((batch, 1), END, device=inputs.device)
        state = PrefixState(torch.zeros_like(mask)[:, None], no_element, no_element)
        return Instances(self.num_specials + size, state, inputs, mask)

    def step(
        self, encoded: Instances, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        prefixes = self._advance(PrefixState(*state), tokens)
        rest = self._encode_rest(encoded, prefixes, tokens, self.nearest)
        log_probs = self._next_log_probs(rest, rest.states[:, :1], encoded.num_tokens)
        return log_probs.view(*tokens.shape, -1), prefixes

    def rest_log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None,
        num_known: int,
    ) -> Tensor:
        """See `PointerModel`; what remains is encoded once, all of it, behind the known tokens.

        Row r > 0 is of the token behind token r of the rest. Its query is the state of token r
        instead of that of the last known token: the same question, behind tokens that are not
        known. Where elements repeat it has no one answer, and row 0 stands alone.
        """
        encoded = self.encode(inputs, lengths)
        state, last_tokens = PrefixState(*encoded.state), shift_right(targets)
        for i in range(num_known + 1):
            state = self._advance(state, last_tokens[:, i : i + 1])
        last = last_tokens[:, num_known : num_known + 1]
        rest = self._encode_rest(encoded, state, last, nearest=0)
        states = rest.states[:, :1]
        if not self.repeats:
            positions = self._state_positions(rest, encoded.num_tokens)
            positions = positions.gather(1, targets[:, num_known:-1])
            states = torch.cat([states, gather_rows(rest.states, positions)], 1)
        return self._next_log_probs(rest, states, encoded.num_tokens)

    def _advance(self, state: PrefixState, tokens: Tensor) -> PrefixState:
        """The state behind the tokens `(B, K)`."""
        seen, first, last = state
        element_tokens = torch.arange(seen.shape[-1], device=seen.device) + self.num_specials
        is_element = tokens >= self.num_specials
        return PrefixState(
            seen | (element_tokens == tokens[..., None]),
            torch.where(is_element & (first == END), tokens, first),
            torch.where(is_element, tokens, last),
        )

    def _encode_rest(
        self, encoded: Instances, state: PrefixState, last_tokens: Tensor, nearest: int
    ) -> EncodedRest:
        """What remains behind the prefixes, whose last tokens are `(B, K)`.

        Of `nearest` elements only, or of all where it is 0.
        """
        remaining = self._remaining(encoded, state.seen)
        current, goal = self._current_and_goal(encoded, state, remaining)
        distant = None
        if 0 < nearest < remaining.shape[1]:
            distant = remaining & ~_nearest(encoded.inputs, current, remaining, nearest)
            remaining = remaining & ~distant
        elements, is_padding = _true_indices(remaining)
        states = self._read(encoded, state.seen, last_tokens, elements, is_padding, current, goal)
        bias = attention_bias(~is_padding, states.dtype)
        bias = nn.functional.pad(bias, (1 + self.num_specials, 0))
        for layer in self.layers:
            states = layer(states, bias[:, None, None])
        return EncodedRest(layer_norm(states), elements, bias, distant)

    def _read(
        self,
        encoded: Instances,
        seen: Tensor,
        last_tokens: Tensor,
        elements: Tensor,
        is_padding: Tensor,
        current: Tensor,
        goal: Tensor,
    ) -> Tensor:
        """`(R, 1 + S + W, H)`: what the first layer reads; see `EncodedRest.states`."""
        rows, width = elements.shape
        points = gather_rows(encoded.inputs, elements.reshape(len(encoded.inputs), -1))
        points = points.view(rows, width, self.features)
        points = torch.where(is_padding[..., None], current, points)
        points = torch.cat([current, goal.expand(-1, self.num_specials, -1), points], 1)
        states = self.places(points, current, goal)
        last = self.last_marks[last_tokens.clamp(max=self.num_specials).view(rows, 1)]
        marks = torch.cat([last, self.slot_marks.expand(rows, -1, -1)], 1)
        states = states + nn.functional.pad(marks, (0, 0, 0, width))
        if self.seen_mark is not None:
            is_seen = seen.view(rows, -1).gather(1, elements)
            is_seen = nn.functional.pad(is_seen, (1 + self.num_specials, 0))
            states = states + is_seen[..., None] * self.seen_mark
        return states  # type: ignore[no-any-return]

    def _remaining(self, encoded: Instances, seen: Tensor) -> Tensor:
        """`(R, N)` boolean: which elements remain."""
        remaining = encoded.mask[:, None].expand_as(seen)
        return (remaining if self.repeats else remaining & ~seen).reshape(-1, seen.shape[-1])

    def _current_and_goal(
        self, encoded: Instances, state: PrefixState, remaining: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The last and the first element of the prefixes, `(R, 1, d)`; at first the mean of all."""
        inputs = encoded.inputs
        weights = remaining.view(len(inputs), -1, remaining.shape[1]).to(inputs.dtype)
        with torch.autocast(weights.device.type, enabled=False):
            mean = (weights @ inputs) / weights.sum(-1, keepdim=True).clamp(min=1)
        current, goal = (
            torch.where(
                (tokens != END)[..., None],
                gather_rows(inputs, (tokens - self.num_specials).clamp(min=0)),
                mean,
            ).view(-1, 1, self.features)
            for tokens in (state.last, state.first)
        )
        return current, goal

    def _next_log_probs(self, rest: EncodedRest, states: Tensor, num_tokens: int) -> Tensor:
        """`(R, Q, S + N)`: what comes next, by the queries of states `(R, Q, H)`.

        Scores are float32 (or better) under autocast.
        """
        keys, queries = self.key(rest.states[:, 1:]), self.query(states)
        with torch.autocast(keys.device.type, enabled=False):
            keys, queries = keys.to(rest.states.dtype), queries.to(rest.states.dtype)
            scores = torch.bmm(queries * keys.shape[-1] ** -0.5, keys.transpose(1, 2))
            distant_score = scores.detach().amin(-1, keepdim=True) - MARGIN
            scores = scores + rest.bias[:, None, 1:]
            special, of_elements = scores.tensor_split([self.num_specials], -1)
            size = num_tokens - self.num_specials
            every = scores.new_full((*scores.shape[:2], size), -torch.inf)
            if rest.distant is not None:
                every = torch.where(rest.distant[:, None], distant_score, every)
            indices = rest.elements[:, None].expand(of_elements.shape)
            every = every.scatter(-1, indices, of_elements)
            return torch.cat([special, every], -1).log_softmax(-1)

    def _state_positions(self, rest: EncodedRest, num_tokens: int) -> Tensor:
        """`(R, S + N)`: the position of each token's state; 0 of one that does not remain."""
        rows, width = rest.elements.shape
        positions = torch.arange(self.num_specials + width, device=rest.elements.device) + 1
        positions = positions.expand(rows, -1)
        special, of_elements = positions.tensor_split([self.num_specials], -1)
        every = positions.new_zeros(rows, num_tokens - self.num_specials)
        return torch.cat([special, every.scatter(1, rest.elements, of_elements)], 1)


def _nearest(inputs: Tensor, current: Tensor, remaining: Tensor, count: int) -> Tensor:
    """`(R, N)` boolean: the `count` remaining elements nearest to the current points `(R, 1, d)`.

    Where fewer remain, others as well.
    """
    batch, size, features = inputs.shape
    differences = inputs[:, None] - current.view(batch, -1, 1, features)
    dist = differences.square().sum(-1).view(-1, size).masked_fill(~remaining, torch.inf)
    indices = dist.topk(count, largest=False).indices
    return torch.zeros_like(remaining).scatter(1, indices, True)


def _true_indices(mask: Tensor) -> tuple[Tensor, Tensor]:
    """The indices `(R, W)` of the True entries of `(R, N)`, and which of them are padding behind.

    W is the most of a row; while a graph is recorded, N.
    """
    counts, width = mask.sum(-1), mask.shape[1]
    if not _is_recording(mask):
        width = int(counts.max())
    indices = mask.to(torch.int8).argsort(dim=-1, descending=True, stable=True)[:, :width]
    return indices, ~length_mask(counts, width)


def _is_recording(tensor: Tensor) -> bool:
    """Whether a CUDA graph is recorded: there are no values yet that could be asked for."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


MODEL = RemainingPtrNet
