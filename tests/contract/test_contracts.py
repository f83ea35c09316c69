"""The standing contracts, over every registered task, model, decoder and constraint.

A test that combines more than two of these does not run all combinations, but covers every pair
(`pairwise.py`).
"""

import io
from itertools import product

import numpy as np
import pytest
import torch

from ptrnet import labellers, models, tasks
from ptrnet.constraints import unconstrained
from ptrnet.data import formats
from ptrnet.data.streams import FreshStream
from ptrnet.decoding import Beam, Greedy, Incremental, Sample
from ptrnet.labels import generate_dataset
from ptrnet.metrics import summary
from ptrnet.model_folder import load
from ptrnet.types import TRAIN, VALID, Example
from ptrnet.views import augmented_view, canonicalize_valid
from tests.contract.cases import (
    CONSTRAINTS,
    DECODERS,
    EVERY_PAIR,
    EVERY_SETTING,
    EVERY_TASK,
    MODELS,
    SETTINGS,
    TASKS,
    combined,
    covering,
    instances_of,
    served,
    serves,
)
from tests.contract.pairwise import pairwise


def answer_of(task, instance):
    """Return a label; for the task custom, a random answer, which may repeat or be empty."""
    if task.name == "custom":
        if task.is_ranking or task.kind == "choice":
            return np.argsort(instance[:, 0])[: task.max_length(len(instance))]
        answer = np.flatnonzero(instance[:, 0] > 0.5)[::-1]
        return answer.repeat(2)[: task.max_length(len(instance))] if task.facts.repeats else answer
    return labellers.label(task, instance[None])[0]


def test_every_task_model_and_decoder_is_covered():
    assert {name for name, _ in SETTINGS} == set(tasks.names())
    assert {type(decoder) for decoder in DECODERS} >= {Greedy, Beam, Sample, Incremental}
    rows = pairwise(EVERY_SETTING, MODELS, DECODERS, CONSTRAINTS, valid=serves)
    for task, model, decoder in product(EVERY_SETTING, MODELS, DECODERS):
        if combined(task, model):
            assert any(row[0] == task and row[1] == model for row in rows)
        if serves(task, model, decoder):
            assert any(row[0] == task and row[2] == decoder for row in rows)
            assert any(row[1] == model and row[2] == decoder for row in rows)


@covering(decoder=DECODERS, constraint=CONSTRAINTS)
def test_a_batch_answers_as_its_members_alone(small, name, settings, model, decoder, constraint):
    solver = small(name, model, scale=8.0, **settings)
    instances, options = served(solver), {"constrained": constraint == "constrained"}
    together = solver.solve(instances, decoder, **options)
    backwards = solver.solve(instances[::-1], decoder, **options)[::-1]
    alone = [solver.solve(instance, decoder, **options) for instance in instances[::2]]
    as_lists = [answer.tolist() for answer in together]
    assert as_lists == [answer.tolist() for answer in backwards]
    assert as_lists[::2] == [answer.tolist() for answer in alone]


@EVERY_PAIR
def test_padding_changes_nothing_in_a_likelihood(small, name, settings, model):
    # The network for boxes adds up numbers of all pairs, of which large ones would be rounded.
    solver = small(name, model, scale=2.0 if model == models.BOXES else 8.0, **settings)
    examples = [Example(i, answer_of(solver.task, i)) for i in served(solver)]
    together = solver.log_likelihoods(examples)
    alone = [solver.log_likelihoods([e])[0] for e in examples]
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-5)


@EVERY_PAIR
def test_step_by_step_equals_teacher_forced(small, name, settings, model):
    solver = small(name, model, scale=8.0, **settings)
    network, task = solver.model.double(), solver.task
    inputs = torch.from_numpy(task.normalize(task.sample(np.random.default_rng(1), 4, 6)))
    lengths = torch.tensor([6, 2, 5, 1] if network.n is None else [6] * 4)
    targets = torch.randint(0, 2, (4, 5))
    with torch.no_grad():
        forced = network.log_probs(inputs, lengths, targets)
        encoded = network.encode(inputs, lengths)
        state, last = encoded.state, torch.zeros(4, 1, dtype=torch.int64)
        for i in range(5):
            log_probs, state = network.step(encoded, state, last)
            torch.testing.assert_close(log_probs[:, 0], forced[:, i], rtol=1e-10, atol=1e-10)
            last = targets[:, i : i + 1]
    totals = forced.exp().sum(-1)
    torch.testing.assert_close(totals, torch.ones_like(totals))
    for b, n in enumerate(lengths.tolist()):
        assert (forced[b, :, network.num_specials + n :] == -torch.inf).all()


