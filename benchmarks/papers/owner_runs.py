"""Tables 1, 2 and 4 of Huang et al. 2023 with the paper's network: runs that are stored one by one.

python -m benchmarks.papers.owner_runs --data FOLDER         train what is not stored (90 minutes on two quiet cores)
python -m benchmarks.papers.owner_runs --data FOLDER --all   the other cells, too: n = 4, figure 1's other ε (hours)
python -m benchmarks.papers.owner_runs                       print theirs and ours, and train nothing

A line of the file is one cell and seed: its setting, its test accuracy over owners, and seconds of processor time. What
is stored is not trained again, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Before NumPy: each process has its own core.

import numpy as np

from benchmarks.papers import readers
from benchmarks.papers.federated import EPOCHS_AND_ROUNDS, Setting, compute_accuracy, deal_pictures
from dpcore.data_owners.network_parts import PersonalPart
from dpcore.data_owners.paper import (
    ACCURACIES_1_BY_FORM,
    ACCURACIES_4_BY_LINE,
    ACCURACY_2_BY_PART,
    NUMBERS_OF_OWNERS,
    RECORDS_PER_USER,
    SPREADS_1_BY_FORM,
    SPREADS_4_BY_LINE,
)
from dpcore.data_owners.study import Form

RESULTS = Path(__file__).parent / "owner_runs.jsonl"
SEEDS = (0, 1)
NOTHING, LAST = PersonalPart.NOTHING, PersonalPart.LAST
QUICK_OWNERS, OTHER_OWNERS = (512, 128, 64, 16), (256, 4)
OTHER_EPSILONS = (2.0, 5.0, 100.0)
"""Of figure 1, beside 1 and 10."""
PAPER_RUNS = 5
MOST_DRAWN, DRAWN_WITH_CONVOLUTIONS, DRAWN_BY_OWNERS = 12, 4, {4: 4, 16: 4, 64: 8}
"""Owners drawn for a round. Personal convolutions take fewer: missed rounds take as long to make up for as rounds."""
SPREADS_2_BY_PART = dict(
    zip(PersonalPart, (0.0324, 0.0130, 0.0014, 0.0329, 0.0136, 0.0259, 0.0320, 0.0419), strict=True)
)
"""Behind ± in table 2."""
JOINT_4_BY_EPSILON = {
    3.0: (0.8124, 0.6962, 0.3715, 0.2764, 0.2400),
    8.0: (0.8896, 0.8160, 0.7020, 0.4703, 0.2941),
}
SPREADS_4_BY_EPSILON = {
    3.0: (0.0262, 0.0375, 0.0642, 0.0620, 0.0329),
    8.0: (0.0124, 0.0218, 0.0964, 0.1100, 0.0659),
}
"""Table 4, 256 owners, joint privacy; at ε = 1 `ACCURACIES_4_BY_LINE` has them."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        source: The table, and whether it is one of figure 1.
        setting: What is trained.
        paper_mean: The paper's accuracy; None where it prints none.
        paper_spread: Behind ± there.
    """

    source: str
    setting: Setting
    paper_mean: float | None = None
    paper_spread: float = 0.0

    @property
    def form_text(self) -> str:
        """Return the form of training in words."""
        personal_part, epsilon = self.setting.personal_part, self.setting.epsilon
        if personal_part is None:
            return "alone"
        if math.isinf(epsilon):
            return "no privacy"
        privacy_text = (
            "full privacy" if personal_part is NOTHING else f"joint privacy, {personal_part.value} personal"
        )
        return f"{privacy_text}, ε = {epsilon:g}"


def build_setting(
    owners: int, personal_part: PersonalPart | None, epsilon: float = math.inf, records_per_user: int = 1
) -> Setting:
    """Build a setting with the number of owners that are drawn for a round."""
    num_drawn = DRAWN_BY_OWNERS.get(owners, MOST_DRAWN)
    if personal_part is not None and {"conv1", "conv2"} & set(personal_part.layers):
        num_drawn = DRAWN_WITH_CONVOLUTIONS
    return Setting(owners, epsilon, personal_part, records_per_user, num_drawn)


def list_cells() -> list[Cell]:
    """List the cells of the reduced grid: table 1 at four n, ε = 1 and 10; table 2; table 4 at 256 owners."""
    cells = [cell for owners in QUICK_OWNERS for cell in _list_table_1(owners)]
    for index, num_records in enumerate(RECORDS_PER_USER):
        full, joint = (256, Form.FULL), (256, Form.JOINT)
        columns = [
            (NOTHING, 1.0, ACCURACIES_4_BY_LINE[full], SPREADS_4_BY_LINE[full]),
            (LAST, 1.0, ACCURACIES_4_BY_LINE[joint], SPREADS_4_BY_LINE[joint]),
            *((LAST, e, JOINT_4_BY_EPSILON[e], SPREADS_4_BY_EPSILON[e]) for e in JOINT_4_BY_EPSILON),
        ]
        for personal_part, epsilon, means, spreads in columns:
            setting = build_setting(256, personal_part, epsilon, int(num_records))
            cells.append(Cell("table 4", setting, means[index], spreads[index]))
    cells += [cell for cell in _list_table_1(256, (1.0,)) if math.isinf(cell.setting.epsilon)]
    for personal_part in PersonalPart:
        cell = Cell(
            "table 2",
            build_setting(256, personal_part, 1.0),
            ACCURACY_2_BY_PART[personal_part],
            SPREADS_2_BY_PART[personal_part],
        )
        cells += [cell] * (personal_part not in (NOTHING, LAST))  # These two are in table 4.
    return cells


def list_other_cells() -> list[Cell]:
    """List the cells that are not in the reduced grid: table 1 at 4 and 256 owners, and figure 1's other ε."""
    cells = [cell for owners in OTHER_OWNERS for cell in _list_table_1(owners)]
    epsilon_cells = [cell for owners in EPOCHS_AND_ROUNDS for cell in _list_table_1(owners, OTHER_EPSILONS)]
    known_settings = {cell.setting for cell in list_cells()}
    return [cell for cell in dict.fromkeys(cells + epsilon_cells) if cell.setting not in known_settings]


