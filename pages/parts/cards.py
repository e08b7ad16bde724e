"""The answer card: one form for the answer of every page."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from dpcore.certificate import Certificate
from dpcore.privacy import Provenance, ReleaseFacts, Sensitivity, kind_of
from pages.parts import code_tab, keys
from pages.parts.code_tab import CodeChoice

BADGES = {
    Sensitivity.PUBLIC: ("public input", "green", ":material/public:"),
    Sensitivity.PRIVATE: ("computed from private data: do not publish", "orange", ":material/lock:"),
    Sensitivity.DP_RELEASE: ("DP release", "blue", ":material/verified_user:"),
}


@dataclass(frozen=True)
class Figure:
    """One number of the card.

    Attributes:
        label: What it is.
        value: Formatted, with its unit.
        note: What it compares with; empty for none.
        help: Explanation on demand; empty for none.
    """

    label: str
    value: str
    note: str = ""
    help: str = ""


@dataclass(frozen=True)
class AnswerCard:
    """What a page answers.

    Attributes:
        headline: What to do, one sentence, Markdown.
        detail: The sentence after it; empty for none.
        figures: At most four numbers.
        facts: (name, sentence) rows: the interval of good bounds, half and double, who is affected ...
        assumptions: Sentences without full stop.
        proofs: (of what, certificate, how the search ended); empty where nothing is claimed to be best.
        sensitivity: Of the data behind the numbers; a release carries its facts.
        code: What the tab *Code* writes for the person's library; None where there is nothing to carry away.
    """

    headline: str
    detail: str
    figures: tuple[Figure, ...]
    facts: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]
    proofs: tuple[tuple[str, Certificate, str], ...]
    sensitivity: Provenance
    code: CodeChoice | None = None

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions, with what a release adds to those of every question."""
        released = isinstance(self.sensitivity, ReleaseFacts)
        return (*self.assumptions, *([ON_RELEASE] if released else []))


ON_RELEASE = (
    "Everything is computed as if the DP release were the data: what the number costs on the data behind it, "
    "nobody can see"
)


def label(sensitivity: Provenance, text: str = "") -> None:
    """The badge that says what kind of numbers these are; ``text`` replaces its words, not its colour."""
    words, color, icon = BADGES[kind_of(sensitivity)]
    st.badge(text or words, color=color, icon=icon)  # type: ignore[arg-type]
    if isinstance(sensitivity, ReleaseFacts) and not text:
        st.caption(sensitivity.label)  # Too long for a badge, which is cut where it does not fit.


def show(card: AnswerCard, key: str) -> None:
    """Draw the card."""
    with st.container(border=True, key=key):
        st.markdown(f"#### {card.headline}")
        if card.detail:
            st.markdown(card.detail)
        with st.grid(2, min_column_width=150, gap="small"):
            for item in card.figures:
                st.metric(
                    item.label,
                    item.value,
                    item.note or None,
                    delta_color="off",
                    delta_arrow="off",
                    help=item.help or None,
                )
        st.markdown("\n".join(f"- **{name}:** {sentence}" for name, sentence in card.facts))
        _tabs(card, key)
        label(card.sensitivity)


def _tabs(card: AnswerCard, key: str) -> None:
    """How sure, what is assumed, code; the code is written only where its tab is open."""
    names = ["How sure"] if card.proofs else []
    names += ["What is assumed", "Code"] if card.code is not None else ["What is assumed"]
    tabs = dict(zip(names, st.tabs(names, key=key + keys.CARD_TABS, on_change="rerun"), strict=True))
    if card.proofs:
        proofs = (f"- **{what}:** {ended} {proof.sentence}" for what, proof, ended in card.proofs)
        tabs["How sure"].markdown("\n".join(proofs))
    tabs["What is assumed"].markdown("\n".join(f"- {assumption}." for assumption in card.assumed))
    if card.code is not None and tabs["Code"].open:
        with tabs["Code"]:
            code_tab.show(card.code, key)
