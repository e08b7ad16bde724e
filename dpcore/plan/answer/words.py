"""The solution for a plan in words: sentences, numbers, the methods section."""

from __future__ import annotations

import math

import numpy as np

from dpcore.answer import standard
from dpcore.answer.answer import Number, Proof
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import format_rounded_up
from dpcore.dataset import Dataset
from dpcore.plan.answer.solution import PlanSolution, compute_exact_epsilon
from dpcore.plan.drawn import AllocatedLine, describe_coverage, sum_weighted_squares
from dpcore.plan.lines import LineStatistic
from dpcore.plan.one_truncation import OneTruncation
from dpcore.plan.parameters import Objective, PlanParameters
from dpcore.plan.table import NEIGHBOURS

LEAKS = standard.warn_of_leak(
    "shares, bounds and relative errors were", remedy="Plan on public or older data, or on a private copy."
)
ON_RELEASE = "The DP release is treated as the true data; errors on the original data are unknown."


def write_headline(solution: PlanSolution) -> str:
    """Write for how many lines the budget suffices."""
    count = len(solution.lines)
    epsilon = format_rounded_up(solution.budget.epsilon, 4)
    if count == 1:
        verb = "is enough" if solution.num_reached else "is not enough"
        return f"All of ε = {epsilon} goes to {solution.lines[0].planned.line.label}, and it {verb}."
    count_text = f"{solution.num_reached or 'none'} of {count} numbers"
    if solution.num_reached == count:
        count_text = "both numbers" if count == 2 else f"all {count} numbers"
    return f"ε = {epsilon} is enough for {count_text}."


