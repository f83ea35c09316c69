"""The network for boxes: likelihoods, invariances, labels that are dropped, and every search."""

import copy
import gc
import weakref

import numpy as np
import pytest
import torch
from torch.nn.utils import prune
from torch.utils._python_dispatch import TorchDispatchMode

from ptrnet import Beam, Greedy, Sample, kernels, models, tasks
from ptrnet.errors import InputError
from ptrnet.kernels import boxes_cpu
from ptrnet.kernels.boxes import pair_features
from ptrnet.models.box_ptr_net import MAX_PAIRS, BoxPtrNet, DropLabels
from ptrnet.solver import Solver

SETTINGS = {"hidden_size": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 2}


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    task, settings = tasks.get("reading-order"), models.settings_of("box-ptr-net", **SETTINGS)
    return models.for_task("box-ptr-net", task, settings).double().eval()


def boxes_of(sizes, seed=0):
    rng = np.random.default_rng(seed)
    task = tasks.get("reading-order")
    inputs = torch.zeros(len(sizes), max(sizes), 5, dtype=torch.float64)
    for row, n in zip(inputs, sizes, strict=True):
        corners = rng.random((n, 2))
        labels = rng.integers(0, 17, n)
        boxes = np.column_stack([corners, corners + 0.3 * rng.random((n, 2)), labels])
        row[:n] = torch.from_numpy(task.normalize(boxes))
    return inputs, torch.tensor(sizes)


def orders_of(sizes, seed=0):
    """Return tokens of random orders, padded with END."""
    rng = np.random.default_rng(seed)
    targets = torch.zeros(len(sizes), max(sizes) + 1, dtype=torch.int64)
    for row, n in zip(targets, sizes, strict=True):
        row[:n] = torch.from_numpy(rng.permutation(n)) + 1
    return targets


@pytest.fixture
def compiled(monkeypatch):
    """Count the calls of compiled code, which computes pages from the first one on."""
    calls, compute = [], boxes_cpu.tables_of_page

    def count(weights, page, end_score):
        calls.append(len(page))
        return compute(weights, page, end_score)

    monkeypatch.setattr(boxes_cpu, "tables_of_page", count)
    monkeypatch.setattr(kernels, "_steps", kernels.STEPS_BEFORE)
    return calls


class Observed(TorchDispatchMode):
    """A mode in which PyTorch runs operations one by one."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Page(torch.nn.Module):
    """A user's module around the network."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, inputs, lengths):
        return self.network.encode(inputs, lengths).follow


def naive_log_likelihood(network, boxes, order):
    """Compute the formula of `BoxPtrNet` for one page, step by step and pair by pair."""
    encoded = network.encode(boxes[None])
    follow, before = encoded.follow[0].tolist(), encoded.before[0].tolist()
    remaining, last, total = set(order), 0, 0.0
    for token in order:
        scores = {
            j: follow[last][j] - sum(before[k][j] for k in remaining if k != j) for j in remaining
        }
        total += scores[token] - np.logaddexp.reduce(list(scores.values()))
        remaining.remove(token)
        last = token
    return total


def test_likelihoods_are_those_of_the_formula(network):
    sizes = [7, 3, 1, 5]
    (inputs, lengths), targets = boxes_of(sizes), orders_of(sizes)
    with torch.no_grad():
        log_probs = network.log_probs(inputs, lengths, targets)
        for b, n in enumerate(sizes):
            steps = log_probs[b, :n].gather(1, targets[b, :n, None]).sum().item()
            expected = naive_log_likelihood(network, inputs[b, :n], targets[b, :n].tolist())
            assert steps == pytest.approx(expected, abs=1e-9)
            assert log_probs[b, n, 0].item() == 0  # after all boxes only END is possible


def test_steps_equal_all_steps_at_once(network):
    sizes = [7, 3, 1, 5]
    (inputs, lengths), targets = boxes_of(sizes), orders_of(sizes)
    with torch.no_grad():
        at_once = network.log_probs(inputs, lengths, targets)
        encoded = network.encode(inputs, lengths)
        state, last = encoded.state, torch.zeros(4, 1, dtype=torch.int64)
        for i in range(targets.shape[1]):
            row, state = network.step(encoded, state, last)
            is_real = i <= lengths
            torch.testing.assert_close(row[is_real, 0], at_once[is_real, i], rtol=0, atol=1e-12)
            last = targets[:, i : i + 1]


