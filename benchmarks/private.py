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
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks import _range_costs
from benchmarks._private_errors import (
    FARTHEST,
    LARGEST,
    UNIT,
    ErrorsByWay,
    Table,
    measure_count,
    measure_draw,
    measure_mean,
    measure_pair,
    measure_range,
    measure_total,
    measure_vector,
    read_tables,
)
from dpcore import mean, total
from dpcore.common.noise_error import Measure
from dpcore.contributions import ContributionHistogram, FloatArray, IntArray
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from dpcore.per_group import private_pair
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import PrivatePairProblem
from dpcore.private_choice import choice, comparison
from dpcore.private_choice.choice import ChoiceProblem, SmallFirst
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

CHOICE_EPSILONS = (0.1, 0.3, 0.5, 2.0)
"""Epsilons of the choice."""


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
