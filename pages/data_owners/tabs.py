"""The tabs below the answer of Data owners, each drawn only while it is open."""

from __future__ import annotations

import streamlit as st

from dpcore.dataset import Dataset
from pages.data_owners import answer, figures, methods, report, trained
from pages.data_owners.answer import OwnersView
from pages.shared import cards, missing, tables, take_away
from pages.shared import figures as shared_figures


def show_bounds(view: OwnersView) -> None:
    """Every setting's bound, at both levels, beside what is printed."""
    shared_figures.show_picture(figures.bound_picture(view))
    tables.show(
        answer.bound_rows(view),
        "Each setting's bound for one record and for the unit that is protected, beside the printed one",
        formats=dict.fromkeys(("One record", "The unit protected", "As printed"), "%.4g"),
    )
    st.caption(
        "*As printed* stands only where the print is corrected. Constants are those entered; a map of orders, no "
        "forecast."
    )
    cards.label(view.disclosure)


def show_unequal(view: OwnersView, data: Dataset) -> None:
    """What cap per owner, for the owners of the data."""
    st.markdown(
        "Owners have unequal numbers of records. Where **a whole owner** is protected, one with many records sets the "
        "noise for all: keep at most τ records of each."
    )
    if not view.of_data:
        st.info(
            "Set *Owners* under *More settings* to *Of the data in use*: then each user of those data is an owner. For "
            "a file, choose the column that names the owner as its user column.",
            icon=":material/info:",
        )
        missing.bring("Bring owners")
        return
    shared_figures.show_picture(figures.cap_picture(view, answer.cap_curve(data, view), data))
    if view.cap is None:
        st.caption(
            "The question protects less than a whole owner, so that no cap is needed: it takes all records. Choose *A "
            "whole owner* under *More settings* for the best cap."
        )
    cards.label(data.provenance)


def show_files(view: OwnersView, data: Dataset) -> None:
    """The whole answer, and the choice as a file."""
    source, found = take_away.source(), trained.finished()
    disclosure = view.disclosure if found is None or not found.is_private else found.disclosure
    holds = "**Choice** holds the question, every bound and every crossing. Label: "
    take_away.draw(
        "owners",
        disclosure,
        lambda: report.owners_report(view, data, source, found),
        methods.methods(view),
        f"{holds}*{view.disclosure.label}*.",
        of_parts=view.disclosure,
    )
    if found is None:
        st.caption("Nothing was trained, so that the report holds the bounds alone: see the tab *Accuracy*.")
    else:
        st.caption(
            f"The report holds the accuracies of the last training, too. Their label: *{found.disclosure.label}*."
        )
