"""Linear regression under label privacy: the paper's two instances, and what sample limiting costs on them.

Everything is in closed form; tests compare it with an enumeration of all samples, each with its own least squares.
Features are public; neighbours differ in one user's labels.

The gap between the paper's feasible C and sample limiting grows without bound in g, unlike that for the mean. The
paper's C is enough for the claim but not the best; the best one's variance has a closed form here too, which
`dpcore.regression` certifies.

Source: Epasto et al. 2020, sections 5.1 to 5.3 and appendix D.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.common.checks import require
from dpcore.contributions import FloatArray, IntArray
from dpcore.gap_examples.parameters import REGRESSION_G
from dpcore.regression import parameters, working_set

MAX_G = 1_000
MAX_SOLVED_ROWS = 11_000
"""Examples of so many rows are solved while the user waits: under a second."""


@dataclass(frozen=True)
class SampleLimiting:
    """Sample limiting at one threshold: the probability and the variance of each distinct sample.

    Attributes:
        threshold: h, rows kept per user.
        probabilities: Probability of each distinct sample whose least squares are defined, shape (outcomes,).
        variances: Total variance given that sample, shape (outcomes,).
        undefined_probability: Probability that the sample does not determine the coefficients.
    """

    threshold: int
    probabilities: FloatArray
    variances: FloatArray
    undefined_probability: float

    @property
    def mean_variance(self) -> float:
        """Return the expected variance given a sample that determines the coefficients.

        It is infinite if none does.
        """
        if not (defined_probability := float(self.probabilities.sum())):
            return math.inf
        return float(self.probabilities @ self.variances) / defined_probability

    def compute_probability_at_least(self, variance: float) -> float:
        """Return the probability that the variance is at least this large; an undefined variance counts as infinite."""
        # The relative 1e-12 forgives rounding where the bound is met with equality.
        defined_probability = float(self.probabilities[self.variances >= variance * (1.0 - 1e-12)].sum())
        return min(defined_probability + self.undefined_probability, 1.0)


@dataclass(frozen=True)
class Example:
    """One of the paper's two instances at a g and the bounds on its variances, in (unit of the coefficients)^2.

    Attributes:
        example_number: 1 or 3, as in the paper.
        g: Its parameter.
        num_rows: Of the instance.
        num_users: Of the instance.
        feasible_variance: The variance of the paper's C, exactly.
        weights_bound: The paper's upper bound on the best C's variance.
        best_variance: The best C's variance, exactly.
        limiting_bound: The paper's lower bound on sample limiting's variance (example 3: with probability at
            least 1/2, for every threshold).
    """

    example_number: int
    g: int
    num_rows: int
    num_users: int
    feasible_variance: float
    weights_bound: float
    best_variance: float
    limiting_bound: float


def build_example_1(g: int) -> Example:
    """Build example 1: one far point against many users with g rows, one user with g rows against many with one.

    There is no sampling error, and 2 d (B / epsilon)^2 = 1.

    Args:
        g: Whole, 1 to 1,000.

    Raises:
        InvalidInput: ``g`` is not.

    Source: Epasto et al. 2020, example 1 and claim 8. The paper's C gives each row of users 2 .. g^2 + 1 the
    weight 1 / g^2; they have g^3 rows, so C X = I asks for 1 / g^3, which is used here. Each such user then
    totals 1 / g^2, and the stated variance, 1 / g^4, is right. The optimum, 1 / (g^2 + 1)^2, is ours.
    """
    require.whole(1, MAX_G, g=g)
    num_rows, paper_variance = g**3 + g**2 + g + 1, 1.0 / g**4
    best_variance, limiting_bound = 1.0 / (g**2 + 1.0) ** 2, 1.0 / (4.0 * g**3)
    num_users = 2 * g * g + 2
    return Example(1, g, num_rows, num_users, paper_variance, paper_variance, best_variance, limiting_bound)


def build_example_3(g: int) -> Example:
    """Build example 3: rows of length 1, with sigma = 1 and 2 d (B / epsilon)^2 = g.

    Args:
        g: Whole, 2 to 1,000; the paper asks for at least 8, from where its bounds (6 / g and g / 9) are
            apart.

    Raises:
        InvalidInput: ``g`` is not.

    Source: Epasto et al. 2020, example 3 and claim 9. The optimum is ours: user 1 and each other user weigh the
    same, 2 / (g + 1).
    """
    require.whole(2, MAX_G, g=g)
    # 1 / g + 1 / (g (g - 1)) + g (2 / g)^2, as in claim 9.
    feasible_variance = 5.0 / g + 1.0 / (g * (g - 1.0))
    sampling_variance = (4.0 + (g - 1.0) ** 2) / (g * (g + 1.0) ** 2) + 1.0 / (g * (g - 1.0))
    best_variance = sampling_variance + g * (2.0 / (g + 1.0)) ** 2
    return Example(3, g, g * (g + 1), g + 1, feasible_variance, 6.0 / g, best_variance, g / 9.0)


def compute_variances_of_example_1(g: int) -> tuple[IntArray, FloatArray]:
    """Compute sample limiting's variance for example 1; return (thresholds 1 .. g, variances).

    All samples have the same variance. With h rows kept, the first coordinate has squared norm g^2 + h g^2 and user 1
    weighs g / (g^2 + h g^2); the second has h + g^2 rows and user g^2 + 2 weighs h / (h + g^2). There is no sampling
    error.

    Source: Epasto et al. 2020, claim 8, before its last two inequalities.
    """
    require.whole(1, MAX_G, g=g)
    h = np.arange(1, g + 1)
    return h, np.maximum(1.0 / (g * (1.0 + h)), h / (h + float(g) ** 2)) ** 2


def compute_limiting_of_example_3(g: int, threshold: int) -> SampleLimiting:
    """Compute the probability and the variance of each distinct sample for example 3.

    The number O of sampled (1, 0) rows of users 2 .. is binomial. The first coordinate then has h + O rows and the
    second g h - O, each row weighing one over its coordinate's rows.

    Args:
        g: Whole, 2 to 1,000.
        threshold: h, whole, 1 to g.

    Raises:
        InvalidInput: A parameter is out of its range.

    Source: Epasto et al. 2020, claim 9, before Markov's inequality.
    """
    from scipy.stats import binom

    require.whole(2, MAX_G, g=g)
    require.whole(1, g, threshold=threshold)
    h = int(threshold)
    num_sampled_rows = np.arange(g + 1)
    sample_probabilities = np.asarray(binom.pmf(num_sampled_rows, g, h / g), dtype=np.float64)
    num_first_rows, num_second_rows = float(h) + num_sampled_rows, float(g * h) - num_sampled_rows
    defined_mask = (num_second_rows > 0.0) & (sample_probabilities > 0.0)
    undefined_probability = float(sample_probabilities[num_second_rows == 0.0].sum())
    sample_probabilities = sample_probabilities[defined_mask]
    num_first_rows = num_first_rows[defined_mask]
    num_second_rows = num_second_rows[defined_mask]
    num_sampled_rows = num_sampled_rows[defined_mask]
    # Users: the first; one whose (1, 0) row was sampled, if there is one; one whose was not.
    user_weights = np.stack(
        (
            h / num_first_rows,
            np.where(num_sampled_rows > 0, 1.0 / num_first_rows + (h - 1.0) / num_second_rows, 0.0),
            np.where(num_sampled_rows < g, h / num_second_rows, 0.0),
        )
    )
    sample_variances = 1.0 / num_first_rows + 1.0 / num_second_rows + g * user_weights.max(axis=0) ** 2
    return SampleLimiting(h, sample_probabilities, np.asarray(sample_variances), undefined_probability)


@dataclass(frozen=True)
class RegressionStep:
    """An example at one g with sample limiting at every threshold, and the best C.

    Attributes:
        example: The instance with the paper's C.
        limited_variances: Expected variance of sample limiting at thresholds 1 .. g, given a sample that determines the
            coefficients, shape (g,).
        guaranteed_probability: Example 3: smallest probability over the thresholds that sample limiting reaches the
            paper's bound; 1 in example 1, where all samples have one variance.
        certificate: The best C's variance as `dpcore.regression` finds it, with its lower bound; None if it was not
            solved.
    """

    example: Example
    limited_variances: FloatArray
    guaranteed_probability: float
    certificate: Certificate | None = None

    @property
    def best_threshold(self) -> int:
        """Return the threshold, from 1, with the smallest variance of sample limiting."""
        return int(self.limited_variances.argmin()) + 1

    @property
    def ratio(self) -> float:
        """Return the variance of sample limiting at its best threshold over that of the paper's C."""
        return float(self.limited_variances.min()) / self.example.feasible_variance

    @property
    def best_ratio(self) -> float:
        """Return the variance of sample limiting at its best threshold over that of the best C."""
        return float(self.limited_variances.min()) / self.example.best_variance


