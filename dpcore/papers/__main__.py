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

from dpcore.answer.paper_figure import PaperFigure, Stored
from dpcore.answer.paper_plot import said
from dpcore.common.errors import InvalidInput
from dpcore.data import published
from dpcore.papers import items
from dpcore.papers.figures import FIGURES, named

FOLDER = Path(__file__).parents[1] / "answer" / "paper_results"


def main(arguments: list[str] | None = None) -> None:
    """Run the figures that are named, or all, and write their files; or those on data that are brought."""
    parser = argparse.ArgumentParser(
        prog="python -m dpcore.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("figures", nargs="*", metavar="figure", choices=[[], *(f.key for f in FIGURES)])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with the papers' data")
    parser.add_argument(
        "--runs", type=int, default=None, help="of each figure on such data; its own number by default"
    )
    asked = parser.parse_args(arguments)
    if asked.runs is not None and asked.runs < 1:
        parser.error("--runs must be at least 1")
    figures = [named(key) for key in asked.figures] or list(FIGURES)
    if asked.data is not None:
        _on_data(figures, asked.data, asked.runs)
        return
    FOLDER.mkdir(exist_ok=True)
    Path(__file__).parents[2].joinpath("docs", "papers.md").write_text(items.markdown(), encoding="utf-8")
    for figure in figures:
        begun = time.perf_counter()
        found = figure.compute()
        assert found is not None  # Nobody stops it.
        FOLDER.joinpath(f"{figure.key}.json").write_text(found.written(figure), encoding="utf-8")
        print(f"{figure.key}: {time.perf_counter() - begun:.0f} s", flush=True)


def _on_data(figures: list[PaperFigure], folder: Path, runs: int | None) -> None:
    files = published.in_folder(folder)
    for figure in figures:
        if figure.brings is None:
            continue
        try:
            made = figure.brings.figure(files)
            begun = time.perf_counter()
            found = made.compute(None if runs is None else tuple(range(1 if made.exact else runs)))
        except InvalidInput as refused:
            print(f"{figure.name}: left out. {refused}", flush=True)
            continue
        assert found is not None  # Nobody stops it.
        print(f"{made.name}, on {made.data}: {time.perf_counter() - begun:.0f} s. {said(made, found)}")
        print("\n".join(table(made, found)), flush=True)


def table(of: PaperFigure, found: Stored) -> list[str]:
    """Lines of text: ours for each value, with its range over readings where it has one, and theirs."""
    wide = max(len(line.name) for line in of.lines) + 10
    lines = [" " * wide + "".join(f"{value:>20g}" for value in found.values)]
    for row, line in enumerate(of.lines):
        cells = [f"{x:.4g}" for x in found.over_runs.mean[row]]
        if found.ranges:
            assert found.low is not None
            assert found.high is not None
            ends = zip(found.low[row], found.high[row], strict=True)
            cells = [
                cell if np.isnan(low) else f"{cell} ({low:.3g}, {high:.3g})"
                for cell, (low, high) in zip(cells, ends, strict=True)
            ]
        lines.append(f"{line.name + ', ours':{wide}}" + "".join(f"{cell:>20}" for cell in cells))
        if line.theirs:
            theirs = ["" if x is None else f"{x:g}" for x in line.theirs]
            lines.append(f"{line.name + ', paper':{wide}}" + "".join(f"{cell:>20}" for cell in theirs))
    return lines


if __name__ == "__main__":
    main()
