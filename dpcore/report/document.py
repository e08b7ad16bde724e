"""A report as JSON, and the CSV files that a person takes away."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.answer.answer import Answer, Proof
from dpcore.answer.methods import Methods
from dpcore.answer.plot import Plot
from dpcore.common.privacy import LABEL_COLUMN, Provenance
from dpcore.common.strict_json import write_document
from dpcore.common.text_fields import to_values
from dpcore.common.version import VERSION
from dpcore.data.column_names import escape_formula, escape_formulas_in_line
from dpcore.dataset import Dataset
from dpcore.report.content import Line, Report, list_facts, list_numbers, read_versions
from dpcore.report.markup import to_plain_text


def list_public_inputs(fields: Mapping[str, str]) -> list[str]:
    """List the program that made the file, and a line per public input."""
    return [f"Sweet Spot {VERSION}", *(f"public input: {name} = {text}" for name, text in fields.items())]


def write_columns(
    columns: Mapping[str, npt.ArrayLike], disclosure: Provenance, notes: Sequence[str] = ()
) -> str:
    """Write a CSV with one column per entry and a last column ``label`` that says how public the numbers are.

    Args:
        columns: Column name to values; all of one length. Floats keep every digit.
        disclosure: Of the data that the numbers were computed from.
        notes: Go on top, one line each behind ``# ``, with a line for the label: `pandas.read_csv` with
            ``comment="#"`` passes them over.
    """
    import pandas as pd

    frame = pd.DataFrame(
        {escape_formula(name): _make_harmless(np.asarray(values)) for name, values in columns.items()}
    )
    frame[LABEL_COLUMN] = disclosure.label
    table = frame.to_csv(index=False, lineterminator="\n")
    if not notes:
        return table
    if "#" in table:  # In quotes it begins no comment.
        table = frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    lines = [f"these numbers: {disclosure.label}", *notes]
    return "".join(f"# {escape_formulas_in_line(' '.join(line.split()))}\n" for line in lines) + table


def _make_harmless(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind not in "OUT":
        return values
    return np.array([escape_formula(v) if isinstance(v, str) else v for v in values.tolist()], dtype=object)


def write_histogram(dataset: Dataset) -> str:
    """Write how many users have how many rows, as *Your data* opens it: columns ``size``, ``users``, ``label``.

    The label brings back the epsilon of a DP release (`counting.Source.stated_release`).
    """
    histogram = dataset.histogram
    return write_columns({"size": histogram.sizes, "users": histogram.users}, dataset.provenance)


SCHEMA = "sweetspot/report/1"


def write_report_json(report: Report, created: datetime) -> str:
    """Write the report as indented JSON. Numbers that are not finite are null; a label stands beside every number."""
    choice = report.answer.choice
    return write_document(
        SCHEMA,
        made_at=created.isoformat(timespec="seconds"),
        page=report.page,
        holds_private_numbers=report.holds_private,
        public_and_dp_only=report.omitted is not None,
        left_out=list(report.omitted or ()),
        question={
            "label": "public input",
            "asks": report.question,
            "parameters": _to_json_value(to_values(report.answer.parameters)),
            "entered_beside_private_data": list(report.private_settings),
        },
        data=[_convert_line(line) for line in report.summary],
        answers=[_convert_answer(title, answer) for title, answer in report.answers],
        releases=[_convert_line(line) for line in report.releases],
        figures=[_convert_figure(figure) for figure in report.figures],
        choice=None if choice is None else json.loads(choice()),
        formulae=report.formulae,
        methods=None if report.methods is None else _convert_methods(report.methods),
        versions=read_versions(),
    )


def _convert_methods(methods: Methods) -> dict[str, Any]:
    return {"label": methods.shown_disclosure.label, "text": methods.text, "bibtex": methods.bibtex}


def _convert_line(line: Line) -> dict[str, Any]:
    texts = {"name": line.name, "value": line.value, "note": line.note, "help": line.help}
    entries: dict[str, Any] = {name: to_plain_text(text) for name, text in texts.items() if text}
    if line.number is not None:
        entries["number"] = _to_json_value(line.number)
    return {**entries, "label": line.shown_label}


def _convert_answer(title: str, answer: Answer) -> dict[str, Any]:
    return {
        "title": title,
        "label": answer.disclosure.label,
        "headline": to_plain_text(answer.headline),
        "detail": to_plain_text(answer.detail),
        "numbers": [_convert_line(line) for line in list_numbers(answer)],
        "facts": [_convert_line(line) for line in list_facts(answer)],
        "assumptions": [to_plain_text(sentence) for sentence in answer.all_assumptions],
        "certificates": [_convert_proof(proof, answer.disclosure) for proof in answer.proofs],
    }


def _convert_proof(proof: Proof, disclosure: Provenance) -> dict[str, Any]:
    name, certificate, stop_reason = proof
    return {
        "of": name,
        "value": _to_json_value(certificate.value),
        "lower_bound": _to_json_value(certificate.lower_bound),
        "relative_gap": _to_json_value(certificate.relative_gap),
        "argument": certificate.argument,
        "sentence": certificate.sentence,
        "ended": to_plain_text(stop_reason),
        "label": disclosure.label,
    }


def _convert_figure(figure: Plot) -> dict[str, Any]:
    columns = {name: _to_json_value(np.asarray(values).tolist()) for name, values in figure.columns.items()}
    return {
        "key": figure.key,
        "title": figure.title,
        "takeaway": figure.alt,
        "label": figure.disclosure.label,
        "columns": columns,
    }


def _to_json_value(value: Any) -> Any:
    """Convert a value to what JSON can hold; null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return _to_json_value(value.item())
    if hasattr(value, "items"):
        return {str(name): _to_json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(item) for item in value]
    return value
