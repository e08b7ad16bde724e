"""Sentences that several questions say in the same words; what differs is an argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable

from dpcore.answer.answer import Number
from dpcore.answer.section import Note, Parts, Search, Table
from dpcore.common.certificate import Solved, compare_results
from dpcore.common.progress import ShouldStop
from dpcore.common.wording import (
    PERCENT,
    choose_word,
    describe_change,
    format_count,
    format_entered,
    format_number,
    format_percent,
)

SIMULATION_SENTENCE = "A simulation with NumPy's noise, not a release."
"""Stands at every result whose noise NumPy draws."""
CHOOSE_PRIVATELY_REMEDY = "Choose it with differential privacy, or without these data."
"""Advice that replaces publishing a bound that was computed from private data."""


PUBLIC_COUNTS_CAVEAT = (
    "This bound was computed from how many rows each user has. **This is assumed to be public.** If it is private, "
    "choose the bound without these data, or with DP."
)


def warn_of_leak(
    results_text: str, source_phrase: str = "them", remedy_text: str = CHOOSE_PRIVATELY_REMEDY
) -> str:
    """Write the warning that results depend on private data.

    Args:
        results_text: Subject and auxiliary verb: ``this bound was``.
        source_phrase: What they were computed from, if it is only a part of the data.
        remedy_text: What to do instead, as sentences.
    """
    return (
        f"Your data are private, and **{results_text} computed from {source_phrase}**. ε does not cover this, and "
        f"publishing it reveals something about {source_phrase}. {remedy_text}"
    )


def write_near_optimal_range(
    lowest_choice: float,
    highest_choice: float,
    unit_noun: str = "",
    symbol: str = "",
    objective_text: str = "the least error",
    worse_choices_phrase: str = "",
    choices_noun: str = "bounds",
) -> str:
    """Write which choices are near-optimal, or that only one is: a sentence without its capital.

    Args:
        lowest_choice: The lower end.
        highest_choice: The upper end.
        unit_noun: The unit in the singular; empty for a choice without a unit, which is written with all its digits.
        symbol: The symbol of the choice; empty for a bound.
        objective_text: The minimum of the quantity that stays within 5 % of it.
        worse_choices_phrase: The choices that are worse if only one is near-optimal: ``the next bounds tried``.
        choices_noun: The choices, a plural noun.
    """
    limit_percent = f"5{PERCENT}"
    limit_text = f"within {limit_percent} of {objective_text}"
    low_text = format_number(lowest_choice) if unit_noun else format_entered(lowest_choice)
    high_text = format_count(highest_choice, unit_noun) if unit_noun else format_entered(highest_choice)
    if lowest_choice != highest_choice:
        return f"{f'{choices_noun} {symbol}'.rstrip()} from {low_text} to {high_text} are {limit_text}."
    if worse_choices_phrase:
        return f"{worse_choices_phrase} are more than {limit_percent} worse."
    return f"only {f'{symbol} =' if symbol else 'a bound of'} {high_text} is {limit_text}."


def compare_own_bound(
    error_name: str,
    own_error: float,
    best_error: float,
    format_error: Callable[[float], str],
    choice_name: str = "the bound",
) -> str:
    """Write how the error of the user's bound compares with the answer's, as ``error 3.2, 12 % more …``.

    Args:
        error_name: The name of the error.
        own_error: At the user's bound.
        best_error: At the bound of the answer.
        format_error: Writes an error.
        choice_name: The name of what the answer chose.
    """
    error_change_text = describe_change(own_error, best_error)
    return f"{error_name} {format_error(own_error)}, {error_change_text} compared with {choice_name} above."


def add_own_error(
    numbers: tuple[Number, ...],
    own_error: float | None,
    format_error: Callable[[float], str],
    error_note: str = "",
) -> tuple[Number, ...]:
    """Add the error at the user's own bound, if there is one, to an answer's numbers; the second one is its error."""
    if own_error is None or not math.isfinite(own_error):
        return numbers
    label, error_text = f"{numbers[1].label}, your own bound", format_error(own_error)
    return (
        *numbers,
        Number(label, error_text, error_note, value=own_error, unit=numbers[1].unit, key="own_error"),
    )


def compare_half_and_double(
    bound: float,
    compute_errors: Callable[[list[float]], Iterable[float]],
    format_bound: Callable[[float], str],
    error_name: str = "error",
    is_integer: bool = True,
) -> str:
    """Write what half and double of a bound cost, as ``half (4) costs 3 % more, double (16) …``.

    A half that rounds to the bound itself is left out.

    Args:
        bound: The bound of the answer, above 0.
        compute_errors: Computes the errors at several bounds.
        format_bound: Writes a bound.
        error_name: The name of the error.
        is_integer: True if only whole bounds are allowed.
    """
    half_bound = max(bound // 2, 1) if is_integer else bound / 2.0
    best_error, half_error, double_error = compute_errors([bound, half_bound, 2 * bound])
    half_text = f"half ({format_bound(half_bound)}) costs {describe_change(half_error, best_error)}, "
    double_text = f"double ({format_bound(2 * bound)}) costs {describe_change(double_error, best_error)}"
    return f"{half_text if half_bound != bound else ''}{double_text} in {error_name}."


def describe_affected(
    num_affected: int, num_users: int, lost_share: float, loss_text: str = "all rows are left out"
) -> str:
    """Write how many users a bound affects and what is lost: ``3 users (2 %) lie over the bound; 5 % …``.

    Args:
        num_affected: The number of users with more than the bound.
        num_users: The number of all users.
        lost_share: The share of the rows, or of the sum, that is lost.
        loss_text: What is lost, with its verb.
    """
    return (
        f"{format_count(num_affected, 'user')} ({format_percent(num_affected / num_users)}) "
        f"{choose_word(num_affected, 'lies', 'lie')} over the bound; {format_percent(lost_share)} of {loss_text}."
    )


def instruct_to_cap(rows_text: str) -> str:
    """Write the headline for a bound on rows; ``rows_text`` is a number with its noun."""
    return f"Keep at most {rows_text} per user."


def instruct_to_weight(rows_text: str) -> str:
    """Write the headline for smooth weights; ``rows_text`` is a number with its noun."""
    return f"Cap each user's total weight at {rows_text}."


def show_other_solver(
    key: str,
    solved_problem: Hashable,
    solve: Callable[[ShouldStop], tuple[Solved, ...]],
    objective_name: str,
    refusal_text: str,
) -> Parts:
    """Yield the comparison with CVXPY: both solutions with certificates and times, or why it is not offered.

    Args:
        key: Under which a page keeps the comparison.
        solved_problem: The problem that is solved.
        solve: Returns our solution and the other one; ours alone if it is stopped before the other one begins.
        objective_name: The name of the objective.
        refusal_text: Why the comparison is not offered; empty if it is.
    """
    yield "**Compare with CVXPY**"
    if refusal_text:
        yield Note(refusal_text)
        return
    yield Note("CVXPY hands the problem as written to Clarabel, a general solver.")
    texts_and_icon = "Solving with both", "Compare with CVXPY", "balance"
    solved_results: tuple[Solved, ...] | None = yield Search(
        key, solved_problem, lambda tell, stop: solve(stop), *texts_and_icon, is_measured=False, is_heavy=True
    )
    if solved_results is None:
        return
    columns = {
        "Solver": [solved.solver for solved in solved_results],
        objective_name: [solved.certificate.value for solved in solved_results],
        "No answer is below": [solved.certificate.lower_bound for solved in solved_results],
        "Seconds": [solved.seconds for solved in solved_results],
        "How it ended": [solved.stop_reason for solved in solved_results],
    }
    formats_by_column = {objective_name: "%.9g", "No answer is below": "%.9g", "Seconds": "%.3f"}
    yield Table(columns, f"{objective_name} and time of both solvers", formats_by_column)
    yield compare_results(*solved_results) if len(solved_results) == 2 else "Stopped before CVXPY had begun."
