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
    CopyNoise,
    NoiseShape,
    PrivateCopyParameters,
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


def rows_without_noise() -> None:
    """What binning alone does to the number of rows, by what represents a bin."""
    print("Rows of the binned histogram against the true number, no noise: geometric / arithmetic middle")
    for growth in (1.1, 1.2, 1.3, 1.5):
        bins = PublicBins(growth=growth)
        cells = []
        for key in SAMPLES:
            histogram = samples.load(key).histogram
            counts, rows = bins.count_users(histogram), histogram.num_rows
            middle = (bins.lower + bins.upper) / 2.0
            geometric, arithmetic = counts @ bins.representative / rows - 1.0, counts @ middle / rows - 1.0
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
    """Whole, non-negative users per bin; releases take the last way."""
    if fit is Fit.EXTENDED:
        return fit_users(noisy, noise, lower)
    counts = np.asarray(noisy, dtype=np.float64)
    if fit is Fit.CLIP:
        return count_from_tails(sum_tails(np.maximum(counts, 0.0)))
    if fit is Fit.SIMPLEX:
        return count_from_tails(sum_tails(on_simplex(counts)))
    tails = sum_tails(counts)
    if fit is Fit.TRUNCATED:
        stands_out = np.flatnonzero(tails > compute_phantom_limits(counts.size, noise))
        tails[int(stands_out[-1]) + 1 if stands_out.size else 0 :] = 0.0
    return count_from_tails(fit_falling_tails(tails))


def on_simplex(counts: FloatArray) -> FloatArray:
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


def fits(epsilon: float, bins: PublicBins) -> None:
    """The variants of post-processing."""
    parameters = PrivateCopyParameters(epsilon, bins)
    print(f"\nepsilon_choice = {epsilon:g}, {bins.sentence}")
    print(
        "  users, rows: mean error; rows: root mean squared error; regret, median / 95 %: smooth weights, cap, "
        "sum at epsilon = 1, sum at epsilon = 0.01"
    )
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        print(f"  {key} ({histogram.num_users:,} users)")
        for fit in Fit:
            users, rows = moments(histogram, parameters, fit)
            began = time.perf_counter()
            words = regret_texts(histogram, parameters, fit)
            seconds = time.perf_counter() - began
            print(
                f"    {fit.name:9s} users {np.mean(users) - 1.0:+7.2%}  rows {np.mean(rows) - 1.0:+9.1%} "
                f"(rmse {np.sqrt(np.mean((rows - 1.0) ** 2)):9.1%})  {words}  {seconds:.2f} s"
            )


def moments(
    histogram: ContributionHistogram, parameters: PrivateCopyParameters, fit: Fit
) -> tuple[np.ndarray, np.ndarray]:
    """Users and rows of copies, as shares of the true numbers."""
    generator, counts = np.random.default_rng(2), parameters.bins.count_users(histogram)
    noise = comparison.simulate_noise(parameters.noise, parameters.scale, (RUNS, counts.size), generator)
    shape = parameters.noise_shape
    copies = [fit_users_by(counts + row, shape, parameters.bins.lower, fit) for row in noise]
    rows = np.array([copy @ parameters.bins.representative for copy in copies])
    return np.sum(copies, axis=1) / histogram.num_users, rows / histogram.num_rows


