"""What is found, and said, where only the distribution of pairs is known. What is approximate in it is said with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.answer import Number
from dpcore.common import wording
from dpcore.common.privacy import write_file_name
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.per_group.answer.error_map import Bounded, ErrorMap, Pair
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.summary import APPROXIMATE, SummaryChoice, SummaryProblem, best_summary_pair
from dpcore.per_group.words import OBJECTIVES, amount_words, error_words, pair_words
from dpcore.report.literals import Code
from dpcore.report.script import Source

COLUMNS, ROWS = 30, 16
"""Points of the map along both bounds."""


@dataclass(frozen=True, eq=False)
class DistributionFound:
    """All that depends on data and question; the main figure reads it, too.

    Attributes:
        problem: The question on the distribution.
        choice: The best pair that was found.
        pair: The same; None where releasing nothing is better.
        own: The person's own pair.
        map: The error over both bounds.
        label: What groups are called.
    """

    problem: SummaryProblem
    choice: SummaryChoice
    pair: Pair | None
    own: Pair | None
    map: ErrorMap
    label: str
    tuner: Pair | None = None

    @property
    def parameters(self) -> PerGroupParameters:
        """Return what was asked."""
        return self.problem.parameters

    @property
    def bounded(self) -> Bounded:
        """Return what the bounds cut. A user of k groups has k pairs."""
        sizes = self.problem.sizes
        pairs = sizes.pairs.astype(np.float64)
        return Bounded(
            *_counted(sizes.groups.astype(np.float64), pairs / sizes.groups),
            *_counted(self.problem.amounts, pairs),
        )

    @property
    def pair_error(self) -> float:
        """Return the error of the pair, or of releasing nothing where that is better."""
        return self.choice.error


def _counted(values: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct values, ascending, and how many there are of each."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.rint(np.bincount(place, times))


def find(data: Dataset, parameters: PerGroupParameters) -> DistributionFound:
    """Search and evaluate; the data must have sizes of pairs.

    Raises:
        InvalidInput: The question needs the pairs themselves.
    """
    assert data.pair_sizes is not None
    problem = SummaryProblem(data.pair_sizes, parameters)
    choice = best_summary_pair(problem)
    pair = Pair(choice.max_groups, choice.max_amount, choice.error) if choice.max_groups else None
    own = None
    if parameters.own_groups is not None and parameters.own_amount is not None:
        l0, linf = int(parameters.own_groups), float(parameters.own_amount)
        own = Pair(l0, linf, problem.error(l0, linf))
    most, largest = int(data.pair_sizes.groups.max()), float(problem.amounts.max())
    groups = np.unique(np.rint(np.r_[np.geomspace(1, most, COLUMNS), choice.max_groups or 1]))
    amounts = np.unique(np.rint(np.r_[np.geomspace(1, largest, ROWS), choice.max_amount or 1.0]))
    at = np.array([[problem.parts(int(l0), float(c)) for l0 in groups] for c in amounts])
    cells = ErrorMap(groups, amounts, *np.moveaxis(at, -1, 0))
    return DistributionFound(problem, choice, pair, own, cells, data.pair_sizes.label)


def headline(of: DistributionFound) -> str:
    """Return what to do."""
    asked, choice = of.parameters, of.choice
    epsilon, groups = wording.entered(asked.epsilon), wording.counted(choice.max_groups, "group")
    if of.pair is None:
        return f"Release nothing at ε = {epsilon}: no pair was found that errs less than publishing 0 everywhere."
    if asked.statistic is Statistic.USERS:
        return f"Count each user in at most {groups}, or about as many."
    amount = amount_words(asked, choice.max_amount)
    return f"Keep at most {groups} of each user, and {amount} in each, or about as many."


def detail(of: DistributionFound) -> str:
    """Return what is not known, and between which numbers the error is."""
    choice, known = of.choice, "**Only how pairs are distributed is known**, not which lie in which group."
    if choice.lower is None or choice.upper is None or of.pair is None:
        return known
    low, high = (error_words(of.parameters, x) for x in (choice.lower, choice.upper))
    return f"{known} Whatever lies where, the error is between {low} and {high}."


def numbers(of: DistributionFound) -> tuple[Number, ...]:
    """Return the pair and its error."""
    asked, choice = of.parameters, of.choice
    return (
        Number(
            "Best pair found",
            pair_words(asked, choice.max_groups, choice.max_amount) if of.pair else "none",
            clipboard_text=f"{choice.max_groups}, {choice.max_amount:.12g}" if of.pair else "",
        ),
        Number("Error, about", error_words(asked, choice.error), "", f"The {OBJECTIVES[asked.objective]}."),
    )


def facts(of: DistributionFound) -> dict[str, str]:
    """Return what is approximate, and how the pair was found."""
    return {"What is approximate": APPROXIMATE, "How it was found": of.choice.ended.split(". ")[0] + "."}


def what_is_used(of: DistributionFound) -> str:
    """Return what the answer was computed from."""
    pairs = wording.counted(int(of.problem.sizes.pairs.sum()), "pair")
    groups = wording.counted(of.problem.num_groups, "group")
    return f"{pairs} of a user and a group; {groups} of {wording.plain(of.label)} released."


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
