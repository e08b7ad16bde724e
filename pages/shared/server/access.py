"""Access to the server: checks of every request, the token of this start, and the settings of a public demo.

The guard protects against a web page of somebody else, open in the browser of the person who runs the app. Such a page
can send requests to 127.0.0.1. By DNS rebinding (its own name, pointed at 127.0.0.1 once it is open) it can even count
as the same origin as the app. It cannot choose the headers ``Host``, ``Origin`` and ``Sec-Fetch-*`` that its browser
sends along. Streamlit 1.67 checks ``Host`` for the websocket only, and takes every port of this computer for its own
origin. It asks a host on the internet for this computer's address when it does not know an origin. So it is not left to
judge any.

The start token stops other accounts of this computer, which choose their headers freely and would read files with the
rights of the account that runs the server. Only a browser that has the link of this start gets in.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Mapping

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SERVED, ORIGINS = "SWEETSPOT_SERVED", "SWEETSPOT_ORIGINS"

# As a browser writes an origin: scheme, name, and the port where it is not the scheme's own.
_ORIGIN_PATTERN = re.compile(r"https?://(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class SettingsError(ValueError):
    """Settings that the server does not start with; the message says what to set instead."""


def is_served(environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if the app is a public demo, which takes no data."""
    return environment.get(SERVED, "").strip() not in {"", "0"}


