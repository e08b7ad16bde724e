"""The settings of the page *Weights vs. caps*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import Problems
from dpcore.gap_examples.two_groups import two_group_problem
from dpcore.mean import MeanParameters, MeanProblem, VarianceSource

NUM_USERS = 100
"""Users of the finite two-group instances, so that their shares are whole per cents."""
THEOREM_G = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1_000)
HEAVY_SIZES = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1_000, 10_000, 1_000_000)
LIGHT_SIZES = (1, 2, 3, 5, 10, 20, 50, 100)
REGRESSION_G = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 70, 100)
NOISE_PER_USER_RANGE = (0.05, 1.5)


@dataclass(frozen=True)
class GapParameters:
    """The question of the page *Weights vs. caps*, with a group of fields for each of its steps.

    Attributes:
        epsilon: Privacy budget for the person's data.
        variance_source: Where their sigma^2 comes from, values lying in [0, 1]: worst case (1/4) or entered.
        value_variance: sigma^2 where it is entered, 0 to 1/4.
        g: Of theorem 2, one of `THEOREM_G`.
        light_users: Light users of two groups, in per cent (p), 1 to 99.
        heavy_size: R, how many times as many rows a heavy user has, one of `HEAVY_SIZES`.
        light_size: s, rows of a light user, one of `LIGHT_SIZES`.
        noise_per_user: t, in `NOISE_PER_USER_RANGE`.
        example: Of linear regression, 1 or 3.
        regression_g: Its g, one of `REGRESSION_G`.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    variance_source: VarianceSource = VarianceSource.WORST_CASE
    value_variance: float | None = None
    g: int = 10
    light_users: int = 50
    heavy_size: int = 10
    light_size: int = 1
    noise_per_user: float = 0.6
    example: int = 1
    regression_g: int = 5

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.variance_source is VarianceSource.FROM_VALUES:
                problems.add("variance_source must be worst or entered here")
            else:
                with problems.collecting():
                    self.mean_parameters()
            for name, value, choices in (
                ("g", self.g, THEOREM_G),
                ("heavy_size", self.heavy_size, HEAVY_SIZES),
                ("light_size", self.light_size, LIGHT_SIZES),
                ("example", self.example, (1, 3)),
                ("regression_g", self.regression_g, REGRESSION_G),
            ):
                if value not in choices:
                    allowed_values = ", ".join(f"{choice:,}" for choice in choices)
                    problems.add(f"{name} must be one of {allowed_values}; got {str(value)[:40]}")
            problems.whole(1, NUM_USERS - 1, light_users=self.light_users)
            problems.between(*NOISE_PER_USER_RANGE, noise_per_user=self.noise_per_user)

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
