"""`PointerEstimator`: a model with scikit-learn's conventions, for pipelines and grid search."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.arrays import split_instances
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
    """Learns answers that are positions of an instance's elements, as `ptrnet.fit` does.

    A sample is an instance with all its elements, so cross-validation leaves out whole instances.

    The constructor only stores the parameters, as scikit-learn requires. `fit` checks the
    parameters. If a parameter is None, the default of `ptrnet.fit` is used.

    Args:
        kind: the kind of answers, as in `ptrnet.fit`; None: inferred from the examples.
        model: the architecture.
        hidden_size: units of the network.
        steps: the largest number of training steps.
        batch_size: examples in a step.
        learning_rate: the peak of the learning rate.
        augment: whether to shuffle elements in training.
        random_state: the seed, an int.
        decoder: the search of `predict` and `score`; None: greedy.
        recipe: other settings of the training, by their names in `ptrnet.fit`.

    Attributes:
        solver_: the trained model, a `ptrnet.Solver`.
        n_features_in_: number of features of an element, d.

    Examples:
        >>> estimator = ptrnet.PointerEstimator("permutation", steps=500)
        >>> estimator.fit(X, y).predict(X)
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

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: N803
        """Train a model on instances and their answers.

        Args:
            X: a list of instances `(n, d)` with equal d, or an array `(B, n, d)`.
            y: the answers `(m,)` as 0-based indices, in a list or an array `(B, m)`. For the kind
                "grades", the grades `(n,)` of the elements.
            groups: the group of each instance, such as a person: B names or numbers. The training
                holds out whole groups for validation.

        Raises:
            InputError: an example or a parameter is invalid.

        Examples:
            >>> X = [rng.random((5, 2)) for _ in range(200)]  # rng = np.random.default_rng(1)
            >>> y = [np.argsort(x[:, 0]) for x in X]
            >>> estimator = ptrnet.PointerEstimator("permutation", steps=200, random_state=1)
            >>> estimator.fit(X, y).predict(X[:2])
            array([array([1, 2, 0, 4, 3]), array([3, 4, 2, 1, 0])], dtype=object)
        """
        given = {name: getattr(self, name) for name in _OPTIONS} | {"seed": self.random_state}
        options = {name: value for name, value in given.items() if value is not None}
        for key in self.recipe or {}:
            if key in ("kind", "constraint", *given):
                raise InputError(f"recipe: {key}: set the estimator's own parameters instead")
        examples: Any = pairs_of(X, y, "X")
        if self.kind == "grades":
            examples = [_graded(x, grades, k) for k, (x, grades) in enumerate(examples)]
        group = "" if groups is None else groups
        self.solver_: Solver = fit(
            examples, kind=self.kind, group=group, **options, **(self.recipe or {})
        )
        self.n_features_in_ = self.solver_.task.num_features
        return self

    def predict(self, X: Any) -> NDArray[np.object_]:  # noqa: N803
        """Return the answers to instances: an array `(B,)` of arrays `(m,)` of 0-based indices.

        The outer array has the dtype `object`, so that answers may have different lengths, also in
        `cross_val_predict`. If all lengths are equal, `np.stack` of the result is `(B, m)`.

        Raises:
            NotFittedError: `fit` has not been called.
            InputError: an instance is invalid.
        """
        check_is_fitted(self)
        solved = self.solver_.predict(self._instances(X), self.decoder)
        return _column([example.outputs for example in solved])

    def predict_proba(self, X: Any) -> NDArray[np.object_]:  # noqa: N803
        """Return a probability for each element: an array `(B,)` of arrays `(n,)`.

        See `Solver.predict_proba`. Raises the same errors as `predict`.
        """
        check_is_fitted(self)
        return _column(self.solver_.predict_proba(self._instances(X)))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return the mean of the main metric for the kind of answers. Higher is better.

        The metric is `kendall_tau` for permutations, `f1` for subsets and sets, `in_place` for
        sequences, `accuracy` for choices and `ndcg@10` for grades.

        Args:
            X: as in `fit`.
            y: as in `fit`.

        Raises:
            NotFittedError: `fit` has not been called.
            InputError: an instance or an answer is invalid, or the numbers of instances and answers
                differ.
        """
        check_is_fitted(self)
        task = self.solver_.task
        assert isinstance(task, Custom)
        known = []
        for k, (x, answer) in enumerate(pairs_of(X, y, "X")):
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
        instances = enumerate(split_instances(X, "X"))
        return [checked_instance(x, task, f"X: instance {k}") for k, x in instances]


def _graded(x: Any, values: Any, k: int) -> Example:
    grades = check_grades(values, np.size(values), f"y: grades {k}")
    return Example(x, ranking(grades), grades=grades)


def _column(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return an array of dtype `object` with an item for each of `values`, whatever its length."""
    column = np.empty(len(values), object)
    for k, value in enumerate(values):
        column[k] = value
    return column
