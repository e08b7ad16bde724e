"""The answer card, one form for the answer of every page: labels, numbers, code, files."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.answer.answer import PART_STYLES, Answer
from dpcore.code import LIBRARIES, write
from dpcore.code.choice import Choice, Code, read_name_table
from dpcore.code.forms import CodeChoice
from dpcore.code.several import Several
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, classify, write_file_name
from dpcore.common.programs import Program
from dpcore.common.wording import plain
from dpcore.dataset import Dataset
from dpcore.report.charts import LINE_STYLES
from pages.shared.base import catalogue, keys, page_run
from pages.shared.base.question import Question
from pages.shared.fields import fields

HEIGHT = 520


def show_code(code_choice: CodeChoice, key: str) -> None:
    """Draw the choice of what to apply and of the library, then the program or why there is none.

    Args:
        code_choice: What can be written, and for which library first.
        key: The card's, unique on the page.
    """
    index = 0
    if len(code_choice.forms) > 1:
        # The names carry the bound, which moves: the position is what is remembered.
        names_by_index = {i: name for i, (name, _) in enumerate(code_choice.forms)}
        index = fields.choice("What to apply", names_by_index, keys.CODE_FORM + key) or 0
    choice = code_choice.forms[index][1]
    if isinstance(choice, Code):
        _draw_program(choice, choice.file_name, key)
        return
    library = _choose_library(key, choice, code_choice.library)
    program = write(choice, library)
    if not program.text:
        for sentence in program.differences:
            st.info(plain(sentence, 2000), icon=":material/block:")
        other_choices = ((name, other) for name, other in code_choice.forms if not isinstance(other, Code))
        named_programs = ((name, other, write(other, library)) for name, other in other_choices)
        if (nearest_program := next((entry for entry in named_programs if entry[2].text), None)) is not None:
            name, choice, program = nearest_program
            st.caption(f"The program below is for **{plain(name, 200)}**, which {library.value} has.")
    if program.text:
        stem, _, ending = program.file_name.rpartition(".")
        notes = [plain(sentence, 2000) for sentence in program.differences]
        if not choice.has_known_columns:
            notes.insert(0, "File and columns are placeholders.")
        _draw_program(program, f"{write_file_name(stem, choice.disclosure)}.{ending}", key, notes)
    # Not a dialog of its own: the panel stands in one, and Streamlit refuses a dialog inside another.
    with st.expander("The same thing is called …", icon=":material/translate:"):
        st.markdown(read_name_table())
        st.caption("After an em dash stands what comes nearest. Read on 2026-11-21.")


def _draw_program(code: Code, file_name: str, key: str, notes: Sequence[str] = ()) -> None:
    """Draw a program, notes on how the program differs from the page if there are any, and its download button."""
    st.code(code.text, language=code.language, height=HEIGHT, wrap_lines=True)
    if notes:
        st.markdown("**What differs**\n" + "\n".join(f"- {sentence}" for sentence in notes))
    fields.download_button("Download", file_name, lambda: code.text, f"{key}_code_file")


def _choose_library(key: str, choice: Choice | Several, page_library: Program | None) -> Program:
    """Draw the choice of a library and return it; all cards share the choice, although each has its own widget.

    It is the program of the page, until another is chosen here; of pages without one the first that has such a release.
    """
    widget_key, state = f"{keys.CODE_LIBRARY}_{key}", st.session_state
    if page_library is not None and state.get(keys.CODE_PROGRAM) is not page_library:
        state[keys.CODE_PROGRAM], state[keys.CODE_LIBRARY] = page_library, page_library.name
    if (current_name := state.get(keys.CODE_LIBRARY)) is None:
        able_libraries = (library for library in LIBRARIES if write(choice, library).text)
        current_name = next(able_libraries, Program.OPENDP).name
    if state.get(widget_key) != current_name:
        state[widget_key] = current_name
    st.segmented_control(
        "Library",
        [library.name for library in LIBRARIES],
        format_func=lambda name: wording.capital(Program[name].value),
        key=widget_key,
        required=True,
        on_change=lambda: state.update({keys.CODE_LIBRARY: state.get(widget_key)}),
    )
    return Program[state[widget_key]]


_LARGE_HTML = """
<div class="sweetspot-number">
  <div class="row"><span class="label"></span><button type="button"></button></div>
  <div class="value"></div>
  <div class="note"></div>
  <div class="parts"></div>
