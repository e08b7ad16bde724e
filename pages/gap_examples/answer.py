"""The answers of the page on the largest gap, computed once for a question, and put into words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore import gap_examples, mean
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.dataset import Dataset
from dpcore.gap_examples.parameters import REGRESSION_G
from dpcore.regression import examples, working_set
from pages.gap_examples import code
from pages.mean.card import LEAKS
from pages.shared.axes import curve_bounds
from pages.shared.cards import AnswerCard, Figure

MAX_ENUMERATED_G = 10
SIMULATED_POINTS = 7
MAX_SOLVED_ROWS = 11_000
"""Regression examples of so many rows are solved while the person waits: under a second."""


@dataclass(frozen=True)
class GapView:
    """The person's data.

    Attributes:
        comparison: The best cap beside the best weights.
        proof: The paper's proof carried out.
        domination: The two groups that are at least as bad; None without sampling error.
        bounds: Bounds of the curves, ascending, shape (points,).
        capped: Variance with a cap over that of the best weights, over ``bounds``.
        smoothed: Variance with weights over that of the best weights, over ``bounds``.
    """

    comparison: gap_examples.Comparison
    proof: gap_examples.FourfoldProof
    domination: gap_examples.Domination | None
    bounds: FloatArray
    capped: FloatArray
    smoothed: FloatArray


def compute(histogram: ContributionHistogram, parameters: mean.MeanParameters) -> GapView:
    """Solve, prove and evaluate."""
    problem = parameters.problem(histogram)
    both = gap_examples.compare(problem)
    proof = gap_examples.fourfold_proof(problem)
    marked = [both.cap.max_contributions, both.smooth.threshold, proof.max_contributions]
    bounds = np.unique(np.concatenate((curve_bounds(histogram), marked)))
    return GapView(
        comparison=both,
        proof=proof,
        domination=gap_examples.dominate(both) if problem.value_variance > 0.0 else None,
        bounds=bounds,
        capped=mean.capped_variance(problem, bounds) / both.smooth.variance,
        smoothed=mean.smooth_variance(problem, bounds) / both.smooth.variance,
    )


def compare_instance(
    parameters: gap_examples.GapParameters, kind: gap_examples.InstanceKind
) -> gap_examples.Comparison:
    """Both optima of the instance of one of the page's steps."""
    if kind is gap_examples.InstanceKind.THEOREM_2:
        return gap_examples.compare(gap_examples.theorem_2_problem(parameters.g))
    if kind is gap_examples.InstanceKind.TWO_GROUPS:
        return gap_examples.compare(parameters.two_groups())
    return gap_examples.compare(gap_examples.supremum().problem())


def gain(ratio: float, digits: int = 3) -> str:
    """A ratio of variances as a gain in per cent."""
    return wording.percent(max(ratio - 1.0, 0.0), digits) if ratio - 1.0 > 5e-6 else f"0{wording.PERCENT}"


def proved(comparison: gap_examples.Comparison) -> str:
    """Between which numbers the ratio is proved to lie, by both optimisers' certificates."""
    low, high = comparison.ratio_at_least, comparison.ratio_at_most
    if high - low <= 1e-9 * high:
        return f"The exact optimisers give {comparison.ratio:.6f}, proved to within rounding."
    return (
        f"The exact optimisers give {comparison.ratio:.6f}; proved to lie between {low:.6f} and {high:.6f}."
    )


