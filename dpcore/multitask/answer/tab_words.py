"""What stands beside the further figures of many tasks, sentences."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.multitask.answer.compare import CountsFound
from dpcore.multitask.answer.found import Weighed
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.weight_skew import WeightSkew


def counts(weighed: Weighed, found: CountsFound) -> str:
    """What one draw of the private counts shows."""
    counts, sizes = found.counts, weighed.problem.task_sizes
    heavier = int((weighed.tasks.graph.tasks_per_user > counts.max_tasks).sum())
    words = [
        f"Noise of standard deviation {wording.number(counts.noise_scale)} on every count; the median task has "
        f"{wording.counted(float(sorted(sizes)[sizes.size // 2]), 'user')}."
    ]
    if heavier:
        words.append(
            f"{wording.counted(heavier, 'user')} {wording.agreeing(heavier, 'has', 'have')} more than "
            f"{wording.counted(counts.max_tasks, 'task')}, so counts are too low."
        )
        if not counts.covers_truncation:
            words.append("s does not cover that.")
    words.append(
        f"{wording.counted(found.low, 'task')} of {sizes.size:,} "
        f"{wording.agreeing(found.low, 'is', 'are')} still underestimated by n̂ + s."
        if found.low
        else "n̂ + s is at least the true size for every task."
    )
    if found.with_slack.total_bound > 1.05 * found.without_slack.total_bound:
        words.append("**The slack costs more than it saves here**: n̂ alone clips more users and is better.")
    return " ".join(words)


def free_weights(free: WeightSkew) -> str:
    """What free weights gain, and at what price."""
    ratio = free.user_size_ratio
    return (
        "Free weights are better because light users give more to each task than heavy ones can. The price is "
        "that a task then learns more from users with few tasks. Weighted by them, a task's users have "
        f"{wording.percent(1.0 - float(ratio.mean()))} fewer tasks on average, "
        f"{wording.percent(1.0 - float(ratio.min()))} at worst. That biases the task wherever light and heavy "
        "users answer differently, and no bound here counts it."
    )


def budgets(budgets: BudgetComparison) -> str:
    """Exact and sufficient beta, a table and a sentence."""
    lines = [
        "| | β | weights | error bounds |",
        "|---|---|---|---|",
        f"| exact | {wording.number(budgets.exact, 4)} | 1 | 1 |",
    ]
    if budgets.sufficient is None or budgets.weight_gain is None:
        lines.append("| paper | does not apply: ε > log(1/δ) | | |")
        said = (
            "The paper's condition needs ε ≤ log(1/δ), which does not hold here; the exact conversion "
            "always applies."
        )
    else:
        gained = budgets.weight_gain
        lines.append(
            f"| paper | {wording.number(budgets.sufficient, 4)} | {1.0 / gained:.3f} | {gained**2:.3f}× |"
        )
        said = (
            f"At the same guarantee the exact conversion allows every weight to be {gained:.3f} times as "
            f"large; error bounds of strongly convex losses fall by {wording.percent(1.0 - 1.0 / gained**2)}."
        )
    return (
        "\n".join(lines)
        + f"\n\n{said} All that is released is one Gaussian mechanism with noise "
        + f"{wording.number(budgets.noise_multiplier)} times its sensitivity."
    )
