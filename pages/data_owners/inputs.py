"""What a person enters on Data owners, as one validated parameters object."""

from __future__ import annotations

import streamlit as st

from dpcore.data_owners.parameters import TRAINING_FIELDS, OwnersParameters
from dpcore.data_owners.study import Records
from pages.data_owners.question import QUESTION
from pages.shared.fields import fields
from pages.shared.screen import inputs, layout


def read(places: layout.Places) -> OwnersParameters | None:
    """Draw the inputs. Returns None, with the sentences on the page, where they do not fit together."""
    unused = inputs.start(QUESTION)
    with places.line:
        fields.draw_all(QUESTION, *(name for name in ("owners", "records", "shared") if name not in unused))
    with places.more("owners_more"):
        fields.draw_all(QUESTION, "source", "unit")
        with fields.row():
            if "records_per_user" not in unused:
                fields.draw(QUESTION, "records_per_user")
            fields.draw(QUESTION, "delta")
            if "owners" in unused:
                fields.draw(QUESTION, "own_cap")
        fields.draw_row(QUESTION, "personal", "personal_diameter", "shared_diameter")
        fields.draw_row(QUESTION, "lipschitz", "alone_constant", "sampling_constant", "privacy_constant")
        fields.draw_row(QUESTION, "x_axis", "y_axis")
    with places.notes:
        # Those of the training stand in a tab, which a refused question does not show.
        found: OwnersParameters | None = fields.build(QUESTION, unused=unused, optional=TRAINING_FIELDS)
    return found


def training_source() -> Records:
    """Return what is trained on."""
    found: Records = fields.draw(QUESTION, "train_on")
    return found


def training(given_owners: bool) -> bool:
    """Return the fields of the training and its button; returns whether it was pressed.

    Args:
        given_owners: Whether the records have owners, so that their number is no choice.
    """
    columns = st.columns([3, 3, 2, 2, 3], vertical_alignment="bottom")
    with columns[0]:
        fields.draw(QUESTION, "train_owners", disabled=given_owners)
    for column, name in zip(columns[1:4], ("train_epsilons", "train_runs", "train_seed"), strict=True):
        with column:
            fields.draw(QUESTION, name)
    return columns[4].button(
        "Train", type=fields.main_button(), icon=":material/play_arrow:", key="owners_train", width="stretch"
    )
