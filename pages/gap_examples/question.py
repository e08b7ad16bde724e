"""How much can weights gain?: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.gap_examples import GapParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="gap_examples",
    title="How much can weights gain?",
    icon=":material/trophy:",
    url_path="gap",
    group="Understand",
    sentence="How much better than the best cap can smooth weights be, on my data and on any?",
    parameters=GapParameters,
    fields={
        "noise": Field(From.PUBLIC),
        "noise_variance": Field(From.VALUES),
        "g": Field(From.PUBLIC),
        "light_users": Field(From.DATA),
        "heavy_size": Field(From.DATA),
        "light_size": Field(From.DATA),
        "noise_per_user": Field(From.DATA),
        "table": Field(From.DATA),
        "table_noise_ratio": Field(From.DATA),
        "num_groups": Field(From.PUBLIC),
        "evaluations": Field(From.PUBLIC),
        "seed": Field(From.PUBLIC),
        "example": Field(From.PUBLIC),
        "regression_g": Field(From.PUBLIC),
        "simulated": Field(From.PUBLIC),
        "runs": Field(From.PUBLIC),
    },
    also={
        "tabs": From.PUBLIC,
        "table_base": From.DATA,
        "table_round": From.DATA,
        "table_editor_": From.DATA,
        "search_job": From.DATA,
        "simulation_job": From.DATA,
    },
)
