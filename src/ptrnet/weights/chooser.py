"""The chooser: it takes a hundred examples, and returns a model, without training."""

from typing import Any

import ptrnet
from ptrnet.models import CHOOSER
from ptrnet.solver import Solver


class Chooser:
    """Takes answered sets, and returns a model that answers new ones.

    It is for choices (one element of each set) and for grades (an order with ties), of some 20 to
    2,000 examples. It fits a score that is linear in three spaces of the fields, and averages over
    strengths of the ridge, as `ptrnet.models.parts.spaces.Spaces` says. That takes some tenths of a
    second.
    """

    def given(self, examples: Any, outputs: Any = None, kind: Any = None, **recipe: Any) -> Solver:
        """Return a model that answers as the examples say.

        Args:
            examples: answered sets, in any form that `ptrnet.fit` takes: a data frame with
                `set_id` and `chosen` or `grade`, a file, or pairs of inputs and outputs.
            outputs: the answers, if `examples` does not have them.
            kind: "choice" or "grades". If None, ptrnet guesses it from the answers.
            recipe: names of columns such as `set_id`, `chosen`, `grade`, `group` and `weight`, and
                `fields` and `categories`, as in `ptrnet.fit`; `output`, a new folder for the model.

        Returns:
            A model. It answers, explains itself, is saved, exported and served as any other one.

        Raises:
            InputError: an example cannot be used, or its answer is of another kind.
            MissingExtraError: the extra "train" is not installed.

        Examples:
            >>> rows = [[k, price, time, price + time < 5] for k in range(40)
            ...         for price, time in [(k % 4, 2.5), (3.0, k % 3)]]
            >>> frame = pd.DataFrame(rows, columns=["order", "price", "time", "chosen"])
            >>> frame["chosen"] = frame.groupby("order")["chosen"].rank(method="first") == 2
            >>> model = ptrnet.load("chooser").given(frame, set_id="order", chosen="chosen")
            >>> model.solve([{"price": 1.0, "time": 1.0}, {"price": 3.0, "time": 3.0}])
            array([0])
        """
        # The attribute imports `ptrnet.training` now. That layer is above this one.
        return ptrnet.fit(examples, outputs, kind, model=CHOOSER, **recipe)
