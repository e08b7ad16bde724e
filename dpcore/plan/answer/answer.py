"""The answer for a plan and its tabs, as all readers take them."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dpcore.answer.answer import Answer, add_choice
from dpcore.answer.section import Cached, Figures, Found, Label, Parts, Refusal, Sections, Solver, Table
from dpcore.code.forms import CodeChoice
from dpcore.common import noise_error, wording
from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import DEFAULT_DELTA, NoiseKind
from dpcore.common.privacy import format_rounded_up
from dpcore.common.strict_json import certificate_fields, finite_or_none
from dpcore.dataset import Dataset
from dpcore.plan.answer import plots, words
from dpcore.plan.answer.solution import PlanSolution, compute_exact_epsilon, solve
from dpcore.plan.answer.words import format_error, write_methods
from dpcore.plan.curves import RankCurve
from dpcore.plan.drawn import make_program, sum_weighted_squares
from dpcore.plan.lines import LineStatistic, Program
from dpcore.plan.one_truncation import find_bound_over_groups, find_common_bound
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import PlannedLine, convert_rank_epsilon, plan_lines

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class NoiseComparison:
    """The errors of the plan with either noise.

    Attributes:
        laplace: Errors of all lines with Laplace noise, in their units; empty where no epsilon is enough.
        gaussian: Likewise with Gaussian noise.
        totals: What the objective makes of either, Laplace first: the size of all errors over wanted errors, the
            largest, or the least epsilon; infinite where no epsilon is enough.
        delta: Of the Gaussian noise.
        exact_gaussian_epsilon: Epsilon that the Gaussian noise really spends; None where no exact account of it is
            known.
        uses_plan_shares: Whether the shares are those of the plan, as the program divides epsilon and delta among
            Gaussian releases, which no plan here is made for.
    """

    laplace: tuple[float, ...]
    gaussian: tuple[float, ...]
    totals: tuple[float, float]
    delta: float
    exact_gaussian_epsilon: float | None
    uses_plan_shares: bool = False


class LaterFacts(Mapping[str, str]):
    """Facts with a further one, whose sentence is made when it is read: an exact account loads for 2 s."""

    def __init__(self, facts: Mapping[str, str], name: str, make: Callable[[], str]) -> None:
        self._facts, self._name, self._make = facts, name, functools.cache(make)

    def __getitem__(self, name: str) -> str:
        return self._make() if name == self._name else self._facts[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._facts
        yield self._name

    def __len__(self) -> int:
        return len(self._facts) + 1


def compare_noises(dataset: Dataset, parameters: PlanParameters, solution: PlanSolution) -> NoiseComparison:
    """Compare the plan with the best one under the other noise: same lines, epsilon, objective and program.

    Args:
        dataset: The data.
        parameters: The question.
        solution: The solution for both.
    """
    if parameters.program is Program.PIPELINEDP:
        return _compare_in_pipelinedp(dataset, parameters, solution)
    is_gaussian = parameters.mechanism is NoiseKind.GAUSSIAN
    delta = parameters.delta if parameters.delta is not None else DEFAULT_DELTA
    other_parameters = replace(
        parameters,
        mechanism=NoiseKind.LAPLACE if is_gaussian else NoiseKind.GAUSSIAN,
        delta=None if is_gaussian else delta,
    )
    try:
        # A quantile's errors take most of the time, and the exponential mechanism draws it with either noise.
        other_solution = solve(
            dataset, other_parameters, _plan_other_lines(dataset, other_parameters, solution.planned)
        )
    except InvalidInput:
        # Beyond every epsilon: that no epsilon is enough for a line shows with either noise.
        other_solution = None
    own_errors, other_errors = (
        _list_errors(solution),
        () if other_solution is None else _list_errors(other_solution),
    )
    objective_values = (
        _objective_value(parameters, solution),
        math.inf if other_solution is None else _objective_value(parameters, other_solution),
    )
    gaussian_solution = solution if is_gaussian else other_solution
    return NoiseComparison(
        other_errors if is_gaussian else own_errors,
        own_errors if is_gaussian else other_errors,
        (objective_values[1], objective_values[0]) if is_gaussian else objective_values,
        delta,
        None if gaussian_solution is None else compute_exact_epsilon(gaussian_solution),
    )


def _list_errors(solution: PlanSolution) -> tuple[float, ...]:
    """List the errors of the lines."""
    return tuple(line.error for line in solution.lines)


def _objective_value(parameters: PlanParameters, solution: PlanSolution) -> float:
    """Return the value of the objective."""
    if parameters.objective is Objective.REACH:
        return solution.budget.epsilon
    return solution.summarise_errors(solution.lines, parameters.objective is Objective.LARGEST)


def _plan_other_lines(
    dataset: Dataset, other_parameters: PlanParameters, lines: Sequence[PlannedLine]
) -> tuple[PlannedLine, ...]:
    """Plan the lines for the other noise."""
    quantile_lines = [line for line in lines if line.line.statistic is LineStatistic.QUANTILE]
    other_text = "; ".join(line.line.text for line in lines if line not in quantile_lines)
    planned_lines = iter(
        plan_lines(dataset, replace(other_parameters, lines=other_text)) if other_text else ()
    )
    return tuple(
        _rescale_quantile_line(line, other_parameters.mechanism)
        if line in quantile_lines
        else next(planned_lines)
        for line in lines
    )


def _rescale_quantile_line(line: PlannedLine, noise: NoiseKind) -> PlannedLine:
    """Rescale a quantile's line: its errors are the same, and its epsilon takes another amount of the budget."""
    assert isinstance(line.curve, RankCurve)
    previous_noise = NoiseKind.LAPLACE if noise is NoiseKind.GAUSSIAN else NoiseKind.GAUSSIAN
    unit_epsilon = np.ones(1)
    return replace(
        line,
        curve=line.curve.stretch(
            float(
                (
                    convert_rank_epsilon(unit_epsilon, noise)
                    / convert_rank_epsilon(unit_epsilon, previous_noise)
                )[0]
            )
        ),
    )


