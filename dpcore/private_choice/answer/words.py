"""The sentences on choosing a number privately: headline, numbers, facts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, format_rounded_up
from dpcore.per_group.answer.words import format_pair
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.per_group.private_pair import expected_excess as expected_of_pair
from dpcore.private_choice import choice
from dpcore.private_choice.choice import Forecast, PrivateChoice
from dpcore.private_choice.comparison import RUNS, Leak, PrivateSolution
from dpcore.private_choice.parameters import NUMBER_NAMES, OF_MEAN, BoundPurpose, PrivateParameters, Relation
from dpcore.private_choice.private_range import PrivateRange, RangeProblem
from dpcore.private_choice.table_scores import REACH

Selection = PrivateChoice | PrivatePair | PrivateRange
"""What was selected privately: the value or values, with the guarantee and the problem."""


def error_name(parameters: PrivateParameters) -> str:
    """Say what is counted, within a sentence; only for independent rows it is a standard error."""
    if parameters.purpose is BoundPurpose.SUM:
        return "bias plus mean noise of the sum"
    if parameters.purpose is BoundPurpose.QUANTILE:
        return "rank error"
    return "error of this table's mean" if parameters.user_share else "standard error of the mean"


COST_SOURCES = {
    Disclosure.PUBLIC: "The costs are computed from these data. They are public, so reading the costs to settle on ε "
    "of the choice leaks nothing; on private data it would",
    Disclosure.PRIVATE: "The costs are computed from the private data in the clear. Reading them to settle on ε of the "
    "choice is a look at the data that no ε covers: settle on it beforehand, or look at similar public data",
    Disclosure.DP_RELEASE: "The costs are computed from the release in use, not from the data behind it: reading them "
    "spends nothing more. On the data behind it a draw may cost more or less",
}
"""What the costs are computed from, and what reading them gives away."""


def format_cost(epsilon: float, delta: float | None = None) -> str:
    """Write a privacy cost, never less than it is: ``ε = 1, δ = 0.000001``."""
    text = f"ε = {format_rounded_up(epsilon)}"
    return f"{text}, δ = {format_rounded_up(delta)}" if delta else text


def format_selection(selection: Selection) -> str:
    """Say what was drawn, for a person: ``12``, ``3 groups × 2 rows``, ``0 to 96.4``."""
    if isinstance(selection, PrivatePair):
        return format_pair(selection.problem.parameters, selection.max_groups, selection.max_amount)
    if isinstance(selection, PrivateRange):
        return f"{wording.entered(selection.lower)} to {wording.entered(selection.upper)}"
    return choice.format_choice(selection)


PAIR_AIM = (
    "It aims at the least sum of all groups' mean absolute errors. Their root mean square may be up to half as large "
    "again as with the best pair, most where one group holds nearly everything."
)


def describe_pair_cost(problem: PrivatePairProblem) -> str:
    """Say what a draw of a pair usually costs, from public figures alone."""
    share, groups = expected_of_pair(problem), wording.counted(problem.num_groups, "group")
    if share is None:
        return (
            f"With {groups}, ε of the choice is too small: a draw is little better than a guess. Enter bounds that you "
            "know, or spend more on the choice."
        )
    return (
        f"With {groups}, a draw usually errs within about {wording.percent(share, 1)} of the best pair by the sum of "
        "all groups' mean absolute errors. Where a few users hold everything it can be as bad as releasing nothing."
    )


def describe_range_cost(problem: RangeProblem) -> str:
    """Say what the draw of a range costs in privacy, and if it is of use for a public guess of the number of users."""
    ends_text = ""
    if problem.anchor is None:
        ends_text = "A quarter of ε draws the middle, the rest one distance for both ends. "
    elif problem.num_ends == 2 and problem.epsilon_of_end == problem.epsilon:
        ends_text = (
            "Both ends together cost ε once: a user's rows above the typical value and those below are no more than "
            "all of them. "
        )
    elif problem.num_ends == 2:
        ends_text = "Where a user is replaced, both ends cost twice: each is drawn with half of ε. "
    if problem.users is None or problem.signal_ratio is None:
        return f"{ends_text}Enter about how many users there are to be told whether a draw is of use."
    scope = f"with about {wording.counted(problem.users, 'user')}"
    if problem.max_contributions > 1:
        rows = wording.counted(problem.max_contributions, "row")
        scope += f" of at least {rows}, the bound that is public or was drawn,"
    if problem.signal_ratio < 1.0:
        needed = wording.number(float(f"{problem.users_needed:.2g}"))
        return (
            f"{ends_text}**Not recommended:** {scope} a draw is of no use. What helps: about {needed} users, a larger "
            "ε of the range, closer smallest and largest distances, or a range from what you know, which is free."
        )
    return f"{ends_text}{wording.capital(scope)} a draw typically errs up to 2 or 3 times as much as the best range."


def list_assumptions(disclosure: Disclosure, parameters: PrivateParameters) -> tuple[str, ...]:
    """List what is assumed, on data of this kind."""
    value_assumptions: tuple[str, ...] = ()
    if parameters.purpose in OF_MEAN:
        value_assumptions = ("Rows are independent draws with one variance, also those of one user",)
        if parameters.user_share:
            share = wording.number(parameters.user_share, 2)
            value_assumptions = (
                "The error is that about the mean of the rows in this table. Who has many rows says nothing about the "
                f"values, and of the variance of a row a share of {share} lies between users",
                f"The draw counts a user as having at most {REACH} times the rows of the bound that it looks at: a "
                "user with more would move the best bound without a limit",
            )
    return (
        *value_assumptions,
        "Who is in the data and how many rows each user has counts as private. ε of the release, the maximum and what "
        "is entered about values are public and do not come from these data",
        "ε of the choice and ε of the release add up, whichever way the number is chosen",
        COST_SOURCES[disclosure],
        f"The direct choice's costs are exact; those of a copy are simulated, {RUNS} copies at each point",
    )


def format_share(share: float) -> str:
    """Return a cost in words; 0 and tiny ones are less than 0.01 %."""
    if 0.0 <= share < 1e-4:
        return f"less than 0.01{wording.PERCENT}"
    return wording.percent(share)


def format_briefly(share: float) -> str:
    """Return the cost for a metric."""
    return format_share(share).replace("less than ", "<\N{NO-BREAK SPACE}")


def describe_forecasts(forecasts: Sequence[Forecast], rows: int | None = None) -> str:
    """Say what a draw typically costs, from public samples; where that is much, what does better.

    Args:
        forecasts: One for each number of users.
        rows: Of a learner, whose one forecast is for so many rows.
    """
    is_much = any(forecast.extra > 1.0 for forecast in forecasts)
    amounts = [
        f"{wording.number(1.0 + forecast.extra, 2)} times" if is_much else format_share(forecast.extra)
        for forecast in forecasts
    ]
    if rows is not None:
        effect = f"adds up to {amounts[0]} to rows cut and privacy noise together"
        if is_much:
            effect = f"makes rows cut and privacy noise together up to {amounts[0]} the least"
        return f"On public samples with about so many rows a draw {effect}, on average."
    first, *others = (
        f"{amount} with {forecast.users:,}" for amount, forecast in zip(amounts, forecasts, strict=True)
    )
    texts = ", ".join([f"{first} users", *others])
    if is_much:
        return (
            f"On public samples a draw makes the error, on average, up to {texts} what it is at best. A larger ε for "
            "the draw or a bound that you know does better."
        )
    return f"On public samples a draw adds to the error, on average, up to {texts}."


def is_direct(solution: PrivateSolution) -> bool:
    """Return True if the direct choice costs less at its 95th percentile; so it is said until copies are simulated."""
    copy = solution.copies.at_budget
    return copy is None or solution.direct.percentile_95 <= copy.percentile_95


def write_headline(solution: PrivateSolution) -> str:
    """Say which way to take; on a release, the number itself."""
    if solution.data.release is not None:
        name = NUMBER_NAMES[solution.parameters.purpose]
        return f"Take {wording.number(solution.best)} as the {name}; it may be published."
    # One line, before copies are simulated and after: what the answer goes by stands in the detail.
    return "Choose the number directly." if is_direct(solution) else "Choose on a private copy."


def write_detail(solution: PrivateSolution) -> str:
    """Say what its cost is counted in, and what the other way costs where it matters: the headline goes by that."""
    if solution.data.release is not None:
        return (
            "Choosing on a release spends nothing more. The costs take the release for the data: an estimate, safe to "
            "show, of what a draw costs."
        )
    if solution.is_rank_error:
        return "The cost is the share of users by which the number misses the quantile."
    # Two lines beside the figure, whatever the numbers.
    sentence = f"Extra {error_name(solution.parameters)} against choosing in the clear."
    direct = is_direct(solution)
    name = "Private copy" if direct else "Direct choice"
    other = solution.copies.at_budget if direct else solution.direct
    if other is None:
        return sentence
    return f"{sentence} {name}, 1 in 20: {format_briefly(other.percentile_95)} or more."


def build_numbers(solution: PrivateSolution) -> tuple[Number, ...]:
    """Build the numbers: what either way costs, the cheaper one first; on a release, the number itself before them."""
    costs_by_way = [("Direct choice", solution.direct), ("Private copy", solution.copies.at_budget)]
    costs = [
        Number(
            f"{name}, {label}",
            format_briefly(share),
            note,
            "In 1 draw of 20 it is this or more." if note else "",
            # Where every simulated copy was empty it is infinite, which JSON cannot say.
            share if math.isfinite(share) else None,
            clipboard_text=f"{share:.2g}",
        )
        for name, cost in (costs_by_way if is_direct(solution) else costs_by_way[::-1])
        if cost is not None
        for label, share, note in (
            ("median cost", cost.median, ""),
            ("1 in 20", cost.percentile_95, "or more"),
        )
    ]
    if solution.data.release is not None:
        rows = wording.agreeing(solution.best, "row per user", "rows per user")
        best = wording.number(solution.best)
        costs.insert(0, Number("Best number on these data", best, rows, value=solution.best))
    return tuple(costs)


def list_facts(solution: PrivateSolution) -> dict[str, str]:
    """List what stands behind the answer."""
    p, direct, copy = solution.parameters, solution.direct, solution.copies.at_budget
    total = format_rounded_up(p.epsilon + p.selection_epsilon)
    delta = f", with δ = {format_rounded_up(p.delta)} for a copy" if p.delta is not None else ""
    if p.release_delta is not None:
        delta += f", with δ = {format_rounded_up(p.release_delta)} for the release"
    # As `dpcore.common.privacy` counts it; the libraries that the code is for know no other release.
    twice = ""
    if p.relation is Relation.REPLACE:
        doubled = format_rounded_up(2.0 * p.epsilon + p.selection_epsilon)
        twice = f" One for neighbours that add or remove one user counts up to twice: ε = {doubled}."
    name, verb = ("In the clear", "would be") if solution.data.release is None else ("On the release", "is")
    facts = {name: f"the {NUMBER_NAMES[p.purpose]} {verb} {wording.number(solution.best)}."}
    rows = wording.counted(p.largest, "row")
    if num_above := solution.data.histogram.users_above(p.largest):
        users, have = wording.counted(num_above, "user"), wording.agreeing(num_above, "has", "have")
        facts["Over the maximum"] = (
            f"{users} {have} more than the {rows} of the public maximum; no number above it is chosen, and a copy cuts "
            "them there. Raise it only for reasons outside these data."
        )
    copy_text = ": being simulated"
    if copy is not None:
        copy_text = f" {wording.number(copy.low)} to {wording.number(copy.high)}"
        if math.isnan(copy.low):  # Every simulated copy was empty.
            copy_text = " nothing"
    text = f"directly {wording.number(direct.low)} to {wording.number(direct.high)}; on a copy{copy_text}."
    if copy is not None and copy.empty_share:
        text += f" In {wording.percent(copy.empty_share)} of copies no user is left."
    facts["Nine draws in ten"] = text
    facts["In all"] = (
        f"ε = {format_rounded_up(p.epsilon)} for the release and ε = {format_rounded_up(p.selection_epsilon)} for "
        f"the choice: ε = {total}{delta}, where the release too is made for neighbours that "
        f"{p.relation.neighbours.short}.{twice}"
    )
    if direct.median > 0.05 and not solution.is_rank_error:
        help_text = "a larger ε for the choice, or a public guess of the number (*More settings*)"
        if p.purpose is BoundPurpose.SUM:
            scale = "1/ε =" if p.release_delta is None else "about"
            facts["Why so much"] = (
                f"the best bound has only {scale} {wording.counted(p.price, 'user')} above it, and the noise hides so "
                f"few users. What helps: {help_text}, a smaller maximum, a margin, or a copy instead."
            )
        else:
            facts["What helps"] = f"{help_text}; more users."
    return facts


def describe_leak(solution: PrivateSolution, effect: Leak) -> str:
    """Say what one more user does to the number."""
    p, name = solution.parameters, NUMBER_NAMES[effect.number]
    farthest = max((float(m) for m in effect.with_user), key=lambda m: abs(m - effect.without))
    old, new = wording.apart(effect.without, farthest)
    sentence = f"one more user can move the {name} from {old} to {new}"
    warning = "of these data, but to know that one must look at them"
    if farthest == effect.without:
        rows = wording.counted(p.largest, "row")
        sentence = (
            f"one more user with at most {rows}, the public maximum, does not move the {name} {warning}"
        )
    elif effect.number is not p.purpose:
        sentence = (
            f"one more user does not move the {NUMBER_NAMES[p.purpose]} {warning}. For a sum: {sentence}"
        )
    if solution.data.release is not None:
        return f"Were the release the data themselves: {sentence}."
    return f"{wording.capital(sentence)}."
