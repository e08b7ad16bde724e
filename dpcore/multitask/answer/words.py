"""The solution for many tasks in words: sentences, numbers, the methods section."""

from __future__ import annotations

import numpy as np

from dpcore.answer import standard
from dpcore.answer.answer import Number, Proof
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.dataset import Dataset
from dpcore.multitask.answer.solution import (
    MultitaskSolution,
    Optima,
    WeightComparison,
    compute_total_ratio,
    count_tasks_per_user,
)
from dpcore.multitask.bounds import Bucket, certify_on_average
from dpcore.multitask.problem import Allocation, BudgetComparison
from dpcore.multitask.weights import BudgetFit
from dpcore.report.content import Line, summarise_dataset

FIT_SENTENCES = {
    BudgetFit.CLIPPED: "Users above their budget are then scaled down to it.",
    BudgetFit.LOGARITHMIC: "Users above their budget are then scaled down to it.",
    BudgetFit.NOBODY_CLIPPED: "All weights are small enough for the heaviest user's budget.",
    BudgetFit.FULL: "Every user is then scaled up or down to the whole budget.",
}
UNCHANGED = 0.005
"""Smaller changes are not mentioned."""


def list_assumptions(solution: MultitaskSolution) -> tuple[str, ...]:
    """List the assumptions of the answer."""
    comparison = solution.comparison
    weights_text = (
        "All users of a task have the same weight, so no task's loss is skewed"
        if comparison.rule.fit.same_for_all_users
        else "Users of a task are interchangeable: if weights differ between users, the task's loss is skewed toward "
        "those with few tasks, which no bound here counts"
    )
    graph_text = (
        "The smallest c that clips nobody depends on who contributed to which task, which must be public"
        if comparison.rule.fit.reads_graph
        else "Task sizes are public, or were released privately (tab *Private counts*); a user's own factor "
        "may depend on their own tasks"
    )
    return (
        "Neighbouring data sets differ in one user, with all their data in all tasks",
        "The squared weights of a user sum to at most β, which is all that the guarantee needs",
        graph_text,
        "The error bounds (theorems 3.8 and 3.12) omit constants that all tasks share: they compare weights and do not "
        "predict accuracy",
        weights_text,
    )


def describe_tail_and_head(comparison: WeightComparison) -> str:
    """Describe the gain of the smallest and of the largest tasks under the weights; no full stop."""
    has_fifths = len(comparison.buckets) == 5
    tail, head = (
        ("The tail fifth of tasks", "the head") if has_fifths else ("The smallest task", "the largest")
    )
    return f"{tail} {describe_gain(comparison.buckets[0])}, {head} {describe_gain(comparison.buckets[-1])}"


def describe_gain(bucket: Bucket) -> str:
    """Describe a bucket's gain: ``gains 3.1×``, ``loses 1.2×``, ``stays as it is``."""
    if abs(bucket.gain - 1.0) < UNCHANGED:
        return "stays as it is"
    return (
        f"gains {format_factor(bucket.gain)}"
        if bucket.gain > 1.0
        else f"loses {format_factor(1.0 / bucket.gain)}"
    )


def format_factor(ratio: float) -> str:
    """Format a factor: ``3.1×``."""
    return f"{wording.number(ratio, 3 if ratio < 1.1 else 2)}×"


def describe_change(ratio: float) -> str:
    """Describe a change: ``falls by 44 %``."""
    if abs(ratio - 1.0) < UNCHANGED / 10.0:
        return "stays the same"
    if ratio > 2.0:
        return f"rises to {format_factor(ratio)}"
    return (
        f"falls by {wording.percent(1.0 - ratio)}"
        if ratio < 1.0
        else f"rises by {wording.percent(ratio - 1.0)}"
    )


def format_exponent(value: float) -> str:
    """Format an exponent; 1/4 and 1/2 as the paper writes them."""
    return {0.25: "1/4", 0.5: "1/2"}.get(value, f"{wording.entered(value)}")


