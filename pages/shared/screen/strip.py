"""The way from the data to the code, in one line over the pages that choose a bound: what each step holds, or lacks.

A press on a step goes there: to its page, to its field or button on this one, or into the code.
"""

from __future__ import annotations

import importlib
import textwrap
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import ReleaseFacts, format_rounded_up
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import setting
from pages.shared.session import session

HEIGHT = 36
"""Pixels of one line; on a narrow screen there are three."""
LONGEST_NAME = 18
"""Characters of the name of the data."""
MISSING = "missing"
INVENTED = "invented data"
"""What the answer is about where the data in use lack what the page needs."""

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
  const parts = [];
  for (const step of data.steps) {
    const button = document.createElement("button");
    button.type = "button";
    const name = document.createElement("b");
    name.textContent = step.name;
    button.append(name, step.held ? " " + step.held : "");
    button.className = step.lacking ? "lacking" : "";
    button.onclick = () => {
      const there = step.goal ? document.querySelector(step.goal) : null;
      if (!there) return setTriggerValue("step", step.name);
      there.scrollIntoView({ block: "nearest" });
      if (step.press) there.click(); else there.focus();
    };
    const part = document.createElement("span");
    part.append(button);
    parts.push(part);
  }
  const focused = parentElement.activeElement ?? document.activeElement;
  const at = Array.from(strip.querySelectorAll("button")).indexOf(focused);
  strip.replaceChildren(...parts);
  if (at >= 0) strip.querySelectorAll("button")[at]?.focus({ preventScroll: true });
};
"""
_mount = st.components.v2.component(
    "sweetspot_strip", html=_HTML, css=_STYLE, js=_SCRIPT, isolate_styles=False
)


@dataclass(frozen=True)
class Step:
    """One step of the way.

    Attributes:
        name: What it is.
        held: What it holds now, in a word or two.
        lacking: Whether it is the step to take next.
        page: Title of the page it is taken on; empty for this one.
        goal: CSS of the field or button on this page that it leads to, where that is there.
        press: Whether that is pressed, and not only shown.
    """

    name: str
    held: str
    lacking: bool = False
    page: str = ""
    goal: str = ""
    press: bool = False


def draw(of: Question, run: page_run.Drawn) -> None:
    """Draw it, once the page has drawn its answer."""
    shown = steps(of, run)
    told = [
        {
            "name": step.name,
            "held": step.held,
            "lacking": step.lacking,
            "goal": step.goal,
            "press": step.press,
        }
        for step in shown
    ]
    pressed = _mount(key="strip", data={"steps": tuple(told)}, height=HEIGHT, on_step_change=_nothing).step
    page = next((step.page for step in shown if step.name == pressed), "")
    if page:
        st.switch_page(catalogue.page(page).path)


def _nothing() -> None:
    """Streamlit hands on what was pressed only where something is called."""


def steps(of: Question, run: page_run.Drawn) -> tuple[Step, ...]:
    """Return the steps, as the page stands."""
    data, card = session.dataset(), run.shown
    name = "invented" if run.invented else data.name
    if len(name) > LONGEST_NAME:
        name = textwrap.shorten(name, LONGEST_NAME, placeholder="").rstrip(" :,;(-")
        if len(name) < LONGEST_NAME / 2:  # A long first word.
            name = data.name[: LONGEST_NAME - 1]
        name += "\N{HORIZONTAL ELLIPSIS}"
    answered = card is not None and bool(card.numbers)
    return (
        Step("Data", name, lacking=run.invented, page="Your data"),
        Step("Release", _release(of, card), page="Start"),
        _range(of, card),
        Step("Bound", _bound(of, card) if answered else "", goal=".sweetspot-number button"),
        Step("Private?", INVENTED, page="Your data")
        if run.invented
        else _private(data.is_private, card, run),
        Step(
            "Code",
            "" if card is None or card.code is None else "of invented data" if run.invented else "ready",
            goal=_button(run, keys.CARD_CODE),
            press=True,
        ),
    )


def _release(of: Question, card: Answer | None) -> str:
    """Return what is released; before an answer, the page's word for it, with fields in braces as they are
    chosen.
    """
    if card is not None and card.setting is not None:
        kind, column = card.setting.statistic.value, card.setting.column
        return f"{kind} of {column}" if column else kind
    chosen = {
        name: str(field.options[st.session_state[of.key(name)]])
        for name, field in of.fields.items()
        if f"{{{name}}}" in of.step and field.options is not None
    }
    text = of.step.format_map(chosen)
    return text[:1].lower() + text[1:]


def _bound(of: Question, card: Answer) -> str:
    """Return the bound of the card; where the page draws it, what the card says before the draw is a cost."""
    if of.draws and not isinstance(card.disclosure, ReleaseFacts):
        return "not drawn"
    return card.numbers[0].text


def _button(run: page_run.Drawn, name: str) -> str:
    return f".st-key-{run.key}{name} button" if run.key else ""


def _range(of: Question, card: Answer | None) -> Step:
    ends = {
        of.fields[name].shared: name for name in of.fields if of.fields[name].shared in ("lower", "upper")
    }
    asked = None if card is None else card.parameters
    if of.range_on is not None:
        return _range_elsewhere("" if asked is None else of.range_on(asked))
    if card is not None and (not ends or all(getattr(asked, name, None) is None for name in ends.values())):
        return Step("Range", "not needed")
    # The page itself has taken up what was entered elsewhere.
    state = st.session_state
    held = [None if end not in ends else state.get(of.widgets[ends[end]]) for end in ("lower", "upper")]
    if None in held:
        label = of.fields[ends["lower"]].label if ends else ""
        return Step("Range", MISSING, lacking=True, goal=f'input[aria-label="{label}"]')
    return Step("Range", _ends(*held), goal=f'input[aria-label="{of.fields[ends["lower"]].label}"]')


def _range_elsewhere(title: str) -> Step:
    """Return the step on a page that takes its range from another page."""
    if not title:
        return Step("Range", "not needed")
    there = catalogue.page(title)
    low, high = setting.held(there, "lower"), setting.held(there, "upper")
    if low is None or high is None:
        return Step("Range", MISSING, lacking=True, page=title)
    return Step("Range", _ends(low, high), page=title)


def _ends(low: Any, high: Any) -> str:
    """Return the range, and what it cost where it was drawn."""
    # What was drawn is on the account.
    drawing = catalogue.DRAWING if session.ledger().releases else None
    drawn = drawing and importlib.import_module(f"pages.{drawing.name}.on_card").find_range(low, high)
    cost = f", drawn, ε = {format_rounded_up(drawn.facts.epsilon)}" if drawn else ""
    return f"{wording.entered(low)} to {wording.entered(high)}{cost}"


def _private(private: bool, card: Answer | None, run: page_run.Drawn) -> Step:
    page = "Choose privately"
    if card is not None and isinstance(card.disclosure, ReleaseFacts):
        return Step("Private?", f"drawn, ε = {format_rounded_up(card.disclosure.epsilon)}", page=page)
    if not private:
        return Step("Private?", "public data", page=page)
    setting = None if card is None else card.setting
    if setting is not None and not setting.protects_counts and not setting.uses_values:
        return Step("Private?", "counts public", page=page)
    goal = f'input[aria-label="{run.lacks}"]' if run.lacks else _button(run, "_draw")
    return Step("Private?", "not yet", lacking=card is not None, page=page, goal=goal)
