"""Your data: the declaration of the page."""

from __future__ import annotations

from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="your_data",
    title="Your data",
    icon=":material/table_chart:",
    url_path="your-data",
    group="",
    lead="Most questions need only **how many users have how many rows**.",
    sentence="How many rows does each user have, and how uneven is that?",
    also=FieldOrigin.PUBLIC.each(
        "data_source", "sample", "generator", "generator_field_", "generator_problems"
    )
    | FieldOrigin.OWN_DATA.each(
        "upload_file_",
        "upload_round",
        "upload_table",
        "upload_problems",
        "upload_pairs",
        "upload_kind",
        "upload_role_",
        "upload_public",
        "upload_missing",
        "upload_copies",
        "upload_names",
        "upload_further",
        "upload_further_task",
        "upload_contribution",
        "upload_path",
        "upload_job",
        "look_job",
        "upload_stopped",
        "session_file_",
        "session_round",
        "session_opened",
        "engine",
        "engine_table",
        "engine_open",
    ),
)
