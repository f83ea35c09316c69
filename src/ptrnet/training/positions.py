"""Remove what a training learned about the positions at which elements were shown.

Clicks in a list are more frequent at its top, whatever is shown there. With `position`, the task of
a training has one more field, the last one: its features mark the position of an element. Models
only add an effect of each position to the scores. A model that is saved has neither the field nor
the effects, so it predicts what people would choose if all elements were shown alike.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ptrnet import model_folder, models
from ptrnet.models.base import PointerModel
from ptrnet.models.ensemble import Ensemble
from ptrnet.models.set_ptr_net import SetPtrNet
from ptrnet.models.settings import SetSettings
from ptrnet.tasks.custom import Custom
from ptrnet.training.recipe import Recipe
from ptrnet.types import Dataset


def without_positions(saved: model_folder.Saved, recipe: Recipe) -> model_folder.Saved:
    """Return a model without the field of positions, and its effects as a fact of the training.

    Effects are relative to the position that comes first in the schema. If the recipe has no
    `position`, the model is returned unchanged.
    """
    task = recipe.task
    if not recipe.columns.position or not isinstance(task, Custom):
        return saved
    levels = task.categories[-1]
    kept = len(task.center) - len(levels)
    stripped = replace(
        task,
        fields=task.fields[:-1],
        categories=task.categories[:-1],
        common=task.common[:-1],
        center=task.center[:kept],
        spread=task.spread[:kept],
        lowest=task.lowest[:kept],
    )
    networks = saved.model.networks()
    effects = [_effects(network) for network in networks if isinstance(network, SetPtrNet)]
    facts = dict(saved.trained)
    if effects:
        means = torch.stack(effects).mean(0)
        relative = (means - means[0]).tolist()
        facts["positions"] = dict(zip(levels, relative, strict=True))
    rest = [_without(network, stripped, recipe) for network in networks]
    model = Ensemble(rest) if len(rest) > 1 else rest[0]
    return model_folder.Saved(model.eval(), stripped, facts)


def _effects(network: SetPtrNet) -> Tensor:
    """Return what each position `(K,)` adds to the score: the mean of the network and its logit.

    The logit counts by its share.
    """
    of_network = network.position_effects()
    assert of_network is not None
    if network.answer != "one":
        return of_network.detach()
    of_logit = network.logit_weights[-len(of_network) :]
    return torch.lerp(of_network.detach(), of_logit - of_logit.mean(), network.logit_share)


def _without(network: PointerModel, task: Custom, recipe: Recipe) -> PointerModel:
    """Return a network that reads only the features of `task`, the first ones."""
    settings, state = network._settings, network.state_dict()
    if isinstance(settings, SetSettings):
        settings = replace(settings, positions=0)
    made = models.for_task(recipe.model, task, replace(settings, ensemble=1)).float()
    made._settings = settings
    for name in ("logit_weights", "weights"):
        if name in state:
            state[name] = state[name][: task.facts.num_features]
    state.pop("positions", None)
    made.load_state_dict(state)
    return made


def features_read(data: Dataset, saved: model_folder.Saved) -> Dataset:
    """Return examples with the features that a saved model reads, which are the first ones."""
    return replace(data, elements=data.elements[:, : saved.task.facts.num_features])
