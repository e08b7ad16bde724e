"""The range of a value, drawn privately: the form for it, wherever a range is asked for, and what becomes of it.

The machinery finds this module by `Question.draws` of the question that it belongs to, as it does `on_card`.
"""

from __future__ import annotations

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from dpcore.private_choice import private_range
from dpcore.private_choice.answer import words
from dpcore.private_choice.parameters import Relation, Several, Wanted
from dpcore.private_choice.private_range import PrivateRange, RangeProblem
from pages.private_choice import actions, cached
from pages.private_choice.forms import IN_TABS, Known
from pages.private_choice.question import QUESTION
from pages.shared.base import dialogs, keys
from pages.shared.fields import fields, setting
from pages.shared.session import session


def offer(data: Dataset) -> None:
    """The button that leads to the form, where a page asks for the range of private values."""
    if data.values is None or data.release is not None or not data.is_private:
        return
    st.button(
        "Choose it privately",
        key="private_range_ask",
        icon=":material/casino:",
        help="Draws L and U from the data with an ε of its own. What you know of the quantity costs nothing.",
        on_click=dialogs.ask,
        args=(_dialog, data),
    )


@st.dialog(
    "A value range, chosen privately", width="large", icon=":material/casino:", on_dismiss=dialogs.closed
)
def _dialog(data: Dataset) -> None:
    if form(data):
        dialogs.closed()
        st.rerun()


def form(data: Dataset) -> bool:
    """Return what is known, what a draw costs, and its button. Returns whether it was pressed just now."""
    if data.values is None:
        st.info("A range is drawn from values, and the data in use have none.")
        return False
    st.markdown(
        "L and U from what you know of the quantity cost nothing, and are the first choice. Where you do not know "
        "them, they can be drawn, with an ε of their own."
    )
    asked = _asked()
    if isinstance(asked, InvalidInput):
        fields.say(asked.problems)
        return False
    if asked is None:
        st.caption("Fill in the fields to see what a draw spends and what it is good for.")
        return False
    st.markdown(f"{words.range_costs(asked)} {actions.would_spend(_facts(asked))}")
    if asked.users is not None:
        st.markdown(words.ways(cached.range_ways(asked, min(max(asked.users, 10.0), 1e6))))
    what = "L and U" if asked.lower is None else "U"
    return st.button(
        f"Draw {what} (ε = {format_rounded_up(asked.epsilon)})",
        key="private_range_draw",
        icon=":material/casino:",
        type=fields.main_button(),
        on_click=draw,
        args=(asked, data),
    )


def _facts(asked: RangeProblem) -> ReleaseFacts:
    return ReleaseFacts(asked.epsilon, 0.0, asked.neighbours, "not yet drawn")


def draw(asked: RangeProblem, data: Dataset) -> None:
    """Draw the range and let all pages clamp to it; for callbacks."""
    values = data.values
    assert values is not None
    drawn = actions.keep(Several.RANGE, lambda: private_range.choose(asked, values, charge=session.record))
    if isinstance(drawn, PrivateRange):
        setting.enter({"lower": drawn.lower, "upper": drawn.upper})


def in_use(lower: float | None, upper: float | None) -> PrivateRange | None:
    """Return the draw that a range in use is; None where it is entered."""
    return actions.range_in_use(lower, upper)


def bound_drawn() -> int:
    """h: the bound on rows of a mean that was drawn last from these data, which is paid for; 1 where none was."""
    found = [one.value for wanted, one in actions.numbers() if wanted is Wanted.CAP]
    return int(found[-1]) if found else 1


def _asked() -> RangeProblem | InvalidInput | None:
    state, key = st.session_state, QUESTION.key
    bound = int(state.get(key("range_bound")) or bound_drawn())  # The field holds a float.
    with st.container(horizontal=True, vertical_alignment="bottom"):
        known = fields.draw(QUESTION, "range_known")
        centre = fields.draw(QUESTION, "range_centre") if known is Known.TYPICAL else None
        lower = fields.draw(QUESTION, "range_lower") if known is Known.LOWEST else None
        epsilon = fields.draw(QUESTION, "range_epsilon")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        unit, largest = (fields.draw(QUESTION, name) for name in ("range_unit", "range_largest"))
        fields.draw(QUESTION, "range_bound")
        # A user with fewer rows than the bound counts in part.
        label = "" if bound == 1 else f"Users with {bound:,} rows or more, about"
        users = fields.draw(QUESTION, "range_users", label)
    lacking = {Known.TYPICAL: centre, Known.LOWEST: lower, Known.NEITHER: 0.0}[known] is None
    release = state.get(keys.EPSILON)
    if epsilon is None or unit is None or largest is None or lacking or release is None:
        return None
    if any(key(name) in state.get(keys.ASIDE, {}) for name in IN_TABS):
        return None  # Said below its field.
    relation: Relation = state.get(key("relation")) or QUESTION.first("relation")
    try:
        of = (float(release), epsilon, unit, largest, centre, lower, relation.neighbours, users, bound)
        return RangeProblem(*of)
    except InvalidInput as refused:
        return refused
