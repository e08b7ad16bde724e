"""What a person enters on the page Factorisation, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.common.checks import Problems
from dpcore.common.parameters import Place
from dpcore.dataset import Dataset
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from pages.factorisation.question import GENERATOR, QUESTION, RANGE
from pages.shared.base import demo
from pages.shared.fields import fields
from pages.shared.screen import inputs, layout
from pages.shared.session import stand_ins

SERVED_RATINGS = 600_000
SERVED_REPEATS = 3
"""What a public demo trains at most, about the defaults."""


def has_ratings(data: Dataset) -> bool:
    """Return whether the data hold a value for pairs of users and items."""
    return data.pairs is not None and data.pairs.sums is not None


def read(data: Dataset, places: layout.Places) -> FactorisationParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    fields.start(QUESTION)
    state, key = st.session_state, QUESTION.key
    if state[key("source")] is RatingSource.DATA and not has_ratings(data):
        state[key("source")] = RatingSource.GENERATED
    unused = inputs.start(QUESTION)
    offered = list(RatingSource) if has_ratings(data) else [RatingSource.GENERATED]
    with places.line:
        fields.draw_all(QUESTION, "max_items", "exponent")
    ends = {key("lowest"): "the lowest rating", key("highest"): "the highest rating"}
    empty = [name for end, name in ends.items() if state[end] is None]
    with places.more("factorisation_more"):
        fields.draw(QUESTION, "source", options=offered)
        if not has_ratings(data):
            st.caption("The data in use hold no ratings of items, so these are generated.")
            stand_ins.draw_data_link("Bring ratings")
        fields.draw(QUESTION, "algorithm")
        for names in (
            ("steps", "gradient_bound"),
            () if empty else RANGE,
            *(GENERATOR[:2], GENERATOR[2:4], GENERATOR[4:]),
            ("dimension", "sweeps"),
            ("user_ridge", "ridge_to_noise"),
            ("count_share", "delta"),
        ):
            _beside(*(name for name in names if name not in unused))
        fields.draw(QUESTION, "train_epsilons")
        _beside("repeats", "train_seed")
    with places.notes:
        if data.pairs is not None and not has_ratings(data):
            st.markdown(
                ":small[The data in use have groups but no ratings of them: **these are generated**.]"
            )
        if state[key("source")] is RatingSource.DATA:
            stand_ins.explain_cleared(ends)
            if empty:
                # Below the line, where they are seen; once both are filled they stand under *More settings*.
                fields.draw_row(QUESTION, *RANGE)
                st.info(
                    f"**What range can a rating have?** Enter {' and '.join(empty)}, from what a rating is by design. "
                    "Do not read it off private data. The answer follows.",
                    icon=":material/straighten:",
                )
                return None
        parameters: FactorisationParameters | None = fields.build(
            QUESTION, unused=unused, optional=QUESTION.placed(Place.TAB)
        )
        return parameters if parameters is None or _fits_here(parameters) else None


def _beside(*names: str) -> None:
    for column, name in zip(st.columns(2), names, strict=False):
        with column:
            fields.draw(QUESTION, name)


def _fits_here(parameters: FactorisationParameters) -> bool:
    """Return whether a public demo may train this; says what is too large where it may not."""
    if not demo.is_served():
        return True
    problems = Problems()
    of = parameters.generator
    if of is not None and of.num_users * of.ratings_per_user > SERVED_RATINGS:
        problems.add(
            f"this public demo generates at most {SERVED_RATINGS:,} ratings",
            remedy="Take fewer users or fewer ratings per user, or run the app on your own computer",
        )
    if parameters.repeats > SERVED_REPEATS:
        problems.add(f"this public demo trains at most {SERVED_REPEATS} seeds", remedy="Take fewer")
    if problems.entries:
        fields.say(problems.entries)
    return not problems.entries
