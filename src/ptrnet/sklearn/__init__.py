"""`PointerEstimator`: a model with scikit-learn's conventions, for pipelines and grid search."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.arrays import named_records_of, split, split_instances
from ptrnet.data.checks import check_grades, check_outputs, check_weights
from ptrnet.data.dataset import checked_instances, pairs_of
from ptrnet.decoding import Decoder
from ptrnet.errors import InputError, MissingExtraError, check_int
from ptrnet.solver import Solver
from ptrnet.training.fit import fit
from ptrnet.types import Dataset, Example, Floats, Indices, ranking

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_array, check_is_fitted
except ModuleNotFoundError as error:
    raise MissingExtraError("PointerEstimator", "sklearn") from error


_OPTIONS = (
    "model",
    "hidden_size",
    "steps",
    "batch_size",
    "learning_rate",
    "augment",
    "categories",
)


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
        categories: the fields that are categories, even if their values are numbers, if instances
            are frames or lists of dictionaries.
        random_state: the seed, an int, or a `numpy.random.RandomState` that `fit` draws it from. If
            None, the seed is 1, so that `fit` gives the same model again.
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
        categories: Sequence[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
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
        self.categories = categories
        self.random_state = random_state
        self.decoder = decoder
        self.recipe = recipe

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Train a model on instances and their answers.

        Args:
            X: a list of instances `(n, d)` with equal d, or an array `(B, n, d)`. An array `(B, n)`
                holds B instances of n numbers.
            y: the answers `(m,)` as 0-based indices, in a list or an array `(B, m)`. For the kind
                "grades", the grades `(n,)` of the elements. For the kind "choice", also the chosen
                elements `(B,)`.
            sample_weight: the weights `(B,)` of the instances in the losses, as `weight` in
                `ptrnet.fit`. If None, all weights are 1.
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
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31 - 1))
        elif seed is not None:
            seed = check_int("random_state", seed, 0)
        given = {name: getattr(self, name) for name in _OPTIONS} | {"seed": seed}
        options = {name: value for name, value in given.items() if value is not None}
        for key in self.recipe or {}:
            if key in ("kind", "constraint", "weight", *given):
                raise InputError(f"recipe: {key}: set the estimator's own parameters instead")
        if y is None:
            raise InputError("PointerEstimator requires y to be passed, but the target y is None")
        examples: Any = list(pairs_of(_checked_array(X, least=2), self._answers(y), "X"))
        if sample_weight is not None:
            names = [f"X: instance {k}" for k in range(len(examples))]
            sample_weight = check_weights(sample_weight, names, "sample_weight")
        if self.kind == "grades":
            examples = [_graded(x, grades, k) for k, (x, grades) in enumerate(examples)]
        self.solver_: Solver = fit(
            examples,
            kind=self.kind,
            weight=sample_weight,
            group="" if groups is None else groups,
            **options,
            **(self.recipe or {}),
        )
        self.n_features_in_ = self.solver_.task.facts.num_features
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

        scikit-learn's `cross_val_predict(..., method="predict_proba")` is only for classifiers,
        because it puts columns of classes in order. Call this method for each split instead.
        """
        check_is_fitted(self)
        return _column(self.solver_.predict_proba(self._instances(X)))

    @property
    def classes_(self) -> NDArray[Any]:
        """Not available; `cross_val_predict(..., method="predict_proba")` asks for it."""
        raise AttributeError(
            "PointerEstimator has no classes_, because its answers are positions in an instance: "
            'instead of cross_val_predict(..., method="predict_proba"), call fit and predict_proba '
            "for each split of cv.split(X)"
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the mean of the main metric for the kind of answers. Higher is better.

        The metric is `kendall_tau` for permutations, `f1` for subsets and sets, `in_place` for
        sequences, `accuracy` for choices and `ndcg@10` for grades.

        Args:
            X: as in `fit`.
            y: as in `fit`.
            sample_weight: the weights `(B,)` of the instances in the mean. If None, all are 1.

        Raises:
            NotFittedError: `fit` has not been called.
            InputError: an instance, an answer or a weight is invalid, or the numbers of instances
                and answers differ.
        """
        check_is_fitted(self)
        task = self.solver_.task
        pairs = list(pairs_of(_checked_array(X), self._answers(y), "X"))
        if not pairs:
            raise InputError("X: expected at least one instance, got none")
        known = self._checked([x for x, _ in pairs])
        answers, grades = list[Indices](), list[Floats]()
        for k, (n, (_, answer)) in enumerate(zip(known.sizes.tolist(), pairs, strict=True)):
            if task.facts.kind == "grades":
                grades.append(check_grades(answer, n, f"y: answer {k}"))
                answers.append(ranking(grades[-1]))
            else:
                answers.append(check_outputs(answer, n, task, f"y: answer {k}"))
        known = known.with_answers(answers)
        if grades:
            known = replace(known, grades=np.concatenate(grades))
        if sample_weight is not None:
            names = [example.source for example in known]
            sample_weight = check_weights(sample_weight, names, "sample_weight")
        values = task.score(known, self.predict(known))[task.facts.metric]
        return float(np.average(values, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.three_d_array = True
        return tags

    def _answers(self, y: Any) -> Any:
        """Return the answers, each as a list. For the kind "choice", an answer may be a number."""
        return [_choice(answer) for answer in split(y, "y")] if self.kind == "choice" else y

    def _instances(self, X: Any) -> Dataset:  # noqa: N803
        return self._checked(split_instances(_checked_array(X), "X"))

    def _checked(self, instances: list[Any]) -> Dataset:
        names = [f"X: instance {k}" for k in range(len(instances))]
        return checked_instances(instances, names, self.solver_.task)


def _checked_array(X: Any, least: int = 1) -> Any:  # noqa: N803
    """Return X. If X is an array of one or two axes, check it as other estimators check theirs.

    Args:
        X: the instances.
        least: the smallest number of rows.
    """
    is_array = isinstance(X, np.ndarray) and X.ndim <= 2 and X.dtype != object
    if is_array or hasattr(X, "toarray"):  # a sparse matrix, which `check_array` refuses
        try:
            check_array(X, ensure_min_samples=least, input_name="X")
        except (TypeError, ValueError) as error:
            raise InputError(f"X: {' '.join(str(error).split())}") from None
    return X


def _choice(answer: Any) -> Any:
    """Return the chosen element as a list. The element may be a float, as in y of a classifier."""
    is_number = isinstance(answer, Real) and not isinstance(answer, bool)
    if is_number and float(answer).is_integer():
        return [int(float(answer))]
    return [answer] if np.ndim(answer) == 0 else answer


def _graded(x: Any, values: Any, k: int) -> Example:
    grades = check_grades(values, np.size(values), f"y: grades {k}")
    elements = named_records_of(x)
    return Example(x if elements is None else elements, ranking(grades), grades=grades)


def _column(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return an array of dtype `object` with an item for each of `values`, whatever its length."""
    column = np.empty(len(values), object)
    for k, value in enumerate(values):
        column[k] = value
    return column
