"""The papers' figures, computed by a command.

python -m benchmarks.papers [figure ...]                 make their stored results, and docs/papers.md, anew; after an
                                                         interruption it goes on where it stopped
python -m benchmarks.papers --data FOLDER [figure ...]   compute those whose data lie in the folder, as their makers
                                                         publish them, and print theirs and ours; results are stored
                                                         of those alone that cannot be computed without such data
"""

from __future__ import annotations

import argparse
import math
import re
import time
from pathlib import Path

import numpy as np

from benchmarks.papers import owner_runs
from benchmarks.papers.on_data import BUILDERS
from dpcore.answer.paper_figure import (
    FigureRuns,
    PaperFigure,
    abbreviate_difference,
    describe_difference,
    list_claims,
)
from dpcore.common.strict_json import write_document
from dpcore.common.wording import format_percent
from dpcore.papers import FIGURES, find_figure, items

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "dpcore" / "answer" / "paper_results"
PROGRESS = ROOT / ".paper-figures"
"""Keys of the figures that an interrupted call has finished."""
SCHEMA = "sweetspot/paper-figure/1"
COMMAND = "make paper-figures"


def main(arguments: list[str] | None = None) -> None:
    """Run the figures that are named, or all, and write their files; or those whose data lie in a folder."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("figures", nargs="*", metavar="figure", choices=[[], *(f.key for f in FIGURES)])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with the papers' data")
    parser.add_argument("--runs", type=int, help="of each figure on such data; its own number by default")
    options = parser.parse_args(arguments)
    if options.runs is not None and options.runs < 1:
        parser.error("--runs must be at least 1")
    if options.data is not None and not options.data.is_dir():
        parser.error(f"there is no folder {options.data}")
    figures = [find_figure(key) for key in options.figures] or list(FIGURES)
    if options.data is not None:
        print_on_data(figures, options.data, options.runs)
        figures = []
    store_figures(figures)
    for figure in FIGURES:  # What was just computed is read again.
        vars(figure).pop("stored_runs", None)
    ROOT.joinpath("docs", "papers.md").write_text(build_page(), encoding="utf-8")


def store_figures(figures: list[PaperFigure]) -> None:
    """Compute figures and write their files; leave out those that an interrupted call had finished."""
    finished_keys = set(PROGRESS.read_text(encoding="utf-8").split()) if PROGRESS.exists() else set()
    for figure in figures:
        if figure.run_once is None:
            print(f"{figure.key}: stored with --data alone", flush=True)
            continue
        if figure.key in finished_keys:
            print(f"{figure.key}: finished before; delete {PROGRESS.name} to compute it again", flush=True)
            continue
        start = time.perf_counter()
        runs = figure.compute()
        assert runs is not None  # Nobody stops it.
        RESULTS.joinpath(f"{figure.key}.json").write_text(to_json(figure, runs), encoding="utf-8")
        with PROGRESS.open("a", encoding="utf-8") as progress_file:
            progress_file.write(f"{figure.key}\n")
        print(f"{figure.key}: {time.perf_counter() - start:.0f} s", flush=True)
    PROGRESS.unlink(missing_ok=True)


def print_on_data(figures: list[PaperFigure], folder: Path, num_runs: int | None) -> None:
    """Print theirs and ours of all figures whose data lie in the folder; store those that need such data."""
    for figure in figures:
        if figure.key not in BUILDERS:
            continue
        start = time.perf_counter()
        try:
            built = BUILDERS[figure.key](figure.key, folder)
            runs = built.compute(
                None if num_runs is None else tuple(range(1 if built.ignores_seed else num_runs))
            )
        except ValueError as error:
            print(f"{figure.name}: left out. {error}", flush=True)
            continue
        assert runs is not None  # Nobody stops it.
        if figure.run_once is None and num_runs is None:
            text = to_json(built, runs, f"{COMMAND} DATA=folder")
            RESULTS.joinpath(f"{figure.key}.json").write_text(text, encoding="utf-8")
        print(f"{built.name}: {built.title}. {time.perf_counter() - start:.0f} s.", flush=True)
        print("\n".join([describe_difference(built, runs), *build_table(built, runs)]), flush=True)


def build_table(figure: PaperFigure, runs: FigureRuns) -> list[str]:
    """Return lines of text: ours at each value, and theirs."""
    width = max(len(line.name) for line in figure.lines) + 10
    rows = [" " * width + "".join(f"{value:>12g}" for value in runs.x_values)]
    for line, means in zip(figure.lines, runs.summary.means, strict=True):
        rows.append(f"{line.name + ', ours':{width}}" + "".join(f"{mean:>12.4g}" for mean in means))
        if line.paper_values:
            paper_texts = ("" if number is None else f"{number:g}" for number in line.paper_values)
            rows.append(
                f"{line.name + ', paper':{width}}" + "".join(f"{number:>12}" for number in paper_texts)
            )
    return rows


def to_json(figure: PaperFigure, runs: FigureRuns, command: str = COMMAND) -> str:
    """Write runs as a file that `FigureRuns.read` reads."""
    lines = {
        line.key: {
            "mean": [_round_number(x) for x in runs.summary.means[row]],
            "spread": [_round_number(x) for x in runs.summary.spreads[row]],
            "runs": [int(n) for n in runs.summary.run_counts[row]],
        }
        for row, line in enumerate(figure.lines)
    }
    text = write_document(
        SCHEMA,
        figure=runs.key,
        item=figure.name,
        command=command,
        seeds=list(runs.seeds),
        values=list(runs.x_values),
        lines=lines,
    )
    # A list of numbers is one line.
    return re.sub(r"\[[^\[\]]*\]", lambda match: " ".join(match[0].split()), text)


def _round_number(value: np.floating) -> float | None:
    """Round to seven digits: more than the runs are sure of, and a file that people can read."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


