"""The answer for a release per group and its tabs, as all readers take them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpcore.answer.answer import Answer, ReleaseSetting, add_choice, without_numbers
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.answer.plot import Plot
from dpcore.answer.section import BEHIND
from dpcore.code.choice import Quantity
from dpcore.code.forms import (
    ROWS_OF_THE_FILE,
    CodeChoice,
    Form,
    build_forms,
    fields_of_data,
    one_group_column,
)
from dpcore.common import wording
from dpcore.common.checks import refuse
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import round_up_to_float
from dpcore.common.strict_json import certificate_fields
from dpcore.dataset import Dataset
from dpcore.per_group.answer import plots, sections, words
from dpcore.per_group.answer.error_map import Pair
from dpcore.per_group.answer.sections import DistributionSolution, build_sections, describe_inputs
from dpcore.per_group.answer.solution import MIN_SAVING, PerGroupSolution, solve
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair
from dpcore.per_group.summary import (
    APPROXIMATE,
    OBJECTIVES,
    error_words,
    list_assumptions,
    list_summary_assumptions,
    round_up,
)
from dpcore.per_group.whole_vector import VectorRule

QUANTITIES = {
    Statistic.ROWS: Quantity.GROUP_ROWS,
    Statistic.USERS: Quantity.GROUP_COUNTS,
    Statistic.SUM: Quantity.GROUP_SUMS,
    Statistic.SIGNED_SUM: Quantity.GROUP_SUMS,
    Statistic.MEAN: Quantity.GROUP_MEANS,
}


def write_forms(solution: PerGroupSolution, data: Dataset) -> CodeChoice | None:
    """Write programs for the best pair, then for the bounds on whole vectors; None for private groups."""
    parameters = solution.parameters
    if parameters.selection.private:  # The programs release every group of a public list.
        return None
    pair = (
        []
        if solution.pair is None
        else [_pair_form(parameters, solution.pair.max_groups, solution.pair.max_amount)]
    )
    return build_forms(
        parameters.epsilon,
        _base_options(parameters, data, solution.value_column),
        [*pair, *_vector_forms(solution)],
    )


def write_private_forms(
    private_pair: PrivatePair, data: Dataset, epsilon: float | None = None
) -> CodeChoice | None:
    """Write programs for a pair that was chosen privately; ``epsilon`` replaces that of the release, if given."""
    parameters = private_pair.problem.parameters
    is_sum = parameters.statistic is Statistic.SUM and data.pairs is not None
    base = _base_options(
        parameters, data, data.pairs.value_column if is_sum and data.pairs is not None else ""
    )
    form = _pair_form(parameters, private_pair.max_groups, private_pair.max_amount)
    return build_forms(
        parameters.epsilon if epsilon is None else epsilon, base | {"disclosure": private_pair.facts}, [form]
    )


def _base_options(parameters: PerGroupParameters, data: Dataset, value_column: str) -> dict[str, Any]:
    base: dict[str, Any] = fields_of_data(data) | {
        "noise": parameters.noise,
        "delta": parameters.delta,
        "neighbours": parameters.neighbours,
        **ROWS_OF_THE_FILE,
        **one_group_column(data),
    }
    if value_column:
        base["value_column"] = value_column
    if parameters.statistic is Statistic.MEAN:
        base |= {"lower": parameters.lower, "upper": parameters.upper}
    return base


def _pair_form(parameters: PerGroupParameters, max_groups: int, amount: float) -> Form:
    statistic = parameters.statistic
    bounds: dict[str, Any] = {"max_groups": max_groups}
    if statistic in (Statistic.ROWS, Statistic.MEAN):
        bounds["max_rows"] = int(amount)
    elif statistic is not Statistic.USERS:
        bounds |= {"max_total": amount, "min_total": -amount if statistic is Statistic.SIGNED_SUM else 0.0}
    name = f"Pair, {wording.number(max_groups)} × {wording.number(amount)}"
    return name, QUANTITIES[statistic], bounds


def _vector_forms(solution: PerGroupSolution) -> list[Form]:
    """Return the forms of one level and of scaling, the better first."""
    choices = sorted((x for x in (solution.cap, solution.radial) if x is not None), key=lambda x: x.error)
    quantity = QUANTITIES[solution.parameters.statistic]
    return [
        (
            f"{'One level' if x.rule is VectorRule.CAP else 'Scaling'}, bound {wording.number(round_up(x.max_norm))}",
            quantity,
            {"max_norm": round_up(x.max_norm), "scaled": x.rule is VectorRule.RADIAL},
        )
        for x in choices
    ]


STATISTICS = {
    Statistic.ROWS: "The number of rows of every group was released",
    Statistic.USERS: "The number of distinct users of every group was released",
    Statistic.SUM: "The sum of a column in every group was released",
    Statistic.SIGNED_SUM: "The sum of a column in every group was released",
    Statistic.MEAN: "The mean of a column in every group was released",
}


def write_methods(solution: PerGroupSolution, data: Dataset) -> Methods:
    """Write the methods section for the bound of the headline: the best pair, or a bound on whole vectors."""
    rule = (
        f"The bound was chosen to minimise the {OBJECTIVES[solution.parameters.objective]}, averaged over the noise "
        "and the random choice of a user's groups."
    )
    proved = solution.choice.settled and solution.choice.certificate is not None
    return _build_methods(solution.parameters, data, _describe_bound(solution), rule, proved)


def write_distribution_methods(p: PerGroupParameters, pair: Pair | None, data: Dataset) -> Methods:
    """Write the methods section if only the distribution of pairs is known; ``pair`` is None to release nothing."""
    rule = (
        f"The bounds have the least {OBJECTIVES[p.objective]} that was found from how many groups users have and how "
        "many rows lie in a pair of user and group, as if every group held the same mixture of pairs."
    )
    return _build_methods(p, data, "" if pair is None else _describe_pair(p, pair, "about "), rule)


def _build_methods(
    p: PerGroupParameters, data: Dataset, sentences: str, rule: str, proved: bool = False
) -> Methods:
    delta = round_up_to_float(Fraction(p.delta or 0.0) + Fraction(p.selection_delta or 0.0))
    return Methods(
        guarantee=write_guarantee(STATISTICS[p.statistic], p.epsilon, p.neighbours, delta)
        + f" {_describe_selection(p)}",
        sentences=sentences,
        public_sentences=f"What one user contributes to all groups was bounded, and {cite_noise(p.noise.value)} "
        "was added "
        "in every group.",
        disclosure=data.provenance,
        empty_sentence="" if sentences else _describe_no_release(p, proved),
        rule=rule,
    )


def _describe_no_release(p: PerGroupParameters, proved: bool) -> str:
    has = "has" if proved else "was found that has"
    return (
        f"At ε = {wording.entered(p.epsilon)} no bound on what a user adds {has} a smaller "
        f"{OBJECTIVES[p.objective]} than releasing nothing, and nothing was released."
    )


def _describe_selection(p: PerGroupParameters) -> str:
    if not p.selection.private:
        return "The list of groups is public, and the budget is for all groups together."
    rule = {
        "truncated geometric": "the truncated geometric rule [@desfontaines2022]",
        "Laplace threshold": "a threshold on noisy numbers of users, with Laplace noise",
        "Gaussian threshold": "a threshold on noisy numbers of users, with Gaussian noise",
    }[p.selection.value]
    assert p.selection_delta is not None
    budget = f"ε = {wording.entered(p.selection_epsilon)} and δ = {wording.entered(p.selection_delta)}"
    return f"Groups were selected privately by {rule}, which spent {budget} of that budget."


def _describe_bound(solution: PerGroupSolution) -> str:
    p, pair = solution.parameters, solution.pair
    vector = solution.scaled if solution.selected is None else solution.selected.vector
    objective = OBJECTIVES[p.objective]
    if vector is not None and solution.saved_share >= MIN_SAVING:
        norm = "L1" if p.noise is NoiseKind.LAPLACE else "L2"
        sample_sentence = ""
        if solution.selected is not None and solution.selected.vector is not None:
            groups = wording.counted(solution.selected.vector.max_groups, "group")
            sample_sentence = f"For the selection each user counted in at most {groups}, drawn at random. "
        return (
            f"{sample_sentence}What one user contributes to all groups was bounded in {norm} norm by "
            f"{wording.number(round_up(vector.max_norm), 6)}, and {cite_noise(p.noise.value)} was added in every "
            f"group. The {objective} is {error_words(p, vector.error)}."
        )
    return "" if pair is None else _describe_pair(p, pair)


def _describe_pair(p: PerGroupParameters, pair: Pair, prefix: str = "") -> str:
    groups = wording.counted(pair.max_groups, "group")
    sentence = f"Each user contributed to at most {groups}, drawn at random"
    if p.statistic is not Statistic.USERS:
        unit = " rows" if p.statistic in (Statistic.ROWS, Statistic.MEAN) else ""
        unit = unit.rstrip("s") if pair.max_amount == 1 else unit
        sentence += f", and at most {wording.number(pair.max_amount, 6)}{unit} to each"
    if p.statistic is Statistic.SIGNED_SUM:
        sentence += ", in absolute value"
    return (
        f"{sentence}, and {cite_noise(p.noise.value)} was added in every group. The {OBJECTIVES[p.objective]} is "
        f"{prefix}{error_words(p, pair.error)}."
    )


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

    Examples:
        The largest user has one row in each of two groups, so the error is the noise alone: √2 · 2 / ε.

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> visits = pd.DataFrame({"user": list("aabc"), "shop": list("xyxy")})
        >>> answer = ss.group_bounds(visits, user="user", group="shop", epsilon=10)
        >>> print(answer.headline, round(answer.error, 3))
        Keep at most 2 groups of each user, and 1 row in each. 0.283
    """
    if solution is None:
        if data.pairs is None and data.pair_sizes is None:
            raise refuse("this needs a group in each row, and these data have none")
        solution = (
            sections.solve_by_distribution(data, parameters)
            if data.pairs is None
            else solve(data, parameters)
        )
    return (
        _build_from_distribution(data, solution)
        if isinstance(solution, DistributionSolution)
        else _build_from_pairs(data, solution)
    )


