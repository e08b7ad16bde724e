"""The solution for many tasks in words: sentences, numbers, the methods section."""

from __future__ import annotations

import numpy as np

from dpcore.answer import standard
from dpcore.answer.answer import Number, Proof
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.common.wording import format_count, format_entered, format_number, format_percent
from dpcore.dataset import Dataset
from dpcore.multitask.answer.solution import MultitaskSolution, WeightComparison, compare_totals
from dpcore.multitask.experiment import DESCENT_SETTINGS
from dpcore.multitask.problem import Allocation, BudgetComparison, Loss
from dpcore.multitask.sampling import ReleasedUserCounts, count_tasks_per_user
from dpcore.multitask.weights import Bucket, BudgetFit, certify_on_average, compute_gain
from dpcore.report.content import Line, summarise_dataset

MAX_UNCHANGED_SHARE = 0.005
"""Smaller changes are not mentioned."""
_SCALED_DOWN_PHRASE = "those of users above it were scaled down"
PHRASE_BY_FIT = {
    BudgetFit.CLIPPED: _SCALED_DOWN_PHRASE,
    BudgetFit.LOGARITHMIC: _SCALED_DOWN_PHRASE,
    BudgetFit.NOBODY_CLIPPED: "all weights are so small that no user exceeds it",
    BudgetFit.FULL: "those of every user were scaled to it",
}


def list_assumptions(solution: MultitaskSolution) -> tuple[str, ...]:
    """List the assumptions of the answer, which depend on how weights are fitted to the budget."""
    fit_assumptions: tuple[str, ...] = (
        "Task sizes are public, or were released privately (tab *Private counts*)",
        "Users of a task are alike: no bound counts that unequal weights favour those with few tasks",
    )
    if solution.comparison.rule.fit.clips_nobody:
        fit_assumptions = (
            "The smallest c that clips nobody depends on who contributes to which task, which must be public",
        )
    return (
        "Neighbouring data sets differ in one user, with all their data in all tasks",
        "The squared weights of a user sum to at most β, all that the guarantee needs",
        "The error bounds (theorems 3.8 and 3.12) omit shared constants: they compare weights and predict no accuracy",
        "Theorem 3.12 sets the number of steps T of algorithm 2 from weights and task sizes. That T is left out: its "
        f"bound assumes it, and *Experiment* takes {DESCENT_SETTINGS.num_steps} steps",
        *fit_assumptions,
    )


def describe_tail_and_head(comparison: WeightComparison) -> str:
    """Describe how the error bound of the smallest and the largest tasks changes from uniform weights; no full stop."""
    has_fifths = len(comparison.buckets) == 5
    tail_phrase = "The tail fifth of tasks" if has_fifths else "The smallest task"
    head_phrase = "the head" if has_fifths else "the largest"
    tail_gain_phrase, head_gain_phrase = (_describe_gain(comparison.buckets[i]) for i in (0, -1))
    return f"{tail_phrase} {tail_gain_phrase}, {head_phrase} {head_gain_phrase}"


def _describe_gain(bucket: Bucket) -> str:
    """Describe a bucket's gain: ``gains 3.1×``, ``loses 1.2×``, ``stays as it is``."""
    error_ratio = bucket.ratio
    if abs(1.0 / error_ratio - 1.0) < MAX_UNCHANGED_SHARE:
        return "stays as it is"
    return (
        f"gains {format_factor(1.0 / error_ratio)}"
        if error_ratio < 1.0
        else f"loses {format_factor(error_ratio)}"
    )


def format_factor(error_ratio: float) -> str:
    """Format a factor with two digits, three below 1.1: ``3.1×``."""
    return f"{format_number(error_ratio, 3 if error_ratio < 1.1 else 2)}×"


def format_change(error_ratio: float) -> str:
    """Format a ratio as a change: ``−44 %``, ``3×``, ``the same``."""
    if abs(error_ratio - 1.0) < MAX_UNCHANGED_SHARE / 10.0:
        return "the same"
    if error_ratio > 2.0:
        return format_factor(error_ratio)
    return f"{'−' if error_ratio < 1.0 else '+'}{format_percent(abs(1.0 - error_ratio))}"


def format_exponent(value: float) -> str:
    """Format an exponent; 1/4 and 1/2 as the paper writes them."""
    return {0.25: "1/4", 0.5: "1/2"}.get(value, format_entered(value))


