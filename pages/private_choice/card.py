"""The answer of Choose privately in words."""

from __future__ import annotations

from dpcore.common import wording
from dpcore.common.privacy import Sensitivity, rounded_up
from dpcore.dataset import Dataset
from dpcore.private_choice.parameters import Relation, Wanted
from pages.private_choice.answer import PrivateView
from pages.shared.cards import AnswerCard, Figure

NUMBER_NAMES = {
    Wanted.SMOOTH: "threshold of the smooth weights",
    Wanted.CAP: "upper bound on rows per user",
    Wanted.SUM: "upper bound T on rows per user",
    Wanted.QUANTILE: "quantile of rows per user",
}
ERROR_NAMES = {
    Wanted.SMOOTH: "standard error of the mean",
    Wanted.CAP: "standard error of the mean",
    Wanted.SUM: "bias plus mean noise of the sum",
    Wanted.QUANTILE: "rank error",
}
WHOSE_COSTS = {
    Sensitivity.PUBLIC: "The costs are computed from these data as they are. They are public, so reading the "
    "costs to settle on ε of the choice leaks nothing; on private data it would",
    Sensitivity.PRIVATE: "The costs are computed from the private data in the clear. Reading them to settle on "
    "ε of the choice is itself a look at the data that no ε covers: settle on it beforehand, or look at similar "
    "public data",
    Sensitivity.DP_RELEASE: "The costs are computed from the release in use, not from the data behind it: "
    "reading them to settle on ε of the choice spends nothing more. On the data behind it a draw may cost more "
    "or less",
}
"""What the costs are computed from, and what reading them gives away."""


def assumptions(kind: Sensitivity) -> tuple[str, ...]:
    """What is assumed, on data of this kind."""
    return (
        "Who is in the data and how many rows each user has counts as private; ε of the release, the maximum and "
        "what is entered about values are public and do not come from these data",
        "ε of the choice and ε of the release add up, whichever way the number is chosen",
        WHOSE_COSTS[kind],
        "The direct choice's costs are exact; those of a private copy are simulated with NumPy's noise",
    )


def cost(share: float) -> str:
    """A cost in words; 0 and tiny ones are less than 0.01 %."""
    if 0.0 <= share < 1e-4:
        return f"less than 0.01{wording.PERCENT}"
    return wording.percent(share)


def brief(share: float) -> str:
    """The same for a metric."""
    return cost(share).replace("less than ", "<\N{NO-BREAK SPACE}")


def card(view: PrivateView, data: Dataset) -> AnswerCard:
    """What it costs, either way; on a release, the number itself."""
    p = view.parameters
    budget = rounded_up(p.epsilon_choice)
    empty = (
        f" In {wording.percent(view.copy.empty_share)} of copies no user is left."
        if view.copy.empty_share
        else ""
    )
    delta = f", with δ = {rounded_up(p.delta)} for a copy" if p.delta is not None else ""
    # As `dpcore.common.ledger` counts it; the libraries that the code is for know no other release.
    twice = ""
    if p.relation is Relation.REPLACE:
        twice = (
            " One for neighbours that add or remove one user counts up to twice: "
            f"ε = {rounded_up(2.0 * p.epsilon + p.epsilon_choice)}."
        )
    once = "In 1 draw of 20 it is this or more."
    headline, detail = _headline(view) if data.release is None else _on_release(view)
    return AnswerCard(
        headline=headline,
        detail=detail,
        figures=(
            Figure("Direct, median", brief(view.direct.median), "exact"),
            Figure("Direct, 1 in 20", brief(view.direct.percentile_95), "exact", help=once),
            Figure("Copy, median", brief(view.copy.median), "simulated"),
            Figure("Copy, 1 in 20", brief(view.copy.percentile_95), "simulated", help=once),
        ),
        facts=(
            (
                "In the clear" if data.release is None else "On the release",
                f"the {NUMBER_NAMES[p.wanted]} {'would be' if data.release is None else 'is'} "
                f"{wording.number(view.best)}.{OTHER_T if p.wanted is Wanted.SUM else ''}",
            ),
            *_above(view),
            ("Nine draws in ten", _ranges(view) + empty),
            (
                "In all",
                f"ε = {rounded_up(p.epsilon)} for the release and ε = {budget} for the choice: "
                f"ε = {rounded_up(p.epsilon + p.epsilon_choice)}{delta}, where the release too is made for neighbours "
                f"that {p.relation.neighbours.short}.{twice}",
            ),
            *_what_helps(view),
        ),
        assumptions=assumptions(data.sensitivity),
        proofs=(),
        sensitivity=data.provenance,
    )


