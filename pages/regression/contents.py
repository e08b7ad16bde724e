"""The contents of the page Regression below its answer: tabs, studies, and a release."""

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
    """Return the result for this question; a button starts the work, which starts by itself if ``button`` is empty."""
    job: jobs.Job | None = st.session_state.get(key)
    is_current = job is not None and job.question == question
    if not is_current and not button:
        jobs.start(key, question, work)
        is_current = True
    done = jobs.result_of(key)
    stopped = done is not None and done[1].stop_reason.startswith("Stopped")
    if (button and not is_current) or (is_current and stopped):
        st.button(
            "Start again" if is_current else button,
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


def show_over_epsilon(solution: RegressionSolution, error: ErrorOf) -> None:
    """Draw the error against epsilon, on the data of the page."""
    data, problem, parameters = solution.data, solution.problem, solution.parameters
    st.markdown(
        "**Look at** the distance between the orange line and the blue one: so much do the best weights gain over the "
        "best bound at each ε. The dotted line is your ε."
    )
    if not solution.draws.num_draws:
        st.info("This needs the trial of bounds, which was stopped.", icon=":material/info:")
        return
    question = (data.digest, parameters.lower, parameters.upper, problem.residual_variance)
    labels, draws = solution.labels, solution.draws
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
        solution.unit,
        data.provenance,
        parameters.epsilon,
    )
    _show_sweep(sweep, varied, error)
    if error is ErrorOf.PREDICTIONS:
        st.caption(FIT)
    cards.label(data.provenance)


def show_paper_figures(parameters: RegressionParameters, error: ErrorOf) -> None:
    """Draw the paper's figures as stored in the app; below, figures 1 and 2 with the user's settings."""
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

    def build_work(generators: Sequence[RegressionGenerator], values: Sequence[float]) -> jobs.Work:
        return lambda p, s: study.over_generated(
            generators, values, parameters.epsilon, REPEATS, progress=p, should_stop=s
        )

    left_column, right_column = st.columns(2)
    with left_column:
        st.markdown(
            f"**Against the number of rows** (α = {wording.entered(generator.exponent)}; the paper: 1.5)"
        )
        _show_generated(
            QUESTION.key("over_rows"),
            ("rows", replace(generator, num_rows=600), parameters.epsilon),
            build_work([replace(generator, num_rows=n) for n in study.ROWS], study.ROWS),
            Varied(
                "rows", "the number of rows", "regression-rows", "Figure 1", OVER_ROWS, "y", Disclosure.PUBLIC
            ),
            len(study.ROWS),
            error,
        )
    with right_column:
        st.markdown(f"**Against inequality** (n = {generator.num_rows:,}; the paper: 3,000)")
        _show_generated(
            QUESTION.key("over_exponent"),
            ("exponent", replace(generator, exponent=2.0), parameters.epsilon),
            build_work([replace(generator, exponent=a) for a in study.EXPONENTS], study.EXPONENTS),
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
            error,
        )
    cards.label(Disclosure.PUBLIC)


def _show_generated(
    key: str, question: Any, work: jobs.Work, varied: Varied, points: int, error: ErrorOf
) -> None:
    sweep = _result(key, question, work, f"Solving {points * REPEATS} problems", f"Solve at {points} values")
    if sweep is not None:
        _show_sweep(sweep, varied, error)


def _show_sweep(sweep: study.Sweep, varied: Varied, error: ErrorOf) -> None:
    if not sweep.values.size:
        st.info(sweep.stop_reason, icon=":material/info:")
        return
    plots.draw(plot_sweep(sweep, varied, error))
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
    """Draw the two examples of an unbounded gap, with the true optimum."""
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
    st.markdown(
        f"At g = {sweep.g[-1]}: optimum {wording.number(float(sweep.optimum[-1]), 5)} (proved from below at "
        f"{wording.number(float(sweep.lower_bound[-1]), 5)}), best bound "
        f"{wording.number(float(sweep.cap[-1]), 5)} at {wording.counted(int(sweep.max_contributions[-1]), 'row')} "
        f"per user: {wording.number(float(sweep.cap[-1] / sweep.optimum[-1]))} times as much. {sweep.stop_reason}"
    )
    cards.label(Disclosure.PUBLIC)


