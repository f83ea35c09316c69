"""The part of each batch that one of several processes trains on."""


def rows_of_rank(count: int, rank: int, world_size: int) -> slice:
    """The rows of a batch of `count` examples that process `rank` of `world_size` trains on.

    Together the parts are the batch; they differ by one row at most, and may be empty.
    """
    return slice(count * rank // world_size, count * (rank + 1) // world_size)
