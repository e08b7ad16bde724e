"""The private way on the cards of other questions: their bound, drawn where it is asked for.

The machinery finds this module by `Question.draws` of the question that it belongs to; no question knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import streamlit as st

from dpcore.answer import Answer, Number, ReleaseSetting
from dpcore.code import Choice, Released
from dpcore.code.forms import CodeChoice, summed_column
from dpcore.common import wording
from dpcore.common.errors import InvalidInput
from dpcore.common.markdown import plain
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import ReleaseFacts, rounded_up
from dpcore.dataset import Contribution, Dataset
from dpcore.learning import LearningParameters
from dpcore.mean import MeanParameters
from dpcore.per_group import PerGroupParameters
from dpcore.private_choice import release_bounds
from dpcore.private_choice.answer import code, words
from dpcore.private_choice.choice import PrivateChoice, shown
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters, Wanted
from dpcore.private_choice.release_bounds import BoundDraw, Bounded
from dpcore.quantile.parameters import QuantileParameters
from dpcore.total.parameters import TotalParameters
from pages.mean.question import QUESTION as MEAN
from pages.private_choice import actions, cached, on_pair, on_range
from pages.private_choice.on_pair import PairWay
from pages.private_choice.question import QUESTION
from pages.shared.fields import fields, setting
from pages.shared.session import session

FROM_COUNTS = (
    "No ε covers a look at the values. *From counts* (*More settings*) needs none where counts are public."
)
BINS = (
    "Of so many users only bins of totals are kept, and one user can move a whole bin: no draw from them would keep "
    "its ε. Bring the file again (*Your data*) with the total of {} as the contribution (*More about users*)."
)
SIGNED = (
    "A bound is drawn for totals of at least 0 only: where a total may have either sign, its best range is no single "
    "number. Enter L and U that you know without these data."
)
LARGEST_TOTAL = (
    "To draw it privately, enter a highest total of one user above. Take it from what the quantity is, not from the "
    "data."
)
LEARNER_ROWS = (
    "To draw it privately, enter about how many rows there are above: a number that may be public. Rather too few than "
    "too many."
)
NO_DRAW = (
    "No draw aims at this bound. *Choose privately* releases a private copy of the counts, on which this page "
    "answers."
)


ROWS, LARGEST = QUESTION.key("learner_rows"), QUESTION.key("total_largest")


class Entered(NamedTuple):
    """A field of a public number: what it is called, its key, and what is said of it."""

    label: str
    key: str
    help: str


@dataclass(frozen=True)
class Way:
    """How the bound of a card is drawn.

    Attributes:
        asked: The question of the draw.
        drawn: The card of the number that was drawn for it last; None before a draw.
        offered: Whether the card has the button; the page that compares ways has its own.
        lacking: What must be entered before, a sentence; empty where nothing is.
        aim: What the draw takes otherwise than the card, a sentence; empty where nothing.
        entered: The public number that the draw needs besides the page's; None where it needs none.
    """

    asked: PrivateParameters | BoundDraw
    drawn: Answer | None
    offered: bool = True
    lacking: str = ""
    aim: str = ""
    entered: Entered | None = None

    @property
    def name(self) -> str:
        """What the button says."""
        what = "Draw it privately" if self.drawn is None else "Draw another"
        return f"{what} (ε = {rounded_up(self.asked.epsilon_choice)})"

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

    def ask(self) -> None:
        """The field of the public number that the draw needs besides the page's."""
        if self.entered is not None:
            fields.number(*self.entered, whole=self.entered.key == ROWS, width=230)

    def draw(self) -> None:
        """Draw it; for callbacks."""
        if isinstance(self.asked, BoundDraw):
            actions.draw_bound(self.asked)
        else:
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
        if asked is None or isinstance(asked, Way):
            return asked or _lacking(card)
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
    return Way(
        asked,
        _card(card, fitting[-1], asked) if fitting else None,
        offered=not here,
        aim=_aim(card, asked),
        entered=_entered(asked.wanted, data),
    )


def _entered(wanted: Wanted | Bounded, data: Dataset) -> Entered | None:
    if wanted is Bounded.MODEL:
        return Entered("Rows, about", ROWS, "A public guess, for the draw alone. Not from these data.")
    if wanted is Bounded.TOTAL:
        of = "" if data.values is None else f" of {data.values.column}"
        help = "Public: from what the quantity is. No bound above it is drawn. For the draw alone."
        return Entered(f"Highest total{of}", LARGEST, help)
    return None


