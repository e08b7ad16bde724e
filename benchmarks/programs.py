"""The error on the card beside that of the program: releases by generated programs, on four tables.

    python benchmarks/programs.py [--kinds ROWS ...] [--programs python] [--samples 400] [--draws 50] [--whole]
                                  [--results FILE]

Every cell has --samples random choices of rows with --draws releases from each. A cell is a kind of release, a table,
an epsilon, a noise and a program. Its z is measured less stated error in standard errors, with the releases from one
choice of rows as one observation; a median's stated error has a standard error of its own. With --whole, every cell at
epsilon = 1 on the first two tables is also run 20 times from the first line of the program to its last. OpenDP's noise
takes no seed: of 1,000 cells without any fault, 3 lie beyond 3 standard errors. POLARS_MAX_THREADS=1 halves the time:
threads take longer to start than to add up. With --results, measured cells are kept in a file of JSON lines, one file
for each process; a later run with the same --samples and --draws measures only the cells that are not in it, or whose
program or stated error has changed, and summarises all of them.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import hashlib
import itertools
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import dpcore as ss
from benchmarks._program_draws import ProgramDraws, run_whole
from dpcore.code.release_noise import compute_sensitivity, find_release_noise
from dpcore.common.checks import InvalidInput
from dpcore.common.programs import Program, find_noise
from dpcore.contributions import FloatArray
from dpcore.reply import Reply

SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"
EPSILONS = (0.1, 1.0, 3.0)
NUM_WHOLE_RUNS = 20
NOISES: Mapping[str, Mapping[str, Any]] = {
    "Laplace": {},
    "Gaussian": {"mechanism": "gaussian", "delta": 1e-6},
}
PROGRAMS = {"python": Program.PYTHON, "opendp": Program.OPENDP}
VALUES = {"value": "amount", "lower": 0, "upper": 100}
OF_TABLE = {"target": "table", "variance_source": "values", "likeness": "values"}


def sample_tables() -> dict[str, pd.DataFrame]:
    """Build two samples of the sample data and two extremes, with the columns user_id, product and amount."""
    shop = pd.read_csv(SAMPLES / "shop_events.csv")
    tickets = pd.read_csv(SAMPLES / "support_tickets.csv").rename(
        columns={"customer": "user_id", "channel": "product", "hours_waited": "amount"}
    )
    shop = shop[shop["user_id"].isin(shop["user_id"].drop_duplicates().sample(120, random_state=1))]
    tickets = tickets[
        tickets["user_id"].isin(tickets["user_id"].drop_duplicates().sample(120, random_state=2))
    ]
    light = pd.DataFrame({"user_id": range(40), "product": "a", "amount": 10.0})
    heavy = pd.DataFrame({"user_id": 40, "product": list("abcdefgh") * 25, "amount": 90.0})
    rows = range(36)
    few = {
        "user_id": [row // 3 for row in rows],
        "product": list("abc") * 12,
        "amount": [100.0 * (row % 2) for row in rows],
    }
    tables = {
        "shop events": shop,
        "support tickets": tickets,
        "one heavy user": pd.concat([light, heavy]),
        "few users": pd.DataFrame(few),
    }
    return {name: table[["user_id", "product", "amount"]] for name, table in tables.items()}


def list_by_group(table: pd.DataFrame, how: str) -> FloatArray:
    """List a statistic of the amounts of each group, in the order of the groups."""
    grouped = table.groupby("product")
    column = "user_id" if how == "nunique" else "amount"
    return grouped[column].agg(how).sort_index().to_numpy(dtype=np.float64)


@dataclass(frozen=True)
class ReleaseKind:
    """A kind of release.

    Attributes:
        call: The call of `dpcore` that chooses its bound.
        find_truth: What is released of a table if nothing is done for privacy, one number or one per group.
        settings: Settings of the call.
        noises: Names of the noises that it has.
    """

    call: Callable[..., Reply]
    find_truth: Callable[[pd.DataFrame], FloatArray | float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    noises: Sequence[str] = tuple(NOISES)


RELEASE_KINDS = {
    "rows": ReleaseKind(ss.count_bound, len, {"objective": "rmse"}),
    "sum": ReleaseKind(
        ss.sum_bound, lambda table: table["amount"].sum(), {"objective": "rmse", "value": "amount"}
    ),
    "mean, public counts": ReleaseKind(
        ss.mean_bound, lambda table: table["amount"].mean(), VALUES | OF_TABLE | {"counts": "public"}
    ),
    "mean, private counts": ReleaseKind(
        ss.mean_bound, lambda table: table["amount"].mean(), VALUES | OF_TABLE | {"counts": "private"}
    ),
    "users per group": ReleaseKind(
        ss.group_bounds,
        lambda table: list_by_group(table, "nunique"),
        {"group": "product", "statistic": "users"},
    ),
    "rows per group": ReleaseKind(
        ss.group_bounds, lambda table: list_by_group(table, "size"), {"group": "product", "statistic": "rows"}
    ),
    "sums per group": ReleaseKind(
        ss.group_bounds,
        lambda table: list_by_group(table, "sum"),
        {"group": "product", "statistic": "sum", "value": "amount"},
    ),
    "means per group": ReleaseKind(
        ss.group_bounds,
        lambda table: list_by_group(table, "mean"),
        VALUES | {"group": "product", "statistic": "mean"},
    ),
    "median": ReleaseKind(ss.quantile_bound, lambda table: table["amount"].median(), VALUES, ("Laplace",)),
}


def measure_errors(kind_name: str, table: pd.DataFrame, releases: FloatArray) -> FloatArray:
    """Return what the card's error is the root mean of, one per release; of a quantile the error itself.

    Args:
        kind_name: One of `RELEASE_KINDS`.
        table: The table that was released from.
        releases: Shape (..., numbers of one release).
    """
    if kind_name != "median":
        return np.asarray(np.mean((releases - RELEASE_KINDS[kind_name].find_truth(table)) ** 2, axis=-1))
    # As the page has it: the share of rows up to the released value, less a half.
    values = np.sort(table["amount"].to_numpy())
    return np.abs(np.searchsorted(values, releases, "right") / values.size - 0.5).mean(axis=-1)


@dataclass(frozen=True)
class CellResult:
    """The stated and the measured error of one cell."""

    stated_error: float
    measured_error: float
    standard_error: float
    scale_ratio: float | None
    deviation_of_one: float
    whole_error: float | None = None

    @property
    def z(self) -> float:
        """Return the deviation in standard errors."""
        return (self.measured_error - self.stated_error) / self.standard_error

    @property
    def whole_z(self) -> float | None:
        """Return the deviation of the whole runs in their standard errors; None without whole runs."""
        if self.whole_error is None:
            return None
        return (self.whole_error - self.stated_error) * math.sqrt(NUM_WHOLE_RUNS) / self.deviation_of_one


def ask_call(
    release_kind: ReleaseKind, file: str, epsilon: float, noise: str, library: str, **settings: Any
) -> Reply:
    """Ask for the best bound on a file, with the noise of a program where the question has programs."""
    settings = (
        {"user": "user_id", "epsilon": epsilon} | dict(release_kind.settings) | dict(NOISES[noise]) | settings
    )
    with contextlib.suppress(InvalidInput):
        return release_kind.call(file, **settings, program=library)
    return release_kind.call(file, **settings)


def measure_cell(
    kind_name: str, table: pd.DataFrame, reply: Reply, library: str, num_samples: int, num_draws: int
) -> CellResult:
    """Draw releases by a program, and compare their error with the one that the reply states."""
    groups = sorted(table["product"].unique())
    program = ProgramDraws(reply.code(library), groups)
    errors = measure_errors(kind_name, table, program.draw(num_samples, num_draws))
    by_sample = errors.mean(axis=1)
    mean, standard_error = float(by_sample.mean()), float(by_sample.std(ddof=1)) / math.sqrt(num_samples)
    deviation_of_one = float(errors.std(ddof=1))
    if kind_name == "median":
        # The page averages over random choices of rows, too. What no release drew may still come once in as many.
        standard_error = max(math.hypot(standard_error, reply.solution.standard_error), 0.5 / errors.size)
    else:
        root = math.sqrt(mean)
        mean, standard_error, deviation_of_one = (
            root,
            standard_error / 2.0 / root,
            deviation_of_one / 2.0 / root,
        )
    return CellResult(
        float(reply.error or math.nan),
        mean,
        standard_error,
        compare_scales(program, reply, library),
        deviation_of_one,
    )


def compare_scales(program: ProgramDraws, reply: Reply, library: str) -> float | None:
    """Return the scale of OpenDP's own account over that of `dpcore`; None where OpenDP accounts for no query."""
    choice = next(iter(reply.forms.values()))
    if not program.summary or find_release_noise(choice, PROGRAMS[library]) is None:
        return None
    names = program.names
    step = names["RANGE"] / names["STEPS"] if "STEPS" in names else 1.0
    noise = find_noise(PROGRAMS[library], choice.noise, choice.epsilon, choice.delta)
    return (
        float(program.summary[0]["scale"])
        * step
        / (noise.unit_scale * compute_sensitivity(choice, noise.kind))
    )