def _list_table_1(owners: int, epsilons: Sequence[float] = (1.0, 10.0)) -> Iterator[Cell]:
    """List the cells of table 1 for some owners, and at further ε those of figure 1, which prints no numbers."""
    column = NUMBERS_OF_OWNERS.index(owners)
    settings_by_form = [(Form.SEPARATE, None, math.inf), (Form.NON_PRIVATE, NOTHING, math.inf)]
    private_forms = ((Form.FULL, NOTHING), (Form.JOINT, LAST))
    for form, personal_part, epsilon in (
        *settings_by_form,
        *((form, personal_part, epsilon) for epsilon in epsilons for form, personal_part in private_forms),
    ):
        setting = build_setting(owners, personal_part, epsilon)
        if math.isfinite(epsilon) and epsilon != 1.0:
            yield Cell("figure 1", setting)
        else:
            spread = SPREADS_1_BY_FORM[form][column]
            yield Cell("table 1", setting, ACCURACIES_1_BY_FORM[form][column], spread)


def write_key(data_name: str, setting: Setting, seed: int) -> dict[str, object]:
    """Return the members of a line that name its cell: a line with the same ones is not trained again."""
    return {
        "data": data_name,
        "owners": setting.owners,
        "epsilon": setting.epsilon if math.isfinite(setting.epsilon) else None,
        "personal": "all" if setting.personal_part is None else setting.personal_part.value,
        "records_per_user": setting.records_per_user,
        "owners_per_round": setting.owners_per_round,
        "seed": seed,
    }


def read_results(path: Path) -> list[dict[str, object]]:
    """Read the stored lines; none if there is no file. A last line that was cut off is left out."""
    results = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            results.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return results


@functools.lru_cache(maxsize=1)
def _read_pictures(folder: Path) -> tuple[readers.Pictures, readers.Pictures]:
    return readers.read_pictures(folder), readers.read_pictures(folder, "test")


def train_cell(folder: Path, setting: Setting, seed: int) -> dict[str, object]:
    """Train a cell once; return its line."""
    training, tests = _read_pictures(folder)
    start = time.process_time()
    labels, test_labels = training.labels.astype(np.int64), tests.labels.astype(np.int64)
    data = deal_pictures(training.pixels, labels, tests.pixels, test_labels, setting.owners, seed)
    accuracy = compute_accuracy(setting, data, seed)
    seconds = round(time.process_time() - start, 1)
    return {
        **write_key(training.name, setting, seed),
        "accuracy": round(accuracy, 4),
        "cpu_seconds": seconds,
    }


