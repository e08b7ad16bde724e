"""The sentences for a methods section and what they cite, each in a box with a button that copies it."""

from __future__ import annotations

import streamlit as st

from dpcore.report.methods import Methods
from pages.shared import cards

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
  <div class="row"><span class="label"></span><button type="button"></button></div>
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
.sweetspot-copied button {
  font: inherit; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.2rem 0.6rem; cursor: pointer;
}
.sweetspot-copied button:hover { border-color: var(--st-primary-color); }
.sweetspot-copied button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-copied button { display: none; } }
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
  const button = find("button");
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${data.label}`);
  let waiting;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.text);
      button.textContent = "Copied";
    } catch (error) { // No permission: it is selected, and can be copied by hand.
      const range = document.createRange();
      range.selectNodeContents(text);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
    }
    clearTimeout(waiting);
    waiting = setTimeout(() => { button.textContent = "Copy"; }, SHOWN_MILLISECONDS);
  };
  return () => clearTimeout(waiting);
};
"""

_mount = st.components.v2.component("sweetspot_copied", html=_HTML, css=_STYLE, js=_SCRIPT)


def show(methods: Methods | None, stem: str) -> None:
    """Draw the sentences, what they are, and the entries of what they cite.

    Args:
        methods: What the page has to say; None where nothing was chosen yet.
        stem: Part of the widgets' keys, unique on the page.
    """
    st.markdown(HEADING)
    if methods is None:
        st.caption("Nothing has been chosen yet, so that there is nothing to say.")
        return
    _box("Sentences", methods.text, f"cite_text_{stem}", code=False)
    st.caption(f"{AS_IT_STANDS} {WITHHELD if methods.is_withheld else ''}")
    cards.label(methods.shown)
    _box("BibTeX of the works cited", methods.bibtex, f"cite_bibtex_{stem}", code=True)


def _box(label: str, text: str, key: str, *, code: bool) -> None:
    _mount(key=key, data={"label": label, "text": text, "code": code}, height="content")
