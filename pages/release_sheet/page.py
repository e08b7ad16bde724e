"""Release sheet: what to state with the releases whose pages were seen last, with fields for the released numbers."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure, write_file_name
from dpcore.report.release_sheet import PRINTED_BY_PROGRAM, ReleaseSheet, build_sheet
from pages.release_sheet.question import QUESTION
from pages.shared.base import catalogue, keys
from pages.shared.card import cards, code_panel
from pages.shared.fields import fields
from pages.shared.screen import layout, other_bounds
from pages.shared.session import session


def draw_body(slots: layout.PageSlots) -> None:
    """Draw the sheet of one release that a page has shown, at first the newest; without any, links to these pages."""
    releases_by_page, ledger = st.session_state.get(keys.SHOWN_RELEASES, {}), session.get_ledger()
    sheet_or_none_by_page = {}
    for page_name, (answer, card, card_key) in reversed(releases_by_page.items()):
        form_index = st.session_state.get(keys.CODE_FORM_PREFIX + card_key) or 0
        sheet_or_none_by_page[page_name] = build_sheet(
            catalogue.QUESTION_BY_NAME[page_name].title, answer, card, ledger, form_index
        )
    sheet_by_page = {
        page_name: sheet for page_name, sheet in sheet_or_none_by_page.items() if sheet is not None
    }
    if not sheet_by_page:
        with slots.notes:
            st.markdown(
                "## Nothing to state yet\n\nFirst choose the bound of your number on one of these pages. The sheet "
                "then states ε, bound, error and method."
            )
            for question in catalogue.PAGES:
                if question.navigation_group == QUESTION.navigation_group and question is not QUESTION:
                    st.page_link(question.page_path, label=question.title, icon=question.icon)
            if not session.get_dataset().is_private:
                label_text = "See an example: the count of these rows"
                fields.draw_button(
                    label_text, "release_sheet_example", "tag", _keep_example_release, is_main=True
                )
        return
    newest_page = next(iter(sheet_by_page))
    title_by_page = {page_name: sheet.title for page_name, sheet in sheet_by_page.items()}
    with slots.line:
        widget_key = f"{QUESTION.get_key('release_')}{newest_page}"
        page_name = (
            newest_page
            if len(title_by_page) == 1
            else fields.draw_select_box("Release", title_by_page, widget_key, width=220)
        )
    sheet = sheet_by_page[page_name]
    with slots.answer, st.container(key="release_sheet_card"):
        text_by_statistic = _draw_number_fields(page_name, sheet)
        _draw_files(sheet, text_by_statistic)
        st.page_link(
            catalogue.QUESTION_BY_NAME[page_name].page_path,
            label=f"Change it on {sheet.title}",
            icon=":material/edit:",
        )
    with slots.figure, st.container(key="release_sheet_tables"):
        st.markdown(sheet.write_tables(text_by_statistic))
    draw_by_tab = {"Methods": partial(st.code, sheet.methods.text, language=None, wrap_lines=True)}
    if sheet.code is not None:
        draw_by_tab["Code"] = partial(
            st.code, sheet.code.text, language=sheet.code.language, height=code_panel.PROGRAM_HEIGHT
        )
    draw_by_tab["Citation"] = partial(st.code, sheet.methods.bibtex, language=None)
    with slots.bottom:
        for tab_name, draw in draw_by_tab.items():
            expander = st.expander(tab_name, key=f"release_sheet_{tab_name.lower()}", on_change="rerun")
            if expander.open:
                with expander:
                    draw()


def _keep_example_release() -> None:
    """Keep the release that *Sum and count* would show, or open that page if it refuses; called before the run."""
    page_question = catalogue.find_page("Sum and count")
    try:
        answer = other_bounds.build_answer(page_question, session.get_dataset())
        cards.keep_release(page_question, answer, answer, f"{page_question.name}_card")
    except InvalidInput:
        st.session_state[keys.TOUR_DESTINATION] = page_question.page_path


def _draw_number_fields(page_name: str, sheet: ReleaseSheet) -> dict[str, str]:
    """Draw fields for released numbers and their errors, and return what they hold, as texts.

    The keys are the statistics and, for an error that a program prints, ``± `` and the statistic.
    """
    text_by_statistic = {}
    for statistic, noise_text, _ in sheet.statistics:
        for statistic_label in (statistic, f"± {statistic}")[: 1 + (noise_text == PRINTED_BY_PROGRAM)]:
            field_key = f"{QUESTION.get_key('number_')}{page_name}_{statistic_label}"
            field_label = (
                f"Released {statistic_label}"
                if statistic_label == statistic
                else f"{statistic_label}, as printed"
            )
            text_by_statistic[statistic_label] = st.text_input(
                field_label, key=field_key, max_chars=200, persist_state="session"
            )
    return text_by_statistic


def _draw_files(sheet: ReleaseSheet, text_by_statistic: dict[str, str]) -> None:
    """Draw the label of the sheet and buttons for its files, and say so if bound and error are withheld."""
    if sheet.methods.is_withheld:
        st.caption(
            ":material/lock: Choose the bound with DP, or without these data. Then the sheet states it, and ±."
        )
    cards.draw_label(sheet.methods.shown_disclosure)
    with st.container(horizontal=True):
        for button_label, file_ending, write_content in (
            ("HTML, to print", "html", sheet.write_html),
            ("Markdown", "md", sheet.write_markdown),
        ):
            file_name = f"{write_file_name('release_sheet', Disclosure.PUBLIC)}.{file_ending}"
            button_type = fields.choose_main_button_type() if file_ending == "html" else "secondary"
            make_file = partial(write_content, text_by_statistic)
            fields.draw_download_button(
                button_label, file_name, make_file, f"release_sheet_{file_ending}", button_type=button_type
            )


layout.show_page(QUESTION, draw_body, has_budget=False)
