"""Home: the declaration of the page."""

from __future__ import annotations

from dpcore.start.parameters import StartParameters
from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="start",
    title="Home",
    icon=":material/home:",
    url_path="",
    group="",
    lead="**Low bounds lose data, high ones add noise.**",
    heading="How much may one user contribute?",
    sentence="How does the app work, and which page answers my question?",
    parameters=StartParameters,
    other_origins=FieldOrigin.PUBLIC.each("of", "several", "kind", "release"),
)
