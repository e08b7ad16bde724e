"""The command ``sweet-spot``.

Exit codes: 0 where it did what was asked, 2 for bad input, 1 for everything else.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys

from dpcore import __version__

_NO_APP = (
    "The app is not installed here, only the core. Install the extra `app` as well: "
    "pip install '.[app]' in a checkout, or pip install '<wheel>[app]'."
)


def main(arguments: list[str] | None = None) -> int:
    """Run with the arguments of a command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="sweet-spot", description="Start the app on this computer and open it in the browser."
    )
    parser.add_argument("--version", action="version", version=f"Sweet Spot {__version__}")
    parser.parse_args(arguments)
    return _start_app()


def _start_app() -> int:
    from sweet_spot import launch

    if importlib.util.find_spec("streamlit") is None:
        print(_NO_APP, file=sys.stderr)
        return 1
    return launch.main()
