"""ptrnet learns to point: models whose answer is made of positions in their own input."""

import importlib
from typing import TYPE_CHECKING, Any

from ptrnet.version import VERSION

if TYPE_CHECKING:
    from ptrnet.data.bulk.generate import generate
    from ptrnet.data.bulk.label import label
    from ptrnet.data.tables import read_table
    from ptrnet.decoding import Beam, Greedy, Incremental, Reconstruct, Sample
    from ptrnet.errors import InputError, ModelError, OutsideTraining, PtrnetError
    from ptrnet.export.folder import export_onnx
    from ptrnet.sklearn import PointerEstimator as PointerEstimator
    from ptrnet.solver import Answer, Solver
    from ptrnet.training.fit import fit
    from ptrnet.weights import load

__version__ = VERSION
__all__ = [
    "Answer",
    "Beam",
    "Greedy",
    "Incremental",
    "InputError",
    "ModelError",
    "OutsideTraining",
    "PtrnetError",
    "Reconstruct",
    "Sample",
    "Solver",
    "export_onnx",
    "fit",
    "generate",
    "label",
    "load",
    "read_table",
]

# Not in __all__, as `from ptrnet import *` would need its extra: PointerEstimator.
# Imported when first used: `ptrnet --help` need not wait for torch.
_HOMES = {
    "Answer": "solver",
    "Beam": "decoding",
    "Greedy": "decoding",
    "Incremental": "decoding",
    "InputError": "errors",
    "ModelError": "errors",
    "OutsideTraining": "errors",
    "PointerEstimator": "sklearn",
    "PtrnetError": "errors",
    "Reconstruct": "decoding",
    "Sample": "decoding",
    "Solver": "solver",
    "export_onnx": "export.folder",
    "fit": "training.fit",
    "generate": "data.bulk.generate",
    "label": "data.bulk.label",
    "load": "weights",
    "read_table": "data.tables",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ptrnet' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ptrnet.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    prefix = f"{__name__}."
    modules = [k for k, v in globals().items() if getattr(v, "__name__", "").startswith(prefix)]
    return sorted({*modules, *(name for name in globals() if name.startswith("__")), *_HOMES})
