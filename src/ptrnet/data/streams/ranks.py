"""The part of each batch that one of several processes trains on."""


def rows_of(count: int, rank: int, ranks: int) -> slice:
    """The rows of a batch of `count` examples that process `rank` of `ranks` trains on.

    Together the parts are the batch; they differ by one row at most, and may be empty.
    """
    return slice(count * rank // ranks, count * (rank + 1) // ranks)
