"""Streams: batch k depends on the seed and k, an epoch has each example once, cuts, prefetching."""

import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

from ptrnet import models, tasks
from ptrnet.data import formats, streams
from ptrnet.data.stored import open_file
from ptrnet.data.streams import (
    DatasetStream,
    FreshStream,
    cut_batch,
    draw_held_out,
    prefetch,
)
from ptrnet.errors import InputError
from ptrnet.labels import generate_dataset
from ptrnet.tasks.sort import Sort
from ptrnet.training.losses import cut_losses


def test_an_epoch_has_each_batch_once():
    task = tasks.get("sort")
    endless = FreshStream(task, [3, 4], 8, seed=2)
    epochs = FreshStream(task, [3, 4], 8, seed=2, num_batches=6)
    first = {endless.batch(k).inputs.numpy().tobytes(): k for k in range(6)}
    orders = [
        [first[epochs.batch(6 * epoch + k).inputs.numpy().tobytes()] for k in range(6)]
        for epoch in range(4)
    ]
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    assert torch.equal(epochs.batch(20).inputs, epochs.batch(20).inputs)


class Prices(Sort):
    """A task whose instances are drawn outside the unit cube."""

    def sample(self, rng, count, n):
        return 100 + 900 * super().sample(rng, count, n)


@pytest.mark.parametrize("order", ["given", "lexicographic"])
def test_drawn_instances_are_normalized_like_those_of_a_user(order):
    task = Prices(order=order)
    batch = FreshStream(task, [5], 20, seed=3).batch(0)
    expected = FreshStream(task, [5], 20, seed=3, has_answers=False).batch(0)
    for inputs, targets, instance in zip(
        batch.inputs.numpy(), batch.targets.numpy(), expected.instances, strict=True
    ):
        np.testing.assert_array_equal(inputs, task.normalize(instance).astype(np.float32))
        assert inputs.min() == 0 and inputs.max() == 1
        assert (np.diff(inputs[targets[:5] - task.facts.num_specials, 0]) > 0).all()


SIZES = [3, 4, 6, 9]


def stream_of(path, task, sizes, batch_size, seed, **options):
    data = open_file(path, task)
    return DatasetStream(task, sizes, batch_size, seed, data, name=path, **options)


@pytest.fixture
def write_examples(tmp_path):
    """Return a function that writes 50 examples of a task, and returns task, path and examples."""

    def write(name, **settings):
        task = tasks.get(name, **settings)
        examples = list(generate_dataset(task, SIZES, 50, seed=1))
        path = str(tmp_path / f"{name}.txt")
        formats.write(path, examples, task)
        return task, path, examples

    return write


def pairs_of(batch):
    """Yield the inputs and the target tokens of each example of a batch."""
    for inputs, n, targets, m in zip(*batch[:4], strict=True):
        yield tuple(inputs[:n].ravel().tolist()), tuple(targets[:m].tolist())


def expected_pairs(task, examples):
    """Yield what `pairs_of` should yield. Generated answers are canonical already."""
    for example in examples:
        tokens = (example.outputs + task.facts.num_specials).ravel().tolist()
        inputs = task.normalize(example.inputs).astype(np.float32)
        yield tuple(inputs.ravel().tolist()), (*tokens, 0)


@pytest.mark.parametrize("name", tasks.names())
def test_an_epoch_has_each_example_once(write_examples, name):
    task, path, examples = write_examples(name)
    stream = stream_of(path, task, SIZES, 7, seed=3)
    assert stream.batches_per_epoch == 8
    epochs = [[stream.batch(8 * e + k) for k in range(8)] for e in range(3)]
    for batches in epochs:
        seen = [example for batch in batches for example in pairs_of(batch)]
        assert sorted(seen) == sorted(expected_pairs(task, examples))
        assert sorted(len(batch.lengths) for batch in batches) == [1] + [7] * 7
        assert sum(len(set(batch.lengths.tolist())) > 1 for batch in batches) <= len(SIZES) - 1
    orders = [[next(pairs_of(batch)) for batch in batches] for batches in epochs]
    assert orders[0] != orders[1] != orders[2]
    sizes = [batch.lengths[0].item() for batch in epochs[0]]
    assert sizes != sorted(sizes), "batches of all sizes are mixed"


