"""The answer for a mean in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math
from dataclasses import replace

from dpcore import mean
from dpcore.answer import Number
from dpcore.answer.axes import ROWS_UNIT
from dpcore.answer.parts import BIAS, NOISE, SAMPLING, ErrorPart
from dpcore.answer.value_range import RANGE_SOURCE, OutsideCounts
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import private_counts
from dpcore.mean.answer.found import MeanFound, UsualRoute
from dpcore.mean.read_values import ReadValues
from dpcore.mean.user_effects import bounded_mean


def headline(found: MeanFound) -> str:
    """Say what to do."""
    return f"Keep at most {wording.counted(found.cap.max_contributions, 'row')} of each user."


CLEAR_SLOPE = 3.0
"""From how many standard errors on users with more rows are said to have other values."""


def numbers(found: MeanFound) -> tuple[Number, ...]:
    """Return both choices, each with its error."""
    cap, smooth, name = found.cap, found.smooth, found.error_name
    about = _STANDARD_ERROR
    if found.of_table:
        about = _ERROR_READ if found.problem.table is not None else _ERROR_EXPECTED
    errors = cap.standard_error, smooth.standard_error
    noise = cap.privacy_variance / cap.variance, smooth.privacy_variance / smooth.variance
    rows, threshold = wording.counted(cap.max_contributions, "row"), wording.number(smooth.threshold)
    per_user = wording.agreeing(smooth.threshold, "row per user", "rows per user")
    texts = [wording.number(error) for error in errors]
    notes = [f"({wording.percent(share)} noise)" for share in noise]
    label, key = wording.capital(name), name.replace(" ", "_")
    weighed = f"{label}, smooth weights"
    bound = "Upper bound on contributions per user."
    return (
        Number("Best bound", rows, "per user", bound, cap.max_contributions, ROWS_UNIT, "max_contributions"),
        Number(label, texts[0], notes[0], about, errors[0], UNIT, key),
        Number(SMOOTH_BOUND, threshold, per_user, _THRESHOLD, smooth.threshold, ROWS_UNIT, "threshold"),
        Number(weighed, texts[1], notes[1], about, errors[1], UNIT, f"smooth_{key}"),
    )


SMOOTH_BOUND = "Bound of the smooth weights"


def error_parts(found: MeanFound) -> tuple[ErrorPart, ...]:
    """Say what the error of the best bound consists of; the squares of the parts add up to its square."""
    cap = found.cap
    drawn, added = math.sqrt(cap.sampling_variance), math.sqrt(cap.privacy_variance)
    shift = {BIAS: abs(cap.shift)} if found.problem.table is not None else {}
    sizes = {**shift, SAMPLING: drawn, NOISE: added}
    return tuple([ErrorPart(name, float(size), wording.number(size)) for name, size in sizes.items()])


def facts(found: MeanFound, dataset: Dataset, parameters: mean.MeanParameters) -> dict[str, str]:
    """Say what stands behind the choice, a sentence each."""
    cap, histogram = found.cap, found.problem.histogram
    h = cap.max_contributions
    affected = histogram.users_above(h)
    lost = histogram.num_rows - float(histogram.kept_rows(h))
    over_rows = histogram.num_rows - float(histogram.pieces(h).rows_at_or_below)
    said = _about_users(found, parameters)
    said |= {
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
        (own,) = found.standard_errors([parameters.own_cap])
        said[f"Your own bound, {wording.counted(parameters.own_cap, 'row')}"] = (
            f"{found.error_name} {wording.number(own)}, {wording.change(own, cap.standard_error)}"
            " compared with the best bound."
        )
    return said


UNIT = "unit of the values"
MEAN_OVER_USERS = "Mean over users"
BOUNDED = "bounded rows"
"""What the one way is called in a legend, beside smooth weights."""
_STANDARD_ERROR = (
    "Standard error: square root of the expected squared error of the released mean, in the values' unit. About two "
    "thirds of releases fall within one standard error of the truth. The note says how much of the squared error is "
    "privacy noise."
)
_ERROR_READ = (
    "Root mean square of how far a release lies from the mean of the rows in this table: what leaving rows out and "
    "clamping shift, what the draw of rows adds, and the noise. Computed from the values themselves. The note says how "
    "much of the square is privacy noise."
)
_ERROR_EXPECTED = (
    "Root mean square of how far a release is expected to lie from the mean of the rows in this table, where who has "
    "many rows says nothing about the values. The note says how much of the square is privacy noise."
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
VALUES_LEAK = (
    "**This is a private look**: the bound was read off the private values, so it leaks too. Take the worst case, or "
    "numbers from elsewhere."
)
LEAKS_COUNTS = "A bound read off private data is private too: draw it, or choose it without these data."
PRIVATE_COUNTS = "Counts are **private too**."


def _noise_share(found: MeanFound) -> float:
    """Return the larger noise on the sum of weights, of both choices; only where counts are private."""
    assert isinstance(found.problem, private_counts.PrivateCountsProblem)
    return max(
        found.problem.noise_share(found.cap.max_contributions),
        found.problem.noise_share(found.smooth.threshold, smooth=True),
    )


def _against_usual(found: MeanFound, usual: UsualRoute) -> str:
    best = found.cap.standard_error
    return (
        f"numerator and denominator, released with ε/2 each, have {_an(found.error_name)} of "
        f"{wording.number(usual.cap.standard_error)} at their own best bound of "
        f"{wording.counted(usual.cap.max_contributions, 'row')}: {wording.change(usual.cap.standard_error, best)}. "
        f"With values centred first it is {wording.number(usual.centred.standard_error)}: "
        f"{wording.change(usual.centred.standard_error, best)}."
    )


def detail(found: MeanFound, dataset: Dataset, parameters: mean.MeanParameters) -> str:
    """Say what changes how the headline is to be read, most important first; empty where nothing does."""
    said, clamped = [], found.clamped
    if clamped is not None:
        values = OutsideCounts(clamped.num_below, clamped.num_above, found.problem.histogram.num_rows)
        if values.exceeds_warning:
            counted = "" if found.problem.table is not None else ", and no number here counts that error"
            said.append(
                f"**{values.percent} of the values are clamped**{counted}: set L and U {RANGE_SOURCE}"
            )
    said += _which_mean(found, parameters)
    said.append(_smooth_weights(found))
    if found.private_counts:
        said.append(PRIVATE_COUNTS)
        share = _noise_share(found)
        if share > private_counts.ROUGH_NOISE:
            said.append(
                f"**The noise is {wording.percent(share)} of the sum of weights**: the delta method is rough here. "
                "Take a larger ε, or do not rely on this error."
            )
    if dataset.is_private:
        said.append(LEAKS_COUNTS if found.private_counts else LEAKS)
        if clamped is not None and looks(parameters):
            said.append(VALUES_LEAK)
        said += _without_the_look(found, parameters)
    if found.problem.histogram.sizes.size == 1:
        said.append("All users have equally many rows, so there is nothing to choose: keep everything.")
    elif found.cap.max_contributions == found.problem.histogram.max_size:
        said.append("Here the best bound keeps every row: privacy noise is small beside the sampling error.")
    return " ".join(said)


def looks(parameters: mean.MeanParameters) -> bool:
    """Return True if anything is read off the values, where there are some."""
    wanted = parameters.variance_source is mean.VarianceSource.FROM_VALUES
    return wanted or parameters.likeness is mean.Likeness.FROM_VALUES


def _without_the_look(found: MeanFound, parameters: mean.MeanParameters) -> list[str]:
    """Return the best bound where counts are private and no values are looked at; nothing where it is so."""
    read = looks(parameters) and found.clamped is not None
    if found.private_counts and not read:
        return []
    asked = replace(parameters, counts=mean.Counts.PRIVATE)
    if asked.variance_source is mean.VarianceSource.FROM_VALUES:
        asked = replace(asked, variance_source=mean.VarianceSource.WORST_CASE)
    if asked.likeness is mean.Likeness.FROM_VALUES:
        asked = replace(asked, likeness=mean.Likeness.ENTERED)
    problem = asked.problem(found.problem.histogram)
    assert isinstance(problem, private_counts.PrivateCountsProblem)
    rows = wording.counted(private_counts.best_cap(problem).max_contributions, "row")
    return [f"With {'σ² of the worst case and ' if read else ''}private counts the best bound is **{rows}**."]


def _which_mean(found: MeanFound, parameters: mean.MeanParameters) -> list[str]:
    """Which mean the error is about, what it rests on, and that there are two of them where it matters."""
    read, problem = found.read, found.problem
    said = []
    if read is not None and not read.tells_table and found.of_table:
        said.append(
            "**Some values are beyond 1e100**: the error about their mean cannot be computed from them."
        )
    share = f"a share ρ of {wording.number(problem.user_share, 2)} of the variance lies between users"
    if read is not None and problem.table is not None:
        clamping = read.table.clamping
        moved = f"leaving rows out shifts the mean by {wording.number(found.cap.shift - clamping)}"
        if clamping:
            moved += f", clamping by {wording.number(clamping)}"
        said.append(f"Error about **the mean of these rows**: {moved}.")
    elif found.of_table:
        # What else it rests on stands in the tab: this is on the first screen.
        between = f"{wording.percent(problem.user_share, 2)} of the variance lies between users"
        rests = between if problem.user_share else "rows are independent"
        said.append(f"Error about **this table's mean**. Assumed: {rests}.")
    elif problem.user_share:
        said.append(f"Error as an estimate **for people like these**. Assumed: {share}.")
    if read is not None and looks(parameters) and abs(read.slope) > CLEAR_SLOPE:
        clamped = read.clamped
        values = "higher" if read.slope > 0.0 else "lower"
        said.append(
            f"**Users with more rows have {values} values**: the mean over rows is {wording.number(clamped.mean)}, "
            f"that over users {wording.number(float(clamped.user_means.mean()))}. Which do you want? This is for the "
            "first; *Behind the answer* has the second."
        )
    return said


def _about_users(found: MeanFound, parameters: mean.MeanParameters) -> dict[str, str]:
    """Say what is known or assumed of users, by name."""
    said: dict[str, str] = {}
    problem, read = found.problem, found.read
    if read is not None and problem.table is not None:
        cap, drawn = found.cap, math.sqrt(found.cap.sampling_variance)
        said["What the error is made of"] = (
            f"rows that are left out shift the mean by {wording.number(cap.shift - read.table.clamping)}, clamping by "
            f"{wording.number(read.table.clamping)}; the draw of rows adds {wording.number(drawn)} and the noise "
            f"{wording.number(math.sqrt(cap.privacy_variance))} (root mean square). Shifts can cancel by luck."
        )
    elif parameters.likeness is mean.Likeness.ENTERED:
        safe = "" if found.of_table else " The error for a larger ρ is safe for every smaller one."
        said["Assumed of users"] = (
            f"the share ρ = {wording.number(problem.user_share, 2)} is an assumption. Purchases had 0.3 to 0.5, "
            f"ratings and waiting times 0 to 0.2.{safe}"
        )
    if len(found.stretches) > 1:
        said["Several stretches are good"] = f"{_stretches(found)}; between them the error is larger."
    if read is not None and looks(parameters):
        said["How users differ"] = share_sentence(read)
    return said


def share_sentence(read: ReadValues) -> str:
    """Say how much of the variance lies between users, with its interval."""
    share = read.share
    if math.isnan(share.estimate):
        return "How much users differ cannot be told: nobody has two rows, or there is only one user."
    about = wording.percent(share.used)
    between = f"{wording.percent(share.low)} to {wording.percent(share.high)}"
    return (
        f"About {about} ({between}, leaving out each user in turn) of the variance of a value lies between users, read "
        "off these values and as private as they are. The larger this share, the less a further row of the same user "
        "tells."
    )


def _stretches(found: MeanFound) -> str:
    """Return all stretches of good bounds, or how many there are beside the one of the best."""
    if len(found.stretches) > MOST_STRETCHES:
        several = wording.number(len(found.stretches))
        return f"{several} stretches of bounds stay within 5{wording.PERCENT} of the best error"
    named = [
        wording.number(low) if low == high else f"{wording.number(low)} to {wording.number(high)}"
        for low, high in found.stretches
    ]
    listed = f"{', '.join(named[:-1])} and {named[-1]}"
    return f"bounds of {listed} rows stay within 5{wording.PERCENT} of the best error"


MOST_STRETCHES = 4
"""That a sentence names."""


def _an(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _smooth_weights(found: MeanFound) -> str:
    smooth, best = found.smooth.standard_error, found.cap.standard_error
    change = wording.change(smooth, best)
    if change == "the same":
        return "Smooth weights would gain nothing."
    return (
        f"If your library can weight rows, smooth weights with a bound of {wording.number(found.smooth.threshold)} "
        f"err by {wording.number(smooth)}: {change}."
    )


def good_enough(found: MeanFound) -> str:
    """From which bound to which one the error stays near the best."""
    within, share = found.within, f"5{wording.PERCENT}"
    if len(found.stretches) > 1:
        return f"{_stretches(found)}."
    if within[0] == within[1]:
        only = wording.counted(within[0], "row")
        if within[1] < found.problem.histogram.max_size:
            return f"only {only}; every other bound is more than {share} worse in {found.error_name}."
        smaller = (
            f"every smaller bound is more than {share} worse in {found.error_name}, and "
            if within[0] > 1
            else ""
        )
        return f"only {only}; {smaller}a larger one keeps no more rows."
    return f"{wording.number(within[0])} to {wording.counted(within[1], 'row')}, within {share}."


def _half_or_double(found: MeanFound) -> str:
    h, best = found.cap.max_contributions, found.cap.standard_error
    caps = ([("half", max(h // 2, 1))] if h > 1 else []) + [("double", 2 * h)]
    errors = found.standard_errors([cap for _, cap in caps])
    parts = [
        f"{name} ({wording.number(cap)}) costs {wording.change(error, best)}"
        for (name, cap), error in zip(caps, errors, strict=True)
    ]
    return ", ".join(parts) + f" in {found.error_name}."


def hidden(found: MeanFound, read: ReadValues) -> tuple[str, ...]:
    """Say what the values say of users who differ, and how far the bounds move the mean, in words."""
    plain, shifts = read.clamped.mean, []
    for name, bound, choice in (
        ("bounded", float(found.cap.max_contributions), found.cap),
        ("smoothly weighted", found.smooth.threshold, found.smooth),
    ):
        weights = mean.growth(found.problem, bound) if choice is found.smooth else mean.Growth()
        if weights.plain:
            shift = float(bounded_mean(read.clamped, bound)) - plain
        else:
            each = weights.in_rows(bound, read.clamped.sizes)
            shift = float(each @ read.clamped.user_means / each.sum()) - plain
        sentence = f"The {name} mean differs from the plain mean by {wording.number(shift)}"
        if found.problem.table is None:
            errors = wording.number(abs(shift) / choice.standard_error, 2)
            sentence += f", {errors} times the {found.error_name} above, which does not contain this shift"
        shifts.append(f"{sentence}.")
    return (*shifts, share_sentence(read))


def files(found: MeanFound) -> str:
    """Say what the files of weights and of the choice hold."""
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