def _refused(card: Answer, refused: InvalidInput) -> Way | None:
    """Why there is no draw for these settings; on the page that compares ways they have been said to be wrong."""
    if card.setting is None or isinstance(card.parameters, PrivateParameters):
        return None
    wanted = Bounded.MODEL if card.setting.released is Released.MODEL else Bounded.TOTAL
    needs_one = isinstance(card.parameters, (LearningParameters, TotalParameters))
    return Way(
        PrivateParameters(card.setting.epsilon),
        None,
        lacking=" ".join(one.sentence for one in refused.problems),
        entered=_entered(wanted, session.dataset()) if needs_one else None,
    )


def _aim(card: Answer, asked: PrivateParameters | BoundDraw) -> str:
    """What the draw takes otherwise than the card's own bound, where both are for one release on purpose."""
    if isinstance(asked, BoundDraw):
        return _aim_of_bound(card, asked)
    if card.setting is None or asked.setting is None:
        return ""
    differing = card.setting.differing(asked.setting)
    if {"user_share", "of_table"} & set(differing):
        return "The draw takes rows as independent."
    return "The draw aims at the least bias plus mean noise." if "measure" in differing else ""


def _aim_of_bound(card: Answer, asked: BoundDraw) -> str:
    if asked.wanted is Bounded.MODEL:
        return "The draw takes twice the share of rows cut for the bias."
    if asked.wanted is Bounded.TOTAL:
        best = asked.setting.measure is Measure.BOUND
        return "" if best else "The draw aims at the least bias plus mean noise."
    return "The draw aims at the bound that is best from counts." if asked.setting.values_read else ""


def _lacking(card: Answer) -> Way | None:
    """What to do where no draw aims at the bound of a card that was read off private data; None where it leaks nothing.

    A mean and a quantile whose counts are taken as public have nothing to hide in a bound that is read off them.
    """
    setting = card.setting
    if setting is None or (setting.values_read and setting.released is Released.QUANTILE):
        said = FROM_COUNTS if setting is not None else ""
    elif not setting.private_counts:
        said = ""
    elif setting.released is Released.SUM:
        said = BINS.format(plain(setting.column)) if setting.measure is not None else SIGNED
    else:
        said = NO_DRAW
    if not said or setting is None or card.code is None:
        return None
    return Way(PrivateParameters(setting.epsilon), None, lacking=said)


def _asked(card: Answer, data: Dataset) -> PrivateParameters | BoundDraw | Way | None:
    """The question of the draw; what it lacks, where a public number is to be entered; None where there is no draw."""
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
    if release is None:
        return None
    budget = float(own.get("epsilon_choice", QUESTION.first("epsilon_choice")))
    largest = int(own.get("largest", QUESTION.first("largest")))
    if isinstance(question, QuantileParameters):
        return release_bounds.of_quantile(question, release, budget, largest)
    if isinstance(question, LearningParameters):
        rows = state.get(ROWS)
        if rows is None:
            return _missing(release, LEARNER_ROWS, Bounded.MODEL, data)
        return release_bounds.of_learner(question, release, rows, budget, largest)
    if release.released is Released.SUM and release.measure is not None:
        if release_bounds.drawable_totals(data) is None:
            return None
        highest = state.get(LARGEST)
        if highest is None:
            return _missing(release, LARGEST_TOTAL, Bounded.TOTAL, data)
        return release_bounds.of_total(release, highest, budget, own.get("margin", 0.0))
    return PrivateParameters.of_release(release, **own)


def _missing(release: ReleaseSetting, said: str, wanted: Bounded, data: Dataset) -> Way:
    return Way(PrivateParameters(release.epsilon), None, lacking=said, entered=_entered(wanted, data))


