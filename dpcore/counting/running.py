"""Running queries: progress, Stop, and columns of numbers as results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from dpcore.common.progress import Progress, ShouldStop

if TYPE_CHECKING:
    from ibis.expr.types import Table

Columns = Mapping[str, npt.NDArray[Any]]


class StoppedError(Exception):
    """The user pressed Stop; the function that began counting turns it into a result."""


class Runner(Protocol):
    """A function that runs an expression and returns its columns, nulls as NaN."""

    def __call__(self, expression: Table, /) -> Columns:
        """Return the columns of the result."""


@dataclass
class Steps:
    """The progress of several steps as one fraction that never falls."""

    progress: Progress | None
    total: int
    done: int = 0
    _reported: float = 0.0

    def inside(self, fraction: float) -> None:
        """Report the progress of the current step."""
        if self.progress is not None:
            share = min(max(fraction, 0.0), 1.0)
            # DuckDB's estimate may fall, and steps may be added.
            self._reported = max(self._reported, min((self.done + share) / max(self.total, 1), 1.0))
            self.progress(self._reported)

    def finish(self) -> None:
        """Report that the current step is done."""
        self.done += 1
        self.inside(0.0)


def check_stop(should_stop: ShouldStop | None) -> None:
    """Raise `StoppedError` if the user wants to stop."""
    if should_stop is not None and should_stop():
        raise StoppedError


def engine_runner(should_stop: ShouldStop | None = None, steps: Steps | None = None) -> Runner:
    """Return a runner of expressions in the engine of their table; it stops only between queries."""

    def run(expression: Table) -> Columns:
        check_stop(should_stop)
        table = expression.to_pyarrow()
        if steps is not None:
            steps.finish()
        return {name: _to_floats(table.column(name).to_numpy()) for name in table.column_names}

    return run


def _to_floats(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Some engines return sums of integers as decimals.
    return column.astype(np.float64) if column.dtype.kind == "O" else column
