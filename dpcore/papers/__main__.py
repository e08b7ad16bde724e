"""The papers' figures, computed by a command.

python -m dpcore.papers [figure ...]                 make their stored results, and docs/papers.md, anew
python -m dpcore.papers --data FOLDER [figure ...]   compute those whose data lie in the folder, as their makers
                                                     publish them, and print theirs and ours; nothing is written
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from dpcore.answer.paper_figure import PaperFigure, StoredRuns
from dpcore.answer.paper_plot import describe_difference
from dpcore.common.errors import InvalidInput
from dpcore.data import published
from dpcore.papers import items
from dpcore.papers.figures import FIGURES, find_figure

FOLDER = Path(__file__).parents[1] / "answer" / "paper_results"


def main(arguments: list[str] | None = None) -> None:
    """Run the named figures, or all, and write their files; or run those on the user's data."""
    parser = argparse.ArgumentParser(
        prog="python -m dpcore.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "figures",
        nargs="*",
        metavar="figure",
        choices=[[], *(figure_of_paper.key for figure_of_paper in FIGURES)],
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with the papers' data")
    parser.add_argument(
        "--runs", type=int, default=None, help="of each figure on such data; its own number by default"
    )
    options = parser.parse_args(arguments)
    if options.runs is not None and options.runs < 1:
        parser.error("--runs must be at least 1")
    figures = [find_figure(key) for key in options.figures] or list(FIGURES)
    if options.data is not None:
        _run_on_data(figures, options.data, options.runs)
        return
    FOLDER.mkdir(exist_ok=True)
    Path(__file__).parents[2].joinpath("docs", "papers.md").write_text(
        items.write_markdown(), encoding="utf-8"
    )
    for figure in figures:
        start = time.perf_counter()
        result = figure.compute()
        assert result is not None  # Nobody stops it.
        FOLDER.joinpath(f"{figure.key}.json").write_text(result.write(figure), encoding="utf-8")
        print(f"{figure.key}: {time.perf_counter() - start:.0f} s", flush=True)


def _run_on_data(figures: list[PaperFigure], folder: Path, runs: int | None) -> None:
    """Run the figures whose data lie in a folder, and print the results."""
    files = published.in_folder(folder)
    for figure in figures:
        if figure.own_data is None:
            continue
        try:
            data_figure = figure.own_data.build_figure(files)
            start = time.perf_counter()
            result = data_figure.compute(
                None if runs is None else tuple(range(1 if data_figure.is_exact else runs))
            )
        except InvalidInput as problem:
            print(f"{figure.name}: left out. {problem}", flush=True)
            continue
        assert result is not None  # Nobody stops it.
        print(
            f"{data_figure.name}, on {data_figure.dataset_name}: {time.perf_counter() - start:.0f} s. "
            f"{describe_difference(data_figure, result)}"
        )
        print("\n".join(format_table(data_figure, result)), flush=True)


def format_table(figure: PaperFigure, result: StoredRuns) -> list[str]:
    """Format lines of text: our number for each value, with its range over readings, and the paper's."""
    label_width = max(len(line.name) for line in figure.lines) + 10
    lines = [" " * label_width + "".join(f"{value:>20g}" for value in result.values)]
    for row, line in enumerate(figure.lines):
        cells = [f"{value:.4g}" for value in result.summary.mean[row]]
        if result.has_ranges:
            assert result.low is not None
            assert result.high is not None
            ranges = zip(result.low[row], result.high[row], strict=True)
            cells = [
                cell if np.isnan(low) else f"{cell} ({low:.3g}, {high:.3g})"
                for cell, (low, high) in zip(cells, ranges, strict=True)
            ]
        lines.append(f"{line.name + ', ours':{label_width}}" + "".join(f"{cell:>20}" for cell in cells))
        if line.paper_values:
            paper_cells = ["" if value is None else f"{value:g}" for value in line.paper_values]
            lines.append(
                f"{line.name + ', paper':{label_width}}" + "".join(f"{cell:>20}" for cell in paper_cells)
            )
    return lines


if __name__ == "__main__":
    main()
