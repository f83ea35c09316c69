"""A what-if question about choices, as settings, which become options of `ptrnet simulate`."""

from dataclasses import dataclass

from ptrnet.errors import InputError
from ptrnet.settings import Settings, setting


@dataclass(frozen=True)
class Question(Settings):
    """What `Solver.simulate` computes.

    `p_j` is the probability of an element in its set, and `w` the weight of a set. Shares are
    weighted sums of probabilities: the share of an alternative is `S = sum w p / sum w`.

    Expressions are those of `pandas.DataFrame.eval`, over the columns of the table. A word that is
    not a column is a text: `mode == train`.

    Args:
        change: an expression such as "price * 1.1", which changes the only field that it names, or
            "price = cost + 2". Several expressions are a list, and each one sees the values that
            earlier ones have changed.
        where: a condition for the rows to change, such as "mode == train and income > 50".
        drop: a condition for the rows to remove from their sets.
        by: the column that names the alternatives. Without it, an alternative is that of a wide
            table, or a position in its set.
        segment: a column whose values all rows of a set share. All tables then also have rows for
            each of its values.
        elasticity: a numeric field. The table has the point elasticity `x_j / S_k dS_k / dx_j` of
            each share with respect to the field of each alternative, which changes by the same
            factor in all sets. So it is the mean of the sets' elasticities, weighted by `w p_k`.
        wtp: two numeric fields, "time/cost". The marginal utility `m_j` of a field is the
            derivative of the log-odds of `p_j` with respect to the field of element j. In a
            conditional logit this is the coefficient. The willingness to pay is the ratio of the
            mean marginal utilities of both fields, where element j has the weight
            `w p_j (1 - p_j)`. It is also computed for each set, with quantiles over the sets whose
            choice is open, and for each alternative if `by` is given. A ratio of a good and a cost
            is negative.
        surplus: the field of the cost, in whose unit the table has the change of the consumer
            surplus of a set. If nothing else changes, it is `-sum_j integral p_j dc_j` along the
            straight path of the costs. This is exact for models without income effects. Otherwise
            it is the change of the log-sum, divided by minus the mean marginal utility of the cost.
            For a conditional or nested logit, this is its coefficient. Other models have no
            log-sum, so its change is `log P - log P'`, where P and P' are the probabilities of all
            elements that stay as they are, before and after.
        step: the size of symmetric differences in place of derivatives: a share of the value for
            elasticities, and of the field's standard deviation in the training for `wtp`. By
            default it is 0.01; or 0.1 if the model has trees, or reads the place of an element in
            its set, because its probabilities are then a staircase.
        draws: how many draws the 95% intervals are made of. A draw resamples groups (or sets if
            there are none), and varies the model: by the jackknife over the networks of an
            ensemble, or by the covariance of the coefficients of a conditional logit. A single
            network does not vary.
        seed: the seed of the draws.
    """

    change: tuple[str, ...] = setting(
        (), 'Change a field: "price * 1.1", or "price = cost + 2". Repeat it for several.'
    )
    where: str = setting("", 'With --change: the rows to change, "mode == train".')
    drop: str = setting("", 'Remove the rows of a condition, "mode == bus".')
    by: str = setting(
        "", "The column that names the alternatives.  [those of a wide table, or positions in sets]"
    )
    segment: str = setting("", "Add rows for each value of a column that all rows of a set share.")
    elasticity: str = setting(
        "", "Own and cross elasticities of all shares for a field of numbers."
    )
    wtp: str = setting("", "Willingness to pay: FIELD/COST, the ratio of marginal utilities.")
    surplus: str = setting(
        "", "Change of the consumer surplus, in the unit of this field of costs."
    )
    step: float | None = setting(
        None,
        "Size of differences: share of a value (--elasticity) or standard deviation (--wtp).  "
        "[0.01; 0.1 for models with trees or places]",
        gt=0,
        lt=1,
    )
    draws: int = setting(1000, "Number of draws that intervals are made of.", ge=1)
    seed: int = setting(0, "Seed of all random numbers.", ge=0)

    def __post_init__(self) -> None:
        if isinstance(self.change, str):
            object.__setattr__(self, "change", (self.change,) * bool(self.change))
        super().__post_init__()
        if self.where and not self.change:
            raise InputError("where: needs a change")
        if self.surplus and not self.is_counterfactual:
            raise InputError("surplus: needs a change or a drop")

    @property
    def is_counterfactual(self) -> bool:
        """Whether the question changes or drops rows."""
        return bool(self.change or self.drop)

    @property
    def wtp_fields(self) -> tuple[str, ...]:
        """The two fields of `wtp`, or none. Raises InputError if it does not name two."""
        names = tuple(name.strip() for name in self.wtp.split("/"))
        if self.wtp and (len(names) != 2 or not all(names)):
            raise InputError(f'wtp: expected two fields such as "time/cost", got {self.wtp!r}')
        return names if self.wtp else ()
