"""A public demo: whether this is one, and the addresses under which browsers reach it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

SERVED, ORIGINS = "SWEETSPOT_SERVED", "SWEETSPOT_ORIGINS"

# As a browser writes an origin: scheme, name, and the port where it is not the scheme's own.
_ORIGIN = re.compile(r"https?://(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class SettingsError(ValueError):
    """Settings that the server does not start with; the message says what to set instead."""


def is_served(environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if the app is a public demo, which takes no data."""
    return environment.get(SERVED, "").strip() not in {"", "0"}


def public_origins(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the addresses under which browsers reach the public demo, as they write them in ``Origin``.

    Raises:
        SettingsError: Where there are such addresses and no demo, or one that is no origin.
    """
    urls = environment.get(ORIGINS, "").replace(",", " ").lower().split()
    if urls and not is_served(environment):
        raise SettingsError(
            f"{ORIGINS} names the addresses of a public demo, and this is none. Set {SERVED}=1 as well, "
            f"or unset {ORIGINS}."
        )
    origins = frozenset(re.sub(r"^(http:.*):80$|^(https:.*):443$", r"\1\2", url.rstrip("/")) for url in urls)
    if wrong := sorted(url for url in origins if not _ORIGIN.fullmatch(url)):
        raise SettingsError(
            f"{ORIGINS} holds {', '.join(wrong)}. Write each address as a browser shows it, without a path: "
            f"https://demo.example.org or http://192.0.2.7:8501; several stand apart by commas or spaces."
        )
    return origins
