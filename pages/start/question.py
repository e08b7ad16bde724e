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
    lead="Every differentially private release bounds each user's contribution: **too low a bound loses data, too high "
    "a bound adds noise.**",
    heading="How much may one user contribute?",
    sentence="What is this about, and which page answers my question?",
    parameters=StartParameters,
    fields={
        "bound": Field(renewed=True, label="Upper bound on contributions per user (rows)", width=420),
    },
    also={
        "several": From.PUBLIC,
        "who": From.PUBLIC,
        "release": From.PUBLIC,
    },
)
