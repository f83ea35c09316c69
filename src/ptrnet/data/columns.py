"""The names of the columns of a long table, as settings, which become options of commands."""

from dataclasses import dataclass
from typing import ClassVar

from ptrnet.data.groups import GROUP_KEY
from ptrnet.errors import InputError
from ptrnet.settings import OWN_EXAMPLES, Settings, setting

WIDE_TABLES = "see docs/own-examples.md#wide-tables"
ANSWERS = ("chosen", "rank", "grade", "member")


@dataclass(frozen=True)
class SetColumns(Settings):
    """The names of the columns that hold the ids of sets and the answers.

    All other columns are fields.

    Name at most one of the columns `chosen`, `rank`, `grade` and `member`.

    Args:
        set_id: all rows of a set have the same value in this column. Empty if the data is not a
            long table.
        chosen: 1 in the row that was chosen, 0 in the other rows of its set.
        rank: the element's rank, any number. The lowest rank comes first, and equal ranks are ties.
            The cell of an element that is not in the answer is empty.
        grade: the element's grade, a number. The highest grade comes first.
        member: 1 if the element belongs to the answer, 0 if not. The answer has no order.
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
        if given and not self.set_id:
            raise InputError(
                f"{given[0]}: needs set_id, the column that says which rows are a set (if each row "
                f"is a set of its own: {WIDE_TABLES})"
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

    Args: those of `SetColumns`, and
        group: the group to which a set belongs, such as a person; see `ptrnet.data.groups`. All
            rows of a set have the same value in this column. If the data is not a long table, this
            is a key of each line, or a field whose value all elements share.
    """

    group: str = setting(
        "",
        "the column (or the key of lines) that says to which person, household, document or "
        "session a set belongs: no split separates the sets of one, and intervals take all sets of "
        "one as one observation",
    )


@dataclass(frozen=True)
class TrainingColumns(Columns):
    """The columns of a table to train on.

    Args: those of `Columns`, and
        weight: the weight of the set, the same number in all rows of the set.
    """

    weight: str = setting("", "long table: the column with the weight of a set in the loss")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight and not self.set_id:
            raise InputError("weight: needs set_id, the column that says which rows are a set")


NO_COLUMNS = TrainingColumns()  # for data that is not a long table


def check_no_probability(probability: str) -> None:
    """Refuse the name of a column of probabilities, because the output is not a long table."""
    if probability:
        raise InputError(
            "probability: needs a long table (set_id), and an output that is one: .csv, .tsv or "
            ".parquet"
        )
