"""Answers that analysts ask of a model of choices: shares, elasticities, diversion, and more.

Every number is a ratio of sums of probabilities over the sets. So we only need the sums for the
model, and for a few variants of it, in resampled groups. `ptrnet.solver.totals` has these sums.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from ptrnet.data.groups import warned_of_ids
from ptrnet.data.question import Question
from ptrnet.errors import InputError
from ptrnet.progress import track
from ptrnet.solver.explain import field_columns
from ptrnet.solver.scenario import (
    Mask,
    changed,
    check_not_wide,
    check_read,
    dropped,
    encoded,
    frame_of,
)
from ptrnet.solver.totals import Totals
from ptrnet.tasks.base import Task
from ptrnet.tasks.custom import own_task
from ptrnet.tasks.schema import ALTERNATIVE
from ptrnet.types import Dataset, Floats

if TYPE_CHECKING:
    from ptrnet.solver import Solver

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of willingness to pay over sets
INTERVAL = (0.025, 0.975)
NODES = 8  # of the integral over a path of costs
CERTAIN = 1e-4  # a choice is certain if the sum of p (1 - p) over its elements is smaller
ACTIVITY = "simulating"


class Simulation(dict[str, Any]):
    """The tables of a simulation, `pandas.DataFrame`s by name. `print` shows them.

    Args:
        tables: the tables.
        sets: the number of sets.
        groups: the number of groups; None if there are none.
        notes: lines about how the numbers were computed.
    """

    def __init__(
        self, tables: dict[str, Any], sets: int, groups: int | None, notes: Sequence[str]
    ) -> None:
        super().__init__(tables)
        self.sets, self.groups, self.notes = sets, groups, list(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the tables, with a dictionary for each row, as a JSON object."""
        tables = {
            name: frame.astype(object).where(frame.notna(), None).to_dict("records")
            for name, frame in self.items()
        }
        return {"sets": self.sets, "groups": self.groups, **tables, "notes": self.notes}

    def to_frame(self) -> Any:
        """Return all tables in one. The column `table` has the name of each row's table."""
        import pandas as pd

        return pd.concat(dict(self), names=["table", None]).reset_index(level=0)

    def __str__(self) -> str:
        """Return the tables as text, each number with its interval, and the notes."""
        groups = f" in {self.groups:,} groups" if self.groups else ""
        lines = [f"{self.sets:,} sets{groups}; 95% intervals in brackets"]
        for name, frame in self.items():
            lines += ["", name, _with_brackets(frame).to_string(index=False)]
        return "\n".join([*lines, "", *self.notes])


def simulate(solver: "Solver", data: Dataset, question: Question, activity: str = "") -> Simulation:
    """Simulate choices.

    Args:
        solver: the model, in evaluation mode. Everything is computed from the probabilities of
            `element_probabilities`, so the model need not have a gradient.
        data: the sets, with their elements, weights and groups.
        question: what to compute.
        activity: the label of a progress bar. If the label is empty, there is no bar.
    """
    task = own_task(solver.task)
    if task.facts.kind != "choice":
        raise InputError(f"simulate: expected a model of choices, got one of {task.facts.kind}")
    if not len(data):
        raise InputError("simulate: expected at least one set, got none")
    frame = frame_of(data, task)
    if not question.by and task.facts.layout.alternatives and ALTERNATIVE in frame:
        question = replace(question, by=ALTERNATIVE)
    check_not_wide(frame, task, question)
    elements, is_changed, targets = changed(frame, data, task, question.change, question.where)
    solver.trained_range.warn_of(warned_of_ids(data))
    if question.change:
        solver.trained_range.warn_of(Dataset(elements, data.starts))
    drop, elasticity, surplus = question.drop, question.elasticity, question.surplus
    is_kept = ~dropped(frame, task, drop) if drop else np.ones(len(frame), bool)
    of_wtp = question.wtp_fields
    numeric = [
        ("elasticity", elasticity),
        *(("wtp", name) for name in of_wtp),
        ("surplus", surplus),
    ]
    for option, field in numeric:
        if field:
            _check_numeric(task, field, option)
    totals = Totals(solver, data, frame, question, activity)
    tables = {"shares": _shares(totals, elements, is_kept, is_changed)}
    notes = list(totals.notes)
    if elasticity:
        tables["elasticities"] = _elasticities(totals, elasticity)
    if of_wtp:
        tables["wtp"] = _willingness_to_pay(totals, *of_wtp)
    if surplus:
        is_of_cost = targets <= {surplus} and not drop
        tables["surplus"], note = _surplus(
            totals, elements, is_kept, is_changed, surplus, is_of_cost
        )
        notes.append(note)
    groups = None if data.groups is None else len(np.unique(data.groups))
    return Simulation(tables, len(data), groups, notes)


