"""The private way on the card of *Per group*: its pair of bounds, drawn where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.markdown import plain
from dpcore.common.privacy import ReleaseFacts, rounded_up
from dpcore.dataset import Dataset, Pairs, PairSizes
from dpcore.per_group import PerGroupParameters, Statistic, UserGroupPairs, private_pair
from dpcore.per_group.answer import code
from dpcore.per_group.private_pair import COVERED, PrivatePair, PrivatePairProblem
from dpcore.per_group.words import pair_words
from dpcore.private_choice.answer import words
from dpcore.private_choice.parameters import Several
from pages.private_choice import actions
from pages.private_choice.question import QUESTION
from pages.shared.session import session

LIST_MISSING = (
    "To draw the pair privately, enter how many groups are on your public list (*More settings*). Take it from the "
    "list, not from the data."
)
UNIT_MISSING = (
    "To draw the pair privately, enter the unit and the highest amount on *Choose privately*, tab *A pair per "
    "group*. Both are public."
)


@dataclass(frozen=True)
class PairWay:
    """How the pair is drawn; see `pages.private_choice.on_card.Way`.

    Attributes:
        asked: The question of the draw; None where something is lacking.
        data: What it is drawn from.
        drawn: The card of the pair that was drawn for it last; None before a draw.
        lacking: What must be entered before, a sentence; empty where nothing is.
        offered: Whether the card has the button.
    """

    asked: PrivatePairProblem | None
    data: Dataset
    drawn: Answer | None = None
    lacking: str = ""
    offered: bool = True

    @property
    def _facts(self) -> ReleaseFacts:
        assert self.asked is not None
        return ReleaseFacts(self.asked.epsilon, 0.0, self.asked.parameters.neighbours, "not yet drawn")

    @property
    def name(self) -> str:
        """What the button says."""
        what = "Draw it privately" if self.drawn is None else "Draw another"
        return what if self.asked is None else f"{what} (ε = {rounded_up(self.asked.epsilon)})"

    @property
    def help(self) -> str:
        """What a press does and spends."""
        return f"Draws both bounds for these settings, with one ε. {actions.would_spend(self._facts)} {words.PAIR_AIM}"

    @property
    def cost(self) -> str:
        """What it usually costs, from public figures: these data are not looked at before the draw."""
        return "" if self.asked is None else words.usual_cost(self.asked)

    def ask(self) -> None:
        """The fields that the draw needs besides the page's: none."""

    def draw(self) -> None:
        """Draw it; for callbacks."""
        assert self.asked is not None
        asked, pairs = self.asked, pairs_of(self.data)
        actions.keep(
            Several.PAIR,
            lambda: private_pair.choose(asked, pairs, session.record, column_of(self.data)),
        )


def pairs_of(data: Dataset) -> UserGroupPairs | PairSizes:
    """Who contributes how much to which group, or how that is distributed."""
    if data.pairs is not None:
        return UserGroupPairs.from_facet(data.pairs)
    assert data.pair_sizes is not None
    return data.pair_sizes


def column_of(data: Dataset) -> str:
    """What groups are of."""
    facet: Pairs | PairSizes | None = data.pairs or data.pair_sizes
    return "" if facet is None else facet.label


def asked_for(parameters: PerGroupParameters) -> PrivatePairProblem | str | None:
    """The question of a draw for these settings, or what is lacking; None where no pair is drawn.

    Public maximum, and of a sum its unit, are those of *Choose privately*.
    """
    if parameters.statistic not in COVERED or parameters.selection.private:
        return None
    if parameters.num_groups is None:
        return LIST_MISSING
    state, of_sum = st.session_state, parameters.statistic is Statistic.SUM
    largest = state.get(QUESTION.key("pair_largest" if of_sum else "largest"))
    unit = state.get(QUESTION.key("pair_unit")) if of_sum else 1.0
    if of_sum and (largest is None or unit is None):
        return UNIT_MISSING
    epsilon = float(state.get(QUESTION.key("epsilon_choice")) or QUESTION.first("epsilon_choice"))
    most = float(largest if largest is not None else QUESTION.first("largest"))
    size = float(unit or 0.0)
    try:
        # What the choice does not depend on is left out, so that a number drawn before is known again.
        plain_question = PerGroupParameters(
            parameters.epsilon,
            parameters.statistic,
            parameters.noise,
            parameters.delta,
            parameters.neighbours,
            num_groups=parameters.num_groups,
        )
        whole = int(min(most / size, private_pair.MAX_AMOUNT)) if size > 0.0 else 1
        return PrivatePairProblem(plain_question, epsilon, whole, size)
    except InvalidInput as refused:
        return " ".join(f"{wording.capital(one.what)}." for one in refused.problems)


def way(card: Answer, data: Dataset) -> PairWay | None:
    """The private way to the pair of a card; None where there is none."""
    if data.pairs is None and data.pair_sizes is None:
        return None  # The card is of invented data.
    asked = asked_for(card.parameters)
    if asked is None or isinstance(asked, str):
        return None if asked is None else PairWay(None, data, lacking=asked)
    drawn = [
        one
        for kind, one in actions.choices()
        if isinstance(one, PrivatePair) and one.problem == asked and one.column == column_of(data)
    ]
    return PairWay(asked, data, _card(card, drawn[-1], data) if drawn else None)


def _card(card: Answer, drawn: PrivatePair, data: Dataset) -> Answer:
    """The card with the drawn pair in place of the one that was read off the data."""
    asked = drawn.problem.parameters
    pair = pair_words(asked, drawn.max_groups, drawn.max_amount)
    alone = asked.statistic is Statistic.USERS
    total = rounded_up(drawn.facts.epsilon + asked.epsilon)
    each = "" if alone else f", and at most {wording.number(drawn.max_amount)} in each"
    groups = wording.counted(drawn.max_groups, "group")
    return replace(
        card,
        headline=f"Count each user in at most {groups}."
        if alone
        else f"Keep at most {groups} of each user{each}.",
        numbers=(
            Number(
                "Bound, drawn privately" if alone else "Pair, drawn privately",
                pair,
                f"of {plain(drawn.column)}" if drawn.column else "",
                copies=f"{drawn.max_groups}" if alone else f"{drawn.max_groups}, {drawn.max_amount:.12g}",
            ),
        ),
        good_enough="",
        detail=f"The draw has spent ε = {rounded_up(drawn.facts.epsilon)}; the release adds ε = "
        f"{rounded_up(asked.epsilon)}: ε = {total} in all. This pair may be published. The figure may not: it shows "
        "private data.",
        disclosure=drawn.facts,
        code=code.of_private(drawn, data),
    )
