"""The steps of the page on the largest gap that check it: one's own instance, search, regression, simulation."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.dataset import Dataset
from dpcore.gap_examples.answer import check_plots, examples, words
from dpcore.gap_examples.answer import plots as core_plots
from dpcore.gap_examples.compare import compare
from dpcore.gap_examples.domination import dominate
from dpcore.gap_examples.parameters import GapParameters, InstanceKind
from dpcore.gap_examples.search import search
from dpcore.gap_examples.simulation import LABEL, SimulationResult, simulate_curve
from dpcore.gap_examples.two_groups import supremum
from dpcore.mean import MeanProblem
from pages.gap_examples import cached, inputs, proof
from pages.gap_examples.question import QUESTION
from pages.shared.base import tables
from pages.shared.card import cards, number_elements
from pages.shared.fields import fields, jobs
from pages.shared.screen import plots
from pages.shared.session import session

PUBLIC = Disclosure.PUBLIC


def show_own_instance(parameters: GapParameters) -> None:
    """One's own instance, and the picture of why it stays below."""
    st.markdown(
        f"**Look at** the ratio while you change the table: can you get it over {supremum().ratio:.5f}? "
        "The grey line shows why you cannot."
    )
    left, right = st.columns([5, 6])
    with left:
        inputs.table()
    comparison = compare(inputs.with_table(parameters).own_instance())
    line = dominate(comparison)
    with left, st.grid(2, min_column_width=140, gap="small"):
        short = supremum().ratio - comparison.ratio
        number_elements.single("Its ratio", f"{comparison.ratio:.6f}", f"short by {short:.2g}")
        stands = "The ratio of the two groups that the grey line stands for: at least the table's own."
        number_elements.single("Its two groups", f"{line.bound:.6f}", "an upper bound", stands)
    with right:
        plots.draw(core_plots.line(comparison))
    st.markdown(
        f"Best bound {wording.counted(comparison.cap.max_contributions, 'row')}, best bound of the weights "
        f"{wording.number(comparison.smooth.threshold, 4)}. A bound as good as the best would have to keep "
        "the rows of the orange curve, which bends up; the rows kept bend down. So a line fits between: it "
        f"belongs to two groups, {wording.percent(line.light_share, 3)} of the users with one row, the "
        "others with unlimited rows. They have more rows under every bound, hence better weights, and still "
        "no better bound. So **two groups are enough**, and the largest ratio of two groups is the star of "
        "*Any noise*."
    )
    st.caption(f"{words.proved(comparison)} What you type here goes into the page's link.")
    proof.instance_files(comparison, "gap_own")


def show_search(parameters: GapParameters) -> None:
    """Let the machine try."""
    best = supremum()
    st.markdown(
        f"**Look at** how the search comes ever closer to {best.ratio:.5f} and never gets there, with "
        "however many groups."
    )
    start, asked = inputs.search(), parameters.search_question()
    if start:
        jobs.start(
            QUESTION.key("search_job"),
            asked,
            lambda progress, stop: search(asked, progress, stop),
        )
    idle = "An evolution strategy over whole sizes, whole users and the noise. It has not run yet."
    done = jobs.outcome(QUESTION.key("search_job"), "Searching", asked, idle)
    if done is None:
        return
    question, result = done
    st.markdown(result.ended)
    left, right = st.columns([3, 4])
    histogram = result.comparison.problem.histogram
    with left:
        columns = {"Rows per user": histogram.sizes, "Users": histogram.users}
        formats = dict.fromkeys(columns, "localized")
        tables.show(columns, "The instance with the largest ratio found", formats=formats)
        st.caption(
            f"ρ = {result.comparison.noise_ratio:.6g}, best bound "
            f"{result.comparison.cap.max_contributions:,}, best bound of the weights "
            f"{result.comparison.smooth.threshold:.5g}. {words.proved(result.comparison)} "
            f"{question.num_groups} groups were on offer; groups of equal sizes are shown as one."
        )
        proof.instance_files(result.comparison, "gap_found")
    with right:
        plots.draw(core_plots.search(result))


def show_regression(parameters: GapParameters) -> None:
    """Where there is no bound."""
    st.markdown(
        "**Look at** the left figure: for linear regression the gap grows without bound, unlike that for a "
        "mean."
    )
    fields.draw_all(QUESTION, "example", "regression_g")
    number, g = parameters.example, parameters.regression_g
    step, growth = cached.gap_regression(number, g), cached.gap_growth(number)
    left, right = st.columns(2)
    with left:
        plots.draw(check_plots.growth(growth, step))
    with right:
        plots.draw(check_plots.thresholds(step))
    st.markdown(_regression_sentences(step))
    st.page_link(
        session.page_file("Regression"),
        label="Find the best C on other data",
        icon=":material/arrow_forward:",
    )


