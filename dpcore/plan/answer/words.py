"""The solution for a plan in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpcore.answer import standard
from dpcore.answer.answer import Number, Proof, RelativeError
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.code.several import SHARED_COUNT_NAME
from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import format_rounded_up
from dpcore.common.programs import Program, choose_library, describe_program
from dpcore.common.wording import (
    capitalise,
    choose_word,
    format_count,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.dataset import Dataset
from dpcore.plan.curves import TotalCurve
from dpcore.plan.lines import DEFAULT_TARGET_SHARE, LineStatistic
from dpcore.plan.parameters import Objective
from dpcore.plan.solution import AllocatedLine, PlanSolution, sum_weighted_squares
from dpcore.plan.table import NEIGHBOURS, PlannedLine

LEAK_SENTENCE = standard.warn_of_leak(
    "shares, bounds and relative errors were",
    remedy_text="Plan on public or older data, or on a DP histogram (*Data*).",
)
MAX_LINES_IN_TEXT = 3
MAX_TINY_SHARE = 1e-4
MIN_USELESS_ERROR_RATIO = 0.5
"""Error of a variance or standard deviation over its value beyond which the answer warns."""


def write_headline(solution: PlanSolution) -> str:
    """Write for how many lines the budget is enough; for a single line, that all of it goes there, and its bound.

    The default target is named if a line has it.
    """
    num_lines, num_reached = len(solution.lines), solution.num_reached
    epsilon_text = format_rounded_up(solution.budget.epsilon, 4)
    own_target_flags = [line.planned_line.line.target_error is not None for line in solution.lines]
    default_text, target_text = format_percent(DEFAULT_TARGET_SHARE, 1), ""
    if num_lines == 1:
        target_text = "" if all(own_target_flags) else f" for a target of {default_text}"
        is_enough_phrase = "is enough" if num_reached else "is not enough"
        only_line = solution.lines[0]
        return (
            f"All of ε = {epsilon_text} goes to {only_line.label} ({_describe_bound(only_line)}), and it "
            f"{is_enough_phrase}{target_text}."
        )
    num_reached_text = f"{num_reached or 'none'} of {num_lines} numbers"
    if num_reached == num_lines:
        num_reached_text = "both numbers" if num_lines == 2 else f"all {num_lines} numbers"
    if not any(own_target_flags):
        target_text = f" within {default_text}"
    elif not all(own_target_flags):
        target_text = f", within {default_text} where a line names no target"
    return f"ε = {epsilon_text} is enough for {num_reached_text}{target_text}."


def write_detail(solution: PlanSolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline: what each missed target would take, or what costs most."""
    missed_text = describe_all_missed(solution)
    sentences = [missed_text] if missed_text else []
    if not sentences and len(solution.lines) > 1:
        sentences.append(_describe_most_expensive(solution))
    sentences += [
        f"**The {line.label} is of little use here**: its error is {format_percent(relative_error)} of its value. "
        "It takes "
        "more users, a narrower range or a larger ε."
        for line in solution.lines
        if line.statistic.is_spread
        and line.planned_line.reference_value > 0.0
        and (relative_error := line.error / line.planned_line.reference_value) > MIN_USELESS_ERROR_RATIO
    ]
    if dropped_labels := [line.label for line in solution.lines if line.is_dropped]:
        sentences.append(f"**Dropped:** {' and '.join(dropped_labels)}. 0 is published instead.")
    if dataset.is_private:
        sentences.append(LEAK_SENTENCE)
    return " ".join(sentences)


def describe_all_missed(solution: PlanSolution) -> str:
    """Write what would do for the three missed targets that need most, and how many more there are; empty for none."""
    missed_lines = _list_missed(solution)
    sentences = [_describe_missed(line, epsilon) for line, epsilon in missed_lines[:MAX_LINES_IN_TEXT]]
    if (num_hidden := len(missed_lines) - MAX_LINES_IN_TEXT) > 0:
        sentences.append(f"{format_count(num_hidden, 'further target')}: see the table.")
    return " ".join(sentences)


