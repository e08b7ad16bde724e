"""The error that *Mean* promises, beside that of the program it writes, on real tables.

    python benchmarks/mean_on_tables.py [--calls 1000] [--epsilons 0.3 1 3]

For every table and ε: the best bound for the mean of this very table with its values at hand, the error that is
promised, and the root mean square of the errors of many calls of the generated OpenDP program's own release, on the
table's own rows, with a 99 % interval.

*counts only* is what the page promises where it reads no values: σ² of the values, as if known from outside, and the
usual share ρ between users, at its own bound. It stands beside the exact error at that bound; where the two differ,
users are not as is assumed. ρ is the share read off the values.

Two tables are samples. With SWEETSPOT_BENCH_DATA set to a folder, these join them where they are there:
online_retail.parquet, CDNOW_master.txt, ml1m_user_movie_rating.csv. Of more than 70,000 rows, those of some users are
taken, as every call of the program goes through all rows.
"""

from __future__ import annotations

import argparse
import contextlib
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

import dpcore as ss
from dpcore import mean
from dpcore.contributions import ContributionHistogram
from dpcore.mean.parameters import ASSUMED_SHARE

ROOT = Path(__file__).resolve().parent.parent
MOST_ROWS = 70_000
RELEASES, PRINTS = "released = query.release().collect()\n", "print(mean)"
"""Where the program spends its epsilon, and the line that prints what it found."""
WIDE = 2.576
"""Standard errors on either side of a 99 % interval."""


@dataclass(frozen=True)
class Table:
    """A table of one row per contribution, with columns ``user`` and ``value``, and its public range."""

    name: str
    rows: pd.DataFrame
    lower: float
    upper: float

    @property
    def truth(self) -> float:
        """The mean of its rows as they are, which is what a release is held against."""
        return float(self.rows["value"].mean())


def tables() -> Iterator[Table]:
    """The samples, and what lies in the folder of the environment."""
    yield _table(
        "shop_events", pd.read_csv(ROOT / "sample_data/shop_events.csv"), "user_id", "amount", 0, 100
    )
    tickets = pd.read_csv(ROOT / "sample_data/support_tickets.csv")
    yield _table("support_tickets, hours", tickets, "customer", "hours_waited", 0, 48)
    folder = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "/nowhere"))
    if (path := folder / "online_retail.parquet").exists():
        retail = pd.read_parquet(path)
        retail = retail[retail["CustomerID"].notna() & (retail["Quantity"] > 0)]
        spent = retail.assign(spent=retail["Quantity"] * retail["UnitPrice"])
        bought = spent.groupby(["CustomerID", "InvoiceNo"], as_index=False)["spent"].sum()
        yield _table("Online Retail, purchases", bought, "CustomerID", "spent", 0, 5000)
        yield _table("Online Retail, lines", spent, "CustomerID", "spent", 0, 100)
    if (path := folder / "CDNOW_master.txt").exists():
        cdnow = pd.read_csv(path, sep=r"\s+", header=None, names=["user", "date", "number", "dollars"])
        # A line of names may stand above.
        cdnow = cdnow.assign(dollars=pd.to_numeric(cdnow["dollars"], errors="coerce")).dropna()
        yield _table("CDNOW, dollars", cdnow, "user", "dollars", 0, 500)
    if (path := folder / "ml1m_user_movie_rating.csv").exists():
        yield _table("MovieLens 1M, ratings", pd.read_csv(path), "user", "rating", 1, 5)


def _table(name: str, rows: pd.DataFrame, user: str, value: str, lower: float, upper: float) -> Table:
    whole = pd.DataFrame({"user": rows[user].astype(str), "value": rows[value].astype(float)})
    if len(whole) > MOST_ROWS:
        sizes = whole["user"].value_counts(sort=False)
        users = np.random.default_rng(1).permutation(sizes.index.to_numpy())
        some = users[np.cumsum(sizes.loc[users].to_numpy()) <= MOST_ROWS]
        whole = whole[whole["user"].isin(set(some))].reset_index(drop=True)
        name += f" (of {some.size:,} users)"
    return Table(name, whole, lower, upper)


def released(program: str, rows: pd.DataFrame, calls: int) -> np.ndarray:
    """What so many calls of a program's release found, in a folder that holds its file.

    OpenDP looks for the scale of the noise at every release, which takes 0.3 s: here it is found once, by the program's
    own query, and that measurement is called as often as is asked for.
    """
    head, releases, tail = program.partition(RELEASES)
    if not releases or PRINTS not in tail:
        raise SystemExit("The program is not written as this benchmark expects.")
    rest = compile(tail.replace(PRINTS, ""), "rest", "exec")
    found = np.empty(calls)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        rows.to_parquet("data.parquet")
        names: dict[str, Any] = {}
        exec(compile(head, "head", "exec"), names)
        measurement, lines = names["query"].resolve(), names["lines"].collect().lazy()
        for call in range(calls):
            names["released"] = measurement(lines).collect()
            exec(rest, names)
            found[call] = names["mean"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="The error that Mean promises, beside that of its program.")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    asked = parser.parse_args()
    line = "{:38} {:>7} {:>5} {:>5} {:>7} {:>9} {:>9} {:>17} {:>6} {:>15} {:>8}"
    print(
        line.format(
            "table", "rows", "rho", "eps", "bound", "promised", "measured", "99 % interval", "ratio",
            "counts only", "of exact",
        )
    )  # fmt: skip
    outside, began = [], time.perf_counter()
    for table in tables():
        sizes = ContributionHistogram.from_counts(table.rows["user"].value_counts().to_numpy())
        for epsilon in asked.epsilons:
            answer = ss.mean_bound(
                table.rows, user="user", value="value", epsilon=epsilon,
                lower=table.lower, upper=table.upper, disclosure="public",
            )  # fmt: skip
            promised = float(answer.error)
            off = released(answer.code("opendp"), table.rows, asked.calls) - table.truth
            squares = off**2
            middle, wide = squares.mean(), WIDE * squares.std(ddof=1) / math.sqrt(asked.calls)
            low, high = math.sqrt(max(middle - wide, 0.0)), math.sqrt(middle + wide)
            measured = math.sqrt(middle)
            if not low <= promised <= high:
                outside.append((table.name, epsilon))
            values, rho = answer.solution.problem, answer.solution.value_summary.user_share.estimate
            counts = replace(values, table=None, user_share=ASSUMED_SHARE)
            bound = mean.best_cap(counts).max_contributions
            said = math.sqrt(float(mean.capped_error(counts, bound).variance))
            exact = math.sqrt(float(mean.capped_error(values, bound).variance))
            print(
                line.format(
                    table.name, f"{sizes.num_rows:,}", f"{rho:.2f}", f"{epsilon:g}", str(answer.bound),
                    f"{promised:.4g}", f"{measured:.4g}", f"{low:.4g} to {high:.4g}",
                    f"{promised / measured:.3f}", f"{bound}: {said:.4g}", f"{said / exact:.2f}",
                ),
                flush=True,
            )  # fmt: skip
    print(f"{time.perf_counter() - began:.0f} s. Promises outside of their interval: {outside or 'none'}")


if __name__ == "__main__":
    main()
