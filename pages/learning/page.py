"""Learning under a cap: how many rows of one user a private learner may see, and what that costs."""

import streamlit as st

from dpcore.learning import LearningParameters
from pages.learning import (
    answer as learning_view,
)
from pages.learning import (
    cached,
    card,
    population_tabs,
)
from pages.learning import (
    figures as learning_charts,
)
from pages.learning import (
    inputs as learning_inputs,
)
from pages.learning import (
    tabs as learning_tabs,
)
from pages.learning.formula import FORMULA
from pages.learning.question import QUESTION
from pages.shared import cards, figures, keys, lazy_tabs, ranges, session

data = session.dataset()
st.title("Learning under a cap")
st.markdown(
    "You train a model with a private learner on at most τ = τ₀ n rows of each user. **How many rows may one user "
    "bring?** A low cap trains on another mix of users than you will meet (bias); a high one lets single users weigh "
    "so much that hiding them takes more noise."
)


def show(parameters: LearningParameters) -> None:
    """Everything below the inputs."""
    view = cached.learning_answer(data.digest, parameters.about_data, data)
    version = session.data_version()
    fraction_limits, bound_limits = learning_view.axis_limits(view)
    answer, picture = st.columns([5, 6])
    code = st.container()
    with answer:
        cards.show(card.card(view, data, parameters), key="learning_card", below=code)
    with picture:
        learning_inputs.cap_row(data.histogram, parameters.own_cap)
    chart = picture.container()
    below = picture.container(horizontal=True, vertical_alignment="center")
    with below.popover("Axis ranges", icon=":material/straighten:", key="learning_ranges"):
        x = ranges.range_control("τ₀, share of all rows", f"learning_x_{version}", *fraction_limits, room=1.0)
        y = ranges.range_control("Bound on the excess risk", f"learning_y_{version}", *bound_limits)
        st.caption("The axes stay put while you move ε, so that curves can be compared.")
    figures.show(
        learning_charts.bound_figure(view, (x, y), parameters.own_cap),
        "learning_bound",
        learning_charts.bound_alt(view),
        learning_charts.bound_columns(view),
        data.provenance,
        place=chart,
        below=below,
    )
    if not (y[0] <= view.choice.total <= y[1] and x[0] <= view.choice.fraction <= x[1]):
        chart.caption("The best point lies outside the axes: widen them under *Axis ranges*.")
    show_tabs(view, parameters, (x, y))


def show_tabs(
    view: learning_view.LearningView, parameters: LearningParameters, limits: learning_tabs.Limits
) -> None:
    """What stands below the answer."""
    tabs = {
        "All bounds on the bias": lambda: learning_tabs.show_terms(view, parameters, data, limits),
        "Who is capped": lambda: learning_tabs.show_capped(view, parameters, data),
        "Figure 2": lambda: population_tabs.show_mass(parameters),
        "Figure 3": lambda: population_tabs.show_cost_over_caps(parameters),
        "Cost of privacy": lambda: population_tabs.show_cost_over_rows(parameters),
        "Downloads": lambda: learning_tabs.show_files(view, parameters, data),
        "How this is computed": lambda: st.markdown(FORMULA),
    }
    lazy_tabs.draw(tabs, QUESTION.key("tabs"))


chosen = learning_inputs.read()
if chosen is not None:
    st.session_state[keys.PAGE_PARAMETERS] = chosen
    show(chosen)
