"""The answer for a release per group: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from collections.abc import Callable

from dpcore.answer import Answer, Plot, ReleaseSetting, without_numbers
from dpcore.common.errors import refuse
from dpcore.dataset import Dataset
from dpcore.per_group import files
from dpcore.per_group.answer import code, distribution, methods, plots, words
from dpcore.per_group.answer.distribution import DistributionSolution
from dpcore.per_group.answer.found import PerGroupSolution, solve
from dpcore.per_group.parameters import PerGroupParameters, Statistic


def build_answer(
    data: Dataset,
    parameters: PerGroupParameters,
    solution: PerGroupSolution | DistributionSolution | None = None,
) -> Answer:
    """Build the answer: the best pair of bounds for a release per group, and the best bound on a user's whole vector.

    Args:
        data: Pairs of users and groups, or how these are distributed.
        parameters: The question.
        solution: The solution of `solve`, or of `distribution.solve`; computed here by default.

    Returns:
        The answer; its ``solution`` is a `PerGroupSolution`, or a `DistributionSolution` if only the distribution of
        pairs is known. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no groups, or do not fit the question.
    """
    if solution is None:
        if data.pairs is None and data.pair_sizes is None:
            raise refuse("this needs a group in each row, and these data have none")
        solution = distribution.solve(data, parameters) if data.pairs is None else solve(data, parameters)
    return (
        _build_from_distribution(data, solution)
        if isinstance(solution, DistributionSolution)
        else _build_from_pairs(data, solution)
    )


def _build_from_pairs(data: Dataset, solution: PerGroupSolution) -> Answer:
    disclosure, selected = data.provenance, solution.selected
    plot_functions: dict[str, Callable[[], Plot]] = {
        "per-group-error": lambda: plots.over_both(solution, disclosure),
        "per-group-sizes": lambda: plots.of_groups(solution, disclosure),
    }
    if solution.scaled is not None:
        plot_functions["per-group-norm"] = lambda: plots.over_norm(solution, disclosure)
    if selected is not None and (selected.pair or selected.vector):
        plot_functions["per-group-survival"] = lambda: plots.survival(solution, disclosure)
    if selected is not None and (selected.over_epsilon or selected.vector_over_epsilon):
        plot_functions["per-group-kept-over-epsilon"] = lambda: plots.over_epsilon(solution, disclosure)[0]
        plot_functions["per-group-error-over-epsilon"] = lambda: plots.over_epsilon(solution, disclosure)[1]
    return Answer(
        headline=words.headline(solution),
        detail=words.detail(solution, data),
        numbers=words.numbers(solution),
        assumptions=files.assumptions(solution.parameters),
        disclosure=disclosure,
        facts=words.facts(solution, data),
        proofs=words.proofs(solution),
        code=code.write_forms(solution, data),
        near_optimal=words.describe_near_optimal(solution),
        parameters=solution.parameters,
        solution=solution,
        plots=plot_functions,
        make_methods=lambda: methods.write_methods(solution, data),
        choice=lambda: _write_choice(solution, data),
        bound=solution.pair,
        setting=_setting(solution.parameters, solution.value_column),
        error_parts=words.error_parts(solution),
    )


def refused_answer(data: Dataset, parameters: PerGroupParameters) -> Answer:
    """Return an answer without numbers, for data that do not fit the parameters."""
    column = "" if data.pairs is None else data.pairs.value_column
    return without_numbers(parameters, data.provenance, _setting(parameters, column))


def _setting(parameters: PerGroupParameters, column: str) -> ReleaseSetting:
    has_values = parameters.statistic not in (Statistic.ROWS, Statistic.USERS)
    return ReleaseSetting(
        code.QUANTITIES[parameters.statistic],
        parameters.epsilon,
        parameters.neighbours,
        column if has_values else "",
        parameters.lower,
        parameters.upper,
        noise=parameters.noise,
        delta=parameters.delta,
    )


def _write_choice(solution: PerGroupSolution, data: Dataset) -> str:
    pair, selected = solution.pair, None
    rounded = None if pair is None else (pair.max_groups, pair.max_amount, pair.error)
    if solution.selected is not None:
        expected_groups = 0.0 if solution.selected.pair is None else solution.selected.pair.expected_groups
        selected = expected_groups, solution.selected.vector
    return files.per_group_choice_json(
        data, solution.problem, solution.choice, rounded, solution.cap, solution.radial, selected
    )


def _build_from_distribution(data: Dataset, solution: DistributionSolution) -> Answer:
    title = "Error over both bounds, about"
    return Answer(
        headline=distribution.headline(solution),
        detail=distribution.detail(solution),
        numbers=distribution.numbers(solution),
        assumptions=files.summary_assumptions(solution.parameters),
        disclosure=data.provenance,
        facts=distribution.facts(solution),
        parameters=solution.parameters,
        solution=solution,
        plots={"per-group-error": lambda: plots.over_both(solution, data.provenance, title)},
        make_methods=lambda: methods.write_distribution_methods(solution.parameters, solution.pair, data),
        choice=lambda: files.summary_choice_json(data, solution.problem, solution.choice),
        setting=_setting(solution.parameters, ""),
    )
