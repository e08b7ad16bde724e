"""What the shell does for the whole process."""

from __future__ import annotations

import subprocess
import sys

from tests.pages.driving import ROOT

SETTLED = """
import duckdb
from pages.shared import shell
duckdb.connect().execute("SELECT 1").fetchnumpy()
shell.settle_memory()
"""


def test_what_is_frozen_does_not_outlive_the_interpreter():
    # DuckDB's binding prints a page of what is alive when its module goes.
    ended = subprocess.run(
        [sys.executable, "-c", SETTLED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "leaked" not in ended.stdout + ended.stderr
