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
from pages.shared.render import question_page
from pages.shared.screen import layout, other_bounds
from pages.shared.session import session


def draw_body(slots: layout.PageSlots) -> None:
    """Draw the sheet of one release that a page has shown, at first the newest; without any, links to these pages."""
    releases_by_page, ledger = st.session_state.get(keys.SHOWN_RELEASES, {}), session.get_ledger()
    possible_sheets = {}
    for name, (answer, card, card_key) in reversed(releases_by_page.items()):
        form_index = st.session_state.get(keys.CODE_FORM + card_key) or 0
        possible_sheets[name] = build_sheet(catalogue.QUESTIONS[name].title, answer, card, ledger, form_index)
    sheets_by_name = {name: sheet for name, sheet in possible_sheets.items() if sheet is not None}
    if not sheets_by_name:
        with slots.notes:
            st.markdown(
                "## Nothing to state yet\n\nFirst choose the bound of your number on one of these pages. The sheet "
                "then states ε, bound, error and method."
            )
            for question in catalogue.PAGES:
                if question.group == QUESTION.group and question is not QUESTION:
                    st.page_link(question.path, label=question.title, icon=question.icon)
            if not session.dataset().is_private:
                label = "See an example: the count of these rows"
                fields.button(label, "release_sheet_example", "tag", _keep_example, is_main=True)
        return
    newest_name = next(iter(sheets_by_name))
    title_by_name = {name: sheet.title for name, sheet in sheets_by_name.items()}
    with slots.line:
        key = f"{QUESTION.key('release_')}{newest_name}"
        name = (
            newest_name if len(title_by_name) == 1 else fields.pick("Release", title_by_name, key, width=220)
        )
    sheet = sheets_by_name[name]
    with slots.answer, st.container(key="release_sheet_card"):
        released_texts = _ask_for_numbers(name, sheet)
        _draw_files(sheet, released_texts)
        st.page_link(
            catalogue.QUESTIONS[name].path, label=f"Change it on {sheet.title}", icon=":material/edit:"
        )
    with slots.figure, st.container(key="release_sheet_tables"):
        st.markdown(sheet.write_tables(released_texts))
    draw_by_tab_name = {"Methods": partial(st.code, sheet.methods.text, language=None, wrap_lines=True)}
    if sheet.code is not None:
        draw_by_tab_name["Code"] = partial(
            st.code, sheet.code.text, language=sheet.code.language, height=code_panel.HEIGHT
        )
    draw_by_tab_name["Citation"] = partial(st.code, sheet.methods.bibtex, language=None)
    with slots.bottom:
        for tab_name, draw in draw_by_tab_name.items():
            expander = st.expander(tab_name, key=f"release_sheet_{tab_name.lower()}", on_change="rerun")
            if expander.open:
                with expander:
                    draw()


def _keep_example() -> None:
    """Keep the release that *Sum and count* would show, or open that page if it refuses; called before the run."""
    page_question = catalogue.find_page("Sum and count")
    try:
        answer = other_bounds.build_answer(page_question, session.dataset())
        question_page.keep_release(page_question, answer, answer, f"{page_question.name}_card")
    except InvalidInput:
        st.session_state[keys.TOUR_GOES_TO] = page_question.path


def _ask_for_numbers(question_name: str, sheet: ReleaseSheet) -> dict[str, str]:
    """Draw fields for released numbers and their errors, and return what they hold, as texts.

    The keys are the statistics and, for an error that a program prints, ``± `` and the statistic.
    """
    texts = {}
    for statistic, noise_text, _ in sheet.statistics:
        for label in (statistic, f"± {statistic}")[: 1 + (noise_text == PRINTED_BY_PROGRAM)]:
            field_key = f"{QUESTION.key('number_')}{question_name}_{label}"
            field_label = f"Released {label}" if label == statistic else f"{label}, as printed"
            texts[label] = st.text_input(field_label, key=field_key, max_chars=200, persist_state="session")
    return texts


def _draw_files(sheet: ReleaseSheet, released_texts: dict[str, str]) -> None:
    """Draw the label of the sheet and buttons for its files, and say so if bound and error are withheld."""
    if sheet.methods.is_withheld:
        st.caption(
            ":material/lock: Choose the bound with DP, or without these data. Then the sheet states it, and ±."
        )
    cards.label(sheet.methods.shown_disclosure)
    with st.container(horizontal=True):
        for label, ending, write in (
            ("HTML, to print", "html", sheet.write_html),
            ("Markdown", "md", sheet.write_markdown),
        ):
            file_name = f"{write_file_name('release_sheet', Disclosure.PUBLIC)}.{ending}"
            button_type = fields.main_button() if ending == "html" else "secondary"
            make_file = partial(write, released_texts)
            fields.download_button(label, file_name, make_file, f"release_sheet_{ending}", type=button_type)


layout.show(QUESTION, draw_body, has_budget=False)
