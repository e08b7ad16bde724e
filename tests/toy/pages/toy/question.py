"""Heavy users: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.toy.parameters import ToyParameters
from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="toy",
    title="Heavy users",
    icon=":material/weight:",
    url_path="heavy-users",
    group="Models",
    lead="You release how many users have many rows. **How far off is the count?**",
    sentence="I release how many users have many rows: how far off is the count?",
    release_phrase="A count of heavy users",
    parameters=ToyParameters,
    other_origins={"job": FieldOrigin.DATA, "tabs": FieldOrigin.PUBLIC},
)
