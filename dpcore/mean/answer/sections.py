"""The tabs of a mean, and how it is solved beside a page."""

from __future__ import annotations

from dpcore.answer import Answer, Plot
from dpcore.answer.distribution import RANGE_SOURCE, OutsideCounts
from dpcore.answer.section import (
    BEHIND,
    DOWNLOADS,
    Cached,
    Figures,
    Found,
    Label,
    Missing,
    Note,
    Parts,
    PrivateRange,
    Proposal,
    Search,
    Sections,
    Solver,
    Table,
)
from dpcore.common import wording
from dpcore.common.privacy import ReleaseFacts
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, value_range
from dpcore.mean.answer import ranges, words
from dpcore.mean.answer.found import MeanSolution
from dpcore.mean.answer.found import solve as solve_at_once
from dpcore.mean.parameters import VarianceSource
from dpcore.mean.private_counts import PrivateCountsProblem
from dpcore.mean.read_values import ValueSummary

NO_VALUES = Missing("values, one per row", "Bring data with values")


def solve(data: Dataset, parameters: MeanParameters) -> Solver:
    """Find the best bounds; what is read of the values does not depend on epsilon, and is computed once."""
    read = yield Cached(ValueSummary.from_dataset, (data, parameters.lower, parameters.upper), kept=8)
    solution = yield Cached(solve_at_once, (data, parameters.without("own_cap"), read))
    return Found(solution)


def describe_inputs(answer: Answer, data: Dataset) -> Parts:
    """Name the quantities that the answer is computed with, and where they come from."""
    parameters, problem, clamped = answer.parameters, answer.solution.problem, answer.solution.clamped
    is_table = problem.table is not None
    sentences = [
        f"B = {wording.number(parameters.value_bound)}, σ² = {wording.number(problem.value_variance)}"
        f" (at most B²/4 = {wording.number(parameters.largest_variance)})"
        + (", the values themselves." if is_table else f", ρ = {wording.number(problem.user_share, 2)}.")
    ]
    if clamped is not None:
        outside = OutsideCounts(clamped.num_below, clamped.num_above, problem.histogram.num_rows)
        sentences.append(outside.write_sentence("[L, U]", " and is clamped", " and are clamped"))
    else:
        subject = "A DP release has" if isinstance(answer.disclosure, ReleaseFacts) else "These data have"
        sentences.append(f"{subject} no values, only counts: σ² cannot be read from them.")
        if parameters.variance_source is VarianceSource.FROM_VALUES:
            sentences.append("The worst case stands in for it.")
    if isinstance(problem, PrivateCountsProblem):
        sentences.append(
            "The effect of the noise is computed for the mean at which it is largest (L or U)."
            if problem.value_mean is None
            else "The effect of the noise is computed at the mean of the values, "
            f"{wording.number(parameters.lower + problem.value_mean)}."
        )
    yield Note(" ".join(sentences))


def show_weights(answer: Answer, data: Dataset) -> Parts:
    """Show how much one row counts against its user's size."""
    yield Figures((answer.plots["mean-weights"](),), controls="y", main_axes="x")


def show_hidden(answer: Answer, data: Dataset) -> Parts:
    """Show what the assumption of independent rows hides."""
    read = answer.solution.values
    if read is None:
        yield NO_VALUES
        return
    yield "\n".join(f"- {sentence}" for sentence in words.describe_shifts(answer.solution, read))
    yield Figures((answer.plots["mean-shift"](),), controls="y", main_axes="x")
    yield Label()


def compute_ranges(
    data: Dataset, parameters: MeanParameters, solution: MeanSolution
) -> tuple[ranges.Ranges, Plot, Plot]:
    """Return the best ranges, and the error over either end."""
    found = ranges.choose_ranges(data, solution, parameters)
    return found, ranges.plot_upper(found, data), ranges.plot_lower(found, data)


def show_ranges(answer: Answer, data: Dataset) -> Parts:
    """Show which range the values ask for, beside a search over the bound on rows."""
    if not ranges.has_range_choice(data):
        if data.values is None:
            yield NO_VALUES
        else:
            yield "All values are the same, or too large to square: no range is better than another."
        return
    look = ", **a private look**: no ε covers a range that is chosen by it." if data.is_private else "."
    yield (
        f"**A range that you know is the first choice**: it costs nothing. Enter it {RANGE_SOURCE} What follows "
        f"is read off the values{look}"
    )
    found, upper, lower = yield Cached(compute_ranges, (data, answer.parameters, answer.solution), kept=4)
    problem = found.rows.problem
    joint = yield Search(
        "range_search",
        problem.epsilon,
        lambda tell, stop: value_range.best_joint(problem, progress=tell, should_stop=stop),
        "Looking for the best range and bound",
        is_complete=lambda choice: choice.certificate.proves(value_range.TOLERANCE * 1.05),
        kept=32,
        seconds=0.3,
        soon=0.3,
        light=True,
    )
    alt = "The range in use beside the best ones, with the three parts of the error of each"
    yield Table(ranges.build_table(found, joint), alt)
    if data.is_private:
        yield Note(
            "None of these is entered here: a range that was read off private values would leak into all that is "
            "released with it. It can be drawn privately, with an ε of its own."
        )
        yield PrivateRange()
    elif joint is not None and ranges.is_usable(problem, joint):
        low, high = ranges.round_outward(joint)
        if (low, high) == (found.lower, found.upper):
            yield Note("The range in use is the best one.")
        else:
            label = f"Use L = {wording.entered(low)}, U = {wording.entered(high)}"
            yield Proposal(label, "straighten", {"lower": low, "upper": high})
    yield Label(after="\n".join(f"- {sentence}" for sentence in ranges.describe_ranges(found, joint)))
    yield Figures((upper, lower), titled=True)


def count_weights(answer: Answer, data: Dataset) -> Parts:
    """Say how long the file of the weights is."""
    yield Note(f"{wording.counted(data.histogram.sizes.size, 'line')} of weights.")


SECTIONS: Sections = {
    BEHIND: describe_inputs,
    "Rows and users": {"Weight of a row": show_weights, "When users differ": show_hidden},
    "Range": show_ranges,
    DOWNLOADS: count_weights,
}