def test_the_seed_decides_which_examples_are_held_out():
    numbers = np.arange(10, 110)
    (drawn,) = draw_held_out(numbers, 0.1, 50, seed=3)
    assert len(drawn) == 10 and set(drawn) <= set(numbers) and (np.diff(drawn) > 0).all()
    assert drawn.tolist() == draw_held_out(numbers, 0.1, 50, seed=3)[0].tolist()
    assert drawn.tolist() != draw_held_out(numbers, 0.1, 50, seed=4)[0].tolist()
    assert len(draw_held_out(numbers, 0.1, 4, seed=3)[0]) == 4
    assert len(draw_held_out(numbers, 0.001, 4, seed=3)[0]) == 1
    assert draw_held_out(numbers, 0.0, 4, seed=3) == draw_held_out(numbers, 0.1, 0, seed=3) == []
    assert len(draw_held_out(numbers[:1], 0.1, 4, seed=3)[0]) == 1


def test_networks_of_an_ensemble_hold_out_disjoint_parts():
    parts = draw_held_out(np.arange(10, 110), 0.1, 50, seed=3, num_parts=5)
    assert [len(part) for part in parts] == [10] * 5
    assert len(set(np.concatenate(parts))) == 50
    assert [len(part) for part in draw_held_out(np.arange(3), 0.1, 50, 3, 5)] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("num_parts", [1, 5])
