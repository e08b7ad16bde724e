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
from dpcore.answer.section import list_plots
from dpcore.common import wording
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.text_fields import to_values
from dpcore.common.version import VERSION
from dpcore.dataset import Dataset
from dpcore.report.markup import escape_markdown

PACKAGES = ("numpy", "scipy", "pandas", "plotly", "opendp", "dp-accounting", "cvxpy", "clarabel", "streamlit")
"""The packages whose versions a report names."""


PRIVATE_SETTING_LABEL = "entered beside private data: public only if it was not chosen by looking at them"
"""The label of a setting that may have been chosen by looking at private data: no software can tell."""


@dataclass(frozen=True)
class Line:
    """One number, or one sentence with numbers, under its name.

    Attributes:
        name: Its name, Markdown.
        value: The number with its unit, or the sentence, Markdown.
        disclosure: The disclosure of the data it comes from.
        note: What it compares with, Markdown; empty for none.
        help: Explanation, Markdown; empty for none.
        number: The value with all its digits, if it is a number.
        label: Replaces the disclosure's own label, for example if the epsilon of a release is known; empty for none.
    """

    name: str
    value: str
    disclosure: Provenance
    note: str = ""
    help: str = ""
    number: float | int | None = None
    label: str = ""

    @property
    def shown_label(self) -> str:
        """Return the label that stands beside it."""
        return self.label or self.disclosure.label


@dataclass(frozen=True)
class Proof:
    """A proof that a choice is near the best.

    Attributes:
        name: The quantity that is proved.
        certificate: Value and lower bound.
        stop_reason: How the search ended, a sentence.
        disclosure: Of the data behind both.
    """

    name: str
    certificate: Certificate
    stop_reason: str
    disclosure: Provenance


@dataclass(frozen=True)
class AnswerContent:
    """The content of one answer card.

    Attributes:
        title: Heading, where a report has several answers; empty otherwise.
        headline: The advice, Markdown.
        detail: The text below it, Markdown; empty for none.
        numbers: Its figures.
        facts: Its sentences.
        proofs: Its certificates.
        assumptions: Sentences without full stop; they hold no numbers computed from data.
        disclosure: The disclosure of headline and detail.
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
        key: The key of its drawing.
        title: Heading, plain text.
        alt: Description, its takeaway first, plain text.
        columns: The values that are drawn, by name.
        disclosure: Of the data behind it.
    """

    key: str
    title: str
    alt: str
    columns: Mapping[str, npt.ArrayLike]
    disclosure: Provenance


@dataclass(frozen=True)
class Report:
    """The whole content of a report.

    Attributes:
        page: Title of the page it was made on.
        question: The question of that page, one sentence.
        parameters: Every field of the page's parameters object, entered by the person.
        settings: The fields that matter for the answer, in words, in order.
        created: The time of the report.
        summary: Lines about the data set.
        answers: One per card.
        figures: The figures, in order.
        formulae: The computation: Markdown with LaTeX.
        disclosure: The disclosure of the data.
        releases: DP releases drawn on the page, each labelled with its epsilon.
        choice: The page's own file with all digits; None for none.
        versions: Version of each package, by name.
        public_only: Whether all that was computed from private data is missing.
        omitted: The missing sections, in words.
        methods: Sentences for a methods section, which hold nothing private; None for none.
        private_settings: Names among ``parameters`` that may have been chosen by looking at private data.
    """

    page: str
    question: str
    parameters: Mapping[str, Any]
    settings: tuple[Line, ...]
    created: datetime
    summary: tuple[Line, ...]
    answers: tuple[AnswerContent, ...]
    figures: tuple[FigureData, ...]
    formulae: str
    disclosure: Provenance
    releases: tuple[Line, ...] = ()
    choice: Mapping[str, Any] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    public_only: bool = False
    omitted: tuple[str, ...] = ()
    methods: Methods | None = None
    private_settings: tuple[str, ...] = ()

    @property
    def holds_private(self) -> bool:
        """Return whether any part was computed from private data."""
        disclosures = [
            *(line.disclosure for line in (*self.settings, *self.summary, *self.releases)),
            *(answer.disclosure for answer in self.answers),
            *(line.disclosure for answer in self.answers for line in (*answer.numbers, *answer.facts)),
            *(proof.disclosure for answer in self.answers for proof in answer.proofs),
            *(figure.disclosure for figure in self.figures),
        ]
        # The file of the choice is as sensitive as the data.
        disclosures += [self.disclosure] if self.choice is not None else []
        return Disclosure.PRIVATE in disclosures


def read_answer(answer: Answer, title: str = "") -> AnswerContent:
    """Read the content of an answer card, with a label at every number; ``title`` if a report has several."""
    disclosure = answer.disclosure
    return AnswerContent(
        title=title,
        headline=answer.headline,
        detail=answer.detail,
        numbers=tuple(Line(n.label, n.text, disclosure, n.note, n.help, n.value) for n in answer.numbers),
        facts=tuple(Line(name, sentence, disclosure) for name, sentence in answer.all_facts),
        proofs=tuple(
            Proof(name, certificate, stop_reason, disclosure)
            for name, certificate, stop_reason in answer.proofs
        ),
        assumptions=answer.all_assumptions,
        disclosure=disclosure,
    )


