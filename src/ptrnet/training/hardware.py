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


def precision_of(asked: str, device: str) -> str:
    """`bfloat16`, `tf32` or `float32`: of the large products; for `auto` what is fast there.

    Raises:
        InputError: tf32 is asked for on a CPU.
    """
    if asked == "tf32" and device != "cuda":
        raise InputError("precision: tf32 is of GPUs; on a CPU choose bfloat16 or float32")
    if asked != "auto":
        return asked
    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "tf32"
    return "bfloat16" if torch.cpu._is_avx512_bf16_supported() else "float32"


def set_products(precision: str) -> None:
    """Lets a GPU take float32 products in TensorFloat-32, unless float32 is meant."""
    faster = precision != "float32"
    torch.backends.cuda.matmul.allow_tf32 = faster
    torch.backends.cudnn.allow_tf32 = faster
