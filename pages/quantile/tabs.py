"""The tabs below the answer of the Quantile page."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.quantile import files as export_quantile
from dpcore.quantile import optimal_bound, several
from pages.quantile import answer, card, methods, report
from pages.quantile import figures as quantile_charts
from pages.quantile.answer import Poorer, QuantileView
from pages.quantile.question import QUESTION
from pages.shared import cards, fields, figures, jobs, ranges, take_away

PROGRESS_HEIGHT = 44
"""In pixels: kept free for a line of progress, so that nothing moves when it comes and goes."""
NO_WAITING = 0.0
MAX_DRAWS = 100_000
DEFAULT_DRAWS = 2000


@dataclass(frozen=True)
class Shown:
    """What the page shows.

    Attributes:
        view: The answer.
        data: What it is about.
        demonstration: Whether these are invented data that stand in for data without values.
        first: Whether it is a first answer, which the exact one will replace.
        version: Changes with the data and what is asked, so that a choice of axes starts afresh.
    """

    view: QuantileView
    data: Dataset
    demonstration: bool
    first: bool
    version: str

    @property
    def about(self) -> quantile_charts.About:
        """What the figures are about."""
        return quantile_charts.About(self.data.provenance, self.demonstration)


def where(shown: Shown) -> None:
    """Where the answer falls, in value and in rank."""
    density, near = st.columns(2)
    with density:
        window, chart, below = _values_shown(shown, "where")
        figures.show_picture(
            quantile_charts.density_picture(shown.view, window, shown.about), below=below, place=chart
        )
        outside = 1.0 - min(float(one.cdf(window[1]) - one.cdf(window[0])) for one in shown.view.outputs)
        if outside > 1.0 - card.MOST:
            chart.caption(card.outside_sentence(outside))
    with near:
        figures.show_picture(quantile_charts.near_picture(shown.view, shown.about))


def _values_shown(shown: Shown, tab: str) -> tuple[tuple[float, float], DeltaGenerator, DeltaGenerator]:
    """From where to where the axis of values goes, with the places of the figure and of what stands below it."""
    first, widest = answer.window(shown.view)
    with ranges.under_figure(f"quantile_values_{tab}", "Values shown", "") as (chart, below):
        low, high = st.slider(
            "From and to, unit of the values",
            *widest,
            value=first,
            step=(widest[1] - widest[0]) / 1000.0,
            format="%.4g",
            key=f"quantile_window_{tab}_{shown.version}_{widest}",
        )
    return (low, high) if low < high else first, chart, below


def base(shown: Shown) -> None:
    """How a poor base distribution hurts."""
    view, data = shown.view, shown.data
    st.markdown(
        "The answer is drawn from ν, with more weight near the quantile. **The more of ν lies far from the quantile, "
        "the more budget it takes**; where ν has no mass near the quantile, no budget helps (assumption 1 of the "
        "paper)."
    )
    st.markdown(card.base_sentence(view))
    how = st.segmented_control(
        "Make ν poorer",
        list(Poorer),
        key=QUESTION.key("poorer"),
        default=Poorer.MOVED,
        format_func=lambda one: one.value,
        required=True,
        persist_state="session",
    )
    st.markdown(card.poorer_sentence(view, how))
    if shown.first:
        st.caption("The figure follows the exact answer.")
        return
    key, p, problem = QUESTION.key("poorer_job"), view.parameters, view.problem
    question = (data.digest, answer.search_question(p), view.kind, view.bound, how)
    job: jobs.Job | None = st.session_state.get(key)
    steps, bases = answer.poorer_bases(p, how)
    if job is None or job.question != question:
        jobs.start(
            key,
            question,
            lambda tell, stop: optimal_bound.base_errors(
                problem, bases, view.kind, view.bound, tell, stop, quantiles=p.asked
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
    figures.show_picture(quantile_charts.poorer_picture(view, how, steps, errors, shown.about))
    cards.label(data.provenance)


def paper(shown: Shown, limits: tuple[float, float]) -> None:
    """The paper's bound, from counts alone."""
    view = shown.view
    st.markdown(
        "This bound holds **without a look at the values**: with probability 1 − 2γ the weighted rank of the answer "
        "lies within it of q. It uses how many rows each user has (public here) and what you believe of ν: that it "
        "gives mass β to the values within α of the quantile. Its best h reveals nothing about the values."
    )
    for column, name in zip(st.columns([2, 2, 2, 4]), ("alpha", "beta", "gamma", "population"), strict=True):
        with column:
            fields.draw(QUESTION, name)
    st.markdown(card.paper_sentence(view))
    figures.show_picture(quantile_charts.paper_picture(view, limits, shown.about))
    cards.label(shown.data.provenance)


def samples(shown: Shown) -> None:
    """Simulated answers beside the exact distribution."""
    view, data, key = shown.view, shown.data, QUESTION.key("draws_job")
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
    question = (data.digest, view.parameters, view.bound, draws)
    with start:
        pressed = st.button(
            "Draw answers", key="quantile_draw", type=fields.main_button(), icon=":material/casino:"
        )
    if pressed:
        jobs.start(
            key,
            question,
            lambda tell, stop: (
                view,
                several.sample_answers(view.together, draws, progress=tell, should_stop=stop),
            ),
        )
    if jobs.watch(key, "Drawing answers"):
        return
    done = jobs.result_of(key)
    if done is None or done[0][0] != data.digest:
        st.caption("It has not run yet.")
        return
    asked, (of, sampled) = done
    if asked != question:
        st.caption(":material/history: These results are for earlier settings; draw again for the new ones.")
    count = sampled.answers.shape[0]
    if sampled.cancelled:
        st.caption(f"Stopped early: {wording.counted(count, 'answer')} drawn.")
    if count == 0:
        return
    window, chart, below = _values_shown(shown, "samples")
    figures.show_picture(
        quantile_charts.sample_picture(of, sampled, window, shown.about), below=below, place=chart
    )
    st.markdown("\n".join(f"- {line}" for line in sample_sentences(of, sampled)))
    cards.label(data.provenance)


def sample_sentences(view: QuantileView, sampled: several.SampledAnswers) -> tuple[str, ...]:
    """Mean and spread of the simulated answers beside the exact mean, per quantile."""
    found = []
    for k, one in enumerate(view.outputs):
        answers = sampled.answers[:, k]
        own = float(np.std(answers, ddof=1)) / math.sqrt(answers.size) if answers.size > 1 else math.nan
        order = (
            " The answers are put in order, which the exact mean does not count."
            if len(view.outputs) > 1
            else ""
        )
        found.append(
            f"{card.name_of(one.quantile)}: mean of {wording.counted(answers.size, 'simulated answer')} "
            f"{wording.number(float(answers.mean()), 4)} (standard error {wording.number(own, 2)}), exact mean "
            f"{wording.number(one.mean, 4)}.{order}"
        )
    return tuple(found)


def files(shown: Shown) -> None:
    """The whole answer; weights and choice as files."""
    view, data, kind = shown.view, shown.data, shown.data.provenance
    source, histogram = take_away.source_of(data), view.problem.histogram
    make = functools.partial(export_quantile.weights_csv, histogram, view.kind, view.bound, kind)
    take_away.draw(
        "quantile",
        kind,
        lambda: report.quantile_report(view, data, source, shown.demonstration),
        methods.methods(view, data),
        "**Weights** hold one line per number of rows a user can have: the weight of each row of such a user. "
        f"**Choice** holds the question and the answer. Label in both: *{kind.label}*.",
        [("Weights (CSV)", "quantile_weights.csv", make)],
    )
