"""The base class of the streams that a training draws its batches from."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

from ptrnet.data.streams.prefetch import prefetch
from ptrnet.types import Batch, CutBatch, Example, InstanceBatch

AnyBatch = TypeVar("AnyBatch", Batch, CutBatch, InstanceBatch)


class BatchStream(ABC, Generic[AnyBatch]):
    """Numbered batches without end; batch k depends on nothing but the stream's arguments and k.

    So a resumed training sees the batches that it would have seen without the stop.

    Args:
        first: the number of the first batch that `batches` gives.
        num_prefetch: how many batches a thread makes ahead.
    """

    held_out: Sequence[Example] = ()  # examples that are never drawn, to validate on
    fingerprint: str = ""  # of the file of the examples: another once it has changed

    def __init__(self, first: int, num_prefetch: int) -> None:
        self.first, self.num_prefetch = first, num_prefetch

    @abstractmethod
    def batch(self, k: int, rank: int = 0, world_size: int = 1) -> AnyBatch:
        """Batch number k, or the part of it that process `rank` of `world_size` trains on."""

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[AnyBatch]:
        """Batches from `first` on, without end; of each batch the part of one process."""
        batch = partial(self.batch, rank=rank, world_size=world_size)
        return prefetch(batch, self.first, self.num_prefetch)

    def __iter__(self) -> Iterator[AnyBatch]:
        return self.batches()
