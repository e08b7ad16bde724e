"""The tabs of Examples per user, each drawn only while it is open."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer
from pages.examples_per_user.question import QUESTION
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots


def show_noise(answer: Answer) -> None:
    """Noise on the mean gradient."""
    st.markdown(
        "Noise on a step's mean gradient is exact for the noise multiplier, in norms of one example's gradient. Where "
        "users are drawn it depends on r, as a mean of diverse gradients is short and may be clipped to that: the "
        "shaded band reaches from diverse (below) to alike (above)."
    )
    plots.show(answer.plots["examples-noise"]())


def show_kept(answer: Answer) -> None:
    """Share kept and rate, and the noise multipliers."""
    plots.draw_beside(answer.plots["examples-kept"](), answer.plots["examples-multiplier"]())
    st.caption(
        "The noise multipliers are those of Rényi accounting, 6 to 12 % more than is needed; for the chosen bound the "
        "card has the exact one."
    )


def show_files(answer: Answer) -> None:
    """The whole answer; choice and curves as files."""
    source = take_away.source()
    take_away.draw(
        "examples_per_user",
        answer.disclosure,
        lambda: report_content.of_answer(QUESTION, answer, source),
        answer.methods,
        "**Parts of it**",
        [("All bounds, both ways (CSV)", name, make) for name, make in answer.files.items()],
    )
