"""Self-labelling that also learns from its answers to earlier batches."""

from dataclasses import replace

import lightning.pytorch as pl
import numpy as np
import pytest
import torch

from ptrnet import models
from ptrnet.data.streams import FreshInstances, instance_batch
from ptrnet.errors import InputError
from ptrnet.training.callbacks import Hooks
from ptrnet.training.costs import Answered, CostModule, Sampler, task_costs
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train
from ptrnet.types import Example

SMALL = {"batch_size": 8, "samples": 4, "valid_batches": 0, "hidden_size": 16, "heads": 2}
SMALL |= {"encoder_layers": 1, "feed_forward": 32, "precision": "float32"}
OF_TASK = {
    "tsp": {"model": "transformer-ptr-net", "decoder_layers": 1, "learning": "self-labelling"},
    "cvrp": {},
    "knapsack": {},
    "orienteering": {},
}


def recipe_of(task, **changes):
    return Recipe.from_table({**SMALL, **OF_TASK[task], "task": task, "n": "8", **changes})


def module_of(recipe):
    torch.manual_seed(0)
    model = models.for_task(recipe.model, recipe.task, recipe.network)
    return CostModule(model, recipe, recipe.task, task_costs(recipe.task))


def batches_of(recipe, count):
    stream = FreshInstances(recipe.task, recipe.n, recipe.batch_size, recipe.seed)
    return [stream.batch(k) for k in range(count)]


def costs_of(task, batch, answers):
    """Compute the costs of answers `(B, K)` by the task; invalid answers have infinite costs."""
    rows = zip(batch.instances, answers.tokens.numpy(), strict=True)
    costs = [task.costs(Example(x), list(map(task.from_tokens, tokens))) for x, tokens in rows]
    return torch.from_numpy(np.stack(costs))


def test_the_loss_is_the_mean_over_tokens_of_the_fresh_and_the_earlier_batch():
    module = module_of(recipe_of("cvrp", n="5,9", seed=3, window=1))
    sampler, model = module.sampler, module.model
    batches = batches_of(module.recipe, 3)
    assert len({batch.inputs.shape[1] for batch in batches}) == 2
    seed = 3 * 2**32  # of step 0, because without a trainer every step is the first
    of_batch = []
    for batch in batches:
        best = sampler.sample(batch, 4, seed).cheapest()
        log_probs = model.log_probs(batch.inputs, batch.lengths, best.tokens[:, 0])
        likelihoods = [
            sum(log_probs[b, t, token].item() for t, token in enumerate(tokens[:length]))
            for b, (tokens, length) in enumerate(
                zip(best.tokens[:, 0].tolist(), best.lengths[:, 0].tolist(), strict=True)
            )
        ]
        of_batch.append((-sum(likelihoods), int(best.lengths.sum())))
    losses = [module.training_step(batch, 0)["loss"].item() for batch in batches]
    pairs = [of_batch[:1], of_batch[:2], of_batch[1:]]  # a window of 1 holds the batch before
    expected = [sum(s for s, _ in pair) / sum(c for _, c in pair) for pair in pairs]
    assert losses == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("task", OF_TASK)
def test_new_tails_continue_the_kept_tokens_to_valid_answers(task):
    module = module_of(recipe_of(task))
    (batch,) = batches_of(module.recipe, 1)
    known = module.sampler.sample(batch, 2, seed=1).cheapest()
    num_kept = known.lengths[:, 0] // 2
    drawn = module.sampler.sample_tails(Answered(batch, known), num_kept, 6, seed=2)
    for b, kept in enumerate(num_kept.tolist()):
        assert (drawn.tokens[b, :, :kept] == known.tokens[b, :, :kept]).all()
    assert (drawn.costs != known.costs).any()
    torch.testing.assert_close(
        drawn.costs, costs_of(module.recipe.task, batch, drawn), check_dtype=False
    )


def test_new_tails_are_drawn_from_the_model_given_the_kept_tokens():
    recipe = recipe_of("tsp", n="4")
    module = module_of(recipe)
    sampler = Sampler(module.model, recipe.task, task_costs(recipe.task))
    points = np.random.default_rng(1).random((1, 4, 2))
    batch = instance_batch(list(points), recipe.task)
    known = sampler.sample(batch, 1, seed=1)._replace(
        tokens=torch.tensor([[[1, 3, 2, 4, 0]]]), costs=torch.zeros(1, 1)
    )
    drawn = sampler.sample_tails(Answered(batch, known), torch.tensor([2]), 4000, seed=3)
    tails = torch.tensor([[[1, 3, 2, 4, 0], [1, 3, 4, 2, 0]]])
    both = known._replace(tokens=tails, lengths=torch.full((1, 2), 5), costs=torch.zeros(1, 2))
    expected = sampler.log_probs(batch, both).constrained.softmax(1)[0, 0].item()
    share = (drawn.tokens[0] == tails[0, 0]).all(1).float().mean().item()
    assert abs(share - expected) < 4 * (expected * (1 - expected) / 4000) ** 0.5


@pytest.mark.parametrize("task", OF_TASK)
def test_tails_never_make_a_kept_answer_dearer(task):
    """The window holds the last batches. Their costs fall, and are those of their answers."""
    module = module_of(recipe_of(task, window=2, tails=4, samples=2))
    before = {}
    num_cheaper = 0
    for batch in batches_of(module.recipe, 8):
        module.training_step(batch, 0)
        for kept, answers in module.window:
            first = kept.inputs[0, 0].tolist()
            costs = before.get(tuple(first), answers.costs)
            assert (answers.costs <= costs).all()
            num_cheaper += int((answers.costs < costs).sum())
            before[tuple(first)] = answers.costs
            torch.testing.assert_close(
                answers.costs, costs_of(module.recipe.task, kept, answers), check_dtype=False
            )
        assert torch.equal(module.window[-1].batch.inputs, batch.inputs)
        assert len(module.window) <= 2
    assert num_cheaper > 0


class StopAt(pl.Callback):
    def __init__(self, step):
        self.step = step

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("task", OF_TASK)
def test_a_resumed_run_gives_the_same_weights(task, tmp_path):
    recipe = recipe_of(task, n="5,7", steps=8, window=3, tails=2, checkpoint_every=4)
    straight = train(recipe, tmp_path / "straight").model.state_dict()
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "run", hooks=Hooks((StopAt(6),)))
    resumed = train(recipe, tmp_path / "run", resume=True).model.state_dict()
    assert all(torch.equal(straight[key], resumed[key]) for key in straight)
    without = train(replace(recipe, tails=0), tmp_path / "without").model.state_dict()
    assert not all(torch.equal(straight[key], without[key]) for key in straight)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"learning": "reinforce", "window": 2}, "window needs learning self-labelling, got rein"),
        ({"learning": "answers", "window": 2}, "window needs learning self-labelling, got answers"),
        ({"tails": 2}, "tails needs window"),
        ({"window": -1}, "window: expected a whole number of 0 or more"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, complaint):
    with pytest.raises(InputError, match=complaint):
        recipe_of("knapsack", **changes)
