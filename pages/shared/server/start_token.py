"""The start token: only a browser that has the link of this start may use the server.

The checks of `guard` stop web pages. They do not stop other accounts of this computer, which choose their headers
freely and would read files with the rights of the account that runs the server.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse

from pages.shared.base import demo
from pages.shared.server.guard import HEALTH

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN = "SWEETSPOT_TOKEN"
"""Environment variable: the token of this start. Empty, the server asks for none; unset, it makes one."""
COOKIE = "sweetspot-"
"""Beginning of the cookie's name. The port follows, as browsers send one cookie to all ports of a host."""

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]{16,}")
_NO_TRACE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
# A redirect would not do: to the browser it still comes from the file that opened the link, so from another site, and
# a strict cookie stays behind. This page is of the server's own site, and its address takes the place of the link.
SIGN_IN = """<!doctype html><meta charset="utf-8"><title>Sweet Spot</title><script>
const address = new URL(location.href);
address.searchParams.delete("token");
location.replace(address.href);
</script>"""
NO_ENTRY = "Sweet Spot opens with the link that stands in the terminal where it was started."
# A link on another site brings no strict cookie along; the same link on this page does.
_REFUSED = f"""<!doctype html><meta charset="utf-8"><title>Sweet Spot</title>
<p>{NO_ENTRY} If it is open in this browser already, <a href="">continue to it</a>.</p>"""


def start_token(environment: Mapping[str, str] = os.environ) -> str:
    """Return the token for a server that starts; empty if none is required.

    Raises:
        SettingsError: The token of the environment is too short, or cannot stand in an address.
    """
    if demo.is_served(environment):
        return ""
    token = environment.get(TOKEN)
    if token is None:
        return secrets.token_urlsafe(24)
    if token and not _ACCEPTED.fullmatch(token):
        raise demo.SettingsError(
            f"{TOKEN} must have at least 16 characters, each a letter, a digit, - or _. Set another one, or unset it."
        )
    return token


class StartToken:
    """ASGI middleware that passes requests with the cookie, and exchanges the token of an address for it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, set the cookie, or refuse."""
        if not self._token or scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and self._is_in_address(scope):
            port = re.search(r":([0-9]+)$", Headers(scope=scope)["host"])
            cookie = (
                f"{COOKIE}{port[1] if port else 80}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"
            )
            await HTMLResponse(SIGN_IN, headers={**_NO_TRACE, "Set-Cookie": cookie})(scope, receive, send)
        elif self._is_in_cookie(scope) or _is_health_check(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": NO_ENTRY})
        else:
            headers = {
                **_NO_TRACE,
                "Connection": "close",
            }  # Or the server would read a body that nobody wants.
            await HTMLResponse(_REFUSED, 403, headers)(scope, receive, send)

    def _is_in_address(self, scope: Scope) -> bool:
        pairs = (pair.partition(b"=") for pair in scope["query_string"].split(b"&"))
        return any(name == b"token" and self._is_token(value) for name, _, value in pairs)

    def _is_in_cookie(self, scope: Scope) -> bool:
        cookies = cookie_parser("; ".join(Headers(scope=scope).getlist("cookie")))
        # Whatever the port in the name: of a port that is forwarded here, the browser knows the other end.
        return any(self._is_token(cookies[name].encode()) for name in cookies if name.startswith(COOKIE))

    def _is_token(self, value: bytes) -> bool:
        return secrets.compare_digest(value, self._token)


def _is_health_check(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and scope["path"] == HEALTH
