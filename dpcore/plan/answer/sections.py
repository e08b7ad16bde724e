"""The tabs of a plan, and how it is solved beside a page."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from dpcore.answer import Answer
from dpcore.answer.section import Cached, Figures, Found, Label, Parts, Refusal, Sections, Solver, Table
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.dataset import Dataset
from dpcore.plan.answer import found, noises, words
from dpcore.plan.lines import LineStatistic
from dpcore.plan.one_truncation import find_bound_over_groups, find_common_bound
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import plan_lines


def solve(data: Dataset, parameters: PlanParameters) -> Solver:
    """Divide the budget; the curves of the lines are the same at every epsilon, and are computed once."""
    curves = yield Cached(
        plan_lines, (data, replace(parameters, epsilon=1.0, objective=Objective.SUM)), kept=8
    )
    solution = yield Cached(found.solve, (data, parameters, curves))
    return Found(solution)


def show_shares(answer: Answer, data: Dataset) -> Parts:
    """Show shares as bars, beside an equal split."""
    yield Figures((answer.plots["plan-shares"](),), "xy")
    yield Label()


def show_noises(answer: Answer, data: Dataset) -> Parts:
    """Show Laplace against Gaussian noise, both as the program draws them."""
    solution = answer.solution
    both = yield Cached(noises.compare_noises, (data, answer.parameters, solution), kept=8)
    yield wording.capital(noises.write_comparison(both, solution, answer.parameters))
    if columns := noises.tabulate_comparison(both, solution):
        yield Table(columns, "Errors with either noise", full=True)
    yield Label()


def show_one_bound(answer: Answer, data: Dataset) -> Parts:
    """Show what one truncation of the table for all lines costs."""
    solution, parameters = answer.solution, answer.parameters
    try:
        one = yield Cached(find_common_bound, (data, parameters, solution.planned, solution.budget), kept=8)
    except InvalidInput as refused:
        yield Refusal(refused)
    else:
        yield words.describe_common_bound(one, solution)
        yield Table(words.tabulate_common_bound(one, solution), "Errors under one bound on rows", full=True)
    for line in solution.lines:
        if line.planned.line.statistic is LineStatistic.GROUP_ROWS and not line.is_dropped:
            with contextlib.suppress(InvalidInput):  # Rows in no group, which is said above.
                bound = find_bound_over_groups(data, parameters, line.planned, line.v)
                yield words.describe_bound_over_groups(line, *bound)
    yield Label()


SECTIONS: Sections = {
    "Shares": show_shares,
    "Alternatives": {"Laplace or Gaussian": show_noises, "One bound for all": show_one_bound},
}