def regret_texts(
    histogram: ContributionHistogram, parameters: PrivateCopyParameters, fit: Fit = Fit.EXTENDED
) -> str:
    """Median and 95th percentile of regret: smooth weights, cap, sum at epsilon = 1 and 0.01.

    Values lie in [0, 1], of worst-case variance. The copies are the same for all, by their seed.
    """
    problem = mean.MeanProblem(histogram, epsilon=1.0, value_bound=1.0, value_variance=0.25)
    counted = total.TotalProblem(Amounts.from_histogram(histogram), 1.0, measure=Measure.ABSOLUTE)
    little = replace(counted, epsilon=0.01)

    def counts(question: total.TotalProblem, copy: ContributionHistogram) -> total.TotalProblem:
        return replace(question, amounts=Amounts.from_histogram(copy))

    questions: list[tuple[Callable[[ContributionHistogram], float], Callable[[np.ndarray], np.ndarray]]] = [
        (
            lambda copy: mean.best_smooth(replace(problem, histogram=copy)).threshold,
            lambda bounds: np.sqrt(mean.smooth_variance(problem, bounds)),
        ),
        (
            lambda copy: float(mean.best_cap(replace(problem, histogram=copy)).max_contributions),
            lambda bounds: np.sqrt(mean.capped_variance(problem, bounds)),
        ),
        (
            lambda copy: total.optimal_bound(counts(counted, copy)),
            lambda bounds: total.measure_errors(counted, bounds),
        ),
        (
            lambda copy: total.optimal_bound(counts(little, copy)),
            lambda bounds: total.measure_errors(little, bounds),
        ),
    ]
    texts = []
    for choose, errors in questions:
        bounds = comparison.simulate_bounds(
            histogram, choose, parameters, RUNS, 1, functools.partial(fit_users_by, fit=fit)
        )
        best = float(errors(np.array([choose(histogram)]))[0])
        regrets = np.sort(np.nan_to_num(errors(bounds) / best - 1.0, nan=np.inf))
        texts.append(
            "{:8.3%} /{:8.3%}".format(*(comparison.find_rank_value(regrets, q) for q in (0.5, 0.95)))
        )
    return "   ".join(texts)


def gaussian() -> None:
    """Gaussian noise beside Laplace noise, default bins."""
    print(
        "\nThe other noise, epsilon_choice = 0.1: regret of smooth weights, cap, sum at eps 1 and 0.01: median / 95 %"
    )
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        for noise, delta in ((CopyNoise.LAPLACE, None), (CopyNoise.GAUSSIAN, 1e-6)):
            parameters = PrivateCopyParameters(0.1, noise=noise, delta=delta)
            words = regret_texts(histogram, parameters)
            print(f"  {key:36s} {noise.value:18s} scale {parameters.scale:6.2f}  {words}")


# --- Draws -----------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parent.parent
CHOICES = (0.1, 0.3, 0.5, 2.0)
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
        """Rows per user."""
        return ContributionHistogram.from_counts(self.rows["user"].value_counts().to_numpy())

    @functools.cached_property
    def pairs(self) -> UserGroupPairs | None:
        """Rows by user and group; None without groups."""
        if "group" not in self.rows:
            return None
        groups, names = pd.factorize(self.rows["group"])
        return UserGroupPairs.from_arrays(pd.factorize(self.rows["user"])[0], groups, len(names))

    @functools.cached_property
    def of_sums(self) -> UserGroupPairs | None:
        """Values of at least 0 added up by user and group; None without both."""
        if not {"group", "value"} <= set(self.rows) or float(self.rows["value"].min()) < 0.0:
            return None
        groups, names = pd.factorize(self.rows["group"])
        users, amounts = (
            pd.factorize(self.rows["user"])[0],
            np.minimum(self.rows["value"].to_numpy(float), LARGEST),
        )
        return UserGroupPairs.from_arrays(users, groups, len(names), sums=amounts)

    @functools.cached_property
    def of_values(self) -> _range_costs.Table | None:
        """The values, of some users where rows are many; None without any."""
        if "value" not in self.rows:
            return None
        rows = self.rows
        if len(rows) > MOST_ROWS:
            sizes = rows["user"].value_counts(sort=False)
            users = np.random.default_rng(1).permutation(sizes.index.to_numpy())
            some = users[np.cumsum(sizes.loc[users].to_numpy()) <= MOST_ROWS]
            rows = rows[rows["user"].isin(set(some))]
        codes = pd.factorize(rows["user"])[0]
        order = np.argsort(codes, kind="stable")
        return _range_costs.Table(Values(codes[order], rows["value"].to_numpy(float)[order]), 1.0)


