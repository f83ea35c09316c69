"""Networks that accept only one size are trained, and answer."""

import pytest

from ptrnet.errors import InputError
from ptrnet.metrics import summary
from ptrnet.model_folder import load
from ptrnet.solver import Solver
from ptrnet.training.recipe import Recipe
from ptrnet.training.run import train


@pytest.mark.parametrize("model", ["seq2seq", "seq2seq-attention"])
def test_a_model_of_one_n_trains_and_answers(tmp_path, model):
    """It sorts two numbers. A file of other sizes is refused before the training starts."""
    other = tmp_path / "other.txt"
    other.write_text("0.1 0.2 0.3 output 1 2 3\n")
    recipe = Recipe.from_table(
        task="sort",
        model=model,
        n="2",
        steps=120,
        hidden_size=32,
        batch_size=64,
        valid_every=120,
        valid_batches=1,
        learning_rate=0.01,
    )
    refused = Recipe.from_table({**recipe.table(), "valid": str(other)})
    with pytest.raises(InputError, match=r"n = 2 answers .* got one of 3"):
        train(refused, tmp_path / "run")
    saved = train(recipe, tmp_path / "run")
    assert saved.model.settings()["n"] == 2
    solver = Solver(*load(tmp_path / "run"))
    examples = list(_examples(solver.task))
    answers = [e.outputs for e in solver.predict(examples, constrained=False)]
    assert summary.measure(solver.task, examples, answers)["accuracy"].value > 0.85


def _examples(task):
    from ptrnet.labels import generate_dataset

    return generate_dataset(task, [2], 300, seed=3)
