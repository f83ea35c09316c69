"""The coefficients of a conditional or nested logit, as a table that economists know."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any, Self

from scipy.special import chdtrc, ndtr, ndtri

from ptrnet.errors import unknown


class Coefficients(list[dict[str, Any]]):
    """The coefficients of a logit: a list with a row, a dictionary, for each.

    `print` shows them as a table, and `pandas.DataFrame` makes a frame of them. A row has the keys
    `name`, `coefficient`, `std_error`, `z`, `p`, `low` and `high`, the ends of the 95% interval. It
    also has each kind of standard error that is known: `classical`, `robust` and `clustered`.
    Coefficients are in the units of the data. The rows of a nested logit's nests have their
    parameters t; see `ptrnet.models.conditional_logit.Nests`. `z` and `p` test whether a number
    is 0, or, if the row has the key `null`, whether it is `null`: 1 for a nest.

    Args:
        rows: the rows. They need no other keys than `name`, `coefficient` and the standard errors.
        errors: the kind of `std_error`, on which `z`, `p`, `low` and `high` depend.
        statistics: `sets`, `rows`, `groups`, `log_likelihood`, `log_likelihood_equal_shares` and
            `parameters`, the number of estimated coefficients. Other statistics follow from these.
        references: for each categorical field the reference level, whose coefficient is 0.
        notes: a line about each coefficient that cannot be estimated.
        group: the name of the groups' field, if it is known.
        covariance: the covariance `(k, k)` of the k rows' coefficients, of the kind that is shown
            by default. Empty if it is unknown.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        errors: str,
        statistics: Mapping[str, Any],
        references: Mapping[str, str],
        notes: Sequence[str],
        group: str = "",
        covariance: Sequence[Sequence[float]] = (),
    ) -> None:
        super().__init__(_with_tests(row, errors) for row in rows)
        self.errors, self.group = errors, group
        self.statistics = _with_ratios(statistics)
        self.references, self.notes = dict(references), list(notes)
        self.covariance = [list(row) for row in covariance]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], errors: str = "") -> Self:
        """Return the coefficients that `to_dict` has written.

        Args:
            values: the result of `to_dict`.
            errors: the kind of standard errors. If empty, the kind that was written.

        Raises:
            InputError: there are no such standard errors.
        """
        known = [name for name in ("classical", "robust", "clustered") if name in values["rows"][0]]
        if errors and errors not in known:
            raise unknown("standard errors", errors, known)
        return cls(**{**values, "errors": errors or values["errors"]})

    def to_dict(self) -> dict[str, Any]:
        """Return the rows and everything else as a JSON object."""
        return {"rows": list(self), **vars(self)}

    def __str__(self) -> str:
        """Return the table, with the statistics and the notes."""
        known = self.statistics
        kinds = {
            "clustered": f"clustered by {self.group or 'group'}",
            "robust": "robust (sandwich)",
            "classical": "classical (inverse Hessian)",
        }
        others = [kind for kind in kinds if kind in self[0] and kind != self.errors]
        head = ["", "coefficient", "std. error", "z", "p", "95% interval", *others]
        cells = [head] + [
            [
                row["name"],
                f"{row['coefficient']:.6g}",
                f"{row['std_error']:.4g}",
                f"{row['z']:.2f}",
                p_text(row["p"]).removeprefix("= "),
                f"{row['low']:.5g} to {row['high']:.5g}",
                *(f"{row[kind]:.4g}" for kind in others),
            ]
            for row in self
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in cells
        ]
        groups = f", {known['groups']:,} groups" if known["groups"] else ""
        name = "nested logit" if any("null" in row for row in self) else "conditional logit"
        levels = ", ".join(f"{field} = {level}" for field, level in self.references.items())
        return "\n".join(
            [
                f"{name}: {known['sets']:,} sets, {known['rows']:,} rows{groups}; "
                f"standard errors: {kinds[self.errors]}",
                *table,
                *([f"reference levels: {levels}"] if levels else []),
                f"log-likelihood {known['log_likelihood']:.4f}, of equal shares "
                f"{known['log_likelihood_equal_shares']:.4f}; McFadden's rho-squared "
                f"{known['rho_squared']:.4f}, adjusted {known['rho_squared_adjusted']:.4f}",
                f"likelihood ratio chi-squared {known['chi_squared']:.2f}, "
                f"{known['parameters']} degrees of freedom, p {p_text(known['p'])}; "
                f"AIC {known['aic']:.2f}, BIC {known['bic']:.2f}",
                *self.notes,
            ]
        )


def _with_tests(row: Mapping[str, Any], errors: str) -> dict[str, Any]:
    """Return a row with the test of its coefficient, and the 95% interval."""
    value, error = row["coefficient"], row[errors]
    z = (value - row.get("null", 0)) / error
    margin = float(ndtri(0.975)) * error
    tests = {
        "std_error": error,
        "z": z,
        "p": 2 * float(ndtr(-abs(z))),
        "low": value - margin,
        "high": value + margin,
    }
    first = {key: row[key] for key in ("name", "coefficient")}
    return {**first, **tests, **{key: row[key] for key in row if key not in {*first, *tests}}}


def _with_ratios(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return statistics, with those that follow from the likelihoods and the number of sets."""
    k, full = statistics["parameters"], statistics["log_likelihood"]
    equal = statistics["log_likelihood_equal_shares"]
    chi_squared = 2 * (full - equal)
    return {
        **statistics,
        "rho_squared": 1 - full / equal,
        "rho_squared_adjusted": 1 - (full - k) / equal,
        "chi_squared": chi_squared,
        "p": float(chdtrc(k, max(chi_squared, 0))),
        "aic": 2 * k - 2 * full,
        "bic": k * log(statistics["sets"]) - 2 * full,
    }


def p_text(p: float) -> str:
    """Return a p-value as it follows the letter p: `= 0.0123` or `< 0.0001`."""
    return f"= {p:.4f}" if p >= 5e-5 else "< 0.0001"
