"""The tab *Regression*: for linear regression the gap has no bound."""

from __future__ import annotations

import streamlit as st

from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.gap_examples.answer import examples
from dpcore.gap_examples.answer import plots as core_plots
from dpcore.gap_examples.parameters import GapParameters
from pages.gap_examples import cached
from pages.gap_examples.question import QUESTION
from pages.shared.fields import fields
from pages.shared.screen import plots
from pages.shared.session import session

PUBLIC = Disclosure.PUBLIC


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
        plots.draw(core_plots.plot_growth(growth, step))
    with right:
        plots.draw(core_plots.plot_thresholds(step))
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
        f"{wording.number(example.weights_bound, 4)}). Sample limiting at its best bound, {step.best_threshold}, "
        f"has {wording.number(float(step.limited_variances.min()), 4)}: C is {better} by the factor "
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
            f"½: exactly, it holds with probability {wording.percent(step.guaranteed_probability, 3)} or more at every "
            "bound." + (" Below g = 8 the paper's bounds do not separate the two." if g < 8 else "")
        )
    if step.num_samples:
        fine = step.disagreement < 1e-12
        agreement = "within rounding" if fine else f"{step.disagreement:.0e}"
        words.append(
            f"*Checked* by listing all {wording.counted(step.num_samples, 'sample')} over the bounds, each "
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
