"""What-if questions about a data set: expressions of its columns that change or remove elements.

pandas evaluates the expressions. It could also run methods that read and write files, so an
expression may use only the methods in METHODS.
"""

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptrnet.data.question import Question
from ptrnet.errors import InputError, check_package, short, unknown
from ptrnet.solver.explain import field_columns
from ptrnet.tasks.base import Task
from ptrnet.tasks.schema import ALTERNATIVE, interaction, is_missing
from ptrnet.types import Dataset, Floats

METHODS = {
    *("str", "lower", "upper", "strip", "startswith", "endswith", "contains", "len"),
    *("isin", "isna", "notna", "fillna", "between", "abs", "clip", "round", "min", "max", "mean"),
}
_QUOTED_NAME = re.compile(r"`([^`]*)`")
_ASSIGNMENT = re.compile(r"\s*(`[^`]+`|[^\W\d]\w*)\s*=(?!=)(.*)", re.DOTALL)

Mask = NDArray[np.bool_]


def frame_of(data: Dataset, task: Task) -> Any:
    """Return a `pandas.DataFrame` with a row for each element, and its fields as columns.

    Further columns have the id of the set, or the keys of lines of JSON. If elements are numbers
    without names, the columns are `feature 1`, `feature 2`, ...

    Raises:
        MissingExtraError: pandas is not installed.
    """
    check_package("pandas", "a simulation", "simulate")
    import pandas as pd

    if task.facts.schema is None:
        frame = pd.DataFrame(np.asarray(data.elements), columns=list(field_columns(task)))
    else:
        frame = pd.DataFrame(
            [element for elements in data.column("elements") for element in elements]
        )
        for name, part in zip(task.facts.schema.fields, task.facts.schema.categories, strict=True):
            if not part:  # a number, or a text such as n/a
                cells = frame[name].tolist()
                frame[name] = [np.nan if is_missing(cell) else cell for cell in cells]
    extras = data.column("extra")
    for name in dict.fromkeys(name for extra in extras for name in extra):
        values = [extra.get(name) for extra in extras]
        if name not in frame and not any(isinstance(value, Mapping | list) for value in values):
            frame[name] = pd.Series(values).repeat(data.sizes).to_numpy()
    return frame


def check_not_wide(frame: Any, task: Task, question: Question) -> None:
    """Refuse the columns of a wide table, whose fields are in the rows, and say what to write."""
    of_columns = {
        column: (field, name)
        for field, columns in task.facts.layout.fields
        for column, name in zip(columns, task.facts.layout.names, strict=False)
        if column and column not in frame
    }
    expressions = [("where", question.where), ("drop", question.drop)]
    for change in question.change:
        match = _ASSIGNMENT.fullmatch(change)
        expressions += [("change", part) for part in (match.groups() if match else [change])]
    named = [
        (option, name) for option, text in expressions if text for name in _names(text, option)
    ]
    named += [("elasticity", question.elasticity), ("surplus", question.surplus)]
    for option, column in [*named, *(("wtp", name) for name in question.wtp_fields)]:
        if column in of_columns:
            field, name = of_columns[column]
            rows = f"{ALTERNATIVE} == '{name}'"
            advice = {"change": f'where "{rows}"', "where": rows, "drop": rows}
            raise InputError(
                f'{option}: "{column}" is the field "{field}" in the rows of {name}: expected '
                f"{field}, and {advice.get(option, f'by {ALTERNATIVE}')}"
            )


def selected(frame: Any, condition: str, option: str) -> Mask:
    """Return `(n,)`: whether a condition is true for each row.

    Args:
        frame: the rows.
        condition: a condition of the columns, such as `mode == train and price > 2`. A word that is
            not a column is a text, if a column has this text in a row.
        option: the option that has the condition, for error messages.

    Raises:
        InputError: the condition cannot be evaluated, or is true for no row.
    """
    values = np.asarray(_evaluate(frame, condition, option))
    if values.shape != (len(frame),) or values.dtype.kind not in "bO":
        raise InputError(
            f'{option}: expected a condition such as "price > 2", got {short(condition)}'
        )
    is_true = values == True  # noqa: E712  a comparison with a missing value is neither
    if not is_true.any():
        raise InputError(f"{option}: {short(condition, 60)}: is true for no row")
    return np.asarray(is_true, bool)


