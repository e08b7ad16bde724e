"""Secret links in the browser of the person who runs this Python."""

from __future__ import annotations

import html
import json
import os
import platform
import secrets
import sys
import webbrowser

from dpcore.common.workspace import Workspace


def open_link(link: str, workspace: Workspace) -> bool:
    """Open a secret link; return False if no browser opens it.

    Every account of a computer can read the arguments of a process. So the browser is given the name of a file that
    leads to the link. Nobody else can read the file, which goes with the workspace.
    """
    if not _can_read_files():
        return False
    path = workspace.folder / f"{secrets.token_hex(8)}.html"
    text = f"""<!doctype html><meta charset="utf-8"><title>Sweet Spot</title>
<script>location.replace({json.dumps(link)})</script><a href="{html.escape(link)}">Open Sweet Spot</a>"""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
    return webbrowser.open(path.as_uri())


def _can_read_files() -> bool:
    """Return False for the browser of Windows under WSL, and for one in a snap: they see another temporary folder."""
    return not sys.platform.startswith("linux") or not (
        "microsoft" in platform.release().lower()
        or any(os.path.exists(f"/snap/bin/{name}") for name in ("firefox", "chromium"))
    )
