"""Paper comparison: the declaration of the page."""

from __future__ import annotations

from pages.shared.base.question import FieldOrigin, Question

QUESTION = Question(
    name="papers",
    title="Paper comparison",
    icon=":material/science:",
    url_path="reproduce",
    navigation_group="The trade-off, live",
    lead_text="Four papers published these figures. **Do our numbers agree with theirs?**",
    shown_data_name="each paper's own",
    question_sentence="How close are our figures and theorems to those of the papers?",
    origins_by_entry=FieldOrigin.PUBLIC.each("figure", "paper", "open_figures", "open_items"),
)