def dropped(frame: Any, task: Task, condition: str) -> Mask:
    """Return `(n,)`: which rows a condition removes; see `selected`.

    The outside option of a long table is no row of it, so the condition has to name the option.
    """
    rows = selected(frame, condition, "drop")
    if task.facts.layout.outside not in _names(condition, "drop"):
        rows &= ~is_outside(frame, task)
    return rows


def changed(
    frame: Any, data: Dataset, task: Task, changes: Sequence[str], where: str
) -> tuple[Floats, Mask, set[str]]:
    """Change fields of elements.

    Args:
        frame: the rows of `frame_of`.
        data: the sets.
        task: their task.
        changes: expressions such as `price * 1.1`, which changes the only field that it names, or
            `price = cost + 2`. Each one sees the values that earlier ones have changed.
        where: a condition for the rows to change; see `selected`. If empty, all rows.

    Returns:
        The features `(n, d)` after the changes, `(n,)` which rows have changed, and the changed
        fields.

    Raises:
        InputError: an expression cannot be evaluated, changes a field that the model does not read,
            gives a value that the field cannot have, or changes nothing.
    """
    frame, elements, columns = frame.copy(), np.array(data.elements), field_columns(task)
    layout = task.facts.layout
    is_chosen = selected(frame, where, "where") if where else np.ones(len(frame), bool)
    targets = set()
    for change in changes:
        place = f"change: {short(change, 60)}"
        field, expression = _assignment(frame, change)
        # A field of the whole set may also be a field of each alternative; see `Layout.interact`.
        parts = {field: np.ones(len(frame), bool)}
        for own in layout.names[1:] if field in layout.interact else ():
            parts[interaction(field, own)] = np.asarray(frame[ALTERNATIVE] == own)
        parts = {name: part for name, part in parts.items() if name in columns}
        if not parts:
            check_read(task, field, "change")
        values = np.asarray(_evaluate(frame, expression, "change"), object)
        old, new = frame[field].to_numpy(object), np.broadcast_to(values, len(frame))
        was_missing, stays_missing = (np.array([*map(is_missing, v)], bool) for v in (old, new))
        rows = is_chosen & ~(was_missing & (stays_missing | _lacks(frame, task, field)))
        before = elements.copy()
        for name, part in parts.items():
            elements[rows & part, columns[name]] = encoded(
                task, name, new[rows & part].tolist(), place
            )
        if (elements == before).all():
            raise InputError(f"{place}: changes no row")
        _check_context(data, task, field, rows)
        for name, part in {field: rows, **parts}.items():
            frame[name] = np.where(rows & part, new, frame[name].to_numpy(object))
        frame = frame.infer_objects()
        targets.add(field)
    return elements, (elements != data.elements).any(1), targets


def is_outside(frame: Any, task: Task) -> Mask:
    """Return `(n,)`: whether each row is the outside option of a long table."""
    layout = task.facts.layout
    if layout.alternatives or layout.outside not in frame:
        return np.zeros(len(frame), bool)
    return np.asarray(frame[layout.outside] == 1)


def _lacks(frame: Any, task: Task, field: str) -> Mask:
    """Return `(n,)`: whether each row is of an alternative that never has a field.

    This is the outside option, or an alternative without such a column in a wide table.
    """
    layout = task.facts.layout
    if not layout.alternatives:
        return is_outside(frame, task) & (field not in layout.shared)
    columns = dict(layout.fields).get(field, layout.names)  # a fact belongs to all alternatives
    has_column = [name for name, column in zip(layout.names, columns, strict=False) if column]
    return ~np.asarray(frame[ALTERNATIVE].isin(has_column))


def check_read(task: Task, field: str, option: str) -> None:
    """Refuse a field that the model does not read."""
    if field not in field_columns(task):
        raise unknown(
            f"field in {option} (expected one that the model reads):", field, field_columns(task)
        )


