"""What a person enters on the page Learning under a cap, as one validated parameters object."""

from __future__ import annotations

import math

import streamlit as st

from dpcore.common import wording
from dpcore.contributions import ContributionHistogram
from dpcore.learning import LearningParameters, PrivacyForm
from dpcore.learning.optimal_cap import BiasTerm
from pages.learning.question import POPULATION, QUESTION
from pages.shared import axes, fields, round_numbers, session

NO_CAP = 0
BELOW = ("own_cap", *POPULATION)
"""Fields that stand beside the figure and in tabs, which a refused question does not draw."""


def read() -> LearningParameters | None:
    """Show the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    power = QUESTION.key("privacy_power")
    own = st.session_state[QUESTION.key("privacy_form")] is PrivacyForm.OWN
    if not own and st.session_state[power] is None:
        st.session_state[power] = QUESTION.first("privacy_power")  # A link to another form leaves it empty.
    with st.container(border=True, key="learning_inputs"):
        with fields.row():
            term = fields.draw(QUESTION, "bias")
            _variance_slider(disabled=not term.needs_variance)
            fields.draw(QUESTION, "vc_dimension")
            fields.draw(QUESTION, "failure_probability")
        with fields.row():
            fields.draw(QUESTION, "privacy_form")
            fields.draw(QUESTION, "privacy_constant")
            fields.draw(QUESTION, "finite_sample_constant")
            if own:
                fields.draw(QUESTION, "privacy_power")
        parameters: LearningParameters | None = fields.build(
            QUESTION, unused=() if own else ("privacy_power",), aside=BELOW
        )
        if parameters is not None:
            st.caption(_what_is_used(parameters))
    return parameters


def _variance_slider(disabled: bool) -> None:
    declared = QUESTION.field("loss_variance")
    st.slider(
        declared.label,
        0.0,
        0.25,
        step=0.005,
        format="%.3f",
        key=QUESTION.key("loss_variance"),
        persist_state="session",
        disabled=disabled,
        help=declared.help,
        width=declared.width or "stretch",
    )


def _what_is_used(parameters: LearningParameters) -> str:
    term, privacy = parameters.bias, parameters.privacy
    factor = privacy.constant * math.log(3.0 / parameters.failure_probability) ** privacy.log_power
    form = f"F = {wording.number(factor)} {_power(privacy.power)}"
    if privacy.log_power:
        form += f", that is $C \\ln^2(3/\\delta)$ {_power(2.0)} with C = {wording.number(privacy.constant)}"
    words = [f"Bias at most ${term.formula}$. It needs: {term.needs[:1].lower()}{term.needs[1:]}."]
    if term is BiasTerm.TIGHTEST and parameters.loss_variance == 0.25:
        words.append("At Var(H) = 1/4 the worst case is always the smaller of the two.")
    if not term.needs_variance:
        words.append("Var(H) is not used.")
    words.append(f"{form}; share is the largest that one user holds of what is kept.")
    return " ".join(words)


def _power(power: float) -> str:
    return r"$(\text{share}/\varepsilon)" + ("$" if power == 1.0 else f"^{{{wording.digits(power)}}}$")


def cap_row(histogram: ContributionHistogram, own: int | None) -> None:
    """The person's own cap: a slider and a field in rows per user, kept in step, and tau_0 beside them.

    tau_0 is shown, not entered: a third field that answered would take the value it had before a quick second
    press of the slider for an entry of its own, and undo the press.
    """
    state, n = st.session_state, histogram.num_rows
    steps = (NO_CAP, *axes.bound_steps(histogram))
    if session.dataset().is_private:
        # The last step is the heaviest user's rows: a cap that is chosen there would carry them into a link.
        steps = (*steps[:-1], round(round_numbers.next_round(float(steps[-1]))))
    slider = f"{QUESTION.key('cap_slider_')}{session.data_version()}"
    nearest = NO_CAP if own is None else min(steps[1:], key=lambda step: abs(math.log(step / own)))
    # Only where it differs: every assignment is sent to the browser, and one that comes late undoes a key press.
    if slider not in state or state[slider] != nearest:
        state[slider] = nearest
    columns = st.columns([5, 3, 3])
    columns[0].select_slider(
        "Try a cap τ (rows per user)",
        steps,
        key=slider,
        format_func=lambda step: wording.number(step) if step else "none",
        on_change=_slider_moved,
        args=(slider,),
        help="Your cap is marked in the figures and compared with the best one.",
    )
    with columns[1]:
        fields.draw(QUESTION, "own_cap")
    columns[2].caption("τ₀ = τ/n", help=f"The cap as a share of all {wording.number(n)} rows.")
    columns[2].markdown("–" if own is None else f"**{wording.number(min(own / n, 1.0))}**")


def _slider_moved(slider: str) -> None:
    st.session_state[QUESTION.key("own_cap")] = st.session_state[slider] or None
