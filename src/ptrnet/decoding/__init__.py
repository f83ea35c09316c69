"""Decoders, which turn a model's distributions over the next token into answers.

Greedy decoding, beam search and sampling share one search loop (`search.py`).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptrnet.decoding.incremental import Incremental
    from ptrnet.decoding.reconstruct import Reconstruct
    from ptrnet.decoding.sample import Sample
    from ptrnet.decoding.search import Beam, Decoder, Greedy, Hypotheses

__all__ = ["Beam", "Decoder", "Greedy", "Hypotheses", "Incremental", "Reconstruct", "Sample"]
# Imported at first use, because the command line reads the decoders' settings without torch.
_HOMES = {
    "Beam": "search",
    "Decoder": "search",
    "Greedy": "search",
    "Hypotheses": "search",
    "Incremental": "incremental",
    "Reconstruct": "reconstruct",
    "Sample": "sample",
}


def _imported(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


if not TYPE_CHECKING:  # a type checker would accept any name of a module with `__getattr__`
    __getattr__ = _imported
