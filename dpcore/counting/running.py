"""What running a query comes to: progress, Stop, and columns of numbers back."""

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
    """The person pressed Stop; caught where counting began, where it becomes a result."""


class Runner(Protocol):
    """Runs an expression and brings back its columns, nulls as NaN."""

    def __call__(self, expression: Table, /) -> Columns:
        """Return the columns of the result."""


@dataclass
class Steps:
    """The progress of several steps as one fraction that never falls."""

    progress: Progress | None
    total: int
    done: int = 0
    _said: float = 0.0

    def inside(self, fraction: float) -> None:
        """Say how far the current step is."""
        if self.progress is not None:
            share = min(max(fraction, 0.0), 1.0)
            # DuckDB's estimate falls when it learns more, and steps may be added.
            self._said = max(self._said, min((self.done + share) / max(self.total, 1), 1.0))
            self.progress(self._said)

    def finish(self) -> None:
        """Say that the current step is done."""
        self.done += 1
        self.inside(0.0)


def check_stop(should_stop: ShouldStop | None) -> None:
    """Raise `StoppedError` where the person wants to stop."""
    if should_stop is not None and should_stop():
        raise StoppedError


def engine_runner(should_stop: ShouldStop | None = None, steps: Steps | None = None) -> Runner:
    """Runs expressions in the engine that their table belongs to; stops between queries only."""

    def run(expression: Table) -> Columns:
        check_stop(should_stop)
        table = expression.to_pyarrow()
        if steps is not None:
            steps.finish()
        return {name: _plain(table.column(name).to_numpy()) for name in table.column_names}

    return run


def _plain(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Sums of whole numbers come back as decimals from some engines.
    return column.astype(np.float64) if column.dtype.kind == "O" else column
