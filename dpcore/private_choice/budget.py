"""One epsilon in all, divided between private selections and the release that uses what they select.

Every selection takes a fixed share of what is left of the total, and the release the rest. The shares depend on public
figures alone: the total, what was selected, and what was spent before.

How the shares were found. For a bound, the expected error of the release at (1 - share) epsilon with the bound of a
selection at share epsilon, over the least error at epsilon, exact (`choice.summarise_regret`): three public samples
scaled to 100, 1,000 and 10,000 users, epsilon of 0.3, 1 and 3. In the geometric mean over these 27 cases it is

    share                  0.02   0.05   0.10   0.15   0.20   0.25   0.30   0.40   0.50
    cap, independent rows  1.24   1.13   1.09   1.09   1.10   1.11   1.13   1.20   1.28
    cap, users differ      1.20   1.15   1.11   1.10   1.11   1.12   1.13   1.18   1.24
    count of rows          6.42   4.46   3.32   2.88   2.64   2.52   2.46   2.45   2.55
    learner                1.70   1.39   1.26   1.25   1.26   1.30   1.34   1.47   1.65
    pair per group         2.32   1.80   1.50   1.40   1.37   1.36   1.37   1.42   1.52

No single case loses more than 21 % against its own best share at 0.15 for a mean, 16 % for a learner, and at 0.3 26 %
for a count and 25 % for a pair (the last two lines by `benchmarks/shares.py`). A quantile's bound is selected by the
equations of the first line. A range has the share that its page proposes, 0.25 beside a release at 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

from dpcore.common.checks import EPSILON_RANGE, InvalidInput, refuse
from dpcore.common.privacy import Ledger, Neighbours, format_rounded_up

SELECTION_SHARE_OF_MEAN = 0.15
"""Share of the selection of the bound of a mean, a quantile or a learner."""
SELECTION_SHARE_OF_SUM = 0.3
"""Share of the selection of the bound of a sum or a count, or of a pair per group: few users decide there."""
SELECTION_SHARE_OF_RANGE = 0.2
"""Share of the selection of a value range."""
_ADD_OR_REMOVE = Neighbours.ADD_OR_REMOVE_USER


@dataclass(frozen=True)
class EpsilonShares:
    """The epsilon of a private selection and that of the release, both taken from one total.

    Attributes:
        selection_epsilon: Epsilon of the private selection.
        release_epsilon: Epsilon of the release that uses what is selected, for neighbours that add or remove one user.
        spent_epsilon: Epsilon of the total that earlier releases have taken.
    """

    selection_epsilon: float
    release_epsilon: float
    spent_epsilon: float = 0.0


def divide_budget(
    total_epsilon: float, selection_share: float, neighbours: Neighbours, ledger: Ledger
) -> EpsilonShares:
    """Divide what is left of a total epsilon between a private selection and the release.

    The ledger's epsilons and both shares add up, exactly, to at most ``total_epsilon``. A release for neighbours that
    add or remove one user counts twice beside a selection for neighbours that replace one, as in `Ledger.total`.

    Args:
        total_epsilon: Epsilon of everything that is released from these data.
        selection_share: Share of what is left that the selection takes, between 0 and 1.
        neighbours: The relation of the selection.
        ledger: The releases so far.

    Raises:
        InvalidInput: Too little is left.
    """
    release_uses = count_release_uses(ledger, neighbours)
    selection_uses = release_uses if neighbours is _ADD_OR_REMOVE else 1
    exact_remainder = find_remainder(total_epsilon, ledger, release_uses)
    remainder, spent_epsilon = round_down(exact_remainder), float(Fraction(total_epsilon) - exact_remainder)
    wanted_selection_epsilon = Decimal(repr(remainder * selection_share)) / selection_uses
    epsilon_shares = EpsilonShares(0.0, 0.0)
    for short_epsilon in _list_short_decimals(wanted_selection_epsilon):
        release_epsilon = float((Decimal(repr(remainder)) - selection_uses * short_epsilon) / release_uses)
        unused_epsilon = Fraction(remainder) - selection_uses * Fraction(float(short_epsilon))
        # In float64 0.1 and 0.2 add up to more than 0.3, exactly; a smaller pair of short decimals may not.
        if release_uses * Fraction(release_epsilon) <= unused_epsilon:
            epsilon_shares = EpsilonShares(float(short_epsilon), release_epsilon, spent_epsilon)
            break
        if not epsilon_shares.selection_epsilon:
            epsilon_shares = EpsilonShares(
                float(short_epsilon), round_down(unused_epsilon / release_uses), spent_epsilon
            )
    if min(epsilon_shares.selection_epsilon, epsilon_shares.release_epsilon) < EPSILON_RANGE[0]:
        raise _refuse_total(total_epsilon, spent_epsilon)
    return epsilon_shares


def _refuse_total(total_epsilon: float, spent_epsilon: float) -> InvalidInput:
    """Build the error that too little is left of a total epsilon."""
    total_text, spent_text = format_rounded_up(total_epsilon), format_rounded_up(spent_epsilon)
    refusal_text = f"too little is left of ε = {total_text} in all: ε = {spent_text} was spent"
    return refuse(refusal_text, remedy="Enter a larger ε")


def _list_short_decimals(target: Decimal) -> Iterator[Decimal]:
    """Yield decimals of at most two digits, then three, then four, each time from the target down to above 80 % of it.

    A decimal of fewer digits comes again among those of more. Nothing is yielded for a target of 0 or less.
    """
    if target > 0:
        for num_digits in (2, 3, 4):
            digit_unit = Decimal(1).scaleb(target.adjusted() - num_digits + 1)
            for k in range(int(target / digit_unit), int(Decimal("0.8") * target / digit_unit), -1):
                yield k * digit_unit


def find_release_epsilon(total_epsilon: float, ledger: Ledger, neighbours: Neighbours) -> float:
    """Compute what is left of a total epsilon for a release, rounded down; 0 if nothing is.

    The release is for neighbours that add or remove one user. ``neighbours`` is the relation of the selection whose
    result it uses, which the ledger has.
    """
    release_uses = count_release_uses(ledger, neighbours)
    return round_down(find_remainder(total_epsilon, ledger, release_uses) / release_uses)


def require_release_epsilon(total_epsilon: float, ledger: Ledger) -> float:
    """Compute what is left of a total epsilon for a release; raise InvalidInput if it is too little.

    The release is for neighbours that add or remove one user.

    Raises:
        InvalidInput: Too little is left.
    """
    release_epsilon = find_release_epsilon(total_epsilon, ledger, _ADD_OR_REMOVE)
    if release_epsilon < EPSILON_RANGE[0]:
        remainder = find_remainder(total_epsilon, ledger, count_release_uses(ledger, _ADD_OR_REMOVE))
        raise _refuse_total(total_epsilon, float(Fraction(total_epsilon) - remainder))
    return release_epsilon


def count_release_uses(ledger: Ledger, neighbours: Neighbours) -> int:
    """Return how often the epsilon of a release for add-or-remove neighbours counts.

    Once if all releases of the ledger have these neighbours too, else twice.
    """
    return 1 if {neighbours, *(facts.neighbours for facts in ledger.releases)} == {_ADD_OR_REMOVE} else 2


def find_remainder(total_epsilon: float, ledger: Ledger, release_uses: int) -> Fraction:
    """Compute exactly what the ledger leaves of a total epsilon; it may be negative."""
    exact_remainder = Fraction(total_epsilon)
    for facts in ledger.releases:
        exact_remainder -= (release_uses if facts.neighbours is _ADD_OR_REMOVE else 1) * Fraction(
            facts.epsilon
        )
    return exact_remainder


def round_down(exact_number: Fraction) -> float:
    """Round down to a decimal of six significant digits whose float is at most the number; 0 for negative numbers."""
    if exact_number <= 0:
        return 0.0
    decimal_number = Decimal(exact_number.numerator) / Decimal(exact_number.denominator)
    last_digit_unit = Decimal(1).scaleb(decimal_number.adjusted() - 5)
    # A little more first: what is a decimal but for the last digits of float64 is that decimal.
    rounded_decimal = (decimal_number * (1 + Decimal("1e-14"))).quantize(last_digit_unit, ROUND_FLOOR)
    while Fraction(float(rounded_decimal)) > exact_number:
        rounded_decimal -= last_digit_unit
    return float(rounded_decimal)
