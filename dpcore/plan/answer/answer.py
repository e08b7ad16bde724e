"""The answer for a plan and its tabs, as all readers take them."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpcore.answer.answer import Answer, add_choice
from dpcore.answer.section import (
    Cached,
    Figures,
    Label,
    Parts,
    Refusal,
    SearchResult,
    Sections,
    Solver,
    Table,
)
from dpcore.code.forms import CodeChoice
from dpcore.common import noise_error, wording
from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import DEFAULT_DELTA, NoiseKind
from dpcore.common.privacy import format_rounded_up
from dpcore.common.strict_json import certificate_fields, finite_or_none
from dpcore.dataset import Dataset
from dpcore.plan.allocation import make_program, sum_weighted_squares
from dpcore.plan.answer import plots, words
from dpcore.plan.answer.solution import PlanSolution, compute_exact_epsilon, solve
from dpcore.plan.answer.words import format_error
from dpcore.plan.curves import RankCurve
from dpcore.plan.lines import LineStatistic, Program
from dpcore.plan.one_truncation import find_bound_over_groups, find_common_bound
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import PlannedLine, convert_rank_epsilon, plan_lines

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class NoiseComparison:
    """The plan with either noise.

    Attributes:
        laplace: With Laplace noise; None where no epsilon is enough.
        gaussian: Likewise with Gaussian noise.
        delta: Of the Gaussian noise.
        has_same_shares: Whether Gaussian noise has the shares of the plan, as the program divides epsilon and delta
            among Gaussian releases, which no plan here is made for.
    """

    laplace: PlanSolution | None
    gaussian: PlanSolution | None
    delta: float
    has_same_shares: bool = False

    @property
    def values(self) -> tuple[float, float]:
        """Return what the objective makes of either noise, Laplace first; infinite where no epsilon is enough."""
        laplace, gaussian = (
            math.inf if solution is None else solution.objective_value
            for solution in (self.laplace, self.gaussian)
        )
        return laplace, gaussian


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


def compare_noises(dataset: Dataset, solution: PlanSolution) -> NoiseComparison:
    """Compare the plan with the best one under the other noise: same lines, epsilon, objective and program."""
    parameters = solution.parameters
    if parameters.program is Program.PIPELINEDP:
        if parameters.objective is Objective.REACH:
            # At the same shares there is no least epsilon: the largest errors over wanted errors are compared.
            solution = replace(solution, parameters=replace(parameters, objective=Objective.LARGEST))
        gaussian = _draw_gaussian_in_pipelinedp(dataset, solution)
        return NoiseComparison(solution, gaussian, DEFAULT_DELTA, has_same_shares=True)
    is_gaussian = parameters.mechanism is NoiseKind.GAUSSIAN
    delta = DEFAULT_DELTA if parameters.delta is None else parameters.delta
    other_parameters = replace(
        parameters,
        mechanism=NoiseKind.LAPLACE if is_gaussian else NoiseKind.GAUSSIAN,
        delta=None if is_gaussian else delta,
    )
    # A line that no epsilon is enough for shows with either noise.
    other_solution = None
    with contextlib.suppress(InvalidInput):
        other_solution = solve(
            dataset, other_parameters, _plan_other_lines(dataset, other_parameters, solution.planned)
        )
    return (
        NoiseComparison(other_solution, solution, delta)
        if is_gaussian
        else NoiseComparison(solution, other_solution, delta)
    )


def _plan_other_lines(
    dataset: Dataset, other_parameters: PlanParameters, lines: Sequence[PlannedLine]
) -> tuple[PlannedLine, ...]:
    """Plan the lines for the other noise.

    The exponential mechanism draws a quantile beside either noise: its errors, which take most of the time, are the
    same, and its epsilon takes another amount of the budget.
    """
    other_text = "; ".join(line.line.text for line in lines if not isinstance(line.curve, RankCurve))
    other_lines = iter(plan_lines(dataset, replace(other_parameters, lines=other_text)) if other_text else ())
    gaussian_factor = float(
        convert_rank_epsilon(1.0, NoiseKind.GAUSSIAN) / convert_rank_epsilon(1.0, NoiseKind.LAPLACE)
    )
    is_gaussian = other_parameters.mechanism is NoiseKind.GAUSSIAN
    v_factor = gaussian_factor if is_gaussian else 1.0 / gaussian_factor
    return tuple(
        replace(line, curve=line.curve.stretch(v_factor))
        if isinstance(line.curve, RankCurve)
        else next(other_lines)
        for line in lines
    )


def _draw_gaussian_in_pipelinedp(dataset: Dataset, solution: PlanSolution) -> PlanSolution:
    """Return the plan with PipelineDP's Gaussian noise: a share of epsilon and delta, halved for a mean."""
    gaussian_parameters = replace(
        solution.parameters, mechanism=NoiseKind.GAUSSIAN, delta=DEFAULT_DELTA, program=Program.PYTHON
    )
    lines = []
    for line, planned in zip(solution.lines, plan_lines(dataset, gaussian_parameters), strict=True):
        num_halves = 2.0 if line.statistic is LineStatistic.MEAN else 1.0
        share, v = line.share / num_halves, math.inf
        if share > 0.0:
            epsilon = solution.budget.epsilon * share
            sigma = noise_error.compute_unit_scale(NoiseKind.GAUSSIAN, epsilon, DEFAULT_DELTA * share)
            # Halves of rho instead would draw sqrt(2) sigma, which the curve holds already.
            v = sigma**2 / num_halves
        squared_error = float(planned.curve.find_best([v]).squared_errors[0])
        lines.append(replace(line, planned=planned, v=v, error=math.sqrt(squared_error)))
    return replace(solution, lines=tuple(lines))