def run(folder: Path, cells: Sequence[Cell], path: Path, num_workers: int) -> None:
    """Train all cells that are not stored, and add a line for each as soon as it has ended."""
    name = _read_pictures(folder)[0].name
    stored_keys = [
        {key: value for key, value in result.items() if key not in ("accuracy", "cpu_seconds")}
        for result in read_results(path)
    ]
    settings = dict.fromkeys(cell.setting for cell in cells)
    todo = [(s, seed) for seed in SEEDS for s in settings if write_key(name, s, seed) not in stored_keys]
    print(f"{len(todo)} runs to do, {len(settings) * len(SEEDS) - len(todo)} stored", flush=True)
    if path.exists() and path.read_bytes()[-1:] not in (b"", b"\n"):
        path.write_text(
            path.read_text(encoding="utf-8") + "\n", encoding="utf-8"
        )  # After a line that was cut off.
    for number, result in enumerate(_train_all(folder, todo, num_workers), 1):
        text = json.dumps(result)
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
        print(f"{number}/{len(todo)} {text}", flush=True)


def _train_all(
    folder: Path, todo: Sequence[tuple[Setting, int]], num_workers: int
) -> Iterator[dict[str, object]]:
    """Train cells, in this process or in several, and yield the line of each as it ends."""
    if num_workers == 1:
        yield from (train_cell(folder, setting, seed) for setting, seed in todo)
        return
    with ProcessPoolExecutor(num_workers) as pool:
        futures = [pool.submit(train_cell, folder, setting, seed) for setting, seed in todo]
        yield from (future.result() for future in as_completed(futures))


@dataclass(frozen=True)
class Comparison:
    """A cell with our accuracies on MNIST.

    Attributes:
        cell: The cell.
        accuracies: One per seed; empty where nothing is stored.
    """

    cell: Cell
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean over seeds."""
        return float(np.mean(self.accuracies))

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean; NaN for one seed."""
        count = len(self.accuracies)
        return float(np.std(self.accuracies, ddof=1) / math.sqrt(count)) if count > 1 else math.nan

    @property
    def difference(self) -> float:
        """Return ours less the paper's."""
        assert self.cell.paper_mean is not None
        return self.mean - self.cell.paper_mean

    @property
    def is_near(self) -> bool:
        """Return True if ours is within 5 points, or within two standard errors of the difference, of the paper's."""
        own_error = 0.0 if math.isnan(self.standard_error) else self.standard_error
        error = math.hypot(own_error, self.cell.paper_spread / math.sqrt(PAPER_RUNS))
        return abs(self.difference) <= max(0.05, 2.0 * error)


def compare_cells(path: Path = RESULTS) -> list[Comparison]:
    """Return all cells of the reduced grid with what is stored of them."""
    results = read_results(path)
    comparisons = []
    for cell in list_cells():
        keys = [write_key("MNIST", cell.setting, seed) for seed in SEEDS]
        accuracies = [float(r["accuracy"]) for r in results if any(k.items() <= r.items() for k in keys)]  # type: ignore[arg-type]
        comparisons.append(Comparison(cell, tuple(accuracies)))
    return comparisons


def build_rows(comparisons: Sequence[Comparison]) -> list[str]:
    """Build the rows of a Markdown table: theirs, ours and the difference in points."""
    rows = []
    for comparison in comparisons:
        cell, setting = comparison.cell, comparison.cell.setting
        paper_text = "–" if cell.paper_mean is None else f"{cell.paper_mean:.3f} ± {cell.paper_spread:.3f}"
        our_text, difference, mark = "not run", "–", "–"
        if comparison.accuracies:
            error = comparison.standard_error
            our_text = f"{comparison.mean:.3f}" + (" (one run)" if math.isnan(error) else f" ± {error:.3f}")
            if cell.paper_mean is not None:
                difference, mark = f"{100 * comparison.difference:+.1f}", "✓" if comparison.is_near else "✗"
        rows.append(
            f"| {cell.source} | {setting.owners} | {setting.records_per_user} | {cell.form_text} | "
            f"{paper_text} | {our_text} | {difference} | {mark} |"
        )
    return rows