@contextlib.contextmanager
def write_tables() -> Iterator[dict[str, tuple[str, pd.DataFrame]]]:
    """Write the tables into a folder of their own, which is the working folder: name to file and table."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        files = {}
        for name, table in sample_tables().items():
            file = f"{name.replace(' ', '_')}.csv"
            table.to_csv(file, index=False)
            files[name] = (file, table)
        yield files


class KeptResults:
    """Measured cells, kept in a file of JSON lines if there is one."""

    def __init__(self, file: Path | None) -> None:
        """Read the cells that were measured before."""
        self._file = file
        lines = file.read_text().splitlines() if file and file.exists() else []
        names = {result_field.name for result_field in dataclasses.fields(CellResult)}
        self._results = {
            # Files of earlier versions have further fields.
            key: CellResult(**{name: value for name, value in result.items() if name in names})
            for key, result in map(json.loads, lines)
        }

    def find(self, key: str) -> CellResult | None:
        """Return the cell of a key, None if it was not measured."""
        return self._results.get(key)

    def add(self, key: str, result: CellResult) -> None:
        """Keep a cell."""
        self._results[key] = result
        if self._file:
            with self._file.open("a") as lines:
                lines.write(json.dumps([key, dataclasses.asdict(result)]) + "\n")


def find_key(name: str, reply: Reply, library: str, arguments: argparse.Namespace) -> str:
    """Return a name of a cell that changes with what was measured: program without comments, stated error, draws."""
    statements = ast.dump(ast.parse(reply.code(library)))
    content = f"{statements} {reply.error!r} {arguments.samples} {arguments.draws}"
    return f"{name} {hashlib.sha256(content.encode()).hexdigest()[:16]}"


def run_whole_program(kind_name: str, table: pd.DataFrame, reply: Reply, library: str) -> float:
    """Return the error of runs of the program from its first line to its last."""
    groups = sorted(table["product"].unique())
    runs = run_whole(reply.code(library), groups, NUM_WHOLE_RUNS)
    error = float(measure_errors(kind_name, table, runs).mean())
    return error if kind_name == "median" else math.sqrt(error)


def main() -> None:
    """Print a line for each cell, and a table with a line for each kind and program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kinds", nargs="*", default=list(RELEASE_KINDS), choices=list(RELEASE_KINDS))
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--results", type=lambda name: Path(name).resolve())
    arguments = parser.parse_args()
    kept_results = KeptResults(arguments.results)
    summary_lines = []
    print(
        "| release | program | noise | table | ε | stated | measured | z | scale |\n|---" + "|---" * 8 + "|"
    )
    with write_tables() as files:
        for kind_name in arguments.kinds:
            for library in arguments.programs:
                results = list(measure_kind(kind_name, library, files, arguments, kept_results))
                if results:
                    summary_lines.append(summarise(kind_name, library, results))
    print(
        "\n| release | program | cells | within 3 standard errors | largest | pooled deviation | scales | whole runs |"
    )
    print("|---" * 8 + "|")
    print("\n".join(summary_lines))


