"""User-level DP-SGD: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.examples_per_user.parameters import ExamplesParameters
from pages.shared.base.question import SIMULATION, Facet, FieldOrigin, Question

QUESTION = Question(
    name="examples_per_user",
    title="User-level DP-SGD",
    icon=":material/group_add:",
    url_path="examples-per-user",
    navigation_group="Models",
    lead_text="You train a model by DP-SGD and protect users. **How many examples of one user may it see?**",
    result_noun=SIMULATION,
    question_sentence="I train by DP-SGD: how many examples of one user may the model see?",
    release_phrase="A model trained by DP-SGD",
    answering_facets=(Facet.ROWS,),
    parameters_type=ExamplesParameters,
    origins_by_entry=FieldOrigin.DATA.each("exact_job", "exact_job_earlier", "owners_job", "owners_bound")
    | FieldOrigin.PUBLIC.each("tabs"),
)
