"""The private way on the cards of other questions: their bound, drawn where it is asked for.

The machinery finds this module by `Question.draws` of the question that it belongs to; no question knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from dpcore.answer import Answer, Number
from dpcore.code import Choice, Released
from dpcore.code.forms import CodeChoice, summed_column
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.markdown import plain
from dpcore.common.privacy import ReleaseFacts, rounded_up
from dpcore.dataset import Contribution, Dataset
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

FROM_COUNTS = (
    "No ε covers a look at the values. *From counts* (*More settings*) needs none where counts are public."
)
TOTALS = (
    "To draw it privately, bring the file again (*Your data*): under *More about users* a contribution is then the "
    "total of {}."
)
NO_DRAW = (
    "No draw aims at this bound. *Choose privately* releases a private copy of the counts, on which this page "
    "answers."
)


@dataclass(frozen=True)
class Way:
    """How the bound of a card is drawn.

    Attributes:
        asked: The question of the draw.
        drawn: The card of the number that was drawn for it last; None before a draw.
        offered: Whether the card has the button; the page that compares ways has its own.
        lacking: What must be entered before, a sentence; empty where nothing is.
        aim: What the draw takes otherwise than the card, a sentence; empty where nothing.
    """

    asked: PrivateParameters
    drawn: Answer | None
    offered: bool = True
    lacking: str = ""
    aim: str = ""

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
        return f"{self.aim} {words.expected(cached.forecasts(self.asked))}".strip()

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
        asked = _asked(card, data)
        if asked is None:
            return _lacking(card, data)
        checked_users(data.histogram)
        problem = asked.choice
    except InvalidInput:
        return None
    actions.show_account()
    fitting = [one for wanted, one in actions.numbers() if wanted is asked.wanted and one.problem == problem]
    here = card.parameters is asked
    if here and not fitting:
        return None
    return Way(
        asked, _card(card, fitting[-1], asked) if fitting else None, offered=not here, aim=_aim(card, asked)
    )


def _aim(card: Answer, asked: PrivateParameters) -> str:
    """What the draw takes otherwise than the card's own bound, where both are for one release on purpose."""
    if card.setting is None or asked.setting is None:
        return ""
    differing = card.setting.differing(asked.setting)
    if {"user_share", "of_table"} & set(differing):
        return "The draw takes rows as independent."
    return "The draw aims at the least bias plus mean noise." if "measure" in differing else ""


def _lacking(card: Answer, data: Dataset) -> Way | None:
    """What to do where no draw aims at the bound of a card that was read off private data; None where it leaks nothing.

    A mean and a quantile whose counts are taken as public have nothing to hide in a bound that is read off them.
    """
    setting = card.setting
    if setting is None or (setting.values_read and setting.released is Released.QUANTILE):
        said = FROM_COUNTS if setting is not None else ""
    elif not setting.private_counts:
        said = ""
    elif setting.released is Released.SUM and setting.measure is not None:
        said = TOTALS.format(plain(setting.column))
    else:
        said = NO_DRAW
    if not said or setting is None or card.code is None:
        return None
    return Way(PrivateParameters(setting.epsilon), None, lacking=said)


def _asked(card: Answer, data: Dataset) -> PrivateParameters | None:
    question, state = card.parameters, st.session_state
    entered = {name: state.get(QUESTION.key(name)) for name in ("epsilon_choice", "largest", "margin")}
    own = {name: value for name, value in entered.items() if value is not None}
    if "largest" in own:
        own["largest"] = int(own["largest"])
    if isinstance(question, PrivateParameters):
        return question
    release = card.setting
    # Where the contributions are a column's total, a row is a unit of it, and its sum is a count of them.
    if release is not None and release.released is Released.SUM and data.contribution is Contribution.TOTAL:
        release = replace(release, released=Released.COUNT)
    return None if release is None else PrivateParameters.of_release(release, **own)


def _card(card: Answer, drawn: PrivateChoice, asked: PrivateParameters) -> Answer:
    """The card with the drawn number in place of the one that was read off the data."""
    rows = asked.wanted in (Wanted.CAP, Wanted.SUM)
    text = wording.counted(int(drawn.value), "row") if rows else shown(drawn)
    name = words.NUMBER_NAMES[asked.wanted]
    headline = f"Keep at most {text} of each user." if rows else f"Take {text} as the {name}."
    unit = "rows per user"
    if asked.wanted is Wanted.SUM and (column := summed_column(session.dataset())):
        text, unit = wording.number(drawn.value, 12), f"{column} per user"
        headline = f"Clamp each user's total of {plain(column)} at {text}."
    return replace(
        card,
        headline=headline,
        numbers=(
            Number(
                "Bound, drawn privately" if rows else f"{wording.capital(name)}, drawn privately",
                text,
                "per user" if rows else "",
                value=int(drawn.value) if rows else drawn.value,
                unit=unit,
            ),
        ),
        good_enough="",
        detail=f"{_spent(drawn, asked, _ends(card, asked))} This bound may be published. The figure may not: it shows "
        "private data.",
        disclosure=drawn.facts,
        code=_code(card, drawn, asked),
    )


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
        found = replace(found, forms=forms)
    if isinstance(
        card.disclosure, ReleaseFacts
    ):  # The bound was drawn, too, and the card has said what all of it is.
        return replace(card, code=found)
    total = rounded_up(drawn.facts.epsilon + release.epsilon)
    said = f"With the draw of the range, ε = {total} in all."
    return replace(card, detail=f"{card.detail} {said}".strip(), code=found)


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
    facts = actions.range_drawn(*ends)
    return code.of_private(drawn, asked.wanted, asked.epsilon, session.dataset(), *ends, facts)
