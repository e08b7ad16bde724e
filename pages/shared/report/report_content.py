"""The report of a page: its answer, its plots, and how its data are distributed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpcore import questions
from dpcore.answer import Answer
from dpcore.answer.distribution import plot_counts
from dpcore.answer.section import list_plots
from dpcore.common.privacy import Disclosure
from dpcore.report import content, script
from dpcore.report.content import Line, Report
from pages.shared.base.question import FieldOrigin, Question


def of_answer(
    question: Question,
    answer: Answer,
    source: script.Source,
    formula: str = "formula",
    setting_labels: Mapping[str, str] | None = None,
    label: str = "",
    summary: tuple[Line, ...] | None = None,
) -> Report:
    """Build the report of a page.

    Args:
        question: The page.
        answer: The answer to it.
        source: The data source of the script.
        formula: Which of the question's texts says how it is computed.
        setting_labels: Fields of the parameters that matter for the answer, with what they are in words; None for all.
        label: What stands above its plots.
        summary: What the answer is about, if that is not the data in use alone; their distribution is left out.
    """
    parameters = answer.parameters
    plots = list_plots(answer, source.dataset)
    if summary is None:
        plots.append(replace(plot_counts(source.dataset), key="distribution"))
    is_private = source.shown_disclosure is Disclosure.PRIVATE
    private_settings = list_private_settings(question, parameters) if is_private else ()
    names = question.asked() if setting_labels is None else setting_labels
    return Report(
        page=question.title,
        question=question.sentence,
        answers=(("", answer),),
        figures=tuple(replace(plot, alt=f"{label}. {plot.alt}") if label else plot for plot in plots),
        settings=content.list_settings(parameters, names, private_settings),
        summary=content.summarise_dataset(source.dataset) if summary is None else summary,
        disclosure=source.shown_disclosure,
        formulae=question.formula(formula),
        methods=answer.methods,
        private_settings=private_settings,
        figure_label=label,
        write_script=lambda created, public_only: script.write_script(
            question.title,
            parameters,
            source,
            f"dpcore.{question.name}.answer",
            created,
            public_only,
            questions.call_with(question.name, parameters),
        ),
    )


def list_private_settings(question: Question, parameters: Any) -> tuple[str, ...]:
    """List the fields that a person may have filled by looking at private data, by name.

    A field that its question declares public is never read off data, and one that stands as it began was not either.
    """
    return tuple(
        name
        for name, field in question.fields.items()
        if field.origin is not FieldOrigin.PUBLIC
        and (value := getattr(parameters, name)) is not None
        and value != question.forgotten(name)
    )