def show(loaded_data: RegressionData, solution: RegressionSolution) -> None:
    """Draw the tab of the release: a description, the button, and the latest draw with its label."""
    store = releases(loaded_data)
    draws = store.draws
    epsilon = format_rounded_up(solution.problem.epsilon)
    st.markdown(
        f"A draw adds fresh Laplace noise of scale **{wording.number(solution.best_estimate.noise.scale)}** to each "
        f"coefficient, by OpenDP, and spends **ε = {epsilon}**. The page keeps it and draws again only when you ask; "
        "every further draw of the same labels spends more."
    )
    if solution.variance_is_private:
        st.warning(
            "σ² was read from private labels, and C depends on it: ε would not cover that. Enter a σ² that you may "
            "publish under *More settings*, then draw.",
            icon=":material/lock:",
        )
    repeat_label = f"Draw once more: spends another ε = {epsilon}"
    st.button(
        repeat_label if draws else f"Draw the coefficients: spends ε = {epsilon}",
        key="regression_draw",
        on_click=_draw,
        args=(loaded_data, solution),
        type="secondary" if draws else fields.main_button(),
        icon=":material/casino:",
        disabled=solution.variance_is_private or solution.stage is not Stage.FINAL,
        help=None if solution.stage is Stage.FINAL else "It waits for the end of the search.",
    )
    store.say_refused()
    store.show_account(
        draws[-1].coefficients.facts if draws else None,
        bool(draws) and draws[-1].question != solution.problem.digest,
    )
    _show_table(loaded_data, solution, draws[-1] if draws else None)
    if not draws:
        cards.label(solution.data.provenance)
    else:
        store.file_button(
            "Released coefficients (CSV)",
            lambda: regression_draw.released_csv(draws),
            "released-coefficients",
        )


def releases(loaded_data: RegressionData) -> Releases:
    """Return the releases of the labels in use."""
    return Releases(QUESTION, loaded_data.account, "these labels")


def _draw(loaded_data: RegressionData, solution: RegressionSolution) -> None:
    labels = table_of(solution.data).labels
    # From public figures: before anything is spent.
    half_widths = interval_half_widths(solution.problem, solution.best_estimate)

    def draw(charge: Charge) -> Draw:
        coefficients = draw_coefficients(
            solution.problem, solution.best_estimate, labels, solution.parameters.lower, charge=charge
        )
        return Draw(solution.problem.digest, solution.problem.feature_names, coefficients, half_widths)

    releases(loaded_data).draw(draw)


def _show_table(loaded_data: RegressionData, solution: RegressionSolution, draw: Draw | None) -> None:
    columns: dict[str, Any]
    if draw is None:
        errors = np.sqrt(coefficient_variances(solution.problem, solution.best_estimate))
        columns = {
            "Coefficient": [escape_formula(name) for name in solution.problem.feature_names],
            "Noise scale b": np.full(errors.size, solution.best_estimate.noise.scale),
            "Standard error": errors,
        }
    else:
        values, half_widths = draw.coefficients.release.values, draw.half_widths
        columns = {
            "Coefficient": [escape_formula(name) for name in draw.names],
            "Released": values,
            "95 % from": values - half_widths,
            "95 % to": values + half_widths,
            "Noise scale b": np.full(half_widths.size, draw.coefficients.release.scale),
            "Standard error": draw.coefficients.standard_errors,
        }
    truth = loaded_data.coefficients
    if truth is not None and len(columns["Coefficient"]) == truth.size:
        columns["True (generated)"] = truth
    tables.show(
        pd.DataFrame(columns),
        "Coefficients with noise scale, standard error and, once drawn, released value and interval",
        "regression_coefficients",
        dict.fromkeys([name for name in columns if name != "Coefficient"], "%.4g"),
    )
    unit = wording.plain(solution.unit, 30)
    st.caption(
        f"A coefficient is in {unit} per unit of its feature; that of a one-hot feature is in {unit}, compared with "
        "the reference level. Standard error and interval contain sampling error and noise, take σ² as given and "
        "hold for each coefficient alone, where the labels follow the model and few are clipped."
    )


METHODS = {"ours": "Best weights", "best bound": "Best bound", "no bound": "No bound"}


def show_behind(answer: Answer) -> None:
    """Draw how sure the answer is, its assumptions, its inputs, and all methods beside each other."""
    cards.behind(answer)
    st.caption(work.what_is_used(answer.solution))
    _show_methods(answer.solution)


