"""Your data: bring a contribution distribution and see it."""

import streamlit as st

from dpcore.answer import distribution
from dpcore.common.wording import plain
from dpcore.dataset import Dataset
from dpcore.report import csv_files
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.screen import layout, plots
from pages.shared.session import session
from pages.your_data import generator_inputs, heaviest, offers, sample_inputs, session_inputs, upload_inputs
from pages.your_data.question import QUESTION

SOURCES = {
    "Sample": sample_inputs.panel,
    "Upload a file": upload_inputs.panel,
    "Generate": generator_inputs.panel,
    "Session": session_inputs.panel,
}
"""The drawing that stands beside what the data can answer."""


def body(places: layout.Places) -> None:
    """Where the data come from; then what they are, and where they lead."""
    with places.line:
        st.session_state.setdefault(QUESTION.key("data_source"), "Sample")
        source = fields.choice("Where from", {name: name for name in SOURCES}, QUESTION.key("data_source"))
    with places.line if source == "Sample" else places.notes:
        SOURCES[source]()
    data = session.dataset()
    if source == "Upload a file" and upload_inputs.waits():
        places.notes.caption(f"In use until then: {plain(data.name)}.")
        return
    with places.figure:
        main = distribution.plot_classes(data)
        st.markdown(f"**{main.title}**")
        plots.draw(main)
    with places.answer:
        show_offers(data)
    with places.below:
        show_details(data)


def show_offers(data: Dataset) -> None:
    """What is in use, and which pages answer from which column."""
    with st.container(key="in_use"):
        st.header(f"In use: {plain(data.name)}")
        st.markdown(distribution.describe_sizes(data.histogram))
        cards.label(data.provenance)
    with st.container(key="your_data_offers", gap="xsmall"):
        st.markdown("**What these data can answer**")
        for offer in offers.of_data(data):
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.markdown(f"{plain(offer.column)} →", width="content")
                for page in offer.pages:
                    st.page_link(page.path, label=page.title, icon=page.icon)


def show_drawing(data: Dataset, name: str) -> None:
    """One picture of the distribution."""
    plot = distribution.DISTRIBUTIONS[name](data)
    st.markdown(f"**{plot.title}**")
    plots.show(plot, x_only=True)


def show_details(data: Dataset) -> None:
    """What stands beside the data, where they come from, other pictures, heaviest users, the histogram as a file."""
    for note in data.notes:
        st.info(plain(note, 400), icon=":material/info:")
    st.markdown(
        f"{distribution.describe_share(data.histogram)} "
        f"Gini coefficient {data.histogram.summary().gini:.2f} {distribution.GINI_SCALE}."
    )
    grid = st.grid(2, min_column_width=240)
    for name in distribution.DISTRIBUTIONS:
        with grid.cell():
            show_drawing(data, name)
    heaviest.show(data)
    st.caption(plain(data.source, 400))
    cards.file_button(
        "Histogram (CSV)", "histogram.csv", data.provenance, lambda: csv_files.write_histogram(data)
    )


layout.show(QUESTION, body, budget=False, by_itself=False)
