"""The conditional logit and the nested logit (McFadden 1974, 1978): choices by a linear score."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ptrnet.errors import InputError, listed, short, unknown
from ptrnet.masks import Lengths, length_mask
from ptrnet.models.base import full_lengths
from ptrnet.models.parts.scores_once import ScoredSet, ScoresOnce, scored
from ptrnet.models.settings import LogitSettings, ModelSettings

if TYPE_CHECKING:
    from ptrnet.tasks.base import Task


class Nests(nn.Module):
    """Scores of a nested logit (McFadden 1978): elements of a nest are alike.

    `s_j = v_j / t + (t - 1) log sum_i exp(v_i / t)`, where v are the scores of a conditional logit,
    i are the elements of the set that are in the nest of j, and t > 0 is the parameter of the nest.
    If t is 1, or j is in no nest, `s_j = v_j`. The closer t is to 0, the more of the buyers that
    leave j go to its nest. No element is in a nest until `ConditionalLogit.for_task` sets `levels`.

    Args:
        features: the number of features, d.
        count: the number of nests, K.
    """

    levels: Tensor  # `(d, K)`, 1 for a feature that marks elements of a nest, otherwise 0

    def __init__(self, features: int, count: int) -> None:
        super().__init__()
        self.parameter = nn.Parameter(torch.ones(count))
        # The task knows the features, so the saved weights need not include them.
        self.register_buffer("levels", torch.zeros(features, count), persistent=False)

    def forward(self, scores: Tensor, inputs: Tensor, is_element: Tensor) -> Tensor:
        """Return `s` `(B, N)`, given v `(B, N)` and elements `(B, N, d)`."""
        is_member = (inputs @ self.levels > 0.5) & is_element[..., None]  # (B, N, K)
        scaled = scores[..., None] / self.parameter
        inclusive = scaled.masked_fill(~is_member, -torch.inf).logsumexp(1)
        inclusive = inclusive.masked_fill(~is_member.any(1), 0)[:, None]
        of_nests = (scaled + (self.parameter - 1) * inclusive).masked_fill(~is_member, 0).sum(-1)
        return torch.where(is_member.any(-1), of_nests, scores)


class ConditionalLogit(ScoresOnce):
    """`u_j = b' x_j`, and element j is chosen with the probability `softmax(u)_j`.

    `x_j` has the features of element j, and `b` are the weights. They are 0 in a new model.
    `ptrnet.training.conditional_logit` sets them to the maximum of the likelihood. The setting
    `nests` makes it a nested logit; see `Nests`.
    """

    Settings = LogitSettings
    answer, repeats = "one", False

    def __init__(self, features: int, num_specials: int, settings: LogitSettings) -> None:
        super().__init__(features, num_specials, settings)
        self.weights = nn.Parameter(torch.zeros(features))
        self.nests = Nests(features, len(settings.nested)) if settings.nests else None

    @classmethod
    def for_task(cls, task: "Task", settings: ModelSettings) -> "ConditionalLogit":
        """Build a model for a task.

        Raises:
            InputError: the nests are not of values of a field with categories, or there are signs.
        """
        model = super().for_task(task, settings)
        assert isinstance(model, ConditionalLogit) and isinstance(settings, LogitSettings)
        if model.nests is None:
            return model
        if task.facts.signs.any():
            raise InputError("nests: expected a model without increasing and decreasing")
        schema, field = task.facts.schema, settings.nest_field
        fields = () if schema is None else schema.fields
        if schema is None or field not in fields:
            raise unknown("field in nests", field, fields)
        texts, part = next(
            (texts, part)
            for name, texts, part in zip(fields, schema.categories, schema.slices, strict=True)
            if name == field
        )
        if not texts:
            raise InputError(
                f'nests: expected a field of texts, got the numbers of "{field}"; list it in '
                "categories if they are codes"
            )
        levels = np.zeros((task.facts.num_features, len(settings.nested)), np.float32)
        for k, nest in enumerate(settings.nested):
            for level in nest:
                if level not in texts:
                    raise InputError(
                        f'nests: "{field}": expected values among {listed(filter(None, texts))}, '
                        f"got {short(level)}"
                    )
                levels[part.start + texts.index(level), k] = 1
        model.nests.levels = torch.from_numpy(levels)
        return model

    def marks_of_nests(self) -> dict[str, NDArray[np.bool_]]:
        """Return the name of each nest, and which features `(d,)` mark its elements."""
        if self.nests is None:
            return {}
        assert isinstance(self._settings, LogitSettings)
        names = ["+".join(nest) for nest in self._settings.nested]
        return dict(zip(names, self.nests.levels.bool().T.cpu().numpy(), strict=True))

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> ScoredSet:
        lengths = full_lengths(inputs) if lengths is None else lengths
        with torch.autocast(inputs.device.type, enabled=False):
            scores = inputs @ self.weights
            if self.nests is not None:
                scores = self.nests(scores, inputs, length_mask(lengths, inputs.shape[1]))
            scores = nn.functional.pad(scores, (self.num_specials, 0))
        is_token = length_mask(lengths + self.num_specials, scores.shape[1])
        return scored(scores.masked_fill(~is_token, -torch.inf))


MODEL = ConditionalLogit
