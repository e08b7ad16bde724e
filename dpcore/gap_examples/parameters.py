"""The settings of the page *Weights vs. caps*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcore.common.checks import Problems
from dpcore.common.parameters import LINE, TAB, Declarer, Parameters, of_data, of_values, public
from dpcore.gap_examples.two_groups import two_group_problem
from dpcore.mean import MeanParameters, MeanProblem, VarianceSource

NUM_USERS = 100
"""Users of the finite two-group instances, so that their shares are whole per cents."""
THEOREM_G = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1_000)
HEAVY_SIZES = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1_000, 10_000, 1_000_000)
LIGHT_SIZES = (1, 2, 3, 5, 10, 20, 50, 100)
REGRESSION_G = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 70, 100)
NOISE_PER_USER_RANGE = (0.05, 1.5)


def _stops(default: int, label: str, stops: tuple[int, ...], name: str, declare: Declarer = of_data) -> Any:
    return declare.number(default, label, stops=stops, name=name, place=TAB)


SOURCES = VarianceSource.WORST_CASE, VarianceSource.ENTERED


@dataclass(frozen=True)
class GapParameters(Parameters):
    """The question of the page *Weights vs. caps*, with a group of fields for each of its steps."""

    variance_source: VarianceSource = public.choice(
        VarianceSource.WORST_CASE,
        "Variance of a value, σ²",
        {source: source.label for source in SOURCES},
        place=LINE,
    )
    """How much the value of one row scatters. Values lie in [0, 1] here (B = 1), so the worst case is 1/4. Divide your
    σ² by B² to enter it."""
    value_variance: float | None = of_values.number(
        None,
        "σ², values in [0, 1]",
        name="σ²",
        initial=0.1,
        width=160,
        place=LINE,
        only_with=("variance_source", (VarianceSource.ENTERED,)),
    )
    g: int = _stops(10, "g: g users with 1 row, g users with g rows", THEOREM_G, "the g of theorem 2", public)
    # Whoever looks at private data may set the made-up users beside them to what these have.
    light_users: int = of_data.number(
        50, "Light users, p (%)", (1, NUM_USERS - 1), slider=(1, NUM_USERS - 1, 1), place=TAB
    )
    """The others, q = 1 − p, are heavy."""
    heavy_size: int = _stops(
        10, "Rows of a heavy user, R times a light one's", HEAVY_SIZES, "the rows R of a heavy user"
    )
    light_size: int = _stops(1, "Rows of a light user, s", LIGHT_SIZES, "the rows s of a light user")
    noise_per_user: float = of_data.number(
        0.6,
        "Noise per user, t = ρ / m",
        NOISE_PER_USER_RANGE,
        slider=(*NOISE_PER_USER_RANGE, 0.01),
        place=TAB,
    )
    """t = 2 (B/ε)² / (σ² m), m users in all: how noisy the release is for its number of users."""
    example: int = public.choice(
        1, "Instance", {1: "Example 1: far points", 3: "Example 3: all of length 1"}, place=TAB
    )
    regression_g: int = _stops(5, "g", REGRESSION_G, "the g of the instance", public)

    def _check_together(self, problems: Problems) -> None:
        if self.value_variance is not None:
            with problems.collecting():
                self.mean_parameters()

    def mean_parameters(self) -> MeanParameters:
        """Return the question on the person's data, as on the page *Mean*, with values in [0, 1]."""
        return MeanParameters(
            self.epsilon, variance_source=self.variance_source, value_variance=self.value_variance
        )

    def two_groups(self) -> MeanProblem:
        """Build the finite instance of the step on two groups, at the noise rho = q m / s."""
        return two_group_problem(
            self.light_users, NUM_USERS - self.light_users, self.light_size * self.heavy_size, self.light_size
        )
