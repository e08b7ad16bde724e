"""Start: the declaration of the page."""

from __future__ import annotations

from dpcore.start.parameters import StartParameters
from dpcore.start.presets import UserPreset
from pages.shared.base.question import Field, From, Question, public

QUESTION = Question(
    name="start",
    title="Start",
    icon=":material/home:",
    url_path="",
    group="",
    lead="Every differentially private release bounds each user's contribution: **too low loses data, too high adds "
    "noise.**",
    heading="How much may one user contribute?",
    sentence="What is this about, and which page answers my question?",
    parameters=StartParameters,
    fields={
        "bound": Field(
            "Your own bound",
            "Rows per user. Drag the ring in the figure, or enter one.",
            renewed=True,
            placeholder="rows",
            width=150,
        ),
        "users": public(
            "Users",
            "The data in use, or invented users that show one thing clearly. Your data stay as they are.",
            options={
                UserPreset.IN_USE: "Data in use",
                UserPreset.EQUAL_SIZES: "Everyone alike",
                UserPreset.ONE_HEAVY: "One heavy user",
                UserPreset.POWER_LAW: "Power law",
                UserPreset.TWO_GROUPS: "Two groups",
            },
            as_list=True,
            width=150,
        ),
    },
    also=From.PUBLIC.each("of", "several", "kind", "release"),
)
