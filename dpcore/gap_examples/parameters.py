"""The parameters of the page *Weights vs. caps*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import Problems
from dpcore.common.parameters import LINE, TAB, Parameters, of_data, of_values, public
from dpcore.gap_examples.two_groups import build_two_group_problem
from dpcore.mean import MeanParameters, MeanProblem, VarianceSource

NUM_USERS = 100
"""Users of the finite two-group instances, so that their shares are whole per cents."""
THEOREM_G = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1_000)
HEAVY_SIZES = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1_000, 10_000, 1_000_000)
LIGHT_SIZES = (1, 2, 3, 5, 10, 20, 50, 100)
REGRESSION_G = (3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 70, 100)
NOISE_RANGE = (0.05, 1.5)


@dataclass(frozen=True)
class GapParameters(Parameters):
    """The parameters of the page *Weights vs. caps*, with a group of fields for each of its steps."""

    variance_source: VarianceSource = public.choice(
        VarianceSource.WORST_CASE,
        "Variance of a value, σ²",
        {source: source.label for source in (VarianceSource.WORST_CASE, VarianceSource.ENTERED)},
        place=LINE,
    )
    """Values lie in [0, 1] here, so the worst case is 1/4. Divide your σ² by B² to enter it."""
    value_variance: float | None = of_values.number(
        None,
        "σ², values in [0, 1]",
        name="σ²",
        initial=0.1,
        width=160,
        place=LINE,
        only_with=("variance_source", (VarianceSource.ENTERED,)),
    )
    g: int = public.number(10, "g", stops=THEOREM_G, place=TAB)
    """g users with 1 row, g users with g rows."""
    # Whoever looks at private data may set the made-up users beside them to what these have.
    light_users: int = of_data.number(
        50, "Light users, p (%)", (1, NUM_USERS - 1), slider=(1, NUM_USERS - 1, 1), place=TAB
    )
    heavy_size: int = of_data.number(10, "Rows R of a heavy user, over s", stops=HEAVY_SIZES, place=TAB)
    light_size: int = of_data.number(1, "Rows s of a light user", stops=LIGHT_SIZES, place=TAB)
    noise_per_user: float = of_data.number(
        0.6, "Noise per user, t = ρ / m", NOISE_RANGE, slider=(*NOISE_RANGE, 0.01), place=TAB
    )
    """2 (B/ε)² / (σ² m), with m users in all."""
    example: int = public.choice(
        1, "Instance", {1: "Example 1: far points", 3: "Example 3: all of length 1"}, place=TAB
    )
    regression_g: int = public.number(5, "g of the instance", stops=REGRESSION_G, place=TAB)

    def _check_together(self, problems: Problems) -> None:
        """Add the problems that the page *Mean* has with an entered variance of values in [0, 1]."""
        if self.value_variance is not None:
            with problems.collecting():
                self.build_mean_parameters()

    def build_mean_parameters(self) -> MeanParameters:
        """Return the parameters of *Mean* for this question: values in [0, 1], with the entered variance if any."""
        variance_source, entered_variance = self.variance_source, self.value_variance
        return MeanParameters(self.epsilon, variance_source=variance_source, value_variance=entered_variance)

    def build_two_group_problem(self) -> MeanProblem:
        """Build the finite instance of two groups, with the noise ratio rho = q m / s."""
        heavy_users, heavy_size = NUM_USERS - self.light_users, self.light_size * self.heavy_size
        return build_two_group_problem(self.light_users, heavy_users, heavy_size, self.light_size)
