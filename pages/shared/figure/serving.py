"""The scripts that draw figures, served once from the app's own address.

Components of Streamlit 1.67 serve files for installed packages only, and a script given as text travels with every
message. Plotly's script has 1.2 MB, so both scripts get routes of `st.App`. Their addresses name their content: a
browser may keep them for good.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dpcore.report import plotly_script
from pages.shared.speed.frontend import FOREVER

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class Script:
    """A script and the address at which it is served.

    Attributes:
        name: First part of the address.
        files: Where it is on this computer; several are one script, in this order.
        version: Names the content, so that a new one has a new address.
    """

    name: str
    files: tuple[Path, ...]
    version: str

    @property
    def address(self) -> str:
        """Return the path below the root of the app."""
        return f"/assets/{self.name}-{self.version}.js"

    @cached_property
    def content(self) -> bytes:
        """Return the text of the script."""
        return b"\n".join(file.read_bytes() for file in self.files)

    @cached_property
    def compressed(self) -> bytes:
        """Return the compressed text: Plotly's shrinks from 1.2 to 0.4 MB, which takes 0.05 s once per process."""
        return gzip.compress(self.content, compresslevel=6, mtime=0)

    def respond(self, request: Request) -> Response:
        """Return the response to a request for the script. It runs in a thread: compressing delays no other request."""
        tag = f'"{self.version}"'
        headers = {
            "Cache-Control": FOREVER,
            "ETag": tag,
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if tag in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.compressed, media_type="text/javascript", headers=headers)
        # Said in so many words, so that Streamlit's own layer does not compress it for every request anew.
        headers["Content-Encoding"] = "identity"
        return Response(self.content, media_type="text/javascript", headers=headers)


def build_script(name: str, *files: Path) -> Script:
    """Return a script whose version is a digest of its text."""
    text = b"\n".join(file.read_bytes() for file in files)
    return Script(name, files, hashlib.sha256(text).hexdigest()[:16])


PLOTLY = build_script("plotly", plotly_script.find_script())
FIGURE = build_script(
    "figure", *(Path(__file__).with_name(name) for name in ("handle.js", "appearance.js", "figure.js"))
)

ROUTES: list[BaseRoute] = [Route(each.address, each.respond, methods=["GET"]) for each in (PLOTLY, FIGURE)]


class EarlyScripts:
    """Middleware that tells the browser, with the page itself, which scripts the figures will need.

    It fetches them while Streamlit still connects and the page's script runs for the first time.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, with a header for preloading added to web pages."""

        async def with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    root = scope.get("root_path", "")
                    headers.append("Link", f"<{root}{PLOTLY.address}>; rel=preload; as=script")
                    headers.append("Link", f"<{root}{FIGURE.address}>; rel=modulepreload")
            await send(message)

        await self._app(scope, receive, with_header if scope["type"] == "http" else send)


MIDDLEWARE = [Middleware(EarlyScripts)]
