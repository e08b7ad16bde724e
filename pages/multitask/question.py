"""Many tasks: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.multitask.parameters import MultitaskParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="multitask",
    title="Many tasks",
    icon=":material/account_tree:",
    url_path="many-tasks",
    group="Models",
    sentence="I train one model per task: how should each user's privacy budget be divided among their tasks?",
    release="One model per task",
    parameters=MultitaskParameters,
    fields={
        "delta": Field(From.PUBLIC),
        "source": Field(From.PUBLIC),
        "loss": Field(From.PUBLIC),
        "exponent": Field(From.DATA),
        "fit": Field(From.PUBLIC),
        "log_constant": Field(From.PUBLIC),
        "max_tasks": Field(From.DATA),
        "num_users": Field(From.PUBLIC),
        "num_tasks": Field(From.PUBLIC),
        "tasks_per_user": Field(From.PUBLIC),
        "skew": Field(From.PUBLIC),
        "zipf_exponent": Field(From.PUBLIC),
        "user_spread": Field(From.PUBLIC),
        "graph_seed": Field(From.PUBLIC),
        "count_share": Field(From.PUBLIC),
        "count_max_tasks": Field(From.DATA),
        "count_covers": Field(From.PUBLIC),
        "count_seed": Field(From.PUBLIC),
        "experiment_epsilons": Field(From.PUBLIC),
        "experiment_users": Field(From.PUBLIC),
        "experiment_repeats": Field(From.PUBLIC),
        "experiment_seed": Field(From.PUBLIC),
    },
    also={
        "tabs": From.PUBLIC,
        "parts": From.DATA,
        "source_for": From.DATA,
        "optimum_job": From.DATA,
        "experiment_job": From.DATA,
        "download": From.DATA,
        "relative": From.DATA,
    },
)
