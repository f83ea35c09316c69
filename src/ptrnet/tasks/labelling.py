"""The part of a task that computes answers by an algorithm of `ptrnet.labellers`."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ptrnet.errors import InputError, unknown
from ptrnet.geometry.distances import EUCLIDEAN
from ptrnet.types import Answers, Floats


class Labelling(ABC):
    """Base class of `Task`: `label` computes answers, `check_labeller` says whether it can."""

    name: ClassVar[str]
    labellers: ClassVar[tuple[str, ...]]  # names of algorithms; the first is the default
    may_be_unproved: ClassVar[bool] = False  # whether a labeller may give less than it promises
    distances: ClassVar[tuple[str, ...]] = (EUCLIDEAN,)  # between elements, that the task knows

    def canonicalize(self, inputs: Floats, answers: Answers) -> Answers:
        """Equal answers in one form, the one that models are trained to give.

        Args:
            inputs: `(B, n, d)` instances of one size.
            answers: one of each; valid.
        """
        return answers

    def label(
        self, inputs: Floats, labeller: str | None = None, distance: str = EUCLIDEAN
    ) -> Answers:
        """Answers of `(B, n, d)` instances of one size, in canonical form.

        Args:
            inputs: the instances.
            labeller: the algorithm; the task's first when None.
            distance: between two elements, one of the task's `distances`.

        Raises:
            InputError: the labeller does not serve this task, or so many elements.
        """
        self.check_labeller(labeller)
        return self.label_with_proof(inputs, labeller, distance)[0]

    def label_with_proof(
        self, inputs: Floats, labeller: str | None = None, distance: str = EUCLIDEAN
    ) -> tuple[Answers, NDArray[np.bool_]]:
        """The answers of `label`, and `(B,)` whether each of them is what the labeller promises.

        It is not where the labeller promises a proof and has found none: `exact` may need too
        long, and gives its best tour then. The labeller is one that `check_labeller` has taken:
        what is called for every batch does not look for its package again.

        Raises:
            InputError: the labeller does not take so many elements.
        """
        from ptrnet import labellers  # compiles kernels: only where labels are computed

        self.check_max_elements(labeller, inputs.shape[1])
        options = {} if distance == EUCLIDEAN else {"distance": distance}
        name = labeller or self.labellers[0]
        answers, proved = labellers.label_with_proof(name, inputs, **options)
        if labellers.is_plugin(name):
            self.check_answers(answers, inputs, f"labeller {name}")
        return self.canonicalize(inputs, answers), proved

    @abstractmethod
    def check_answers(self, answers: Answers, inputs: Floats, source: str) -> None:
        """Refuses what is no answer to `(B, n, d)` instances, and so would be learned from.

        Raises:
            InputError: `source`, the instance, what was expected, and what came.
        """

    def check_labeller(self, labeller: str | None) -> None:
        """Refuses an algorithm that does not serve this task.

        Raises:
            InputError: with the nearest name.
            MissingExtraError: the algorithm needs a package that is not installed.
        """
        from ptrnet import labellers

        if not self.labellers:
            raise InputError(f"task {self.name} has no labeller: its examples bring their answers")
        name = labeller or self.labellers[0]
        if name not in self.labellers:
            raise unknown(f"labeller of task {self.name}", name, self.labellers)
        labellers.check_package(name)

    def check_max_elements(self, labeller: str | None, n: int) -> None:
        """Refuses an algorithm of this task that does not take n elements.

        Raises:
            InputError: with those that would serve.
        """
        from ptrnet import labellers

        name = labeller or self.labellers[0]
        max_elements = labellers.max_elements(name)
        if n > max_elements:
            others = [other for other in self.labellers if labellers.max_elements(other) >= n]
            raise InputError(
                f"labeller {name}: expected at most {max_elements:.0f} elements, got {n}; "
                f"{', '.join(others) or 'none'} would serve"
            )
