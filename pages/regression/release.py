"""The tab *Release* of the page Regression: coefficients that are drawn on request, and what they spent."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.privacy import Charge, Ledger, format_rounded_up
from dpcore.regression import draw as regression_draw
from dpcore.regression.answer import words
from dpcore.regression.answer.solution import RegressionSolution, table_of
from dpcore.regression.draw import Draw, draw_coefficients, interval_half_widths
from dpcore.regression.parameters import DataSource
from dpcore.report.content import Line
from pages.regression.question import QUESTION
from pages.regression.upload import RegressionData
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.card.releases import Releases, lost_sentence, released_lines, spent_lines
from pages.shared.fields import fields

SUBJECT = "these labels"


def find_loaded(answer: Answer) -> RegressionData:
    """Return the data of an answer, with their account."""
    data = answer.solution.data
    if answer.parameters.source is DataSource.GENERATED:
        return RegressionData(data, data.digest)
    loaded: RegressionData = st.session_state[QUESTION.key("loaded")]
    return loaded


def find_releases(answer: Answer) -> Releases:
    """Return the releases of the labels of an answer."""
    return Releases(QUESTION, find_loaded(answer).account, SUBJECT)


def show(answer: Answer) -> None:
    """Draw the tab: a description, the button, and the latest draw with its label."""
    solution, store = answer.solution, find_releases(answer)
    draws, latest = store.draws, store.draws[-1] if store.draws else None
    epsilon = format_rounded_up(solution.problem.epsilon)
    st.markdown(
        f"A draw adds fresh Laplace noise of scale **{wording.number(solution.best_estimate.noise.scale)}** to each "
        f"coefficient, by OpenDP, and spends **ε = {epsilon}**. The page keeps it and draws again only when you ask; "
        "every further draw of the same labels spends more."
    )
    if solution.variance_is_private:
        st.warning(
            "σ² was read from private labels, and C depends on it: ε would not cover that. Enter a σ² that you may "
            "publish under *More settings*, then draw.",
            icon=":material/lock:",
        )
    fields.button(
        f"Draw once more: spends another ε = {epsilon}"
        if draws
        else f"Draw the coefficients: spends ε = {epsilon}",
        "regression_draw",
        "casino",
        _draw,
        store,
        solution,
        is_main=not draws,
        disabled=solution.variance_is_private or solution.stage is not Stage.FINAL,
        help=None if solution.stage is Stage.FINAL else "It waits for the end of the search.",
    )
    store.say_refused()
    is_earlier = latest is not None and latest.question != solution.problem.digest
    store.show_account(None if latest is None else latest.coefficients.facts, is_earlier)
    columns = words.tabulate_release(solution, latest)
    tables.show(
        columns,
        "Coefficients with noise scale, standard error and, once drawn, released value and interval",
        "regression_coefficients",
        dict.fromkeys([name for name in columns if name != "Coefficient"], "%.4g"),
    )
    st.caption(words.describe_release(solution))
    if latest is None:
        cards.label(answer.disclosure)
    else:
        label = "Released coefficients (CSV)"
        store.file_button(label, lambda: regression_draw.released_csv(draws), "released-coefficients")


def _draw(store: Releases, solution: RegressionSolution) -> None:
    problem, estimate, lower = solution.problem, solution.best_estimate, solution.parameters.lower
    # From public figures: before anything is spent.
    half_widths = interval_half_widths(problem, estimate)

    def draw(charge: Charge) -> Draw:
        labels = table_of(solution.data).labels
        coefficients = draw_coefficients(problem, estimate, labels, lower, charge=charge)
        return Draw(problem.digest, problem.feature_names, coefficients, half_widths)

    store.draw(draw)


def list_lines(draws: Sequence[Draw], ledger: Ledger) -> tuple[Line, ...]:
    """List the latest draw and all that was spent, releases included that ended in an error, as lines of a report."""
    spending = spent_lines(ledger, lost_sentence(ledger, len(draws), SUBJECT))
    if not draws:
        return spending
    latest = draws[-1].coefficients
    note = f"Draw {len(draws)} of {SUBJECT}; Laplace noise of scale {wording.number(latest.release.scale)}."
    return released_lines(draws[-1].names, latest.release.values, note, latest.facts.label, spending)
