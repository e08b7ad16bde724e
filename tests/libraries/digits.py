"""Programs that train with a bounded number of examples per user, run on the digits sample of invented users."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.examples_per_user import UserDesign, deal_digits
from dpcore.examples_per_user.candidates import Training, write_program
from dpcore.examples_per_user.parameters import Sampling
from tests.dpcore.code import audit

BOUND, RATE, SIGMA = 4, 0.231, 1.437
STEPS = round(1.0 / RATE)
"""One epoch."""


def training(way: Sampling, rate: float = RATE, steps: int = STEPS) -> Training:
    """Constants for the digits: 128 of them a step, or their users."""
    return Training(way, BOUND, rate, 128.0 if way is Sampling.EXAMPLES else 53.4, SIGMA, 8.0, 1e-5, steps)


def write(features: np.ndarray, folder: Path) -> np.ndarray:
    """The file that programs read, users with blanks around their names in some lines; returns the users."""
    data = deal_digits(UserDesign.DIVERSE)
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
    users = write(deal_digits(UserDesign.DIVERSE).features, folder)
    space, printed = run(library, training(way))
    assert (
        np.sort(np.bincount(space["user"])).tolist()
        == np.sort(np.minimum(np.unique(users, return_counts=True)[1], BOUND)).tolist()
    )
    assert f"{STEPS} steps, noise multiplier {SIGMA}, at most {BOUND} examples of a user" in printed


def check_noise(library: str, way: Sampling, folder: Path, weights: Any) -> None:
    """With features of 0 a step moves weights by noise alone: of standard deviation σ clip norms, over the divisor."""
    write(np.zeros((len(deal_digits(UserDesign.DIVERSE).labels), 400)), folder)
    of = training(way, steps=1)
    moved = np.asarray(weights(run(library, of)[0])).ravel() - 0.0
    assert moved.size == 4000
    # Five standard errors of a standard deviation: σ / √(2 · 4000).
    assert moved.std() == pytest.approx(SIGMA / of.divisor, rel=5.0 / np.sqrt(8000.0))


def check_nasty(library: str, way: Sampling, folder: Path) -> None:
    """Rows of nobody and cells that hold no number end nothing, a table of nobody neither; some steps draw nobody."""
    write(deal_digits(UserDesign.DIVERSE).features, folder)
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


HEADER = "user,label,a,b"
ROWS = [f"u{user},{(user + row) % 10},{0.5 * user},{row}" for user in range(9) for row in range(1 + user % 5)]
MORE = {
    "an ordinary user": ["x,1,0.5,1"],
    "a user with very many examples": [f"x,{row % 2},1,0.5" for row in range(300)],
    "a user with huge features": ["x,1,1e200,-1e200", "x,1,1e999,inf", "x,2,-inf,1e30", "x,3,nan,NA"],
    "a user with text for features": ["x,1,secret,", 'x,1,"1,234","1.234,5"'],
    "a user with labels that are none": ["x,,1,1", "x,99,1,1", "x,-1,1,1", "x,1.5,1,1", "x,secret,1,1", "x,inf,1,1"],
    "a user with lines of any length": ["x,1,1,1,1,1,1", "x,1", "x", "x,1,1,"],
    "rows of nobody": [",1,1,1", "  ,1,1,1"],
}  # fmt: skip
MORE["all of this in one user"] = [row for rows in MORE.values() for row in rows]
NEIGHBOURS = {
    "one user less": [row for row in ROWS if not row.startswith("u8,")],
    **{name: [*ROWS, *rows] for name, rows in MORE.items()},
}
EMPTY = {
    "one user": ["x,1,0.5,1"],
    "rows of nobody": MORE["rows of nobody"],
    "a user with nothing readable": MORE["a user with labels that are none"],
}


def check_neighbours(library: str, way: Sampling, folder: Path, silenced: Callable[[audit.Run], Any]) -> None:
    """One user changes nothing that is seen, and a step's sum by no more than its noise is for.

    Args:
        library: Whose program.
        way: Who is drawn; here everybody is, in every step.
        folder: The working folder.
        silenced: A context in which noise is a constant, and which records sums before noise: per step one entry for
            each array of parameters.
    """
    text = write_program(library, training(way, rate=1.0, steps=2), "Label.").text
    problems = _problems(text, way, folder, silenced)
    assert not any(problems.values()), problems
    more = "all of this in one user"
    if way is Sampling.EXAMPLES:  # Of users the mean gradient counts, however many examples they keep.
        weak = text.replace("to_numpy() <= EXAMPLES_PER_USER", "to_numpy() <= 300")
        weak = weak.replace("assert np.bincount", "np.bincount")
        assert "a sum moves" in _problems(weak, way, folder, silenced)[more]
    told = _problems(text + "print(len(user))\n", way, folder, silenced)
    assert "it prints" in told[more]


def _problems(text: str, way: Sampling, folder: Path, silenced: Callable[[audit.Run], Any]) -> dict[str, str]:
    def run_on(rows: list[str]) -> audit.Run:
        return audit.run(text, "\n".join([HEADER, *rows, ""]), folder, silenced, "examples.csv")

    base, nobody = run_on(ROWS), run_on([])
    assert (base.ending, nobody.ending) == ("0", "0")
    assert base.inputs
    problems = {}
    for name, rows in NEIGHBOURS.items():
        seen = run_on(rows)
        problems[name] = audit.difference(base, seen) or _beyond_the_bound(way, base, seen)
    problems |= {name: audit.difference(nobody, run_on(rows)) for name, rows in EMPTY.items()}
    return problems


def _beyond_the_bound(way: Sampling, one: audit.Run, other: audit.Run) -> str:
    """What is wrong with how far a step's sum moves, in clip norms of 1; empty where nothing is."""
    most = 1.0 if way is Sampling.USERS else float(BOUND)
    arrays = [
        [a - b for a, b in zip(exact, beside, strict=True)]
        for (_, exact), (_, beside) in zip(one.inputs, other.inputs, strict=True)
    ]
    for weights, intercepts in zip(arrays[::2], arrays[1::2], strict=True):
        moved = math.hypot(*weights, *intercepts)
        if not moved <= most * (1.0 + 1e-4):
            return f"a sum moves by {moved} where {most} is allowed"
    return ""
