"""The tabs of Learning under a bound that need no data: figures 2 and 3, and the cost of privacy."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.common.parameters import Place
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.learning import LearningParameters
from dpcore.learning.answer import population, population_plots
from dpcore.learning.paper import FIGURES
from dpcore.learning.participation import PowerLaw
from dpcore.learning.participation_sample import simulate
from dpcore.learning.population import ROWS_FOR_COST, CostOfPrivacy, cost_of_privacy
from pages.learning import cached
from pages.learning.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import paper, plots


def show_mass(parameters: LearningParameters) -> None:
    """Figure 2."""
    st.markdown(
        "In this population user $j$ contributes the share $p_j \\propto j^{-(1+\\alpha)}$. The solid line shows how "
        "much of all rows comes from users who stay below the bound (the paper's figure 2). The dashed line shows how "
        "much is kept, $\\sum_j \\min(p_j, \\tau_0)$, since users above it keep $\\tau_0$ each. The share kept, "
        "$n_\\tau/n$, tends to the dashed line and not to the solid one."
    )
    with st.columns(3)[0]:
        fields.draw(QUESTION, "alpha")
    plots.show(population_plots.plot_mass(parameters.alpha))
    cards.label(Disclosure.PUBLIC)


def show_cost_over_caps(parameters: LearningParameters) -> None:
    """Figure 3."""
    st.markdown(
        "The figures show **(a)** bias plus privacy noise and **(b)** how many users lose rows, over the bound as a "
        "share of all rows, τ₀, for a sample of n rows from the population. The bias is bounded by "
        f"*{parameters.population_bias.title}*"
        + (
            ", the paper's counterpart of your bound, which would need every user's share."
            if parameters.population_bias is not parameters.bias
            else "."
        )
        + " The lines are exact expectations. The paper averages simulated samples, which you can add to the figures."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fields.draw_all(QUESTION, *QUESTION.placed(Place.TAB))
        asked = (parameters.alpha, parameters.population_rows, parameters.draws)
        if fields.button(f"Draw {wording.counted(parameters.draws, 'sample')}", "learning_draw", "casino"):
            _start_drawing(*asked)
    jobs.watch(QUESTION.key("draws_job"), "Drawing samples")
    simulated = _drawn(asked)
    found = cached.on_population(parameters.about_population)
    _show_figure_3(found, simulated)
    st.markdown(population.describe_best(found))
    st.caption(
        "In a sample the largest share is taken to be $\\tau/n_\\tau$, as in the paper, though a bound above the "
        "heaviest user's share changes nothing. The line n → ∞ uses the heaviest user's share."
    )
    st.markdown(
        "**How few lose rows.** The table is for the limit of many rows and for your settings. The paper reports 2 to "
        "8 users at ε = 1 and gives neither its α nor its constants; with C = 3, and all else as this page begins, the "
        "table says 3 to 8. The best τ₀ is often exactly the share of some user, who then loses nothing and is not "
        "counted."
    )
    st.dataframe(pd.DataFrame(population.list_family_rows(found)), hide_index=True, key="learning_family")
    cards.label(Disclosure.PUBLIC)
    st.divider()
    paper.show(FIGURES)


def _start_drawing(alpha: float, rows: int, draws: int) -> None:
    tau_0 = population.drawn_fractions(rows)

    def work(progress: Progress, should_stop: ShouldStop) -> object:
        made = simulate(PowerLaw(alpha), rows, tau_0, draws, progress=progress, should_stop=should_stop)
        return population.Simulated(tau_0, made)

    jobs.start(QUESTION.key("draws_job"), (alpha, rows, draws), work)


def _drawn(asked: tuple[float, int, int]) -> population.Simulated | None:
    done = jobs.result_of(QUESTION.key("draws_job"))
    if done is None:
        return None
    question, simulated = done
    if question[:2] != asked[:2]:
        st.caption("The samples drawn are for another α or n: draw again to see them here.")
        return None
    drawn: population.Simulated = simulated
    words = f"{wording.counted(drawn.count, 'sample')} drawn (seed 0)"
    st.caption(f"Stopped after {words}: what was drawn is shown." if drawn.draws.cancelled else f"{words}.")
    return drawn if drawn.count else None


def _show_figure_3(found: population.PopulationSolution, simulated: population.Simulated | None) -> None:
    left, right = st.columns(2)
    cost, capped = (
        population_plots.plot_cost(found, simulated),
        population_plots.plot_capped(found, simulated),
    )
    with st.popover("Axis ranges", icon=":material/straighten:", key="learning_figure_3_ranges"):
        # Both figures have one horizontal axis.
        across = plots.ends(cost.x, "learning_figure_3_x")
        error, users = (
            plots.ends(cost.y, "learning_figure_3_error"),
            plots.ends(capped.y, "learning_figure_3_users"),
        )
    with left:
        plots.draw(cost.with_limits(across, error))
    with right:
        plots.draw(capped.with_limits(across, users))


def show_cost_over_rows(parameters: LearningParameters) -> None:
    """The cost of privacy."""
    st.markdown(
        "For a fixed population and ε: the smallest sum of bias and privacy noise over all bounds, as rows become "
        "plentiful. An ordinary learning bound falls to zero; this does not."
    )
    with st.columns(3)[0]:
        fields.draw(QUESTION, "alpha")
    asked = parameters.about_cost
    job: jobs.Job | None = st.session_state.get(QUESTION.key("cost_job"))
    if job is None or job.question != asked or st.session_state.get(QUESTION.key("cost_again")):

        def work(progress: Progress, should_stop: ShouldStop) -> object:
            return cost_of_privacy(parameters.population(None), progress=progress, should_stop=should_stop)

        jobs.start(QUESTION.key("cost_job"), asked, work)
    jobs.watch(QUESTION.key("cost_job"), "Searching the best τ₀ for each n")
    done = jobs.result_of(QUESTION.key("cost_job"))
    if done is None:
        return
    cost: CostOfPrivacy = done[1]
    if cost.cancelled:
        st.warning(
            f"Stopped: {wording.number(len(cost.best))} of {wording.number(len(ROWS_FOR_COST))} values of n "
            "were done.",
            icon=":material/stop_circle:",
        )
        st.button("Compute again", key=QUESTION.key("cost_again"), icon=":material/refresh:")
    st.markdown(population.describe_cost_over_rows(cost, parameters))
    if not cost.best:
        return
    plots.show(population_plots.plot_cost_over_rows(cost, parameters), y_only=True)
    cards.label(Disclosure.PUBLIC)