def test_the_order_in_which_boxes_are_given_does_not_matter(network):
    inputs, lengths = boxes_of([9])
    targets, permutation = orders_of([9]), np.random.default_rng(1).permutation(9)
    places = torch.from_numpy(np.argsort(permutation))
    with torch.no_grad():
        one = network.log_probs(inputs, lengths, targets)
        other = network.log_probs(
            inputs[:, permutation],
            lengths,
            torch.cat([places[targets[:, :9] - 1] + 1, targets[:, 9:]], 1),
        )
    columns = torch.cat([torch.zeros(1, dtype=torch.int64), torch.from_numpy(permutation) + 1])
    torch.testing.assert_close(one[..., columns], other, rtol=0, atol=1e-12)


def test_units_and_places_of_a_page_do_not_matter(network):
    solver = Solver(network.float(), tasks.get("reading-order"))
    inputs, _ = boxes_of([12])
    boxes = inputs[0].numpy()[:, :4]
    moved = boxes * [300, 700, 300, 700] + [40, 9, 40, 9]
    assert solver.solve(boxes).tolist() == solver.solve(moved).tolist()
    network.double()


def test_directions_turn_the_page(network):
    solvers = {
        name: Solver(network.float(), tasks.get("reading-order", direction=name))
        for name in ("ltr", "rtl", "vertical")
    }
    inputs, _ = boxes_of([12])
    left, top, right, bottom = inputs[0].numpy()[:, :4].T
    expected = solvers["ltr"].solve(np.column_stack([left, top, right, bottom])).tolist()
    mirrored = np.column_stack([1 - right, top, 1 - left, bottom])
    assert solvers["rtl"].solve(mirrored).tolist() == expected
    turned = np.column_stack([1 - bottom, left, 1 - top, right])  # lines run down, from the right
    assert solvers["vertical"].solve(turned).tolist() == expected
    network.double()


def test_pairs_of_many_boxes_are_scored_in_parts(network):
    inputs, lengths = boxes_of([90, 60, 100])
    network.float()
    assert inputs[..., 0].numel() * inputs.shape[1] > MAX_PAIRS
    with torch.no_grad():
        in_parts = network.encode(inputs.float(), lengths)
    whole = network.encode(inputs.float(), lengths)  # with gradients
    torch.testing.assert_close(in_parts.before, whole.before)
    torch.testing.assert_close(in_parts.follow, whole.follow)
    network.double()


def test_batches_gradients_and_transforms_use_the_formula(network, compiled):
    inputs, lengths = boxes_of([7])
    with torch.no_grad():
        expected = network.encode(inputs, lengths).follow
    inputs, own = inputs.float(), copy.deepcopy(network).float()
    page, call = Page(own), torch.func.functional_call
    weights = dict(page.named_parameters())

    def check(found):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)

    check(own.encode(inputs, lengths).follow)  # with gradients
    with torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16):
            own.encode(inputs, lengths)
        with Observed():
            check(own.encode(inputs, lengths).follow)
        check(own.encode(inputs.expand(2, -1, -1), lengths.expand(2)).follow[1:])
        longer = torch.nn.functional.pad(inputs, (0, 0, 0, 2))
        check(own.encode(longer, lengths).follow[:, :8, :8])
        with pytest.raises(IndexError):
            own.encode(inputs[..., :4], lengths)  # no labels
        twice = {name: torch.stack([weight] * 2) for name, weight in weights.items()}
        check(torch.func.vmap(lambda some: call(page, some, (inputs, lengths)))(twice)[1])
        of_lengths = torch.func.vmap(lambda n: own.encode(inputs, n[None]).follow)
        check(of_lengths(lengths.expand(2))[1])
        _, tangent = torch.func.jvp(
            lambda bias: call(page, {"network.first.bias": bias}, (inputs, lengths)),
            (own.first.bias,),
            (torch.ones(1),),
        )
        assert tangent[0, 0, 1:].tolist() == [1] * 7
        assert not compiled
        check(own.encode(inputs, lengths).follow)
    assert compiled == [7]


