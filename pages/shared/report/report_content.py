"""The content of a page for its report, the report, and what a person takes away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dpcore import questions
from dpcore.answer.answer import Answer
from dpcore.answer.axes import plot_counts
from dpcore.answer.methods import Methods
from dpcore.answer.section import list_plots
from dpcore.common.parameters import FieldOrigin
from dpcore.common.privacy import Disclosure, Provenance, write_file_name
from dpcore.common.text_fields import from_fields
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.report import content, report_html, script
from dpcore.report.content import Line, Report, remove_private, write_report_json
from dpcore.report.script import ScriptSource
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.session import session


def build_page_report(
    question: Question,
    answer: Answer,
    source: script.ScriptSource,
    formula_file: str = "formula",
    labels_by_field: Mapping[str, str] | None = None,
    label_text: str = "",
    summary_lines: tuple[Line, ...] | None = None,
    release_lines: tuple[Line, ...] = (),
) -> Report:
    """Build the report of a page.

    Args:
        question: The page.
        answer: The answer to it.
        source: The data source of the script.
        formula_file: Which of the question's texts says how it is computed.
        labels_by_field: Labels of the parameters' fields that matter for the answer, by name; None for all.
        label_text: What stands above its plots.
        summary_lines: What the answer is about, if that is not the data in use alone; their distribution is left out.
        release_lines: What the page has released and spent.
    """
    parameters = answer.parameters
    plots = list_plots(answer, source.dataset)
    if summary_lines is None:
        plots.append(replace(plot_counts(source.dataset), key="distribution"))
    is_private = source.shown_disclosure is Disclosure.PRIVATE
    private_field_names = list_private_settings(question, parameters) if is_private else ()
    setting_labels = question.get_report_labels() if labels_by_field is None else labels_by_field
    return Report(
        page_title=question.title,
        question=question.question_sentence,
        answers=(("", answer),),
        figures=tuple(
            replace(plot, alt=f"{label_text}. {plot.alt}") if label_text else plot for plot in plots
        ),
        setting_lines=content.list_settings(parameters, setting_labels, private_field_names),
        summary_lines=content.summarise_dataset(source.dataset) if summary_lines is None else summary_lines,
        disclosure=source.shown_disclosure,
        formulae_markdown=question.read_formula(formula_file),
        release_lines=release_lines,
        methods=answer.methods,
        private_setting_names=private_field_names,
        figure_label=label_text,
        write_script=lambda created, public_only: script.write_script(
            question.title,
            parameters,
            source,
            f"dpcore.{question.name}.answer",
            created,
            public_only,
            questions.find_call(question.name, parameters),
        ),
    )


def list_private_settings(question: Question, parameters: Any) -> tuple[str, ...]:
    """List the fields that a person may have filled by looking at private data, by name.

    A field that its question declares public is never read off data, and one that stands as it began was not either.
    """
    return tuple(
        field_name
        for field_name, field in question.fields.items()
        if field.origin is not FieldOrigin.PUBLIC
        and (setting_value := getattr(parameters, field_name)) is not None
        and setting_value != question.get_emptied_value(field_name)
    )


WITHHELD_NOTE = (
    "Bound and error are left out: they were computed from your private data, and ε does not cover them. A bound "
    "chosen without these data, or with *Choose with DP…*, may be printed."
)


def _show_methods(methods: Methods | None, file_stem: str) -> None:
    """Show the sentences for a methods section, with files of them and of the works cited.

    Args:
        methods: The page's sentences; None if nothing was chosen yet.
        file_stem: Start of the files' names.
    """
    st.markdown("**For your methods section**")
    if methods is None:
        st.caption("Nothing has been chosen yet.")
        return
    st.code(methods.text, language=None, wrap_lines=True)
    st.caption(WITHHELD_NOTE if methods.is_withheld else "They describe a release that follows the answer.")
    cards.draw_label(methods.shown_disclosure)
    # The box's own copy button is out of the keyboard's reach; files are not.
    cards.draw_file_buttons(
        (
            ("Sentences (text)", f"{file_stem}_methods.txt", lambda: methods.text),
            ("Sentences (LaTeX)", f"{file_stem}_methods_latex.tex", lambda: methods.latex),
            ("Works cited (BibTeX)", f"{file_stem}_cited.bib", lambda: methods.bibtex),
        ),
        methods.shown_disclosure,
    )


REPORT_MEGABYTES = 1.3
"""Size of a report with figures, most of it plotly.js, which is 1.2 MB."""
PUBLIC_KILOBYTES = 35
"""Most that a report without figures has: 20 to 31 kB."""


def build_session_source(needs_rows: bool = False, disclosure: Provenance | None = None) -> ScriptSource:
    """Return the source of a script on the session's data; arguments as in `ScriptSource`."""
    session_data = session.get_loaded()
    origin_name = session_data.origin.name
    generator = None
    if origin_name in samples.GENERATORS:
        generator = from_fields(samples.GENERATORS[origin_name], session_data.origin.generator_texts)
    sample_name = origin_name if origin_name in samples.SAMPLES else ""
    return ScriptSource(
        session_data.dataset, sample_name, generator, needs_rows=needs_rows, disclosure=disclosure
    )


