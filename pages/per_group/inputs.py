"""The inputs of the page Per group."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from pages.per_group.question import QUESTION
from pages.shared.fields import fields
from pages.shared.render import question_page
from pages.shared.screen import layout
from pages.shared.session import session


def list_statistics(dataset: Dataset) -> list[Statistic]:
    """Return the statistics that can be computed from the data."""
    pairs = dataset.pairs
    if pairs is None and dataset.pair_sizes is not None:
        return [Statistic.ROWS, Statistic.USERS]
    if pairs is None or pairs.rows is None:
        return [Statistic.USERS]
    if pairs.sums is None:
        return [Statistic.ROWS, Statistic.USERS]
    # One user with a negative sum must not decide what may be drawn privately.
    sums = [Statistic.SUM] if dataset.is_private or float(pairs.sums.min()) >= 0.0 else []
    return [Statistic.ROWS, Statistic.USERS, *sums, Statistic.SIGNED_SUM, Statistic.MEAN]


def read_inputs(dataset: Dataset, slots: layout.PageSlots) -> PerGroupParameters | None:
    """Draw the inputs and return the parameters; None, with the sentences on the page, if they are refused."""
    shares = dataset is session.dataset()
    state, key = st.session_state, QUESTION.key
    options: dict[str, list[Any]] = {"statistic": list_statistics(dataset), "objective": list(Objective)}
    is_mean = state.get(key("statistic")) is Statistic.MEAN and Statistic.MEAN in options["statistic"]
    if is_mean:
        options["objective"] = [objective for objective in Objective if not objective.is_relative]
    unused = question_page.start_fields(QUESTION, options, shares)
    ends = {key("lower"): "L", key("upper"): "U"}
    # A link of another statistic has no range, and leaves the fields empty.
    if is_mean and all(state[end] is None for end in ends) and state.get(key("proposed")):
        state[key("lower")], state[key("upper")] = state[key("proposed")]
    # The number of groups must not be read off private data, so that the page asks for it at once.
    asks_number = dataset.is_private and not is_mean and "num_groups" not in unused
    in_line = ("lower", "upper") if is_mean else ("num_groups",) if asks_number else ("program",)

    def draw(*names: str) -> None:
        for name in names:
            if name not in unused:
                fields.draw(QUESTION, name, options=options.get(name))

    with slots.line:
        draw("statistic", *in_line)
    with slots.line.popover("More settings", icon=":material/tune:", key="per_group_more"):
        draw(*(name for name in ("objective", "floor", "selection") if name not in in_line))
        with fields.row():
            draw("selection_share", "selection_delta")
        names = "num_groups", "mechanism", "delta", "program", "neighbours"
        draw(*(name for name in names if name not in in_line))
    with slots.notes:
        if "floor" not in unused:
            is_large = state[key("objective")] is Objective.LARGE_GROUPS
            start = "Groups are large from" if is_large else "Errors are divided by at least"
            floor = "…" if state[key("floor")] is None else wording.number(state[key("floor")])
            st.caption(f"{start} {floor} (*More settings*).")
        if dataset.pairs is not None and dataset.pairs.rows is None:
            st.caption("These data have no rows per group: only users can be counted.")
        if is_mean:
            if question_page.ask_for_range(dataset, ends):
                return None
            session.explain_cleared(ends)
        parameters: PerGroupParameters | None = fields.build(
            QUESTION, unused_names=unused, optional_names=QUESTION.own_fields
        )
    return parameters
