"""Text from outside (file names, column names) made safe for Markdown."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&])")
# Addresses become links even where they are escaped; an invisible word joiner inside prevents it.
_ADDRESS = re.compile(r"https?:(?=//)|www(?=\.)|@", re.IGNORECASE)
_JOINER = "\N{WORD JOINER}"


def plain(text: str, most: int = 80) -> str:
    """``text`` as literal characters in Streamlit's Markdown, cut to ``most`` characters."""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return _SPECIAL.sub(r"\\\1", _ADDRESS.sub(rf"\g<0>{_JOINER}", shown))
