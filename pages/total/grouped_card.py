"""The answer on counts per group in words."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.total import groups
from dpcore.total.parameters import GROUPED_ASSUMPTIONS
from pages.shared.cards import AnswerCard, Figure
from pages.total import code
from pages.total.card import LEAKS
from pages.total.grouped import GroupedView


def card(view: GroupedView, dataset: Dataset, own: int | None = None) -> AnswerCard:
    """Counts per group in words; ``own`` is the person's own k as it was entered."""
    choice, problem = view.choice, view.problem
    counts = problem.amounts.total
    each = choice.bound / problem.num_groups
    k = wording.counted(choice.max_groups, "group")
    if choice.max_groups == 0:
        headline = f"Nothing useful can be released at ε = {wording.entered(problem.epsilon)}: all zeros are no worse."
    else:
        headline = (
            f"Count each user in at most {k}: the {wording.number(problem.num_groups)} counts are off by at most "
            f"{wording.number(each)} each on average."
        )
    affected = choice.users_affected
    facts = [
        (
            "Who is affected",
            f"{wording.counted(affected, 'user')} ({wording.percent(affected / problem.amounts.num_users)}) "
            f"{wording.agreeing(affected, 'is', 'are')} in more groups; "
            f"{wording.percent(choice.bias / counts)} of all counts are left out.",
        ),
        ("Half or double", _half_or_double_groups(view)),
    ]
    if view.surely is not None:
        low, high = (wording.number(x) for x in view.surely)
        facts.append(("The exact error", f"lies between {low} and {high}, over all groups together."))
    if view.own is not None:
        used, error = float(view.own.caps), float(view.own.bound)
        only = "" if own is None or own <= used else f"there are only {wording.counted(used, 'group')}; "
        facts.append(
            (
                f"Your own k, {wording.number(used if own is None else own)}",
                f"{only}total error at most {wording.number(error)}, {wording.change(error, choice.bound)} "
                "compared with the best.",
            )
        )
    return AnswerCard(
        headline=headline,
        detail=LEAKS if dataset.is_private else "",
        figures=(
            Figure(
                "Best k",
                wording.number(choice.max_groups),
                wording.agreeing(choice.max_groups, "group per user", "groups per user"),
                "max_partitions_contributed.",
            ),
            Figure(
                "Total error, at most",
                wording.number(choice.bound),
                f"{wording.percent(choice.bound / counts)} of all counts",
                "Sum over groups of the expected absolute error of each count, at most.",
            ),
            Figure(
                "Left out (bias)",
                wording.number(choice.bias),
                f"{wording.percent(choice.bias / counts)} of all counts",
            ),
            Figure("Noise", wording.number(choice.noise), "over all groups"),
        ),
        facts=tuple(facts),
        assumptions=GROUPED_ASSUMPTIONS,
        proofs=(("Groups per user", choice.certificate, choice.ended),),
        sensitivity=dataset.provenance,
        code=code.of_groups(view, dataset),
    )


def _half_or_double_groups(view: GroupedView) -> str:
    k, best, most = view.choice.max_groups, view.choice.bound, view.problem.num_groups
    if k == 0:
        return "does not apply: k is 0."
    others = [("half", k // 2)] if k >= 2 else []
    if 2 * k <= most:
        others.append(("double", 2 * k))
    elif k < most:
        others.append(("all groups", most))
    parts = []
    for name, other in others:
        error = float(groups.errors(view.problem, other).bound)
        costs = wording.agreeing(name == "all groups", "cost", "costs")
        parts.append(f"{name} ({wording.number(other)}) {costs} {wording.change(error, best)}")
    found = [", ".join(parts) + " in error."] if parts else []
    if 2 * k > most:
        found.append(f"There are only {wording.counted(most, 'group')}: k cannot be doubled.")
    return " ".join(found)
