"""On *Data*: a DP histogram of rows per user, which takes the place of the data, and all that was chosen with DP."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import ReleaseFacts
from dpcore.dataset import Dataset
from dpcore.private_choice import private_histogram
from dpcore.private_choice.answer import selection as selections
from dpcore.private_choice.answer.words import format_selection
from dpcore.private_choice.parameters import NUMBER_NAMES, PrivateParameters
from dpcore.private_choice.private_histogram import CopyNoise, PrivateCopyParameters
from dpcore.private_choice.private_range import PrivateRange
from dpcore.report import content as report_content
from pages.private_choice import actions
from pages.private_choice.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, setting
from pages.shared.session import session

KEY = "private_release"
PUBLIC_TEXT = "These data are public: nothing needs protecting."
FROM_FILE_TEXT = "The data in use are a DP release. Choices on it cost no more ε and may be published."
PURPOSE_TEXT = (
    "Releases how many users have how many rows, with noise. It takes the place of the data on every page, at any ε, "
    "without values, totals and groups."
)


def draw(dataset: Dataset) -> None:
    """Show the step that releases a DP histogram, the one in use, and choices so far; of a released file a note."""
    actions.rerun_after_draw()
    original = session.get_original().dataset
    if original.release is not None:
        st.info(FROM_FILE_TEXT, icon=":material/verified_user:")
        return
    is_empty = st.session_state.get(QUESTION.key("empty_copy")) == original.histogram.digest
    is_copy_in_use = dataset.release is not None
    is_expanded = is_copy_in_use or is_empty or actions.is_open(KEY)
    with st.expander(
        "DP histogram of rows per user", is_expanded, icon=":material/shield_lock:", key="dp_histogram"
    ):
        st.markdown(f":small[{PURPOSE_TEXT if original.is_private else PUBLIC_TEXT}]")
        actions.show_refused()
        if is_empty:
            st.warning(
                f"{private_histogram.NOTHING_LEFT_MESSAGE}. The draw is spent.", icon=":material/warning:"
            )
        parameters = _read_parameters()
        button_label = f"Release {'another' if is_copy_in_use else 'it'}…"
        if parameters is not None and actions.open_step(button_label, KEY, is_main=not is_copy_in_use):
            epsilon, delta = parameters.epsilon_choice, parameters.delta or 0.0
            facts = ReleaseFacts(epsilon, delta, parameters.neighbours, parameters.noise.value)
            actions.confirm(KEY, actions.draw_copy, parameters, None, facts)
        if is_copy_in_use:
            _show_histogram(dataset, original)
    if actions.list_choices():
        _show_choices()


def _read_parameters() -> PrivateCopyParameters | None:
    """Show the fields of the histogram and return its settings; None, with sentences, if a field is refused."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        epsilon = fields.draw(QUESTION, "histogram_epsilon")
        with st.popover("More", icon=":material/tune:"):
            largest = fields.draw(QUESTION, "largest")
            relation, mechanism = (fields.draw(QUESTION, name) for name in ("relation", "mechanism"))
            delta = fields.draw(QUESTION, "delta") if mechanism is CopyNoise.GAUSSIAN else None
    values_by_field = {"epsilon": 1.0, "selection_epsilon": epsilon, "largest": largest}
    values_by_field |= {"relation": relation, "mechanism": mechanism, "delta": delta}
    labels_by_field = {"selection_epsilon": "ε of the histogram", "largest": QUESTION.subjects["largest"]}
    labels_by_field |= {"delta": "δ"} if mechanism is CopyNoise.GAUSSIAN else {}
    parameters, problems = fields.build_parameters(PrivateParameters, values_by_field, labels_by_field)
    if parameters is None:
        fields.show_problems(problems)
        return None
    return parameters.copy


def _show_histogram(dataset: Dataset, original: Dataset) -> None:
    """Show the DP histogram in use, with its file and a way back."""
    st.markdown(f"{wording.plain(dataset.source, 500)} You may publish all results from it under this label.")
    cards.label(dataset.provenance)
    with st.container(horizontal=True, vertical_alignment="center"):
        csv_text = report_content.write_histogram(dataset)
        cards.file_button("DP histogram (CSV)", "dp_histogram.csv", dataset.provenance, csv_text)
        data_name = "private" if original.is_private else "original"
        fields.button(f"Back to the {data_name} data", "private_back", "undo", actions.use_original)


def _show_choices() -> None:
    """Show what was chosen with DP so far, latest first, each with its label in full."""
    with st.expander("Chosen with DP", icon=":material/casino:", key="private_chosen"):
        for index, (number, selection) in reversed(list(enumerate(actions.list_choices()))):
            st.markdown(f"{wording.capital(NUMBER_NAMES[number])}: **{format_selection(selection)}**")
            cards.label(selection.facts)
            with st.container(horizontal=True):
                if isinstance(selection, PrivateRange):
                    ends_by_name = {"lower": selection.lower, "upper": selection.upper}
                    key = f"private_take_{index}"
                    fields.button("Clamp to it on all pages", key, "straighten", setting.enter, ends_by_name)
                json_text, key = selections.write_json(selection, number), f"private_choice_file_{index}"
                cards.file_button(
                    "Choice (JSON)", "private_choice.json", selection.facts, json_text, key=key, is_quiet=True
                )
