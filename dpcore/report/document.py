"""A report as JSON. `docs/report.md` describes the schema."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcore.answer.methods import Methods
from dpcore.common.documents import document
from dpcore.report.content import FigureData, Line, Proof, Report, Said
from dpcore.report.markup import plain_text

SCHEMA = "sweetspot/report/1"


def report_json(report: Report) -> str:
    """The report as JSON, indented. Numbers that are not finite are null; every number stands beside its label."""
    return document(
        SCHEMA,
        made_at=report.made.isoformat(timespec="seconds"),
        page=report.page,
        holds_private_numbers=report.holds_private,
        public_and_dp_only=report.public_only,
        left_out=list(report.left_out),
        question={
            "label": "public input",
            "asks": report.question,
            "parameters": _finite(report.parameters),
            "entered_beside_private_data": list(report.beside_private),
        },
        data=[_line(line) for line in report.summary],
        answers=[_answer(answer) for answer in report.answers],
        releases=[_line(line) for line in report.releases],
        figures=[_figure(figure) for figure in report.figures],
        choice=_finite(report.choice),
        formulae=report.formulae,
        methods=None if report.methods is None else _methods(report.methods),
        versions=dict(report.versions),
    )


def _methods(methods: Methods) -> dict[str, Any]:
    return {"label": methods.shown_disclosure.label, "text": methods.text, "bibtex": methods.bibtex}


def _line(line: Line) -> dict[str, Any]:
    texts = {"name": line.name, "value": line.value, "note": line.note, "help": line.help}
    parts: dict[str, Any] = {name: plain_text(text) for name, text in texts.items() if text}
    if line.number is not None:
        parts["number"] = _finite(line.number)
    return {**parts, "label": line.says}


def _answer(answer: Said) -> dict[str, Any]:
    return {
        "title": answer.title,
        "label": answer.disclosure.label,
        "headline": plain_text(answer.headline),
        "detail": plain_text(answer.detail),
        "numbers": [_line(line) for line in answer.numbers],
        "facts": [_line(line) for line in answer.facts],
        "assumptions": [plain_text(sentence) for sentence in answer.assumptions],
        "certificates": [_proof(proof) for proof in answer.proofs],
    }


def _proof(proof: Proof) -> dict[str, Any]:
    certificate = proof.certificate
    return {
        "of": proof.name,
        "value": _finite(certificate.value),
        "lower_bound": _finite(certificate.lower_bound),
        "relative_gap": _finite(certificate.relative_gap),
        "argument": certificate.argument,
        "sentence": certificate.sentence,
        "ended": plain_text(proof.ended),
        "label": proof.disclosure.label,
    }


def _figure(figure: FigureData) -> dict[str, Any]:
    columns = {name: _finite(np.asarray(values).tolist()) for name, values in figure.columns.items()}
    return {
        "key": figure.key,
        "title": figure.title,
        "takeaway": figure.alt,
        "label": figure.disclosure.label,
        "columns": columns,
    }


def _finite(value: Any) -> Any:
    """The value as JSON holds it; null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return _finite(value.item())
    if hasattr(value, "items"):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
