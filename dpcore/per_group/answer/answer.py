"""The answer for a release per group: one object that page, report, files, script and notebook read."""

from __future__ import annotations

from collections.abc import Callable

from dpcore.answer import Answer, Plot, ReleaseSetting, without_numbers
from dpcore.answer.answer import add_choice
from dpcore.answer.section import BEHIND
from dpcore.common.checks import refuse
from dpcore.common.strict_json import certificate_fields
from dpcore.dataset import Dataset
from dpcore.per_group.answer import code, distribution, methods, plots, words
from dpcore.per_group.answer.distribution import DistributionSolution
from dpcore.per_group.answer.found import PerGroupSolution, solve
from dpcore.per_group.answer.sections import build_sections, describe_inputs
from dpcore.per_group.assumptions import list_assumptions, list_summary_assumptions
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.summary import APPROXIMATE


def build_answer(
    data: Dataset,
    parameters: PerGroupParameters,
    solution: PerGroupSolution | DistributionSolution | None = None,
) -> Answer:
    """Find the best pair of bounds for a release per group, and the best bound on a user's whole vector.

    Args:
        data: Pairs of users and groups, or how these are distributed.
        parameters: The question.
        solution: The solution of both; computed here by default.

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


def _build_from_pairs(data: Dataset, of: PerGroupSolution) -> Answer:
    kind, selected = data.provenance, of.selected
    drawn: dict[str, Callable[[], Plot]] = {
        "per-group-error": lambda: plots.plot_pair_errors(of, kind),
        "per-group-sizes": lambda: plots.plot_groups(of, kind),
    }
    if of.scaled is not None:
        drawn["per-group-norm"] = lambda: plots.plot_norm_errors(of, kind)
    if selected is not None and (selected.pair or selected.vector):
        drawn["per-group-survival"] = lambda: plots.plot_survival(of, kind)
    if selected is not None and (selected.over_epsilon or selected.vector_over_epsilon):
        drawn["per-group-kept-over-epsilon"] = lambda: plots.plot_over_epsilon(of, kind)[0]
        drawn["per-group-error-over-epsilon"] = lambda: plots.plot_over_epsilon(of, kind)[1]
    answer = Answer(
        headline=words.headline(of),
        detail=words.detail(of, data),
        numbers=words.numbers(of),
        assumptions=list_assumptions(of.parameters),
        disclosure=kind,
        facts=words.facts(of, data),
        proofs=words.proofs(of),
        code=code.write_forms(of, data),
        near_optimal=words.describe_near_optimal(of),
        parameters=of.parameters,
        solution=of,
        plots=drawn,
        make_methods=lambda: methods.write_methods(of, data),
        bound=of.pair,
        setting=_setting(of.parameters, of.value_column),
        error_parts=words.error_parts(of),
        sections=build_sections(of),
    )
    pairs, columns = of.problem.pairs, data.pairs
    return add_choice(
        answer,
        data,
        f"{of.parameters.statistic.value} per group",
        lambda: _list_details(of),
        data={
            "column": "" if columns is None else columns.label,
            "value_column": "" if columns is None else columns.value_column,
            "num_users": int(pairs.groups_per_user.size),
            "num_pairs": pairs.num_pairs,
            "num_groups": pairs.num_groups,
        },
        left_out=OWN_BOUNDS,
    )


OWN_BOUNDS = ("own_groups", "own_amount")


def _list_details(solution: PerGroupSolution) -> dict[str, object]:
    parameters, choice, pair = solution.parameters, solution.choice, solution.pair
    amount, is_integer = "max_amount_per_group", parameters.statistic.whole
    details: dict[str, object] = {
        "max_groups_contributed": choice.max_groups,
        "max_contributions_per_group" if is_integer else amount: (
            int(choice.max_amount) if is_integer else choice.max_amount
        ),
        "error": choice.error,
        "error_of_publishing_nothing": choice.error_of_nothing,
        "ended": choice.stop_reason,
        **certificate_fields(choice.certificate),
    }
    if pair is not None and not is_integer:
        details |= {f"{amount}_rounded": pair.max_amount, "error_rounded": pair.error}
    norm = "L1" if parameters.delta is None else "L2"
    for name, vector in (("cap", solution.cap), ("scaling", solution.radial)):
        if vector is not None:
            details[name] = {
                "norm": norm,
                "max_norm": vector.max_norm,
                "error": vector.error,
                "ended": vector.stop_reason,
                **certificate_fields(vector.certificate),
            }
    if (selected := solution.selected) is not None:
        details["groups_released_on_average"] = (
            0.0 if selected.pair is None else selected.pair.expected_groups
        )
        if (best_vector := selected.vector) is not None:
            details["scaled_users"] = {
                "rule": best_vector.rule.value,
                "norm": norm,
                "max_norm": best_vector.max_norm,
                "max_groups_of_the_selection": best_vector.max_groups,
                "error": best_vector.error,
                "proof": "none",
            }
    return details


def refused_answer(data: Dataset, parameters: PerGroupParameters) -> Answer:
    """Return what is said where the data refuse the question."""
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


def _build_from_distribution(data: Dataset, of: DistributionSolution) -> Answer:
    title = "Error over both bounds, about"
    answer = Answer(
        headline=distribution.headline(of),
        detail=distribution.detail(of),
        numbers=distribution.numbers(of),
        assumptions=list_summary_assumptions(of.parameters),
        disclosure=data.provenance,
        facts=distribution.facts(of),
        parameters=of.parameters,
        solution=of,
        plots={"per-group-error": lambda: plots.plot_pair_errors(of, data.provenance, title)},
        make_methods=lambda: methods.write_distribution_methods(of.parameters, of.pair, data),
        setting=_setting(of.parameters, ""),
        sections={BEHIND: describe_inputs},
    )
    choice, sizes = of.choice, of.problem.sizes
    return add_choice(
        answer,
        data,
        f"{of.parameters.statistic.value} per group",
        lambda: {
            "max_groups_contributed": choice.max_groups,
            "max_contributions_per_group": int(choice.max_amount),
            "error_about": choice.error,
            "error_at_least": choice.lower,
            "error_at_most": choice.upper,
            "error_of_publishing_nothing": choice.error_of_nothing,
            "ended": choice.stop_reason,
            "approximate": APPROXIMATE,
            **certificate_fields(None),
        },
        data={
            "column": sizes.label,
            "num_pairs": int(sizes.pairs.sum()),
            "num_groups": of.problem.num_groups,
        },
        left_out=OWN_BOUNDS,
    )
