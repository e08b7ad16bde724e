"""The settings of the tests' question."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import Problems
from dpcore.common.parameters import LINE, Option, Parameters, of_data, of_values, public


class ShownNumber(Option):
    """The numbers that the page shows."""

    USERS = "users", "Users"
    SHARE = "share", "Their share"


@dataclass(frozen=True)
class ToyParameters(Parameters):
    """The question: users with more than ``rows`` rows are counted, or their share."""

    shown: ShownNumber = public.choice(ShownNumber.USERS, "Show", place=LINE)
    rows: int = of_data.number(5, "More rows than", (1, 10**6), name="rows", place=LINE)
    """Users with more rows are counted."""
    usual_value: float = of_values.number(1.0, "A usual value", name="the usual value", initial=2.5)
    own_rows: int | None = of_data.number(
        None, "Compare with", (1, 10**6), name="your own rows", is_renewed=True
    )

    def _check_together(self, problems: Problems) -> None:
        problems.finite(usual_value=self.usual_value)