def card(view: GapView, dataset: Dataset, parameters: mean.MeanParameters) -> AnswerCard:
    """The answer in words."""
    both, best = view.comparison, gap_examples.supremum().ratio
    h = both.cap.max_contributions
    worth = "A cap does nearly as well" if both.ratio < 1.05 else "Weights are worth having"
    headline = (
        f"{worth}: on these data smooth weights gain {gain(both.ratio)} in variance over the best cap. "
        f"No data could gain more than {gain(best)}."
    )
    facts = [
        ("Here", _here(view)),
        (
            "Any data",
            f"with any number of users, any sizes and any ε, the best cap has less than {best:.5f} times the variance "
            "of the best weights. The paper's theorem 3 says at most 4 times. See *Two groups* and *Any noise*.",
        ),
    ]
    if view.domination is not None:
        facts.append(("Why not more", _why_not_more(view.domination)))
    return AnswerCard(
        headline=headline,
        detail=LEAKS if dataset.is_private else "",
        figures=(
            Figure("Variance, cap : weights", f"{both.ratio:.4f}", f"at most {best:.5f}", _RATIO),
            Figure(
                "Standard error",
                f"{math.sqrt(both.ratio):.4f}",
                f"at most {math.sqrt(best):.4f}",
                "The square root: how much longer the error bars of the best cap are.",
            ),
            Figure(
                "Best cap", wording.counted(h, "row"), "per user", "Upper bound on contributions per user."
            ),
            Figure(
                "Noise ratio ρ",
                wording.number(both.noise_ratio),
                wording.agreeing(both.noise_ratio, "row", "rows"),
                _NOISE_RATIO,
            ),
        ),
        facts=tuple(facts),
        assumptions=mean.ASSUMPTIONS,
        proofs=(
            ("Cap", both.cap.certificate, both.cap.ended),
            ("Smooth weights", both.smooth.certificate, both.smooth.ended),
        ),
        sensitivity=dataset.provenance,
        code=code.of_gap(view, dataset, parameters),
    )


_RATIO = (
    "Variance of the mean with the best cap, divided by that with the best smooth weights; 1 means no gain."
)
_NOISE_RATIO = (
    "ρ = 2 (B/ε)²/σ²: how many rows' worth of variance the noise has for a user who holds all the weight. "
    "ε, B and σ² matter for the ratio only through ρ."
)


def _here(view: GapView) -> str:
    both = view.comparison
    if both.problem.histogram.sizes.size == 1:
        return "all users have equally many rows, so cap and weights are the same."
    if both.problem.value_variance == 0.0:
        return "without sampling error the best cap and the best weights are the same."
    return (
        f"best cap {wording.counted(both.cap.max_contributions, 'row')}, best threshold of the weights "
        f"{wording.number(both.smooth.threshold)}. {proved(both)}"
    )


def _why_not_more(domination: gap_examples.Domination) -> str:
    return (
        f"a user base of two groups, {wording.percent(domination.light_share)} with one row and the rest with "
        f"unlimited rows, has at least as many rows under every cap, yet no better cap. Its ratio is "
        f"{domination.bound:.4f}; these data cannot have more."
    )


def proof_sentences(view: GapView) -> tuple[str, ...]:
    """The proof of theorem 3 on these data, step by step."""
    p = view.proof
    number = wording.number
    steps = [
        f"The best weights have threshold **h\\* = {number(p.threshold, 4)}**: "
        f"{wording.counted(p.users_at_or_below, 'user')} "
        f"{wording.agreeing(p.users_at_or_below, 'has', 'have')} at most h\\* rows, {number(p.users_above)} "
        f"{wording.agreeing(p.users_above, 'has', 'have')} more.",
        f"The former hold the share **α = {number(p.rows_at_or_below)} / {number(p.kept_rows, 4)} = "
        f"{wording.percent(p.share_below, 3)}** of the weight.",
    ]
    if p.case == 1:
        steps.append(
            f"**Case 1**, α ≥ ½: the heavy users hold less than half. Round up: **h′ = ⌈h\\*⌉ = "
            f"{number(p.max_contributions)}**. Rows are lost only from heavy users, so sampling error at most doubles."
        )
    else:
        steps.append(
            f"**Case 2**, α < ½: the heavy users hold more than half. Pass over the share η = 1 − 1/(2(1 − α)) = "
            f"{wording.percent(p.skipped, 3)} of them, that is {wording.counted(p.skipped_users, 'user')}; the last "
            f"of these has **h′ = {number(p.max_contributions)}** "
            f"{wording.agreeing(p.max_contributions, 'row', 'rows')}."
        )
    limit = 2 if p.case == 1 else 4
    steps.append(
        f"At the cap h′ sampling error is {p.sampling_factor:.3f} times that of the best weights (at most {limit}), "
        f"privacy noise {p.privacy_factor:.3f} times (at most 4), both together **{p.ratio:.3f} times (at most 4)**. "
        f"The best cap is at least as good as h′: {p.best_ratio:.3f} times."
    )
    return tuple(steps)


