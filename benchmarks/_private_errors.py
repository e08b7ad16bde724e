"""Errors of what is released with a bound that was chosen privately, on tables, by the way in which it was chosen."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import _range_costs
from dpcore.contributions import ContributionHistogram
from dpcore.dataset import Values
from dpcore.per_group import private_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice import choice
from dpcore.private_choice.choice import ChoiceProblem, Prior, SmallFirst
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import RankedSum, SizeQuantile
from dpcore.private_choice.table_scores import Condition

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 10_000
"""Public maximum of rows per user."""
MOST_ROWS = 30_000
"""Of more rows, those of some users are taken where every value counts."""
UNIT, FARTHEST = 0.01, 1e6
"""Least and largest distance of an end of a range."""


@dataclass(frozen=True)
class Table:
    """A table of one row per contribution, with columns ``user``, ``value`` and ``group``."""

    name: str
    rows: pd.DataFrame

    @functools.cached_property
    def histogram(self) -> ContributionHistogram:
        """Return the histogram of rows per user."""
        return ContributionHistogram.from_counts(self.rows["user"].value_counts().to_numpy())

    @functools.cached_property
    def pairs(self) -> UserGroupPairs | None:
        """Return the rows by user and group; None without groups."""
        if "group" not in self.rows:
            return None
        groups, names = pd.factorize(self.rows["group"])
        return UserGroupPairs.from_arrays(pd.factorize(self.rows["user"])[0], groups, len(names))

    @functools.cached_property
    def sum_pairs(self) -> UserGroupPairs | None:
        """Return values of at least 0 added up by user and group; None without both."""
        if not {"group", "value"} <= set(self.rows) or float(self.rows["value"].min()) < 0.0:
            return None
        groups, names = pd.factorize(self.rows["group"])
        users, amounts = (
            pd.factorize(self.rows["user"])[0],
            np.minimum(self.rows["value"].to_numpy(float), LARGEST),
        )
        return UserGroupPairs.from_arrays(users, groups, len(names), row_values=amounts)

    @functools.cached_property
    def values_table(self) -> _range_costs.Table | None:
        """Return the values, of some users where rows are many; None without any."""
        if "value" not in self.rows:
            return None
        rows = self.rows
        if len(rows) > MOST_ROWS:
            sizes = rows["user"].value_counts(sort=False)
            users = np.random.default_rng(1).permutation(sizes.index.to_numpy())
            kept_users = users[np.cumsum(sizes.loc[users].to_numpy()) <= MOST_ROWS]
            rows = rows[rows["user"].isin(set(kept_users))]
        codes = pd.factorize(rows["user"])[0]
        order = np.argsort(codes, kind="stable")
        return _range_costs.Table(Values(codes[order], rows["value"].to_numpy(float)[order]), 1.0)


def read_tables() -> Iterator[Table]:
    """Yield the samples, one that is made up, and what lies in the folder of the environment."""
    shop = pd.read_csv(ROOT / "sample_data/shop_events.csv")
    yield Table("shop_events", shop.set_axis(["user", "group", "value"], axis=1))
    ratings = pd.read_csv(ROOT / "sample_data/item_ratings.csv")
    yield Table("item_ratings", ratings.set_axis(["user", "group", "value"], axis=1))
    tickets = pd.read_csv(ROOT / "sample_data/support_tickets.csv")
    new_names = {"customer": "user", "hours_waited": "value", "channel": "group"}
    yield Table("support_tickets", tickets.rename(columns=new_names)[list(new_names.values())])
    generator = np.random.default_rng(0)
    users = np.repeat(np.arange(2_000), generator.geometric(0.3, 2_000))
    yield Table(
        "N(1000, 5)", pd.DataFrame({"user": users, "value": generator.normal(1000.0, 5.0, users.size)})
    )
    folder = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "/nowhere"))
    if (path := folder / "online_retail.parquet").exists():
        retail = pd.read_parquet(path)
        retail = retail[retail["CustomerID"].notna() & (retail["Quantity"] > 0)]
        retail = retail.assign(user=retail["CustomerID"], value=retail["Quantity"] * retail["UnitPrice"])
        yield Table(
            "retail lines, products",
            retail.rename(columns={"StockCode": "group"})[["user", "value", "group"]],
        )
        purchases = retail.groupby(["user", "InvoiceNo", "Country"], as_index=False)["value"].sum()
        yield Table("retail invoices, countries", purchases.rename(columns={"Country": "group"}))
    if (path := folder / "CDNOW_master.txt").exists():
        cdnow = pd.read_csv(path, sep=r"\s+", header=None, names=["user", "date", "number", "value"])
        cdnow = cdnow.assign(
            value=pd.to_numeric(cdnow["value"], errors="coerce")
        ).dropna()  # A line of names.
        yield Table("CDNOW, months", cdnow.assign(group=cdnow["date"].astype(str).str[:6]))
    if (path := folder / "ml1m_user_movie_rating.csv").exists():
        films = pd.read_csv(path)
        yield Table("MovieLens 1M, movies", films.set_axis(["user", "group", "value"], axis=1))


ErrorsByWay = dict[str, Callable[[float], float]]
"""Name of a way to its mean error over the least one, at an epsilon of the choice."""


def measure_range(table: Table) -> ErrorsByWay:
    """Measure a range, where a typical value in one digit is known, where L is known to be 0, and where nothing is."""
    values_table = table.values_table
    if values_table is None:
        return {}
    users, typical = float(f"{values_table.users:.0e}"), float(f"{np.median(values_table.values.values):.0e}")

    def make_problem(epsilon: float, **public_knowledge: float) -> RangeProblem:
        return RangeProblem(1.0, epsilon, UNIT, FARTHEST, users=users, **public_knowledge)  # type: ignore[arg-type]

    errors_by_way: ErrorsByWay = {
        "draw, a typical value known": lambda e: _range_costs.compute_draw_cost(
            values_table, make_problem(e, centre=typical)
        ),
        "draw, nothing known": lambda e: _range_costs.compute_draw_cost(values_table, make_problem(e)),
        "DP quantiles 0.005 and 0.995": lambda e: _range_costs.compute_quantile_cost(
            values_table, make_problem(e, centre=typical)
        ),
        "log bins (ApproxBounds), simulated": lambda e: _range_costs.compute_bin_cost(
            values_table, make_problem(e, centre=typical)
        ),
        "a guess, twice as wide": lambda e: _range_costs.compute_guess_cost(values_table, 2.0),
        "a guess, ten times as wide": lambda e: _range_costs.compute_guess_cost(values_table, 10.0),
    }
    if float(values_table.values.values.min()) >= 0.0 and typical < 500.0:
        errors_by_way["draw, L = 0 known"] = lambda e: _range_costs.compute_draw_cost(
            values_table, make_problem(e, lower=0.0)
        )
    return errors_by_way


def make_relative_errors(
    condition: Condition, histogram: ContributionHistogram
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from bounds to their errors over the least one."""
    least_error = float(
        condition.compute_errors(histogram, np.array([condition.find_best_bound(histogram)]))[0]
    )
    return lambda bounds: np.maximum(condition.compute_errors(histogram, bounds) / least_error, 1.0)


