"""The tab *Range* of a mean: which range the values ask for, for clamped rows and for clamped users."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from dpcore.answer import section
from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import value_range
from dpcore.mean.answer import plots, users
from dpcore.mean.parameters import Clamp

NO_VALUES = section.Missing("values, one per row", "Bring data with values")


def show_ranges(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show which range the values ask for, beside a search over the bound on rows."""
    if not plots.has_range_choice(dataset):
        yield NO_VALUES if dataset.values is None else "All values are the same, or too large to square."
        return
    leak = ", **a private look** that no ε covers." if dataset.is_private else "."
    yield f"**A range that you know is the first choice.** The ranges below are computed from the values{leak}"
    ranges = yield section.Cached(
        plots.choose_ranges, (dataset, answer.solution, answer.parameters), num_kept=4
    )
    problem = ranges.rows.problem
    joint = yield _search_joint(
        "range_search",
        (problem.epsilon, problem.relative_noise),
        partial(value_range.best_joint, problem),
        "Looking for the best range and bound",
    )
    joint_users, users_problem = None, ranges.users_problem
    if users_problem is not None:
        joint_users = yield _search_joint(
            "users_range_search",
            (users_problem.unit_variance, users_problem.has_private_counts),
            partial(users.find_best_choice, users_problem),
            "Looking for the best range and bound for users",
        )
    if (
        joint_users is not None
        and users_problem is not None
        and not users.is_usable(users_problem, joint_users)
    ):
        joint_users = None
    yield section.Table(plots.build_table(ranges, joint, joint_users), "The range in use and the best ones")
    if dataset.is_private:
        yield section.Note(
            "These ranges leak into every release that uses them. You can draw a range privately."
        )
        yield section.PrivateRange()
    elif joint is not None and plots.is_usable(problem, joint):
        low, high = plots.round_outward(joint)
        if (low, high) != (ranges.current.lower, ranges.current.upper):
            label = f"Use L = {wording.entered(low)}, U = {wording.entered(high)}"
            yield section.Proposal(label, "straighten", {"lower": low, "upper": high})
    if not dataset.is_private and joint_users is not None and joint_users.error < _find_error(answer):
        yield _propose_users(joint_users)
    sentences = plots.describe_ranges(ranges, joint, joint_users)
    yield section.Label(preceding_text="\n".join(f"- {sentence}" for sentence in sentences))
    yield section.Figures(
        (plots.plot_upper(ranges, dataset), plots.plot_lower(ranges, dataset)), has_titles=True
    )


def _search_joint(
    key: str, question: Hashable, find_best: Callable[..., value_range.RangeChoice], progress_text: str
) -> section.Search:
    """Build the search for the best range and bound together, of clamped rows or of clamped users.

    Args:
        key: Key of its result.
        question: What the result depends on beside the data.
        find_best: Finds it, with the keywords ``progress`` and ``should_stop``.
        progress_text: What is said beside the progress.
    """
    return section.Search(
        key,
        question,
        lambda progress, should_stop: find_best(progress=progress, should_stop=should_stop),
        progress_text,
        is_complete=lambda choice: choice.certificate.proves(value_range.TOLERANCE * 1.05),
        num_kept=32,
        first_wait_seconds=0.3,
        later_wait_seconds=0.3,
        is_light=True,
    )


def _find_error(answer: Answer) -> float:
    """Return the error in use of smooth weights, of rows or users."""
    solution = answer.solution
    is_of_users = answer.parameters.clamp is Clamp.USERS and solution.users is not None
    return float(solution.users.standard_error if is_of_users else solution.smooth.standard_error)


def _propose_users(choice: value_range.RangeChoice) -> section.Proposal:
    """Propose the best range for users, which then stand in place of rows."""
    low, high = plots.round_outward(choice)
    label = f"Clamp users, L = {wording.entered(low)}, U = {wording.entered(high)}"
    return section.Proposal(label, "straighten", {"clamp": Clamp.USERS, "lower": low, "upper": high})
