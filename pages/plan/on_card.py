"""*Add to the plan* on the pages of other questions: their release becomes a line.

The machinery finds this module by `Question.is_budget_plan`; no question knows it. Range, noise and ε are entered once
for all pages, so that a line has them from there.
"""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer
from dpcore.code import Quantity
from dpcore.common.text_fields import parse_numbers
from dpcore.plan.lines import Line, LineStatistic, list_missing_lines
from dpcore.plan.table import NEIGHBOURS
from dpcore.quantile.parameters import BaseKind, QuantileParameters, Weighting
from dpcore.quantile.programs import WEIGHTED_PROGRAMS
from pages.plan import line_table
from pages.plan.question import QUESTION

STATISTIC_BY_QUANTITY = {
    Quantity.MEAN: LineStatistic.MEAN,
    Quantity.SUM: LineStatistic.SUM,
    Quantity.COUNT: LineStatistic.ROWS,
    Quantity.GROUP_COUNTS: LineStatistic.GROUP_USERS,
    Quantity.GROUP_ROWS: LineStatistic.GROUP_ROWS,
    Quantity.GROUP_SUMS: LineStatistic.GROUP_SUMS,
}
"""By the release of another page."""
REFUSAL_BY_QUANTITY = {Quantity.GROUP_MEANS: "A plan has no means per group: add their sums and rows."}


def list_line_texts(card: Answer) -> tuple[str, ...]:
    """Return the texts of the plan's lines that release the same as the card; empty if there are none."""
    quantity = None if card.setting is None else card.setting.statistic
    if quantity is Quantity.QUANTILE:
        return tuple(Line(LineStatistic.QUANTILE, q).text for q in parse_numbers(card.parameters.quantiles))
    return (STATISTIC_BY_QUANTITY[quantity].value,) if quantity in STATISTIC_BY_QUANTITY else ()


def describe_differences(card: Answer) -> tuple[str, ...]:
    """Write how a line of *Budget plan* differs from the card's release; empty for no difference."""
    sentences, parameters = [], card.parameters
    if card.setting is not None and card.setting.neighbours is not NEIGHBOURS:
        sentences.append("There a user with all their rows is protected.")
    if getattr(parameters, "selection_share", None) is not None:
        sentences.append("There the list of groups is public.")
    if isinstance(parameters, QuantileParameters):
        if parameters.base is not BaseKind.UNIFORM:
            sentences.append("There the base distribution is uniform.")
        if parameters.weighting is not Weighting.SMOOTH and parameters.program in WEIGHTED_PROGRAMS:
            sentences.append("There rows of a user have smooth weights.")
    return tuple(sentences)


def draw_plan_button(card: Answer, card_key: str) -> None:
    """Draw the button that adds the card's lines, or a link to the plan that has them; without lines, why or nothing.

    Args:
        card: The answer that the card shows.
        card_key: Of the card.
    """
    line_texts = list_line_texts(card)
    if not line_texts:
        if card.setting is not None and card.setting.statistic in REFUSAL_BY_QUANTITY:
            st.caption(REFUSAL_BY_QUANTITY[card.setting.statistic])
        return
    if not list_missing_lines(st.session_state.get(QUESTION.get_key("lines")) or "", line_texts):
        st.page_link(QUESTION.page_path, label="Added to the plan: open Budget plan", icon=":material/check:")
        return
    advice = "Plan divides one budget among several numbers, with this range and noise."
    st.button(
        "Add to the plan",
        key=f"{card_key}_plan",
        icon=QUESTION.icon,
        type="tertiary",
        help=" ".join((advice, *describe_differences(card))),
        on_click=line_table.add_lines,
        args=(line_texts,),
    )
