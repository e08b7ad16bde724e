"""The content of a report, the part of it that may be published, and its JSON and CSV files."""

from __future__ import annotations

import contextlib
import csv
import enum
import functools
import importlib.metadata
import json
import math
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer.answer import Answer, Proof, build_verdict_entries
from dpcore.answer.methods import Methods
from dpcore.answer.plot import Plot
from dpcore.answer.section import list_plots
from dpcore.common.privacy import LABEL_COLUMN, Disclosure, Provenance
from dpcore.common.strict_json import write_document
from dpcore.common.text_fields import to_values
from dpcore.common.version import VERSION
from dpcore.common.wording import format_entered, format_number, format_percent
from dpcore.data.column_names import escape_formula, escape_formulas_in_line
from dpcore.data.column_roles import name_size_column, name_users_column
from dpcore.dataset import Dataset
from dpcore.report.markup import escape_markdown, to_plain_text

STATED_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "plotly",
    "opendp",
    "dp-accounting",
    "cvxpy",
    "clarabel",
    "streamlit",
)
"""The packages whose versions a report names."""


PRIVATE_SETTING_LABEL = "entered beside private data: public only if it was not chosen by looking at them"
"""The label of a setting that may have been chosen by looking at private data: no software can tell."""


@dataclass(frozen=True)
class Line:
    """One number, or one sentence with numbers, under its name; texts are Markdown.

    Attributes:
        name: Its name, Markdown.
        value_text: The number with its unit, or the sentence, Markdown.
        disclosure: The disclosure of the data it comes from.
        note: What it compares with, Markdown; empty for none.
        help: Explanation, Markdown; empty for none.
        number: The value with all its digits, if it is a number.
        label: Replaces the disclosure's own label, for example if the epsilon of a release is known; empty for none.
    """

    name: str
    value_text: str
    disclosure: Provenance
    note: str = ""
    help: str = ""
    number: float | int | None = None
    label: str = ""

    @property
    def shown_label(self) -> str:
        """Return the label beside the line: its own, or that of its disclosure."""
        return self.label or self.disclosure.label


@dataclass(frozen=True, eq=False)
class Report:
    """The whole content of a report: answers and figures as they are, and the lines around them.

    Attributes:
        page_title: Title of the page it was made on.
        question: The question of that page, one sentence.
        answers: Each with its heading, which is empty if there is one; the first is the answer to the question.
        figures: In order.
        setting_lines: The fields that matter for the answer, in words, in order.
        summary_lines: Lines about the data set.
        disclosure: The disclosure of the data.
        formulae_markdown: The computation: Markdown with LaTeX.
        release_lines: DP releases drawn on the page, each labelled with its epsilon.
        methods: Sentences for a methods section, which hold nothing private; None for none.
        private_setting_names: Names of the parameters that may have been chosen by looking at private data.
        figure_label: Label above every figure, such as that its data are invented; empty for none.
        write_script: Writes the script, given its time and whether only public names may appear; None if no script
            can compute the answer again.
        omitted_sections: The sections that are missing since they are private, in words; None if none was removed.
    """

    page_title: str
    question: str
    answers: tuple[tuple[str, Answer], ...]
    figures: tuple[Plot, ...]
    setting_lines: tuple[Line, ...]
    summary_lines: tuple[Line, ...]
    disclosure: Provenance
    formulae_markdown: str = ""
    release_lines: tuple[Line, ...] = ()
    methods: Methods | None = None
    private_setting_names: tuple[str, ...] = ()
    figure_label: str = ""
    write_script: Callable[[datetime, bool], str] | None = None
    omitted_sections: tuple[str, ...] | None = None

    @property
    def answer(self) -> Answer:
        """Return the answer to the page's question, the first one."""
        return self.answers[0][1]

    @property
    def holds_private(self) -> bool:
        """Return True if any line, figure, answer or file of the report was computed from private data."""
        report_lines = *self.setting_lines, *self.summary_lines, *self.release_lines
        lines_and_plots: tuple[Line | Plot, ...] = *report_lines, *self.figures
        disclosures = [line_or_plot.disclosure for line_or_plot in lines_and_plots]
        disclosures += [answer.disclosure for _, answer in self.answers]
        # The file of the choice is as sensitive as the data.
        disclosures += [self.disclosure] if self.answer.write_json is not None else []
        return Disclosure.PRIVATE in disclosures


