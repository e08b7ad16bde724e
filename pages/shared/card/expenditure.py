"""What was spent on private data, in words and as lines of a report: the person's own doing, which tells nothing of
the data. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Ledger, format_rounded_up
from dpcore.report.content import Line
from dpcore.report.markup import escape_markdown

IN_THIS_WINDOW = (
    "Counted in this window alone: another tab, a page that is loaded anew, and a file with one row more or less begin "
    "at 0. *Save session* keeps the account."
)
"""How far an account of what was spent reaches."""


def lost_sentence(ledger: Ledger, made: int, of: str) -> str:
    """That more was paid for than the ``made`` releases that are there; empty where it was not."""
    lost = len(ledger.releases) - made
    if lost <= 0:
        return ""
    return (
        f"{wording.counted(lost, 'release')} of {of} ended in an error after noise may have been drawn, or came back "
        f"with the account of a session file. The account counts {'it' if lost == 1 else 'them'}."
    )


def spent_lines(ledger: Ledger, note: str = "") -> tuple[Line, ...]:
    """Everything that was spent, as a line of a report; none before the first release."""
    spent = ledger.total
    if spent is None:
        return ()
    delta = f", δ = {format_rounded_up(spent.delta)}" if spent.delta else ""
    return (
        Line(
            "Spent on these data so far",
            f"ε = {format_rounded_up(spent.epsilon)}{delta}, in {wording.counted(len(ledger.releases), 'release')}",
            Disclosure.PUBLIC,
            f"Neighbouring data: {spent.neighbours.short}. {note}".rstrip(),
            number=spent.epsilon,
        ),
    )


def released_lines(
    names: Iterable[str], values: Iterable[float], note: str, label: str, spent: tuple[Line, ...]
) -> tuple[Line, ...]:
    """Numbers that were released, as lines of a report, and what was spent behind them.

    Args:
        names: What each is.
        values: The numbers.
        note: Of which release, and with which noise.
        label: What they are.
        spent: `spent_lines`.
    """
    lines = (
        Line(
            escape_markdown(name),
            wording.number(float(value), 4),
            Disclosure.DP_RELEASE,
            note,
            number=float(value),
            label=label,
        )
        for name, value in zip(names, values, strict=True)
    )
    return (*lines, *spent)
