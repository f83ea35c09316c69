"""`PointerEstimator`: a model with scikit-learn's conventions, for pipelines and grid search."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptrnet.data import formats
from ptrnet.data.arrays import (
    frame_with,
    is_frame,
    named_records_of,
    rows_like,
    split,
    split_instances,
)
from ptrnet.data.checks import check_grades, check_outputs, check_weights
from ptrnet.data.columns import ANSWERS, TrainingColumns, WeightedColumns
from ptrnet.data.dataset import checked_instances, pairs_of
from ptrnet.data.tables import Table, answers_in_rows
from ptrnet.decoding import Decoder
from ptrnet.errors import InputError, MissingExtraError, check_int
from ptrnet.settings import options_of
from ptrnet.solver import Solver
from ptrnet.training.fit import fit
from ptrnet.types import Dataset, Example, Floats, Indices, ranking

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_array, check_is_fitted
except ModuleNotFoundError as error:
    raise MissingExtraError("PointerEstimator", "sklearn") from error


_OPTIONS = ("model", "hidden_size", "steps", "batch_size", "learning_rate", "augment", "categories")


# The names of the columns of a frame, which are parameters of the constructor.
_COLUMNS = {name: option.default for name, option in options_of(TrainingColumns).items()}
# The column of answers of each kind, for a `y` that belongs to a frame.
_ROLES = {"choice": "chosen", "set": "member", "grades": "grade"}
_ROLES |= dict.fromkeys(("permutation", "subset"), "rank")


class PointerEstimator(BaseEstimator):  # type: ignore[misc]
    """Learns answers that are positions of an instance's elements, as `ptrnet.fit` does.

    Samples are either of these:

    - Instances, with all their elements. Cross-validation leaves out whole instances.
    - Rows of a frame, if `set_id` names the column that says to which set a row belongs, or
      `alternatives` the alternatives of a wide table. In a long frame, each row is an element, and
      folds must have whole sets: split with scikit-learn's `GroupKFold`, whose groups are the sets,
      or persons with several sets. ptrnet cannot see that a set is cut, unless its chosen row is
      missing.

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
        columns: the names of the columns of a frame, as in `ptrnet.fit`: `set_id`, one of `chosen`,
            `rank`, `grade` and `member`, `group`, `weight`, `alternatives` and so on.

    Attributes:
        solver_: the trained model, a `ptrnet.Solver`.
        n_features_in_: number of features of an element, d; of a frame, the number of fields.
        feature_names_in_: the fields of a frame that the model reads. Not set for instances.

    Examples:
        >>> estimator = ptrnet.PointerEstimator("permutation", steps=500)
        >>> estimator.fit(X, y).predict(X)

        A frame with a row for each offer, in folds of whole orders:

        >>> estimator = ptrnet.PointerEstimator(set_id="order", chosen="bought")
        >>> cross_val_score(estimator, offers, groups=offers["order"], cv=GroupKFold(5))
        >>> offers["p"] = estimator.fit(offers).predict_proba(offers)
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
        **columns: Any,
    ) -> None:
        for name in columns.keys() - _COLUMNS.keys():
            raise TypeError(
                f"PointerEstimator got an unexpected keyword argument '{name}'; other settings of "
                f"ptrnet.fit belong into `recipe`, such as recipe={{'fields': ['price']}}"
            )
        for name, default in _COLUMNS.items():
            setattr(self, name, columns.get(name, default))
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
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Train a model on instances and their answers, or on a frame.

        Args:
            X: a list of instances `(n, d)` with equal d, or an array `(B, n, d)`. An array `(B, n)`
                holds B instances of n numbers. With `set_id` or `alternatives`, a frame of pandas
                or polars.
            y: the answers `(m,)` as 0-based indices, in a list or an array `(B, m)`. For the kind
                "grades", the grades `(n,)` of the elements. For the kind "choice", also the chosen
                elements `(B,)`. For a frame, the cells of its column of answers, which is not
                needed if the frame has this column.
            sample_weight: the weights `(B,)` of the instances in the losses, as `weight` in
                `ptrnet.fit`. If None, all weights are 1. For a frame, a weight for each row.
            groups: the group of each instance, such as a person: B names or numbers. The training
                holds out whole groups for validation. For a frame, a group for each row.

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
        columns = self._columns()
        for key in self.recipe or {}:
            if key in ("kind", "constraint", *_COLUMNS, *given):
                raise InputError(f"recipe: {key}: set the estimator's own parameters instead")
        if TrainingColumns(**columns):
            frame, columns = self._with_answers(X, y, columns)
            frame = self._with_rows(frame, columns, weight=sample_weight, group=groups)
            self.solver_: Solver = fit(
                frame, kind=self.kind, **options, **columns, **(self.recipe or {})
            )
            schema = self.solver_.task.facts.schema
            assert schema is not None  # columns of frames have names
            self.feature_names_in_ = _column(schema.fields)
            self.n_features_in_ = len(self.feature_names_in_)
            return self
        if y is None:
            raise InputError("PointerEstimator requires y to be passed, but the target y is None")
        examples: Any = list(pairs_of(_checked_array(X, least=2), self._answers(y), "X"))
        if sample_weight is not None:
            names = [f"X: instance {k}" for k in range(len(examples))]
            sample_weight = check_weights(sample_weight, names, "sample_weight")
        if self.kind == "grades":
            examples = [_graded(x, grades, k) for k, (x, grades) in enumerate(examples)]
        group = columns.pop("group", "") if groups is None else groups
        self.solver_ = fit(
            examples,
            kind=self.kind,
            weight=sample_weight,
            group=group,
            **options,
            **columns,
            **(self.recipe or {}),
        )
        self.n_features_in_ = self.solver_.task.facts.num_features
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the answers to instances: an array `(B,)` of arrays `(m,)` of 0-based indices.

        The outer array has the dtype `object`, so that answers may have different lengths, also in
        `cross_val_predict`. If all lengths are equal, `np.stack` of the result is `(B, m)`.

        For a frame, return a series with its index, in the order of its rows: 1 for rows that are
        chosen or members, and 0 for others; for orders and grades, the row's place in its set, from
        1, and NaN for a row without one. A wide table of choices has the names of alternatives;
        those of other answers have a frame with a column for each alternative.

        Raises:
            NotFittedError: `fit` has not been called.
            InputError: an instance is invalid.
        """
        check_is_fitted(self)
        if self._reads_frames():
            data, table = self._sets(X, {})
            kind = self.solver_.task.facts.kind
            solved = self.solver_.predict(data, self.decoder)
            name = _ROLES[kind] if kind in ("choice", "set") else "place"
            return rows_like(answers_in_rows(table, solved, kind), X, name)
        solved = self.solver_.predict(self._instances(X), self.decoder)
        return _column([example.outputs for example in solved])

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return a probability for each element: an array `(B,)` of arrays `(n,)`.

        For a frame, return a series with its index, in the order of its rows; for a wide table, a
        frame with a column for each alternative. See `Solver.predict_proba`. Raises the same errors
        as `predict`.

        If `y` is given, scikit-learn's `cross_val_predict(..., method="predict_proba")` is only for
        classifiers, because it puts columns of classes in order. Call this method for each split
        instead, or name the column of answers of a frame.
        """
        check_is_fitted(self)
        if self._reads_frames():
            return self.solver_.predict_proba(X, set_id=self._set_id())
        return _column(self.solver_.predict_proba(self._instances(X)))

    def scores(self, X: Any) -> Any:  # noqa: N803
        """Return a score for each element, in the form of `predict_proba`; see `Solver.scores`."""
        check_is_fitted(self)
        if self._reads_frames():
            return self.solver_.scores(X, set_id=self._set_id())
        return _column(self.solver_.scores(self._instances(X)))

    @property
    def classes_(self) -> NDArray[Any]:
        """Not available; `cross_val_predict(..., method="predict_proba")` asks for it."""
        raise AttributeError(
            "PointerEstimator has no classes_, because its answers are positions in an instance: "
            'instead of cross_val_predict(..., method="predict_proba"), call fit and predict_proba '
            "for each split of cv.split(X)"
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the mean of the main metric for the kind of answers. Higher is better.

        A frame is weighted by its column `weight`, if there is one.

        The metric is `kendall_tau` for permutations, `f1` for subsets and sets, `in_place` for
        sequences, `accuracy` for choices and `ndcg@10` for grades.

        Args:
            X: as in `fit`.
            y: as in `fit`.
            sample_weight: the weights `(B,)` of the instances in the mean, or of a frame's rows. If
                None, all are 1.

        Raises:
            NotFittedError: `fit` has not been called.
            InputError: an instance, an answer or a weight is invalid, or the numbers of instances
                and answers differ.
        """
        check_is_fitted(self)
        known = self._sets_with_answers(X, y, sample_weight) if self._reads_frames() else None
        if known is None:
            known = self._instances_with_answers(X, y)
            if sample_weight is not None:
                names = [example.source for example in known]
                weights = check_weights(sample_weight, names, "sample_weight")
                known = known.with_columns(weight=weights.tolist())
        task = self.solver_.task
        solved = self.solver_.predict(known, self.decoder)
        values = task.score(known, solved.all_outputs())[task.facts.metric].astype(float)
        weights = np.ones(len(known)) if known.weights is None else known.weights
        is_measured = ~np.isnan(values)  # a metric may leave out sets, such as those without grades
        return float(np.average(values[is_measured], weights=weights[is_measured]))

    def _instances_with_answers(self, X: Any, y: Any) -> Dataset:  # noqa: N803
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
        return replace(known, grades=np.concatenate(grades)) if grades else known

    def _columns(self) -> dict[str, Any]:
        """Return the names of columns that the user gave."""
        given = {name: getattr(self, name) for name in _COLUMNS}
        return {name: value for name, value in given.items() if value is not None and len(value)}

    def _reads_frames(self) -> bool:
        return bool(TrainingColumns(**self._columns()))

    def _set_id(self) -> str:
        return str(self._columns().get("set_id", ""))

    def _with_answers(
        self,
        X: Any,  # noqa: N803
        y: Any,
        columns: Mapping[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Return a frame with `y` as its column of answers, and the names of its columns."""
        if not is_frame(X):
            raise InputError(
                f"X: expected a frame, because set_id or alternatives names its columns, got "
                f"{type(X).__name__}"
            )
        columns = dict(columns)
        if y is None:
            return X, columns
        role = next((name for name in ANSWERS if name in columns), _ROLES.get(self.kind or "", ""))
        if not role:
            raise InputError(
                "y: expected its kind, such as kind=choice, or the name of a column: "
                f"{', '.join(ANSWERS)}"
            )
        if "{" in columns.get(role, ""):
            raise InputError(f"y: expected no y, because {role} is a pattern of several columns")
        return self._with_rows(X, columns, **{role: y}), columns

    def _with_rows(
        self,
        X: Any,  # noqa: N803
        columns: dict[str, Any],
        **values: Any,
    ) -> Any:
        """Return a frame with more columns, and add their names to `columns`. None: no column."""
        for key, cells in values.items():
            if cells is not None:
                columns[key] = columns.get(key) or _new_name(key, X)
                X = frame_with(X, columns[key], cells)  # noqa: N806
        return X

    def _sets(self, X: Any, columns: Mapping[str, str]) -> tuple[Dataset, Table]:  # noqa: N803
        """Return the sets of a frame, and its table. `columns` name those other than the id.

        A model of wide tables knows the columns of its answers.
        """
        has_answers = bool(columns.keys() & {*ANSWERS})
        if self.solver_.task.facts.layout.alternatives:
            named = WeightedColumns(weight=columns.get("weight", ""))
        else:
            named = WeightedColumns(**{"set_id": self._set_id(), **columns})
        opened = formats.open_sets(X, named, self.solver_.task, has_answers)
        if opened is None:
            raise InputError("X: expected a wide table, as that of the training")
        return opened[:2]

    def _sets_with_answers(self, X: Any, y: Any, sample_weight: Any) -> Dataset:  # noqa: N803
        frame, columns = self._with_answers(X, y, self._columns())
        frame = self._with_rows(frame, columns, weight=sample_weight)
        names = {key: columns[key] for key in (*ANSWERS, "weight") if key in columns}
        return self._sets(frame, names)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = not self._reads_frames()
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


# scikit-learn reads the names of parameters from the signature. The columns come from the settings.
_init = PointerEstimator.__init__
_parameters = [*inspect.signature(_init).parameters.values()][:-1]
_parameters += [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    for name, default in _COLUMNS.items()
]
_init.__signature__ = inspect.Signature(_parameters)  # type: ignore[attr-defined]


def _new_name(name: str, frame: Any) -> str:
    """Return the name, with underscores if the frame has a column of this name."""
    while name in list(frame.columns):
        name += "_"
    return name


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