def tables() -> Iterator[Table]:
    """The samples, one that is made up, and what lies in the folder of the environment."""
    shop = pd.read_csv(ROOT / "sample_data/shop_events.csv")
    yield Table("shop_events", shop.set_axis(["user", "group", "value"], axis=1))
    ratings = pd.read_csv(ROOT / "sample_data/item_ratings.csv")
    yield Table("item_ratings", ratings.set_axis(["user", "group", "value"], axis=1))
    tickets = pd.read_csv(ROOT / "sample_data/support_tickets.csv")
    named = {"customer": "user", "hours_waited": "value", "channel": "group"}
    yield Table("support_tickets", tickets.rename(columns=named)[list(named.values())])
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
        bought = retail.groupby(["user", "InvoiceNo", "Country"], as_index=False)["value"].sum()
        yield Table("retail invoices, countries", bought.rename(columns={"Country": "group"}))
    if (path := folder / "CDNOW_master.txt").exists():
        cdnow = pd.read_csv(path, sep=r"\s+", header=None, names=["user", "date", "number", "value"])
        cdnow = cdnow.assign(
            value=pd.to_numeric(cdnow["value"], errors="coerce")
        ).dropna()  # A line of names.
        yield Table("CDNOW, months", cdnow.assign(group=cdnow["date"].astype(str).str[:6]))
    if (path := folder / "ml1m_user_movie_rating.csv").exists():
        films = pd.read_csv(path)
        yield Table("MovieLens 1M, movies", films.set_axis(["user", "group", "value"], axis=1))


Ways = dict[str, Callable[[float], float]]
"""Name of a way to its mean error over the least one, at an epsilon of the choice."""


def of_range(table: Table) -> Ways:
    """A range, where a typical value in one digit is known, where L is known to be 0, and where nothing is."""
    of = table.of_values
    if of is None:
        return {}
    users, middle = float(f"{of.users:.0e}"), float(f"{np.median(of.values.values):.0e}")

    def asked(epsilon: float, **known: float) -> RangeProblem:
        return RangeProblem(1.0, epsilon, UNIT, FARTHEST, users=users, **known)  # type: ignore[arg-type]

    found: Ways = {
        "draw, a typical value known": lambda e: _range_costs.cost_draw(of, asked(e, centre=middle)),
        "draw, nothing known": lambda e: _range_costs.cost_draw(of, asked(e)),
        "DP quantiles 0.005 and 0.995": lambda e: _range_costs.cost_quantiles(of, asked(e, centre=middle)),
        "log bins (ApproxBounds), simulated": lambda e: _range_costs.cost_bins(of, asked(e, centre=middle)),
        "a guess, twice as wide": lambda e: _range_costs.cost_guess(of, 2.0),
        "a guess, ten times as wide": lambda e: _range_costs.cost_guess(of, 10.0),
    }
    if float(of.values.values.min()) >= 0.0 and middle < 500.0:
        found["draw, L = 0 known"] = lambda e: _range_costs.cost_draw(of, asked(e, lower=0.0))
    return found


def costs(condition: Condition, histogram: ContributionHistogram) -> Callable[[np.ndarray], np.ndarray]:
    """Errors of bounds over the least one."""
    least = float(condition.errors(histogram, np.array([condition.best_bound(histogram)]))[0])
    return lambda bounds: np.maximum(condition.errors(histogram, bounds) / least, 1.0)


def drawn(
    histogram: ContributionHistogram,
    of: Condition,
    aims: Condition,
    prior: Prior | SmallFirst | None,
    epsilon: float,
    largest: int = LARGEST,
    margin: bool = True,
) -> float:
    """Mean of the errors of ``of`` over draws that aim at ``aims``; without ``margin`` just at that."""
    problem = ChoiceProblem(aims, epsilon, largest, prior=prior)
    law = choice.compute_probabilities(problem, histogram)
    if not margin:
        far = aims.distances(histogram, problem.candidates)
        law = np.exp(choice.log_softmax(choice.compute_logits(problem, far, np.array([epsilon]))))[0]
    return float(law @ costs(of, histogram)(problem.candidates))


def binned(histogram: ContributionHistogram, of: Condition, epsilon: float, largest: int = LARGEST) -> float:
    """The same of the highest of doubling bins whose noisy count passes a threshold, exactly."""
    edges = 2.0 ** np.arange(math.ceil(math.log2(largest)) + 1)
    held = np.histogram(histogram.sizes, np.r_[0.0, edges], weights=histogram.users)[0]
    one = _range_costs.SUCCESS ** (1.0 / edges.size)
    margin = math.log(1.0 / (2.0 * -math.expm1(math.log(one)))) - epsilon * held
    passes = np.where(margin > 0.0, 0.5 * np.exp(-np.abs(margin)), 1.0 - 0.5 * np.exp(-np.abs(margin)))
    beyond = np.r_[np.cumprod((1.0 - passes)[::-1])[::-1][1:], 1.0]
    errors = costs(of, histogram)(np.minimum(edges, largest))
    return float(passes * beyond @ errors + np.prod(1.0 - passes) * errors[-1])