def _list_missed(solution: PlanSolution) -> list[tuple[AllocatedLine, float]]:
    """List the lines that miss their targets with the plan's epsilon that would do; the most expensive first."""
    amounts_lines_epsilons = sorted(
        zip(solution.needed_amounts.tolist(), solution.lines, solution.reaching_epsilons, strict=True),
        key=lambda need_and_line: -need_and_line[0],
    )
    return [(line, epsilon) for _, line, epsilon in amounts_lines_epsilons if not line.is_reached]


def _describe_missed(line: AllocatedLine, epsilon: float) -> str:
    """Write what would do for a line that misses its target: a larger target error, or another epsilon."""
    reached_error_text = format_accuracy(line, line.error)
    target_error_text = format_accuracy(line, line.planned_line.target_error)
    connecting_text = ", or" if epsilon <= EPSILON_RANGE[1] else ";"
    remedy_text = (
        f"{reached_error_text} instead of {target_error_text}{connecting_text} {_write_remedy(line, epsilon)}"
    )
    return f"**{capitalise(line.label)}:** {remedy_text}."


def _describe_most_expensive(solution: PlanSolution) -> str:
    """Write a sentence on the line that needs most of the budget, or that no line needs any."""
    line_label = solution.lines[solution.most_expensive_index].label
    needed_amount = solution.needed_amounts.max()
    if needed_amount == 0.0:
        return "Publishing 0 meets every target."
    needed_share_text = format_percent(float(needed_amount / solution.needed_amounts.sum()))
    return f"**Most expensive:** {line_label}, {needed_share_text} of what all targets need."


def build_numbers(solution: PlanSolution) -> tuple[Number, ...]:
    """Build the numbers: least epsilon for all targets, size of the errors, and the error of each line."""
    sufficient_epsilon, is_reachable = solution.sufficient_epsilon, math.isfinite(solution.sufficient_epsilon)
    plan_error, equal_split_error = map(
        solution.summarise_errors, (solution.lines, solution.equal_split_lines)
    )
    error_label, error_help = "Largest error", "The largest error over target error."
    if solution.parameters.objective is Objective.SUM:
        error_label, error_help = "Errors", "Root of the weighted mean square of error over target error."
    equal_split_note = f"times the target (equal split {format_number(equal_split_error)})"
    return (
        Number(
            "ε for all targets",
            format_rounded_up(sufficient_epsilon, 4) if is_reachable else "none is enough",
            "" if solution.parameters.objective is Objective.REACH else "if shares aim at the targets",
            value=sufficient_epsilon if is_reachable else None,
            unit="ε",
            key="enough",
        ),
        Number(
            error_label,
            format_number(plan_error),
            equal_split_note,
            error_help,
            plan_error,
            "target errors",
            "size",
        ),
        *(
            Number(
                capitalise(line.label),
                format_error(line, line.error),
                f"{_describe_bound(line)}, {_format_share(line)} of the budget",
                f"Root mean squared error; target: {format_error(line, line.planned_line.target_error)}.",
                line.error,
                line.planned_line.unit,
                f"error_{line_number}",
            )
            for line_number, line in enumerate(solution.lines, start=1)
        ),
    )


def _format_share(line: AllocatedLine) -> str:
    """Format the share of the budget: ``< 0.01 %`` for a tiny one, as of a quantile that errs least with hardly any."""
    if 0.0 < line.share < MAX_TINY_SHARE:
        return f"< {format_percent(MAX_TINY_SHARE, 1)}"
    return format_percent(line.share)


def format_error(line: AllocatedLine, error: float) -> str:
    """Format an error of a line with its unit."""
    if line.statistic is LineStatistic.QUANTILE:
        return f"{format_percent(error)} of rows"
    is_count = line.planned_line.unit in ("rows", "users")
    return f"{format_number(error)} {line.planned_line.unit}" if is_count else format_number(error)


