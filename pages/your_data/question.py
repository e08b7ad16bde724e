"""Your data: what it asks, and what a person enters."""

from __future__ import annotations

from pages.shared.question import From, Question

QUESTION = Question(
    name="your_data",
    title="Your data",
    icon=":material/table_chart:",
    url_path="your-data",
    group="",
    lead="Most questions need only **how many users have how many rows**.",
    sentence="How many rows does each user have, and how uneven is that?",
    also={
        "data_source": From.PUBLIC,
        "sample": From.PUBLIC,
        "generator": From.PUBLIC,
        "generator_field_": From.PUBLIC,
        "generator_problems": From.PUBLIC,
        "upload_": From.OWN_DATA,
        "upload_round": From.OWN_DATA,
        "upload_table": From.OWN_DATA,
        "upload_problems": From.OWN_DATA,
        "upload_pairs": From.OWN_DATA,
        "upload_kind": From.OWN_DATA,
        "upload_role_": From.OWN_DATA,
        "upload_public": From.OWN_DATA,
        "upload_missing": From.OWN_DATA,
        "upload_copies": From.OWN_DATA,
        "upload_further": From.OWN_DATA,
        "upload_further_task": From.OWN_DATA,
        "upload_contribution": From.OWN_DATA,
        "upload_path": From.OWN_DATA,
        "upload_job": From.OWN_DATA,
        "look_job": From.OWN_DATA,
        "upload_stopped": From.OWN_DATA,
        "session_": From.OWN_DATA,
        "session_round": From.OWN_DATA,
        "session_opened": From.OWN_DATA,
        "engine": From.OWN_DATA,
        "engine_table": From.OWN_DATA,
        "engine_open": From.OWN_DATA,
    },
)
