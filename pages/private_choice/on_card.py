"""The private way on the cards of other questions: their bound, drawn where it is asked for.

The machinery finds this module by `Question.draws` of the question that it belongs to; no question knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpcore.answer import Answer, Number
from dpcore.code.forms import CodeChoice
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import rounded_up
from dpcore.mean import MeanParameters
from dpcore.per_group import PerGroupParameters
from dpcore.private_choice.answer import code, words
from dpcore.private_choice.choice import PrivateChoice, shown
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import actions, cached, on_pair, on_range
from pages.private_choice.on_pair import PairWay
from pages.private_choice.question import QUESTION
from pages.shared.fields import setting
from pages.shared.session import session


@dataclass(frozen=True)
class Way:
    """How the bound of a card is drawn.

    Attributes:
        asked: The question of the draw.
        drawn: The card of the number that was drawn for it last; None before a draw.
        offered: Whether the card has the button; the page that compares ways has its own.
        lacking: What must be entered before, a sentence; empty where nothing is.
    """

    asked: PrivateParameters
    drawn: Answer | None
    offered: bool = True
    lacking: str = ""

    @property
    def name(self) -> str:
        """What the button says."""
        what = "Draw it privately" if self.drawn is None else "Draw another"
        return f"{what} (ε = {rounded_up(self.asked.epsilon_choice)})"

    @property
    def help(self) -> str:
        """What a press does and spends."""
        return (
            f"Draws one bound for these settings, with an ε of its own. {actions.spending(self.asked, copy=False)} "
            "*Choose privately* compares it with other ways."
        )

    @property
    def cost(self) -> str:
        """What it typically costs, from public samples: these data are not looked at before the draw."""
        return words.expected(cached.forecasts(self.asked))

    def draw(self) -> None:
        """Draw it; for callbacks."""
        actions.draw_choice(self.asked.choice, self.asked.wanted)


def way(card: Answer) -> Way | PairWay | None:
    """The private way to the bound of a card on the data in use; None where there is none, or none is needed."""
    data = session.dataset()
    if not data.is_private:
        return None
    if isinstance(card.parameters, PerGroupParameters):
        actions.show_account()
        return on_pair.way(card, data)
    try:
        asked = _asked(card)
        if asked is None:
            return None
        checked_users(data.histogram)
        problem = asked.choice
    except InvalidInput:
        return None
    actions.show_account()
    fitting = [one for wanted, one in actions.numbers() if wanted is asked.wanted and one.problem == problem]
    here = card.parameters is asked
    if here and not fitting:
        return None
    return Way(asked, _card(card, fitting[-1], asked) if fitting else None, offered=not here)


def _asked(card: Answer) -> PrivateParameters | None:
    question, state = card.parameters, st.session_state
    entered = {name: state.get(QUESTION.key(name)) for name in ("epsilon_choice", "largest", "margin")}
    own = {name: value for name, value in entered.items() if value is not None}
    if "largest" in own:
        own["largest"] = int(own["largest"])
    if isinstance(question, PrivateParameters):
        return question
    return None if card.setting is None else PrivateParameters.of_release(card.setting, **own)


def _card(card: Answer, drawn: PrivateChoice, asked: PrivateParameters) -> Answer:
    """The card with the drawn number in place of the one that was read off the data."""
    rows = asked.wanted in (Wanted.CAP, Wanted.SUM)
    text = wording.counted(int(drawn.value), "row") if rows else shown(drawn)
    name = words.NUMBER_NAMES[asked.wanted]
    return replace(
        card,
        headline=f"Keep at most {text} of each user." if rows else f"Take {text} as the {name}.",
        numbers=(
            Number(
                "Bound, drawn privately" if rows else f"{wording.capital(name)}, drawn privately",
                text,
                "per user" if rows else "",
                value=int(drawn.value) if rows else drawn.value,
                unit="rows per user",
            ),
        ),
        good_enough="",
        detail=f"{_spent(drawn, asked, _ends(card, asked))} This bound may be published. The figure may not: it shows "
        "private data.",
        disclosure=drawn.facts,
        code=_code(card, drawn, asked),
    )


def _spent(drawn: PrivateChoice, asked: PrivateParameters, ends: tuple[float | None, float | None]) -> str:
    """What was spent on the bound, and on the range where that was drawn, and what it is with the release."""
    of_range = on_range.in_use(*ends)
    on_it = 0.0 if of_range is None else of_range.facts.epsilon
    total = rounded_up(drawn.facts.epsilon + asked.epsilon + on_it)
    said = f"The draw has spent ε = {rounded_up(drawn.facts.epsilon)}"
    if of_range is not None:
        said += f", that of the range ε = {rounded_up(on_it)}"
    return f"{said}; the release adds ε = {rounded_up(asked.epsilon)}: ε = {total} in all."


def _ends(card: Answer, asked: PrivateParameters) -> tuple[float | None, float | None]:
    """The range of the release; of a count none."""
    question = card.parameters
    if isinstance(question, MeanParameters):
        return question.lower, question.upper
    if asked.wanted in (Wanted.CAP, Wanted.SMOOTH):
        return setting.held(MEAN, "lower"), setting.held(MEAN, "upper")
    return None, None


def _code(card: Answer, drawn: PrivateChoice, asked: PrivateParameters) -> CodeChoice | None:
    """The drawn number as a program; None where a mean has no range yet, and for a quantile, which bounds nothing."""
    if asked.wanted is Wanted.QUANTILE:
        return None
    ends = _ends(card, asked)
    if asked.wanted in (Wanted.CAP, Wanted.SMOOTH) and None in ends:
        return None
    return code.of_private(drawn, asked.wanted, asked.epsilon, session.dataset(), *ends)
