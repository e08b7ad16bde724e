"""The answer for a plan: one object that page, report, files, script and notebook read."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from dpcore.answer import Answer
from dpcore.answer.answer import add_choice
from dpcore.code.forms import CodeChoice
from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput
from dpcore.common.strict_json import certificate_fields, finite_or_none
from dpcore.dataset import Dataset
from dpcore.plan.answer import noises, plots, words
from dpcore.plan.answer.found import PlanSolution, solve
from dpcore.plan.answer.methods import write_methods
from dpcore.plan.drawn import sum_weighted_squares
from dpcore.plan.parameters import PlanParameters
from dpcore.plan.programs import make_program

if TYPE_CHECKING:
    import pandas as pd
from dpcore.plan.answer.sections import SECTIONS


def build_answer(
    dataset: Dataset, parameters: PlanParameters, solution: PlanSolution | None = None
) -> Answer:
    """Divide one budget among several statistics, each under the bound that is best for its share.

    Args:
        dataset: How many rows users have; values and groups where lines need them.
        parameters: The question.
        solution: What `find` found for both; computed here by default, and then both noises are compared, too.

    Returns:
        The answer; its ``solution`` is a `PlanSolution`, and ``bound`` a table with a row per line.

    Raises:
        InvalidInput: The data lack what a line needs, or no epsilon is enough for all wanted errors.
    """
    compares_noises = solution is None
    solution = solve(dataset, parameters) if solution is None else solution
    proofs = words.list_proofs(solution, parameters)
    numbers = words.build_numbers(solution, parameters)
    facts = words.build_facts(solution, parameters)
    if certainty_text := words.describe_uncertainty(solution, parameters):
        facts = {"How sure": certainty_text, **facts}
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, dataset),
        numbers=numbers,
        assumptions=words.list_assumptions(solution),
        disclosure=dataset.provenance,
        facts=facts,
        proofs=proofs,
        code=_write_programs(solution, dataset, parameters),
        parameters=parameters,
        solution=solution,
        plots={
            "plan-errors": lambda: plots.plot_errors(solution, dataset),
            "plan-shares": lambda: plots.plot_shares(solution, dataset),
        },
        make_methods=lambda: write_methods(solution, dataset, parameters),
        bound=lambda: _tabulate(solution),
        error=numbers[1].value,
        sections=SECTIONS,
    )
    certificate = proofs[0][1] if proofs else None
    answer = add_choice(answer, dataset, "several numbers", lambda: _list_details(solution, certificate))
    return add_noise_comparison(answer, dataset) if compares_noises else answer


def _list_details(solution: PlanSolution, certificate: Certificate | None) -> dict[str, object]:
    """List the numbers of the choice file; ``certificate`` is that of the weighted sum of squares."""
    return {
        "epsilon": solution.budget.epsilon,
        "weighted_sum_of_squares": sum_weighted_squares(solution.lines),
        "lines": [
            {
                "release": line.planned.line.label,
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


def add_noise_comparison(answer: Answer, dataset: Dataset) -> Answer:
    """Add the fact that compares both noises: a second plan, for which a moved slider does not wait.

    Args:
        answer: Of a plan.
        dataset: What it is about.
    """

    def write_comparison() -> str:
        comparison = noises.compare_noises(dataset, answer.parameters, answer.solution)
        return noises.write_comparison(comparison, answer.solution, answer.parameters)

    return replace(answer, facts=noises.LaterFacts(answer.facts, "Laplace or Gaussian", write_comparison))


def _write_programs(
    solution: PlanSolution, dataset: Dataset, parameters: PlanParameters
) -> CodeChoice | None:
    """Write the programs of the plan; None if no program can apply a bound."""
    try:
        program = make_program(dataset, parameters, solution.lines, solution.budget)
    except InvalidInput:  # A bound that no program could apply.
        return None
    return None if program is None else CodeChoice((("Plan", program),))


def _tabulate(solution: PlanSolution) -> pd.DataFrame:
    """Tabulate the plan, a row per line."""
    import pandas as pd

    rows = [
        (
            line.planned.line.label,
            line.share,
            line.amount,
            line.bound,
            line.second_bound,
            line.error,
            line.planned.unit,
        )
        for line in solution.lines
    ]
    names = ["release", "share", "budget", "bound", "second_bound", "error", "unit"]
    return (
        pd.DataFrame(rows, columns=names)
        .set_index("release")
        .assign(
            wanted=[line.planned.target_error for line in solution.lines],
            reached_at=solution.reaching_epsilons,
        )
    )
