"""The Mean page's answer, computed once for a question and a data set, and put into words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore import export, mean, mean_private, wording
from dpcore.checks import EPSILON_RANGE
from dpcore.contributions import ContributionHistogram, FloatArray, log_spaced
from dpcore.dataset import Dataset
from dpcore.privacy import Provenance
from dpcore.user_effects import Clamped, between_user_share, bounded_mean
from pages.parts import code_choices
from pages.parts.cards import AnswerCard, Figure
from pages.parts.value_range import Outside

CURVE_POINTS = 240


@dataclass(frozen=True)
class UsualRoute:
    """A private numerator and a private denominator, half of epsilon each, beside our pair of sums.

    Attributes:
        problem: The same question with the usual release.
        cap: Its own best cap.
        capped: Its error over the view's ``bounds``.
        centred: The best cap of the release that centres the values first.
    """

    problem: mean_private.PrivateCountsProblem
    cap: mean.CapChoice
    capped: mean.MeanError
    centred: mean.CapChoice


@dataclass(frozen=True)
class MeanView:
    """Everything the page shows that depends on data and question.

    Attributes:
        problem: The question on these data.
        cap: The best cap.
        smooth: The best smooth weights.
        within: Smallest and largest cap within 5 % of the best standard error, from 1 to s_m.
        bounds: Bounds of the curves in rows per user, ascending, shape (points,).
        capped: Error over ``bounds`` when capping.
        smoothed: Error over ``bounds`` under smooth weights.
        usual: Where counts are private too, what the usual route reaches, numerator and denominator released with
            half of epsilon each; None where they are public.
    """

    problem: mean.MeanProblem
    cap: mean.CapChoice
    smooth: mean.SmoothChoice
    within: tuple[int, int]
    bounds: FloatArray
    capped: mean.MeanError
    smoothed: mean.MeanError
    usual: UsualRoute | None = None

    @property
    def private_counts(self) -> bool:
        """Whether contribution counts are private too; all errors are then delta-method approximations."""
        return self.usual is not None

    def standard_error(self, cap: float) -> float:
        """Standard error at any cap, in the values' unit."""
        return math.sqrt(float(mean.capped_variance(self.problem, cap)))


def curve_bounds(histogram: ContributionHistogram, points: int = CURVE_POINTS) -> FloatArray:
    """Bounds to draw: log-spaced from s_1 to s_m, all sizes where they are few.

    Where all users have equally many rows the curve is drawn to twice that size, since there is nothing
    between s_1 and s_m.
    """
    low, high = float(histogram.min_size), float(histogram.max_size)
    sizes = histogram.sizes.astype(np.float64)
    return log_spaced(low, max(high, 2.0 * low), points, extra=list(sizes) if sizes.size <= 60 else ())


def compute(
    histogram: ContributionHistogram,
    parameters: mean.MeanParameters,
    variance: float | None,
    values_mean: float | None = None,
) -> MeanView:
    """Solve and evaluate. ``variance`` and ``values_mean`` are those of the clamped values, where there are some."""
    problem = parameters.problem(histogram, variance, values_mean)
    if isinstance(problem, mean_private.PrivateCountsProblem):
        cap, smooth = mean_private.best_cap(problem), mean_private.best_smooth(problem)
    else:
        cap, smooth = mean.best_cap(problem), mean.best_smooth(problem)
    bounds = np.unique(np.concatenate((curve_bounds(histogram), [cap.max_contributions, smooth.threshold])))
    return MeanView(
        problem=problem,
        cap=cap,
        smooth=smooth,
        within=mean.caps_within(problem),
        bounds=bounds,
        capped=mean.capped_error(problem, bounds),
        smoothed=mean.smooth_error(problem, bounds),
        usual=_usual(problem, bounds),
    )