def hook(network):
    network.encoder[1].attention.outward.register_forward_hook(lambda part, given, found: -found)


def hook_before(network):
    network.queries.register_forward_pre_hook(lambda part, given: (-given[0],))


def replace_a_forward(network):
    network.keys.forward = lambda rows: -torch.nn.Linear.forward(network.keys, rows)


def add_maps_of_pairs(network):
    network.pairs.extend([torch.nn.Linear(32, 32), torch.nn.ReLU()])


def add_a_map_to_a_layer(network):
    network.encoder[0].feed_forward.append(torch.nn.Linear(16, 16))


def replace_an_activation(network):
    network.encoder[0].feed_forward[1] = torch.nn.Tanh()


def add_labels(network):
    network.labels = torch.nn.Embedding(20, 16)


def leave_out_a_bias(network):
    network.first = torch.nn.Linear(16, 1, bias=False)


def prune_weights(network):
    """Remove small weights. PyTorch then registers the bias before the weight."""
    for part in (network.queries, network.pair_scores):
        prune.l1_unstructured(part, "weight", 0.5)
        prune.remove(part, "weight")


def drop_labels_at_random(network):
    network.drop_labels.train()
    network.drop_labels.p = 1.0


CHANGES = [
    *(hook, hook_before, replace_a_forward, add_maps_of_pairs, add_a_map_to_a_layer),
    *(replace_an_activation, add_labels, leave_out_a_bias, prune_weights, drop_labels_at_random),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changed_networks_use_the_formula(network, compiled, change):
    """Compiled code would ignore what a user changed."""
    inputs, lengths = boxes_of([7])
    own = copy.deepcopy(network).float()
    with torch.no_grad():
        before = own.encode(inputs.float(), lengths).follow
        assert compiled == [7]
        change(own)
        found = own.encode(inputs.float(), lengths).follow
        expected = own.double().encode(inputs, lengths).follow
    assert compiled == [7]
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    assert (found - before).abs().max() > 1e-3


def test_subclasses_use_their_own_formula(network, compiled):
    class Own(BoxPtrNet):
        def _of_pairs(self, boxes):
            return -super()._of_pairs(boxes)

    inputs, lengths = boxes_of([7])
    own = Own(network.features, network.num_specials, network._settings).eval()
    with torch.inference_mode():
        own.encode(inputs.float(), lengths)
    assert not compiled


def test_answers_do_not_depend_on_default_types(network, compiled):
    solver = Solver(copy.deepcopy(network).float(), tasks.get("reading-order"))
    page = boxes_of([7])[0][0, :, :4].numpy()
    expected = solver.answer(page)
    torch.set_default_dtype(torch.float64)
    try:
        found = solver.answer(page)
    finally:
        torch.set_default_dtype(torch.float32)
    assert found.outputs.tolist() == expected.outputs.tolist()
    assert found.log_prob == expected.log_prob and compiled == [7, 7]


def test_compiled_code_reads_the_current_weights(network, compiled):
    inputs, lengths = boxes_of([7])
    inputs, own = inputs.float(), copy.deepcopy(network).float()
    with torch.no_grad():
        first = own.encode(inputs, lengths).follow
        for change in (
            lambda: own.queries.weight.mul_(2),
            lambda: setattr(own.queries, "bias", torch.nn.Parameter(own.queries.bias + 1)),
            lambda: own.keys.bias.data.add_(1),
            lambda: setattr(own.keys.weight, "data", own.keys.weight.data * 2),
            lambda: own.load_state_dict({**own.state_dict(), "first.bias": torch.ones(1)}),
        ):
            change()
            found = own.encode(inputs, lengths).follow
            with Observed():
                expected = own.encode(inputs, lengths).follow
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
            assert (found - first).abs().max() > 1e-3
            first = found
        own.double().float()
        torch.testing.assert_close(own.encode(inputs, lengths).follow, first)
        other = copy.deepcopy(own)
        other.first.bias.add_(1)
        torch.testing.assert_close(own.encode(inputs, lengths).follow, first)
        gained = other.encode(inputs, lengths).follow[0, 0, 1:] - first[0, 0, 1:]
        torch.testing.assert_close(gained, torch.ones(7))
    assert len(compiled) == 6 + 3


def test_compiled_code_does_not_keep_a_network(network, compiled):
    inputs, lengths = boxes_of([7])
    own = copy.deepcopy(network).float()
    with torch.no_grad():
        own.encode(inputs.float(), lengths)
    weights, is_alive = weakref.ref(own.queries.weight), weakref.ref(own)
    del own
    gc.collect()
    assert compiled == [7] and is_alive() is None and weights() is None


def test_pytorch_computes_the_first_pages_of_a_process(network, compiled, monkeypatch):
    """Loading compiled code takes longer than a few pages."""
    solver = Solver(copy.deepcopy(network).float(), tasks.get("reading-order"))
    page = boxes_of([7])[0][0, :, :4].numpy()
    for decoder, pages in ((Greedy(), 8), (Beam(4), 17)):
        monkeypatch.setattr(kernels, "_steps", 0)
        compiled.clear()
        for _ in range(pages):
            solver.solve(page, decoder)
        assert not compiled
        solver.solve(page, decoder)
        assert compiled == [7]


@pytest.mark.parametrize("decoder", [Greedy(), Beam(4), Sample(8)])
def test_answers_are_permutations_alone_and_together(network, decoder):
    solver = Solver(network.float(), tasks.get("reading-order"))
    inputs, lengths = boxes_of([6, 1, 12, 6])
    pages = [row[:n, :4].numpy() for row, n in zip(inputs, lengths, strict=True)]
    together = solver.solve(pages, decoder)
    assert [sorted(order) for order in together] == [list(range(len(page))) for page in pages]
    if not isinstance(decoder, Sample):
        assert [list(solver.solve(page, decoder)) for page in pages] == [*map(list, together)]
    network.double()


@pytest.mark.parametrize("scale", [1, 30, 1e4], ids=["even", "peaked", "ends early"])
def test_greedy_answers_at_once_are_those_of_a_beam_of_one(network, scale, compiled):
    network.float()
    heads = [part.weight.data for part in (network.queries, network.keys, network.first)]
    for weight in heads:
        weight *= scale
    with torch.inference_mode():
        for n in (7, 1, 40):
            inputs, lengths = boxes_of([n])
            at_once, by_step = (
                decoder.decode(network, inputs.float(), lengths, lengths)
                for decoder in (Greedy(), Beam(1))
            )
            length = by_step.lengths.item()
            assert at_once.lengths.item() == length and (scale == 1e4 or length == n)
            assert torch.equal(at_once.tokens[..., :length], by_step.tokens[..., :length])
            torch.testing.assert_close(at_once.log_probs, by_step.log_probs, rtol=1e-4, atol=1e-4)
        short = Greedy().decode(network, inputs.float(), lengths, lengths.clamp(max=5))
    assert scale == 1e4 or short.lengths.tolist() == [[5]]
    assert compiled == [7, 7, 1, 1, 40, 40, 40]
    for weight in heads:
        weight /= scale
    network.double()


def test_labels_are_dropped_for_whole_pages_and_in_part():
    drop, labels = DropLabels(0.3), torch.full((20_000, 10), 5)
    drop.generator = torch.Generator().manual_seed(0)
    kept = (drop(labels) > 0).double().mean(1)
    assert (kept == 0).double().mean().item() == pytest.approx(0.3 + 0.1 / 11, abs=0.012)
    assert (kept == 1).double().mean().item() == pytest.approx(0.6 + 0.1 / 11, abs=0.012)
    assert torch.equal(drop.eval()(labels), labels)


def test_pair_features_see_gaps_and_overlaps():
    boxes = torch.tensor([[[0.0, 0.0, 0.4, 1.0], [0.5, 0.0, 0.9, 0.5]]])
    overlaps = pair_features(boxes, boxes)[0, 0, 1, -2:]
    torch.testing.assert_close(overlaps, torch.tensor([-0.25, 1.0]))


def test_only_boxes_are_read():
    with pytest.raises(InputError, match="elements of 2 numbers"):
        models.build("box-ptr-net", 2, 1)
