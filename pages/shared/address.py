"""What Streamlit leaves undone around a page: the address that follows it, and tags that can be read.

Streamlit's own `st.query_params` adds an entry to the browser's history for every change: after twenty steps of a
slider, *Back* would have to be pressed twenty times. This replaces the entry.

The tags of a multiselect are white on the primary colour, 3.25:1 on a dark page. In the page's own background colour
they have what the theme guarantees for the primary colour on the page, at least 4.5:1, light and dark.
"""

from __future__ import annotations

import streamlit as st

_SCRIPT = """
const TAGS = "sweetspot-tags";
// After the next picture: to ask for a colour makes the browser work out all styles that have just changed, and new
// curves would wait for it.
export default (component) => {
  let timer;
  const frame = requestAnimationFrame(() => { timer = setTimeout(() => follow(component)); });
  return () => { cancelAnimationFrame(frame); clearTimeout(timer); };
};
function follow({ data, parentElement }) {
  const { pathname, search } = window.location;
  const wanted = data.query ? `?${data.query}` : "";
  if (search !== wanted) window.history.replaceState(window.history.state, "", pathname + wanted);
  const root = document.documentElement.style;
  if (root.fontSize !== data.size) root.fontSize = data.size;
  let style = document.getElementById(TAGS);
  if (!style) {
    style = document.createElement("style");
    style.id = TAGS;
    document.head.append(style);
  }
  const ground = getComputedStyle(parentElement).getPropertyValue("--st-background-color").trim();
  const rule = `[data-testid="stMultiSelect"] :is([data-tag], [data-tag] *) { color: ${ground} !important; }`;
  if (ground && style.textContent !== rule) style.textContent = rule;
}
"""

_mount = st.components.v2.component("sweetspot_address", js=_SCRIPT, isolate_styles=False)


def follow(query: str, size: str = "") -> None:
    """Make this the query of the browser's address.

    Args:
        query: Without its question mark; it must hold nothing that was computed from private data.
        size: Of the type, in CSS, where it is not the usual one.
    """
    _mount(key="address", data={"query": query, "size": size}, height=1)
