"""Choosing with DP: what a person enters for a bound, a pair, a range or a DP histogram."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.parameters import TAB, Option, public
from dpcore.contributions import MAX_SIZE
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.private_choice.private_range import MAX_MAGNITUDE
from pages.shared.base.question import FieldOrigin, Question

_MAGNITUDE_LIMITS = (-MAX_MAGNITUDE, MAX_MAGNITUDE)
_DISTANCE_LIMITS = (1.0 / MAX_MAGNITUDE, MAX_MAGNITUDE)
_form_number = functools.partial(public.number, None, is_renewed=True, place=TAB)
"""Declares a public number of a form in a tab; it is empty at first, and for new data."""


class KnownValue(Option):
    """The knowledge of the values beforehand."""

    TYPICAL = "typical", "A typical value"
    LOWEST = "lowest", "The lowest, L"
    NEITHER = "neither", "Neither"


# Each field is judged by itself here. Whether those of a form go together is judged where something is drawn, by
# `dpcore.private_choice.private_range.RangeProblem` and `dpcore.per_group.private_pair.PrivatePairProblem`.
@dataclass(frozen=True)
class PageParameters(PrivateParameters):
    """The settings of every private choice; session files carry all of them, and links of earlier versions did."""

    histogram_epsilon: float = public.number(
        0.1, "ε of the histogram", EPSILON_RANGE, is_required=False, width=130, place=TAB
    )
    """Comes on top of all others; what is chosen on the histogram costs no more."""
    pair_unit: float | None = _form_number("Unit of an amount", (1e-12, 1e12), width=170)
    """Amounts are rounded to this unit. Choose it from the kind of quantity, not from the data."""
    pair_largest: float | None = _form_number("Highest amount", (1e-12, MAX_MAGNITUDE), width=170)
    """The choice takes no L∞ above it. Choose it from the kind of quantity, not from the data."""
    range_known: KnownValue = public.choice(
        KnownValue.TYPICAL, "You know", name="what you know of the values", place=TAB
    )
    range_centre: float | None = _form_number("Typical value", _MAGNITUDE_LIMITS, width=130)
    """Choose it from the kind of quantity, not from the data."""
    range_lower: float | None = _form_number("Lowest value L", _MAGNITUDE_LIMITS, width=130)
    """Then only U is chosen. Take L from the kind of quantity, not from the data."""
    range_unit: float | None = _form_number(
        "Smallest distance", _DISTANCE_LIMITS, name="smallest distance of an end", width=150
    )
    """Each end is at least this far from the value that you know. Choose it without the data."""
    range_largest: float | None = _form_number(
        "Largest distance", _DISTANCE_LIMITS, name="largest distance of an end", width=150
    )
    """Each end is at most this far from the value that you know. Choose it without the data."""
    range_users: float | None = _form_number(
        "Users, about", (1, MAX_SIZE), name="the number of users", width=260
    )
    """Enter what you know; the number in the data is private."""
    range_bound: int | None = _form_number(
        "Public bound, rows",
        (1, MAX_SIZE),
        name="the public bound on rows per user",
        placeholder="optional",
        width=150,
    )
    """A bound that you know or that was published, not one read off the data. Empty: the bound that was drawn, or 1."""
    range_epsilon: float | None = public.number(
        0.25,
        "ε of the range",
        EPSILON_RANGE,
        is_required=False,
        width=110,
        place=TAB,
        only_with=("is_total_epsilon", (False,)),
    )
    """On top of all others."""


QUESTION = Question(
    name="private_choice",
    title="Choose with DP",
    icon=":material/casino:",
    url_path="choose-privately",
    navigation_group="Choose a bound",
    question_sentence="How do I choose the bound of private data without leaking?",
    parameters_type=PageParameters,
    origins_by_entry=FieldOrigin.PUBLIC.each("choices", "empty_copy", "drew", "pending")
    | FieldOrigin.DATA.each("refused"),
    selects_bounds_privately=True,
)
"""A step on the cards of other pages and on *Data*. It was a page, whose address leads on to them."""
