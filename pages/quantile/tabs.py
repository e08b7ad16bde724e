"""The tabs below the answer of the Quantile page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.quantile import optimal_bound, several
from dpcore.quantile.answer import found as core
from dpcore.quantile.answer import plots as core_plots
from dpcore.quantile.answer import words
from dpcore.quantile.answer.found import Poorer
from pages.quantile import work
from pages.quantile.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots
from pages.shared.session import session

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PROGRESS_HEIGHT = 44
"""In pixels: kept free for a line of progress, so that nothing moves when it comes and goes."""
NO_WAITING = 0.0
MAX_DRAWS = 100_000
DEFAULT_DRAWS = 2000


@dataclass(frozen=True)
class Shown:
    """What the page shows.

    Attributes:
        answer: The answer.
        data: What it is about.
        label: What stands above its figures where these are invented data; empty elsewhere.
        first: Whether it is a first answer, which the exact one will replace.
    """

    answer: Answer
    data: Dataset
    label: str
    first: bool


def where(shown: Shown) -> None:
    """Where the answer falls, in value and in rank."""
    found = shown.answer.solution
    density, near = st.columns(2)
    with density:
        window, chart, below = _values_shown(shown, "where")
        density_plot = core_plots.plot_density(found, shown.data, window)
        plots.draw(density_plot, shown.label, button_place=below, figure_place=chart)
        outside = 1.0 - min(float(one.cdf(window[1]) - one.cdf(window[0])) for one in found.outputs)
        if outside > 1.0 - words.MOST:
            chart.caption(words.outside(outside))
    with near:
        plots.draw(shown.answer.plots["quantile-near"](), shown.label)


def _values_shown(shown: Shown, tab: str) -> tuple[tuple[float, float], DeltaGenerator, DeltaGenerator]:
    """From where to where the axis of values goes, with the places of the figure and of what stands below it."""
    first, widest = core.window(shown.answer.solution)
    version = f"{session.data_version()}_{shown.answer.parameters.quantiles}"
    with plots.place_controls(f"quantile_values_{tab}", "Values shown", "") as (chart, below):
        low, high = st.slider(
            "From and to, unit of the values",
            *widest,
            value=first,
            step=(widest[1] - widest[0]) / 1000.0,
            format="%.4g",
            key=f"quantile_window_{tab}_{version}_{widest}",
        )
    return (low, high) if low < high else first, chart, below


def base(shown: Shown) -> None:
    """How a poor base distribution hurts."""
    found, data = shown.answer.solution, shown.data
    st.markdown(
        "The answer is drawn from ν, with more weight near the quantile. **The more of ν lies far from the quantile, "
        "the more budget it takes**; where ν has no mass near the quantile, no budget helps (assumption 1 of the "
        "paper)."
    )
    st.markdown(words.base(found))
    how = st.segmented_control(
        "Make ν poorer",
        list(Poorer),
        key=QUESTION.key("poorer"),
        default=Poorer.MOVED,
        format_func=lambda one: one.value,
        required=True,
        persist_state="session",
    )
    st.markdown(words.poorer(found, how))
    if shown.first:
        st.caption("The figure follows the exact answer.")
        return
    key, p, problem = QUESTION.key("poorer_job"), found.parameters, found.problem
    question = (data.digest, work.search_question(p), found.kind, found.bound, how)
    job: jobs.Job | None = st.session_state.get(key)
    steps, bases = core.poorer_bases(p, how)
    if job is None or job.question != question:
        jobs.start(
            key,
            question,
            lambda tell, stop: optimal_bound.base_errors(
                problem, bases, found.kind, found.bound, tell, stop, quantiles=p.asked
            ),
            NO_WAITING,
        )
    with st.container(height=PROGRESS_HEIGHT, border=False):
        jobs.watch(key, "Trying poorer bases")
    done = jobs.result_of(key)
    if done is None:
        return
    errors = done[1]
    if np.isnan(errors).any():
        st.caption("Stopped early. The figure shows what had been computed.")
    plots.draw(core_plots.plot_poorer(found, how, steps, errors, data), shown.label)
    cards.label(data.provenance)


def paper(shown: Shown, limits: tuple[float, float]) -> None:
    """The paper's bound, from counts alone."""
    found = shown.answer.solution
    st.markdown(
        "This bound holds **without a look at the values**: with probability 1 − 2γ the weighted rank of the answer "
        "lies within it of q. It uses how many rows each user has "
        f"({'private, as a user is protected' if found.parameters.protects_users else 'public here'}) "
        "and what you believe of ν: that it "
        "gives mass β to the values within α of the quantile. The best bound by it reveals nothing about the values."
    )
    for column, name in zip(st.columns([2, 2, 2, 4]), ("alpha", "beta", "gamma", "population"), strict=True):
        with column:
            fields.draw(QUESTION, name)
    st.markdown(words.paper(found))
    plots.draw(shown.answer.plots["quantile-paper"]().with_limits(x=limits), shown.label)
    cards.label(shown.data.provenance)


def samples(shown: Shown) -> None:
    """Simulated answers beside the exact distribution."""
    found, data, key = shown.answer.solution, shown.data, QUESTION.key("draws_job")
    st.markdown(
        "**Simulation**: the mechanism is run again and again. Points should lie on the exact probabilities. The noise "
        "comes from NumPy, so this is not a release."
    )
    st.session_state.setdefault(QUESTION.key("draws"), DEFAULT_DRAWS)
    place, start = st.columns([2, 3], vertical_alignment="bottom")
    with place:
        draws = fields.whole_number(
            "Answers to draw",
            QUESTION.key("draws"),
            10,
            MAX_DRAWS,
            100,
            f"From 10 to {MAX_DRAWS:,}. Each takes a pass over all distinct values.",
        )
    if draws is None:
        return
    question = (data.digest, found.parameters, found.bound, draws)
    with start:
        pressed = st.button(
            "Draw answers", key="quantile_draw", type=fields.main_button(), icon=":material/casino:"
        )
    if pressed:
        jobs.start(
            key,
            question,
            lambda tell, stop: (
                found,
                several.sample_answers(found.together, draws, progress=tell, should_stop=stop),
            ),
        )
    done = jobs.outcome(
        key, "Drawing answers", question, "It has not run yet.", fits=lambda asked: asked[0] == data.digest
    )
    if done is None:
        return
    of, sampled = done[1]
    count = sampled.answers.shape[0]
    if sampled.cancelled:
        st.caption(f"Stopped early: {wording.counted(count, 'answer')} drawn.")
    if count == 0:
        return
    window, chart, below = _values_shown(shown, "samples")
    samples = core_plots.plot_samples(of, sampled, window, data)
    plots.draw(samples, shown.label, button_place=below, figure_place=chart)
    st.markdown("\n".join(f"- {line}" for line in words.samples(of, sampled)))
    cards.label(data.provenance)


def files(shown: Shown) -> None:
    """The whole answer; weights and choice as files."""
    answer, kind, source = shown.answer, shown.answer.disclosure, take_away.source_of(shown.data)
    take_away.draw(
        "quantile",
        kind,
        lambda: report_content.of_answer(QUESTION, answer, source, label=shown.label),
        answer.methods,
        "**Weights** hold one line per number of rows a user can have: the weight of each row of such a user. "
        f"**Choice** holds the question and the answer. Label in both: *{kind.label}*.",
        [("Weights (CSV)", name, make) for name, make in answer.files.items()],
    )
