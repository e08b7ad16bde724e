"""Make docs/first_notebook.ipynb of docs/python.md, with its outputs in it.

    .venv/bin/python docs/notebook.py

`make docs-pictures` does it, too. The sections of the page in which Python stands become the notebook: text and code
are cells, in their order. A kernel runs them, and the browser that the tests use adds a picture to every figure, for
readers that do not run what draws it. Needs requirements-dev.txt.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "python.md"
NOTEBOOK = ROOT / "docs" / "first_notebook.ipynb"
PLOTLY = "application/vnd.plotly.v1+json"
SIZE = {"width": 800, "height": 480}
LIMIT = 300
"""Seconds for one cell, on a machine that others keep busy."""


def unrun(page: str) -> Any:
    """Return the page as a notebook without outputs."""
    sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    text = "".join(section for section in sections if "```python" in section or section.startswith("# "))
    parts = re.split(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    new = nbformat.v4
    cells = [
        (new.new_code_cell if number % 2 else new.new_markdown_cell)(part.strip(), id=f"cell-{number}")
        for number, part in enumerate(parts)
        if part.strip()
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def run(notebook: Any) -> Any:
    """Run the notebook in a kernel of this Python, in a folder for what it writes; it gets its outputs."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        own = {
            "IPYTHONDIR": folder,  # What a person set up for their own notebooks shall not matter.
            "PLOTLY_RENDERER": "plotly_mimetype",
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "",
        }
        # Sockets in the file system, where there are some: no port is opened.
        manager = AsyncKernelManager(transport="ipc" if os.name == "posix" else "tcp")
        client = NotebookClient(notebook, manager, timeout=LIMIT)
        # In a loop that is closed, and with the kernel ended: the client would leave both to the end of Python.
        asyncio.run(client.async_execute(env={**os.environ, **own}, cleanup_kc=True))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # When it ran, to the microsecond: another one each time.
    return notebook


def add_pictures(notebook: Any) -> None:
    """Add a picture to every figure."""
    from playwright.sync_api import sync_playwright

    from dpcore.report import plotly_script
    from tests.browser import browser as helpers

    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=helpers.find_browser(),
            args=["--disable-gpu", *(["--no-sandbox"] if as_root else [])],
        )
        page = browser.new_page()
        page.add_script_tag(path=plotly_script.find_script())
        for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
            if figure := output.get("data", {}).get(PLOTLY):
                address = page.evaluate(
                    "([figure, size]) => Plotly.toImage(figure, {format: 'png', ...size})", [figure, SIZE]
                )
                output["data"]["image/png"] = small(base64.b64decode(address.partition(",")[2]))
        browser.close()


def small(picture: bytes) -> str:
    """Return the picture with a palette, as a notebook holds it."""
    made = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(96, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


def main() -> None:
    """Write the notebook."""
    notebook = run(unrun(PAGE.read_text(encoding="utf-8")))
    add_pictures(notebook)
    nbformat.validate(notebook)
    nbformat.write(notebook, NOTEBOOK)
    print(f"Wrote {NOTEBOOK.relative_to(ROOT)}, {NOTEBOOK.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
