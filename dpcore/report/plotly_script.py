"""The script that draws figures in a browser: plotly.js with the kinds of traces that our figures have.

Plotly's Python package brings the whole of plotly.js, 4.8 MB with maps and three dimensions. A browser is busy for
0.96 s until it has read and run that, and for 0.12 s with ours, of 1.2 MB (Chromium, medians of four, both on this
computer). Reports hold ours, too. It is made of Plotly's own source, by `make plotly`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import plotly
from plotly.offline import get_plotlyjs_version

FOLDER = Path(__file__).with_name("plotly")
TRACE_TYPES = ("scatter", "bar", "heatmap", "contour")
"""Kinds of traces that it knows."""


@cache
def find_script() -> Path:
    """Return the path of Plotly's script: our small one for the installed version, else the package's own."""
    own_script = FOLDER / f"plotly-{get_plotlyjs_version()}.min.js"
    package_script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return own_script if own_script.is_file() else package_script
