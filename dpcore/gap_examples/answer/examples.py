"""The regression examples as numbers; they depend on no data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.certificate import Certificate
from dpcore.contributions import FloatArray, IntArray
from dpcore.gap_examples.parameters import REGRESSION_G
from dpcore.gap_examples.regression import enumerate_sample_limiting
from dpcore.gap_examples.regression_examples import (
    Example,
    example_1,
    example_3,
    limit_samples_3,
    limit_variances_1,
)
from dpcore.regression import examples, working_set

MAX_ENUMERATED_G = 10
MAX_SOLVED_ROWS = 11_000
"""Regression examples of so many rows are solved while the person waits: under a second."""


@dataclass(frozen=True)
class RegressionStep:
    """A regression example at one g.

    Attributes:
        example: The instance with the paper's C.
        thresholds: 1 .. g, shape (g,).
        limited_variances: Expected variance of sample limiting at each, given a sample that determines the
            coefficients.
        guaranteed_probability: Example 3: smallest probability over the thresholds that sample limiting reaches the
            paper's bound; 1 in example 1, where all samples have one variance.
        num_samples: Samples that were listed, over all thresholds; 0 where there are too many.
        disagreement: Largest relative difference between the listed and the closed form.
        certificate: The best C's variance as the solver of the page Regression finds it, with its lower bound; None
            where there are more than `MAX_SOLVED_ROWS` rows.
    """

    example: Example
    thresholds: IntArray
    limited_variances: FloatArray
    guaranteed_probability: float
    num_samples: int
    disagreement: float
    certificate: Certificate | None

    @property
    def best_threshold(self) -> int:
        """Return the threshold with the smallest variance."""
        return int(self.thresholds[int(self.limited_variances.argmin())])

    @property
    def ratio(self) -> float:
        """Return the variance of sample limiting at its best threshold over that of the paper's C."""
        return float(self.limited_variances.min()) / self.example.feasible.variance

    @property
    def best_ratio(self) -> float:
        """Return the variance of sample limiting at its best threshold over that of the best C."""
        return float(self.limited_variances.min()) / self.example.optimum


def solve_regression_step(number: int, g: int) -> RegressionStep:
    """Compute closed forms at every threshold; list all samples where g is small; solve for the best C up to a size."""
    if number == 1:
        example = example_1(g)
        thresholds, limited_variances = limit_variances_1(g)
        guaranteed_probability = 1.0
    else:
        example = example_3(g)
        thresholds = np.arange(1, g + 1)
        limits = [limit_samples_3(g, int(h)) for h in thresholds]
        limited_variances = np.array([limit.mean_variance for limit in limits])
        guaranteed_probability = min(limit.probability_at_least(example.limiting_bound) for limit in limits)
    num_samples, disagreement = 0, 0.0
    if g <= MAX_ENUMERATED_G:
        for h, closed_form in zip(thresholds, limited_variances, strict=True):
            enumeration = enumerate_sample_limiting(example.instance, int(h))
            num_samples += enumeration.variances.size
            disagreement = max(disagreement, abs(enumeration.mean_variance / closed_form - 1.0))
    certificate = None
    if example.instance.num_rows <= MAX_SOLVED_ROWS:
        problem = examples.example_1(g) if number == 1 else examples.example_3(g)
        certificate = working_set.solve(problem).certificate
    return RegressionStep(
        example, thresholds, limited_variances, guaranteed_probability, num_samples, disagreement, certificate
    )


@dataclass(frozen=True)
class Growth:
    """How the gap of a regression example grows with g; all of shape (points,).

    Attributes:
        g: The example's parameter.
        ratio: Sample limiting at its best threshold over the paper's C.
        best_ratio: The same over the best C.
        guaranteed: What the paper's two bounds guarantee.
    """

    g: IntArray
    ratio: FloatArray
    best_ratio: FloatArray
    guaranteed: FloatArray


def compute_growth(number: int) -> Growth:
    """Compute the ratio over the slider's values of g."""
    ratios, best_ratios, bounds = [], [], []
    for g in REGRESSION_G:
        if number == 1:
            example, best_variance = example_1(g), float(limit_variances_1(g)[1].min())
        else:
            example = example_3(g)
            best_variance = min(limit_samples_3(g, h).mean_variance for h in range(1, g + 1))
        ratios.append(best_variance / example.feasible.variance)
        best_ratios.append(best_variance / example.optimum)
        bounds.append(example.limiting_bound / example.weights_bound)
    return Growth(np.array(REGRESSION_G), np.array(ratios), np.array(best_ratios), np.array(bounds))
