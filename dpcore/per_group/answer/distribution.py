"""Solution and sentences if only the distribution of pairs is known; they state what is approximate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.privacy import write_file_name
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.per_group.answer.error_map import BoundedSizes, ErrorMap, Pair
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.summary import APPROXIMATE, SummaryChoice, SummaryProblem, best_summary_pair
from dpcore.per_group.words import OBJECTIVES, amount_words, error_words, pair_words
from dpcore.report.literals import Code
from dpcore.report.script import Source

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


def solve(data: Dataset, parameters: PerGroupParameters) -> DistributionSolution:
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
    code.import_name("pair_distribution", "dpcore.data")
    name = f"{write_file_name('pair_distribution', source.dataset.provenance)}.json"
    code.import_name("Path", "pathlib")
    return (
        "# From the page Per group, Downloads, button Distribution of pairs (JSON).\n"
        f"FILE = Path({name!r})\n"
        f"data = pair_distribution.read(FILE.read_bytes(), FILE.name, {code.write(source.dataset.disclosure)})"
    )