TABLE_HEAD = (
    "| where | n | m/r | form | paper, ± its spread | ours, ± standard error | points | near |",
    "|---|---|---|---|---|---|---|---|",
)
SECTION_TITLE = "Huang et al. 2023 with the paper's network"
SECTION_TEXT = """`make paper-runs DATA=folder` trains the network of Huang et al. on MNIST: federated averaging with
E and T of table 3. To take 94 minutes on two cores, it draws 12 owners for a round (8 of 64, 4 of 16, 4 where a
convolution is personal). An owner with a personal part makes up for each round that it missed, on the shared layers
of that round. The noise is that of all n owners. There are two runs of each cell, with other records, owners and
noise.

**Near** (✓) is within 5 points of the paper, or within two standard errors. The paper does not print its learning rate,
its batches, how grey values are scaled, how pieces are dealt out, and how the noise of a round follows from ε. We took
the one of five readings of the noise that gives its accuracies: every owner adds noise to its update, and ε holds for
each round alone (`benchmarks/papers/federated.py`). **All rounds together then cost more than ε.** Other cells are not
run: 4 owners, table 1 at 256 owners and ε = 10, figure 1's other ε, and FashionMNIST (`--all`).

The other readings let ε hold for all rounds. With full privacy at ε = 1, one run each, where the paper has .602 at 512
owners and .740 at 256: .875 and .862 with noise per round that all owners share, which puts joint privacy below full
privacy (.798 and .854); .840 and .808 with the same noise in every step; .751 and .792 with the noise that a single
step needs by the classical formula, from every owner. With each owner's own noise in each of its steps nothing is
learned, nor with a fifteenth of it.

**More than 20 points away are full privacy with 64 owners, and joint privacy in two cases**: where noise is strong
(16 owners, m/r from 2 on), and where both convolutions are personal. In these two cases the paper's accuracies fall
to guessing, and ours stay above .55, as a personal layer adapts to the shared ones in every round. Tried with ε = 1,
one run each, for 256 owners and m/r = 2, where the paper has .393 and we .692: all owners drawn in every round, .642;
a record's gradient clipped over all layers, personal ones included, .617. If an owner keeps its personal layers from
the round in which it was last drawn, m/r = 1, 2, 5 and 20 have .770, .434, .115 and .149 (paper .783, .393, .252,
.130), and 16 owners .474 (.321), but 512 owners .537 (.742). So the paper's owners seem to have trained less often
than in every round; it does not say how often."""


def build_section(path: Path = RESULTS) -> str:
    """Build the section of ``docs/papers.md``: how many cells are near, and the table of all."""
    comparisons = compare_cells(path)
    trained = [c for c in comparisons if c.accuracies]
    printed = [c for c in trained if c.cell.paper_mean is not None]
    num_near = sum(c.is_near for c in printed)
    count_text = (
        f"Trained so far: {len(trained)} of {len(comparisons)} cells. Near: {num_near} of the {len(printed)} among "
        "them that the paper prints."
    )
    return "\n".join(
        [f"## {SECTION_TITLE}\n", f"{SECTION_TEXT}\n\n{count_text}\n", *TABLE_HEAD, *build_rows(comparisons)]
    )


def main(arguments: list[str] | None = None) -> None:
    """Train what is not stored yet and print theirs and ours."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.owner_runs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with MNIST or FashionMNIST")
    parser.add_argument("--all", action="store_true", help="the other cells, too")
    parser.add_argument("--to", type=Path, default=RESULTS, metavar="FILE", help="where lines are stored")
    parser.add_argument("--workers", type=int, default=2, help="processes; each takes one core and 1 GB")
    options = parser.parse_args(arguments)
    if options.data is not None:
        try:
            _read_pictures(options.data)
        except ValueError as error:
            parser.error(f"{options.data} has no pictures to train on: {error}")
        cells = list_cells() + (list_other_cells() if options.all else [])
        run(options.data, cells, options.to, options.workers)
    print("\n".join([*TABLE_HEAD, *build_rows(compare_cells(options.to))]))


if __name__ == "__main__":
    main()
