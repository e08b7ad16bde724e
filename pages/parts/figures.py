"""Shows a figure: template, stable key, alt text with the takeaway, its data as CSV, and SVG by its own button."""

from __future__ import annotations

from collections.abc import Mapping

import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpcore import export
from dpcore.privacy import Provenance, ReleaseFacts, Sensitivity, rounded_up
from pages.parts import charts


def show(
    fig: go.Figure,
    key: str,
    alt: str,
    data: Mapping[str, npt.ArrayLike],
    sensitivity: Provenance,
    below: DeltaGenerator | None = None,
    place: DeltaGenerator | None = None,
) -> None:
    """Draw a figure with a button for its data below.

    Args:
        fig: From `pages.parts.charts` and its kin.
        key: Unique on the page; also the name of the downloaded files.
        alt: What the figure shows, its takeaway first, for a screen reader.
        data: Column name to values, what the figure draws.
        sensitivity: Of the data behind it; goes into the file.
        below: Where the button goes, for a figure with other controls below; by default right below.
        place: Where the figure goes; by default here.
    """
    if sensitivity is not Sensitivity.PUBLIC:
        charts.labelled(fig, sensitivity.label)
    (place or st).plotly_chart(
        fig,
        key=key,
        theme="streamlit",
        alt=alt,
        config={
            "displaylogo": False,
            "toImageButtonOptions": {"format": "svg", "filename": file_name(key, sensitivity)},
            "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        },
    )
    (below or st).download_button(
        "Figure data (CSV)",
        lambda: export.columns_csv(data, sensitivity),
        file_name=f"{file_name(key, sensitivity)}.csv",
        mime="text/csv",
        key=f"{key}_csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help=f"The numbers behind the figure: {sensitivity.label}. The camera above the figure saves it as SVG.",
    )


def file_name(stem: str, sensitivity: Provenance) -> str:
    """File name without its ending; it says where its numbers are private or a DP release, and of which epsilon."""
    name = stem.replace("_", "-")
    if isinstance(sensitivity, ReleaseFacts):
        return f"{name}-DP-release-epsilon-{rounded_up(sensitivity.epsilon)}"
    return f"{name}-PRIVATE-do-not-publish" if sensitivity is Sensitivity.PRIVATE else name
