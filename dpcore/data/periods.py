"""Public periods of time that make the unit of privacy a user in one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dpcore.common.checks import Problems, refuse
from dpcore.common.group_privacy import PersonPrice, price_person
from dpcore.common.wording import format_digits, format_number
from dpcore.data.bin_edges import are_dates, parse_edges

MAX_PERIODS = 1_000
DATE_PATTERN = "^([0-9]{4})[-/.]?(0[1-9]|1[0-2])[-/.]?(0[1-9]|[12][0-9]|3[01])"
"""The beginning of a cell with a date: year, month and day, as it is written, whatever its zone.

A month 13 would be a period that the price for a person does not know."""
MANY_EPSILON = 10.0
"""For a whole person, from which on a sentence says that the guarantee says little."""


@dataclass(frozen=True)
class Periods:
    """Periods of time by a column of dates; rows outside are left out, so a person has rows in all of them at most.

    Attributes:
        column: Column of dates.
        span: The periods as entered: ``2025-01-01 to 2026-01-01 by month``, or the first days of all and the end.
        num_releases: How often such a release is made, each of further periods of the same people.
        person_epsilon: The largest epsilon for a whole person; None for no limit.

    Raises:
        InvalidInput: The periods are no dates, or too many, or a number is out of its range.
    """

    column: str
    span: str
    num_releases: int = 1
    person_epsilon: float | None = None

    def __post_init__(self) -> None:
        with Problems() as problems:
            if not self.column or not isinstance(self.span, str) or not self.span.strip():
                problems.add("periods need a column of dates and a public span of time", "", EXAMPLE_REMEDY)
            elif not are_dates(self.edges):
                problems.add("periods begin and end with dates", "", EXAMPLE_REMEDY)
            elif self.num_periods > MAX_PERIODS:
                problems.add(f"there are {self.num_periods:,} periods; at most {MAX_PERIODS:,} fit")
            problems.whole(1, MAX_PERIODS, releases=self.num_releases)
            if self.person_epsilon is not None:
                problems.positive(person_epsilon=self.person_epsilon)
            if not problems.entries and self.num_periods > 1 < self.num_releases:
                span_remedy = "Enter the span of one period for a release that is repeated, or 1 release"
                problems.add(
                    "one release of several periods and a release every period do not mix", "", span_remedy
                )
        object.__setattr__(self, "num_releases", int(self.num_releases))

    @cached_property
    def edges(self) -> tuple[str, ...]:
        """Return the first day of each period, and the day after the last one, such as 2025-01-31."""
        return parse_edges(self.span)

    @property
    def num_periods(self) -> int:
        """Return the number of periods, and so the most units that a person is."""
        return len(self.edges) - 1

    @property
    def noun(self) -> str:
        """Return what one period is called: day, week, month, year, or period."""
        last_span_word = self.span.lower().split()[-1]
        return last_span_word if last_span_word in ("day", "week", "month", "year") else "period"

    @property
    def unit_column(self) -> str:
        """Return the name of the column that names the period of a row, beside those of the user."""
        return f"{self.noun} of {self.column}"

    @property
    def is_filter(self) -> bool:
        """Return True if the unit stays the user: there is one period, and one release."""
        return self.num_periods == self.num_releases == 1

    @property
    def span_text(self) -> str:
        """Return the first day and the day after the last one, as a phrase."""
        return f"from {self.edges[0]} to before {self.edges[-1]}"

    @property
    def rows_sentence(self) -> str:
        """Return the sentence on the rows that count, without its full stop."""
        people_text = ""
        if self.num_periods > 1:
            people_text = f"; so a person has rows in at most {self.num_periods} {self.noun}s"
        return (
            f"Rows with a date in {self.column} {self.span_text} count, all others are left out{people_text}"
        )

    def price_person(self, epsilon: float, delta: float, is_gaussian: bool = False) -> PersonPrice:
        """Return the guarantee for a whole person, from that of one release for one unit.

        Args:
            epsilon: Of the release, above 0.
            delta: Likewise, at least 0.
            is_gaussian: True if all of it is Gaussian noise. The rho of the exact mechanism covers every program.
        """
        from dpcore.common.programs import find_exact_sigma  # Here, as tables are read without it.

        release_rho = 0.5 / find_exact_sigma(epsilon, delta) ** 2 if is_gaussian and delta else 0.0
        return price_person(epsilon, delta, self.num_periods, self.num_releases, release_rho)

    def describe_price(self, price: PersonPrice) -> tuple[str, str, str]:
        """Write the unit and its price for a badge, the guarantee as sentences, and advice on a total epsilon.

        All three texts are empty if the periods do not change the unit of privacy.
        """
        if self.is_filter:
            return "", "", ""
        reason_text = f"with rows in at most {self.num_periods} {self.noun}s, group privacy gives"
        if self.num_releases > 1:
            reason_text = f"over {self.num_releases} such releases, one every {self.noun}, composition gives"
        badge_text, advice_text = f"Per user and {self.noun}; whole person: {price.text}", ""
        if self.person_epsilon is not None:
            badge_text += f" of {format_digits(self.person_epsilon)}"
            epsilon_remainder = self.person_epsilon - price.epsilon
            remainder_verb = "remains" if epsilon_remainder >= 0 else "is missing"
            total_epsilon_text = f"Of the total ε = {format_digits(self.person_epsilon)}"
            advice_text = f" {total_epsilon_text}, {format_number(abs(epsilon_remainder))} {remainder_verb}."
        if price.epsilon >= MANY_EPSILON or price.delta >= 1e-3:
            remedy_text = "take fewer or longer periods, or the user as the unit"
            remedy_text = "release less often" if self.num_releases > 1 else remedy_text
            advice_text += f" That protects a person little: {remedy_text}."
        guarantee_text = f"For a whole person, {reason_text} {price.text}."
        return badge_text, f"A user is here a user in one {self.noun}. {guarantee_text}", advice_text


EXAMPLE_REMEDY = "Write, say, 2025-01-01 to 2026-01-01 by month; or day, week, year"


def build_periods(
    date: str | None, span: str | None, num_releases: int | None = None, person_epsilon: float | None = None
) -> Periods | None:
    """Build the periods that a call states; None if it states none, and InvalidInput if something is missing."""
    if date is None and span is None:
        if num_releases not in (None, 1) or person_epsilon is not None:
            raise refuse("releases and person_epsilon go with periods", remedy="Name date=… and periods=…")
        return None
    return Periods(date or "", span or "", 1 if num_releases is None else num_releases, person_epsilon)