def measure_kind(
    kind_name: str,
    library: str,
    files: Mapping[str, tuple[str, pd.DataFrame]],
    arguments: argparse.Namespace,
    kept_results: KeptResults,
) -> Iterator[CellResult]:
    """Measure the cells of a kind of release and a program that were not measured before, and print each."""
    cells = itertools.product(RELEASE_KINDS[kind_name].noises, enumerate(files.items()), EPSILONS)
    for noise, (position, (table_name, (file, table))), epsilon in cells:
        # Half of the tables are public: their programs are shorter ones.
        disclosure = "public" if position % 2 else "private"
        reply = ask_call(RELEASE_KINDS[kind_name], file, epsilon, noise, library, disclosure=disclosure)
        # So much noise that nothing is best, or an error too rare to be drawn.
        if not reply.forms or float(reply.error or 0.0) < 1e-3:
            continue
        name = f"| {kind_name} | {library} | {noise} | {table_name} | {epsilon} |"
        key = find_key(name, reply, library, arguments)
        result = kept_results.find(key)
        if result is None:
            result = measure_cell(kind_name, table, reply, library, arguments.samples, arguments.draws)
            if arguments.whole and position < 2 and epsilon == 1.0:
                whole_error = run_whole_program(kind_name, table, reply, library)
                result = dataclasses.replace(result, whole_error=whole_error)
            kept_results.add(key, result)
        scale = "" if result.scale_ratio is None else f"{result.scale_ratio:.6f}"
        whole_text = "" if result.whole_z is None else f" whole runs: z {result.whole_z:+.1f}"
        print(
            f"{name} {result.stated_error:.5g} | {result.measured_error:.5g} | {result.z:+.1f} | {scale} |"
            f"{whole_text}",
            flush=True,
        )
        yield result


def summarise(kind_name: str, library: str, results: Sequence[CellResult]) -> str:
    """Return the line of a kind of release and a program."""
    zs = np.array([abs(result.z) for result in results])
    whole_zs = [abs(result.whole_z) for result in results if result.whole_z is not None]
    pooled = float(np.mean([result.measured_error / result.stated_error - 1.0 for result in results]))
    scales = [abs(result.scale_ratio - 1.0) for result in results if result.scale_ratio is not None]
    scale = f"within {max(scales):.0e}" if scales else "–"
    whole_text = f"at most {max(whole_zs):.1f} standard errors" if whole_zs else "–"
    return (
        f"| {kind_name} | {PROGRAMS[library].value} | {len(results)} | {int((zs <= 3.0).sum())} | {zs.max():.1f} "
        f"| {pooled:+.2%} | {scale} | {whole_text} |"
    )


if __name__ == "__main__":
    main()
