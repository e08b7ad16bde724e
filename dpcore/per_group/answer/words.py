"""The solution for a release per group in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer.answer import BIAS, NOISE, SAMPLING, ErrorPart, Number, Proof, build_error_parts
from dpcore.answer.distribution import RANGE_SOURCE, OutsideCounts
from dpcore.common import noise_error, wording
from dpcore.common.privacy import Neighbours
from dpcore.dataset import Contribution, Dataset
from dpcore.per_group import summary
from dpcore.per_group.answer.error_map import SelectionSolution, split_error
from dpcore.per_group.answer.solution import MIN_SAVING, USEFUL_ERROR, PerGroupSolution
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import COVERED
from dpcore.per_group.summary import OBJECTIVES, error_words
from dpcore.per_group.whole_vector import VectorRule, private_margin


def describe_released(selected: SelectionSolution, groups: int) -> str:
    """Describe the expected number of released groups; empty if nothing is released."""
    counts = [
        (name, wording.number(outcome.expected_groups))
        for name, outcome in (("the pair", selected.pair), ("scaling", selected.vector_groups))
        if outcome is not None
    ]
    if not counts:
        return ""
    text = ", ".join(f"{number} with {name}" for name, number in counts)
    return f"Released on average, of {wording.counted(groups, 'group')}: {text}."


def _budget(parameters: PerGroupParameters) -> str:
    """Describe how epsilon and delta are split between selection and noise."""
    noise = f"ε = {wording.entered(parameters.amount_epsilon)}"
    if parameters.delta is not None:
        noise += f" and δ = {wording.entered(parameters.delta)}"
    assert parameters.selection_delta is not None
    return (
        f"ε = {wording.entered(parameters.selection_epsilon)} and δ = {wording.entered(parameters.selection_delta)} "
        f"select groups ({parameters.selection.value}), {noise} {'are' if parameters.delta else 'is'} for the noise."
    )


def list_selection_facts(solution: PerGroupSolution, selected: SelectionSolution) -> dict[str, str]:
    """Build the facts: the split of the budget, the parts of the error, and other bounds."""
    facts = {"Budget": _budget(solution.parameters)}
    if selected.pair is not None:
        kept_part, lost_part = split_error(solution.problem, selected.pair)
        facts["What the error consists of"] = (
            f"groups that are not released {wording.percent(lost_part / (kept_part + lost_part))}, released ones "
            f"{wording.percent(kept_part / (kept_part + lost_part))}."
        )
    if selected.vector is not None:
        rule = "one level for each user's vector" if selected.vector.rule is VectorRule.CAP else "scaling"
        facts["Without sampling amounts"] = (
            f"{rule} errs by {error_words(solution.parameters, selected.vector.error)}, "
            f"the best pair by {error_words(solution.parameters, solution.pair_error)}. "
            f"Only the selection keeps {wording.counted(selected.vector.max_groups, 'group')} of each user. Best of "
            f"{wording.number(selected.vector.evaluations)} settings; nothing proves that there is no better one."
        )
    if selected.tuner_groups is not None:
        facts["What PipelineDP's rule keeps"] = (
            f"it keeps {wording.number(selected.tuner_groups.expected_groups)} of "
            f"{wording.counted(solution.num_groups, 'group')} on average: groups that are not released cost it "
            "nothing."
        )
    facts["Programs"] = "are written for public lists of groups; there is none for private groups yet."
    return facts


def survival_sentences(solution: PerGroupSolution) -> list[str]:
    """Describe the expected number of released groups and their size, for each choice of bounds."""
    assert solution.selected is not None
    selected = solution.selected
    choices = (
        ("With the best pair", selected.pair),
        ("With users scaled", selected.vector_groups),
        ("With the pair of PipelineDP's rule", selected.tuner_groups),
    )
    sentences = []
    for name, groups in choices:
        if groups is None:
            continue
        likely = selected.users[groups.keep_probability >= 0.5]
        size_text = (
            f"the smallest that is released more often than not has {wording.counted(int(likely.min()), 'user')}"
            if likely.size
            else "none is released more often than not"
        )
        sentences.append(
            f"**{name}:** {wording.number(groups.expected_groups)} of "
            f"{wording.counted(solution.num_groups, 'group')} are released on average; {size_text}."
        )
    if not sentences:
        sentence = "No bounds that were looked at err less than releasing no group."
        sentences.append("Releasing no group errs least." if solution.choice.settled else sentence)
    return sentences


LEAKS = "A pair read off private data is private too: draw it, or choose it without these data."
LEAKS_UNDRAWN = "A pair read off private data is private too: choose it without these data."
GROUPS_LEAK = (
    "**Groups and pair were read off private data.** Which groups there are tells who is in them: enter how many are "
    "on a public list, or select groups privately (*More settings*)."
)


def amount(solution: PerGroupSolution, value: float) -> str:
    """Format a bound on an amount with its unit."""
    return summary.amount_words(solution.parameters, value)


def error(solution: PerGroupSolution, value: float) -> str:
    """Format an error with its unit."""
    return summary.error_words(solution.parameters, value)


def pair_words(solution: PerGroupSolution) -> str:
    """Return the best pair as an imperative phrase."""
    assert solution.pair is not None
    groups = wording.counted(solution.pair.max_groups, "group")
    if solution.parameters.statistic is Statistic.USERS:
        return f"Count each user in at most {groups}"
    value = amount(solution, solution.pair.max_amount)
    if solution.parameters.statistic is Statistic.SIGNED_SUM:
        return f"Keep at most {groups} of each user, and {value} in each, on either side of 0"
    return f"Keep at most {groups} of each user, and {value} in each"


def headline(solution: PerGroupSolution) -> str:
    """Return the recommendation in one sentence: the best pair of bounds, or the alternative if there is none."""
    epsilon = wording.entered(solution.parameters.epsilon)
    if solution.pair is not None:
        return f"{pair_words(solution)}."
    if solution.saved_share < MIN_SAVING:
        value = "the middle of the range" if solution.is_mean else "0"
        alternative = (
            f"publishing {value} in every group" if solution.selected is None else "publishing no group"
        )
        if solution.choice.settled:
            pair = (
                "no pair of bounds"
                if solution.choice.certificate is not None
                else "no pair that was looked at"
            )
            return f"Release nothing at ε = {epsilon}: {pair} errs less than {alternative}."
        return (
            f"No pair was found at ε = {epsilon} that errs less than {alternative}. "
            "The search does not rule one out."
        )
    saved = wording.percent(solution.saved_share)
    return f"Keep every row, and scale the user: {saved} less error than publishing nothing."


def numbers(solution: PerGroupSolution) -> tuple[Number, ...]:
    """Return the numbers: the pair and its error, the released private groups, and the bound on whole vectors."""
    pair, entries = solution.pair, []
    objective = OBJECTIVES[solution.parameters.objective]
    if pair is not None:
        counts_users = solution.parameters.statistic is Statistic.USERS
        entries.append(
            Number(
                summary.pair_label(solution.parameters),
                summary.pair_words(solution.parameters, pair.max_groups, pair.max_amount),
                "",
                "Upper bounds on groups per user, and on what a user adds to a group.",
                clipboard_text=f"{pair.max_groups}"
                if counts_users
                else f"{pair.max_groups}, {pair.max_amount:.12g}",
            )
        )
    else:
        entries.append(Number("Best pair", "none" if solution.choice.settled else "none found"))
    entries.append(
        Number(
            "Error of the pair" if pair is not None else "Error of publishing nothing",
            error(solution, solution.pair_error),
            f"({wording.change(solution.pair_error, solution.choice.error_of_nothing)} than no release)"
            if pair is not None
            else "",
            f"The {objective}.",
            value=solution.pair_error,
            clipboard_text=error(solution, solution.pair_error),
        )
    )
    if solution.selected is not None and solution.selected.pair is not None:
        entries.append(
            Number(
                "Groups released",
                wording.number(solution.selected.pair.expected_groups),
                f"of {solution.num_groups:,}, on average with the pair",
            )
        )
    scaled = solution.scaled if solution.selected is None else solution.selected.vector
    if scaled is not None:
        name = "Bound of one level" if scaled.rule is VectorRule.CAP else "Bound of the scaling"
        entries.append(
            Number(name, wording.number(summary.round_up(scaled.max_norm)), "norm of a user's vector", _NORM)
        )
        entries.append(
            Number(
                "Error of scaling",
                error(solution, scaled.error),
                f"{wording.change(scaled.error, solution.pair_error)} than the pair",
                f"The {objective}.",
            )
        )
    return tuple(entries)


_NORM = (
    "The sum of what a user adds to all groups (Laplace), or the root of the sum of its squares (Gaussian), is "
    "brought to at most this bound: by cutting all of the user's groups at one level, or by scaling all of them "
    "alike, whichever errs less here."
)


def error_parts(solution: PerGroupSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the error of the best pair; their squares add up to its square."""
    if solution.error_parts is None:
        return ()
    best_parts = solution.error_parts
    part_values = {
        BIAS: best_parts.clipped + best_parts.left_out,
        SAMPLING: best_parts.sampling,
        NOISE: best_parts.noise,
    }
    squares = {name: best_parts.total * max(value, 0.0) for name, value in part_values.items()}
    return build_error_parts({name: math.sqrt(square) for name, square in squares.items()}, wording.number)