TABLE_HEADS = (
    "paper",
    "item",
    "what it says",
    "page, tab",
    "code",
    "largest difference",
    "the paper's claims, and ours",
    "what differs, or why it is left out",
)
BREAK = "<br>"
"""Between the lines of a cell."""


def build_page() -> str:
    """Build ``docs/papers.md``: the papers, one table of all their items, and the long runs of one of them."""
    content = items.load_content()
    papers = items.list_papers()
    introductions = [f"- **{paper.title}**: {' '.join(paper.introduction.split())}" for paper in papers]
    rows = [
        (
            paper.title,
            item.items,
            item.says,
            item.places,
            item.code,
            *describe_figures(paper, item),
            item.differs,
        )
        for paper in papers
        for item in paper.items
    ]
    table = [TABLE_HEADS, ("---",) * len(TABLE_HEADS), *rows]
    return "\n\n".join([
        content["head"].strip("\n"),
        "\n".join(introductions),
        "\n".join(f"| {' | '.join(cells)} |" for cells in table),
        owner_runs.build_section(),
        content["tail"].strip("\n") + "\n",
    ])  # fmt: skip


def describe_figures(paper: items.Paper, item: items.Item) -> tuple[str, str]:
    """Return the largest difference of the item's figures from the paper, and their claims; a dash for none."""
    figures = [f for f in FIGURES if f.paper_name == paper.title and f.main_item in item.items.split(", ")]
    differences = [f.compute_largest_difference(f.stored_runs) for f in figures]
    known_differences = [difference for difference in differences if difference is not None]
    difference_text = items.EMPTY if not figures else "no numbers printed"
    if known_differences:
        difference_text = format_percent(max(known_differences))
    lines = [
        f"{figure.item_name}: {line}" if len(figures) > 1 else line
        for figure in figures
        for line in [
            *_describe_own_difference(figure, len(figures)),
            *list_claims(figure, figure.stored_runs),
        ]
    ]
    return difference_text, BREAK.join(lines) or items.EMPTY


def _describe_own_difference(figure: PaperFigure, num_figures: int) -> list[str]:
    """Return the largest difference of a figure as a line, where the item has several; else nothing."""
    if num_figures == 1 or figure.compute_largest_difference(figure.stored_runs) is None:
        return []
    return [f"largest difference {abbreviate_difference(figure, figure.stored_runs)}"]


if __name__ == "__main__":
    main()
