"""The Lightning module of a training from costs."""

import torch
from torch import Tensor

from ptrnet.models.base import PointerModel
from ptrnet.tasks.base import Task
from ptrnet.training.costs.losses import mean_of_others, reinforce_loss, self_labelling_loss
from ptrnet.training.costs.sampler import Costs, Sampler, Samples
from ptrnet.training.module import TrainingModule
from ptrnet.training.recipe import Recipe
from ptrnet.types import InstanceBatch

SEED_STRIDE = 2**32  # more steps than a training has: seeds of trainings share no samples


class CostModule(TrainingModule):
    """Samples answers, and makes the cheaper ones likelier. Validates by the mean greedy cost."""

    def __init__(self, model: PointerModel, recipe: Recipe, task: Task, costs: Costs) -> None:
        super().__init__(model, recipe)
        self.sampler = Sampler(model, task, costs)

    def training_step(self, batch: InstanceBatch, index: int) -> dict[str, Tensor]:  # type: ignore[override]
        seed = self.recipe.seed * SEED_STRIDE + self.global_step
        samples = self.sampler.sample(batch, self.recipe.samples, seed)
        return {"loss": self._loss(batch, samples), "cost": samples.costs.mean()}

    def _loss(self, batch: InstanceBatch, samples: Samples) -> Tensor:
        if self.recipe.learning == "self-labelling":
            cheapest = samples.cheapest()
            return self_labelling_loss(self.sampler.log_probs(batch, cheapest), cheapest)
        log_probs = self.sampler.log_probs(batch, samples)
        if self.recipe.baseline == "greedy":
            return reinforce_loss(log_probs, samples, self.sampler.greedy_costs(batch)[:, None])
        return reinforce_loss(log_probs, samples, mean_of_others(samples.costs))

    @torch.no_grad()
    def validation_step(self, batch: InstanceBatch, index: int) -> None:  # type: ignore[override]
        cost = self.sampler.greedy_costs(batch).mean()
        values = {"valid_loss": cost, "valid_cost": cost}
        self.log_dict(values, batch_size=len(batch.lengths))
