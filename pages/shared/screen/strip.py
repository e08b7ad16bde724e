"""The lines above a page: the steps from the data to the code, and the bar of the tour.

The steps from the data to the code, in one line over pages that choose a bound: what each step holds or lacks.

A press on a step leads to its page, to its field or button on this page, or into the code.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import fields, setting
from pages.shared.session import session, tour
from pages.shared.session.session import Tour

HEIGHT = 36
"""Pixels of one line; on a narrow screen there are three."""
LONGEST_NAME = 18
"""Characters of the name of the data."""
MISSING = "missing"

_HTML = '<nav class="sweetspot-strip" aria-label="From the data to the code"></nav>'
_CSS = """
.sweetspot-strip {
  display: flex; align-items: center; gap: 0.1rem; height: 2.1rem;
  color: var(--st-text-color); font-family: var(--st-font); font-size: 0.875rem; white-space: nowrap;
}
.sweetspot-strip button {
  font: inherit; color: inherit; background: none; border: 1px solid transparent; cursor: pointer;
  border-radius: var(--st-button-radius); padding: 0.2rem 0.4rem;
}
.sweetspot-strip button:hover { border-color: var(--st-primary-color); }
.sweetspot-strip button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: -2px; }
.sweetspot-strip .lacking { border: 1px dashed var(--st-primary-color); }
.sweetspot-strip span:not(:last-child)::after { content: "\\203a"; margin-left: 0.1rem; }
.sweetspot-strip b { font-weight: 600; }
@container (max-width: 48rem) {
  .sweetspot-strip { flex-wrap: wrap; height: auto; }
}
:has(> .st-key-strip_place), .st-key-strip_place, .st-key-strip {
  flex: 0 0 auto !important; height: auto !important; overflow: visible !important;
}
.st-key-strip_place { container-type: inline-size; min-height: 36px; }
"""
_JS = """
export default ({ data, parentElement, setTriggerValue }) => {
  const strip = parentElement.querySelector("nav");
  const items = [];
  for (const step of data.steps) {
    const button = document.createElement("button");
    button.type = "button";
    const name = document.createElement("b");
    name.textContent = step.name;
    button.append(name, step.content_text ? " " + step.content_text : "");
    button.className = step.is_missing ? "lacking" : "";
    button.onclick = () => {
      const target = step.selector ? document.querySelector(step.selector) : null;
      if (!target) return setTriggerValue("step", step.name);
      target.scrollIntoView({ block: "nearest" });
      if (step.is_pressed) target.click(); else target.focus();
    };
    const item = document.createElement("span");
    item.append(button);
    items.push(item);
  }
  const focused = parentElement.activeElement ?? document.activeElement;
  const index = Array.from(strip.querySelectorAll("button")).indexOf(focused);
  strip.replaceChildren(...items);
  if (index >= 0) strip.querySelectorAll("button")[index]?.focus({ preventScroll: true });
};
"""
_mount = st.components.v2.component("sweetspot_strip", html=_HTML, css=_CSS, js=_JS, isolate_styles=False)


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the strip.

    Attributes:
        name: Its name.
        content_text: What it holds now, in a word or two.
        is_missing: True if it is the step to take next.
        page_title: Title of the page it is taken on; empty for this one.
        selector: CSS of the field or button on this page that it leads to, if that is there.
        is_pressed: True if that button is pressed, and not only shown.
    """

    name: str
    content_text: str
    is_missing: bool = False
    page_title: str = ""
    selector: str = ""
    is_pressed: bool = False


def draw(question: Question, run: page_run.PageRun, dataset: Dataset) -> None:
    """Draw the strip; call it once the page has drawn its answer."""
    steps = list_steps(question, run, dataset)
    payload = {"steps": tuple(dataclasses.asdict(step) for step in steps)}
    # Streamlit hands on what was pressed only if there is a callback.
    pressed_name = _mount(key="strip", data=payload, height=HEIGHT, on_step_change=lambda: None).step
    if page_title := next((step.page_title for step in steps if step.name == pressed_name), ""):
        st.switch_page(catalogue.find_page(page_title).path)


