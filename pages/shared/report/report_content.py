"""The content of a page for its report, the report, and what a person takes away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dpcore import questions
from dpcore.answer.answer import Answer
from dpcore.answer.distribution import plot_counts
from dpcore.answer.methods import Methods
from dpcore.answer.section import list_plots
from dpcore.common.parameters import FieldOrigin
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.text_fields import from_fields
from dpcore.data import generators, samples
from dpcore.dataset import Dataset
from dpcore.report import content, report_html, script
from dpcore.report.content import Line, Report, remove_private
from dpcore.report.document import write_report_json
from dpcore.report.script import Source
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields.fields import main_button
from pages.shared.figures import figures
from pages.shared.session import session


def of_answer(
    question: Question,
    answer: Answer,
    source: script.Source,
    formula: str = "formula",
    setting_labels: Mapping[str, str] | None = None,
    label: str = "",
    summary: tuple[Line, ...] | None = None,
) -> Report:
    """Build the report of a page.

    Args:
        question: The page.
        answer: The answer to it.
        source: The data source of the script.
        formula: Which of the question's texts says how it is computed.
        setting_labels: Fields of the parameters that matter for the answer, with what they are in words; None for all.
        label: What stands above its plots.
        summary: What the answer is about, if that is not the data in use alone; their distribution is left out.
    """
    parameters = answer.parameters
    plots = list_plots(answer, source.dataset)
    if summary is None:
        plots.append(replace(plot_counts(source.dataset), key="distribution"))
    is_private = source.shown_disclosure is Disclosure.PRIVATE
    private_settings = list_private_settings(question, parameters) if is_private else ()
    names = question.get_labels() if setting_labels is None else setting_labels
    return Report(
        page=question.title,
        question=question.sentence,
        answers=(("", answer),),
        figures=tuple(replace(plot, alt=f"{label}. {plot.alt}") if label else plot for plot in plots),
        settings=content.list_settings(parameters, names, private_settings),
        summary=content.summarise_dataset(source.dataset) if summary is None else summary,
        disclosure=source.shown_disclosure,
        formulae=question.formula(formula),
        methods=answer.methods,
        private_settings=private_settings,
        figure_label=label,
        write_script=lambda created, public_only: script.write_script(
            question.title,
            parameters,
            source,
            f"dpcore.{question.name}.answer",
            created,
            public_only,
            questions.call_with(question.name, parameters),
        ),
    )


def list_private_settings(question: Question, parameters: Any) -> tuple[str, ...]:
    """List the fields that a person may have filled by looking at private data, by name.

    A field that its question declares public is never read off data, and one that stands as it began was not either.
    """
    return tuple(
        name
        for name, field in question.fields.items()
        if field.origin is not FieldOrigin.PUBLIC
        and (value := getattr(parameters, name)) is not None
        and value != question.forgotten(name)
    )


HEADING = "**For your methods section**"
AS_IT_STANDS = (
    "They describe a release that follows the answer above to the letter: change what you did otherwise."
)
WITHHELD = (
    "Bound and error are left out: they were computed from your private data, and ε does not cover them. "
    "These sentences may be published; with the bound in them they may not. A bound chosen without these "
    "data, or under *Choose privately*, may be printed."
)

_HTML = """
<div class="sweetspot-copied">
  <div class="row"><span class="label"></span><span class="buttons"></span></div>
  <pre></pre>
