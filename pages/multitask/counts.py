"""The tab of the page Many tasks that releases task sizes privately first, in simulation."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.multitask.answer import MultitaskSolution, answer
from dpcore.multitask.answer import plots as core_plots
from pages.multitask import cached
from pages.multitask.question import QUESTION
from pages.shared.card import cards, number_elements
from pages.shared.fields import fields
from pages.shared.screen import plots


def show_counts(solution: MultitaskSolution) -> None:
    """Draw the tab: the cost of releasing the sizes privately first."""
    st.markdown(
        "If task sizes are not public, release them first, for a part of β. **What does that cost?** The "
        "page simulates one draw of the noise; nothing is released."
    )
    fields.columns(QUESTION, [3, 3, 4, 2], "count_share", "count_max_tasks", "count_covers", "count_seed")
    simulation, chosen = cached.counts(solution), solution.comparison.allocation
    with_s, without = (
        simulation.compare_total(a, chosen) for a in (simulation.with_slack, simulation.without_slack)
    )
    counts = simulation.counts
    left, right = st.columns([5, 6])
    with left:
        with st.grid(2, min_column_width=140, gap="small"):
            of_exact = "of that with exact sizes"
            number_elements.single("Total bound with n̂ + s", f"{wording.number(with_s)}×", of_exact)
            number_elements.single("With n̂ alone, at least 1", f"{wording.number(without)}×", of_exact)
            number_elements.single(
                "Cost factor",
                f"{wording.number(simulation.cost_factor)}×",
                "theorem B.2",
                "(1/m) Σ (n̂ + s)/n: what the paper's bound for strongly convex losses loses by estimating.",
            )
            uncounted = f"{wording.number(counts.truncation)} for the uncounted"
            number_elements.single("Slack s", wording.counted(counts.slack, "user"), uncounted)
        st.markdown(answer.describe_counts(solution.comparison, simulation))
    with right:
        plots.draw(core_plots.plot_counts(solution.tasks, counts))
    st.badge("simulation: not a release", color="violet", icon=":material/casino:")
    cards.label(solution.tasks.disclosure)
