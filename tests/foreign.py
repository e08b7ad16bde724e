"""A listener in place of the network, for tests of what the server asks of it."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

PUBLIC_ADDRESS = "203.0.113.9"
"""What the listener answers whoever asks for this computer's address (RFC 5737: nobody's)."""


@dataclass
class Listener:
    """Where it listens, and the first line of everything it was asked."""

    port: int
    requests: list[str] = field(default_factory=list)


@contextmanager
def listen() -> Iterator[Listener]:
    """Listen on a free port, and answer everything with `PUBLIC_ADDRESS`."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            listener.requests.append(self.rfile.readline().decode("latin-1").strip())
            body = PUBLIC_ADDRESS.encode()
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        listener = Listener(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield listener
        finally:
            server.shutdown()
            thread.join()


def redirect_network(listener: Listener, patch: pytest.MonkeyPatch) -> None:
    """Send requests of processes started and made from here to the listener instead of other computers."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        patch.setenv(name, f"http://127.0.0.1:{listener.port}")
        patch.setenv(name.upper(), f"http://127.0.0.1:{listener.port}")
    for name in ("no_proxy", "NO_PROXY"):
        patch.delenv(name, raising=False)
