"""The tab *Range* of a mean: which range the values ask for, for clamped rows and for clamped users."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from dpcore.answer import section
from dpcore.answer.answer import Answer
from dpcore.common.wording import format_entered
from dpcore.data import binned_values
from dpcore.dataset import Dataset
from dpcore.mean import threshold_search, value_range
from dpcore.mean.answer import plots, users
from dpcore.mean.parameters import Clamp

MISSING_VALUES = section.Missing("values, one per row", "Bring data with values")


def show_ranges(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the ranges that the values ask for: a search over ranges and bounds, a table, proposals and plots."""
    if not plots.has_range_choice(dataset):
        yield MISSING_VALUES if dataset.values is None else "All values are the same, or too large to square."
        return
    leak_phrase = ", **a private look** that no ε covers." if dataset.is_private else "."
    yield f"**A range that you know is the first choice.** The ranges below are computed from the values{leak_phrase}"
    for assumption in binned_values.list_assumptions(dataset):
        yield section.Note(f"{assumption}.")
    ranges = yield section.Cached(
        plots.choose_ranges, (dataset, answer.solution, answer.parameters), num_kept=4
    )
    problem = ranges.weighted_rows.problem
    joint_choice = yield _search_joint(
        "range_search",
        (problem.epsilon, problem.relative_noise),
        partial(value_range.find_best_joint, problem),
        "Looking for the best range and bound",
    )
    users_choice, users_problem = None, ranges.users_problem
    if users_problem is not None:
        users_choice = yield _search_joint(
            "users_range_search",
            (users_problem.unit_noise_variance, users_problem.has_private_counts),
            partial(users.find_best_choice, users_problem),
            "Looking for the best range and bound for users",
        )
        if users_choice is not None and not users.is_usable(users_problem, users_choice):
            users_choice = None
    table_columns = plots.build_table(ranges, joint_choice, users_choice)
    yield section.Table(table_columns, "The range in use and the best ones")
    if dataset.is_private:
        yield section.Note(
            "These ranges leak into every release that uses them. You can draw a range privately."
        )
        yield section.PrivateRange()
    elif joint_choice is not None and plots.is_usable(problem, joint_choice):
        lower, upper = plots.round_outward(joint_choice)
        if (lower, upper) != (ranges.current_range.lower, ranges.current_range.upper):
            button_text = f"Use L = {format_entered(lower)}, U = {format_entered(upper)}"
            yield section.Proposal(button_text, "straighten", {"lower": lower, "upper": upper})
    if (
        not dataset.is_private
        and users_choice is not None
        and users_choice.error < _get_smooth_weights_error(answer)
    ):
        lower, upper = plots.round_outward(users_choice)
        button_text = f"Clamp users, L = {format_entered(lower)}, U = {format_entered(upper)}"
        yield section.Proposal(
            button_text, "straighten", {"clamp": Clamp.USERS, "lower": lower, "upper": upper}
        )
    sentences = plots.describe_ranges(ranges, joint_choice, users_choice)
    yield section.Label(preceding_text="\n".join(f"- {sentence}" for sentence in sentences))
    yield section.Figures(
        (plots.plot_upper(ranges, dataset), plots.plot_lower(ranges, dataset)), has_titles=True
    )


def _search_joint(
    result_key: str,
    search_inputs: Hashable,
    find_best_range: Callable[..., value_range.RangeChoice],
    progress_text: str,
) -> section.Search:
    """Build the search for the best range and bound together, of clamped rows or of clamped users.

    Args:
        result_key: Key of its result.
        search_inputs: What the result depends on beside the data.
        find_best_range: Finds it, with the keywords ``progress`` and ``should_stop``.
        progress_text: What is said beside the progress.
    """
    return section.Search(
        result_key,
        search_inputs,
        lambda progress, should_stop: find_best_range(progress=progress, should_stop=should_stop),
        progress_text,
        is_complete=lambda choice: choice.certificate.proves(threshold_search.SEARCH_TOLERANCE * 1.05),
        num_kept=32,
        first_wait_seconds=0.3,
        later_wait_seconds=0.3,
        follows_slider=True,
    )


def _get_smooth_weights_error(answer: Answer) -> float:
    """Return the error of the best smooth weights, of clamped users if these are chosen, else of clamped rows."""
    solution = answer.solution
    is_of_users = answer.parameters.clamp is Clamp.USERS and solution.users_solution is not None
    smooth_solution = solution.users_solution if is_of_users else solution.smooth_choice
    return float(smooth_solution.standard_error)
