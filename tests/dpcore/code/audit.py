"""A black-box audit of programs: run on neighbouring tables, they may differ by what their noise covers, and no more.

A program is run on a table and on its neighbours. In place of noise stands a constant, so that what it prints must be
the same for all of them: a count, a list or a message that no noise covers shows. What it hands to the noise is
recorded, and the loss for the distance between neighbours must be within the budget.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("p1", "p2", "p3")
FILE = "audit.csv"
HEADER = "user_id,product,amount,day"
ROWS = tuple(
    f"u{user},{GROUPS[(user + row) % 3]},{10.5 + 7 * user},{row}"
    for user in range(9)
    for row in range(1 + user % 3)
)
"""The table that all neighbours differ from by one user; no user has more rows or groups than the bounds allow."""
ONE_USER: dict[str, tuple[str, ...]] = {
    "an ordinary user": ("x,p1,20.5,1",),
    "a user with very many rows": tuple(f"x,{GROUPS[row % 3]},99.5,{row}" for row in range(300)),
    "a user with huge amounts": ("x,p1,9e99,1", "x,p2,-8e99,2", "x,p2,9e99,3", "x,p2,1e308,4"),
    "a user with negative amounts": tuple(f"x,{group},-50.5,1" for group in GROUPS),
    "a user in groups of their own": tuple(f"x,secret {group},20.5,1" for group in range(20)),
    "a user in no group": ("x,,20.5,1",),
    "a text cell": ("x,p1,secret,1", "x,p2,20.5,1"),
    "an empty cell": ("x,p1,,1",),
    "an infinite cell": ("x,p1,inf,1", "x,p1,-inf,1", "x,p1,1e999,1"),
    "a missing mark": ("x,p1,nan,1", "x,p1,NA,1"),
    "a mark between thousands": ('x,p1,"1,234",1', 'x,p1,"1.234,5",1'),
    "lines of any length": ("x,p1", "x", "x,p1,20.5", "x,p1,1,2,3,4", "x,,3"),
    "a lone quotation mark": ('x"y,p1,20.5,1',),
    "names like nothing": ("NA,null,20.5,1", "None,NA,21.5,1", "NaN,None,22.5,1"),
    "a name of digits": ("17,p1,20.5,1",),
    "a row without a user": (",p1,20.5,1",),
}
"""What one user adds."""
ONE_USER["all of this in one user"] = tuple(
    dict.fromkeys(row for name, rows in ONE_USER.items() for row in rows if row.startswith("x,"))
)
REPLACED: dict[str, str] = {
    "a huge amount": "1e200",
    "a negative amount": "-50.5",
    "a text cell": "secret",
    "an empty cell": "",
    "an infinite cell": "inf",
    "a mark between thousands": '"1,234"',
    "more fields than columns": "1,234,5",
    "a missing mark": "NA",
}
"""What stands in the place of one user's amount where numbers of rows are public."""
FIRST = "a user in the first rows"
PRINTED_ONLY = ("names like nothing", FIRST)
"""Neighbours of which only what is printed is compared: three users, and one who changes the order of the groups."""
FEW = ("one user less", "a user with very many rows", "all of this in one user", *PRINTED_ONLY, *REPLACED)
"""Neighbours for most releases."""
FEWEST = (
    FIRST,
    "all of this in one user",
    "a text cell",
    "a lone quotation mark",
    "no row",
    "one user",
    "rows of nobody",
)
"""Tables for what is slow."""

UNSEEN = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning)


@dataclass
class Run:
    """What one run showed.

    Attributes:
        printed: Standard output.
        errors: Standard error, and warnings but those that Python shows nobody.
        ending: Exit code, or the exception that ended it.
        inputs: Exact numbers handed to OpenDP's mechanisms in order, each with its mechanism.
        frames: Columns of numbers that OpenDP's context released, in order.
        names: What the program's names were bound to.
    """

    printed: str = ""
    errors: str = ""
    ending: str = "0"
    inputs: list[tuple[Any, list[float]]] = field(default_factory=list)
    frames: list[dict[str, list[float]]] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)


