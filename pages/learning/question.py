"""Bias curves over τ₀: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.learning import LearningParameters
from pages.shared.base.question import Facet, FieldOrigin, Question

QUESTION = Question(
    name="learning",
    title="Bias curves over τ₀",
    icon=":material/model_training:",
    url_path="learning",
    group="The trade-off, live",
    lead="You train a model with an ε-differentially private learner. "
    "**How many rows may one user contribute?**",
    chooses_bound=True,
    sentence="I train a model with a private learner: how many rows of one user may it see?",
    release_phrase="A model (trained with a private learner)",
    answers_from=(Facet.ROWS,),
    parameters=LearningParameters,
    other_origins=FieldOrigin.DATA.each("whose_cap", "draws_job", "cost_job")
    | FieldOrigin.PUBLIC.each("tabs"),
)
