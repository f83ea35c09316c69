"""A transformer over the set (Vaswani et al. 2017, norms first) with a pointer."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrnet.errors import InputError
from ptrnet.models.base import Encoded, PointerModel, all_of, pick, shifted
from ptrnet.models.parts.attention import (
    DecoderLayer,
    EncoderLayer,
    KeysValues,
    causal_mask,
    length_mask,
    norm,
)
from ptrnet.models.parts.elements import Elements
from ptrnet.models.parts.frames import EdgeFrames, Trail, trails
from ptrnet.models.settings import Transformer


@dataclass(frozen=True)
class Slots(Encoded):
    """What a pointer can point at."""

    inputs: Tensor  # (B, N, d)
    states: Tensor  # (B, S + N, H): what is fed on after each token; special slots first
    keys: Tensor  # (B, S + N, H): what the pointer scores
    mask: Tensor  # (B, S + N): 0, -inf on padding
    looked_at: list[KeysValues]  # by each layer of the decoder
    framed: Tensor | None  # what edge frames know of the states


class TransformerPtrNet(PointerModel):
    """`u_j = d_i' W e_j / sqrt(H)`, `p(C_i) = softmax(u)`, fed on: `e_{C_i}`.

    `e` are the states of special slots (their inputs are learned) and elements that have looked at
    each other; `d_i` is the state of a decoder that looks at what it was fed so far, and at `e`.
    With `edge_frames` each score has what `EdgeFrames` adds. Coordinates, and scores, are computed
    in float32 under autocast, too.

    A step's state holds keys and values of the tokens so far, `(B, K, t, H)`, of each layer.
    """

    Settings = Transformer

    def __init__(self, features: int, specials: int, settings: Transformer) -> None:
        super().__init__(features, specials, settings)
        units, heads = settings.hidden_size, settings.heads
        if units % heads:
            raise InputError(f"hidden_size: expected a multiple of {heads} heads, got {units}")
        if settings.edge_frames and features != 2:
            raise InputError(
                f"edge_frames: expected elements of 2 numbers, here they are of {features}"
            )
        sizes = (units, heads, settings.feed_forward)
        self.elements = Elements(features, units, settings.octaves, settings.see_indices)
        self.special_inputs = nn.Parameter(torch.empty(specials, units).normal_())
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in range(settings.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(settings.decoder_layers))
        self.pointer = nn.Linear(units, units, bias=False)
        self.frames = EdgeFrames(units) if settings.edge_frames else None

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Slots:
        lengths = all_of(inputs) if lengths is None else lengths
        special = self.special_inputs.expand(len(inputs), -1, -1)
        x = torch.cat([special, self.elements(inputs)], 1)
        mask = length_mask(lengths + self.specials, x.shape[1], x.dtype)
        for layer in self.encoder:
            x = layer(x, mask[:, None, None])
        states = norm(x)
        with torch.autocast(x.device.type, enabled=False):
            keys = self.pointer(states) / math.sqrt(states.shape[-1])
        start = (x.new_zeros(len(x), 1, 0, x.shape[-1]),) * (2 * len(self.decoder))
        if self.frames is not None:
            start += Trail.empty(lengths[:, None])
        return Slots(
            tokens=x.shape[1],
            state=start,
            inputs=inputs,
            states=states,
            keys=keys,
            mask=mask,
            looked_at=[layer.cross.keys_values(states) for layer in self._layers()],
            framed=None if self.frames is None else self.frames.mapped(states),
        )

    def point(self, encoded: Slots, x: Tensor, trail: Trail | None) -> Tensor:
        """Log-probabilities `(B, M, S + N)` of the tokens behind decoder's states `(B, M, H)`."""
        x = norm(x)
        with torch.autocast(x.device.type, enabled=False):
            scores = x @ encoded.keys.transpose(1, 2) + encoded.mask[:, None]
            if self.frames is not None:
                scores = self.frames(scores, encoded.inputs, trail, x, encoded.framed)
        return scores.log_softmax(-1)

    def step(
        self, encoded: Slots, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        x, mask = pick(encoded.states, tokens), encoded.mask[:, None, None]
        after: list[Tensor] = []
        for k, (layer, looked_at) in enumerate(zip(self._layers(), encoded.looked_at, strict=True)):
            x, own = layer.step(x, (state[2 * k], state[2 * k + 1]), looked_at, mask)
            after += own
        trail = None
        if self.frames is not None:
            trail = Trail(*state[-3:]).behind(tokens, self.specials)
            after += trail
        return self.point(encoded, x, trail), tuple(after)

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        encoded, fed = self.encode(inputs, lengths), shifted(targets)
        x = pick(encoded.states, fed)
        causal, mask = causal_mask(x.shape[1], x), encoded.mask[:, None, None]
        for layer, looked_at in zip(self.decoder, encoded.looked_at, strict=True):
            x = layer(x, causal, looked_at, mask)
        trail = None if self.frames is None else trails(fed, self.specials)
        return self.point(encoded, x, trail)

    def _layers(self) -> list[DecoderLayer]:
        return list(self.decoder)  # type: ignore[arg-type]


MODEL = TransformerPtrNet
