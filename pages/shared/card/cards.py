"""The answer card: one form for the answer of every page."""

from __future__ import annotations

import streamlit as st

from dpcore.answer import Answer
from dpcore.code.forms import CodeChoice
from dpcore.common.privacy import Disclosure, Provenance, ReleaseFacts, kind_of
from pages.shared.base import dialogs, keys, page_run
from pages.shared.card import code_panel, key_number, number_grid
from pages.shared.fields import fields

BADGES = {
    Disclosure.PUBLIC: ("public input", "green", ":material/public:"),
    Disclosure.PRIVATE: ("computed from private data: do not publish", "orange", ":material/lock:"),
    Disclosure.DP_RELEASE: ("DP release", "blue", ":material/verified_user:"),
}


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


def answer(card: Answer, key: str) -> None:
    """Draw what a person came for: the headline, the number with its error, and the way to the code.

    Args:
        card: What it says; the rest of it is for `behind`.
        key: Unique on the page.
    """
    if (run := page_run.now()) is not None and run.card is None:
        run.card = card
    with st.container(key=key):
        st.markdown(f"## {card.headline}")
        if card.numbers:
            number, *others = card.numbers
            error = (others[0].label, others[0].text, others[0].note) if others else None
            key_number.show(number.label, number.text, number.note, number.copied, key, error)
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


def behind(card: Answer) -> None:
    """What stands behind the answer, in a tab: how sure it is, what is assumed, what changes it costs."""
    if len(card.numbers) > 1:
        number_grid.show([(item.label, item.text, item.note, item.help) for item in card.numbers], "behind")
    left, right = st.columns(2, gap="large")
    with left:
        facts = "\n".join(f"- **{name}:** {sentence}" for name, sentence in card.facts.items())
        proofs = "\n".join(f"- **{what}:** {ended} {proof.sentence}" for what, proof, ended in card.proofs)
        if said := [part for part in (facts, proofs and f"**How sure**\n\n{proofs}") if part]:
            st.markdown("\n\n".join(said))
    with right:
        assumed = "\n".join(f"- {assumption}." for assumption in card.assumed)
        label(card.disclosure, after=f"**What is assumed**\n\n{assumed}")