</div>
"""
_STYLE = """
.sweetspot-copied { color: var(--st-text-color); font-family: var(--st-font); font-size: 0.875rem; line-height: 1.5; }
.sweetspot-copied .row {
  display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.5rem;
}
.sweetspot-copied pre {
  margin: 0.25rem 0 0; padding: 0.6rem 0.8rem; background: var(--st-secondary-background-color);
  border-radius: var(--st-base-radius); color: inherit; font: inherit; white-space: pre-wrap; overflow-wrap: anywhere;
}
.sweetspot-copied.code pre { font-family: var(--st-code-font); font-size: 0.8rem; max-height: 16rem; overflow-y: auto; }
.sweetspot-copied .buttons { display: flex; gap: 0.5rem; }
.sweetspot-copied button {
  font: inherit; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.2rem 0.6rem; cursor: pointer;
}
.sweetspot-copied button:hover { border-color: var(--st-primary-color); }
.sweetspot-copied button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-copied .buttons { display: flex; gap: 0.5rem; }
.sweetspot-copied button { display: none; } }
"""
_SCRIPT = """
const SHOWN_MILLISECONDS = 1500;
export default ({ data, parentElement }) => {
  const find = (name) => parentElement.querySelector(name);
  find(".sweetspot-copied").classList.toggle("code", data.code);
  find(".label").textContent = data.label;
  const text = find("pre");
  text.textContent = data.text;
  text.tabIndex = data.code ? 0 : -1; // It scrolls: the keyboard must reach it.
  const waiting = [];
  find(".buttons").replaceChildren(...data.copies.map(([name, copied]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-label", `${name}: ${data.label}`);
    button.onclick = async () => {
      try {
        await navigator.clipboard.writeText(copied);
        button.textContent = "Copied";
      } catch (error) { // No permission: it can be copied by hand.
        text.textContent = copied;
        const range = document.createRange();
        range.selectNodeContents(text);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected";
      }
      waiting.push(setTimeout(() => { button.textContent = name; }, SHOWN_MILLISECONDS));
    };
    return button;
  }));
  return () => waiting.forEach(clearTimeout);
};
"""

_mount = st.components.v2.component("sweetspot_copied", html=_HTML, css=_STYLE, js=_SCRIPT)


def show(methods: Methods | None, stem: str) -> None:
    """Show the sentences, a note on how they may be used, and the BibTeX entries of what they cite.

    Args:
        methods: The page's sentences; None if nothing was chosen yet.
        stem: Part of the widgets' keys, unique on the page.
    """
    st.markdown(HEADING)
    if methods is None:
        st.caption("Nothing has been chosen yet, so that there is nothing to say.")
        return
    copies = [("Copy", methods.text), ("Copy as LaTeX", methods.latex)]
    _show_box("Sentences", methods.text, copies, f"cite_text_{stem}", code=False)
    st.caption(f"{AS_IT_STANDS} {WITHHELD if methods.is_withheld else ''}")
    cards.label(methods.shown_disclosure)
    copies = [("Copy", methods.bibtex)]
    _show_box("BibTeX of the works cited", methods.bibtex, copies, f"cite_bibtex_{stem}", code=True)


def _show_box(label: str, text: str, copies: Sequence[tuple[str, str]], key: str, *, code: bool) -> None:
    data = {"label": label, "text": text, "copies": [list(copy) for copy in copies], "code": code}
    _mount(key=key, data=data, height="content")


MEGABYTES = 1.3
"""Size of a report with figures, most of it plotly.js, which is 1.2 MB."""
KILOBYTES = 30
"""Most that a report without figures has: 17 to 29 kB."""


def source(needs_rows: bool = False, disclosure: Provenance | None = None) -> Source:
    """Return the source of a script on the session's data; arguments as in `Source`."""
    session_data = session.get_loaded()
    name = session_data.origin.name
    generator = None
    if name in generators.GENERATORS:
        generator = from_fields(generators.GENERATORS[name], session_data.origin.fields)
    sample = name if name in samples.SAMPLES else ""
    return Source(session_data.dataset, sample, generator, needs_rows=needs_rows, disclosure=disclosure)


def source_of(data: Dataset) -> Source:
    """Return the source of a script on the data that a page shows, with rows.

    If the data in use lack what the page needs, it shows invented data, and the script reads these.
    """
    if data.digest == session.dataset().digest:
        return source(needs_rows=True)
    return Source(data, session.SAMPLE_WITH_EVERYTHING, needs_rows=True)


AnswerFile = tuple[str, str, Callable[[], str | bytes]]
"""A part of the answer as a file: label of its button, name of the file, and what makes it."""


