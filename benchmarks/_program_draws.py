"""Releases of a generated program, many of them in one process, by the statements of the program itself.

A program reads its data, drops rows at random, and draws noise. Its data are read once. What drops rows and draws noise
runs again for every release, in the program's own words. Two things are kept between releases, as they do not change:
the scale that OpenDP searches for, which takes seconds, and the plan that OpenDP makes of a query. The plan is cut
above the rows that it drops: these are drawn once for many releases. Plain Python's noise is drawn for many releases in
one call of the program's function, as most of a call's time is overhead.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any
from unittest import mock

import numpy as np
import opendp.extras.polars
import opendp.prelude as dp
import polars as pl
from opendp.accuracy import summarize_polars_measurement
from opendp.extras.polars import LazyFrameQuery

from dpcore.contributions import FloatArray

_SAMPLES_ROWS = re.compile(r"\.sample\(frac=1\.0\)|\.shuffle\(\)")
_CUT = "rows up to the bound"
_DRAWS_NOISE = re.compile(r"\badd_noise\(|\bpick\(|\bquery\.release\(|^noisy = ")


class _RepeatedQuery:
    """A query of a context that releases as often as it is asked to; the context would refuse the second release.

    OpenDP hands out no plan of a quantile: it drops rows in each release.
    """

    def __init__(self, query: LazyFrameQuery, lines: Any) -> None:
        """Resolve the query; ``lines`` are the rows that it releases."""
        self.measurement, self._lines = query.resolve(), lines
        self._noisy_plan: pl.LazyFrame | None = None
        self._bounded_plan: pl.LazyFrame | None = None
        dp.enable_features("honest-but-curious")
        with contextlib.suppress(dp.OpenDPException):
            plan = json.loads(_write_plan(self.measurement(lines).lazy()))
            bounded_node = next(_find_filters(plan))
            self._bounded_plan = _read_plan(json.dumps(bounded_node))
            bounded_node.clear()
            bounded_node[_CUT] = 0
            self._plan_text = json.dumps(plan)
        dp.disable_features("honest-but-curious")

    def sample_rows(self) -> None:
        """Drop rows at random: the plan below is cut there, and draws nothing but noise."""
        if self._bounded_plan is not None:
            rows_text = _write_plan(self._bounded_plan.collect().lazy())
            self._noisy_plan = _read_plan(self._plan_text.replace(json.dumps({_CUT: 0}), rows_text))

    def release(self) -> Any:
        """Return one more release of the query."""
        return self.measurement(self._lines) if self._noisy_plan is None else self._noisy_plan


def _write_plan(frame: pl.LazyFrame) -> str:
    """Write a plan as JSON."""
    with warnings.catch_warnings(action="ignore"):  # Polars promises no format that lasts.
        return frame.serialize(format="json")


def _read_plan(plan_text: str) -> pl.LazyFrame:
    """Read a plan that `_write_plan` wrote, or a part of it."""
    with warnings.catch_warnings(action="ignore"):
        return pl.LazyFrame.deserialize(io.StringIO(plan_text), format="json")


def _find_filters(node: Any) -> Iterator[dict[str, Any]]:
    """Find the filters of a plan, the last one that is applied first: it keeps rows up to the bound."""
    if isinstance(node, dict) and "Filter" in node:
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _find_filters(child)


class _BatchedNoise:
    """The noise function of a program, called once for many releases of the same values."""

    def __init__(self, add_noise: Callable[[list[float], float], list[float]], num_draws: int) -> None:
        """Keep the program's function, and the number of releases to draw in one call."""
        self._add_noise, self._num_draws = add_noise, num_draws
        self._noisy: dict[tuple[float, ...], list[list[float]]] = {}

    def __call__(self, values: Sequence[float], sensitivity: float) -> list[float]:
        """Return the values with noise that was not returned before."""
        key = (sensitivity, *values)
        if not self._noisy.get(key):
            # The scale follows from sensitivity and budget: it is the same for the values many times over.
            noisy = self._add_noise([*values] * self._num_draws, sensitivity)
            size = len(values)
            self._noisy[key] = [noisy[i * size : (i + 1) * size] for i in range(self._num_draws)]
        return self._noisy[key].pop()