def test_groups_are_held_out_as_a_whole(num_parts):
    rng = np.random.default_rng(0)
    candidates = np.sort(rng.permutation(1000)[:800])
    groups = rng.integers(-(2**63), 2**63 - 1, 100)[rng.integers(100, size=1000)]
    parts = draw_held_out(candidates, 0.1, 500, 3, num_parts, groups)
    assert len(parts) == num_parts and all(80 <= len(part) < 100 for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)
    for group in np.unique(groups):
        members = {*candidates[groups[candidates] == group].tolist()}
        held_out = [members & {*part.tolist()} for part in parts]
        assert sum(map(bool, held_out)) <= 1 and all(h in (set(), members) for h in held_out)
    again = draw_held_out(candidates, 0.1, 500, 3, num_parts, groups // 3 + 5)  # other codes
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    other = draw_held_out(candidates, 0.1, 500, 4, num_parts, groups)
    assert not all(np.array_equal(a, b) for a, b in zip(parts, other, strict=True))


def test_large_groups_are_held_out_only_by_networks_without_another_group():
    groups = np.repeat([7, 8, 9, 10], [60, 25, 10, 5])
    (part,) = draw_held_out(np.arange(100), 0.1, 50, seed=3, groups=groups)
    assert {*groups[part]} <= {9, 10}
    parts = draw_held_out(np.arange(100), 0.1, 50, seed=3, num_parts=5, groups=groups)
    assert sorted(len(part) for part in parts) == [0, 5, 10, 25, 60]
    (part,) = draw_held_out(np.arange(60), 0.1, 50, seed=3, groups=groups)
    assert len(part) == 60  # a single group; the stream refuses to hold out everything


def test_batches_say_which_network_holds_an_example_out(write_examples):
    task, path, examples = write_examples("sort")
    stream = stream_of(path, task, SIZES, 7, 3, valid_share=0.1, max_valid=9, num_parts=3)
    network_of = {}
    for k, part in enumerate(stream.held_out):
        network_of |= dict.fromkeys(expected_pairs(task, part), k)
    assert sorted(network_of.values()) == [k for k in range(3) for _ in range(5)]
    for source in (stream, replace(stream, num_cuts=2)):
        seen = []
        for batch in map(source.batch, range(8)):
            pairs = list(pairs_of(batch))
            assert batch.held_out_by.tolist() == [network_of.get(pair, -1) for pair in pairs]
            seen += pairs
        assert set(seen) == set(expected_pairs(task, examples))  # none is left out


def test_batches_have_the_weights_of_their_rows_and_no_row_of_weight_0(write_examples):
    task, path, examples = write_examples("sort")
    weight_of = {pair: k % 4 for k, pair in enumerate(expected_pairs(task, examples))}
    data = replace(open_file(path, task), columns={"weight": [*weight_of.values()]})
    stream = DatasetStream(task, SIZES, 7, 3, data, valid_share=0.1, max_valid=9)
    held_out = {
        pair: example.weight
        for example in stream.held_out[0]
        for pair in expected_pairs(task, [example])
    }
    for source in (stream, replace(stream, num_cuts=2)):
        seen = {}
        for batch in map(source.batch, range(stream.batches_per_epoch)):
            seen |= dict(zip(pairs_of(batch), batch.weights.tolist(), strict=True))
        assert held_out and not seen.keys() & held_out.keys()
        assert {**seen, **held_out} == {
            pair: weight for pair, weight in weight_of.items() if weight
        }


def test_batch_k_depends_on_the_seed_and_k_alone(write_examples):
    task, path, _ = write_examples("hull")
    stream = stream_of(path, task, SIZES, 7, seed=3, is_augmented=True)
    later = stream_of(path, task, SIZES, 7, 3, first=9, num_prefetch=1, is_augmented=True)
    for k, batch in zip(range(9, 20), later, strict=False):
        assert all(torch.equal(a, b) for a, b in zip(batch[:4], stream.batch(k)[:4], strict=True))
    other = stream_of(path, task, SIZES, 7, seed=4)
    assert list(pairs_of(other.batch(0))) != list(
        pairs_of(stream_of(path, task, SIZES, 7, 3).batch(0))
    )


def test_each_epoch_transforms_an_example_differently(write_examples):
    task, path, examples = write_examples("hull")
    stream = stream_of(path, task, [9], 100, seed=3, is_augmented=True)
    first, second = set(pairs_of(stream.batch(0))), set(pairs_of(stream.batch(1)))
    assert len(first) == sum(len(e.inputs) == 9 for e in examples) and not first & second


def test_answers_become_canonical_and_instances_are_normalized(tmp_path):
    path = tmp_path / "f.txt"
    # A square of side 40. The answer lists its corners clockwise. The third is leftmost and lowest.
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


def test_leaves_out_instances_of_other_sizes(write_examples):
    task, path, examples = write_examples("sort")
    stream = stream_of(path, task, [4, 9], 100, seed=1)
    batch = stream.batch(0)
    wanted = [len(e.inputs) for e in examples if len(e.inputs) in (4, 9)]
    assert sorted(batch.lengths.tolist()) == sorted(wanted) and stream.batches_per_epoch == 1
    with pytest.raises(
        InputError, match=r"sort.txt: expected instances of n = .* elements, got 3 to 9"
    ):
        stream_of(path, task, [5, 10], 100, seed=1)


def test_elements_are_sorted_as_the_model_reads_them(write_examples):
    task, path, _ = write_examples("hull", order="lexicographic")
    stream = stream_of(path, task, SIZES, 50, seed=3, is_augmented=True)
    batch = stream.batch(0)
    fresh = FreshStream(task, [9], 50, seed=3).batch(0)
    for inputs, lengths, *_ in (batch, fresh):
        for instance, n in zip(inputs[..., 0].tolist(), lengths.tolist(), strict=True):
            assert instance[:n] == sorted(instance[:n])
    for rows, targets, n in zip(batch.inputs, batch.targets - 1, batch.lengths, strict=True):
        hull = ConvexHull(rows[:n]).vertices if n > 2 else range(n)
        assert sorted(targets[targets >= 0].tolist()) == sorted(hull)


def edges_of(tour):
    """Return the edges of a closed tour as a set."""
    return {frozenset(edge) for edge in zip(tour, [*tour[1:], tour[0]], strict=True)}


@pytest.mark.parametrize("task", [tasks.get("tsp"), tasks.get("hull"), tasks.get("sort")])
def test_cut_answers_are_the_answers_of_the_stream(task):
    stream = FreshStream(task, [5, 7], 4, seed=3)
    cut_stream, beginnings = replace(stream, num_cuts=3), set()
    for k in range(30):
        batch, cut = stream.batch(k), cut_stream.batch(k)
        copies = 3 if task.facts.circular else 1
        assert cut.inputs.shape == (4 * copies, *batch.inputs.shape[1:])
        assert int(task.facts.circular) <= cut.num_known < int(batch.target_lengths.max())
        for row in range(4 * copies):
            end = int(batch.target_lengths[row // copies])
            assert torch.equal(cut.inputs[row], batch.inputs[row // copies])
            actual, expected = cut.targets[row], batch.targets[row // copies]
            assert cut.target_lengths[row] == end and actual[end - 1] == 0
            if task.facts.circular:
                assert edges_of(actual[: end - 1].tolist()) == edges_of(
                    expected[: end - 1].tolist()
                )
                beginnings.add((int(actual[0]), int(actual[1])))
            else:
                assert torch.equal(actual, expected)
        again = replace(stream, num_cuts=3).batch(k)
        assert again.num_known == cut.num_known and torch.equal(again.targets, cut.targets)
    assert len(beginnings) > 20 or not task.facts.circular


@pytest.mark.parametrize("task", [tasks.get("tsp"), tasks.get("hull")])
def test_an_example_without_target_tokens_can_be_cut(task):
    """A process gets such an example if a batch has fewer rows than there are processes."""
    batch = FreshStream(task, [5], 1, seed=3).batch(0)
    batch = batch._replace(target_lengths=torch.zeros(1, dtype=torch.int64))
    cut = cut_batch(np.random.default_rng(0), task, batch, 2)
    copies = (
        2 if task.facts.circular else 1
    )  # other answers have no copies, because these would be equal
    assert cut.num_known == 0 and torch.equal(cut.targets, batch.targets.repeat(copies, 1))
    loss, right = cut_losses(models.build("ptr-net", 2, 1, hidden_size=4), cut)
    assert not loss.any() and right.all()


@pytest.mark.parametrize("name", ["ptr-net", "remaining-ptr-net"])
def test_cut_loss_equals_the_log_likelihoods(name):
    """The first token's loss follows from `log_probs`; for ptr-net, those of all tokens do."""
    torch.manual_seed(1)
    model, task = models.build(name, 2, 1, hidden_size=16).double(), tasks.get("hull")
    batch = FreshStream(task, [8], 6, seed=1).batch(0)
    batch = batch._replace(inputs=batch.inputs.double())
    likelihoods = model.log_probs(*batch[:4]).gather(2, batch.targets[..., None])[..., 0].detach()
    for seed in range(5):
        cut = cut_batch(np.random.default_rng(seed), task, batch, 1)
        ends, num_known = batch.target_lengths.tolist(), cut.num_known
        rows = [likelihoods[b, num_known:end] for b, end in enumerate(ends) if end > num_known]
        first = -torch.stack([row[0] for row in rows]).mean()
        rest = [-row[1:] for row in rows if len(row) > 1]
        others = torch.cat(rest).mean() if rest else torch.tensor(0.0)
        loss, right = cut_losses(model, cut)
        if name == "ptr-net":
            torch.testing.assert_close(loss.mean(), first + others)
        next_rows = model.rest_log_probs(*cut[:4], cut.num_known)[:, 0]
        torch.testing.assert_close(next_rows, model.log_probs(*cut[:4])[:, num_known])
        assert right.shape == (6,) and loss.mean() > first - 1e-9


def test_pages_of_other_processes_are_those_of_a_thread(monkeypatch):
    monkeypatch.setattr(streams, "FROM_THREAD", 3)
    stream = FreshStream(tasks.get("reading-order"), [2, 5, 9], 4, seed=3, first=5)
    with closing(stream.batches()) as batches:
        for k, batch in zip(range(5, 15), batches, strict=False):
            assert all(map(torch.equal, batch[:4], stream.batch(k)[:4]))


def test_prefetch_makes_each_item_once_in_order():
    made = []
    items = prefetch(lambda k: made.append(k) or k, 3, 2)
    assert [next(items) for _ in range(5)] == [3, 4, 5, 6, 7]
    items.close()
    assert made == sorted(set(made)) and made[-1] <= 9


def test_prefetch_raises_the_error_of_an_item():
    before = {*threading.enumerate()}  # other tests may have left threads
    items = prefetch(lambda k: 1 // (2 - k), 0, 2)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(items)
    assert {*threading.enumerate()} <= before


def test_a_process_exits_cleanly_while_prefetching():
    """At exit the thread is inside torch, without the interpreter's lock."""
    code = (
        "import torch; from ptrnet.data.streams import prefetch; x = torch.ones(600, 600);"
        "items = prefetch(lambda k: (x @ x).sum(), 0, 2); next(items)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")
