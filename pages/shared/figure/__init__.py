"""A figure that is updated in place: it keeps its element, its zoom and its size while a slider moves.

Components of Streamlit 1.67 serve files for installed packages only, and a script given as text travels with every
message. Plotly's script has 1.2 MB, so both scripts get routes of `st.App`. Their addresses name their content: a
browser may keep them for good.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dpcore.report import plotly_script
from pages.shared import speed
from pages.shared.speed import CACHE_FOREVER

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class ServedScript:
    """A script and the address at which it is served.

    Attributes:
        name: First part of the address.
        paths: Where it is on this computer; several are one script, in this order.
    """

    name: str
    paths: tuple[Path, ...]

    @cached_property
    def version(self) -> str:
        """Return a digest of the content, so that a new one has a new address."""
        return hashlib.sha256(self.content).hexdigest()[:16]

    @property
    def address(self) -> str:
        """Return the path below the root of the app."""
        return f"/assets/{self.name}-{self.version}.js"

    @cached_property
    def content(self) -> bytes:
        """Return the text of the script."""
        return b"\n".join(file.read_bytes() for file in self.paths)

    @cached_property
    def compressed_content(self) -> bytes:
        """Return the compressed text: Plotly's shrinks from 1.2 to 0.4 MB, which takes 0.05 s once per process."""
        return gzip.compress(self.content, compresslevel=6, mtime=0)

    def respond(self, request: Request) -> Response:
        """Return the response to a request for the script: the script, compressed if accepted, or 304 if it is known.

        It runs in a thread: compressing delays no other request.
        """
        entity_tag = f'"{self.version}"'
        headers = {"Cache-Control": CACHE_FOREVER, "ETag": entity_tag}
        headers |= {"Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
        if entity_tag in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.compressed_content, media_type="text/javascript", headers=headers)
        # Said in so many words, so that Streamlit's own layer does not compress it for every request anew.
        headers["Content-Encoding"] = "identity"
        return Response(self.content, media_type="text/javascript", headers=headers)


PLOTLY_SCRIPT = ServedScript("plotly", (plotly_script.find_script(),))
_FIGURE_FILES = ("handle.js", "appearance.js", "figure.js")
FIGURE_SCRIPT = ServedScript("figure", tuple(map(Path(__file__).with_name, _FIGURE_FILES)))

ROUTES: list[BaseRoute] = [
    Route(s.address, s.respond, methods=["GET"]) for s in (PLOTLY_SCRIPT, FIGURE_SCRIPT)
]


class EarlyScripts:
    """Middleware that tells the browser, with the page itself, which scripts the figures will need.

    It fetches them while Streamlit still connects and the page's script runs for the first time.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, with a header for preloading added to web pages."""

        async def send_with_header(message: Message) -> None:
            """Send a message; one that begins a web page gets two headers for preloading."""
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    root_path = scope.get("root_path", "")
                    headers.append("Link", f"<{root_path}{PLOTLY_SCRIPT.address}>; rel=preload; as=script")
                    headers.append("Link", f"<{root_path}{FIGURE_SCRIPT.address}>; rel=modulepreload")
            await send(message)

        await self._app(scope, receive, send_with_header if scope["type"] == "http" else send)


MIDDLEWARE = [Middleware(EarlyScripts)]


FIGURE_PIXELS = 420
"""Height in pixels of a figure that says none."""

STRIP_PIXELS, NOTE_PIXELS = 112, 22
"""Heights in pixels, below a figure with a handle: of the strip with cut users and simulated releases, and of a line
that explains them for private data."""
TOGGLES_PIXELS = 36
"""Height in pixels of the row of toggles below a figure."""

WIDGET_KEY_PREFIX = "figure_"
"""Prefix of a figure's key in the session state."""

# This text travels with every message, so it only fetches the script that is served once.
_LOADER_SCRIPT = """
const resolve = (path) => new URL(ROOT + path, document.baseURI).href;
let script;
export default async (component) => {
  try {
    script ??= import(resolve(FIGURE));
    return (await script).default(component, resolve(PLOTLY), resolve(SOCKET));
  } catch (error) {
    script = undefined;
    console.warn(error);
    component.parentElement.textContent =
      "The figure cannot be drawn: a script did not arrive. Reload this page.";
  }
};
"""


