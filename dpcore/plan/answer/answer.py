"""The answer for a plan, its plots and its tab, as all readers take them."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.answer import Axis, Bars, Column, Curve, Item, Level, Mark, Plot, Style, names_axis, share_axis
from dpcore.answer.answer import Answer, add_json_writer
from dpcore.answer.plot import Toggle
from dpcore.answer.section import Cached, Figures, Label, Parts, SearchResult, Sections, Solver
from dpcore.code.forms import OfferedPrograms
from dpcore.code.several import SHARED_COUNT_NAME
from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import choose_library
from dpcore.common.strict_json import convert_certificate, finite_or_none
from dpcore.common.wording import capitalise, format_number, format_percent
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.plan.answer import words
from dpcore.plan.parameters import MAX_AMOUNT, Objective, PlanParameters
from dpcore.plan.solution import AllocatedLine, PlanSolution, make_program, solve, sum_weighted_squares
from dpcore.plan.table import plan_lines

if TYPE_CHECKING:
    import pandas as pd


STYLES_OF_LINES = (Style.CAP, Style.SMOOTH, Style.SAMPLING, Style.PRIVACY, Style.CUSTOMARY)
"""Styles of the lines with the largest shares."""
EPSILON_AXIS_RANGE = (0.02, 50.0)
"""The least that the axis of epsilon covers."""


def _sample_epsilons(
    solution: PlanSolution, epsilon_limits: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return epsilons of the plan for the axis, and for each the v of a line that takes all of the budget."""
    budget = solution.budget
    if budget.mechanism is NoiseKind.LAPLACE:
        epsilons = np.geomspace(*epsilon_limits, 61)
        return epsilons, budget.full_v * (budget.epsilon / epsilons) ** 2
    # From amount to epsilon, one call of OpenDP each (2 ms), and not back, which is a search. mu^2 = 20 is about
    # epsilon = 30.
    plan_mu_squared = 1.0 / budget.full_v
    largest_mu_squared = max(40.0, min(plan_mu_squared * 2.0, 0.999 * MAX_AMOUNT))
    amounts = np.geomspace(min(1e-5, plan_mu_squared / 2.0), largest_mu_squared, 33)
    return np.array([budget.convert_to_epsilon(amount) for amount in amounts.tolist()]), 1.0 / amounts


def plot_errors(solution: PlanSolution, dataset: Dataset) -> Plot:
    """Plot error over target error of the lines with the largest shares over the epsilon of the whole plan."""
    plan_epsilon, lines = solution.budget.epsilon, solution.lines
    epsilon_limits = (
        min(EPSILON_AXIS_RANGE[0], plan_epsilon / 2.0),
        max(EPSILON_AXIS_RANGE[1], plan_epsilon * 2.0),
    )
    epsilons, full_budget_v = _sample_epsilons(solution, epsilon_limits)
    plan_ratio_arrays, equal_ratio_arrays = (
        [solution.compute_error_ratios(line, full_budget_v) for line in allocated_lines]
        for allocated_lines in (lines, solution.equal_split_lines)
    )
    columns_by_name: dict[str, FloatArray] = {"epsilon": epsilons}
    for line, plan_ratios, equal_ratios in zip(lines, plan_ratio_arrays, equal_ratio_arrays, strict=True):
        columns_by_name[f"{line.label}: error over wanted"] = plan_ratios
        columns_by_name[f"{line.label}: at an equal share"] = equal_ratios
    lines_with_ratios = list(zip(lines, plan_ratio_arrays, equal_ratio_arrays, strict=True))
    lines_with_ratios.sort(key=lambda line_with_ratios: -line_with_ratios[0].num_parts)
    styled_lines = list(zip(STYLES_OF_LINES, lines_with_ratios, strict=False))
    equal_share_options: dict[str, Any] = {"dash": "dot", "opacity": 0.7, "is_unnamed": True}
    items: list[Item] = [
        Curve(
            f"{line.label}, equal share", epsilons, equal_ratios, line_style, width=1.5, **equal_share_options
        )
        for line_style, (line, _, equal_ratios) in styled_lines
        if len(lines) > 1
    ]
    for line_style, (line, plan_ratios, _) in styled_lines:
        items += [
            Curve(line.label, epsilons, plan_ratios, line_style, dash="solid", width=2.5),
            Mark(f"{line.label}, this plan", plan_epsilon, line.error_ratio, line_style, is_unnamed=True),
        ]
    equal_names = tuple(item.name for item in items if isinstance(item, Curve) and item.is_unnamed)
    items += [
        Level("Target error", 1.0),
        Level("ε of this plan", plan_epsilon, is_vertical=True, style=Style.TOTAL),
    ]
    ratios = np.concatenate([*plan_ratio_arrays, *equal_ratio_arrays])
    ratios = ratios[np.isfinite(ratios) & (ratios > 0.0)]
    low_ratio = min(max(float(ratios.min(initial=0.5)) / 1.5, 1e-3), 0.5)
    high_ratio = min(max(float(ratios.max(initial=2.0)) * 1.5, 2.0), 1e4)
    return Plot(
        "plan-errors",
        "Error of each number over ε",
        f"At ε = {format_number(plan_epsilon)}, {solution.num_reached} of {len(lines)} meet their targets.",
        Axis("ε of the whole plan", "", epsilon_limits),
        Axis("error", "target error = 1", (low_ratio, high_ratio), number_format=".3~g"),
        items,
        dataset.provenance,
        columns_by_name,
        is_main=True,
        toggles=(Toggle("Equal shares", equal_names),) if equal_names else (),
    )


