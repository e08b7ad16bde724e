"""The solution for the gain of weights over the best cap on data, and its words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore import mean
from dpcore.answer import standard
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import Number
from dpcore.answer.axes import ROWS_UNIT, choose_curve_bounds
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Neighbours
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.gap_examples.compare import Comparison, FourfoldProof, compare, fourfold_proof
from dpcore.gap_examples.parameters import GapParameters
from dpcore.gap_examples.two_groups import Domination, dominate, supremum


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
        rescaled = replace(problem, epsilon=epsilon)
        return np.asarray(np.sqrt(mean.capped_variance(rescaled, caps) / mean.best_smooth(rescaled).variance))

    sizes, users = dataset.histogram.sizes, dataset.histogram.users
    return BoundComparison(
        "Best bound (rows per user)", "Error (1 = best weights)", best, error, sizes, users
    )


WORTH_HAVING = 1.05
"""Below this ratio of variances a cap is recommended: every library has caps, few have weights."""


def format_gain(ratio: float, digits: int = 3) -> str:
    """Format a ratio of variances as a gain in per cent."""
    return wording.percent(max(ratio - 1.0, 0.0), digits) if ratio - 1.0 > 5e-6 else f"0{wording.PERCENT}"


def certify(comparison: Comparison) -> str:
    """Write the numbers between which the certificates of both optimisers put the ratio."""
    low, high = comparison.ratio_at_least, comparison.ratio_at_most
    is_exact = high - low <= 1e-9 * high
    limits = "to within rounding" if is_exact else f"to lie between {low:.6f} and {high:.6f}"
    return f"The exact optimisers give {comparison.ratio:.6f}, proved {limits}."


def write_headline(comparison: Comparison) -> str:
    """Write the instruction: a cap, or weights where they gain enough."""
    if comparison.ratio < WORTH_HAVING:
        rows = wording.counted(comparison.cap.max_contributions, "row")
        gain = format_gain(comparison.ratio)
        return f"Keep at most {rows} of each user: the variance is only {gain} above that of smooth weights."
    return f"Use smooth weights: the best bound has {format_gain(comparison.ratio)} more variance."


def write_detail(dataset: Dataset) -> str:
    """Write the largest gain on any data, and whether the answer leaks."""
    sentence = f"For any data set the excess is at most {format_gain(supremum().ratio)}."
    return f"{sentence} {standard.ASSUMES_PUBLIC_COUNTS}" if dataset.is_private else sentence


def build_numbers(comparison: Comparison) -> tuple[Number, ...]:
    """Build the ratio of the variances and of the errors, the best bound, and the noise ratio."""
    ratio, noise_ratio, error = comparison.ratio, comparison.noise_ratio, math.sqrt(comparison.ratio)
    cap = comparison.cap.max_contributions
    limit = f"(at most {math.sqrt(supremum().ratio):.4f})"
    rows, noise = wording.counted(cap, "row"), wording.number(noise_ratio)
    return (
        Number("Variance, bounded : weights", f"{ratio:.4f}", "", _RATIO, ratio, key="ratio"),
        Number("Error, bounded : weights", f"{error:.4f}", limit, _ERRORS, error, key="error_ratio"),
        Number("Best bound", rows, "per user", _CAP, cap, ROWS_UNIT, "max_contributions"),
        Number(
            "Noise ratio ρ",
            noise,
            wording.agreeing(noise_ratio, "row", "rows"),
            _NOISE_RATIO,
            noise_ratio,
            "rows",
            "noise_ratio",
        ),
    )


def build_facts(solution: GapSolution) -> dict[str, str]:
    """Build a sentence on this ratio, one on the largest ratio, and one on the reason for the limit."""
    sentences = {
        "Here": _describe_ratio(solution),
        "Any data": (
            f"for any data and any ε the best bound has less than {supremum().ratio:.5f} times the variance of the "
            "best weights; theorem 3 of the paper says at most 4 times. See *Two groups* and *Any noise*."
        ),
    }
    if solution.domination is not None:
        sentences["Why not more"] = _explain_limit(solution.domination)
    return sentences


def describe_near_optimal(solution: GapSolution) -> str:
    """Write the range of caps whose error stays near that of the best cap."""
    return standard.write_range(*solution.near_optimal_caps, "row")


_RATIO = "Variance of the mean with the best bound over that with the best smooth weights; 1 means no gain."
_ERRORS = "Ratio of the standard errors: how much longer the error bars of the best bound are."
_CAP = "Contribution bound with the least variance."
_NOISE_RATIO = (
    "ρ = 2 (B/ε)²/σ²: the noise variance of a user who holds all the weight, in variances of one row. The ratio "
    "depends on ε, B and σ² only through ρ."
)


def _describe_ratio(solution: GapSolution) -> str:
    """Write the two best bounds and how exactly the ratio is known."""
    comparison = solution.comparison
    if comparison.problem.histogram.sizes.size == 1:
        return "all users have equally many rows, so bounded rows and weights are the same."
    if comparison.problem.value_variance == 0.0:
        return "without sampling error the best bound and the best weights are the same."
    return (
        f"best bound {wording.counted(comparison.cap.max_contributions, 'row')}, best bound of the weights "
        f"{wording.number(comparison.smooth.threshold)}. {certify(comparison)}"
    )


def _explain_limit(domination: Domination) -> str:
    """Explain why no data of this kind can have a larger ratio than the two-group limit."""
    return (
        f"compare these users with others, of whom {wording.percent(domination.light_share)} have one row and the rest "
        "unlimited rows. They keep at least as many rows under every bound, so their best weights are no worse. Their "
        f"best bound is no better. Their ratio is {domination.bound:.4f}, so these data cannot have more."
    )


def write_proof(solution: GapSolution) -> tuple[str, ...]:
    """Write the proof of theorem 3 on these data, step by step."""
    p = solution.proof
    number = wording.number
    steps = [
        f"The best weights have the bound **h\\* = {number(p.threshold, 4)}**: "
        f"{wording.counted(p.users_at_or_below, 'user')} {wording.agreeing(p.users_at_or_below, 'has', 'have')} at "
        f"most h\\* rows, {number(p.users_above)} {wording.agreeing(p.users_above, 'has', 'have')} more.",
        f"The former hold the share **α = {number(p.rows_at_or_below)} / {number(p.kept_rows, 4)} = "
        f"{wording.percent(p.share_below, 3)}** of the weight.",
    ]
    if p.case == 1:
        steps.append(
            "**Case 1**, α ≥ ½: the heavy users hold less than half. Round up: **h′ = ⌈h\\*⌉ = "
            f"{number(p.max_contributions)}**. Rows are lost only from heavy users, so sampling error at most doubles."
        )
    else:
        steps.append(
            "**Case 2**, α < ½: the heavy users hold more than half. Pass over the share η = 1 − 1/(2(1 − α)) = "
            f"{wording.percent(p.skipped, 3)} of them, that is {wording.counted(p.skipped_users, 'user')}; the last of "
            f"these has **h′ = {number(p.max_contributions)}** {wording.agreeing(p.max_contributions, 'row', 'rows')}."
        )
    limit = 2 if p.case == 1 else 4
    steps.append(
        f"Compared with the best weights, h′ has {p.sampling_factor:.3f} times the sampling error (at most {limit}) "
        f"and {p.privacy_factor:.3f} times the privacy noise (at most 4), together **{p.ratio:.3f} times (at most 4)**."
        f" The best bound is at least as good as h′: {p.best_ratio:.3f} times."
    )
    return tuple(steps)


def write_methods(solution: GapSolution, dataset: Dataset, parameters: GapParameters) -> Methods:
    """Write the methods section: the recommended bound, and the ratio of the variances."""
    comparison, largest_ratio = solution.comparison, supremum().ratio
    noise_text = cite_noise("Laplace")
    if comparison.ratio < WORTH_HAVING:
        rows = wording.counted(comparison.cap.max_contributions, "row")
        step = f"At most {rows} of each user, drawn at random, were kept"
    else:
        threshold = wording.number(comparison.smooth.threshold, 6)
        step = (
            f"Rows were weighted such that no user weighs more than {threshold} rows [@epasto2020, section 3]"
        )
    return Methods(
        guarantee=write_guarantee("The mean was released", parameters.epsilon, Neighbours.REPLACE_VALUES),
        sentences=f"{step}, and {noise_text} was added to the mean. "
        f"The best bound on rows per user has {comparison.ratio:.4f} times the variance of the best weights.",
        public_sentences=f"What a user's rows weigh together was bounded, and {noise_text} was added to the mean.",
        disclosure=dataset.provenance,
        rule="The best bound and the best weights minimise the expected squared error of the released mean. "
        f"Whatever the data, the ratio of their variances is below {largest_ratio:.5f}; weights were preferred from a "
        f"ratio of {wording.number(WORTH_HAVING)} on.",
        subject="The ratio",
    )
