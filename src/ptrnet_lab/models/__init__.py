"""The networks of the papers that no shipped model uses, and their settings.

Like `ptrnet.models.settings`, this file must not import torch.
"""

from dataclasses import MISSING, dataclass

from ptrnet.models.settings import MAX_UNITS, AttentionSettings, RecurrentSettings
from ptrnet.settings import setting


@dataclass(frozen=True, kw_only=True)
class FreeRunningSettings(AttentionSettings):
    """Settings of models whose next decoder input depends on the current step's distribution."""

    teacher_forcing: bool = setting(
        True, "soft-, hard- and multi-ptr-net: in training, the decoder reads the true elements"
    )


@dataclass(frozen=True, kw_only=True)
class ThresholdSettings(FreeRunningSettings):
    """Settings of the model whose next decoder input is the mean of the likely elements."""

    threshold: float = setting(
        0.1,
        "multi-ptr-net: smallest probability of an element that the decoder reads",
        ge=1e-6,
        le=1,
    )


@dataclass(frozen=True, kw_only=True)
class DictionarySettings(RecurrentSettings):
    """Settings of models with a fixed output dictionary. Such a model accepts only one size."""

    n: int = setting(MISSING, "number of elements of every instance", ge=1, le=MAX_UNITS)


@dataclass(frozen=True, kw_only=True)
class DictionaryAttentionSettings(DictionarySettings, AttentionSettings):
    """Settings of models with a fixed dictionary and attention over encoder states."""
