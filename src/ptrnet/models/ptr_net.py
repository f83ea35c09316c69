"""The Pointer Network (V 2.3): attention over the inputs is the answer."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrnet.models.base import (
    Encoded,
    PointerModel,
    all_of,
    feedable,
    log_softmax,
    pick,
    shifted,
    start_weights,
)
from ptrnet.models.parts.layers import decoder, encoder
from ptrnet.models.parts.recurrent import State
from ptrnet.models.parts.score import Scorer, key_map, query_map, scorer, scores, weights_of
from ptrnet.models.settings import Attending


@dataclass(frozen=True)
class Slots(Encoded):
    """What a pointer can point at."""

    inputs: Tensor  # (B, S + N, d): what is fed on after each token; special slots first
    lengths: Tensor  # (B,) the tokens that are real: S + n
    keys: Tensor  # (B, S + N, H): what the pointer scores
    scorer: Scorer  # of those keys, step by step


class PtrNet(PointerModel):
    """`u_j = v' tanh(W1 e_j + W2 d_i)`, `p(C_i) = softmax(u)`, fed on: a copy of `P_{C_i}`."""

    Settings = Attending

    def __init__(self, features: int, num_specials: int, settings: Attending) -> None:
        super().__init__(features, num_specials, settings)
        units = settings.hidden_size
        self.encoder = encoder(features, settings)
        self.decoder = decoder(features, settings)
        self.key = key_map(settings.score, units)
        self.query = query_map(settings.score, units)
        self.v = weights_of(settings.score, units)
        # Slot 0 of both: `=>` is what the decoder is fed first, `<=` what it points at to end.
        self.special_inputs = nn.Parameter(torch.empty(num_specials, features))
        self.special_states = nn.Parameter(torch.empty(num_specials, units))
        start_weights(self)

    def read(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        """The states `(B, N, H)` that are pointed at, and the decoder's first."""
        return self.encoder(inputs, lengths)  # type: ignore[no-any-return]

    def slots(self, inputs: Tensor, lengths: Tensor | None) -> Slots:
        """What can be pointed at, and the decoder's first state."""
        lengths = all_of(inputs) if lengths is None else lengths
        states, state = self.read(inputs, lengths)
        special = self.special_states.to(states.dtype).expand(len(inputs), -1, -1)
        keys = self.key(torch.cat([special, states], 1))
        return Slots(
            tokens=self.num_specials + inputs.shape[1],
            state=tuple(s[:, None] for s in state),
            inputs=feedable(inputs, self.special_inputs),
            lengths=lengths + self.num_specials,
            keys=keys,
            scorer=scorer(keys, self.v, lengths + self.num_specials),
        )

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Slots:
        return self.slots(inputs, lengths)

    def point(self, encoded: Slots, fed: Tensor, state: State) -> tuple[Tensor, State]:
        """One step with `fed` `(B, K, d)` as the decoder's input; otherwise as `step`."""
        state = self.decoder.step(fed, state)
        found = encoded.scorer(self.query(state[0]))
        return log_softmax(found, encoded.lengths), state

    def step(
        self, encoded: Slots, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.point(encoded, pick(encoded.inputs, tokens), state)

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        encoded = self.slots(inputs, lengths)
        if target_lengths is None:
            target_lengths = all_of(targets)
        state = tuple(s[:, 0] for s in encoded.state)
        fed = pick(encoded.inputs, shifted(targets))
        states, _ = self.decoder(fed, target_lengths, state)
        found = scores(encoded.keys, self.query(states), self.v, encoded.lengths, target_lengths)
        return log_softmax(found, encoded.lengths)


MODEL = PtrNet
