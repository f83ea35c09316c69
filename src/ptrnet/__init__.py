"""ptrnet trains and runs models whose answer is made of positions in their own input."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptrnet import constraints as constraints
    from ptrnet import decoding as decoding
    from ptrnet import labellers as labellers
    from ptrnet import models as models
    from ptrnet import plugins as plugins
    from ptrnet import tasks as tasks
    from ptrnet.data.formats import read_table
    from ptrnet.decoding import Beam, Greedy, Incremental, Reconstruct, Sample
    from ptrnet.errors import (
        InputError,
        ModelError,
        OutOfDistributionWarning,
        OutsideTraining,
        PtrnetError,
    )
    from ptrnet.export.folder import export_onnx
    from ptrnet.kernels.additive import additive_scores
    from ptrnet.labels import generate, label
    from ptrnet.sklearn import PointerEstimator as PointerEstimator
    from ptrnet.solver import Solver
    from ptrnet.solver.answer import Answer
    from ptrnet.training.fit import fit
    from ptrnet.training.tuning import tune
    from ptrnet.weights import load

__version__ = "0.1.0"  # must equal the version in `pyproject.toml`
__all__ = [
    "Answer",
    "Beam",
    "Greedy",
    "Incremental",
    "InputError",
    "ModelError",
    "OutOfDistributionWarning",
    "OutsideTraining",
    "PtrnetError",
    "Reconstruct",
    "Sample",
    "Solver",
    "additive_scores",
    "export_onnx",
    "fit",
    "generate",
    "label",
    "load",
    "read_table",
    "tune",
]

# Modules are imported when a name is first used, so that `ptrnet --help` need not import torch.
# `__all__` omits PointerEstimator, because `from ptrnet import *` would then need an extra.
_HOMES = {
    "Answer": "solver.answer",
    "Beam": "decoding",
    "Greedy": "decoding",
    "Incremental": "decoding",
    "InputError": "errors",
    "ModelError": "errors",
    "OutOfDistributionWarning": "errors",
    "OutsideTraining": "errors",
    "PointerEstimator": "sklearn",
    "PtrnetError": "errors",
    "Reconstruct": "decoding",
    "Sample": "decoding",
    "Solver": "solver",
    "additive_scores": "kernels.additive",
    "export_onnx": "export.folder",
    "fit": "training.fit",
    "generate": "labels",
    "label": "labels",
    "load": "weights",
    "read_table": "data.formats",
    "tune": "training.tuning",
}


# Packages that plug-ins extend. `__all__` omits these packages, too.
_PACKAGES = ("constraints", "decoding", "labellers", "models", "plugins", "tasks")


def _imported(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"ptrnet.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'ptrnet' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ptrnet.{_HOMES[name]}"), name)


if not TYPE_CHECKING:  # a type checker would accept any name of a module with `__getattr__`
    __getattr__ = _imported


def __dir__() -> list[str]:
    prefix = f"{__name__}."
    modules = [k for k, v in globals().items() if getattr(v, "__name__", "").startswith(prefix)]
    special = (name for name in globals() if name.startswith("__"))
    return sorted({*modules, *special, *_HOMES, *_PACKAGES})