def read_public_origins(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the origins named for the public demo, scheme://host:port; empty if none is, refused without a demo.

    Raises:
        SettingsError: Where there are such addresses and no demo, or one that is no origin.
    """
    url_texts = environment.get(ORIGINS, "").replace(",", " ").lower().split()
    if url_texts and not is_served(environment):
        raise SettingsError(
            f"{ORIGINS} names the addresses of a public demo, and this is none. Set {SERVED}=1 as well, "
            f"or unset {ORIGINS}."
        )
    origin_texts = frozenset(
        re.sub(r"^(http:.*):80$|^(https:.*):443$", r"\1\2", url.rstrip("/")) for url in url_texts
    )
    if wrong_urls := sorted(url for url in origin_texts if not _ORIGIN_PATTERN.fullmatch(url)):
        raise SettingsError(
            f"{ORIGINS} holds {', '.join(wrong_urls)}. Write each address as a browser shows it, without a path: "
            f"https://demo.example.org or http://192.0.2.7:8501; several stand apart by commas or spaces."
        )
    return origin_texts


# Any port: whoever forwards another port to this one opens the app there, and no name of a foreign page passes.
_LOCAL_HOST_PATTERN = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")

HEALTH_PATH = "/_stcore/health"
SCRIPT_HEALTH_PATH = "/_stcore/script-health-check"
_DEMO_PATH_PATTERN = re.compile(r"/_stcore/(?:health|host-config|stream|bidi-components/.*)")
"""Streamlit's own addresses that the page of a public demo needs."""

WRONG_HOST = (
    "Sweet Spot answers only at http://127.0.0.1 and http://localhost, with its port, so that no other web page can "
    "reach it. Please open it at one of these. Whoever runs it for others names its address first: docs/hosting.md."
)
WRONG_ORIGIN = "Sweet Spot does not answer other web pages."
DEMO_TAKES_NOTHING = "This is a public demo of Sweet Spot: nothing can be uploaded."
DEMO_HIDES = "This is a public demo of Sweet Spot: it does not answer this address."

_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_RESPONSE_HEADERS = (
    # As `content_policy` says with frame-ancestors, for browsers that do not know it.
    (b"x-frame-options", b"DENY"),
    # No page of another origin may load an answer as its image, script or style, where it could be measured.
    (b"cross-origin-resource-policy", b"same-origin"),
    # No page that opened ours in a tab keeps a hold on that tab.
    (b"cross-origin-opener-policy", b"same-origin"),
)
FRAME_POLICY = "frame-ancestors 'none'"


def build_content_policy(page_texts: Iterable[str]) -> str:
    """Return the Content-Security-Policy: pages load nothing from elsewhere and run no script that we do not serve.

    Args:
        page_texts: The HTML pages with scripts in their text, which are named by their digests.
    """
    script_texts = [
        script_text.encode() for page_text in page_texts for script_text in _INLINE_SCRIPT.findall(page_text)
    ]
    script_digests = [
        base64.b64encode(hashlib.sha256(script_text).digest()).decode() for script_text in script_texts
    ]
    return "; ".join(
        (
            "default-src 'self'",
            # Streamlit 1.67 runs the script of a component that is given as text from a blob.
            " ".join(
                [
                    "script-src 'self' blob:",
                    *(f"'sha256-{script_digest}'" for script_digest in script_digests),
                ]
            ),
            # Streamlit's page writes its styles into the page.
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            FRAME_POLICY,
        )
    )


def find_refusal(scope: Scope, public_origins: frozenset[str], is_demo: bool) -> str:
    """Return why a request or websocket is refused, as text; empty if it is accepted.

    Args:
        scope: Of ASGI, of type ``http`` or ``websocket``.
        public_origins: Origins of a public demo beside this computer's own.
        is_demo: True for a public demo, which takes no uploads.
    """
    headers = Headers(scope=scope)
    host_headers = [host_header.lower() for host_header in headers.getlist("host")]
    if len(host_headers) != 1:
        return WRONG_HOST
    scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
    accepted_origins = {
        origin_header
        for origin_header in public_origins
        if origin_header.partition("//")[2] == host_headers[0]
    }
    if not accepted_origins:
        if not _LOCAL_HOST_PATTERN.fullmatch(host_headers[0]):
            return WRONG_HOST
        # A proxy on this computer may put its own name for us into Host, hence `public`.
        accepted_origins = {f"{scheme}://{host_headers[0]}", *public_origins}
    if any(origin_header.lower() not in accepted_origins for origin_header in headers.getlist("origin")):
        return WRONG_ORIGIN
    # Requests without Origin: links are followed from anywhere, and nothing else is answered to other pages.
    fetch_site = headers.get("sec-fetch-site", "none")
    fetch_mode, fetch_destination = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    is_followed_link = fetch_mode == "navigate" and fetch_destination == "document"
    if fetch_site not in {"none", "same-origin"} and not is_followed_link:
        return WRONG_ORIGIN
    # Whatever the path: a demo has no use for any other method, and no spelling of a path gets by.
    if is_demo and scope["type"] == "http" and scope["method"] not in {"GET", "HEAD"}:
        return DEMO_TAKES_NOTHING
    request_path = scope["path"]
    # A container asks for its own health by this computer's name.
    is_own_script_check = request_path == SCRIPT_HEALTH_PATH and _LOCAL_HOST_PATTERN.fullmatch(
        host_headers[0]
    )
    if (
        is_demo
        and "/_stcore/" in request_path
        and not (is_own_script_check or _DEMO_PATH_PATTERN.fullmatch(request_path))
    ):
        return DEMO_HIDES
    return ""


def _rewrite_origin(scope: Scope) -> Scope:
    """Return the websocket's scope with the host and origin of this computer's own page.

    Streamlit judges again, and its judgement ends at its first comparison, where ``Origin`` and ``Host`` agree. Its
    later comparisons would ask the internet, as happens for the origins of a public demo.
    """
    own_headers = {b"host": b"127.0.0.1", b"origin": b"http://127.0.0.1"}
    new_headers = [
        (header_name, own_headers.get(header_name.lower(), header_value))
        for header_name, header_value in scope["headers"]
    ]
    return {**scope, "headers": new_headers}


def _is_health_check(scope: Scope) -> bool:
    """Return True for a check by a load balancer or orchestrator, which may call the server by any name."""
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and scope["path"] == HEALTH_PATH


class Guard:
    """ASGI middleware that refuses requests before any of their body is read, and limits what pages may load.

    Args:
        app: The app behind it.
        public_origins: Origins of a public demo beside this computer's own.
        is_demo: True for a public demo, which takes no uploads.
        policy: The Content-Security-Policy of every response.
    """

    def __init__(
        self, app: ASGIApp, public_origins: frozenset[str], is_demo: bool, content_policy: str
    ) -> None:
        self._app, self._origins, self._is_demo = app, public_origins, is_demo
        self._headers = ((b"content-security-policy", content_policy.encode()), *_RESPONSE_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a refusal, or hand the request on and add headers to its response.

        A websocket gets this computer's own origin. A health check by a foreign name passes without its headers.
        """
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        reason = find_refusal(scope, self._origins, self._is_demo)
        if scope["type"] == "websocket":
            if reason:
                await send({"type": "websocket.close", "code": 1008, "reason": reason})
            else:
                await self._app(_rewrite_origin(scope), receive, send)
            return

        is_foreign_health_check = (
            reason == WRONG_HOST and _is_health_check(scope) and not Headers(scope=scope).getlist("origin")
        )

        async def send_guarded(message: Message) -> None:
            """Send a message with the response headers; to a foreign health check without cookies."""
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *self._headers]
                if is_foreign_health_check:
                    headers = [header for header in headers if header[0] != b"set-cookie"]
                message = {**message, "headers": headers}
            await send(message)

        if is_foreign_health_check:
            # Whether the server is up is all that it hears: Streamlit sees nothing of who asks, and gives no cookie.
            await self._app({**scope, "headers": [(b"host", b"127.0.0.1")]}, receive, send_guarded)
        elif reason:
            # Closed, or the server would go on reading the body that nobody wants.
            refusal_response = PlainTextResponse(reason, 403, {"Connection": "close"})
            await refusal_response(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)


TOKEN_VARIABLE = "SWEETSPOT_TOKEN"
"""Environment variable: the token of this start. Empty, the server asks for none; unset, it makes one."""
COOKIE_PREFIX = "sweetspot-"
"""Beginning of the cookie's name. The port follows, as browsers send one cookie to all ports of a host."""

_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]{16,}")
_NO_TRACE_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
# A redirect would not do: to the browser it still comes from the file that opened the link, so from another site, and
# a strict cookie stays behind. This page is of the server's own site, and its address takes the place of the link.
SIGN_IN_PAGE = """<!doctype html><meta charset="utf-8"><title>Sweet Spot</title><script>
const address = new URL(location.href);
address.searchParams.delete("token");
location.replace(address.href);
</script>"""
NO_ENTRY = "Sweet Spot opens with the link that stands in the terminal where it was started."
# A link on another site brings no strict cookie along; the same link on this page does.
_REFUSAL_PAGE = f"""<!doctype html><meta charset="utf-8"><title>Sweet Spot</title>
<p>{NO_ENTRY} If it is open in this browser already, <a href="">continue to it</a>.</p>"""


def choose_start_token(environment: Mapping[str, str] = os.environ) -> str:
    """Return the token for a server that starts; empty if none is required.

    Raises:
        SettingsError: The token of the environment is too short, or cannot stand in an address.
    """
    if is_served(environment):
        return ""
    start_token = environment.get(TOKEN_VARIABLE)
    if start_token is None:
        return secrets.token_urlsafe(24)
    if start_token and not _TOKEN_PATTERN.fullmatch(start_token):
        raise SettingsError(
            f"{TOKEN_VARIABLE} must have at least 16 characters, each a letter, a digit, - or _. Set another one, or "
            "unset it."
        )
    return start_token


class StartToken:
    """ASGI middleware that asks for a cookie with the token, and sets it if an address has the token; "" passes all."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, set the cookie, or refuse."""
        if not self._token or scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and self._is_in_address(scope):
            port_match = re.search(r":([0-9]+)$", Headers(scope=scope)["host"])
            cookie_name = f"{COOKIE_PREFIX}{port_match[1] if port_match else 80}"
            cookie = f"{cookie_name}={self._token.decode()}; Path=/; HttpOnly; SameSite=Strict"
            await HTMLResponse(SIGN_IN_PAGE, headers={**_NO_TRACE_HEADERS, "Set-Cookie": cookie})(
                scope, receive, send
            )
        elif self._is_in_cookie(scope) or _is_health_check(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": NO_ENTRY})
        else:
            # Closed, or the server would read a body that nobody wants.
            headers = {**_NO_TRACE_HEADERS, "Connection": "close"}
            await HTMLResponse(_REFUSAL_PAGE, 403, headers)(scope, receive, send)

    def _is_in_address(self, scope: Scope) -> bool:
        """Return True if the query of the address holds the token."""
        query_fields = (query_field.partition(b"=") for query_field in scope["query_string"].split(b"&"))
        return any(
            field_name == b"token" and self._is_token(field_value)
            for field_name, _, field_value in query_fields
        )

    def _is_in_cookie(self, scope: Scope) -> bool:
        """Return True if a cookie of ours holds the token."""
        cookies = cookie_parser("; ".join(Headers(scope=scope).getlist("cookie")))
        # Whatever the port in the name: of a port that is forwarded here, the browser knows the other end.
        return any(
            self._is_token(cookies[cookie_name].encode())
            for cookie_name in cookies
            if cookie_name.startswith(COOKIE_PREFIX)
        )

    def _is_token(self, token_bytes: bytes) -> bool:
        """Return True if the bytes are the token; the comparison takes the same time for all."""
        return secrets.compare_digest(token_bytes, self._token)