def build_numbers(solution: MultitaskSolution) -> tuple[Number, ...]:
    """Build the exponent, its gain, and the use of the budget."""
    comparison, allocation, (best_exponent, ratio) = (
        solution.comparison,
        solution.comparison.allocation,
        solution.comparison.recommendation,
    )
    has_task = solution.tasks.graph.tasks_per_user > 0
    used_share = float((allocation.budget_use[has_task] / comparison.problem.budget).mean())
    clipped_share, beta = allocation.share_clipped, solution.budgets.exact
    return (
        Number(
            "Exponent μ", wording.entered(best_exponent), help=_EXPONENT, value=best_exponent, key="exponent"
        ),
        Number(
            "Total error bound",
            _format_change(ratio),
            "against uniform weights",
            _TOTAL,
            ratio,
            "of uniform weights'",
        ),
        Number(
            "Budget used",
            wording.percent(used_share),
            "of β, average user",
            _BUDGET_USE_HELP,
            used_share,
            "share of β",
        ),
        Number(
            "Users clipped",
            "none" if not clipped_share else wording.percent(clipped_share),
            "scaled down to β",
            "Users whose squared weights would sum to more than β.",
            clipped_share,
            "share of users",
        ),
        Number(
            "User budget β",
            wording.number(beta),
            _describe_weight_gain(solution.budgets),
            _BUDGET,
            beta,
            key="user_budget",
        ),
    )


_EXPONENT = (
    "A task of n users has a weight proportional to 1 / n to the power μ, fitted to the budget: the larger μ, the more "
    "small tasks weigh."
)
_TOTAL = (
    "Excess error from the noise, up to a common constant: the sum over tasks of 1 / (ω² n). For convex losses it is "
    "the root of the sum of 1 / ω². Uniform weights are fitted to the budget in the same way."
)
_BUDGET_USE_HELP = "Sum of a user's squared weights over β. Unused budget of a user is lost."
_BUDGET = (
    "The most that a user's squared weights may sum to, exact for ε and δ. The note compares weights with those under "
    "the paper's sufficient condition."
)


def _describe_weight_gain(budgets: BudgetComparison) -> str:
    """Describe by how much the exact budget raises the weights."""
    weight_gain = budgets.weight_gain
    return "exact" if weight_gain is None else f"weights {format_factor(weight_gain)} the paper's"


def _format_change(ratio: float) -> str:
    """Format a ratio as a change."""
    if abs(ratio - 1.0) < UNCHANGED / 10.0:
        return "the same"
    if ratio > 2.0:
        return format_factor(ratio)
    return f"{'−' if ratio < 1.0 else '+'}{wording.percent(abs(1.0 - ratio))}"


def write_headline(solution: MultitaskSolution) -> str:
    """Write the instruction in one sentence."""
    comparison, best_exponent = solution.comparison, solution.comparison.recommendation[0]
    if comparison.problem.num_tasks == 1:
        return "Give the only task every user's whole budget."
    if best_exponent == 0.0:
        return "Give all tasks the same weight."
    return f"Weight each task of n users by 1 / n to the power {wording.entered(best_exponent)}."


def describe_near_optimal(solution: MultitaskSolution) -> str:
    """Describe the near-optimal exponents in one sentence."""
    low, high = solution.comparison.curve.near_optimal
    return standard.write_range(
        low, high, name="μ", objective="the least total bound", others="the next exponents"
    )


def compute_remaining_gain(allocation: Allocation, optimum: Allocation) -> float:
    """Compute by what share the optimum's bound is smaller; at least 0."""
    return max(1.0 - compute_total_ratio(optimum, allocation), 0.0)


def _describe_remaining_gain(comparison: WeightComparison, optima: Optima) -> str:
    """Describe the remaining gain of the exact optimum."""
    remaining_gain = compute_remaining_gain(comparison.allocation, optima.choose(comparison.rule.fit))
    if remaining_gain < UNCHANGED / 10.0:
        return "would gain nothing more"
    return f"would gain a further {wording.percent(remaining_gain)}"


def write_detail(solution: MultitaskSolution) -> str:
    """Write the sentences that qualify the headline, most important first."""
    comparison, optima = solution.comparison, solution.optima
    sentences, entered_exponent = [], comparison.rule.exponent
    best_exponent, ratio = comparison.recommendation
    if best_exponent != entered_exponent:
        factor_text = format_factor(comparison.compare_total(comparison.allocation) / ratio)
        sentences.append(
            f"Figure and code are for your μ = {format_exponent(entered_exponent)}: {factor_text} the total bound."
        )
    if entered_exponent and comparison.problem.num_tasks > 1:
        sentences.append(f"{describe_tail_and_head(comparison)}.")
    if optima is not None:
        sentences.append(f"The exact optimum {_describe_remaining_gain(comparison, optima)}.")
    if comparison.rule.fit.reads_graph:
        sentences.append(
            f"c = {wording.number(compute_inflation(comparison))} **depends on who contributed to which task**, so it "
            "is not part of a private mechanism."
        )
    if not comparison.bounds_are_errors_of_tasks:
        sentences.append("For convex losses only the total is a bound, not a task's share of it.")
    if comparison.tasks.disclosure is Disclosure.PRIVATE:
        sentences.append(
            standard.warn_of_leak(
                "these weights were",
                "the task sizes",
                "Unless these are public, release them first (*Private counts*).",
            )
        )
    return " ".join(sentences)