def _describe_bound(line: AllocatedLine) -> str:
    """Describe the bound of a line as a phrase, its two bounds if it has a pair, or ``dropped``."""
    if line.is_dropped:
        return "dropped"
    groups_text = f"{format_count(line.bound, 'group')} per user"
    match line.statistic:
        case LineStatistic.USERS:
            return "each user once"
        case LineStatistic.SUM:
            return f"totals up to {format_number(line.bound, 4)}"
        case LineStatistic.GROUP_USERS:
            return groups_text
        case LineStatistic.GROUP_ROWS:
            return f"{groups_text}, {format_count(line.second_bound, 'row')} in each"
        case LineStatistic.GROUP_SUMS:
            return f"{groups_text}, up to {format_number(line.second_bound, 4)} in each"
        case LineStatistic.MEAN if line.planned_line.half_width is not None:
            deviation_limit_text = format_number(line.bound * line.planned_line.half_width, 4)
            return (
                f"weight of at most {format_count(line.bound, 'row')}, total deviation up to ± "
                f"{deviation_limit_text}"
            )
        case _:
            return f"{format_number(line.bound, 4)} {choose_word(line.bound, 'row', 'rows')} per user"


def format_accuracy(line: AllocatedLine, error: float) -> str:
    """Format an error in the unit of the line's target: a share of the value, or the value's own unit."""
    planned_line = line.planned_line
    if planned_line.line.is_relative and math.isfinite(planned_line.reference_value):
        return f"±{format_percent(error / abs(planned_line.reference_value))}"
    return f"±{format_error(line, error)}"


def measure_relative_error(solution: PlanSolution) -> RelativeError:
    """Return the largest relative error of a line: over its value, or of a quantile over half of all rows."""
    relative_errors = []
    for line in solution.lines:
        reference_value = abs(line.planned_line.reference_value)
        what_value_phrase = f"the value, for {line.label}"
        if line.statistic is LineStatistic.QUANTILE:
            reference_value, what_value_phrase = 0.5, f"half of all rows, for {line.label}"
        relative_errors.append(
            RelativeError(
                line.error / reference_value if reference_value > 0.0 else math.inf, what_value_phrase
            )
        )
    return replace(max(relative_errors, key=lambda r: r.share), error_phrase="the largest error is")


def tabulate_plan(solution: PlanSolution) -> list[dict[str, str]]:
    """List table rows, one per line: error, share, bound, and whether the target is met or which epsilon would do."""
    return [
        {
            "reached": format_accuracy(line, line.error),
            "share": _format_share(line),
            "bound": _describe_bound(line),
            "met": "✓ yes" if line.is_reached else f"✗ {_write_remedy(line, epsilon)}",
        }
        for line, epsilon in zip(solution.lines, solution.reaching_epsilons, strict=True)
    ]


def _write_remedy(line: AllocatedLine, epsilon: float) -> str:
    """Write the epsilon of the plan that would do with the same shares, or why none would."""
    if line.is_dropped:
        return "it gets no share"
    return f"ε = {format_rounded_up(epsilon, 3)}" if epsilon <= EPSILON_RANGE[1] else "no ε is enough"