class ProgramDraws:
    """A program that has read its data and releases as often as it is asked to.

    Attributes:
        names: What the names of the program are bound to.
        summary: OpenDP's own account of the query, one dict per released column; empty where there is no query.
    """

    def __init__(self, program_text: str, groups: Sequence[str] = ()) -> None:
        """Read the data of a program.

        Args:
            program_text: A program for plain Python or OpenDP; its file lies in the working folder.
            groups: The public list of groups, which programs for private data ask for.
        """
        text = re.sub(r"^GROUPS: list\[str\] = \[\]$", f"GROUPS = {list(groups)!r}", program_text, flags=re.M)
        statements = ast.parse(text).body
        sources = [
            "" if isinstance(s, ast.FunctionDef) else ast.get_source_segment(text, s) for s in statements
        ]
        draws_noise = [bool(_DRAWS_NOISE.search(source or "")) for source in sources]
        samples_rows = [bool(_SAMPLES_ROWS.search(source or "")) for source in sources]
        first_draw = draws_noise.index(True)
        first_sample = [*samples_rows[:first_draw], True].index(True)
        self.names: dict[str, Any] = {}
        self.summary: list[dict[str, Any]] = []
        self._releases: list[list[float]] = []
        self._scales: _Scales = {}
        with contextlib.redirect_stderr(io.StringIO()), _keep_scales(self._scales):
            exec(_compile(statements[:first_sample]), self.names)
        self.names["print"] = lambda text, **_: self._releases.append(
            _list_numbers(json.loads(text)["released"])
        )
        if isinstance(query := self.names.get("query"), LazyFrameQuery):
            lines = self.names.get("lines", self.names["events"])
            with _keep_scales(self._scales):
                self.names["query"] = repeated_query = _RepeatedQuery(query, lines.collect().lazy())
            # What `query.summarize()` gives, which would search for the scale again.
            self.summary = summarize_polars_measurement(repeated_query.measurement).to_dicts()
        self._sample_rows = _compile(statements[first_sample:first_draw])
        self._draw_noise = _compile(statements[first_draw:])

    def draw(self, num_samples: int, num_draws: int) -> FloatArray:
        """Release many times.

        Args:
            num_samples: How often rows are dropped at random. Quantiles of OpenDP drop them anew in every release.
            num_draws: Releases from each of these samples.

        Returns:
            Shape (num_samples, num_draws, numbers of one release).
        """
        self._releases = []
        with _keep_scales(self._scales):
            for _ in range(num_samples):
                names = dict(self.names)  # Rows are drawn from all rows, not from those of the draw before.
                exec(self._sample_rows, names)
                if isinstance(query := names.get("query"), _RepeatedQuery):
                    query.sample_rows()
                if "add_noise" in names:
                    names["add_noise"] = _BatchedNoise(names["add_noise"], num_draws)
                for _ in range(num_draws):
                    exec(self._draw_noise, names)
        numbers = np.array(self._releases, dtype=np.float64)
        return numbers.reshape(num_samples, num_draws, -1)


def run_whole(program_text: str, groups: Sequence[str], num_runs: int) -> FloatArray:
    """Run a program many times from its first line to its last; later runs have the scale that the first one searched.

    Returns:
        Shape (num_runs, numbers of one release).
    """
    text = re.sub(r"^GROUPS: list\[str\] = \[\]$", f"GROUPS = {list(groups)!r}", program_text, flags=re.M)
    releases = []
    with contextlib.redirect_stderr(io.StringIO()), _keep_scales({}):
        for _ in range(num_runs):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(text, "program", "exec"), {})
            releases.append(_list_numbers(json.loads(printed.getvalue())["released"]))
    return np.array(releases, dtype=np.float64)


def _compile(statements: list[ast.stmt]) -> CodeType:
    """Compile statements of the program."""
    return compile(ast.Module(statements, []), "program", "exec")


def _list_numbers(release: Any) -> list[float]:
    """List the released numbers, those of groups in the order of the groups."""
    if isinstance(release, dict):
        return [float(release[key]) for key in sorted(release)]
    return [float(release)]


_Scales = dict[tuple[float, float], float]
"""Scales of one program by bound on the change of its input and by loss."""


@contextlib.contextmanager
def _keep_scales(scales: _Scales) -> Iterator[None]:
    """Keep the scales that a program and its query search for."""
    search = dp.binary_search_param

    def search_once(make: Callable[[float], Any], d_in: float, d_out: float, **options: Any) -> float:
        """Search a scale, or return the one found before."""
        if (d_in, d_out) not in scales:
            scales[d_in, d_out] = search(make, d_in=d_in, d_out=d_out, **options)
        return scales[d_in, d_out]

    def make_once(make: Callable[[float], Any], d_in: float, d_out: float, **options: Any) -> Any:
        """Make what has the least scale."""
        return make(search_once(make, d_in, d_out, **options))

    with (
        mock.patch.object(dp, "binary_search_param", search_once),
        mock.patch.object(opendp.extras.polars, "binary_search_chain", make_once),
    ):
        yield
