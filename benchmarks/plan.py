"""Several numbers from one budget: an equal split, a split by weights, and the best plan; and its program, run.

    python benchmarks/plan.py [--calls 1000] [--epsilons 0.3 1 3]

For every table and ε, with the best bounds of every line on all sides:

- *equal*: ε over the number of lines, which is what people do;
- *weights*: as PipelineDP divides where nobody says otherwise, the same for every mechanism, of which a mean has two;
- *plan*: the shares of `dpcore.plan`, in whole parts, with its gap to the lower bound.

What is compared is the root mean square over the lines of error over value. Beside it stand how much more an equal
split errs, and the ε at which every line has an error of 5 %, of the plan and of an equal split.

Then the plan's OpenDP program is run: its own measurements are called many times on the table's own rows. The root mean
square of the errors stands beside the promised one, with a 99 % interval from these very calls. A mean is that of the
rows at hand, before clamping, and its promise is the delta-method error on these rows.

Two tables are samples. With SWEETSPOT_BENCH_DATA set to a folder, these join them where they are there:
online_retail.parquet, CDNOW_master.txt, ml1m_user_movie_rating.csv; of these no program is run.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpcore.code import write
from dpcore.common.noise_error import NoiseKind
from dpcore.common.programs import Program
from dpcore.contributions import FloatArray
from dpcore.counting.count import to_dataset
from dpcore.dataset import Dataset
from dpcore.plan import table
from dpcore.plan.least_sum import find_least_sum, find_needed_amounts
from dpcore.plan.lines import LineStatistic
from dpcore.plan.parameters import PlanParameters, choose_defaults
from dpcore.plan.solution import AllocatedLine, allocate_lines, make_program

ROOT = Path(__file__).resolve().parent.parent
WIDE = 2.576
"""Standard errors on either side of a 99 % interval."""
DELTA = 1e-6


@dataclass(frozen=True)
class Table:
    """Rows with columns ``user``, ``value`` and, where there are groups, ``group``; and what is released of them."""

    name: str
    rows: pd.DataFrame
    lines: str
    lower: float
    upper: float
    runs_program: bool = False

    def make_parameters(
        self, epsilon: float, noise: NoiseKind, program: Program = Program.OPENDP
    ) -> PlanParameters:
        """Make the parameters of a plan for these lines."""
        delta = DELTA if noise is NoiseKind.GAUSSIAN else None
        return PlanParameters(
            epsilon,
            lines=self.lines,
            mechanism=noise,
            delta=delta,
            lower=self.lower,
            upper=self.upper,
            program=program,
            **choose_defaults(self.dataset),
        )

    @functools.cached_property
    def dataset(self) -> Dataset:
        return to_dataset(
            self.rows,
            user="user",
            value="value",
            group="group" if "group" in self.rows else None,
            disclosure="public",
        )


def read_tables() -> Iterator[Table]:
    """Yield the samples, and what lies in the folder of the environment."""
    all_lines = "users; rows; sum; mean; rows per group"
    shop = pd.read_csv(ROOT / "sample_data/shop_events.csv")
    yield _build_table(
        "shop_events", shop, ("user_id", "amount", "product"), all_lines, 0, 100, runs_program=True
    )
    tickets = pd.read_csv(ROOT / "sample_data/support_tickets.csv")
    yield _build_table(
        "support_tickets",
        tickets,
        ("customer", "hours_waited", "channel"),
        all_lines,
        0,
        48,
        runs_program=True,
    )
    folder = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "/nowhere"))
    if (path := folder / "online_retail.parquet").exists():
        retail = pd.read_parquet(path)
        retail = retail[retail["CustomerID"].notna() & (retail["Quantity"] > 0)]
        amounts = retail.assign(spent=retail["Quantity"] * retail["UnitPrice"])
        yield _build_table("Online Retail", amounts, ("CustomerID", "spent", "Country"), all_lines, 0, 100)
    if (path := folder / "CDNOW_master.txt").exists():
        cdnow = pd.read_csv(path, sep=r"\s+", header=None, names=["user", "date", "number", "dollars"])
        # A line of names may stand above.
        cdnow = cdnow.assign(dollars=pd.to_numeric(cdnow["dollars"], errors="coerce")).dropna()
        yield _build_table("CDNOW", cdnow, ("user", "dollars", ""), "users; rows; sum; mean", 0, 500)
    if (path := folder / "ml1m_user_movie_rating.csv").exists():
        rated = pd.read_csv(path)
        yield _build_table("MovieLens 1M", rated, ("user", "rating", ""), "users; rows; sum; mean", 1, 5)


def _build_table(
    name: str,
    rows: pd.DataFrame,
    columns: tuple[str, str, str],
    lines: str,
    lower: float,
    upper: float,
    runs_program: bool = False,
) -> Table:
    user, value, group = columns
    table_rows = pd.DataFrame({"user": rows[user].astype(str), "value": rows[value].astype(float)})
    if group:
        table_rows["group"] = rows[group].astype(str)
    return Table(name, table_rows, lines, lower, upper, runs_program)


def compare_splits(
    example: Table, epsilon: float, noise: NoiseKind
) -> tuple[Dataset, PlanParameters, tuple[AllocatedLine, ...]]:
    """Print one row of the comparison; return dataset, parameters and lines of the plan."""
    data, parameters = example.dataset, example.make_parameters(epsilon, noise)
    planned = table.plan_lines(data, parameters)
    start = time.perf_counter()
    curves = [line.curve for line in planned]
    values = np.array([abs(line.reference_value) for line in planned])
    # Every line has the usual wanted error, 5 % of its value, so that these weights are those of relative errors.
    best = find_least_sum(curves, np.array([line.weight for line in planned]), parameters.budget)
    took = time.perf_counter() - start
    mechanisms = np.array([2.0 if line.line.statistic is LineStatistic.MEAN else 1.0 for line in planned])

    def relative(shares: FloatArray) -> tuple[float, tuple[AllocatedLine, ...]]:
        """Return the root mean square of error over value of the lines at these shares, and the lines."""
        lines = allocate_lines(data, parameters, planned, shares)
        return math.sqrt(
            np.mean([(line.error / v) ** 2 for line, v in zip(lines, values, strict=True)])
        ), lines

    equal, _ = relative(np.full(values.size, 1.0 / values.size))
    weights, _ = relative(mechanisms / mechanisms.sum())
    plan_error, lines = relative(best.shares)
    budget = parameters.budget
    needed = find_needed_amounts(curves, 0.05 * values, budget)
    wanted_epsilons = (
        budget.convert_to_epsilon(needed.sum()),
        budget.convert_to_epsilon(needed.max() * needed.size),
    )
    assert best.certificate is not None
    costliest_label = planned[int(np.argmax(needed))].line.label
    print(
        f"{example.name:<16} {noise.value[:8]:<9} {epsilon:>4g} {equal:>8.4f} {weights:>8.4f} {plan_error:>8.4f} "
        f"{100 * (equal / plan_error - 1):>7.1f}% {best.certificate.relative_gap:>9.1e} {1e3 * took:>6.0f} ms "
        f"{wanted_epsilons[0]:>9.4g} {wanted_epsilons[1]:>9.4g}  {costliest_label}"
    )
    return data, parameters, lines


class _RepeatedContext:
    """A context that releases the measurements of a program that ran once more, in their order, whatever is built."""

    def __init__(self, measurements: list[Any], rows: Any) -> None:
        self._left, self._rows = iter(measurements), rows

    def query(self) -> Any:
        measurement, rows = next(self._left), self._rows

        class Query:
            def __getattr__(self, name: str) -> Any:
                return lambda *_, **__: self

            def release(self) -> Any:
                return measurement(rows)

        return Query()


def run_program(
    example: Table, data: Dataset, parameters: PlanParameters, lines: tuple[AllocatedLine, ...], calls: int
) -> None:
    """Call the program's releases and print what they erred beside what was promised."""
    from opendp.extras.polars import LazyFrameQuery

    program = make_program(data, parameters, lines)
    assert program is not None
    text = write(program, Program.OPENDP).text
    head, begin, tail = text.partition("released = {}\n")
    loop_code = compile(begin + tail, "rest", "exec")
    measurements: list[Any] = []
    release = LazyFrameQuery.release

    def record_measurement(query: Any) -> Any:
        """Release a query, and keep its measurement."""
        measurements.append(query.resolve())
        return release(query)

    names: dict[str, Any] = {"print": lambda *_, **__: None}
    releases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        example.rows.to_parquet("data.parquet")
        LazyFrameQuery.release = record_measurement
        try:
            exec(compile(head, "head", "exec"), names)
            exec(loop_code, names)
        finally:
            LazyFrameQuery.release = release
        rows = names["events"].collect().lazy()
        for _ in range(calls):
            names["context"] = _RepeatedContext(measurements, rows)
            exec(loop_code, names)
            releases.append(names["released"])
    for line in lines:
        label, statistic = line.planned_line.line.label, line.planned_line.line.statistic
        errors = np.array(
            [_measure_error(example, release_values[label], line) for release_values in releases]
        )
        half_width = WIDE * errors.std() / math.sqrt(calls)
        if statistic is LineStatistic.QUANTILE:
            root = float(errors.mean())
        else:  # The root of a mean, and its interval linearised.
            root = math.sqrt(errors.mean())
            half_width /= 2.0 * root
        off = root / line.error - 1.0
        says = (
            "within 5 %"
            if abs(off) <= 0.05
            else "within the interval"
            if abs(root - line.error) <= half_width
            else ""
        )
        says = says or ("errs less" if root < line.error else "ERRS MORE")
        print(
            f"  {label:<16} share {100 * line.share:>7.3f} %  promised {line.error:>11.5g}  "
            f"{calls} calls {root:>11.5g} ± {half_width:.2g}  {100 * off:+6.1f} %  {says}"
        )


