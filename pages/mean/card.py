"""The Mean page's answer in words."""

from __future__ import annotations

import math

from dpcore import mean
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.user_effects import Clamped, between_user_share, bounded_mean
from pages.mean import code
from pages.mean.answer import MeanView, UsualRoute
from pages.shared.cards import AnswerCard, KeyNumber
from pages.shared.value_range import KNOW, Outside


def card(
    view: MeanView, dataset: Dataset, parameters: mean.MeanParameters, clamped: Clamped | None
) -> AnswerCard:
    """The answer in words."""
    cap, smooth, histogram = view.cap, view.smooth, view.problem.histogram
    h = cap.max_contributions
    rows = wording.counted(h, "row")
    headline = f"Keep at most {rows} of each user."
    affected = histogram.users_above(h)
    lost = histogram.num_rows - float(histogram.kept_rows(h))
    over_rows = histogram.num_rows - float(histogram.pieces(h).rows_at_or_below)
    facts = {
        "Half or double": _half_or_double(view),
        "Who is affected by the cap": (
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / histogram.num_users)}) with "
            f"{wording.percent(over_rows / histogram.num_rows)} of all rows "
            f"{wording.agreeing(affected, 'lies', 'lie')} over it; "
            f"{wording.percent(lost / histogram.num_rows)} of all rows would be left out. "
            "Smooth weights leave none out."
        ),
    }
    if view.usual is not None:
        facts["Against the usual split"] = _against_usual(view, view.usual)
    if dataset.is_private and not view.private_counts:
        facts["Where counts are private"] = COUNTS_TOO
    if parameters.own_cap is not None:
        own = view.standard_error(parameters.own_cap)
        facts[f"Your own cap, {wording.counted(parameters.own_cap, 'row')}"] = (
            f"standard error {wording.number(own)}, {wording.change(own, cap.standard_error)}"
            " compared with the best cap."
        )
    return AnswerCard(
        headline=headline,
        detail=_detail(view, dataset, parameters, clamped),
        figures=(
            KeyNumber("Best cap", rows, "per user", "Upper bound on contributions per user.", copied=str(h)),
            KeyNumber("Standard error", wording.number(cap.standard_error), _parts(cap), _STANDARD_ERROR),
            KeyNumber(
                "Best smooth threshold",
                wording.number(smooth.threshold),
                wording.agreeing(smooth.threshold, "row per user", "rows per user"),
                _THRESHOLD,
            ),
            KeyNumber(
                "Standard error, smooth weights",
                wording.number(smooth.standard_error),
                _parts(smooth),
                _STANDARD_ERROR,
            ),
        ),
        good_enough=_good_enough(view),
        facts=facts,
        assumptions=private_counts.ASSUMPTIONS if view.private_counts else mean.ASSUMPTIONS,
        proofs=(("Cap", cap.certificate, cap.ended), ("Smooth weights", smooth.certificate, smooth.ended)),
        disclosure=dataset.provenance,
        code=code.of_mean(view, dataset, parameters),
    )


_STANDARD_ERROR = (
    "Standard error: square root of the expected squared error of the released mean, in the values' unit. About two "
    "thirds of releases fall within one standard error of the truth. The note says how much of the squared error is "
    "privacy noise."
)
_THRESHOLD = (
    "Every row of a user with at most this many rows weighs the same; the rows of a heavier user together "
    "weigh as much as this many."
)


def _parts(choice: mean.CapChoice | mean.SmoothChoice) -> str:
    return f"({wording.percent(choice.privacy_variance / choice.variance)} privacy noise)"


LEAKS = (
    "Your data are private, and so is a bound read off them: **how many rows each user has is assumed to be public**. "
    "Where it is not, the bound gives some of it away: choose it without these data, or under *Choose privately*."
)
COUNTS_TOO = "with *Contribution counts are: Private too* the ε of the release covers the counts as well."
VARIANCE_LEAKS = (
    "σ² was read off the private values, so it leaks too: take the worst case, or a number from elsewhere."
)
LEAKS_COUNTS = (
    "Your data are private, and a bound read off them is too: the guarantee holds for a bound chosen without them, or "
    "chosen privately."
)
PRIVATE_COUNTS = (
    "Contribution counts are **private too**: neighbours add or remove one user, and errors are delta-method "
    "approximations."
)


def _noise_share(view: MeanView) -> float:
    """The larger noise on the sum of weights, of both choices; only where counts are private."""
    assert isinstance(view.problem, private_counts.PrivateCountsProblem)
    return max(
        view.problem.noise_share(view.cap.max_contributions), view.problem.noise_share(view.smooth.threshold)
    )


def _against_usual(view: MeanView, usual: UsualRoute) -> str:
    best = view.cap.standard_error
    return (
        "numerator and denominator, released with ε/2 each, have a standard error of "
        f"{wording.number(usual.cap.standard_error)} at their own best cap of "
        f"{wording.counted(usual.cap.max_contributions, 'row')}: {wording.change(usual.cap.standard_error, best)}. "
        f"With values centred first it is {wording.number(usual.centred.standard_error)}: "
        f"{wording.change(usual.centred.standard_error, best)}."
    )


def _detail(
    view: MeanView, dataset: Dataset, parameters: mean.MeanParameters, clamped: Clamped | None
) -> str:
    """What changes how the headline is to be read, most important first; empty where nothing does."""
    found = []
    if clamped is not None:
        values = Outside(clamped.num_below, clamped.num_above, view.problem.histogram.num_rows)
        if values.many:
            found.append(
                f"**{values.percent} of the values are clamped**, and no number here counts that error: set L and U "
                f"{KNOW}"
            )
    found.append(_smooth_weights(view))
    if view.private_counts:
        found.append(PRIVATE_COUNTS)
        share = _noise_share(view)
        if share > private_counts.ROUGH_NOISE:
            found.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: the delta method is rough here. "
                "*Simulation*, below, shows the real error."
            )
    if dataset.is_private:
        found.append(LEAKS_COUNTS if view.private_counts else LEAKS)
        if clamped is not None and parameters.variance_source is mean.VarianceSource.FROM_VALUES:
            found.append(VARIANCE_LEAKS)
    if view.problem.histogram.sizes.size == 1:
        found.append("All users have equally many rows, so there is nothing to choose: keep everything.")
    elif view.cap.max_contributions == view.problem.histogram.max_size:
        found.append("Here the best cap keeps every row: privacy noise is cheap beside the sampling error.")
    return " ".join(found)


def _smooth_weights(view: MeanView) -> str:
    smooth, best = view.smooth.standard_error, view.cap.standard_error
    change = wording.change(smooth, best)
    if change == "the same":
        return "Smooth weights would gain nothing."
    return (
        f"Smooth weights with threshold {wording.number(view.smooth.threshold)} would reach {wording.number(smooth)}, "
        f"{change}, if your library can weight rows."
    )


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
        f"stays within {share} of the best error."
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
            "At 0 % rows are as good as independent; the larger it is, the less the further rows of one user add."
        )
    return (*shifts, spread)
