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
from dpcore.examples_per_user.candidates import TrainingConstants, write_program
from dpcore.examples_per_user.parameters import Sampling
from tests.dpcore.code import audit

BOUND, RATE, SIGMA = 4, 0.231, 1.437
STEPS = round(1.0 / RATE)
"""One epoch."""


def make_training(sampling: Sampling, rate: float = RATE, steps: int = STEPS) -> TrainingConstants:
    """Make constants for the digits: 128 of them a step, or their users."""
    divisor = 128.0 if sampling is Sampling.EXAMPLES else 53.4
    return TrainingConstants(sampling, BOUND, rate, divisor, SIGMA, 8.0, 1e-5, steps)


def write_examples(features: np.ndarray, folder: Path) -> np.ndarray:
    """Write the file that programs read, with blanks around users' names in some lines; return the users."""
    data = deal_digits(UserDesign.DIVERSE)
    table = pd.DataFrame(features, columns=[f"pixel {i}" for i in range(features.shape[1])])
    users = [f"u{user}" for user in data.user]
    table.insert(0, "user", [f" {name} " if i % 3 else name for i, name in enumerate(users)])
    table["label"] = data.labels
    table.to_csv(folder / "examples.csv", index=False)
    return np.array(users)


def run_program(library: str, training: TrainingConstants) -> tuple[dict[str, Any], str]:
    """Run the program; return the names that it leaves behind, and what it prints."""
    space: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(write_program(library, training, "Label.").text, f"{library}.py", "exec"), space)
    return space, printed.getvalue()


def check_epoch(library: str, sampling: Sampling, folder: Path) -> None:
    """Check that one epoch has no user above G, and our noise multiplier."""
    users = write_examples(deal_digits(UserDesign.DIVERSE).features, folder)
    space, printed = run_program(library, make_training(sampling))
    assert (
        np.sort(np.bincount(space["user"])).tolist()
        == np.sort(np.minimum(np.unique(users, return_counts=True)[1], BOUND)).tolist()
    )
    assert f"{STEPS} steps, noise multiplier {SIGMA}, at most {BOUND} examples of a user" in printed


def check_noise(library: str, sampling: Sampling, folder: Path, weights: Any) -> None:
    """Check the noise of a step with features of 0: its standard deviation is σ clip norms, over the divisor."""
    write_examples(np.zeros((len(deal_digits(UserDesign.DIVERSE).labels), 400)), folder)
    one_step = make_training(sampling, steps=1)
    moves = np.asarray(weights(run_program(library, one_step)[0])).ravel() - 0.0
    assert moves.size == 4000
    # Five standard errors of a standard deviation: σ / √(2 · 4000).
    assert moves.std() == pytest.approx(SIGMA / one_step.divisor, rel=5.0 / np.sqrt(8000.0))


def check_nasty(library: str, sampling: Sampling, folder: Path) -> None:
    """Check that rows of nobody, cells without a number, empty tables and steps that draw nobody end nothing."""
    write_examples(deal_digits(UserDesign.DIVERSE).features, folder)
    run_program(library, make_training(sampling, rate=1e-6, steps=2))
    lines = (folder / "examples.csv").read_text(encoding="utf-8").splitlines()
    lines[5] = "  ," + lines[5].partition(",")[2]
    (folder / "examples.csv").write_text("\n".join(lines), encoding="utf-8")
    run_program(library, make_training(sampling))
    lines[7] = lines[7].rpartition(",")[0] + ",much"
    (folder / "examples.csv").write_text("\n".join(lines), encoding="utf-8")
    run_program(library, make_training(sampling))
    (folder / "examples.csv").write_text(lines[0] + "\n", encoding="utf-8")
    run_program(library, make_training(sampling, steps=2))


