"""The elements of numbers: a large one with a button that copies it, a grid of several (`cards`), and a single one."""

from __future__ import annotations

import streamlit as st

_LARGE_HTML = """
<div class="sweetspot-number">
  <div class="row"><span class="label"></span><button type="button"></button></div>
  <div class="value"></div>
  <div class="note"></div>
  <div class="parts"></div>
</div>
"""

_LARGE_STYLE = """
.sweetspot-number { color: var(--st-text-color); font-family: var(--st-font); line-height: 1.3; }
.sweetspot-number .label { font-size: 0.875rem; }
.sweetspot-number .row { display: flex; align-items: center; gap: 0.5rem; min-height: 1.75rem; }
.sweetspot-number .value { font-size: 2.25rem; font-weight: 600; overflow-wrap: anywhere; }
.sweetspot-number .unit { font-size: 1rem; font-weight: 400; }
.sweetspot-number :is(.note, .parts) { font-size: 0.875rem; }
.sweetspot-number .parts { display: flex; flex-wrap: wrap; column-gap: 0.75rem; }
.sweetspot-number .parts span::before {
  content: ""; display: inline-block; width: 0.6em; height: 0.6em; margin-right: 0.3em; background: var(--part);
}
.sweetspot-number button {
  font: inherit; font-size: 0.875rem; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.1rem 0.6rem; cursor: pointer; flex: none;
}
.sweetspot-number button:hover { border-color: var(--st-primary-color); }
.sweetspot-number button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-number button { display: none; } }
"""

_LARGE_SCRIPT = """
const SHOWN_MILLISECONDS = 1500;
export default ({ data, parentElement }) => {
  const find = (name) => parentElement.querySelector(name);
  find(".label").textContent = data.label;
  const unit = document.createElement("span");
  unit.className = "unit";
  unit.textContent = data.unit ? ` ${data.unit}` : "";
  find(".value").replaceChildren(data.value, unit);
  find(".note").textContent = data.error.length ? `${data.error[0]}: ${data.error.slice(1).join(" ").trim()}` : "";
  find(".parts").replaceChildren(...data.parts.map(([name, text, colour]) => {
    const part = document.createElement("span");
    part.style.setProperty("--part", colour);
    part.textContent = `${name} ${text}`;
    return part;
  }));
  const button = find("button");
  button.hidden = !data.copied;
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

LARGE_BEGINS = "number_"
"""What stands before a number's key in the session's state."""

MOUNT_LARGE = st.components.v2.component(
    "sweetspot_number", html=_LARGE_HTML, css=_LARGE_STYLE, js=_LARGE_SCRIPT
)


_GRID_HTML = '<dl class="sweetspot-grid"></dl>'

_GRID_STYLE = """
.sweetspot-grid {
  display: grid; gap: 1rem; margin: 0;
  --widest: calc((100% - (var(--columns) - 1) * 1rem) / var(--columns));
  grid-template-columns: repeat(auto-fit, minmax(max(150px, var(--widest)), 1fr));
  color: var(--st-text-color); font-family: var(--st-font); line-height: 1.3;
}
.sweetspot-grid .wide { grid-column: 1 / -1; }
.sweetspot-grid dt { font-size: 0.875rem; }
.sweetspot-grid dd { margin: 0; overflow-wrap: anywhere; }
.sweetspot-grid .value { font-size: 1.75rem; }
.sweetspot-grid .note, .sweetspot-grid .help { font-size: 0.875rem; }
.sweetspot-grid .help { border-left: 2px solid var(--st-border-color); padding-left: 0.5rem; margin-top: 0.25rem; }
.sweetspot-grid button {
  font: inherit; font-size: 0.75rem; line-height: 1; width: 1.25rem; height: 1.25rem; padding: 0; margin-left: 0.35rem;
  color: var(--st-text-color); background: transparent; border: 1px solid var(--st-border-color); border-radius: 50%;
  cursor: pointer;
}
.sweetspot-grid button:hover { border-color: var(--st-primary-color); }
.sweetspot-grid button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
@media print { .sweetspot-grid button { display: none; } }
"""

# A number that stays keeps its element, and with it whether its explanation is open.
_GRID_SCRIPT = """
const made = () => {
  const cell = document.createElement("div");
  for (const [tag, name] of [["dt", "label"], ["dd", "value"], ["dd", "note"], ["dd", "help"]]) {
    const part = document.createElement(tag);
    part.className = name;
    cell.append(part);
  }
  const [label, help] = [cell.querySelector(".label"), cell.querySelector(".help")];
  const why = document.createElement("button");
  why.type = "button";
  why.textContent = "?";
  why.onclick = () => {
    help.hidden = !help.hidden;
    why.setAttribute("aria-expanded", String(!help.hidden));
  };
  why.setAttribute("aria-expanded", "false");
  help.hidden = true;
  label.append(document.createElement("span"), why);
  return cell;
};
const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
export default ({ data, parentElement }) => {
  const grid = parentElement.querySelector(".sweetspot-grid");
  // At most five in a row, and no row of one where others are full: six are two rows of three, seven four and three.
  const short = data.filter(({ wide }) => !wide).length;
  grid.style.setProperty("--columns", Math.ceil(short / Math.ceil(short / 5)) || 1);
  while (grid.children.length < data.length) grid.append(made());
  while (grid.children.length > data.length) grid.lastChild.remove();
  data.forEach(({ label, value, note, help, wide }, place) => {
    const cell = grid.children[place];
    cell.className = wide ? "wide" : "";
    write(cell.querySelector(".label span"), label);
    write(cell.querySelector(".value"), value);
    write(cell.querySelector(".note"), note);
    write(cell.querySelector(".help"), help);
    const why = cell.querySelector("button");
    why.style.display = help ? "" : "none";
    why.title = help;
    why.setAttribute("aria-label", `What this is: ${label}`);
    if (!help) cell.querySelector(".help").hidden = true;
  });
};
"""

GRID_BEGINS = "numbers_"
"""What stands before a grid's key in the session's state."""

MOUNT_GRID = st.components.v2.component("sweetspot_grid", html=_GRID_HTML, css=_GRID_STYLE, js=_GRID_SCRIPT)


def single(label: str, value: str, note: str, help: str = "") -> None:
    """One number beside a figure, with a note that compares it."""
    st.metric(label, value, note, delta_color="off", delta_arrow="off", help=help or None)
