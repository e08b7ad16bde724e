"""A figure of a paper that is computed again: the varied setting, the result of a run, and stored results of many.

A slow computation comes with the app as a stored result, a small JSON file with the version, the seeds and the
command that made it. One run at one value is a function of a seed, so that a test can repeat two of them with
other seeds.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np

from dpcore.answer.plot import Axis, Style
from dpcore.common.documents import write_document
from dpcore.common.over_runs import Summary, summarise_runs
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.data.published import File

SCHEMA = "sweetspot/paper-figure/1"
COMMAND = "make paper-figures"
"""What makes the stored results anew."""


@dataclass(frozen=True)
class Line:
    """One line of a figure.

    Attributes:
        key: Of its number in a run, and of its column.
        name: In the legend.
        style: Whose colour it has.
        symbol: Shape of its points.
        dash: A dash pattern of its own; empty for that of its look.
        paper_values: What the paper prints for each value, None where it prints nothing; empty for nothing at all.
        paper_spreads: What the paper prints behind its ±, for each number that it prints; empty for nothing.
    """

    key: str
    name: str
    style: Style
    symbol: str = "circle"
    dash: str = ""
    paper_values: tuple[float | None, ...] = ()
    paper_spreads: tuple[float | None, ...] = ()


Run = Callable[[float, int], Mapping[str, float]]
"""One run at one value with one seed: a number for each line; NaN, or nothing, where there is none.

