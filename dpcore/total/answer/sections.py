"""The tabs of a sum or a count, and how it is solved beside a page."""

from __future__ import annotations

from dataclasses import replace

from dpcore.answer import Answer
from dpcore.answer.section import (
    BEHIND,
    Cached,
    Columns,
    Figures,
    File,
    Found,
    Label,
    Note,
    PaperFigures,
    Parts,
    Search,
    Sections,
    Solver,
)
from dpcore.dataset import Dataset
from dpcore.total.answer import strategies, words
from dpcore.total.answer.found import solve as solve_at_once
from dpcore.total.paper import FIGURES
from dpcore.total.parameters import TotalParameters, user_totals
from dpcore.total.strategies import simulate_strategies


def solve(data: Dataset, parameters: TotalParameters) -> Solver:
    """Find the best bound; what every user adds does not depend on epsilon, and is computed once."""
    totals = yield Cached(user_totals, (data, parameters.summed))
    solution = yield Cached(solve_at_once, (data, parameters.about_data, totals))
    return Found(solution)


def describe_inputs(answer: Answer, data: Dataset) -> Parts:
    """Say what is added up."""
    yield Note(words.describe_totals(answer.solution.user_totals, data))


def show_measures(answer: Answer, data: Dataset) -> Parts:
    """Show the error by every measure, and which noise has the smaller one."""
    solution = answer.solution
    sentences = (
        words.write_measures_table(solution),
        words.describe_bound(solution),
        words.compare_noises(solution, has_delta=answer.parameters.delta is not None),
    )
    yield Columns((sentences, (answer.plots["total-measures"](),)))
    yield Label()


def show_strategies(answer: Answer, data: Dataset) -> Parts:
    """Show four ways to choose T (figure 1 of the paper): on the data in use, and at the paper's setting."""
    yield (
        "A fixed quantile of the users' totals is a near-best bound only around one ε: at smaller ε its error is "
        "nearly all noise, at larger ε nearly all bias, and its curve is flat there. The best bound moves with ε. "
        "*This is figure 1 of Amin et al. 2019, drawn for your data.*"
    )
    parameters, problem = answer.parameters, replace(answer.solution.problem, epsilon=1.0)
    points = yield Search(
        "job",
        replace(parameters.without("own_bound", "lower", "upper", "highest_total"), epsilon=1.0),
        lambda tell, stop: simulate_strategies(
            problem,
            strategies.choose_epsilons(problem.amounts, points_per_decade=2),
            strategies.list_strategies(parameters.own_share),
            parameters.runs,
            parameters.seed,
            tell,
            stop,
        ),
        "Simulating",
        "Simulate",
        "casino",
        ("own_share", "runs", "seed"),
        idle="The curves are exact. *Simulate* runs the mechanism and lays its errors over them.",
        outdated="Settings have changed since the simulation; it is not shown.",
    )
    curves = yield Cached(strategies.compute_curves, (problem, parameters.own_share))
    yield Figures((strategies.plot_strategies(curves, data, parameters.epsilon, points),), "xy")
    yield "\n".join(f"- {sentence}" for sentence in strategies.write_sentences(curves, points))
    if points is not None:
        yield File("Simulated points (CSV)", "total_simulated.csv", strategies.tabulate_points(points))
    yield Label()
    yield PaperFigures(FIGURES)


SIGNED_SECTIONS: Sections = {BEHIND: describe_inputs}
SECTIONS: Sections = {
    **SIGNED_SECTIONS,
    "Measures and noise": show_measures,
    "Four ways to choose a bound": show_strategies,
}
