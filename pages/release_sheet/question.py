"""Release sheet: the declaration of the page."""

from __future__ import annotations

from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="release_sheet",
    title="Release sheet",
    icon=":material/assignment:",
    url_path="release-sheet",
    navigation_group="Choose a bound",
    lead_text="**What do you state with a released number, so that readers can judge it?**",
    question_sentence="How do I document a released number, so that readers can judge it?",
    origins_by_entry=FieldOrigin.PUBLIC.each("release_") | FieldOrigin.DATA.each("number_"),
    is_release_sheet=True,
)
