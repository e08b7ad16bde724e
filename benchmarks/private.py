"""What choosing a bound privately costs, on tables: draws beside other ways, and private copies.

    python benchmarks/private.py             both
    python benchmarks/private.py --draws     what follows in this text, and no copies

*Draws*: the mean error over the draws of each private choice, over that of the best choice in the clear, at ε = 1 of
the release and over ε of the choice. Geometric mean over the tables and the worst table. It is exact, by the
probabilities of the mechanism; of bins on either side of 0, which give a range, it is a simulation. *Weights and
margins* has every private choice with all candidates alike, and as it is.

Two tables are samples and one is made up. With SWEETSPOT_BENCH_DATA set to a folder, these join them where they are
there: online_retail.parquet, CDNOW_master.txt, ml1m_user_movie_rating.csv.

*Copies*: how users and rows come out of a private copy of the contribution histogram, and what choosing on one costs.
Noise is NumPy's, seeded: a simulation.
"""

from __future__ import annotations

import argparse
import enum
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd

from benchmarks import _range_costs
from dpcore import mean, total
from dpcore.common.noise_error import Measure
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Values
from dpcore.per_group import private_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.choice import ChoiceProblem, Prior, SmallFirst
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters
from dpcore.private_choice.private_histogram import (
    HistogramNoise,
    HistogramParameters,
    NoiseShape,
    PublicBins,
    compute_phantom_limits,
    count_from_tails,
    fit_falling_tails,
    fit_users,
    sum_tails,
)
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import RankedSum, SizeQuantile
from dpcore.private_choice.table_scores import Condition

SAMPLES = (
    "online-retail-lines",
    "online-retail-invoices",
    "online-retail-customers-per-product",
    "requests-commits",
)
RUNS = 400


def print_rows_without_noise() -> None:
    """Print what binning alone does to the number of rows, by what represents a bin."""
    print("Rows of the binned histogram against the true number, no noise: geometric / arithmetic middle")
    for growth in (1.1, 1.2, 1.3, 1.5):
        bins = PublicBins(growth=growth)
        cells = []
        for key in SAMPLES:
            histogram = samples.load(key).histogram
            counts, rows = bins.count_users(histogram), histogram.num_rows
            arithmetic_middles = (bins.lower + bins.upper) / 2.0
            geometric, arithmetic = (
                counts @ bins.representative / rows - 1.0,
                counts @ arithmetic_middles / rows - 1.0,
            )
            cells.append(f"{geometric:+7.2%} /{arithmetic:+7.2%}")
        print(f"  growth {growth:<4g} {bins.lower.size:3d} bins   " + "   ".join(cells))


class Fit(enum.Enum):
    """How noisy counts become a histogram."""

    CLIP = "counts below 0 become 0"
    SIMPLEX = "the nearest non-negative counts with the same sum"
    ISOTONIC = "the nearest falling tail counts"
    TRUNCATED = "the nearest falling tail counts, none beyond the last that stands out from the noise"
    EXTENDED = "the nearest falling tail counts, a power law beyond the last that stands out from the noise"


def fit_users_by(noisy: IntArray, noise: NoiseShape, lower: IntArray, fit: Fit) -> IntArray:
    """Fit whole, non-negative users per bin; releases take the last way."""
    if fit is Fit.EXTENDED:
        return fit_users(noisy, noise, lower)
    counts = np.asarray(noisy, dtype=np.float64)
    if fit is Fit.CLIP:
        return count_from_tails(sum_tails(np.maximum(counts, 0.0)))
    if fit is Fit.SIMPLEX:
        return count_from_tails(sum_tails(project_on_simplex(counts)))
    tails = sum_tails(counts)
    if fit is Fit.TRUNCATED:
        stands_out = np.flatnonzero(tails > compute_phantom_limits(counts.size, noise))
        tails[int(stands_out[-1]) + 1 if stands_out.size else 0 :] = 0.0
    return count_from_tails(fit_falling_tails(tails))


def project_on_simplex(counts: FloatArray) -> FloatArray:
    """Return max(count - shift, 0) with the shift that keeps the sum; all 0 where the sum is not positive."""
    total = math.fsum(counts)
    if total <= 0.0:
        return np.zeros_like(counts)
    # By the conditions of Karush, Kuhn and Tucker all counts that stay positive fall by one shift: sorted, the last
    # that stays above the shift of those before it decides (Duchi et al. 2008, section 3).
    descending = np.sort(counts)[::-1]
    shifts = (np.cumsum(descending) - total) / np.arange(1, counts.size + 1)
    last_index = int(np.flatnonzero(descending > shifts)[-1])
    return np.asarray(np.maximum(counts - shifts[last_index], 0.0))