def list_steps(question: Question, run: page_run.PageRun, dataset: Dataset) -> tuple[Step, ...]:
    """Return the steps as the page stands now."""
    card = run.shown_card
    name = "invented" if run.is_invented else _shorten(dataset.name, LONGEST_NAME)
    bound_text = ""
    if card is not None and card.numbers:
        is_drawn = not question.draws_bounds or isinstance(card.disclosure, ReleaseFacts)
        bound_text = card.numbers[0].text if is_drawn else "not drawn"
    return (
        Step("Data", name, is_missing=run.is_invented, page_title="Data"),
        Step("Release", _describe_release(question, card), page_title="Home"),
        _build_range_step(question, card),
        Step("Bound", bound_text, selector=".sweetspot-number button"),
        Step("Private?", "invented", page_title="Data")
        if run.is_invented
        else _build_privacy_step(dataset.is_private, card, run),
        Step(
            "Code",
            "" if card is None or card.code is None else "of invented data" if run.is_invented else "ready",
            selector=_select_button(run, keys.CARD_CODE),
            is_pressed=True,
        ),
    )


def _describe_release(question: Question, card: Answer | None) -> str:
    """Return the name of the release; before there is an answer, the page's word for it with the chosen options."""
    if card is not None and card.setting is not None:
        statistic_name, column_name = card.setting.statistic.value, card.setting.column_name
        return f"{statistic_name} of {column_name}" if column_name else statistic_name
    texts_by_field = {
        name: str(field.options[st.session_state[question.key(name)]])
        for name, field in question.fields.items()
        if f"{{{name}}}" in question.release_text and field.options is not None
    }
    text = question.release_text.format_map(texts_by_field)
    return text[:1].lower() + text[1:]


def _shorten(text: str, max_length: int) -> str:
    """Cut a text to a length; an ellipsis takes the place of what is cut off."""
    if len(text) <= max_length:
        return text
    shortened_text = text[:max_length].rpartition(" ")[0].rstrip(" :,;(-")
    return (shortened_text if len(shortened_text) >= max_length / 2 else text[: max_length - 1]) + "…"


def _select_button(run: page_run.PageRun, name: str) -> str:
    """Return the CSS selector of a button of the page's card; empty if there is no card."""
    return f".st-key-{run.card_key}{name} button" if run.card_key else ""


def _build_range_step(question: Question, card: Answer | None) -> Step:
    """Return the step of the value range: not needed, missing, or entered on this page or another."""
    parameters, ends = None if card is None else card.parameters, ("lower", "upper")
    page_title, selector = "", ""
    if question.range_on is not None:
        page_title = "" if parameters is None else question.range_on(parameters)
        is_needed = bool(page_title)
        limits = [setting.read_value(catalogue.find_page(page_title), end) for end in ends if is_needed]
    else:
        names = {field.shared: name for name, field in question.fields.items() if field.shared in ends}
        is_needed = card is None or any(getattr(parameters, n, None) is not None for n in names.values())
        # The page itself has taken up what was entered elsewhere.
        limits = [st.session_state[question.widgets[names[end]]] if end in names else None for end in ends]
        selector = f'input[aria-label="{question.fields[names["lower"]].label if names else ""}"]'
    if not is_needed:
        return Step("Range", "not needed")
    is_missing = None in limits
    text = MISSING if is_missing else _describe_range(*limits)
    return Step("Range", text, is_missing, page_title, selector)


def _describe_range(lower: Any, upper: Any) -> str:
    """Return the range in words, with its ε if it was drawn privately."""
    # What was drawn is on the account.
    cost_text = ""
    if catalogue.DRAWING and session.get_ledger().releases:
        on_card = importlib.import_module(f"pages.{catalogue.DRAWING.name}.on_card")
        if private_range := on_card.find_range(lower, upper):
            cost_text = f", drawn, ε = {format_rounded_up(private_range.facts.epsilon)}"
    return f"{wording.entered(lower)} to {wording.entered(upper)}{cost_text}"


