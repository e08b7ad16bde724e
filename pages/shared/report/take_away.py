"""The part of every Downloads tab that takes the whole answer away: report, its JSON, and a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import streamlit as st

from dpcore.answer import Answer
from dpcore.answer.methods import Methods
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.text_fields import from_fields
from dpcore.data import generators, samples
from dpcore.dataset import Dataset
from dpcore.report import report_html
from dpcore.report.content import Report, remove_private
from dpcore.report.document import write_report_json
from dpcore.report.script import Source
from pages.shared.card import cards
from pages.shared.fields.fields import main_button
from pages.shared.figures import figures
from pages.shared.report import citations
from pages.shared.session import session, stand_ins

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
    return Source(data, stand_ins.SAMPLE_WITH_EVERYTHING, needs_rows=True)


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
        content: Makes the report; called on a click, in a thread that knows nothing of the session, so that it must
            not look at the session or at caches of it.
        methods: Sentences for a methods section, below the buttons and in the report; None if nothing was chosen yet.
        files_heading: What the files hold, if they are files of their own; empty for none.
        files: The files, except the page's own JSON, which is the last.
        files_disclosure: The disclosure of the data behind the files, if it differs.
        choice: Makes the page's own JSON; by default it is that of the report's answer.
    """

    def with_methods() -> Report:
        return replace(build_content(), methods=methods)

    _files(stem, disclosure, with_methods)
    citations.show(methods, stem)
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