HEADER = "user,label,a,b"
ROWS = [f"u{user},{(user + row) % 10},{0.5 * user},{row}" for user in range(9) for row in range(1 + user % 5)]
ADDED_ROWS = {
    "an ordinary user": ["x,1,0.5,1"],
    "a user with very many examples": [f"x,{row % 2},1,0.5" for row in range(300)],
    "a user with huge features": ["x,1,1e200,-1e200", "x,1,1e999,inf", "x,2,-inf,1e30", "x,3,nan,NA"],
    "a user with text for features": ["x,1,secret,", 'x,1,"1,234","1.234,5"'],
    "a user with labels that are none": ["x,,1,1", "x,99,1,1", "x,-1,1,1", "x,1.5,1,1", "x,secret,1,1", "x,inf,1,1"],
    "a user with lines of any length": ["x,1,1,1,1,1,1", "x,1", "x", "x,1,1,"],
    "rows of nobody": [",1,1,1", "  ,1,1,1"],
}  # fmt: skip
ADDED_ROWS["all of this in one user"] = [row for rows in ADDED_ROWS.values() for row in rows]
NEIGHBOURS = {
    "one user less": [row for row in ROWS if not row.startswith("u8,")],
    **{name: [*ROWS, *rows] for name, rows in ADDED_ROWS.items()},
}
EMPTY = {
    "one user": ["x,1,0.5,1"],
    "rows of nobody": ADDED_ROWS["rows of nobody"],
    "a user with nothing readable": ADDED_ROWS["a user with labels that are none"],
}


def check_neighbours(
    library: str, sampling: Sampling, folder: Path, silenced: Callable[[audit.Run], Any]
) -> None:
    """Check that one user changes nothing that is seen, and a step's sum by no more than its noise is for.

    Args:
        library: Whose program.
        sampling: Who is drawn; here everybody is, in every step.
        folder: The working folder.
        silenced: A context in which noise is a constant, and which records sums before noise: per step one entry for
            each array of parameters.
    """
    text = write_program(library, make_training(sampling, rate=1.0, steps=2), "Label.").text
    problems = _find_problems(text, sampling, folder, silenced)
    assert not any(problems.values()), problems
    combined_name = "all of this in one user"
    if sampling is Sampling.EXAMPLES:  # Of users the mean gradient counts, however many examples they keep.
        weak = text.replace("to_numpy() <= EXAMPLES_PER_USER", "to_numpy() <= 300")
        weak = weak.replace("assert np.bincount", "np.bincount")
        assert "a sum moves" in _find_problems(weak, sampling, folder, silenced)[combined_name]
    printing_problems = _find_problems(text + "print(len(user))\n", sampling, folder, silenced)
    assert "it prints" in printing_problems[combined_name]


def _find_problems(
    text: str, sampling: Sampling, folder: Path, silenced: Callable[[audit.Run], Any]
) -> dict[str, str]:
    """Return the problems of the program on each neighbouring table, by its name; empty texts where there are none."""

    def run_on(rows: list[str]) -> audit.Run:
        return audit.run(text, "\n".join([HEADER, *rows, ""]), folder, silenced, "examples.csv")

    base, nobody = run_on(ROWS), run_on([])
    assert (base.ending, nobody.ending) == ("0", "0")
    assert base.inputs
    problems = {}
    for name, rows in NEIGHBOURS.items():
        run = run_on(rows)
        problems[name] = audit.describe_difference(base, run) or _describe_excess(sampling, base, run)
    problems |= {name: audit.describe_difference(nobody, run_on(rows)) for name, rows in EMPTY.items()}
    return problems


def _describe_excess(sampling: Sampling, first_run: audit.Run, second_run: audit.Run) -> str:
    """Return what is wrong with how far a step's sum moves, in clip norms of 1; empty if nothing is."""
    max_move = 1.0 if sampling is Sampling.USERS else float(BOUND)
    arrays = [
        [a - b for a, b in zip(first_numbers, second_numbers, strict=True)]
        for (_, first_numbers), (_, second_numbers) in zip(first_run.inputs, second_run.inputs, strict=True)
    ]
    for weights, intercepts in zip(arrays[::2], arrays[1::2], strict=True):
        move = math.hypot(*weights, *intercepts)
        if not move <= max_move * (1.0 + 1e-4):
            return f"a sum moves by {move} where {max_move} is allowed"
    return ""
