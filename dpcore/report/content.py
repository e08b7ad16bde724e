"""The content of a report: sections of labelled numbers, and the part of them that may be published."""

from __future__ import annotations

import enum
import functools
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

import numpy.typing as npt

from dpcore.answer import Answer
from dpcore.answer.methods import Methods
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.text_fields import to_values
from dpcore.common.version import VERSION
from dpcore.dataset import Dataset
from dpcore.report.markup import literal

PACKAGES = ("numpy", "scipy", "pandas", "plotly", "opendp", "dp-accounting", "cvxpy", "clarabel", "streamlit")
"""Whose versions a report names."""


BESIDE_PRIVATE = "entered beside private data: public only if it was not chosen by looking at them"
"""What a report of private data says of a setting that may have been read off them: no software can tell."""


@dataclass(frozen=True)
class Line:
    """One number, or one sentence with numbers, that says what it is.

    Attributes:
        name: What it is, Markdown.
        value: With its unit, Markdown.
        disclosure: Where it comes from.
        note: What it compares with, Markdown; empty for none.
        help: Explanation, Markdown; empty for none.
        number: The value with all its digits, where it is a number.
        label: Replaces the disclosure's own label, as where the epsilon of a release is known; empty for none.
    """

    name: str
    value: str
    disclosure: Provenance
    note: str = ""
    help: str = ""
    number: float | int | None = None
    label: str = ""

    @property
    def says(self) -> str:
        """The label that stands beside it."""
        return self.label or self.disclosure.label


@dataclass(frozen=True)
class Proof:
    """What is proved of a choice.

    Attributes:
        name: Of what.
        certificate: Value and lower bound.
        ended: How the search ended, a sentence.
        disclosure: Of the data behind both.
    """

    name: str
    certificate: Certificate
    ended: str
    disclosure: Provenance


@dataclass(frozen=True)
class Said:
    """What one answer card says.

    Attributes:
        title: Heading, where a report has several answers; empty otherwise.
        headline: What to do, Markdown.
        detail: What comes after it, Markdown; empty for none.
        numbers: Its figures.
        facts: Its sentences.
        proofs: Its certificates.
        assumptions: Sentences without full stop; they hold no numbers computed from data.
        disclosure: Of headline and detail.
    """

    title: str
    headline: str
    detail: str
    numbers: tuple[Line, ...]
    facts: tuple[Line, ...]
    proofs: tuple[Proof, ...]
    assumptions: tuple[str, ...]
    disclosure: Provenance


@dataclass(frozen=True)
class FigureData:
    """A figure without its drawing.

    Attributes:
        key: Names the drawing.
        title: Heading, plain text.
        alt: What it shows, its takeaway first, plain text.
        columns: What it draws.
        disclosure: Of the data behind it.
    """

    key: str
    title: str
    alt: str
    columns: Mapping[str, npt.ArrayLike]
    disclosure: Provenance


@dataclass(frozen=True)
class Report:
    """Everything that a report holds.

    Attributes:
        page: Title of the page it was made on.
        question: What that page answers, one sentence.
        parameters: Every field of the page's parameters object, entered by the person.
        asked: The fields that matter for the answer, in words, in order.
        made: When.
        summary: The data.
        answers: One per card.
        figures: In order.
        formulae: How this is computed: Markdown with LaTeX.
        disclosure: Of the data.
        releases: DP releases drawn on the page, each labelled with its epsilon.
        choice: The page's own file with all digits; None for none.
        versions: Name to version.
        public_only: Whether what was computed from private data was left out.
        left_out: What was, in words.
        methods: Sentences for a methods section, which hold nothing private; None for none.
        beside_private: Those of ``parameters`` that may have been chosen by looking at private data.
    """

    page: str
    question: str
    parameters: Mapping[str, Any]
    asked: tuple[Line, ...]
    made: datetime
    summary: tuple[Line, ...]
    answers: tuple[Said, ...]
    figures: tuple[FigureData, ...]
    formulae: str
    disclosure: Provenance
    releases: tuple[Line, ...] = ()
    choice: Mapping[str, Any] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    public_only: bool = False
    left_out: tuple[str, ...] = ()
    methods: Methods | None = None
    beside_private: tuple[str, ...] = ()

    @property
    def holds_private(self) -> bool:
        """Whether anything in it was computed from private data."""
        parts = [
            *(line.disclosure for line in (*self.asked, *self.summary, *self.releases)),
            *(answer.disclosure for answer in self.answers),
            *(line.disclosure for answer in self.answers for line in (*answer.numbers, *answer.facts)),
            *(proof.disclosure for answer in self.answers for proof in answer.proofs),
            *(figure.disclosure for figure in self.figures),
        ]
        # The choice's file is as sensitive as the data.
        parts += [self.disclosure] if self.choice is not None else []
        return Disclosure.PRIVATE in parts


def said(answer: Answer, title: str = "") -> Said:
    """What an answer says, with its label at every number; ``title`` where a report has several."""
    kind = answer.disclosure
    return Said(
        title=title,
        headline=answer.headline,
        detail=answer.detail,
        numbers=tuple(Line(n.label, n.text, kind, n.note, n.help, n.value) for n in answer.numbers),
        facts=tuple(Line(name, sentence, kind) for name, sentence in answer.all_facts),
        proofs=tuple(Proof(of, certificate, ended, kind) for of, certificate, ended in answer.proofs),
        assumptions=answer.all_assumptions,
        disclosure=kind,
    )


