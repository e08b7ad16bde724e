"""What a person enters on the page Learning under a bound, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.learning import LearningParameters, PrivacyForm
from pages.learning.question import POPULATION, QUESTION
from pages.shared.fields import fields
from pages.shared.screen import layout

IN_WORDS = """
**Risk** is the expected loss of a model, between 0 and 1. **Var(H)** is the variance over users of a model's risk: 0
where all users are alike, at most 1/4. The **VC dimension d** says how rich the models are that the learner chooses
from: linear classifiers with 9 features have d = 10.
"""


def read(places: layout.Places) -> LearningParameters | None:
    """Show the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    own = st.session_state[QUESTION.key("privacy_form")] is PrivacyForm.OWN
    if not own:
        fields.refill(QUESTION, "privacy_power")
    with places.line:
        takes_variance = st.session_state[QUESTION.key("bias")].needs_variance
        fields.draw(QUESTION, "loss_variance", disabled=not takes_variance)
        fields.draw(QUESTION, "privacy_constant")
    with places.more("learning_more"):
        fields.draw_all(QUESTION, "bias", "privacy_form")
        if own:
            fields.draw(QUESTION, "privacy_power")
        fields.draw_all(QUESTION, "vc_dimension", "finite_sample_constant", "failure_probability")
        st.caption(IN_WORDS)
    with places.notes:
        parameters: LearningParameters | None = fields.build(
            # Those of the population stand in tabs, which a refused question does not show.
            QUESTION,
            unused=() if own else ("privacy_power",),
            aside=(*QUESTION.own, "public_rows", *POPULATION),
        )
    return parameters
