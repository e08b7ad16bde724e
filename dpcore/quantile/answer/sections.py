"""The tabs of a quantile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcore.answer import Answer, Plot
from dpcore.answer.plot import Limits
from dpcore.answer.section import (
    BEHIND,
    Choice,
    Columns,
    Fields,
    Figures,
    Integer,
    Label,
    Note,
    Parts,
    Search,
    Sections,
    Window,
)
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.quantile import optimal_bound, several
from dpcore.quantile.answer import found as core
from dpcore.quantile.answer import plots, words
from dpcore.quantile.answer.found import Poorer, QuantileFound
from dpcore.quantile.answer.search import with_defaults

MAX_DRAWS, DEFAULT_DRAWS = 100_000, 2000


def describe_inputs(answer: Answer, data: Dataset) -> Parts:
    """Say which values the answer is for."""
    yield Note(words.inputs(data, answer.parameters))


def show_answers(answer: Answer, data: Dataset) -> Parts:
    """Show where the answer falls, in value and in rank."""
    yield Columns((_show_density(answer.solution, data), [answer.plots["quantile-near"]()]))


def _show_density(solution: QuantileFound, data: Dataset) -> Parts:
    limits = yield _choose_values(
        solution, "where", lambda limits: plots.plot_density(solution, data, limits)
    )
    outside = 1.0 - min(float(one.cdf(limits[1]) - one.cdf(limits[0])) for one in solution.outputs)
    if outside > 1.0 - words.MOST:
        yield Note(words.outside(outside))


def _choose_values(solution: QuantileFound, tab: str, draw: Callable[[Limits], Plot]) -> Window:
    """Return a plot over the values that a person chooses to see."""
    initial, widest = core.window(solution)
    key = f"quantile_values_{tab}_{solution.parameters.quantiles}"
    return Window(draw, initial, widest, key, "Values shown", "From and to, unit of the values")


def show_poorer_bases(answer: Answer, data: Dataset) -> Parts:
    """Show how a poor base distribution hurts."""
    solution, parameters = answer.solution, answer.parameters
    yield (
        "The answer is drawn from ν, with more weight near the quantile. **The more of ν lies far from the quantile, "
        "the more budget it takes**; where ν has no mass near the quantile, no budget helps (assumption 1 of the "
        "paper)."
    )
    yield words.base(solution)
    way = yield Choice("poorer", "Make ν poorer", {way: way.value for way in Poorer})
    yield words.poorer(solution, way)
    steps, bases = core.poorer_bases(parameters, way)
    weighting, bound = solution.kind, solution.bound
    errors = yield Search(
        "poorer_job",
        (with_defaults(parameters), weighting, bound, way),
        lambda tell, stop: optimal_bound.base_errors(
            solution.problem, bases, weighting, bound, tell, stop, quantiles=parameters.asked
        ),
        "Trying poorer bases",
        seconds=0.0,
        soon=0.0,
    )
    if errors is None:
        return
    if np.isnan(errors).any():
        yield Note("Stopped early. The figure shows what had been computed.")
    yield plots.plot_poorer(solution, way, steps, errors, data)
    yield Label()


def show_paper_bound(answer: Answer, data: Dataset) -> Parts:
    """Show the paper's bound, from counts alone."""
    yield (
        "This bound holds **without a look at the values**: with probability 1 − 2γ the weighted rank of the answer "
        "lies within it of q. It uses how many rows each user has "
        f"({'private, as a user is protected' if answer.parameters.protects_users else 'public here'}) "
        "and what you believe of ν: that it "
        "gives mass β to the values within α of the quantile. The best bound by it reveals nothing about the values."
    )
    yield Fields(("alpha", "beta", "gamma", "population"), shares=(2, 2, 2, 4))
    yield words.paper(answer.solution)
    yield Figures((answer.plots["quantile-paper"](),), main_axes="x")
    yield Label()


def show_samples(answer: Answer, data: Dataset) -> Parts:
    """Show simulated answers beside the exact distribution."""
    yield (
        "**Simulation**: the mechanism is run again and again. Points should lie on the exact probabilities. The noise "
        "comes from NumPy, so this is not a release."
    )
    note = f"From 10 to {MAX_DRAWS:,}. Each takes a pass over all distinct values."
    draws = yield Integer("draws", "Answers to draw", (10, MAX_DRAWS), DEFAULT_DRAWS, 100, note)
    if draws is None:
        return
    exact = answer.solution
    simulation = yield Search(
        "draws_job",
        (answer.parameters, exact.bound, draws),
        lambda tell, stop: (
            exact,
            several.sample_answers(exact.together, draws, progress=tell, should_stop=stop),
        ),
        "Drawing answers",
        "Draw answers",
        "casino",
        idle="It has not run yet.",
        shows_outdated=True,
    )
    if simulation is None:
        return
    solution, sampled = simulation
    count = sampled.answers.shape[0]
    if sampled.cancelled:
        yield Note(f"Stopped early: {wording.counted(count, 'answer')} drawn.")
    if count == 0:
        return
    yield _choose_values(exact, "samples", lambda limits: plots.plot_samples(solution, sampled, limits, data))
    yield Label()
    yield "\n".join(f"- {line}" for line in words.samples(solution, sampled))


SECTIONS: Sections = {
    BEHIND: describe_inputs,
    "Where the answer falls": show_answers,
    "Studies": {
        "Base distribution": show_poorer_bases,
        "The paper's bound": show_paper_bound,
        "Sampled answers": show_samples,
    },
}