def build_facts(solution: PlanSolution) -> dict[str, str]:
    """Build the facts behind the plan: sentences by heading."""
    texts_by_heading: dict[str, str] = {}
    if solution.parameters.objective is Objective.SUM and not list_proofs(solution):
        texts_by_heading["How sure"] = (
            "The best plan found, not proved: the error of a quantile need not fall with its budget."
        )
    if len(solution.lines) > 1:
        extra_error_share = max(solution.equal_split_factor - 1.0, 0.0)
        texts_by_heading["Equal split"] = (
            f"its errors are {format_percent(extra_error_share)} larger; "
            f"{sum(line.is_reached for line in solution.equal_split_lines)} of {len(solution.lines)} meet theirs."
        )
    if solution.apart_lines:
        texts_by_heading["One count of rows"] = describe_shared_count(solution)
    for line in solution.planned_lines:
        noiseless_error = line.noiseless_error
        if noiseless_error > line.target_error:
            texts_by_heading[f"{capitalise(line.line.label)} without any noise"] = (
                f"its error is {format_number(noiseless_error)}; the target is {format_number(line.target_error)}."
            )
    budget, parameters = solution.budget, solution.parameters
    noise_program = budget.program if budget.is_exact or budget.program is Program.TUMULT else Program.OPENDP
    has_counts = any(line.planned_line.unit in ("users", "rows") for line in solution.lines)
    are_means = [line.statistic is LineStatistic.MEAN for line in solution.lines]
    texts_by_heading["Noise"] = describe_program(
        noise_program,
        parameters.mechanism,
        budget.epsilon,
        budget.delta,
        is_of_counts=has_counts,
        num_aggregates=2 if all(are_means) else 1,
    )
    if budget.program is Program.BIGQUERY and any(are_means) and not all(are_means):
        texts_by_heading["Noise"] += " A mean, of two sums, gets two thirds of its share."
    if budget.mechanism is NoiseKind.GAUSSIAN:
        texts_by_heading["What adds up"] = "ρ = (sensitivity / σ)² / 2 of the lines; their ε does not."
        # Of the exponential mechanism beside Gaussian noise no exact account is known.
        if not budget.is_exact and not budget.has_quantile:
            exact_epsilon_text = format_number(budget.exact_epsilon, 4)
            texts_by_heading["ε really spent"] = (
                f"{exact_epsilon_text} by an exact account, {format_number(budget.epsilon, 4)} by the program's."
            )
    return texts_by_heading


def describe_shared_count(solution: PlanSolution) -> str:
    """Describe the count of rows that means share, and by how much errors would be larger without that."""
    shared_labels = [line.label for line in solution.lines if line.planned_line.shares_rows]
    count_line = solution.count_line or next(line for line in solution.lines if line.planned_line.shares_rows)
    mean_labels = [shared_label for shared_label in shared_labels if shared_label != count_line.label]
    divides_or_divide = "divides" if len(mean_labels) == 1 else "divide"
    error_change = (
        math.sqrt(sum_weighted_squares(solution.apart_lines) / sum_weighted_squares(solution.lines)) - 1.0
    )
    return (
        f"{' and '.join(mean_labels)} {divides_or_divide} by one count, with {_format_share(count_line)} of the "
        "budget and at most "
        f"{format_count(count_line.bound, 'row')} per user. With counts of their own, errors are "
        f"{format_percent(abs(error_change))} {'larger' if error_change >= 0.0 else 'smaller'}."
    )


def list_proofs(solution: PlanSolution) -> tuple[Proof, ...]:
    """Return the certificate of the split; empty with a quantile or another objective."""
    if solution.split is None or solution.split.certificate is None:
        return ()
    return (("Plan", solution.split.certificate, f"{describe_coverage(solution.planned_lines)}."),)


def describe_coverage(planned_lines: Sequence[PlannedLine]) -> str:
    """Describe the bounds that a certificate covers, without a full stop."""
    incomplete_labels = [line.line.label for line in planned_lines if not line.curve.has_all_bounds]
    covered_bounds_text = "all bounds"
    if incomplete_labels:
        covered_bounds_text = f"the bounds tried for {', '.join(incomplete_labels)}"
    coverage_clause = f"It covers all splits of the budget and {covered_bounds_text}"
    if any(line.group_problem is not None for line in planned_lines):
        coverage_clause += (
            "; pairs of bounds per group are then searched further at their share, which may lie below"
        )
    if any(line.line.statistic.has_mean_settings for line in planned_lines):
        coverage_clause += "; for a mean or variance it is about the error before it is moved into its range"
    if any(isinstance(line.curve, TotalCurve) and not line.curve.is_integer for line in planned_lines):
        coverage_clause += "; rounding a bound on totals adds at most 0.1 %"
    return coverage_clause