def list_numbers(answer: Answer) -> list[Line]:
    """Build a line for each number of an answer, with the answer's disclosure."""
    return [Line(n.label, n.text, answer.disclosure, n.note, n.help, n.value) for n in answer.numbers]


def list_facts(answer: Answer) -> list[Line]:
    """Build a line for each fact of an answer, with the answer's disclosure."""
    return [Line(heading, sentence, answer.disclosure) for heading, sentence in answer.all_facts]


def list_settings(
    parameters: Any, labels_by_field: Mapping[str, str], private_setting_names: Collection[str]
) -> tuple[Line, ...]:
    """Build a line for each setting that is not None.

    Args:
        parameters: The parameters object.
        labels_by_field: Fields of it, with what they are called.
        private_setting_names: Those of them that may have been chosen by looking at private data.
    """
    setting_lines = []
    for field_name, field_label in labels_by_field.items():
        if (value := getattr(parameters, field_name)) is not None:
            setting_label = PRIVATE_SETTING_LABEL if field_name in private_setting_names else ""
            label_text, value_text = escape_markdown(field_label), format_setting(value)
            setting_lines.append(Line(label_text, value_text, Disclosure.PUBLIC, label=setting_label))
    return tuple(setting_lines)


def format_setting(setting_value: Any) -> str:
    """Format a setting for a person, as Markdown."""
    if isinstance(setting_value, enum.Enum):
        return escape_markdown(getattr(setting_value, "title", setting_value.name.replace("_", " ").lower()))
    if isinstance(setting_value, bool):
        return "yes" if setting_value else "no"
    if isinstance(setting_value, int):
        return format_number(setting_value)
    if isinstance(setting_value, float):
        return escape_markdown(format_entered(setting_value))
    return escape_markdown(str(setting_value))


def build_report(
    answer: Answer, page_title: str, page_question: str, dataset: Dataset | None = None
) -> Report:
    """Build the report of an answer outside a page, with the settings that are not at their default.

    Each setting may have been chosen by looking at private data: nothing here knows that it was not.

    Args:
        answer: An answer with its parameters and plots.
        page_title: Heading.
        page_question: The question, one sentence.
        dataset: The data set; None if the settings are all of the input.
    """
    parameters = answer.parameters
    field_names = [f.name for f in fields(parameters) if getattr(parameters, f.name) not in (None, f.default)]
    labels_by_field = {field_name: field_name.replace("_", " ") for field_name in field_names}
    private_setting_names = tuple(labels_by_field) if answer.disclosure is Disclosure.PRIVATE else ()
    return Report(
        page_title=page_title,
        question=page_question,
        answers=(("", answer),),
        figures=tuple(list_plots(answer, dataset)),
        setting_lines=list_settings(parameters, labels_by_field, private_setting_names),
        summary_lines=() if dataset is None else summarise_dataset(dataset),
        disclosure=answer.disclosure,
        methods=answer.methods,
        private_setting_names=private_setting_names,
    )


@functools.cache
def read_versions() -> Mapping[str, str]:
    """Return the versions of Sweet Spot, Python and installed `STATED_PACKAGES`, by name, without an import; cached."""
    versions_by_name = {"Sweet Spot": VERSION, "Python": platform.python_version()}
    for package_name in STATED_PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions_by_name[package_name] = importlib.metadata.version(package_name)
    return MappingProxyType(versions_by_name)


HEAVIEST_SHARE = "Share of rows held by the heaviest 1 % of users"


def summarise_dataset(dataset: Dataset) -> tuple[Line, ...]:
    """Build the lines on a data set: texts, and numbers of users and rows.

    No user is named, and the only single size is the largest.
    """
    histogram_summary = dataset.histogram.summarise()
    texts_by_name = {"Data": dataset.name, "Where from": dataset.source}
    if dataset.privacy_unit:
        texts_by_name["A user is"] = ", ".join(dataset.privacy_unit)
    texts_by_name["One contribution is"] = {
        "rows": "a row",
        "distinct tasks": "a distinct task",
        "total of a column": "a unit of the column that was added up",
    }[dataset.contribution.value]
    texts_by_name |= {f"Note {i}": dataset_note for i, dataset_note in enumerate(dataset.notes, 1)}
    counts_by_name = {
        "Users": dataset.histogram.num_users,
        "Rows": dataset.histogram.num_rows,
        "Rows of the median user": histogram_summary.median,
        "Rows per user, mean": histogram_summary.mean,
        "Rows of the heaviest user": dataset.histogram.max_size,
    }
    heaviest_share, gini = float(histogram_summary.top_percent_share), float(histogram_summary.gini)

    def build_line(
        line_name: str, line_text: str, line_number: float | None = None, line_note: str = ""
    ) -> Line:
        """Build a line with the data set's disclosure."""
        return Line(line_name, line_text, dataset.provenance, line_note, number=line_number)

    return (
        *(
            build_line(line_name, escape_markdown(line_text))
            for line_name, line_text in texts_by_name.items()
        ),
        *(build_line(line_name, format_number(count), count) for line_name, count in counts_by_name.items()),
        build_line(HEAVIEST_SHARE, format_percent(heaviest_share), heaviest_share),
        build_line("Gini coefficient", f"{gini:.2f}", gini, "0: all alike; 1: one user has everything"),
    )


