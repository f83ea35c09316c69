"""Which code the parts of a training step take on this machine, and why."""

import torch
from numba.core import config
from numba.core.codegen import get_host_cpu_features

from ptrnet.kernels import packed
from ptrnet.kernels.lstm import has_onednn
from ptrnet.kernels.lstm.cpu import MAX_FUSED
from ptrnet.kernels.lstm.products import (
    AmxProducts,
    Avx2Products,
    TorchProducts,
    products_class,
)
from ptrnet.models.settings import EncoderSettings, RecurrentSettings
from ptrnet.training.hardware import precision_of
from ptrnet.training.recipe import Recipe


def code_paths(recipe: Recipe) -> dict[str, str]:
    """The code that each part of the recipe's training step takes, and why it is that.

    Of a model that is not ptrnet's own nothing is known but the large products.
    """
    precision = precision_of(recipe.precision, recipe.device)
    paths = {"large products": f"PyTorch's, in {precision}"}
    settings = recipe.network
    if isinstance(settings, EncoderSettings):
        paths["attention"] = (
            "two products and a softmax in float32, as the backward pass of PyTorch's fused "
            "attention takes longer in bfloat16 and has no second derivative"
        )
    if isinstance(settings, RecurrentSettings):
        on_gpu = recipe.device == "cuda"
        recurrent = _on_gpu if on_gpu else _on_cpu
        paths |= recurrent(recipe, precision, getattr(settings, "score", ""), settings.cell)
    return paths


def _on_gpu(recipe: Recipe, precision: str, score: str, cell: str) -> dict[str, str]:
    paths = {"layers": "cuDNN's, outside autocast, which would round to float16"}
    if score == "additive":
        from ptrnet.kernels.additive import kernel_on

        is_triton = kernel_on(torch.device("cuda")).__module__.endswith("gpu")
        paths["scores"] = "Triton's kernel" if is_triton else "PyTorch's: Triton does not run here"
    return paths


def _on_cpu(recipe: Recipe, precision: str, score: str, cell: str) -> dict[str, str]:
    paths = {}
    if cell == "lstm":
        dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        features = recipe.task.num_features
        sizes = recipe.network.hidden_size, 0 if features <= MAX_FUSED else features
        is_by_avx2 = products_class(*sizes, dtype) is Avx2Products
        if precision == "float32" and has_onednn() and not is_by_avx2:
            paths["layers"] = "PyTorch's nn.LSTM on oneDNN, the faster in float32 with gradients"
        else:
            paths["recurrent products"] = _products(*sizes, dtype)
            paths["gates"] = _compiled()
    if score == "additive":
        paths["scores"] = _compiled()
    return paths


def _products(units: int, features: int, dtype: torch.dtype) -> str:
    products = products_class(units, features, dtype)
    if products is AmxProducts:
        return "by AMX tiles, which the processor has and the units fill"
    instructions = ["avx512_bf16"] if dtype == torch.bfloat16 else ["avx512f", "avx2"]
    flags = get_host_cpu_features().split(",")
    has = [name for name in instructions if f"+{name.replace('_', '')}" in flags]
    if products is not TorchProducts:
        return f"compiled, weights packed once a step, as the processor has {has[0]}"
    if packed.is_restricted():
        return "PyTorch's, as numba was told to compile for another processor, or not at all"
    missing = f"the processor has no {instructions[-1]}"
    return f"PyTorch's, as {'the units do not fill whole panels' if has else missing}"


def _compiled() -> str:
    """A description of the code that numba compiles on this machine."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return "interpreted, as numba was told not to compile"
    features = (config.CPU_FEATURES or get_host_cpu_features()).split(",")  # type: ignore[attr-defined]
    widths = {"+avx512f": "512", "+avx2": "256", "+neon": "128"}
    width = next((bits for feature, bits in widths.items() if feature in features), None)
    return f"compiled for this processor, {f'vectors of {width} bits' if width else 'scalar'}"
