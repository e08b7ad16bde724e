"""Quantile: the exact distribution of a private median or quantile, and the bound that serves it best."""

import streamlit as st

from dpcore.quantile.parameters import QuantileParameters
from pages.quantile import (
    answer as quantile_view,
)
from pages.quantile import (
    cached,
    card,
)
from pages.quantile import (
    figures as quantile_charts,
)
from pages.quantile import (
    inputs as quantile_inputs,
)
from pages.quantile import (
    tabs as quantile_tabs,
)
from pages.quantile.formula import FORMULA
from pages.quantile.question import QUESTION
from pages.shared import cards, figures, jobs, keys, lazy_tabs, missing, ranges, session

SAMPLE_WITH_VALUES = "shop-events"
WAIT_SECONDS = 0.8

data = session.dataset()
st.title("Quantile")
st.markdown(
    "You release a median or other quantiles, with ε-differential privacy for every user. **How much may one user "
    "count?** Without a bound the user with the most rows decides how noisy the answer is; too low a bound uses little "
    "of the data."
)


def show_missing() -> None:
    """Say that the data have no values, and where to get some."""
    st.info(missing.sentence(data, "values, one per row", "This page"))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(session.page_file("Your data"), label="Bring data with values", icon=":material/upload:")
        st.button(
            "Use the invented shop purchases",
            key="quantile_use_sample",
            on_click=use_sample,
            icon=":material/shopping_cart:",
        )


def use_sample() -> None:
    """Load the sample that has values."""
    origin = session.Origin(SAMPLE_WITH_VALUES)
    session.use(origin.load(), origin)


def search(parameters: QuantileParameters) -> quantile_view.QuantileView | None:
    """The answer; None while the search for the best bounds runs."""
    assert data.values is not None
    base = (parameters.base, parameters.low, parameters.high, parameters.center, parameters.spread)
    base_key = tuple(str(part) for part in (*base, parameters.edges, parameters.masses))
    rows = cached.quantile_rows(data.digest, base_key, parameters, data.values)
    problem = rows.with_epsilon(parameters.epsilon)
    question = (data.digest, quantile_view.search_question(parameters))
    job: jobs.Job | None = st.session_state.get(QUESTION.key("search_job"))
    if job is None or job.question != question:
        asked = parameters.asked
        job = jobs.start(
            QUESTION.key("search_job"),
            question,
            lambda tell, stop: quantile_view.search(problem, asked, tell, stop),
        )
        job.wait(WAIT_SECONDS)
    if jobs.watch(QUESTION.key("search_job"), "Trying bounds on your values"):
        return None
    done = jobs.result_of(QUESTION.key("search_job"))
    if done is None:
        return None
    choices = done[1]
    if choices.cancelled:
        st.button("Search again", key="quantile_again", on_click=forget_search, icon=":material/refresh:")
    return cached.quantile_answer(data.digest, parameters, choices.tried, problem, choices)


def forget_search() -> None:
    """Let the next run search anew."""
    st.session_state[QUESTION.key("search_job")] = None


def show(view: quantile_view.QuantileView) -> None:
    """Everything below the inputs."""
    version = f"{session.data_version()}_{view.parameters.quantiles}"
    bound_limits, error_limits = quantile_view.axis_limits(view)
    answer, picture = st.columns([5, 6])
    code = st.container()
    with answer:
        cards.show(card.card(view, data), key="quantile_card", below=code)
    chart = picture.container()
    below = picture.container(horizontal=True, vertical_alignment="center")
    with below.popover("Axis ranges", icon=":material/straighten:", key="quantile_ranges"):
        x = ranges.range_control("Bound, rows per user", f"quantile_x_{version}", *bound_limits)
        y = ranges.range_control("Rank error, share of rows", f"quantile_y_{version}", *error_limits)
        st.caption("The axes stay put while you move ε, so that curves can be compared.")
    with chart:
        figures.show(
            quantile_charts.error_figure(view, (x, y)),
            "quantile_error",
            quantile_charts.error_alt(view),
            quantile_charts.error_columns(view),
            data.provenance,
            below=below,
        )
    window = show_output(view, version)
    tabs = {
        "Base distribution": lambda: quantile_tabs.base(view, data),
        "The paper's bound": lambda: quantile_tabs.paper(view, data, x),
        "Sampled answers": lambda: quantile_tabs.samples(view, data, window),
        "Downloads": lambda: quantile_tabs.files(view, data),
        "How this is computed": lambda: st.markdown(FORMULA),
    }
    lazy_tabs.draw(tabs, QUESTION.key("tabs"))


def show_output(view: quantile_view.QuantileView, version: str) -> tuple[float, float]:
    """Where the answer falls, in value and in rank; returns the values shown."""
    st.subheader("Where the answer falls")
    density, near = st.columns(2)
    first, widest = quantile_view.window(view)
    chart = density.container()
    below = density.container(horizontal=True, vertical_alignment="center")
    with below.popover("Values shown", icon=":material/straighten:", key="quantile_window"):
        low, high = st.slider(
            "From and to, unit of the values",
            *widest,
            value=first,
            step=(widest[1] - widest[0]) / 1000.0,
            format="%.4g",
            key=f"quantile_window_{version}_{widest}",
        )
    shown = (low, high) if low < high else first
    inside = [float(one.cdf(shown[1]) - one.cdf(shown[0])) for one in view.outputs]
    with chart:
        figures.show(
            quantile_charts.density_figure(view, shown),
            "quantile_density",
            card.density_alt(view),
            quantile_charts.density_columns(view, shown),
            data.provenance,
            below=below,
        )
        if min(inside) < card.MOST:
            st.caption(card.outside_sentence(1.0 - min(inside)))
    with near:
        figures.show(
            quantile_charts.near_figure(view),
            "quantile_near",
            card.near_alt(view),
            quantile_charts.near_columns(view),
            data.provenance,
        )
    return shown


if data.values is None:
    show_missing()
else:
    chosen = quantile_inputs.read(data)
    if chosen is not None:
        st.session_state[keys.PAGE_PARAMETERS] = chosen
        found = search(chosen)
        if found is not None:
            show(found)