def list_assumptions(solution: PlanSolution) -> tuple[str, ...]:
    """List the assumptions of the plan; sentences without their full stop."""
    line_statistics = {line.statistic for line in solution.lines}
    sentences = [
        f"Neighbouring relation of all lines: {NEIGHBOURS.value}",
        "Every further release needs a budget of its own",
        "Errors are root mean squared; of quantiles they are rank errors",
        "The plan is best for independent noise; one mechanism for several numbers can be better",
        "ε does not cover the choice of shares and bounds: if they were computed from private data, they leak",
    ]
    for line in solution.planned_lines:
        line_label = capitalise(line.line.label)
        sentences += [
            f"{line_label}: {assumption[0].lower()}{assumption[1:]}" for assumption in line.assumptions
        ]
    if any(statistic.has_mean_settings for statistic in line_statistics):
        sentences.append(
            "Shares and bounds of means and variances are the best by the delta-method approximation, before these are "
            "moved into their range. If values are read, errors and the ε for targets are those of the releases "
            "themselves"
        )
    if solution.apart_lines:
        sentences.append("Means divide by one count of rows, so that their errors are not independent")
    if any(statistic.is_per_group for statistic in line_statistics):
        sentences.append("The list of groups is public; their error is the root mean square over groups")
    return tuple(sentences)


SENTENCE_BY_OBJECTIVE = {
    Objective.SUM: "Bounds and shares minimise the weighted sum of squared errors over target errors.",
    Objective.LARGEST: "Bounds and shares minimise the largest error over target error.",
    Objective.REACH: "Bounds and shares need the least budget for every target error.",
}


def write_methods(solution: PlanSolution, dataset: Dataset) -> Methods:
    """Write the methods text: guarantee, noise, share and bound of each line, and the rule."""
    parameters = solution.parameters
    line_names_text = ", ".join(line.label for line in solution.lines)
    budget = solution.budget
    noise_text = "Laplace noise [@dwork2006]" if budget.mechanism is NoiseKind.LAPLACE else "Gaussian noise"
    noise_text += f" by {choose_library(parameters.program, parameters.mechanism).value}"
    outcome_phrases = [
        ", and 0 was published"
        if line.is_dropped
        else f" under a bound of {format_number(line.bound, 6)}"
        + (" on users' weights, their deviations clamped" if line.planned_line.half_width is not None else "")
        + f" (expected error {format_error(line, line.error)})"
        for line in solution.lines
    ]
    if solution.count_line is not None:
        outcome_phrases[-1] += f"; {SHARED_COUNT_NAME} got {format_percent(solution.count_line.share)}"
    shares_text = "; ".join(
        f"{line.label} got {format_percent(line.share)}{outcome_text}"
        for line, outcome_text in zip(solution.lines, outcome_phrases, strict=True)
    )
    noise_sentence = f"One budget was divided, and {noise_text} added to each release"
    if parameters.lower is not None and any(line.statistic.needs_range for line in solution.lines):
        value_range_text = f"[{format_entered(parameters.lower)}, {format_entered(parameters.upper or 0.0)}]"
        noise_sentence = (
            f"Values were clamped to {value_range_text}, which is treated as public. {noise_sentence}"
        )
    released_names_text = (
        f"{capitalise(line_names_text)} {'was' if len(solution.lines) == 1 else 'were'} released"
    )
    return Methods(
        # If the least budget is searched for, epsilon itself depends on the data.
        guarantee_text=write_guarantee(released_names_text, budget.epsilon, NEIGHBOURS, budget.delta or 0.0),
        procedure=f"{noise_sentence}: {shares_text}.",
        public_procedure=f"{noise_sentence}.",
        disclosure=dataset.provenance,
        rule_sentence=SENTENCE_BY_OBJECTIVE[parameters.objective],
        subject_phrase="The division",
    )