def name_sampling(sampling: Allocation) -> str:
    """Name a uniform sampling by its number of tasks per user: ``Uniform sampling, k = 20``."""
    return f"Uniform sampling, k = {count_tasks_per_user(sampling):,}"


def build_numbers(solution: MultitaskSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: recommended mu, its total bound over uniform weights', use and size of beta."""
    allocation, budgets = solution.comparison.allocation, solution.budgets
    advised_exponent, advised_error_ratio = solution.comparison.recommendation
    used_shares = allocation.budget_uses[solution.tasks.graph.tasks_per_user > 0] / allocation.problem.budget
    mean_use, clipped_share = float(used_shares.mean()), allocation.clipped_user_share
    clipped_text = format_percent(clipped_share) if clipped_share else "none"
    weight_gain_over_paper, exact_budget = budgets.weight_gain, budgets.exact_budget
    return (
        Number(
            "Total error bound",
            format_change(advised_error_ratio),
            "against uniform weights",
            value=advised_error_ratio,
            unit="of uniform weights'",
            clipboard_text=format_change(advised_error_ratio),
        ),
        Number(
            "Weight exponent μ",
            format_entered(advised_exponent),
            "(at 0 all weigh the same)",
            value=advised_exponent,
            key="exponent",
        ),
        Number("Budget used", format_percent(mean_use), "of β, average user", "", mean_use, "share of β"),
        Number("Users clipped", clipped_text, "scaled down to β", "", clipped_share, "share of users"),
        Number(
            "User budget β",
            format_number(exact_budget),
            "exact"
            if weight_gain_over_paper is None
            else f"weights {format_factor(weight_gain_over_paper)} the paper's",
            "The most that a user's squared weights may sum to.",
            exact_budget,
            key="user_budget",
        ),
    )


def write_headline(solution: MultitaskSolution) -> str:
    """Write the instruction of the headline: by which function of its size to weigh a task.

    It says that all weigh the same at μ = 0, and that a single task gets the whole budget.
    """
    advised_exponent = solution.comparison.recommendation[0]
    if solution.comparison.problem.graph.num_tasks == 1:
        return "Give the only task every user's whole budget."
    if advised_exponent == 0.0:
        return "Give all tasks the same weight."
    weight_text_by_exponent = {0.5: "1/√n", 1.0: "1/n"}
    weight_text = weight_text_by_exponent.get(
        advised_exponent, f"n to the power −{format_entered(advised_exponent)}"
    )
    return f"Weight a task of n users by {weight_text}: small tasks weigh more."


def write_detail(solution: MultitaskSolution) -> str:
    """Write the sentences that qualify the headline, most important first."""
    comparison, exponent, sentences = solution.comparison, solution.comparison.rule.exponent, []
    advised_exponent, advised_error_ratio = comparison.recommendation
    if advised_exponent != exponent:
        error_factor_text = format_factor(
            comparison.compute_relative_total(comparison.allocation) / advised_error_ratio
        )
        sentences.append(
            f"Figure and code are for your μ = {format_exponent(exponent)}: {error_factor_text} the total bound."
        )
    if exponent and comparison.problem.graph.num_tasks > 1:
        sentences.append(f"{describe_tail_and_head(comparison)}.")
    if solution.optima is not None:
        optimal_allocation = solution.optima.choose(comparison.rule.fit)
        saved_share_at_optimum = max(1.0 - compare_totals(optimal_allocation, comparison.allocation), 0.0)
        further_gain_phrase = (
            f"a further {format_percent(saved_share_at_optimum)}"
            if saved_share_at_optimum >= MAX_UNCHANGED_SHARE / 10.0
            else "nothing more"
        )
        sentences.append(f"The exact optimum would gain {further_gain_phrase}.")
    if comparison.rule.fit.clips_nobody:
        constant_text = f"c = {format_number(compute_inflation(comparison))}"
        sentences.append(
            f"{constant_text} **depends on who contributed to which task**, so it is not private."
        )
    if comparison.problem.loss is Loss.CONVEX:
        sentences.append("For convex losses only the total is a bound.")
    if solution.tasks.disclosure is Disclosure.PRIVATE:
        remedy_sentence = "Unless these are public, release them first (*Private counts*)."
        sentences.append(standard.warn_of_leak("these weights were", "the task sizes", remedy_sentence))
    return " ".join(sentences)


def compute_inflation(comparison: WeightComparison) -> float:
    """Compute c of equation 10: all users' budgets over what the weights would use of them if nobody were clipped."""
    problem, task_weights = comparison.problem, comparison.allocation.task_weights
    return float(problem.graph.num_users * problem.budget / (problem.graph.task_sizes @ task_weights**2))


def build_facts(solution: MultitaskSolution) -> dict[str, str]:
    """Build the facts behind the answer: sentences by heading."""
    comparison, texts_by_heading = solution.comparison, dict[str, str]()
    if comparison.entered_task_sampling is not None:
        texts_by_heading["Your sampling"] = _describe_sampling(comparison, comparison.entered_task_sampling)
    (best_exponent, least_relative_total), problem = comparison.exponent_curve.optimum, comparison.problem
    task_skews, task_sizes = comparison.task_skews, problem.graph.task_sizes
    mean_skew = float(task_sizes @ task_skews / task_sizes.sum())
    return texts_by_heading | {
        "Best uniform sampling": _describe_sampling(comparison, comparison.best_task_sampling),
        "Best μ here": f"{format_entered(best_exponent)}, total bound {format_change(least_relative_total)}. The "
        "paper's "
        f"{format_exponent(problem.loss.best_exponent)} would gain "
        f"{format_factor(compute_gain(task_sizes, problem.loss))} "
        "if users were alike and nobody were clipped.",
        "Weight skew": f"of a task's weight, {format_percent(mean_skew)} moves to users with few tasks, "
        f"{format_percent(float(task_skews.max()))} at worst."
        if task_skews.max() > 1e-12
        else "none: within a task all users weigh the same.",
    }


def format_sizes(bucket: Bucket) -> str:
    """Format the sizes of a bucket: ``27 to 612``, or one number."""
    smallest_text, largest_text = format_number(bucket.smallest_size), format_number(bucket.largest_size)
    return smallest_text if smallest_text == largest_text else f"{smallest_text} to {largest_text}"


def _describe_sampling(comparison: WeightComparison, sampling: Allocation) -> str:
    """Describe a uniform sampling: its number of tasks per user, and its total bound over that of uniform weights."""
    return (
        f"{format_count(count_tasks_per_user(sampling), 'task')} per user: total bound "
        f"{format_change(comparison.compute_relative_total(sampling))} against uniform weights (underestimated)."
    )


def list_proofs(solution: MultitaskSolution) -> tuple[Proof, ...]:
    """List the certificates: of the entered mu by the paper's measure, and of the exact optima if they are known."""
    exponent, optima = solution.comparison.rule.exponent, solution.optima
    certificate = certify_on_average(solution.comparison.problem, exponent)
    proofs = [(f"μ = {format_exponent(exponent)} by the paper's measure", certificate, "Closed form.")]
    for optimum_name, optimum in {} if optima is None else optima.allocations_by_name.items():
        assert optimum.certificate is not None
        proofs.append((f"Exact optimum, {optimum_name}", optimum.certificate, optimum.stop_reason))
    return tuple(proofs)


def describe_tasks(solution: MultitaskSolution) -> str:
    """Describe the graph in a line: its numbers of users, tasks and pairs, and the extremes per task and user."""
    graph = solution.tasks.graph
    return (
        f"{format_count(graph.num_users, 'user')}, {format_count(graph.num_tasks, 'task')}, "
        f"{format_count(graph.num_pairs, 'pair')}; {format_number(int(graph.task_sizes.min()))} to "
        f"{format_count(int(graph.task_sizes.max()), 'user')} per task, at most "
        f"{format_count(int(graph.tasks_per_user.max()), 'task')} per user."
    )


def summarise_tasks(solution: MultitaskSolution, dataset: Dataset | None) -> tuple[Line, ...]:
    """Summarise users and tasks for a report; ``dataset`` is None if they were generated."""
    graph, disclosure = solution.tasks.graph, solution.tasks.disclosure
    counts_by_name = {
        "Users of the graph": graph.num_users,
        "Tasks": graph.num_tasks,
        "Pairs of a user and a task": graph.num_pairs,
        "Users of the largest task": int(graph.task_sizes.max()),
        "Users of the median task": float(np.median(graph.task_sizes)),
        "Tasks of the busiest user": int(graph.tasks_per_user.max()),
    }
    generated_lines = (Line("Data", "generated users and tasks", disclosure),)
    data_lines = generated_lines if dataset is None else summarise_dataset(dataset)
    count_lines = (
        Line(count_name, format_number(c), disclosure, number=c) for count_name, c in counts_by_name.items()
    )
    return (*data_lines, *count_lines)


def write_methods(solution: MultitaskSolution) -> Methods:
    """Write the methods text: guarantee, recommended exponent, and the total error bound over that of equal weights."""
    parameters, (advised_exponent, advised_error_ratio) = (
        solution.parameters,
        solution.comparison.recommendation,
    )
    constant_phrase = ""
    if parameters.fit is BudgetFit.LOGARITHMIC:
        constant_phrase = (
            f"; an average user spends 1/c of it, with c = {format_entered(parameters.log_constant)} log n"
        )
    fit_text = (
        f"within a budget: {PHRASE_BY_FIT[parameters.fit]}{constant_phrase}. All releases are one Gaussian mechanism "
        "[@dong2022], calibrated exactly [@balle2018]."
    )
    rule_phrase = "Tasks of n users had weights proportional to n to the power"
    return Methods(
        guarantee_text=write_guarantee(
            "One model per task was released",
            parameters.epsilon,
            Neighbours.ADD_OR_REMOVE_USER,
            parameters.delta,
        ),
        procedure=f"{rule_phrase} {format_entered(-advised_exponent)} [@krichene2023], {fit_text} The upper bound "
        f"on the excess error is {format_number(advised_error_ratio, 3)} times that of equal weights.",
        public_procedure=f"{rule_phrase} −μ [@krichene2023], {fit_text}",
        disclosure=solution.tasks.disclosure,
        rule_sentence="It brings that bound to within 5 % of its least; task sizes are treated as public.",
        subject_phrase="The exponent",
    )


# --- tabs ---------------------------------------------------------------------------------------------------


def build_count_numbers(
    private_counts: ReleasedUserCounts,
    ratio_with_slack: float,
    ratio_without_slack: float,
    cost_factor: float,
) -> tuple[Number, ...]:
    """Build four numbers on private counts: total bounds over that with exact sizes, cost factor, and slack."""
    ratio_note = "of that with exact sizes"
    return (
        Number("Total bound with n̂ + s", f"{format_number(ratio_with_slack)}×", ratio_note),
        Number("With n̂ alone, at least 1", f"{format_number(ratio_without_slack)}×", ratio_note),
        Number("Cost factor", f"{format_number(cost_factor)}×", "theorem B.2", "(1/m) Σ (n̂ + s)/n"),
        Number("Slack s", format_count(private_counts.slack, "user")),
    )


def describe_counts(
    comparison: WeightComparison, private_counts: ReleasedUserCounts, is_slack_cheap: bool
) -> str:
    """Describe the noise of private counts, the tasks that they miss, and whether the slack costs too much."""
    num_heavy_users = int((comparison.tasks.graph.tasks_per_user > private_counts.max_tasks).sum())
    count_noise_std_text = format_number(private_counts.count_noise_std)
    sentences = [f"The noise on every count has a standard deviation of {count_noise_std_text}."]
    if num_heavy_users:
        uncovered_truncation_phrase = "" if private_counts.covers_truncation else ", which s does not cover"
        sentences.append(
            f"Counts miss tasks of {format_count(num_heavy_users, 'user')} with more than "
            f"{format_count(private_counts.max_tasks, 'task')}{uncovered_truncation_phrase}."
        )
    if not is_slack_cheap:
        sentences.append("**The slack costs more than it saves here.**")
    return " ".join(sentences)


def describe_budgets(budgets: BudgetComparison) -> str:
    """Write a Markdown table of the exact and the paper's beta, and a sentence on the noise."""
    weight_gain, paper_cells_text = budgets.weight_gain, "does not apply: ε > log(1/δ) | |"
    if budgets.sufficient_budget is not None and weight_gain is not None:
        sufficient_budget_text = format_number(budgets.sufficient_budget, 4)
        paper_cells_text = f"{sufficient_budget_text} | {1.0 / weight_gain:.3f} | {weight_gain**2:.3f}×"
    return (
        "| | β | weights | error bounds |\n|---|---|---|---|\n"
        f"| exact | {format_number(budgets.exact_budget, 4)} | 1 | 1 |\n| paper | {paper_cells_text} |\n\n"
        f"All releases are one Gaussian mechanism with noise {format_number(budgets.noise_multiplier)} times its "
        "sensitivity."
    )
