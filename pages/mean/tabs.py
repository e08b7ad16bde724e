"""The tabs below the answer of the Mean page."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, VarianceSource
from dpcore.mean.user_effects import Clamped
from pages.mean import answer as mean_view
from pages.mean import card, methods, report
from pages.mean import figures as mean_figures
from pages.shared import cards, figures, missing, ranges, session, take_away


def show_weights(data: Dataset, view: mean_view.MeanView, limits: tuple[float, float]) -> None:
    """How much one row counts against its user's size."""
    with ranges.under_figure("mean_weight_range", "Axis range", "") as (chart, below):
        y = ranges.range_control(
            "Weight of one row", f"mean_w_{session.data_version()}", *mean_view.weight_limits(data.histogram)
        )
    figures.show_picture(mean_figures.weight_picture(view, data, limits, y), below, chart)


def show_hidden(
    data: Dataset, view: mean_view.MeanView, clamped: Clamped | None, limits: tuple[float, float]
) -> None:
    """What the assumption of independent rows hides."""
    if clamped is None:
        missing.say(data, "values, one per row", "Bring data with values")
        return
    st.markdown("\n".join(f"- {s}" for s in card.effects_sentences(view, clamped)))
    figures.show_picture(mean_figures.shift_picture(view, data, clamped, limits))
    cards.label(data.provenance)


def files_of(view: mean_view.MeanView) -> str:
    """What the two files hold, in words."""
    counts = "private too" if view.private_counts else "public"
    if view.private_counts:
        sums = (
            "Weights are not divided by their sum, which is private here: it comes out of the two noisy sums."
        )
    else:
        sums = "Over the file, users × size × row_weight adds up to 1."
    return (
        "**Weights** hold one line per number of rows a user can have: give each row of such a user the weight "
        f"`row_weight`, or keep `rows_kept_at_cap` of them at random. {sums} **Choice** holds the question and "
        f"the answer. Both are for contribution counts that are **{counts}**."
    )


def show_files(
    data: Dataset, view: mean_view.MeanView, parameters: MeanParameters, clamped: Clamped | None
) -> None:
    """The whole answer; weights and choice as files."""
    source = take_away.source(
        rows=parameters.variance_source is VarianceSource.FROM_VALUES and clamped is not None
    )
    kind = data.provenance
    take_away.draw(
        "mean",
        kind,
        lambda: report.mean_report(view, data, parameters, clamped, source),
        methods.methods(view, data, parameters),
        f"{files_of(view)} Label in both: *{kind.label}*.",
        [("Weights (CSV)", "mean_weights.csv", lambda: mean_view.weights_file(view, kind))],
    )
    st.caption(f"{wording.counted(data.histogram.sizes.size, 'line')} of weights.")
