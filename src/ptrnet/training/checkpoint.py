"""Read and write the last two checkpoints of a run.

A checkpoint ends with a SHA-256 of what comes before it. `torch.load` ignores it and verifies none
of the checksums in a zip file. `ZipFile.testzip` would not be enough: a flipped bit in a file's
directory can make `torch.load` return uninitialized memory.
"""

import hashlib
import io
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ptrnet.errors import InputError
from ptrnet.files import atomic_path, exists, named_failure

LAST, PREVIOUS = "checkpoint.ckpt", "previous.ckpt"
_DIGEST_SIZE = hashlib.sha256().digest_size
_KEYS = {"global_step", "state_dict", "optimizer", "best"}


class Checkpoint(NamedTuple):
    """The content of a checkpoint, and the path of the file that it was read from."""

    path: Path
    content: dict[str, Any]

    @property
    def step(self) -> int:
        """The number of steps before the checkpoint."""
        return int(self.content["global_step"])

    def make_last(self) -> None:
        """If this checkpoint was read from the file PREVIOUS, rename the file to LAST."""
        if self.path.name == PREVIOUS:
            self.path.replace(self.path.with_name(LAST))


def write(path: Path, checkpoint: Any) -> None:
    """Write a checkpoint. If `path` is the run's LAST checkpoint, keep the old file as PREVIOUS.

    Raises:
        OutputError: the folder is not writable, or the disk is full. The last checkpoint is kept.
    """
    stream = io.BytesIO()
    torch.save(checkpoint, stream)
    with atomic_path(path) as temporary:
        temporary.write_bytes(_with_digest(stream.getvalue()))
        if path.name == LAST and path.exists():
            path.replace(path.with_name(PREVIOUS))


def _with_digest(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


def read(path: Path) -> dict[str, Any]:
    """Read a checkpoint without running code from it.

    Raises:
        InputError: the file is not a checkpoint of ptrnet, or the file is damaged.
    """
    with named_failure(f"{path}: cannot be read"):
        stored = path.read_bytes()
    content = stored[:-_DIGEST_SIZE]
    if stored != _with_digest(content):
        raise InputError(
            f"{path}: not a checkpoint of ours, or a damaged one ({len(stored)} bytes)"
        )
    try:
        checkpoint: dict[str, Any] = torch.load(
            io.BytesIO(content), map_location="cpu", weights_only=True
        )
        missing = sorted(_KEYS - set(checkpoint))
    except Exception:  # torch, zipfile and the restricted unpickler raise many types
        raise InputError(f"{path}: not a checkpoint of ours") from None
    if missing:
        raise InputError(f"{path}: not a checkpoint of ours: {missing[0]} is missing")
    return checkpoint


def read_last(folder: Path) -> Checkpoint | None:
    """Read the run's last checkpoint.

    If the last checkpoint is damaged or missing, read the previous checkpoint. If the run has no
    checkpoints, return None.

    Raises:
        InputError: the run has checkpoints, but none can be read. The message names the last
            checkpoint.
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
        print(f"{error}; using the checkpoint of step {content['global_step']}", file=sys.stderr)
        return Checkpoint(previous, content)