def _show_methods(solution: RegressionSolution) -> None:
    unit = wording.plain(solution.unit, 20)
    smallest_error = solution.methods[0].coefficients
    table = pd.DataFrame(
        {
            "Method": [method.name for method in solution.methods],
            "Standard error, coefficients": [method.coefficients for method in solution.methods],
            "Times the best": [method.coefficients / smallest_error for method in solution.methods]
            if smallest_error > 0.0
            else None,
            "Error, predictions": [method.predictions for method in solution.methods],
            "Privacy noise": [100.0 * method.noise_share for method in solution.methods],
            "What it is": [method.note for method in solution.methods],
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
        f"{wording.counted(solution.draws.num_draws, 'draw')}, "
        "each bound's prediction error at the bound that is best for the coefficients."
    )


def show_weights(answer: Answer) -> None:
    """Draw the weights of users' rows, by size and by direction."""
    st.markdown(
        "**Look at** the heavy users on the right: with no bound one of them weighs far more than all others and sets "
        "the noise. The best weights hold everybody at one level and let light users count for more."
    )
    left_column, right_column = st.columns(2)
    with left_column:
        plots.draw_titled(answer.plots["regression-weights"]())
    with right_column:
        title = st.container()
        key, available = QUESTION.key("weights_of"), list_weights(answer.solution)
        if st.session_state.get(key) not in available:
            st.session_state[key] = "ours"
        names = {method: words for method, words in METHODS.items() if method in available}
        method_name: str = fields.choice("Share of each coefficient's weight, under", names, key)
        plot = plot_directions(answer.solution, method_name)
        title.markdown(f"**{plot.title}**")
        plots.draw(plot)
    cards.label(answer.disclosure)


def show_search(solution: RegressionSolution) -> None:
    """Draw the gap by iteration, live while the search goes on."""
    st.markdown(
        "After each iteration the best weights so far, and a bound that no weights go below, are computed from the "
        "data. The figure shows the gap between them."
    )
    if work.SOLVE.running:
        _show_live_gap(solution)
        return
    steps = solution.best_estimate.steps
    st.markdown(
        f"{solution.best_estimate.stop_reason} {wording.counted(len(steps), 'iteration')} in {steps[-1].seconds:.2f} "
        "seconds."
    )
    plots.draw(plot_gap(steps, solution.data.provenance))
    problem, max_entries = solution.problem, working_set.MOST_ENTRIES
    entries = problem.num_rows * problem.num_features
    card_releases.show(
        QUESTION.key("cvxpy"),
        problem.digest,
        lambda stop: working_set.compare_solvers(problem, stop),
        "Total variance",
        f"A general solver takes too long for the {entries:,} entries of C; the comparison is offered up to "
        f"{max_entries:,}."
        if entries > max_entries
        else "",
    )
    cards.label(solution.data.provenance)


@st.fragment(run_every=jobs.POLL_SECONDS)
def _show_live_gap(solution: RegressionSolution) -> None:
    if steps := list(st.session_state[work.STEPS]):
        plots.draw(plot_gap(steps, solution.data.provenance))


def content(answer: Answer, loaded_data: RegressionData, draws: Sequence[Draw], ledger: Ledger) -> Report:
    """Return the report of the page, with the latest of ``draws``, if any, and all that was spent."""

    def cell(code: Code, source: Source, public_only: bool) -> str:
        if is_generated:
            return "data = None  # Features, labels and owners are generated, as the settings say."
        return write_table_cell(code, source, public_only, loaded_data.design, "dpcore.regression.problem")

    is_generated = answer.parameters.source is DataSource.GENERATED
    field_names = ["lower", "upper", "source", "variance_source", "residual_variance"]
    field_names += GENERATOR_FIELDS if is_generated else ()
    source = Source(answer.solution.data, needs_rows=True, write_cell=cell)
    report = report_content.of_answer(
        QUESTION, answer, source, setting_labels=QUESTION.get_labels(*field_names)
    )
    return replace(report, releases=_list_release_lines(draws, ledger))


def _list_release_lines(draws: Sequence[Draw], ledger: Ledger) -> tuple[Line, ...]:
    """Return the latest draw, and all that was spent: releases that ended in an error, too."""
    spending = spent_lines(ledger, lost_sentence(ledger, len(draws), "these labels"))
    if not draws:
        return spending
    draw = draws[-1].coefficients
    note = f"Draw {len(draws)} of these labels; Laplace noise of scale {wording.number(draw.release.scale)}."
    return released_lines(draws[-1].names, draw.release.values, note, draw.facts.label, spending)


def show_files(answer: Answer, loaded_data: RegressionData) -> None:
    """Offer the whole answer, C and the choice as files."""
    disclosure, solution = answer.disclosure, answer.solution
    store = releases(loaded_data)
    draws, ledger = tuple(store.draws), store.ledger
    report_content.draw(
        "regression",
        disclosure,
        lambda: content(answer, loaded_data, draws, ledger),
        answer.methods,
        "**C** holds one line per complete row of the table and one column per coefficient: the sums over rows of "
        "entry × clipped label are the coefficients before noise. **Choice** holds the question and the answer. "
        f"Label in both: *{disclosure.label}*. Released coefficients are under *Release*; each figure has its data "
        "below it.",
        [
            (
                "C (Parquet)",
                "regression_matrix.parquet",
                lambda: regression_draw.matrix_parquet(solution.problem, solution.best_estimate, disclosure),
            )
        ],
    )
    rows, features = solution.problem.num_rows, solution.problem.num_features
    st.caption(f"C has {wording.counted(rows, 'line')} and {wording.counted(features, 'coefficient')}.")
