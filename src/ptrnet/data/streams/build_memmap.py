"""The examples of a file, written as a few flat arrays.

num_examples counts the examples, num_elements the elements of all their instances, num_indices the
indices of all their answers.

inputs.npy         (num_elements, d) float64, the elements of all instances one after another
starts.npy         (num_examples + 1,) int64, where each instance begins in them, and the end
answers.npy        (num_indices,) int32, the answers flat, 0-based, in the order of the file
answer_starts.npy  (num_examples + 1,) int64, where each answer begins in them, and the end
checksums.json     the SHA-256 of each of these files
"""

import json
from collections.abc import Iterable, Iterator
from functools import partial
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
from ptrnet.files import checksum
from ptrnet.parallel import ordered_map
from ptrnet.progress import track
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices

ARRAYS = INPUTS, STARTS, ANSWERS, ANSWER_STARTS = (
    "inputs.npy",
    "starts.npy",
    "answers.npy",
    "answer_starts.npy",
)
CHECKSUMS = "checksums.json"
_GROUP = 4000  # examples that are in memory as objects at a time


class FlatExamples(NamedTuple):
    """Examples as flat arrays."""

    inputs: Floats  # (num_elements, d), of all instances
    sizes: Indices  # (num_examples,) elements of each instance
    answers: Indices  # (num_indices,), of all answers
    lengths: Indices  # (num_examples,) indices of each answer


def build_memmap(path: str, task: Task, folder: Path) -> None:
    """Writes all examples of a file into the arrays of an empty folder.

    Raises:
        InputError: the file cannot be read, holds no example, holds one without an answer, or
            empty answers alone; the complaint is about the first line that cannot be used.
    """
    sizes, lengths = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    with (
        NpyWriter(folder / INPUTS, np.float64, (task.num_features,)) as inputs,
        NpyWriter(folder / ANSWERS, np.int32) as answers,
    ):
        total = _num_blocks(path) if formats.format_of(path).extension == "txt" else None
        for part in track(_read_flat(path, task), f"reading {path}", total):
            inputs.append(part.inputs)
            answers.append(part.answers)
            sizes.append(part.sizes)
            lengths.append(part.lengths)
    if not inputs.count:
        raise InputError(f"{path}: holds no instance")
    if not answers.count:
        raise InputError(f"{path}: every answer is empty")
    np.save(folder / STARTS, np.concatenate(sizes).cumsum())
    np.save(folder / ANSWER_STARTS, np.concatenate(lengths).cumsum())
    sums = {array: checksum(folder / array) for array in ARRAYS}
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")


def check_arrays(folder: Path) -> None:
    """Refuses a folder whose arrays are not as they were written. Raises InputError."""
    try:
        sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        for array in ARRAYS:
            if checksum(folder / array) != sums[array]:
                raise InputError(f"{folder}: damaged: {array} is not as it was written")
    except InputError:  # a ValueError, too
        raise
    except OSError as error:
        raise InputError(f"{folder}: damaged: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{folder}: damaged: {CHECKSUMS} is not readable") from None


def _read_flat(path: str, task: Task) -> Iterator[FlatExamples]:
    """The examples of a file, some thousand at a time; of text a block at a time, in parallel."""
    if formats.format_of(path).extension != "txt":
        examples = formats.read(path, task)
        while group := list(islice(examples, _GROUP)):
            yield _flatten(group, task)
        return
    # One process for one block: starting others takes longer than reading it.
    jobs = min(joblib.cpu_count(), _num_blocks(path))
    yield from ordered_map(partial(_read_block, path=path, task=task), blocks(path), jobs)


def _num_blocks(path: str) -> int:
    """How many blocks a file has, about."""
    return 1 + Path(path).stat().st_size // BLOCK


def _read_block(block: Block, path: str, task: Task) -> FlatExamples:
    return _flatten(txt.read_block(block, path, task), task)


def _flatten(examples: Iterable[Example], task: Task) -> FlatExamples:
    """Examples as flat arrays. Raises InputError for one without an answer."""
    inputs, answers = [np.zeros((0, task.num_features))], [np.zeros(0, np.int64)]
    for example in examples:
        if example.outputs is None:
            raise InputError(f"{example.source}: has no answer to train on")
        inputs.append(example.inputs)
        answers.append(example.outputs.ravel())
    return FlatExamples(
        np.concatenate(inputs),
        np.array([len(i) for i in inputs[1:]], np.int64),
        np.concatenate(answers),
        np.array([len(a) for a in answers[1:]], np.int64),
    )