def entered(value: Any) -> str:
    """A setting as a person reads it, Markdown."""
    if isinstance(value, enum.Enum):
        return literal(getattr(value, "title", value.name.replace("_", " ").lower()))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return wording.number(value)
    if isinstance(value, float):
        return literal(wording.entered(value))
    return literal(str(value))


def of_answer(answer: Answer, page: str, asks: str, made: datetime, data: Dataset | None = None) -> Report:
    """The report of an answer to a person who asked it by no page.

    What was entered may each have been read off private data: nothing here knows that it was not.

    Args:
        answer: With its parameters and plots.
        page: Heading.
        asks: What it answers, one sentence.
        made: When.
        data: What it is about; None where the settings say all.
    """
    parameters = answer.parameters
    shown = {
        f.name: value
        for f in fields(parameters)
        if (value := getattr(parameters, f.name)) is not None and value != f.default
    }
    beside = tuple(shown) if answer.disclosure is Disclosure.PRIVATE else ()
    label = BESIDE_PRIVATE if beside else ""
    plots = [make() for make in answer.plots.values()]
    return Report(
        page=page,
        question=asks,
        parameters=to_values(parameters),
        beside_private=beside,
        asked=tuple(
            Line(literal(name.replace("_", " ")), entered(value), Disclosure.PUBLIC, label=label)
            for name, value in shown.items()
        ),
        made=made,
        summary=() if data is None else data_lines(data),
        answers=(said(answer),),
        figures=tuple(FigureData(p.key, p.title, p.alt, p.columns, p.disclosure) for p in plots),
        formulae="",
        disclosure=answer.disclosure,
        choice=None if answer.choice is None else json.loads(answer.choice()),
        versions=versions(),
        methods=answer.methods,
    )


def versions() -> dict[str, str]:
    """Version of Sweet Spot, of Python and of `PACKAGES`, without importing any."""
    return dict(_versions())


@functools.cache
def _versions() -> dict[str, str]:
    """As they were when they were first asked for: reading them off the disk takes 20 ms."""
    versions = {"Sweet Spot": VERSION, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def data_lines(data: Dataset) -> tuple[Line, ...]:
    """The summary of a data set. No user is named, and of sizes only the largest stands alone."""
    kind = data.provenance
    s = data.histogram.summary()
    texts = {"Data": data.name, "Where from": data.source}
    if data.privacy_unit:
        texts["A user is"] = ", ".join(data.privacy_unit)
    texts["One contribution is"] = {
        "rows": "a row",
        "distinct tasks": "a distinct task",
        "total of a column": "a unit of the column that was added up",
    }[data.contribution.value]
    texts |= {f"Note {i}": note for i, note in enumerate(data.notes, 1)}
    lines = [Line(name, literal(text), kind) for name, text in texts.items()]
    for name, number in (
        ("Users", s.num_users),
        ("Rows", s.num_rows),
        ("Rows of the median user", s.median),
        ("Rows per user, mean", s.mean),
        ("Rows of the heaviest user", s.max),
    ):
        lines.append(Line(name, wording.number(number), kind, number=number))
    top = float(s.top_percent_share)
    lines.append(
        Line("Share of rows held by the heaviest 1 % of users", wording.percent(top), kind, number=top)
    )
    gini = float(s.gini)
    lines.append(
        Line("Gini coefficient", f"{gini:.2f}", kind, "0: all alike; 1: one user has everything", number=gini)
    )
    return tuple(lines)


def publishable(report: Report) -> Report:
    """The report without all that was computed from private data, saying what was left out.

    What is said does not depend on the data either: sections are named, not counted.
    """

    def keep(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(line for line in lines if line.disclosure is not Disclosure.PRIVATE)

    left_out = []
    summary = keep(report.summary)
    if len(summary) < len(report.summary):
        left_out.append("Summary of the data, their name and where they are from")
    answers = []
    for answer in report.answers:
        hidden = answer.disclosure is Disclosure.PRIVATE
        if hidden:
            name = f"The choice ({answer.title})" if answer.title else "The choice"
            left_out.append(f"{name}: headline, numbers, facts and certificates")
        answers.append(
            replace(
                answer,
                headline="" if hidden else answer.headline,
                detail="" if hidden else answer.detail,
                numbers=keep(answer.numbers),
                facts=keep(answer.facts),
                proofs=tuple(p for p in answer.proofs if p.disclosure is not Disclosure.PRIVATE),
                # What stays are the assumptions, which hold no number of the data.
                disclosure=Disclosure.PUBLIC if hidden else answer.disclosure,
            )
        )
    kept = tuple(f for f in report.figures if f.disclosure is not Disclosure.PRIVATE)
    left_out += [f"Figure: {f.title}" for f in report.figures if f.disclosure is Disclosure.PRIVATE]
    return replace(
        report,
        summary=summary,
        asked=keep(report.asked),
        answers=tuple(answers),
        figures=kept,
        releases=keep(report.releases),
        choice=None if report.disclosure is Disclosure.PRIVATE else report.choice,
        public_only=True,
        left_out=tuple(left_out),
    )
