"""Asks for the range of values, and warns of values outside it, in the same words on every page."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import streamlit as st

from dpcore.answer.distribution import RANGE_SOURCE, OutsideCounts
from dpcore.dataset import Dataset, Values
from pages.shared.base import catalogue
from pages.shared.base.cache import cached
from pages.shared.card import cards
from pages.shared.session import session


def ask(data: Dataset, ends: Mapping[str, str]) -> bool:
    """Ask for the range of private values if nobody has entered one; return True if it asks.

    A range read off private values would leak, and one that nobody chose would clamp them silently and stand in
    programs. A release may have emptied the fields: `stand_ins.explain_cleared` then says why.

    Args:
        data: The data in use.
        ends: What each end is called in a sentence, by session key.
    """
    empty_names = [name for key, name in ends.items() if st.session_state.get(key) is None]
    is_cleared_release = data.release is not None and not any(session.is_cleared(key) for key in ends)
    if not empty_names or not (data.is_private or is_cleared_release):
        return False
    st.info(
        f"**What range can a value have?** Enter {' and '.join(empty_names)}, {RANGE_SOURCE} Do not read "
        f"{'it' if len(empty_names) == 1 else 'them'} off the data, which are private. The answer follows.",
        icon=":material/straighten:",
    )
    offer_draw(data)
    return True


def offer_draw(data: Dataset) -> None:
    """Draw the button that leads to a private draw of the range, if the data are private and have values."""
    if (drawing := catalogue.DRAWING) is not None:
        importlib.import_module(f"pages.{drawing.name}.on_card").offer_range(data)


def warn(data: Dataset, outside: OutsideCounts | None, consequence: str) -> None:
    """Warn if many values lie outside the range, with a label if the data are private.

    Args:
        data: The data in use.
        outside: Counts of values outside; None if there are no values or no range.
        consequence: What follows and what to do; goes on from the share of values.
    """
    if outside is None or not outside.exceeds_warning:
        return
    st.warning(f"{outside.percent} of the values {consequence}", icon=":material/warning:")
    if data.is_private:
        cards.label(data.provenance)


@cached(max_entries=8)
def count_outside(digest: str, lower: float, upper: float, _values: Values) -> OutsideCounts:
    """Return how many values lie outside [lower, upper]."""
    values = _values.values
    return OutsideCounts(int((values < lower).sum()), int((values > upper).sum()), values.size)