def detail(solution: PerGroupSolution, data: Dataset) -> str:
    """Build the sentences that qualify the headline."""
    sentences = []
    outside = _values_outside(solution, data)
    if outside is not None and outside.exceeds_warning:
        sentences.append(
            f"**{outside.percent} of the values are clamped**, and no number here counts that error: "
            f"set L and U {RANGE_SOURCE}"
        )
    if solution.selected is not None:
        sentences.append(describe_released(solution.selected, solution.num_groups))
    if solution.saved_share >= MIN_SAVING:
        sentences.append(_describe_scaling(solution))
    if solution.is_mean and solution.mean_size is not None:
        sentences.append(
            f"Groups of at least {wording.counted(solution.mean_size, 'row')} are better off with their own mean than "
            "with one mean for all."
        )
    elif solution.is_mean and solution.pair is not None:
        sentences.append("**Of little use:** one mean for all groups would err less.")
    if data.is_private:
        if solution.parameters.num_groups is None and solution.selected is None:
            sentences.append(GROUPS_LEAK)
        else:
            has_private_choice = solution.parameters.statistic in COVERED and solution.selected is None
            sentences.append(LEAKS if has_private_choice else LEAKS_UNDRAWN)
    return " ".join(sentences)


def _values_outside(solution: PerGroupSolution, data: Dataset) -> OutsideCounts | None:
    """Count the values that a mean clamps, or return None if the data have no values."""
    if not solution.is_mean or data.values is None:
        return None
    values, (lower, upper) = data.values.values, solution.parameters.mean_range
    return OutsideCounts(int(np.sum(values < lower)), int(np.sum(values > upper)), values.size)