def build_source(dataset: Dataset) -> ScriptSource:
    """Return the source of a script on the data that a page shows, with rows.

    If the data in use lack what the page needs, it shows invented data, and the script reads these.
    """
    if dataset.digest == session.get_dataset().digest:
        return build_session_source(needs_rows=True)
    return ScriptSource(dataset, session.SAMPLE_WITH_EVERYTHING, needs_rows=True)


AnswerFile = tuple[str, str, Callable[[], str | bytes]]
"""A part of the answer as a file: label of its button, name of the file, and what makes it."""


def draw_downloads(
    file_stem: str,
    disclosure: Provenance,
    build_report: Callable[[], Report],
    methods: Methods | None,
    files_heading: str = "",
    answer_files: Sequence[AnswerFile] = (),
    files_disclosure: Provenance | None = None,
) -> None:
    """Draw the downloads of an answer: for private data two sets, one for oneself and one that may be published.

    Args:
        file_stem: Start of the files' names; also part of the widgets' keys.
        disclosure: The disclosure of the data behind the answer.
        build_report: Makes the report; called on a click, in a thread that knows nothing of the session, so that it
            must not look at the session or at caches of it.
        methods: Sentences for a methods section, below the buttons; None if nothing was chosen yet.
        files_heading: What the files hold, if they are files of their own; empty for none.
        answer_files: The files.
        files_disclosure: The disclosure of the data behind the files, if it differs.
    """
    st.markdown(
        "**The whole answer.** The *report* is one file for any browser, the *JSON* the same for programs. The "
        "*script* computes the answer again."
    )
    if disclosure is not Disclosure.PRIVATE:
        st.caption(f"About {REPORT_MEGABYTES} MB. Label of the numbers: *{disclosure.label}*.")
        _draw_buttons(file_stem, disclosure, build_report, public_only=False)
    else:
        texts_by_public_only = {
            False: f"**Everything, for yourself**, computed from your private data. About {REPORT_MEGABYTES} MB; the "
            "files' names say *PRIVATE-do-not-publish*.",
            True: "**Only what may be published: neither the choice nor its figures.** "
            f"Less than {PUBLIC_KILOBYTES} kB. **What you entered is in all three:** empty first what you chose by "
            "looking at these data.",
        }
        containers = st.columns(2, gap="large")
        for column_container, (public_only, set_sentence) in zip(
            containers, texts_by_public_only.items(), strict=True
        ):
            with column_container:
                st.markdown(set_sentence)
                _draw_buttons(file_stem, disclosure, build_report, public_only)
    _show_methods(methods, file_stem)
    if files_heading:
        st.markdown(files_heading)
        cards.draw_file_buttons(answer_files, files_disclosure or disclosure)


def _draw_buttons(
    file_stem: str, disclosure: Provenance, build_report: Callable[[], Report], public_only: bool
) -> None:
    """Draw the buttons of report, JSON and script; the report that holds the answer is the main one."""
    public_suffix = "_public" if public_only else ""
    shown_disclosure = Disclosure.PUBLIC if public_only else disclosure
    with st.container(horizontal=True):
        for button_label, file_name_part, file_ending, file_disclosure, write_content in (
            ("Report (HTML)", "report", "html", shown_disclosure, write_html),
            ("Report (JSON)", "report", "json", shown_disclosure, write_json),
            ("Script (Python)", "script", "py", Disclosure.PUBLIC, write_script),
        ):
            fields.draw_download_button(
                button_label,
                f"{write_file_name(f'{file_stem}_{file_name_part}{public_suffix}', file_disclosure)}.{file_ending}",
                build_writer(write_content, build_report, public_only),
                f"{file_stem}_report{public_suffix}_{file_ending}",
                button_type=fields.choose_main_button_type()
                if write_content is write_html and not public_only
                else "secondary",
            )


def build_writer(
    write_content: Callable[[Report, datetime, bool], str],
    build_report: Callable[[], Report],
    public_only: bool,
) -> Callable[[], str]:
    """Return a function that, when called, builds the report and writes it with ``write_content``, dated then."""
    return lambda: write_content(build_report(), datetime.now(UTC), public_only)


def write_html(report: Report, created: datetime, public_only: bool) -> str:
    """Write the report as HTML, without what was computed from private data if ``public_only``."""
    return report_html.write_report_html(remove_private(report) if public_only else report, created)


def write_json(report: Report, created: datetime, public_only: bool) -> str:
    """Write the report as JSON, without what was computed from private data if ``public_only``."""
    return write_report_json(remove_private(report) if public_only else report, created)


def write_script(report: Report, created: datetime, public_only: bool) -> str:
    """Write the script that computes the answer again; it names no file of private data if ``public_only``."""
    assert report.write_script is not None
    return report.write_script(created, public_only)
