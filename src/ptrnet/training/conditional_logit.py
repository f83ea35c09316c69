"""Fit a conditional or nested logit (McFadden 1974, 1978), with its standard errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, solve_triangular
from scipy.optimize import minimize
from scipy.special import chdtrc

from ptrnet import models
from ptrnet.errors import InputError, listed
from ptrnet.solver.coefficients import Coefficients, p_text
from ptrnet.solver.explain import feature_names, field_columns
from ptrnet.tasks.base import Task
from ptrnet.training.linear_scores import bounds_of
from ptrnet.training.sets import log_softmax
from ptrnet.types import Dataset, Floats, Indices

MAX_STEPS = 200
# Newton's method has converged if a step gains at most half of this log-likelihood, for a mean
# weight of 1. The errors of the parameters are then far smaller than their standard errors.
DECREMENT = 1e-9
# A coefficient runs to infinity if the last step still changes a score by more than this.
MOVING = 0.1
LOST = 1000  # a coefficient has no information left if its error exceeds that of equal shares so
COLLINEAR = 1e-10  # share of a feature's variance that other features do not explain
FEW_GROUPS = 30  # clustered errors of fewer groups tend to be too small
DIFFERENCE = 1e-5  # of a parameter, for the Hessian of a nested logit
# The parameter of a nest is not identified if its standard error exceeds LARGEST_ERROR, or if an
# eigenvalue of the Hessian of standardised parameters is below FLAT.
LARGEST_ERROR, FLAT = 10.0, 1e-6


@dataclass(frozen=True)
class Choices:
    """B choices. The features of all elements are stored one set after another.

    The features are relative to their means in the set, and have a root mean square of 1. The
    parameters `b` of a conditional logit are the coefficients of the features.
    """

    x: Floats  # (n, k)
    starts: Indices  # (B,)
    sizes: Indices  # (B,)
    chosen: Indices  # (B,), rows of x
    weights: Floats  # (B,)

    def scores(self, b: Floats) -> Floats:
        """Return the scores `(n,)`, whose softmax over a set are the probabilities."""
        return np.asarray(self.x @ b)

    def slopes(self, b: Floats) -> Floats:
        """Return the derivatives `(n, len(b))` of the scores."""
        return self.x

    def log_probs(self, b: Floats) -> Floats:
        """Return the log-probability `(n,)` of each element in its set."""
        return log_softmax(self.scores(b), self.sizes)

    def log_likelihood(self, b: Floats) -> float:
        return float(self.weights @ self.log_probs(b)[self.chosen])

    def derivatives(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the gradient `(B, len(b))` of each weighted log-likelihood, and the information.

        The information is that of Fisher for all choices: the expected negative Hessian of their
        log-likelihood. If the scores are linear in `b`, it is also the Hessian.
        """
        p, slopes = np.exp(self.log_probs(b))[:, None], self.slopes(b)
        means = np.add.reduceat(p * slopes, self.starts)
        gradients = self.weights[:, None] * (slopes[self.chosen] - means)
        weighted = p * np.repeat(self.weights, self.sizes)[:, None]
        information = slopes.T @ (weighted * slopes) - means.T @ (self.weights[:, None] * means)
        return gradients, information

    def hessian(self, b: Floats) -> Floats:
        """Return the negative Hessian of the log-likelihood of all choices."""
        return self.derivatives(b)[1]