def write_detail(solution: PlanSolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline."""
    sentences = [_describe_shares(solution), _describe_most_expensive(solution)]
    dropped_lines = [line for line in solution.lines if line.is_dropped]
    if dropped_lines:
        labels = " and ".join(line.planned.line.label for line in dropped_lines)
        sentences.append(f"**Dropped:** {labels}. 0 is published instead: noise would cost more.")
    if dataset.is_private:
        sentences.append(LEAKS)
    if dataset.release is not None:
        sentences.append(ON_RELEASE)
    return " ".join(filter(None, sentences))


MAX_LINES_IN_TEXT = 3
"""The most lines whose shares stand beside the figure; more lines stand only in a table."""


def _describe_shares(solution: PlanSolution) -> str:
    """Describe the share and the bound of each line."""
    if not 1 < len(solution.lines) <= MAX_LINES_IN_TEXT:
        return ""
    line_texts = (
        f"**{wording.capital(line.planned.line.label)}** {_format_share(line)}, {_describe_bound(line)}"
        for line in solution.lines
    )
    return "; ".join(line_texts) + "."


def _describe_most_expensive(solution: PlanSolution) -> str:
    """Describe the line that needs most of the budget."""
    if len(solution.lines) == 1:
        return ""
    line = solution.lines[solution.most_expensive].planned.line
    if math.isinf(solution.needed_amounts[solution.most_expensive]):
        return f"**Never reached:** {line.label}. Its error is above the wanted one even without noise."
    total = float(solution.needed_amounts.sum())
    if total == 0.0:
        return "Publishing 0 already has every wanted error."
    share = wording.percent(float(solution.needed_amounts[solution.most_expensive]) / total)
    return f"**Most expensive:** {line.label}, {share} of the budget that all wanted errors need."


def build_numbers(solution: PlanSolution, parameters: PlanParameters) -> tuple[Number, ...]:
    """Build the least epsilon for all target errors, the size of the errors, and each line."""
    sufficient_epsilon, is_largest = solution.sufficient_epsilon, parameters.objective is not Objective.SUM
    size, equal_split_size = (
        solution.summarise_errors(solution.lines, is_largest),
        solution.summarise_errors(solution.equal_split, is_largest),
    )
    return (
        Number(
            "ε for all wanted errors",
            "none is enough" if math.isinf(sufficient_epsilon) else format_rounded_up(sufficient_epsilon, 4),
            "",
            "The least ε of the whole plan at which every line has its wanted error.",
            None if math.isinf(sufficient_epsilon) else sufficient_epsilon,
            "ε",
            "enough",
        ),
        Number(
            "Largest error" if is_largest else "Errors",
            wording.number(size),
            f"times the wanted {'one' if is_largest else 'ones'} (equal split {wording.number(equal_split_size)})",
            f"{'The largest' if is_largest else 'Root of the weighted mean square of'} error over wanted error.",
            size,
            "wanted errors",
            "size",
        ),
        *(_build_line_number(line, number) for number, line in enumerate(solution.lines, start=1)),
    )


def _build_line_number(line: AllocatedLine, number: int) -> Number:
    """Build the number of a line."""
    return Number(
        wording.capital(line.planned.line.label),
        format_error(line, line.error),
        f"{_describe_bound(line)}, {_format_share(line)} of the budget",
        f"Root mean squared error; wanted: {format_error(line, line.planned.target_error)}.",
        line.error,
        line.planned.unit,
        f"error_{number}",
    )


def _format_share(line: AllocatedLine) -> str:
    """Format the share of the budget. A quantile whose error is least with hardly any budget gets a millionth."""
    return (
        f"< {wording.percent(TINY_SHARE, 1)}"
        if 0.0 < line.share < TINY_SHARE
        else wording.percent(line.share)
    )


TINY_SHARE = 1e-4


def format_error(line: AllocatedLine, value: float) -> str:
    """Format an error of a line with its unit."""
    if line.planned.line.statistic is LineStatistic.QUANTILE:
        return f"{wording.percent(value)} of rows"
    number = wording.number(value)
    is_count = line.planned.unit in ("rows", "users")
    return f"{number} {line.planned.unit}" if is_count else number


def _describe_bound(line: AllocatedLine) -> str:
    """Describe the bound of a line."""
    if line.is_dropped:
        return "dropped"
    statistic, bound = line.planned.line.statistic, wording.number(line.bound, 4)
    match statistic:
        case LineStatistic.USERS:
            return "each user once"
        case LineStatistic.SUM:
            return f"totals up to {bound}"
        case LineStatistic.GROUP_USERS:
            return f"{wording.counted(line.bound, 'group')} per user"
        case LineStatistic.GROUP_ROWS:
            return (
                f"{wording.counted(line.bound, 'group')} per user, "
                f"{wording.counted(line.second_bound, 'row')} in each"
            )
        case LineStatistic.GROUP_SUMS:
            return (
                f"{wording.counted(line.bound, 'group')} per user, up to {wording.number(line.second_bound, 4)} in "
                "each"
            )
        case _:
            return f"{bound} {wording.agreeing(line.bound, 'row', 'rows')} per user"


def tabulate_plan(solution: PlanSolution) -> dict[str, list[str]]:
    """Tabulate the plan, a row per line."""
    budget_symbol = "ρ" if solution.budget.noise is NoiseKind.GAUSSIAN else "ε"
    lines = solution.lines
    return {
        "release": [line.planned.line.label for line in lines],
        "share": [_format_share(line) for line in lines],
        budget_symbol: [wording.number(line.amount) for line in lines],
        "bound": [_describe_bound(line) for line in lines],
        "error": [("✓ " if line.is_reached else "") + format_error(line, line.error) for line in lines],
        "wanted": [format_error(line, line.planned.target_error) for line in lines],
        "equal split": [format_error(line, line.error) for line in solution.equal_split],
        "reached at ε =": [
            "never" if math.isinf(epsilon) else format_rounded_up(epsilon, 3) if epsilon else "any"
            for epsilon in solution.reaching_epsilons
        ],
    }


TABLE_NOTE = (
    "Errors are root mean squared errors; for quantiles, rank errors. *Reached at*: the ε of the whole plan at which "
    "the line has its wanted error, shares unchanged."
)


def build_facts(solution: PlanSolution, parameters: PlanParameters) -> dict[str, str]:
    """Build the facts behind the plan, a sentence each."""
    sentences: dict[str, str] = {}
    if len(solution.lines) > 1:
        sentences["Equal split"] = _compare_with_equal_split(solution)
        if math.isfinite(solution.sufficient_epsilon):
            sentences["All wanted errors"] = _describe_all_targets(solution)
    for planned_line in solution.planned:
        floor = math.sqrt(max(planned_line.curve.floor, 0.0))
        if floor > planned_line.target_error:
            sentences[f"{wording.capital(planned_line.line.label)} never has its wanted error"] = (
                f"its error without any noise is {wording.number(floor)}, and "
                f"{wording.number(planned_line.target_error)} is wanted."
            )
    sentences["Program"] = (
        f"errors are those of the noise that {parameters.program.value} draws (*More settings* has others)."
    )
    if solution.budget.noise is NoiseKind.GAUSSIAN:
        sentences["What adds up"] = (
            "with Gaussian noise ρ = (sensitivity / σ)² / 2 of the lines adds up; their ε does not."
        )
        if (exact_epsilon := compute_exact_epsilon(solution)) is not None:
            sentences["ε really spent"] = (
                f"{wording.number(exact_epsilon, 4)} by an exact account of this noise; the program's account says "
                f"{wording.number(solution.budget.epsilon, 4)}."
            )
    return sentences


def _compare_with_equal_split(solution: PlanSolution) -> str:
    """Compare the plan with an equal split."""
    error_factor = solution.equal_split_factor
    num_reached = sum(line.is_reached for line in solution.equal_split)
    difference_text = (
        "no larger" if error_factor <= 1.0 + 1e-9 else f"{wording.percent(error_factor - 1.0)} larger"
    )
    return (
        f"relative to the wanted errors, its errors are {difference_text} (root of the sum of squares); {num_reached} "
        f"of {len(solution.lines)} lines have their wanted error."
    )


def _describe_all_targets(solution: PlanSolution) -> str:
    """Describe the needs of the most expensive lines."""
    total = float(solution.needed_amounts.sum())
    order = np.argsort(-solution.needed_amounts, kind="stable")[:3]
    need_texts = [
        f"{solution.planned[line_index].line.label} "
        f"{wording.percent(float(solution.needed_amounts[line_index]) / total) if total else '0'}"
        for line_index in order.tolist()
    ]
    return (
        f"met from ε = {format_rounded_up(solution.sufficient_epsilon, 4)}; shares of that budget: "
        f"{', '.join(need_texts)}."
    )


def list_proofs(solution: PlanSolution, parameters: PlanParameters) -> tuple[Proof, ...]:
    """Return the certificate of the split; empty with a quantile or another objective."""
    if (
        parameters.objective is not Objective.SUM
        or solution.split is None
        or solution.split.certificate is None
    ):
        return ()
    return (("Plan", solution.split.certificate, f"{describe_coverage(solution.planned)}."),)


def describe_uncertainty(solution: PlanSolution, parameters: PlanParameters) -> str:
    """Say that the plan is not proved best; empty if it is proved, or if the objective is no sum."""
    if parameters.objective is not Objective.SUM or list_proofs(solution, parameters):
        return ""
    return (
        "The best plan found, not proved: the error of a quantile need not fall with its budget, so no bound on all "
        "plans is known."
    )


def list_assumptions(solution: PlanSolution) -> tuple[str, ...]:
    """List the assumptions of the plan; sentences without their full stop."""
    statistics = {line.line.statistic for line in solution.planned}
    sentences = [
        f"Neighbouring relation of all lines: {NEIGHBOURS.value}",
        "The budget is for all lines together; every further release needs its own",
        "The plan is best among these bounds and these mechanisms with independent noise; one mechanism for several "
        "numbers at once can be better",
        "ε does not cover the choice of shares and bounds: if they were computed from private data, they leak",
        "Errors are root mean squared errors: squares of bias and of noise add up",
    ]
    for line in solution.planned:
        sentences += [f"Mean: {assumption[0].lower()}{assumption[1:]}" for assumption in line.assumptions]
    if LineStatistic.MEAN in statistics:
        sentences.append(
            "The error of a mean is the delta-method approximation, which is good while the noise is small compared "
            "with the rows kept"
        )
    if any(statistic.is_per_group for statistic in statistics):
        sentences.append(
            "The list of groups is public; an error per group is the root mean square over the groups"
        )
    return tuple(sentences)


def describe_common_bound(truncation: OneTruncation, solution: PlanSolution) -> str:
    """Describe the cost of one bound on rows for all lines."""
    own_objective = {
        Objective.SUM: sum_weighted_squares(solution.lines),
        Objective.LARGEST: solution.summarise_errors(solution.lines, is_largest=True),
        Objective.REACH: solution.budget.epsilon,
    }[truncation.objective]
    factor = f"**{wording.number(truncation.compute_cost(own_objective))} times**"
    if truncation.objective is Objective.SUM:
        cost = f"Errors over wanted errors are then {factor} as large (root of the sum of squares)"
    elif truncation.objective is Objective.LARGEST:
        cost = f"The largest error over wanted error is then {factor} as large"
    else:
        cost = f"All wanted errors then need ε = {format_rounded_up(truncation.value, 4)}, {factor} as much"
    sharing = wording.number(truncation.sharing_cost)
    rows = wording.number(truncation.compute_rows_cost(own_objective))
    search_text = "" if truncation.has_all_bounds else " of those looked at"
    return (
        f"Libraries can bound the rows of each user once, for all queries. The best such bound{search_text} is "
        f"**{wording.counted(truncation.max_rows, 'row')} of each user**. {cost} as with a bound for each number. "
        f"Sharing one bound costs {sharing} times, bounding rows instead of totals and groups {rows} times."
    )


def describe_bound_over_groups(line: AllocatedLine, bound: int, error: float) -> str:
    """Describe the gain by one bound on all rows of a user for rows per group; empty if there is little."""
    relative_gain = 1.0 - error / line.error
    if relative_gain < MIN_GAIN:
        return ""
    return (
        f"**{wording.capital(line.planned.line.label)}**: one bound of {wording.counted(bound, 'row')} of each user "
        f"over all groups has {wording.percent(relative_gain)} less error at the same share: "
        f"{format_error(line, error)} instead of {format_error(line, line.error)} with {_describe_bound(line)}. No "
        "program here writes it: use `truncate_per_group` before the query in OpenDP, `MaxRowsPerID` in Tumult."
    )


MIN_GAIN = 0.01
"""The smallest relative gain that is worth a sentence."""


def tabulate_common_bound(truncation: OneTruncation, solution: PlanSolution) -> dict[str, list[str]]:
    """Tabulate shares and errors under one bound, a row per line."""
    lines = solution.lines
    return {
        "release": [line.planned.line.label for line in lines],
        "share": [wording.percent(share) for share in truncation.shares.tolist()],
        "error": [
            format_error(line, error) for line, error in zip(lines, truncation.errors.tolist(), strict=True)
        ],
        "with its own bound": [format_error(line, line.error) for line in lines],
    }


RULES = {
    Objective.SUM: "Bounds and shares minimise the weighted sum of squared errors over wanted errors.",
    Objective.LARGEST: "Bounds and shares minimise the largest error over wanted error.",
    Objective.REACH: "Bounds and shares have every wanted error at the least budget.",
}


def write_methods(solution: PlanSolution, dataset: Dataset, parameters: PlanParameters) -> Methods:
    """Describe the plan, line by line."""
    names = ", ".join(line.line.label for line in solution.planned)
    noise_text = (
        "Laplace noise [@dwork2006]" if parameters.mechanism is NoiseKind.LAPLACE else "Gaussian noise"
    )
    shares_text = "; ".join(
        f"{line.planned.line.label} got {wording.percent(line.share)} of the budget"
        + (
            ", and 0 was published"
            if line.is_dropped
            else f" under a bound of {wording.number(line.bound, 6)}"
        )
        for line in solution.lines
    )
    # If the least budget is searched for, epsilon itself depends on the data.
    epsilon = solution.budget.epsilon
    verb = "was" if len(solution.planned) == 1 else "were"
    return Methods(
        guarantee=write_guarantee(
            f"{wording.capital(names)} {verb} released", epsilon, NEIGHBOURS, parameters.delta or 0.0
        ),
        sentences=f"One budget was divided among the releases, and {noise_text} was added to each: {shares_text}.",
        public_sentences=f"One budget was divided among the releases, and {noise_text} was added to each.",
        disclosure=dataset.provenance,
        rule=RULES[parameters.objective],
        subject="The division",
    )
