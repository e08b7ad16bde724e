"""The answer card, one form for the answer of every page: labels, numbers, code, files."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore.answer.answer import STYLE_BY_PART, Answer, Verdict
from dpcore.code.forms import OfferedPrograms
from dpcore.common.privacy import (
    Disclosure,
    Provenance,
    ReleaseFacts,
    classify,
    format_rounded_up,
    write_file_name,
)
from dpcore.common.wording import capitalise
from dpcore.dataset import Dataset
from dpcore.report.charts import LINE_BY_STYLE
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.question import SIMULATION, Question
from pages.shared.card import code_panel
from pages.shared.fields import fields

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def _register_component(component_name: str, html: str) -> Any:
    """Register a component with the style and the script that lie beside this file under its name."""
    css_text, js_text = (
        Path(__file__).with_name(f"{component_name}.{ending}").read_text(encoding="utf-8")
        for ending in ("css", "js")
    )
    return st.components.v2.component(f"sweetspot_{component_name}", html=html, css=css_text, js=js_text)


_NUMBER_HTML = """
<div class="sweetspot-number">
  <div class="label"></div>
  <div class="row"><div class="value"></div><button type="button"></button></div>
  <div class="note"></div>
  <div class="parts"></div>
</div>
"""

NUMBER_KEY_PREFIX = "number_"
"""Prefix of a number's key in the session's state."""

MOUNT_NUMBER = _register_component("number", _NUMBER_HTML)


GRID_KEY_PREFIX = "numbers_"
"""Prefix of a grid's key in the session's state."""

MOUNT_GRID = _register_component("numbers", '<dl class="sweetspot-grid"></dl>')


BADGE_BY_DISCLOSURE = {
    Disclosure.PUBLIC: ("Safe to publish", "green", ":material/public:"),
    Disclosure.PRIVATE: ("Do not publish", "orange", ":material/lock:"),
    Disclosure.DP_RELEASE: ("DP", "blue", ":material/verified_user:"),
}
BADGE_BY_VERDICT = {
    Verdict.USEFUL: ("green", ":material/check_circle:"),
    Verdict.ROUGH: ("orange", ":material/error:"),
    Verdict.NOT_USEFUL: ("red", ":material/cancel:"),
}


def write_badge(disclosure: Provenance, replacing_text: str = "", result_noun: str = "") -> str:
    """Write the badge of a disclosure as Markdown, after ``result_noun`` if one is given; a release shows its ε.

    A simulation on public data says that nothing is released. ``replacing_text`` replaces all words, not the colour.
    """
    badge_text, color, icon = BADGE_BY_DISCLOSURE[classify(disclosure)]
    if isinstance(disclosure, ReleaseFacts):
        badge_text += f", ε = {format_rounded_up(disclosure.epsilon)}"
    elif result_noun == SIMULATION and disclosure is Disclosure.PUBLIC:
        badge_text = "nothing is released"
    if result_noun:
        badge_text = f"{result_noun}: {badge_text if badge_text[1].isupper() else badge_text.lower()}"
    return _write_chip(replacing_text or badge_text, color, icon)


def _write_chip(chip_text: str, color: str, icon_code: str) -> str:
    """Write a text on a coloured ground as Markdown; `st.badge` would cut a long one."""
    return f":small[:{color}-background[:{color}[{icon_code} {chip_text}]]]"


def draw_label(disclosure: Provenance, text_above: str = "") -> None:
    """Draw the badge of a disclosure below a Markdown text, and the facts of a release.

    They are one element, because the browser's work at every step grows with the number of elements.
    """
    st.markdown("\n\n".join(filter(None, (text_above, write_badge(disclosure)))))
    if isinstance(disclosure, ReleaseFacts):
        st.caption(disclosure.label)  # Too long for a badge, which is cut where it does not fit.


def draw_answer(
    card: Answer, card_key: str, is_final: bool = True, badge_text: str = "", figure_shows_range: bool = False
) -> DeltaGenerator:
    """Draw the answer: instruction, error, verdict, the way to the code, further sentences; return the container.

    The first card of a page's run becomes its answer card. Only that card offers to select its bound privately.

    Args:
        card: What it says; the rest of it is for `draw_behind`.
        card_key: Unique on the page.
        is_final: False while a search can still change the answer.
        badge_text: Replaces the words of the badge of its disclosure; empty to keep them.
        figure_shows_range: True if the figure shows the near-optimal range; the words on it then stand in *Why?*.
    """
    bound_selection = None
    if (run := page_run.CURRENT_RUN.get()) is not None and run.answer_card is None:
        run.answer_card = card
        bound_selection = get_private_selection(card)
        if run.has_private_data and (selection_module := import_selection_module()) is not None:
            card = selection_module.add_range_cost((bound_selection and bound_selection.card) or card)
    if run is not None and run.shown_card is None:
        run.shown_card = card
    is_selection_open = bound_selection is not None and bound_selection.is_open(f"{card_key}_draw")
    if is_selection_open:
        # The open choice stands where its button stood, with all of it in sight.
        card = replace(card, detail="", near_optimal="", numbers=(), alternative=None)
    # As high as the column of the figure, so that what stands below it stays in place while a slider moves.
    card_container = st.container(key=card_key, height="stretch")
    with card_container:
        _draw_headline_and_badges(card, card_key, is_final, badge_text)
        relative_error = card.relative_error
        if relative_error is not None and relative_error.remark and not is_selection_open:
            st.markdown(relative_error.remark)
        # What would make a useless release useful comes before the way to it.
        is_useful = relative_error is None or relative_error.verdict is not Verdict.NOT_USEFUL
        button_type = fields.choose_main_button_type() if is_useful else "secondary"
        if bound_selection is not None and run is not None and run.selected_bound_excess is not None:
            st.markdown(bound_selection.write_excess(run.selected_bound_excess))
        awaits_selection = bound_selection is not None and bound_selection.card is None
        if bound_selection is not None and awaits_selection:
            bound_selection.draw_step(f"{card_key}_draw", button_type)
        code_label, code_button_arguments = "Get code", dict[str, Any](type=button_type)
        if awaits_selection:
            code_label = "Use the number as it is"
            code_button_arguments = {
                "type": "tertiary",
                "help": "No ε covers it: it was read off the private data.",
            }
        with st.container(horizontal=True, vertical_alignment="center"):
            if card.code is not None:
                fields.draw_button(
                    code_label,
                    card_key + keys.CODE_BUTTON_SUFFIX,
                    "code",
                    _request_code_dialog,
                    card,
                    card_key,
                    **code_button_arguments,
                )
            facts_text = card.disclosure.label if isinstance(card.disclosure, ReleaseFacts) else ""
            range_text = capitalise(card.near_optimal)
            if reason_sentences := list(
                filter(None, (range_text * figure_shows_range, card.detail, facts_text))
            ):
                with st.popover("Why?", type="tertiary", key=f"{card_key}_why"):
                    st.markdown("\n\n".join(reason_sentences))
        if bound_selection is not None and not awaits_selection:
            bound_selection.draw_step(f"{card_key}_draw", "tertiary")
        if range_text and is_useful and not figure_shows_range:
            st.markdown(range_text)
        if card.alternative is not None and card.code is not None:
            button_arguments = _request_code_dialog, card, card_key, card.alternative.form_prefix
            button_label = card.alternative.sentence.removesuffix(".")
            fields.draw_button(
                button_label, f"{card_key}_alternative", "code", *button_arguments, type="tertiary"
            )
        elif card.alternative is not None:
            st.markdown(card.alternative.sentence)
    return card_container


def _request_code_dialog(card: Answer, card_key: str, form_name_start: str = "") -> None:
    """Have a dialog opened at the first program whose name begins with ``form_name_start``; if none does, the first."""
    assert card.code is not None
    form_names = [form_name for form_name, _ in card.code.forms]
    form_index = next(
        (i for i, form_name in enumerate(form_names) if form_name.startswith(form_name_start)), 0
    )
    st.session_state[keys.CODE_FORM_PREFIX + card_key] = form_index
    page_run.request_dialog(_draw_code_dialog, card.code, card.disclosure, card_key)


def _draw_headline_and_badges(card: Answer, card_key: str, is_final: bool, badge_text: str) -> None:
    """Draw headline, caveat, the first number with its error, and the chips: *Preliminary* or verdict, disclosure.

    Nothing is said twice: a number that the instruction holds has no label.
    """
    st.markdown(f"## {card.headline if is_final else f':gray[{card.headline}]'}")
    if card.caveat:
        st.markdown(f":material/warning: {card.caveat}")
    error_text = ""
    if card.numbers:
        first_number = card.numbers[0]
        split_phrase, size_texts, split_note = card.error_split_texts
        sized_parts = zip(card.error_parts, size_texts, strict=True)
        part_texts = [
            (p.name, size_text, LINE_BY_STYLE[STYLE_BY_PART[p.name]]["color"]) for p, size_text in sized_parts
        ]
        number_digits, headline_digits = (
            set(re.findall(r"[\d.,]*\d", text)) for text in (first_number.text, card.headline)
        )
        label_text = "" if number_digits <= headline_digits else first_number.label
        split_texts = split_phrase, part_texts, split_note
        error_texts = next(((error.label, error.text, error.note) for error in card.numbers[1:]), None)
        error_text = " ".join(error_texts or ())
        draw_number(
            label_text,
            first_number.text,
            first_number.note,
            first_number.text_to_copy,
            card_key,
            error_texts,
            split_texts,
            is_final,
        )
    run = page_run.CURRENT_RUN.get()
    badge_markdown = write_badge(card.disclosure, badge_text, "" if run is None else run.question.result_noun)
    relative_error, help_text = card.relative_error, f"{capitalise(card.disclosure.label)}."
    verdict_chip = "" if is_final else _write_chip("Preliminary", "gray", ":material/hourglass_top:")
    if relative_error is None:
        badges_text = f"{verdict_chip} {badge_markdown}".lstrip()
    else:
        verdict_text = f"{capitalise(relative_error.verdict.value)} ({relative_error.limit_text})"
        # As high before the final answer as after it, so that nothing jumps when that arrives.
        verdict_chip = verdict_chip or _write_chip(verdict_text, *BADGE_BY_VERDICT[relative_error.verdict])
        error_sentence = capitalise(f"{relative_error.error_phrase} {relative_error.text}.")
        # The error above may be another one, or say something else of itself.
        is_error_shown = relative_error.text in error_text or relative_error.remark
        badges_text = (
            f"{verdict_chip} {badge_markdown}"
            if is_error_shown
            else f"{verdict_chip} :small[{error_sentence}]\n\n{badge_markdown}"
        )
        help_text = f"{error_sentence} {help_text}"
    badges_text += (
        f" {_write_chip(card.unit_text, 'gray', ':material/calendar_month:')}" if card.unit_text else ""
    )
    st.markdown(badges_text, help=help_text)


def get_private_selection(card: Answer) -> Any | None:
    """Return the ``BoundSelection`` of a card, cached in this run; None for public data or a bound that has none."""
    run, selection_module = page_run.CURRENT_RUN.get(), import_selection_module()
    if run is None or not run.has_private_data or selection_module is None:
        return None
    if run.card_and_selection is None or run.card_and_selection[0] is not card:
        run.card_and_selection = card, selection_module.build_selection(card)
    return run.card_and_selection[1]


def import_selection_module(module_name: str = "on_card") -> Any | None:
    """Return the module of this name of the question that selects bounds privately; None without such a question.

    Its ``build_selection(card)`` returns the ``BoundSelection`` of a card, or None. ``add_range_cost(card)`` adds the
    cost of the card's drawn range to the card, and ``divide_total`` replaces a total epsilon in a page's parameters.
    """
    question = catalogue.PRIVATE_SELECTION_STEP
    return None if question is None else importlib.import_module(f"pages.{question.name}.{module_name}")


def divide_total(question: Question, data: Any, parameters: Any) -> tuple[Any, str]:
    """Return parameters with what a total epsilon leaves for the release, and a sentence on that.

    Without a total, or without a page that selects privately: the same parameters, and an empty sentence.
    """
    if (selection_module := import_selection_module()) is None:
        return parameters, ""
    parameters_and_sentence: tuple[Any, str] = selection_module.divide_total(question, data, parameters)
    return parameters_and_sentence


def draw_range_button(dataset: Dataset) -> None:
    """Draw the button that leads to a private draw of the range, if the data are private and have values."""
    if (selection_module := import_selection_module()) is not None:
        selection_module.draw_range_button(dataset)


def draw_histogram_step(dataset: Dataset) -> None:
    """Draw the step that releases a DP histogram in place of the data, and what was chosen with DP so far."""
    if (selection_module := import_selection_module("actions")) is not None:
        selection_module.draw_histogram_step(dataset)


@page_run.open_as_dialog("Code", "code")
def _draw_code_dialog(offered_programs: OfferedPrograms, disclosure: Provenance, card_key: str) -> None:
    """Show the code for a card in a dialog."""
    code_panel.draw_code(offered_programs, card_key)
    draw_label(disclosure)


def draw_behind(card: Answer) -> None:
    """Draw what is behind an answer: its numbers if there are several, facts, proofs and assumptions."""
    if len(card.numbers) > 1:
        draw_numbers([(n.label, n.text, n.note, n.help) for n in card.numbers], "behind")
    left_column, right_column = st.columns(2, gap="large")
    fact_lines = [
        f"- **{fact_heading}:** {fact_sentence}" for fact_heading, fact_sentence in card.facts.items()
    ]
    if card.proofs:
        fact_lines.append("\n**How sure**\n")
        fact_lines += [
            f"- **{claim}:** {claim_reason} {proof.sentence}" for claim, proof, claim_reason in card.proofs
        ]
    if fact_lines:
        left_column.markdown("\n".join(fact_lines))
    with right_column:
        assumptions_text = "\n".join(f"- {assumption}." for assumption in card.all_assumptions)
        draw_label(card.disclosure, text_above=f"**What is assumed**\n\n{assumptions_text}")


# --- Numbers and files ------------------------------------------------------------------------------------------------


def draw_number(
    number_label: str,
    value_text: str,
    unit_text: str,
    copied_text: str,
    card_key: str,
    error_texts: tuple[str, str, str] | None = None,
    split_texts: tuple[str, Sequence[tuple[str, str, str]], str] = ("", (), ""),
    is_final: bool = True,
) -> None:
    """Draw one large number with a button that copies it.

    Args:
        number_label: What it is; empty where a sentence above says so.
        value_text: As it is read.
        unit_text: After the value; empty for none.
        copied_text: What the button copies: the digits alone, as a program takes them; no button where empty.
        card_key: Unique on the page.
        error_texts: Label, value and note of its error, the line below; None for none.
        split_texts: The line below that: what is split, name, size and colour of each part, and a note.
        is_final: False to draw it pale.
    """
    texts_by_name = {"label": number_label, "value": value_text, "unit": unit_text, "copied": copied_text}
    payload = {**texts_by_name, "error": error_texts or (), "split": split_texts, "isFinal": is_final}
    MOUNT_NUMBER(key=f"{NUMBER_KEY_PREFIX}{card_key}", data=payload, height="content")


MAX_NARROW_LENGTH = 12
"""Characters of a value that fit in a cell of the narrowest page; a longer one has a row of its own."""


def draw_numbers(texts_of_numbers: Sequence[tuple[str, str, str, str]], grid_key: str) -> None:
    """Draw several numbers beside each other, each with a note, and an explanation on demand.

    This is one element, where `st.metric` in a grid takes a dozen for four numbers. Whenever a slider moves, the
    browser goes through all elements of the page three times.

    Args:
        texts_of_numbers: Label, value, note and explanation of each; the last two may be empty.
        grid_key: Unique on the page.
    """
    cell_payloads = [
        {
            "label": number_label,
            "value": value_text,
            "note": note_text,
            "help": help_text,
            "wide": len(value_text) > MAX_NARROW_LENGTH,
        }
        for number_label, value_text, note_text, help_text in texts_of_numbers
    ]
    MOUNT_GRID(key=f"{GRID_KEY_PREFIX}{grid_key}", data=cell_payloads, height="content")


def draw_file_button(
    button_label: str,
    base_name: str,
    disclosure: Provenance,
    content_or_writer: str | Callable[[], str | bytes],
    *,
    button_key: str = "",
    is_quiet: bool = False,
    help_text: str = "",
) -> None:
    """Draw a button that downloads a file, with the disclosure of its numbers in the file's name.

    The file is made when the button is pressed, without a rerun.

    Args:
        button_label: On the button.
        base_name: Name of the file with its ending, before the words for its disclosure are put in.
        disclosure: Of the data behind the file; it goes into the name.
        content_or_writer: The file's text, or a function that returns its content.
        button_key: Of the widget; by default the name without its ending, and ``_file``.
        is_quiet: True to draw the button as plain text.
        help_text: What the file is good for.
    """
    file_stem, _, file_ending = base_name.rpartition(".")
    file_name = f"{write_file_name(file_stem, disclosure)}.{file_ending}"
    button_options: dict[str, Any] = {
        "button_type": "tertiary" if is_quiet else "secondary",
        "help_text": help_text,
    }
    fields.draw_download_button(
        button_label, file_name, content_or_writer, button_key or f"{file_stem}_file", **button_options
    )


def draw_file_buttons(
    file_specs: Iterable[tuple[str, str, Callable[[], str | bytes]]], disclosure: Provenance
) -> None:
    """Draw buttons beside each other that download files: label, name and content of each."""
    with st.container(horizontal=True):
        for button_label, base_name, write_content in file_specs:
            draw_file_button(button_label, base_name, disclosure, write_content)


def keep_release(question: Question, answer: Answer, card: Answer, card_key: str) -> None:
    """Keep what a page releases, as the newest, if it is of the group of the page that states releases."""
    assert catalogue.SHEET_PAGE is not None
    if question.navigation_group == catalogue.SHEET_PAGE.navigation_group:
        releases_by_page = dict(st.session_state.get(keys.SHOWN_RELEASES, {}))
        releases_by_page.pop(question.name, None)
        st.session_state[keys.SHOWN_RELEASES] = {**releases_by_page, question.name: (answer, card, card_key)}
