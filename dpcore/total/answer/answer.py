"""The answer for a sum or a count: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer, ReleaseSetting, without_numbers
from dpcore.answer.parts import BIAS, NOISE, build_error_parts
from dpcore.code import Quantity
from dpcore.code.forms import summed_column
from dpcore.dataset import Dataset
from dpcore.total import files
from dpcore.total.answer import code, methods, plots, signed_words, strategies, words
from dpcore.total.answer.found import SignedSolution, TotalSolution, solve
from dpcore.total.nonnegative import NEIGHBOURS
from dpcore.total.parameters import ASSUMPTIONS, ASSUMPTIONS_ON_RELEASE, SIGNED_ASSUMPTIONS, TotalParameters


def build_answer(
    data: Dataset, parameters: TotalParameters, solution: TotalSolution | SignedSolution | None = None
) -> Answer:
    """Find the best bound on what one user adds to a sum or a count; where totals have both signs, a range.

    Args:
        data: How many rows users have; where a column is added up, its total per user.
        parameters: The question.
        solution: What `solve` found for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `TotalSolution`, or a `SignedSolution` where some total is negative. Plots are
        computed when they are asked for.

    Raises:
        InvalidInput: There is nothing to add up, or all of it is 0.

    Source: Amin et al. 2019, section 3.
    """
    solved = solve(data, parameters) if solution is None else solution
    return (
        _build_signed(data, parameters, solved)
        if isinstance(solved, SignedSolution)
        else _build_nonnegative(data, parameters, solved)
    )


def _build_nonnegative(data: Dataset, parameters: TotalParameters, solution: TotalSolution) -> Answer:
    return Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, data),
        numbers=words.list_numbers(solution),
        assumptions=ASSUMPTIONS if data.release is None else ASSUMPTIONS_ON_RELEASE,
        disclosure=data.provenance,
        facts=words.list_facts(solution, parameters.own_bound),
        proofs=(("Bound", solution.choice.certificate, solution.choice.stop_reason),),
        code=code.write_total_forms(solution, data),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots={
            "total-error": lambda: plots.errors(solution, data, parameters.own_bound),
            "total-measures": lambda: plots.measures(solution, data),
            "total-strategies": lambda: strategies.plot_strategies(
                strategies.compute_curves(solution.problem, parameters.own_share), data, parameters.epsilon
            ),
        },
        make_methods=lambda: methods.write_methods(solution, data, parameters),
        choice=lambda: files.total_choice_json(
            data, parameters, solution.problem, solution.choice, solution.near_optimal, solution.unit.column
        ),
        setting=_setting(parameters, solution.unit.column or summed_column(data)),
        error_parts=build_error_parts(
            {
                BIAS: float(solution.at_bound.bias),
                NOISE: float(solution.at_bound.noise_by(parameters.measure)),
            },
            solution.unit.amount,
        )
        if solution.choice.max_total > 0.0
        else (),
    )


def refused_answer(data: Dataset, parameters: TotalParameters, column: str) -> Answer:
    """Build the answer without numbers, for totals of a column about which nothing can be answered."""
    return without_numbers(parameters, data.provenance, _setting(parameters, column))


def _setting(parameters: TotalParameters, column: str) -> ReleaseSetting:
    return ReleaseSetting(
        Quantity.SUM if column else Quantity.COUNT,
        parameters.epsilon,
        NEIGHBOURS,
        column,
        noise=parameters.mechanism,
        delta=parameters.delta,
        measure=parameters.measure,
    )


def _build_signed(data: Dataset, parameters: TotalParameters, solution: SignedSolution) -> Answer:
    return Answer(
        headline=signed_words.write_headline(solution),
        detail=signed_words.write_detail(solution, data),
        numbers=signed_words.list_numbers(solution),
        assumptions=SIGNED_ASSUMPTIONS,
        disclosure=data.provenance,
        facts=signed_words.list_facts(solution, parameters),
        code=code.write_signed_forms(solution, data, parameters),
        parameters=parameters,
        solution=solution,
        plots={"total-signed": lambda: plots.signed(solution, data, parameters)},
        make_methods=lambda: methods.write_signed_methods(solution, data, parameters),
        choice=lambda: files.signed_choice_json(
            data, parameters, solution.user_totals, solution.clipped, solution.is_entered
        ),
        setting=_setting(parameters, solution.unit.column),
    )
