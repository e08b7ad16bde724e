"""The answer for many tasks in words. Pure: what was found in, sentences and numbers out."""

from __future__ import annotations

import numpy as np

from dpcore.answer import Number, Proof
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.dataset import Dataset
from dpcore.multitask.answer.found import (
    GOOD_ENOUGH,
    MultitaskFound,
    Optima,
    Weighed,
    tasks_per_user,
    total_ratio,
)
from dpcore.multitask.bounds import Bucket, certificate_on_average
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.problem import Allocation
from dpcore.report.content import Line, data_lines

FITTED = {
    BudgetFit.CLIPPED: "Users above their budget are then scaled down to it.",
    BudgetFit.LOGARITHMIC: "Users above their budget are then scaled down to it.",
    BudgetFit.NOBODY_CLIPPED: "All weights are small enough for the heaviest user's budget.",
    BudgetFit.FULL: "Every user is then scaled up or down to the whole budget.",
}
SAME = 0.005
"""A change smaller than this is called none."""


def assumptions(found: MultitaskFound) -> tuple[str, ...]:
    """What the answer rests on."""
    weighed = found.weighed
    same = (
        "Every user of a task has the same weight in it, so that no task's loss is skewed"
        if weighed.rule.fit.same_for_all_users
        else "Users of a task are interchangeable: where weights differ between users, the task's loss is "
        "skewed toward those with few tasks, and no bound here counts that"
    )
    reads = (
        "The smallest c that clips nobody depends on who contributed to which task; it is valid only if that is "
        "public"
        if weighed.rule.fit.reads_graph
        else "Task sizes are public, or were released privately (tab *Private counts*); a user's own factor "
        "may depend on their own tasks"
    )
    return (
        "Neighbouring data differ in one user, with all their data in all tasks",
        "Squared weights of a user sum to at most β, which is all that the guarantee needs",
        reads,
        "Error bounds are those of theorems 3.8 and 3.12 up to constants that all tasks share; they compare "
        "weights and promise no accuracy",
        same,
    )


def tail_and_head(weighed: Weighed) -> str:
    """What becomes of the smallest and the largest tasks under the chosen weights; no full stop."""
    five = len(weighed.buckets) == 5
    tail, head = ("The tail fifth of tasks", "the head") if five else ("The smallest task", "the largest")
    return f"{tail} {gain(weighed.buckets[0])}, {head} {gain(weighed.buckets[-1])}"


def gain(bucket: Bucket) -> str:
    """``gains 3.1×``, ``loses 1.2×``, ``stays as it is``."""
    if abs(bucket.gain - 1.0) < SAME:
        return "stays as it is"
    return f"gains {times(bucket.gain)}" if bucket.gain > 1.0 else f"loses {times(1.0 / bucket.gain)}"


def times(ratio: float) -> str:
    """``3.1×``."""
    return f"{wording.number(ratio, 3 if ratio < 1.1 else 2)}×"


def fall(ratio: float) -> str:
    """``falls by 44 %``."""
    if abs(ratio - 1.0) < SAME / 10.0:
        return "stays the same"
    if ratio > 2.0:
        return f"rises to {times(ratio)}"
    return (
        f"falls by {wording.percent(1.0 - ratio)}"
        if ratio < 1.0
        else f"rises by {wording.percent(ratio - 1.0)}"
    )


def exponent(value: float) -> str:
    """1/4 and 1/2 as the paper writes them."""
    return {0.25: "1/4", 0.5: "1/2"}.get(value, f"{wording.entered(value)}")


def numbers(found: MultitaskFound) -> tuple[Number, ...]:
    """The exponent, what it gains, and how the budget is used."""
    weighed, chosen, (best, ratio) = found.weighed, found.weighed.chosen, found.weighed.recommended
    has_task = found.tasks.graph.tasks_per_user > 0
    used = float((chosen.budget_use[has_task] / weighed.problem.budget).mean())
    clipped, beta = chosen.share_clipped, found.budgets.exact
    return (
        Number("Exponent μ", wording.entered(best), help=_EXPONENT, value=best, key="exponent"),
        Number(
            "Total error bound",
            _signed(ratio),
            "against uniform weights",
            _TOTAL,
            ratio,
            "of uniform weights'",
        ),
        Number("Budget used", wording.percent(used), "of β, average user", _USED, used, "share of β"),
        Number(
            "Users clipped",
            "none" if not clipped else wording.percent(clipped),
            "scaled down to β",
            "Users whose squared weights would sum to more than β. Their weights are scaled down.",
            clipped,
            "share of users",
        ),
        Number(
            "User budget β",
            wording.number(beta),
            _weight_gain(found.budgets),
            _BUDGET,
            beta,
            key="user_budget",
        ),
    )


