"""Data: the declaration of the page."""

from __future__ import annotations

from pages.shared.base.question import FieldOrigin, Question

UPLOAD_ENTRY_NAMES = (
    *("file_", "round", "table", "problems", "pairs", "kind", "role_", "public", "missing"),
    *("copies", "names", "further", "further_task", "contribution", "path", "job", "stopped"),
    *("people", "rule", "rule_default", "constant", "saw_missing", "share", "separator", "sheet", "files"),
    *("further_values", "yes", "filters", "date", "span", "releases", "person_epsilon"),
)
"""Session keys of the upload of a table."""
OTHER_ENTRY_NAMES = (
    *("look_job", "session_file_", "session_round", "session_opened"),
    *("engine", "engine_table", "engine_open", "engine_lower", "engine_upper", "engine_bins"),
)
SAMPLE_ENTRY_NAMES = ("data_source", "sample", "generator", "generator_field_", "generator_problems")

QUESTION = Question(
    name="your_data",
    title="Data",
    icon=":material/table_chart:",
    url_path="your-data",
    navigation_group="",
    lead_text="**How many rows does each user have?**",
    question_sentence="How many rows does each user have, and how uneven is that?",
    origins_by_entry=FieldOrigin.PUBLIC.each(*SAMPLE_ENTRY_NAMES)
    | FieldOrigin.OWN_DATA.each(*(f"upload_{name}" for name in UPLOAD_ENTRY_NAMES), *OTHER_ENTRY_NAMES),
)
