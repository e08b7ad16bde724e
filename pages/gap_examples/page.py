"""How much can weights gain? The person's data, the paper's example and bound, the sharp bound, and ways to check."""

import streamlit as st

from dpcore.mean.answer.found import axis_limits
from pages.gap_examples import cached, card, checks, figures, inputs, proof
from pages.gap_examples.answer import GapView
from pages.gap_examples.question import QUESTION
from pages.mean.question import QUESTION as MEAN
from pages.shared import answer_tabs, keys, layout, ranges, session
from pages.shared.figures import show_picture

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and draw the answer on the person's data; examples and checks stand in tabs."""
    parameters = inputs.read(places)
    if parameters is None:
        return
    asked = parameters.mean_parameters()
    view = cached.gap_answer(data.digest, asked, data)
    with places.figure:  # First: its message goes ahead of all others.
        show_data(view)
    of = {
        "Paper's example": lambda: proof.show_theorem_2(parameters),
        "Two groups": lambda: proof.show_two_groups(parameters),
        "Any noise": lambda: proof.show_any_noise(parameters),
        "Your instance": lambda: checks.show_own_instance(parameters),
        "Search": lambda: checks.show_search(parameters),
        "Regression": lambda: checks.show_regression(parameters),
        "Simulation": lambda: checks.show_simulation(parameters, data),
    }
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view, data, asked, ends()),
        of,
        lambda: proof.show_files(view, data, parameters),
        key="gap_card",
        behind=lambda answer: proof.show_behind(view, data, answer),
    )
    # As the table was last edited, which is known only once its editor is drawn.
    st.session_state[keys.PAGE_PARAMETERS] = inputs.with_table(parameters)


def ends() -> tuple[float, float] | None:
    """L and U as they stand on *Mean*; None where nobody has entered them."""
    lower, upper = (st.session_state.get(MEAN.key(name)) for name in ("lower", "upper"))
    return None if lower is None or upper is None else (lower, upper)


def show_data(view: GapView) -> None:
    """The main figure."""
    with ranges.under_figure("gap_ranges") as (chart, below):
        bounds, _ = axis_limits(data.histogram, 1.0)
        x = ranges.range_control("Bound, rows per user", f"gap_x_{session.data_version()}", *bounds)
        y = ranges.range_control("Variance (1 = best weights)", "gap_y", *figures.RATIO_RANGE)
    show_picture(figures.data_picture(view, (x, y), data.provenance), below, chart)


layout.show(QUESTION, body)