def _usual(problem: mean.MeanProblem, bounds: FloatArray) -> UsualRoute | None:
    if not isinstance(problem, mean_private.PrivateCountsProblem):
        return None
    split = replace(problem, release=mean_private.Release.SPLIT)
    centred = replace(problem, release=mean_private.Release.CENTRED_SPLIT)
    return UsualRoute(
        problem=split,
        cap=mean_private.best_cap(split),
        capped=mean.capped_error(split, bounds),
        centred=mean_private.best_cap(centred),
    )


def axis_limits(
    histogram: ContributionHistogram, value_bound: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """(from, to) of the bound's axis and of the error's axis; they depend on neither epsilon nor sigma^2.

    The error's axis starts below what sampling alone costs at the largest variance, and ends above what the
    largest bound costs at epsilon = 0.1.
    """
    low, high = float(histogram.min_size), float(histogram.max_size)
    widest = mean.MeanProblem(histogram, 0.1, value_bound, value_bound**2 / 4.0)
    sampling = math.sqrt(float(mean.capped_error(widest, high).sampling_variance))
    most = math.sqrt(float(mean.capped_variance(widest, high)))
    return (low, max(high, 2.0 * low)), (sampling / 3.0, most * 1.5)


def error_reach(histogram: ContributionHistogram, value_bound: float) -> tuple[float, float]:
    """How far the error's axis can be widened: no best point at any epsilon and sigma^2 lies outside."""
    least_epsilon, most_epsilon = EPSILON_RANGE
    low = mean.best_smooth(mean.MeanProblem(histogram, most_epsilon, value_bound, 0.0)).standard_error
    worst = mean.MeanProblem(histogram, least_epsilon, value_bound, value_bound**2 / 4.0)
    return low, math.sqrt(float(mean.capped_variance(worst, float(histogram.max_size))))


def outside(
    view: MeanView, limits: tuple[tuple[float, float], tuple[float, float]], own_cap: int | None
) -> list[str]:
    """Names of the marked points that the axes leave out."""
    points = [
        ("the best cap", float(view.cap.max_contributions), view.cap.standard_error),
        ("the best smooth threshold", view.smooth.threshold, view.smooth.standard_error),
    ]
    if own_cap is not None:
        points.append(("your own cap", float(own_cap), view.standard_error(own_cap)))
    (left, right), (bottom, top) = limits
    return [name for name, h, error in points if not (left <= h <= right and bottom <= error <= top)]


def weight_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """(from, to) of the axis of row weights, relative to 1 / n: no bound in [s_1, s_m] leads outside."""
    mean_size = histogram.num_rows / histogram.num_users
    return mean_size / histogram.max_size / 1.5, 1.5 * mean_size / histogram.min_size


def card(
    view: MeanView, dataset: Dataset, parameters: mean.MeanParameters, clamped: Clamped | None
) -> AnswerCard:
    """The answer in words."""
    cap, smooth, histogram = view.cap, view.smooth, view.problem.histogram
    h = cap.max_contributions
    saved = wording.change(smooth.standard_error, cap.standard_error)
    rows = wording.counted(h, "row")
    headline = (
        f"Cap at {rows} per user: standard error {wording.number(cap.standard_error)}; "
        f"smooth weights with threshold {wording.number(smooth.threshold)}: "
        f"{wording.number(smooth.standard_error)}, {saved}."
    )
    affected = histogram.users_above(h)
    lost = histogram.num_rows - float(histogram.kept_rows(h))
    over_rows = histogram.num_rows - float(histogram.pieces(h).rows_at_or_below)
    facts = [
        (
            "Good enough",
            _good_enough(view),
        ),
        ("Half or double", _half_or_double(view)),
        (
            "Who is affected by the cap",
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) with "
            f"{wording.percent(over_rows / histogram.num_rows)} of all rows "
            f"{wording.agreeing(affected, 'lies', 'lie')} over it; "
            f"{wording.percent(lost / histogram.num_rows)} of all rows would be left out. "
            "Smooth weights leave none out.",
        ),
    ]
    if view.usual is not None:
        facts.append(("Against the usual split", _against_usual(view, view.usual)))
    if parameters.own_cap is not None:
        own = view.standard_error(parameters.own_cap)
        facts.append(
            (
                f"Your own cap, {wording.counted(parameters.own_cap, 'row')}",
                f"standard error {wording.number(own)}, {wording.change(own, cap.standard_error)}"
                " compared with the best cap.",
            )
        )
    return AnswerCard(
        headline=headline,
        detail=_detail(view, dataset, parameters, clamped),
        figures=(
            Figure(
                "Best cap", wording.counted(h, "row"), "per user", "Upper bound on contributions per user."
            ),
            Figure("Error, cap", wording.number(cap.standard_error), _parts(cap), _STANDARD_ERROR),
            Figure(
                "Best smooth threshold",
                wording.number(smooth.threshold),
                wording.agreeing(smooth.threshold, "row per user", "rows per user"),
                _THRESHOLD,
            ),
            Figure(
                "Error, smooth",
                wording.number(smooth.standard_error),
                _parts(smooth),
                _STANDARD_ERROR,
            ),
        ),
        facts=tuple(facts),
        assumptions=mean_private.ASSUMPTIONS if view.private_counts else mean.ASSUMPTIONS,
        proofs=(("Cap", cap.certificate, cap.ended), ("Smooth weights", smooth.certificate, smooth.ended)),
        sensitivity=dataset.provenance,
        code=code_choices.of_mean(view, dataset, parameters),
    )