def measure_draw(
    histogram: ContributionHistogram,
    condition: Condition,
    target: Condition,
    prior: Prior | SmallFirst | None,
    epsilon: float,
    largest: int = LARGEST,
    margin: bool = True,
) -> float:
    """Return the mean error of ``condition`` over draws that aim at ``target``; without ``margin`` just at that."""
    problem = ChoiceProblem(target, epsilon, largest, prior=prior)
    law = choice.compute_probabilities(problem, histogram)
    if not margin:
        distances = target.compute_distances(histogram, problem.candidates)
        law = np.exp(
            choice.normalise_log_weights(choice.compute_logits(problem, distances, np.array([epsilon])))
        )[0]
    return float(law @ make_relative_errors(condition, histogram)(problem.candidates))


def measure_bins(
    histogram: ContributionHistogram, condition: Condition, epsilon: float, largest: int = LARGEST
) -> float:
    """Return the same of the highest of doubling bins whose noisy count passes a threshold, exactly."""
    edges = 2.0 ** np.arange(math.ceil(math.log2(largest)) + 1)
    users_by_bin = np.histogram(histogram.sizes, np.r_[0.0, edges], weights=histogram.users)[0]
    bin_chance = _range_costs.SUCCESS ** (1.0 / edges.size)
    margin = math.log(1.0 / (2.0 * -math.expm1(math.log(bin_chance)))) - epsilon * users_by_bin
    passes = np.where(margin > 0.0, 0.5 * np.exp(-np.abs(margin)), 1.0 - 0.5 * np.exp(-np.abs(margin)))
    beyond = np.r_[np.cumprod((1.0 - passes)[::-1])[::-1][1:], 1.0]
    errors = make_relative_errors(condition, histogram)(np.minimum(edges, largest))
    return float(passes * beyond @ errors + np.prod(1.0 - passes) * errors[-1])


def measure_guesses(histogram: ContributionHistogram, condition: Condition) -> ErrorsByWay:
    """Measure bounds from knowledge."""
    best, error = condition.find_best_bound(histogram), make_relative_errors(condition, histogram)
    return {
        "a guess, twice the best": lambda e: float(error(np.array([2.0 * best]))[0]),
        "a guess, ten times the best": lambda e: float(error(np.array([10.0 * best]))[0]),
        "a guess, a tenth of the best": lambda e: float(error(np.array([max(best / 10.0, 1.0)]))[0]),
    }