def join_rows(*rows: str) -> str:
    return "\n".join([HEADER, *rows, ""])


def add_user(name: str) -> str:
    """Return the table with one user more."""
    return join_rows(*ROWS, *ONE_USER[name])


def remove_user() -> str:
    """Return the table with one user less."""
    return join_rows(*(row for row in ROWS if not row.startswith("u8,")))


def replace_cell(cell: str) -> str:
    """Return the table with another amount in one row."""
    first_row, *other_rows = ROWS
    user, group, _, day = first_row.split(",")
    return join_rows(f"{user},{group},{cell},{day}", *other_rows)


def list_neighbours(public_counts: bool) -> dict[str, str]:
    """Return tables by what makes them differ from the table; with public counts, in one user's values only."""
    if public_counts:
        return {name: replace_cell(cell) for name, cell in REPLACED.items()}
    first = join_rows("x,p3,20.5,1", "x,p2,20.5,1", *ROWS)
    return {"one user less": remove_user(), FIRST: first} | {name: add_user(name) for name in ONE_USER}


EMPTY: dict[str, str] = {
    "no row": join_rows(),
    "one user": join_rows("x,p1,20.5,1"),
    "rows of nobody": join_rows(",p1,20.5,1", ",p2,30.5,1"),
    "a user with nothing readable": join_rows("x,,,"),
}
"""Tables of at most one user."""
PUBLIC_INPUTS = {
    "GROUPS": list(GROUPS),
    "TASKS": list(GROUPS),
    "TASK_SIZES": dict.fromkeys(GROUPS, 6),
    "SIZES": dict.fromkeys(GROUPS, 6),
    "USERS": 9,
    "NUM_USERS": 9,
    "NUMBER_OF_USERS": 9,
}
"""What a person writes into the program, as it asks them to."""


def fill_inputs(text: str) -> str:
    """Return the program with the public inputs that it asks for."""
    for name, value in PUBLIC_INPUTS.items():
        text = re.sub(
            rf"^{name}(: .+?)? = (\[\]|\{{\}}|None|0)(?=$|\s)", f"{name} = {value!r}", text, flags=re.M
        )
    return text


class _Noise:
    """NumPy's generator, whose normal draws are so large that no data show in what they are added to."""

    def standard_normal(self, size: Any = None) -> Any:
        import numpy as np

        return 1e200 if size is None else np.full(size, 1e200)

    normal = standard_normal

    def random(self, size: Any = None) -> Any:
        import numpy as np

        return 0.25 if size is None else np.full(size, 0.25)


@contextlib.contextmanager
def silenced(run: Run) -> Iterator[None]:
    """Record what is handed to mechanisms, and let them return a constant; samples of rows keep their order."""
    import numpy as np
    import opendp.mod
    import pandas as pd

    invoke = opendp.mod.Measurement.__call__

    def constant(measurement: Any, exact: Any) -> Any:
        if not isinstance(exact, list):
            return invoke(measurement, exact)
        run.inputs.append((measurement, [float(number) for number in exact]))
        noisy = invoke(measurement, exact)
        return [1e6 + index for index, _ in enumerate(noisy)] if isinstance(noisy, list) else 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opendp.mod.Measurement, "__call__", constant)
        patch.setattr(pd.DataFrame, "sample", lambda frame, **_: frame)
        patch.setattr(pd.Series, "sample", lambda series, **_: series)
        patch.setattr(np.random, "default_rng", lambda *_: _Noise())
        with contextlib.suppress(ImportError):
            from opendp.extras.polars import OnceFrame

            collect = OnceFrame.collect
            patch.setattr(OnceFrame, "collect", lambda frame: _replace_numbers(collect(frame), run))
        yield


