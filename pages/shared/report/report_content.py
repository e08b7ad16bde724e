"""The content of a page for its report, and the report built from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dpcore import questions
from dpcore.answer import Answer
from dpcore.answer.distribution import plot_counts
from dpcore.answer.methods import Methods
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.text_fields import to_values
from dpcore.report import content, script
from dpcore.report.content import PRIVATE_SETTING_LABEL, FigureData, Line, Report
from dpcore.report.markup import escape_markdown
from pages.shared.base.question import From, Question
from pages.shared.figures.figures import Picture
from pages.shared.screen import plots


@dataclass(frozen=True)
class ReportContent:
    """The content of a page for its report.

    Attributes:
        question: The page.
        parameters: Its parameters object.
        cards: (heading, card); the heading is empty if there is one card.
        pictures: In order.
        source: Where a script gets the data.
        setting_labels: Labels of the parameters that matter for the answer, by name; None for all parameters.
        formula: Markdown with LaTeX; the page's own if empty.
        summary: Lines about the data; None for those of the source.
        releases: DP releases drawn on the page.
        choice: Makes the page's own JSON; None for none.
        methods: The page's sentences for a methods section; None for none.
    """

    question: Question
    parameters: Any
    cards: Sequence[tuple[str, Answer]]
    pictures: Sequence[Picture]
    source: script.Source
    setting_labels: Mapping[str, str] | None = None
    formula: str = ""
    summary: tuple[Line, ...] | None = None
    releases: tuple[Line, ...] = ()
    choice: Callable[[], str] | None = None
    methods: Methods | None = None

    @property
    def disclosure(self) -> Provenance:
        """Return the label of the data behind the answer."""
        return self.source.shown_disclosure


def of_answer(
    question: Question,
    answer: Answer,
    source: script.Source,
    formula: str = "formula",
    setting_labels: Mapping[str, str] | None = None,
    label: str = "",
    summary: tuple[Line, ...] | None = None,
) -> ReportContent:
    """Return the report content of a page whose answer holds everything, with the distribution of its data.

    Args:
        question: The page.
        answer: Its answer.
        source: Where a script gets the data.
        formula: Name of the question's text on how the answer is computed.
        setting_labels: As in `ReportContent`.
        label: Stands above the answer's plots.
        summary: What the answer is about, if not the data in use alone; their distribution is then left out.
    """
    pictures = [plots.build_picture(plot(), label) for plot in answer.plots.values()]
    if summary is None:
        pictures.append(replace(plots.build_picture(plot_counts(source.dataset)), key="distribution"))
    return ReportContent(
        question=question,
        parameters=answer.parameters,
        cards=[("", answer)],
        pictures=pictures,
        source=source,
        setting_labels=setting_labels,
        formula=question.formula(formula),
        summary=summary,
        choice=answer.choice,
        methods=answer.methods,
    )


def build_report(page_content: ReportContent, created: datetime, public_only: bool) -> Report:
    """Return the report; with ``public_only``, without what was computed from private data."""
    # The digits of the answer are not asked for where they would be left out.
    choice = None if page_content.choice is None or public_only else json.loads(page_content.choice())
    pictures, summary = page_content.pictures, page_content.summary
    if summary is None:
        summary = content.summarise_dataset(page_content.source.dataset)
    report = Report(
        page=page_content.question.title,
        question=page_content.question.sentence,
        parameters=to_values(page_content.parameters),
        private_settings=list_private_settings(page_content),
        settings=_list_settings(page_content),
        created=created,
        summary=summary,
        answers=tuple(content.read_answer(answer, title) for title, answer in page_content.cards),
        figures=tuple(FigureData(p.key, p.title, p.alt, p.columns, p.disclosure) for p in pictures),
        formulae=page_content.formula or page_content.question.formula(),
        disclosure=page_content.disclosure,
        releases=page_content.releases,
        choice=choice,
        versions=content.read_versions(),
        methods=page_content.methods,
    )
    if not public_only:
        return report
    if page_content.disclosure is not Disclosure.PRIVATE and page_content.choice is not None:
        report = replace(report, choice=json.loads(page_content.choice()))
    return content.remove_private(report)


def write_script(page_content: ReportContent, created: datetime, public_only: bool) -> str:
    """Return the Python script that computes and draws the answer again."""
    return script.write_script(
        page_content.question.title,
        page_content.parameters,
        page_content.source,
        f"dpcore.{page_content.question.name}.answer",
        created,
        public_only,
        questions.call_with(page_content.question.name, page_content.parameters),
    )


def list_private_settings(page_content: ReportContent) -> tuple[str, ...]:
    """Return the names of parameters that a person may have filled in by looking at private data.

    Empty if the data are not private. A field that its question declares public is never read off data, nor is one that
    still has its initial value.
    """
    if page_content.disclosure is not Disclosure.PRIVATE:
        return ()
    return tuple(
        name
        for name, field in page_content.question.fields.items()
        if field.origin is not From.PUBLIC
        and (value := getattr(page_content.parameters, name)) is not None
        and value != page_content.question.forgotten(name)
    )


def _list_settings(page_content: ReportContent) -> tuple[Line, ...]:
    """Return the parameters as lines of the report, those that may come from private data labelled so."""
    lines, private_settings, labels = [], list_private_settings(page_content), page_content.setting_labels
    if labels is None:
        labels = page_content.question.asked()
    for name, label_text in labels.items():
        value = getattr(page_content.parameters, name)
        if value is not None:
            number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
            label = PRIVATE_SETTING_LABEL if name in private_settings else ""
            lines.append(
                Line(
                    escape_markdown(label_text),
                    content.format_setting(value),
                    Disclosure.PUBLIC,
                    number=number,
                    label=label,
                )
            )
    return tuple(lines)
