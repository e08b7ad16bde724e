"""The tabs of the Quantile page: the base, the paper's bound, sampled answers, downloads."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.quantile import files as export_quantile
from dpcore.quantile import optimal_bound, several
from pages.quantile import answer, card, report
from pages.quantile import figures as quantile_charts
from pages.quantile.answer import Poorer, QuantileView
from pages.quantile.question import QUESTION
from pages.shared import cards, fields, figures, file_button, jobs, take_away

MAX_DRAWS = 100_000
DEFAULT_DRAWS = 2000


def base(view: QuantileView, data: Dataset) -> None:
    """How a poor base distribution hurts."""
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
    p, problem = view.parameters, view.problem
    question = (data.digest, answer.search_question(p), view.kind, view.bound, how)
    job: jobs.Job | None = st.session_state.get(QUESTION.key("poorer_job"))
    steps, bases = answer.poorer_bases(p, how)
    if job is None or job.question != question:
        jobs.start(
            QUESTION.key("poorer_job"),
            question,
            lambda tell, stop: optimal_bound.base_errors(
                problem, bases, view.kind, view.bound, tell, stop, quantiles=p.asked
            ),
        )
    if jobs.watch(QUESTION.key("poorer_job"), "Trying poorer bases"):
        return
    done = jobs.result_of(QUESTION.key("poorer_job"))
    if done is None:
        return
    errors = done[1]
    if np.isnan(errors).any():
        st.caption("Stopped early. The figure shows what had been computed.")
    name = "times_as_wide" if how is Poorer.WIDER else "moved_by_widths"
    figures.show(
        quantile_charts.poorer_figure(how, steps, errors),
        "quantile_poorer",
        f"The largest error of these bases is {wording.percent(float(np.nanmax(errors, initial=0.0)))}; for the base "
        f"as entered it is {wording.percent(view.rank_error)}.",
        {name: steps, "expected_rank_error": errors},
        data.provenance,
    )
    cards.label(data.provenance)


def paper(view: QuantileView, data: Dataset, limits: tuple[float, float]) -> None:
    """The paper's bound, from counts alone."""
    st.markdown(
        "This bound holds **without a look at the values**: with probability 1 − 2γ the weighted rank of the answer "
        "lies within it of q. It uses how many rows each user has (public here) and what you believe of ν: that it "
        "gives mass β to the values within α of the quantile. Its best h reveals nothing about the values."
    )
    columns = st.columns([2, 2, 2, 4])
    for place, name in zip(columns, ("alpha", "beta", "gamma"), strict=False):
        with place:
            fields.draw(QUESTION, name)
    with columns[3]:
        population = QUESTION.field("population")
        st.toggle(
            population.label, key=QUESTION.key("population"), persist_state="session", help=population.help
        )
    bound = view.parameters.rank_bound(view.problem.histogram)
    value = float(bound.value(view.kind, view.counts_bound))
    st.markdown(
        f"Trade-off: least **W² + A Σ c²** with A = {wording.number(bound.trade_off)}. Best h for "
        f"{card.KIND_NAMES[view.kind]}: **{wording.counted(view.counts_bound, 'row')}**, where the bound is "
        f"{wording.number(value)}"
        + (
            " (a bound above 1 says nothing about the error, but its best h can still be used)."
            if value > 1.0
            else "."
        )
        + f" On these values the expected error there is "
        f"{card.with_spread(view.counts_error, view.counts_standard_error)}."
    )
    figures.show(
        quantile_charts.paper_figure(view, limits),
        "quantile_paper",
        f"The paper's bound is least near {wording.counted(view.counts_bound, 'row')}.",
        quantile_charts.paper_columns(view),
        data.provenance,
    )
    cards.label(data.provenance)


def samples(view: QuantileView, data: Dataset, window: tuple[float, float]) -> None:
    """Simulated answers beside the exact distribution."""
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
            QUESTION.key("draws_job"),
            question,
            lambda tell, stop: (
                view,
                several.sample_answers(view.together, draws, progress=tell, should_stop=stop),
            ),
        )
    if jobs.watch(QUESTION.key("draws_job"), "Drawing answers"):
        return
    done = jobs.result_of(QUESTION.key("draws_job"))
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
    figures.show(
        quantile_charts.sample_figure(of, sampled, window),
        "quantile_samples",
        "Simulated answers beside their exact probabilities.",
        quantile_charts.sample_columns(of, sampled, window),
        data.provenance,
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


def files(view: QuantileView, data: Dataset) -> None:
    """The whole answer; weights and choice as files."""
    sensitivity = data.provenance
    source = take_away.source(rows=True)
    take_away.draw(
        "quantile",
        sensitivity,
        data.digest,
        lambda: report.quantile_report(view, data, source),
    )
    st.markdown(
        "**Weights** hold one line per number of rows a user can have: the weight of each row of such a user. "
        f"**Choice** holds the question and the answer. Label in both: *{sensitivity.label}*."
    )
    with st.container(horizontal=True):
        file_button.draw(
            "Weights (CSV)",
            "quantile_weights.csv",
            sensitivity,
            lambda: export_quantile.weights_csv(view.problem.histogram, view.kind, view.bound, sensitivity),
        )
        file_button.draw(
            "Choice (JSON)",
            "quantile_choice.json",
            sensitivity,
            lambda: export_quantile.choice_json(
                data, view.parameters, view.bound, (view.choices.smooth, view.choices.cap), view.outputs
            ),
        )
