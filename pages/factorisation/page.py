"""Recommender: who gets a user's budget when a recommender is learned, and whether that beats item means."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dpcore.answer import Answer
from dpcore.common.checks import Problems
from dpcore.dataset import Dataset
from dpcore.factorisation.answer import build_answer, words
from dpcore.factorisation.answer.answer import show_training, solve_beside_page
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from dpcore.report.content import Line
from dpcore.report.script import CodeBuilder, ScriptSource
from pages.factorisation.question import QUESTION, RANGE_FIELDS
from pages.shared.fields import fields
from pages.shared.render import question_page
from pages.shared.render.question_page import Page
from pages.shared.report import report_content
from pages.shared.screen import layout
from pages.shared.screen.sections import Renderer
from pages.shared.server import access
from pages.shared.session import session

SERVED_RATINGS, SERVED_REPEATS = 600_000, 3
"""Limits of a public demo."""
FIELDS_IN_TABS = ("item", "chosen_from", "unobserved")
"""Fields of tabs."""
FIELDS_IN_ONE_ROW = (
    ("steps", "gradient_bound"),
    RANGE_FIELDS,
    ("num_users", "num_items"),
    ("ratings_per_user", "rank"),
    ("dimension", "sweeps"),
    ("user_ridge", "ridge_to_noise"),
    ("count_share", "delta"),
)
"""Fields that stand beside each other."""


def write_data_cell(code_builder: CodeBuilder, source: ScriptSource, public_only: bool) -> str:
    """Return the cell of generated ratings, which is the same for all: no data."""
    return "data = None  # Ratings are generated."


class FactorisationPage(Page):
    """The page *Recommender*."""

    def read_inputs(self, slots: layout.PageSlots, dataset: Dataset) -> FactorisationParameters | None:
        """Draw the inputs; return None until they are valid and, for ratings of the data, their range is entered."""
        end_name_by_key = {QUESTION.get_key(end_name): f"the {end_name} rating" for end_name in RANGE_FIELDS}
        has_ratings = dataset.pairs is not None and dataset.pairs.sums is not None
        source_options = list(RatingSource) if has_ratings else [RatingSource.GENERATED]

        def list_missing_ends() -> list[str]:
            """List in words the ends of the range that are not entered."""
            return [
                end_name for end_key, end_name in end_name_by_key.items() if st.session_state[end_key] is None
            ]

        def draw_source_field() -> None:
            """Draw the choice of the source, and a way to bring ratings if the data have none."""
            fields.draw_field(QUESTION, "source", offered_options=source_options)
            if not has_ratings:
                st.caption("The data in use hold no ratings, so these are generated.")
                session.draw_data_link("Bring ratings")

        def draw_training_fields() -> None:
            """Draw the settings of the training."""
            fields.draw_field(QUESTION, "train_epsilons")
            fields.draw_field_row(QUESTION, "repeats", "train_seed", width_shares=(1, 1))

        def ask_range(unused_names: Collection[str]) -> bool:
            """Ask for the range and return True if it is used and an end is missing; else return False.

            If the range is used, also say which ends a release has emptied.
            """
            if RANGE_FIELDS[0] in unused_names:
                return False
            session.explain_cleared(end_name_by_key)
            if not list_missing_ends():
                return False
            # Below the line, where they are seen; once both are filled they stand under *More settings*.
            fields.draw_field_row(QUESTION, *RANGE_FIELDS)
            ends_text = " and ".join(list_missing_ends())
            question_text = f"**What range can a rating have?** Enter {ends_text} by design, not from data."
            st.info(question_text, icon=":material/straighten:")
            return True

        draw_row = functools.partial(fields.draw_field_row, QUESTION, width_shares=(1, 1))
        row_widget_by_field = {p[0]: functools.partial(draw_row, *p) for p in FIELDS_IN_ONE_ROW}
        parameters: FactorisationParameters | None = question_page.read_inputs(
            QUESTION,
            slots,
            options_by_field={"source": source_options},
            is_hidden=lambda name: name in RANGE_FIELDS and bool(list_missing_ends()),
            widgets_by_field={
                "source": draw_source_field,
                **row_widget_by_field,
                **{field_pair[1]: lambda: None for field_pair in FIELDS_IN_ONE_ROW},
            },
            draw_more=draw_training_fields,
            ask_first=ask_range,
        )
        return parameters

    def name_data(self, data: Dataset, parameters: FactorisationParameters) -> str:
        """Return what the sidebar calls generated ratings; empty for ratings of the data in use."""
        return "generated ratings" if parameters.source is RatingSource.GENERATED else ""

    def refuse(self, slots: layout.PageSlots, dataset: Dataset, parameters: FactorisationParameters) -> bool:
        """Show in a public demo what would train for too long, and return True if anything does; elsewhere False."""
        if not access.is_served():
            return False
        problems, generator = Problems(), parameters.generator
        if generator is not None and generator.num_users * generator.ratings_per_user > SERVED_RATINGS:
            problems.add(
                f"this public demo generates at most {SERVED_RATINGS:,} ratings",
                remedy="Take fewer, or run your own",
            )
        if parameters.repeats > SERVED_REPEATS:
            problems.add(f"this public demo trains at most {SERVED_REPEATS} seeds", remedy="Take fewer")
        if problems.entries:
            with slots.notes:
                fields.show_problems(problems.entries)
        return bool(problems.entries)

    def draw_last(self, slots: layout.PageSlots, answer: Answer) -> None:
        """Show, below the card, the section that trains recommenders on the ratings."""
        with slots.answer:
            Renderer(QUESTION, answer, session.get_dataset()).show(show_training)

    def build_source(self, answer: Answer, data: Any) -> ScriptSource:
        """Build the source of the script: the rows, or none where ratings are generated."""
        script_source = report_content.build_session_source(needs_rows=True, disclosure=answer.disclosure)
        if answer.parameters.source is RatingSource.DATA:
            return script_source
        return replace(script_source, needs_rows=False, write_data_cell=write_data_cell)

    def summarise(self, answer: Answer, data: Any) -> tuple[Line, ...]:
        """Return lines of the report that summarise the ratings, those of the data or the generated ones."""
        dataset = data if answer.parameters.source is RatingSource.DATA else None
        return words.summarise_ratings(answer.solution, dataset)

    def list_report_fields(self, answer: Answer) -> Sequence[str]:
        """List the fields for the report, without those that do not apply and those of tabs."""
        unused_names = {*answer.parameters.unused_names, *FIELDS_IN_TABS}
        return [field_name for field_name in QUESTION.fields if field_name not in unused_names]


FactorisationPage(QUESTION, solve_beside_page, build_answer, has_axis_controls=False).show()
