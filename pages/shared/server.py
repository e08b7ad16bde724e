"""What the app's server has besides Streamlit's own: routes, and checks that every request passes first."""

from __future__ import annotations

import sys
from pathlib import Path

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from pages.shared import demo
from pages.shared.figure import serving
from pages.shared.guard import Guard

# Not beside a folder named `pages`: Streamlit would take that for automatic pages.
SCRIPT = Path(__file__).resolve().parent / "shell" / "main.py"

# Answered before Streamlit's own; none may begin with /_stcore, /media, /component or /static.
ROUTES: list[BaseRoute] = [*serving.ROUTES]


def middleware() -> list[Middleware]:
    """What every request passes, the outermost first; all are outside Streamlit's own.

    Ends the process with a sentence where the settings of a public demo are wrong.
    """
    try:
        public = demo.public_origins()
    except demo.SettingsError as error:
        sys.exit(f"Sweet Spot does not start: {error}")
    return [Middleware(Guard, public=public, served=demo.is_served()), *serving.MIDDLEWARE]
