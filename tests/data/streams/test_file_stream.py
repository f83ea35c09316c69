"""Batches of a file's examples: every example once in an epoch, counted, as the task asks."""

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.data.stored import open_file
from ptrnet.data.streams import DatasetStream, ExampleStream
from ptrnet.data.symmetries import augment
from ptrnet.errors import InputError
from ptrnet.labels import generate_dataset

SIZES = [3, 4, 6, 9]


def stream_of(path, task, *arguments, **options):
    return DatasetStream(open_file(path, task), task, *arguments, name=path, **options)


@pytest.fixture
def written(tmp_path):
    """A function that writes 50 examples of a task and gives the file's path and the examples."""

    def write(name, **settings):
        task = tasks.get(name, **settings)
        examples = list(generate_dataset(task, SIZES, 50, seed=1))
        path = str(tmp_path / f"{name}.txt")
        formats.write(path, examples, task)
        return task, path, examples

    return write


def each(batch):
    """What tells an example: its inputs, and its tokens."""
    for inputs, n, targets, m in zip(*batch[:4], strict=True):
        yield tuple(inputs[:n].ravel().tolist()), tuple(targets[:m].tolist())


def expected(task, examples):
    """Generated answers are canonical: their tokens follow from the definition."""
    for example in examples:
        tokens = (example.outputs + task.num_specials).ravel().tolist()
        yield tuple(example.inputs.astype(np.float32).ravel().tolist()), (*tokens, 0)


@pytest.mark.parametrize("name", tasks.names())
def test_every_example_once_in_every_epoch(written, name):
    task, path, examples = written(name)
    stream = stream_of(path, task, SIZES, 7, seed=3)
    assert stream.batches_per_epoch == 8
    epochs = [[stream.batch(8 * e + k) for k in range(8)] for e in range(3)]
    for batches in epochs:
        seen = [example for batch in batches for example in each(batch)]
        assert sorted(seen) == sorted(expected(task, examples))
        assert sorted(len(batch.lengths) for batch in batches) == [1] + [7] * 7
        assert sum(len(set(batch.lengths.tolist())) > 1 for batch in batches) <= len(SIZES) - 1
    orders = [[next(each(batch)) for batch in batches] for batches in epochs]
    assert orders[0] != orders[1] != orders[2]
    sizes = [batch.lengths[0].item() for batch in epochs[0]]
    assert sizes != sorted(sizes), "sizes come mixed"


def test_batches_are_counted(written):
    task, path, _ = written("hull")
    stream = stream_of(path, task, SIZES, 7, seed=3, transform=augment)
    later = DatasetStream(
        open_file(path, task), task, SIZES, 7, seed=3, first=9, num_prefetch=1, transform=augment
    )
    for k, batch in zip(range(9, 20), later, strict=False):
        assert all(torch.equal(a, b) for a, b in zip(batch[:4], stream.batch(k)[:4], strict=True))
    other = stream_of(path, task, SIZES, 7, seed=4)
    assert list(each(other.batch(0))) != list(each(stream_of(path, task, SIZES, 7, 3).batch(0)))


def test_an_example_is_changed_anew_each_time(written):
    task, path, examples = written("hull")
    stream = stream_of(path, task, [9], 100, seed=3, transform=augment)
    first, second = set(each(stream.batch(0))), set(each(stream.batch(1)))
    assert len(first) == sum(len(e.inputs) == 9 for e in examples) and not first & second


def test_answers_are_made_canonical_and_instances_moved_into_the_square(tmp_path):
    path = tmp_path / "f.txt"
    # A square of side 40 whose corners are named clockwise; leftmost and lowest is the third.
    path.write_text("10 60 50 60 10 20 50 20 30 40 output 2 4 3 1 2\n")
    for settings, tokens in (
        ({}, [3, 4, 2, 1, 0]),
        ({"start": "lowest-index"}, [1, 3, 4, 2, 0]),
        ({"closed": True}, [3, 4, 2, 1, 3, 0]),
    ):
        task = tasks.get("hull", **settings)
        (batch,) = (stream_of(str(path), task, [5], 4, seed=1).batch(k) for k in [6])
        assert batch.targets.tolist() == [tokens]
        assert batch.inputs.tolist() == [[[0, 1], [1, 1], [0, 0], [1, 0], [0.5, 0.5]]]


def test_other_sizes_are_left_out(written):
    task, path, examples = written("sort")
    stream = stream_of(path, task, [4, 9], 100, seed=1)
    batch = stream.batch(0)
    wanted = [len(e.inputs) for e in examples if len(e.inputs) in (4, 9)]
    assert sorted(batch.lengths.tolist()) == sorted(wanted) and stream.batches_per_epoch == 1
    with pytest.raises(InputError, match=r"sort.txt: none of its .*; they have 3 to 9 elements"):
        stream_of(path, task, [5, 10], 100, seed=1)


def test_elements_come_in_the_order_that_the_model_reads(written):
    task, path, _ = written("hull", order="lexicographic")
    stream = stream_of(path, task, SIZES, 50, seed=3, transform=augment)
    batch = stream.batch(0)
    fresh = ExampleStream(task, [9], 50, seed=3).batch(0)
    for inputs, lengths, *_ in (batch, fresh):
        for instance, n in zip(inputs[..., 0].tolist(), lengths.tolist(), strict=True):
            assert instance[:n] == sorted(instance[:n])
    for rows, targets, n in zip(batch.inputs, batch.targets - 1, batch.lengths, strict=True):
        hull = ConvexHull(rows[:n]).vertices if n > 2 else range(n)
        assert sorted(targets[targets >= 0].tolist()) == sorted(hull)
