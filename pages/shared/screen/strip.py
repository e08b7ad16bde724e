"""The lines above a page: the steps from the data to the code, and the bar of the tour.

The steps from the data to the code, in one line over pages that choose a bound: what each step holds or lacks.

A press on a step leads to its page, to its field or button on this page, or into the code.
"""

from __future__ import annotations

import dataclasses
import importlib
import textwrap
from typing import Any

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from dpcore.dataset import Dataset
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import fields, setting
from pages.shared.session import session, shelf, tour
from pages.shared.session.shelf import Tour

HEIGHT = 36
"""Pixels of one line; on a narrow screen there are three."""
LONGEST_NAME = 18
"""Characters of the name of the data."""
MISSING = "missing"
INVENTED = "invented data"
"""Shown if the answer is about invented data, as those in use lack what the page needs."""

_HTML = '<nav class="sweetspot-strip" aria-label="From the data to the code"></nav>'
_STYLE = """
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
_SCRIPT = """
export default ({ data, parentElement, setTriggerValue }) => {
  const strip = parentElement.querySelector("nav");
  const items = [];
  for (const step of data.steps) {
    const button = document.createElement("button");
    button.type = "button";
    const name = document.createElement("b");
    name.textContent = step.name;
    button.append(name, step.content ? " " + step.content : "");
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
_mount = st.components.v2.component(
    "sweetspot_strip", html=_HTML, css=_STYLE, js=_SCRIPT, isolate_styles=False
)


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the strip.

    Attributes:
        name: Its name.
        content: What it holds now, in a word or two.
        is_missing: True if it is the step to take next.
        page: Title of the page it is taken on; empty for this one.
        selector: CSS of the field or button on this page that it leads to, if that is there.
        is_pressed: True if that button is pressed, and not only shown.
    """

    name: str
    content: str
    is_missing: bool = False
    page: str = ""
    selector: str = ""
    is_pressed: bool = False


def draw(question: Question, run: page_run.PageRun) -> None:
    """Draw the strip; call it once the page has drawn its answer."""
    shown_steps = list_steps(question, run)
    payload = {"steps": tuple(dataclasses.asdict(step) for step in shown_steps)}
    pressed = _mount(key="strip", data=payload, height=HEIGHT, on_step_change=_do_nothing).step
    page = next((step.page for step in shown_steps if step.name == pressed), "")
    if page:
        st.switch_page(catalogue.page(page).path)


def _do_nothing() -> None:
    """Do nothing: Streamlit hands on what was pressed only if there is a callback."""


def list_steps(question: Question, run: page_run.PageRun) -> tuple[Step, ...]:
    """Return the steps as the page stands now."""
    data, card = session.dataset(), run.shown_card
    name = "invented" if run.invented else data.name
    if len(name) > LONGEST_NAME:
        name = textwrap.shorten(name, LONGEST_NAME, placeholder="").rstrip(" :,;(-")
        if len(name) < LONGEST_NAME / 2:  # A long first word.
            name = data.name[: LONGEST_NAME - 1]
        name += "\N{HORIZONTAL ELLIPSIS}"
    bound = _describe_bound(question, card) if card is not None and card.numbers else ""
    return (
        Step("Data", name, is_missing=run.invented, page="Your data"),
        Step("Release", _describe_release(question, card), page="Start"),
        _build_range_step(question, card),
        Step("Bound", bound, selector=".sweetspot-number button"),
        Step("Private?", INVENTED, page="Your data")
        if run.invented
        else _build_privacy_step(data.is_private, card, run),
        Step(
            "Code",
            "" if card is None or card.code is None else "of invented data" if run.invented else "ready",
            selector=_select_button(run, keys.CARD_CODE),
            is_pressed=True,
        ),
    )


def _describe_release(question: Question, card: Answer | None) -> str:
    """Return the name of the release; before there is an answer, the page's word for it with the chosen options."""
    if card is not None and card.setting is not None:
        statistic, column = card.setting.statistic.value, card.setting.column
        return f"{statistic} of {column}" if column else statistic
    choices = {
        name: str(field.options[st.session_state[question.key(name)]])
        for name, field in question.fields.items()
        if f"{{{name}}}" in question.step and field.options is not None
    }
    text = question.step.format_map(choices)
    return text[:1].lower() + text[1:]


def _describe_bound(question: Question, card: Answer) -> str:
    """Return the bound of the card; on a page that draws it privately, "not drawn" until it was drawn."""
    if question.draws and not isinstance(card.disclosure, ReleaseFacts):
        return "not drawn"
    return card.numbers[0].text


def _select_button(run: page_run.PageRun, name: str) -> str:
    """Return the CSS selector of a button of the page's card; empty if there is no card."""
    return f".st-key-{run.key}{name} button" if run.key else ""


def _build_range_step(question: Question, card: Answer | None) -> Step:
    """Return the step of the value range: not needed, missing, or entered on this page or another."""
    ends = ("lower", "upper")
    end_fields = {field.shared: name for name, field in question.fields.items() if field.shared in ends}
    parameters = None if card is None else card.parameters
    if question.range_on is not None:
        return _build_other_range_step("" if parameters is None else question.range_on(parameters))
    if card is not None and (
        not end_fields or all(getattr(parameters, name, None) is None for name in end_fields.values())
    ):
        return Step("Range", "not needed")
    # The page itself has taken up what was entered elsewhere.
    state = st.session_state
    limits = [state.get(question.widgets[end_fields[end]]) if end in end_fields else None for end in ends]
    label = question.fields[end_fields["lower"]].label if end_fields else ""
    selector = f'input[aria-label="{label}"]'
    if None in limits:
        return Step("Range", MISSING, is_missing=True, selector=selector)
    return Step("Range", _describe_range(*limits), selector=selector)


def _build_other_range_step(title: str) -> Step:
    """Return the step of a page that takes its range from another page; the title is empty if it needs none."""
    if not title:
        return Step("Range", "not needed")
    question = catalogue.page(title)
    low, high = setting.read_value(question, "lower"), setting.read_value(question, "upper")
    if low is None or high is None:
        return Step("Range", MISSING, is_missing=True, page=title)
    return Step("Range", _describe_range(low, high), page=title)


def _describe_range(low: Any, high: Any) -> str:
    """Return the range in words, with its ε if it was drawn privately."""
    # What was drawn is on the account.
    cost = ""
    if catalogue.DRAWING and session.get_ledger().releases:
        on_card = importlib.import_module(f"pages.{catalogue.DRAWING.name}.on_card")
        if private_range := on_card.find_range(low, high):
            cost = f", drawn, ε = {format_rounded_up(private_range.facts.epsilon)}"
    return f"{wording.entered(low)} to {wording.entered(high)}{cost}"


def _build_privacy_step(is_private: bool, card: Answer | None, run: page_run.PageRun) -> Step:
    """Return the step of privacy: data or counts public, the bound drawn privately, or not yet."""
    page = "Choose privately"
    if card is not None and isinstance(card.disclosure, ReleaseFacts):
        return Step("Private?", f"drawn, ε = {format_rounded_up(card.disclosure.epsilon)}", page=page)
    if not is_private:
        return Step("Private?", "public data", page=page)
    setting = None if card is None else card.setting
    if setting is not None and not setting.protects_counts and not setting.uses_values:
        return Step("Private?", "counts public", page=page)
    goal = f'input[aria-label="{run.lacks}"]' if run.lacks else _select_button(run, "_draw")
    return Step("Private?", "not yet", is_missing=card is not None, page=page, selector=goal)


WIDTHS = (7, 3)
"""How the text and the buttons beside it share the width."""
LONGEST_STEP_NAME = 24
"""Characters of the name of the data from before: what the bar says fits in two lines."""
HINT = "The answer appears here."


def draw_begin_button() -> None:
    """Draw the button that begins the tour, unless it is on."""
    if shelf.get_tour() is None:
        steps = wording.counted(len(tour.list_questions()), "step")
        st.button(
            "Take the tour",
            key="tour_begin",
            icon=":material/tour:",
            type="tertiary",
            on_click=tour.begin,
            help=f"{steps} on sample data. Your own data and settings come back at its end.",
        )


def draw_tour(question: Question, tour_state: Tour) -> None:
    """Draw the bar.

    Args:
        question: The question whose page it stands on, drawn already.
        tour_state: The tour that is on.
    """
    text, buttons = st.columns(WIDTHS, vertical_alignment="center", gap="medium")
    step_question = tour.list_questions()[tour_state.number - 1]
    step = tour.step_of(step_question)
    answer = ""
    if question is step_question:
        answer = tour.write_answer(step, tour_state, st.session_state[keys.PAGE_PARAMETERS])
    with text:
        st.markdown(write_text(question, step_question, step, tour_state, answer))
    with buttons, st.container(horizontal=True, gap="xsmall", key="tour_buttons"):
        _draw_buttons(question is step_question and tour.has_step_data(step), tour_state, bool(answer))


def write_text(
    question: Question, step_question: Question, step: tour.Step, tour_state: Tour, answer: str
) -> str:
    """Return the text of the bar.

    Args:
        question: The question whose page it stands on.
        step_question: The question that the step is about.
        step: The step.
        tour_state: The tour that is on.
        answer: The answer; empty while it is not shown.
    """
    badge = f":blue-badge[Tour, step {tour_state.number} of {len(tour.list_questions())}]"
    name = f"**{wording.plain(_shorten_name(tour_state.saved_state.loaded_data.dataset))}**"
    ending = (
        f"*End* goes on with {name}."
        if tour_state.saved_state.named_only
        else f"*End* brings {name} back, and your settings."
    )
    if question is not step_question:
        return (
            f"{badge} The tour waits on **{step_question.title}**.  \n{ending} "
            "Bringing other data ends the tour, too."
        )
    if not tour.has_step_data(step):
        return f"{badge} Other data are in use than those of this step.  \n{ending}"
    heading = f"{badge} **{step.question}**"
    return f"{heading}  \n{answer}" if answer else f"{heading}  \n{step.move}. {HINT}  \n{ending}"


def _shorten_name(data: Dataset) -> str:
    return data.name if len(data.name) <= LONGEST_STEP_NAME else data.name[: LONGEST_STEP_NAME - 1] + "…"


def _draw_buttons(is_on_step: bool, tour_state: Tour, is_answered: bool) -> None:
    if not is_on_step:
        st.button("Back to the step", key="tour_again", on_click=tour.go_to_step, args=(tour_state.number,))
        st.button("End", key="tour_end", on_click=tour.end)
        return
    number = tour_state.number
    st.button("Back", key="tour_back", on_click=tour.go_to_step, args=(number - 1,), disabled=number == 1)
    if number < len(tour.list_questions()):
        main = fields.main_button()
        st.button("Next", key="tour_next", type=main, on_click=tour.go_to_step, args=(number + 1,))
    st.button("End", key="tour_end", on_click=tour.end)
    st.button("Show the answer", key="tour_answer", on_click=tour.show_answer, disabled=is_answered)
