"""What stands on the page Regression below its answer: tabs, studies, and a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpcore.answer.answer import Answer
from dpcore.answer.plot import Axis
from dpcore.answer.stage import Stage
from dpcore.common import wording
from dpcore.common.privacy import Charge, Disclosure, Ledger, format_rounded_up
from dpcore.data.column_names import escape_formula
from dpcore.regression import draw as regression_draw
from dpcore.regression import study, working_set
from dpcore.regression.answer.plots import (
    Varied,
    list_weights,
    plot_directions,
    plot_example,
    plot_gap,
    plot_sweep,
)
from dpcore.regression.answer.solution import FIT, ErrorOf, RegressionSolution, table_of
from dpcore.regression.draw import Draw, draw_coefficients, interval_half_widths
from dpcore.regression.estimate import coefficient_variances
from dpcore.regression.parameters import DataSource, RegressionGenerator, RegressionParameters
from dpcore.regression.study import FIGURES, OVER_EXPONENTS, OVER_ROWS
from dpcore.report.content import Line, Report
from dpcore.report.script import Code, Source, write_table_cell
from pages.regression import work
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.regression.upload import RegressionData
from pages.shared.base import tables
from pages.shared.card import cards
from pages.shared.card import releases as card_releases
from pages.shared.card.releases import Releases, lost_sentence, released_lines, spent_lines
from pages.shared.fields import fields, jobs
from pages.shared.report import report_content
from pages.shared.screen import plots

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
    plots.show_paper_figure(FIGURES, QUESTION.key("paper_figure"))
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


def show(loaded: RegressionData, found: RegressionSolution) -> None:
    """What a draw would be, the button, and the latest draw with its label."""
    of = releases(loaded)
    made = of.made
    epsilon = format_rounded_up(found.problem.epsilon)
    st.markdown(
        f"A draw adds fresh Laplace noise of scale **{wording.number(found.best_estimate.noise.scale)}** to each "
        f"coefficient, by OpenDP, and spends **ε = {epsilon}**. The page keeps it and draws again only when you ask; "
        "every further draw of the same labels spends more."
    )
    if found.variance_is_private:
        st.warning(
            "σ² was read from private labels, and C depends on it: ε would not cover that. Enter a σ² that you may "
            "publish under *More settings*, then draw.",
            icon=":material/lock:",
        )
    again = f"Draw once more: spends another ε = {epsilon}"
    st.button(
        again if made else f"Draw the coefficients: spends ε = {epsilon}",
        key="regression_draw",
        on_click=_draw,
        args=(loaded, found),
        type="secondary" if made else fields.main_button(),
        icon=":material/casino:",
        disabled=found.variance_is_private or found.stage is not Stage.FINAL,
        help=None if found.stage is Stage.FINAL else "It waits for the end of the search.",
    )
    of.say_refused()
    of.show_account(
        made[-1].coefficients.facts if made else None,
        bool(made) and made[-1].question != found.problem.digest,
    )
    _show_table(loaded, found, made[-1] if made else None)
    if not made:
        cards.label(found.data.provenance)
    else:
        of.file_button(
            "Released coefficients (CSV)", lambda: regression_draw.released_csv(made), "released-coefficients"
        )


def releases(loaded: RegressionData) -> Releases:
    """Those of the labels in use."""
    return Releases(QUESTION, loaded.account, "these labels")


def _draw(loaded: RegressionData, found: RegressionSolution) -> None:
    labels = table_of(found.data).labels
    # From public figures: before anything is spent.
    half_widths = interval_half_widths(found.problem, found.best_estimate)

    def draw(charge: Charge) -> Draw:
        drawn = draw_coefficients(
            found.problem, found.best_estimate, labels, found.parameters.lower, charge=charge
        )
        return Draw(found.problem.digest, found.problem.feature_names, drawn, half_widths)

    releases(loaded).draw(draw)


def _show_table(loaded: RegressionData, found: RegressionSolution, draw: Draw | None) -> None:
    columns: dict[str, Any]
    if draw is None:
        errors = np.sqrt(coefficient_variances(found.problem, found.best_estimate))
        columns = {
            "Coefficient": [escape_formula(name) for name in found.problem.feature_names],
            "Noise scale b": np.full(errors.size, found.best_estimate.noise.scale),
            "Standard error": errors,
        }
    else:
        values, half = draw.coefficients.release.values, draw.half_widths
        columns = {
            "Coefficient": [escape_formula(name) for name in draw.names],
            "Released": values,
            "95 % from": values - half,
            "95 % to": values + half,
            "Noise scale b": np.full(half.size, draw.coefficients.release.scale),
            "Standard error": draw.coefficients.standard_errors,
        }
    truth = loaded.coefficients
    if truth is not None and len(columns["Coefficient"]) == truth.size:
        columns["True (generated)"] = truth
    tables.show(
        pd.DataFrame(columns),
        "Coefficients with noise scale, standard error and, once drawn, released value and interval",
        "regression_coefficients",
        dict.fromkeys([name for name in columns if name != "Coefficient"], "%.4g"),
    )
    unit = wording.plain(found.unit, 30)
    st.caption(
        f"A coefficient is in {unit} per unit of its feature; that of a one-hot feature is in {unit}, compared with "
        "the reference level. Standard error and interval contain sampling error and noise, take σ² as given and "
        "hold for each coefficient alone, where the labels follow the model and few are clipped."
    )


METHODS = {"ours": "Best weights", "best bound": "Best bound", "no bound": "No bound"}


def show_behind(answer: Answer) -> None:
    """How sure the answer is, what it assumes, what it used, and all methods beside each other."""
    cards.behind(answer)
    st.caption(work.what_is_used(answer.solution))
    _show_methods(answer.solution)


def _show_methods(found: RegressionSolution) -> None:
    unit = wording.plain(found.unit, 20)
    least = found.methods[0].coefficients
    table = pd.DataFrame(
        {
            "Method": [method.name for method in found.methods],
            "Standard error, coefficients": [method.coefficients for method in found.methods],
            "Times the best": [method.coefficients / least for method in found.methods]
            if least > 0.0
            else None,
            "Error, predictions": [method.predictions for method in found.methods],
            "Privacy noise": [100.0 * method.noise_share for method in found.methods],
            "What it is": [method.note for method in found.methods],
        }
    )
    st.markdown("**All methods beside each other**")
    tables.show(
        table,
        "Errors of the best weights, the best bound, no bound, one row per user and user averages",
        "regression_methods",
        {
            "Standard error, coefficients": "%.4g",
            "Times the best": "%.3g",
            "Error, predictions": "%.4g",
            "Privacy noise": "%.2g %%",
        },
    )
    st.caption(
        f"Standard error over all coefficients together ({unit} per unit of feature); root mean squared error of "
        f"predictions ({unit}); share of the variance that is privacy noise. Bounds are averaged over "
        f"{wording.counted(found.draws.num_draws, 'draw')}, "
        "each bound's prediction error at the bound that is best for the coefficients."
    )


def show_weights(answer: Answer) -> None:
    """What each user's rows weigh, by size and by direction."""
    st.markdown(
        "**Look at** the heavy users on the right: with no bound one of them weighs far more than all others and sets "
        "the noise. The best weights hold everybody at one level and let light users count for more."
    )
    left, right = st.columns(2)
    with left:
        plots.draw_titled(answer.plots["regression-weights"]())
    with right:
        title = st.container()
        key, there = QUESTION.key("weights_of"), list_weights(answer.solution)
        if st.session_state.get(key) not in there:
            st.session_state[key] = "ours"
        names = {method: words for method, words in METHODS.items() if method in there}
        of: str = fields.choice("Share of each coefficient's weight, under", names, key)
        plot = plot_directions(answer.solution, of)
        title.markdown(f"**{plot.title}**")
        plots.draw(plot)
    cards.label(answer.disclosure)


