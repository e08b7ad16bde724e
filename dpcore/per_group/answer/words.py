"""The solution for a release per group in words: sentences, numbers, facts."""

from __future__ import annotations

import math
from dataclasses import astuple
from functools import partial

import numpy as np
import numpy.typing as npt

from dpcore.answer import standard
from dpcore.answer.answer import (
    BIAS,
    NOISE,
    NOT_USEFUL_ABOVE,
    SAMPLING,
    Alternative,
    ErrorPart,
    Number,
    Proof,
    RelativeError,
    build_error_parts,
)
from dpcore.answer.axes import RANGE_SOURCE_PHRASE, OutsideCounts
from dpcore.common import noise_error
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program, describe_program
from dpcore.common.wording import (
    PERCENT,
    choose_word,
    describe_change,
    escape_text,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.dataset import Dataset
from dpcore.per_group.answer.error_map import SelectionSolution, split_error
from dpcore.per_group.answer.solution import MIN_SAVING, USEFUL_ERROR, DistributionSolution, PerGroupSolution
from dpcore.per_group.means import APPROXIMATION_TEXT as APPROXIMATE_MEANS
from dpcore.per_group.pair_of_bounds import PairChoice, round_up
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.selection import SelectedVector
from dpcore.per_group.summary import APPROXIMATION_TEXT
from dpcore.per_group.whole_vector import VectorChoice, VectorRule

SCALING_FORM, CAP_FORM = "Scaling", "One level"
"""How the names of both programs for whole vectors begin."""
AnySolution = PerGroupSolution | DistributionSolution
NAME_BY_OBJECTIVE = {
    Objective.ROOT_MEAN_SQUARE: "root mean squared error over the groups",
    Objective.MEAN_RMSE: "mean of the groups' errors",
    Objective.RELATIVE_ROOT_MEAN_SQUARE: "root mean square of the groups' relative errors",
    Objective.MEAN_RELATIVE: "mean of the groups' relative errors",
    Objective.LARGE_GROUPS: "root mean squared error over the large groups",
}


def format_amount(parameters: PerGroupParameters, amount: float) -> str:
    """Format a bound on an amount with its unit: rows, or a number without a unit."""
    if parameters.statistic in (Statistic.ROWS, Statistic.MEAN):
        return format_count(amount, "row")
    return format_number(amount)


def format_pair(parameters: PerGroupParameters, max_groups: int, max_amount: float) -> str:
    """Format a pair of bounds, such as ``9 groups × 3 rows``; groups alone if users count once in each."""
    groups_text = format_count(max_groups, "group")
    if parameters.statistic is Statistic.USERS:
        return groups_text
    return f"{groups_text} × {format_amount(parameters, max_amount)}"


def format_error(parameters: PerGroupParameters, shown_error: float) -> str:
    """Format an error with its unit: per cent, rows, users, or a number without a unit."""
    if parameters.objective.is_relative:
        return format_percent(shown_error)
    noun = {Statistic.ROWS: "row", Statistic.USERS: "user"}.get(parameters.statistic)
    return format_number(shown_error) if noun is None else format_count(float(f"{shown_error:.3g}"), noun)


def list_assumptions(solution: AnySolution) -> tuple[str, ...]:
    """Return the assumptions of the answer, sentences without their full stop."""
    parameters = solution.parameters
    groups_sentence = "The list of groups is public; groups without rows are released, too"
    budget_sentence = "The budget is for all groups together; every further release needs its own"
    bounds_sentence = "Users keep random groups up to the first bound, and amounts up to the second in each"
    errors_sentence = "The errors are averaged over the noise and the random choice of groups"
    if parameters.selection.is_private:
        groups_sentence = "Groups are selected by the users who keep them; groups not released count as 0"
        budget_sentence += ". Selection and noise share it"
        bounds_sentence += "; with scaling only the selection has a sample"
    elif parameters.program is Program.BIGQUERY:
        groups_sentence = (
            "The errors are those of groups that are released. BigQuery takes no list: it leaves out groups with few "
            "users. *Private, Laplace* counts that"
        )
    if parameters.statistic is Statistic.MEAN:
        sums_phrase = "two sums per group, of the rows' distances from both ends of the range"
        if parameters.splits_means:
            sums_phrase = "a sum and a number of rows per group, which share the budget"
        bounds_sentence += f". A mean comes from {sums_phrase}, and is clamped to the range"
        errors_sentence = f"In the errors {APPROXIMATE_MEANS}"
    if parameters.program is Program.TUMULT:
        errors_sentence += (
            ". Tumult chooses by a hash, the same in every run: more runs do not average that out"
        )
    sentences = [
        f"Neighbouring data sets: {parameters.neighbours.value}",
        groups_sentence,
        budget_sentence,
        bounds_sentence,
        errors_sentence,
        "The bounds are public. If they were computed from private data, ε does not cover that",
    ]
    if isinstance(solution, DistributionSolution):
        sentences.append("Every group holds the same mixture of pairs")
    return tuple(sentences)


def instruct_to_bound(solution: AnySolution) -> str:
    """Return the best pair as an imperative phrase."""
    assert solution.pair is not None
    groups_text = format_count(solution.pair.max_groups, "group")
    if solution.parameters.statistic is Statistic.USERS:
        return f"Count each user in at most {groups_text}"
    amount_text = format_amount(solution.parameters, solution.pair.max_amount)
    side_phrase = ", on either side of 0" if solution.parameters.statistic is Statistic.SIGNED_SUM else ""
    return f"Keep at most {groups_text} per user, and {amount_text} in each{side_phrase}"


def write_headline(solution: AnySolution) -> str:
    """Return the recommendation in a sentence: the best pair; without one the bound on whole vectors, or no release."""
    if solution.pair is not None:
        approximate_phrase = ", or about as many" if isinstance(solution, DistributionSolution) else ""
        return f"{instruct_to_bound(solution)}{approximate_phrase}."
    if isinstance(solution, PerGroupSolution) and solution.saved_share >= MIN_SAVING:
        return f"Keep every row, and scale the user: {format_percent(solution.saved_share)} less error than nothing."
    epsilon_text = format_entered(solution.parameters.epsilon)
    if not solution.pair_choice.is_settled:
        return f"No useful pair was found at ε = {epsilon_text}; there may be one."
    pairs_phrase = "pair of bounds" if solution.pair_choice.certificate else "pair of bounds of those tried"
    return f"Release nothing at ε = {epsilon_text}: no {pairs_phrase} has a smaller error."


def list_numbers(solution: AnySolution) -> tuple[Number, ...]:
    """Return the numbers: pair and error, then, where there are any, released private groups and bound on vectors."""
    parameters, best_pair = solution.parameters, solution.pair
    pair_error, objective_help = solution.pair_error, f"The {NAME_BY_OBJECTIVE[parameters.objective]}."
    error_text = format_error(parameters, pair_error)
    pair_text = "none" if solution.pair_choice.is_settled else "none found"
    pair_label, clipboard_text = "Best pair", ""
    error_label, error_key, error_help = "Error of publishing nothing", "", objective_help
    if best_pair is not None:
        pair_text = format_pair(parameters, best_pair.max_groups, best_pair.max_amount)
        pair_label = "Best pair of bounds"
        clipboard_text = f"{best_pair.max_groups}, {best_pair.max_amount:.12g}"
        if parameters.statistic is Statistic.USERS:
            pair_label, clipboard_text = "Best bound", f"{best_pair.max_groups}"
        error_label, error_key = "Error per group", "error_of_the_pair"
        change_from_nothing_text = describe_change(best_pair.error, solution.problem.error_of_nothing)
        error_help += f" It is {change_from_nothing_text} than without a release."
    if isinstance(solution, DistributionSolution):
        return (
            Number("Best pair found", pair_text, clipboard_text=clipboard_text),
            Number("Error, about", error_text, "", objective_help),
        )
    numbers = [
        Number(pair_label, pair_text, clipboard_text=clipboard_text),
        Number(error_label, error_text, "", error_help, pair_error, "", error_key, error_text),
    ]
    if solution.selection_solution is not None and best_pair is not None:
        selected_groups = solution.selection_solution.selected_groups_by_bounds_name["pair"]
        num_released_text = format_number(selected_groups.num_expected_groups)
        numbers.append(
            Number("Groups released", num_released_text, f"of {solution.num_groups:,}, on average")
        )
    if (best_vector := solution.best_vector) is not None:
        vector_rule_name = "one level" if best_vector.vector_rule is VectorRule.CAP else "the scaling"
        change_from_pair_note = f"{describe_change(best_vector.error, pair_error)} than the pair"
        norm_help = "The largest L1 (Laplace) or L2 norm (Gaussian) of what a user adds to all groups."
        norm_text = format_number(round_up(best_vector.max_norm))
        vector_error_text = format_error(parameters, best_vector.error)
        numbers += [
            Number(f"Bound of {vector_rule_name}", norm_text, "norm of a user's vector", norm_help),
            Number("Error of scaling", vector_error_text, change_from_pair_note, objective_help),
        ]
    own_error = None if solution.own_pair is None else solution.own_pair.error
    return standard.add_own_error(tuple(numbers), own_error, partial(format_error, parameters))


def list_error_parts(solution: PerGroupSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the error of the best pair, whose squares add up to its square; empty if they are unknown."""
    if (error_parts := solution.error_parts) is None:
        return ()
    bias_part = error_parts.clipping_part + error_parts.omission_part
    mean_square_shares = bias_part, error_parts.sampling_part, error_parts.noise_part
    rooted_parts = (math.sqrt(error_parts.total * max(part, 0.0)) for part in mean_square_shares)
    return build_error_parts(dict(zip((BIAS, SAMPLING, NOISE), rooted_parts, strict=True)), format_number)


def write_detail(solution: AnySolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline, as one text; empty if nothing does."""
    sentences = []
    if isinstance(solution, DistributionSolution):
        sentences.append("**Which pairs lie in which group is not known.**")
        if solution.pair is not None and solution.error_limits is not None:
            limit_texts = [format_error(solution.parameters, error) for error in solution.error_limits]
            sentences.append(f"The error is between {limit_texts[0]} and {limit_texts[1]}.")
    else:
        outside_counts = _count_outside(solution, dataset)
        if outside_counts is not None and outside_counts.exceeds_warning:
            sentences.append(
                f"**{outside_counts.percent_text} of the values are clamped**, and no error here counts that: set L "
                f"and U {RANGE_SOURCE_PHRASE}"
            )
        if solution.is_mean and solution.pair is not None:
            little_use_phrase = "" if solution.useful_mean_size else "**Of little use:** "
            sentences.append(f"{little_use_phrase}{_compare_means(solution)}")
    if dataset.is_private:
        sentences.append(_warn_of_leak(solution.parameters))
    return " ".join(sentences)


def find_alternative(solution: PerGroupSolution) -> Alternative | None:
    """Return the bound on whole vectors if it saves enough of the best pair's error; None if not, or without a pair."""
    best_vector = solution.best_vector
    if best_vector is None or solution.pair is None or solution.saved_share < MIN_SAVING:
        return None
    is_cap = best_vector.vector_rule is VectorRule.CAP
    action_phrase = f"{'Cutting users at one level' if is_cap else 'Scaling users'} instead"
    if isinstance(best_vector, SelectedVector):
        action_phrase += f", of at most {format_count(best_vector.max_groups, 'group')}"
    alternative_sentence = f"{action_phrase}: {format_percent(solution.saved_share)} less error."
    return Alternative(alternative_sentence, CAP_FORM if is_cap else SCALING_FORM)


def measure_relative_error(solution: PerGroupSolution) -> RelativeError:
    """Return the error of the median group over its size, and how many groups are off by their whole size or more.

    A group without rows is off by more than its size. Of means, return the error over that of one mean for all groups.
    """
    if solution.is_mean:
        error, one_mean_error = solution.pair_error, solution.problem.error_of_nothing
        error_ratio = error / one_mean_error if one_mean_error else math.inf
        return RelativeError(error_ratio, "that of one mean for all groups")
    median_relative_error = solution.median_relative_error
    num_useless = solution.count_useless(solution.group_errors)
    num_groups = int(solution.problem.pairs.multiplicities.sum())
    groups_text = f"{num_useless:,} of {format_count(num_groups, 'group')}"
    useless_remark = f"{groups_text} {choose_word(num_useless, 'is', 'are')} off by 100{PERCENT} or more."
    if not median_relative_error <= NOT_USEFUL_ABOVE:
        useless_remark += " Use fewer groups or a larger ε."
    return RelativeError(median_relative_error, "the median group's size", useless_remark)


def _compare_means(solution: PerGroupSolution) -> str:
    """Say from which size on groups' own means err less than one mean for all groups, or that they never do."""
    if solution.useful_mean_size is None:
        return "One mean for all groups has a smaller error than their own means."
    useful_size_text = format_count(solution.useful_mean_size, "row")
    return f"One mean for all has a larger error over the groups of at least {useful_size_text}."


def _warn_of_leak(parameters: PerGroupParameters) -> str:
    """Write the warning that the pair, and the groups if their number is not entered, depend on private data."""
    selects_privately = parameters.selection.is_private
    if parameters.num_listed_groups is None and not selects_privately:
        return standard.warn_of_leak(
            "the groups and the pair were",
            remedy_text="Enter a public list of groups, or how many it has, or select groups privately "
            "(*More settings*).",
        )
    if parameters.statistic.is_non_negative and not selects_privately:
        return standard.warn_of_leak("this pair was")
    return standard.warn_of_leak("this pair was", remedy_text="Choose it without these data.")


def _count_outside(solution: PerGroupSolution, dataset: Dataset) -> OutsideCounts | None:
    """Count the values that a mean clamps; return None for other statistics and for data without values."""
    if not solution.is_mean or dataset.values is None:
        return None
    row_values, (lower, upper) = dataset.values.values, solution.parameters.mean_range
    return OutsideCounts(int(np.sum(row_values < lower)), int(np.sum(row_values > upper)), row_values.size)


def describe_near_optimal(solution: PerGroupSolution) -> str:
    """Describe the near-optimal range of L0 under the best bound within a group; empty if it was not computed."""
    if solution.near_optimal_groups is None or solution.pair is None:
        return ""
    return standard.write_near_optimal_range(*solution.near_optimal_groups, "group")


def list_facts(solution: AnySolution, dataset: Dataset) -> dict[str, str]:
    """List the facts behind the pair: sentences by heading, without those that do not apply."""
    if isinstance(solution, DistributionSolution):
        return {
            "Noise": _describe_noise(solution.parameters),
            "What is approximate": APPROXIMATION_TEXT,
            "How it was found": f"{solution.pair_choice.stop_reason.partition('. ')[0]}.",
        }
    parameters, best_pair = solution.parameters, solution.pair
    texts_by_heading = {"Noise": _describe_noise(parameters)}
    if (selection := solution.selection_solution) is not None:
        texts_by_heading |= _list_selection_facts(solution, selection)
    if (error_parts := solution.error_parts) is not None:
        part_names = "amounts above their bound", "groups beyond theirs", "random choice of groups", "noise"
        part_texts = (
            f"{part_name} {format_percent(part_of_error / error_parts.total)}"
            for part_name, part_of_error in zip(part_names, astuple(error_parts), strict=True)
        )
        texts_by_heading["Error components"] = f"{', '.join(part_texts)}."
    if best_pair is not None:
        above_groups_mask = solution.problem.pairs.groups_per_user > best_pair.max_groups
        above_amount_mask = np.abs(solution.problem.amounts) > best_pair.max_amount
        texts_by_heading["Who is affected"] = (
            f"above the bound on groups: {_write_share(above_groups_mask, 'user')}; above the bound in each: "
            f"{_write_share(above_amount_mask, 'pair')} of user and group."
        )
    if solution.vector_choices:
        cap_text, radial_text = (format_error(parameters, choice.error) for choice in solution.vector_choices)
        texts_by_heading["Without sampling"] = f"error {cap_text} with one level, {radial_text} with scaling."
    if (outside_counts := _count_outside(solution, dataset)) is not None:
        texts_by_heading["Values outside the range"] = outside_counts.write_sentence(
            "the range from L to U",
            " and is clamped, which no error counts",
            " and are clamped, which no error counts",
        )
    if solution.is_mean:
        texts_by_heading[noise_error.ASSUMPTION_LABEL] = _compare_standard_errors(solution)
    pairs_by_label = {"PipelineDP's rule": solution.tuner_pair, "Your own pair": solution.own_pair}
    for pair_label, compared_pair in pairs_by_label.items():
        if compared_pair is not None:
            l0_text, linf_text = map(format_number, (compared_pair.max_groups, compared_pair.max_amount))
            error_arguments = compared_pair.error, solution.pair_error, partial(format_error, parameters)
            fact_sentence = standard.compare_own_bound("error", *error_arguments, "the pair")
            texts_by_heading[f"{pair_label}, {l0_text} × {linf_text}"] = fact_sentence
    no_pair_sentence = "no pair: only for amounts of at least 0, on a public list of groups."
    if parameters.statistic.is_non_negative and selection is None:
        no_pair_sentence = (
            "the pair with the least sum of mean absolute errors; its root mean square can be up to "
            f"50{PERCENT} higher."
        )
    return texts_by_heading | {"Choosing with DP offers": no_pair_sentence}


def _describe_noise(parameters: PerGroupParameters) -> str:
    """Write which noise the program draws, and what a split of the budget of a mean gives to sum and rows."""
    is_big_query, is_mean = parameters.program is Program.BIGQUERY, parameters.statistic is Statistic.MEAN
    noise_sentences = describe_program(
        parameters.program,
        parameters.mechanism,
        parameters.epsilon if is_big_query else parameters.amount_epsilon,
        parameters.delta,
        is_of_counts=parameters.statistic in (Statistic.ROWS, Statistic.USERS),
        num_aggregates=2 if is_mean else 1,
    )
    is_split_mean = is_mean and parameters.splits_means and not is_big_query
    if is_split_mean and parameters.noise.kind is NoiseKind.LAPLACE:
        noise_sentences += " Sums and numbers of rows get half of ε each."
    return noise_sentences


_SELECTION_BY_PROGRAM = {
    Program.OPENDP: "OpenDP's mechanism has the Laplace and the Gaussian threshold. Its context would compare one "
    "noisy count, with all of ε, with a threshold.",
    Program.PYTHON: "Plain Python has the Laplace and the Gaussian threshold, by OpenDP's mechanism.",
    Program.PIPELINEDP: "PipelineDP gives half of ε and all of δ to the selection, or half of δ beside Gaussian noise.",
    Program.TUMULT: "Tumult has a Laplace threshold with whole noise, which these errors count with.",
    Program.BIGQUERY: "BigQuery has the Laplace threshold, with half of ε.",
}
"""True for the programs that select groups as the page counts."""


def _write_share(above_mask: npt.NDArray[np.bool_], noun: str) -> str:
    """Write how many users or pairs are above a bound, and their share."""
    return f"{format_count(int(above_mask.sum()), noun)} ({format_percent(float(above_mask.mean()))})"


def _list_selection_facts(solution: PerGroupSolution, selection: SelectionSolution) -> dict[str, str]:
    """Build the facts on private selection, sentences by name: budget, parts of the error, vectors, programs."""
    parameters = solution.parameters
    assert parameters.selection_delta is not None
    noise_budget_text = f"ε = {format_entered(parameters.amount_epsilon)}"
    if parameters.delta is not None:
        noise_budget_text += f" and δ = {format_entered(parameters.delta)}"
    texts_by_heading = {
        "Budget": f"ε = {format_entered(parameters.selection_epsilon)} and "
        f"δ = {format_entered(parameters.selection_delta)} to select groups ({parameters.selection.value}), "
        f"{noise_budget_text} for the noise."
    }
    if selected_groups := selection.selected_groups_by_bounds_name.get("pair"):
        two_parts = split_error(solution.problem, selected_groups)
        released_text, lost_text = (format_percent(part / sum(two_parts)) for part in two_parts)
        texts_by_heading["Error components"] = (
            f"released groups {released_text}, groups not released {lost_text}."
        )
    if (selected_vector := selection.selected_vector) is not None:
        vector_rule_text = "one level" if selected_vector.vector_rule is VectorRule.CAP else "scaling"
        texts_by_heading["Without sampling amounts"] = (
            f"error {format_error(parameters, selected_vector.error)} with {vector_rule_text}; only the selection "
            f"keeps {format_count(selected_vector.max_groups, 'group')} per user. "
            f"Best of {format_number(selected_vector.num_evaluations)} settings, without a proof."
        )
    program_sentences = _SELECTION_BY_PROGRAM.get(parameters.program, "")
    return texts_by_heading | ({"Programs": program_sentences} if program_sentences else {})


def list_proofs(solution: PerGroupSolution) -> tuple[Proof, ...]:
    """Return name, certificate and stop reason of pair, cap and radial clip, without those that have no certificate."""
    choices_to_prove: tuple[PairChoice | VectorChoice, ...] = (solution.pair_choice, *solution.vector_choices)
    return tuple(
        (proof_name, choice.certificate, choice.stop_reason)
        for proof_name, choice in zip(("Pair", "One level", "Scaling"), choices_to_prove, strict=False)
        if choice.certificate is not None
    )


def describe_data(solution: AnySolution, dataset: Dataset) -> str:
    """Describe the pairs, the groups, and the rows left out; of a mean also how the search ended."""
    where_groups_phrase = "in the data" if solution.parameters.selection.is_private else "released"
    sentences = [
        f"{format_count(solution.num_pairs, 'pair')} of a user and a group; "
        f"{format_count(solution.num_groups, 'group')} of {escape_text(solution.facet.label)} {where_groups_phrase}."
    ]
    if listed_groups := solution.parameters.listed_groups[0]:
        groups_noun = "bins by public edges" if solution.parameters.edges else "groups of the public list"
        sentences.append(
            f"These are the {len(listed_groups):,} {groups_noun}. Rows of no such group are left out before anything "
            "is bounded, here and in the program."
        )
    if isinstance(solution, PerGroupSolution):
        if num_ungrouped_rows := solution.facet.rows_without_group:
            sentences.append(f"{format_count(num_ungrouped_rows, 'row')} without a group stay out.")
        if solution.is_mean:
            sentences.append(solution.pair_choice.stop_reason)
    return " ".join(sentences)


def describe_survival(solution: PerGroupSolution) -> list[str]:
    """Describe how many groups are released and from which size, for each choice of bounds, or that none is."""
    assert solution.selection_solution is not None
    selection_solution, sentences = solution.selection_solution, []
    labels_by_bounds = {"pair": "the best pair", "scaled": "users scaled", "tuner": "PipelineDP's pair"}
    for bounds_name, bounds_label in labels_by_bounds.items():
        if (selected_groups := selection_solution.selected_groups_by_bounds_name.get(bounds_name)) is None:
            continue
        likely_users = selection_solution.users_per_group[selected_groups.keep_probabilities >= 0.5]
        likely_phrase = "none is likely"
        if likely_users.size:
            likely_phrase = f"the smallest likely one has {format_count(int(likely_users.min()), 'user')}"
        sentences.append(
            f"**With {bounds_label}:** {format_number(selected_groups.num_expected_groups)} of "
            f"{format_count(solution.num_groups, 'group')} are released on average; {likely_phrase}."
        )
    if not sentences:
        is_settled = solution.pair_choice.is_settled
        sentences.append("Releasing no group is best." if is_settled else "No useful bounds were found.")
    return sentences


def describe_groups(solution: PerGroupSolution) -> list[str]:
    """Describe from which size on groups have useful numbers: a sentence per choice of bounds, of means just one."""
    if solution.is_mean:
        return [_compare_means(solution)]
    sentences, useful_error_text = [], format_percent(USEFUL_ERROR)
    for bounds_label, group_errors in (
        ("With the best pair" if solution.pair is not None else "Publishing 0", solution.group_errors),
        ("With users scaled", solution.vector_group_errors),
    ):
        if group_errors is None:
            continue
        num_useless = solution.count_useless(group_errors)
        useful_size = solution.find_useful_size(group_errors)
        useful_phrase = f"the largest group's error is above {useful_error_text}"
        if useful_size is not None:
            useful_phrase = (
                f"every error is below {useful_error_text} from a size of {format_number(useful_size)} on"
            )
        sentences.append(
            f"**{bounds_label}:** {useful_phrase}; publishing 0 is as good for {format_number(num_useless)} of "
            f"{format_count(solution.num_groups, 'group')}."
        )
    return sentences


def _compare_standard_errors(solution: PerGroupSolution) -> str:
    """Compare the standard error of means, as estimates for a population, with that of independent rows."""
    error_ratios = solution.compute_standard_error_ratios(noise_error.ASSUMED_USER_SHARE)
    return (
        "for the population, the standard error before noise is "
        f"{format_number(float(np.median(error_ratios)))} times that of independent rows in the median group and "
        f"{format_number(float(error_ratios.max()))} times in the worst, at an intra-class correlation of "
        f"{noise_error.ASSUMED_USER_SHARE}."
    )
