"""Where to train and how precisely, by what the machine has."""

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


def bfloat16(precision: str, device: str) -> bool:
    """Whether the large products are in bfloat16; for `auto`, where the hardware has it."""
    if precision != "auto":
        return precision == "bfloat16"
    if device == "cuda":
        return torch.cuda.is_bf16_supported()
    return torch.cpu._is_avx512_bf16_supported()
