"""The component that draws a figure, and what it is told."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from pages.shared import speed
from pages.shared.figure.serving import FIGURE, PLOTLY
from pages.shared.speed import figure_socket

HEIGHT = 420
"""Height in pixels of a figure that says none."""

STRIP, NOTE = 112, 22
"""Height in pixels of what stands below a figure with a handle: users who are cut, and simulated releases; and of a
line that says of private data where these come from."""

KEY_BEGINS = "figure_"
"""What stands before a figure's key in the session's state."""

# This text travels with every message, so it only fetches the script that is served once.
_LOADER = """
const at = (path) => new URL("ROOT" + path, document.baseURI).href;
let script;
export default async (component) => {
  try {
    script ??= import(at("FIGURE"));
    return (await script).default(component, at("PLOTLY"), at("SOCKET"));
  } catch (error) {
    script = undefined;
    console.warn(error);
    component.parentElement.textContent =
      "The figure cannot be drawn: a script did not arrive. Load this page anew.";
  }
};
"""


def _loader() -> str:
    root = str(st.get_option("server.baseUrlPath") or "").strip("/")
    texts = {
        "ROOT": f"/{root}" if root else "",
        "FIGURE": FIGURE.address,
        "PLOTLY": PLOTLY.address,
        "SOCKET": figure_socket.ADDRESS,
    }
    loader = _LOADER
    for name, text in texts.items():
        loader = loader.replace(f'"{name}"', json.dumps(text))
    return loader


# Plotly keeps its style sheet in the document, where a shadow root would not see it.
_mount = st.components.v2.component("sweetspot_figure", js=_loader(), isolate_styles=False)


def draw(
    fig: go.Figure,
    key: str,
    alt: str,
    file_name: str,
    *,
    csv: str = "",
    ghost: bool = False,
    handle: tuple[Mapping[str, Any], tuple[str, ...]] | None = None,
) -> None:
    """Draw a figure, or update the one that stands there under this key.

    Args:
        fig: The figure; its height holds.
        key: Unique on the page, and the same from run to run: by it the browser knows the figure again.
        alt: What the figure shows, its takeaway first, for a screen reader.
        file_name: Of pictures that are saved, without the ending.
        csv: Key of the download button of the figure's data, which the figure's own button presses; none by default.
        ghost: Whether the main curves as they were before the last change stand pale behind the new ones.
        handle: What its handle is told, and the session's keys of the numbers that it moves; None for no handle.
    """
    channel = figure_socket.channel()
    words = None if handle is None else handle[0]
    token = channel.token if speed.IS_ON else ""
    told = message(fig, alt, file_name, csv=csv, ghost=ghost, key=key, channel=token, handle=words)
    channel.tell(key, told)
    height = int(fig.layout.height or HEIGHT)
    # To Streamlit a component is a widget: its key is one of the session's state, where a page may keep something
    # of its own under the figure's name.
    mounted = f"{KEY_BEGINS}{key}"
    with st.container(key=key):
        if handle is None:
            _mount(key=mounted, data=told, height=height)
        else:
            moved = functools.partial(_moved, mounted, handle[1])
            _mount(key=mounted, data=told, height=height + strip_height(handle[0]), on_moved_change=moved)


def strip_height(handle: Mapping[str, Any]) -> int:
    """Height in pixels of what stands below the figure."""
    return STRIP + (NOTE if handle.get("dots", {}).get("alone") else 0)


def _moved(mounted: str, fields: tuple[str, ...]) -> None:
    """Put the numbers at which the handle was let go into their fields; runs before the page does."""
    moved = st.session_state[mounted].moved
    numbers = moved if isinstance(moved, list) else [moved]
    # The browser is not believed: what is no number in reach is left where it came from.
    good = [isinstance(x, (int, float)) and math.isfinite(x) and x > 0 for x in numbers]
    if len(numbers) == len(fields) and all(good):
        st.session_state.update({field: float(x) for field, x in zip(fields, numbers, strict=True)})


def message(
    fig: go.Figure,
    alt: str,
    file_name: str,
    *,
    csv: str = "",
    ghost: bool = False,
    key: str = "",
    channel: str = "",
    handle: Mapping[str, Any] | None = None,
) -> bytes:
    """Return what the browser is told of a figure: JSON whose ``figure`` is Plotly's own, arrays as base64.

    ``key`` is the figure's and ``channel`` the session's token, by which later messages come ahead; the other
    arguments are those of `draw`.
    """
    from dpcore.report import plotly_figures  # NumPy, which comes after the server

    # Bytes: a text or a dict would be put into JSON a second time, and its digest computed from a third.
    words: dict[str, Any] = {
        "alt": alt,
        "fileName": file_name,
        "csv": csv,
        "height": int(fig.layout.height or HEIGHT),
        "ghost": ghost,
        "key": key,
        "channel": channel,
    }
    if handle is not None:
        words |= {"handle": handle, "strip": strip_height(handle)}
    return f'{{"figure":{plotly_figures.to_json(fig)},{json.dumps(words)[1:]}'.encode()
