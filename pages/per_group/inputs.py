"""What a person enters on Per group, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.noise_error import NoiseKind
from dpcore.dataset import Dataset
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from pages.per_group.question import QUESTION
from pages.shared.fields import fields
from pages.shared.screen import layout, value_range
from pages.shared.session import session, stand_ins


def offered(data: Dataset) -> list[Statistic]:
    """Return the statistics that the data have what is needed for."""
    pairs = data.pairs
    if pairs is None and data.pair_sizes is not None:
        return [Statistic.ROWS, Statistic.USERS]
    if pairs is None or pairs.rows is None:
        return [Statistic.USERS]
    if pairs.sums is None:
        return [Statistic.ROWS, Statistic.USERS]
    # One user with a negative sum must not decide what may be drawn privately.
    sums = [Statistic.SUM] if data.is_private or float(pairs.sums.min()) >= 0.0 else []
    return [Statistic.ROWS, Statistic.USERS, *sums, Statistic.SIGNED_SUM, Statistic.MEAN]


def _shown(floor: float | None) -> str:
    return "…" if floor is None else wording.number(floor)


def read(data: Dataset, places: layout.Places) -> PerGroupParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION, uses_shared_data=data is session.dataset())
    state, key = st.session_state, QUESTION.key
    # A link with Laplace noise has no delta; the field must not be empty once the noise is changed to Gaussian.
    fields.refill(QUESTION, "floor", "selection_share", "selection_delta")
    if state[key("noise")] is not NoiseKind.GAUSSIAN:
        fields.refill(QUESTION, "delta")
    statistics = offered(data)
    if state[key("statistic")] not in statistics:
        state[key("statistic")] = statistics[0]
    with places.line:
        statistic = fields.draw(QUESTION, "statistic", options=statistics)
        mean = statistic is Statistic.MEAN
        ends = {key("lower"): "L", key("upper"): "U"}
        if mean:
            # A link of another statistic has no range, and leaves the fields empty.
            if all(state[end] is None for end in ends) and state.get(key("proposed")):
                state[key("lower")], state[key("upper")] = state[key("proposed")]
            fields.draw_all(QUESTION, "lower", "upper")
        objectives = [o for o in Objective if not (mean and o.relative)]
        if state[key("objective")] not in objectives:
            state[key("objective")] = Objective.ROOT_MEAN_SQUARE
        # Of private data which groups there are must not be read off them: the list's number is asked for at once.
        listed = data.is_private and not mean and not state[key("selection")].private
        if listed:
            fields.draw(QUESTION, "num_groups")
        elif not mean:
            objective = fields.draw(QUESTION, "objective", options=objectives)
    with places.more("per_group_more"):
        if mean or listed:  # A range, or the list, takes the room in the line.
            objective = fields.draw(QUESTION, "objective", options=objectives)
        if objective.floored:
            fields.draw(QUESTION, "floor")
        private = statistic.non_negative and fields.draw(QUESTION, "selection").private
        if private:
            fields.draw_row(QUESTION, "selection_share", "selection_delta")
        elif not listed:
            fields.draw(QUESTION, "num_groups")
        noise = fields.draw(QUESTION, "noise")
        if noise is NoiseKind.GAUSSIAN:
            fields.draw(QUESTION, "delta")
        fields.draw(QUESTION, "neighbours")
    unused = [
        *(() if noise is NoiseKind.GAUSSIAN else ("delta",)),
        *(() if objective.floored else ("floor",)),
        *(() if mean else ("lower", "upper")),
        *(("num_groups",) if private else ("selection", "selection_share", "selection_delta")),
    ]
    with places.notes:
        if objective.floored:
            what = (
                "Groups are large from"
                if objective is Objective.LARGE_GROUPS
                else "Errors are divided by at least"
            )
            st.caption(f"{what} {_shown(state[key('floor')])}; the floor stands under *More settings*.")
        if data.pairs is not None and data.pairs.rows is None:
            st.caption(
                "These data say who is in which group, but not with how many rows: only distinct users can be released."
            )
        if mean:
            if value_range.ask(data, ends):
                return None
            stand_ins.explain_cleared(ends)
        parameters: PerGroupParameters | None = fields.build(
            QUESTION, unused=tuple(unused), optional=QUESTION.own
        )
    return parameters