Where the paper leaves something open, least and most over its readings stand beside a line's number, under the line's
key with ``_low`` and ``_high``.
"""


@dataclass(frozen=True)
class OwnData:
    """How a figure is made on the paper's own data, which do not come with the app.

    Attributes:
        description: The files, a phrase.
        build_figure: The same figure on such files. It raises `InvalidInput` where they are others.
    """

    description: str
    build_figure: Callable[[Sequence[File]], PaperFigure]


@dataclass(frozen=True, eq=False)
class PaperFigure:
    """A figure or table of a paper.

    Attributes:
        key: Of its file and its plot, words set off by hyphens.
        paper: As ``docs/papers.md`` has it.
        item: As the paper numbers it.
        title: What it shows, a phrase.
        setting: The paper's setting, and what is ours where the paper leaves it open, sentences.
        page: Title of the page that answers the same question for one's own data.
        tab: The tab there; empty for the first screen.
        x: Axis of what is varied.
        y: Axis of the lines.
        values: Of what is varied, ascending.
        lines: What is drawn.
        run_once: One run.
        num_runs: How many are stored.
        difference_note: Why ours differ from theirs, or that it is open, sentences.
        is_exact: Whether a run does not depend on its seed.
        stated_range: Lowest and highest number that the paper states in a sentence for all values; None for none.
        own_data: How it is made on the paper's own data; None where nothing has to be brought.
        dataset_name: Name of the data that were brought; empty for the figure that comes with the app.
    """

    key: str
    paper: str
    item: str
    title: str
    setting: str
    page: str
    tab: str
    x: Axis
    y: Axis
    values: tuple[float, ...]
    lines: tuple[Line, ...]
    run_once: Run
    num_runs: int
    difference_note: str
    is_exact: bool = False
    stated_range: tuple[float, float] | None = None
    own_data: OwnData | None = None
    dataset_name: str = ""

    @property
    def name(self) -> str:
        """The item with its paper."""
        return f"{self.paper}, {self.item[0].lower()}{self.item[1:]}"

    def compute(
        self,
        seeds: tuple[int, ...] | None = None,
        values: tuple[float, ...] | None = None,
        *,
        progress: Progress = silent,
        should_stop: ShouldStop = never,
    ) -> StoredRuns | None:
        """Run the figure.

        Args:
            seeds: Of the runs; 0, 1 ... by default.
            values: At which of its values; all by default.
            progress: Told the share of runs done.
            should_stop: Asked before each run.

        Returns:
            All runs; None where it was stopped before all of them were done.
        """
        seeds = tuple(range(1 if self.is_exact else self.num_runs)) if seeds is None else seeds
        run_values = self.values if values is None else values
        # Of each line its number, and both ends of the range over readings.
        runs = np.full((3, len(self.lines), len(run_values), len(seeds)), np.nan)
        for step, (seed_number, value) in enumerate(
            [(k, v) for k in range(len(seeds)) for v in enumerate(run_values)]
        ):
            if should_stop():
                return None
            numbers = self.run_once(value[1], seeds[seed_number])
            for line_number, curve in enumerate(self.lines):
                for end, suffix in enumerate(("", "_low", "_high")):
                    runs[end, line_number, value[0], seed_number] = numbers.get(curve.key + suffix, math.nan)
            progress((step + 1) / (len(seeds) * len(run_values)))
        low, high = runs[1:].mean(axis=3)
        return StoredRuns(self.key, run_values, seeds, summarise_runs(runs[0], axis=2), low=low, high=high)

    @functools.cached_property
    def stored(self) -> StoredRuns | None:
        """Return the result that came with the app; None if there is none."""
        file = resources.files("dpcore.answer").joinpath("paper_results", f"{self.key}.json")
        return StoredRuns.read(self, file.read_text(encoding="utf-8")) if file.is_file() else None

    def compute_largest_difference(self, stored: StoredRuns) -> float | None:
        """Compute the largest relative difference between ours and the paper's numbers; None if it prints none.

        For a range stated in a sentence it is how far ours lies outside; if ours is a range over readings, how
        far the paper's number lies outside it.
        """
        differences: list[float] = []
        for row, line in enumerate(self.lines):
            for value, paper_value in zip(self.values, line.paper_values, strict=False):
                if paper_value and value in stored.values:
                    own_value = stored.choose_nearest(row, stored.values.index(value), paper_value)
                    if math.isfinite(own_value):
                        differences.append(abs(own_value / paper_value - 1.0))
        if self.stated_range is not None:
            low, high = self.stated_range
            for own_value in stored.summary.mean[0]:
                differences.append(max(0.0, 1.0 - float(own_value) / low, float(own_value) / high - 1.0))
        return max(differences) if differences else None


@dataclass(frozen=True, eq=False)
class StoredRuns:
    """Runs of a figure.

    Attributes:
        key: Of the figure.
        values: At which values.
        seeds: Of the runs.
        summary: Mean, standard error and spread of a run, each of shape (lines, values).
        version: Of the program that made them; empty for now.
        low: Least over what the paper leaves open, shape (lines, values); NaN, or None, where nothing is varied.
        high: Most, likewise.
    """

    key: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    summary: Summary
    version: str = ""
    low: FloatArray | None = None
    high: FloatArray | None = None

    @property
    def has_ranges(self) -> bool:
        """Return whether some line has a range over what the paper leaves open."""
        return self.low is not None and bool(np.any(np.isfinite(self.low)))

    def choose_nearest(self, line: int, value: int, paper_value: float) -> float:
        """Choose our number, or the point of its range over readings that is nearest to the paper's."""
        mean = float(self.summary.mean[line, value])
        if self.low is None or self.high is None or math.isnan(self.low[line, value]):
            return mean
        return min(max(paper_value, float(self.low[line, value])), float(self.high[line, value]))

    @property
    def half_width(self) -> FloatArray:
        """Return half of the 95 % interval of each mean; 0 if there is one run, or the result is exact."""
        return np.nan_to_num(self.summary.half_width)

    def write(self, figure: PaperFigure) -> str:
        """Write a JSON file."""
        lines = {
            line.key: {
                "mean": [_round_digits(x) for x in self.summary.mean[position]],
                "spread": [_round_digits(x) for x in self.summary.spread[position]],
                "runs": [int(n) for n in self.summary.runs[position]],
            }
            for position, line in enumerate(figure.lines)
        }
        text = write_document(
            SCHEMA,
            figure=self.key,
            item=figure.name,
            command=COMMAND,
            seeds=list(self.seeds),
            values=list(self.values),
            lines=lines,
        )
        # A list of numbers is one line.
        return re.sub(r"\[[^\[\]]*\]", lambda match: " ".join(match[0].split()), text)

    @classmethod
    def read(cls, figure: PaperFigure, text: str) -> StoredRuns:
        """Read a file that was written for this figure.

        Raises:
            KeyError: It has another form.
        """
        entries = json.loads(text)

        def read_rows(name: str) -> FloatArray:
            return np.array(
                [
                    [math.nan if x is None else x for x in entries["lines"][line.key][name]]
                    for line in figure.lines
                ]
            )

        runs, spread = read_rows("runs").astype(np.int64), read_rows("spread")
        error = spread / np.sqrt(np.maximum(runs, 1))
        return cls(
            entries["figure"],
            tuple(entries["values"]),
            tuple(entries["seeds"]),
            Summary(read_rows("mean"), error, runs, spread),
            entries["made_with"],
        )


def _round_digits(value: float) -> float | None:
    """Round to seven digits: more than the runs are sure of, and a file that people can read."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
