"""Start: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.start.parameters import StartParameters
from pages.shared.question import Field, From, Question

QUESTION = Question(
    name="start",
    title="Start",
    icon=":material/home:",
    url_path="",
    group="",
    sentence="What is this about, and which page answers my question?",
    parameters=StartParameters,
    fields={
        "bound": Field(renewed=True, label="Upper bound on contributions per user (rows)"),
    },
    also={
        "several": From.PUBLIC,
        "who": From.PUBLIC,
        "release": From.PUBLIC,
    },
)
