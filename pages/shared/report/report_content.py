"""What a page contributes to its report, and the report made of it."""

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
from dpcore.answer.section import list_plots
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.text_fields import to_values
from dpcore.dataset import Dataset
from dpcore.report import content, script
from dpcore.report.content import PRIVATE_SETTING_LABEL, FigureData, Line, Report
from dpcore.report.markup import escape_markdown
from pages.shared.base.question import From, Question
from pages.shared.figures.figures import Picture
from pages.shared.screen import plots


@dataclass(frozen=True)
class ReportContent:
    """What a page contributes.

    Attributes:
        question: The page.
        parameters: Its parameters object.
        cards: (heading, card); the heading is empty where there is one card.
        pictures: In order.
        source: Where a script gets the data.
        asked: Fields of the parameters that matter for the answer, with what they are in words; None for all.
        formula: Markdown with LaTeX; the page's own where empty.
        summary: The data; None for what is said of the source's.
        releases: DP releases drawn on the page.
        choice: Makes the page's own JSON; None for none.
        methods: What the page has to say in a methods section; None for nothing.
    """

    question: Question
    parameters: Any
    cards: Sequence[tuple[str, Answer]]
    pictures: Sequence[Picture]
    source: script.Source
    asked: Mapping[str, str] | None = None
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
    asked: Mapping[str, str] | None = None,
    label: str = "",
    summary: tuple[Line, ...] | None = None,
) -> ReportContent:
    """Return what a page contributes whose answer holds everything: its plots, its choice, and how its data
    are distributed.

    Args:
        question: The page.
        answer: What it answers.
        source: Where a script gets the data.
        formula: Which of the question's texts says how it is computed.
        asked: As in `ReportContent`.
        label: What stands above its plots.
        summary: What the answer is about, where that is not the data in use alone; their distribution is left out.
    """
    drawings = [plots.picture(plot, label) for plot in list_plots(answer, source.dataset)]
    return ReportContent(
        question=question,
        parameters=answer.parameters,
        cards=[("", answer)],
        pictures=[*drawings, *([] if summary is not None else [distribution(source.dataset)])],
        source=source,
        asked=asked,
        formula=question.formula(formula),
        summary=summary,
        choice=answer.choice,
        methods=answer.methods,
    )


def make(of: ReportContent, made: datetime, public_only: bool) -> Report:
    """Return the report, without what was computed from private data where ``public_only``."""
    # The digits of the answer are not asked for where they would be left out.
    choice = None if of.choice is None or public_only else json.loads(of.choice())
    report = Report(
        page=of.question.title,
        question=of.question.sentence,
        parameters=to_values(of.parameters),
        private_settings=beside_private(of),
        settings=_asked(of),
        created=made,
        summary=content.summarise_dataset(of.source.dataset) if of.summary is None else of.summary,
        answers=tuple(content.read_answer(answer, title) for title, answer in of.cards),
        figures=tuple(FigureData(p.key, p.title, p.alt, p.columns, p.disclosure) for p in of.pictures),
        formulae=of.formula or of.question.formula(),
        disclosure=of.disclosure,
        releases=of.releases,
        choice=choice,
        versions=content.read_versions(),
        methods=of.methods,
    )
    if not public_only:
        return report
    if of.disclosure is not Disclosure.PRIVATE and of.choice is not None:
        report = replace(report, choice=json.loads(of.choice()))
    return content.remove_private(report)


def script_text(of: ReportContent, made: datetime, public_only: bool) -> str:
    """Return the script."""
    return script.write_script(
        of.question.title,
        of.parameters,
        of.source,
        f"dpcore.{of.question.name}.answer",
        made,
        public_only,
        questions.call_with(of.question.name, of.parameters),
    )


def distribution(data: Dataset) -> Picture:
    """Return how many users have how many rows."""
    return replace(plots.picture(plot_counts(data)), key="distribution")


def beside_private(of: ReportContent) -> tuple[str, ...]:
    """Fields of the parameters object that a person may have filled by looking at private data, by name.

    None where the data are not private. A field that its question declares public is never read off data, and one that
    stands as it began was not either.
    """
    if of.disclosure is not Disclosure.PRIVATE:
        return ()
    return tuple(
        name
        for name, field in of.question.fields.items()
        if field.origin is not From.PUBLIC
        and (value := getattr(of.parameters, name)) is not None
        and value != of.question.forgotten(name)
    )


def _asked(of: ReportContent) -> tuple[Line, ...]:
    found, beside = [], beside_private(of)
    asked = of.question.asked() if of.asked is None else of.asked
    for name, words in asked.items():
        value = getattr(of.parameters, name)
        if value is not None:
            number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
            label = PRIVATE_SETTING_LABEL if name in beside else ""
            found.append(
                Line(
                    escape_markdown(words),
                    content.format_setting(value),
                    Disclosure.PUBLIC,
                    number=number,
                    label=label,
                )
            )
    return tuple(found)