def write_noise_comparison(comparison: NoiseComparison, solution: PlanSolution) -> str:
    """Write which noise errs less, both objective values, and the epsilon spent; without a capital."""
    laplace, gaussian = comparison.values
    objective, program = solution.parameters.objective, solution.parameters.program.value
    delta_text = f"δ = {wording.entered(comparison.delta)}"
    laplace_text, gaussian_text = (
        map(wording.number, comparison.values) if math.isinf(gaussian) else wording.apart(laplace, gaussian)
    )
    size_text = f"the largest error is {laplace_text} times the wanted one"
    if objective is Objective.SUM:
        size_text = f"errors are {laplace_text} times the wanted ones (root of the weighted mean square)"
    if comparison.has_same_shares:
        return (
            f"with the Laplace noise of this plan {size_text}. With Gaussian noise, {program} divides ε and δ; at "
            f"these shares and {delta_text} that is {gaussian_text} times, and no plan is made for it."
        )
    pronoun = "they are" if objective is Objective.SUM else "it is"
    verb, gaussian_size_text = "errs", f"{pronoun} {gaussian_text} times"
    if objective is Objective.REACH:
        verb = "needs"
        needs = [
            "no ε is enough" if math.isinf(value) else f"ε = {format_rounded_up(value, 4)} is enough"
            for value in comparison.values
        ]
        size_text, gaussian_size_text = f"{needs[0]} for all wanted errors", needs[1]
    verdict = f"{'Laplace' if laplace < gaussian else 'Gaussian'} noise {verb} less"
    if laplace == gaussian:
        verdict = "both noises are equally good"
    return (
        f"{verdict}. As {program} draws them, with Laplace noise {size_text}, and with Gaussian noise at {delta_text} "
        f"{gaussian_size_text}. {_describe_spending(comparison)}"
    )


def _describe_spending(comparison: NoiseComparison) -> str:
    """Describe the epsilon that each noise spends; empty if no epsilon is enough with Laplace noise."""
    if comparison.laplace is None:
        return ""
    text = f"Laplace noise spends all of ε = {format_rounded_up(comparison.laplace.budget.epsilon, 4)}"
    if comparison.gaussian is None:
        return f"{text}."
    exact_epsilon = compute_exact_epsilon(comparison.gaussian)
    if exact_epsilon is None:
        return f"{text}; Gaussian noise with a quantile spends at most ε (no exact account is known)."
    exact_text = format_rounded_up(exact_epsilon, 4)
    return f"{text}; the Gaussian noise really spends ε = {exact_text}, by an exact account."


def tabulate_comparison(comparison: NoiseComparison) -> dict[str, list[str]]:
    """Tabulate the errors with either noise, a row per line; empty if one noise never suffices."""
    if comparison.laplace is None or comparison.gaussian is None:
        return {}
    return {
        "release": [line.label for line in comparison.laplace.lines],
        "Laplace": [format_error(line, line.error) for line in comparison.laplace.lines],
        "Gaussian": [format_error(line, line.error) for line in comparison.gaussian.lines],
    }


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


def show_noises(answer: Answer, dataset: Dataset) -> Parts:
    """Show Laplace against Gaussian noise, both as the program draws them."""
    comparison = yield Cached(compare_noises, (dataset, answer.solution), kept=8)
    yield wording.capital(write_noise_comparison(comparison, answer.solution))
    if columns := tabulate_comparison(comparison):
        yield Table(columns, "Errors with either noise", full=True)
    yield Label()


def show_one_bound(answer: Answer, dataset: Dataset) -> Parts:
    """Show what one truncation of the table for all lines costs."""
    solution, parameters = answer.solution, answer.parameters
    try:
        truncation = yield Cached(
            find_common_bound, (dataset, parameters, solution.planned, solution.budget), kept=8
        )
    except InvalidInput as refused:
        yield Refusal(refused)
    else:
        yield words.describe_common_bound(truncation, solution)
        columns = words.tabulate_common_bound(truncation, solution)
        yield Table(columns, "Errors under one bound on rows", full=True)
    for line in solution.lines:
        if line.statistic is LineStatistic.GROUP_ROWS and not line.is_dropped:
            with contextlib.suppress(InvalidInput):  # Rows in no group, which is stated above.
                bound = find_bound_over_groups(dataset, parameters, line.planned, line.v)
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
    answer = add_choice(answer, dataset, "several numbers", lambda: _list_details(solution, certificate))
    return add_noise_comparison(answer, dataset) if compares_noises else answer


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


def add_noise_comparison(answer: Answer, dataset: Dataset) -> Answer:
    """Add the fact that compares both noises: a second plan, for which a moved slider does not wait."""

    def write_comparison() -> str:
        return write_noise_comparison(compare_noises(dataset, answer.solution), answer.solution)

    return replace(answer, facts=LaterFacts(answer.facts, "Laplace or Gaussian", write_comparison))


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