def _regression_sentences(step: examples.RegressionStep) -> str:
    example, g = step.example, step.example.g
    instance, c = example.instance, example.feasible.variance
    better = "better" if step.ratio > 1.0 else "worse, since it is feasible but not the best,"
    words = [
        f"**{wording.counted(instance.num_rows, 'row')} of {wording.counted(instance.num_users, 'user')}.** "
        f"The paper's C has variance {wording.number(c, 4)} (its bound: "
        f"{wording.number(example.weights_bound, 4)}). Sample limiting at its best bound, {step.best}, "
        f"has {wording.number(float(step.limiting.min()), 4)}: C is {better} by the factor "
        f"**{wording.number(step.ratio, 4)}**.",
        _optimum_sentence(step),
    ]
    if example.number == 1:
        words.append(
            "One user's far point pins the first coefficient down, at the price of a large weight; one "
            "heavy user disturbs the second. One bound must serve both. The paper prints the weight "
            "1/g² where CX = I asks for 1/g³; 1/g³ is used here. The slider starts at 3: at g = 1 the "
            "paper's C is 4 times worse, at g = 2 equal."
        )
    else:
        words.append(
            "Which rows are kept is drawn at random; shown is the expected variance. The paper's bound for "
            f"sample limiting, g/9 = {wording.number(example.limiting_bound)}, is to hold with probability "
            f"½: exactly, it holds with probability {wording.percent(step.surely, 3)} or more at every "
            "bound." + (" Below g = 8 the paper's bounds do not separate the two." if g < 8 else "")
        )
    if step.samples:
        fine = step.disagreement < 1e-12
        agreement = "within rounding" if fine else f"{step.disagreement:.0e}"
        words.append(
            f"*Checked* by listing all {wording.counted(step.samples, 'sample')} over the bounds, each "
            f"with its own least squares: they agree with the closed form to "
            f"{agreement}."
        )
    return "\n\n".join(words)


def _optimum_sentence(step: examples.RegressionStep) -> str:
    optimum = step.example.optimum
    formula = " = 1/(g² + 1)²" if step.example.number == 1 else ""
    said = (
        f"The best C has variance **{wording.number(optimum, 4)}**{formula}: sample limiting at its best has "
        f"{wording.number(step.best_ratio, 4)} times that, the paper's C "
        f"{wording.number(step.example.feasible.variance / optimum, 4)} times. "
    )
    if step.certificate is None:
        return said + "That is a closed form; the instance is too large to be solved while you wait."
    found, fine = step.certificate.value, abs(step.certificate.value / optimum - 1.0) <= 1e-7
    return (
        f"{said}That is a closed form; the solver of *Regression* finds "
        f"{'the same' if fine else wording.number(found, 6)}. {step.certificate.sentence}"
    )


def show_simulation(parameters: GapParameters, data: Dataset) -> None:
    """Run both mechanisms."""
    st.markdown(
        "**Look at** the intervals on the right: nearly all should contain 1, the formula. At 95 % "
        "confidence about one in twenty should not."
    )
    start = inputs.simulation()
    kind = parameters.simulated
    problem = parameters.simulated_problem(data.histogram)
    question = (kind, problem, parameters.runs, parameters.seed)
    if start:
        bounds = examples.simulated_bounds(problem)
        runs, seed = parameters.runs, parameters.seed
        jobs.start(
            QUESTION.key("simulation_job"),
            question,
            lambda progress, stop: simulate_curve(problem, bounds, runs, seed, progress, stop),
        )
    idle = "Values are B/2 ± σ at random, so their variance is exactly σ². It has not run yet."
    done = jobs.outcome(QUESTION.key("simulation_job"), "Simulating", question, idle)
    if done is None:
        return
    asked, results = done
    _show_results(asked[1], results, data.provenance if asked[0] is InstanceKind.DATA else PUBLIC)


def _show_results(
    problem: MeanProblem, results: tuple[SimulationResult, ...], disclosure: Provenance
) -> None:
    hit, intervals = check_plots.hits(results)
    overlay, quotient = check_plots.simulated(problem, results, disclosure)
    left, right = st.columns(2)
    with left:
        plots.show(overlay, y_only=True)
    with right:
        plots.draw(quotient)
    runs = min(r.runs for r in results)
    stopped = "Stopped early. " if any(r.cancelled for r in results) else ""
    st.markdown(
        f"{stopped}**The formula lies in {hit} of {intervals} intervals** "
        f"({wording.counted(results[0].runs, 'run')} of each mechanism at each "
        f"bound{'' if runs == results[0].runs else f', {runs:,} at the last'}). The intervals come from the "
        "spread of the squared errors themselves; the usual chi-squared ones would be too short, since "
        "Laplace noise has heavier tails than normal noise."
    )
    st.badge(LABEL, color="violet", icon=":material/casino:")
    if disclosure is not PUBLIC:
        cards.label(disclosure)