def remove_private(report: Report) -> Report:
    """Return the report without what was computed from private data, and with the names of what is missing.

    The names do not depend on the data either: they are of sections and do not count them.
    """

    def remove_private_lines(report_lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """Return the lines that do not come from private data."""
        return tuple(line for line in report_lines if line.disclosure is not Disclosure.PRIVATE)

    omitted_sections, public_answers = [], []
    public_summary = remove_private_lines(report.summary_lines)
    if len(public_summary) < len(report.summary_lines):
        omitted_sections.append("Summary of the data, their name and where they are from")
    for answer_title, answer in report.answers:
        if answer.disclosure is Disclosure.PRIVATE:
            choice_name = f"The choice ({answer_title})" if answer_title else "The choice"
            omitted_sections.append(f"{choice_name}: headline, numbers, facts and certificates")
            # What stays are the assumptions, which hold no number of the data, and what was entered.
            answer = Answer("", "", (), answer.assumptions, Disclosure.PUBLIC, parameters=answer.parameters)
        elif report.disclosure is Disclosure.PRIVATE:
            answer = replace(answer, write_json=None)
        public_answers.append((answer_title, answer))
    omitted_sections += [f"Figure: {f.title}" for f in report.figures if f.disclosure is Disclosure.PRIVATE]
    return replace(
        report,
        summary_lines=public_summary,
        setting_lines=remove_private_lines(report.setting_lines),
        answers=tuple(public_answers),
        figures=tuple(f for f in report.figures if f.disclosure is not Disclosure.PRIVATE),
        release_lines=remove_private_lines(report.release_lines),
        omitted_sections=tuple(omitted_sections),
    )


def list_public_inputs(texts_by_field: Mapping[str, str]) -> list[str]:
    """Return lines of text: Sweet Spot's version, and each public input."""
    input_lines = (
        f"public input: {field_name} = {field_text}" for field_name, field_text in texts_by_field.items()
    )
    return [f"Sweet Spot {VERSION}", *input_lines]


def write_columns(
    values_by_column: Mapping[str, npt.ArrayLike], provenance: Provenance, comment_notes: Sequence[str] = ()
) -> str:
    """Return the text of a CSV file with these columns and a last column ``label``, after notes as comments.

    Args:
        values_by_column: Column name to values; all of one length. Floats keep every digit.
        provenance: Of the data that the numbers were computed from.
        comment_notes: Go on top, one line each behind ``# ``, with a line for the label: `pandas.read_csv` with
            ``comment="#"`` passes them over.
    """
    import pandas as pd

    safe_headings = map(escape_formula, values_by_column)
    table_frame = pd.DataFrame(
        dict(zip(safe_headings, map(_escape_formulas, values_by_column.values()), strict=True))
    )
    table_frame[LABEL_COLUMN] = provenance.label
    table_text = table_frame.to_csv(index=False, lineterminator="\n")
    if not comment_notes:
        return table_text
    if "#" in table_text:  # In quotes it begins no comment.
        table_text = table_frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    note_lines = [f"these numbers: {provenance.label}", *comment_notes]
    note_lines = [f"# {escape_formulas_in_line(' '.join(line.split()))}\n" for line in note_lines]
    return "".join([*note_lines, table_text])


def _escape_formulas(column_values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return values as an array, with a quote before texts that a spreadsheet would run as formulas."""
    value_array = np.asarray(column_values)
    if value_array.dtype.kind not in "OUT":
        return value_array
    return np.array(
        [escape_formula(v) if isinstance(v, str) else v for v in value_array.tolist()], dtype=object
    )


def write_histogram(dataset: Dataset) -> str:
    """Return the text of a CSV file of how many users have how many rows, which *Data* opens.

    Columns: ``size``, or the column that was added up, ``users`` with the periods that make the unit, and ``label``,
    which brings back the epsilon of a DP release (`counting.Source.stated_release`).
    """
    histogram = dataset.histogram
    size_name = name_size_column(dataset.contribution, dataset.value_column)
    users_name = name_users_column(dataset.periods)
    return write_columns({size_name: histogram.sizes, users_name: histogram.users}, dataset.provenance)


JSON_SCHEMA_NAME = "sweetspot/report/1"


def write_report_json(report: Report, created_at: datetime) -> str:
    """Return the report as the text of a JSON file, with a label beside every number.

    Numbers that are not finite are null.
    """
    write_json, methods = report.answer.write_json, report.methods
    return write_document(
        JSON_SCHEMA_NAME,
        made_at=created_at.isoformat(timespec="seconds"),
        page=report.page_title,
        holds_private_numbers=report.holds_private,
        public_and_dp_only=report.omitted_sections is not None,
        left_out=list(report.omitted_sections or ()),
        question={
            "label": "public input",
            "asks": report.question,
            "parameters": _to_json_value(to_values(report.answer.parameters)),
            "entered_beside_private_data": list(report.private_setting_names),
        },
        data=[_convert_line(line) for line in report.summary_lines],
        answers=[_convert_answer(answer_title, answer) for answer_title, answer in report.answers],
        releases=[_convert_line(line) for line in report.release_lines],
        figures=[_convert_figure(plot) for plot in report.figures],
        choice=None if write_json is None else json.loads(write_json()),
        formulae=report.formulae_markdown,
        methods=None
        if methods is None
        else {"label": methods.shown_disclosure.label, "text": methods.text, "bibtex": methods.bibtex},
        versions=dict(read_versions()),
    )


def _convert_line(line: Line) -> dict[str, Any]:
    """Convert a line to a JSON object of plain texts."""
    markdown_by_key = {"name": line.name, "value": line.value_text, "note": line.note, "help": line.help}
    json_members: dict[str, Any] = {key: to_plain_text(text) for key, text in markdown_by_key.items() if text}
    if line.number is not None:
        json_members["number"] = _to_json_value(line.number)
    return {**json_members, "label": line.shown_label}


def _convert_answer(answer_title: str, answer: Answer) -> dict[str, Any]:
    """Convert an answer to a JSON object of plain texts."""
    return {
        "title": answer_title,
        "label": answer.disclosure.label,
        "headline": to_plain_text(answer.headline),
        "detail": to_plain_text(answer.detail),
        **build_verdict_entries(answer),
        "numbers": [_convert_line(line) for line in list_numbers(answer)],
        "facts": [_convert_line(line) for line in list_facts(answer)],
        "assumptions": [to_plain_text(sentence) for sentence in answer.all_assumptions],
        "certificates": [_convert_proof(proof, answer.disclosure) for proof in answer.proofs],
    }


def _convert_proof(proof: Proof, provenance: Provenance) -> dict[str, Any]:
    """Convert a proof to a JSON object with the label of its data."""
    quantity_name, certificate, stop_reason = proof
    attribute_names = "value", "lower_bound", "relative_gap", "argument", "sentence"
    json_members = {"of": quantity_name}
    json_members |= {name: _to_json_value(getattr(certificate, name)) for name in attribute_names}
    return {**json_members, "ended": to_plain_text(stop_reason), "label": provenance.label}


def _convert_figure(plot: Plot) -> dict[str, Any]:
    """Convert a figure to a JSON object: its texts, its label and its columns of numbers."""
    json_columns = {
        column_name: _to_json_value(np.asarray(column_values).tolist())
        for column_name, column_values in plot.columns.items()
    }
    disclosure_label = plot.disclosure.label
    return {
        "key": plot.key,
        "title": plot.title,
        "takeaway": plot.alt,
        "label": disclosure_label,
        "columns": json_columns,
    }


def _to_json_value(any_value: Any) -> Any:
    """Convert a value and all its parts to what JSON can hold; numbers that are not finite become None."""
    if isinstance(any_value, float):
        return any_value if math.isfinite(any_value) else None
    if isinstance(any_value, np.generic):
        return _to_json_value(any_value.item())
    if hasattr(any_value, "items"):
        return {
            str(member_name): _to_json_value(contained_value)
            for member_name, contained_value in any_value.items()
        }
    if isinstance(any_value, list | tuple):
        return [_to_json_value(contained_value) for contained_value in any_value]
    return any_value
