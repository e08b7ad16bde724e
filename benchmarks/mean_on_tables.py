"""The error that *Mean* promises, beside that of the program it writes, on real tables.

    python benchmarks/mean_on_tables.py [--draws 1000] [--epsilons 0.3 1 3] [--clamps rows users]

For every table and ε, with clamped rows and with clamped users: the best bound for the mean of this very table with its
values at hand, the error that is promised, and the root mean square of the errors of many releases by the statements of
the generated OpenDP program, on the table's own rows, with a 99 % interval. *drawn* has the range that one private
choice draws with 0.3 ε, and 0.7 ε for the release.

*counts only* is what the page promises where it reads no values: σ² of the values, as if known from outside, and the
usual share ρ between users, at its own bound. It stands beside the exact error at that bound; where the two differ,
users are not as is assumed. ρ is the share read off the values.

Two tables are samples. With SWEETSPOT_BENCH_DATA set to a folder, these join them where they are there:
online_retail.parquet, CDNOW_master.txt, ml1m_user_movie_rating.csv. Of more than 70,000 rows, those of some users are
taken, as every release of the program goes through all rows.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import dpcore as ss
from benchmarks._program_draws import ProgramDraws
from dpcore import mean
from dpcore.contributions import FloatArray
from dpcore.dataset import Values
from dpcore.mean.parameters import ASSUMED_USER_SHARE
from dpcore.private_choice import private_range
from dpcore.private_choice.private_range import RangeProblem
from dpcore.reply import Reply

ROOT = Path(__file__).resolve().parent.parent
MAX_TABLE_ROWS = 70_000
SHARE_FOR_CHOICE = 0.3
OF_TABLE: Mapping[str, Any] = {"target": "table", "variance_source": "values", "likeness": "values"}
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
        """Return the mean of the rows as they are, which is what a release is held against."""
        return float(self.rows["value"].mean())


def read_tables() -> Iterator[Table]:
    """Yield the samples, and what lies in the folder of the environment."""
    yield _build_table(
        "shop_events", pd.read_csv(ROOT / "sample_data/shop_events.csv"), "user_id", "amount", 0, 100
    )
    tickets = pd.read_csv(ROOT / "sample_data/support_tickets.csv")
    yield _build_table("support_tickets, hours", tickets, "customer", "hours_waited", 0, 48)
    folder = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "/nowhere"))
    if (path := folder / "online_retail.parquet").exists():
        retail = pd.read_parquet(path)
        retail = retail[retail["CustomerID"].notna() & (retail["Quantity"] > 0)]
        amounts = retail.assign(spent=retail["Quantity"] * retail["UnitPrice"])
        purchases = amounts.groupby(["CustomerID", "InvoiceNo"], as_index=False)["spent"].sum()
        yield _build_table("Online Retail, purchases", purchases, "CustomerID", "spent", 0, 5000)
        yield _build_table("Online Retail, lines", amounts, "CustomerID", "spent", 0, 100)
    if (path := folder / "CDNOW_master.txt").exists():
        cdnow = pd.read_csv(path, sep=r"\s+", header=None, names=["user", "date", "number", "dollars"])
        # A line of names may stand above.
        cdnow = cdnow.assign(dollars=pd.to_numeric(cdnow["dollars"], errors="coerce")).dropna()
        yield _build_table("CDNOW, dollars", cdnow, "user", "dollars", 0, 500)
    if (path := folder / "ml1m_user_movie_rating.csv").exists():
        yield _build_table("MovieLens 1M, ratings", pd.read_csv(path), "user", "rating", 1, 5)


def _build_table(name: str, rows: pd.DataFrame, user: str, value: str, lower: float, upper: float) -> Table:
    """Build a table of some columns; of more than `MAX_TABLE_ROWS` rows, those of some users."""
    table_rows = pd.DataFrame({"user": rows[user].astype(str), "value": rows[value].astype(float)})
    if len(table_rows) > MAX_TABLE_ROWS:
        sizes = table_rows["user"].value_counts(sort=False)
        users = np.random.default_rng(1).permutation(sizes.index.to_numpy())
        kept_users = users[np.cumsum(sizes.loc[users].to_numpy()) <= MAX_TABLE_ROWS]
        table_rows = table_rows[table_rows["user"].isin(set(kept_users))].reset_index(drop=True)
        name += f" (of {kept_users.size:,} users)"
    return Table(name, table_rows, lower, upper)


def draw_means(program_text: str, rows: pd.DataFrame, num_draws: int) -> FloatArray:
    """Draw means by the statements of a program, shape (num_draws / 10, 10): ten from each choice of rows."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        rows.to_parquet("data.parquet")
        return ProgramDraws(program_text).draw(num_draws // 10, 10)[..., 0]


def ask_mean(table: Table, epsilon: float, clamp: str, lower: float, upper: float) -> Reply:
    """Ask for the best bound on the mean of a table, with its values at hand."""
    return ss.mean_bound(
        table.rows,
        user="user",
        value="value",
        epsilon=epsilon,
        lower=lower,
        upper=upper,
        clamp=clamp,
        **OF_TABLE,
    )


def draw_range(table: Table, epsilon: float, clamp: str, cap: int) -> tuple[float, float]:
    """Draw a range from the values with 0.3 of epsilon, around their median in one digit as the typical value."""
    codes = np.unique(table.rows["user"], return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    values = Values(codes[order], table.rows["value"].to_numpy()[order])
    width = table.upper - table.lower
    problem = RangeProblem(
        (1.0 - SHARE_FOR_CHOICE) * epsilon, SHARE_FOR_CHOICE * epsilon, width / 1000.0, width,
        centre=float(f"{np.median(values.values):.0e}"), users=float(codes.max() + 1), max_contributions=cap,
        clamps_users=clamp == "users",
    )  # fmt: skip
    range_draw = private_range.choose(problem, values)
    return range_draw.lower, range_draw.upper


def compare_counts_only(reply: Reply) -> str:
    """Compare the error that is promised without the values with the exact one, at the bound that it leads to."""
    problem = reply.solution.problem
    counts_only = replace(problem, table_values=None, user_share=ASSUMED_USER_SHARE)
    cap = mean.find_best_cap(counts_only).max_contributions
    promised, exact = (
        math.sqrt(float(mean.compute_capped_error(each, cap).squared_error))
        for each in (counts_only, problem)
    )
    return f"{cap}: {promised:.4g}, {promised / exact:.2f} of exact"


def main() -> None:
    """Print a line per table, epsilon, clamp and way to the range."""
    parser = argparse.ArgumentParser(description="The error that Mean promises, beside that of its program.")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--clamps", nargs="+", default=["rows", "users"])
    arguments = parser.parse_args()
    line = "{:38} {:>7} {:>5} {:>12} {:>7} {:>9} {:>9} {:>19} {:>6} {:>28}"
    print(
        line.format(
            "table", "rows", "eps", "clamp", "bound", "promised", "measured", "99 % interval", "ratio",
            "counts only",
        )
    )  # fmt: skip
    outside, start = [], time.perf_counter()
    for table in read_tables():
        for epsilon in arguments.epsilons:
            for clamp in arguments.clamps:
                known_reply = ask_mean(table, epsilon, clamp, table.lower, table.upper)
                drawn_range = draw_range(table, epsilon, clamp, max(round(float(known_reply.bound)), 1))
                drawn_reply = ask_mean(table, (1.0 - SHARE_FOR_CHOICE) * epsilon, clamp, *drawn_range)
                for name, reply in ((clamp, known_reply), (f"{clamp}, drawn", drawn_reply)):
                    promised = float(reply.error)
                    means = draw_means(reply.code("opendp"), table.rows, arguments.draws)
                    squares = (means - table.truth) ** 2
                    sample_squares = squares.mean(axis=1)
                    wide = WIDE * sample_squares.std(ddof=1) / math.sqrt(sample_squares.size)
                    low, high = (math.sqrt(max(squares.mean() + sign * wide, 0.0)) for sign in (-1, 1))
                    measured = math.sqrt(squares.mean())
                    if not low <= promised <= high:
                        outside.append((table.name, epsilon, name))
                    print(
                        line.format(
                            table.name, f"{len(table.rows):,}", f"{epsilon:g}", name, f"{float(reply.bound):.4g}",
                            f"{promised:.4g}", f"{measured:.4g}", f"{low:.4g} to {high:.4g}",
                            f"{promised / measured:.3f}",
                            compare_counts_only(reply) if name == "rows" else "",
                        ),
                        flush=True,
                    )  # fmt: skip
    print(f"{time.perf_counter() - start:.0f} s. Promises outside of their interval: {outside or 'none'}")


if __name__ == "__main__":
    main()
