"""The tab of the page Many tasks that releases task sizes privately first, in simulation."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.multitask.parameters import MultitaskParameters
from pages.multitask import answer, cached, compare, detail_figures, inputs
from pages.multitask.answer import MultitaskView
from pages.shared import cards, figures, number_grid


def show_counts(view: MultitaskView, parameters: MultitaskParameters) -> None:
    """Releasing the sizes privately first."""
    st.markdown(
        "If task sizes are not public, release them first, for a part of β. **What does that cost?** The "
        "page simulates one draw of the noise; nothing is released."
    )
    inputs.counts()
    found = cached.counts(view.tasks, view.question, parameters)
    with_s, without = (
        answer.total_ratio(a, view.chosen) * _rest(view, parameters)
        for a in (found.with_slack, found.without_slack)
    )
    counts = found.counts
    left, right = st.columns([5, 6])
    with left:
        with st.grid(2, min_column_width=140, gap="small"):
            of_exact = "of that with exact sizes"
            number_grid.single("Total bound with n̂ + s", f"{wording.number(with_s)}×", of_exact)
            number_grid.single("With n̂ alone, at least 1", f"{wording.number(without)}×", of_exact)
            number_grid.single(
                "Cost factor",
                f"{wording.number(found.cost_factor)}×",
                "theorem B.2",
                "(1/m) Σ (n̂ + s)/n: what the paper's bound for strongly convex losses loses by estimating.",
            )
            uncounted = f"{wording.number(counts.truncation)} for the uncounted"
            number_grid.single("Slack s", wording.counted(counts.slack, "user"), uncounted)
        st.markdown(_counts_sentence(view, found))
    with right:
        figures.show_picture(detail_figures.count_picture(view.tasks, counts))
    st.badge("simulation: not a release", color="violet", icon=":material/casino:")
    cards.label(view.tasks.disclosure)


def _rest(view: MultitaskView, parameters: MultitaskParameters) -> float:
    """Error bounds with the budget that is left, against the whole budget: 1/β, for convex losses its root."""
    left = 1.0 / (1.0 - parameters.count_share)
    return left if view.bounds_are_tasks_own else left**0.5


def _counts_sentence(view: MultitaskView, found: compare.CountsView) -> str:
    counts, sizes = found.counts, view.problem.task_sizes
    heavier = int((view.tasks.graph.tasks_per_user > counts.max_tasks).sum())
    words = [
        f"Noise of standard deviation {wording.number(counts.noise_scale)} on every count; the median task has "
        f"{wording.counted(float(sorted(sizes)[sizes.size // 2]), 'user')}."
    ]
    if heavier:
        words.append(
            f"{wording.counted(heavier, 'user')} {wording.agreeing(heavier, 'has', 'have')} more than "
            f"{wording.counted(counts.max_tasks, 'task')}, so counts are too low."
        )
        if not counts.covers_truncation:
            words.append("s does not cover that.")
    words.append(
        f"{wording.counted(found.low, 'task')} of {sizes.size:,} "
        f"{wording.agreeing(found.low, 'is', 'are')} still underestimated by n̂ + s."
        if found.low
        else "n̂ + s is at least the true size for every task."
    )
    if found.with_slack.total_bound > 1.05 * found.without_slack.total_bound:
        words.append("**The slack costs more than it saves here**: n̂ alone clips more users and is better.")
    return " ".join(words)
