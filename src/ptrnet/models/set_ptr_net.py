"""A pointer network for sets: it scores each element once, and the highest score comes first."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ptrnet.kernels import is_plain_float32
from ptrnet.masks import Lengths, length_mask
from ptrnet.models.base import full_lengths
from ptrnet.models.parts import Dropout
from ptrnet.models.parts.attention import (
    Elements,
    Encoder,
    Logs,
    attention_bias,
    normal_vectors,
    with_comparisons,
    with_deviations,
)
from ptrnet.models.parts.scores_once import (
    ScoredSet,
    ScoresOnce,
    added_scores,
    mixed_log_probs,
    mixed_scores,
    scored,
)
from ptrnet.models.settings import ModelSettings, SetSettings

if TYPE_CHECKING:
    from ptrnet.models.parts.signed import SignedFeatures
    from ptrnet.models.parts.spaces import Spaces
    from ptrnet.models.parts.trees import Trees
    from ptrnet.tasks.base import Task

# docs/dev/own-data-defaults.md has the measurements behind these numbers.
LINEAR_FACTOR = 20.0
POSITION_FACTOR = 10.0  # lets the effects of positions learn as fast as the linear part
LOWEST_FREQUENCY = math.pi / 4  # a standardised feature, from -2 to 2, covers half a wave
NO_SHARE = 1e-6  # a share of less is the rounding error of the other shares
AMPLITUDE = 0.5  # amplitude of waves; if examples are few, a model with amplitude 1 overfits


class SetPtrNet(ScoresOnce):
    """`u_j = w' relu(W e_j) + s v' x_j`, `p(C_i) = softmax(u)` of remaining tokens (Plackett 1975).

    `e` are the states of special slots and elements, which attend to each other in a transformer's
    encoder. The inputs of special slots are learned. The scores `u` are computed once, in float32
    even under autocast. `u` does not depend on earlier tokens, so greedy decoding sorts the
    elements.

    The linear part `s v' x_j` learns scores that are linear functions of `x_j`. `x_j` has the
    features of element j, and with `see_logs` also their logarithms. `x_j` also has the differences
    of all these numbers from their means over the instance. Special slots have no linear part.

    With the setting `positions`, the last K features mark the position at which an element was
    shown, 1 at its position and 0 elsewhere. `u_j` gets the effect `t_k - mean(t)` of position k,
    and the rest of the network reads the other features only. `ptrnet.training.positions` removes
    these K features and `t` after the training. Trees are not mixed with such a network.

    `v` is 0 at first. An optimiser such as Adam moves all weights about equally fast. So the factor
    `s = 20 / sqrt(D)` lets the linear part learn first. D is the size of `x_j`.

    In evaluation mode, the scores of elements are mixed with those of up to three other models,
    which `ptrnet.training.mixture` fits after the training of the network:

    - If an answer is one element (`answer` is "one"), a conditional logit (McFadden 1974) gives
      element j the score `b' z_j`. `z` are the features without logarithms and differences. `b` is
      the buffer `logit_weights`, and the share of the logit is `logit_share`.
    - With the setting `trees`, gradient-boosted trees give element j the score `f(z_j, r_j)`; see
      `Trees`. `r_j` are the differences of `beside_others`, which trees for grades do not use. A
      tree splits by one number at a time, so without them it hardly sees that an element is the
      cheapest of its set.
    - With the setting `spaces`, a model for few examples gives element j the score `g(z_j)`; see
      `Spaces`.

    The probability of an element is `sum_m share_m softmax(scores of model m)`, where the network
    has the share that the others leave. Unless an answer is one element, `u` becomes the mean of
    the scores, standardised within the set; see `mixed_scores`. All shares are 0 in a new model. A
    network without a share is not computed.

    If the task's schema has signs, such as that of a price that never makes an element more
    probable, the network reads the features that have one only through `SignedFeatures`. Then no
    score depends on the prices of other elements, and the own score never rises with the price, in
    the network, the logit and the trees. So the same holds for probabilities: softmax, the mean of
    probabilities and the mean of scores are monotone in each score. For orders, trees are mixed by
    `added_scores`, and an ensemble averages scores (`adds_scores`). `Spaces` keep no signs.
    """

    Settings = SetSettings
    logit_weights: Tensor  # (d,)
    logit_share: Tensor  # ()
    trees: "Trees | None"
    spaces: "Spaces | None"
    signed: "SignedFeatures | None"

    def __init__(self, features: int, num_specials: int, settings: SetSettings) -> None:
        super().__init__(features, num_specials, settings)
        units = settings.hidden_size
        self.positions = None
        if settings.positions:
            self.positions = nn.Parameter(torch.zeros(settings.positions))
        num_features, features = features, features - settings.positions
        self.answer, self.repeats = settings.answer, settings.repeats
        self.logs = Logs(torch.zeros(features), torch.ones(features)) if settings.see_logs else None
        num_read = 2 * features * (1 + settings.see_logs)
        self.octaves = settings.octaves
        num_waves = 2 * self.octaves * features
        self.elements = Elements(num_read + num_waves, units, octaves=0, see_indices=False)
        self.special_inputs = nn.Parameter(normal_vectors(num_specials, units))
        self.encoder = Encoder(settings, settings.dropout)
        self.head = nn.Sequential(
            nn.Linear(units, units), nn.ReLU(), Dropout(settings.dropout), nn.Linear(units, 1)
        )
        self.linear = nn.Linear(num_read, 1, bias=False)
        self.linear_factor = LINEAR_FACTOR / math.sqrt(num_read)
        nn.init.zeros_(self.linear.weight)
        if self.answer == "one":
            self.register_buffer("logit_weights", torch.zeros(num_features))
            self.register_buffer("logit_share", torch.zeros(()))
        self.signed, self.trees, self.spaces = None, None, None
        if settings.trees:
            from ptrnet.models.parts.trees import Trees

            self.trees = Trees(settings.trees)
        if settings.spaces:
            from ptrnet.models.parts.spaces import Spaces

            self.spaces = Spaces(num_features, settings.spaces)

    @classmethod
    def for_task(cls, task: "Task", settings: ModelSettings) -> "SetPtrNet":
        network = super().for_task(task, settings)
        assert isinstance(network, SetPtrNet) and isinstance(settings, SetSettings)
        if network.logs is not None:
            known = (part[: len(network.logs.spread)] for part in task.facts.relative_range)
            network.logs = Logs(*(torch.from_numpy(part).float() for part in known))
        signs = task.facts.signs[: task.facts.num_features - settings.positions]
        if signs.any():
            from ptrnet.models.parts.signed import SignedFeatures

            units = network.elements.map.out_features
            network.signed = SignedFeatures(torch.from_numpy(signs), units)
            network.adds_scores = network.answer != "one"
        return network

    def weights_error(self) -> str:
        width = 3 * self.features if self.answer == "one" else self.features
        if self.trees is None or self.trees.are_sound(width):
            return ""
        return "a tree has a feature or a child that does not exist"

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> ScoredSet:
        lengths = full_lengths(inputs) if lengths is None else lengths
        others = [] if self.training else self._others(inputs, lengths)
        if not others:
            return scored(self._own_scores(inputs, lengths))
        parts, shares = zip(*others, strict=True)
        own = 1 - torch.stack(shares).sum()
        own = torch.where(own < NO_SHARE, 0, own)
        if is_plain_float32(inputs) and self.num_specials == 1 and not own:
            is_token = length_mask(lengths + 1, inputs.shape[1] + 1)
            scores = attention_bias(is_token, inputs.dtype)  # equal scores, which do not count
        else:
            scores = self._own_scores(inputs, lengths)
        special, of_elements = scores[:, : self.num_specials], scores[:, self.num_specials :]
        with torch.autocast(inputs.device.type, enabled=False):
            mixed = self.join([of_elements, *parts], [own, *shares])
        return scored(torch.cat([special, mixed], 1))

    def _own_scores(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """The network's scores `(B, S + N)`, -inf on padding."""
        effects = self.position_effects()
        if effects is not None:
            inputs, shown = inputs[..., : -len(effects)], inputs[..., -len(effects) :]
        special = self.special_inputs.expand(inputs.shape[0], -1, -1)
        others = inputs if self.signed is None else self.signed.others(inputs)
        read = others if self.logs is None else torch.cat([others, self.logs(others)], -1)
        read = with_deviations(read, lengths)
        rows = torch.cat([special, self.elements(torch.cat([read, *self._waves(others)], -1))], 1)
        is_token = length_mask(lengths + self.num_specials, rows.shape[1])
        bias = attention_bias(is_token, rows.dtype)[:, None, None]
        states = self.encoder(rows, bias)
        with torch.autocast(inputs.device.type, enabled=False):
            scores = self.head(states.to(inputs.dtype))[..., 0]
            of_elements = self.linear(read)[..., 0] * self.linear_factor
            if self.signed is not None:
                of_states = states[:, self.num_specials :].to(inputs.dtype)
                of_elements = of_elements + self.signed(inputs, of_states)
            if effects is not None:
                of_elements = of_elements + shown @ effects
        scores = scores + nn.functional.pad(of_elements, (self.num_specials, 0))
        return scores.masked_fill(~is_token, -torch.inf)

    def _others(self, inputs: Tensor, lengths: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The scores `(B, N)` of elements by each of the other models, and its share `()`."""
        others, is_element = [], length_mask(lengths, inputs.shape[1])
        with torch.autocast(inputs.device.type, enabled=False):
            if self.answer == "one":
                others.append((inputs @ self.logit_weights, self.logit_share))
            if self.trees is not None:
                read = inputs
                if self.answer == "one":
                    free = inputs if self.signed is None else self.signed.others(inputs)
                    read = with_comparisons(inputs, free, is_element)
                others.append((self.trees(read), self.trees.share))
            if self.spaces is not None:
                others.append((self.spaces(inputs, is_element), self.spaces.share))
        return others

    def join(self, scores: Sequence[Tensor], shares: Sequence[Tensor]) -> Tensor:
        """Mix the scores `(B, N)` of elements of several models, the network's first."""
        if self.answer == "one":
            return mixed_log_probs(scores, shares)
        return (added_scores if self.adds_scores else mixed_scores)(scores, shares)

    def position_effects(self) -> Tensor | None:
        """Return what each position `(K,)` adds to the score; None without positions."""
        if self.positions is None:
            return None
        return POSITION_FACTOR * (self.positions - self.positions.mean())

    def set_others(self, trees: "Trees | None" = None, spaces: "Spaces | None" = None) -> None:
        """Replace the trees and the spaces; None: have none."""
        assert isinstance(self._settings, SetSettings)
        self.trees, self.spaces = trees, spaces
        counts = [0 if part is None else len(part) for part in (trees, spaces)]
        self._settings = replace(self._settings, trees=counts[0], spaces=counts[1])

    def _waves(self, inputs: Tensor) -> list[Tensor]:
        """A sine and a cosine `(B, N, d)` of features `(B, N, d)` for each octave."""
        angles = [2**k * LOWEST_FREQUENCY * inputs for k in range(self.octaves)]
        return [AMPLITUDE * wave(angle) for angle in angles for wave in (torch.sin, torch.cos)]


MODEL = SetPtrNet
