"""Heavy users: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.toy.parameters import ToyParameters
from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="toy",
    title="Heavy users",
    icon=":material/weight:",
    url_path="heavy-users",
    navigation_group="Models",
    lead_text="You release how many users have many rows. **How far off is the count?**",
    question_sentence="I release how many users have many rows: how far off is the count?",
    release_phrase="A count of heavy users",
    parameters_type=ToyParameters,
    origins_by_entry={"job": FieldOrigin.DATA, "tabs": FieldOrigin.PUBLIC},
)