def _describe_scaling(solution: PerGroupSolution) -> str:
    """Describe the smaller error of bounding whole vectors."""
    selected = None if solution.selected is None else solution.selected.vector
    scaled = solution.scaled if selected is None else selected
    assert scaled is not None
    action = "Cutting users at one level" if scaled.rule is VectorRule.CAP else "Scaling users"
    groups = "" if selected is None else f", of at most {wording.counted(selected.max_groups, 'group')},"
    saved = wording.percent(solution.saved_share)
    return f"{action} instead{groups} errs {saved} less: {error(solution, scaled.error)}."


def describe_near_optimal(solution: PerGroupSolution) -> str:
    """Describe the numbers of groups with a near-optimal error; empty if these were not computed."""
    if solution.good_groups is None or solution.pair is None:
        return ""
    low, high = solution.good_groups
    has_amount = solution.parameters.statistic is not Statistic.USERS
    amount_text = f" × {amount(solution, solution.pair.max_amount)}" if has_amount else ""
    if low == high:
        return f"only {wording.counted(low, 'group')}{amount_text}."
    upper = wording.counted(high, "group")
    # Short, as it must fit in one line beside the figure.
    return f"{wording.number(low)}–{upper}{amount_text}, within 5{wording.PERCENT}."


def facts(solution: PerGroupSolution, data: Dataset) -> dict[str, str]:
    """Build the facts behind the pair, one sentence each."""
    facts = {} if solution.selected is None else list_selection_facts(solution, solution.selected)
    if solution.error_parts is not None:
        split, total = solution.error_parts, solution.error_parts.total
        shares = [
            ("amounts above their bound", split.clipped),
            ("groups beyond theirs", split.left_out),
            ("the random choice of groups", split.sampling),
            ("noise", split.noise),
        ]
        text = ", ".join(f"{name} {wording.percent(value / total)}" for name, value in shares)
        facts["What the error consists of"] = f"{text}."
    if solution.pair is not None:
        per_user = solution.problem.pairs.groups_per_user
        num_users = int(np.sum(per_user > solution.pair.max_groups))
        num_pairs = int(np.sum(np.abs(solution.problem.amounts) > solution.pair.max_amount))
        facts["Who is affected"] = (
            f"{wording.counted(num_users, 'user')} ({wording.percent(num_users / per_user.size)}) "
            f"{wording.agreeing(num_users, 'is', 'are')} in more groups than the bound; "
            f"{wording.counted(num_pairs, 'pair')} of a user and a group "
            f"({wording.percent(num_pairs / solution.problem.pairs.num_pairs)}) "
            f"{wording.agreeing(num_pairs, 'holds', 'hold')} more than the bound on amounts."
        )
    if solution.cap is not None and solution.radial is not None:
        facts["Without sampling"] = (
            f"cutting each user's vector at one level errs by {error(solution, solution.cap.error)}, scaling all "
            f"groups of a user alike by {error(solution, solution.radial.error)}, the best pair by "
            f"{error(solution, solution.pair_error)}. For counts and sums of public groups there is, for every pair, a "
            "level that errs no more in any group. So over all groups the best level is no worse than the best pair. "
            "In a single group it may be."
        )
    elif not solution.is_mean and solution.selected is None:
        facts["Without sampling"] = (
            "nothing is promised: with sums of any sign a pair of bounds can be better than every level."
        )
    if (outside := _values_outside(solution, data)) is not None:
        sentence = outside.write_sentence("the range from L to U", " and is clamped", " and are clamped")
        clamped = " The error is that about the means of the clamped values." if outside.num_outside else ""
        facts["Values outside the range"] = sentence + clamped
    facts[noise_error.NAME] = _describe_users(solution)
    for name, pair in (("PipelineDP's rule", solution.tuner), ("Your own pair", solution.own_pair)):
        if pair is not None:
            facts[f"{name}, {wording.number(pair.max_groups)} × {wording.number(pair.max_amount)}"] = (
                f"error {error(solution, pair.error)}, {wording.change(pair.error, solution.pair_error)} compared with "
                "the best."
            )
    return facts | {"Choose privately offers": describe_private_choice(solution, data)}