_EXPONENT = (
    "The weight of a task is 1 divided by its number of users to the power of μ, up to a factor that fits the weights "
    "to the budget: the larger μ, the more small tasks weigh."
)
_TOTAL = (
    "Sum over all tasks of 1 / (ω² n), the excess error that the noise adds, up to a common constant; for "
    "convex losses the root of the sum of 1 / ω². Uniform weights are fitted to the budget in the same way."
)
_USED = "Sum of a user's squared weights over β. What a user does not use is lost: nobody else can use it."
_BUDGET = (
    "All of a user's squared weights together may not exceed it. From ε and δ, exactly; the note compares "
    "weights with those under the paper's sufficient condition."
)


def _weight_gain(budgets: BudgetComparison) -> str:
    gained = budgets.weight_gain
    return "exact" if gained is None else f"weights {times(gained)} the paper's"


def _signed(ratio: float) -> str:
    if abs(ratio - 1.0) < SAME / 10.0:
        return "the same"
    if ratio > 2.0:
        return times(ratio)
    return f"{'−' if ratio < 1.0 else '+'}{wording.percent(abs(1.0 - ratio))}"


def headline(found: MultitaskFound) -> str:
    """What to do, one sentence."""
    weighed, best = found.weighed, found.weighed.recommended[0]
    if weighed.problem.num_tasks == 1:
        return "Give the only task every user's whole budget."
    if best == 0.0:
        return "Give all tasks the same weight."
    return f"Weight a task of n users by 1 / n to the power {wording.entered(best)}."


def good_enough(found: MultitaskFound) -> str:
    """Which exponents cost little, one sentence."""
    weighed = found.weighed
    low, high = weighed.curve.good_enough
    best, share = wording.entered(weighed.curve.best[0]), f"{100 * GOOD_ENOUGH:g}{wording.PERCENT}"
    if low == high:
        return f"only μ = {best}; its neighbours are more than {share} worse."
    return (
        f"any μ from {wording.entered(low)} to {wording.entered(high)} stays within {share} of the best "
        f"total bound."
    )


def further(allocation: Allocation, optimum: Allocation) -> float:
    """By what share the optimum's bound is smaller; at least 0."""
    return max(1.0 - total_ratio(optimum, allocation), 0.0)


def _further(weighed: Weighed, optima: Optima) -> str:
    left = further(weighed.chosen, optima.of_kind(weighed.rule.fit))
    if left < SAME / 10.0:
        return "the exact optimum would gain nothing more"
    return f"the exact optimum would gain a further {wording.percent(left)}"


def detail(found: MultitaskFound) -> str:
    """What changes how the headline is to be read, most important first."""
    weighed, optima = found.weighed, found.optima
    said, chosen = [], weighed.rule.exponent
    best, ratio = weighed.recommended
    if best != chosen:
        larger = times(weighed.total(weighed.chosen) / ratio)
        said.append(
            f"Figure and code are for your μ = {exponent(chosen)}; its total bound is {larger} as large."
        )
    if chosen and weighed.problem.num_tasks > 1:
        said.append(f"{tail_and_head(weighed)}.")
    if optima is not None:
        more = _further(weighed, optima)
        said.append(f"{more[0].upper()}{more[1:]}.")
    if weighed.rule.fit.reads_graph:
        said.append(
            f"Here c = {wording.number(inflation(weighed))} **depends on who contributed to which task**: it is not "
            "part of a private mechanism."
        )
    if not weighed.bounds_are_tasks_own:
        said.append("For convex losses only the total is a bound; a task's share of it is not its own error.")
    if weighed.tasks.disclosure is Disclosure.PRIVATE:
        said.append(
            "Your data are private, and so are weights made from their task sizes: unless these are public, "
            "release them first (*Private counts*)."
        )
    return " ".join(said)


def inflation(weighed: Weighed) -> float:
    """c of equation 10: for what part of the budget the weights are scaled."""
    weights, sizes = weighed.chosen.task_weights, weighed.problem.task_sizes
    return float(weighed.problem.num_users * weighed.problem.budget / (sizes @ weights**2))


def facts(found: MultitaskFound) -> dict[str, str]:
    """What stands behind the answer, sentences by name."""
    weighed, optima = found.weighed, found.optima
    first, last = weighed.buckets[0], weighed.buckets[-1]
    said: dict[str, str] = {}
    if len(weighed.buckets) == 5:
        said["Tail and head"] = (
            f"{_bucket(first)} {wording.agreeing(first.num_tasks, 'carries', 'carry')} "
            f"{wording.percent(first.share)} of the total bound, {_bucket(last)} "
            f"{wording.percent(last.share)}."
        )
    said["Fit to the budget"] = FITTED[weighed.rule.fit]
    said |= {"Uniform sampling": _sampling(weighed), "Best μ here": _best(weighed)}
    said["Weight skew"] = skew_sentence(weighed)
    said["Exact optimum"] = _optimum(weighed, optima)
    return said


def _bucket(bucket: Bucket) -> str:
    users = wording.agreeing(bucket.largest, "user", "users")
    return f"{wording.counted(bucket.num_tasks, 'task')} of {spread(bucket)} {users}"