def measure_bound(
    histogram: ContributionHistogram,
    condition: Condition,
    prior: Prior | SmallFirst | None,
    largest: int = LARGEST,
) -> ErrorsByWay:
    """Measure one bound on rows: the draw, a DP quantile of the rows per user, bins, and guesses."""
    return {
        "draw": lambda e: measure_draw(histogram, condition, condition, prior, e, largest),
        "DP quantile 0.99": lambda e: measure_draw(
            histogram, condition, SizeQuantile(0.99), None, e, largest
        ),
        "log bins (ApproxBounds)": lambda e: measure_bins(histogram, condition, e, largest),
        **measure_guesses(histogram, condition),
    }


def measure_count(table: Table) -> ErrorsByWay:
    """Measure the bound of a count of rows, T."""
    parameters = PrivateParameters(1.0, BoundPurpose.SUM)
    return measure_bound(table.histogram, parameters.condition, parameters.choice.prior)


def measure_total(table: Table) -> ErrorsByWay:
    """Measure the bound of the sum of a column, in whole units, of what a user adds in all; at most a million."""
    if "value" not in table.rows or float(table.rows["value"].min()) < 0.0:
        return {}
    totals = np.ceil(table.rows.groupby("user")["value"].sum().to_numpy()).astype(np.int64)
    histogram = ContributionHistogram.from_counts(totals[totals > 0])
    return measure_bound(histogram, RankedSum(1.0), SmallFirst(), 10**6)


def measure_mean(table: Table) -> ErrorsByWay:
    """Measure the bound of the mean of the table, with a fifth of the variance between users."""
    parameters = PrivateParameters(1.0, BoundPurpose.CAP, user_share=0.2)
    condition, independent = parameters.condition, replace(parameters, user_share=0.0)
    errors_by_way = measure_bound(table.histogram, condition, parameters.choice.prior)
    errors_by_way["a draw that takes rows as independent"] = lambda e: measure_draw(
        table.histogram, condition, independent.condition, independent.choice.prior, e
    )
    return errors_by_way


def measure_vector(table: Table) -> ErrorsByWay:
    """Measure T on all groups of a user together: the sum of the groups' |bias| and mean noise."""
    if table.pairs is None:
        return {}
    condition = RankedSum(float(table.pairs.num_groups))
    if condition.find_best_bound(table.histogram) <= 0.0:  # Nothing is best: no bound to be near.
        return {}
    return measure_bound(table.histogram, condition, SmallFirst())


def measure_pair(table: Table, statistic: Statistic = Statistic.ROWS) -> ErrorsByWay:
    """Measure L0 and L-infinity, over the best of all pairs; of a sum, amounts are whole units."""
    pairs = table.sum_pairs if statistic is Statistic.SUM else table.pairs
    if pairs is None:
        return {}
    amounts = np.minimum(pairs.rows if pairs.sums is None else np.rint(pairs.sums), LARGEST)
    k = np.repeat(pairs.groups_per_user, pairs.groups_per_user)
    bounds = np.unique(np.quantile(amounts, np.linspace(0.0, 1.0, 200), method="higher"))
    of_k = np.array([np.bincount(k, np.minimum(amounts, c)) for c in bounds])
    groups = np.arange(1, of_k.shape[1])
    share = np.minimum(1.0, groups[:, None] / np.maximum(np.arange(of_k.shape[1]), 1))
    release = PerGroupParameters(1.0, statistic, num_groups=pairs.num_groups)
    errors = float(amounts.sum()) - of_k @ share.T + pairs.num_groups * bounds[:, None] * groups
    least_error = float(errors.min())

    def measure_bounds(bound: float, amount: float) -> float:
        kept_amounts = np.minimum(1.0, bound / pairs.groups_per_user) * np.add.reduceat(
            np.minimum(amounts, amount), pairs.user_starts
        )
        return (
            float(amounts.sum()) - float(kept_amounts.sum()) + pairs.num_groups * bound * amount
        ) / least_error

    def draw(epsilon: float) -> float:
        problem = PrivatePairProblem(release, epsilon, LARGEST)
        return (
            float(
                private_pair.compute_probabilities(problem, pairs)
                @ private_pair.compute_errors(problem, pairs)
            )
            / least_error
        )

    def quantiles(share: float) -> float:
        return measure_bounds(
            float(np.quantile(pairs.groups_per_user, share)), float(np.quantile(amounts, share))
        )

    return {
        "draw": draw,
        "quantiles 0.9 of both, in the clear": lambda e: quantiles(0.9),
        "quantiles 0.99 of both, in the clear": lambda e: quantiles(0.99),
        "a guess, (1, 1)": lambda e: measure_bounds(1, 1),
        "a guess, (5, 10)": lambda e: measure_bounds(5, 10),
        "nothing released": lambda e: float(amounts.sum()) / least_error,
    }
