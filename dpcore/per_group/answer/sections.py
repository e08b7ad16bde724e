"""The tabs of a release per group, and how its answer is found beside a page."""

from __future__ import annotations

from dpcore.answer.answer import Answer
from dpcore.answer.section import BEHIND, Cached, Columns, Note, Parts, Search, SearchResult, Sections, Solver
from dpcore.common.privacy import write_file_name
from dpcore.common.progress import Stage
from dpcore.dataset import Dataset
from dpcore.per_group.answer import words
from dpcore.per_group.answer.plots import MOST_POINTS
from dpcore.per_group.answer.solution import (
    DistributionSolution,
    PerGroupSolution,
    check,
    solve,
    solve_by_distribution,
)
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.report.script import Code, Source


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


def choose_pair(dataset: Dataset, parameters: PerGroupParameters) -> PerGroupSolution | DistributionSolution:
    """Find the best pair for pairs of users and groups, or for how these are distributed."""
    is_summary = dataset.pairs is None and dataset.pair_sizes is not None
    return solve_by_distribution(dataset, parameters) if is_summary else solve(dataset, parameters)


def solve_beside_page(dataset: Dataset, parameters: PerGroupParameters) -> Solver:
    """Find the best pair, at once if that is short; until then the answer before stands."""
    num_pairs = 0 if dataset.pairs is None else dataset.pairs.user_codes.size
    short = SHORT_MEAN if parameters.statistic is Statistic.MEAN else SHORT
    if dataset.pairs is None or not (parameters.selection.is_private or num_pairs > short):
        solution = yield Cached(choose_pair, (dataset, parameters), kept=8)
        return SearchResult(solution)
    yield Cached(check, (dataset, parameters))
    doing = "Looking for the best pair"
    state: SearchResult = yield Search(
        "job",
        parameters,
        lambda progress, should_stop: solve(dataset, parameters, progress, should_stop),
        doing,
        heavy=num_pairs >= HEAVY,
        doing_at={
            Stage.EARLIER: f"{doing}. Until it is found, the answer to what was asked before stands here"
        },
    )
    return state


def describe_inputs(answer: Answer, dataset: Dataset) -> Parts:
    """Say what the answer was computed from."""
    yield Note(words.describe_data(answer.solution, dataset))


def show_scaling(answer: Answer, dataset: Dataset) -> Parts:
    """Show the error against the bound on a user's whole vector."""
    if "per-group-norm" not in answer.plots:
        yield Note(
            "Bounds on whole vectors are for rows, distinct users and sums of amounts of at least 0.", "info"
        )
        return
    yield (
        "Instead of dropping groups at random, bound the norm of each user's whole vector: cut all of their groups at "
        "*one level*, or *scale* all of them alike. For every pair there is a level that errs no more in any group, so "
        "the best level is no worse over all groups. Scaling often errs least over all groups."
    )
    yield answer.plots["per-group-norm"]()


def show_survival(answer: Answer, dataset: Dataset) -> Parts:
    """Show which groups are released, and what they and the lost ones add to the error."""
    yield "\n".join(f"- {sentence}" for sentence in words.describe_survival(answer.solution))
    if "per-group-survival" not in answer.plots:
        return
    yield answer.plots["per-group-survival"]()
    yield from _describe_sample(answer, "users")
    if over_epsilon := [[plot()] for key, plot in answer.plots.items() if key.endswith("over-epsilon")]:
        yield Columns(tuple(over_epsilon))


def show_groups(answer: Answer, dataset: Dataset) -> Parts:
    """Show every group's error against its size."""
    yield "\n".join(f"- {sentence}" for sentence in words.describe_groups(answer.solution))
    yield answer.plots["per-group-sizes"]()
    yield from _describe_sample(answer, "sizes")


def _describe_sample(answer: Answer, basis: str) -> Parts:
    if answer.solution.problem.pairs.num_entries > MOST_POINTS:
        yield Note(f"{MOST_POINTS:,} groups are drawn, evenly spread over their {basis}.")


def build_sections(solution: PerGroupSolution) -> Sections:
    """Return the tabs, which depend on whether groups are selected."""
    first: Sections = {"Scaling instead": show_scaling}
    if solution.selected is not None:
        first = {"Which groups survive": show_survival}
    return {BEHIND: describe_inputs, **first, "Error of each group": show_groups}