def draw(
    stem: str,
    disclosure: Provenance,
    build_content: Callable[[], Report],
    methods: Methods | None,
    files_heading: str = "",
    files: Sequence[AnswerFile] = (),
    files_disclosure: Provenance | None = None,
    choice: Callable[[], str] | None = None,
) -> None:
    """Draw the buttons: for private data two sets, one for oneself and one that may be published.

    Args:
        stem: Start of the files' names; also part of the widgets' keys.
        disclosure: The disclosure of the data behind the answer.
        build_content: Makes the report; called on a click, in a thread that knows nothing of the session, so that it
            must not look at the session or at caches of it.
        methods: Sentences for a methods section, below the buttons and in the report; None if nothing was chosen yet.
        files_heading: What the files hold, if they are files of their own; empty for none.
        files: The files, except the page's own JSON, which is the last.
        files_disclosure: The disclosure of the data behind the files, if it differs.
        choice: Makes the page's own JSON; by default it is that of the report's answer.
    """

    def with_methods() -> Report:
        return replace(build_content(), methods=methods)

    _files(stem, disclosure, with_methods)
    show(methods, stem)
    if files_heading:
        st.markdown(files_heading)
        make_choice = choice or (lambda: _choice(build_content().answer))
        choice_file: AnswerFile = ("Choice (JSON)", f"{stem}_choice.json", make_choice)
        cards.file_buttons([*files, choice_file], files_disclosure or disclosure)


def _choice(answer: Answer) -> str:
    assert answer.choice is not None
    return answer.choice()


def _files(stem: str, disclosure: Provenance, build_content: Callable[[], Report]) -> None:
    st.markdown(
        "**The whole answer.** The *report* is one file for any browser, on paper too: choice, figures that move, "
        "data, assumptions, proofs and formulae. It loads nothing from a network. The *JSON* has the same content for "
        "programs. The *script* computes and draws it again."
    )
    if disclosure is not Disclosure.PRIVATE:
        st.caption(
            f"About {MEGABYTES} MB with the plotting script. Label of the numbers: *{disclosure.label}*."
        )
        _buttons(stem, disclosure, build_content, public_only=False)
        return
    private_column, public_column = st.columns(2, gap="large")
    with private_column:
        st.markdown(
            "**Everything, for yourself.** The choice, its figures and every number computed from your private data, "
            f"each labelled so. About {MEGABYTES} MB; the files' names say *PRIVATE-do-not-publish*."
        )
        _buttons(stem, disclosure, build_content, public_only=False)
    with public_column:
        st.markdown(
            "**Only what may be published.** Question, assumptions, formulae and DP releases, and what was left out: "
            "**neither the choice nor its figures**, which are computed from private data. Less than "
            f"{KILOBYTES} kB. The script names no file of yours. **What you entered is in all three:** empty first "
            "what you chose by looking at these data."
        )
        _buttons(stem, disclosure, build_content, public_only=True)


def _buttons(
    stem: str, disclosure: Provenance, build_content: Callable[[], Report], public_only: bool
) -> None:
    """Draw the buttons of report, JSON and script; the report that holds the answer is the main one."""
    report_disclosure = Disclosure.PUBLIC if public_only else disclosure
    public = "_public" if public_only else ""
    report = figures.write_file_name(f"{stem}_report{public}", report_disclosure)
    script = figures.write_file_name(f"{stem}_script{public}", Disclosure.PUBLIC)
    with st.container(horizontal=True):
        for label, ending, mime, name, make in (
            ("Report (HTML)", "html", "text/html", report, write_html),
            ("Report (JSON)", "json", "application/json", report, write_json),
            ("Script (Python)", "py", "text/x-python", script, write_script),
        ):
            is_main = ending == "html" and not public_only
            st.download_button(
                label,
                _maker(make, build_content, public_only),
                file_name=f"{name}.{ending}",
                mime=mime,
                key=f"{stem}_report{public}_{ending}",
                on_click="ignore",
                type=main_button() if is_main else "secondary",
                icon=":material/download:",
            )


def write_html(report: Report, created: datetime, public_only: bool) -> str:
    """Write the report as HTML, without what was computed from private data if ``public_only``."""
    return report_html.write_report_html(remove_private(report) if public_only else report, created)


def write_json(report: Report, created: datetime, public_only: bool) -> str:
    """Write the report as JSON, likewise."""
    return write_report_json(remove_private(report) if public_only else report, created)


def write_script(report: Report, created: datetime, public_only: bool) -> str:
    """Write the script; it names no file of private data if ``public_only``."""
    assert report.write_script is not None
    return report.write_script(created, public_only)


def _maker(
    make: Callable[[Report, datetime, bool], str], build_content: Callable[[], Report], public_only: bool
) -> Callable[[], str]:  # fmt: skip
    return lambda: make(build_content(), datetime.now(UTC), public_only)
