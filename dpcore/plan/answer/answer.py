"""The answer for a plan and its tabs, as all readers take them."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from dpcore.answer.answer import Answer, add_choice
from dpcore.answer.section import (
    Cached,
    Figures,
    Label,
    Parts,
    SearchResult,
    Sections,
    Solver,
)
from dpcore.code.forms import CodeChoice
from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput
from dpcore.common.strict_json import certificate_fields, finite_or_none
from dpcore.dataset import Dataset
from dpcore.plan.allocation import make_program, sum_weighted_squares
from dpcore.plan.answer import plots, words
from dpcore.plan.answer.solution import PlanSolution, solve
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import plan_lines

if TYPE_CHECKING:
    import pandas as pd


def solve_beside_page(dataset: Dataset, parameters: PlanParameters) -> Solver:
    """Divide the budget; the curves of the lines are the same at every epsilon, and are computed once."""
    curves = yield Cached(
        plan_lines, (dataset, replace(parameters, epsilon=1.0, objective=Objective.SUM)), kept=8
    )
    solution = yield Cached(solve, (dataset, parameters, curves))
    return SearchResult(solution)


def show_shares(answer: Answer, dataset: Dataset) -> Parts:
    """Show shares as bars, beside an equal split."""
    yield Figures((answer.plots["plan-shares"](),), "xy")
    yield Label()


SECTIONS: Sections = {"Shares": show_shares}


def build_answer(
    dataset: Dataset, parameters: PlanParameters, solution: PlanSolution | None = None
) -> Answer:
    """Divide one budget among several statistics, each under the bound that is best for its share.

    Args:
        dataset: How many rows users have; values and groups where lines need them.
        parameters: The question.
        solution: The solution for both; it is computed here by default.

    Returns:
        The answer; its ``solution`` is a `PlanSolution`, and ``bound`` a table with a row per line.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all wanted errors.

    Examples:
        Where each user has one row, users and rows are equally hard to count.

        >>> import dpcore as ss
        >>> answer = ss.plan_bounds([1] * 100, epsilon=1, lines="users; rows")
        >>> answer.headline
        'ε = 1 is enough for both numbers.'
        >>> answer.bound["share"].round(3).to_dict()
        {'users': 0.5, 'rows': 0.5}
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
            "plan-errors": lambda: plots.plot_errors(solution, dataset),
            "plan-shares": lambda: plots.plot_shares(solution, dataset),
        },
        make_methods=lambda: words.write_methods(solution, dataset),
        bound=lambda: _tabulate(solution),
        error=numbers[1].value,
        sections=SECTIONS,
    )
    certificate = proofs[0][1] if proofs else None
    return add_choice(answer, dataset, "several numbers", lambda: _list_details(solution, certificate))


def _list_details(solution: PlanSolution, certificate: Certificate | None) -> dict[str, object]:
    """List the numbers of the choice file; ``certificate`` is that of the weighted sum of squares."""
    return {
        "epsilon": solution.budget.epsilon,
        "weighted_sum_of_squares": sum_weighted_squares(solution.lines),
        "lines": [
            {
                "release": line.label,
                "parts_of_2_20": line.num_parts,
                "budget": line.amount,
                "noise_scale_at_sensitivity_1": finite_or_none(math.sqrt(line.v)),
                "bound": line.bound,
                "second_bound": finite_or_none(line.second_bound),
                "error": line.error,
                "unit": line.planned.unit,
                "wanted_error": line.planned.target_error,
                "budget_for_wanted_error": finite_or_none(needed_amount),
            }
            for line, needed_amount in zip(solution.lines, solution.needed_amounts.tolist(), strict=True)
        ],
        **certificate_fields(certificate),
    }


def _write_programs(solution: PlanSolution, dataset: Dataset) -> CodeChoice | None:
    """Write the programs of the plan; None if no program can apply a bound."""
    with contextlib.suppress(InvalidInput):  # A bound that no program could apply.
        if program := make_program(dataset, solution.parameters, solution.lines, solution.budget):
            return CodeChoice((("Plan", program),))
    return None


def _tabulate(solution: PlanSolution) -> pd.DataFrame:
    """Tabulate the plan, a row per line."""
    import pandas as pd

    names = ("share", "amount", "bound", "second_bound", "error")
    columns = {name: [getattr(line, name) for line in solution.lines] for name in names}
    planned_lines = [line.planned for line in solution.lines]
    return pd.DataFrame(
        {
            **columns,
            "unit": [line.unit for line in planned_lines],
            "wanted": [line.target_error for line in planned_lines],
            "reached_at": solution.reaching_epsilons,
        },
        index=pd.Index([line.label for line in solution.lines], name="release"),
    ).rename(columns={"amount": "budget"})
