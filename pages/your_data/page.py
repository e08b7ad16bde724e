"""Data: bring a contribution distribution and see it."""

import pandas as pd
import streamlit as st

from dpcore.answer import axes
from dpcore.common.wording import escape_text, format_number, format_percent
from dpcore.dataset import Contribution, Dataset
from dpcore.report import content
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.figures import figures
from pages.shared.screen import layout, sections
from pages.shared.session import session
from pages.your_data import contents, file_upload
from pages.your_data.question import QUESTION

DRAW_BY_SOURCE = {
    "Sample": contents.show_samples,
    "Upload a file": file_upload.show_upload_panel,
    "Generate": contents.show_generators,
    "Session": contents.show_session_upload,
}
"""The drawing that stands beside what the data can answer."""


NAME_BY_CONTRIBUTION = dict(zip(Contribution, ("Rows", "Distinct tasks", "Total"), strict=True))


def draw_body(slots: layout.PageSlots) -> None:
    """Draw the choice of data, the main figure, and where the data lead; while a file waits, only the choice."""
    with slots.line:
        st.session_state.setdefault(QUESTION.get_key("data_source"), "Sample")
        if session.BRING_FIELD in st.query_params:
            del st.query_params[session.BRING_FIELD]
            st.session_state[QUESTION.get_key("data_source")] = "Upload a file"
        source_name = fields.draw_choice(
            "Where from",
            {source_title: source_title for source_title in DRAW_BY_SOURCE},
            QUESTION.get_key("data_source"),
        )
    with slots.line if source_name == "Sample" else slots.notes:
        DRAW_BY_SOURCE[source_name]()
    dataset = session.get_dataset()
    if source_name == "Upload a file" and file_upload.has_waiting_file():
        slots.notes.caption(f"In use until then: {escape_text(dataset.name)}.")
        return
    with slots.figure:
        figures.draw_plot(axes.plot_classes(dataset))
    with slots.answer:
        show_offers(dataset)
    with slots.bottom:
        show_details(dataset)


def show_offers(dataset: Dataset) -> None:
    """Show the data in use, and which pages answer from which column."""
    with st.container(key="in_use"):
        st.header(f"In use: {escape_text(dataset.name)}")
        st.markdown(axes.describe_sizes(dataset.histogram, dataset.unit_noun))
        cards.draw_label(dataset.provenance)
    with st.container(key="your_data_offers", gap="xsmall"):
        st.markdown("**Next: open a page that these data can answer**")
        for heading, offered_pages in contents.list_offers(dataset):
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.markdown(f"{escape_text(heading)} →", width="content")
                for offered_page in offered_pages:
                    st.page_link(offered_page.page_path, label=offered_page.title, icon=offered_page.icon)
    cards.draw_histogram_step(dataset)


def show_details(dataset: Dataset) -> None:
    """Show notes, further plots, the heaviest users, the source, and the histogram as a file."""
    for data_note in dataset.notes:
        st.info(escape_text(data_note, 400), icon=":material/info:")
    gini_text = f"Gini coefficient {dataset.histogram.summarise().gini:.2f}."
    st.markdown(f"{axes.describe_share(dataset.histogram)} {gini_text}", help=axes.GINI_SCALE_TEXT)
    plot_grid = st.grid(2, min_column_width=240)
    for build_plot in axes.PLOTTER_BY_DISTRIBUTION.values():
        with plot_grid.cell():
            plot = build_plot(dataset)
            st.markdown(f"**{plot.title}**")
            sections.show_plot(plot, keeps_y=True)
    show_heaviest(dataset)
    st.caption(escape_text(dataset.source, 400))
    cards.draw_file_button(
        "Histogram (CSV)", "histogram.csv", dataset.provenance, lambda: content.write_histogram(dataset)
    )


def show_heaviest(dataset: Dataset) -> None:
    """Show the ten heaviest users, or all if they are fewer, as a small table, folded up."""
    sizes = dataset.histogram.list_heaviest_sizes(10)
    row_shares = sizes / dataset.histogram.num_rows
    with st.expander("The heaviest users", icon=":material/leaderboard:"):
        holders_text = f"The {sizes.size} heaviest users hold" if sizes.size > 1 else "One user holds"
        st.markdown(f"{holders_text} {format_percent(float(row_shares.sum()))} of all contributions.")
        cells_by_column = {
            NAME_BY_CONTRIBUTION[dataset.contribution]: map(format_number, sizes.tolist()),
            "Share of all": map(format_percent, row_shares.tolist()),
        }
        st.table(pd.DataFrame(cells_by_column, index=pd.RangeIndex(1, sizes.size + 1, name="Rank")))


layout.show_page(QUESTION, draw_body, has_budget=False, runs_alone=False)
