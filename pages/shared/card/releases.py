"""DP releases that a page with data of its own draws on request, and what they cost; kept in the session by account.

The spending on private data is described in sentences and as lines of a report. It is the user's own doing and tells
nothing about the data. The session holds, under the page's own names, ``draws`` (what was drawn), ``spent`` (what was
paid for, which is noted before there is any noise) and ``refused``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Charge, Disclosure, Ledger, ReleaseFacts, format_rounded_up
from dpcore.common.wording import format_count, format_number
from dpcore.report.content import Line
from dpcore.report.markup import escape_markdown
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields

WINDOW_SENTENCE = (
    "Counted in this window alone: another tab, a reload, and a file with one row more or less begin at 0. *Save "
    "session* keeps the account."
)
"""How far an account of what was spent reaches."""


def write_lost_sentence(ledger: Ledger, num_releases: int, subject_text: str) -> str:
    """Return a sentence if more releases were paid for than ``num_releases``; else an empty string."""
    num_lost = len(ledger.releases) - num_releases
    if num_lost <= 0:
        return ""
    count_text = format_count(num_lost, "release")
    return f"The account also counts {count_text} of {subject_text} that ended in an error or came with a session file."


def list_spent_lines(ledger: Ledger, note_text: str = "") -> tuple[Line, ...]:
    """Return the total spending as a line of a report; no line before the first release."""
    total_facts = ledger.total
    if total_facts is None:
        return ()
    delta_text = f", δ = {format_rounded_up(total_facts.delta)}" if total_facts.delta else ""
    count_text = format_count(len(ledger.releases), "release")
    spent_text = f"ε = {format_rounded_up(total_facts.epsilon)}{delta_text}, in {count_text}"
    note_text = f"Neighbouring data: {total_facts.neighbours.short}. {note_text}".rstrip()
    return (
        Line(
            "Spent on these data so far", spent_text, Disclosure.PUBLIC, note_text, number=total_facts.epsilon
        ),
    )


def list_release_lines(
    releases: Sequence[Any],
    ledger: Ledger,
    subject_text: str,
    describe_release: Callable[[Any], tuple[Any, Any, str, ReleaseFacts]],
) -> tuple[Line, ...]:
    """List as lines of a report the numbers of the latest release, and all that was spent; no lines if nothing was.

    Args:
        releases: The releases, oldest first.
        ledger: What was spent, releases included that ended in an error.
        subject_text: What they are computed from, such as ``these rows``.
        describe_release: Returns the names and the values of a release, as many of each, a note on it, and its facts.
    """
    spent_lines = list_spent_lines(ledger, write_lost_sentence(ledger, len(releases), subject_text))
    if not releases:
        return spent_lines
    number_names, released_values, note_text, facts = describe_release(releases[-1])
    line_options: dict[str, Any] = {"note": note_text, "label": facts.label}
    lines = (
        Line(
            escape_markdown(number_name),
            format_number(x, 4),
            Disclosure.DP_RELEASE,
            number=x,
            **line_options,
        )
        for number_name, x in zip(number_names, map(float, released_values), strict=True)
    )
    return (*lines, *spent_lines)


@dataclass(frozen=True)
class Releases:
    """The releases of one account: of the same rows, whatever was made of them.

    Attributes:
        question: The page.
        account: Text that tells the rows from all others: the digest of the file that they were read from.
        subject_text: The data that a release is computed from, in words, such as ``these rows``.
    """

    question: Question
    account: str
    subject_text: str = "these rows"

    @property
    def stored_releases(self) -> list[Any]:
        """Return this session's releases of the account, oldest first: the stored list, which callers may change."""
        draws_by_account: dict[str, list[Any]] = st.session_state.setdefault(
            self.question.get_key("draws"), {}
        )
        return draws_by_account.setdefault(self.account, [])

    @property
    def ledger(self) -> Ledger:
        """Return the budget spent in this session, releases included that ended in an error."""
        return self._ledgers.get(self.account, Ledger())

    @property
    def _ledgers(self) -> dict[str, Ledger]:
        """Return the ledgers of the page, by account."""
        ledgers_by_account: dict[str, Ledger] = st.session_state.get(self.question.get_key("spent"), {})
        return ledgers_by_account

    def add_release(self, make_release: Callable[[Charge], Any]) -> None:
        """Call ``make_release`` with the function that charges; keep its release, or the error that refuses it."""
        try:
            self.stored_releases.append(make_release(self._charge_release))
        except InvalidInput as error:
            self.store_refusal(error)

    def store_refusal(self, refusal: InvalidInput) -> None:
        """Keep the error for which nothing was drawn, until `show_refusal` shows it."""
        st.session_state[self.question.get_key("refused")] = refusal

    def charge_ahead(self, facts: ReleaseFacts) -> str:
        """Charge a release that work beside the page is about to draw; return the text that marks it in the ledger."""
        self._charge_release(facts)
        return self.ledger.marks[-1]

    def take_back(self, cancelled_mark: str) -> None:
        """Take the release with this mark off the account, as its work ended before there was any noise."""
        releases_and_marks = zip(self.ledger.releases, self.ledger.marks, strict=True)
        remaining_pairs = [
            (facts, kept_mark) for facts, kept_mark in releases_and_marks if kept_mark != cancelled_mark
        ]
        remaining_releases = tuple(facts for facts, _ in remaining_pairs)
        self._store_ledger(Ledger(remaining_releases, tuple(kept_mark for _, kept_mark in remaining_pairs)))

    def _charge_release(self, facts: ReleaseFacts) -> None:
        """Add a release to the account."""
        self._store_ledger(self.ledger.add(facts))

    def _store_ledger(self, ledger: Ledger) -> None:
        """Store the ledger of the account."""
        st.session_state[self.question.get_key("spent")] = {**self._ledgers, self.account: ledger}

    def show_refusal(self) -> None:
        """Show why nothing was drawn, once; nothing without a refusal."""
        refusal: InvalidInput | None = st.session_state.pop(self.question.get_key("refused"), None)
        if refusal is not None:
            fields.show_problems(refusal.problems)

    def show_account(self, latest_facts: ReleaseFacts | None, is_outdated: bool) -> None:
        """Show what was spent if there is a latest release, how many releases were lost, and if settings changed."""
        if latest_facts is not None:
            cards.draw_label(latest_facts)
            st.markdown(
                f"**{self.ledger.sentence}** Publishing all of them spends the sum. {WINDOW_SENTENCE}"
            )
        if lost_text := write_lost_sentence(self.ledger, len(self.stored_releases), self.subject_text):
            st.warning(f"{lost_text} {self.ledger.sentence}", icon=":material/warning:")
        if is_outdated:
            st.info("The settings have changed since this release.", icon=":material/history:")

    def draw_file_button(self, button_label: str, make_text: Callable[[], str], name_ending: str) -> None:
        """Draw a button that downloads all releases as a CSV file."""
        button_key, file_name = (
            f"{self.question.name}_released_file",
            f"{self.question.url_path}-{name_ending}.csv",
        )
        cards.draw_file_button(button_label, file_name, Disclosure.PUBLIC, make_text, button_key=button_key)
