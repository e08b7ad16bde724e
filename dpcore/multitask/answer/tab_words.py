"""Sentences beside the further plots of many tasks."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.multitask.answer.compare import CountsSolution
from dpcore.multitask.answer.found import WeightComparison
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.weight_skew import WeightSkew


def describe_counts(comparison: WeightComparison, counts_solution: CountsSolution) -> str:
    """Describe one draw of the private counts."""
    counts, sizes = counts_solution.counts, comparison.problem.task_sizes
    num_heavy_users = int((comparison.tasks.graph.tasks_per_user > counts.max_tasks).sum())
    sentences = [
        f"Noise of standard deviation {wording.number(counts.noise_scale)} on every count; the median task has "
        f"{wording.counted(float(sorted(sizes)[sizes.size // 2]), 'user')}."
    ]
    if num_heavy_users:
        sentences.append(
            f"{wording.counted(num_heavy_users, 'user')} {wording.agreeing(num_heavy_users, 'has', 'have')} more than "
            f"{wording.counted(counts.max_tasks, 'task')}, so counts are too low."
        )
        if not counts.covers_truncation:
            sentences.append("The slack s does not cover that.")
    sentences.append(
        f"{wording.counted(counts_solution.num_underestimated, 'task')} of {sizes.size:,} "
        f"{wording.agreeing(counts_solution.num_underestimated, 'has', 'have')} n̂ + s below the true size."
        if counts_solution.num_underestimated
        else "n̂ + s is at least the true size for every task."
    )
    if counts_solution.with_slack.total_bound > 1.05 * counts_solution.without_slack.total_bound:
        sentences.append(
            "**The slack costs more than it saves here**: n̂ alone is better, although it clips more users."
        )
    return " ".join(sentences)


def describe_free_weights(free: WeightSkew) -> str:
    """Describe the gain of free weights, and its price."""
    ratio = free.user_size_ratio
    return (
        "With free weights, light users give more to each task than heavy ones can. So a task learns more from users "
        f"with few tasks: weighted by them, its users have {wording.percent(1.0 - float(ratio.mean()))} fewer tasks on "
        f"average, {wording.percent(1.0 - float(ratio.min()))} at worst. If light and heavy users differ, that biases "
        "the task, and no bound here counts it."
    )


def describe_budgets(budgets: BudgetComparison) -> str:
    """Describe exact and sufficient beta in a table and a sentence."""
    lines = [
        "| | β | weights | error bounds |",
        "|---|---|---|---|",
        f"| exact | {wording.number(budgets.exact, 4)} | 1 | 1 |",
    ]
    if budgets.sufficient is None or budgets.weight_gain is None:
        lines.append("| paper | does not apply: ε > log(1/δ) | | |")
        sentence = "The paper's condition needs ε ≤ log(1/δ), which does not hold here."
    else:
        weight_gain = budgets.weight_gain
        lines.append(
            f"| paper | {wording.number(budgets.sufficient, 4)} | {1.0 / weight_gain:.3f} | {weight_gain**2:.3f}× |"
        )
        sentence = (
            f"The exact conversion allows every weight to be {weight_gain:.3f} times as large; error bounds of "
            f"strongly convex losses fall by {wording.percent(1.0 - 1.0 / weight_gain**2)}."
        )
    return (
        "\n".join(lines)
        + f"\n\n{sentence} All releases are one Gaussian mechanism with noise "
        + f"{wording.number(budgets.noise_multiplier)} times its sensitivity."
    )
