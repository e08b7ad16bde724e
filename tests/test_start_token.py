"""The start token: who has it, who lacks it, and where it must not stand."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.shared.server import access
from pages.shared.server.access import StartToken, choose_start_token

TOKEN = "a-token-of-32-characters-is-here"
PORT = "8501"
STRAY = f"sweetspot-{PORT}={TOKEN}"


def ask(
    path: str = "/",
    method: str = "GET",
    query: str = "",
    kind: str = "http",
    token: str = TOKEN,
    **headers: str,
) -> tuple[str, dict[str, str]]:
    """Return what came of a request: ``passed`` or the status and the text; and the headers of the answer."""
    messages: list[dict] = []

    async def inner(_scope, _receive, _send):
        messages.append({"type": "passed"})

    async def send(message):
        messages.append(message)

    named = {"host": f"127.0.0.1:{PORT}"} | headers
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    # In a thread of its own: where browser tests have run before, an event loop runs in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, StartToken(inner, token)(scope, None, send)).result()
    if messages == [{"type": "passed"}]:
        return "passed", {}
    if kind == "websocket":
        assert [message["type"] for message in messages] == ["websocket.close"]
        return "closed", {}
    start, body = messages
    text = f"{start['status']} {body['body'].decode()}"
    return text, {name.decode(): value.decode() for name, value in start["headers"]}


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "a=b",
        f"sweetspot-{PORT}=",
        f"sweetspot-{PORT}={TOKEN}x",
        f"sweetspot-{PORT}={TOKEN[:-1]}",
        f"other={TOKEN}",
    ],
)
def test_without_the_cookie_nothing_is_answered(cookie):
    for path in ("/", "/mean", "/_stcore/host-config", "/_stcore/health/x", "/assets/figure.js", "//x"):
        for method in ("GET", "HEAD", "POST", "PUT", "OPTIONS"):
            for query in ("", "token=", f"token={TOKEN}x", f"Token={TOKEN}", f"x=token={TOKEN}"):
                text, headers = ask(path, method, query, cookie=cookie)
                assert text.startswith("403 "), (path, method, query)
                assert "set-cookie" not in headers
                assert TOKEN not in text
    for path in ("/_stcore/stream", "/assets/ahead", "/_stcore/health"):
        assert ask(path, kind="websocket", cookie=cookie, query=f"token={TOKEN}")[0] == "closed"
    # A token in the address is exchanged by GET alone.
    assert ask(method="POST", query=f"token={TOKEN}", cookie=cookie)[0].startswith("403 ")


def test_with_the_cookie_everything_passes():
    # A forwarded port has another number at the browser's end.
    for cookie in (STRAY, f"a=b; sweetspot-9000={TOKEN}; c=d", f"sweetspot-1=wrong; {STRAY}"):
        assert ask(cookie=cookie)[0] == "passed"
        assert ask("/_stcore/upload_file/a/b", "PUT", cookie=cookie)[0] == "passed"
        assert ask("/_stcore/stream", kind="websocket", cookie=cookie)[0] == "passed"
    assert ask("/_stcore/health")[0] == ask("/_stcore/health", "HEAD")[0] == "passed"
    assert ask(token="")[0] == ask(kind="websocket", token="")[0] == "passed"


def test_the_link_sets_a_cookie_of_its_port_and_the_page_does_not_repeat_the_token():
    for host, name in ((f"127.0.0.1:{PORT}", PORT), ("localhost:9000", "9000"), ("[::1]", "80")):
        text, headers = ask("/mean", query=f"eps=3&token={TOKEN}&link=7", host=host)
        assert text.startswith("200 ")
        assert TOKEN not in text
        pieces = headers["set-cookie"].split("; ")
        assert pieces[0] == f"sweetspot-{name}={TOKEN}"
        assert set(pieces[1:]) == {"Path=/", "HttpOnly", "SameSite=Strict"}
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
    # Whoever has the cookie and opens the link again loses the token from the address, too.
    assert ask(query=f"token={TOKEN}", cookie=STRAY)[0].startswith("200 ")


def test_each_start_has_a_token_of_192_bits_unless_one_is_given():
    made = {choose_start_token({}) for _ in range(100)}
    assert len(made) == 100
    assert {len(token) for token in made} == {32}
    assert choose_start_token({"SWEETSPOT_TOKEN": ""}) == ""
    assert choose_start_token({"SWEETSPOT_TOKEN": TOKEN}) == TOKEN
    # The proxy decides who reaches a public demo.
    assert (
        choose_start_token({access.SERVED: "1"})
        == choose_start_token({access.SERVED: "1", "SWEETSPOT_TOKEN": TOKEN})
        == ""
    )
    for wrong in (
        "short",
        "x" * 15,
        "with a space in its middle",
        "semicolon;semicolon",
        "ümlaut-ümlaut-ümlaut",
        "a" * 20 + "\n",
    ):
        with pytest.raises(access.SettingsError, match="SWEETSPOT_TOKEN"):
            choose_start_token({"SWEETSPOT_TOKEN": wrong})
