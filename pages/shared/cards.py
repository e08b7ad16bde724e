"""The answer card: one form for the answer of every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, kind_of
from pages.shared import code_panel, dialogs, drawn, fields, key_number, keys, number_grid
from pages.shared.code_panel import CodeChoice

BADGES = {
    Disclosure.PUBLIC: ("public input", "green", ":material/public:"),
    Disclosure.PRIVATE: ("computed from private data: do not publish", "orange", ":material/lock:"),
    Disclosure.DP_RELEASE: ("DP release", "blue", ":material/verified_user:"),
}


@dataclass(frozen=True)
class KeyNumber:
    """One number of the card.

    Attributes:
        label: What it is.
        value: Formatted, with its unit.
        note: What it compares with; empty for none.
        help: Explanation on demand; empty for none.
        copied: Its digits as a program takes them, for a number that can be copied.
    """

    label: str
    value: str
    note: str = ""
    help: str = ""
    copied: str = ""


@dataclass(frozen=True)
class AnswerCard:
    """What a page answers.

    Attributes:
        headline: What to do, one sentence, Markdown.
        detail: The sentence after it; empty for none.
        figures: The number that was asked for, its error, and further ones.
        assumptions: Sentences without full stop.
        disclosure: Of the data behind the numbers; a release carries its facts.
        facts: Sentences by name: half and double, who is affected ...
        proofs: (of what, certificate, how the search ended); empty where nothing is claimed to be best.
        code: What *Code for your library* writes; None where there is nothing to carry away.
        good_enough: From where to where the bound costs little, one sentence; empty where that is not known.
    """

    headline: str
    detail: str
    figures: tuple[KeyNumber, ...]
    assumptions: tuple[str, ...]
    disclosure: Provenance
    facts: Mapping[str, str] = field(default_factory=dict)
    proofs: tuple[tuple[str, Certificate, str], ...] = ()
    code: CodeChoice | None = None
    good_enough: str = ""

    @property
    def all_facts(self) -> tuple[tuple[str, str], ...]:
        """The facts, with the interval of good bounds before them."""
        first = [("Good enough", self.good_enough)] if self.good_enough else []
        return (*first, *self.facts.items())

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions, with what a release adds to those of every question."""
        released = isinstance(self.disclosure, ReleaseFacts)
        return (*self.assumptions, *([ON_RELEASE] if released else []))


ON_RELEASE = (
    "Everything is computed as if the DP release were the data: what the number costs on the data behind it, "
    "nobody can see"
)


def badge(disclosure: Provenance, text: str = "") -> str:
    """The badge that says what kind of numbers these are, as Markdown; ``text`` replaces its words, not its colour."""
    words, color, icon = BADGES[kind_of(disclosure)]
    # Not `st.badge`, which is cut where it does not fit: "do not publish" stands at its end.
    return f":small[:{color}-background[:{color}[{icon} {text or words}]]]"


def label(disclosure: Provenance, text: str = "", after: str = "") -> None:
    """The badge of numbers, below ``after``, which is Markdown; of a release, its facts too.

    Both are one element: what a page costs the browser at every step goes by the number of its elements.
    """
    st.markdown("\n\n".join(part for part in (after, badge(disclosure, text)) if part))
    if isinstance(disclosure, ReleaseFacts) and not text:
        st.caption(disclosure.label)  # Too long for a badge, which is cut where it does not fit.


def answer(card: AnswerCard, key: str) -> None:
    """Draw what a person came for: the headline, the number with its error, and the way to the code.

    Args:
        card: What it says; the rest of it is for `behind`.
        key: Unique on the page.
    """
    if (run := drawn.now()) is not None and run.card is None:
        run.card = card
    with st.container(key=key):
        st.markdown(f"#### {card.headline}")
        if card.figures:
            number, *others = card.figures
            error = (others[0].label, others[0].value, others[0].note) if others else None
            key_number.show(
                number.label, number.value, number.note, number.copied or number.value, key, error
            )
        good = f"**Good enough:** {card.good_enough}" if card.good_enough else ""
        label(card.disclosure, after="\n\n".join(part for part in (good, card.detail) if part))
        if card.code is not None:
            st.button(
                "Code for your library",
                key=key + keys.CARD_CODE,
                icon=":material/code:",
                type=fields.main_button(),
                on_click=dialogs.ask,
                args=(_code_dialog, card.code, card.disclosure, key),
            )


@st.dialog("Code for your library", width="large", icon=":material/code:", on_dismiss=dialogs.closed)
def _code_dialog(code: CodeChoice, disclosure: Provenance, key: str) -> None:
    code_panel.show(code, key)
    label(disclosure)


def behind(card: AnswerCard) -> None:
    """What stands behind the answer, in a tab: how sure it is, what is assumed, what changes it costs."""
    if len(card.figures) > 1:
        number_grid.show([(item.label, item.value, item.note, item.help) for item in card.figures], "behind")
    left, right = st.columns(2, gap="large")
    with left:
        facts = "\n".join(f"- **{name}:** {sentence}" for name, sentence in card.facts.items())
        proofs = "\n".join(f"- **{what}:** {ended} {proof.sentence}" for what, proof, ended in card.proofs)
        if said := [part for part in (facts, proofs and f"**How sure**\n\n{proofs}") if part]:
            st.markdown("\n\n".join(said))
    with right:
        assumed = "\n".join(f"- {assumption}." for assumption in card.assumed)
        label(card.disclosure, after=f"**What is assumed**\n\n{assumed}")
