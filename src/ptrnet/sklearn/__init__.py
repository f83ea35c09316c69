"""`PointerEstimator`: a model by scikit-learn's conventions, for its pipelines and searches."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.arrays import is_frame, records_of, split
from ptrnet.data.checks import check_outputs
from ptrnet.data.dataset import checked_instance, pairs_of
from ptrnet.decoding import Decoder
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.solver import Solver
from ptrnet.training.fit import fit

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError as error:
    raise MissingExtraError("PointerEstimator", "sklearn") from error


class PointerEstimator(BaseEstimator):  # type: ignore[misc]
    """Learns answers that are positions in their own input, as `ptrnet.fit` does.

    Parameters are only kept here, as scikit-learn wants it; `fit` checks them. None stands for
    what `ptrnet.fit` takes by default.

    Args:
        kind: what answers are, as in `ptrnet.fit`; guessed from the examples when None.
        model: the architecture.
        hidden_size: units of encoder and decoder.
        steps: updates of the weights, at most.
        batch_size: examples in an update.
        learning_rate: its peak.
        augment: whether elements are shuffled in training.
        random_state: the seed, an int.
        decoder: that `predict` and `score` answer with; greedy when None.
        recipe: other fields of a recipe, by their names.

    Attributes:
        solver_: the trained model, a `ptrnet.Solver`.
        n_features_in_: numbers of an element, d.
    """

    def __init__(
        self,
        kind: str | None = None,
        *,
        model: str = "ptr-net",
        hidden_size: int = 256,
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        augment: bool = False,
        random_state: int | None = None,
        decoder: Decoder | None = None,
        recipe: dict[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.model = model
        self.hidden_size = hidden_size
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.augment = augment
        self.random_state = random_state
        self.decoder = decoder
        self.recipe = recipe

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Trains on instances and their answers.

        Args:
            X: a list of instances `(n, d)`, any n and one d, or an array `(B, n, d)`.
            y: their outputs `(m,)`, 0-based indices: a list, or an array `(B, m)`.

        Raises:
            InputError: an example or a parameter that cannot be used.
        """
        options = {
            name: value
            for name in ("steps", "batch_size", "learning_rate")
            if (value := getattr(self, name)) is not None
        }
        if self.random_state is not None:
            options["seed"] = self.random_state
        parameters = {"kind", "constraint", "model", "hidden_size", "augment", *options}
        for key in self.recipe or {}:
            if key in parameters:
                raise InputError(f"recipe: {key} is a parameter of its own, or follows from one")
        self.solver_: Solver = fit(
            X,
            y,
            self.kind,
            model=self.model,
            hidden_size=self.hidden_size,
            augment=self.augment,
            **options,
            **(self.recipe or {}),
        )
        self.n_features_in_ = self.solver_.task.num_features
        return self

    def predict(self, X: Any) -> NDArray[np.object_]:  # noqa: N803
        """The model's answers: `(B,)`, an array of arrays of 0-based indices `(m,)`.

        So answers of any lengths stand beside each other, as `cross_val_predict` lays them; of
        equal lengths `np.stack` makes `(B, m)`.

        Raises:
            NotFittedError: `fit` has not been called.
            InputError: an instance that cannot be used.
        """
        check_is_fitted(self)
        task = self.solver_.task
        examples = [checked_instance(x, task, f"X: instance {k}") for k, x in enumerate(_many(X))]
        solved = self.solver_.predict(examples, self.decoder)
        answers = np.empty(len(examples), object)
        for k, example in enumerate(solved):
            answers[k] = example.outputs
        return answers

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The share of instances whose whole answer is the given one.

        Raises as `predict`; InputError for what is no answer, or no answer for each instance.
        """
        check_is_fitted(self)
        task = self.solver_.task
        pairs = [
            (checked_instance(x, task, f"X: instance {k}"), outputs)
            for k, (x, outputs) in enumerate(pairs_of(_many(X), y))
        ]
        if not pairs:
            raise InputError("X: expected at least one instance, got none")
        known = [
            check_outputs(outputs, len(example.inputs), task, f"y: answer {k}")
            for k, (example, outputs) in enumerate(pairs)
        ]
        answers = self.predict([example for example, _ in pairs])
        return float(np.mean([np.array_equal(a, b) for a, b in zip(answers, known, strict=True)]))


def _many(X: Any) -> list[Any]:  # noqa: N803
    """The instances as a list, so that none of them is taken for all of them."""
    if not is_frame(X) and records_of(X) is None:
        return split(X, "X")
    raise InputError("X: expected a list of instances, got one instance")