def describe_private_choice(solution: PerGroupSolution, data: Dataset) -> str:
    """Describe which bounds *Choose privately* offers for these parameters."""
    parameters = solution.parameters
    if parameters.statistic not in COVERED or parameters.selection.private:
        return "no pair: one is drawn for counts and for sums of amounts of at least 0, on a public list of groups."
    pair = (
        "the pair, with one ε for both numbers. It is drawn for the least sum of all groups' mean absolute errors; the "
        "root mean square may be up to half as large again, most where one group holds nearly everything"
    )
    contributions = {Statistic.ROWS: Contribution.ROWS, Statistic.USERS: Contribution.DISTINCT_TASKS}
    public = (
        parameters.num_groups if parameters.num_groups is not None or data.is_private else solution.num_groups
    )
    margin = private_margin(parameters, public or 1)
    if (
        margin is None
        or solution.scaled is None
        or contributions.get(parameters.statistic) is not data.contribution
    ):
        return f"{pair}."
    times = "" if parameters.neighbours is Neighbours.ADD_OR_REMOVE_USER else "2 × "
    users = (
        f"({times}number of groups − 1) / {wording.entered(parameters.epsilon)} users"
        if public is None
        else wording.counted(margin, "user")
    )
    return (
        f"{pair}. For a *Count of rows* with a margin of {users} it has the bound on a user's whole vector, which errs "
        "less still where your library takes one bound for all groups of a user."
    )


