"""Libraries that a benchmark stands beside, and that are too large, or too old, to be installed with it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np


def find_python(package: str, variable: str) -> str:
    """Return the path of a Python that has the package; if there is none, print a sentence and return an empty text."""
    if importlib.util.find_spec(package) is not None:
        return sys.executable
    interpreter = os.environ.get(variable, "")
    if not interpreter:
        print(
            f"{package} is not here: install it in an environment of its own and name its python in {variable}."
        )
    return interpreter


def run_peer(
    package: str, variable: str, program: str, arguments: list[str]
) -> list[tuple[str, float, np.ndarray]]:
    """Return (name, seconds of a model, models) of each peer; empty if it is absent or fails."""
    python = find_python(package, variable)
    if not python:
        return []
    done = subprocess.run([python, "-c", program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{package} failed: {done.stderr.strip().splitlines()[-1]}")
        return []
    return [
        (name, seconds, np.array(models).T)
        for name, seconds, models in json.loads(done.stdout.splitlines()[-1])
    ]
