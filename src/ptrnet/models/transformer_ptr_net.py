"""A transformer (Vaswani et al. 2017, with norms before each layer) whose output is a pointer."""

import math
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from ptrnet.errors import InputError
from ptrnet.kernels import is_plain_float32, may_use_compiled
from ptrnet.masks import Lengths, gather_rows, length_mask
from ptrnet.models.base import Encoded, PointerModel, full_lengths, shift_right
from ptrnet.models.parts.attention import (
    DecoderLayer,
    Elements,
    Encoder,
    KeysValues,
    attention_bias,
    causal_mask,
    layer_norm,
    normal_vectors,
    with_deviations,
)
from ptrnet.models.parts.frames import EdgeFrames
from ptrnet.models.settings import TransformerSettings

if TYPE_CHECKING:
    from ptrnet.kernels.decoder_layer_cpu import Step
    from ptrnet.kernels.frames_cpu import CompiledFrames


@dataclass(frozen=True)
class EncodedSet(Encoded):
    """The encoded tokens: special slots, then elements."""

    inputs: Tensor  # (B, N, d)
    states: Tensor  # (B, S + N, H): the decoder's input after each token
    keys: Tensor  # (B, S + N, H): the keys that the pointer scores
    bias: Tensor  # (B, S + N): -inf on padding, 0 elsewhere
    keys_values: list[KeysValues]  # keys and values of the states, for each decoder layer
    frame_keys: Tensor | None  # (U, B, 1, S + N): keys of the states for the edge frames
    # Empty at first. The first compiled step makes the only item from the tensors above and the
    # weights.
    compiled: list["Compiled"] = field(init=False, default_factory=list)


class Compiled(NamedTuple):
    """Compiled kernels of a decoder step. If a part is None, PyTorch computes that part."""

    layers: "tuple[Step | None, ...]"
    frames: "CompiledFrames | None"


