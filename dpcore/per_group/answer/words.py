"""The answer for a release per group in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import Number, Proof
from dpcore.answer.parts import BIAS, NOISE, SAMPLING, ErrorPart, build_error_parts
from dpcore.answer.value_range import RANGE_SOURCE, OutsideCounts
from dpcore.common import alike, wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Contribution, Dataset
from dpcore.per_group import words
from dpcore.per_group.answer import selected_words
from dpcore.per_group.answer.found import USEFUL, WORTH, PerGroupFound
from dpcore.per_group.parameters import Statistic
from dpcore.per_group.private_pair import COVERED
from dpcore.per_group.whole_vector import VectorRule, private_margin
from dpcore.per_group.words import OBJECTIVES

LEAKS = "A pair read off private data is private too: draw it, or choose it without these data."
LEAKS_UNDRAWN = "A pair read off private data is private too: choose it without these data."
GROUPS_LEAK = (
    "**Groups and pair were read off private data.** Which groups there are tells who is in them: enter how many are "
    "on a public list, or select groups privately (*More settings*)."
)


def amount(view: PerGroupFound, value: float) -> str:
    """Return a bound on an amount with its unit."""
    return words.amount_words(view.parameters, value)


def error(view: PerGroupFound, value: float) -> str:
    """Return an error with its unit."""
    return words.error_words(view.parameters, value)


def pair_words(view: PerGroupFound) -> str:
    """Say what the best pair does, an imperative."""
    assert view.pair is not None
    groups = wording.counted(view.pair.max_groups, "group")
    if view.parameters.statistic is Statistic.USERS:
        return f"Count each user in at most {groups}"
    value = amount(view, view.pair.max_amount)
    if view.parameters.statistic is Statistic.SIGNED_SUM:
        return f"Keep at most {groups} of each user, and {value} in each, on either side of 0"
    return f"Keep at most {groups} of each user, and {value} in each"


def headline(view: PerGroupFound) -> str:
    """Say what to do, one sentence: the pair that libraries ask for, wherever there is one."""
    epsilon = wording.entered(view.parameters.epsilon)
    if view.pair is not None:
        return f"{pair_words(view)}."
    if view.saved < WORTH:
        what = "the middle of the range" if view.is_mean else "0"
        nothing = f"publishing {what} in every group" if view.selected is None else "publishing no group"
        if view.choice.settled:
            pair = (
                "no pair of bounds" if view.choice.certificate is not None else "no pair that was looked at"
            )
            return f"Release nothing at ε = {epsilon}: {pair} errs less than {nothing}."
        return f"No pair was found at ε = {epsilon} that errs less than {nothing}. The search does not rule one out."
    return f"Keep every row, and scale the user: {wording.percent(view.saved)} less error than publishing nothing."


def numbers(view: PerGroupFound) -> tuple[Number, ...]:
    """Return the pair with its error, what is released of private groups, and what bounding whole vectors does."""
    pair, found = view.pair, []
    what = OBJECTIVES[view.parameters.objective]
    if pair is not None:
        alone = view.parameters.statistic is Statistic.USERS
        found.append(
            Number(
                words.pair_label(view.parameters),
                words.pair_words(view.parameters, pair.max_groups, pair.max_amount),
                "",
                "Upper bounds on groups per user, and on what a user adds to a group.",
                clipboard_text=f"{pair.max_groups}"
                if alone
                else f"{pair.max_groups}, {pair.max_amount:.12g}",
            )
        )
    else:
        found.append(Number("Best pair", "none" if view.choice.settled else "none found"))
    found.append(
        Number(
            "Error of the pair" if pair is not None else "Error of publishing nothing",
            error(view, view.pair_error),
            f"({wording.change(view.pair_error, view.choice.error_of_nothing)} than no release)"
            if pair is not None
            else "",
            f"The {what}.",
            value=view.pair_error,
            clipboard_text=error(view, view.pair_error),
        )
    )
    if view.selected is not None and view.selected.pair is not None:
        found.append(
            Number(
                "Groups released",
                wording.number(view.selected.pair.expected_groups),
                f"of {view.num_groups:,}, on average with the pair",
            )
        )
    scaled = view.scaled if view.selected is None else view.selected.vector
    if scaled is not None:
        name = "Bound of one level" if scaled.rule is VectorRule.CAP else "Bound of the scaling"
        found.append(
            Number(name, wording.number(words.short(scaled.max_norm)), "norm of a user's vector", _NORM)
        )
        found.append(
            Number(
                "Error of scaling",
                error(view, scaled.error),
                f"{wording.change(scaled.error, view.pair_error)} than the pair",
                f"The {what}.",
            )
        )
    return tuple(found)


_NORM = (
    "The sum of what a user adds to all groups (Laplace), or the root of the sum of its squares (Gaussian), is "
    "brought to at most this bound: by cutting all of the user's groups at one level, or by scaling all of them "
    "alike, whichever errs less here."
)


def error_parts(view: PerGroupFound) -> tuple[ErrorPart, ...]:
    """Say what the error of the best pair consists of; the squares of the parts add up to its square."""
    if view.parts is None:
        return ()
    of = view.parts
    adds = {BIAS: of.clipped + of.left_out, SAMPLING: of.sampling, NOISE: of.noise}
    squares = {name: of.total * max(part, 0.0) for name, part in adds.items()}
    return build_error_parts({name: math.sqrt(square) for name, square in squares.items()}, wording.number)


def detail(view: PerGroupFound, data: Dataset) -> str:
    """Say what changes how the headline is to be read; empty where nothing does."""
    said = []
    outside = _values_outside(view, data)
    if outside is not None and outside.exceeds_warning:
        said.append(
            f"**{outside.percent} of the values are clamped**, and no number here counts that error: "
            f"set L and U {RANGE_SOURCE}"
        )
    if view.selected is not None:
        said.append(selected_words.released(view.selected, view.num_groups))
    if view.saved >= WORTH:
        said.append(_scaling(view))
    if view.is_mean and view.mean_size is not None:
        said.append(
            f"Groups of at least {wording.counted(view.mean_size, 'row')} are better off with their own mean than with "
            "one mean for all."
        )
    elif view.is_mean and view.pair is not None:
        said.append("**Of little use:** one mean for all groups would err less.")
    if data.is_private:
        if view.parameters.num_groups is None and view.selected is None:
            said.append(GROUPS_LEAK)
        else:
            drawable = view.parameters.statistic in COVERED and view.selected is None
            said.append(LEAKS if drawable else LEAKS_UNDRAWN)
    return " ".join(said)


def _values_outside(view: PerGroupFound, data: Dataset) -> OutsideCounts | None:
    """Return how many values a mean clamps; None if the values are not at hand."""
    if not view.is_mean or data.values is None:
        return None
    values, (lower, upper) = data.values.values, view.parameters.mean_range
    return OutsideCounts(int(np.sum(values < lower)), int(np.sum(values > upper)), values.size)


def _scaling(view: PerGroupFound) -> str:
    """Say what bounding whole vectors would gain."""
    selected = None if view.selected is None else view.selected.vector
    scaled = view.scaled if selected is None else selected
    assert scaled is not None
    how = "Cutting users at one level" if scaled.rule is VectorRule.CAP else "Scaling users"
    groups = "" if selected is None else f", of at most {wording.counted(selected.max_groups, 'group')},"
    return f"{how} instead{groups} errs {wording.percent(view.saved)} less: {error(view, scaled.error)}."


def good_enough(view: PerGroupFound) -> str:
    """From how many groups to how many the error stays near the best."""
    if view.good_groups is None or view.pair is None:
        return ""
    low, high = view.good_groups
    of_each = view.parameters.statistic is not Statistic.USERS
    at = f" × {amount(view, view.pair.max_amount)}" if of_each else ""
    if low == high:
        return f"only {wording.counted(low, 'group')}{at}."
    upper = wording.counted(high, "group")
    # As short as it can be: it takes one line beside the figure.
    return f"{wording.number(low)}–{upper}{at}, within 5{wording.PERCENT}."


def facts(view: PerGroupFound, data: Dataset) -> dict[str, str]:
    """Say what stands behind the pair, by name."""
    facts = {} if view.selected is None else selected_words.facts(view, view.selected)
    if view.parts is not None:
        parts, whole = view.parts, view.parts.total
        shares = [
            ("amounts above their bound", parts.clipped),
            ("groups beyond theirs", parts.left_out),
            ("the random choice of groups", parts.sampling),
            ("noise", parts.noise),
        ]
        text = ", ".join(f"{name} {wording.percent(value / whole)}" for name, value in shares)
        facts["What the error consists of"] = f"{text}."
    if view.pair is not None:
        per_user = view.problem.pairs.groups_per_user
        over = int(np.sum(per_user > view.pair.max_groups))
        above = int(np.sum(np.abs(view.problem.amounts) > view.pair.max_amount))
        facts["Who is affected"] = (
            f"{wording.counted(over, 'user')} ({wording.percent(over / per_user.size)}) "
            f"{wording.agreeing(over, 'is', 'are')} in more groups than the bound; "
            f"{wording.counted(above, 'pair')} of a user and a group "
            f"({wording.percent(above / view.problem.pairs.num_pairs)}) "
            f"{wording.agreeing(above, 'holds', 'hold')} more than the bound on amounts."
        )
    if view.cap is not None and view.radial is not None:
        facts["Without sampling"] = (
            f"cutting each user's vector at one level errs by {error(view, view.cap.error)}, scaling all groups of a "
            f"user alike by {error(view, view.radial.error)}, the best pair by {error(view, view.pair_error)}. For "
            "counts and sums of public groups there is, for every pair, a level that errs no more in any group. So "
            "over all groups the best level is no worse than the best pair. In a single group it may be."
        )
    elif not view.is_mean and view.selected is None:
        facts["Without sampling"] = (
            "nothing is promised: with sums of any sign a pair of bounds can be better than every level."
        )
    if (outside := _values_outside(view, data)) is not None:
        sentence = outside.write_sentence("the range from L to U", " and is clamped", " and are clamped")
        clamped = " The error is that about the means of the clamped values." if outside.num_outside else ""
        facts["Values outside the range"] = sentence + clamped
    facts[alike.NAME] = _users_who_differ(view)
    for name, other in (("PipelineDP's rule", view.tuner), ("Your own pair", view.own)):
        if other is not None:
            facts[f"{name}, {wording.number(other.max_groups)} × {wording.number(other.max_amount)}"] = (
                f"error {error(view, other.error)}, {wording.change(other.error, view.pair_error)} compared with "
                "the best."
            )
    return facts | {"Choose privately offers": chosen_privately(view, data)}


def chosen_privately(view: PerGroupFound, data: Dataset) -> str:
    """Say what *Choose privately* has for this question, and what it has not."""
    asked = view.parameters
    if asked.statistic not in COVERED or asked.selection.private:
        return "no pair: one is drawn for counts and for sums of amounts of at least 0, on a public list of groups."
    pair = (
        "the pair, with one ε for both numbers. It is drawn for the least sum of all groups' mean absolute errors; the "
        "root mean square may be up to half as large again, most where one group holds nearly everything"
    )
    counted = {Statistic.ROWS: Contribution.ROWS, Statistic.USERS: Contribution.DISTINCT_TASKS}
    public = asked.num_groups if asked.num_groups is not None or data.is_private else view.num_groups
    margin = private_margin(asked, public or 1)
    if margin is None or view.scaled is None or counted.get(asked.statistic) is not data.contribution:
        return f"{pair}."
    times = "" if asked.neighbours is Neighbours.ADD_OR_REMOVE_USER else "2 × "
    users = (
        f"({times}number of groups − 1) / {wording.entered(asked.epsilon)} users"
        if public is None
        else wording.counted(margin, "user")
    )
    return (
        f"{pair}. For a *Count of rows* with a margin of {users} it has the bound on a user's whole vector, which errs "
        "less still where your library takes one bound for all groups of a user."
    )


def proofs(view: PerGroupFound) -> tuple[Proof, ...]:
    """Say what is proved to be best."""
    said = []
    if view.choice.certificate is not None:
        said.append(("Pair", view.choice.certificate, view.choice.ended))
    if view.cap is not None:
        said.append(("One level", view.cap.certificate, view.cap.ended))
    if view.radial is not None:
        said.append(("Scaling", view.radial.certificate, view.radial.ended))
    return tuple(said)


def what_is_used(view: PerGroupFound, data: Dataset) -> str:
    """Say what the answer was computed from, and what is not proved."""
    pairs = view.problem.pairs
    told = [
        f"{wording.counted(pairs.num_pairs, 'pair')} of a user and a group; "
        f"{wording.counted(pairs.num_groups, 'group')} of {wording.plain(view.column)} "
        f"{'released' if view.selected is None else 'in the data'}."
    ]
    assert data.pairs is not None
    if data.pairs.rows_without_group:
        told.append(f"{wording.counted(data.pairs.rows_without_group, 'row')} without a group stay out.")
    if not view.is_mean and view.choice.certificate is None:
        told.append("Nothing proves that the pair is the best.")
    if view.is_mean:
        told.append(view.choice.ended)
    return " ".join(told)


def group_sentences(view: PerGroupFound) -> list[str]:
    """Which groups' numbers are of use, in words."""
    if view.is_mean:
        if view.mean_size is None:
            return ["One mean for all groups errs less than their own means."]
        return [
            f"Over the groups of at least {wording.counted(view.mean_size, 'row')} their own means err less than one "
            "mean for all; below that size they do not."
        ]
    sentences = []
    ways = [("With the best pair" if view.pair is not None else "Publishing 0", view.errors)]
    if view.errors_scaled is not None:
        ways.append(("With every row kept and users scaled", view.errors_scaled))
    if view.selected is not None:
        sentences.append("A group that is not released counts as 0: it errs by its whole size.")
    for name, errors in ways:
        useless, size = view.useless(errors), view.useful_from(errors)
        ten = wording.percent(USEFUL)
        useful = (
            f"from a size of {wording.number(size)} on, every group's error is below {ten}"
            if size is not None
            else f"the largest group's error is above {ten}"
        )
        sentences.append(
            f"**{name}:** {useful}; {wording.number(useless)} of {wording.counted(view.num_groups, 'group')} "
            f"{wording.agreeing(useless, 'errs', 'err')} by their whole size or more."
        )
    return sentences


def _users_who_differ(view: PerGroupFound) -> str:
    """Say what is assumed of users, and what a group's mean as an estimate would need."""
    said = "nothing is assumed of them: the errors are those on these very data."
    if not view.is_mean:
        return said
    of, rows = view.problem, view.problem.pairs.rows.astype(np.float64)
    together, squares = of.per_group(rows), of.per_group(rows**2)
    held = together > 0.0
    times = np.sqrt(1.0 + alike.ASSUMED_SHARE * (squares[held] / together[held] - 1.0))
    return (
        f"{said} As an estimate for people like these, a group's mean is off by more than that of independent rows: if "
        f"a share ρ = {alike.ASSUMED_SHARE} of the variance lies between users, its standard error before noise is "
        f"{wording.number(float(np.median(times)))} times theirs in the middle group and "
        f"{wording.number(float(times.max()))} times in the worst."
    )
