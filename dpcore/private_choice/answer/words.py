"""The sentences on choosing a number privately: headline, numbers, facts."""

from __future__ import annotations

import math

from dpcore.answer import Number, standard
from dpcore.code import forms
from dpcore.common.privacy import Disclosure, Ledger, Neighbours, ReleaseFacts, format_rounded_up
from dpcore.common.wording import (
    PERCENT,
    capitalise,
    choose_word,
    escape_text,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.per_group.answer.words import format_amount, format_pair
from dpcore.per_group.parameters import Statistic
from dpcore.per_group.private_pair import DrawnPair, PrivatePairProblem
from dpcore.per_group.private_pair import find_expected_excess as expected_of_pair
from dpcore.private_choice import choice
from dpcore.private_choice.choice import DrawnNumber
from dpcore.private_choice.comparison import NUM_SIMULATED_HISTOGRAMS, PrivateSolution
from dpcore.private_choice.parameters import (
    MEAN_PURPOSES,
    NAME_BY_NUMBER,
    BoundPurpose,
    NumberKind,
    OtherBound,
    PrivateParameters,
    Relation,
)
from dpcore.private_choice.private_range import DrawnRange, RangeProblem
from dpcore.private_choice.release_bounds import SelectionRequest
from dpcore.private_choice.table_scores import MAX_SIZE_OVER_CANDIDATE

Selection = DrawnNumber | DrawnPair | DrawnRange
"""The result of a private selection: the value or values, with the guarantee and the problem."""


def name_error(parameters: PrivateParameters) -> str:
    """Return the name of the error that costs are about, for use within a sentence."""
    if parameters.purpose is BoundPurpose.SUM:
        return "bias plus mean noise of the sum"
    if parameters.purpose is BoundPurpose.QUANTILE:
        return "rank error"
    return "error of this table's mean" if parameters.user_share else "standard error of the mean"


COST_SOURCE_BY_DISCLOSURE = {
    Disclosure.PUBLIC: "The costs are computed from these public data: reading them leaks nothing",
    Disclosure.PRIVATE: "The costs are computed from the private data. Choosing ε by them is a look that no ε covers",
    Disclosure.DP_RELEASE: "The costs are computed from the release in use and spend nothing more",
}
"""The source of the costs, and what it reveals to read them."""


def format_cost(epsilon: float, delta: float | None = None) -> str:
    """Format a privacy cost, rounded up, as ``ε = 1, δ = 0.000001``."""
    epsilon_phrase = f"ε = {format_rounded_up(epsilon)}"
    return f"{epsilon_phrase}, δ = {format_rounded_up(delta)}" if delta else epsilon_phrase


def format_selection(selection: Selection) -> str:
    """Format what was drawn: ``12``, ``3 groups × 2 rows``, ``0 to 96.4``."""
    if isinstance(selection, DrawnPair):
        return format_pair(selection.problem.parameters, selection.max_groups, selection.max_amount)
    if isinstance(selection, DrawnRange):
        return f"{format_entered(selection.lower)} to {format_entered(selection.upper)}"
    return choice.format_drawn_number(selection)


def describe_spending(
    selection_facts: ReleaseFacts, request: SelectionRequest, range_facts: ReleaseFacts | None = None
) -> str:
    """Write, in a sentence, what draws have spent, what the release adds, and what they come to."""
    ledger = Ledger(
        (selection_facts, *(() if range_facts is None else (range_facts,)), request.release_facts)
    )
    ledger_total = ledger.total
    assert ledger_total is not None
    spent_text = f"The draw has spent {format_cost(selection_facts.epsilon)}"
    if range_facts is not None:
        spent_text += f", that of the range {format_cost(range_facts.epsilon)}"
    release_cost_text = format_cost(request.release_epsilon, request.release_delta)
    counts_twice_clause = (
        "" if ledger_total.neighbours is Neighbours.ADD_OR_REMOVE_USER else ", which counts twice"
    )
    epsilon_in_all = ledger_total.epsilon if request.total_epsilon is None else request.total_epsilon
    total_text = f"{format_cost(epsilon_in_all, ledger_total.delta)} in all"
    total_text += ", with what was spent before" if request.spent_epsilon else ""
    return f"{spent_text}; the release adds {release_cost_text}{counts_twice_clause}: {total_text}."


def describe_pair_cost(problem: PrivatePairProblem) -> str:
    """Write how much a drawn pair's error usually exceeds the best, or that a draw is of little use.

    It is computed from public figures alone.
    """
    expected_excess, groups_text = expected_of_pair(problem), format_count(problem.num_groups, "group")
    if expected_excess is None:
        return f"With {groups_text}, a draw is little better than a guess: enter known bounds, or a larger ε."
    return (
        f"With {groups_text}, the chosen pair's error is usually within about {format_percent(expected_excess, 1)} "
        "of the "
        "best pair's. If a few users dominate, it can be as bad as releasing nothing."
    )


MIN_EPSILON_TIMES_USERS = 64.0
"""Least epsilon of the draw times the number of users at which a range for users is drawn well. On nine tables the
error of a draw is then at most 3.4 times that of the best range, and 1.8 times on average. From 32 to 64 it is 4.5
and 2.2."""


def describe_range_cost(problem: RangeProblem) -> str:
    """Write whether the draw of a range is of use for a public guess of the number of users.

    Without a guess, ask for one.
    """
    if problem.users is None or problem.signal_ratio is None:
        return "Enter about how many users there are to be told whether a draw is of use."
    guessed_users_text = f"with about {format_count(problem.users, 'user')}"
    if problem.max_contributions > 1:
        guessed_users_text += f" of at least {format_count(problem.max_contributions, 'row')}"
    if problem.clamps_users and problem.epsilon * problem.users < MIN_EPSILON_TIMES_USERS:
        return (
            f"**Not recommended:** {guessed_users_text} a public range that you know is better. A draw for users "
            "pays from "
            f"ε × users = {format_number(MIN_EPSILON_TIMES_USERS)} on; here it is "
            f"{format_number(problem.epsilon * problem.users)}."
        )
    if problem.signal_ratio < 1.0:
        users_needed_text = format_number(float(f"{problem.users_needed:.2g}"))
        return (
            f"**Not recommended:** {guessed_users_text} a draw is of no use. You need about {users_needed_text} "
            "users, a larger ε of "
            "the range, closer distances, or a range that you know, which costs no ε."
        )
    draws_both_ends = problem.anchor is not None and problem.num_ends == 2
    is_halved = draws_both_ends and problem.epsilon_of_end < problem.epsilon
    split_sentence = " Each of the two ends is drawn with half of ε." if is_halved else ""
    if problem.clamps_users:
        split_sentence += (
            f" The range is for users of {format_count(problem.max_contributions, 'row')} or more."
        )
    advice_clause = "a draw typically errs up to 2 or 3 times as much as the best range."
    return f"{capitalise(guessed_users_text)} {advice_clause}{split_sentence}"


def list_assumptions(disclosure: Disclosure, parameters: PrivateParameters) -> tuple[str, ...]:
    """List the assumptions about the data, the budgets and the costs, a sentence each."""
    value_assumptions: tuple[str, ...] = ()
    if parameters.purpose in MEAN_PURPOSES and parameters.user_share:
        user_share_text = format_number(parameters.user_share, 2)
        value_assumptions = (
            f"The error is about this table's mean; a share of {user_share_text} of the variance lies between users",
            f"The draw counts a user as having at most {MAX_SIZE_OVER_CANDIDATE} times the rows of the bound that it "
            "looks at",
        )
    elif parameters.purpose in MEAN_PURPOSES:
        value_assumptions = ("Rows are independent draws with one variance, also those of one user",)
    return (
        *value_assumptions,
        "The list of users and the number of rows per user are private. Your entries are public and do not come from "
        "these data",
        "ε of the choice and ε of the release add up, whichever way the number is chosen",
        COST_SOURCE_BY_DISCLOSURE[disclosure],
        f"The direct choice's costs are exact; those of a histogram are of {NUM_SIMULATED_HISTOGRAMS} simulated ones",
    )


def format_share(cost_share: float) -> str:
    """Format a cost as a percentage; costs below 0.01 % as "<0.01 %"."""
    if 0.0 <= cost_share < 1e-4:
        return f"<\N{NO-BREAK SPACE}0.01{PERCENT}"
    return format_percent(cost_share)


def describe_forecasts(mean_regrets: FloatArray, num_rows: int | None = None) -> str:
    """Write what a draw adds to the error on public samples, and a remedy if that is much.

    Args:
        mean_regrets: As a share of the least error, for each of `choice.FORECAST_USER_COUNTS`; one for a learner.
        num_rows: Of a learner, about how many there are.
    """
    cost_texts = [format_share(mean_regret) for mean_regret in mean_regrets.tolist()]
    if num_rows is not None:
        forecast_text = f"with about so many rows a draw adds {cost_texts[0]} to rows cut and privacy noise"
    else:
        first_forecast_text, *other_forecast_texts = (
            f"{cost_text} with {num_users_of_sample:,}"
            for cost_text, num_users_of_sample in zip(cost_texts, choice.FORECAST_USER_COUNTS, strict=True)
        )
        forecast_text = (
            f"a draw adds {', '.join([f'{first_forecast_text} users', *other_forecast_texts])} to the error"
        )
    added_error_sentence = f"On public samples {forecast_text}, on average, at most."
    remedy_sentence = "A larger ε of the draw or a bound that you know does better."
    return f"{added_error_sentence} {remedy_sentence}" if mean_regrets.max() > 1.0 else added_error_sentence


def is_direct_cheaper(solution: PrivateSolution) -> bool:
    """Return True if the direct choice's 95th percentile of the cost is at most that of a DP histogram."""
    return solution.direct_cost.percentile_95 <= solution.histogram_cost.percentile_95


def write_headline(solution: PrivateSolution) -> str:
    """Write one sentence: which way of choosing to take, or the best number itself if the data are a DP release."""
    if solution.dataset.release is not None:
        number_name = NAME_BY_NUMBER[solution.parameters.purpose]
        return f"Take {format_number(solution.best)} as the {number_name}; it may be published."
    return "Choose the number directly." if is_direct_cheaper(solution) else "Choose on a DP histogram."


def write_detail(solution: PrivateSolution) -> str:
    """Write one sentence or two: what the cost is counted in, or that choosing on a DP release costs nothing more."""
    if solution.dataset.release is not None:
        return "Choosing on a release spends nothing more. The costs may be shown."
    if solution.is_rank_error:
        return "The cost is the share of users by which the number misses the quantile."
    return f"Extra {name_error(solution.parameters)} against choosing in the clear."


def build_numbers(solution: PrivateSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: the costs of both ways, the cheaper first.

    If the data are a DP release, the best number comes before them.
    """
    named_costs = [("Direct choice", solution.direct_cost), ("DP histogram", solution.histogram_cost)]
    numbers = [
        Number(
            f"{name_of_way}, {cost_label}",
            format_share(cost_share),
            cost_note,
            # Where every simulated copy was empty it is infinite, which JSON cannot say.
            value=cost_share if math.isfinite(cost_share) else None,
            clipboard_text=f"{cost_share:.2g}",
        )
        for name_of_way, choice_cost in (named_costs if is_direct_cheaper(solution) else named_costs[::-1])
        for cost_label, cost_share, cost_note in (
            ("median cost", choice_cost.median, ""),
            ("1 in 20", choice_cost.percentile_95, "or more"),
        )
    ]
    if solution.dataset.release is not None:
        rows_per_user_text = choose_word(solution.best, "row per user", "rows per user")
        best_bound_text = format_number(solution.best)
        numbers.insert(
            0, Number("Best number on these data", best_bound_text, rows_per_user_text, value=solution.best)
        )
    return tuple(numbers)


def list_facts(solution: PrivateSolution) -> dict[str, str]:
    """Build the facts beside the answer: texts by heading."""
    parameters, number_name = solution.parameters, NAME_BY_NUMBER[solution.parameters.purpose]
    texts_by_heading: dict[str, str] = {}
    if solution.dataset.release is None:
        texts_by_heading["In the clear"] = f"the {number_name} would be {format_number(solution.best)}."
    if num_users_above := solution.dataset.histogram.count_users_above(parameters.largest):
        texts_by_heading["Over the maximum"] = (
            f"{format_count(num_users_above, 'user')}. Raise it only for reasons outside these data."
        )
    named_deltas = {"a histogram": parameters.delta, "the release": parameters.release_delta}.items()
    delta_texts = [
        f", with δ = {format_rounded_up(delta)} for {delta_use}" for delta_use, delta in named_deltas if delta
    ]
    texts_by_heading["In all"] = (
        f"ε = {format_rounded_up(parameters.epsilon + parameters.selection_epsilon)} with the release"
        f"{''.join(delta_texts)}, where both are for neighbours that {parameters.relation.neighbours.short}."
    )
    # As `dpcore.common.privacy` counts it; the libraries that the code is for know no other release.
    if parameters.relation is Relation.REPLACE:
        doubled_epsilon_text = format_rounded_up(2.0 * parameters.epsilon + parameters.selection_epsilon)
        texts_by_heading["In all"] += (
            f" A release for neighbours that add or remove one user counts up to twice: ε = {doubled_epsilon_text}."
        )
    if solution.direct_cost.median > 0.05 and not solution.is_rank_error:
        texts_by_heading["What helps"] = (
            "A larger ε of the choice, a public guess (*More settings*), or more users."
        )
    return texts_by_heading


def write_pair_texts(selection: DrawnPair) -> tuple[str, Number]:
    """Return (headline, number) of a drawn pair of bounds."""
    parameters, groups_text = selection.problem.parameters, format_count(selection.max_groups, "group")
    if parameters.statistic is Statistic.USERS:
        pair_headline = f"Count each user in at most {groups_text}."
        number_label, clipboard_text = "Bound, chosen with DP", f"{selection.max_groups}"
    else:
        max_amount_text = format_amount(parameters, selection.max_amount)
        pair_headline = f"Keep at most {groups_text} per user, and at most {max_amount_text} in each."
        number_label = "Pair, chosen with DP"
        clipboard_text = f"{selection.max_groups}, {selection.max_amount:.12g}"
    return pair_headline, Number(number_label, format_selection(selection), clipboard_text=clipboard_text)


def write_number_texts(
    selection: DrawnNumber, number_kind: NumberKind, dataset: Dataset
) -> tuple[str, Number]:
    """Return (headline, number) of a drawn bound or quantile."""
    number_label, drawn_value_text = "Bound, chosen with DP", format_selection(selection)
    number_note = "per user"
    unit_name = "rows per user"
    if column_name := selection.column or (
        number_kind is BoundPurpose.SUM and forms.find_summed_column(dataset)
    ):
        unit_name = f"{column_name} per user"
        number_note = number_note if number_kind is BoundPurpose.SUM else ""
        bound_headline = f"Clamp each user's total of {escape_text(column_name)} at {drawn_value_text}."
    elif number_kind in (BoundPurpose.SMOOTH, BoundPurpose.QUANTILE):
        number_label, number_note = f"{capitalise(NAME_BY_NUMBER[number_kind])}, chosen with DP", ""
        bound_headline = f"Take {drawn_value_text} as the {NAME_BY_NUMBER[number_kind]}."
    else:
        drawn_value_text = format_count(selection.value, "row")
        is_smooth = number_kind is OtherBound.QUANTILE_SMOOTH
        bound_headline = (standard.instruct_to_weight if is_smooth else standard.instruct_to_cap)(
            drawn_value_text
        )
    number_value = (
        int(selection.value) if number_kind in (BoundPurpose.CAP, BoundPurpose.SUM) else selection.value
    )
    return bound_headline, Number(
        number_label, drawn_value_text, number_note, value=number_value, unit=unit_name
    )
