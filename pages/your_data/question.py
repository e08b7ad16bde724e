"""Your data: the declaration of the page."""

from __future__ import annotations

from pages.shared.base.question import FieldOrigin, Question

UPLOAD_NAMES = (
    *(
        "file_",
        "round",
        "table",
        "problems",
        "pairs",
        "kind",
        "role_",
        "public",
        "missing",
        "copies",
        "names",
    ),
    *("further", "further_task", "contribution", "path", "job", "stopped"),
)
"""What the upload of a table keeps in the session."""

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
    | FieldOrigin.OWN_DATA.each(*(f"upload_{name}" for name in UPLOAD_NAMES))
    | FieldOrigin.OWN_DATA.each("look_job", "session_file_", "session_round", "session_opened")
    | FieldOrigin.OWN_DATA.each("engine", "engine_table", "engine_open"),
)
