"""The tabs of Learning under a cap that need no data: figures 2 and 3, and the cost of privacy."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop
from dpcore.learning import LearningParameters, population
from dpcore.learning.participation import PowerLaw
from dpcore.learning.participation_sample import simulate
from pages.learning import cached, population_figures
from pages.learning import population as learning_population
from pages.learning.question import POPULATION, QUESTION
from pages.shared import cards, fields, figures, jobs, ranges

TAU_0 = "τ₀, share of all rows"


def show_mass(parameters: LearningParameters) -> None:
    """Figure 2."""
    st.markdown(
        "In this population user $j$ contributes the share $p_j \\propto j^{-(1+\\alpha)}$. The solid line shows how "
        "much of all rows comes from users who stay below the cap (the paper's figure 2). The dashed line shows how "
        "much is kept, $\\sum_j \\min(p_j, \\tau_0)$, since capped users keep $\\tau_0$ each. The share kept, "
        "$n_\\tau/n$, tends to the dashed line and not to the solid one."
    )
    with st.columns(3)[0]:
        fields.draw(QUESTION, "alpha")
    with ranges.under_figure("learning_mass_range", "Axis range", "") as (chart, below):
        limits = ranges.range_control(TAU_0, "learning_mass_x", *learning_population.FRACTIONS, room=1.0)
    figures.show_picture(population_figures.mass_picture(parameters.alpha, limits), below, chart)
    cards.label(Disclosure.PUBLIC)


def show_cost_over_caps(parameters: LearningParameters) -> None:
    """Figure 3."""
    st.markdown(
        "The figures show **(a)** bias plus privacy noise and **(b)** how many users are capped, over τ₀, for a "
        f"sample of n rows from the population. The bias is bounded by *{parameters.population_bias.title}*"
        + (
            ", the paper's counterpart of your bound, which would need every user's share."
            if parameters.population_bias is not parameters.bias
            else "."
        )
        + " The lines are exact expectations. The paper averages simulated samples, which you can add to the figures."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fields.draw_all(QUESTION, *POPULATION)
        asked = (parameters.alpha, parameters.population_rows, parameters.draws)
        if fields.button(f"Draw {wording.counted(parameters.draws, 'sample')}", "learning_draw", "casino"):
            _start_drawing(*asked)
    jobs.watch(QUESTION.key("draws_job"), "Drawing samples")
    simulated = _drawn(asked)
    view = cached.learning_population_view(parameters.about_population)
    _show_figure_3(view, simulated)
    st.markdown(learning_population.best_sentence(view))
    st.caption(
        "In a sample the largest share is taken to be $\\tau/n_\\tau$, as in the paper, though a cap above the "
        "heaviest user's share changes nothing. The line n → ∞ uses the heaviest user's share."
    )
    st.markdown(
        "**How few are capped.** The table is for the limit of many rows and for your settings. The paper reports 2 to "
        "8 users at ε = 1 and gives neither its α nor its constants; with C = 3, and all else as this page begins, the "
        "table says 3 to 8. The best τ₀ is often exactly the share of some user, who then loses nothing and is not "
        "counted."
    )
    st.dataframe(pd.DataFrame(learning_population.family_rows(view)), hide_index=True, key="learning_family")
    cards.label(Disclosure.PUBLIC)


def _start_drawing(alpha: float, rows: int, draws: int) -> None:
    tau_0 = learning_population.drawn_fractions(rows)

    def work(progress: Progress, should_stop: ShouldStop) -> object:
        made = simulate(PowerLaw(alpha), rows, tau_0, draws, progress=progress, should_stop=should_stop)
        return learning_population.Simulated(tau_0, made)

    jobs.start(QUESTION.key("draws_job"), (alpha, rows, draws), work)


def _drawn(asked: tuple[float, int, int]) -> learning_population.Simulated | None:
    done = jobs.result_of(QUESTION.key("draws_job"))
    if done is None:
        return None
    question, simulated = done
    if question[:2] != asked[:2]:
        st.caption("The samples drawn are for another α or n: draw again to see them here.")
        return None
    found: learning_population.Simulated = simulated
    words = f"{wording.counted(found.count, 'sample')} drawn (seed 0)"
    st.caption(f"Stopped after {words}: what was drawn is shown." if found.draws.cancelled else f"{words}.")
    return found if found.count else None


def _show_figure_3(
    view: learning_population.PopulationView, simulated: learning_population.Simulated | None
) -> None:
    left, right = st.columns(2)
    rows = view.parameters.population_rows
    with st.popover("Axis ranges", icon=":material/straighten:", key="learning_figure_3_ranges"):
        limits = ranges.range_control(TAU_0, f"learning_figure_3_x_{rows}", 1.0 / rows, 1.0, room=1.0)
        error = ranges.range_control(
            "Bias and privacy noise", "learning_figure_3_error", *population_figures.ERRORS
        )
        users = ranges.range_control("Users capped", "learning_figure_3_users", *population_figures.USERS)
    with left:
        figures.show_picture(population_figures.cost_picture(view, simulated, limits, error))
    with right:
        figures.show_picture(population_figures.capped_picture(view, simulated, limits, users))


def show_cost_over_rows(parameters: LearningParameters) -> None:
    """The cost of privacy."""
    st.markdown(
        "For a fixed population and ε: the smallest sum of bias and privacy noise over all caps, as rows become "
        "plentiful. An ordinary learning bound falls to zero; this does not."
    )
    with st.columns(3)[0]:
        fields.draw(QUESTION, "alpha")
    asked = parameters.about_cost
    job: jobs.Job | None = st.session_state.get(QUESTION.key("cost_job"))
    if job is None or job.question != asked or st.session_state.get(QUESTION.key("cost_again")):

        def work(progress: Progress, should_stop: ShouldStop) -> object:
            return population.cost_of_privacy(
                parameters.population(None), progress=progress, should_stop=should_stop
            )

        jobs.start(QUESTION.key("cost_job"), asked, work)
    jobs.watch(QUESTION.key("cost_job"), "Searching the best τ₀ for each n")
    done = jobs.result_of(QUESTION.key("cost_job"))
    if done is None:
        return
    cost: population.CostOfPrivacy = done[1]
    if cost.cancelled:
        st.warning(
            f"Stopped: {wording.number(len(cost.best))} of {wording.number(len(population.ROWS_FOR_COST))} values of n "
            "were done.",
            icon=":material/stop_circle:",
        )
        st.button("Compute again", key=QUESTION.key("cost_again"), icon=":material/refresh:")
    st.markdown(learning_population.cost_over_rows_sentence(cost, parameters))
    if not cost.best:
        return
    with ranges.under_figure("learning_cost_range", "Axis range", "") as (chart, below):
        error = ranges.range_control("Smallest sum", "learning_cost_y", *population_figures.COSTS)
    figures.show_picture(population_figures.cost_over_rows_picture(cost, parameters, error), below, chart)
    cards.label(Disclosure.PUBLIC)
