"""The content of a report: sections of labelled numbers, and the part of them that may be published."""

from __future__ import annotations

import enum
import functools
import importlib.metadata
import platform
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from dpcore.answer import Answer, Plot
from dpcore.answer.methods import Methods
from dpcore.answer.section import list_plots
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
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


@dataclass(frozen=True, eq=False)
class Report:
    """The whole content of a report: answers and figures as they are, and the lines around them.

    Attributes:
        page: Title of the page it was made on.
        question: The question of that page, one sentence.
        answers: Each with its heading, which is empty if there is one; the first is the answer to the question.
        figures: In order.
        settings: The fields that matter for the answer, in words, in order.
        summary: Lines about the data set.
        disclosure: The disclosure of the data.
        formulae: The computation: Markdown with LaTeX.
        releases: DP releases drawn on the page, each labelled with its epsilon.
        methods: Sentences for a methods section, which hold nothing private; None for none.
        private_settings: Names of the parameters that may have been chosen by looking at private data.
        figure_label: Label above every figure, such as that its data are invented; empty for none.
        write_script: Writes the script, given its time and whether only public names may appear; None if no script
            can compute the answer again.
        omitted: The sections that are missing since they are private, in words; None if the report is complete.
    """

    page: str
    question: str
    answers: tuple[tuple[str, Answer], ...]
    figures: tuple[Plot, ...]
    settings: tuple[Line, ...]
    summary: tuple[Line, ...]
    disclosure: Provenance
    formulae: str = ""
    releases: tuple[Line, ...] = ()
    methods: Methods | None = None
    private_settings: tuple[str, ...] = ()
    figure_label: str = ""
    write_script: Callable[[datetime, bool], str] | None = None
    omitted: tuple[str, ...] | None = None

    @property
    def answer(self) -> Answer:
        """Return the answer to the question."""
        return self.answers[0][1]

    @property
    def holds_private(self) -> bool:
        """Return True if any part was computed from private data."""
        disclosures = [line.disclosure for line in (*self.settings, *self.summary, *self.releases)]
        disclosures += [answer.disclosure for _, answer in self.answers]
        disclosures += [figure.disclosure for figure in self.figures]
        # The file of the choice is as sensitive as the data.
        disclosures += [self.disclosure] if self.answer.choice is not None else []
        return Disclosure.PRIVATE in disclosures


def list_numbers(answer: Answer) -> list[Line]:
    """List the numbers of an answer, each with its label."""
    return [Line(n.label, n.text, answer.disclosure, n.note, n.help, n.value) for n in answer.numbers]


def list_facts(answer: Answer) -> list[Line]:
    """List the sentences of an answer, each with its label."""
    return [Line(name, sentence, answer.disclosure) for name, sentence in answer.all_facts]


def list_settings(
    parameters: Any, names: Mapping[str, str], private_settings: Collection[str]
) -> tuple[Line, ...]:
    """List settings as lines of a report; those that are None are left out.

    Args:
        parameters: The parameters object.
        names: Fields of it, with what they are called.
        private_settings: Those of them that may have been chosen by looking at private data.
    """
    return tuple(
        Line(
            escape_markdown(text),
            format_setting(value),
            Disclosure.PUBLIC,
            label=PRIVATE_SETTING_LABEL if name in private_settings else "",
        )
        for name, text in names.items()
        if (value := getattr(parameters, name)) is not None
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


def build_report(answer: Answer, page: str, question: str, dataset: Dataset | None = None) -> Report:
    """Build the report of an answer that no page asked for.

    Each setting may have been chosen by looking at private data: nothing here knows that it was not.

    Args:
        answer: An answer with its parameters and plots.
        page: Heading.
        question: The question, one sentence.
        dataset: The data set; None if the settings are all of the input.
    """
    parameters = answer.parameters
    names = {
        f.name: f.name.replace("_", " ")
        for f in fields(parameters)
        if getattr(parameters, f.name) not in (None, f.default)
    }
    private_settings = tuple(names) if answer.disclosure is Disclosure.PRIVATE else ()
    return Report(
        page=page,
        question=question,
        answers=(("", answer),),
        figures=tuple(list_plots(answer, dataset)),
        settings=list_settings(parameters, names, private_settings),
        summary=() if dataset is None else summarise_dataset(dataset),
        disclosure=answer.disclosure,
        methods=answer.methods,
        private_settings=private_settings,
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
    counts = {
        "Users": summary.num_users,
        "Rows": summary.num_rows,
        "Rows of the median user": summary.median,
        "Rows per user, mean": summary.mean,
        "Rows of the heaviest user": summary.max,
    }
    heaviest_share, gini = float(summary.top_percent_share), float(summary.gini)

    def line(name: str, text: str, number: float | None = None, note: str = "") -> Line:
        return Line(name, text, dataset.provenance, note, number=number)

    return (
        *(line(name, escape_markdown(text)) for name, text in texts.items()),
        *(line(name, wording.number(number), number) for name, number in counts.items()),
        line(
            "Share of rows held by the heaviest 1 % of users", wording.percent(heaviest_share), heaviest_share
        ),
        line("Gini coefficient", f"{gini:.2f}", gini, "0: all alike; 1: one user has everything"),
    )


def remove_private(report: Report) -> Report:
    """Remove all that was computed from private data, and say what is missing.

    The note does not depend on the data either: it names sections and does not count them.
    """

    def remove_private_lines(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(line for line in lines if line.disclosure is not Disclosure.PRIVATE)

    omitted, answers = [], []
    summary = remove_private_lines(report.summary)
    if len(summary) < len(report.summary):
        omitted.append("Summary of the data, their name and where they are from")
    for title, answer in report.answers:
        if answer.disclosure is Disclosure.PRIVATE:
            name = f"The choice ({title})" if title else "The choice"
            omitted.append(f"{name}: headline, numbers, facts and certificates")
            # What stays are the assumptions, which hold no number of the data, and what was entered.
            answer = Answer("", "", (), answer.assumptions, Disclosure.PUBLIC, parameters=answer.parameters)
        elif report.disclosure is Disclosure.PRIVATE:
            answer = replace(answer, choice=None)
        answers.append((title, answer))
    omitted += [f"Figure: {f.title}" for f in report.figures if f.disclosure is Disclosure.PRIVATE]
    return replace(
        report,
        summary=summary,
        settings=remove_private_lines(report.settings),
        answers=tuple(answers),
        figures=tuple(f for f in report.figures if f.disclosure is not Disclosure.PRIVATE),
        releases=remove_private_lines(report.releases),
        omitted=tuple(omitted),
    )
