"""The names of the columns of a long table, as settings, which become options of commands."""

from dataclasses import dataclass
from typing import ClassVar

from ptrnet.data.groups import GROUP_KEY
from ptrnet.errors import InputError, short
from ptrnet.settings import OWN_EXAMPLES, Settings, setting

WIDE_TABLES = "see docs/own-examples.md#wide-tables"
ANSWERS = ("chosen", "rank", "grade", "member")


@dataclass(frozen=True)
class SetColumns(Settings):
    """The names of the columns that hold the ids of sets and the answers; the rest are fields.

    `set_id` is empty if the data is not a long table. At most one of `chosen`, `rank`, `grade` and
    `member` has a name. The rank of an element that is not in the answer is an empty cell.
    """

    _owner: ClassVar[str] = OWN_EXAMPLES

    set_id: str = setting("", "long table: the column whose value the rows of a set share")
    chosen: str = setting(
        "",
        "long table: the column that is 1 in the chosen row of each set; for `solve`, the name of "
        "the column to write",
    )
    rank: str = setting(
        "",
        "long table: the column with an element's rank, the lowest first; may have ties; for "
        "`solve`, the name of the column to write",
    )
    grade: str = setting("", "long table: the column with an element's grade, the highest first")
    member: str = setting(
        "", "long table: the column that is 1 for members of the answer, a set without order"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ANSWERS if getattr(self, name)]
        if len(given) > 1:
            raise InputError(f"expected one of {', '.join(ANSWERS)}, got {' and '.join(given)}")
        if given and not self:
            raise InputError(
                f"{given[0]}: needs set_id, the column that says which rows are a set (if each row "
                "is a set of its own, a training needs the names of alternatives, and a trained "
                f"model knows its columns: {WIDE_TABLES})"
            )

    def __bool__(self) -> bool:
        return bool(self.set_id)

    def check_keys(self) -> None:
        """Raise InputError if lines of JSON cannot hold the ids of sets under their name."""
        if self.set_id == GROUP_KEY:
            raise InputError(
                f'set_id: the key "{GROUP_KEY}" is reserved in a line, for the id of a group of '
                "sets; rename the column of the table"
            )

    @property
    def answer(self) -> tuple[str, str]:
        """The setting for the column of answers, such as "rank", and the name of that column.

        If the user named no column of answers, both texts are empty.
        """
        return next(((n, getattr(self, n)) for n in ANSWERS if getattr(self, n)), ("", ""))


@dataclass(frozen=True)
class Columns(SetColumns):
    """The names of the columns that hold the ids of sets, the answers and the groups.

    All rows of a set have the same value in `group`; see `ptrnet.data.groups`. If the data is not
    a long table, `group` is a key of each line, or a field whose value all elements share.
    """

    group: str = setting(
        "",
        "the column (or the key of lines) that says to which person, household, document or "
        "session a set belongs: no split separates the sets of one, and intervals take all sets of "
        "one as one observation",
    )


@dataclass(frozen=True)
class WeightedColumns(Columns):
    """The columns of a table of examples to measure a model on.

    All rows of a set have the same number in `weight`.
    """

    weight: str = setting(
        "", "table: the column with the weight of a set, in the loss of a training and in metrics"
    )


@dataclass(frozen=True)
class TableColumns(Columns):
    """The columns of a table of any shape.

    A trained model keeps what these settings say about the table, in its `Layout`. In Python,
    `alternatives` and `interact` may also be lists of names. A pattern without `{field}` is that of
    a single field. With `interact`, each alternative except the first gets a field such as "income
    of car", which is the number in rows of this alternative, and 0 in other rows.
    """

    alternatives: str = setting(
        "",
        "wide table, in which a row is a set and each alternative has its own columns: the names "
        "of the alternatives, such as train,car; if --chosen has numbers, 1 is the first",
    )
    pattern: str = setting(
        "",
        "wide table: the names of the columns, such as {alternative}_{field}, or p{alternative} "
        "for one field; separate several by commas; {number} counts alternatives from 1  [found]",
    )
    available: str = setting(
        "",
        "table: the column that is 1 if an element can be chosen, 0 if not; for a wide table a "
        "pattern such as {alternative}_AV",
    )
    outside: str = setting(
        "",
        'table: a name for the answer "none of these", such as none; sets in which nothing is '
        "chosen have this answer",
    )
    interact: str = setting(
        "",
        "wide table: fields of the whole set, such as income,age, that get a coefficient for each "
        "alternative; a conditional logit needs them, networks learn such effects anyway",
    )

    def __post_init__(self) -> None:
        for key in ("alternatives", "interact"):
            names = getattr(self, key)
            if isinstance(names, list | tuple):  # of Python
                if not all(isinstance(n, str | int) and "," not in str(n) for n in names):
                    raise InputError(f"{key}: expected names without commas, got {short(names)}")
                object.__setattr__(self, key, ",".join(map(str, names)))
        super().__post_init__()
        names = [name.casefold() for name in (*self.names, *[self.outside] * bool(self.outside))]
        if self.alternatives and (len(self.names) < 2 or "" in names):
            raise InputError(
                "alternatives: expected two names or more, such as train,car, got "
                f"{short(self.alternatives)}"
            )
        if len({*names}) < len(names):
            raise InputError(f"alternatives: expected different names, got {', '.join(names)}")
        for name in ("pattern", "interact"):
            if getattr(self, name) and not self.alternatives:
                raise InputError(f"{name}: needs alternatives, the names of the alternatives")
        for name in ("available", "outside", "weight", "position"):  # some are of subclasses
            if getattr(self, name, "") and not self:
                raise InputError(
                    f"{name}: needs set_id, the column that says which rows are a set, or "
                    "alternatives if each row is a set"
                )
        if self.outside and self.answer[0] not in ("", "chosen"):
            raise InputError("outside: is for choices (chosen), because other answers may be empty")

    def __bool__(self) -> bool:
        return bool(self.set_id or self.alternatives)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the alternatives of a wide table."""
        return _names_in(self.alternatives)

    @property
    def interactions(self) -> tuple[str, ...]:
        """The names of the fields that alternatives get because of `interact`."""
        from ptrnet.tasks.schema import interaction  # imports numpy, which `--help` does without

        return tuple(interaction(name, of) for name in self.interacting for of in self.names[1:])

    @property
    def interacting(self) -> tuple[str, ...]:
        """The names of the fields in `interact`."""
        return _names_in(self.interact)


def _names_in(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


@dataclass(frozen=True)
class TrainingColumns(TableColumns, WeightedColumns):
    """The columns of a table to train on."""

    position: str = setting(
        "",
        "table of clicks: the column with the place at which an element was shown; training learns "
        "its effect, and predictions leave it out",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.position and self.outside:
            raise InputError("position: expected no outside option, which is shown at no position")


NO_COLUMNS = TrainingColumns()  # for data that is not a long table


def check_no_probability(probability: str) -> None:
    """Refuse the name of a column of probabilities, because the output is not a long table."""
    if probability:
        raise InputError(
            "probability: needs a long table (set_id), and an output that is one: .csv, .tsv or "
            ".parquet"
        )