def plot_shares(solution: PlanSolution, dataset: Dataset) -> Plot:
    """Plot the share of each line in the plan, in an equal split, and in what all targets need if that is possible."""
    line_labels = [allocated_line.label for allocated_line in solution.lines]
    plan_shares = np.array([allocated_line.share for allocated_line in solution.lines])
    equal_shares = np.array([allocated_line.share for allocated_line in solution.equal_split_lines])
    bars = [
        Bars("This plan", line_labels, Column("share", plan_shares), Style.CAP),
        Bars("Equal split", line_labels, Column("equal_share", equal_shares), Style.CUSTOMARY),
    ]
    total_amount = float(solution.needed_amounts.sum())
    if 0.0 < total_amount < np.inf:  # Else one of them is never reached, or all are without any budget.
        needed_column = Column("needed_share", solution.needed_amounts / total_amount)
        bars.append(Bars("What all target errors need", line_labels, needed_column, Style.SMOOTH))
    largest_share_index = int(np.argmax(plan_shares))
    largest_share_text = format_percent(float(plan_shares.max()))
    share_limits = (0.0, min(1.0, 1.1 * max(float(np.max(bar.y)) for bar in bars)))
    return Plot(
        "plan-shares",
        "Shares of the budget",
        f"{capitalise(line_labels[largest_share_index])} gets {largest_share_text} of the budget.",
        names_axis("number", " "),
        share_axis("share of the budget", share_limits, number_format=".1%"),
        bars,
        dataset.provenance,
        height=360,
    )


def solve_beside_page(dataset: Dataset, parameters: PlanParameters) -> Solver:
    """Divide the budget in cached steps: the curves of the lines, the same at every epsilon, are computed once."""
    curve_parameters = replace(parameters, epsilon=1.0, objective=Objective.SUM)
    planned_lines = yield Cached(plan_lines, (dataset, curve_parameters), num_kept=8)
    return SearchResult((yield Cached(solve, (dataset, parameters, planned_lines))))