def _build_from_pairs(dataset: Dataset, solution: PerGroupSolution) -> Answer:
    kind, selected = dataset.provenance, solution.selected
    plots_by_name: dict[str, Callable[[], Plot]] = {
        "per-group-error": lambda: plots.plot_pair_errors(solution, kind),
        "per-group-sizes": lambda: plots.plot_groups(solution, kind),
    }
    if solution.scaled is not None:
        plots_by_name["per-group-norm"] = lambda: plots.plot_norm_errors(solution, kind)
    if selected is not None and (selected.pair or selected.vector):
        plots_by_name["per-group-survival"] = lambda: plots.plot_survival(solution, kind)
    if selected is not None and (selected.over_epsilon or selected.vector_over_epsilon):
        plots_by_name["per-group-kept-over-epsilon"] = lambda: plots.plot_over_epsilon(solution, kind)[0]
        plots_by_name["per-group-error-over-epsilon"] = lambda: plots.plot_over_epsilon(solution, kind)[1]
    answer = Answer(
        headline=words.headline(solution),
        detail=words.detail(solution, dataset),
        numbers=words.numbers(solution),
        assumptions=list_assumptions(solution.parameters),
        disclosure=kind,
        facts=words.facts(solution, dataset),
        proofs=words.proofs(solution),
        code=write_forms(solution, dataset),
        near_optimal=words.describe_near_optimal(solution),
        parameters=solution.parameters,
        solution=solution,
        plots=plots_by_name,
        make_methods=lambda: write_methods(solution, dataset),
        bound=solution.pair,
        setting=_setting(solution.parameters, solution.value_column),
        error_parts=words.error_parts(solution),
        sections=build_sections(solution),
    )
    pairs, columns = solution.problem.pairs, dataset.pairs
    return add_choice(
        answer,
        dataset,
        f"{solution.parameters.statistic.value} per group",
        lambda: _list_details(solution),
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
    """Build the answer without numbers, for data that do not fit the question."""
    column = "" if data.pairs is None else data.pairs.value_column
    return without_numbers(parameters, data.provenance, _setting(parameters, column))


def _setting(parameters: PerGroupParameters, column: str) -> ReleaseSetting:
    has_values = parameters.statistic not in (Statistic.ROWS, Statistic.USERS)
    return ReleaseSetting(
        QUANTITIES[parameters.statistic],
        parameters.epsilon,
        parameters.neighbours,
        column if has_values else "",
        parameters.lower,
        parameters.upper,
        noise=parameters.noise,
        delta=parameters.delta,
    )


def _build_from_distribution(dataset: Dataset, solution: DistributionSolution) -> Answer:
    title = "Error over both bounds, about"
    answer = Answer(
        headline=sections.headline(solution),
        detail=sections.detail(solution),
        numbers=sections.numbers(solution),
        assumptions=list_summary_assumptions(solution.parameters),
        disclosure=dataset.provenance,
        facts=sections.facts(solution),
        parameters=solution.parameters,
        solution=solution,
        plots={"per-group-error": lambda: plots.plot_pair_errors(solution, dataset.provenance, title)},
        make_methods=lambda: write_distribution_methods(solution.parameters, solution.pair, dataset),
        setting=_setting(solution.parameters, ""),
        sections={BEHIND: describe_inputs},
    )
    choice, sizes = solution.choice, solution.problem.sizes
    return add_choice(
        answer,
        dataset,
        f"{solution.parameters.statistic.value} per group",
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
            "num_groups": solution.problem.num_groups,
        },
        left_out=OWN_BOUNDS,
    )