@dataclass(frozen=True)
class NestedChoices(Choices):
    """Choices of a nested logit; see `ptrnet.models.conditional_logit.Nests`.

    The parameters `b` are the coefficients of the k features, then the parameters t of K nests.
    """

    count: int  # K
    nest: Indices  # (n,), the nest of each row; -1: none. The rows of a nest are neighbours in sets

    def scores(self, b: Floats) -> Floats:
        inclusive, within, t = self._of_nests(b)
        return within + t * inclusive

    def slopes(self, b: Floats) -> Floats:
        inclusive, within, t = self._of_nests(b)
        p, firsts, sizes = np.exp(within)[:, None], *self._runs

        def mean(values: Floats) -> Floats:
            return np.repeat(np.add.reduceat(p * values, firsts), sizes, axis=0)

        v, t = (self.x @ b[: -self.count])[:, None], t[:, None]
        of_coefficients = (self.x + (t - 1) * mean(self.x)) / t
        of_own = inclusive[:, None] - (v + (t - 1) * mean(v)) / t**2
        of_nests = np.where(self.nest[:, None] == np.arange(self.count), of_own, 0)
        return np.hstack([of_coefficients, of_nests])

    def log_likelihood(self, b: Floats) -> float:
        return super().log_likelihood(b) if (b[-self.count :] > 0).all() else -np.inf

    def hessian(self, b: Floats) -> Floats:
        def gradient(moved: Floats) -> Floats:
            return np.asarray(self.derivatives(moved)[0].sum(0))

        units = DIFFERENCE * np.eye(len(b))
        rows = [(gradient(b - unit) - gradient(b + unit)) / (2 * DIFFERENCE) for unit in units]
        return (np.array(rows) + np.transpose(rows)) / 2

    @cached_property
    def _runs(self) -> tuple[Indices, Indices]:
        """The first rows and the sizes of nests in sets. An element without a nest is alone."""
        is_first = (np.diff(self.nest, prepend=-1) != 0) | (self.nest < 0)
        is_first[self.starts] = True
        firsts = np.flatnonzero(is_first)
        return firsts, np.diff(firsts, append=len(self.nest))

    def _of_nests(self, b: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log-sum of each row's nest, its log-probability in it, and t, each `(n,)`."""
        t = np.append(b[-self.count :], 1.0)[self.nest]
        scaled = self.x @ b[: -self.count] / t
        within = log_softmax(scaled, self._runs[1])
        return scaled - within, within, t


class Fit(NamedTuple):
    """A fitted logit: the weights `(d,)` of normalized features, t of each nest, and the table."""

    weights: Floats
    nests: Floats
    table: Coefficients


def fit_coefficients(
    data: Dataset, task: Task, group: str = "", nests: Mapping[str, NDArray[np.bool_]] = {}
) -> Fit:
    """Fit a conditional logit, or a nested logit if there are `nests`, by maximum likelihood.

    Args:
        data: choices, with their weights and groups.
        group: the name of the groups' field, if it is known.
        nests: for the name of each nest, which features `(d,)` mark its elements.

    Returns:
        The weights and the table. The weights of a categorical field have the mean 0 over the
        elements, so that a level that training did not see counts as an average level.

    Raises:
        InputError: no feature differs within a set, no coefficient is finite, or the choices say
            nothing about a nest.
    """
    x, sizes, starts = task.normalize(data.elements), data.sizes, data.starts[:-1]
    groups, names = data.groups, feature_names(task)
    differs = (x != np.repeat(x[starts], sizes, axis=0)).any(0)
    if not differs.any():
        raise InputError(f"model {models.LOGIT}: no field differs within a set, so none can matter")
    is_member = np.array([(x[:, marks] > 0.5).any(1) for marks in nests.values()])
    x = x - np.repeat(np.add.reduceat(x, starts) / sizes[:, None], sizes, axis=0)
    scale = np.where(differs, np.sqrt((x**2).mean(0)), 1)
    of_sets = np.ones(len(data)) if data.weights is None else data.weights
    choices = Choices(x / scale, starts, sizes, starts + data.indices, of_sets)
    of_chosen = choices.x[choices.chosen]
    is_contested: NDArray[np.bool_] = (of_chosen.min(0) < 0) & (of_chosen.max(0) > 0)
    references = _references(task, differs, is_contested)
    kept, notes = _identified(choices, differs, list(references.values()), names, task)
    kept, of_bounds = _inside(choices, kept, names, task)
    notes += of_bounds
    choices = replace(choices, x=choices.x[:, kept])
    b, last_step = _maximum(choices, np.zeros(len(kept)))
    of_rows = [names[k] for k in kept]
    covariances = _covariances(*choices.derivatives(b), groups)
    is_estimated, of_separation = _estimated(choices, last_step, covariances["classical"], of_rows)
    notes += of_separation
    estimated = np.append(is_estimated, np.ones(len(nests), bool)).nonzero()[0]
    if nests:
        plain = choices.log_likelihood(b)
        choices = _nested(choices, [*nests], is_member)
        b, covariances = _with_nests(choices, b, estimated, [*nests], groups)
        gain = 2 * (choices.log_likelihood(b) - plain)
        notes += _nest_notes(gain, b[len(kept) :], [*nests])
        of_rows += [f"nest {name}" for name in nests]
    else:
        covariances = {k: c[np.ix_(estimated, estimated)] for k, c in covariances.items()}
    errors = _standard_errors(covariances)
    kind, of_groups = _default_errors(errors, len(b), groups)
    notes += of_groups
    weights = np.zeros(len(names))
    weights[kept] = b[: len(kept)] / scale[kept]
    units = scale[kept] * np.array(task.facts.scaling["spread"])[kept]
    units = np.append(units, np.ones(len(nests)))[estimated]
    rows: list[dict[str, Any]] = [
        {
            "name": of_rows[k],
            "coefficient": float(b[k] / unit),
            **{kind: float(values[i] / unit) for kind, values in errors.items()},
            **({"null": 1.0} if k >= len(kept) else {}),
        }
        for i, (k, unit) in enumerate(zip(estimated, units, strict=True))
    ]
    statistics = {
        "sets": len(data),
        "rows": len(x),
        "groups": None if groups is None else len(np.unique(groups)),
        "log_likelihood": choices.log_likelihood(b),
        "log_likelihood_equal_shares": float(of_sets @ -np.log(sizes)),
        "parameters": len(b),
    }
    covariance = covariances[kind] / (units * units[:, None])
    levels = {field: names[k].removeprefix(f"{field} = ") for field, k in references.items()}
    table = Coefficients(rows, kind, statistics, levels, notes, group, covariance.tolist())
    return Fit(_centered(weights, kept[~is_estimated], data, task), b[len(kept) :], table)


def _nested(choices: Choices, names: Sequence[str], is_member: NDArray[np.bool_]) -> NestedChoices:
    """Return the choices of a nested logit. `is_member` `(K, n)` are the rows in each nest."""
    owners = np.repeat(np.arange(len(choices.sizes)), choices.sizes)
    for name, of_nest in zip(names, is_member, strict=True):
        counts = np.bincount(owners[of_nest], minlength=len(choices.sizes))
        if not ((counts > 1) & (counts < choices.sizes)).any():
            raise InputError(
                f"nests: {name}: expected a set with two elements of the nest and another element"
            )
    nest = np.where(is_member.any(0), is_member.argmax(0), -1)
    order = np.lexsort((nest, owners))
    return NestedChoices(
        choices.x[order],
        choices.starts,
        choices.sizes,
        np.argsort(order)[choices.chosen],
        choices.weights,
        len(names),
        nest[order],
    )


def _with_nests(
    choices: NestedChoices,
    b: Floats,
    estimated: Indices,
    names: Sequence[str],
    groups: Indices | None,
) -> tuple[Floats, dict[str, Floats]]:
    """Fit a nested logit.

    Args:
        choices: the choices.
        b: `(k,)`, the coefficients of the conditional logit.
        estimated: the parameters that do not run to infinity.
        names: the names of the nests.
        groups: the groups of the choices, if there are some.

    Returns:
        All parameters, and the covariances of those in `estimated`.

    Raises:
        InputError: the choices do not tell the parameter of a nest.
    """
    found, _ = _maximum(choices, np.append(b, np.ones(len(names))))
    hessian = choices.hessian(found)[np.ix_(estimated, estimated)]
    if _is_flat(hessian):
        raise _not_identified(names)
    covariances = _covariances(choices.derivatives(found)[0][:, estimated], hessian, groups)
    errors = _standard_errors(covariances)["classical"][-len(names) :]
    if vague := [name for name, e in zip(names, errors, strict=True) if e > LARGEST_ERROR]:
        raise _not_identified(vague)
    return found, covariances


def _is_flat(hessian: Floats) -> bool:
    """Whether a likelihood has no peak, given its negative Hessian."""
    diagonal = np.diag(hessian)
    if diagonal.min() <= 0:
        return True
    roots = np.sqrt(diagonal)
    return bool(np.linalg.eigvalsh(hessian / roots / roots[:, None])[0] < FLAT)


def _not_identified(nests: Sequence[str]) -> InputError:
    return InputError(
        f"nests: {listed(nests)}: not identified, because the likelihood does not change with the "
        "parameter of the nest, or rises as it runs to 0 or infinity; leave out the nest, or add "
        "fields that differ within it"
    )


def _nest_notes(gain: float, parameters: Floats, names: Sequence[str]) -> list[str]:
    """Return notes about nests. `gain` is twice the log-likelihood above that without nests."""
    count = len(names)
    p = p_text(float(chdtrc(count, max(gain, 0))))
    freedom = f"{count} degree{'s' * (count > 1)} of freedom"
    notes = [
        "nests: z and p are for differences from 1, where a nest has no effect; likelihood ratio "
        f"to a conditional logit: chi-squared {gain:.2f}, {freedom}, p {p}"
    ]
    if above := [f"nest {name}" for name, t in zip(names, parameters, strict=True) if t > 1]:
        notes.append(
            f"{listed(above)}: the estimate is above 1, which means that elements in the nest are "
            "less alike than others"
        )
    return notes


def _references(
    task: Task, differs: NDArray[np.bool_], is_contested: NDArray[np.bool_]
) -> dict[str, int]:
    """Return the feature of the reference level of each categorical field that differs in a set.

    It is the first level that differs and is not the missing one. Levels that are chosen in some
    sets and not in others go first: relative to a level that is never chosen, the coefficients of
    all other levels would be infinite.
    """
    schema, found = task.facts.schema, {}
    if schema is not None:
        for field, texts, part in zip(schema.fields, schema.categories, schema.slices, strict=True):
            levels = [k for k, _ in enumerate(texts) if differs[part.start + k]]
            if levels:
                levels.sort(key=lambda k: (not texts[k], not is_contested[part.start + k]))
                found[field] = part.start + levels[0]
    return found


def _identified(
    choices: Choices,
    differs: NDArray[np.bool_],
    references: Sequence[int],
    names: Sequence[str],
    task: Task,
) -> tuple[Indices, list[str]]:
    """Return the features whose coefficients are identified, and notes about all others.

    They differ within sets, and are not a linear combination of earlier ones.
    """
    notes, equal = [], list[str]()
    for field, part in field_columns(task).items():
        features = range(len(names))[part]
        all_equal = not differs[part].any()
        equal += [field] if all_equal else [names[k] for k in features if not differs[k]]
    if equal:
        notes.append(f"{listed(equal)}: not identified, because all elements of a set are equal")
    gram = choices.derivatives(np.zeros(len(names)))[1]
    deviations = np.sqrt(np.where(differs, np.diag(gram), 1))
    gram /= deviations * deviations[:, None]
    candidates = [k for k in np.flatnonzero(differs).tolist() if k not in references]
    kept: list[int] = []
    root = np.zeros((len(candidates), len(candidates)))  # the Cholesky root of the kept part
    for k in candidates:
        m = len(kept)
        row = solve_triangular(root[:m, :m], gram[kept, k], lower=True)
        rest = gram[k, k] - row @ row
        if rest > COLLINEAR:
            root[m, :m], root[m, m] = row, np.sqrt(rest)
            kept.append(k)
            continue
        factors = solve_triangular(root[:m, :m], row, lower=True, trans=1)
        others = listed(names[kept[i]] for i in np.flatnonzero(np.abs(factors) > 1e-6))
        notes.append(
            f"{names[k]}: not identified, because it is a linear combination of {others} "
            "within sets"
        )
    return np.array(kept), notes


def _inside(
    choices: Choices, kept: Indices, names: Sequence[str], task: Task
) -> tuple[Indices, list[str]]:
    """Return the features of `kept` whose coefficients are not at a bound, and notes on all others.

    A coefficient at its bound is 0. The likelihood is concave. So if it would rise beyond a bound,
    its maximum within the bounds is at the bound.
    """
    choices, signs = replace(choices, x=choices.x[:, kept]), task.facts.signs[kept]
    if (signs * _maximum(choices, np.zeros(len(kept)))[0] >= 0).all():
        return kept, []

    def loss(b: Floats) -> tuple[float, Floats]:
        return -choices.log_likelihood(b), -choices.derivatives(b)[0].sum(0)

    start = np.zeros(len(kept))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds_of(signs)).x
    inside = (signs == 0) | (found != 0)
    while inside.any():  # L-BFGS-B may stop next to a bound, beyond which Newton's method would go
        b = np.zeros(len(kept))
        b[inside] = _maximum(replace(choices, x=choices.x[:, inside]), b[inside])[0]
        if (signs * b >= 0).all():
            break
        inside &= signs * b >= 0
    notes = []
    for sign, key, other in ((1, "increasing", "negative"), (-1, "decreasing", "positive")):
        if at_bound := [names[k] for k in kept[~inside & (signs == sign)]]:
            notes.append(
                f"{listed(at_bound)}: 0, at the bound of {key}, because the data prefer a {other} "
                "coefficient; there is no error at a bound, and other errors take it as known"
            )
    if not inside.any():
        raise InputError(f"model {models.LOGIT}: no coefficient can be estimated; {notes[0]}")
    return kept[inside], notes


