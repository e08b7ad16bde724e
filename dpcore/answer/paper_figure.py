"""A figure of a paper that is computed again: the varied setting, the result of a run, stored results, and the plot.

A slow computation comes with the app as a stored result, a small JSON file with the version, the seeds and the
command that made it. One run at one value is a function of a seed, so that a test can repeat two of them with
other seeds.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np

from dpcore.answer.plot import Axis, Curve, Item, Level, Plot, Style
from dpcore.common.checks import refuse
from dpcore.common.noise_error import Summary, summarise_runs
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.wording import format_number, format_percent
from dpcore.contributions import FloatArray


@dataclass(frozen=True)
class Line:
    """One line of a paper's figure: its look, and the values that the paper prints.

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


MeansByLine = Mapping[str, FloatArray]
"""Our means at each value, by the key of a line."""


@dataclass(frozen=True)
class Claim:
    """A statement about a figure in a paper's text.

    Attributes:
        text: The statement, a sentence without its full stop.
        place: Where the paper makes it.
        holds: Returns True if our columns agree with it.
    """

    text: str
    place: str
    holds: Callable[[MeansByLine], bool | np.bool_]


class _RecordedColumns(Mapping[str, FloatArray]):
    """Means by line that record, in order, the keys of the lines that a claim's check has read."""

    def __init__(self, columns: MeansByLine) -> None:
        """Record reads of these columns."""
        self._columns = columns
        self.read_keys: dict[str, None] = {}

    def __getitem__(self, line_key: str) -> FloatArray:
        """Return the column of a line, and record that it was read."""
        self.read_keys[line_key] = None
        return self._columns[line_key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys of all lines."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._columns)


def is_ordered(*line_keys: str) -> Callable[[MeansByLine], bool]:
    """Return a check that the lines come in this order at every value, lowest first; NaN is ignored."""
    return lambda c: (
        not any(
            np.any(c[lower_key] >= c[higher_key]) for lower_key, higher_key in itertools.pairwise(line_keys)
        )
    )


def is_falling(*line_keys: str) -> Callable[[MeansByLine], bool]:
    """Return a check that each of these lines falls from value to value; NaN is ignored."""
    return lambda c: not any(np.any(np.diff(c[line_key]) >= 0.0) for line_key in line_keys)


def all_hold(*checks: Callable[[MeansByLine], bool]) -> Callable[[MeansByLine], bool]:
    """Return a check that all of these checks hold."""
    return lambda c: all(holds(c) for holds in checks)


MAX_LINES, MAX_VALUES = 4, 5
"""The most lines, and numbers of a line, that are written out with a claim."""


@dataclass(frozen=True, eq=False)
class CheckedClaim:
    """A claim of a paper with what ours say of it.

    Attributes:
        claim: The claim.
        holds: True if our means agree.
        own_values_by_line_name: Our means, of the lines that decided; where a claim fails, up to the failure.
    """

    claim: Claim
    holds: bool
    own_values_by_line_name: Mapping[str, FloatArray]

    @property
    def mark(self) -> str:
        """Return ✓ if our means agree, else ✗."""
        return "✓" if self.holds else "✗"

    @property
    def values_text(self) -> str:
        """Write our values by line: of many lines the last ones, of long lines the first and the last number."""
        value_texts = [
            f"{line_name} {_abbreviate_values(values)}"
            for line_name, values in list(self.own_values_by_line_name.items())[-MAX_LINES:]
        ]
        return "; ".join(value_texts)


def _abbreviate_values(values: FloatArray) -> str:
    """Write the finite values, to three digits, between slashes; of more than `MAX_VALUES` the first and the last."""
    texts = [format_number(float(f"{value:.3g}")) for value in values if math.isfinite(value)]
    return " / ".join(texts) if len(texts) <= MAX_VALUES else f"{texts[0]} … {texts[-1]}"


Run = Callable[[float, int], Mapping[str, float]]
"""One run at one value with one seed: a number for each line; NaN, or nothing, where there is none."""


@dataclass(frozen=True, eq=False)
class PaperFigure:
    """A figure or table of a paper.

    Attributes:
        key: Of its file and its plot, words set off by hyphens.
        paper_name: As ``docs/papers.md`` has it.
        item_name: As the paper numbers it.
        title: What it shows, a phrase.
        setting_text: The paper's setting, and what is ours where the paper leaves it open, sentences.
        page_title: Title of the page that answers the same question for one's own data.
        tab_name: The tab there; empty for the first screen.
        x: Axis of what is varied.
        y: Axis of the lines.
        x_values: Of what is varied, ascending.
        lines: What is drawn.
        run_once: One run; None where it needs the paper's own data, which do not come with the app.
        num_runs: How many are stored.
        difference_note: Why ours differ from theirs, or that it is open, sentences.
        ignores_seed: Whether a run does not depend on its seed.
        stated_range: Lowest and highest number that the paper states in a sentence for all values; None for none.
        claims: The text's statements about the figure.
    """

    key: str
    paper_name: str
    item_name: str
    title: str
    setting_text: str
    page_title: str
    tab_name: str
    x: Axis
    y: Axis
    x_values: tuple[float, ...]
    lines: tuple[Line, ...]
    run_once: Run | None
    num_runs: int
    difference_note: str
    ignores_seed: bool = False
    stated_range: tuple[float, float] | None = None
    claims: tuple[Claim, ...] = ()

    @property
    def name(self) -> str:
        """Return the names of paper and item, as ``Amin et al. 2019, figure 3``."""
        return f"{self.paper_name}, {self.item_name[0].lower()}{self.item_name[1:]}"

    @property
    def main_item(self) -> str:
        """Return the numbered item, without its part: ``Figure 4`` of ``Figure 4 (b)``, ``Table 1`` of both halves."""
        return re.split(" [(]|, ", self.item_name)[0]

    def compute(
        self,
        seeds: tuple[int, ...] | None = None,
        x_values: tuple[float, ...] | None = None,
        *,
        progress: Progress = silent,
        should_stop: ShouldStop = never,
    ) -> FigureRuns | None:
        """Run the figure once for each value and seed, and summarise over seeds; None if it was stopped.

        Args:
            seeds: Of the runs; 0, 1 ... by default.
            x_values: At which of its values; all by default.
            progress: Told the share of runs done.
            should_stop: Asked before each run.

        Returns:
            All runs; None where it was stopped before all of them were done.

        Raises:
            InvalidInput: The figure needs the paper's own data.
        """
        if self.run_once is None:
            raise refuse(f"{self.name} needs the paper's own data: see `docs/papers_data.md`")
        seeds = tuple(range(1 if self.ignores_seed else self.num_runs)) if seeds is None else seeds
        x_values = self.x_values if x_values is None else x_values
        run_results = np.full((len(self.lines), len(x_values), len(seeds)), np.nan)
        for seed_index, seed in enumerate(seeds):
            for value_index, x_value in enumerate(x_values):
                if should_stop():
                    return None
                numbers_by_line_key = self.run_once(x_value, seed)
                line_results = [numbers_by_line_key.get(line.key, math.nan) for line in self.lines]
                run_results[:, value_index, seed_index] = line_results
                progress((seed_index * len(x_values) + value_index + 1) / (len(seeds) * len(x_values)))
        return FigureRuns(self.key, x_values, seeds, summarise_runs(run_results, axis=2))

    @functools.cached_property
    def stored_runs(self) -> FigureRuns:
        """Return the stored runs that come with the app."""
        result_file = resources.files("dpcore.answer").joinpath("paper_results", f"{self.key}.json")
        return FigureRuns.read(self, result_file.read_text(encoding="utf-8"))

    def check_claims(self, figure_runs: FigureRuns) -> list[CheckedClaim]:
        """Check each claim of the paper's text with our means."""
        mean_columns = {line.key: figure_runs.summary.means[i] for i, line in enumerate(self.lines)}
        checked_claims: list[CheckedClaim] = []
        for claim in self.claims:
            recorded_columns = _RecordedColumns(mean_columns)
            holds = bool(claim.holds(recorded_columns))
            used_lines = [line for line in self.lines if line.key in recorded_columns.read_keys]
            own_values_by_line_name = {line.name: mean_columns[line.key] for line in used_lines}
            checked_claims.append(CheckedClaim(claim, holds, own_values_by_line_name))
        return checked_claims

    def compute_largest_difference(self, figure_runs: FigureRuns) -> float | None:
        """Compute the largest relative difference of our means from the paper's numbers; None if it prints none.

        If the paper states a range, it is how far our means lie outside.
        """
        differences: list[float] = []
        for line_index, line in enumerate(self.lines):
            for x, paper_value in zip(self.x_values, line.paper_values, strict=False):
                if paper_value and x in figure_runs.x_values:
                    own_mean = float(figure_runs.summary.means[line_index, figure_runs.x_values.index(x)])
                    if math.isfinite(own_mean):
                        differences.append(abs(own_mean / paper_value - 1.0))
        if self.stated_range is not None:
            lowest_stated, highest_stated = self.stated_range
            own_means = figure_runs.summary.means[0].tolist()
            differences += [
                max(0.0, 1.0 - mean / lowest_stated, mean / highest_stated - 1.0) for mean in own_means
            ]
        return max(differences, default=None)


@dataclass(frozen=True, eq=False)
class FigureRuns:
    """Runs of a figure.

    Attributes:
        key: Of the figure.
        x_values: At which values.
        seeds: Of the runs.
        summary: Mean, standard error and spread of a run, each of shape (lines, values).
        version: Of the program that made them; empty for now.
    """

    key: str
    x_values: tuple[float, ...]
    seeds: tuple[int, ...]
    summary: Summary
    version: str = ""

    @property
    def half_widths(self) -> FloatArray:
        """Return the half-width of the 95 % interval of each mean, shape (lines, values); 0 for a single run."""
        return np.nan_to_num(self.summary.half_widths)

    @classmethod
    def read(cls, figure: PaperFigure, json_text: str) -> FigureRuns:
        """Read stored runs of the figure's lines from the text of their JSON file.

        Raises:
            KeyError: It has another form.
        """
        stored_members = json.loads(json_text)

        def read_numbers(number_name: str) -> FloatArray:
            """Return the numbers stored by this key, shape (lines, values); NaN for null."""
            number_rows = [stored_members["lines"][line.key][number_name] for line in figure.lines]
            return np.array([[math.nan if x is None else x for x in row] for row in number_rows])

        run_counts, run_spreads = read_numbers("runs").astype(np.int64), read_numbers("spread")
        standard_errors = run_spreads / np.sqrt(np.maximum(run_counts, 1))
        summary = Summary(read_numbers("mean"), standard_errors, run_counts, run_spreads)
        x_values, seeds = tuple(stored_members["values"]), tuple(stored_members["seeds"])
        return cls(stored_members["figure"], x_values, seeds, summary, stored_members["made_with"])


HEIGHT = 470


def build_plot(figure: PaperFigure, figure_runs: FigureRuns) -> Plot:
    """Plot our means as lines with 95 % intervals, and the paper's as dotted lines in the same colours with its ±."""
    x_values = np.array(figure_runs.x_values)
    file_columns, items, has_paper_label = {"value": x_values}, list[Item](), False
    for line_index, line in enumerate(figure.lines):
        means, half_widths = figure_runs.summary.means[line_index], figure_runs.half_widths[line_index]
        paper_name, paper_symbol = f"{line.name}, paper", f"{line.symbol}-open"
        for curve_name, column_name, curve_numbers, whisker_half_lengths, curve_dash, curve_symbol in (
            (line.name, line.key, means, half_widths, line.dash or "solid", line.symbol),
            (paper_name, f"{line.key}_paper", line.paper_values, line.paper_spreads, "dot", paper_symbol),
        ):
            if not len(curve_numbers):
                continue
            # None is NaN.
            curve_y_values, whisker_lows, whisker_high_ends = (
                np.array(curve_numbers, dtype=np.float64),
                None,
                None,
            )
            file_columns[column_name] = curve_y_values
            if len(whisker_half_lengths):
                whisker_lengths = np.array(whisker_half_lengths, dtype=np.float64)
                whisker_lows, whisker_high_ends = (
                    curve_y_values - whisker_lengths,
                    curve_y_values + whisker_lengths,
                )
                file_columns |= {f"{column_name}_low": whisker_lows, f"{column_name}_high": whisker_high_ends}
            if figure.ignores_seed and column_name == line.key:  # Its interval is empty.
                whisker_lows = whisker_high_ends = None
            curve = Curve(curve_name, x_values, curve_y_values, line.style, whisker_lows, whisker_high_ends)
            # Ours and the paper's often lie on each other: the one of each pair that has a label says enough.
            if curve_name == paper_name:
                curve = replace(curve, label="Dotted: the paper", is_unnamed=has_paper_label)
                has_paper_label = True
            items.append(replace(curve, width=2.0, dash=curve_dash, symbol=curve_symbol))
    for stated_range_end in figure.stated_range or ():
        items.append(Level(f"Paper: {format_number(stated_range_end)}", stated_range_end))
    return Plot(
        f"paper-{figure.key}",
        f"{figure.item_name}: {figure.title}",
        f"{figure.name}: {figure.title}. {describe_difference(figure, figure_runs)}",
        figure.x,
        figure.y,
        items,
        Disclosure.PUBLIC,
        file_columns,
        height=HEIGHT,
    )


def describe_difference(figure: PaperFigure, figure_runs: FigureRuns) -> str:
    """Write one sentence: how far our means lie from the paper's numbers or range, or that it prints none."""
    difference = figure.compute_largest_difference(figure_runs)
    if difference is None:
        return "The paper prints no numbers of this figure."
    if figure.stated_range is not None:
        lowest_text, highest_text = (format_number(number) for number in figure.stated_range)
        distance_phrase = f"at most {format_percent(difference)} outside" if difference > 0.0 else "within"
        return f"The paper says {lowest_text} to {highest_text}; ours lie {distance_phrase}."
    return f"Largest difference from the paper: {format_percent(difference)}."


def list_claims(figure: PaperFigure, figure_runs: FigureRuns) -> list[str]:
    """List the claims of the paper's text as Markdown: ✓ if our means agree, else ✗, and our values."""
    return [
        f"{checked.mark} {checked.claim.text} ({checked.claim.place}). Ours: {checked.values_text}"
        for checked in figure.check_claims(figure_runs)
    ]


def abbreviate_difference(figure: PaperFigure, figure_runs: FigureRuns) -> str:
    """Write the largest difference from the paper as a percentage, or "within", or "no numbers printed"."""
    difference = figure.compute_largest_difference(figure_runs)
    if difference is None:
        return "no numbers printed"
    return "within" if difference == 0.0 else format_percent(difference)
