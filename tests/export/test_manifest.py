"""What the manifest says of a task."""

import numpy as np

from ptrnet import tasks
from ptrnet.constraints import machine_of
from ptrnet.export.manifest import CONSTRAINTS, max_tokens
from tests.contract.cases import EVERY_TASK


@EVERY_TASK
def test_every_task_is_described(name, settings):
    """The manifest has the largest number of tokens for any n, and explains the constraint."""
    task = tasks.get(name, **settings)
    rule = max_tokens(task)
    assert type(machine_of(task.facts)).__name__ in CONSTRAINTS
    for n in [*range(task.facts.min_elements, 200), 99_999]:
        longest = np.ceil(rule["per_element"] * n) + rule["plus"]
        assert np.clip(longest, rule["least"], rule["most"]) == task.max_length(n)


def test_free_answers_of_many_sizes_are_described():
    for longest_answer, share in ((0, 0.0), (5, 0.3), (1, 2.5), (100, 1.0)):
        task = tasks.get(
            "custom",
            center=(0.0,),
            spread=(1.0,),
            kind="sequence",
            longest_answer=longest_answer,
            longest_share=share,
        )
        rule = max_tokens(task)
        for n in (1, 2, 3, 7, 50, 1001, 99_999):
            longest = np.clip(np.ceil(rule["per_element"] * n), rule["least"], rule["most"])
            assert longest == task.max_length(n)
