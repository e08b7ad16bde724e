"""The tabs of a release per group, and the answer where only the distribution of pairs is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.answer.answer import Answer, Number
from dpcore.answer.section import BEHIND, Cached, Columns, Found, Note, Parts, Search, Sections, Solver
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.privacy import write_file_name
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.per_group.answer import words
from dpcore.per_group.answer.error_map import BoundedSizes, ErrorMap, Pair
from dpcore.per_group.answer.plots import MOST_POINTS
from dpcore.per_group.answer.solution import PerGroupSolution, check, solve
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.summary import (
    APPROXIMATE,
    OBJECTIVES,
    SummaryChoice,
    SummaryProblem,
    amount_words,
    best_summary_pair,
    error_words,
    pair_words,
)
from dpcore.report.script import Code, Source

COLUMNS, ROWS = 30, 16
"""Points of the map along both bounds."""


@dataclass(frozen=True, eq=False)
class DistributionSolution:
    """The best pair for a distribution of pairs, with the map of the error.

    Attributes:
        problem: The problem on the distribution.
        choice: The best pair found.
        pair: The same; None if releasing nothing is better.
        own_pair: The user's own pair, or None.
        map: The error over both bounds.
        label: Name of the group column.
    """

    problem: SummaryProblem
    choice: SummaryChoice
    pair: Pair | None
    own_pair: Pair | None
    map: ErrorMap
    label: str
    tuner: Pair | None = None

    @property
    def parameters(self) -> PerGroupParameters:
        """Return the parameters of the problem."""
        return self.problem.parameters

    @property
    def bounded_sizes(self) -> BoundedSizes:
        """Return the sizes that the bounds cut, with their counts. A user of k groups has k pairs."""
        sizes = self.problem.sizes
        pairs = sizes.pairs.astype(np.float64)
        return BoundedSizes(
            *_count_distinct(sizes.groups.astype(np.float64), pairs / sizes.groups),
            *_count_distinct(self.problem.amounts, pairs),
        )

    @property
    def pair_error(self) -> float:
        """Return the error of the pair, or of releasing nothing if that is better."""
        return self.choice.error


def _count_distinct(values: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values, ascending, and the count of each."""
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, np.rint(np.bincount(index, times))


def solve_by_distribution(data: Dataset, parameters: PerGroupParameters) -> DistributionSolution:
    """Solve for the best pair and map the error; the data must have sizes of pairs.

    Raises:
        InvalidInput: The parameters need the pairs themselves.
    """
    assert data.pair_sizes is not None
    problem = SummaryProblem(data.pair_sizes, parameters)
    choice = best_summary_pair(problem)
    pair = Pair(choice.max_groups, choice.max_amount, choice.error) if choice.max_groups else None
    own_pair = None
    if parameters.own_groups is not None and parameters.own_amount is not None:
        l0, linf = int(parameters.own_groups), float(parameters.own_amount)
        own_pair = Pair(l0, linf, problem.error(l0, linf))
    most_groups, largest = int(data.pair_sizes.groups.max()), float(problem.amounts.max())
    groups = np.unique(np.rint(np.r_[np.geomspace(1, most_groups, COLUMNS), choice.max_groups or 1]))
    amounts = np.unique(np.rint(np.r_[np.geomspace(1, largest, ROWS), choice.max_amount or 1.0]))
    error_parts = np.array([[problem.error_parts(int(l0), float(c)) for l0 in groups] for c in amounts])
    cells = ErrorMap(groups, amounts, *np.moveaxis(error_parts, -1, 0))
    return DistributionSolution(problem, choice, pair, own_pair, cells, data.pair_sizes.label)


def headline(solution: DistributionSolution) -> str:
    """Return the recommendation in one sentence."""
    parameters, choice = solution.parameters, solution.choice
    epsilon, groups = wording.entered(parameters.epsilon), wording.counted(choice.max_groups, "group")
    if solution.pair is None:
        return f"Release nothing at ε = {epsilon}: no pair was found that errs less than publishing 0 everywhere."
    if parameters.statistic is Statistic.USERS:
        return f"Count each user in at most {groups}, or about as many."
    amount = amount_words(parameters, choice.max_amount)
    return f"Keep at most {groups} of each user, and {amount} in each, or about as many."


def detail(solution: DistributionSolution) -> str:
    """Describe what is not known, and the interval of the error."""
    choice, sentence = (
        solution.choice,
        "**Only how pairs are distributed is known**, not which lie in which group.",
    )
    if choice.lower is None or choice.upper is None or solution.pair is None:
        return sentence
    low, high = (error_words(solution.parameters, x) for x in (choice.lower, choice.upper))
    return f"{sentence} Whatever lies where, the error is between {low} and {high}."


def numbers(solution: DistributionSolution) -> tuple[Number, ...]:
    """Return the pair and its error."""
    parameters, choice = solution.parameters, solution.choice
    return (
        Number(
            "Best pair found",
            pair_words(parameters, choice.max_groups, choice.max_amount) if solution.pair else "none",
            clipboard_text=f"{choice.max_groups}, {choice.max_amount:.12g}" if solution.pair else "",
        ),
        Number(
            "Error, about",
            error_words(parameters, choice.error),
            "",
            f"The {OBJECTIVES[parameters.objective]}.",
        ),
    )


def facts(solution: DistributionSolution) -> dict[str, str]:
    """Build the facts: the approximation, and how the pair was found."""
    return {
        "What is approximate": APPROXIMATE,
        "How it was found": solution.choice.stop_reason.split(". ")[0] + ".",
    }


def describe_data(solution: DistributionSolution) -> str:
    """Describe the data that the answer was computed from."""
    pairs = wording.counted(int(solution.problem.sizes.pairs.sum()), "pair")
    groups = wording.counted(solution.problem.num_groups, "group")
    return f"{pairs} of a user and a group; {groups} of {wording.plain(solution.label)} released."


def write_data_cell(code: Code, source: Source, public_only: bool) -> str:
    """Write the cell that reads the distribution's file into ``data``; its name holds nothing of the person's."""
    code.import_name("read_distribution", "dpcore.data.group_pairs")
    name = f"{write_file_name('pair_distribution', source.dataset.provenance)}.json"
    code.import_name("Path", "pathlib")
    return (
        "# From the page Per group, Downloads, button Distribution of pairs (JSON).\n"
        f"FILE = Path({name!r})\n"
        f"data = read_distribution(FILE.read_bytes(), FILE.name, {code.write(source.dataset.disclosure)})"
    )


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
    return solve_by_distribution(data, parameters) if data.pairs is None else solve(data, parameters)


def is_checked(data: Dataset, parameters: PerGroupParameters) -> bool:
    """Return True; raise InvalidInput if the data do not fit the question."""
    check(data, parameters)
    return True


def solve_beside_page(data: Dataset, parameters: PerGroupParameters) -> Solver:
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
        lambda tell, stop: solve(data, parameters, tell, stop),
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
    yield Note(describe_data(solution) if is_distribution else words.describe_data(solution, data))


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
    yield "\n".join(f"- {sentence}" for sentence in words.survival_sentences(answer.solution))
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