def show_search(found: RegressionSolution) -> None:
    """The gap by iteration, live while the search goes on."""
    st.markdown(
        "After each iteration the best weights so far, and a bound that no weights go below, are computed from the "
        "data. The figure shows the gap between them."
    )
    if work.SOLVE.running:
        _show_live_gap(found)
        return
    steps = found.best_estimate.steps
    st.markdown(
        f"{found.best_estimate.stop_reason} {wording.counted(len(steps), 'iteration')} in {steps[-1].seconds:.2f} "
        "seconds."
    )
    plots.draw(plot_gap(steps, found.data.provenance))
    problem, most = found.problem, working_set.MOST_ENTRIES
    entries = problem.num_rows * problem.num_features
    card_releases.show(
        QUESTION.key("cvxpy"),
        problem.digest,
        lambda stop: working_set.compare_solvers(problem, stop),
        "Total variance",
        f"A general solver takes too long for the {entries:,} entries of C; the comparison is offered up to {most:,}."
        if entries > most
        else "",
    )
    cards.label(found.data.provenance)


@st.fragment(run_every=jobs.POLL_SECONDS)
def _show_live_gap(found: RegressionSolution) -> None:
    if steps := list(st.session_state[work.STEPS]):
        plots.draw(plot_gap(steps, found.data.provenance))


