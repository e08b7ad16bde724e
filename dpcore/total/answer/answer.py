"""The answer for a sum or a count: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from dpcore.answer import Answer, ReleaseSetting, without_numbers
from dpcore.answer.answer import BIAS, NOISE, add_choice, build_error_parts
from dpcore.code import Quantity
from dpcore.code.forms import summed_column
from dpcore.common import noise_error
from dpcore.common.strict_json import certificate_fields
from dpcore.dataset import Dataset
from dpcore.total.answer import code, methods, plots, signed_words, strategies, words
from dpcore.total.answer.found import SignedSolution, TotalSolution, solve
from dpcore.total.answer.sections import SECTIONS, SIGNED_SECTIONS
from dpcore.total.nonnegative import NEIGHBOURS
from dpcore.total.parameters import ASSUMPTIONS, ASSUMPTIONS_ON_RELEASE, SIGNED_ASSUMPTIONS, TotalParameters


def build_answer(
    data: Dataset, parameters: TotalParameters, solution: TotalSolution | SignedSolution | None = None
) -> Answer:
    """Find the best bound on what one user adds to a sum or a count; where totals have both signs, a range.

    Args:
        data: How many rows users have; where a column is added up, its total per user.
        parameters: The question.
        solution: The solution of both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `TotalSolution`, or a `SignedSolution` if some total is negative. Plots are
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


def _build_nonnegative(data: Dataset, parameters: TotalParameters, of: TotalSolution) -> Answer:
    answer = Answer(
        headline=words.write_headline(of),
        detail=words.write_detail(of, data),
        numbers=words.list_numbers(of),
        assumptions=ASSUMPTIONS if data.release is None else ASSUMPTIONS_ON_RELEASE,
        disclosure=data.provenance,
        facts=words.list_facts(of, parameters.own_bound),
        proofs=(("Bound", of.choice.certificate, of.choice.stop_reason),),
        code=code.write_total_forms(of, data),
        near_optimal=words.describe_near_optimal(of),
        parameters=parameters,
        solution=of,
        plots={
            "total-error": lambda: plots.plot_errors(of, data, parameters.own_bound),
            "total-measures": lambda: plots.plot_measures(of, data),
            "total-strategies": lambda: strategies.plot_strategies(
                strategies.compute_curves(of.problem, parameters.own_share), data, parameters.epsilon
            ),
        },
        make_methods=lambda: methods.write_methods(of, data, parameters),
        setting=_setting(parameters, of.unit.column or summed_column(data)),
        error_parts=build_error_parts(
            {BIAS: float(of.at_bound.bias), NOISE: float(of.at_bound.noise_by(parameters.measure))},
            of.unit.amount,
        )
        if of.choice.max_total > 0.0
        else (),
        sections=SECTIONS,
    )
    return add_choice(
        answer,
        data,
        "count of rows" if of.problem.is_integer else "sum",
        lambda: _choice_details(of),
        question=QUESTION_NOTES,
        data={"column": of.unit.column},
        left_out={*BESIDE_THE_BOUND, "lower", "upper"},
    )


BESIDE_THE_BOUND = ("own_share", "runs", "seed", "highest_total")
"""Parameters that choose neither a bound nor a range."""
QUESTION_NOTES = {
    "neighbours": NEIGHBOURS.value,
    "source": "Amin et al. 2019, Bounding User Contributions: A Bias-Variance Trade-off in DP, section 3",
}


def _choice_details(solution: TotalSolution) -> dict[str, object]:
    """Compute the numbers of the file, which are about the exact bound; card and code have the rounded one."""
    problem, choice = solution.problem, solution.choice
    if problem.is_integer:
        bound: dict[str, object] = {"max_contributions": int(choice.max_total)}
    else:
        bound = {"max_total": choice.max_total, "max_total_rounded": solution.bound}
    return {
        **bound,
        "noise_scale": problem.unit_noise * choice.max_total,
        "bias": choice.bias,
        "mean_noise": choice.noise,
        "expected_absolute_error": choice.absolute_error,
        "root_mean_squared_error": choice.rmse,
        "bound_on_absolute_error": choice.bound,
        "error_of_publishing_zero": choice.error_of_nothing,
        "users_affected": choice.users_affected,
        "within_5_percent": list(solution.near_optimal),
        "ended": choice.stop_reason,
        **certificate_fields(choice.certificate),
    }


def refused_answer(data: Dataset, parameters: TotalParameters, column: str) -> Answer:
    """Return what is said where the totals of a column refuse the question."""
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


def _build_signed(data: Dataset, parameters: TotalParameters, of: SignedSolution) -> Answer:
    answer = Answer(
        headline=signed_words.write_headline(of),
        detail=signed_words.write_detail(of, data),
        numbers=signed_words.list_numbers(of),
        assumptions=SIGNED_ASSUMPTIONS,
        disclosure=data.provenance,
        facts=signed_words.list_facts(of, parameters),
        code=code.write_signed_forms(of, data, parameters),
        parameters=parameters,
        solution=of,
        plots={"total-signed": lambda: plots.plot_signed(of, data, parameters)},
        make_methods=lambda: methods.write_signed_methods(of, data, parameters),
        setting=_setting(parameters, of.unit.column),
        sections=SIGNED_SECTIONS,
    )
    return add_choice(
        answer,
        data,
        "sum of totals of both signs",
        lambda: _range_details(of, parameters),
        question=QUESTION_NOTES,
        data={"column": of.unit.column},
        left_out={*BESIDE_THE_BOUND, "measure", "own_bound"},
    )


def _range_details(solution: SignedSolution, parameters: TotalParameters) -> dict[str, object]:
    clipped = solution.clipped
    unit_scale = noise_error.compute_unit_scale(parameters.mechanism, parameters.epsilon, parameters.delta)
    return {
        "lower": clipped.low,
        "upper": clipped.high,
        "range_comes_from": "entered" if solution.is_entered else "the data",
        "noise_scale": unit_scale * clipped.sensitivity,
        "bias": clipped.bias,
        "mean_noise": clipped.noise,
        "expected_absolute_error": clipped.absolute_error,
        "root_mean_squared_error": clipped.rmse,
        "users_below_lower": clipped.users_below,
        "users_above_upper": clipped.users_above,
    }
