"""Home: the declaration of the page."""

from __future__ import annotations

from dpcore.start.parameters import StartParameters
from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="start",
    title="Home",
    icon=":material/home:",
    url_path="",
    navigation_group="",
    lead_text="**Low bounds lose data, high ones add noise.**",
    page_heading="How much may one user contribute?",
    question_sentence="How does the app work, and which page answers my question?",
    parameters_type=StartParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each("of", "several", "kind", "release"),
)
