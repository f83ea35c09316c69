"""A pointer network that encodes what remains anew at every step.

Light encoder, heavy decoder, as in Drakulic et al. (BQ-NCO, 2023) and Luo et al. (LEHD, 2023): what
is left of a problem is a problem of the same kind, and of what was answered only the two ends
matter for the rest.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrnet.errors import InputError
from ptrnet.models.base import Encoded, PointerModel, all_of, pick, shifted
from ptrnet.models.parts.attention import EncoderLayer, norm
from ptrnet.models.parts.places import Places
from ptrnet.models.settings import Remaining
from ptrnet.types import END

FAR = 10.0  # what is too far to be encoded scores so much less than the least that is encoded


@dataclass(frozen=True)
class Whole(Encoded):
    """The instances as they were given: nothing is encoded before a step."""

    inputs: Tensor  # (B, N, d)
    real: Tensor  # (B, N) boolean: the elements that are no padding


@dataclass(frozen=True)
class Rest:
    """What remains behind R = B K prefixes, W elements at most, encoded."""

    states: Tensor  # (R, 1 + S + W, H): of the last token, the special slots, the elements
    elements: Tensor  # (R, W) which elements of the instance these are
    padding: Tensor | None  # (R, 1 + S + W): 0, -inf behind what remains; None: all remain
    far: Tensor | None  # (R, N) boolean: what remains, too, but is not encoded; None: nothing


class RemainingPtrNet(PointerModel):
    """`p = softmax(u)`, `u_j = (W1 h_0)' W2 h_j / sqrt(H)`; `h` is `[last; special slots; what
    remains]`, encoded by the layers of a transformer.

    The last token stands where the last element is, the special slots where the first one is: to
    end is to close the tour; before the first element both stand in the middle of all. They bear
    learned marks, and so does what was pointed at where `repeats` leaves it among what remains.
    With `nearest` only so many elements near the last one are encoded.
    """

    Settings = Remaining

    def __init__(self, features: int, specials: int, settings: Remaining) -> None:
        super().__init__(features, specials, settings)
        units, heads = settings.hidden_size, settings.heads
        if units % heads:
            raise InputError(f"hidden_size: expected a multiple of {heads} heads, got {units}")
        self.repeats, self.nearest = settings.repeats, settings.nearest
        self.places = Places(features, units, settings.octaves)
        self.layers = nn.ModuleList(
            EncoderLayer(units, heads, settings.feed_forward)
            for _ in range(settings.encoder_layers)
        )
        self.query, self.key = (nn.Linear(units, units, bias=False) for _ in range(2))
        # The last token is a special one, of which END is the start, or else any element.
        self.last_marks = nn.Parameter(torch.randn(specials + 1, units) / 10)
        self.slot_marks = nn.Parameter(torch.randn(specials, units) / 10)
        self.seen_mark = nn.Parameter(torch.randn(units) / 10) if self.repeats else None

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Whole:
        batch, elements, _ = inputs.shape
        lengths = all_of(inputs) if lengths is None else lengths
        real = torch.arange(elements, device=inputs.device) < lengths[:, None]
        none = torch.zeros(batch, 1, dtype=torch.int64, device=inputs.device)
        # Which elements were pointed at, and the first and the last of them as tokens.
        state = (torch.zeros_like(real)[:, None], none, none)
        return Whole(self.specials + elements, state, inputs, real)

    def step(
        self, encoded: Whole, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        state = self._after(state, tokens)
        rest = self._rest(encoded, state, tokens, self.nearest)
        found = self._log_probs(rest, rest.states[:, :1], encoded.tokens)
        return found.view(*tokens.shape, -1), state

    def rest_log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None,
        known: int,
    ) -> Tensor:
        """As of every model; all that remains is encoded once, behind the known tokens.

        The other rows ask the state of each token of the rest, instead of the last one's, what
        follows it: the same question, behind tokens that are not known. Where elements repeat it
        has no one answer and is not asked.
        """
        encoded = self.encode(inputs, lengths)
        state, fed = encoded.state, shifted(targets)
        for i in range(known + 1):
            state = self._after(state, fed[:, i : i + 1])
        rest = self._rest(encoded, state, fed[:, known : known + 1], 0)
        asked = rest.states[:, :1]
        if not self.repeats:
            places = self._places(rest, encoded.tokens).gather(1, targets[:, known:-1])
            asked = torch.cat([asked, pick(rest.states, places)], 1)
        return self._log_probs(rest, asked, encoded.tokens)

    def _after(self, state: tuple[Tensor, ...], tokens: Tensor) -> tuple[Tensor, ...]:
        """The state behind the tokens `(B, K)`."""
        seen, first, last = state
        of_elements = torch.arange(seen.shape[-1], device=seen.device) + self.specials
        element = tokens >= self.specials
        return (
            seen | (of_elements == tokens[..., None]),
            torch.where(element & (first == END), tokens, first),
            torch.where(element, tokens, last),
        )

    def _rest(
        self, encoded: Whole, state: tuple[Tensor, ...], tokens: Tensor, nearest: int
    ) -> Rest:
        """What remains behind prefixes of that state and of those last tokens `(B, K)`."""
        remaining = self._remaining(encoded, state[0])
        here, goal = self._ends(encoded, state, remaining)
        far = None
        if 0 < nearest < remaining.shape[1]:
            far = remaining & ~self._near(encoded, here, remaining, nearest)
            remaining = remaining & ~far
        elements, behind = _first(remaining)
        rows, width = elements.shape
        points = _at(encoded.inputs, elements)
        points = torch.where(behind[..., None], here, points)
        points = torch.cat([here, goal.expand(-1, self.specials, -1), points], 1)
        states = self.places(points, here, goal)
        last = self.last_marks[tokens.clamp(max=self.specials).view(rows, 1)]
        marks = torch.cat([last, self.slot_marks.expand(rows, -1, -1)], 1)
        states = states + nn.functional.pad(marks, (0, 0, 0, width))
        if self.seen_mark is not None:
            seen = state[0].view(rows, -1).gather(1, elements)
            seen = nn.functional.pad(seen, (1 + self.specials, 0))
            states = states + seen[..., None] * self.seen_mark
        padding = None
        if _recorded(behind) or bool(behind.any()):
            padding = states.new_zeros(behind.shape).masked_fill(behind, -torch.inf)
            padding = nn.functional.pad(padding, (1 + self.specials, 0))
        for layer in self.layers:
            states = layer(states, padding)
        return Rest(norm(states), elements, padding, far)

    def _remaining(self, encoded: Whole, seen: Tensor) -> Tensor:
        """`(R, N)` boolean: which elements remain."""
        remaining = encoded.real[:, None].expand_as(seen)
        return (remaining if self.repeats else remaining & ~seen).reshape(-1, seen.shape[-1])

    def _ends(
        self, encoded: Whole, state: tuple[Tensor, ...], remaining: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Where one stands and where one goes to, `(R, 1, d)`; at first the middle of all."""
        rows, (_, first, last) = len(remaining), state
        each = remaining.view(len(encoded.inputs), -1, remaining.shape[1]).to(encoded.inputs.dtype)
        with torch.autocast(each.device.type, enabled=False):
            middle = (each @ encoded.inputs) / each.sum(-1, keepdim=True).clamp(min=1)
        here, goal = (
            torch.where(
                (end != END)[..., None],
                pick(encoded.inputs, (end - self.specials).clamp(min=0)),
                middle,
            ).view(rows, 1, self.features)
            for end in (last, first)
        )
        return here, goal

    @staticmethod
    def _near(encoded: Whole, here: Tensor, remaining: Tensor, nearest: int) -> Tensor:
        """`(R, N)` boolean: the nearest of the remaining elements."""
        batch, elements, features = encoded.inputs.shape
        apart = encoded.inputs[:, None] - here.view(batch, -1, 1, features)
        far = apart.square().sum(-1).view(-1, elements).masked_fill(~remaining, torch.inf)
        chosen = far.topk(nearest, largest=False).indices
        return torch.zeros_like(remaining).scatter(1, chosen, True)

    def _log_probs(self, rest: Rest, asked: Tensor, tokens: int) -> Tensor:
        """`(R, Q, S + N)`: what follows, as asked of states `(R, Q, H)`; no score is rounded."""
        keys, queries = self.key(rest.states[:, 1:]), self.query(asked)
        with torch.autocast(keys.device.type, enabled=False):
            keys, queries = keys.to(rest.states.dtype), queries.to(rest.states.dtype)
            scores = torch.bmm(queries * keys.shape[-1] ** -0.5, keys.transpose(1, 2))
            least = scores.detach().amin(-1, keepdim=True) - FAR
            if rest.padding is not None:
                scores = scores + rest.padding[:, None, 1:]
            special, found = scores.tensor_split([self.specials], -1)
            nowhere = found.new_full((*found.shape[:2], tokens - self.specials), -torch.inf)
            if rest.far is not None:
                nowhere = torch.where(rest.far[:, None], least, nowhere)
            places = rest.elements[:, None].expand(found.shape)
            return torch.cat([special, nowhere.scatter(-1, places, found)], -1).log_softmax(-1)

    def _places(self, rest: Rest, tokens: int) -> Tensor:
        """`(R, S + N)`: where the state of each token is; of one that does not remain, 0."""
        rows, width = rest.elements.shape
        there = torch.arange(self.specials + width, device=rest.elements.device) + 1
        there = there.expand(rows, -1)
        special, found = there.tensor_split([self.specials], -1)
        nowhere = there.new_zeros(rows, tokens - self.specials)
        return torch.cat([special, nowhere.scatter(1, rest.elements, found)], 1)


def _first(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The places `(R, W)` that are chosen in `(R, N)`, and which are not but stand behind them."""
    count, width = chosen.sum(-1), chosen.shape[1]
    if not _recorded(chosen):
        width = int(count.max())
    places = chosen.to(torch.int8).argsort(dim=-1, descending=True, stable=True)[:, :width]
    return places, torch.arange(width, device=chosen.device) >= count[:, None]


def _at(inputs: Tensor, elements: Tensor) -> Tensor:
    """`(R, W, d)`: the elements `(R, W)` of instances `(B, N, d)`, R / B prefixes of each."""
    found = pick(inputs, elements.reshape(len(inputs), -1))
    return found.view(*elements.shape, inputs.shape[-1])


def _recorded(tensor: Tensor) -> bool:
    """Whether a GPU is not asked for values: a graph is recorded."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


MODEL = RemainingPtrNet
