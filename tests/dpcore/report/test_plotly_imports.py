"""Plotly waits for a library that another thread is still importing."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading, time
import numpy as np
import plotly.graph_objects as go
from dpcore.report import charts

assert "pandas" not in sys.modules
folder = sys.argv[1]
sys.path.insert(0, folder)
importing = threading.Thread(target=__import__, args=("pandas",))
importing.start()
while "pandas" not in sys.modules:
    time.sleep(0.001)
assert not hasattr(sys.modules["pandas"], "Series")
print(list(go.Scatter(x=[1, 2], y=np.array([3.0, 4.0]), customdata=[[5], [6]], text=["a", "b"]).y))
"""
SLOW = "import time; time.sleep(0.5)\nclass Series: ...\nclass Index: ...\nclass DataFrame: ...\n"


@pytest.mark.long
def test_a_figure_that_is_drawn_while_pandas_is_imported_waits_for_it(tmp_path):
    """The import is as slow as on a busy machine, so that the figure begins in the middle of it."""
    (tmp_path / "pandas.py").write_text(SLOW, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[np.float64(3.0), np.float64(4.0)]"
