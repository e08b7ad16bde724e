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
PAGE_PATH = ROOT / "docs" / "python.md"
NOTEBOOK_PATH = ROOT / "docs" / "first_notebook.ipynb"
PLOTLY_MIME_TYPE = "application/vnd.plotly.v1+json"
PICTURE_SIZE = {"width": 800, "height": 480}
CELL_SECONDS = 300
"""Most seconds for one cell, on a machine that others keep busy."""


def build_notebook(page_text: str) -> Any:
    """Build a notebook of the page's sections with Python, without outputs."""
    sections = re.split(r"^(?=## )", page_text, flags=re.MULTILINE)
    used_text = "".join(section for section in sections if "```python" in section or section.startswith("# "))
    texts_and_codes = re.split(r"^```python\n(.*?)^```$", used_text, flags=re.MULTILINE | re.DOTALL)
    nbformat_4 = nbformat.v4
    cells = [
        (nbformat_4.new_code_cell if number % 2 else nbformat_4.new_markdown_cell)(
            cell_text.strip(), id=f"cell-{number}"
        )
        for number, cell_text in enumerate(texts_and_codes)
        if cell_text.strip()
    ]
    kernel_spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat_4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel_spec, "language_info": {"name": "python"}}
    )


def run_notebook(notebook: Any) -> Any:
    """Run the notebook in a kernel of this Python, in a folder for what it writes; it gets its outputs."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        own_variables = {
            "IPYTHONDIR": folder,  # What a person set up for their own notebooks shall not matter.
            "PLOTLY_RENDERER": "plotly_mimetype",
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "",
        }
        # Sockets in the file system, where there are some: no port is opened.
        manager = AsyncKernelManager(transport="ipc" if os.name == "posix" else "tcp")
        client = NotebookClient(notebook, manager, timeout=CELL_SECONDS)
        # In a loop that is closed, and with the kernel ended: the client would leave both to the end of Python.
        asyncio.run(client.async_execute(env={**os.environ, **own_variables}, cleanup_kc=True))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # When it ran, to the microsecond: another one each time.
    return notebook


def add_pictures(notebook: Any) -> None:
    """Add a PNG to the output of every figure."""
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
            if figure := output.get("data", {}).get(PLOTLY_MIME_TYPE):
                data_url = page.evaluate(
                    "([figure, size]) => Plotly.toImage(figure, {format: 'png', ...size})",
                    [figure, PICTURE_SIZE],
                )
                output["data"]["image/png"] = encode_with_palette(
                    base64.b64decode(data_url.partition(",")[2])
                )
        browser.close()


def encode_with_palette(png_bytes: bytes) -> str:
    """Return a PNG with a palette of 96 colours, as base64."""
    output_stream = io.BytesIO()
    image = Image.open(io.BytesIO(png_bytes)).convert("RGB")
    image.quantize(96, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        output_stream, "PNG", optimize=True
    )
    return base64.b64encode(output_stream.getvalue()).decode()


def main() -> None:
    """Write the notebook with its outputs and pictures."""
    notebook = run_notebook(build_notebook(PAGE_PATH.read_text(encoding="utf-8")))
    add_pictures(notebook)
    nbformat.validate(notebook)
    nbformat.write(notebook, NOTEBOOK_PATH)
    print(f"Wrote {NOTEBOOK_PATH.relative_to(ROOT)}, {NOTEBOOK_PATH.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