def _compare_in_pipelinedp(
    dataset: Dataset, parameters: PlanParameters, solution: PlanSolution
) -> NoiseComparison:
    """Compare in PipelineDP, where a Gaussian release gets a share of epsilon and delta, and a mean half of both."""
    with_gaussian = replace(
        parameters, mechanism=NoiseKind.GAUSSIAN, delta=DEFAULT_DELTA, program=Program.PYTHON
    )
    squares, weights = [], []
    for line, gaussian_line in zip(solution.lines, plan_lines(dataset, with_gaussian), strict=True):
        num_halves = 2.0 if gaussian_line.line.statistic is LineStatistic.MEAN else 1.0
        share = line.share / num_halves
        noise_square = math.inf
        if share > 0.0:
            sigma = noise_error.compute_unit_scale(
                NoiseKind.GAUSSIAN, solution.budget.epsilon * share, DEFAULT_DELTA * share
            )
            # Halves of rho instead would draw sqrt(2) sigma, which the curve holds already.
            noise_square = sigma**2 / num_halves
        squares.append(float(gaussian_line.curve.best(np.array([noise_square])).squares[0]))
        weights.append(gaussian_line.weight)
    errors = tuple(math.sqrt(square) for square in squares)
    if parameters.objective is Objective.SUM:
        weight_sum = math.fsum(line.line.weight for line in solution.planned)
        gaussian_value = math.sqrt(
            math.fsum(weight * square for weight, square in zip(weights, squares, strict=True)) / weight_sum
        )
        laplace_value = solution.summarise_errors(solution.lines, False)
    else:
        gaussian_value = max(
            error / line.target_error for error, line in zip(errors, solution.planned, strict=True)
        )
        laplace_value = solution.summarise_errors(solution.lines, True)
    return NoiseComparison(
        _list_errors(solution),
        errors,
        (laplace_value, gaussian_value),
        DEFAULT_DELTA,
        None,
        uses_plan_shares=True,
    )


