"""What the mathematics finds on data: the best cap beside the best weights, the proof, and the curves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore import mean
from dpcore.answer.against import Against
from dpcore.answer.axes import curve_bounds
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.gap_examples.compare import Comparison, FourfoldProof, compare, fourfold_proof
from dpcore.gap_examples.domination import Domination, dominate
from dpcore.gap_examples.parameters import GapParameters


@dataclass(frozen=True)
class GapFound:
    """All that depends on data and question.

    Attributes:
        comparison: The best cap beside the best weights.
        within: Smallest and largest cap within 5 % of the best cap's standard error.
        proof: The paper's proof carried out.
        domination: The two groups that are at least as bad; None without sampling error.
        bounds: Bounds of the curves, ascending, shape (points,).
        capped: Variance with a cap over that of the best weights, over ``bounds``.
        smoothed: Variance with weights over that of the best weights, over ``bounds``.
    """

    comparison: Comparison
    within: tuple[int, int]
    proof: FourfoldProof
    domination: Domination | None
    bounds: FloatArray
    capped: FloatArray
    smoothed: FloatArray


def find(data: Dataset, asked: mean.MeanParameters) -> GapFound:
    """Solve, prove and evaluate."""
    problem = asked.problem(data.histogram)
    both = compare(problem)
    proof = fourfold_proof(problem)
    marked = [both.cap.max_contributions, both.smooth.threshold, proof.max_contributions]
    bounds = np.unique(np.concatenate((curve_bounds(data.histogram), marked)))
    return GapFound(
        comparison=both,
        within=mean.caps_within(problem),
        proof=proof,
        domination=dominate(both) if problem.value_variance > 0.0 else None,
        bounds=bounds,
        capped=mean.capped_variance(problem, bounds) / both.smooth.variance,
        smoothed=mean.smooth_variance(problem, bounds) / both.smooth.variance,
    )


def against_epsilon(data: Dataset, parameters: GapParameters) -> Against:
    """The best cap, and its error over that of the best weights, at any epsilon."""
    problem = parameters.mean_parameters().problem(data.histogram)

    def best(epsilon: float) -> tuple[float, float]:
        both = compare(replace(problem, epsilon=epsilon))
        return float(both.cap.max_contributions), math.sqrt(both.ratio)

    def error(epsilon: float, caps: FloatArray) -> FloatArray:
        at = replace(problem, epsilon=epsilon)
        return np.asarray(np.sqrt(mean.capped_variance(at, caps) / mean.best_smooth(at).variance))

    histogram = data.histogram
    return Against(
        "Best bound (rows per user)",
        "Error (1 = best weights)",
        best,
        error,
        histogram.sizes,
        histogram.users,
    )
