"""The part of every Downloads tab with the whole answer: report, its JSON, and a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import streamlit as st

from dpcore.answer.methods import Methods
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.text_fields import from_fields
from dpcore.data import generators, samples
from dpcore.dataset import Dataset
from dpcore.report import report_html
from dpcore.report.document import write_report_json
from dpcore.report.script import Source
from pages.shared.card import cards
from pages.shared.fields.fields import main_button
from pages.shared.figures import figures
from pages.shared.report import citations, report_content
from pages.shared.report.report_content import ReportContent
from pages.shared.session import session, stand_ins

MEGABYTES = 1.3
"""Size of a report with figures, most of it plotly.js, which is 1.2 MB."""
KILOBYTES = 30
"""Most that a report without figures has: 17 to 29 kB."""


def source(needs_rows: bool = False, disclosure: Provenance | None = None) -> Source:
    """Return where a script gets the session's data from; the arguments are those of `Source`."""
    data = session.get_loaded()
    origin_kind, fields = data.origin.name, data.origin.fields
    sample = origin_kind if origin_kind in samples.SAMPLES else ""
    generator = None
    if origin_kind in generators.GENERATORS:
        generator = from_fields(generators.GENERATORS[origin_kind], fields)
    return Source(data.dataset, sample, generator, needs_rows=needs_rows, disclosure=disclosure)


def source_of(data: Dataset) -> Source:
    """Return where a script gets these data from: those in use, or the demonstration shown instead.

    The script of a demonstration reads the demonstration, not the data in use.
    """
    if data.digest == session.dataset().digest:
        return source(needs_rows=True)
    return Source(data, stand_ins.SAMPLE_WITH_EVERYTHING, needs_rows=True)


AnswerFile = tuple[str, str, Callable[[], str | bytes]]
"""A part of the answer as a file: label of its button, name of the file, and what makes it."""


def draw(
    stem: str,
    disclosure: Provenance,
    build_content: Callable[[], ReportContent],
    methods: Methods | None,
    files_heading: str = "",
    files: Sequence[AnswerFile] = (),
    files_disclosure: Provenance | None = None,
) -> None:
    """Draw the download buttons; for private data in two groups, one for the person and one that may be published.

    Args:
        stem: Part of the files' names and of the widgets' keys.
        disclosure: Label of the data behind the answer.
        build_content: Returns the page's content; called on a click, in a thread that knows nothing of the session, so
            it must not read the session or its caches.
        methods: The page's sentences for a methods section, below the buttons and in the report. None if nothing was
            chosen yet.
        files_heading: What the page's own files hold; empty if it has none.
        files: The page's own files; its JSON is added as the last one.
        files_disclosure: Label of the data behind these files, if it is another one.
    """
    _show_files(stem, disclosure, lambda: replace(build_content(), methods=methods))
    citations.show(methods, stem)
    if files_heading:
        st.markdown(files_heading)
        choice: AnswerFile = (
            "Choice (JSON)",
            f"{stem}_write_choice.json",
            lambda: _write_choice(build_content()),
        )
        cards.file_buttons([*files, choice], files_disclosure or disclosure)


def _write_choice(content: ReportContent) -> str:
    assert content.choice is not None
    return content.choice()


def _show_files(stem: str, disclosure: Provenance, build_content: Callable[[], ReportContent]) -> None:
    """Show the report, its JSON and the script; for private data once complete and once without private numbers."""
    st.markdown(
        "**The whole answer.** The *report* is one file for any browser, on paper too: choice, figures that move, "
        "data, assumptions, proofs and formulae. It loads nothing from a network. The *JSON* has the same content for "
        "programs. The *script* computes and draws it again."
    )
    if disclosure is not Disclosure.PRIVATE:
        st.caption(
            f"About {MEGABYTES} MB with the plotting script. Label of the numbers: *{disclosure.label}*."
        )
        _show_buttons(stem, disclosure, build_content, public_only=False)
        return
    private_column, public_column = st.columns(2, gap="large")
    with private_column:
        st.markdown(
            "**Everything, for yourself.** The choice, its figures and every number computed from your private data, "
            f"each labelled so. About {MEGABYTES} MB; the files' names say *PRIVATE-do-not-publish*."
        )
        _show_buttons(stem, disclosure, build_content, public_only=False)
    with public_column:
        st.markdown(
            "**Only what may be published.** Question, assumptions, formulae and DP releases, and what was left out: "
            "**neither the choice nor its figures**, which are computed from private data. Less than "
            f"{KILOBYTES} kB. The script names no file of yours. **What you entered is in all three:** empty first "
            "what you chose by looking at these data."
        )
        _show_buttons(stem, disclosure, build_content, public_only=True)


def _show_buttons(
    stem: str, disclosure: Provenance, build_content: Callable[[], ReportContent], public_only: bool
) -> None:
    """Draw the buttons for report, JSON and script; the report that holds the answer is the main button."""
    shown_disclosure = Disclosure.PUBLIC if public_only else disclosure
    suffix = "_public" if public_only else ""
    report = figures.write_file_name(f"{stem}_report{suffix}", shown_disclosure)
    script = figures.write_file_name(f"{stem}_script{suffix}", Disclosure.PUBLIC)
    with st.container(horizontal=True):
        for label, ending, mime, name, write in (
            ("Report (HTML)", "html", "text/html", report, html),
            ("Report (JSON)", "json", "application/json", report, _write_json),
            ("Script (Python)", "py", "text/x-python", script, report_content.write_script),
        ):
            is_main = ending == "html" and not public_only
            st.download_button(
                label,
                _build_writer(write, build_content, public_only),
                file_name=f"{name}.{ending}",
                mime=mime,
                key=f"{stem}_report{suffix}_{ending}",
                on_click="ignore",
                type=main_button() if is_main else "secondary",
                icon=":material/download:",
            )


def html(page_content: ReportContent, created: datetime, public_only: bool) -> str:
    """Return the report as HTML."""
    report = report_content.build_report(page_content, created, public_only)
    figure_keys = {figure.key for figure in report.figures}
    return report_html.write_report_html(
        report, {p.key: p.draw() for p in page_content.pictures if p.key in figure_keys}
    )


def _write_json(page_content: ReportContent, created: datetime, public_only: bool) -> str:
    return write_report_json(report_content.build_report(page_content, created, public_only))


def _build_writer(
    write: Callable[[ReportContent, datetime, bool], str],
    build_content: Callable[[], ReportContent],
    public_only: bool,
) -> Callable[[], str]:
    """Return a function that builds the content and writes the file when its button is pressed."""
    return lambda: write(build_content(), datetime.now(UTC), public_only)