# ---- Tables


def _shares(totals: Totals, elements: Floats, is_kept: Mask, is_changed: Mask) -> Any:
    """Return the shares before and after a change, and the diversion to other rows."""
    import pandas as pd

    sums = totals.by_label(totals.before)
    whole = sums.sum(2, keepdims=True)
    before, is_asked = sums / whole, totals.question.is_counterfactual
    if is_asked:
        new = totals.probabilities(elements, is_kept)
        after = totals.by_label(new) / whole
        is_other = is_kept & ~is_changed
        gains = [(p - q) * is_other for p, q in zip(new, totals.before, strict=True)]
        gained = totals.by_label(gains)
        has_others = np.bincount(totals.label[is_other], minlength=gained.shape[2]) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            diversion = np.where(has_others, gained / gained.sum(2, keepdims=True), np.nan)
    rows = []
    for segment, s in totals.segments():
        for k, label in enumerate(totals.labels):
            row = {
                **totals.head(segment),
                _name(totals): label,
                **_cells("before", before[:, s, k]),
            }
            if is_asked:
                row |= _cells("after", after[:, s, k])
                row |= _cells("change", (after - before)[:, s, k])
                row |= _cells("diversion", diversion[:, s, k]) if is_other.any() else {}
            rows.append(row)
    return pd.DataFrame(rows)


def _elasticities(totals: Totals, field: str) -> Any:
    """Return the elasticities of all shares with respect to a field of each alternative."""
    import pandas as pd

    values = np.asarray(totals.data.elements[:, field_columns(totals.task)[field].start])
    has_number, base = totals.has(field), totals.by_label(totals.before)
    of_segments: list[list[dict[str, Any]]] = [[] for _ in totals.segments()]
    for j, label in enumerate(track(totals.labels, totals.activity, len(totals.labels))):
        of_label = (totals.label == j) & has_number
        slopes = [np.zeros(len(values)) for _ in totals.models]
        for elements, sign in totals.moved(field, of_label, totals.step * values):
            for slope, p in zip(slopes, totals.probabilities(elements), strict=True):
                slope += sign * p / (2 * totals.step)
        sums = totals.by_label(slopes)
        with np.errstate(divide="ignore", invalid="ignore"):
            elasticity, diversion = sums / base, -sums / sums[:, :, j : j + 1]
        for segment, s in totals.segments():
            for k, other in enumerate(totals.labels):
                name = _name(totals)
                row = {
                    **totals.head(segment),
                    f"{field} of {name}": label,
                    f"share of {name}": other,
                }
                row |= _cells("elasticity", elasticity[:, s, k])
                nothing = np.full(len(sums), np.nan)
                row |= _cells("diversion", nothing if k == j else diversion[:, s, k])
                of_segments[s].append(row)
    return pd.DataFrame([row for rows in of_segments for row in rows])


