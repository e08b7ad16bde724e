"""The part of every Downloads tab that takes the whole answer away: report, its JSON, and a script."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import streamlit as st

from dpcore.common.privacy import Provenance, Sensitivity
from dpcore.common.text_fields import from_fields
from dpcore.data import generators, samples
from dpcore.report.document import report_json
from dpcore.report.script import Source
from pages.shared import fields as questions
from pages.shared import figures, keys, report_content, report_html, session
from pages.shared.report_content import ReportContent

MEGABYTES = 5
"""Of a report with figures, most of it plotly.js, which is 4.8 MB (4.1.1, as in Plotly 7.1)."""
KILOBYTES = 30
"""Most that a report without figures has: 19 to 26 kB."""


def source(rows: bool = False, sensitivity: Provenance | None = None) -> Source:
    """Where a script gets the session's data from; arguments as in `Source`."""
    loaded = session.loaded()
    kind, fields = loaded.origin.kind, loaded.origin.fields
    sample = kind if kind in samples.SAMPLES else ""
    generator = None
    if kind in generators.GENERATORS:
        generator = from_fields(generators.GENERATORS[kind], fields)
    return Source(loaded.dataset, sample, generator, rows=rows, sensitivity=sensitivity)


def draw(stem: str, sensitivity: Provenance, digest: str, content: Callable[[], ReportContent]) -> None:
    """The switch and the three buttons.

    Args:
        stem: Of the files' names; also part of the widgets' keys.
        sensitivity: Of the data behind the answer.
        digest: Of these data: with others the switch is on again.
        content: What the page contributes; called on a click, in a thread that knows nothing of the session, so
            it must not look at the session or at caches of it.
    """
    words = st.container()
    public_only = _switch(sensitivity, digest)
    words.markdown(
        "**The whole answer.** The *report* is one file for any browser, on paper too: choice, figures that move, "
        f"data, assumptions, proofs and formulae. It loads nothing from a network. {_size(public_only)} The *JSON* has "
        "the same content for programs. The *script* computes and draws it again."
    )
    kept = Sensitivity.PUBLIC if public_only else sensitivity
    with st.container(horizontal=True):
        for label, ending, mime, name, make in (
            ("Report (HTML)", "html", "text/html", figures.file_name(f"{stem}_report", kept), _html),
            ("Report (JSON)", "json", "application/json", figures.file_name(f"{stem}_report", kept), _json),
            ("Script (Python)", "py", "text/x-python", figures.file_name(f"{stem}_script", Sensitivity.PUBLIC), _code),
        ):  # fmt: skip
            st.download_button(
                label,
                _maker(make, content, public_only),
                file_name=f"{name}.{ending}",
                mime=mime,
                key=f"{stem}_report_{ending}",
                on_click="ignore",
                type=questions.main_button() if ending == "html" else "secondary",
                icon=":material/download:",
            )


def _size(public_only: bool) -> str:
    """How large the report will be. Where the switch is there and on, all its figures are left out."""
    if public_only:
        return f"With the switch below on it has no figures, and less than {KILOBYTES} kB."
    return f"It holds the plotting script, hence about {MEGABYTES} MB."


def html(of: ReportContent, made: datetime, public_only: bool) -> str:
    """The report as HTML."""
    report = report_content.make(of, made, public_only)
    kept = {figure.key for figure in report.figures}
    return report_html.report_html(report, {p.key: p.draw() for p in of.pictures if p.key in kept})


def _html(of: ReportContent, made: datetime, public_only: bool) -> str:
    return html(of, made, public_only)


def _json(of: ReportContent, made: datetime, public_only: bool) -> str:
    return report_json(report_content.make(of, made, public_only))


def _code(of: ReportContent, made: datetime, public_only: bool) -> str:
    return report_content.script_text(of, made, public_only)


def _maker(
    make: Callable[[ReportContent, datetime, bool], str], content: Callable[[], ReportContent], public_only: bool
) -> Callable[[], str]:  # fmt: skip
    return lambda: make(content(), datetime.now(UTC), public_only)


def _switch(sensitivity: Provenance, digest: str) -> bool:
    """Whether private numbers are left out. With new data the switch is on again."""
    if sensitivity is not Sensitivity.PRIVATE:
        st.caption(f"Label of their numbers: *{sensitivity.label}*.")
        return False
    state = st.session_state
    if state.get(keys.REPORT_DATA) != digest:
        state[keys.REPORT_DATA], state[keys.REPORT_PUBLIC_ONLY] = digest, True
    chosen = st.toggle(
        "Public and DP-release numbers only",
        key=keys.REPORT_PUBLIC_ONLY,
        persist_state="session",
        help="Leaves out every number and figure that was computed from your private data, and says what was left "
        "out. Question, assumptions and formulae stay. The script holds no number of the data either way: it reads "
        "them from your own files.",
    )
    if chosen:
        st.caption(
            ":material/visibility_off: Report and JSON will hold **neither the choice nor its figures**: they are "
            "computed from private data. They say what was left out. For the whole answer, for yourself only, switch "
            "this off."
        )
    else:
        st.caption(
            ":material/lock: Report and JSON will hold numbers computed from private data, each labelled so, and the "
            "files' names say *PRIVATE-do-not-publish*."
        )
    return bool(chosen)