_STANDARD_ERROR = (
    "Standard error: square root of the expected squared error of the released mean, in the values' unit. About two "
    "thirds of releases fall within one standard error of the truth. The note: privacy noise's share of the squared "
    "error."
)
_THRESHOLD = (
    "Every row of a user with at most this many rows weighs the same; the rows of a heavier user together "
    "weigh as much as this many."
)


def _parts(choice: mean.CapChoice | mean.SmoothChoice) -> str:
    return f"{wording.percent(choice.privacy_variance / choice.variance)} privacy noise"


LEAKS = (
    "Your data are private, and so is a bound read off them. ε covers the values only: **how many rows each user has "
    "is assumed to be public**. Where it is not, using the bound gives some of it away: choose the bound without these "
    "data, or under *Choose privately*."
)
COUNTS_TOO = "*Contribution counts are: Private too* lets ε of the release cover it as well."
VARIANCE_LEAKS = (
    "σ² was read off the private values, so it leaks too: take the worst case, or a figure from elsewhere."
)
LEAKS_COUNTS = (
    "Your data are private, and a bound read off them is too: the guarantee holds for a bound chosen without them, or "
    "chosen privately."
)
PRIVATE_COUNTS = "For **private counts**: neighbours add or remove one user, errors by the delta method."


def _noise_share(view: MeanView) -> float:
    """The larger noise on the sum of weights, of both choices; only where counts are private."""
    assert isinstance(view.problem, mean_private.PrivateCountsProblem)
    return max(
        view.problem.noise_share(view.cap.max_contributions), view.problem.noise_share(view.smooth.threshold)
    )


def _against_usual(view: MeanView, usual: UsualRoute) -> str:
    best = view.cap.standard_error
    return (
        f"numerator and denominator with ε/2 each have standard error {wording.number(usual.cap.standard_error)} at "
        f"their own best cap of {wording.counted(usual.cap.max_contributions, 'row')}, "
        f"{wording.change(usual.cap.standard_error, best)}; with values centred first "
        f"{wording.number(usual.centred.standard_error)}, {wording.change(usual.centred.standard_error, best)}."
    )


def labelled(columns: Mapping[str, FloatArray], view: MeanView) -> dict[str, npt.ArrayLike]:
    """Columns of a figure with one more that says which setting the numbers are for."""
    words = "private too" if view.private_counts else "public"
    length = len(next(iter(columns.values())))
    return {**columns, "contribution_counts": np.full(length, words)}