OTHER_T = (
    " This T minimises bias plus mean noise, as in the paper, and depends on 1/ε alone. *Sum and count* minimises the "
    "expected error unless told otherwise, and may find another T where both errors are flat."
)


def _above(view: PrivateView) -> tuple[tuple[str, str], ...]:
    """That the public maximum lies below what users have."""
    if not view.num_above:
        return ()
    users = wording.counted(view.num_above, "user")
    return (
        (
            "Over the maximum",
            f"{users} {wording.agreeing(view.num_above, 'has', 'have')} more than the "
            f"{wording.counted(view.parameters.largest, 'row')} of the public maximum; no number above it is chosen, "
            "and a copy cuts them there. Raise it only for reasons outside these data.",
        ),
    )


def _headline(view: PrivateView) -> tuple[str, str]:
    """What the way with the smaller 95th percentile costs."""
    p = view.parameters
    direct = view.direct.percentile_95 <= view.copy.percentile_95
    median, high = (
        (view.direct.median, view.direct.percentile_95)
        if direct
        else (view.copy.median, view.copy.percentile_95)
    )
    chosen = f"Chosen with ε = {rounded_up(p.epsilon_choice)}, "
    if view.ranks:
        said, does = f"the quantile misses by {cost(median)} of the users.", "misses by"
    else:
        said, does = f"the bound costs {cost(median)} in error against choosing in the clear.", "costs"
    unit = "shares of the users" if view.ranks else f"in the {ERROR_NAMES[p.wanted]}"
    way = "directly" if direct else "on a private copy"
    detail = (
        f"That is the median, for the number chosen {way}; in 1 draw of 20 it {does} {cost(high)} or more. "
        f"Costs are {unit}."
    )
    return chosen + said, detail


def _on_release(view: PrivateView) -> tuple[str, str]:
    return (
        f"On this release the {NUMBER_NAMES[view.parameters.wanted]} is {wording.number(view.best)}, and it may be "
        "published.",
        "Choosing on a release spends nothing more. The costs here take the release for the data: an estimate, safe to "
        "show, of what a draw costs.",
    )


def _ranges(view: PrivateView) -> str:
    def between(low: float, high: float) -> str:
        return f"{wording.number(low)} to {wording.number(high)}"

    copied = "nothing" if view.copy.low != view.copy.low else between(view.copy.low, view.copy.high)
    return f"directly {between(view.direct.low, view.direct.high)}; on a copy {copied}."


def _what_helps(view: PrivateView) -> tuple[tuple[str, str], ...]:
    if view.direct.median <= 0.05 or view.ranks:
        return ()
    words = "a larger ε for the choice, or a public guess of the number (*More settings*)"
    if view.parameters.wanted is Wanted.SUM:
        users = wording.counted(1.0 / view.parameters.epsilon, "user")
        return (
            (
                "Why so much",
                f"the best bound has only 1/ε = {users} above it, and the noise hides so few users. "
                f"What helps: {words}, a maximum closer to what is possible, a margin, or a copy instead.",
            ),
        )
    return (("What helps", f"{words}; more users."),)


def capital(words: str) -> str:
    """With a capital first letter; ``capitalize`` would turn T into t."""
    return words[0].upper() + words[1:]


def leak_sentence(view: PrivateView, released: bool) -> str:
    """What the picture of one added user shows; ``released``: the data in use are a DP release."""
    number = NUMBER_NAMES[view.shown]
    far = max((float(m) for m in view.moved), key=lambda m: abs(m - view.without))
    before, after = wording.apart(view.without, far)
    moved = f"one more user can move the {number} from {before} to {after}"
    if far == view.without:
        moved = (
            f"one more user with at most {wording.counted(view.parameters.largest, 'row')}, the public maximum, does "
            f"not move the {number} of these data, but to know that one must look at them"
        )
    elif view.shown is not view.parameters.wanted:
        moved = (
            f"one more user does not move the {NUMBER_NAMES[view.parameters.wanted]} of these data, but to know that "
            f"one must look at them. For a sum: {moved}"
        )
    return f"Were the release the data themselves: {moved}." if released else f"{capital(moved)}."