def solve_regression_step(example_number: int, g: int, solves_best: bool = True) -> RegressionStep:
    """Compute example 1 or 3 and sample limiting on it.

    The best C is also searched for, unless the example is too large or it is not wanted.
    """
    if example_number == 1:
        example = build_example_1(g)
        limited_variances = compute_variances_of_example_1(g)[1]
        guaranteed_probability = 1.0
    else:
        example = build_example_3(g)
        limiting_at_thresholds = [compute_limiting_of_example_3(g, h) for h in range(1, g + 1)]
        limited_variances = np.array([limiting.mean_variance for limiting in limiting_at_thresholds])
        guaranteed_probability = min(
            limiting.compute_probability_at_least(example.limiting_bound)
            for limiting in limiting_at_thresholds
        )
    certificate = None
    if solves_best and example.num_rows <= MAX_SOLVED_ROWS:
        regression_problem = parameters.example_1(g) if example_number == 1 else parameters.example_3(g)
        certificate = working_set.solve(regression_problem).certificate
    return RegressionStep(example, limited_variances, guaranteed_probability, certificate)


def compute_growth(example_number: int) -> dict[str, FloatArray]:
    """Compute columns over g, by name: the ratio to the paper's C, to the best C, and as guaranteed.

    Ratios are of the variance of sample limiting to that of C.
    """
    gap_steps = [solve_regression_step(example_number, g, solves_best=False) for g in REGRESSION_G]
    return {
        "g": np.array(REGRESSION_G, dtype=np.float64),
        "ratio": np.array([step.ratio for step in gap_steps]),
        "ratio_to_best_c": np.array([step.best_ratio for step in gap_steps]),
        "ratio_guaranteed": np.array([x.example.limiting_bound / x.example.weights_bound for x in gap_steps]),
    }