def guesses(histogram: ContributionHistogram, of: Condition) -> Ways:
    """Bounds from knowledge."""
    best, error = of.best_bound(histogram), costs(of, histogram)
    return {
        "a guess, twice the best": lambda e: float(error(np.array([2.0 * best]))[0]),
        "a guess, ten times the best": lambda e: float(error(np.array([10.0 * best]))[0]),
        "a guess, a tenth of the best": lambda e: float(error(np.array([max(best / 10.0, 1.0)]))[0]),
    }


def of_bound(
    histogram: ContributionHistogram, of: Condition, prior: Prior | SmallFirst | None, largest: int = LARGEST
) -> Ways:
    """One bound on rows: the draw, a DP quantile of the rows per user, bins, and guesses."""
    return {
        "draw": lambda e: drawn(histogram, of, of, prior, e, largest),
        "DP quantile 0.99": lambda e: drawn(histogram, of, SizeQuantile(0.99), None, e, largest),
        "log bins (ApproxBounds)": lambda e: binned(histogram, of, e, largest),
        **guesses(histogram, of),
    }


def of_sum(table: Table) -> Ways:
    """The bound of a count of rows, T."""
    asked = PrivateParameters(1.0, BoundPurpose.SUM)
    return of_bound(table.histogram, asked.condition, asked.choice.prior)


def of_total(table: Table) -> Ways:
    """The bound of the sum of a column, in whole units, of what a user adds in all; with a maximum of a million."""
    if "value" not in table.rows or float(table.rows["value"].min()) < 0.0:
        return {}
    totals = np.ceil(table.rows.groupby("user")["value"].sum().to_numpy()).astype(np.int64)
    histogram = ContributionHistogram.from_counts(totals[totals > 0])
    return of_bound(histogram, RankedSum(1.0), SmallFirst(), 10**6)


def of_mean(table: Table) -> Ways:
    """The bound of the mean of the table, with a fifth of the variance between users."""
    asked = PrivateParameters(1.0, BoundPurpose.CAP, user_share=0.2)
    of, independent = asked.condition, replace(asked, user_share=0.0)
    found = of_bound(table.histogram, of, asked.choice.prior)
    found["a draw that takes rows as independent"] = lambda e: drawn(
        table.histogram, of, independent.condition, independent.choice.prior, e
    )
    return found


def of_vector(table: Table) -> Ways:
    """T on all groups of a user together: the sum of the groups' |bias| and mean noise."""
    if table.pairs is None:
        return {}
    of = RankedSum(float(table.pairs.num_groups))
    if of.best_bound(table.histogram) <= 0.0:  # Nothing is best: no bound to be near.
        return {}
    return of_bound(table.histogram, of, SmallFirst())


