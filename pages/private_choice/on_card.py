"""The private way on the cards of other questions: their bound, drawn where it is asked for.

The machinery finds this module by `Question.draws` of the question that it belongs to; no question knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.code import Choice
from dpcore.code.forms import CodeChoice
from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePair, PrivatePairProblem
from dpcore.private_choice.answer import drawing, words
from dpcore.private_choice.answer.drawing import Asked, Ends, Lacking
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters, Several, Wanted
from dpcore.private_choice.release_bounds import BoundDraw, Bounded
from dpcore.total.parameters import TotalParameters
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import actions, cached, on_range
from pages.private_choice.question import QUESTION
from pages.shared.base import page_run
from pages.shared.base.question import Question
from pages.shared.fields import fields, setting
from pages.shared.session import session

PUBLIC_NUMBERS: dict[type, str] = {LearningParameters: "public_rows", TotalParameters: "highest_total"}
"""By what a page asks: its field of a public number that the draw of its bound needs."""


@dataclass(frozen=True)
class Way:
    """How the bound of a card, or its pair of bounds, is drawn.

    Attributes:
        asked: The question of the draw; None where something is lacking.
        drawn: The card of what was drawn for it last; None before a draw.
        offered: Whether the card has the button; the page that compares ways has its own.
        lacking: What must be entered before, a sentence; empty where nothing is.
        aim: What the draw takes otherwise than the card, a sentence; empty where nothing.
        fields: The fields of public numbers that the draw needs beside the button, and whose they are.
        waits_for: Label of the field that is to be filled before; empty for none.
    """

    asked: Asked | None
    drawn: Answer | None = None
    offered: bool = True
    lacking: str = ""
    aim: str = ""
    fields: tuple[Question, tuple[str, ...]] = (QUESTION, ())
    waits_for: str = ""

    @property
    def name(self) -> str:
        """Return what the button says."""
        assert self.asked is not None
        of_pair = isinstance(self.asked, PrivatePairProblem)
        epsilon = self.asked.epsilon if of_pair else self.asked.epsilon_choice  # type: ignore[union-attr]
        return f"{'Draw it privately' if self.drawn is None else 'Draw another'} (ε = {format_rounded_up(epsilon)})"

    @property
    def help(self) -> str:
        """Return what a press does and spends."""
        asked = self.asked
        assert asked is not None
        if isinstance(asked, PrivatePairProblem):
            facts = ReleaseFacts(asked.epsilon, 0.0, asked.parameters.neighbours, "not yet drawn")
            spent = actions.would_spend(facts)
            return f"Draws both bounds for these settings, with one ε. {spent} {words.PAIR_AIM}"
        said = (
            f"Draws one bound for these settings, with an ε of its own. {actions.spending(asked, copy=False)}"
        )
        compared = " *Choose privately* compares it with other ways."
        return said + (compared if isinstance(asked, PrivateParameters) else "")

    @property
    def cost(self) -> str:
        """Return what it usually costs, from public figures: these data are not looked at before the draw."""
        if self.asked is None:
            return ""
        if isinstance(self.asked, PrivatePairProblem):
            return words.usual_cost(self.asked)
        rows = self.asked.rows if isinstance(self.asked, BoundDraw) else None
        return f"{self.aim} {words.expected(cached.forecasts(self.asked), rows)}".strip()

    @property
    def dropped(self) -> str:
        """Return what a draw leaves out or counts as 0, for the owner of the data alone."""
        return "" if self.asked is None else actions.dropped(self.asked)

    @property
    def selection(self) -> tuple[float | dict[str, float], str]:
        """Return what was drawn, a pair by the columns of its figure, and the curve that the bound of a
        quantile stands on.
        """
        assert self.drawn is not None
        if isinstance(pair := self.drawn.bound, PrivatePair):
            return {"max_groups": float(pair.max_groups), "max_amount": float(pair.max_amount)}, ""
        smooth = isinstance(self.asked, BoundDraw) and self.asked.wanted is Bounded.QUANTILE_SMOOTH
        return float(self.drawn.numbers[0].value or 0.0), "Smooth weights" if smooth else "Bounded rows"

    def ask(self) -> None:
        """Draw the fields of the public numbers that the draw needs."""
        question, names = self.fields
        if names:
            with st.container(horizontal=True):
                fields.draw_all(question, *names)

    def draw(self) -> None:
        """Draw it; for callbacks."""
        assert self.asked is not None
        actions.draw_asked(self.asked)


def way(card: Answer) -> Way | None:
    """Return the private way to the bound of a card on the data in use; None where there is none, or none is needed."""
    data, run = session.dataset(), page_run.now()
    if not data.is_private:
        return None
    beside: tuple[Question, tuple[str, ...]] = (QUESTION, ())
    if isinstance(card.parameters, PerGroupParameters):
        if data.pairs is None and data.pair_sizes is None:
            return None  # The card is of invented data.
        if card.parameters.statistic is Statistic.SUM:
            beside = QUESTION, ("pair_unit", "pair_largest")
    elif run is not None and (field := PUBLIC_NUMBERS.get(type(card.parameters))):
        beside = run.question, (field,)
    try:
        asked = drawing.asked_for(card, data, actions.beside())
        if asked is None or isinstance(asked, Lacking):
            return None if asked is None else _lacking(card, asked, beside)
        checked_users(data.histogram)
        of_pair = isinstance(asked, PrivatePairProblem)
        problem = asked if of_pair else asked.choice  # type: ignore[union-attr]
    except InvalidInput as refused:
        # On the page that compares ways they have been said to be wrong.
        said = Lacking(" ".join(one.sentence for one in refused.problems), beside[1])
        return None if isinstance(card.parameters, PrivateParameters) else _lacking(card, said, beside)
    actions.show_account()
    column = drawing.column_of(asked, data)
    wanted = Several.PAIR if isinstance(asked, PrivatePairProblem) else asked.wanted
    fitting = [
        one
        for kind, one in actions.choices()
        if kind is wanted
        and isinstance(one, PrivateChoice | PrivatePair)
        and (one.problem, one.column) == (problem, column)
    ]
    here = card.parameters is asked
    if here and not fitting:
        return None
    needs_no_number = isinstance(asked, PrivateParameters)
    return Way(
        asked,
        _card(card, fitting[-1], asked, data) if fitting else None,
        offered=not here,
        aim="" if isinstance(asked, PrivatePairProblem) else _aim(card, asked),
        fields=(QUESTION, ()) if needs_no_number else beside,
    )


def _lacking(card: Answer, lacking: Lacking, beside: tuple[Question, tuple[str, ...]]) -> Way | None:
    run, of_pair = page_run.now(), isinstance(card.parameters, PerGroupParameters)
    if lacking is drawing.NO_PAIR or (card.setting is None and not of_pair):
        return None
    waits_for = ""
    if run is not None and "num_groups" in lacking.settings:
        waits_for = run.question.field("num_groups").label
    elif beside[1] and (of_pair or set(beside[1]) & set(lacking.settings)):
        waits_for = beside[0].field(beside[1][0]).label
    elif not of_pair:
        beside = QUESTION, ()
    return Way(None, lacking=lacking.said, fields=beside, waits_for=waits_for)


def _aim(card: Answer, asked: PrivateParameters | BoundDraw) -> str:
    """Return what the draw takes otherwise than the card's own bound, where both are for one release on
    purpose.
    """
    if isinstance(asked, BoundDraw):
        return _aim_of_bound(card, asked)
    if card.setting is None or asked.setting is None:
        return ""
    differing = card.setting.list_differences(asked.setting)
    if {"user_share", "is_table_mean"} & set(differing):
        return "The draw takes rows as independent."
    return "The draw aims at the least bias plus mean noise." if "measure" in differing else ""


def _aim_of_bound(card: Answer, asked: BoundDraw) -> str:
    if asked.wanted is Bounded.MODEL:
        return "For the bias the draw takes twice the share of rows cut."
    if asked.wanted is Bounded.TOTAL:
        best = asked.setting.measure is Measure.BOUND
        aim = "" if best else "The draw aims at the least bias plus mean noise. "
        return f"{aim}It counts a total below 0 as 0, and so does its program."
    return "The draw aims at the bound that is best from counts." if asked.setting.uses_values else ""


def _card(card: Answer, drawn: PrivateChoice | PrivatePair, asked: Asked, data: Dataset) -> Answer:
    """Return the card with what was drawn in place of what was read off the data."""
    if isinstance(asked, PrivatePairProblem):
        return actions.with_drawn(card, drawing.build_answer(card, drawn, asked, data), "pair")
    ends = drawing.ends_of(card, asked)
    if asked.wanted in (Wanted.CAP, Wanted.SMOOTH) and None in ends:  # On *Choose privately*.
        ends = setting.read_value(MEAN, "lower"), setting.read_value(MEAN, "upper")
    return actions.with_drawn(card, drawing.build_answer(card, drawn, asked, data, ends, range_facts(ends)))


def range_facts(ends: Ends) -> ReleaseFacts | None:
    """Return what the draw of a range guarantees; None where it is entered."""
    of_range = on_range.in_use(*ends)
    return None if of_range is None else of_range.facts


def with_range(card: Answer) -> Answer:
    """Return the card of a release whose range was drawn: its programs say so, and its detail what it comes
    to in all.
    """
    release = card.setting
    drawn = None if release is None else actions.range_in_use(release.lower, release.upper)
    if drawn is None or release is None or not session.dataset().is_private:
        return card
    found = card.code
    if found is not None:
        forms = tuple(
            (name, replace(one, range_drawn=drawn.facts) if isinstance(one, Choice) else one)
            for name, one in found.forms
        )
        found = CodeChoice(forms)
    if isinstance(
        card.disclosure, ReleaseFacts
    ):  # The bound was drawn, too, and the card has said what all of it is.
        return replace(card, code=found)
    total = format_rounded_up(drawn.facts.epsilon + release.epsilon)
    said = f"With the draw of the range, ε = {total} in all."
    return replace(card, detail=f"{card.detail} {said}".strip(), code=found)
