"""The solution on data: the best cap, the best weights, the proof, and the curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore import mean
from dpcore.answer.against import BoundComparison
from dpcore.answer.axes import choose_curve_bounds
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.gap_examples.compare import Comparison, FourfoldProof, compare, fourfold_proof
from dpcore.gap_examples.domination import Domination, dominate
from dpcore.gap_examples.parameters import GapParameters


@dataclass(frozen=True)
class GapSolution:
    """All results that depend on data and question.

    Attributes:
        comparison: The best cap beside the best weights.
        near_optimal_caps: Smallest and largest cap within 5 % of the best cap's standard error.
        proof: The paper's proof carried out.
        domination: The two groups that are at least as bad; None without sampling error.
        bounds: Bounds of the curves, ascending, shape (points,).
        cap_variances: Variance with a cap over that of the best weights, over ``bounds``.
        smooth_variances: Variance with weights over that of the best weights, over ``bounds``.
    """

    comparison: Comparison
    near_optimal_caps: tuple[int, int]
    proof: FourfoldProof
    domination: Domination | None
    bounds: FloatArray
    cap_variances: FloatArray
    smooth_variances: FloatArray


def solve(dataset: Dataset, parameters: mean.MeanParameters) -> GapSolution:
    """Solve, prove and evaluate the curves."""
    problem = parameters.problem(dataset.histogram)
    comparison = compare(problem)
    proof = fourfold_proof(problem)
    marked_bounds = [comparison.cap.max_contributions, comparison.smooth.threshold, proof.max_contributions]
    bounds = np.unique(np.concatenate((choose_curve_bounds(dataset.histogram), marked_bounds)))
    return GapSolution(
        comparison=comparison,
        near_optimal_caps=mean.caps_within(problem),
        proof=proof,
        domination=dominate(comparison) if problem.value_variance > 0.0 else None,
        bounds=bounds,
        cap_variances=mean.capped_variance(problem, bounds) / comparison.smooth.variance,
        smooth_variances=mean.smooth_variance(problem, bounds) / comparison.smooth.variance,
    )


def against_epsilon(dataset: Dataset, parameters: GapParameters) -> BoundComparison:
    """Return the best cap, and its error over that of the best weights, at any epsilon."""
    problem = parameters.mean_parameters().problem(dataset.histogram)

    def best(epsilon: float) -> tuple[float, float]:
        comparison = compare(replace(problem, epsilon=epsilon))
        return float(comparison.cap.max_contributions), math.sqrt(comparison.ratio)

    def error(epsilon: float, caps: FloatArray) -> FloatArray:
        rescaled_problem = replace(problem, epsilon=epsilon)
        return np.asarray(
            np.sqrt(
                mean.capped_variance(rescaled_problem, caps) / mean.best_smooth(rescaled_problem).variance
            )
        )

    histogram = dataset.histogram
    return BoundComparison(
        "Best bound (rows per user)",
        "Error (1 = best weights)",
        best,
        error,
        histogram.sizes,
        histogram.users,
    )
