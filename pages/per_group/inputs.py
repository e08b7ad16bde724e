"""The inputs of the page Group by."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpcore.common.parameters import Place
from dpcore.common.wording import format_number
from dpcore.dataset import Dataset
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from pages.per_group.question import QUESTION
from pages.shared.data import group_list
from pages.shared.fields import fields
from pages.shared.render import question_page
from pages.shared.screen import layout
from pages.shared.session import session

GROUPS_QUESTION = (
    "**Which groups do you release?** Paste their names from what you know: "
    "a list from these data would leak."
)


def list_statistics(dataset: Dataset) -> list[Statistic]:
    """Return the statistics that the page offers for the data.

    The sum of non-negative amounts is left out if public data hold a negative sum.
    """
    pairs = dataset.pairs
    if pairs is None and dataset.pair_sizes is not None:
        return [Statistic.ROWS, Statistic.USERS]
    if pairs is None or pairs.rows is None:
        return [Statistic.USERS]
    if pairs.sums is None:
        return [Statistic.ROWS, Statistic.USERS]
    # One user with a negative sum must not decide what may be drawn privately.
    sum_statistics = [Statistic.SUM] if dataset.is_private or float(pairs.sums.min()) >= 0.0 else []
    return [Statistic.ROWS, Statistic.USERS, *sum_statistics, Statistic.SIGNED_SUM, Statistic.MEAN]


def read_inputs(dataset: Dataset, slots: layout.PageSlots) -> PerGroupParameters | None:
    """Draw the inputs and return the parameters.

    Return None, with sentences on the page, if they are refused or the range of a mean is missing.
    """
    is_session_dataset = dataset is session.get_dataset()
    state, get_key = st.session_state, QUESTION.get_key
    options_by_field: dict[str, list[Any]] = {
        "statistic": list_statistics(dataset),
        "objective": list(Objective),
    }
    is_mean = (
        state.get(get_key("statistic")) is Statistic.MEAN and Statistic.MEAN in options_by_field["statistic"]
    )
    if is_mean:
        options_by_field["objective"] = [objective for objective in Objective if not objective.is_relative]
    unused_fields = question_page.start_fields(QUESTION, options_by_field, is_session_dataset)
    end_name_by_key = {get_key("lower"): "L", get_key("upper"): "U"}
    # A link of another statistic has no range, and leaves the fields empty.
    if (
        is_mean
        and all(state[range_key] is None for range_key in end_name_by_key)
        and state.get(get_key("proposed"))
    ):
        state[get_key("lower")], state[get_key("upper")] = state[get_key("proposed")]
    # Groups must not be read off private data, so that the page asks for them at once.
    asks_groups = dataset.is_private and not is_mean and "groups" not in unused_fields
    has_group_list = any((state[get_key(field_name)] or "").strip() for field_name in ("groups", "edges"))
    if has_group_list and "num_groups" not in unused_fields:
        unused_fields.append("num_groups")  # The list says how many they are.
    # A distribution of pairs has no names to compare a list with.
    groups_field_name = "num_groups" if dataset.pairs is None else "groups"
    line_fields = ("lower", "upper") if is_mean else (groups_field_name,) if asks_groups else ("program",)

    def draw_fields(*field_names: str) -> None:
        """Draw the fields with these names, without unused ones."""
        for field_name in field_names:
            if field_name not in unused_fields:
                fields.draw_field(QUESTION, field_name, offered_options=options_by_field.get(field_name, ()))

    with slots.line:
        draw_fields("statistic", *line_fields)
    with slots.line.popover("More settings", icon=":material/tune:", key="per_group_more"):
        draw_fields(
            *(
                field_name
                for field_name in ("objective", "floor", "selection")
                if field_name not in line_fields
            )
        )
        with fields.build_row():
            draw_fields("selection_share", "selection_delta", "min_users")
        if "groups" not in unused_fields:
            group_list.draw_group_list(QUESTION, includes_field="groups" not in line_fields)
        other_field_names = "edges", "num_groups", "mechanism", "delta", "program", "neighbours"
        draw_fields(*(field_name for field_name in other_field_names if field_name not in line_fields))
    with slots.notes:
        if asks_groups and not has_group_list and state[get_key("num_groups")] is None:
            st.markdown(GROUPS_QUESTION)
        if "floor" not in unused_fields:
            is_for_large_groups = state[get_key("objective")] is Objective.LARGE_GROUPS
            start_text = "Groups are large from" if is_for_large_groups else "Errors are divided by at least"
            floor_text = "…" if state[get_key("floor")] is None else format_number(state[get_key("floor")])
            st.caption(f"{start_text} {floor_text} (*More settings*).")
        if dataset.pairs is not None and dataset.pairs.rows is None:
            st.caption("These data have no rows per group: only users can be counted.")
        if is_mean:
            if question_page.ask_for_range(dataset, end_name_by_key):
                return None
            session.explain_cleared(end_name_by_key)
        parameters: PerGroupParameters | None = fields.build_page_parameters(
            QUESTION, unused_names=unused_fields, optional_names=QUESTION.list_fields(Place.OWN)
        )
    return parameters
