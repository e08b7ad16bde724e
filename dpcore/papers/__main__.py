"""Make stored results of the papers' figures, and docs/papers.md, anew: ``python -m dpcore.papers [figure ...]``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from dpcore.papers import items
from dpcore.papers.figures import FIGURES, named

FOLDER = Path(__file__).parents[1] / "answer" / "paper_results"


def main(arguments: list[str] | None = None) -> None:
    """Run the figures that are named, or all, and write their files."""
    parser = argparse.ArgumentParser(prog="python -m dpcore.papers", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="figure", choices=[[], *(f.key for f in FIGURES)])
    asked = parser.parse_args(arguments).figures
    FOLDER.mkdir(exist_ok=True)
    Path(__file__).parents[2].joinpath("docs", "papers.md").write_text(items.markdown(), encoding="utf-8")
    for figure in [named(key) for key in asked] or FIGURES:
        begun = time.perf_counter()
        found = figure.compute()
        assert found is not None  # Nobody stops it.
        FOLDER.joinpath(f"{figure.key}.json").write_text(found.written(figure), encoding="utf-8")
        print(f"{figure.key}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
