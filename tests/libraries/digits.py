"""Programs that train with a bounded number of examples per user, run on the digits sample of invented users."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.examples_per_user import Kind, digits
from dpcore.examples_per_user import Sampling
from dpcore.examples_per_user.programs import Training, write_program

BOUND, RATE, SIGMA = 4, 0.231, 1.437
STEPS = round(1.0 / RATE)
"""One epoch."""


def training(way: Sampling, rate: float = RATE, steps: int = STEPS) -> Training:
    """Constants for the digits: 128 of them a step, or their users."""
    return Training(way, BOUND, rate, 128.0 if way is Sampling.EXAMPLES else 53.4, SIGMA, 8.0, 1e-5, steps)


def write(features: np.ndarray, folder: Path) -> np.ndarray:
    """The file that programs read, users with blanks around their names in some lines; returns the users."""
    data = digits(Kind.DIVERSE)
    table = pd.DataFrame(features, columns=[f"pixel {i}" for i in range(features.shape[1])])
    users = [f"u{user}" for user in data.user]
    table.insert(0, "user", [f" {name} " if i % 3 else name for i, name in enumerate(users)])
    table["label"] = data.labels
    table.to_csv(folder / "examples.csv", index=False)
    return np.array(users)


def run(library: str, of: Training) -> tuple[dict[str, Any], str]:
    """What the program leaves behind, and what it prints."""
    space: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(write_program(library, of, "Label.").text, f"{library}.py", "exec"), space)
    return space, printed.getvalue()


def check_epoch(library: str, way: Sampling, folder: Path) -> None:
    """One epoch: no user above G, the noise multiplier ours."""
    users = write(digits(Kind.DIVERSE).features, folder)
    space, printed = run(library, training(way))
    assert (
        np.sort(np.bincount(space["user"])).tolist()
        == np.sort(np.minimum(np.unique(users, return_counts=True)[1], BOUND)).tolist()
    )
    assert f"{STEPS} steps, noise multiplier {SIGMA}, at most {BOUND} examples of a user" in printed


def check_noise(library: str, way: Sampling, folder: Path, weights: Any) -> None:
    """With features of 0 a step moves weights by noise alone: of standard deviation σ clip norms, over the divisor."""
    write(np.zeros((len(digits(Kind.DIVERSE).labels), 400)), folder)
    of = training(way, steps=1)
    moved = np.asarray(weights(run(library, of)[0])).ravel() - 0.0
    assert moved.size == 4000
    # Five standard errors of a standard deviation: σ / √(2 · 4000).
    assert moved.std() == pytest.approx(SIGMA / of.divisor, rel=5.0 / np.sqrt(8000.0))


def check_nasty(library: str, way: Sampling, folder: Path) -> None:
    """Rows of nobody and cells that hold no number end nothing, a table of nobody neither; some steps draw nobody."""
    write(digits(Kind.DIVERSE).features, folder)
    run(library, training(way, rate=1e-6, steps=2))
    lines = (folder / "examples.csv").read_text(encoding="utf-8").splitlines()
    lines[5] = "  ," + lines[5].partition(",")[2]
    (folder / "examples.csv").write_text("\n".join(lines), encoding="utf-8")
    run(library, training(way))
    lines[7] = lines[7].rpartition(",")[0] + ",much"
    (folder / "examples.csv").write_text("\n".join(lines), encoding="utf-8")
    run(library, training(way))
    (folder / "examples.csv").write_text(lines[0] + "\n", encoding="utf-8")
    run(library, training(way, steps=2))
