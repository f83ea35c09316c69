"""Where to train and how precisely, by what the machine has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ptrnet.errors import InputError, unknown

DEVICES = ("auto", "cpu", "cuda")


def device_of(asked: str) -> str:
    """`cpu` or `cuda`, for `auto` the latter where it is there.

    Raises:
        InputError: another name, or cuda is asked for and not there.
    """
    if asked not in DEVICES:
        raise unknown("device", asked, DEVICES)
    there = torch.cuda.is_available()
    if asked == "cuda" and not there:
        raise InputError("device: asked for cuda, but torch finds none on this machine")
    if asked == "auto":
        return "cuda" if there else "cpu"
    return asked


def precision_of(asked: str, device: str) -> str:
    """`bfloat16`, `tf32` or `float32`: of the large products; for `auto` what is fast there.

    Recurrent products on a GPU are TensorFloat-32 even with `bfloat16`.

    Raises:
        InputError: tf32 is asked for where there is none.
    """
    if asked == "tf32" and not (device == "cuda" and _ampere()):
        raise InputError("precision: tf32 is of newer GPUs; here choose bfloat16 or float32")
    if asked != "auto":
        return asked
    there = _ampere() if device == "cuda" else torch.cpu._is_avx512_bf16_supported()
    return "bfloat16" if there else "float32"


def _ampere() -> bool:
    """Whether the GPU is of the generation that brought bfloat16 and TensorFloat-32, or newer."""
    return torch.cuda.get_device_capability() >= (8, 0)


@contextmanager
def products(precision: str, device: str) -> Iterator[None]:
    """Inside, a GPU takes float32 products in TensorFloat-32, unless float32 is meant."""
    if device != "cuda":
        yield
        return
    faster = precision != "float32"
    flags: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn]
    before = [flag.allow_tf32 for flag in flags]
    for flag in flags:
        flag.allow_tf32 = faster
    try:
        yield
    finally:
        for flag, was in zip(flags, before, strict=True):
            flag.allow_tf32 = was