def write_noise_comparison(
    comparison: NoiseComparison, solution: PlanSolution, parameters: PlanParameters
) -> str:
    """Write which noise errs less, both objective values, and the epsilon spent; without a capital."""
    laplace, gaussian = comparison.totals
    delta_text, program, reach_objective = (
        f"δ = {wording.entered(comparison.delta)}",
        parameters.program.value,
        Objective.REACH,
    )
    value_texts = (
        tuple(map(wording.number, comparison.totals))
        if math.isinf(gaussian)
        else wording.apart(laplace, gaussian)
    )
    size_texts = {
        Objective.SUM: "errors are {} times the wanted ones (root of the weighted mean square)",
        Objective.LARGEST: "the largest error is {} times the wanted one",
    }
    if comparison.uses_plan_shares:
        # For the least-epsilon objective, compare the errors at these shares with their targets.
        size_text = size_texts.get(parameters.objective, size_texts[Objective.LARGEST])
        return (
            f"with the Laplace noise of this plan {size_text.format(value_texts[0])}. With Gaussian noise, {program} "
            f"divides ε and δ; at these shares and {delta_text} that is {value_texts[1]} times, and no plan is made "
            "for it."
        )
    verb = "needs" if parameters.objective is reach_objective else "errs"
    verdict = f"{'Laplace' if laplace < gaussian else 'Gaussian'} noise {verb} less"
    if laplace == gaussian:
        verdict = "both noises are equally good"
    if parameters.objective is reach_objective:
        epsilon_texts = [
            "no ε is enough" if math.isinf(total) else f"ε = {format_rounded_up(total, 4)} is enough"
            for total in comparison.totals
        ]
        comparison_text = (
            f"with Laplace noise {epsilon_texts[0]} for all wanted errors, and with Gaussian noise at "
            f"{delta_text} {epsilon_texts[1]}"
        )
    else:
        comparison_text = (
            f"with Laplace noise {size_texts[parameters.objective].format(value_texts[0])}, and with Gaussian "
            f"noise at {delta_text} "
            f"{'they are' if parameters.objective is Objective.SUM else 'it is'} {value_texts[1]} times"
        )
    return (
        f"{verdict}. As {program} draws them, {comparison_text}. "
        f"{_describe_spending(comparison, solution, parameters)}"
    )


def _describe_spending(
    comparison: NoiseComparison, solution: PlanSolution, parameters: PlanParameters
) -> str:
    """Describe the epsilon that either noise spends."""
    laplace_epsilon = solution.budget.epsilon
    if parameters.objective is Objective.REACH:
        laplace_epsilon = comparison.totals[0]
    if math.isinf(laplace_epsilon):
        return ""
    laplace_text = f"Laplace noise spends all of ε = {format_rounded_up(laplace_epsilon, 4)}"
    if comparison.exact_gaussian_epsilon is None:
        return f"{laplace_text}; Gaussian noise with a quantile spends at most ε (no exact account is known)."
    return (
        f"{laplace_text}; the Gaussian noise really spends ε = "
        f"{format_rounded_up(comparison.exact_gaussian_epsilon, 4)}, by an exact account."
    )


def tabulate_comparison(comparison: NoiseComparison, solution: PlanSolution) -> dict[str, list[str]]:
    """Tabulate the errors with either noise, a row per line; empty if one noise never suffices."""
    if not (comparison.laplace and comparison.gaussian):
        return {}
    return {
        "release": [line.planned.line.label for line in solution.lines],
        **{
            name: [format_error(line, error) for line, error in zip(solution.lines, errors, strict=True)]
            for name, errors in (("Laplace", comparison.laplace), ("Gaussian", comparison.gaussian))
        },
    }


def solve_beside_page(data: Dataset, parameters: PlanParameters) -> Solver:
    """Divide the budget; the curves of the lines are the same at every epsilon, and are computed once."""
    curves = yield Cached(
        plan_lines, (data, replace(parameters, epsilon=1.0, objective=Objective.SUM)), kept=8
    )
    solution = yield Cached(solve, (data, parameters, curves))
    return Found(solution)


def show_shares(answer: Answer, data: Dataset) -> Parts:
    """Show shares as bars, beside an equal split."""
    yield Figures((answer.plots["plan-shares"](),), "xy")
    yield Label()


def show_noises(answer: Answer, data: Dataset) -> Parts:
    """Show Laplace against Gaussian noise, both as the program draws them."""
    solution = answer.solution
    both = yield Cached(compare_noises, (data, answer.parameters, solution), kept=8)
    yield wording.capital(write_noise_comparison(both, solution, answer.parameters))
    if columns := tabulate_comparison(both, solution):
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


def build_answer(
    dataset: Dataset, parameters: PlanParameters, solution: PlanSolution | None = None
) -> Answer:
    """Divide one budget among several statistics, each under the bound that is best for its share.

    Args:
        dataset: How many rows users have; values and groups where lines need them.
        parameters: The question.
        solution: The solution for both; it is computed here by default, and then both noises are compared, too.

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
        comparison = compare_noises(dataset, answer.parameters, answer.solution)
        return write_noise_comparison(comparison, answer.solution, answer.parameters)

    return replace(answer, facts=LaterFacts(answer.facts, "Laplace or Gaussian", write_comparison))


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
