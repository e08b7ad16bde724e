"""Heavy users: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.toy.parameters import Shown, ToyParameters
from pages.shared.base.question import Field, From, Question, of_values, public

QUESTION = Question(
    name="toy",
    title="Heavy users",
    icon=":material/weight:",
    url_path="heavy-users",
    group="Models",
    lead="You release how many users have many rows. **How far off is the count?**",
    sentence="I release how many users have many rows: how far off is the count?",
    release="A count of heavy users",
    parameters=ToyParameters,
    fields={
        "shown": public("Show", options={Shown.USERS: "Users", Shown.SHARE: "Their share"}),
        "rows": Field("More rows than", name="The number of rows", report_label="Rows", is_integer=True),
        "usual_value": of_values("A usual value", name="The usual value", initial=2.5),
        "own_rows": Field("Compare with", renewed=True, is_integer=True),
    },
    also={"job": From.DATA, "tabs": From.PUBLIC},
)
