"""Release sheet: the declaration of the page."""

from __future__ import annotations

from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="release_sheet",
    title="Release sheet",
    icon=":material/assignment:",
    url_path="release-sheet",
    group="Choose a bound",
    lead="**What do you state with a released number, so that readers can judge it?**",
    sentence="How do I document a released number, so that readers can judge it?",
    other_origins=FieldOrigin.PUBLIC.each("release_") | FieldOrigin.DATA.each("number_"),
    states_releases=True,
)
