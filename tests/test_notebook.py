"""docs/first_notebook.ipynb: the page that it is made of, and what running it says."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
PATH = ROOT / "docs" / "notebook.py"
SPEC = importlib.util.spec_from_file_location("docs_notebook", PATH)
assert SPEC is not None
assert SPEC.loader is not None
making = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(making)

ANEW = "run `make docs-pictures`"


def printed(notebook: Any) -> list[str]:
    return [
        "".join(out.text for out in cell.outputs if out.output_type == "stream" and out.name == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def in_a_kernel(page: Any) -> list[str]:
    """What is printed in a kernel of its own, as Jupyter runs it: that takes seconds more."""
    # Beside the event loop that the browser tests keep in this thread there is no second one.
    with ThreadPoolExecutor(1) as apart:
        return printed(apart.submit(making.run_notebook, page).result())


def in_this_python(page: Any) -> list[str]:
    """What the same cells print here, one after the other, with names of their own."""
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("default")
        for cell in page.cells:
            if cell.cell_type == "code":
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile(cell.source, cell.id, "exec"), names)
                outputs.append(out.getvalue())
    return outputs


@pytest.mark.long
@pytest.mark.parametrize("run", [in_this_python, pytest.param(in_a_kernel, marks=pytest.mark.long)])
def test_the_notebook_is_the_page_and_says_what_running_it_says(run: Callable[[Any], list[str]]) -> None:
    """A cell that raises ends the run with its error."""
    kept = nbformat.read(making.NOTEBOOK_PATH, as_version=4)
    page = making.build_notebook(making.PAGE_PATH.read_text(encoding="utf-8"))
    assert [cell.source for cell in kept.cells] == [cell.source for cell in page.cells], ANEW
    assert run(page) == printed(kept), ANEW
    figures = [
        output
        for cell in kept.cells
        for output in cell.get("outputs", ())
        if making.PLOTLY_MIME_TYPE in output.get("data", {})
    ]
    assert len(figures) == 2
    assert all("image/png" in figure.data for figure in figures), ANEW
