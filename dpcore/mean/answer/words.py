"""The answer for a mean in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore import mean
from dpcore.answer import Number
from dpcore.answer.axes import ROWS
from dpcore.answer.value_range import KNOW, Outside
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.answer.found import MeanFound, UsualRoute
from dpcore.mean.user_effects import Clamped, between_user_share, bounded_mean


def headline(found: MeanFound) -> str:
    """What to do."""
    return f"Keep at most {wording.counted(found.cap.max_contributions, 'row')} of each user."


def numbers(found: MeanFound) -> tuple[Number, ...]:
    """Both choices, each with its error."""
    cap, smooth = found.cap, found.smooth
    rows = wording.counted(cap.max_contributions, "row")
    return (
        Number(
            "Best bound",
            rows,
            "per user",
            "Upper bound on contributions per user.",
            cap.max_contributions,
            ROWS,
            "max_contributions",
        ),
        _error("Standard error", cap, "standard_error"),
        Number(
            "Bound of the smooth weights",
            wording.number(smooth.threshold),
            wording.agreeing(smooth.threshold, "row per user", "rows per user"),
            _THRESHOLD,
            smooth.threshold,
            ROWS,
            "threshold",
        ),
        _error("Standard error, smooth weights", smooth, "smooth_standard_error"),
    )


def _error(label: str, of: mean.CapChoice | mean.SmoothChoice, key: str) -> Number:
    note = f"({wording.percent(of.privacy_variance / of.variance)} privacy noise)"
    return Number(
        label, wording.number(of.standard_error), note, _STANDARD_ERROR, of.standard_error, UNIT, key
    )


def facts(found: MeanFound, dataset: Dataset, parameters: mean.MeanParameters) -> dict[str, str]:
    """What stands behind the choice, a sentence each."""
    cap, histogram = found.cap, found.problem.histogram
    h = cap.max_contributions
    affected = histogram.users_above(h)
    lost = histogram.num_rows - float(histogram.kept_rows(h))
    over_rows = histogram.num_rows - float(histogram.pieces(h).rows_at_or_below)
    said = {
        "Half or double": _half_or_double(found),
        "Who is affected by the bound": (
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) with "
            f"{wording.percent(over_rows / histogram.num_rows)} of all rows "
            f"{wording.agreeing(affected, 'lies', 'lie')} over it; "
            f"{wording.percent(lost / histogram.num_rows)} of all rows would be left out. "
            "Smooth weights leave none out."
        ),
    }
    if found.usual is not None:
        said["Against the usual split"] = _against_usual(found, found.usual)
    if dataset.is_private and not found.private_counts:
        said["Where counts are private"] = COUNTS_TOO
    if parameters.own_cap is not None:
        own = found.standard_error(parameters.own_cap)
        said[f"Your own bound, {wording.counted(parameters.own_cap, 'row')}"] = (
            f"standard error {wording.number(own)}, {wording.change(own, cap.standard_error)}"
            " compared with the best bound."
        )
    return said


UNIT = "unit of the values"
BOUNDED = "bounded rows"
"""What the one way is called in a legend, beside smooth weights."""
_STANDARD_ERROR = (
    "Standard error: square root of the expected squared error of the released mean, in the values' unit. About two "
    "thirds of releases fall within one standard error of the truth. The note says how much of the squared error is "
    "privacy noise."
)
_THRESHOLD = (
    "Every row of a user with at most this many rows weighs the same; the rows of a heavier user together "
    "weigh as much as this many."
)


LEAKS = (
    "Your data are private, and so is a bound read off them: **how many rows each user has is assumed to be public**. "
    "Where it is not, the bound gives some of it away: choose it without these data, or under *Choose privately*."
)
COUNTS_TOO = (
    "choose *Private too* under *Contribution counts are*, and the ε of the release also protects how many rows each "
    "user has."
)
VARIANCE_LEAKS = (
    "σ² was read off the private values, so it leaks too: take the worst case, or a number from elsewhere."
)
LEAKS_COUNTS = (
    "A bound read off private data is private too: the guarantee holds for one that is drawn privately, or chosen "
    "without them."
)
PRIVATE_COUNTS = (
    "Counts are **private too** (neighbours add or remove one user); errors are delta-method approximations."
)


def _noise_share(found: MeanFound) -> float:
    """The larger noise on the sum of weights, of both choices; only where counts are private."""
    assert isinstance(found.problem, private_counts.PrivateCountsProblem)
    return max(
        found.problem.noise_share(found.cap.max_contributions),
        found.problem.noise_share(found.smooth.threshold),
    )


def _against_usual(found: MeanFound, usual: UsualRoute) -> str:
    best = found.cap.standard_error
    return (
        "numerator and denominator, released with ε/2 each, have a standard error of "
        f"{wording.number(usual.cap.standard_error)} at their own best bound of "
        f"{wording.counted(usual.cap.max_contributions, 'row')}: {wording.change(usual.cap.standard_error, best)}. "
        f"With values centred first it is {wording.number(usual.centred.standard_error)}: "
        f"{wording.change(usual.centred.standard_error, best)}."
    )


def detail(found: MeanFound, dataset: Dataset, parameters: mean.MeanParameters) -> str:
    """What changes how the headline is to be read, most important first; empty where nothing does."""
    said, clamped = [], found.clamped
    if clamped is not None:
        values = Outside(clamped.num_below, clamped.num_above, found.problem.histogram.num_rows)
        if values.many:
            said.append(
                f"**{values.percent} of the values are clamped**, and no number here counts that error: set L and U "
                f"{KNOW}"
            )
    said.append(_smooth_weights(found))
    if found.private_counts:
        said.append(PRIVATE_COUNTS)
        share = _noise_share(found)
        if share > private_counts.ROUGH_NOISE:
            said.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: the delta method is rough here. "
                "*Simulation*, below, shows the real error."
            )
    if dataset.is_private:
        said.append(LEAKS_COUNTS if found.private_counts else LEAKS)
        if clamped is not None and parameters.variance_source is mean.VarianceSource.FROM_VALUES:
            said.append(VARIANCE_LEAKS)
        said += _without_the_look(found, parameters)
    if found.problem.histogram.sizes.size == 1:
        said.append("All users have equally many rows, so there is nothing to choose: keep everything.")
    elif found.cap.max_contributions == found.problem.histogram.max_size:
        said.append("Here the best bound keeps every row: privacy noise is small beside the sampling error.")
    return " ".join(said)


def _without_the_look(found: MeanFound, parameters: mean.MeanParameters) -> list[str]:
    """The best bound where counts are private and no values are looked at; nothing where it is so."""
    read = parameters.variance_source is mean.VarianceSource.FROM_VALUES and found.clamped is not None
    if found.private_counts and not read:
        return []
    source = mean.VarianceSource.WORST_CASE if read else parameters.variance_source
    asked = replace(parameters, counts=mean.Counts.PRIVATE, variance_source=source)
    problem = asked.problem(found.problem.histogram)
    assert isinstance(problem, private_counts.PrivateCountsProblem)
    rows = wording.counted(private_counts.best_cap(problem).max_contributions, "row")
    return [f"With {'σ² of the worst case and ' if read else ''}private counts the best bound is **{rows}**."]


def _smooth_weights(found: MeanFound) -> str:
    smooth, best = found.smooth.standard_error, found.cap.standard_error
    change = wording.change(smooth, best)
    if change == "the same":
        return "Smooth weights would gain nothing."
    return (
        f"Smooth weights with a bound of {wording.number(found.smooth.threshold)} would reach "
        f"{wording.number(smooth)}, {change}, if your library can weight rows."
    )


def good_enough(found: MeanFound) -> str:
    """From which bound to which one the error stays near the best."""
    within, share = found.within, f"5{wording.PERCENT}"
    if within[0] == within[1]:
        only = wording.counted(within[0], "row")
        if within[1] < found.problem.histogram.max_size:
            return f"only {only}; every other bound is more than {share} worse in standard error."
        smaller = (
            f"every smaller bound is more than {share} worse in standard error, and " if within[0] > 1 else ""
        )
        return f"only {only}; {smaller}a larger one keeps no more rows."
    return (
        f"any bound from {wording.number(within[0])} to {wording.counted(within[1], 'row')} "
        f"stays within {share} of the best error."
    )


def _half_or_double(found: MeanFound) -> str:
    h, best = found.cap.max_contributions, found.cap.standard_error
    parts = []
    if h > 1:
        half = max(h // 2, 1)
        error = found.standard_error(half)
        parts.append(f"half ({wording.number(half)}) costs {wording.change(error, best)}")
    error = found.standard_error(2 * h)
    parts.append(f"double ({wording.number(2 * h)}) costs {wording.change(error, best)}")
    return ", ".join(parts) + " in standard error."


def hidden(found: MeanFound, clamped: Clamped) -> tuple[str, ...]:
    """What the independence of rows hides, in words, from the values at hand."""
    plain = clamped.mean
    shifts = []
    for name, bound, choice in (
        ("bounded", float(found.cap.max_contributions), found.cap),
        ("smoothly weighted", found.smooth.threshold, found.smooth),
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
            "At 0 % rows are as good as independent; the larger it is, the less the further rows of one user add."
        )
    return (*shifts, spread)


def files(found: MeanFound) -> str:
    """What the files of weights and of the choice hold."""
    counts = "private too" if found.private_counts else "public"
    if found.private_counts:
        sums = (
            "Weights are not divided by their sum, which is private here: it comes out of the two noisy sums."
        )
    else:
        sums = "Over the file, users × size × row_weight adds up to 1."
    return (
        "**Weights** hold one line per number of rows a user can have: give each row of such a user the weight "
        f"`row_weight`, or keep `rows_kept_at_cap` of them at random. {sums} **Choice** holds the question and "
        f"the answer. Both are for contribution counts that are **{counts}**."
    )
