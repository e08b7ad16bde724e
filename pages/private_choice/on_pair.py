"""The private way on the card of *Per group*: its pair of bounds, drawn where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice.answer import drawing, words
from dpcore.private_choice.answer.drawing import Lacking
from pages.private_choice import actions
from pages.private_choice.question import QUESTION
from pages.shared.base import page_run
from pages.shared.fields import fields


@dataclass(frozen=True)
class PairWay:
    """How the pair is drawn; see `pages.private_choice.on_card.Way`.

    Attributes:
        asked: The question of the draw; None where something is lacking.
        of_sum: Whether amounts are added up, whose unit and public maximum are entered beside the button.
        drawn: The card of the pair that was drawn for it last; None before a draw.
        lacking: What must be entered before, a sentence; empty where nothing is.
        offered: Whether the card has the button.
        waits_for: Label of the field that is to be filled before; empty for none.
    """

    asked: PrivatePairProblem | None
    of_sum: bool = False
    drawn: Answer | None = None
    lacking: str = ""
    offered: bool = True
    waits_for: str = ""

    @property
    def _facts(self) -> ReleaseFacts:
        assert self.asked is not None
        return ReleaseFacts(self.asked.epsilon, 0.0, self.asked.parameters.neighbours, "not yet drawn")

    @property
    def name(self) -> str:
        """What the button says."""
        what = "Draw it privately" if self.drawn is None else "Draw another"
        return what if self.asked is None else f"{what} (ε = {format_rounded_up(self.asked.epsilon)})"

    @property
    def help(self) -> str:
        """What a press does and spends."""
        return f"Draws both bounds for these settings, with one ε. {actions.would_spend(self._facts)} {words.PAIR_AIM}"

    @property
    def cost(self) -> str:
        """What it usually costs, from public figures: these data are not looked at before the draw."""
        return "" if self.asked is None else words.usual_cost(self.asked)

    def ask(self) -> None:
        """The fields that the draw of a sum needs besides the page's, which *Choose privately* has, too."""
        if self.of_sum:
            with st.container(horizontal=True):
                fields.draw_all(QUESTION, "pair_unit", "pair_largest")

    def draw(self) -> None:
        """Draw it; for callbacks."""
        assert self.asked is not None
        actions.draw_asked(self.asked)


def asked_for(parameters: PerGroupParameters) -> PrivatePairProblem | str | None:
    """The question of a draw for these settings, or what is lacking; None where no pair is drawn."""
    try:
        asked = drawing.pair_asked_for(parameters, actions.beside())
    except InvalidInput as refused:
        return " ".join(f"{wording.capital(one.message)}." for one in refused.problems)
    return asked.said if isinstance(asked, Lacking) else asked


def way(card: Answer, data: Dataset) -> PairWay | None:
    """The private way to the pair of a card; None where there is none."""
    if data.pairs is None and data.pair_sizes is None:
        return None  # The card is of invented data.
    run, of_sum = page_run.now(), card.parameters.statistic is Statistic.SUM
    asked, column = asked_for(card.parameters), drawing.column_of_groups(data)
    if asked is None or isinstance(asked, str):
        if asked is None:
            return None
        listed = card.parameters.num_groups is not None
        waits_for = (
            (QUESTION.field("pair_unit") if listed else run.question.field("num_groups")).label if run else ""
        )
        return PairWay(None, of_sum=of_sum, lacking=asked, waits_for=waits_for)
    drawn = [
        one
        for kind, one in actions.choices()
        if isinstance(one, PrivatePair) and one.problem == asked and one.column == column
    ]
    if not drawn:
        return PairWay(asked, of_sum)
    of = actions.with_drawn(card, drawing.build_answer(card, drawn[-1], asked, data), "pair")
    return PairWay(asked, of_sum, of)
