"""Mean: the best cap and the best smooth weights for releasing a mean."""

import streamlit as st

from dpcore.common import wording
from dpcore.mean import MeanParameters, VarianceSource, files
from dpcore.mean.user_effects import Clamped
from pages.mean import answer as mean_view
from pages.mean import cached, card, report, simulations
from pages.mean import figures as mean_charts
from pages.mean import inputs as mean_inputs
from pages.mean.formula import FORMULA, FORMULA_PRIVATE
from pages.mean.question import QUESTION
from pages.shared import (
    axes,
    cards,
    figures,
    file_button,
    keys,
    lazy_tabs,
    missing,
    ranges,
    session,
    take_away,
)

data = session.dataset()
st.title("Mean")
st.markdown(
    "You release the mean of a value over all rows, with ε-differential privacy for every user. "
    "**How many rows may one user contribute?** A low bound throws rows away; a high one needs more noise."
)


def show(parameters: MeanParameters) -> None:
    """Everything below the inputs."""
    clamped = cached.clamped_values(data.digest, parameters.lower, parameters.upper, data)
    view = cached.mean_answer(data.digest, parameters, clamped, data)
    version = session.data_version()
    offered = mean_view.offered_errors(data.histogram, parameters.value_bound)
    bound_limits, error_limits = mean_view.axis_limits(data.histogram, parameters.value_bound)
    answer, picture = st.columns([5, 6])
    code = st.container()
    with answer:
        cards.show(card.card(view, data, parameters, clamped), key="mean_card", below=code)
    chart = picture.container()
    below = picture.container(horizontal=True, vertical_alignment="center")
    with below.popover("Axis ranges", icon=":material/straighten:", key="mean_ranges"):
        x = ranges.range_control("Bound, rows per user", f"mean_x_{version}", *bound_limits)
        y_key = f"mean_y_{version}_{parameters.value_bound:g}"
        y = ranges.range_control("Standard error, unit of the values", y_key, *error_limits, reach=offered)
        st.caption("The axes stay put while you move ε, so that curves can be compared.")
    figures.show(
        mean_charts.error_figure(view, (x, y), parameters.own_cap),
        "mean_error",
        mean_charts.error_alt(view),
        mean_view.labelled(mean_charts.error_columns(view), view),
        data.provenance,
        place=chart,
        below=below,
    )
    if outside := mean_view.outside(view, (x, y), parameters.own_cap):
        chart.caption(f"Outside the axes: {' and '.join(outside)}. *Axis ranges* widens them.")
    tabs = {
        "Weight of a row": lambda: show_weights(view, x),
        "What independence hides": lambda: show_hidden(view, clamped, x),
        "Downloads": lambda: show_files(view, parameters, clamped),
        "How this is computed": lambda: st.markdown(FORMULA_PRIVATE if view.private_counts else FORMULA),
    }
    if view.private_counts:
        tabs["Simulation"] = lambda: simulations.show(view, parameters.lower, parameters.upper, data, x, y)
    lazy_tabs.draw(tabs, QUESTION.key("tabs"))


def show_weights(view: mean_view.MeanView, limits: tuple[float, float]) -> None:
    """How much one row counts against its user's size."""
    sizes = axes.curve_bounds(data.histogram)
    chart = st.container()
    below = st.container(horizontal=True, vertical_alignment="center")
    with below.popover("Axis range", icon=":material/straighten:", key="mean_weight_range"):
        y = ranges.range_control(
            "Weight of one row", f"mean_w_{session.data_version()}", *mean_view.weight_limits(data.histogram)
        )
    figures.show(
        mean_charts.weight_figure(view, sizes, limits, y),
        "mean_weights",
        mean_charts.WEIGHT_ALT,
        mean_view.labelled(mean_charts.weight_columns(view, sizes), view),
        data.provenance,
        place=chart,
        below=below,
    )


def show_hidden(view: mean_view.MeanView, clamped: Clamped | None, limits: tuple[float, float]) -> None:
    """What the assumption of independent rows hides."""
    if clamped is None:
        missing.say(data, "values, one per row", "Bring data with values")
        return
    st.markdown("\n".join(f"- {s}" for s in card.effects_sentences(view, clamped)))
    figures.show(
        mean_charts.shift_figure(view, clamped, limits),
        "mean_shift",
        mean_charts.SHIFT_ALT,
        mean_view.labelled(mean_charts.shift_columns(view, clamped), view),
        data.provenance,
    )
    cards.label(data.provenance)


def show_files(view: mean_view.MeanView, parameters: MeanParameters, clamped: Clamped | None) -> None:
    """The whole answer; weights and choice as files."""
    source = take_away.source(
        rows=parameters.variance_source is VarianceSource.FROM_VALUES and clamped is not None
    )
    take_away.draw(
        "mean",
        data.provenance,
        data.digest,
        lambda: report.mean_report(view, data, parameters, clamped, source),
    )
    sensitivity, private_counts = data.provenance, view.private_counts
    sums = (
        "Weights are not divided by the sum of weights, which is private here: it comes out of the two noisy sums."
        if private_counts
        else "Over the file, users × size × row_weight adds up to 1."
    )
    setting = "private too" if private_counts else "public"
    st.markdown(
        "**Weights** hold one line per number of rows a user can have: give each row of such a user the weight "
        f"`row_weight`, or keep `rows_kept_at_cap` of them at random. {sums} **Choice** holds the question and "
        f"the answer. Both are for contribution counts that are **{setting}**. Label in both: "
        f"*{sensitivity.label}*."
    )
    with st.container(horizontal=True):
        file_button.draw(
            "Weights (CSV)",
            "mean_weights.csv",
            sensitivity,
            lambda: mean_view.weights_file(view, sensitivity),
        )
        file_button.draw(
            "Choice (JSON)",
            "mean_choice.json",
            sensitivity,
            lambda: files.mean_choice_json(data, parameters, view.problem, view.cap, view.smooth),
        )
    st.caption(f"{wording.counted(data.histogram.sizes.size, 'line')} of weights.")


chosen = mean_inputs.read(data)
if chosen is not None:
    st.session_state[keys.PAGE_PARAMETERS] = chosen
    show(chosen)
