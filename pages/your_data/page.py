"""Your data: bring a contribution distribution and see it."""

import streamlit as st

from dpcore.report import csv_files
from pages.shared import cards, distribution_charts, figures, file_button, keys, ranges, session
from pages.shared.text import plain
from pages.your_data import generator_inputs, heaviest, sample_inputs, upload_inputs

SOURCES = {
    "Sample": sample_inputs.panel,
    "Upload a file": upload_inputs.panel,
    "Generate": generator_inputs.panel,
}

st.title("Your data")
st.markdown(
    "All that most questions need is **how many users have how many rows**. Take a sample, bring a file, or "
    "generate a distribution; it stays with you from page to page, on this computer."
)
with st.container(border=True, key="bring"):
    st.session_state.setdefault(keys.DATA_SOURCE, "Sample")
    source = st.segmented_control(
        "Where from", list(SOURCES), key=keys.DATA_SOURCE, required=True, persist_state="session"
    )
    assert source is not None  # `required`
    SOURCES[source]()

data = session.dataset()
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    st.subheader(f"In use: {plain(data.name)}", width="content")
    st.page_link(
        session.page_file("Mean"), label="Find the best bound for a mean", icon=":material/arrow_forward:"
    )
st.markdown(distribution_charts.sentences(data.histogram))
st.caption(plain(data.source, 400))
for note in data.notes:
    st.info(plain(note, 400), icon=":material/info:")
cards.label(data.provenance)
grid = st.grid(3, min_column_width=240)
for name, drawing in distribution_charts.DRAWINGS.items():
    with grid.cell():
        st.markdown(f"**{drawing.heading}**")
        chart = st.container()
        below = st.container(horizontal=True, vertical_alignment="center")
        with below.popover("Axis range", icon=":material/straighten:", key=f"range_{name}"):
            limits = ranges.range_control(
                drawing.axis,
                f"distribution_x_{name}_{session.data_version()}",
                *drawing.limits(data.histogram),
                room=1.0,
                written=drawing.format,
            )
        figures.show(
            drawing.figure(data.histogram, limits),
            f"distribution_{name}",
            drawing.alt(data.histogram),
            drawing.columns(data.histogram),
            data.provenance,
            place=chart,
            below=below,
        )
heaviest.show(data)
with st.container(horizontal=True, vertical_alignment="center"):
    file_button.draw(
        "Histogram (CSV)",
        "histogram.csv",
        data.provenance,
        lambda: csv_files.histogram_csv(data),
    )
