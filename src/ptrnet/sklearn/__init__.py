"""`PointerEstimator`: a model by scikit-learn's conventions, for its pipelines and searches."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.arrays import is_frame, records_of, split
from ptrnet.data.checks import check_grades, check_outputs
from ptrnet.data.dataset import checked_instance, pairs_of
from ptrnet.decoding import Decoder
from ptrnet.errors import InputError, MissingExtraError
from ptrnet.solver import Solver
from ptrnet.tasks.custom import Custom
from ptrnet.training.fit import fit
from ptrnet.types import Example, ranking

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError as error:
    raise MissingExtraError("PointerEstimator", "sklearn") from error


_OPTIONS = ("model", "hidden_size", "steps", "batch_size", "learning_rate", "augment")


class PointerEstimator(BaseEstimator):  # type: ignore[misc]
    """Learns answers that are positions in their own input, as `ptrnet.fit` does.

    A sample is an instance, a set of elements, so cross-validation leaves out whole sets.

    Parameters are only kept here, as scikit-learn wants it; `fit` checks them. None stands for
    what `ptrnet.fit` takes by default.

    Args:
        kind: what answers are, as in `ptrnet.fit`; guessed from the examples when None.
        model: the architecture.
        hidden_size: units of the network.
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
        model: str | None = None,
        hidden_size: int | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        augment: bool | None = None,
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
            y: their outputs `(m,)`, 0-based indices: a list, or an array `(B, m)`. For the kind
                "grades" the grades `(n,)` of their elements.

        Raises:
            InputError: an example or a parameter that cannot be used.
        """
        given = {name: getattr(self, name) for name in _OPTIONS} | {"seed": self.random_state}
        options = {name: value for name, value in given.items() if value is not None}
        for key in self.recipe or {}:
            if key in ("kind", "constraint", *given):
                raise InputError(f"recipe: {key} is a parameter of its own, or follows from one")
        examples: Any = pairs_of(X, y)
        if self.kind == "grades":
            examples = [_graded(x, grades, k) for k, (x, grades) in enumerate(examples)]
        self.solver_: Solver = fit(examples, kind=self.kind, **options, **(self.recipe or {}))
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
        solved = self.solver_.predict(self._instances(X), self.decoder)
        return _column([example.outputs for example in solved])

    def predict_proba(self, X: Any) -> NDArray[np.object_]:  # noqa: N803
        """A probability for each element, `(B,)` arrays `(n,)`; see `Solver.predict_proba`.

        Raises as `predict`.
        """
        check_is_fitted(self)
        return _column(self.solver_.predict_proba(self._instances(X)))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """The mean of the metric of the kind: more is better.

        That is `kendall_tau` of permutations, `f1` of subsets and sets, `in_place` of sequences,
        `accuracy` of choices and `ndcg@10` of grades.

        Args:
            X: as of `fit`.
            y: as of `fit`.

        Raises as `predict`; InputError for what is no answer, or no answer for each instance.
        """
        check_is_fitted(self)
        task = self.solver_.task
        assert isinstance(task, Custom)
        known = []
        for k, (x, answer) in enumerate(pairs_of(_many(X), y)):
            example, source = checked_instance(x, task, f"X: instance {k}"), f"y: answer {k}"
            n = len(example.inputs)
            if task.kind == "grades":
                grades = check_grades(answer, n, source)
                known.append(example.replace(outputs=ranking(grades), grades=grades))
            else:
                known.append(example.replace(outputs=check_outputs(answer, n, task, source)))
        if not known:
            raise InputError("X: expected at least one instance, got none")
        return float(task.score(known, self.predict(known))[task.metric].mean())

    def _instances(self, X: Any) -> list[Example]:  # noqa: N803
        task = self.solver_.task
        return [checked_instance(x, task, f"X: instance {k}") for k, x in enumerate(_many(X))]


def _graded(x: Any, values: Any, k: int) -> Example:
    grades = check_grades(values, np.size(values), f"y: grades {k}")
    return Example(x, ranking(grades), grades=grades)


def _column(values: Sequence[Any]) -> NDArray[np.object_]:
    """Arrays of any lengths as an array of arrays."""
    column = np.empty(len(values), object)
    for k, value in enumerate(values):
        column[k] = value
    return column


def _many(X: Any) -> list[Any]:  # noqa: N803
    """The instances as a list, so that none of them is taken for all of them."""
    if not is_frame(X) and records_of(X) is None:
        return split(X, "X")
    raise InputError("X: expected a list of instances, got one instance")
