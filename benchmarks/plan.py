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
from dpcore.plan.least_sum import find_least_sum, find_needed_budgets
from dpcore.plan.parameters import LineStatistic, PlanParameters, choose_defaults
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
    run: bool = False

    def asked(self, epsilon: float, noise: NoiseKind, program: Program = Program.OPENDP) -> PlanParameters:
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


def tables() -> Iterator[Table]:
    """The samples, and what lies in the folder of the environment."""
    five = "users; rows; sum; mean; rows per group"
    shop = pd.read_csv(ROOT / "sample_data/shop_events.csv")
    yield _table("shop_events", shop, ("user_id", "amount", "product"), five, 0, 100, run=True)
    tickets = pd.read_csv(ROOT / "sample_data/support_tickets.csv")
    yield _table("support_tickets", tickets, ("customer", "hours_waited", "channel"), five, 0, 48, run=True)
    folder = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "/nowhere"))
    if (path := folder / "online_retail.parquet").exists():
        retail = pd.read_parquet(path)
        retail = retail[retail["CustomerID"].notna() & (retail["Quantity"] > 0)]
        spent = retail.assign(spent=retail["Quantity"] * retail["UnitPrice"])
        yield _table("Online Retail", spent, ("CustomerID", "spent", "Country"), five, 0, 100)
    if (path := folder / "CDNOW_master.txt").exists():
        cdnow = pd.read_csv(path, sep=r"\s+", header=None, names=["user", "date", "number", "dollars"])
        # A line of names may stand above.
        cdnow = cdnow.assign(dollars=pd.to_numeric(cdnow["dollars"], errors="coerce")).dropna()
        yield _table("CDNOW", cdnow, ("user", "dollars", ""), "users; rows; sum; mean", 0, 500)
    if (path := folder / "ml1m_user_movie_rating.csv").exists():
        rated = pd.read_csv(path)
        yield _table("MovieLens 1M", rated, ("user", "rating", ""), "users; rows; sum; mean", 1, 5)


def _table(
    name: str,
    rows: pd.DataFrame,
    columns: tuple[str, str, str],
    lines: str,
    lower: float,
    upper: float,
    run: bool = False,
) -> Table:
    user, value, group = columns
    whole = pd.DataFrame({"user": rows[user].astype(str), "value": rows[value].astype(float)})
    if group:
        whole["group"] = rows[group].astype(str)
    return Table(name, whole, lines, lower, upper, run)


def splits(
    found: Table, epsilon: float, noise: NoiseKind
) -> tuple[Dataset, PlanParameters, tuple[AllocatedLine, ...]]:
    """Print one row of the comparison; the plan as it is drawn."""
    data, parameters = found.dataset, found.asked(epsilon, noise)
    planned = table.plan_lines(data, parameters)
    start = time.perf_counter()
    curves = [line.curve for line in planned]
    values = np.array([abs(line.value) for line in planned])
    # Every line has the usual wanted error, 5 % of its value, so that these weights are those of relative errors.
    best = find_least_sum(curves, np.array([line.weight for line in planned]), parameters.budget)
    took = time.perf_counter() - start
    mechanisms = np.array([2.0 if line.line.statistic is LineStatistic.MEAN else 1.0 for line in planned])

    def relative(shares: FloatArray) -> tuple[float, tuple[AllocatedLine, ...]]:
        lines = allocate_lines(data, parameters, planned, shares)
        return math.sqrt(
            np.mean([(line.error / v) ** 2 for line, v in zip(lines, values, strict=True)])
        ), lines

    equal, _ = relative(np.full(values.size, 1.0 / values.size))
    weights, _ = relative(mechanisms / mechanisms.sum())
    ours, lines = relative(best.shares)
    budget = parameters.budget
    needed = find_needed_budgets(curves, 0.05 * values, budget)
    wanted = budget.convert_to_epsilon(needed.sum()), budget.convert_to_epsilon(needed.max() * needed.size)
    assert best.certificate is not None
    most = planned[int(np.argmax(needed))].line.label
    print(
        f"{found.name:<16} {noise.value[:8]:<9} {epsilon:>4g} {equal:>8.4f} {weights:>8.4f} {ours:>8.4f} "
        f"{100 * (equal / ours - 1):>7.1f}% {best.certificate.relative_gap:>9.1e} {1e3 * took:>6.0f} ms "
        f"{wanted[0]:>9.4g} {wanted[1]:>9.4g}  {most}"
    )
    return data, parameters, lines


