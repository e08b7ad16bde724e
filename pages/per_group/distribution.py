"""Per group where only the distribution of pairs is known: the answer, its words, and what is approximate in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from dpcore.answer import Answer, Number
from dpcore.common import wording
from dpcore.common.markdown import plain
from dpcore.data import pair_distribution
from dpcore.dataset import Dataset
from dpcore.per_group import (
    PerGroupParameters,
    Statistic,
    SummaryChoice,
    SummaryProblem,
    best_summary_pair,
    words,
)
from dpcore.per_group.files import summary_assumptions, summary_choice_json
from dpcore.per_group.summary import APPROXIMATE
from dpcore.report.content import data_lines
from dpcore.report.literals import Code
from dpcore.report.script import Source
from pages.per_group import figures, methods
from pages.per_group.answer import OBJECTIVES, ErrorMap, Pair
from pages.per_group.question import QUESTION
from pages.shared import answer_tabs, file_button, layout, take_away
from pages.shared import figures as shared_figures
from pages.shared.cache import cached
from pages.shared.figures import Picture
from pages.shared.report_content import ReportContent, distribution

COLUMNS, ROWS = 30, 16
"""Points of the map along both bounds."""


@dataclass(frozen=True, eq=False)
class DistributionView:
    """What the page shows; the figure of `figures.map_figure` reads it, too.

    Attributes:
        problem: The question on the distribution.
        choice: The best pair that was found.
        pair: The same; None where releasing nothing is better.
        own: The person's own pair.
        map: The error over both bounds.
        label: What groups are called.
    """

    problem: SummaryProblem
    choice: SummaryChoice
    pair: Pair | None
    own: Pair | None
    map: ErrorMap
    label: str
    tuner: Pair | None = None

    @property
    def parameters(self) -> PerGroupParameters:
        """What was asked."""
        return self.problem.parameters

    @property
    def pair_error(self) -> float:
        """Error of the pair, or of releasing nothing where that is better."""
        return self.choice.error


def compute(data: Dataset, parameters: PerGroupParameters) -> DistributionView:
    """Search and evaluate; the data must have sizes of pairs.

    Raises:
        InvalidInput: The question needs the pairs themselves.
    """
    assert data.pair_sizes is not None
    problem = SummaryProblem(data.pair_sizes, parameters)
    choice = best_summary_pair(problem)
    pair = Pair(choice.max_groups, choice.max_amount, choice.error) if choice.max_groups else None
    own = None
    if parameters.own_groups is not None and parameters.own_amount is not None:
        l0, linf = int(parameters.own_groups), float(parameters.own_amount)
        own = Pair(l0, linf, problem.error(l0, linf))
    most, largest = int(data.pair_sizes.groups.max()), float(problem.amounts.max())
    groups = np.unique(np.rint(np.r_[np.geomspace(1, most, COLUMNS), choice.max_groups or 1]))
    amounts = np.unique(np.rint(np.r_[np.geomspace(1, largest, ROWS), choice.max_amount or 1.0]))
    errors = np.array([[problem.error(int(l0), float(c)) for l0 in groups] for c in amounts])
    return DistributionView(
        problem, choice, pair, own, ErrorMap(groups, amounts, errors), data.pair_sizes.label
    )


@cached(max_entries=8)
def answer(digest: str, parameters: PerGroupParameters, _data: Dataset) -> DistributionView:
    """The answer, once for a question and a data set."""
    return compute(_data, parameters)


def card(view: DistributionView, data: Dataset) -> Answer:
    """The answer in words."""
    asked, choice = view.parameters, view.choice
    epsilon = wording.entered(asked.epsilon)
    shown = words.pair_words(asked, choice.max_groups, choice.max_amount) if view.pair else "none"
    groups = wording.counted(choice.max_groups, "group")
    if view.pair is None:
        headline = f"Release nothing at ε = {epsilon}: no pair was found that errs less than publishing 0 everywhere."
    elif asked.statistic is Statistic.USERS:
        headline = f"Count each user in at most {groups}, or about as many."
    else:
        amount = words.amount_words(asked, choice.max_amount)
        headline = f"Keep at most {groups} of each user, and at most {amount} in each, or about as many."
    error = words.error_words(asked, choice.error)
    detail = ["**Only how pairs are distributed is known**, not which lie in which group."]
    if choice.lower is not None and choice.upper is not None and view.pair:
        low, high = (words.error_words(asked, x) for x in (choice.lower, choice.upper))
        detail.append(f"Whatever lies where, the error is between {low} and {high}.")
    return Answer(
        headline=headline,
        detail=" ".join(detail),
        numbers=(
            Number(
                "Best pair found, L0 × L∞",
                shown,
                copied=f"{choice.max_groups}, {choice.max_amount:.12g}" if view.pair else "",
            ),
            Number("Error, about", error, "", f"The {OBJECTIVES[asked.objective]}."),
        ),
        facts={"What is approximate": APPROXIMATE, "How it was found": choice.ended.split(". ")[0] + "."},
        assumptions=summary_assumptions(asked),
        disclosure=data.provenance,
    )


def picture(view: DistributionView, data: Dataset) -> Picture:
    """The figure of page and report."""
    return Picture(
        "per-group-error",
        "Error over both bounds, about",
        lambda: figures.map_figure(view),
        figures.map_alt(view),
        figures.map_columns(view),
        data.provenance,
    )


def choice_json(view: DistributionView, data: Dataset) -> str:
    """The choice as JSON."""
    return summary_choice_json(data, view.problem, view.choice)


def data_cell(code: Code, source: Source, public_only: bool) -> str:
    """The cell that reads the distribution's file into ``data``; its name holds nothing of the person's."""
    code.use("pair_distribution", "dpcore.data")
    name = f"{shared_figures.file_name('pair_distribution', source.dataset.provenance)}.json"
    code.use("Path", "pathlib")
    return (
        "# From the page Per group, Downloads, button Distribution of pairs (JSON).\n"
        f"FILE = Path({name!r})\n"
        f"data = pair_distribution.read(FILE.read_bytes(), FILE.name, {code.of(source.dataset.disclosure)})"
    )


def distribution_report(view: DistributionView, data: Dataset) -> ReportContent:
    """What the page contributes to its report where only the distribution is known."""
    return ReportContent(
        question=QUESTION,
        parameters=view.parameters,
        asked=QUESTION.asked(),
        cards=[("", card(view, data))],
        pictures=[picture(view, data), distribution(data)],
        source=Source(data, rows=True, cell=data_cell),
        program="script_distribution",
        summary=data_lines(data),
        choice=lambda: choice_json(view, data),
    )


def show(data: Dataset, parameters: PerGroupParameters, places: layout.Places) -> None:
    """Draw the answer.

    Raises:
        InvalidInput: As `compute`.
    """
    view = answer(data.digest, parameters, data)
    with places.figure:
        shared_figures.show_picture(picture(view, data))
    answer_tabs.show(
        places,
        QUESTION,
        card(view, data),
        {},
        lambda: _files(view, data),
        used=lambda: _what_is_used(view),
    )


def _files(view: DistributionView, data: Dataset) -> None:
    """The whole answer, the choice, and the distribution that the script reads."""
    sizes = view.problem.sizes
    held = pair_distribution.fits(sizes)
    if held:
        take_away.draw(
            "per_group",
            data.provenance,
            lambda: distribution_report(view, data),
            methods.of_distribution(view.parameters, view.pair, data),
        )
    st.markdown(
        "**Choice** holds the question, the best pair found, and what is approximate. The **distribution of pairs** is "
        "what the script reads and *Your data* opens: it names no user and no group. Label of both: "
        f"*{data.provenance.label}*."
    )
    parts: list[take_away.Part] = [
        ("Choice (JSON)", "per_group_choice.json", lambda: choice_json(view, data)),
        ("Distribution of pairs (JSON)", "pair_distribution.json", lambda: pair_distribution.to_text(data)),
    ]
    file_button.draw_row(parts if held else parts[:1], data.provenance)
    if not held:
        st.caption(
            f"The distribution has {sizes.pairs.size:,} sizes and {sizes.task_rows.size:,} groups, more than a file "
            "holds; so there is no script to read it."
        )


def _what_is_used(view: DistributionView) -> str:
    pairs = wording.counted(int(view.problem.sizes.pairs.sum()), "pair")
    groups = wording.counted(view.problem.num_groups, "group")
    return f"{pairs} of a user and a group; {groups} of {plain(view.label)} released."