def _build_privacy_step(is_private: bool, card: Answer | None, run: page_run.PageRun) -> Step:
    """Return the step of privacy: data or counts public, the bound drawn privately, or not yet."""
    setting = None if card is None else card.setting
    content_text, selector = "", ""
    if card is not None and isinstance(card.disclosure, ReleaseFacts):
        content_text = f"drawn, ε = {format_rounded_up(card.disclosure.epsilon)}"
    elif not is_private:
        content_text = "public data"
    elif setting is not None and not setting.protects_counts and not setting.uses_values:
        content_text = "counts public"
    else:
        selector = (
            f'input[aria-label="{run.missing_label}"]' if run.missing_label else _select_button(run, "_draw")
        )
    is_missing = not content_text and card is not None
    return Step("Private?", content_text or "not yet", is_missing, "Choose privately", selector)


WIDTHS = (7, 3)
"""How the text and the buttons beside it share the width."""
LONGEST_STEP_NAME = 24
"""Characters of the name of the data from before: what the bar says fits in two lines."""
HINT = "The answer appears here."


def draw_begin_button() -> None:
    """Draw the button that begins the tour, unless it is on."""
    if session.get_tour() is None:
        steps_text = wording.counted(len(tour.list_questions()), "step")
        help = f"{steps_text} on sample data. Your own data and settings come back at its end."
        fields.button("Take the tour", "tour_begin", "tour", tour.begin, type="tertiary", help=help)


def draw_tour(question: Question, tour_state: Tour) -> None:
    """Draw the tour's bar: the question of its step or the answer, and buttons.

    Args:
        question: The question whose page it stands on, drawn already.
        tour_state: The tour that is on.
    """
    text_column, button_column = st.columns(WIDTHS, vertical_alignment="center", gap="medium")
    number, questions = tour_state.number, tour.list_questions()
    step_question = questions[number - 1]
    step, is_here, answer = tour.import_step(step_question), question is step_question, ""
    if is_here:
        answer = tour.write_answer(step, tour_state, st.session_state[keys.PAGE_PARAMETERS])
    text_column.markdown(write_text(question, step_question, step, tour_state, answer))
    with button_column, st.container(horizontal=True, gap="xsmall", key="tour_buttons"):
        if not is_here or not tour.has_step_data(step):
            st.button("Back to the step", key="tour_again", on_click=tour.go_to_step, args=(number,))
            st.button("End", key="tour_end", on_click=tour.end)
            return
        st.button("Back", key="tour_back", on_click=tour.go_to_step, args=(number - 1,), disabled=number == 1)
        if number < len(questions):
            main = fields.main_button()
            st.button("Next", key="tour_next", type=main, on_click=tour.go_to_step, args=(number + 1,))
        st.button("End", key="tour_end", on_click=tour.end)
        st.button("Show the answer", key="tour_answer", on_click=tour.show_answer, disabled=bool(answer))


def write_text(
    question: Question, step_question: Question, step: tour.Step, tour_state: Tour, answer: str
) -> str:
    """Write the text of the tour's bar.

    Args:
        question: The question whose page it stands on.
        step_question: The question that the step is about.
        step: The step.
        tour_state: The tour that is on.
        answer: The answer; empty while it is not shown.
    """
    badge_text = f":blue-badge[Tour, step {tour_state.number} of {len(tour.list_questions())}]"
    saved_state = tour_state.saved_state
    data_name = f"**{wording.plain(_shorten(saved_state.loaded_data.dataset.name, LONGEST_STEP_NAME))}**"
    ending_text = f"*End* brings back {data_name}{'' if saved_state.is_named_only else ' and your settings'}."
    if question is not step_question:
        waiting_text = f"{badge_text} The tour waits on **{step_question.title}**."
        return f"{waiting_text}  \n{ending_text} Bringing other data ends it, too."
    if not tour.has_step_data(step):
        return f"{badge_text} Other data are in use than those of this step.  \n{ending_text}"
    heading = f"{badge_text} **{step.question_sentence}**"
    return f"{heading}  \n{answer}" if answer else f"{heading}  \n{step.instruction}. {HINT}  \n{ending_text}"