def _estimated(
    choices: Choices, last_step: Floats, covariance: Floats, names: Sequence[str]
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return `(k,)` which coefficients are finite and have an error, and notes about all others.

    If a coefficient runs to infinity, each step of Newton's method changes the scores by about 1.
    Raises InputError if there is no such coefficient.
    """
    of_equal_shares = _inverse(choices.derivatives(np.zeros(len(names)))[1])
    is_infinite = np.abs(last_step) * np.abs(choices.x).max(0) > MOVING
    is_lost = ~is_infinite & (np.diag(covariance) > LOST**2 * np.diag(of_equal_shares))
    notes = [
        f"{listed(np.array(names)[found].tolist())}: not estimated, because {why} (separation)"
        for found, why in (
            (is_infinite & (last_step > 0), "the likelihood rises as it runs to infinity"),
            (is_infinite & (last_step < 0), "the likelihood rises as it runs to minus infinity"),
            (is_lost, "coefficients that run to infinity explain all choices that it could"),
        )
        if found.any()
    ]
    if (is_infinite | is_lost).all():
        raise InputError(f"model {models.LOGIT}: no coefficient can be estimated; {notes[0]}")
    return ~(is_infinite | is_lost), notes


def _default_errors(
    errors: dict[str, Floats], k: int, groups: Indices | None
) -> tuple[str, list[str]]:
    """Return the kind of errors to show, and notes. Remove clustered errors that are meaningless.

    The sandwich of G groups has at most the rank G - 1, so it needs more groups than k parameters.
    """
    if groups is None:
        return "classical", []
    count = len(np.unique(groups))
    if count <= k or (errors["clustered"] < COLLINEAR * errors["classical"]).any():
        del errors["clustered"]
        return "robust", [
            f"errors are not clustered, because {count} groups say too little about {k} coefficient"
            + "s" * (k > 1)
        ]
    few = f"clustered errors of fewer than {FEW_GROUPS} groups may be too small"
    return "clustered", [few] * (count < FEW_GROUPS)


def _maximum(choices: Choices, b: Floats) -> tuple[Floats, Floats]:
    """Return the parameters of the highest likelihood, and the last step to them from `b`.

    The steps are those of Newton's method with Fisher's information in place of the Hessian, which
    it equals if the scores are linear.
    """
    value, least = choices.log_likelihood(b), DECREMENT * choices.weights.mean()
    for _ in range(MAX_STEPS):
        gradients, information = choices.derivatives(b)
        gradient = gradients.sum(0)
        step = _inverse(information) @ gradient
        decrement = gradient @ step
        while (new := choices.log_likelihood(b + step)) < value - least:
            step /= 2
        b, value = b + step, new
        if decrement < least:
            break
    return b, step


def _inverse(information: Floats) -> Floats:
    """Invert the information. Scale it first, because it is small for infinite coefficients."""
    roots = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    inverse: Floats = lstsq(information / (roots * roots[:, None]), np.eye(len(roots)))[0]
    return inverse / (roots * roots[:, None])


def _covariances(
    gradients: Floats, information: Floats, groups: Indices | None
) -> dict[str, Floats]:
    """Return the covariance `(k, k)` of the coefficients of each kind.

    The classical covariance is the inverse information. The robust one is the sandwich (Huber 1967,
    White 1982), which takes each set as an observation. For the clustered one, each group is an
    observation. Both have the factor G / (G - 1) for G observations, as in Stata.
    """
    inverse = _inverse(information)

    def sandwich(parts: Floats) -> Floats:
        factor = len(parts) / max(len(parts) - 1, 1)
        influences = parts @ inverse
        return factor * (influences.T @ influences)

    covariances = {"classical": inverse, "robust": sandwich(gradients)}
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
        sums = np.zeros((codes.max() + 1, gradients.shape[1]))
        np.add.at(sums, codes, gradients)
        covariances["clustered"] = sandwich(sums)
    return covariances


def _standard_errors(covariances: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the standard errors `(k,)` of each kind."""
    return {kind: np.sqrt(np.maximum(np.diag(c), 0)) for kind, c in covariances.items()}


def _centered(weights: Floats, others: Indices, data: Dataset, task: Task) -> Floats:
    """Subtract from the weights of each categorical field their mean over the elements.

    The probabilities of elements with known levels stay the same. Weights that were not estimated
    (`others`) do not count in the mean.
    """
    schema, centered = task.facts.schema, weights.copy()
    if schema is not None:
        for texts, part in zip(schema.categories, schema.slices, strict=True):
            if texts:
                counts = data.elements[:, part].sum(0)
                counts[np.isin(np.arange(len(weights))[part], others)] = 0
                centered[part] -= counts @ weights[part] / max(counts.sum(), 1)
    return centered