def of_pair(table: Table, statistic: Statistic = Statistic.ROWS) -> Ways:
    """L0 and L-infinity, over the best of all pairs; of a sum, amounts are whole units."""
    pairs = table.of_sums if statistic is Statistic.SUM else table.pairs
    if pairs is None:
        return {}
    amounts = np.minimum(pairs.rows if pairs.sums is None else np.rint(pairs.sums), LARGEST)
    k = np.repeat(pairs.groups_per_user, pairs.groups_per_user)
    most = np.unique(np.quantile(amounts, np.linspace(0.0, 1.0, 200), method="higher"))
    of_k = np.array([np.bincount(k, np.minimum(amounts, c)) for c in most])
    groups = np.arange(1, of_k.shape[1])
    share = np.minimum(1.0, groups[:, None] / np.maximum(np.arange(of_k.shape[1]), 1))
    release = PerGroupParameters(1.0, statistic, num_groups=pairs.num_groups)
    every = float(amounts.sum()) - of_k @ share.T + pairs.num_groups * most[:, None] * groups
    least = float(every.min())

    def at(bound: float, amount: float) -> float:
        kept = np.minimum(1.0, bound / pairs.groups_per_user) * np.add.reduceat(
            np.minimum(amounts, amount), pairs.user_starts
        )
        return (float(amounts.sum()) - float(kept.sum()) + pairs.num_groups * bound * amount) / least

    def draw(epsilon: float) -> float:
        problem = PrivatePairProblem(release, epsilon, LARGEST)
        return (
            float(
                private_pair.compute_probabilities(problem, pairs)
                @ private_pair.compute_errors(problem, pairs)
            )
            / least
        )

    def quantiles(share: float) -> float:
        return at(float(np.quantile(pairs.groups_per_user, share)), float(np.quantile(amounts, share)))

    return {
        "draw": draw,
        "quantiles 0.9 of both, in the clear": lambda e: quantiles(0.9),
        "quantiles 0.99 of both, in the clear": lambda e: quantiles(0.99),
        "a guess, (1, 1)": lambda e: at(1, 1),
        "a guess, (5, 10)": lambda e: at(5, 10),
        "nothing released": lambda e: float(amounts.sum()) / least,
    }


def written(
    name: str,
    of: Callable[[Table], Ways],
    held: list[Table],
    epsilons: Sequence[float] = CHOICES,
    users: Callable[[Table], float] = lambda table: table.histogram.num_users,
) -> None:
    """Geometric mean and worst of every way, over all tables and those of at least 1,000 users."""
    print(f"\n{name}: mean error over the least one; geometric mean, worst table")
    ways = [(table, of(table)) for table in held]
    names = list(dict.fromkeys(way for _, found in ways for way in found))
    for title, least in (("all", 0), ("1,000 users and more", 1_000)):
        some = [(table, found) for table, found in ways if found and users(table) >= least]
        if not some or (least and len(some) == len([1 for _, found in ways if found])):
            continue
        heads = "".join(f"{'epsilon_c ' + format(e, 'g'):>38}" for e in epsilons)
        print(f"  {title}: {len(some)} tables{heads}")
        for way in names:
            cells = []
            for epsilon in epsilons:
                errors = [(found[way](epsilon), table.name) for table, found in some if way in found]
                middle = math.exp(np.mean([math.log(error) for error, _ in errors]))
                worst, where = max(errors)
                cells.append(f"{middle:11.4g} {worst:11.4g} {where[:13]:13s}")
            print(f"    {way:38s}" + "".join(cells), flush=True)


class _AlikePairs(PrivatePairProblem):
    log_prior = property(lambda self: np.zeros(self.candidates[0].size))  # type: ignore[assignment]


class _AlikeEnds(RangeProblem):
    centre_log_prior = property(lambda self: np.zeros(self.centres.size))  # type: ignore[assignment]
    target = property(lambda self: 1.0 / self.epsilon_release)  # type: ignore[assignment]

    def log_prior(self, anchor: float) -> np.ndarray:
        return np.zeros(self.list_widths(anchor).size)


FEW = (0.1, 0.5)


def with_values(table: Table) -> float:
    """Users whose values are taken."""
    return 0.0 if table.of_values is None else table.of_values.users