def _willingness_to_pay(totals: Totals, field: str, cost: str) -> Any:
    """Return ratios of marginal utilities; see `Question`."""
    import pandas as pd

    both = totals.has(field) & totals.has(cost)
    slopes = [totals.own_slopes(name, both) for name in (field, cost)]
    of_labels = [totals.by_label(of_field) for of_field in slopes]
    variances = np.stack([totals.of_sets(p * (1 - p) * both) for p in totals.before])
    is_open = (variances > CERTAIN).all(0)
    of_sets = [  # mean marginal utilities (M, B), which are linear in the coefficients of a logit
        np.stack([totals.of_sets(v) for v in of_field]) / np.where(is_open, variances, 1)
        for of_field in slopes
    ]
    rows = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for segment, s in totals.segments():
            ratio = of_labels[0][:, s].sum(1) / of_labels[1][:, s].sum(1)
            name = _name(totals)
            head = {**totals.head(segment), name: "all"}
            rows.append({**head, "statistic": "mean", **_cells("wtp", ratio)})
            inside = is_open & np.isin(totals.of_segment, [s - 1] if s else totals.of_segment)
            quantiles = _quantiles(totals, of_sets[0], of_sets[1], inside)
            for q, of_draws in zip(QUANTILES, quantiles.T, strict=True):
                text = f"{100 * q:.0f}% of sets"
                rows.append({**head, "statistic": text, **_cells("wtp", of_draws)})
            for k, label in enumerate(totals.labels if totals.question.by else []):
                ratio = of_labels[0][:, s, k] / of_labels[1][:, s, k]
                head = {**totals.head(segment), name: label}
                rows.append({**head, "statistic": "mean", **_cells("wtp", ratio)})
    return pd.DataFrame(rows)


def _quantiles(totals: Totals, top: Floats, bottom: Floats, inside: Mask) -> Floats:
    """Return the weighted quantiles `(R + 1, Q)` of ratios over some sets.

    Args:
        totals: the sets and the draws.
        top: `(M, B)`, the numerator of each set for each model.
        bottom: `(M, B)`, the denominators.
        inside: `(B,)`, which sets count.
    """
    found = np.full((len(totals.counts), len(QUANTILES)), np.nan)
    top, bottom, group = top[:, inside], bottom[:, inside], totals.group[inside]
    for row, mixing, counts in zip(found, totals.mixing, totals.counts, strict=True):
        weights = totals.weights[inside] * counts[group]
        ratios = (mixing @ top) / (mixing @ bottom)
        order = np.argsort(ratios)[: np.isfinite(ratios).sum()]
        shares = weights[order].cumsum()
        if len(order) and shares[-1]:
            places = np.searchsorted(shares, np.array(QUANTILES) * shares[-1])
            row[:] = ratios[order[np.minimum(places, len(order) - 1)]]
    return found


def _surplus(
    totals: Totals,
    elements: Floats,
    is_kept: Mask,
    is_changed: Mask,
    cost: str,
    is_of_cost: bool,
) -> tuple[Any, str]:
    """Return the change of the consumer surplus of a set, and how it was computed."""
    import pandas as pd

    whole = totals.by_segment([np.ones(len(totals.data))] * len(totals.models))
    if is_of_cost:
        sums = totals.by_label(_path_integral(totals, elements, cost)).sum(2)
        surplus = sums / whole
        note = (
            "Surplus: the integral of probabilities along the path of costs, which is exact for "
            "every model without income effects."
        )
    elif totals.logits:
        changes, of_cost = _of_logits(totals, elements, is_kept, cost)
        with np.errstate(divide="ignore", invalid="ignore"):
            surplus = totals.by_segment(changes) / whole / -of_cost[:, None]
        note = f"Surplus: the change of the log-sum, divided by minus the coefficient of {cost}."
    else:
        gains = totals.by_segment(_log_sums(totals, elements, is_kept, is_changed))
        has_cost = totals.has(cost)
        slopes = totals.by_label(totals.own_slopes(cost, has_cost)).sum(2)
        variance = totals.by_label([p * (1 - p) * has_cost for p in totals.before]).sum(2)
        with np.errstate(divide="ignore", invalid="ignore"):
            surplus = gains / whole / (-slopes / variance)
        note = (
            "Surplus: the change of the log-sum, divided by the mean marginal utility of "
            f"{cost}. It is that of a logit with the same probabilities."
        )
    rows = [
        {**totals.head(name), **_cells("surplus", surplus[:, s])} for name, s in totals.segments()
    ]
    return pd.DataFrame(rows), note


