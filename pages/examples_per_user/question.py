"""User-level DP-SGD: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.examples_per_user.parameters import ExamplesParameters
from pages.shared.base.question import SIMULATION, Facet, FieldOrigin, Question

QUESTION = Question(
    name="examples_per_user",
    title="User-level DP-SGD",
    icon=":material/group_add:",
    url_path="examples-per-user",
    group="Models",
    lead="You train a model by DP-SGD and protect users. **How many examples of one user may it see?**",
    result_noun=SIMULATION,
    sentence="I train by DP-SGD: how many examples of one user may the model see?",
    release_phrase="A model trained by DP-SGD",
    answers_from=(Facet.ROWS,),
    parameters=ExamplesParameters,
    other_origins=FieldOrigin.DATA.each("exact_job", "exact_job_earlier", "owners_job", "owners_bound")
    | FieldOrigin.PUBLIC.each("tabs"),
)