class TransformerPtrNet(PointerModel):
    """`u_j = d_i' W e_j / sqrt(H)`, `p(C_i) = softmax(u)`; the next decoder input is `e_{C_i}`.

    `e` are the encoder's states of special slots and elements, which attend to each other. The
    inputs of special slots are learned. `d_i` is the state of a decoder that attends to its earlier
    inputs and to `e`. With `see_deviations`, the encoder also reads how far each feature is from
    its mean over the instance. With `edge_frames`, `EdgeFrames` adds several terms to each score.
    Coordinates and scores are computed in float32 even under autocast.

    The state of a step begins with the keys and values `(B, K, t, H)` of the t tokens so far, for
    each decoder layer. With `edge_frames`, the state of the frames comes next.
    """

    Settings = TransformerSettings

    def __init__(self, features: int, num_specials: int, settings: TransformerSettings) -> None:
        super().__init__(features, num_specials, settings)
        units, heads = settings.hidden_size, settings.heads
        sizes = (units, heads, settings.feed_forward)
        self.see_deviations = settings.see_deviations
        num_read = features * (1 + self.see_deviations)
        self.elements = Elements(num_read, units, settings.octaves, settings.see_indices)
        self.special_inputs = nn.Parameter(normal_vectors(num_specials, units))
        self.encoder = Encoder(settings)
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(settings.decoder_layers))
        self.pointer = nn.Linear(units, units, bias=False)
        self.frames = _build_frames(features, num_specials, settings)

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> EncodedSet:
        lengths = full_lengths(inputs) if lengths is None else lengths
        states, bias = self._encode_tokens(inputs, lengths)
        batch, num_tokens, units = states.shape
        # Compute keys and values before the other tensors, because this needs the most temporary
        # memory.
        keys_values = [layer.cross.keys_values(states) for layer in self._decoder_layers()]
        with torch.autocast(states.device.type, enabled=False):
            keys = self.pointer(states) / math.sqrt(units)
        start = (states.new_zeros(batch, 1, 0, units),) * (2 * len(self.decoder))
        if self.frames is not None:
            start += self.frames.empty(lengths[:, None])
        return EncodedSet(
            num_tokens=num_tokens,
            state=start,
            inputs=inputs,
            states=states,
            keys=keys,
            bias=bias,
            keys_values=keys_values,
            frame_keys=None if self.frames is None else self.frames.project_keys(states),
        )

    def _encode_tokens(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's states `(B, S + N, H)`, and the bias `(B, S + N)` of attention to them."""
        special = self.special_inputs.expand(inputs.shape[0], -1, -1)
        read = with_deviations(inputs, lengths) if self.see_deviations else inputs
        rows = torch.cat([special, self.elements(read)], 1)
        bias = attention_bias(length_mask(lengths + self.num_specials, rows.shape[1]), rows.dtype)
        return self.encoder(rows, bias[:, None, None]), bias

    def point(
        self,
        encoded: EncodedSet,
        rows: Tensor,
        ends: tuple[Tensor, ...] | None,
        compiled: Compiled | None = None,
    ) -> Tensor:
        """Log-probabilities `(B, M, S + N)` of the next tokens.

        Args:
            rows: the decoder's states `(B, M, H)`.
            ends: the result of `EdgeFrames.ends` or `all_ends`; None without edge frames.
            compiled: the compiled kernels; None: PyTorch computes all parts.
        """
        queries = layer_norm(rows)
        with torch.autocast(queries.device.type, enabled=False):
            scores = queries @ encoded.keys.transpose(1, 2) + encoded.bias[:, None]
            if self.frames is not None:
                assert ends is not None and encoded.frame_keys is not None
                if compiled is not None and compiled.frames is not None:
                    scores = compiled.frames(scores, ends, self.frames.query(queries))
                else:
                    edges = (encoded.inputs, encoded.frame_keys)
                    scores = self.frames(scores, ends, queries, *edges)
        return scores.log_softmax(-1)

    def step(
        self, encoded: EncodedSet, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        rows, bias = gather_rows(encoded.states, tokens), encoded.bias[:, None, None]
        compiled = self._compiled(encoded, rows, state)
        after: list[Tensor] = []
        for k, layer in enumerate(self._decoder_layers()):
            earlier = state[2 * k], state[2 * k + 1]
            layer_step = None if compiled is None else compiled.layers[k]
            if layer_step is not None and layer_step.is_fast(rows):
                rows, extended = layer_step(rows, earlier)
            else:
                rows, extended = layer.step(rows, earlier, encoded.keys_values[k], bias)
            after += extended
        ends = None
        if self.frames is not None:
            prefixes = self.frames.append(state[2 * len(self.decoder) :], tokens, self.num_specials)
            ends = self.frames.ends(prefixes)
            after += prefixes
        return self.point(encoded, rows, ends, compiled), tuple(after)

    def _compiled(
        self, encoded: EncodedSet, rows: Tensor, state: tuple[Tensor, ...]
    ) -> Compiled | None:
        """The compiled kernels for a step of rows `(B, K, H)`, or None if they cannot be used."""
        past = state[: 2 * len(self.decoder)]
        tensors = (rows, encoded.inputs, encoded.keys, *past, *chain(*encoded.keys_values))
        if not is_plain_float32(*tensors) or not may_use_compiled(rows.shape[0] * rows.shape[1]):
            return None
        if not encoded.compiled:
            bias = encoded.bias[:, None, None]
            layers = [
                layer.compiled_step(others, bias)
                for layer, others in zip(self._decoder_layers(), encoded.keys_values, strict=True)
            ]
            edges = None
            if self.frames is not None and encoded.frame_keys is not None:
                edges = self.frames.compiled(encoded.inputs, encoded.frame_keys)
            # Append once, when all is ready: another thread may decode with the same `encoded`.
            encoded.compiled.append(Compiled(tuple(layers), edges))
        return encoded.compiled[0]

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        encoded, last_tokens = self.encode(inputs, lengths), shift_right(targets)
        rows, bias = gather_rows(encoded.states, last_tokens), encoded.bias[:, None, None]
        causal_bias = attention_bias(causal_mask(rows.shape[1], rows.device), rows.dtype)
        for layer, keys_values in zip(self.decoder, encoded.keys_values, strict=True):
            rows = layer(rows, causal_bias, keys_values, bias)
        if self.frames is None:
            return self.point(encoded, rows, None)
        compiled = self._compiled(encoded, rows, encoded.state)
        ends = self.frames.all_ends(last_tokens, self.num_specials)
        return self.point(encoded, rows, ends, compiled)

    def _decoder_layers(self) -> list[DecoderLayer]:
        return list(self.decoder)  # type: ignore[arg-type]


def _build_frames(
    features: int, num_specials: int, settings: TransformerSettings
) -> EdgeFrames | None:
    """The edge frames that the settings ask for. Without `edge_frames`, return None.

    Raises:
        InputError: elements are not points in the plane, answers are not sequences of apexes as
            `frame_edge` "open" requires, or "open" is given without `edge_frames`.
    """
    is_open = settings.frame_edge == "open"
    if not settings.edge_frames:
        if is_open:
            raise InputError("frame_edge open: needs edge_frames")
        return None
    if features != 2:
        raise InputError(f"edge_frames: expected elements of 2 numbers, got {features}")
    if is_open and num_specials != 2:
        raise InputError("frame_edge open: expected a task whose answers are sequences of apexes")
    return EdgeFrames(settings.hidden_size, is_open)


MODEL = TransformerPtrNet
