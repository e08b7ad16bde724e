"""Curves that take many solutions, each beside the page: against epsilon, the paper's figures 1 and 2, examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.answer import Axis
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.regression import study
from dpcore.regression.answer import RegressionSolution
from dpcore.regression.answer.plots import Varied, plot_example, plot_sweep
from dpcore.regression.answer.solution import FIT, ErrorOf
from dpcore.regression.parameters import RegressionGenerator, RegressionParameters
from dpcore.regression.study import FIGURES, OVER_EXPONENTS, OVER_ROWS
from pages.regression.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields, jobs
from pages.shared.screen import paper, plots

AT_ONCE = 100_000
"""Entries of X up to which a curve against epsilon starts by itself."""
REPEATS = 3


def _result(key: str, question: Any, work: jobs.Work, doing: str, button: str) -> Any | None:
    """Return the result for this question: a button starts the work (with no ``button``, it starts by
    itself).
    """
    job: jobs.Job | None = st.session_state.get(key)
    asked = job is not None and job.question == question
    if not asked and not button:
        jobs.start(key, question, work)
        asked = True
    done = jobs.result_of(key)
    stopped = done is not None and done[1].stop_reason.startswith("Stopped")
    if (button and not asked) or (asked and stopped):
        st.button(
            "Start again" if asked else button,
            key=f"{key}_start",
            on_click=_start,
            args=(key, question, work),
            type=fields.main_button() if job is None else "secondary",
            icon=":material/play_arrow:",
        )
    done = jobs.outcome(key, doing, question)
    return None if done is None else done[1]


def _start(key: str, question: Any, work: jobs.Work) -> None:
    jobs.start(key, question, work)


def show_over_epsilon(found: RegressionSolution, of: ErrorOf) -> None:
    """Error against epsilon, on the data of the page."""
    data, problem, parameters = found.data, found.problem, found.parameters
    st.markdown(
        "**Look at** the distance between the orange line and the blue one: so much do the best weights gain over the "
        "best bound at each ε. The dotted line is your ε."
    )
    if not found.draws.num_draws:
        st.info("This needs the trial of bounds, which was stopped.", icon=":material/info:")
        return
    question = (data.digest, parameters.lower, parameters.upper, problem.residual_variance)
    labels, draws = found.labels, found.draws
    sweep: study.Sweep | None = _result(
        QUESTION.key("over_epsilon"),
        question,
        lambda p, s: study.over_epsilon(problem, draws, labels, progress=p, should_stop=s),
        "Solving at 12 values of ε",
        "" if problem.features.size <= AT_ONCE else "Solve at 12 values of ε",
    )
    if sweep is None:
        return
    varied = Varied(
        "epsilon",
        "epsilon",
        "regression-epsilon",
        "Error against ε",
        Axis("privacy budget ε", "", (min(study.EPSILONS), max(study.EPSILONS))),
        found.unit,
        data.provenance,
        parameters.epsilon,
    )
    _show_sweep(sweep, varied, of)
    if of is ErrorOf.PREDICTIONS:
        st.caption(FIT)
    cards.label(data.provenance)


def show_paper_figures(parameters: RegressionParameters, of: ErrorOf) -> None:
    """The paper's figures as they came with the app; below, figures 1 and 2 with the person's settings."""
    generator = parameters.generator
    paper.show(FIGURES, QUESTION.key("paper_figure"))
    st.divider()
    st.markdown(
        f"**With your settings**: figures 1 and 2 on generated data "
        f"({wording.counted(generator.num_features, 'feature')}, label noise "
        f"{wording.entered(generator.label_noise)}; the mean over {REPEATS} data sets), at "
        f"ε = {wording.entered(parameters.epsilon)}. σ² is the generator's, B the range "
        "of its labels. The paper shows squared prediction errors at ε = 1; its squares are in the figures' data."
    )

    def over(made: Sequence[RegressionGenerator], values: Sequence[float]) -> jobs.Work:
        return lambda p, s: study.over_generated(
            made, values, parameters.epsilon, REPEATS, progress=p, should_stop=s
        )

    left, right = st.columns(2)
    with left:
        st.markdown(
            f"**Against the number of rows** (α = {wording.entered(generator.exponent)}; the paper: 1.5)"
        )
        _show_generated(
            QUESTION.key("over_rows"),
            ("rows", replace(generator, num_rows=600), parameters.epsilon),
            over([replace(generator, num_rows=n) for n in study.ROWS], study.ROWS),
            Varied(
                "rows", "the number of rows", "regression-rows", "Figure 1", OVER_ROWS, "y", Disclosure.PUBLIC
            ),
            len(study.ROWS),
            of,
        )
    with right:
        st.markdown(f"**Against inequality** (n = {generator.num_rows:,}; the paper: 3,000)")
        _show_generated(
            QUESTION.key("over_exponent"),
            ("exponent", replace(generator, exponent=2.0), parameters.epsilon),
            over([replace(generator, exponent=a) for a in study.EXPONENTS], study.EXPONENTS),
            Varied(
                "exponent",
                "the exponent",
                "regression-exponent",
                "Figure 2",
                OVER_EXPONENTS,
                "y",
                Disclosure.PUBLIC,
            ),
            len(study.EXPONENTS),
            of,
        )
    cards.label(Disclosure.PUBLIC)


def _show_generated(
    key: str, question: Any, work: jobs.Work, varied: Varied, points: int, of: ErrorOf
) -> None:
    sweep = _result(key, question, work, f"Solving {points * REPEATS} problems", f"Solve at {points} values")
    if sweep is not None:
        _show_sweep(sweep, varied, of)


def _show_sweep(sweep: study.Sweep, varied: Varied, of: ErrorOf) -> None:
    if not sweep.values.size:
        st.info(sweep.stop_reason, icon=":material/info:")
        return
    plots.draw(plot_sweep(sweep, varied, of))
    st.caption(
        f"{sweep.stop_reason} Every point of the best weights is proved best to within a relative gap of "
        f"{sweep.worst_gap:.0e}."
    )


EXAMPLE_NAMES = {1: "Example 1", 3: "Example 3"}
EXAMPLE_TEXTS = {
    1: (
        "**Example 1**: no noise in the labels, two directions at right angles. In the first, one user holds one long "
        "row and g² users hold g short ones; in the second, one user holds g rows and g² users hold one each. A bound "
        "must be large for the one and small for the other; weights need not choose. The paper shows a C of variance "
        "1/g⁴; the optimum is exactly 1/(g² + 1)². (The paper's weight 1/g² per row does not satisfy CX = I; 1/g³ "
        "does, and its variance stands.)"
    ),
    3: (
        "**Example 3**: all rows have length 1, σ² = 1, and 2d(B/ε)² = g. One user holds g rows of the first "
        "direction; each of g others holds one of it and g − 1 of the second. The paper shows at most 6/g for weights, "
        "and for any bound at least g/9 in half of the draws. The curve shows the optimum itself."
    ),
}


def show_examples() -> None:
    """The two examples of an unbounded gap, with the true optimum."""
    st.session_state.setdefault(QUESTION.key("example"), 1)
    number: int = fields.choice("Example of the paper", EXAMPLE_NAMES, QUESTION.key("example"))
    st.markdown(EXAMPLE_TEXTS[number])
    sweep: study.ExampleSweep | None = _result(
        f"{QUESTION.key('examples')}_{number}",
        number,
        lambda p, s: study.over_examples(number, progress=p, should_stop=s),
        f"Solving at {len(study.EXAMPLE_G[number])} sizes",
        "",
    )
    if sweep is None:
        return
    if not sweep.g.size:
        st.info(sweep.stop_reason, icon=":material/info:")
        return
    plots.draw(plot_example(sweep, number))
    last = -1
    st.markdown(
        f"At g = {sweep.g[last]}: optimum {wording.number(float(sweep.optimum[last]), 5)} (proved from below at "
        f"{wording.number(float(sweep.lower_bound[last]), 5)}), best bound "
        f"{wording.number(float(sweep.cap[last]), 5)} at {wording.counted(int(sweep.max_contributions[last]), 'row')} "
        f"per user: {wording.number(float(sweep.cap[last] / sweep.optimum[last]))} times as much. {sweep.stop_reason}"
    )
    cards.label(Disclosure.PUBLIC)
