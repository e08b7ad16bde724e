"""Make plotly.js anew with no other kinds of traces than our figures have: `make plotly`, which needs npm.

Of the same version as the Python package that is installed. What is written goes into the repository: nobody who
installs or tests the app needs npm.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plotly.offline import get_plotlyjs_version

from dpcore.report import plotly_script

ESBUILD_VERSION = "0.28.2"
# As Plotly's own build has them, but for the newer language, in which the browser has less to do: what Streamlit's own
# page is written in is newer still.
ESBUILD_FLAGS = (
    "--bundle", "--minify", "--format=iife", "--global-name=Plotly", "--target=es2020",
    "--define:global=window", "--define:define.amd=false", "--legal-comments=eof",
)  # fmt: skip


def main() -> None:
    """Build plotly.js by npm in a temporary folder, and put it in place of the one in the repository."""
    version = get_plotlyjs_version()
    traces = ", ".join(plotly_script.TRACE_TYPES)
    require_calls = ", ".join(
        f"require('plotly.js/lib/{trace}')" for trace in plotly_script.TRACE_TYPES if trace != "scatter"
    )
    entry_script = (
        f"const Plotly = require('plotly.js/lib/core'); Plotly.register([{require_calls}]); "
        "module.exports = Plotly;"
    )
    banner = (
        f"/* plotly.js v{version}, with {traces} alone. Copyright 2012-2026, Plotly, Inc. All rights reserved. "
        "Licensed under the MIT license. What else is in it says so at its end. */"
    )
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        (folder / "entry.js").write_text(entry_script, encoding="utf-8")
        (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
        packages = [f"plotly.js@{version}", f"esbuild@{ESBUILD_VERSION}"]
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", *packages], cwd=folder, check=True
        )
        script_path = folder / "plotly.js"
        subprocess.run(
            [
                "npx",
                "esbuild",
                "entry.js",
                f"--outfile={script_path}",
                f"--banner:js={banner}",
                *ESBUILD_FLAGS,
            ],
            cwd=folder,
            check=True,
        )
        for old_path in plotly_script.FOLDER.glob("*.js"):
            old_path.unlink()
        plotly_script.FOLDER.mkdir(exist_ok=True)
        (plotly_script.FOLDER / f"plotly-{version}.min.js").write_bytes(script_path.read_bytes())
        (plotly_script.FOLDER / "LICENSE").write_bytes(
            (folder / "node_modules/plotly.js/LICENSE").read_bytes()
        )


if __name__ == "__main__":
    main()
