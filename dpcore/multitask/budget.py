"""(epsilon, delta) <-> beta, the budget that bounds the sum of a user's squared weights.

Both algorithms of Krichene et al. 2023 are (alpha, alpha beta)-RDP (theorems 3.3 and 3.11), and more than that:
in units of its noise a user moves all the released sums together by at most sqrt(2 beta) in L2 norm (algorithm
1: beta for the matrices + beta for the vectors; algorithm 2: T steps of 2 beta / T each). So they are one
Gaussian mechanism of sensitivity 1 and sigma = 1 / sqrt(2 beta). Gaussian mechanisms compose exactly,
adaptively chosen ones included (Dong, Roth and Su 2019, corollary 3.3), so private counts and both algorithms
simply add their betas. The exact (epsilon, delta) of that mechanism is Balle and Wang 2018, theorem 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.privacy import compute_gaussian_epsilon, compute_gaussian_sigma

DELTA_RANGE = (1e-30, 0.5)


@dataclass(frozen=True)
class PrivacyTarget:
    """The guarantee to every user: (epsilon, delta)-DP under adding or removing them with all their data.

    Attributes:
        epsilon: Between 1e-6 and 1e3.
        delta: Between 1e-30 and 0.5.

    Raises:
        InvalidInput: A parameter is out of its range; both problems at once.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(*DELTA_RANGE, delta=self.delta)


@dataclass(frozen=True)
class BudgetComparison:
    """The exact conversion and the paper's sufficient one.

    Attributes:
        exact: Largest beta that keeps the target.
        sufficient: The paper's beta, or None where its condition epsilon <= log(1 / delta) fails.
        noise_multiplier: 1 / sqrt(2 exact), the sigma of the one Gaussian mechanism.
    """

    exact: float
    sufficient: float | None
    noise_multiplier: float

    @property
    def weight_gain(self) -> float | None:
        """Return how many times larger all weights may be, sqrt(exact / sufficient); None without the latter."""
        return None if self.sufficient is None else math.sqrt(self.exact / self.sufficient)


def compute_sufficient_budget(target: PrivacyTarget) -> float | None:
    """Return the paper's beta = epsilon^2 / (8 log(1 / delta)), or None for epsilon > log(1 / delta).

    Source: Krichene et al. 2023, after theorem 3.3. There beta + 2 sqrt(beta log(1 / delta)) is at most 0.84
    epsilon, as the RDP conversion requires.

    Source: Krichene et al. 2023, after theorem 3.3. There beta + 2 sqrt(beta log(1 / delta)) is at most
    0.84 epsilon, which is what the RDP conversion asks for.
    """
    log_inverse = math.log(1.0 / target.delta)
    return target.epsilon**2 / (8.0 * log_inverse) if target.epsilon <= log_inverse else None


def compute_exact_budget(target: PrivacyTarget) -> float:
    """Compute the largest beta for which one Gaussian mechanism of sigma = 1 / sqrt(2 beta) keeps the target.

    Rounded to the safe side: `compute_epsilon` at the result is never above the target's epsilon.
    """
    sigma = compute_gaussian_sigma(target.epsilon, target.delta)
    step = 1e-12
    # The root finder may stop on either side of the root.
    while compute_epsilon(_budget_of_noise(sigma), target.delta) > target.epsilon:
        sigma *= 1.0 + step
        step *= 2.0
    return _budget_of_noise(sigma)


def _budget_of_noise(sigma: float) -> float:
    """Return beta = 1 / (2 sigma^2)."""
    return 1.0 / (2.0 * sigma**2)


def compute_epsilon(budget: float, delta: float) -> float:
    """Compute the smallest epsilon that a budget of beta > 0 keeps at this delta, exactly."""
    return compute_gaussian_epsilon(1.0 / math.sqrt(2.0 * budget), delta)


def compare_budgets(target: PrivacyTarget) -> BudgetComparison:
    """Compare both conversions, and how much the exact one raises the weights."""
    exact = compute_exact_budget(target)
    return BudgetComparison(exact, compute_sufficient_budget(target), 1.0 / math.sqrt(2.0 * exact))
