"""A search that records its steps, so that a caller can inspect and draw the steps."""

from typing import NamedTuple

from torch import Tensor

from ptrnet.decoding.search import Hypotheses, Search, Selection, Selector


class Step(NamedTuple):
    """One step of a search."""

    log_probs: Tensor  # (B, K, S + N) for the next tokens of the K prefixes before the step
    selection: Selection  # the prefixes after the step


class Traced(Search):
    """A search that gives the same answers as another search, and records its steps.

    Args:
        search: the search to record.

    Examples:
        >>> traced = Traced(Beam(3))
        >>> hull = ptrnet.load("hull").solve(points, traced)
        >>> traced.steps[0].selection.tokens  # (1, 3): the first tokens of the three prefixes
    """

    def __init__(self, search: Search) -> None:
        self._search, self.name, self.size = search, search.name, search.size
        self.steps: list[Step] = []  # the steps of the most recent batch

    def selector(self, inputs: Tensor, lengths: Tensor) -> Selector:
        self.steps = []
        return _Recorder(self._search.selector(inputs, lengths), self.steps)


class _Recorder:
    """A selector that records its inputs and its selections."""

    def __init__(self, selector: Selector, steps: list[Step]) -> None:
        self._selector, self._steps = selector, steps

    def select(self, step: int, scores: Tensor, log_probs: Tensor) -> Selection:
        selection = self._selector.select(step, scores, log_probs)
        self._steps.append(Step(log_probs, selection))
        return selection

    def is_finished(self, tokens: Tensor) -> bool:
        return self._selector.is_finished(tokens)

    def finalize(self, hypotheses: Hypotheses) -> Hypotheses:
        return self._selector.finalize(hypotheses)
