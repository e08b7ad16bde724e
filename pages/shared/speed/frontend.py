"""The scripts of Streamlit's own page, without the detours of a general file server.

A page that opens asks for a hundred of them. In Streamlit 1.67 Starlette's `StaticFiles` serves each. It goes to
another thread to find a file, to open it, to read every piece, and to close it. All of this takes about 8 ms a file
while the pages' modules are loaded, though all files are in the operating system's memory. Read and sent at once,
sixty files arrive 0.25 s sooner on two cores, and so does the first figure.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import Response

from pages.shared.streamlit_internals import find_static_folder

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

FOREVER = "public, max-age=31536000, immutable"
# Names that hold a digest of the content, as in Streamlit 1.67's build: Slider.WU6er_Bo.js. Only these may be kept for
# good; whatever is called otherwise, Streamlit serves itself. No name holds a slash or begins with a dot.
_DIGEST_NAME = re.compile(r"/static/(?:js|css|media)/\w[\w.-]*\.[\w-]{8}\.(?:js|css|woff2)", re.ASCII)
# Not asked of the computer: the registry of Windows often has another kind for .js, and browsers run no such module.
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}


class Frontend:
    """ASGI middleware that serves Streamlit's own scripts, styles and fonts; all other requests pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the file, or hand the request on."""
        await (_answer(scope) or self._app)(scope, receive, send)


def _answer(scope: Scope) -> Response | None:
    if scope["type"] != "http" or scope["method"] != "GET" or not _DIGEST_NAME.fullmatch(scope["path"]):
        return None
    # What is asked for a part of a file, or whether it has changed, is rare.
    if not {"range", "if-none-match", "if-modified-since"}.isdisjoint(Headers(scope=scope)):
        return None
    try:
        return _read_file(scope["path"])
    except OSError:
        return None


@cache
def _read_file(path: str) -> Response:
    """Return the response with a file's content, cached: all files together have 26 MB, those that our pages need 4."""
    folder = find_static_folder()
    if folder is None:
        raise FileNotFoundError(path)
    content = (folder / path[1:]).read_bytes()
    return Response(content, media_type=_MEDIA_TYPES[Path(path).suffix], headers={"Cache-Control": FOREVER})
