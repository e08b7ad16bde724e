"""What a server answers over HTTP, to a request for a page or for a websocket."""

from __future__ import annotations

import contextlib
import http.client
import http.server
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str


def ask(url: str, path: str, method: str = "GET", **headers: str) -> Answer:
    """What the server answers; `Host` is its own unless it is given. Nothing of a body is sent."""
    port = int(url.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in ({"host": f"127.0.0.1:{port}"} | headers).items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        # After 101 the connection is a websocket, which says nothing until it is asked.
        body = "" if response.status == 101 else response.read().decode()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


def open_websocket(url: str, **headers: str) -> Answer:
    return ask(
        url,
        "/_stcore/stream",
        connection="Upgrade",
        upgrade="websocket",
        sec_websocket_version="13",
        sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==",
        **headers,
    )
