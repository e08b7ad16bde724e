"""Regression: the best linear estimator under label privacy, and what caps cost beside it."""

import streamlit as st

from dpcore.regression.parameters import RegressionParameters
from pages.regression import (
    answer as regression_view,
)
from pages.regression import (
    card,
    release,
    studies,
    work,
)
from pages.regression import (
    data as regression_data,
)
from pages.regression import (
    figures as regression_charts,
)
from pages.regression import (
    inputs as regression_inputs,
)
from pages.regression import (
    tabs as regression_tabs,
)
from pages.regression.formula import FORMULA
from pages.regression.question import QUESTION
from pages.regression.upload import RegressionData
from pages.shared import cards, fields, figures, keys, lazy_tabs, ranges

st.title("Regression")
st.markdown(
    "You release the coefficients of a linear model; features are public, **labels are private**. Instead of a cap "
    "on rows per user, **how much should each row weigh**, so that heavy users cost less noise?"
)


def show(loaded: RegressionData, parameters: RegressionParameters) -> None:
    """Everything below the inputs."""
    view = work.answer(loaded, parameters)
    if view is None:
        return
    sensitivity = loaded.dataset.provenance
    answer, picture = st.columns([5, 6])
    code = st.container()
    with answer:
        cards.show(card.card(view), key="regression_card", below=code)
        if not view.ours.certificate.proves(regression_view.PROVED) or not view.draws.num_draws:
            st.button(
                "Search again",
                key="regression_search_again",
                on_click=work.again,
                icon=":material/replay:",
            )
    with picture:
        of = regression_tabs.error_control()
        chart = st.container()
        below = st.container(horizontal=True, vertical_alignment="center")
    limits = regression_charts.cap_limits(view, of)
    with below.popover("Axis ranges", icon=":material/straighten:", key="regression_ranges"):
        version = f"{loaded.dataset.digest[:8]}_{of.value}_{parameters.value_bound:g}"
        x = ranges.range_control("Cap, rows per user", f"regression_x_{version}", *limits[0])
        y = ranges.range_control("Error", f"regression_y_{version}", *limits[1])
        st.caption("The axes stay put while you move ε, so that curves can be compared.")
    with chart:
        figures.show(
            regression_charts.cap_figure(view, of, (x, y)),
            "regression_caps",
            regression_charts.cap_alt(view, of),
            regression_charts.cap_columns(view, of),
            sensitivity,
            below=below,
        )
    tabs = {
        "Release": lambda: release.show(view),
        "Weights": lambda: regression_tabs.weights(view),
        "Against ε": lambda: studies.over_epsilon(view, of),
        "Figures 1, 2": lambda: studies.paper_figures(parameters, of),
        "Methods": lambda: regression_tabs.methods(view),
        "Search": lambda: regression_tabs.search(view),
        "Examples": studies.examples,
        "Downloads": lambda: regression_tabs.files(view),
        "How computed": lambda: st.markdown(FORMULA),
    }
    lazy_tabs.draw(tabs, QUESTION.key("tabs"))


fields.start(QUESTION)
with st.container(border=True, key="regression_inputs"):
    data = regression_data.read_data()
    chosen = regression_inputs.read(data) if data is not None else None
if data is not None and chosen is not None:
    st.session_state[keys.PAGE_PARAMETERS] = chosen
    show(data, chosen)
