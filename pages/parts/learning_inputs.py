"""What a person enters on the page Learning under a cap, as one validated parameters object."""

from __future__ import annotations

import math

import streamlit as st

from dpcore import wording
from dpcore.bias import BiasTerm
from dpcore.contributions import MAX_SIZE, ContributionHistogram
from dpcore.errors import InvalidInput, Problem
from dpcore.learning import LearningParameters, PrivacyForm
from pages.parts import inputs, keys, session, start_chart
from pages.parts.text import plain

FORM_NAMES = {
    PrivacyForm.QUADRATIC: "Quadratic",
    PrivacyForm.LINEAR: "Linear",
    PrivacyForm.OWN: "Power",
}
TERMS = (BiasTerm.TIGHTEST, *(term for term in BiasTerm if term is not BiasTerm.TIGHTEST))
NO_CAP = 0
DEFAULT_POWER = 1.5
DEFAULTS = LearningParameters(inputs.DEFAULT_EPSILON)


def read() -> LearningParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    _defaults()
    with st.container(border=True, key="learning_inputs"):
        _draw_bias()
        _draw_terms()
        parameters = _parameters()
        if parameters is not None:
            st.caption(_what_is_used(parameters))
    return parameters


def _defaults() -> None:
    state = st.session_state
    for key, value in (
        (keys.LEARNING_BIAS, DEFAULTS.bias),
        (keys.LEARNING_VARIANCE, DEFAULTS.loss_variance),
        (keys.LEARNING_DIMENSION, DEFAULTS.vc_dimension),
        (keys.LEARNING_FAILURE, DEFAULTS.failure_probability),
        (keys.LEARNING_PRIVACY, DEFAULTS.privacy_form),
        (keys.LEARNING_CONSTANT, DEFAULTS.privacy_constant),
        (keys.LEARNING_FINITE, DEFAULTS.finite_sample_constant),
        (keys.LEARNING_OWN_CAP, DEFAULTS.own_cap),
    ):
        state.setdefault(key, value)
    for key, value in (
        (keys.LEARNING_ALPHA, DEFAULTS.alpha),
        (keys.LEARNING_ROWS, DEFAULTS.population_rows),
        (keys.LEARNING_SAMPLES, DEFAULTS.draws),
    ):
        # Cleared, they go back: their fields stand in tabs, which a refused question does not draw.
        if state.get(key) is None:
            state[key] = value
    if state[keys.LEARNING_PRIVACY] is not PrivacyForm.OWN and state.get(keys.LEARNING_POWER) is None:
        state[keys.LEARNING_POWER] = DEFAULT_POWER


def _draw_bias() -> None:
    columns = st.columns([5, 5, 3, 3])
    with columns[0]:
        term = st.selectbox(
            "Bound on the bias",
            TERMS,
            key=keys.LEARNING_BIAS,
            format_func=lambda one: f"{one.title} ({one.group})",
            persist_state="session",
            help="How the bias of capping is bounded. What each bound needs to know stands below.",
        )
    with columns[1]:
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
        )
    with columns[2]:
        st.number_input(
            "VC dimension d",
            min_value=0,
            max_value=10**9,
            value=None,
            step=1,
            key=keys.LEARNING_DIMENSION,
            persist_state="session",
            help="Of the models that the learner chooses from. 0 leaves the finite-sample term out.",
        )
    with columns[3]:
        st.number_input(
            "Failure probability δ",
            min_value=1e-12,
            max_value=0.999,
            value=None,
            step=None,
            format="%g",
            key=keys.LEARNING_FAILURE,
            persist_state="session",
            help="The bound holds with probability 1 − δ. Not the δ of (ε, δ)-differential privacy.",
        )


def _draw_terms() -> None:
    columns = st.columns([5, 4, 4, 3])
    with columns[0]:
        form = st.segmented_control(
            "Privacy term F",
            list(FORM_NAMES),
            key=keys.LEARNING_PRIVACY,
            format_func=FORM_NAMES.__getitem__,
            required=True,
            persist_state="session",
            help="How the learner's error grows with the largest share of a user. Quadratic: output perturbation "
            "(Chaudhuri et al. 2011).",
        )
    with columns[1]:
        st.number_input(
            "Privacy constant C",
            min_value=0.0,
            max_value=1e12,
            value=None,
            step=None,
            format="%g",
            key=keys.LEARNING_CONSTANT,
            persist_state="session",
            help="Depends on the learner: dimension, smoothness, regularisation. 1 unless you know better.",
        )
    if form is PrivacyForm.OWN:
        with columns[3]:
            st.number_input(
                "Power of F",
                min_value=1e-3,
                max_value=10.0,
                value=None,
                step=None,
                format="%g",
                key=keys.LEARNING_POWER,
                persist_state="session",
                help="F = C (largest share / ε) to this power.",
            )
    with columns[2]:
        st.number_input(
            "Finite-sample constant",
            min_value=0.0,
            max_value=1e6,
            value=None,
            step=None,
            format="%g",
            key=keys.LEARNING_FINITE,
            persist_state="session",
            help="The constant that O(·) hides in the finite-sample term. 1 unless you know better.",
        )


