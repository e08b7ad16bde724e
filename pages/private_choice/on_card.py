"""The private way on the cards of other questions: their bound, drawn where it is asked for.

The machinery finds this module by `Question.draws` of the question that it belongs to; no question knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.answer import Answer
from dpcore.code import Choice
from dpcore.code.forms import CodeChoice
from dpcore.common.errors import InvalidInput
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters
from dpcore.per_group.parameters import PerGroupParameters
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice import release_bounds
from dpcore.private_choice.answer import drawing, words
from dpcore.private_choice.answer.drawing import Ends, Lacking
from dpcore.private_choice.choice import PrivateChoice
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from dpcore.private_choice.release_bounds import BoundDraw, Bounded
from dpcore.total.parameters import TotalParameters
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import actions, cached, on_pair, on_range
from pages.private_choice.on_pair import PairWay
from pages.shared.base import page_run
from pages.shared.fields import fields, setting
from pages.shared.session import session

PUBLIC_NUMBERS: dict[type, str] = {LearningParameters: "public_rows", TotalParameters: "highest_total"}
"""By what a page asks: its field of a public number that the draw of its bound needs."""


@dataclass(frozen=True)
class Way:
    """How the bound of a card is drawn.

    Attributes:
        asked: The question of the draw.
        drawn: The card of the number that was drawn for it last; None before a draw.
        offered: Whether the card has the button; the page that compares ways has its own.
        lacking: What must be entered before, a sentence; empty where nothing is.
        aim: What the draw takes otherwise than the card, a sentence; empty where nothing.
        enters: The page's field of a public number that the draw needs; empty where it needs none.
    """

    asked: PrivateParameters | BoundDraw
    drawn: Answer | None
    offered: bool = True
    lacking: str = ""
    aim: str = ""
    enters: str = ""

    @property
    def name(self) -> str:
        """What the button says."""
        what = "Draw it privately" if self.drawn is None else "Draw another"
        return f"{what} (ε = {format_rounded_up(self.asked.epsilon_choice)})"

    @property
    def help(self) -> str:
        """What a press does and spends."""
        said = f"Draws one bound for these settings, with an ε of its own. {actions.spending(self.asked, copy=False)}"
        compared = " *Choose privately* compares it with other ways."
        return said + (compared if isinstance(self.asked, PrivateParameters) else "")

    @property
    def cost(self) -> str:
        """What it typically costs, from public samples: these data are not looked at before the draw."""
        rows = self.asked.rows if isinstance(self.asked, BoundDraw) else None
        return f"{self.aim} {words.expected(cached.forecasts(self.asked), rows)}".strip()

    @property
    def waits_for(self) -> str:
        """Label of the page's field that is to be filled before; empty for none."""
        run = page_run.now()
        return (
            run.question.field(self.enters).label if run is not None and self.lacking and self.enters else ""
        )

    def ask(self) -> None:
        """The field of the public number that the draw needs, which is the page's own."""
        if self.enters and (run := page_run.now()) is not None:
            fields.draw(run.question, self.enters)

    def draw(self) -> None:
        """Draw it; for callbacks."""
        actions.draw_asked(self.asked)


def way(card: Answer) -> Way | PairWay | None:
    """The private way to the bound of a card on the data in use; None where there is none, or none is needed."""
    data = session.dataset()
    if not data.is_private:
        return None
    if isinstance(card.parameters, PerGroupParameters):
        actions.show_account()
        return on_pair.way(card, data)
    try:
        asked = drawing.asked_for(card, data, actions.beside())
        if asked is None or isinstance(asked, Lacking):
            return None if asked is None else _lacking(card, asked)
        assert not isinstance(asked, PrivatePairProblem)
        checked_users(data.histogram)
        problem = asked.choice
    except InvalidInput as refused:
        return _refused(card, refused)
    actions.show_account()
    column = release_bounds.column_of(asked, data) if isinstance(asked, BoundDraw) else ""
    fitting = [
        one
        for wanted, one in actions.choices()
        if wanted is asked.wanted
        and isinstance(one, PrivateChoice)
        and (one.problem, one.column) == (problem, column)
    ]
    here = card.parameters is asked
    if here and not fitting:
        return None
    needs_one = asked.wanted in (Bounded.MODEL, Bounded.TOTAL)
    return Way(
        asked,
        _card(card, fitting[-1], asked, data) if fitting else None,
        offered=not here,
        aim=_aim(card, asked),
        enters=_enters(card) if needs_one else "",
    )


def _enters(card: Answer) -> str:
    return PUBLIC_NUMBERS.get(type(card.parameters), "")


def _lacking(card: Answer, lacking: Lacking) -> Way | None:
    if card.setting is None or card.code is None:
        return None
    enters = next((name for name in lacking.settings if name == _enters(card)), "")
    return Way(PrivateParameters(card.setting.epsilon), None, lacking=lacking.said, enters=enters)


def _refused(card: Answer, refused: InvalidInput) -> Way | None:
    """Why there is no draw for these settings; on the page that compares ways they have been said to be wrong."""
    if card.setting is None or isinstance(card.parameters, PrivateParameters):
        return None
    said = " ".join(one.sentence for one in refused.problems)
    return Way(PrivateParameters(card.setting.epsilon), None, lacking=said, enters=_enters(card))


def _aim(card: Answer, asked: PrivateParameters | BoundDraw) -> str:
    """What the draw takes otherwise than the card's own bound, where both are for one release on purpose."""
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
        return "" if best else "The draw aims at the least bias plus mean noise."
    return "The draw aims at the bound that is best from counts." if asked.setting.uses_values else ""


def _card(card: Answer, drawn: PrivateChoice, asked: PrivateParameters | BoundDraw, data: Dataset) -> Answer:
    """The card with the drawn number in place of the one that was read off the data."""
    ends = drawing.ends_of(card, asked)
    if asked.wanted in (Wanted.CAP, Wanted.SMOOTH) and None in ends:  # On *Choose privately*.
        ends = setting.held(MEAN, "lower"), setting.held(MEAN, "upper")
    return actions.with_drawn(card, drawing.build_answer(card, drawn, asked, data, ends, range_facts(ends)))


def range_facts(ends: Ends) -> ReleaseFacts | None:
    """What the draw of a range guarantees; None where it is entered."""
    of_range = on_range.in_use(*ends)
    return None if of_range is None else of_range.facts


def with_range(card: Answer) -> Answer:
    """The card of a release whose range was drawn: its programs say so, and its detail what it comes to in all."""
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