def _replace_numbers(frame: Any, run: Run) -> Any:
    """Return the released frame with constants, whose rows are in the order of their keys."""
    import polars as pl

    keys = [name for name, dtype in frame.schema.items() if not dtype.is_numeric()]
    frame = frame.sort(keys) if keys else frame
    numbers = [name for name in frame.columns if name not in keys]
    run.frames.append({name: [float(number) for number in frame[name]] for name in numbers})
    return frame.with_columns(pl.lit(1_000_000).cast(frame.schema[name]).alias(name) for name in numbers)


def run(
    text: str, content: str, folder: Path, around: Callable[[Run], Any] = silenced, file: str = FILE
) -> Run:
    """Run a program in the working folder on a table."""
    (folder / file).write_text(content, encoding="utf-8")
    observed, printed, errors = Run(), io.StringIO(), io.StringIO()
    with (
        around(observed),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(record=True) as records,
    ):
        try:
            exec(compile(text, "program", "exec"), observed.names)
        except SystemExit as end:
            observed.ending = f"SystemExit: {end.code}"
        except Exception as error:  # Whatever ends a program is what its user sees.
            observed.ending = f"{type(error).__name__}: {error}"
    messages = {str(entry.message) for entry in records if not issubclass(entry.category, UNSEEN)}
    observed.printed, observed.errors = printed.getvalue(), errors.getvalue() + "".join(sorted(messages))
    return observed


def describe_difference(first_run: Run, second_run: Run) -> str:
    """Return what tells two runs apart without looking at the exact numbers; empty if nothing does."""
    if first_run.ending != second_run.ending:
        return f"it ends with {first_run.ending!r} and with {second_run.ending!r}"
    if first_run.printed != second_run.printed:
        return f"it prints {first_run.printed!r} and {second_run.printed!r}"
    if first_run.errors != second_run.errors:
        return f"it warns {first_run.errors!r} and {second_run.errors!r}"
    sizes = [len(exact) for _, exact in first_run.inputs], [len(exact) for _, exact in second_run.inputs]
    return f"it draws vectors of {sizes[0]} and {sizes[1]} numbers" if sizes[0] != sizes[1] else ""


def compute_loss(first_run: Run, second_run: Run) -> tuple[float, bool]:
    """Sum what the mechanisms that drew lose between two tables, by their own account; True if the loss is rho.

    Of a selection with Gumbel noise OpenDP proves rho = epsilon^2 / 8. In a program of pure epsilon it counts as that.
    """
    sums: list[float] = []
    picks: list[float] = []
    is_rho = False
    for (mechanism, sums_1), (_, sums_2) in zip(first_run.inputs, second_run.inputs, strict=True):
        moves = [abs(a - b) for a, b in zip(sums_1, sums_2, strict=True)]
        assert all(map(math.isfinite, (*sums_1, *sums_2))), "a sum before noise is not finite"
        metric = str(mechanism.input_metric)
        distance = {"L2": math.hypot(*moves), "L1": math.fsum(moves)}.get(metric[:2], max(moves, default=0.0))
        lost = mechanism.map(distance)
        if metric.startswith("LInf") and "Concentrated" in str(mechanism.output_measure):
            picks.append(lost)
        else:
            sums.append(lost)
            is_rho |= "Concentrated" in str(mechanism.output_measure)
    return math.fsum(sums + (picks if is_rho else [math.sqrt(8.0 * rho) for rho in picks])), is_rho


def compute_delta(rho: float, epsilon: float) -> float:
    """Compute delta of Gaussian noise by Balle and Wang 2018, theorem 5: its loss is that of one number."""

    def phi(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2.0))

    move = math.sqrt(2.0 * rho)  # in standard deviations
    if not move:
        return 0.0
    return phi(move / 2.0 - epsilon / move) - math.exp(epsilon) * phi(-move / 2.0 - epsilon / move)