def weights_file(view: MeanView, sensitivity: Provenance) -> str:
    """Weights per size for both choices, in the form of the setting."""
    arguments = (view.smooth.threshold, view.cap.max_contributions, sensitivity)
    if isinstance(view.problem, mean_private.PrivateCountsProblem):
        return export.pair_weights_csv(view.problem, *arguments)
    return export.weights_csv(view.problem, *arguments)


def _detail(
    view: MeanView, dataset: Dataset, parameters: mean.MeanParameters, clamped: Clamped | None
) -> str:
    """What changes how the headline is to be read, most important first; empty where nothing does."""
    found = []
    if (
        clamped is not None
        and Outside(clamped.num_below, clamped.num_above, view.problem.histogram.num_rows).many
    ):
        found.append(
            "**Mind the value bounds**: many values are clamped, and no number here counts that error."
        )
    if view.private_counts:
        found.append(PRIVATE_COUNTS)
        share = _noise_share(view)
        if share > mean_private.ROUGH_NOISE:
            found.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: the delta method is rough here. "
                "*Simulation*, below, shows the real error."
            )
    if dataset.is_private:
        found += [LEAKS_COUNTS] if view.private_counts else [LEAKS, COUNTS_TOO]
        if clamped is not None and parameters.noise is mean.NoiseSource.FROM_VALUES:
            found.append(VARIANCE_LEAKS)
    if view.problem.histogram.sizes.size == 1:
        found.append("All users have equally many rows, so there is nothing to choose: keep everything.")
    elif view.cap.max_contributions == view.problem.histogram.max_size:
        found.append("Here the best cap keeps every row: privacy noise is cheap beside the sampling error.")
    return " ".join(found)


def _good_enough(view: MeanView) -> str:
    within, share = view.within, f"5{wording.PERCENT}"
    if within[0] == within[1]:
        only = wording.counted(within[0], "row")
        if within[1] < view.problem.histogram.max_size:
            return f"only {only}; every other cap is more than {share} worse in standard error."
        smaller = (
            f"every smaller cap is more than {share} worse in standard error, and " if within[0] > 1 else ""
        )
        return f"only {only}; {smaller}a larger one keeps no more rows."
    return (
        f"any cap from {wording.number(within[0])} to {wording.counted(within[1], 'row')} "
        f"stays within {share} of the best cap's standard error."
    )


def _half_or_double(view: MeanView) -> str:
    h, best = view.cap.max_contributions, view.cap.standard_error
    parts = []
    if h > 1:
        half = max(h // 2, 1)
        error = view.standard_error(half)
        parts.append(f"half ({wording.number(half)}) costs {wording.change(error, best)}")
    error = view.standard_error(2 * h)
    parts.append(f"double ({wording.number(2 * h)}) costs {wording.change(error, best)}")
    return ", ".join(parts) + " in standard error."


def effects_sentences(view: MeanView, clamped: Clamped) -> tuple[str, ...]:
    """What the independence of rows hides, in words, from the values at hand."""
    plain = clamped.mean
    shifts = []
    for name, bound, choice in (
        ("capped", float(view.cap.max_contributions), view.cap),
        ("smoothly weighted", view.smooth.threshold, view.smooth),
    ):
        shift = float(bounded_mean(clamped, bound)) - plain
        size = abs(shift) / choice.standard_error
        shifts.append(
            f"The {name} mean differs from the plain mean by {wording.number(shift)} "
            f"({wording.number(size, 2)} standard errors). The curves above do not contain this shift."
        )
    share = between_user_share(clamped)
    if math.isnan(share):
        spread = "How much users differ cannot be told: nobody has two rows, or there is only one user."
    else:
        spread = (
            f"{wording.percent(share)} of the variance of a value lies between users (intraclass correlation). "
            "At 0 % rows are as good as independent; the larger it is, the less a heavy user's further rows tell."
        )
    return (*shifts, spread)
