"""One large number with a button that copies it."""

from __future__ import annotations

import streamlit as st

_HTML = """
<div class="sweetspot-number">
  <div class="label"></div>
  <div class="row"><span class="value"></span><button type="button"></button></div>
  <div class="note"></div>
</div>
"""

_STYLE = """
.sweetspot-number { color: var(--st-text-color); font-family: var(--st-font); line-height: 1.3; }
.sweetspot-number .label { font-size: 0.875rem; }
.sweetspot-number .row { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem; }
.sweetspot-number .value { font-size: 2.25rem; font-weight: 600; overflow-wrap: anywhere; }
.sweetspot-number .note { font-size: 0.875rem; }
.sweetspot-number button {
  font: inherit; font-size: 0.875rem; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.2rem 0.6rem; cursor: pointer;
}
.sweetspot-number button:hover { border-color: var(--st-primary-color); }
.sweetspot-number button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-number button { display: none; } }
"""

_SCRIPT = """
const SHOWN_MILLISECONDS = 1500;
export default ({ data, parentElement }) => {
  const find = (name) => parentElement.querySelector(name);
  find(".label").textContent = data.label;
  find(".value").textContent = `${data.value} ${data.unit}`.trim();
  find(".note").textContent = data.error.length ? `${data.error[0]}: ${data.error.slice(1).join(" ").trim()}` : "";
  const button = find("button");
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${data.copied}`);
  let waiting;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.copied);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = data.copied; // No permission: it can be selected and copied by hand.
    }
    clearTimeout(waiting);
    waiting = setTimeout(() => { button.textContent = "Copy"; }, SHOWN_MILLISECONDS);
  };
  return () => clearTimeout(waiting);
};
"""

KEY_BEGINS = "number_"
"""What stands before a number's key in the session's state."""

_mount = st.components.v2.component("sweetspot_number", html=_HTML, css=_STYLE, js=_SCRIPT)


def show(
    label: str, value: str, unit: str, copied: str, key: str, error: tuple[str, str, str] | None = None
) -> None:
    """Draw the number.

    Args:
        label: What it is.
        value: As it is read.
        unit: After the value; empty for none.
        copied: What the button copies: the digits alone, as a program takes them.
        key: Unique on the page.
        error: Label, value and note of its error, the line below; None for none.
    """
    _mount(
        key=f"{KEY_BEGINS}{key}",
        data={"label": label, "value": value, "unit": unit, "copied": copied, "error": list(error or ())},
        height="content",
    )