def weights_and_margins(held: list[Table]) -> None:
    """Every private choice with all candidates alike and no margin, as it is, and with other weights."""

    def of_choice(asked: PrivateParameters, of: Condition | None = None) -> Callable[[Table], Ways]:
        def ways(table: Table) -> Ways:
            condition, h = of or asked.condition, table.histogram
            if condition.best_bound(h) <= 0.0:
                return {}
            now = asked.choice.prior
            found: Ways = {"alike": lambda e: drawn(h, condition, condition, None, e, margin=False)}
            if now is not None:
                found["as it is"] = lambda e: drawn(h, condition, condition, now, e)
            if isinstance(condition, RankedSum):
                price = condition.price
                found["T^-1.5, no margin"] = lambda e: drawn(h, condition, condition, now, e, margin=False)
                found["T^-2, margin 2 / epsilon_c"] = lambda e: drawn(
                    h, condition, RankedSum(price, 2.0 / e), SmallFirst(2.0), e, margin=False
                )
            return found

        return ways

    def of_vectors(table: Table) -> Ways:
        if table.pairs is None:
            return {}
        return of_choice(PrivateParameters(1.0, BoundPurpose.SUM), RankedSum(float(table.pairs.num_groups)))(
            table
        )

    def of_quantile(table: Table) -> Ways:
        of = SizeQuantile(0.95)
        problem = functools.partial(ChoiceProblem, of, largest=LARGEST)
        return {
            "alike: 1 + rank error (share of users)": lambda e: (
                1.0
                + float(
                    choice.compute_probabilities(problem(epsilon=e), table.histogram)
                    @ of.errors(table.histogram, problem(epsilon=e).candidates)
                )
            )
        }

    def of_pairs(table: Table) -> Ways:
        found = of_pair(table)
        if not found or table.pairs is None:
            return {}
        pairs, release = table.pairs, PerGroupParameters(1.0, num_groups=table.pairs.num_groups)

        def alike(epsilon: float) -> float:
            problem = _AlikePairs(release, epsilon, LARGEST)
            errors = private_pair.compute_errors(problem, pairs)
            return float(private_pair.compute_probabilities(problem, pairs) @ errors) / float(errors.min())

        return {"alike": alike, "as it is": found["draw"]}

    def of_ends(table: Table, known: bool) -> Ways:
        of = table.of_values
        if of is None:
            return {}
        middle = float(f"{np.median(of.values.values):.0e}") if known else None
        users = float(f"{of.users:.0e}")

        def cost(kind: type[RangeProblem], epsilon: float) -> float:
            return _range_costs.cost_draw(of, kind(1.0, epsilon, UNIT, FARTHEST, middle, users=users))

        return {"alike": lambda e: cost(_AlikeEnds, e), "as it is": lambda e: cost(RangeProblem, e)}

    print("\n*** Weights and margins: every private choice")
    for wanted, share, name in (
        (BoundPurpose.CAP, 0.0, "Bound of a mean, independent rows"),
        (BoundPurpose.SMOOTH, 0.0, "Smooth weights of a mean, independent rows"),
        (BoundPurpose.CAP, 0.2, "Bound of a mean of the table"),
        (BoundPurpose.SMOOTH, 0.2, "Smooth weights of a mean of the table"),
        (BoundPurpose.SUM, 0.0, "Bound of a count of rows"),
    ):
        written(name, of_choice(PrivateParameters(1.0, wanted, user_share=share)), held, FEW)
    written("T for all groups", of_vectors, held, FEW)
    written("Quantile of rows per user", of_quantile, held, FEW)
    written("Pair", of_pairs, held, FEW)
    written("Range, typical value known", functools.partial(of_ends, known=True), held, FEW, with_values)
    written("Range, nothing known", functools.partial(of_ends, known=False), held, FEW, with_values)


def draws() -> None:
    """All private choices on all tables."""
    held, began = list(tables()), time.perf_counter()
    for table in held:
        groups = "" if table.pairs is None else f", {table.pairs.num_groups:,} groups"
        print(f"{table.name}: {table.histogram.num_users:,} users, {len(table.rows):,} rows{groups}")
    written("Range", of_range, held, users=with_values)
    written("Pair, rows", of_pair, held)
    written("Pair, sums in whole units", functools.partial(of_pair, statistic=Statistic.SUM), held)
    written("T, a count of rows", of_sum, held)
    written("T, a sum of the values, a million at most", of_total, held)
    written("T, all groups together", of_vector, held)
    written("Bound of a mean of the table", of_mean, held)
    weights_and_margins(held)
    print(f"{time.perf_counter() - began:.0f} s")


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description="What choosing a bound privately costs.")
    parser.add_argument("--draws", action="store_true", help="no copies")
    asked = parser.parse_args()
    draws()
    if asked.draws:
        return
    rows_without_noise()
    for epsilon in (0.1, 0.01):
        fits(epsilon, PublicBins())
    fits(0.1, PublicBins(growth=1.2))
    fits(0.1, PublicBins(largest=1_000_000))
    gaussian()


if __name__ == "__main__":
    main()
