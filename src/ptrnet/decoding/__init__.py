"""From a model's distributions to answers. One search serves all: greedy is a beam of one."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptrnet.decoding.beam import Beam, Greedy
    from ptrnet.decoding.incremental import Incremental
    from ptrnet.decoding.reconstruct import Reconstruct
    from ptrnet.decoding.sample import Sample
    from ptrnet.decoding.search import Decoder
    from ptrnet.decoding.steps import Hypotheses

__all__ = ["Beam", "Decoder", "Greedy", "Hypotheses", "Incremental", "Reconstruct", "Sample"]
# Imported when first used: the command line reads the decoders' settings without torch.
_HOMES = {
    "Beam": "beam",
    "Decoder": "search",
    "Greedy": "beam",
    "Hypotheses": "steps",
    "Incremental": "incremental",
    "Reconstruct": "reconstruct",
    "Sample": "sample",
}


def _imported(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


if not TYPE_CHECKING:  # which would take every name for one of ours
    __getattr__ = _imported