def _build_loader() -> str:
    """Build the script that Streamlit sends with every figure: addresses, and a loader of the served script."""
    root_path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    addresses_by_name = {
        "FIGURE": FIGURE_SCRIPT.address,
        "PLOTLY": PLOTLY_SCRIPT.address,
        "SOCKET": speed.SOCKET_PATH,
    }
    texts_by_name = {"ROOT": f"/{root_path}" if root_path else "", **addresses_by_name}
    return (
        "".join(
            f"const {constant_name} = {json.dumps(constant_text)};\n"
            for constant_name, constant_text in texts_by_name.items()
        )
        + _LOADER_SCRIPT
    )


# Plotly keeps its style sheet in the document, where a shadow root would not see it.
_mount_figure = st.components.v2.component("sweetspot_figure", js=_build_loader(), isolate_styles=False)


def draw_figure(
    fig: go.Figure,
    figure_key: str,
    alt: str,
    title: str,
    file_name: str,
    csv_button_key: str,
    handle_and_keys: tuple[Mapping[str, Any], tuple[str, ...]] | None,
) -> None:
    """Draw a figure, or update the one that has this key: its main curves from before stay visible, pale.

    Args:
        fig: The figure; its height is kept.
        figure_key: Unique on the page, and the same from run to run: the browser recognises the figure by it.
        alt: What the figure shows, its takeaway first, for a screen reader.
        title: The title of saved pictures.
        file_name: Name of saved pictures, without the ending.
        csv_button_key: Key of the download button of the figure's data, which the figure's own button presses.
        handle_and_keys: Description of the handle, and session keys of the numbers that it moves; None for no handle.
    """
    channel = speed.get_channel()
    handle_json, field_keys = handle_and_keys or (None, ())
    height_pixels = int(fig.layout.height or FIGURE_PIXELS) + compute_strip_pixels(handle_json)
    height_pixels += TOGGLES_PIXELS * any(trace.meta == "toggle" for trace in fig.data)
    message_texts = {
        "alt": alt,
        "title": title,
        "fileName": file_name,
        "csv": csv_button_key,
        "key": figure_key,
    }
    channel_token = channel.token if speed.IS_ON else ""
    message_json = build_message(fig, handle_json, ghost=True, channel=channel_token, **message_texts)
    channel.send(figure_key, message_json)
    # To Streamlit a component is a widget: its key is one of the session's state, where a page may keep something
    # of its own under the figure's name.
    widget_key, component_options = f"{WIDGET_KEY_PREFIX}{figure_key}", dict[str, Any]()
    if handle_json is not None:
        component_options["on_moved_change"] = functools.partial(_apply_moved_values, widget_key, field_keys)
    with st.container(key=figure_key):
        _mount_figure(key=widget_key, data=message_json, height=height_pixels, **component_options)


def compute_strip_pixels(handle_json: Mapping[str, Any] | None) -> int:
    """Return the height in pixels of the strip below a figure with a handle; 0 without one."""
    if handle_json is None:
        return 0
    return STRIP_PIXELS + (NOTE_PIXELS if (handle_json["dots"] or {}).get("is_private") else 0)


def _apply_moved_values(widget_key: str, field_keys: tuple[str, ...]) -> None:
    """Put the values at which the handle was released into their fields; none if one lacks or is no number above 0."""
    value_or_values = st.session_state[widget_key].moved
    moved_values = value_or_values if isinstance(value_or_values, list) else [value_or_values]
    # The browser is not believed: what is no number in reach is left where it came from.
    are_valid = [isinstance(x, (int, float)) and math.isfinite(x) and x > 0 for x in moved_values]
    if len(moved_values) == len(field_keys) and all(are_valid):
        st.session_state.update(
            {field_key: float(x) for field_key, x in zip(field_keys, moved_values, strict=True)}
        )


def build_message(
    fig: go.Figure, handle_json: Mapping[str, Any] | None = None, **details_by_name: Any
) -> bytes:
    """Return the browser's message about a figure: JSON with Plotly's own ``figure``, arrays as base64.

    Args:
        fig: The figure.
        handle_json: Description of its handle, as `figures.describe_handle` returns it; None for none.
        details_by_name: What else the message says; messages that are sent ahead use ``key``, the figure's, and
            ``channel``, the session's token.
    """
    from dpcore.report import plotly_figures  # NumPy, which comes after the server

    # Bytes: a text or a dict would be put into JSON a second time, and its digest computed from a third.
    details_by_name["height"] = int(fig.layout.height or FIGURE_PIXELS)
    if handle_json is not None:
        details_by_name |= {"handle": handle_json, "strip": compute_strip_pixels(handle_json)}
    return f'{{"figure":{plotly_figures.to_json(fig)},{json.dumps(details_by_name)[1:]}'.encode()


__all__ = ["MIDDLEWARE", "ROUTES", "build_message", "draw_figure"]
