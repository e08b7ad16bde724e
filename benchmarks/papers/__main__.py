"""The papers' figures, computed by a command.

python -m benchmarks.papers [figure ...]                 make their stored results, and docs/papers.md, anew
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
from dpcore.papers import FIGURES, find_figure, items

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "dpcore" / "answer" / "paper_results"
SCHEMA = "sweetspot/paper-figure/1"
COMMAND = "make paper-figures"
CLAIMS_TITLE = "Every figure: its numbers and its claims"


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
    for figure in figures:
        if figure.run_once is None:
            print(f"{figure.key}: stored with --data alone", flush=True)
            continue
        start = time.perf_counter()
        runs = figure.compute()
        assert runs is not None  # Nobody stops it.
        RESULTS.joinpath(f"{figure.key}.json").write_text(to_json(figure, runs), encoding="utf-8")
        print(f"{figure.key}: {time.perf_counter() - start:.0f} s", flush=True)
    for figure in FIGURES:  # What was just computed is read again.
        vars(figure).pop("stored_runs", None)
    ROOT.joinpath("docs", "papers.md").write_text(build_page(), encoding="utf-8")


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
            "runs": [int(n) for n in runs.summary.num_runs[row]],
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


def build_page() -> str:
    """Build ``docs/papers.md``."""
    content = items.load_content()
    sections = [content["head"].rstrip("\n")]
    for paper in items.list_papers():
        rows = [f"| {i.items} | {i.says} | {i.places} | {i.code} | {i.differs} |" for i in paper.items]
        head = "| item | what it says | page, tab | code | what differs, or why it is left out |"
        table = "\n".join([head, "|---|---|---|---|---|", *rows])
        sections.append(f"## {paper.title}\n\n{paper.introduction}\n\n{table}")
    claim_rows = []
    for figure in FIGURES:
        figure_cells = f"| {figure.name} | {abbreviate_difference(figure, figure.stored_runs)} |"
        claims = [line.split(" ", 1) for line in list_claims(figure, figure.stored_runs)] or [("–", "–")]
        claim_rows += [f"{figure_cells} {text} | {mark} |" for mark, text in claims]
    head = "| figure | largest difference | what the text says of it | ours |"
    sections.append("\n".join([f"## {CLAIMS_TITLE}\n", head, "|---|---|---|---|", *claim_rows]))
    sections.append(owner_runs.build_section())
    return "\n\n".join([*sections, content["tail"].strip("\n")]) + "\n"


if __name__ == "__main__":
    main()