FIELD_NAMES = {
    keys.EPSILON: "The privacy budget ε",
    keys.LEARNING_DIMENSION: "The VC dimension d",
    keys.LEARNING_FAILURE: "The failure probability δ",
    keys.LEARNING_CONSTANT: "The privacy constant C",
    keys.LEARNING_POWER: "The power of F",
    keys.LEARNING_FINITE: "The finite-sample constant",
}


def _parameters() -> LearningParameters | None:
    state = st.session_state
    form = state[keys.LEARNING_PRIVACY]
    needed = [key for key in FIELD_NAMES if key != keys.LEARNING_POWER or form is PrivacyForm.OWN]
    try:
        empty = [f"{FIELD_NAMES[key]} is empty" for key in needed if state[key] is None]
        if empty:
            raise InvalidInput([Problem(what, remedy="Enter a number") for what in empty])
        return LearningParameters(
            epsilon=state[keys.EPSILON],
            bias=state[keys.LEARNING_BIAS],
            loss_variance=state[keys.LEARNING_VARIANCE],
            vc_dimension=state[keys.LEARNING_DIMENSION],
            failure_probability=state[keys.LEARNING_FAILURE],
            privacy_form=form,
            privacy_constant=state[keys.LEARNING_CONSTANT],
            privacy_power=state[keys.LEARNING_POWER] if form is PrivacyForm.OWN else None,
            finite_sample_constant=state[keys.LEARNING_FINITE],
            own_cap=state[keys.LEARNING_OWN_CAP],
            alpha=state[keys.LEARNING_ALPHA],
            population_rows=state[keys.LEARNING_ROWS],
            draws=state[keys.LEARNING_SAMPLES],
        )
    except InvalidInput as refused:
        st.error("\n".join(f"- {plain(p.sentence, 300)}" for p in refused.problems), icon=":material/error:")
        return None


def _what_is_used(parameters: LearningParameters) -> str:
    term, privacy = parameters.bias, parameters.privacy
    factor = privacy.constant * math.log(3.0 / parameters.failure_probability) ** privacy.log_power
    form = f"F = {wording.number(factor)} (share/ε)^{privacy.power:g}"
    if privacy.log_power:
        form += f", that is C ln²(3/δ) (share/ε)² with C = {wording.number(privacy.constant)}"
    words = [f"Bias at most {term.formula}. It needs: {term.needs[:1].lower()}{term.needs[1:]}."]
    if term is BiasTerm.TIGHTEST and parameters.loss_variance == 0.25:
        words.append("At Var(H) = 1/4 the worst case is always the smaller of the two.")
    if not term.needs_variance:
        words.append("Var(H) is not used.")
    words.append(f"{form}; share is the largest that one user holds of what is kept.")
    return plain_math(" ".join(words))


def plain_math(text: str) -> str:
    """A formula in text, its marks not taken for Markdown."""
    return text.replace("_", "\\_").replace("^", "\\^").replace("*", "\\*").replace("~", "\\~")


def cap_row(histogram: ContributionHistogram) -> None:
    """The person's own cap: a slider and a field in rows per user, kept in step, and tau_0 beside them.

    tau_0 is shown, not entered: a third field that answered would take the value it had before a quick second
    press of the slider for an entry of its own, and undo the press.
    """
    state, n = st.session_state, histogram.num_rows
    own = state[keys.LEARNING_OWN_CAP]
    steps = (NO_CAP, *start_chart.bound_steps(histogram))
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
    columns[1].number_input(
        "τ, exactly",
        min_value=1,
        max_value=MAX_SIZE,
        value=None,
        step=1,
        key=keys.LEARNING_OWN_CAP,
        persist_state="session",
        placeholder="rows",
    )
    columns[2].caption("τ₀ = τ/n", help=f"The cap as a share of all {wording.number(n)} rows.")
    columns[2].markdown("–" if own is None else f"**{wording.number(min(own / n, 1.0))}**")


def _slider_moved(slider: str) -> None:
    st.session_state[keys.LEARNING_OWN_CAP] = st.session_state[slider] or None