def compute_inflation(comparison: WeightComparison) -> float:
    """Compute c of equation 10, the part of the budget to which the weights are scaled."""
    weights, sizes = comparison.allocation.task_weights, comparison.problem.task_sizes
    return float(comparison.problem.num_users * comparison.problem.budget / (sizes @ weights**2))


def build_facts(solution: MultitaskSolution) -> dict[str, str]:
    """Build the facts behind the answer, sentences by name."""
    comparison, optima = solution.comparison, solution.optima
    smallest_tasks, largest_tasks = comparison.buckets[0], comparison.buckets[-1]
    sentences: dict[str, str] = {}
    if len(comparison.buckets) == 5:
        sentences["Tail and head"] = (
            f"{_describe_bucket(smallest_tasks)} {wording.agreeing(smallest_tasks.num_tasks, 'carries', 'carry')} "
            f"{wording.percent(smallest_tasks.share)} of the total bound, {_describe_bucket(largest_tasks)} "
            f"{wording.percent(largest_tasks.share)}."
        )
    return sentences | {
        "Fit to the budget": FIT_SENTENCES[comparison.rule.fit],
        "Uniform sampling": _describe_sampling(comparison),
        "Best μ here": _describe_best_exponent(comparison),
        "Weight skew": describe_skew(comparison),
        "Exact optimum": _describe_optimum(comparison, optima),
    }


def _describe_bucket(bucket: Bucket) -> str:
    """Describe the tasks of a bucket."""
    users = wording.agreeing(bucket.largest, "user", "users")
    return f"{wording.counted(bucket.num_tasks, 'task')} of {format_sizes(bucket)} {users}"


def format_sizes(bucket: Bucket) -> str:
    """Format the sizes of a bucket: ``27 to 612``, or one number."""
    low, high = wording.number(bucket.smallest), wording.number(bucket.largest)
    return low if low == high else f"{low} to {high}"


def _describe_sampling(comparison: WeightComparison) -> str:
    """Describe uniform sampling at the best and at the entered number."""
    max_tasks = count_tasks_per_user(comparison.sampling)
    sentence = (
        f"at the best number, {wording.counted(max_tasks, 'task')} per user, the total bound "
        f"{describe_change(comparison.compare_total(comparison.sampling))} against uniform weights (slightly less than "
        "sampling really costs)"
    )
    if comparison.entered_sampling is not None:
        entered_max_tasks = count_tasks_per_user(comparison.entered_sampling)
        change = describe_change(comparison.compare_total(comparison.entered_sampling))
        sentence += f"; at your {wording.number(entered_max_tasks)}, it {change}"
    return f"{sentence}."


def _describe_best_exponent(comparison: WeightComparison) -> str:
    """Describe the best exponent, and the paper's."""
    best_exponent, total = comparison.curve.best
    paper_exponent = comparison.problem.loss.best_exponent
    too = "" if abs(best_exponent - paper_exponent) > 1e-9 else ", and here"
    return (
        f"{wording.entered(best_exponent)}, where the total bound {describe_change(total)}. The paper's "
        f"{format_exponent(paper_exponent)} is best for users who are alike{too}. If nobody were clipped and c were "
        f"the same, it would gain {format_factor(comparison.closed_form_gain)}."
    )


def describe_skew(comparison: WeightComparison) -> str:
    """Describe how far weights that differ between users change what a task learns."""
    if not comparison.weight_skew.largest > 1e-12:
        return "none: within a task all users weigh the same."
    sizes = comparison.problem.task_sizes
    average = float(sizes @ comparison.weight_skew.total_variation / sizes.sum())
    return (
        f"users with few tasks keep larger weights: {wording.percent(comparison.weight_skew.largest)} of a task's "
        f"weight moves to other users at worst, {wording.percent(average)} on average."
    )