def _measure_error(example: Table, released_value: Any, line: AllocatedLine) -> float:
    """Return the squared error; of groups their mean, of a quantile the rows between. Counted with pandas."""
    rows, statistic = example.rows, line.planned_line.line.statistic
    if statistic is LineStatistic.GROUP_ROWS:
        truth = rows["group"].value_counts()
        return float(np.mean([(released_value[group] - count) ** 2 for group, count in truth.items()]))
    if statistic is LineStatistic.QUANTILE:
        at_most = float(np.mean(rows["value"].clip(example.lower, example.upper) <= released_value))
        return abs(at_most - (line.planned_line.line.quantile or 0.0))
    value = {
        LineStatistic.USERS: rows["user"].nunique(),
        LineStatistic.ROWS: len(rows),
        LineStatistic.SUM: rows["value"].sum(),
        LineStatistic.MEAN: rows["value"].mean(),
    }[statistic]
    return float((released_value - value) ** 2)


def run_quantiles(example: Table, noise: NoiseKind, calls: int) -> None:
    """Run the program of a count and two quantiles; their error is the share of rows between."""
    ranked = replace(example, lines="rows; median; quantile 0.95")
    data, parameters = ranked.dataset, ranked.make_parameters(1.0, noise)
    planned = table.plan_lines(data, parameters)
    best = find_least_sum(
        [planned_line.curve for planned_line in planned],
        np.array([planned_line.weight for planned_line in planned]),
        parameters.budget,
    )
    print(f"{example.name}, {noise.value}, with quantiles (best found, no bound):")
    run_program(ranked, data, parameters, allocate_lines(data, parameters, planned, best.shares), calls)


def main() -> None:
    """Print the splits of every table, and run the plans of the samples at epsilon = 1."""
    parser = argparse.ArgumentParser(
        description="Splits of one budget beside each other, and the plan's program, run."
    )
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    arguments = parser.parse_args()
    print(
        f"{'table':<16} {'noise':<9} {'ε':>4} {'equal':>8} {'weights':>8} {'plan':>8} {'equal +':>8} {'gap':>9} "
        f"{'time':>9} {'ε, 5 %':>9} {'equal':>9}  takes most"
    )
    for example in read_tables():
        for noise in NoiseKind:
            for epsilon in arguments.epsilons:
                data, parameters, lines = compare_splits(example, epsilon, noise)
                if example.runs_program and epsilon == 1.0:
                    run_program(example, data, parameters, lines, arguments.calls)
                    run_quantiles(example, noise, arguments.calls)


if __name__ == "__main__":
    main()
