"""The answer of the page Many tasks: the card, and the figures that move with the exponent."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.common import wording
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from pages.multitask import (
    cached,
    code,
    optimum,
)
from pages.multitask import (
    card as multitask_words,
)
from pages.multitask import (
    figures as multitask_charts,
)
from pages.multitask import (
    inputs as multitask_inputs,
)
from pages.multitask.answer import MultitaskView
from pages.multitask.question import QUESTION
from pages.shared import cards, fields, figures, ranges, session


def show(view: MultitaskView, parameters: MultitaskParameters) -> None:
    """Card on the left; mu and its figures on the right."""
    optima = optimum.known_optima(view)
    left, right = st.columns([5, 6])
    below = st.container()
    with left:
        card = multitask_words.card(view, cached.budget(parameters.target), optima)
        data = session.dataset() if parameters.source is TaskSource.DATA else None
        written = code.of_tasks(view, parameters.epsilon, parameters.delta, data)
        cards.show(replace(card, code=written), "tasks_card", below)
    with right:
        multitask_inputs.exponent_slider()
        _show_pictures(view)
        fields.draw(QUESTION, "max_tasks")


def _show_pictures(view: MultitaskView) -> None:
    """Error bounds from tail to head, and weight against size, on axes that do not move with the exponent."""
    sampling = multitask_charts.uniform_sampling(view)
    above = st.container()
    below = st.container(horizontal=True, vertical_alignment="center")
    version = multitask_inputs.axis_version(view)
    with below.popover("Axis ranges", icon=":material/straighten:", key="tasks_ranges"):
        errors = ranges.range_control(
            "Error bound (1 = uniform weights)",
            f"tasks_errors_{version}",
            *multitask_charts.bucket_limits(view.curve, [sampling]),
        )
        weights = ranges.range_control(
            "Weight ω (1 = √β)", f"tasks_weights_{version}", *multitask_charts.weight_limits(view.curve)
        )
        st.caption("The axes stay put while you move μ, so that figures can be compared.")
    with above:
        figures.show(
            multitask_charts.bucket_figure(
                f"μ = {wording.entered(view.rule.exponent)}", view.buckets, [sampling], errors
            ),
            "many_tasks_buckets",
            multitask_charts.bucket_alt(view),
            multitask_charts.bucket_columns(view.buckets, [sampling]),
            view.tasks.sensitivity,
            below=below,
        )
    figures.show(
        multitask_charts.weight_figure(view, weights),
        "many_tasks_weights",
        multitask_charts.WEIGHT_ALT,
        multitask_charts.weight_columns(view),
        view.tasks.sensitivity,
    )
