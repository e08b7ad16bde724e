"""The steps of the page on the largest gap up to the largest ratio: what to look at, the figure, the arithmetic."""

from __future__ import annotations

from fractions import Fraction

import streamlit as st

from dpcore.answer import Answer
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.gap_examples import files
from dpcore.gap_examples.answer import plots as core_plots
from dpcore.gap_examples.answer import words
from dpcore.gap_examples.compare import Comparison
from dpcore.gap_examples.parameters import NUM_USERS, GapParameters
from dpcore.gap_examples.two_groups import (
    fine_cap_limit,
    supremum,
    theorem_2,
    theorem_2_problem,
    whole_cap_limit,
)
from pages.gap_examples import cached
from pages.gap_examples.question import QUESTION
from pages.shared.card import cards
from pages.shared.fields import fields
from pages.shared.report import report_content, take_away
from pages.shared.screen import plots

PUBLIC = Disclosure.PUBLIC


def instance_files(comparison: Comparison, key: str, disclosure: Provenance = PUBLIC) -> None:
    """The instance as CSV, which Your data opens, and as JSON."""
    with st.container(horizontal=True, vertical_alignment="center"):
        cards.file_button(
            "Instance (CSV)",
            f"{key}_instance.csv",
            disclosure,
            lambda: files.instance_csv(comparison.problem, disclosure),
            key=f"{key}_instance_csv",
            help="Rows per user, users, and the noise ratio. *Your data* opens it under *Upload a file*.",
        )
        cards.file_button(
            "Instance with proof (JSON)",
            f"{key}_instance.json",
            disclosure,
            lambda: files.instance_json(comparison, disclosure),
            key=f"{key}_instance_json",
        )


def show_behind(answer: Answer) -> None:
    """How sure the answer is, what it assumes, and the paper's proof at work on these data."""
    cards.behind(answer)
    if answer.code is None:
        st.markdown("**Code for your library:** it needs the range of a value, which you enter on *Mean*.")
    st.markdown("**The proof of theorem 3, on these data**")
    st.markdown("\n".join(f"{i}. {s}" for i, s in enumerate(words.write_proof(answer.solution), 1)))
    if answer.disclosure is Disclosure.PRIVATE:
        cards.label(answer.disclosure)


def show_files(answer: Answer) -> None:
    """The whole answer, and the data as an instance."""
    source, asked = take_away.source(), QUESTION.asked("variance_source", "value_variance")
    take_away.draw(
        "gap",
        answer.disclosure,
        lambda: report_content.of_answer(QUESTION, answer, source, setting_labels=asked),
        answer.methods,
    )
    st.markdown(
        "**Instance** holds how many users have how many rows, with the noise ratio; with proof, also both optima and "
        f"what proves them. Label in both: *{answer.disclosure.label}*."
    )
    instance_files(answer.solution.comparison, "gap_data", answer.disclosure)


def show_theorem_2(parameters: GapParameters) -> None:
    """Section 3.3's instance."""
    st.markdown(
        "**Look at** the ratio as g grows: half of the users have one row, half have g. The ratio approaches 3/2 "
        "but never reaches it."
    )
    fields.draw(QUESTION, "g")
    g = parameters.g
    exact = theorem_2(g)
    plots.draw(core_plots.plot_theorem_2(g))
    v, v_cap = Fraction(2 * g + 1, 4 * g * g), Fraction(3, 4 * g)
    ratio = v_cap / v
    st.markdown(
        rf"""
$$
\begin{{aligned}}
v &= \frac{{2g+1}}{{4g^2}} = \frac{{{v.numerator}}}{{{v.denominator}}} = {exact.smooth_variance:.6g} \\[4pt]
v' &= \frac{{3}}{{4g}} = \frac{{{v_cap.numerator}}}{{{v_cap.denominator}}} = {exact.capped_variance:.6g} \\[4pt]
\frac{{v'}}{{v}} &= \frac{{3g}}{{2g+1}} = \frac{{{ratio.numerator}}}{{{ratio.denominator}}} = {exact.ratio:.6f}
\end{{aligned}}
$$

In units of σ², with 2(B/ε)² = gσ²: {wording.counted(g, "user")} with 1 row and {wording.counted(g, "user")} with
{wording.counted(g, "row")}. A bound of 1 is best for both. The paper gives both variances as limits; they are exact.
"""
    )
    comparison = cached.gap_comparison(theorem_2_problem(g))
    st.caption(words.certify(comparison))
    instance_files(comparison, "gap_theorem_2")