def show_errors(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the plot of the error of each line over the epsilon of the plan."""
    yield Figures((answer.plots["plan-errors"](),), "xy")


def show_shares(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the plot of the lines' shares, beside an equal split."""
    yield Figures((answer.plots["plan-shares"](),), "xy")
    yield Label()


SECTIONS: Sections = {"Error vs. ε": show_errors, "Shares": show_shares}


def build_answer(
    dataset: Dataset, parameters: PlanParameters, solution: PlanSolution | None = None
) -> Answer:
    r"""Divide one budget among several statistics, each under the bound that is best for its share.

    Args:
        dataset: How many rows users have; values and groups where lines need them.
        parameters: The question.
        solution: The solution for both; it is computed here by default.

    Returns:
        The answer; its ``solution`` is a `PlanSolution`, and ``bound`` a table with a row per line.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all target errors.

    Examples:
        Where each user has one row, users and rows are equally hard to count.

        >>> import dpcore as ss
        >>> answer = ss.plan_bounds([1] * 100, epsilon=1, lines="users; rows")
        >>> answer.headline
        'ε = 1 is enough for both numbers within 5\xa0%.'
        >>> answer.bound["share"].round(3).to_dict()
        {'users': 0.5, 'rows': 0.5}

        The variance of 100 users with a row each, half at either end of [0, 10], errs by noise alone: √2/2, and less
        after it is moved below 25, the largest variance in that range.

        >>> import pandas as pd
        >>> table = pd.DataFrame({"user": range(100), "value": [0.0, 10.0] * 50})
        >>> columns = {"user": "user", "value": "value", "disclosure": "public"}
        >>> answer = ss.variance_bound(table, **columns, epsilon=1, lower=0, upper=10)
        >>> answer.headline
        'All of ε = 1 goes to variance (1 row per user), and it is enough for a target of 5\xa0%.'
        >>> round(answer.solution.lines[0].curve_error, 3), round(answer.solution.lines[0].error, 2)
        (0.707, 0.49)
    """
    solution = solve(dataset, parameters) if solution is None else solution
    proofs, numbers = words.list_proofs(solution), words.build_numbers(solution)
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, dataset),
        numbers=numbers,
        assumptions=words.list_assumptions(solution),
        disclosure=dataset.provenance,
        facts=words.build_facts(solution),
        proofs=proofs,
        code=_write_programs(solution, dataset),
        parameters=parameters,
        solution=solution,
        plots={
            "plan-errors": lambda: plot_errors(solution, dataset),
            "plan-shares": lambda: plot_shares(solution, dataset),
        },
        # The least epsilon of private data is one more number that was computed from them.
        make_methods=None
        if dataset.is_private and parameters.objective is Objective.REACH
        else lambda: words.write_methods(solution, dataset),
        bound=lambda: _tabulate(solution),
        error=numbers[1].value,
        relative_error=words.measure_relative_error(solution),
        sections=SECTIONS,
    )
    certificate = proofs[0][1] if proofs else None
    return add_json_writer(
        answer,
        dataset,
        "several numbers",
        lambda: _list_plan_entries(solution, certificate),
        epsilon=solution.budget.epsilon,
    )


def _list_plan_entries(solution: PlanSolution, certificate: Certificate | None) -> dict[str, object]:
    """Return the JSON entries of the plan and its lines; ``certificate`` is that of the weighted sum of squares."""
    return {
        "epsilon": solution.budget.epsilon,
        "weighted_sum_of_squares": sum_weighted_squares(solution.lines),
        "lines": [
            {
                "release": line.label,
                "parts_of_2_20": line.num_parts,
                "budget": line.spent_budget,
                "noise_scale_at_sensitivity_1": finite_or_none(math.sqrt(line.v)),
                "bound": line.bound,
                "second_bound": finite_or_none(line.second_bound),
                "error": line.error,
                "unit": line.planned_line.unit,
                "wanted_error": line.planned_line.target_error,
                "budget_for_wanted_error": finite_or_none(needed_amount),
            }
            for line, needed_amount in zip(solution.lines, solution.needed_amounts.tolist(), strict=True)
        ],
        **({} if (line := solution.count_line) is None else {"shared_count": _list_count_entries(line)}),
        **convert_certificate(certificate),
    }


def _list_count_entries(line: AllocatedLine) -> dict[str, object]:
    """Return the JSON entries of a count of rows that only means need."""
    return {"release": SHARED_COUNT_NAME, "parts_of_2_20": line.num_parts, "bound": line.bound}


def _write_programs(solution: PlanSolution, dataset: Dataset) -> OfferedPrograms | None:
    """Build the programs of the plan; None if all lines are dropped, or if no program can apply a bound."""
    with contextlib.suppress(InvalidInput):  # A bound that no program could apply.
        program_arguments = dataset, solution.parameters, solution.lines, solution.budget, solution.count_line
        if several_releases := make_program(*program_arguments):
            noise_library = choose_library(solution.parameters.program, solution.parameters.mechanism)
            return OfferedPrograms((("Plan", several_releases),), noise_library)
    return None


def _tabulate(solution: PlanSolution) -> pd.DataFrame:
    """Build a table with a row per line, indexed by its label: share, budget, bounds, error, unit and target."""
    import pandas as pd

    line_fields = ("share", "spent_budget", "bound", "second_bound", "error")
    # The count that means share needs no target.
    count_lines = list(filter(None, [solution.count_line]))
    allocated_lines = [*solution.lines, *count_lines]
    columns_by_name = {name: [getattr(line, name) for line in allocated_lines] for name in line_fields}
    planned_lines = [line.planned_line for line in allocated_lines]
    target_errors = [line.target_error for line in planned_lines[: len(solution.lines)]]
    missing_targets = [math.nan] * len(count_lines)
    return pd.DataFrame(
        {
            **columns_by_name,
            "unit": [line.unit for line in planned_lines],
            "wanted": [*target_errors, *missing_targets],
            "reached_at": [*solution.reaching_epsilons, *missing_targets],
        },
        index=pd.Index(solution.labels, name="release"),
    ).rename(columns={"spent_budget": "budget"})
