"""The answer of Choose privately, computed once for a question and a data set, and put into words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from dpcore.common import wording
from dpcore.common.documents import CHOICE_SCHEMA, document
from dpcore.common.privacy import Sensitivity, rounded_up
from dpcore.common.text_fields import to_values
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset
from dpcore.private_choice import comparison
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.choice_regret import ChoiceRegret
from dpcore.private_choice.comparison import CopyCost, CopyCurves, DirectCost
from dpcore.private_choice.parameters import PrivateParameters, Relation, Wanted
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


@dataclass(frozen=True, eq=False)
class PrivateView:
    """Everything the page shows that depends on data and question.

    Attributes:
        parameters: The question.
        best: The number chosen in the clear, in rows per user.
        direct: Exact cost of the direct choice.
        copy: Simulated cost of choosing on a private copy.
        over_epsilon: Exact regret of the direct choice over its budget.
        over_users: The same over numbers of users.
        num_users: Users in the data.
        num_above: Users with more rows than the public maximum.
        added: Rows of one user added.
        moved: The number chosen in the clear with that user.
        shown: Whose number ``added`` and ``moved`` are about: where one user does not move the number asked for, that
            of a sum.
        without: The same number without that user.
    """

    parameters: PrivateParameters
    best: float
    direct: DirectCost
    copy: CopyCost
    over_epsilon: ChoiceRegret
    over_users: ChoiceRegret
    num_users: int
    num_above: int
    added: FloatArray
    moved: FloatArray
    shown: Wanted
    without: float

    @property
    def ranks(self) -> bool:
        """Whether costs are rank errors, not relative errors."""
        return self.parameters.wanted is Wanted.QUANTILE


def compute(histogram: ContributionHistogram, parameters: PrivateParameters) -> PrivateView:
    """Solve, simulate a few copies, and evaluate."""
    over_epsilon, over_users = comparison.direct_curves(parameters, histogram)
    shown = parameters
    added, moved, without = comparison.bound_with_one_more(parameters, histogram)
    if moved.min() == moved.max() == without:
        shown = PrivateParameters(parameters.epsilon, Wanted.SUM, largest=parameters.largest)
        added, moved, without = comparison.bound_with_one_more(shown, histogram)
    return PrivateView(
        parameters=parameters,
        best=parameters.condition.best_bound(histogram),
        direct=comparison.direct_cost(parameters.choice, histogram),
        copy=comparison.copy_cost(parameters, histogram),
        over_epsilon=over_epsilon,
        over_users=over_users,
        num_users=histogram.num_users,
        num_above=histogram.users_above(parameters.largest),
        added=added,
        moved=moved,
        shown=shown.wanted,
        without=without,
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
    # As `dpcore.private_choice.ledger` counts it; the libraries that the code is for know no other release.
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
    " There bias plus mean noise is least, the paper's bound, whose place depends on 1/ε alone. *Sum and count* "
    "minimises the expected error unless told otherwise; where the two are flat it can name quite another T."
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
                f"the best bound has 1/ε = {users} above it, and so few can hardly be seen through the noise. "
                f"What helps: {words}, a maximum closer to what is possible, a margin, or a copy instead.",
            ),
        )
    return (("What helps", f"{words}; more users."),)


def choice_json(choice: PrivateChoice, wanted: Wanted) -> str:
    """The chosen number with its guarantee; nothing in it depends on the data but the number drawn."""
    problem = choice.problem
    return document(
        CHOICE_SCHEMA,
        question={
            "label": "public input",
            "number": NUMBER_NAMES[wanted],
            "condition": to_values(problem.condition),
            "largest": problem.largest,
            "prior": to_values(problem.prior) if problem.prior is not None else None,
        },
        answer={
            "label": choice.facts.label,
            "value": choice.value,
            "unit": "rows per user",
            "epsilon": choice.facts.epsilon,
            "delta": choice.facts.delta,
            "neighbours": choice.facts.neighbours.value,
            "mechanism": choice.facts.mechanism,
        },
    )


def leak_columns(view: PrivateView) -> dict[str, npt.ArrayLike]:
    """What the picture of one added user draws, as columns."""
    return {"rows_of_added_user": view.added, "chosen_with": view.moved}


def curve_columns(view: PrivateView, curves: CopyCurves | None, over_users: bool) -> dict[str, npt.ArrayLike]:
    """What the regret figures draw, as columns."""
    found = view.over_users if over_users else view.over_epsilon
    axis = found.scales * view.num_users if over_users else found.epsilons
    copied = () if curves is None else curves.over_users if over_users else curves.over_epsilon
    factor = view.num_users if over_users else 1.0
    name = "users" if over_users else "epsilon_choice"
    median = found.median[:, 0] if over_users else found.median[0]
    high = found.percentile_95[:, 0] if over_users else found.percentile_95[0]
    return {
        "way": ["direct choice, exact"] * len(axis) + ["private copy, simulated"] * len(copied),
        name: [*axis, *(x * factor for x, _ in copied)],
        "median": [*median, *(c.median for _, c in copied)],
        "percentile_95": [*high, *(c.percentile_95 for _, c in copied)],
    }


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
