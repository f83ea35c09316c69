"""Choose the device and the precision of a training for the hardware."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ptrnet.errors import InputError, unknown
from ptrnet.training.recipe import Recipe

DEVICES = ("auto", "cpu", "cuda")


def device_of(name: str) -> str:
    """Return `cpu` or `cuda`. For `auto`, return cuda if torch finds a CUDA device.

    Raises:
        InputError: the name is unknown, or the name is cuda and torch finds no CUDA device.
    """
    if name not in DEVICES:
        raise unknown("device", name, DEVICES)
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        raise InputError("device: cuda was given, but torch finds no CUDA device on this machine")
    if name == "auto":
        return "cuda" if has_cuda else "cpu"
    return name


def has_run_on_gpu(recipe: Recipe) -> bool:
    """Whether we have tested trainings like the recipe's on a GPU.

    Other trainings use no CUDA graphs. On a GPU, they use bfloat16 only if the recipe's `precision`
    is `bfloat16`.
    """
    goal = recipe.objective
    whole_answers = goal.has_answers and goal.loss == "tokens" and not recipe.data.cuts
    return recipe.model == "ptr-net" and whole_answers


def precision_of(recipe: Recipe, device: str) -> str:
    """Return the precision of large matrix products: `bfloat16`, `tf32` or `float32`.

    For `auto`, return the fastest precision that is safe on this hardware. On a GPU, recurrent
    layers use TensorFloat-32 for matrix products, even if the precision is `bfloat16`. Raises
    InputError if the precision is tf32, and the device does not support TensorFloat-32.
    """
    name = recipe.run.precision
    if name == "tf32" and not (device == "cuda" and _ampere()):
        raise InputError("precision: tf32 needs a newer GPU; choose bfloat16 or float32")
    if name != "auto":
        return name
    if device == "cuda":
        has_bfloat16 = has_run_on_gpu(recipe) and _ampere()
    else:
        has_bfloat16 = torch.cpu._is_avx512_bf16_supported()
    return "bfloat16" if has_bfloat16 else "float32"


def _ampere() -> bool:
    """Whether the GPU supports bfloat16 and TensorFloat-32 (Ampere or newer)."""
    return torch.cuda.get_device_capability() >= (8, 0)


@contextmanager
def matmul_precision(precision: str, device: str) -> Iterator[None]:
    """In this context, a GPU may use TensorFloat-32, unless `precision` is `float32`."""
    if device != "cuda":
        yield
        return
    flags: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn]
    before = [flag.allow_tf32 for flag in flags]
    for flag in flags:
        flag.allow_tf32 = precision != "float32"
    try:
        yield
    finally:
        for flag, value in zip(flags, before, strict=True):
            flag.allow_tf32 = value