def format_setting(value: Any) -> str:
    """Format a setting as a person reads it, Markdown."""
    if isinstance(value, enum.Enum):
        return escape_markdown(getattr(value, "title", value.name.replace("_", " ").lower()))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return wording.number(value)
    if isinstance(value, float):
        return escape_markdown(wording.entered(value))
    return escape_markdown(str(value))


def build_report(
    answer: Answer, page: str, question: str, created: datetime, dataset: Dataset | None = None
) -> Report:
    """Build the report of an answer that no page asked for.

    Each setting may have been chosen by looking at private data: nothing here knows that it was not.

    Args:
        answer: An answer with its parameters and plots.
        page: Heading.
        question: The question, one sentence.
        created: The time of the report.
        dataset: The data set; None if the settings are all of the input.
    """
    parameters = answer.parameters
    changed_settings = {
        f.name: value
        for f in fields(parameters)
        if (value := getattr(parameters, f.name)) is not None and value != f.default
    }
    private_settings = tuple(changed_settings) if answer.disclosure is Disclosure.PRIVATE else ()
    label = PRIVATE_SETTING_LABEL if private_settings else ""
    plots = list_plots(answer, dataset)
    return Report(
        page=page,
        question=question,
        parameters=to_values(parameters),
        private_settings=private_settings,
        settings=tuple(
            Line(
                escape_markdown(name.replace("_", " ")), format_setting(value), Disclosure.PUBLIC, label=label
            )
            for name, value in changed_settings.items()
        ),
        created=created,
        summary=() if dataset is None else summarise_dataset(dataset),
        answers=(read_answer(answer),),
        figures=tuple(FigureData(p.key, p.title, p.alt, p.columns, p.disclosure) for p in plots),
        formulae="",
        disclosure=answer.disclosure,
        choice=None if answer.choice is None else json.loads(answer.choice()),
        versions=read_versions(),
        methods=answer.methods,
    )


def read_versions() -> dict[str, str]:
    """Return the version of Sweet Spot, of Python and of `PACKAGES`, without importing any."""
    return dict(_read_versions())


@functools.cache
def _read_versions() -> dict[str, str]:
    """Read the versions once: reading them from the disk takes 20 ms."""
    versions = {"Sweet Spot": VERSION, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def summarise_dataset(dataset: Dataset) -> tuple[Line, ...]:
    """Summarise a data set. No user is named, and the only single size is the largest."""
    disclosure = dataset.provenance
    summary = dataset.histogram.summary()
    texts = {"Data": dataset.name, "Where from": dataset.source}
    if dataset.privacy_unit:
        texts["A user is"] = ", ".join(dataset.privacy_unit)
    texts["One contribution is"] = {
        "rows": "a row",
        "distinct tasks": "a distinct task",
        "total of a column": "a unit of the column that was added up",
    }[dataset.contribution.value]
    texts |= {f"Note {i}": note for i, note in enumerate(dataset.notes, 1)}
    lines = [Line(name, escape_markdown(text), disclosure) for name, text in texts.items()]
    for name, number in (
        ("Users", summary.num_users),
        ("Rows", summary.num_rows),
        ("Rows of the median user", summary.median),
        ("Rows per user, mean", summary.mean),
        ("Rows of the heaviest user", summary.max),
    ):
        lines.append(Line(name, wording.number(number), disclosure, number=number))
    heaviest_share = float(summary.top_percent_share)
    lines.append(
        Line(
            "Share of rows held by the heaviest 1 % of users",
            wording.percent(heaviest_share),
            disclosure,
            number=heaviest_share,
        )
    )
    gini = float(summary.gini)
    lines.append(
        Line(
            "Gini coefficient",
            f"{gini:.2f}",
            disclosure,
            "0: all alike; 1: one user has everything",
            number=gini,
        )
    )
    return tuple(lines)


def remove_private(report: Report) -> Report:
    """Remove all that was computed from private data, and say what is missing.

    That note does not depend on the data either: sections are named, not counted.
    """

    def remove_private_lines(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(line for line in lines if line.disclosure is not Disclosure.PRIVATE)

    omitted = []
    summary = remove_private_lines(report.summary)
    if len(summary) < len(report.summary):
        omitted.append("Summary of the data, their name and where they are from")
    answers = []
    for answer in report.answers:
        is_private = answer.disclosure is Disclosure.PRIVATE
        if is_private:
            name = f"The choice ({answer.title})" if answer.title else "The choice"
            omitted.append(f"{name}: headline, numbers, facts and certificates")
        answers.append(
            replace(
                answer,
                headline="" if is_private else answer.headline,
                detail="" if is_private else answer.detail,
                numbers=remove_private_lines(answer.numbers),
                facts=remove_private_lines(answer.facts),
                proofs=tuple(p for p in answer.proofs if p.disclosure is not Disclosure.PRIVATE),
                # What stays are the assumptions, which hold no number of the data.
                disclosure=Disclosure.PUBLIC if is_private else answer.disclosure,
            )
        )
    public_figures = tuple(f for f in report.figures if f.disclosure is not Disclosure.PRIVATE)
    omitted += [f"Figure: {f.title}" for f in report.figures if f.disclosure is Disclosure.PRIVATE]
    return replace(
        report,
        summary=summary,
        settings=remove_private_lines(report.settings),
        answers=tuple(answers),
        figures=public_figures,
        releases=remove_private_lines(report.releases),
        choice=None if report.disclosure is Disclosure.PRIVATE else report.choice,
        public_only=True,
        omitted=tuple(omitted),
    )