def spread(bucket: Bucket) -> str:
    """``27 to 612``, or one number."""
    low, high = wording.number(bucket.smallest), wording.number(bucket.largest)
    return low if low == high else f"{low} to {high}"


def _sampling(weighed: Weighed) -> str:
    k = tasks_per_user(weighed.sampling)
    words = [
        f"at the best number, {wording.counted(k, 'task')} per user, the total bound is "
        f"{_beside_uniform(weighed.total(weighed.sampling))} (slightly less than sampling really costs)"
    ]
    if weighed.own_sampling is not None:
        own = tasks_per_user(weighed.own_sampling)
        words.append(f"at your {wording.number(own)}, {_beside_uniform(weighed.total(weighed.own_sampling))}")
    return "; ".join(words) + "."


def _beside_uniform(ratio: float) -> str:
    if abs(ratio - 1.0) < SAME / 10.0:
        return "that of uniform weights"
    if ratio > 2.0:
        return f"{times(ratio)} that of uniform weights"
    side = "below" if ratio < 1.0 else "above"
    return f"{wording.percent(abs(1.0 - ratio))} {side} that of uniform weights"


def _best(weighed: Weighed) -> str:
    best, total = weighed.curve.best
    paper = weighed.problem.loss.best_exponent
    why = (
        f"The paper's {exponent(paper)} is best where users are alike"
        if abs(best - paper) > 1e-9
        else f"The paper's {exponent(paper)}, best where users are alike, is best here too"
    )
    return (
        f"{wording.entered(best)}, where the total bound {fall(total)}. {why}; if nobody were clipped and c were "
        f"the same, it would gain {times(weighed.closed_form_gain)}."
    )


def skew_sentence(weighed: Weighed) -> str:
    """How far weights that differ between users change what a task learns."""
    if not weighed.weight_skew.largest > 1e-12:
        return "none: within a task all users weigh the same."
    sizes = weighed.problem.task_sizes
    average = float(sizes @ weighed.weight_skew.total_variation / sizes.sum())
    return (
        f"users with few tasks keep larger weights, so {wording.percent(weighed.weight_skew.largest)} of a task's "
        f"weight moves to other users at worst, {wording.percent(average)} on average."
    )


def _optimum(weighed: Weighed, optima: Optima | None) -> str:
    kind = (
        "the same weight for all users of a task and nobody clipped, problem (9)"
        if weighed.rule.fit.same_for_all_users
        else "weights free for every user and task, since clipped or filled-up weights differ between users too"
    )
    if optima is None:
        return f"not computed yet; on the page a button under *Exact optimum* does it. It will be that of {kind}."
    return f"{_further(weighed, optima).removeprefix('the exact optimum ')} ({kind})."


def proofs(found: MultitaskFound) -> tuple[Proof, ...]:
    """By the paper's measure, and of the exact optima where they are known."""
    weighed, optima = found.weighed, found.optima
    average = certificate_on_average(weighed.problem, weighed.rule.exponent)
    said: list[Proof] = [
        (f"μ = {exponent(weighed.rule.exponent)} by the paper's measure", average, "Closed form.")
    ]
    if optima is not None:
        for name, one in (
            ("Exact optimum, problem (9)", optima.same_for_all),
            ("Exact optimum, free weights", optima.free),
        ):
            assert one.certificate is not None
            said.append((name, one.certificate, one.ended))
    return tuple(said)


def what_is_used(found: MultitaskFound) -> str:
    """The graph and the budget in a line."""
    graph = found.tasks.graph
    return (
        f"{wording.counted(graph.num_users, 'user')}, {wording.counted(graph.num_tasks, 'task')}, "
        f"{wording.counted(graph.num_pairs, 'pair')}; {wording.number(int(graph.task_sizes.min()))} to "
        f"{wording.counted(int(graph.task_sizes.max()), 'user')} per task, at most "
        f"{wording.counted(int(graph.tasks_per_user.max()), 'task')} per user. "
        f"ε and δ give β = {wording.number(found.budgets.exact)}; who gets it does not depend on them."
    )


def summary(found: MultitaskFound, data: Dataset | None) -> tuple[Line, ...]:
    """Users and tasks as a report has them; ``data`` is None where they were generated."""
    graph, kind = found.tasks.graph, found.tasks.disclosure
    lines = [
        Line(name, wording.number(number), kind, number=number)
        for name, number in (
            ("Users of the graph", graph.num_users),
            ("Tasks", graph.num_tasks),
            ("Pairs of a user and a task", graph.num_pairs),
            ("Users of the largest task", int(graph.task_sizes.max())),
            ("Users of the median task", float(np.median(graph.task_sizes))),
            ("Tasks of the busiest user", int(graph.tasks_per_user.max())),
        )
    ]
    named = (Line("Data", "generated users and tasks", kind),) if data is None else data_lines(data)
    return (*named, *lines)
