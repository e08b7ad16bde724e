"""What a person enters on the page Learning under a cap, as one validated parameters object."""

from __future__ import annotations

import math

import streamlit as st

from dpcore.common import wording
from dpcore.contributions import ContributionHistogram
from dpcore.learning import LearningParameters, PrivacyForm
from dpcore.learning.optimal_cap import BiasTerm
from pages.shared import fields, keys, ranges, session
from pages.start import figures

FORM_NAMES = {
    PrivacyForm.QUADRATIC: "Quadratic",
    PrivacyForm.LINEAR: "Linear",
    PrivacyForm.OWN: "Power",
}
TERMS = (BiasTerm.TIGHTEST, *(term for term in BiasTerm if term is not BiasTerm.TIGHTEST))
NO_CAP = 0
DEFAULT_POWER = 1.5
DEFAULTS = LearningParameters(ranges.DEFAULT_EPSILON)


def read() -> LearningParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    _defaults()
    with st.container(border=True, key="learning_inputs"):
        _draw_bias()
        _draw_terms()
        own = st.session_state[keys.LEARNING_PRIVACY] is PrivacyForm.OWN
        parameters: LearningParameters | None = fields.build(
            "Learning under a cap", LABELS, unused=() if own else ("privacy_power",), aside=BELOW
        )
        if parameters is not None:
            st.caption(_what_is_used(parameters))
    return parameters


def _defaults() -> None:
    fields.defaults(
        {
            keys.LEARNING_BIAS: DEFAULTS.bias,
            keys.LEARNING_VARIANCE: DEFAULTS.loss_variance,
            keys.LEARNING_DIMENSION: DEFAULTS.vc_dimension,
            keys.LEARNING_FAILURE: DEFAULTS.failure_probability,
            keys.LEARNING_PRIVACY: DEFAULTS.privacy_form,
            keys.LEARNING_CONSTANT: DEFAULTS.privacy_constant,
            keys.LEARNING_FINITE: DEFAULTS.finite_sample_constant,
            keys.LEARNING_OWN_CAP: DEFAULTS.own_cap,
        },
        {
            keys.LEARNING_ALPHA: DEFAULTS.alpha,
            keys.LEARNING_ROWS: DEFAULTS.population_rows,
            keys.LEARNING_SAMPLES: DEFAULTS.draws,
        },
    )
    if st.session_state[keys.LEARNING_PRIVACY] is not PrivacyForm.OWN:
        fields.defaults({}, {keys.LEARNING_POWER: DEFAULT_POWER})


def _draw_bias() -> None:
    with fields.row():
        term = fields.pick(
            "Bound on the bias",
            {term: f"{term.title} ({term.group})" for term in TERMS},
            keys.LEARNING_BIAS,
            "How the bias of capping is bounded. What each bound needs to know stands below.",
            width=212,
        )
        st.slider(
            "Var(H): how much users differ",
            0.0,
            0.25,
            step=0.005,
            format="%.3f",
            key=keys.LEARNING_VARIANCE,
            persist_state="session",
            disabled=not term.needs_variance,
            help="What if users were alike? At 0 every user meets the same risk, and capping biases nothing. At "
            "1/4, the most that losses in [0, 1] allow, nothing is known. Only bounds with Var(H) use it.",
            width=216,
        )
        fields.number(
            "VC dimension d",
            keys.LEARNING_DIMENSION,
            "Of the models that the learner chooses from. 0 leaves the finite-sample term out.",
            whole=True,
            width=136,
        )
        fields.number(
            "Failure probability δ",
            keys.LEARNING_FAILURE,
            "The bound holds with probability 1 − δ. Not the δ of (ε, δ)-differential privacy.",
            width=168,
        )


def _draw_terms() -> None:
    with fields.row():
        form = fields.choice(
            "Privacy term F",
            FORM_NAMES,
            keys.LEARNING_PRIVACY,
            "How the learner's error grows with the largest share of a user. Quadratic: output perturbation "
            "(Chaudhuri et al. 2011).",
        )
        fields.number(
            "Privacy constant C",
            keys.LEARNING_CONSTANT,
            "Depends on the learner: dimension, smoothness, regularisation. 1 unless you know better.",
            width=170,
        )
        fields.number(
            "Finite-sample constant",
            keys.LEARNING_FINITE,
            "The constant that O(·) hides in the finite-sample term. 1 unless you know better.",
            width=180,
        )
        if form is PrivacyForm.OWN:
            fields.number(
                "Power of F", keys.LEARNING_POWER, "F = C (largest share / ε) to this power.", width=120
            )


LABELS = {
    "epsilon": "The privacy budget ε",
    "vc_dimension": "The VC dimension d",
    "failure_probability": "The failure probability δ",
    "privacy_constant": "The privacy constant C",
    "privacy_power": "The power of F",
    "finite_sample_constant": "The finite-sample constant",
}
BELOW = ("own_cap", "alpha", "population_rows", "draws")
"""Fields that stand beside the figure and in tabs, which a refused question does not draw."""


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
    steps = (NO_CAP, *figures.bound_steps(histogram))
    if session.dataset().is_private:
        # The last step is the heaviest user's rows: a cap that is chosen there would carry them into a link.
        steps = (*steps[:-1], round(session.next_round(float(steps[-1]))))
    slider = f"{keys.LEARNING_CAP_SLIDER}{session.data_version()}"
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
        fields.number("τ, exactly", keys.LEARNING_OWN_CAP, whole=True, placeholder="rows")
    columns[2].caption("τ₀ = τ/n", help=f"The cap as a share of all {wording.number(n)} rows.")
    columns[2].markdown("–" if own is None else f"**{wording.number(min(own / n, 1.0))}**")


def _slider_moved(slider: str) -> None:
    st.session_state[keys.LEARNING_OWN_CAP] = st.session_state[slider] or None
