"""A search that records its steps, so that they can be inspected and drawn."""

from typing import NamedTuple

from torch import Tensor

from ptrnet.decoding.search import Hypotheses, Search, Selection, Selector


class Step(NamedTuple):
    """A step of a search."""

    log_probs: Tensor  # (B, K, S + N) of the next tokens of the K prefixes before the step
    selection: Selection  # the prefixes after it


class Traced(Search):
    """Searches as another search does, and records the steps.

    Args:
        search: whose steps are recorded.
    """

    def __init__(self, search: Search) -> None:
        self._search, self.name, self.size = search, search.name, search.size
        self.steps: list[Step] = []  # of the last batch

    def selector(self, inputs: Tensor, lengths: Tensor) -> Selector:
        self.steps = []
        return _Recorder(self._search.selector(inputs, lengths), self.steps)


class _Recorder:
    """A selector that records the log-probabilities that it is given and what it selects."""

    def __init__(self, selector: Selector, steps: list[Step]) -> None:
        self._selector, self._steps = selector, steps

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        """See `Selector.select`."""
        selection = self._selector.select(step, scores, log_probs)
        self._steps.append(Step(log_probs, selection))
        return selection

    def is_finished(self, ended: Tensor) -> bool:
        """See `Selector.is_finished`."""
        return self._selector.is_finished(ended)

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        """See `Selector.finalize`."""
        return self._selector.finalize(hypotheses)