def print_fits(epsilon: float, bins: PublicBins) -> None:
    """Print the variants of post-processing."""
    parameters = HistogramParameters(epsilon, bins)
    print(f"\nepsilon_choice = {epsilon:g}, {bins.sentence}")
    print(
        "  users, rows: mean error; rows: root mean squared error; regret, median / 95 %: smooth weights, cap, "
        "sum at epsilon = 1, sum at epsilon = 0.01"
    )
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        print(f"  {key} ({histogram.num_users:,} users)")
        for fit in Fit:
            users, rows = simulate_moments(histogram, parameters, fit)
            began = time.perf_counter()
            words = format_regrets(histogram, parameters, fit)
            seconds = time.perf_counter() - began
            print(
                f"    {fit.name:9s} users {np.mean(users) - 1.0:+7.2%}  rows {np.mean(rows) - 1.0:+9.1%} "
                f"(rmse {np.sqrt(np.mean((rows - 1.0) ** 2)):9.1%})  {words}  {seconds:.2f} s"
            )


def simulate_moments(
    histogram: ContributionHistogram, parameters: HistogramParameters, fit: Fit
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate users and rows of copies, as shares of the true numbers, shape (runs,) each."""
    generator, counts = np.random.default_rng(2), parameters.bins.count_users(histogram)
    noise = comparison.simulate_noise(parameters.noise, parameters.scale, (RUNS, counts.size), generator)
    shape = parameters.noise_shape
    copies = [fit_users_by(counts + row, shape, parameters.bins.lower, fit) for row in noise]
    rows = np.array([copy @ parameters.bins.representative for copy in copies])
    return np.sum(copies, axis=1) / histogram.num_users, rows / histogram.num_rows


def format_regrets(
    histogram: ContributionHistogram, parameters: HistogramParameters, fit: Fit = Fit.EXTENDED
) -> str:
    """Format median and 95th percentile of regret: smooth weights, cap, sum at epsilon = 1 and 0.01.

    Values lie in [0, 1], of worst-case variance. The copies are the same for all, by their seed.
    """
    problem = mean.MeanProblem(histogram, epsilon=1.0, value_bound=1.0, value_variance=0.25)
    count_problem = total.TotalProblem(Amounts.from_histogram(histogram), 1.0, measure=Measure.ABSOLUTE)
    low_epsilon_problem = replace(count_problem, epsilon=0.01)

    def replace_amounts(problem: total.TotalProblem, copy: ContributionHistogram) -> total.TotalProblem:
        return replace(problem, amounts=Amounts.from_histogram(copy))

    questions: list[tuple[Callable[[ContributionHistogram], float], Callable[[np.ndarray], np.ndarray]]] = [
        (
            lambda copy: mean.find_best_smooth(replace(problem, histogram=copy)).threshold,
            lambda bounds: np.sqrt(mean.compute_smooth_variance(problem, bounds)),
        ),
        (
            lambda copy: float(mean.find_best_cap(replace(problem, histogram=copy)).max_contributions),
            lambda bounds: np.sqrt(mean.compute_capped_variance(problem, bounds)),
        ),
        (
            lambda copy: total.find_optimal_bound(replace_amounts(count_problem, copy)),
            lambda bounds: total.measure_errors(count_problem, bounds),
        ),
        (
            lambda copy: total.find_optimal_bound(replace_amounts(low_epsilon_problem, copy)),
            lambda bounds: total.measure_errors(low_epsilon_problem, bounds),
        ),
    ]
    texts = []
    for choose, errors in questions:
        bounds = comparison.simulate_chosen_bounds(
            histogram, choose, parameters, RUNS, 1, functools.partial(fit_users_by, fit=fit)
        )
        best = float(errors(np.array([choose(histogram)]))[0])
        regrets = np.sort(np.nan_to_num(errors(bounds) / best - 1.0, nan=np.inf))
        texts.append(
            "{:8.3%} /{:8.3%}".format(*(comparison.find_rank_value(regrets, q) for q in (0.5, 0.95)))
        )
    return "   ".join(texts)


def print_gaussian() -> None:
    """Print the regret of Gaussian noise beside Laplace noise, default bins."""
    print(
        "\nThe other noise, epsilon_choice = 0.1: regret of smooth weights, cap, sum at eps 1 and 0.01: median / 95 %"
    )
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        for noise, delta in ((HistogramNoise.LAPLACE, None), (HistogramNoise.GAUSSIAN, 1e-6)):
            parameters = HistogramParameters(0.1, noise=noise, delta=delta)
            words = format_regrets(histogram, parameters)
            print(f"  {key:36s} {noise.value:18s} scale {parameters.scale:6.2f}  {words}")


# --- Draws -----------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parent.parent
CHOICE_EPSILONS = (0.1, 0.3, 0.5, 2.0)
"""Epsilons of the choice."""
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


def print_errors(
    name: str,
    measure_ways: Callable[[Table], ErrorsByWay],
    tables: list[Table],
    epsilons: Sequence[float] = CHOICE_EPSILONS,
    users: Callable[[Table], float] = lambda table: table.histogram.num_users,
) -> None:
    """Print geometric mean and worst of every way, over all tables and those of at least 1,000 users."""
    print(f"\n{name}: mean error over the least one; geometric mean, worst table")
    results = [(table, measure_ways(table)) for table in tables]
    names = list(dict.fromkeys(way_name for _, errors_by_way in results for way_name in errors_by_way))
    for title, min_users in (("all", 0), ("1,000 users and more", 1_000)):
        selected = [
            (table, errors_by_way)
            for table, errors_by_way in results
            if errors_by_way and users(table) >= min_users
        ]
        if not selected or (
            min_users and len(selected) == len([1 for _, errors_by_way in results if errors_by_way])
        ):
            continue
        heads = "".join(f"{'epsilon_c ' + format(e, 'g'):>38}" for e in epsilons)
        print(f"  {title}: {len(selected)} tables{heads}")
        for way_name in names:
            cells = []
            for epsilon in epsilons:
                errors = [
                    (errors_by_way[way_name](epsilon), table.name)
                    for table, errors_by_way in selected
                    if way_name in errors_by_way
                ]
                geometric_mean = math.exp(np.mean([math.log(error) for error, _ in errors]))
                worst, worst_name = max(errors)
                cells.append(f"{geometric_mean:11.4g} {worst:11.4g} {worst_name[:13]:13s}")
            print(f"    {way_name:38s}" + "".join(cells), flush=True)


class _UniformPairs(PrivatePairProblem):
    log_prior = property(lambda self: np.zeros(self.candidates[0].size))  # type: ignore[assignment]


class _UniformEnds(RangeProblem):
    centre_log_prior = property(lambda self: np.zeros(self.centres.size))  # type: ignore[assignment]
    target = property(lambda self: 1.0 / self.epsilon_release)  # type: ignore[assignment]

    def log_prior(self, anchor: float) -> np.ndarray:
        return np.zeros(self.list_widths(anchor).size)


FEW_EPSILONS = (0.1, 0.5)


def count_users_with_values(table: Table) -> float:
    """Return the number of users whose values are taken; 0 without values."""
    return 0.0 if table.values_table is None else table.values_table.users


def print_weights_and_margins(tables: list[Table]) -> None:
    """Print every private choice with all candidates alike and no margin, as it is, and with other weights."""

    def make_measure(
        parameters: PrivateParameters, fixed_condition: Condition | None = None
    ) -> Callable[[Table], ErrorsByWay]:
        """Return a function that measures a private choice on a table."""

        def measure_choice(table: Table) -> ErrorsByWay:
            condition, h = fixed_condition or parameters.condition, table.histogram
            if condition.find_best_bound(h) <= 0.0:
                return {}
            prior = parameters.choice.prior
            errors_by_way: ErrorsByWay = {
                "alike": lambda e: measure_draw(h, condition, condition, None, e, margin=False)
            }
            if prior is not None:
                errors_by_way["as it is"] = lambda e: measure_draw(h, condition, condition, prior, e)
            if isinstance(condition, RankedSum):
                price = condition.price
                errors_by_way["T^-1.5, no margin"] = lambda e: measure_draw(
                    h, condition, condition, prior, e, margin=False
                )
                errors_by_way["T^-2, margin 2 / epsilon_c"] = lambda e: measure_draw(
                    h, condition, RankedSum(price, 2.0 / e), SmallFirst(2.0), e, margin=False
                )
            return errors_by_way

        return measure_choice

    def measure_vectors(table: Table) -> ErrorsByWay:
        if table.pairs is None:
            return {}
        return make_measure(
            PrivateParameters(1.0, BoundPurpose.SUM), RankedSum(float(table.pairs.num_groups))
        )(table)

    def measure_quantile(table: Table) -> ErrorsByWay:
        condition = SizeQuantile(0.95)
        make_problem = functools.partial(ChoiceProblem, condition, largest=LARGEST)
        return {
            "alike: 1 + rank error (share of users)": lambda e: (
                1.0
                + float(
                    choice.compute_probabilities(make_problem(epsilon=e), table.histogram)
                    @ condition.compute_errors(table.histogram, make_problem(epsilon=e).candidates)
                )
            )
        }

    def measure_pairs(table: Table) -> ErrorsByWay:
        errors_by_way = measure_pair(table)
        if not errors_by_way or table.pairs is None:
            return {}
        pairs, release = table.pairs, PerGroupParameters(1.0, num_groups=table.pairs.num_groups)

        def measure_uniform(epsilon: float) -> float:
            problem = _UniformPairs(release, epsilon, LARGEST)
            errors = private_pair.compute_errors(problem, pairs)
            return float(private_pair.compute_probabilities(problem, pairs) @ errors) / float(errors.min())

        return {"alike": measure_uniform, "as it is": errors_by_way["draw"]}

    def measure_ends(table: Table, knows_typical: bool) -> ErrorsByWay:
        values_table = table.values_table
        if values_table is None:
            return {}
        typical = float(f"{np.median(values_table.values.values):.0e}") if knows_typical else None
        users = float(f"{values_table.users:.0e}")

        def cost(problem_class: type[RangeProblem], epsilon: float) -> float:
            return _range_costs.compute_draw_cost(
                values_table, problem_class(1.0, epsilon, UNIT, FARTHEST, typical, users=users)
            )

        return {"alike": lambda e: cost(_UniformEnds, e), "as it is": lambda e: cost(RangeProblem, e)}

    print("\n*** Weights and margins: every private choice")
    for purpose, share, name in (
        (BoundPurpose.CAP, 0.0, "Bound of a mean, independent rows"),
        (BoundPurpose.SMOOTH, 0.0, "Smooth weights of a mean, independent rows"),
        (BoundPurpose.CAP, 0.2, "Bound of a mean of the table"),
        (BoundPurpose.SMOOTH, 0.2, "Smooth weights of a mean of the table"),
        (BoundPurpose.SUM, 0.0, "Bound of a count of rows"),
    ):
        print_errors(
            name, make_measure(PrivateParameters(1.0, purpose, user_share=share)), tables, FEW_EPSILONS
        )
    print_errors("T for all groups", measure_vectors, tables, FEW_EPSILONS)
    print_errors("Quantile of rows per user", measure_quantile, tables, FEW_EPSILONS)
    print_errors("Pair", measure_pairs, tables, FEW_EPSILONS)
    print_errors(
        "Range, typical value known",
        functools.partial(measure_ends, knows_typical=True),
        tables,
        FEW_EPSILONS,
        count_users_with_values,
    )
    print_errors(
        "Range, nothing known",
        functools.partial(measure_ends, knows_typical=False),
        tables,
        FEW_EPSILONS,
        count_users_with_values,
    )


def print_draws() -> None:
    """Print all private choices on all tables."""
    table_list, began = list(read_tables()), time.perf_counter()
    for table in table_list:
        groups = "" if table.pairs is None else f", {table.pairs.num_groups:,} groups"
        print(f"{table.name}: {table.histogram.num_users:,} users, {len(table.rows):,} rows{groups}")
    print_errors("Range", measure_range, table_list, users=count_users_with_values)
    print_errors("Pair, rows", measure_pair, table_list)
    print_errors(
        "Pair, sums in whole units", functools.partial(measure_pair, statistic=Statistic.SUM), table_list
    )
    print_errors("T, a count of rows", measure_count, table_list)
    print_errors("T, a sum of the values, a million at most", measure_total, table_list)
    print_errors("T, all groups together", measure_vector, table_list)
    print_errors("Bound of a mean of the table", measure_mean, table_list)
    print_weights_and_margins(table_list)
    print(f"{time.perf_counter() - began:.0f} s")


def main() -> None:
    """Print the draws, and the copies unless ``--draws`` is given."""
    parser = argparse.ArgumentParser(description="What choosing a bound privately costs.")
    parser.add_argument("--draws", action="store_true", help="no copies")
    arguments = parser.parse_args()
    print_draws()
    if arguments.draws:
        return
    print_rows_without_noise()
    for epsilon in (0.1, 0.01):
        print_fits(epsilon, PublicBins())
    print_fits(0.1, PublicBins(growth=1.2))
    print_fits(0.1, PublicBins(largest=1_000_000))
    print_gaussian()


if __name__ == "__main__":
    main()