@dataclass(frozen=True)
class RegressionStep:
    """A regression example at one g.

    Attributes:
        example: The instance with the paper's C.
        thresholds: 1 .. g, shape (g,).
        limiting: Expected variance of sample limiting at each, given a sample that determines the coefficients.
        surely: Example 3: smallest probability over the thresholds that sample limiting reaches the paper's bound; 1 in
            example 1, where all samples have one variance.
        samples: Samples that were listed, over all thresholds; 0 where there are too many.
        disagreement: Largest relative difference between the listed and the closed form.
        certificate: The best C's variance as the solver of the page Regression finds it, with its lower bound; None
            where there are more than `MAX_SOLVED_ROWS` rows.
    """

    example: gap_examples.Example
    thresholds: IntArray
    limiting: FloatArray
    surely: float
    samples: int
    disagreement: float
    certificate: Certificate | None

    @property
    def best(self) -> int:
        """The threshold with the smallest variance."""
        return int(self.thresholds[int(self.limiting.argmin())])

    @property
    def ratio(self) -> float:
        """Sample limiting at its best over the paper's C."""
        return float(self.limiting.min()) / self.example.feasible.variance

    @property
    def best_ratio(self) -> float:
        """Sample limiting at its best over the best C."""
        return float(self.limiting.min()) / self.example.optimum


def regression_step(number: int, g: int) -> RegressionStep:
    """Closed forms at every threshold; every sample one by one where g is small, the best C where it is not large."""
    if number == 1:
        example = gap_examples.example_1(g)
        thresholds, limiting = gap_examples.limit_example_1(g)
        surely = 1.0
    else:
        example = gap_examples.example_3(g)
        thresholds = np.arange(1, g + 1)
        all_limits = [gap_examples.limit_example_3(g, int(h)) for h in thresholds]
        limiting = np.array([limit.mean_variance for limit in all_limits])
        surely = min(limit.probability_at_least(example.limiting_bound) for limit in all_limits)
    samples, disagreement = 0, 0.0
    if g <= MAX_ENUMERATED_G:
        for h, closed in zip(thresholds, limiting, strict=True):
            listed = gap_examples.enumerate_sample_limiting(example.instance, int(h))
            assert listed is not None
            samples += listed.variances.size
            disagreement = max(disagreement, abs(listed.mean_variance / closed - 1.0))
    certificate = None
    if example.instance.num_rows <= MAX_SOLVED_ROWS:
        problem = examples.example_1(g) if number == 1 else examples.example_3(g)
        certificate = working_set.solve(problem).certificate
    return RegressionStep(example, thresholds, limiting, surely, samples, disagreement, certificate)


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


def growth(number: int) -> Growth:
    """The ratio over the slider's values of g."""
    ratios, best_ratios, bounds = [], [], []
    for g in REGRESSION_G:
        if number == 1:
            example, best = gap_examples.example_1(g), float(gap_examples.limit_example_1(g)[1].min())
        else:
            example = gap_examples.example_3(g)
            best = min(gap_examples.limit_example_3(g, h).mean_variance for h in range(1, g + 1))
        ratios.append(best / example.feasible.variance)
        best_ratios.append(best / example.optimum)
        bounds.append(example.limiting_bound / example.weights_bound)
    return Growth(np.array(REGRESSION_G), np.array(ratios), np.array(best_ratios), np.array(bounds))


def simulated_bounds(problem: mean.MeanProblem) -> tuple[int, ...]:
    """Where to simulate: whole bounds from s_1 to 30 times the best cap, with the best of both kinds among them."""
    both = gap_examples.compare(problem)
    cap, threshold = both.cap.max_contributions, max(round(both.smooth.threshold), 1)
    low, high = problem.histogram.min_size, problem.histogram.max_size
    high = max(min(high, 30 * cap), low)
    spaced = np.rint(np.geomspace(low, high, SIMULATED_POINTS)).astype(int).tolist()
    return tuple(sorted({*spaced, cap, threshold}))