@covering(constraint=CONSTRAINTS)
def test_beam_of_one_is_the_argmax_of_each_step(small, name, settings, model, constraint):
    solver = small(name, model, scale=8.0, **settings)
    task, network = solver.task, solver.model
    instances, constrained = served(solver)[::2], constraint == "constrained"
    answers, greedy = (
        solver.solve(instances, decoder, constrained=constrained, improve=False)
        for decoder in (Beam(1), Greedy())
    )
    assert [*map(np.ndarray.tolist, answers)] == [*map(np.ndarray.tolist, greedy)]
    constraint = task if constrained else unconstrained(task.facts)
    for instance, answer in zip(instances, answers, strict=True):
        n, emitted = len(instance), []
        seen, order = augmented_view(0, task, task.normalize(instance))
        inputs = torch.from_numpy(seen[None]).float()
        constraint_state = constraint.begin(inputs, torch.tensor([n]))
        with torch.no_grad():
            encoded = network.encode(inputs)
            state, last = encoded.state, torch.zeros(1, 1, dtype=torch.int64)
            while len(emitted) < task.max_length(n):
                log_probs, state = network.step(encoded, state, last)
                allowed = constraint.mask(constraint_state)
                last = log_probs.masked_fill(~allowed, -torch.inf).argmax(-1)
                if not last.item():
                    break
                constraint_state = constraint.advance(
                    constraint_state, torch.zeros_like(last), last
                )
                emitted.append(last.item())
        expected = order[task.from_tokens(np.array(emitted, np.int64))]
        if task.order != "given":
            expected = canonicalize_valid(task, instance, expected)
        assert answer.tolist() == expected.tolist()


@covering(decoder=[*DECODERS, Beam(40)], seed=range(5))
def test_a_constrained_decoder_obeys_the_constraint_and_meets_no_dead_end(
    small, name, settings, model, decoder, seed
):
    solver = small(name, model, seed=seed, scale=15.0, **settings)
    instances = served(solver)
    for instance, answer in zip(instances, solver.solve(instances, decoder), strict=True):
        assert solver.task.answer_error(len(instance), answer) is None
        assert ((answer >= 0) & (answer < len(instance))).all()


@TASKS
def test_a_label_obeys_the_constraint(name, settings):
    task = tasks.get(name, **settings)
    for instance in degenerate(task):
        n = len(instance)
        tokens = task.to_tokens(labellers.label(task, instance[None]))[0]
        state = task.begin(torch.from_numpy(instance[None]), torch.tensor([n]))
        for token in tokens.tolist():
            assert task.mask(state)[0, 0, token]
            state = task.advance(
                state, torch.zeros(1, 1, dtype=torch.int64), torch.tensor([[token]])
            )
        assert len(tokens) - 1 <= task.max_length(n)


def degenerate(task):
    """Return random instances, and instances with equal, collinear, single or grid elements."""
    line = np.linspace(0, 1, 6)[:, None].repeat(task.facts.num_features, 1)
    steps = [np.linspace(0, 1, 3)] * task.facts.num_features
    grid = np.stack(np.meshgrid(*steps), -1).reshape(-1, task.facts.num_features)
    odd = [line, line[:1].repeat(4, 0), np.concatenate([line, line[::-1]]), grid, grid.repeat(2, 0)]
    odd = [instance for instance in odd if not task.instance_error(instance)]
    return [*instances_of(task), *odd]


