"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.per_group.files import per_group_choice_json
from dpcore.report.script import Source
from pages.per_group import answer, card, figures
from pages.per_group.question import QUESTION
from pages.shared.report_content import ReportContent, distribution


def choice_json(view: answer.PerGroupView, data: Dataset) -> str:
    """The choice as JSON."""
    pair = view.pair
    rounded = None if pair is None else (pair.max_groups, pair.max_amount, pair.error)
    selected = None
    if view.selected is not None:
        released = 0.0 if view.selected.pair is None else view.selected.pair.expected_groups
        selected = released, view.selected.vector
    return per_group_choice_json(data, view.problem, view.choice, rounded, view.cap, view.radial, selected)


def per_group_report(view: answer.PerGroupView, data: Dataset, source: Source) -> ReportContent:
    """What the page Per group contributes to its report."""
    kind = data.provenance
    pictures = [figures.map_picture(view, kind), figures.group_picture(view, kind)]
    if view.selected is not None and (view.selected.pair or view.selected.vector):
        pictures.append(figures.survival_picture(view, kind))
    return ReportContent(
        question=QUESTION,
        parameters=view.parameters,
        cards=[("", card.card(view, data))],
        pictures=[*pictures, distribution(data)],
        source=source,
        choice=lambda: choice_json(view, data),
    )
