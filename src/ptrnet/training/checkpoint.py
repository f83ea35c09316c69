"""A run's checkpoints on disk: the last two, each with a checksum after its content.

PyTorch checks no checksum of its format. Ours is a trailer, which PyTorch does not mind: the file
is still one that `torch.load(path, weights_only=True)` reads.
"""

import hashlib
import io
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ptrnet.errors import InputError
from ptrnet.files import atomic_path, exists

LAST, PREVIOUS = "checkpoint.ckpt", "previous.ckpt"
_TAG = b"\nptrnet sha256 "
_TRAILER = len(_TAG) + hashlib.sha256().digest_size
_KEYS = {"global_step", "state_dict", "callbacks", "pytorch-lightning_version"}


class Checkpoint(NamedTuple):
    """A checkpoint, and the file it was read from."""

    path: Path
    content: dict[str, Any]

    def make_last(self) -> None:
        """Puts it in the place of a later one that is damaged: the next is kept beside it."""
        if self.path.name == PREVIOUS:
            self.path.replace(self.path.with_name(LAST))


def write(path: Path, checkpoint: Any) -> None:
    """Writes a checkpoint; what was the run's last becomes the one before.

    Raises:
        OutputError: the folder is not writable, or the disk is full; what was the last is kept.
    """
    stream = io.BytesIO()
    torch.save(checkpoint, stream)
    stream.write(_TAG + hashlib.sha256(stream.getbuffer()).digest())
    with atomic_path(path) as temporary:
        temporary.write_bytes(stream.getbuffer())
        if path.name == LAST and path.exists():
            path.replace(path.with_name(PREVIOUS))


def read(path: Path) -> dict[str, Any]:
    """A checkpoint, read without running code; one without a checksum as it is.

    Raises:
        InputError: not a whole checkpoint of ours, or one that is not as it was written.
    """
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    content, trailer = stored[:-_TRAILER], stored[-_TRAILER:]
    if not trailer.startswith(_TAG):
        content = stored
    elif trailer[len(_TAG) :] != hashlib.sha256(content).digest():
        raise InputError(f"{path}: damaged: it is not as it was written")
    try:
        checkpoint: dict[str, Any] = torch.load(
            io.BytesIO(content), map_location="cpu", weights_only=True
        )
        missing = sorted(_KEYS - set(checkpoint))
    except Exception:  # of torch, zipfile and the restricted unpickler
        raise InputError(
            f"{path}: not a checkpoint of ours, or a damaged one ({len(stored)} bytes)"
        ) from None
    if missing:
        raise InputError(f"{path}: not a checkpoint of ours: {missing[0]} is missing")
    return checkpoint


def read_last(folder: Path) -> Checkpoint | None:
    """A run's last checkpoint, or the one before where that is damaged; None where there is none.

    Raises:
        InputError: there are some, and none can be read; the complaint is about the last.
    """
    last, previous = folder / LAST, folder / PREVIOUS
    if not exists(last) and not exists(previous):
        return None
    try:
        return Checkpoint(last, read(last))
    except InputError as error:
        if not exists(previous):
            raise
        try:
            content = read(previous)
        except InputError:
            raise error from None
        print(f"{error}; going on from step {content['global_step']}", file=sys.stderr)
        return Checkpoint(previous, content)
