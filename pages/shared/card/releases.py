"""DP releases that a page draws on request, what was spent, and a check by another solver.

What was spent on private data, in words and as lines of a report: the person's own doing, which tells nothing of
the data. Pure.

DP releases that a page with data of its own draws on request, and what they cost; kept in the session by account.

The session holds, under the page's own names, ``draws`` (what was drawn), ``spent`` (what was paid for, which is noted
before there is any noise) and ``refused``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpcore.common import certificate, wording
from dpcore.common.certificate import Solved
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Charge, Disclosure, Ledger, ReleaseFacts, format_rounded_up
from dpcore.common.progress import ShouldStop
from dpcore.report.content import Line
from dpcore.report.markup import escape_markdown
from pages.shared.base import tables
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.fields import fields, jobs

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


def show(
    key: str, question: Hashable, solve: Callable[[ShouldStop], tuple[Solved, ...]], what: str, too_large: str
) -> None:
    """A button that solves with both, and the two answers with their proofs and times.

    Args:
        key: In the session, of the work.
        question: What is solved.
        solve: Our answer and the other; ours alone where it is stopped before the other has begun.
        what: What the value is.
        too_large: Why it is not offered; empty where it is.
    """
    st.markdown("**Compare with CVXPY**")
    if too_large:
        st.caption(too_large)
        return
    st.caption(
        "CVXPY hands the problem as written to Clarabel, a general solver. Both answers are proved by the same rule: "
        "their value and a number that no answer goes below are computed from the data."
    )
    if st.button("Compare with CVXPY", key=f"{key}_start", icon=":material/balance:"):
        jobs.start(key, question, lambda _tell, stop: solve(stop), heavy=True)
    if jobs.watch(key, "Solving with both", measured=False):
        return
    done = jobs.result_of(key)
    if done is None or done[0] != question:
        return
    both: tuple[Solved, ...] = done[1]
    tables.show(
        {
            "Solver": [one.solver for one in both],
            what: [one.certificate.value for one in both],
            "No answer is below": [one.certificate.lower_bound for one in both],
            "Seconds": [one.seconds for one in both],
            "How it ended": [one.stop_reason for one in both],
        },
        f"{what} and time of both solvers",
        formats={what: "%.9g", "No answer is below": "%.9g", "Seconds": "%.3f"},
    )
    st.markdown(certificate.compare_results(*both) if len(both) == 2 else "Stopped before CVXPY had begun.")
