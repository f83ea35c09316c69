"""The attention of a model to the elements, at each step of an answer."""

import numpy as np
import torch

from ptrnet.data.batches import pad_instances
from ptrnet.models.base import PointerModel, as_parameters
from ptrnet.tasks.base import Task
from ptrnet.types import Example, Floats, Indices
from ptrnet.views import augmented_view, canonicalize_valid


@torch.no_grad()
def attention(model: PointerModel, task: Task, answered: Example) -> tuple[Floats, Indices]:
    """Return the pointer's probabilities at each step of an answer, given the previous tokens.

    Returns:
        Probabilities `(m, S + n)` of the special slots (such as END) and then of the elements, and
        the answer's tokens `(m,)`, including END. Elements are in the order of the instance.
    """
    assert answered.outputs is not None
    inputs, order = augmented_view(0, task, task.normalize(answered.inputs))
    position = np.argsort(order)  # the position of each element in the model's input
    outputs = position[answered.outputs]
    if task.order != "given":
        outputs = canonicalize_valid(task, inputs, outputs)
    (tokens,) = task.to_tokens([outputs])
    batch = (*pad_instances([inputs], task.facts.exact_inputs), torch.from_numpy(tokens[None]))
    log_probs = model.log_probs(*as_parameters(model, *batch))
    probabilities = log_probs[0].double().exp().cpu().numpy()
    # If each element has several tokens (`Problem.ways`), sum their probabilities.
    num_specials, ways = task.facts.num_specials, task.facts.ways
    if ways > 1:
        special, of_ways = np.split(probabilities, [num_specials], axis=1)
        of_elements = of_ways.reshape(len(tokens), len(inputs), ways).sum(2)
        probabilities = np.concatenate([special, of_elements], 1)
        element_tokens = (tokens - num_specials) // ways + num_specials
        tokens = np.where(tokens < num_specials, tokens, element_tokens)
    # The special slots come first in the order of the model and in the order of the instance.
    special = np.arange(num_specials)
    from_read, to_read = (np.append(special, i + len(special)) for i in (order, position))
    return probabilities[:, to_read], from_read[tokens]