def show_two_groups(parameters: GapParameters) -> None:
    """Beyond the paper: other shares."""
    st.markdown(
        "**Look at** p = 40 % instead of the paper's 50 %: there two groups reach 25/16 = 1.5625. Raise R "
        "and watch the dotted curve rise to a limit."
    )
    with st.grid(3, min_column_width=220):
        fields.draw_all(QUESTION, "light_users", "heavy_size", "light_size")
    light, heavy_size, light_size = parameters.light_users, parameters.heavy_size, parameters.light_size
    plots.draw(core_plots.plot_two_groups(light, heavy_size, light_size))
    p, percent = light / NUM_USERS, wording.PERCENT
    st.markdown(
        rf"""
A share p = {light}{percent} of the users has s rows, q = {NUM_USERS - light}{percent} has R·s; 2(B/ε)² = σ²qm/s.
As R → ∞, with s = 1, the best weights have variance σ²/m, and a bound of x rows has σ²/m times

$$
\frac{{1}}{{p+qx}} + \frac{{q\,x^2}}{{(p+qx)^2}}.
$$

{_cap_terms(p)}

{_two_groups_sentence(p)}
"""
    )
    comparison = cached.gap_comparison(parameters.two_groups())
    st.caption(
        f"The instance: {wording.counted(light, 'user')} with {wording.counted(light_size, 'row')}, "
        f"{wording.counted(NUM_USERS - light, 'user')} with "
        f"{wording.counted(light_size * heavy_size, 'row')}, ρ = {wording.number(comparison.noise_ratio)}. "
        f"{words.certify(comparison)}"
    )
    instance_files(comparison, "gap_two_groups")


def _cap_terms(p: float) -> str:
    """Return the formula at some caps, as a table."""
    q, caps = 1.0 - p, (1, 2, 3)
    terms = [f"{1.0 / (p + q * x) + q * x * x / (p + q * x) ** 2:.4f}" for x in caps]
    head = " | ".join(str(x) for x in caps)
    return (
        f"| bound x | {head} | → ∞ |\n|---|{'---|' * (len(caps) + 1)}\n"
        f"| times σ²/m | {' | '.join(terms)} | {1.0 / q:.4f} |"
    )


def _two_groups_sentence(p: float) -> str:
    whole, fine = whole_cap_limit(p), fine_cap_limit(p)
    cap = float(whole.cap)
    best = "no bound at all" if cap == float("inf") else f"bound {cap:.0f}"
    if p <= 1.0 / 3.0:
        formula = "1/(1 − p)"
    else:
        formula = "(5p − 1)/(4p²)" if p <= 0.5 else "2 − p"
    return (
        f"Best is {best}: **{float(whole.ratio):.4f}**. Where bounds can be set finely (s → ∞ too) the best is "
        f"{formula} = **{float(fine.ratio):.4f}**."
    )


def show_any_noise(parameters: GapParameters) -> None:
    """Beyond the paper: the noise set free."""
    best = supremum()
    st.markdown(
        "**Look at** where the blue curve touches the dashed one as you move the noise: the star, "
        f"{best.ratio:.5f}, is the most that any instance can reach."
    )
    fields.draw(QUESTION, "noise_per_user")
    t = parameters.noise_per_user
    plots.draw(core_plots.plot_any_noise(t))
    p = core_plots.find_worst_share(t)
    limit = whole_cap_limit(p, t)
    cap = "no bound" if float(limit.cap) == float("inf") else f"bound {float(limit.cap):.0f}"
    st.markdown(
        f"At t = {wording.entered(t)} the worst share is p = {wording.percent(p, 3)}: bound "
        f"{max(1.0, (1.0 - p) / t):.3f} for the weights, {cap}, ratio **{float(limit.ratio):.5f}**. The largest of "
        f"all is at p = {best.light_share:.6f}, t = {best.noise_per_user:.6f}, where bounds {best.caps[0]} and "
        f"{best.caps[1]} tie: **{best.ratio:.6f}**. More groups do not help: docs/gap.md proves it."
    )
    comparison = cached.gap_comparison(supremum().problem())
    sizes, users = comparison.problem.histogram.sizes, comparison.problem.histogram.users
    st.caption(
        f"An instance near it: {wording.counted(int(users[0]), 'user')} with "
        f"{wording.counted(int(sizes[0]), 'row')}, {users[1]} with {sizes[1]:,}, "
        f"ρ = {comparison.noise_ratio:.4f}. {words.certify(comparison)}"
    )
    instance_files(comparison, "gap_largest")