</div>
"""

_LARGE_CSS = """
.sweetspot-number { color: var(--st-text-color); font-family: var(--st-font); line-height: 1.3; }
.sweetspot-number .label { font-size: 0.875rem; }
.sweetspot-number .row { display: flex; align-items: center; gap: 0.5rem; min-height: 1.75rem; }
.sweetspot-number .value { font-size: 2.25rem; font-weight: 600; overflow-wrap: anywhere; }
.sweetspot-number .unit { font-size: 1rem; font-weight: 400; }
.sweetspot-number :is(.note, .parts) { font-size: 0.875rem; }
.sweetspot-number .parts { display: flex; flex-wrap: wrap; column-gap: 0.75rem; }
.sweetspot-number .parts span::before {
  content: ""; display: inline-block; width: 0.6em; height: 0.6em; margin-right: 0.3em; background: var(--part);
}
.sweetspot-number button {
  font: inherit; font-size: 0.875rem; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.1rem 0.6rem; cursor: pointer; flex: none;
}
.sweetspot-number button:hover { border-color: var(--st-primary-color); }
.sweetspot-number button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-number button { display: none; } }
"""

_LARGE_JS = """
const SHOWN_MILLISECONDS = 1500;
export default ({ data, parentElement }) => {
  const find = (name) => parentElement.querySelector(name);
  find(".label").textContent = data.label;
  const unit = document.createElement("span");
  unit.className = "unit";
  unit.textContent = data.unit ? ` ${data.unit}` : "";
  find(".value").replaceChildren(data.value, unit);
  find(".note").textContent = data.error.length ? `${data.error[0]}: ${data.error.slice(1).join(" ").trim()}` : "";
  find(".parts").replaceChildren(...data.parts.map(([name, text, colour]) => {
    const part = document.createElement("span");
    part.style.setProperty("--part", colour);
    part.textContent = `${name} ${text}`;
    return part;
  }));
  const button = find("button");
  button.hidden = !data.copied;
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${data.copied}`);
  let waiting;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.copied);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = data.copied; // No permission: it can be selected and copied by hand.
    }
    clearTimeout(waiting);
    waiting = setTimeout(() => { button.textContent = "Copy"; }, SHOWN_MILLISECONDS);
  };
  return () => clearTimeout(waiting);
};
"""

LARGE_BEGINS = "number_"
"""What stands before a number's key in the session's state."""

MOUNT_LARGE = st.components.v2.component("sweetspot_number", html=_LARGE_HTML, css=_LARGE_CSS, js=_LARGE_JS)


_GRID_HTML = '<dl class="sweetspot-grid"></dl>'

_GRID_CSS = """
.sweetspot-grid {
  display: grid; gap: 1rem; margin: 0;
  --widest: calc((100% - (var(--columns) - 1) * 1rem) / var(--columns));
  grid-template-columns: repeat(auto-fit, minmax(max(150px, var(--widest)), 1fr));
  color: var(--st-text-color); font-family: var(--st-font); line-height: 1.3;
}
.sweetspot-grid .wide { grid-column: 1 / -1; }
.sweetspot-grid dt { font-size: 0.875rem; }
.sweetspot-grid dd { margin: 0; overflow-wrap: anywhere; }
.sweetspot-grid .value { font-size: 1.75rem; }
.sweetspot-grid .note, .sweetspot-grid .help { font-size: 0.875rem; }
.sweetspot-grid .help { border-left: 2px solid var(--st-border-color); padding-left: 0.5rem; margin-top: 0.25rem; }
.sweetspot-grid button {
  font: inherit; font-size: 0.75rem; line-height: 1; width: 1.25rem; height: 1.25rem; padding: 0; margin-left: 0.35rem;
  color: var(--st-text-color); background: transparent; border: 1px solid var(--st-border-color); border-radius: 50%;
  cursor: pointer;
}
.sweetspot-grid button:hover { border-color: var(--st-primary-color); }
.sweetspot-grid button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-grid button { display: none; } }
"""

# A number that stays keeps its element, and with it whether its explanation is open.
_GRID_JS = """
const CELL = `<dt><span class="label"></span><button type="button" aria-expanded="false">?</button></dt>
  <dd class="value"></dd><dd class="note"></dd><dd class="help" hidden></dd>`;
const createCell = () => {
  const cell = document.createElement("div");
  cell.innerHTML = CELL;
  const [button, help] = [cell.querySelector("button"), cell.querySelector(".help")];
  button.onclick = () => {
    help.hidden = !help.hidden;
    button.setAttribute("aria-expanded", String(!help.hidden));
  };
  return cell;
};
export default ({ data, parentElement }) => {
  const grid = parentElement.querySelector(".sweetspot-grid");
  // At most five in a row, and no row of one where others are full: six are two rows of three, seven four and three.
  const short = data.filter(({ wide }) => !wide).length;
  grid.style.setProperty("--columns", Math.ceil(short / Math.ceil(short / 5)) || 1);
  while (grid.children.length < data.length) grid.append(createCell());
  while (grid.children.length > data.length) grid.lastChild.remove();
  data.forEach(({ wide, ...texts }, place) => {
    const cell = grid.children[place];
    cell.className = wide ? "wide" : "";
    for (const [name, text] of Object.entries(texts)) {
      const element = cell.querySelector(`.${name}`);
      if (element.textContent !== text) element.textContent = text;
    }
    const button = cell.querySelector("button");
    button.style.display = texts.help ? "" : "none";
    button.title = texts.help;
    button.setAttribute("aria-label", `What this is: ${texts.label}`);
    if (!texts.help) cell.querySelector(".help").hidden = true;
  });
};
"""

GRID_BEGINS = "numbers_"
"""What stands before a grid's key in the session's state."""

MOUNT_GRID = st.components.v2.component("sweetspot_grid", html=_GRID_HTML, css=_GRID_CSS, js=_GRID_JS)


BADGES = {
    Disclosure.PUBLIC: ("public input", "green", ":material/public:"),
    Disclosure.PRIVATE: ("computed from private data: do not publish", "orange", ":material/lock:"),
    Disclosure.DP_RELEASE: ("DP release", "blue", ":material/verified_user:"),
}


def write_badge(disclosure: Provenance, text: str = "") -> str:
    """Write the badge of a disclosure as Markdown; ``text`` replaces its words, not its colour."""
    badge_text, color, icon = BADGES[classify(disclosure)]
    # Not `st.badge`, which is cut where it does not fit: "do not publish" stands at its end.
    return f":small[:{color}-background[:{color}[{icon} {text or badge_text}]]]"


def label(disclosure: Provenance, text: str = "", prefix: str = "", suffix: str = "") -> None:
    """Draw the badge of a disclosure between two Markdown texts, and the facts of a release unless ``text`` is given.

    They are one element, because the browser's work at every step grows with the number of elements.
    """
    st.markdown("\n\n".join(filter(None, (prefix, write_badge(disclosure, text), suffix))))
    if isinstance(disclosure, ReleaseFacts) and not text:
        st.caption(disclosure.label)  # Too long for a badge, which is cut where it does not fit.


def draw_answer(card: Answer, key: str) -> None:
    """Draw the answer: the headline, the number with its error, and the way to the code.

    Args:
        card: What it says; the rest of it is for `behind`.
        key: Unique on the page.
    """
    selection = None
    if (run := page_run.CURRENT_RUN.get()) is not None and run.answer_card is None:
        run.answer_card = card
        selection = get_private_selection(card)
        if run.is_private and (selection_module := import_selection_module()) is not None:
            card = selection_module.with_range((selection and selection.card) or card)
    if run is not None and run.shown_card is None:
        run.shown_card = card
    if selection is not None and selection.has_button and selection.is_open(f"{key}_draw"):
        # The open choice stands where its button stood, with all of it in sight.
        card = replace(card, detail="", near_optimal="")
    # Words of one answer take a line more than those of the next. As high as the column of the figure, and with the
    # buttons at its end, nothing moves while a slider does.
    with st.container(key=key, height="stretch"):
        with st.container(height="stretch"):
            _draw_words(card, key, run is not None and run.question.draws_bounds)
            if selection is not None and run is not None and run.selected_excess is not None:
                st.markdown(selection.write_excess(run.selected_excess))
        is_undrawn = selection is not None and selection.card is None
        if selection is not None and is_undrawn:
            selection.draw_step(f"{key}_draw", fields.main_button())
        if card.code is not None:
            code_label = "Code for your library"
            options: dict[str, Any] = {"is_main": True}
            if is_undrawn:
                code_label = "Use the number as it is"
                options = {"type": "tertiary", "help": "No ε covers it: it was read off the private data."}
            args = _code_dialog, card.code, card.disclosure, key
            fields.button(code_label, key + keys.CARD_CODE, "code", page_run.request_dialog, *args, **options)
        if selection is not None and not is_undrawn and selection.has_button:
            selection.draw_step(f"{key}_draw", "tertiary")


def _draw_words(card: Answer, key: str, selects_privately: bool) -> None:
    """Draw headline, number and sentences of an answer; a page that selects privately offers no copy before."""
    st.markdown(f"## {card.headline}")
    if card.numbers:
        number, *errors = card.numbers
        error_texts = (errors[0].label, errors[0].text, errors[0].note) if errors else None
        part_texts = [(p.name, p.text, LINE_STYLES[PART_STYLES[p.name]]["color"]) for p in card.error_parts]
        # Where the page draws its bound, what stands here before is a cost: nobody's library takes it.
        is_cost = selects_privately and not isinstance(card.disclosure, ReleaseFacts)
        copied_text = "" if is_cost else number.text_to_copy
        draw_number(number.label, number.text, number.note, copied_text, key, error_texts, part_texts)
    near_optimal_text = f"**Good enough:** {card.near_optimal}" if card.near_optimal else ""
    label(card.disclosure, suffix="\n\n".join(filter(None, (near_optimal_text, card.detail))))


def get_private_selection(card: Answer) -> Any | None:
    """Return the ``BoundSelection`` of a card in this run, from a cache; None if its bound cannot be selected."""
    run, selection_module = page_run.CURRENT_RUN.get(), import_selection_module()
    if run is None or not run.is_private or selection_module is None:
        return None
    if run.card_and_selection is None or run.card_and_selection[0] is not card:
        run.card_and_selection = card, selection_module.build_selection(card)
    return run.card_and_selection[1]


def import_selection_module() -> Any | None:
    """Return the module ``on_card`` of the question that selects bounds privately; None without such a question.

    Its ``build_selection(card)`` returns the ``BoundSelection`` of a card, or None. ``with_range(card)`` adds the cost
    of the card's drawn range to the card, and ``divide_total`` replaces a total epsilon in a page's parameters.
    """
    selection_page = catalogue.DRAWING
    return None if selection_page is None else importlib.import_module(f"pages.{selection_page.name}.on_card")


def divide_total(question: Question, data: Any, parameters: Any) -> tuple[Any, str]:
    """Return parameters with what a total epsilon leaves for the release, and a sentence on that.

    Without a total, or without a page that selects privately: the same parameters, and an empty sentence.
    """
    if (selection_module := import_selection_module()) is None:
        return parameters, ""
    parameters_and_sentence: tuple[Any, str] = selection_module.divide_total(question, data, parameters)
    return parameters_and_sentence


def offer_range(dataset: Dataset) -> None:
    """Draw the button that leads to a private draw of the range, if the data are private and have values."""
    if (selection_module := import_selection_module()) is not None:
        selection_module.offer_range(dataset)


@page_run.build_dialog("Code for your library", "code")
def _code_dialog(code_choice: CodeChoice, disclosure: Provenance, key: str) -> None:
    """Show the code for a card in a dialog."""
    show_code(code_choice, key)
    label(disclosure)


def draw_behind(card: Answer) -> None:
    """Draw the tab behind the answer: how sure it is, its assumptions, and the cost of other choices."""
    if len(card.numbers) > 1:
        draw_numbers([(n.label, n.text, n.note, n.help) for n in card.numbers], "behind")
    left_column, right_column = st.columns(2, gap="large")
    fact_lines = [f"- **{name}:** {sentence}" for name, sentence in card.facts.items()]
    if card.proofs:
        fact_lines.append("\n**How sure**\n")
        fact_lines += [f"- **{claim}:** {reason} {proof.sentence}" for claim, proof, reason in card.proofs]
    if fact_lines:
        left_column.markdown("\n".join(fact_lines))
    with right_column:
        assumption_lines = "\n".join(f"- {assumption}." for assumption in card.all_assumptions)
        label(card.disclosure, prefix=f"**What is assumed**\n\n{assumption_lines}")


# --- Numbers and files ------------------------------------------------------------------------------------------------


def draw_number(
    label: str,
    value_text: str,
    unit: str,
    copied_text: str,
    key: str,
    error_texts: tuple[str, str, str] | None = None,
    part_texts: Sequence[tuple[str, str, str]] = (),
) -> None:
    """Draw one large number with a button that copies it.

    Args:
        label: What it is.
        value_text: As it is read.
        unit: After the value; empty for none.
        copied_text: What the button copies: the digits alone, as a program takes them; no button where empty.
        key: Unique on the page.
        error_texts: Label, value and note of its error, the line below; None for none.
        part_texts: Name, size and colour of each part of the error, in a line below that.
    """
    texts = {"label": label, "value": value_text, "unit": unit, "copied": copied_text}
    payload = {**texts, "error": error_texts or (), "parts": part_texts}
    MOUNT_LARGE(key=f"{LARGE_BEGINS}{key}", data=payload, height="content")


LONGEST_VALUE = 12
"""Characters of a value that fit in a cell of the narrowest page; a longer one has a row of its own."""


def draw_numbers(texts_of_numbers: Sequence[tuple[str, str, str, str]], key: str) -> None:
    """Draw several numbers beside each other, each with a note, and an explanation on demand.

    This is one element, where `st.metric` in a grid takes a dozen for four numbers. Whenever a slider moves, the
    browser goes through all elements of the page three times.

    Args:
        texts_of_numbers: Label, value, note and explanation of each; the last two may be empty.
        key: Unique on the page.
    """
    cell_payloads = [
        {"label": label, "value": text, "note": note, "help": help, "wide": len(text) > LONGEST_VALUE}
        for label, text, note, help in texts_of_numbers
    ]
    MOUNT_GRID(key=f"{GRID_BEGINS}{key}", data=cell_payloads, height="content")


def file_button(
    label: str,
    base_name: str,
    disclosure: Provenance,
    content_or_writer: str | Callable[[], str | bytes],
    *,
    key: str = "",
    is_quiet: bool = False,
    help: str = "",
) -> None:
    """Draw a button that downloads a file, with the disclosure of its numbers in the file's name.

    The file is made when the button is pressed, without a rerun.

    Args:
        label: On the button.
        base_name: Name of the file with its ending, before the words for its disclosure are put in.
        disclosure: Of the data behind the file; it goes into the name.
        content_or_writer: The file's text, or a function that returns its content.
        key: Of the widget; by default the name without its ending, and ``_file``.
        is_quiet: True to draw the button as plain text.
        help: What the file is good for.
    """
    stem, _, ending = base_name.rpartition(".")
    file_name = f"{write_file_name(stem, disclosure)}.{ending}"
    options: dict[str, Any] = {"type": "tertiary" if is_quiet else "secondary", "help": help}
    fields.download_button(label, file_name, content_or_writer, key or f"{stem}_file", **options)


def file_buttons(files: Iterable[tuple[str, str, Callable[[], str | bytes]]], disclosure: Provenance) -> None:
    """Draw buttons beside each other that download files: label, name and content of each."""
    with st.container(horizontal=True):
        for label, name, make_content in files:
            file_button(label, name, disclosure, make_content)