def content(answer: Answer, loaded: RegressionData, made: Sequence[Draw], ledger: Ledger) -> Report:
    """Return what the page contributes to its report, with the latest of ``made``, if any, and all that was
    spent.
    """

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if is_generated:
            return "data = None  # Features, labels and owners are generated, as the settings say."
        return write_table_cell(code, source, public_only, loaded.design, "dpcore.regression.problem")

    is_generated = answer.parameters.source is DataSource.GENERATED
    asked = ["lower", "upper", "source", "variance_source", "residual_variance"]
    asked += GENERATOR_FIELDS if is_generated else ()
    source = Source(answer.solution.data, needs_rows=True, write_cell=cell)
    of = report_content.of_answer(QUESTION, answer, source, setting_labels=QUESTION.asked(*asked))
    return replace(of, releases=_released(made, ledger))


def _released(made: Sequence[Draw], ledger: Ledger) -> tuple[Line, ...]:
    """Return the latest draw, and all that was spent: releases that ended in an error, too."""
    spent = spent_lines(ledger, lost_sentence(ledger, len(made), "these labels"))
    if not made:
        return spent
    draw = made[-1].coefficients
    note = f"Draw {len(made)} of these labels; Laplace noise of scale {wording.number(draw.release.scale)}."
    return released_lines(made[-1].names, draw.release.values, note, draw.facts.label, spent)


def show_files(answer: Answer, loaded: RegressionData) -> None:
    """The whole answer; C and the choice as files."""
    disclosure, found = answer.disclosure, answer.solution
    of = releases(loaded)
    draws, ledger = tuple(of.made), of.ledger
    report_content.draw(
        "regression",
        disclosure,
        lambda: content(answer, loaded, draws, ledger),
        answer.methods,
        "**C** holds one line per complete row of the table and one column per coefficient: the sums over rows of "
        "entry × clipped label are the coefficients before noise. **Choice** holds the question and the answer. "
        f"Label in both: *{disclosure.label}*. Released coefficients are under *Release*; each figure has its data "
        "below it.",
        [
            (
                "C (Parquet)",
                "regression_matrix.parquet",
                lambda: regression_draw.matrix_parquet(found.problem, found.best_estimate, disclosure),
            )
        ],
    )
    rows, features = found.problem.num_rows, found.problem.num_features
    st.caption(f"C has {wording.counted(rows, 'line')} and {wording.counted(features, 'coefficient')}.")