@TASKS
def test_a_label_scores_perfectly_and_tokens_come_back(name, settings):
    task = tasks.get(name, **settings)
    instances = degenerate(task)
    answers = [answer_of(task, i) for i in instances]
    examples = [Example(i, a) for i, a in zip(instances, answers, strict=True)]
    for metric, measure in summary.measure(task, examples, answers).items():
        if metric != "length":
            assert measure.value == (0 if metric in ("gap", "edit_distance") else 1)
    of_nothing = task.score([], [])
    for metric, scores in task.score(examples, answers).items():
        assert scores.shape == (len(examples),) and scores.dtype == of_nothing[metric].dtype
    for instance, answer in zip(instances, answers, strict=True):
        assert task.answer_error(len(instance), answer) is None
        padded = [answer]
        assert task.from_tokens(task.to_tokens(padded)[0][:-1]).tolist() == answer.tolist()
        again = task.canonicalize(instance[None], padded)[0]
        assert again.tolist() == answer.tolist()


# Files for one task have tests of their own: TSPLIB's have other distances, or lack answers.
EXTENSIONS = [name for name in formats.names() if formats.get(name).capabilities.task is None]


@EVERY_TASK
@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.filterwarnings("ignore:.*answers only have the first of equal elements")
def test_an_example_is_unchanged_after_a_write_and_a_read(tmp_path, name, settings, extension):
    task = tasks.get(name, **settings)
    path = tmp_path / f"examples.{extension}"
    instances = degenerate(task)
    labelled = [Example(i, answer_of(task, i)) for i in instances]
    if extension in ("csv", "tsv"):  # one instance per file; the order of rows is its answer
        labelled = [Example(instances[-1])]
    formats.write(str(path), labelled, task)
    for before, after in zip(labelled, formats.read(str(path), task), strict=True):
        assert np.array_equal(before.inputs, after.inputs)
        assert (before.outputs is None) == (after.outputs is None)
        if before.outputs is not None:
            assert before.outputs.tolist() == after.outputs.tolist()


@EVERY_PAIR
def test_a_model_that_has_answered_has_gradients(small, name, settings, model):
    """Answers are computed in inference mode, whose tensors cannot be saved for a backward pass."""
    solver = small(name, model, **settings)
    instance = served(solver)[0]
    solver.solve(instance)
    _, log_probs = solver.sample(instance, 2, seed=1)
    log_probs.sum().backward()
    assert any(weights.grad is not None for weights in solver.model.parameters())


@EVERY_PAIR
def test_saved_and_loaded_is_bit_exact(small, tmp_path, name, settings, model):
    solver = small(name, model, **settings)
    solver.save_pretrained(tmp_path / "m")
    saved = load(tmp_path / "m")
    assert saved.task == solver.task
    for a, b in zip(
        solver.model.state_dict().values(), saved.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)


@TASKS
def test_the_same_seed_gives_the_same_data_whatever_the_number_of_workers(name, settings):
    task = tasks.get(name, **settings)
    texts = []
    for jobs in (1, 2):
        stream = io.StringIO()
        for example in generate_dataset(task, [3, 4, 9], 750, seed=5, jobs=jobs):
            stream.write(f"{example.inputs.tolist()} {example.outputs.tolist()}\n")
        texts.append(stream.getvalue())
    assert texts[0] == texts[1]
    fewer = list(generate_dataset(task, [3, 4, 9], 10, seed=5))
    assert texts[0].startswith(f"{fewer[0].inputs.tolist()} {fewer[0].outputs.tolist()}\n")
    other = generate_dataset(task, [3, 4, 9], 1, seed=6)[0]
    assert other.inputs.tolist() != fewer[0].inputs.tolist()


@TASKS
def test_batches_of_streams_depend_on_seed_and_number_alone(name, settings):
    task = tasks.get(name, **settings)
    stream = FreshStream(task, [4, 7], 3, seed=2)
    later = FreshStream(task, [4, 7], 3, seed=2, first=5, num_prefetch=1)
    for a, b in zip(
        stream.batch(6)[:4], [*zip(range(2), later, strict=False)][1][1][:4], strict=True
    ):
        assert torch.equal(a, b)
    assert not torch.equal(
        FreshStream(task, [4], 3, 2, TRAIN).batch(0).inputs,
        FreshStream(task, [4], 3, 2, VALID).batch(0).inputs,
    )
    assert {stream.batch(k).inputs.shape[1] for k in range(20)} == {4, 7}
