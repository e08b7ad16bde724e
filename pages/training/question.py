"""Classifier: what it asks, and what a person enters."""

from __future__ import annotations

from dpcore.training.account import Method
from dpcore.training.mechanism import Pace
from dpcore.training.parameters import TrainingParameters
from pages.shared.base.question import FieldOrigin, Question
from pages.shared.base.upload_entries import TABLE_ORIGINS

MAX_DEMO_USERS, MAX_DEMO_RUNS = 2_000, 20
"""Most users and runs in a public demo, whose visitors share two cores."""

# As on Linear regression, all settings belong to data that this page has for itself.
QUESTION = Question(
    name="training",
    title="Classifier",
    icon=":material/school:",
    url_path="training",
    navigation_group="Models",
    lead_text="You train a private classifier, and some users have many rows. **Which method is best, with which "
    "bound?**",
    question_sentence="I train a private classifier: by which method, and how much may one user bring?",
    release_phrase="A private classifier",
    has_own_data=True,
    own_file_entry_name="loaded",
    parameters_type=TrainingParameters,
    origins_by_entry=TABLE_ORIGINS
    | FieldOrigin.OWN_DATA.each(
        "range_", "proposed", "runs_job", "runs_job_earlier", "release_job", "draws", "spent", "refused"
    )
    | FieldOrigin.PUBLIC.each("measure", "over", "bounds_score", "tabs"),
    # Until a release could be bounded in several ways, it was by smooth weights, with steps as entered, on one split.
    replacements_by_former_name={"others": {"bounded_by": Method.SMOOTH, "pace": Pace.ENTERED, "splits": 1}},
)
