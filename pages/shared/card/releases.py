"""DP releases that a page with data of its own draws on request, and what they cost; kept in the session by account.

The session holds, under the page's own names, ``draws`` (what was drawn), ``spent`` (what was paid for, which is noted
before there is any noise) and ``refused``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Charge, Disclosure, Ledger, ReleaseFacts
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.card.expenditure import IN_THIS_WINDOW, lost_sentence
from pages.shared.fields import fields


@dataclass(frozen=True)
class Releases:
    """The releases of one account: of the same rows, whatever was made of them.

    Attributes:
        question: The page.
        account: Whose rows they are.
        of: What is released is a function of these, in words, such as ``these rows``.
    """

    question: Question
    account: str
    of: str = "these rows"

    @property
    def made(self) -> list[Any]:
        """Return what was drawn in this session, oldest first."""
        accounts: dict[str, list[Any]] = st.session_state.setdefault(self.question.key("draws"), {})
        return accounts.setdefault(self.account, [])

    @property
    def ledger(self) -> Ledger:
        """Return what was spent in this session, releases included that ended in an error."""
        return self._ledgers.get(self.account, Ledger())

    @property
    def _ledgers(self) -> dict[str, Ledger]:
        ledgers: dict[str, Ledger] = st.session_state.get(self.question.key("spent"), {})
        return ledgers

    def draw(self, make: Callable[[Charge], Any]) -> None:
        """Keep what ``make`` draws and charges; where it is refused, `say_refused` says why on the next run."""
        try:
            self.made.append(make(self._charge))
        except InvalidInput as refused:
            self.refuse(refused)

    def refuse(self, refused: InvalidInput) -> None:
        """Keep why nothing is drawn for `say_refused`."""
        st.session_state[self.question.key("refused")] = refused

    def note(self, facts: ReleaseFacts) -> str:
        """Note what work beside the page is about to draw, before it begins; returns the mark in the ledger."""
        self._charge(facts)
        return self.ledger.marks[-1]

    def take_back(self, mark: str) -> None:
        """Take out what was noted, where the work ended before there was any noise."""
        kept = [pair for pair in zip(self.ledger.releases, self.ledger.marks, strict=True) if pair[1] != mark]
        ledger = Ledger(tuple(facts for facts, _ in kept), tuple(one for _, one in kept))
        st.session_state[self.question.key("spent")] = {**self._ledgers, self.account: ledger}

    def _charge(self, facts: ReleaseFacts) -> None:
        spent = {**self._ledgers, self.account: self.ledger.add(facts)}
        st.session_state[self.question.key("spent")] = spent

    def say_refused(self) -> None:
        """Why nothing was drawn, once."""
        refused: InvalidInput | None = st.session_state.pop(self.question.key("refused"), None)
        if refused is not None:
            fields.say(refused.problems)

    def show_account(self, latest: ReleaseFacts | None, is_earlier: bool) -> None:
        """How much was spent, and whether the latest release, where there is one, is one of earlier settings."""
        if latest is not None:
            cards.label(latest)
            st.markdown(f"**{self.ledger.sentence}** Publishing all of them spends the sum. {IN_THIS_WINDOW}")
        if lost := lost_sentence(self.ledger, len(self.made), self.of):
            st.warning(f"{lost} {self.ledger.sentence}", icon=":material/warning:")
        if is_earlier:
            st.info(
                "The settings have changed since this release. The table shows it as it was made then.",
                icon=":material/history:",
            )

    def file_button(self, label: str, text: Callable[[], str], name: str) -> None:
        """All releases as a CSV file."""
        key = f"{self.question.name}_released_file"
        cards.file_button(label, f"{self.question.url_path}-{name}.csv", Disclosure.PUBLIC, text, key=key)