def _path_integral(totals: Totals, elements: Floats, cost: str) -> list[Floats]:
    """Return for each model `(n,)`: `-integral of p_j dc_j` from the costs to other costs."""
    first = field_columns(totals.task)[cost]
    before = np.asarray(totals.data.elements[:, first.start])
    rise = elements[:, first.start] - before
    rows = rise != 0
    integrals = [np.zeros(len(rise)) for _ in totals.models]
    places, weights = leggauss(NODES)
    for place, weight in track(list(zip(places, weights, strict=True)), totals.activity, NODES):
        on_path = np.array(elements)
        values = (before + (1 + place) / 2 * rise)[rows].tolist()
        on_path[rows, first] = encoded(totals.task, cost, values, cost)
        for integral, p in zip(integrals, totals.probabilities(on_path), strict=True):
            integral -= weight / 2 * p * rise
    return integrals


def _of_logits(
    totals: Totals, elements: Floats, is_kept: Mask, cost: str
) -> tuple[list[Floats], Floats]:
    """Return each logit's changes `(B,)` of the log-sums, and the cost's coefficient by draw."""
    before = totals.log_sums(np.asarray(totals.data.elements), np.ones_like(is_kept))
    after = totals.log_sums(elements, is_kept)
    first = field_columns(totals.task)[cost].start
    weights = [model.weights[first].item() for model in totals.logits]
    of_draws = totals.mixing @ weights / totals.task.facts.scaling["spread"][first]
    return [new - old for old, new in zip(before, after, strict=True)], of_draws


def _log_sums(totals: Totals, elements: Floats, is_kept: Mask, is_changed: Mask) -> list[Floats]:
    """Return for each model the changes `(B,)` of the log-sums.

    Elements that do not change keep their utility. So if P is the probability of all of them, and
    P' is that after the change, the log-sum rises by `log P - log P'`.
    """
    stays = is_kept & ~is_changed
    num_staying = np.bincount(totals.owners[stays], minlength=len(totals.data))
    if not num_staying.all():
        place = totals.data.column("source")[int(num_staying.argmin())]
        raise InputError(
            f"{place}: surplus: all elements of the set change. Expected one that stays, because "
            "probabilities do not tell how much better all became; or a change of the cost alone"
        )
    new = totals.probabilities(elements, is_kept)
    pairs = zip(totals.before, new, strict=True)
    return [np.log(totals.of_sets(p * stays) / totals.of_sets(q * stays)) for p, q in pairs]


def _cells(name: str, draws: Floats) -> dict[str, float]:
    """Return the cells of a number with its interval. The first of the draws is the number."""
    known = draws[1:][np.isfinite(draws[1:])]
    low, high = np.quantile(known, INTERVAL) if len(known) else (np.nan, np.nan)
    value = draws[0] if np.isfinite(draws[0]) else np.nan
    return {name: float(value), f"{name}_low": float(low), f"{name}_high": float(high)}


def _name(totals: Totals) -> str:
    return totals.question.by or "position"


def _with_brackets(frame: Any) -> Any:
    """Return a frame with each number and its interval in one cell."""
    shown = {}
    for name in frame:
        if f"{name}_low" in frame:
            cells = zip(*(frame[f"{name}{end}"] for end in ("", "_low", "_high")), strict=True)
            shown[name] = ["-" if v != v else f"{v:.4g} ({a:.4g} to {b:.4g})" for v, a, b in cells]
        elif not name.endswith(("_low", "_high")):
            shown[name] = frame[name].tolist()
    return type(frame)(shown)


def _check_numeric(task: Task, field: str, option: str) -> None:
    """Refuse a field that the model does not read, that is a category, or of the whole set."""
    schema = task.facts.schema
    if schema is not None and field in (*schema.context, *task.facts.layout.interact):
        raise InputError(
            f'{option}: "{field}" belongs to whole sets: expected a field that elements differ in, '
            "or a change of this one"
        )
    check_read(task, field, option)
    if schema is not None and schema.categories[schema.fields.index(field)]:
        raise InputError(f'{option}: expected a field of numbers, got the category "{field}"')