def proofs(solution: PerGroupSolution) -> tuple[Proof, ...]:
    """Return the certificates of pair, cap and radial clip, each with its stop reason."""
    entries = []
    if solution.choice.certificate is not None:
        entries.append(("Pair", solution.choice.certificate, solution.choice.stop_reason))
    if solution.cap is not None:
        entries.append(("One level", solution.cap.certificate, solution.cap.stop_reason))
    if solution.radial is not None:
        entries.append(("Scaling", solution.radial.certificate, solution.radial.stop_reason))
    return tuple(entries)


def describe_data(solution: PerGroupSolution, data: Dataset) -> str:
    """Describe the data that the answer was computed from, and what is not proved."""
    pairs = solution.problem.pairs
    sentences = [
        f"{wording.counted(pairs.num_pairs, 'pair')} of a user and a group; "
        f"{wording.counted(pairs.num_groups, 'group')} of {wording.plain(solution.column)} "
        f"{'released' if solution.selected is None else 'in the data'}."
    ]
    assert data.pairs is not None
    if data.pairs.rows_without_group:
        sentences.append(f"{wording.counted(data.pairs.rows_without_group, 'row')} without a group stay out.")
    if not solution.is_mean and solution.choice.certificate is None:
        sentences.append("Nothing proves that the pair is the best.")
    if solution.is_mean:
        sentences.append(solution.choice.stop_reason)
    return " ".join(sentences)


def group_sentences(solution: PerGroupSolution) -> list[str]:
    """Describe which groups have useful numbers."""
    if solution.is_mean:
        if solution.mean_size is None:
            return ["One mean for all groups errs less than their own means."]
        return [
            f"Over the groups of at least {wording.counted(solution.mean_size, 'row')} their own means err less than "
            "one mean for all; below that size they do not."
        ]
    sentences = []
    choices = [("With the best pair" if solution.pair is not None else "Publishing 0", solution.errors)]
    if solution.errors_scaled is not None:
        choices.append(("With every row kept and users scaled", solution.errors_scaled))
    if solution.selected is not None:
        sentences.append("A group that is not released counts as 0: it errs by its whole size.")
    for name, errors in choices:
        useless, size = solution.count_useless(errors), solution.find_useful_size(errors)
        ten = wording.percent(USEFUL_ERROR)
        useful = (
            f"from a size of {wording.number(size)} on, every group's error is below {ten}"
            if size is not None
            else f"the largest group's error is above {ten}"
        )
        sentences.append(
            f"**{name}:** {useful}; {wording.number(useless)} of {wording.counted(solution.num_groups, 'group')} "
            f"{wording.agreeing(useless, 'errs', 'err')} by their whole size or more."
        )
    return sentences


def _describe_users(solution: PerGroupSolution) -> str:
    """Describe the assumptions about users, and for means the larger error as an estimate for a population."""
    sentence = "nothing is assumed of them: the errors are those on these very data."
    if not solution.is_mean:
        return sentence
    problem, rows = solution.problem, solution.problem.pairs.rows.astype(np.float64)
    group_rows, squares = problem.per_group(rows), problem.per_group(rows**2)
    is_occupied = group_rows > 0.0
    ratios = np.sqrt(1.0 + noise_error.ASSUMED_SHARE * (squares[is_occupied] / group_rows[is_occupied] - 1.0))
    return (
        f"{sentence} As an estimate for people like these, a group's mean is off by more than that of independent "
        f"rows: if a share ρ = {noise_error.ASSUMED_SHARE} of the variance lies between users, its standard error "
        "before "
        f"noise is {wording.number(float(np.median(ratios)))} times theirs in the middle group and "
        f"{wording.number(float(ratios.max()))} times in the worst."
    )
