"""Choose privately: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.private_choice.parameters import PrivateParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="private_choice",
    title="Choose privately",
    icon=":material/shield_lock:",
    url_path="choose-privately",
    group="Privacy",
    sentence="My data are private: how do I choose the bound without leaking, and what does that cost?",
    parameters=PrivateParameters,
    fields={
        "wanted": Field(From.PUBLIC),
        "epsilon_choice": Field(From.PUBLIC),
        "relation": Field(From.PUBLIC),
        "noise": Field(From.PUBLIC),
        "delta": Field(From.PUBLIC),
        # What the mechanism takes for public is public: nobody may read these off private data.
        "largest": Field(From.PUBLIC),
        "variance_share": Field(From.DATA),
        "share": Field(From.PUBLIC),
        "margin": Field(From.PUBLIC),
        "guess": Field(From.DATA),
        "factor": Field(From.PUBLIC),
    },
    also={
        "curves_job": From.DATA,
        "choices": From.PUBLIC,
        "empty_copy": From.PUBLIC,
        "refused": From.DATA,
    },
)