def _describe_optimum(comparison: WeightComparison, optima: Optima | None) -> str:
    """Describe the exact optimum, if it is known."""
    optimum_text = (
        "one weight per task and nobody clipped, problem (9)"
        if comparison.rule.fit.same_for_all_users
        else "one weight per user and task"
    )
    if optima is None:
        return f"not computed yet; on the page, press the button under *Exact optimum*. It optimises {optimum_text}."
    return f"{_describe_remaining_gain(comparison, optima)} ({optimum_text})."


def list_proofs(solution: MultitaskSolution) -> tuple[Proof, ...]:
    """List the certificates by the paper's measure, and of the exact optima where they are known."""
    comparison, optima = solution.comparison, solution.optima
    average = certify_on_average(comparison.problem, comparison.rule.exponent)
    certificates: list[Proof] = [
        (f"μ = {format_exponent(comparison.rule.exponent)} by the paper's measure", average, "Closed form.")
    ]
    if optima is not None:
        for name, allocation in (
            ("Exact optimum, problem (9)", optima.task_optimum),
            ("Exact optimum, free weights", optima.user_task_optimum),
        ):
            assert allocation.certificate is not None
            certificates.append((name, allocation.certificate, allocation.stop_reason))
    return tuple(certificates)


def describe_tasks(solution: MultitaskSolution) -> str:
    """Describe the graph and the budget in a line."""
    graph = solution.tasks.graph
    return (
        f"{wording.counted(graph.num_users, 'user')}, {wording.counted(graph.num_tasks, 'task')}, "
        f"{wording.counted(graph.num_pairs, 'pair')}; {wording.number(int(graph.task_sizes.min()))} to "
        f"{wording.counted(int(graph.task_sizes.max()), 'user')} per task, at most "
        f"{wording.counted(int(graph.tasks_per_user.max()), 'task')} per user. ε and δ give β = "
        f"{wording.number(solution.budgets.exact)}; who gets it does not depend on them."
    )


def summarise_tasks(solution: MultitaskSolution, dataset: Dataset | None) -> tuple[Line, ...]:
    """Summarise users and tasks for a report; ``dataset`` is None if they were generated."""
    graph, disclosure = solution.tasks.graph, solution.tasks.disclosure
    lines = [
        Line(name, wording.number(number), disclosure, number=number)
        for name, number in (
            ("Users of the graph", graph.num_users),
            ("Tasks", graph.num_tasks),
            ("Pairs of a user and a task", graph.num_pairs),
            ("Users of the largest task", int(graph.task_sizes.max())),
            ("Users of the median task", float(np.median(graph.task_sizes))),
            ("Tasks of the busiest user", int(graph.tasks_per_user.max())),
        )
    ]
    data_lines_of_report = (
        (Line("Data", "generated users and tasks", disclosure),)
        if dataset is None
        else summarise_dataset(dataset)
    )
    return (*data_lines_of_report, *lines)


METHOD_SENTENCES = {
    BudgetFit.CLIPPED: "the weights of a user above the budget were scaled down to it",
    BudgetFit.LOGARITHMIC: "the weights of a user above the budget were scaled down to it",
    BudgetFit.NOBODY_CLIPPED: "all weights were made so small that no user exceeds the budget",
    BudgetFit.FULL: "the weights of every user were scaled to the whole budget",
}


def write_methods(solution: MultitaskSolution) -> Methods:
    """Write the recommended exponent, and the total error bound compared with that of equal weights."""
    parameters, (best_exponent, ratio) = solution.parameters, solution.comparison.recommendation
    fit_text = (
        f"and {METHOD_SENTENCES[parameters.fit]}, so that squared weights of a user sum to at most a common bound. All "
        "releases together are one Gaussian mechanism [@dong2022], calibrated exactly [@balle2018]."
    )
    return Methods(
        guarantee=write_guarantee(
            "One model per task was released",
            parameters.epsilon,
            Neighbours.ADD_OR_REMOVE_USER,
            parameters.delta,
        ),
        sentences="A task with n users was given a weight proportional to n to the power "
        f"{wording.entered(-best_exponent)} [@krichene2023], {fit_text} The upper bound on the excess error of all "
        f"tasks together is {wording.number(ratio, 3)} times that of equal weights.",
        public_sentences=f"A task with n users was given a weight proportional to n to the power −μ "
        f"[@krichene2023], {fit_text}",
        disclosure=solution.tasks.disclosure,
        rule="The exponent brings that upper bound to within 5 % of the least over all exponents from 0 to 1; "
        "the numbers of users per task are treated as public.",
        subject="The exponent",
    )
