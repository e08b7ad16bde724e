"""Learning under a cap: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.learning import LearningParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="learning",
    title="Learning under a cap",
    icon=":material/model_training:",
    url_path="learning",
    group="Models",
    sentence="I train a model with a private learner: how many rows of one user may it see?",
    release="A model (trained with a private learner)",
    parameters=LearningParameters,
    fields={
        "bias": Field(From.PUBLIC),
        "loss_variance": Field(From.DATA),
        "vc_dimension": Field(From.PUBLIC),
        "failure_probability": Field(From.PUBLIC),
        "privacy_form": Field(From.PUBLIC),
        "privacy_constant": Field(From.PUBLIC),
        "privacy_power": Field(From.PUBLIC),
        "finite_sample_constant": Field(From.PUBLIC),
        "own_cap": Field(renewed=True),
        "alpha": Field(From.DATA),
        "population_rows": Field(From.DATA),
        "draws": Field(From.PUBLIC),
    },
    also={
        "cap_slider_": From.DATA,
        "whose_cap": From.DATA,
        "tabs": From.PUBLIC,
        "draws_job": From.DATA,
        "cost_job": From.DATA,
        "cost_again": From.DATA,
    },
)
