"""The answer for a release per group and its tabs, as all readers take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpcore.answer.answer import Answer, ReleaseSetting, add_json_writer, build_without_numbers
from dpcore.answer.methods import Methods, cite_program_noise, write_guarantee
from dpcore.answer.plot import Plot
from dpcore.answer.section import BEHIND, Cached, Columns, Note, Parts, Search, SearchResult, Sections, Solver
from dpcore.code import forms
from dpcore.code.release_spec import GroupSelection, Quantity
from dpcore.common.privacy import Provenance, round_up_to_float, write_file_name
from dpcore.common.programs import choose_library
from dpcore.common.progress import Stage
from dpcore.common.strict_json import convert_certificate
from dpcore.common.wording import format_count, format_entered, format_number
from dpcore.data import group_pairs
from dpcore.dataset import Dataset
from dpcore.per_group.answer import plots, words
from dpcore.per_group.answer.error_map import Pair
from dpcore.per_group.answer.solution import (
    IGNORED_FIELD_NAMES,
    MIN_SAVING,
    DistributionSolution,
    PerGroupSolution,
    check_data,
    solve,
    solve_by_distribution,
)
from dpcore.per_group.answer.words import NAME_BY_OBJECTIVE, AnySolution, format_error
from dpcore.per_group.pair_of_bounds import round_up
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import DrawnPair
from dpcore.per_group.selection import SelectedVector
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.per_group.summary import APPROXIMATION_TEXT
from dpcore.per_group.whole_vector import VectorRule
from dpcore.report.script import CodeBuilder, ScriptSource

QUANTITY_BY_STATISTIC = {
    Statistic.ROWS: Quantity.GROUP_ROWS,
    Statistic.USERS: Quantity.GROUP_COUNTS,
    Statistic.SUM: Quantity.GROUP_SUMS,
    Statistic.SIGNED_SUM: Quantity.GROUP_SUMS,
    Statistic.MEAN: Quantity.GROUP_MEANS,
}


def write_forms(solution: PerGroupSolution, dataset: Dataset) -> forms.OfferedPrograms | None:
    """Write the programs for the best pair, cap and radial clip; None if none of these has a bound above 0.

    The better of cap and radial clip comes first of the two.
    """
    parameters = solution.parameters
    best_pair, all_forms = solution.pair, []
    if best_pair is not None:
        all_forms.append(_build_pair_form(parameters, best_pair.max_groups, best_pair.max_amount))
    for vector_choice in sorted(solution.vector_choices, key=lambda vector_choice: vector_choice.error):
        is_radial, max_norm = vector_choice.vector_rule is VectorRule.RADIAL, round_up(vector_choice.max_norm)
        form_name = f"{words.SCALING_FORM if is_radial else words.CAP_FORM}, bound {format_number(max_norm)}"
        bound_options = {"max_norm": max_norm, "scales_vector": is_radial}
        all_forms.append((form_name, QUANTITY_BY_STATISTIC[parameters.statistic], bound_options))
    base_options = _build_options(parameters, dataset, solution.value_column)
    noise_library = choose_library(parameters.program, parameters.mechanism)
    return forms.build_forms(parameters.amount_epsilon, base_options, all_forms, noise_library)


def write_private_forms(
    private_pair: DrawnPair, dataset: Dataset, epsilon: float | None = None
) -> forms.OfferedPrograms | None:
    """Write the program for a pair that was chosen privately; None if its settings fit no program.

    ``epsilon`` stands in for that of the release unless it is None.
    """
    parameters = private_pair.problem.parameters
    is_sum = parameters.statistic is Statistic.SUM
    value_column = dataset.pairs.value_column if is_sum and dataset.pairs else ""
    base_options = _build_options(parameters, dataset, value_column)
    pair_form = _build_pair_form(parameters, private_pair.max_groups, private_pair.max_amount)
    base_options |= {"disclosure": private_pair.facts}
    release_epsilon = parameters.epsilon if epsilon is None else epsilon
    noise_library = choose_library(parameters.program, parameters.mechanism)
    return forms.build_forms(release_epsilon, base_options, [pair_form], noise_library)


def _build_options(parameters: PerGroupParameters, dataset: Dataset, value_column: str) -> dict[str, Any]:
    """Build the fields of `ReleaseSpec` that all programs of an answer share, by name: all but epsilon and bounds."""
    base_options: dict[str, Any] = forms.list_data_fields(dataset) | {
        "noise": parameters.mechanism,
        "delta": parameters.delta,
        "neighbours": parameters.neighbours,
        **forms.FILE_ROW_FIELDS,
        **forms.mark_combined_groups(dataset),
        **dict(zip(("groups", "edges"), parameters.listed_groups, strict=True)),
    }
    if value_column:
        base_options["value_column"] = value_column
    if parameters.selection.is_private:
        assert parameters.selection_delta is not None
        selection_budget = parameters.selection_epsilon, parameters.selection_delta
        rule_name = parameters.selection.value
        base_options["selection"] = GroupSelection(rule_name, *selection_budget, parameters.min_users or 1)
    if parameters.statistic is Statistic.MEAN:
        base_options |= {"lower": parameters.lower, "upper": parameters.upper}
    return base_options


def _build_pair_form(parameters: PerGroupParameters, max_groups: int, max_amount: float) -> forms.Form:
    """Build the form of a program that applies a pair of bounds: its name, quantity and bounds."""
    statistic = parameters.statistic
    bound_options: dict[str, Any] = {"max_groups": max_groups}
    if statistic in (Statistic.ROWS, Statistic.MEAN):
        bound_options["max_rows"] = int(max_amount)
    elif statistic is not Statistic.USERS:
        min_total = -max_amount if statistic is Statistic.SIGNED_SUM else 0.0
        bound_options |= {"max_total": max_amount, "min_total": min_total}
    form_name = f"Pair, {format_number(max_groups)} × {format_number(max_amount)}"
    return form_name, QUANTITY_BY_STATISTIC[statistic], bound_options


PHRASE_BY_STATISTIC = {
    Statistic.ROWS: "number of rows of",
    Statistic.USERS: "number of distinct users of",
    Statistic.SUM: "sum of a column in",
    Statistic.SIGNED_SUM: "sum of a column in",
    Statistic.MEAN: "mean of a column in",
}
PHRASE_BY_RULE = {
    SelectionRule.TRUNCATED_GEOMETRIC: "the truncated geometric rule [@desfontaines2022]",
    SelectionRule.LAPLACE: "a threshold on numbers of users with Laplace noise",
    SelectionRule.GAUSSIAN: "a threshold on numbers of users with Gaussian noise",
}


def write_methods(solution: AnySolution, dataset: Dataset) -> Methods:
    """Write the methods text for the bound of the headline, or that nothing was released."""
    parameters, pair_choice = solution.parameters, solution.pair_choice
    error_name = NAME_BY_OBJECTIVE[parameters.objective]
    if isinstance(solution, DistributionSolution):
        pair = solution.pair
        bounding_sentences = "" if pair is None else _describe_pair(parameters, pair, "about ")
        objective_sentence = (
            f"The bounds have the least {error_name} found from the distribution of pairs of user and group, as if it "
            "were the same in every group."
        )
    else:
        bounding_sentences = _describe_bound(solution)
        error_basis_phrase = f"the {error_name}, averaged over the noise and the choice of groups"
        objective_sentence = f"The bound minimises {error_basis_phrase}."
    doubt_phrase = "" if pair_choice.is_settled and pair_choice.certificate is not None else " was found that"
    no_release_sentence = (
        f"At ε = {format_entered(parameters.epsilon)} no bound{doubt_phrase} has a smaller {error_name} than "
        "releasing nothing, and nothing was released."
    )
    delta = round_up_to_float(Fraction(parameters.delta or 0.0) + Fraction(parameters.selection_delta or 0.0))
    release_phrase = f"The {PHRASE_BY_STATISTIC[parameters.statistic]} every group was released"
    guarantee_sentence = write_guarantee(release_phrase, parameters.epsilon, parameters.neighbours, delta)
    listed_groups_with_verb, num_listed = "list of groups is", len(parameters.listed_groups[0])
    if num_listed and parameters.edges:
        listed_groups_with_verb = f"edges of the {format_count(num_listed, 'bin')} are"
    elif num_listed:
        listed_groups_with_verb = f"list of the {format_count(num_listed, 'group')} is"
    groups_sentence = f"The {listed_groups_with_verb} public, and the budget is for all groups together."
    if parameters.selection.is_private:
        assert parameters.selection_delta is not None
        groups_sentence = (
            f"Groups were selected by {PHRASE_BY_RULE[parameters.selection]}, which spent "
            f"ε = {format_entered(parameters.selection_epsilon)} and "
            f"δ = {format_entered(parameters.selection_delta)} of that budget."
        )
        if parameters.min_users:
            groups_sentence += f" Groups of fewer than {parameters.min_users} users were never released."
    return Methods(
        guarantee_text=f"{guarantee_sentence} {groups_sentence}",
        procedure=bounding_sentences,
        public_procedure=f"The contribution of each user to all groups was bounded, and "
        f"{cite_program_noise(parameters.program, parameters.noise.kind, parameters.mechanism)} "
        "was added in every group.",
        disclosure=dataset.provenance,
        no_release_sentence="" if bounding_sentences else no_release_sentence,
        rule_sentence=objective_sentence,
    )


def _describe_bound(solution: PerGroupSolution) -> str:
    """Describe the best pair, or the bound on whole vectors if it saves enough error; empty if nothing is released."""
    parameters, pair, best_vector = solution.parameters, solution.pair, solution.best_vector
    if best_vector is None or solution.saved_share < MIN_SAVING:
        return "" if pair is None else _describe_pair(parameters, pair)
    sample_sentence = ""
    if isinstance(best_vector, SelectedVector):
        groups_text = format_count(best_vector.max_groups, "group")
        sample_sentence = f"For the selection each user counted in at most {groups_text}, drawn at random. "
    norm_text = format_number(round_up(best_vector.max_norm), 6)
    phrase = f"The contribution of each user to all groups was bounded in {parameters.norm_name} norm by {norm_text}"
    error_text = format_error(parameters, best_vector.error)
    return f"{sample_sentence}{phrase}{_describe_noise(parameters, error_text)}"


def _describe_noise(parameters: PerGroupParameters, error_text: str) -> str:
    """Write the end of a sentence on a bound, which names the noise in every group, and a sentence with the error."""
    noise_text = cite_program_noise(parameters.program, parameters.noise.kind, parameters.mechanism)
    error_name = NAME_BY_OBJECTIVE[parameters.objective]
    return f", and {noise_text} was added in every group. The {error_name} is {error_text}."


def _describe_pair(parameters: PerGroupParameters, pair: Pair, error_prefix: str = "") -> str:
    """Describe a pair of bounds, its noise and its error, whose text begins with the prefix."""
    groups_text = format_count(pair.max_groups, "group")
    pair_sentence = f"Each user contributed to at most {groups_text}, drawn at random"
    if parameters.statistic is not Statistic.USERS:
        amount_unit_text = " rows" if parameters.statistic in (Statistic.ROWS, Statistic.MEAN) else ""
        amount_unit_text = amount_unit_text.rstrip("s") if pair.max_amount == 1 else amount_unit_text
        pair_sentence += f", and at most {format_number(pair.max_amount, 6)}{amount_unit_text} to each"
    if parameters.statistic is Statistic.SIGNED_SUM:
        pair_sentence += ", in absolute value"
    error_text = error_prefix + format_error(parameters, pair.error)
    return f"{pair_sentence}{_describe_noise(parameters, error_text)}"


def build_answer(
    dataset: Dataset, parameters: PerGroupParameters, solution: AnySolution | None = None
) -> Answer:
    """Find the best pair of bounds for a release per group, and the best bound on a user's whole vector.

    Args:
        dataset: Pairs of users and groups, or how these are distributed.
        parameters: The question.
        solution: The solution of both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `PerGroupSolution`, or a `DistributionSolution` if only the distribution of
        pairs is known. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no groups, or do not fit the question.

    Examples:
        The largest user has one row in each of two groups, so the error is the noise alone, which is whole in OpenDP:
        √(2 p) / (1 − p) with p = e^(−ε / 2).

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> visits = pd.DataFrame({"user": list("aabc"), "shop": list("xyxy")})
        >>> answer = ss.group_bounds(visits, user="user", group="shop", epsilon=10)
        >>> print(answer.headline, round(answer.error, 3))
        Keep at most 2 groups per user, and 1 row in each. 0.117
    """
    if solution is None:
        solution = solve_dataset(dataset, parameters)
    provenance, parameters = dataset.provenance, solution.parameters
    data_json_entries: dict[str, object] = {
        "column": solution.facet.label,
        "num_pairs": solution.num_pairs,
        "num_groups": solution.num_groups,
    }
    answer = Answer(
        headline=words.write_headline(solution),
        detail=words.write_detail(solution, dataset),
        numbers=words.list_numbers(solution),
        assumptions=words.list_assumptions(solution),
        disclosure=provenance,
        facts=words.list_facts(solution, dataset),
        parameters=parameters,
        solution=solution,
        plots={"per-group-error": lambda: plots.plot_pair_errors(solution, provenance)},
        make_methods=lambda: write_methods(solution, dataset),
        bound=solution.pair,
        setting=build_setting(dataset, parameters),
        sections={BEHIND: describe_inputs},
    )
    if isinstance(solution, DistributionSolution):
        if group_pairs.fits_in_file(solution.problem.pair_sizes):
            writers_by_file_name = {"pair_distribution.json": lambda: group_pairs.write_distribution(dataset)}
            answer = replace(answer, files=writers_by_file_name)
    else:
        data_json_entries["value_column"] = solution.facet.value_column
        data_json_entries["num_users"] = int(solution.problem.pairs.groups_per_user.size)
        answer = replace(
            answer,
            proofs=words.list_proofs(solution),
            code=write_forms(solution, dataset),
            near_optimal=words.describe_near_optimal(solution),
            error_parts=words.list_error_parts(solution),
            relative_error=words.measure_relative_error(solution),
            alternative=words.find_alternative(solution),
            sections=build_sections(solution),
            plots={**answer.plots, **_list_plotters(solution, provenance)},
        )
    return add_json_writer(
        answer,
        dataset,
        f"{parameters.statistic.value} per group",
        lambda: _list_choice_entries(solution),
        data_entries=data_json_entries,
        omitted_parameter_names=IGNORED_FIELD_NAMES,
    )


def _list_plotters(solution: PerGroupSolution, provenance: Provenance) -> dict[str, Callable[[], Plot]]:
    """List functions that make the plots besides the main figure, by key of the plot."""
    selection_solution = solution.selection_solution
    plotters_by_key = dict[str, Callable[[], Plot]]()
    plotters_by_key["per-group-sizes"] = lambda: plots.plot_groups(solution, provenance)
    if solution.vector_choices:
        plotters_by_key["per-group-norm"] = lambda: plots.plot_norm_errors(solution, provenance)
    if selection_solution is not None and (solution.pair or selection_solution.selected_vector):
        plotters_by_key["per-group-survival"] = lambda: plots.plot_survival(solution, provenance)
    if selection_solution is not None and selection_solution.curves_by_bounds_name:
        plotters_by_key |= {
            "per-group-kept-over-epsilon": lambda: plots.plot_over_epsilon(solution, provenance)[0],
            "per-group-error-over-epsilon": lambda: plots.plot_over_epsilon(solution, provenance)[1],
        }
    return plotters_by_key


def _list_choice_entries(solution: AnySolution) -> dict[str, object]:
    """List the JSON entries on the choice by key; which there are depends on what was solved for."""
    pair_choice, pair = solution.pair_choice, solution.pair
    is_integer = solution.parameters.statistic.is_integer
    amount_key = "max_contributions_per_group" if is_integer else "max_amount_per_group"
    max_amount = int(pair_choice.max_amount) if is_integer else pair_choice.max_amount
    entries: dict[str, object] = {"max_groups_contributed": pair_choice.max_groups, amount_key: max_amount}
    certificate_entries = {
        "error_of_publishing_nothing": solution.problem.error_of_nothing,
        "ended": pair_choice.stop_reason,
        **convert_certificate(pair_choice.certificate),
    }
    if isinstance(solution, DistributionSolution):
        lowest_error, highest_error = solution.error_limits or (None, None)
        entries |= {
            "error_about": pair_choice.error,
            "error_at_least": lowest_error,
            "error_at_most": highest_error,
        }
        return entries | certificate_entries | {"approximate": APPROXIMATION_TEXT}
    entries |= {"error": pair_choice.error, **certificate_entries}
    if pair is not None and not is_integer:
        entries |= {"max_amount_per_group_rounded": pair.max_amount, "error_rounded": pair.error}
    norm_name = solution.parameters.norm_name
    for vector_key, vector_choice in zip(("cap", "scaling"), solution.vector_choices, strict=False):
        entries[vector_key] = {
            "norm": norm_name,
            "max_norm": vector_choice.max_norm,
            "error": vector_choice.error,
            "ended": vector_choice.stop_reason,
            **convert_certificate(vector_choice.certificate),
        }
    if (selection_solution := solution.selection_solution) is not None:
        selected_groups_by_bounds = selection_solution.selected_groups_by_bounds_name
        num_expected = (
            selected_groups_by_bounds["pair"].num_expected_groups
            if "pair" in selected_groups_by_bounds
            else 0.0
        )
        entries["groups_released_on_average"] = num_expected
        if (selected_vector := selection_solution.selected_vector) is not None:
            entries["scaled_users"] = {
                "rule": selected_vector.vector_rule.value,
                "norm": norm_name,
                "max_norm": selected_vector.max_norm,
                "max_groups_of_the_selection": selected_vector.max_groups,
                "error": selected_vector.error,
                "proof": "none",
            }
    return entries


def build_refused_answer(dataset: Dataset, parameters: PerGroupParameters) -> Answer:
    """Build an answer without numbers, for data that do not fit the question."""
    return build_without_numbers(parameters, dataset.provenance, build_setting(dataset, parameters))


def build_setting(dataset: Dataset, parameters: PerGroupParameters) -> ReleaseSetting:
    """Build the `ReleaseSetting`: statistic, budget, noise, relation, value column and range."""
    is_count = parameters.statistic in (Statistic.ROWS, Statistic.USERS)
    return ReleaseSetting(
        QUANTITY_BY_STATISTIC[parameters.statistic],
        parameters.epsilon,
        parameters.neighbours,
        "" if dataset.pairs is None or is_count else dataset.pairs.value_column,
        parameters.lower,
        parameters.upper,
        noise=parameters.mechanism,
        delta=parameters.delta,
    )


# --- tabs, and the search beside a page ---------------------------------------------------------------------


def write_data_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
    """Write the notebook cell that reads the distribution's file into ``data``; the file's name names no person.

    ``public_only`` has no effect.
    """
    code_builder.import_name("read_distribution", "dpcore.data.group_pairs")
    file_name = f"{write_file_name('pair_distribution', source.dataset.provenance)}.json"
    code_builder.import_name("Path", "pathlib")
    return (
        "# From Group by, Downloads, Distribution of pairs (JSON).\n"
        f"FILE = Path({file_name!r})\n"
        f"data = read_distribution(FILE.read_bytes(), FILE.name, {code_builder.write(source.dataset.disclosure)})"
    )


MAX_IMMEDIATE_PAIRS, MAX_IMMEDIATE_MEAN_PAIRS = 60_000, 3_000
"""Pairs up to which an answer is computed at once."""
MIN_HEAVY_PAIRS = 1_000_000
"""Pairs from which on a search waits for other heavy work."""


def solve_dataset(dataset: Dataset, parameters: PerGroupParameters) -> AnySolution:
    """Solve from the pairs of users and groups, or from their distribution if the data have that alone."""
    is_distribution = dataset.pairs is None and dataset.pair_sizes is not None
    return solve_by_distribution(dataset, parameters) if is_distribution else solve(dataset, parameters)


def solve_beside_page(dataset: Dataset, parameters: PerGroupParameters) -> Solver:
    """Yield a cached call for few pairs on a public list and for a distribution, else a search; return its result.

    While the search runs the answer to the settings before stands.
    """
    num_pairs = 0 if dataset.pairs is None else dataset.pairs.user_codes.size
    is_mean = parameters.statistic is Statistic.MEAN
    max_immediate_pairs = MAX_IMMEDIATE_MEAN_PAIRS if is_mean else MAX_IMMEDIATE_PAIRS
    if dataset.pairs is None or not (parameters.selection.is_private or num_pairs > max_immediate_pairs):
        solution = yield Cached(solve_dataset, (dataset, parameters), num_kept=8)
        return SearchResult(solution)
    yield Cached(check_data, (dataset, parameters))
    search_result: SearchResult = yield Search(
        "job",
        parameters,
        lambda progress, should_stop: solve(dataset, parameters, progress, should_stop),
        "Looking for the best pair",
        is_heavy=num_pairs >= MIN_HEAVY_PAIRS,
        progress_texts_by_stage={Stage.EARLIER: "The answer for the settings before"},
    )
    return search_result


def describe_inputs(answer: Answer, dataset: Dataset) -> Parts:
    """Yield a note on the data that the answer was computed from."""
    yield Note(words.describe_data(answer.solution, dataset))


def show_whole_vectors(answer: Answer, dataset: Dataset) -> Parts:
    """Yield the plot of the error over the bound on a whole vector, cut or scaled, or a note why there is none."""
    if "per-group-norm" not in answer.plots:
        where_it_exists_sentence = "It exists for rows, users and sums of amounts of at least 0."
        if not answer.parameters.has_vectors:
            program_name = answer.parameters.program.value
            where_it_exists_sentence = f"{program_name} has no such bound. OpenDP and plain Python have it."
        yield Note(where_it_exists_sentence, "info")
        return
    yield (
        "Instead of dropping groups at random, cut all groups of a user at *one level*, or *scale* them alike. For "
        "every pair there is a level that errs no more in any group, with the same noise."
    )
    yield answer.plots["per-group-norm"]()


def show_survival(answer: Answer, dataset: Dataset) -> Parts:
    """Yield sentences and plots on which groups are released and which part of the error each kind has."""
    yield "\n".join(f"- {sentence}" for sentence in words.describe_survival(answer.solution))
    if "per-group-survival" not in answer.plots:
        return
    yield answer.plots["per-group-survival"]()
    yield from _describe_sample(answer, "users")
    epsilon_plots = [make_plot() for key, make_plot in answer.plots.items() if key.endswith("over-epsilon")]
    if epsilon_plots:
        yield Columns(tuple([plot] for plot in epsilon_plots))


def show_groups(answer: Answer, dataset: Dataset) -> Parts:
    """Yield from which size on groups are useful, and a plot of groups' errors over their sizes."""
    yield "\n".join(f"- {sentence}" for sentence in words.describe_groups(answer.solution))
    yield answer.plots["per-group-sizes"]()
    yield from _describe_sample(answer, "sizes")


def _describe_sample(answer: Answer, basis_noun: str) -> Parts:
    """Yield a note if a plot shows only some of the groups; ``basis_noun`` names what the groups are spread over."""
    if answer.solution.problem.pairs.num_entries > plots.MAX_PLOTTED_GROUPS:
        yield Note(f"{plots.MAX_PLOTTED_GROUPS:,} groups are shown, evenly spread over their {basis_noun}.")


def build_sections(solution: PerGroupSolution) -> Sections:
    """Return the tabs by title.

    Between inputs and errors of groups stands which groups survive if they are selected privately, else scaling.
    """
    first_section: Sections = {"Scaling instead": show_whole_vectors}
    if solution.selection_solution is not None:
        first_section = {"Which groups survive": show_survival}
    return {BEHIND: describe_inputs, **first_section, "Error of each group": show_groups}
