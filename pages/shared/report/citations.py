"""The sentences for a methods section and the works they cite, each in a box with a button that copies it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpcore.answer.methods import Methods
from pages.shared.card import cards

HEADING = "**For your methods section**"
AS_IT_STANDS = (
    "They describe a release that follows the answer above to the letter: change what you did otherwise."
)
WITHHELD = (
    "Bound and error are left out: they were computed from your private data, and ε does not cover them. "
    "These sentences may be published; with the bound in them they may not. A bound chosen without these "
    "data, or under *Choose privately*, may be printed."
)

_HTML = """
<div class="sweetspot-copied">
  <div class="row"><span class="label"></span><span class="buttons"></span></div>
  <pre></pre>
</div>
"""
_STYLE = """
.sweetspot-copied { color: var(--st-text-color); font-family: var(--st-font); font-size: 0.875rem; line-height: 1.5; }
.sweetspot-copied .row {
  display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.5rem;
}
.sweetspot-copied pre {
  margin: 0.25rem 0 0; padding: 0.6rem 0.8rem; background: var(--st-secondary-background-color);
  border-radius: var(--st-base-radius); color: inherit; font: inherit; white-space: pre-wrap; overflow-wrap: anywhere;
}
.sweetspot-copied.code pre { font-family: var(--st-code-font); font-size: 0.8rem; max-height: 16rem; overflow-y: auto; }
.sweetspot-copied .buttons { display: flex; gap: 0.5rem; }
.sweetspot-copied button {
  font: inherit; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.2rem 0.6rem; cursor: pointer;
}
.sweetspot-copied button:hover { border-color: var(--st-primary-color); }
.sweetspot-copied button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-copied .buttons { display: flex; gap: 0.5rem; }
.sweetspot-copied button { display: none; } }
"""
_SCRIPT = """
const SHOWN_MILLISECONDS = 1500;
export default ({ data, parentElement }) => {
  const find = (name) => parentElement.querySelector(name);
  find(".sweetspot-copied").classList.toggle("code", data.code);
  find(".label").textContent = data.label;
  const text = find("pre");
  text.textContent = data.text;
  text.tabIndex = data.code ? 0 : -1; // It scrolls: the keyboard must reach it.
  const waiting = [];
  find(".buttons").replaceChildren(...data.copies.map(([name, copied]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-label", `${name}: ${data.label}`);
    button.onclick = async () => {
      try {
        await navigator.clipboard.writeText(copied);
        button.textContent = "Copied";
      } catch (error) { // No permission: it can be copied by hand.
        text.textContent = copied;
        const range = document.createRange();
        range.selectNodeContents(text);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected";
      }
      waiting.push(setTimeout(() => { button.textContent = name; }, SHOWN_MILLISECONDS));
    };
    return button;
  }));
  return () => waiting.forEach(clearTimeout);
};
"""

_mount = st.components.v2.component("sweetspot_copied", html=_HTML, css=_STYLE, js=_SCRIPT)


def show(methods: Methods | None, stem: str) -> None:
    """Show the sentences, a note on how they may be used, and the BibTeX entries of what they cite.

    Args:
        methods: The page's sentences; None if nothing was chosen yet.
        stem: Part of the widgets' keys, unique on the page.
    """
    st.markdown(HEADING)
    if methods is None:
        st.caption("Nothing has been chosen yet, so that there is nothing to say.")
        return
    copies = [("Copy", methods.text), ("Copy as LaTeX", methods.latex)]
    _show_box("Sentences", methods.text, copies, f"cite_text_{stem}", code=False)
    st.caption(f"{AS_IT_STANDS} {WITHHELD if methods.is_withheld else ''}")
    cards.label(methods.shown_disclosure)
    copies = [("Copy", methods.bibtex)]
    _show_box("BibTeX of the works cited", methods.bibtex, copies, f"cite_bibtex_{stem}", code=True)


def _show_box(label: str, text: str, copies: Sequence[tuple[str, str]], key: str, *, code: bool) -> None:
    data = {"label": label, "text": text, "copies": [list(copy) for copy in copies], "code": code}
    _mount(key=key, data=data, height="content")