def encoded(task: Task, field: str, values: Sequence[Any], place: str) -> Floats:
    """Return the features `(n, width)` of new values of a field.

    Raises:
        InputError: a value is missing, infinite or of the wrong type, or is a text that training
            did not see.
    """
    schema = task.facts.schema
    for value in values:
        if is_missing(value):
            raise InputError(f"{place}: expected a value in each row, got {short(value)}")
    if schema is None:
        numbers = np.array(values, np.float64)[:, None]
        if not np.isfinite(numbers).all():
            raise InputError(f"{place}: expected finite numbers")
        return numbers
    k = schema.fields.index(field)
    features = schema.encode_field(k, list(values), lambda _: place)
    if known := schema.categories[k]:
        is_new = ~features[:, [j for j, text in enumerate(known) if text]].any(1)
        if is_new.any():
            raise unknown(f'{place}: value of "{field}":', str(values[int(is_new.argmax())]), known)
    return features


def _check_context(data: Dataset, task: Task, field: str, rows: Mask) -> None:
    """Refuse to change a field of a whole set in only some of its elements."""
    context = () if task.facts.schema is None else task.facts.schema.context
    counts = np.add.reduceat(rows, data.starts[:-1], dtype=np.int64)
    if (
        field in (*context, *task.facts.layout.interact)
        and ((counts > 0) & (counts < data.sizes)).any()
    ):
        raise InputError(
            f'change: "{field}" belongs to whole sets: expected a condition (where) that is true '
            "for all rows of a set, or for none"
        )


def _assignment(frame: Any, change: str) -> tuple[str, str]:
    """Return the field that an expression changes, and the expression of its new value."""
    if match := _ASSIGNMENT.fullmatch(change):
        return match[1].strip("`"), match[2]
    given = _names(change, "change")
    names = sorted({name for name in given if name in frame})
    if given and not names:
        raise unknown("column in change", given[0], map(str, frame))
    if len(names) != 1:
        got = ", ".join(names) or "none"
        raise InputError(
            f"change: {short(change, 60)}: expected an expression of one field, or "
            f'"FIELD = EXPRESSION"; got the fields: {got}'
        )
    return names[0], change


def _names(expression: str, option: str) -> list[str]:
    """Return the names of columns, and other names, in an expression.

    Raises:
        InputError: the expression is not one, or uses a method that is not in METHODS.
    """
    quoted: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f" _quoted{len(quoted) - 1}_ "

    code = _QUOTED_NAME.sub(placeholder, expression).strip()
    try:
        nodes = list(ast.walk(ast.parse(code, mode="eval")))
    except (SyntaxError, ValueError):
        raise InputError(
            f"{option}: {short(expression, 60)}: not an expression; put names with spaces or signs "
            "into backticks, and texts with apostrophes into double quotes"
        ) from None
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr not in METHODS:
            raise unknown(f"method in {option}", node.attr, METHODS)
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in functions]
    of_quoted = {f"_quoted{k}_": name for k, name in enumerate(quoted)}
    return [of_quoted.get(name, name) for name in names]


def _evaluate(frame: Any, expression: str, option: str) -> Any:
    """Evaluate an expression of columns. Raises InputError in one line if that is impossible."""
    names = _names(expression, option)
    others = [name for name in names if name not in frame]
    texts = {}
    if others:
        cells = {c for name in frame if frame[name].dtype.kind == "O" for c in frame[name].unique()}
        texts = {name: name for name in others if name in cells}
    for name in others:
        if name not in texts:
            raise unknown(f"column (or text in a column) in {option}", name, map(str, frame))
    # Polars and Parquet have days as dates, which cannot be compared with texts.
    dates = {name: frame[name].astype("datetime64[s]") for name in names if _has_dates(frame, name)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return frame.assign(**dates).eval(
                expression.strip(), engine="python", resolvers=[texts]
            )
    except Exception as error:  # pandas raises errors of many types
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{option}: {short(expression, 60)}: {reason}") from None


def _has_dates(frame: Any, name: str) -> bool:
    """Whether the cells of a column are dates of Python, or missing."""
    from pandas.api.types import infer_dtype

    return name in frame and infer_dtype(frame[name]) == "date"
