"""The tabs of a release per group, and how it is solved beside a page."""

from __future__ import annotations

from dpcore.answer import Answer
from dpcore.answer.section import BEHIND, Cached, Columns, Found, Note, Parts, Search, Sections, Solver
from dpcore.answer.stage import Stage
from dpcore.dataset import Dataset
from dpcore.per_group.answer import distribution, selected_words, words
from dpcore.per_group.answer.distribution import DistributionSolution
from dpcore.per_group.answer.found import PerGroupSolution, check
from dpcore.per_group.answer.found import solve as solve_at_once
from dpcore.per_group.answer.plots import MOST_POINTS
from dpcore.per_group.parameters import PerGroupParameters, Statistic

SHORT, SHORT_MEAN = 60_000, 3_000
"""Pairs up to which an answer is computed at once: a few tenths of a second."""
HEAVY = 1_000_000
"""Pairs from which on a search waits until no other heavy work runs: it takes a few hundred MB and up to minutes."""


def is_long(data: Dataset, parameters: PerGroupParameters) -> bool:
    """Return True if the search is done beside the page."""
    if data.pairs is None:
        return False
    most = SHORT_MEAN if parameters.statistic is Statistic.MEAN else SHORT
    return parameters.selection.private or data.pairs.user_codes.size > most


def choose_pair(data: Dataset, parameters: PerGroupParameters) -> PerGroupSolution | DistributionSolution:
    """Find the best pair for pairs of users and groups, or for how these are distributed."""
    return distribution.solve(data, parameters) if data.pairs is None else solve_at_once(data, parameters)


def is_checked(data: Dataset, parameters: PerGroupParameters) -> bool:
    """Return True; raise InvalidInput if the data do not fit the question."""
    check(data, parameters)
    return True


def solve(data: Dataset, parameters: PerGroupParameters) -> Solver:
    """Find the best pair, at once if that is short; until then the answer before stands."""
    if not is_long(data, parameters):
        solution = yield Cached(choose_pair, (data, parameters), kept=8)
        return Found(solution)
    assert data.pairs is not None
    yield Cached(is_checked, (data, parameters))
    doing = "Looking for the best pair"
    found: Found = yield Search(
        "job",
        parameters,
        lambda tell, stop: solve_at_once(data, parameters, tell, stop),
        doing,
        heavy=data.pairs.user_codes.size >= HEAVY,
        doing_at={
            Stage.EARLIER: f"{doing}. Until it is found, the answer to what was asked before stands here"
        },
    )
    return found


def describe_inputs(answer: Answer, data: Dataset) -> Parts:
    """Say what the answer was computed from."""
    solution = answer.solution
    is_distribution = isinstance(solution, DistributionSolution)
    yield Note(
        distribution.describe_data(solution) if is_distribution else words.describe_data(solution, data)
    )


def show_scaling(answer: Answer, data: Dataset) -> Parts:
    """Show the error against the bound on a user's whole vector."""
    if "per-group-norm" not in answer.plots:
        reason = (
            "A mean is a ratio of two sums"
            if answer.solution.is_mean
            else "With sums of any sign, clipping can cancel bias"
        )
        yield Note(
            f"{reason}. Only for rows, distinct users and sums of amounts of at least 0 does a bound on whole vectors "
            "exist, for every pair, that errs no more.",
            "info",
        )
        return
    yield (
        "Instead of dropping groups at random, bound the norm of each user's whole vector: by cutting all of their "
        "groups at *one level*, or by *scaling* all of them alike. For every pair there is a level that errs no more "
        "in any group, so that the best level errs no more over all groups than the best pair. Scaling often errs "
        "least over all groups."
    )
    yield answer.plots["per-group-norm"]()


def show_survival(answer: Answer, data: Dataset) -> Parts:
    """Show which groups are released, and what they and the lost ones add to the error."""
    yield "\n".join(f"- {sentence}" for sentence in selected_words.survival_sentences(answer.solution))
    if "per-group-survival" not in answer.plots:
        return
    yield answer.plots["per-group-survival"]()
    yield from _say_sampled(answer, "users")
    if over_epsilon := [[plot()] for key, plot in answer.plots.items() if key.endswith("over-epsilon")]:
        yield Columns(tuple(over_epsilon))


def show_groups(answer: Answer, data: Dataset) -> Parts:
    """Show every group's error against its size."""
    yield "\n".join(f"- {sentence}" for sentence in words.group_sentences(answer.solution))
    yield answer.plots["per-group-sizes"]()
    yield from _say_sampled(answer, "sizes")


def _say_sampled(answer: Answer, over: str) -> Parts:
    if answer.solution.problem.pairs.num_entries > MOST_POINTS:
        yield Note(f"{MOST_POINTS:,} groups are drawn, evenly spread over their {over}.")


def build_sections(solution: PerGroupSolution) -> Sections:
    """Return the tabs, which depend on whether groups are selected."""
    is_selected = solution.selected is not None
    first: Sections = (
        {"Which groups survive": show_survival} if is_selected else {"Scaling instead": show_scaling}
    )
    return {BEHIND: describe_inputs, **first, "Error of each group": show_groups}