def _of_bound(drawn: PrivateChoice, asked: BoundDraw) -> tuple[str, Number]:
    """Headline and number of a bound that was drawn for a quantile, a learner or a column's sum."""
    name, text = "Bound, drawn privately", shown(drawn)
    if asked.wanted is Bounded.TOTAL:
        said = f"Clamp each user's total of {plain(drawn.column)} at {text}."
        return said, Number(name, text, "", value=drawn.value, unit=f"{drawn.column} per user")
    text = wording.counted(drawn.value, "row")
    smooth = asked.wanted is Bounded.QUANTILE_SMOOTH
    said = f"Let no user weigh more than {text}." if smooth else f"Keep at most {text} of each user."
    return said, Number(name, text, "per user", value=drawn.value, unit="rows per user")


def _card(card: Answer, drawn: PrivateChoice, asked: PrivateParameters | BoundDraw) -> Answer:
    """The card with the drawn number in place of the one that was read off the data."""
    if isinstance(asked, BoundDraw):
        headline, number = _of_bound(drawn, asked)
    else:
        headline, number = _of_choice(drawn, asked)
    ends = _ends(card, asked)
    return replace(
        card,
        headline=headline,
        numbers=(number,),
        good_enough="",
        detail=f"{_spent(drawn, asked, ends)} This bound may be published. The figure may not: it shows private data.",
        disclosure=drawn.facts,
        code=_code(card, drawn, asked),
    )


def _of_choice(drawn: PrivateChoice, asked: PrivateParameters) -> tuple[str, Number]:
    rows = asked.wanted in (Wanted.CAP, Wanted.SUM)
    text = wording.counted(int(drawn.value), "row") if rows else shown(drawn)
    name = words.NUMBER_NAMES[asked.wanted]
    headline = f"Keep at most {text} of each user." if rows else f"Take {text} as the {name}."
    unit = "rows per user"
    if asked.wanted is Wanted.SUM and (column := summed_column(session.dataset())):
        text, unit = wording.number(drawn.value, 12), f"{column} per user"
        headline = f"Clamp each user's total of {plain(column)} at {text}."
    return headline, Number(
        "Bound, drawn privately" if rows else f"{wording.capital(name)}, drawn privately",
        text,
        "per user" if rows else "",
        value=int(drawn.value) if rows else drawn.value,
        unit=unit,
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


def _spent(
    drawn: PrivateChoice, asked: PrivateParameters | BoundDraw, ends: tuple[float | None, float | None]
) -> str:
    """What was spent on the bound, and on the range where that was drawn, and what it is with the release."""
    of_range = on_range.in_use(*ends)
    on_it = 0.0 if of_range is None else of_range.facts.epsilon
    total = rounded_up(drawn.facts.epsilon + asked.epsilon + on_it)
    said = f"The draw has spent ε = {rounded_up(drawn.facts.epsilon)}"
    if of_range is not None:
        said += f", that of the range ε = {rounded_up(on_it)}"
    delta = f", δ = {rounded_up(asked.release_delta)}" if asked.release_delta is not None else ""
    return f"{said}; the release adds ε = {rounded_up(asked.epsilon)}{delta}: ε = {total}{delta} in all."


def _ends(card: Answer, asked: PrivateParameters | BoundDraw) -> tuple[float | None, float | None]:
    """The range of the release; of a count none."""
    question = card.parameters
    if isinstance(question, MeanParameters):
        return question.lower, question.upper
    if asked.wanted in (Bounded.QUANTILE_SMOOTH, Bounded.QUANTILE_CAP) and card.setting is not None:
        return card.setting.lower, card.setting.upper
    if asked.wanted in (Wanted.CAP, Wanted.SMOOTH):
        return setting.held(MEAN, "lower"), setting.held(MEAN, "upper")
    return None, None


def _code(card: Answer, drawn: PrivateChoice, asked: PrivateParameters | BoundDraw) -> CodeChoice | None:
    """The drawn number as a program; None where a mean has no range yet, and for a quantile, which bounds nothing."""
    if asked.wanted is Wanted.QUANTILE:
        return None
    if asked.wanted in (Bounded.QUANTILE_SMOOTH, Bounded.QUANTILE_CAP):
        return None if card.code is None else code.redrawn(card.code, drawn, asked.wanted)
    ends = _ends(card, asked)
    if asked.wanted in (Wanted.CAP, Wanted.SMOOTH) and None in ends:
        return None
    facts = actions.range_drawn(*ends)
    delta = asked.release_delta
    return code.of_private(drawn, asked.wanted, asked.epsilon, session.dataset(), *ends, facts, delta)
