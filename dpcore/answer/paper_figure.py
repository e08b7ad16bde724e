"""A figure of a paper that is made again: what is varied, what one run says, and what was stored of many.

Whatever takes more than a moment comes with the app as a stored result, a small JSON file with the version, the seeds
and the command that made it. One run at one value of what is varied is a function of a seed, so that a test can run two
of them anew with other seeds and compare.
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

from dpcore.answer.plot import Axis, Look
from dpcore.common.documents import document
from dpcore.common.over_runs import Summary, summary
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
        look: Whose colour it has.
        symbol: Shape of its points.
        dash: A dash pattern of its own; empty for that of its look.
        theirs: What the paper prints for each value, None where it prints nothing; empty for nothing at all.
        spread: What the paper prints behind its ±, for each number that it prints; empty for nothing.
    """

    key: str
    name: str
    look: Look
    symbol: str = "circle"
    dash: str = ""
    theirs: tuple[float | None, ...] = ()
    spread: tuple[float | None, ...] = ()


Run = Callable[[float, int], Mapping[str, float]]
"""One run at one value with one seed: a number for each line; NaN, or nothing, where there is none.

Where the paper leaves something open, least and most over its readings stand beside a line's number, under the line's
key with ``_low`` and ``_high``.
"""


@dataclass(frozen=True)
class Brings:
    """How a figure is made on the paper's own data, which do not come with the app.

    Attributes:
        what: The files, a phrase.
        figure: The same figure on such files. It raises `InvalidInput` where they are others.
    """

    what: str
    figure: Callable[[Sequence[File]], PaperFigure]


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
        run: One run.
        runs: How many are stored.
        differs: Why ours differ from theirs, or that it is open, sentences.
        exact: Whether a run does not depend on its seed.
        within: Lowest and highest number that the paper states in a sentence for all values; None for none.
        brings: How it is made on the paper's own data; None where nothing has to be brought.
        data: Name of the data that were brought; empty for the figure that comes with the app.
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
    run: Run
    runs: int
    differs: str
    exact: bool = False
    within: tuple[float, float] | None = None
    brings: Brings | None = None
    data: str = ""

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
    ) -> Stored | None:
        """Run it.

        Args:
            seeds: Of the runs; 0, 1 ... by default.
            values: At which of its values; all by default.
            progress: Told the share of runs done.
            should_stop: Asked before each run.

        Returns:
            All runs; None where it was stopped before all of them were done.
        """
        seeds = tuple(range(1 if self.exact else self.runs)) if seeds is None else seeds
        at = self.values if values is None else values
        # Of each line its number, and both ends of the range over readings.
        runs = np.full((3, len(self.lines), len(at), len(seeds)), np.nan)
        for number, (place, value) in enumerate([(k, v) for k in range(len(seeds)) for v in enumerate(at)]):
            if should_stop():
                return None
            run = self.run(value[1], seeds[place])
            for line, said in enumerate(self.lines):
                for end, of in enumerate(("", "_low", "_high")):
                    runs[end, line, value[0], place] = run.get(said.key + of, math.nan)
            progress((number + 1) / (len(seeds) * len(at)))
        low, high = runs[1:].mean(axis=3)
        return Stored(self.key, at, seeds, summary(runs[0], axis=2), low=low, high=high)

    @functools.cached_property
    def stored(self) -> Stored | None:
        """What came with the app; None where nothing did."""
        file = resources.files("dpcore.answer").joinpath("paper_results", f"{self.key}.json")
        return Stored.read(self, file.read_text(encoding="utf-8")) if file.is_file() else None

    def largest_difference(self, found: Stored) -> float | None:
        """Largest relative difference between ours and what the paper prints; None where it prints nothing.

        Of a range that a sentence states it is how far ours lies outside; and where ours is a range over readings, how
        far theirs lies outside it.
        """
        apart: list[float] = []
        for row, line in enumerate(self.lines):
            for value, theirs in zip(self.values, line.theirs, strict=False):
                if theirs and value in found.values:
                    number = found.nearest(row, found.values.index(value), theirs)
                    if math.isfinite(number):
                        apart.append(abs(number / theirs - 1.0))
        if self.within is not None:
            low, high = self.within
            for number in found.over_runs.mean[0]:
                apart.append(max(0.0, 1.0 - float(number) / low, float(number) / high - 1.0))
        return max(apart) if apart else None


@dataclass(frozen=True, eq=False)
class Stored:
    """Runs of a figure.

    Attributes:
        key: Of the figure.
        values: At which values.
        seeds: Of the runs.
        over_runs: Mean, standard error and spread of a run, each of shape (lines, values).
        version: Of the program that made them; empty for now.
        low: Least over what the paper leaves open, shape (lines, values); NaN, or None, where nothing is varied.
        high: Most, likewise.
    """

    key: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    over_runs: Summary
    version: str = ""
    low: FloatArray | None = None
    high: FloatArray | None = None

    @property
    def ranges(self) -> bool:
        """Whether some line has a range over what the paper leaves open."""
        return self.low is not None and bool(np.any(np.isfinite(self.low)))

    def nearest(self, line: int, value: int, theirs: float) -> float:
        """Ours, or what of its range over readings lies nearest to theirs."""
        number = float(self.over_runs.mean[line, value])
        if self.low is None or self.high is None or math.isnan(self.low[line, value]):
            return number
        return min(max(theirs, float(self.low[line, value])), float(self.high[line, value]))

    @property
    def half_width(self) -> FloatArray:
        """Half of the 95 % interval of each mean; 0 where there is one run, which is exact or alone."""
        return np.nan_to_num(self.over_runs.half_width)

    def written(self, of: PaperFigure) -> str:
        """As a file, JSON."""
        lines = {
            line.key: {
                "mean": [_number(x) for x in self.over_runs.mean[at]],
                "spread": [_number(x) for x in self.over_runs.spread[at]],
                "runs": [int(n) for n in self.over_runs.runs[at]],
            }
            for at, line in enumerate(of.lines)
        }
        text = document(
            SCHEMA,
            figure=self.key,
            item=of.name,
            command=COMMAND,
            seeds=list(self.seeds),
            values=list(self.values),
            lines=lines,
        )
        # A list of numbers is one line.
        return re.sub(r"\[[^\[\]]*\]", lambda found: " ".join(found[0].split()), text)

    @classmethod
    def read(cls, of: PaperFigure, text: str) -> Stored:
        """Of a file that was written for this figure.

        Raises:
            KeyError: It has another form.
        """
        held = json.loads(text)

        def rows(name: str) -> FloatArray:
            return np.array(
                [[math.nan if x is None else x for x in held["lines"][line.key][name]] for line in of.lines]
            )

        runs, spread = rows("runs").astype(np.int64), rows("spread")
        error = spread / np.sqrt(np.maximum(runs, 1))
        return cls(
            held["figure"],
            tuple(held["values"]),
            tuple(held["seeds"]),
            Summary(rows("mean"), error, runs, spread),
            held["made_with"],
        )


def _number(value: float) -> float | None:
    """Seven digits: more than the runs are sure of, and a file that people can read."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