class _Again:
    """The context of a program that ran: its measurements once more, in their order, whatever is built."""

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


def runs(
    found: Table, data: Dataset, parameters: PlanParameters, lines: tuple[AllocatedLine, ...], calls: int
) -> None:
    """Call the program's releases and print what they erred beside what was promised."""
    from opendp.extras.polars import LazyFrameQuery

    asked = make_program(data, parameters, lines)
    assert asked is not None
    text = write(asked, Program.OPENDP).text
    head, begin, tail = text.partition("released = {}\n")
    rest = compile(begin + tail, "rest", "exec")
    measurements: list[Any] = []
    release = LazyFrameQuery.release

    def recorded(query: Any) -> Any:
        measurements.append(query.resolve())
        return release(query)

    names: dict[str, Any] = {"print": lambda *_: None}
    released: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found.rows.to_parquet("data.parquet")
        LazyFrameQuery.release = recorded
        try:
            exec(compile(head, "head", "exec"), names)
            exec(rest, names)
        finally:
            LazyFrameQuery.release = release
        rows = names["events"].collect().lazy()
        for _ in range(calls):
            names["context"] = _Again(measurements, rows)
            exec(rest, names)
            released.append(names["released"])
    for line in lines:
        what, kind = line.planned.line.label, line.planned.line.statistic
        errors = np.array([_error(found, one[what], line) for one in released])
        half = WIDE * errors.std() / math.sqrt(calls)
        if kind is LineStatistic.QUANTILE:
            root = float(errors.mean())
        else:  # The root of a mean, and its interval linearised.
            root = math.sqrt(errors.mean())
            half /= 2.0 * root
        off = root / line.error - 1.0
        says = (
            "within 5 %"
            if abs(off) <= 0.05
            else "within the interval"
            if abs(root - line.error) <= half
            else ""
        )
        says = says or ("errs less" if root < line.error else "ERRS MORE")
        print(
            f"  {what:<16} share {100 * line.share:>7.3f} %  promised {line.error:>11.5g}  "
            f"{calls} calls {root:>11.5g} ± {half:.2g}  {100 * off:+6.1f} %  {says}"
        )


def _error(found: Table, released: Any, line: AllocatedLine) -> float:
    """Squared error, of groups the mean of them, of a quantile the rows between; counted with pandas."""
    rows, kind = found.rows, line.planned.line.statistic
    if kind is LineStatistic.GROUP_ROWS:
        truth = rows["group"].value_counts()
        return float(np.mean([(released[group] - count) ** 2 for group, count in truth.items()]))
    if kind is LineStatistic.QUANTILE:
        at_most = float(np.mean(rows["value"].clip(found.lower, found.upper) <= released))
        return abs(at_most - (line.planned.line.quantile or 0.0))
    value = {
        LineStatistic.USERS: rows["user"].nunique(),
        LineStatistic.ROWS: len(rows),
        LineStatistic.SUM: rows["value"].sum(),
        LineStatistic.MEAN: rows["value"].mean(),
    }[kind]
    return float((released - value) ** 2)


def quantiles(found: Table, noise: NoiseKind, calls: int) -> None:
    """The same of a count and two quantiles; their error is the share of rows between."""
    ranked = replace(found, lines="rows; median; quantile 0.95")
    data, parameters = ranked.dataset, ranked.asked(1.0, noise)
    planned = table.plan_lines(data, parameters)
    best = find_least_sum(
        [one.curve for one in planned], np.array([one.weight for one in planned]), parameters.budget
    )
    print(f"{found.name}, {noise.value}, with quantiles (best found, no bound):")
    runs(ranked, data, parameters, allocate_lines(data, parameters, planned, best.shares), calls)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Splits of one budget beside each other, and the plan's program, run."
    )
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    given = parser.parse_args()
    print(
        f"{'table':<16} {'noise':<9} {'ε':>4} {'equal':>8} {'weights':>8} {'plan':>8} {'equal +':>8} {'gap':>9} "
        f"{'time':>9} {'ε, 5 %':>9} {'equal':>9}  takes most"
    )
    for found in tables():
        for noise in NoiseKind:
            for epsilon in given.epsilons:
                data, parameters, lines = splits(found, epsilon, noise)
                if found.run and epsilon == 1.0:
                    runs(found, data, parameters, lines, given.calls)
                    quantiles(found, noise, given.calls)


if __name__ == "__main__":
    main()
