"""A pointer network for the boxes of a page: a box waits for those that must come before it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from ptrnet.errors import InputError
from ptrnet.kernels import is_eager, is_plain_float32, may_use_compiled, prepare, structure_of
from ptrnet.kernels.boxes import NUM_FEATURES, NUM_PAIR_FEATURES, box_features, pair_features
from ptrnet.masks import Lengths, gather_rows, length_mask
from ptrnet.models.base import Encoded, PointerModel, full_lengths, shift_right
from ptrnet.models.parts import Dropout
from ptrnet.models.parts.attention import Encoder, EncoderLayer, attention_bias, normal_vectors
from ptrnet.models.settings import BoxSettings
from ptrnet.pages.labels import LABEL, LABELS

if TYPE_CHECKING:
    from ptrnet.kernels.boxes_cpu import Weights

END_AND_START = 1  # the one special slot
# A page counts as this many rows, see `may_use_compiled`, in `greedy` and in `encode`. So PyTorch
# computes the first eight pages of a process. Loading compiled code takes as long as 100 pages, but
# who answers pages one by one, in a service or a loop, has many.
ROWS_OF_A_PAGE = 160
MAX_PAIRS = 2**14  # the features of this many pairs fit into a processor's cache
END_SCORE = -1e6  # so low that END only comes when no box remains


@dataclass(frozen=True)
class EncodedBoxes(Encoded):
    """What each pair of boxes says about their order."""

    follow: Tensor  # (B, 1 + N, 1 + N): the score of a token (column) right after another (row)
    # (B, 1 + N, 1 + N): how much the row must come before the column, 0 or more. It is -inf between
    # a box and itself, so that a box that came is never likely again.
    before: Tensor


class BoxPtrNet(PointerModel):
    """`u_j = f_{C_i j} - sum_k softplus(b_kj)` over the boxes k that remain; `p = softmax(u)`.

    `b_kj` says how much box k must come before box j. So a box is likely if no remaining box must
    come before it. `f_ij` says how well box j follows box i, the last one; there is a learned `f`
    for the first box. Both are computed once, from the states of the boxes and from features of
    the pair: `b_kj = q_k' p_j / sqrt(H) + w' g(x_k, x_j)`, and `f_ij` alike.

    The states are those of a transformer's encoder. In each layer and head, a linear function of
    `g(x_k, x_j)` is added to the scores of the attention of k to j. `g` are two layers that read
    the differences of the boxes' edges in three scales, and how much the boxes overlap.

    A page without labels, or with some, is answered by the same weights: in training the labels of
    a share of the pages are dropped at random.

    All steps of a known answer are computed at once, because what remains is a cumulative sum. The
    state of a step is that sum, `(B, K, 1 + N)`.
    """

    Settings = BoxSettings
    obeys_task = True  # no box comes twice, and END comes when no box remains

    def __init__(self, features: int, num_specials: int, settings: BoxSettings) -> None:
        super().__init__(features, num_specials, settings)
        if (features, num_specials) != (LABEL + 1, END_AND_START):
            raise InputError(
                "box-ptr-net: expected a task whose elements are boxes with labels, as those of "
                f"reading-order, got elements of {features} numbers"
            )
        units, pair_units = settings.hidden_size, settings.pair_units
        self.heads = settings.heads
        self.drop_labels = DropLabels(settings.drop_labels)
        self.boxes = nn.Linear(NUM_FEATURES, units)
        vectors = normal_vectors(1 + len(LABELS), units)  # see there why not by `nn.Embedding`
        self.labels = nn.Embedding.from_pretrained(vectors, freeze=False)  # type: ignore[no-untyped-call]
        self.pairs = nn.Sequential(
            nn.Linear(NUM_PAIR_FEATURES, pair_units),
            nn.ReLU(),
            nn.Linear(pair_units, pair_units),
            nn.ReLU(),
        )
        self.pair_scores = nn.Linear(pair_units, 2 + settings.encoder_layers * settings.heads)
        self.encoder = Encoder(settings)
        self.queries, self.keys = nn.Linear(units, 2 * units), nn.Linear(units, 2 * units)
        self.first = nn.Linear(units, 1)
        self._built = structure_of(self)

    def example_inputs(self, batch: int, n: int) -> Tensor:
        numbers = super().example_inputs(batch, n)
        corners, sizes = numbers[..., :2], numbers[..., 2:4]
        labels = (numbers[..., LABEL:] * len(LABELS)).round() / len(LABELS)
        return torch.cat([corners, corners + sizes, labels], -1)

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> EncodedBoxes:
        batch, n, _ = inputs.shape
        lengths = full_lengths(inputs) if lengths is None else lengths
        if (weights := self._weights_for(inputs, lengths)) is not None:
            from ptrnet.kernels.boxes_cpu import tables_of_page

            tables = tables_of_page(weights, inputs[0], END_SCORE)
            follow, before, remaining = (torch.from_numpy(table)[None] for table in tables)
            return EncodedBoxes(1 + n, (remaining[None],), follow, before)
        is_box = length_mask(lengths, n)
        boxes = inputs[..., :LABEL]
        labels = self.drop_labels((inputs[..., LABEL] * len(LABELS)).round().long())
        with torch.autocast(inputs.device.type, enabled=False):
            rows = self.boxes(box_features(boxes)) + self.labels(labels)
            of_pairs = self._of_pairs(boxes)
            padding = attention_bias(is_box, rows.dtype)[:, None, None]
            biases = of_pairs[2:].view(-1, self.heads, batch, n, n).transpose(1, 2) + padding
        states = self.encoder(rows, *biases.unbind())
        with torch.autocast(inputs.device.type, enabled=False):
            states = states.to(rows.dtype)
            queries, keys = (
                part(states).view(batch, n, 2, -1).transpose(1, 2)
                for part in (self.queries, self.keys)
            )
            scores = queries @ keys.transpose(-1, -2) / keys.shape[-1] ** 0.5
            before, follow = scores.unbind(1)
            before, follow = before + of_pairs[0], follow + of_pairs[1]
            first = self.first(states).transpose(1, 2)
            indices = torch.arange(n, device=inputs.device)
            itself = indices == indices[:, None]  # onnxruntime has no `torch.eye` of booleans
            before = nn.functional.softplus(before)
            before = before.masked_fill(itself | ~is_box[:, :, None], 0)
            remaining = nn.functional.pad(before.sum(1), (1, 0))[:, None]
            # The start token comes before the first box, and END after the last: row and column 0.
            before = nn.functional.pad(before.masked_fill(itself, -torch.inf), (1, 0, 1, 0))
            follow = torch.cat([first, follow], 1).masked_fill(~is_box[:, None], -torch.inf)
            follow = nn.functional.pad(follow, (1, 0), value=END_SCORE)
        return EncodedBoxes(1 + n, (remaining,), follow, before)

    def _weights_for(self, inputs: Tensor, lengths: Tensor) -> "Weights | None":
        """The weights for compiled code if it computes this batch: one page, without padding."""
        if (  # read sizes only after the first checks: an export would keep them
            is_plain_float32(inputs)
            and is_eager(lengths)
            and inputs.shape == (1, *lengths.tolist(), LABEL + 1)
            and not self.drop_labels.training
            and type(self) is BoxPtrNet
            and may_use_compiled(ROWS_OF_A_PAGE)
        ):
            return prepare(self, self._built, self._weights)
        return None

    def _weights(self) -> "Weights":
        from ptrnet.kernels.boxes_cpu import Weights, maps_of  # imports numba
        from ptrnet.kernels.numerics import as_array

        layers = []
        for layer in cast("Iterable[EncoderLayer]", self.encoder):
            attention, inner = layer.attention, layer.feed_forward
            layers.append(maps_of(attention.inward, attention.outward, inner[0], inner[2]))
        return Weights(
            self.heads,
            as_array(self.labels.weight),
            maps_of(self.boxes),
            maps_of(self.pairs[0], self.pairs[2], self.pair_scores),
            layers,
            maps_of(self.queries, self.keys, self.first),
        )

    def _of_pairs(self, boxes: Tensor) -> Tensor:
        """The scores `(2 + layers * heads, B, N, N)` of all pairs, from their features."""
        parts: Sequence[Tensor] = [boxes]
        if is_plain_float32(boxes):  # read sizes only after this check: an export would keep them
            parts = torch.split(boxes, max(1, MAX_PAIRS // boxes[..., 0].numel()), 1)
        scores = (self.pair_scores(self.pairs(pair_features(part, boxes))) for part in parts)
        return torch.cat([part.permute(3, 0, 1, 2) for part in scores], 2)

    def step(
        self, encoded: EncodedBoxes, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        remaining = state[0] - gather_rows(encoded.before, tokens)
        scores = gather_rows(encoded.follow, tokens) - remaining
        return scores.log_softmax(-1), (remaining,)

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        return self._all_steps(self.encode(inputs, lengths), targets)

    def _all_steps(self, encoded: EncodedBoxes, targets: Tensor) -> Tensor:
        """The log-probabilities `(B, M, 1 + N)` at all steps of answers `(B, M)`."""
        last = shift_right(targets)
        remaining = encoded.state[0] - gather_rows(encoded.before, last).cumsum(1)
        return (gather_rows(encoded.follow, last) - remaining).log_softmax(-1)

    def greedy(
        self, inputs: Tensor, lengths: Tensor, max_lengths: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """See `PointerModel.greedy`. Compiled code takes a step in a hundredth of the time."""
        weights = self._weights_for(inputs, lengths)
        if weights is None or max_lengths[0] < lengths[0]:
            return None
        from ptrnet.kernels.boxes_cpu import tables_of_page, walk_page

        tokens, log_prob = walk_page(tables_of_page(weights, inputs[0], END_SCORE))
        return torch.from_numpy(tokens)[None], inputs.new_tensor([log_prob])


class DropLabels(Dropout):
    """Drop labels `(B, N)` in training: all of a page, or, for a third as many pages, some."""

    def forward(self, labels: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return labels
        draw, page, kept = (
            torch.empty(shape, device=labels.device).uniform_(generator=self.generator)
            for shape in ((len(labels), 1), (len(labels), 1), labels.shape)
        )
        dropped = (page < self.p) | ((page < self.p * 4 / 3) & (draw < kept))
        return labels.masked_fill(dropped, 0)


MODEL = BoxPtrNet
