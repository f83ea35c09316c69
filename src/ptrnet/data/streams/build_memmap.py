"""The examples of a file, written as a few flat arrays.

inputs.npy         (t, d) float64, the elements of all instances one after another
starts.npy         (m + 1,) int64, where each of m instances begins in them, and the end
answers.npy        int32, the answers flat, 0-based, in the file's own order
answer_starts.npy  (m + 1,) int64, where each answer begins in them, and the end
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np

from ptrnet.data import formats
from ptrnet.data.formats import txt
from ptrnet.data.formats.parts.lines import BLOCK, Block, blocks
from ptrnet.data.streams.npy_writer import NpyWriter
from ptrnet.errors import InputError
from ptrnet.progress import track
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices

INPUTS, STARTS = "inputs.npy", "starts.npy"
ANSWERS, ANSWER_STARTS = "answers.npy", "answer_starts.npy"
_GROUP = 4000  # examples held as objects
_WAVE = 8  # blocks for each process before their pieces are written


class Piece(NamedTuple):
    """Some examples, flat."""

    inputs: Floats  # (t, d)
    sizes: Indices  # (m,), together t
    answers: Indices  # (a,)
    widths: Indices  # (m,), together a


def pack(name: str, task: Task, folder: Path) -> None:
    """Writes all examples of a file into the arrays of an empty folder.

    Raises:
        InputError: the file cannot be read, holds no example, or one without an answer; the
            complaint is that of the first line that cannot be used.
    """
    sizes, widths = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    with (
        NpyWriter(folder / INPUTS, np.float64, (task.num_features,)) as inputs,
        NpyWriter(folder / ANSWERS, np.int32) as answers,
    ):
        total = _blocks(name) if formats.format_of(name).extension == "txt" else None
        for piece in track(_pieces(name, task), f"reading {name}", total):
            inputs.append(piece.inputs)
            answers.append(piece.answers)
            sizes.append(piece.sizes)
            widths.append(piece.widths)
    if not inputs.count:
        raise InputError(f"{name}: holds no instance")
    if not answers.count:
        raise InputError(f"{name}: every answer is empty")
    np.save(folder / STARTS, np.concatenate(sizes).cumsum())
    np.save(folder / ANSWER_STARTS, np.concatenate(widths).cumsum())


def _blocks(name: str) -> int:
    """How many blocks a file has, about."""
    return 1 + Path(name).stat().st_size // BLOCK


def _pieces(name: str, task: Task) -> Iterator[Piece]:
    if formats.format_of(name).extension != "txt":
        examples = formats.read(name, task)
        while group := list(islice(examples, _GROUP)):
            yield _piece(group, task)
        return
    # One process for one block: starting others takes longer than reading it.
    jobs = min(joblib.cpu_count(), _blocks(name))
    left = blocks(name)
    with joblib.Parallel(n_jobs=jobs) as processes:
        while wave := list(islice(left, _WAVE * jobs)):
            for found in processes(joblib.delayed(_piece_of)(block, name, task) for block in wave):
                if isinstance(found, InputError):
                    raise found
                yield found


def _piece_of(block: Block, name: str, task: Task) -> Piece | InputError:
    """A block's examples, or the complaint: not raised, or that of a later block might be first."""
    try:
        return _piece(txt.read_block(block, name, task), task)
    except InputError as error:
        return error


def _piece(examples: Iterable[Example], task: Task) -> Piece:
    inputs, answers = [np.zeros((0, task.num_features))], [np.zeros(0, np.int64)]
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to train on")
        inputs.append(example.inputs)
        answers.append(example.outputs.ravel())
    return Piece(
        np.concatenate(inputs),
        np.array([len(i) for i in inputs[1:]], np.int64),
        np.concatenate(answers),
        np.array([len(a) for a in answers[1:]], np.int64),
    )
