"""Values outside the range that the person entered: said and warned of alike wherever a range is entered."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import streamlit as st

from dpcore.answer.value_range import RANGE_SOURCE, OutsideCounts
from dpcore.dataset import Dataset, Values
from pages.shared.base import catalogue
from pages.shared.base.cache import cached
from pages.shared.card import cards
from pages.shared.session import session


def ask(data: Dataset, ends: Mapping[str, str]) -> bool:
    """Ask for the range of private values where nobody has entered one; returns whether it asks.

    A range read off private values would leak, and one that nobody chose clamps them without a word and stands in
    programs. A release may have emptied the fields: `missing.say_cleared` says why.

    Args:
        data: The data in use.
        ends: Session key of either end to what it is called in a sentence.
    """
    empty = [name for key, name in ends.items() if st.session_state.get(key) is None]
    released = data.release is not None and not any(session.cleared(key) for key in ends)
    if not empty or not (data.is_private or released):
        return False
    st.info(
        f"**What range can a value have?** Enter {' and '.join(empty)}, {RANGE_SOURCE} Do not read "
        f"{'it' if len(empty) == 1 else 'them'} off the data, which are private. The answer follows.",
        icon=":material/straighten:",
    )
    offer_draw(data)
    return True


def offer_draw(data: Dataset) -> None:
    """The button that leads to a private draw of the range, where the data are private and have values."""
    if (drawing := catalogue.DRAWING) is not None:
        importlib.import_module(f"pages.{drawing.name}.on_card").offer_range(data)


def warn(data: Dataset, outside: OutsideCounts | None, consequence: str) -> None:
    """Warn where many values lie outside the range, labelled where the data are private.

    Args:
        data: The data in use.
        outside: What lies outside; None where there are no values or no range.
        consequence: What follows for so many values, and what to do; goes on from their share.
    """
    if outside is None or not outside.exceeds_warning:
        return
    st.warning(f"{outside.percent} of the values {consequence}", icon=":material/warning:")
    if data.is_private:
        cards.label(data.provenance)


@cached(max_entries=8)
def values_outside(digest: str, lower: float, upper: float, _values: Values) -> OutsideCounts:
    """Return how many values lie outside [lower, upper]."""
    values = _values.values
    return OutsideCounts(int((values < lower).sum()), int((values > upper).sum()), values.size)
