"""The answer of the page Many tasks in words."""

from __future__ import annotations

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Disclosure
from dpcore.multitask.bounds import Bucket, certificate_on_average
from dpcore.multitask.budget import BudgetComparison
from dpcore.multitask.fit import BudgetFit
from dpcore.multitask.problem import Allocation
from pages.multitask.answer import GOOD_ENOUGH, MultitaskView, Tasks, tasks_per_user, total_ratio
from pages.multitask.compare import Optima

FITTED = {
    BudgetFit.CLIPPED: "Users above their budget are then scaled down to it.",
    BudgetFit.LOGARITHMIC: "Users above their budget are then scaled down to it.",
    BudgetFit.NOBODY_CLIPPED: "All weights are small enough for the heaviest user's budget.",
    BudgetFit.FULL: "Every user is then scaled up or down to the whole budget.",
}
SAME = 0.005
"""A change smaller than this is called none."""


def assumptions(view: MultitaskView) -> tuple[str, ...]:
    """What the answer rests on."""
    same = (
        "Every user of a task has the same weight in it, so that no task's loss is skewed"
        if view.rule.fit.same_for_all_users
        else "Users of a task are interchangeable: where weights differ between users, the task's loss is "
        "skewed toward those with few tasks, and no bound here counts that"
    )
    reads = (
        "The smallest c that clips nobody depends on who contributed to which task; it is valid only if that is "
        "public"
        if view.rule.fit.reads_graph
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


def tail_and_head(view: MultitaskView) -> str:
    """What becomes of the smallest and the largest tasks under the chosen weights; no full stop."""
    five = len(view.buckets) == 5
    tail, head = ("The tail fifth of tasks", "the head") if five else ("The smallest task", "the largest")
    return f"{tail} {gain(view.buckets[0])}, {head} {gain(view.buckets[-1])}"


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


def card(view: MultitaskView, budgets: BudgetComparison, optima: Optima | None) -> Answer:
    """The answer; ``optima`` where they were computed for these tasks."""
    chosen, (best, ratio) = view.chosen, view.recommended
    used = chosen.budget_use[view.tasks.graph.tasks_per_user > 0] / view.problem.budget
    clipped = chosen.share_clipped
    return Answer(
        headline=_headline(view, best),
        detail=_detail(view, optima),
        numbers=(
            Number("Exponent μ", wording.entered(best), help=_EXPONENT, copied=wording.digits(best)),
            Number("Total error bound", _signed(ratio), "against uniform weights", _TOTAL),
            Number("Budget used", wording.percent(float(used.mean())), "of β, average user", _USED),
            Number(
                "Users clipped",
                "none" if not clipped else wording.percent(clipped),
                "scaled down to β",
                "Users whose squared weights would sum to more than β. Their weights are scaled down.",
            ),
            Number("User budget β", wording.number(budgets.exact), _weight_gain(budgets), _BUDGET),
        ),
        good_enough=_good_enough(view),
        facts=_facts(view, optima),
        assumptions=assumptions(view),
        proofs=_proofs(view, optima),
        disclosure=view.tasks.disclosure,
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


def _headline(view: MultitaskView, best: float) -> str:
    if view.problem.num_tasks == 1:
        return "Give the only task every user's whole budget."
    if best == 0.0:
        return "Give all tasks the same weight."
    return f"Weight each task by its number of users to the power −{exponent(best)}."


def _good_enough(view: MultitaskView) -> str:
    low, high = view.curve.good_enough
    best, share = wording.entered(view.curve.best[0]), f"{100 * GOOD_ENOUGH:g}{wording.PERCENT}"
    if low == high:
        return f"only μ = {best}; its neighbours are more than {share} worse."
    return (
        f"any μ from {wording.entered(low)} to {wording.entered(high)} stays within {share} of the best "
        f"total bound."
    )


def further(allocation: Allocation, optimum: Allocation) -> float:
    """By what share the optimum's bound is smaller; at least 0."""
    return max(1.0 - total_ratio(optimum, allocation), 0.0)


def _further(view: MultitaskView, optima: Optima) -> str:
    left = further(view.chosen, optima.of_kind(view.rule.fit))
    if left < SAME / 10.0:
        return "the exact optimum would gain nothing more"
    return f"the exact optimum would gain a further {wording.percent(left)}"


def _detail(view: MultitaskView, optima: Optima | None) -> str:
    """What changes how the headline is to be read, most important first."""
    found, chosen = [], view.rule.exponent
    best, ratio = view.recommended
    if best != chosen:
        more = times(view.total(view.chosen) / ratio)
        found.append(
            f"Figure and code are for your μ = {exponent(chosen)}; its total bound is {more} as large."
        )
    if chosen and view.problem.num_tasks > 1:
        found.append(f"{tail_and_head(view)}.")
    if optima is not None:
        further = _further(view, optima)
        found.append(f"{further[0].upper()}{further[1:]}.")
    if view.rule.fit.reads_graph:
        found.append(
            f"Here c = {wording.number(_inflation(view))} **depends on who contributed to which task**: it is not "
            "part of a private mechanism."
        )
    if not view.bounds_are_tasks_own:
        found.append(
            "For convex losses only the total is a bound; a task's share of it is not its own error."
        )
    if view.tasks.disclosure is Disclosure.PRIVATE:
        found.append(
            "Your data are private, and so are weights made from their task sizes: unless these are public, "
            "release them first (*Private counts*)."
        )
    return " ".join(found)


def _inflation(view: MultitaskView) -> float:
    weights, sizes = view.chosen.task_weights, view.problem.task_sizes
    return float(view.problem.num_users * view.problem.budget / (sizes @ weights**2))


def _facts(view: MultitaskView, optima: Optima | None) -> dict[str, str]:
    first, last = view.buckets[0], view.buckets[-1]
    facts: dict[str, str] = {}
    if len(view.buckets) == 5:
        facts["Tail and head"] = (
            f"{_bucket(first)} {wording.agreeing(first.num_tasks, 'carries', 'carry')} "
            f"{wording.percent(first.share)} of the total bound, {_bucket(last)} "
            f"{wording.percent(last.share)}."
        )
    facts["Fit to the budget"] = FITTED[view.rule.fit]
    facts |= {"Uniform sampling": _sampling(view), "Best μ here": _best(view)}
    facts["Weight skew"] = skew_sentence(view)
    facts["Exact optimum"] = _optimum(view, optima)
    return facts


def _bucket(bucket: Bucket) -> str:
    users = wording.agreeing(bucket.largest, "user", "users")
    return f"{wording.counted(bucket.num_tasks, 'task')} of {spread(bucket)} {users}"


def spread(bucket: Bucket) -> str:
    """``27 to 612``, or one number."""
    low, high = wording.number(bucket.smallest), wording.number(bucket.largest)
    return low if low == high else f"{low} to {high}"


def _sampling(view: MultitaskView) -> str:
    k = tasks_per_user(view.sampling)
    words = [
        f"at the best number, {wording.counted(k, 'task')} per user, the total bound is "
        f"{_beside_uniform(view.total(view.sampling))} (slightly less than sampling really costs)"
    ]
    if view.own_sampling is not None:
        own = tasks_per_user(view.own_sampling)
        words.append(f"at your {wording.number(own)}, {_beside_uniform(view.total(view.own_sampling))}")
    return "; ".join(words) + "."


def _beside_uniform(ratio: float) -> str:
    if abs(ratio - 1.0) < SAME / 10.0:
        return "that of uniform weights"
    if ratio > 2.0:
        return f"{times(ratio)} that of uniform weights"
    side = "below" if ratio < 1.0 else "above"
    return f"{wording.percent(abs(1.0 - ratio))} {side} that of uniform weights"


def _best(view: MultitaskView) -> str:
    best, total = view.curve.best
    paper = view.problem.loss.best_exponent
    why = (
        f"The paper's {exponent(paper)} is best where users are alike"
        if abs(best - paper) > 1e-9
        else f"The paper's {exponent(paper)}, best where users are alike, is best here too"
    )
    return (
        f"{wording.entered(best)}, where the total bound {fall(total)}. {why}; if nobody were clipped and c were "
        f"the same, it would gain {times(view.closed_form_gain)}."
    )


def skew_sentence(view: MultitaskView) -> str:
    """How far weights that differ between users change what a task learns."""
    if not view.weight_skew.largest > 1e-12:
        return "none: within a task all users weigh the same."
    sizes = view.problem.task_sizes
    average = float(sizes @ view.weight_skew.total_variation / sizes.sum())
    return (
        f"users with few tasks keep larger weights, so {wording.percent(view.weight_skew.largest)} of a task's "
        f"weight moves to other users at worst, {wording.percent(average)} on average."
    )


def _optimum(view: MultitaskView, optima: Optima | None) -> str:
    kind = (
        "the same weight for all users of a task and nobody clipped, problem (9)"
        if view.rule.fit.same_for_all_users
        else "weights free for every user and task, since clipped or filled-up weights differ between users too"
    )
    if optima is None:
        return f"not computed yet; on the page a button under *Exact optimum* does it. It will be that of {kind}."
    return f"{_further(view, optima).removeprefix('the exact optimum ')} ({kind})."


def _proofs(view: MultitaskView, optima: Optima | None) -> tuple[tuple[str, Certificate, str], ...]:
    average = certificate_on_average(view.problem, view.rule.exponent)
    found = [(f"μ = {exponent(view.rule.exponent)} by the paper's measure", average, "Closed form.")]
    for name, one in (
        (("Exact optimum, problem (9)", optima.same_for_all), ("Exact optimum, free weights", optima.free))
        if optima
        else ()
    ):
        assert one.certificate is not None
        found.append((name, one.certificate, one.ended))
    return tuple(found)


def what_is_used(tasks: Tasks, budgets: BudgetComparison) -> str:
    """The graph and the budget in a line."""
    graph = tasks.graph
    return (
        f"{wording.counted(graph.num_users, 'user')}, {wording.counted(graph.num_tasks, 'task')}, "
        f"{wording.counted(graph.num_pairs, 'pair')}; {wording.number(int(graph.task_sizes.min()))} to "
        f"{wording.counted(int(graph.task_sizes.max()), 'user')} per task, at most "
        f"{wording.counted(int(graph.tasks_per_user.max()), 'task')} per user. "
        f"ε and δ give β = {wording.number(budgets.exact)}; who gets it does not depend on them."
    )
