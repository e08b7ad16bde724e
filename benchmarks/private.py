"""Private copies of the contribution histogram: how users and rows come out, and what choosing on a copy costs.

Run from the folder of the README: .venv/bin/python benchmarks/private.py
Noise is NumPy's, seeded: a simulation.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from dpcore import mean, total
from dpcore.common.noise_error import Measure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from dpcore.private_choice import regret
from dpcore.private_choice.bins import PublicBins
from dpcore.private_choice.consistency import Fit, consistent_users
from dpcore.private_choice.private_histogram import CopyNoise, PrivateCopyParameters

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
            counts, rows = bins.counts(histogram), histogram.num_rows
            middle = (bins.lower + bins.upper) / 2.0
            geometric, arithmetic = counts @ bins.representative / rows - 1.0, counts @ middle / rows - 1.0
            cells.append(f"{geometric:+7.2%} /{arithmetic:+7.2%}")
        print(f"  growth {growth:<4g} {bins.lower.size:3d} bins   " + "   ".join(cells))


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
            found = regret.simulate(questions(histogram), parameters, RUNS, seed=1, fit=fit)
            seconds = time.perf_counter() - began
            words = "   ".join(f"{one.median:8.3%} /{one.high:8.3%}" for one in found)
            print(
                f"    {fit.name:9s} users {np.mean(users) - 1.0:+7.2%}  rows {np.mean(rows) - 1.0:+9.1%} "
                f"(rmse {np.sqrt(np.mean((rows - 1.0) ** 2)):9.1%})  {words}  {seconds:.2f} s"
            )


def moments(
    histogram: ContributionHistogram, parameters: PrivateCopyParameters, fit: Fit
) -> tuple[np.ndarray, np.ndarray]:
    """Users and rows of copies, as shares of the true numbers."""
    generator, counts = np.random.default_rng(2), parameters.bins.counts(histogram)
    noise = regret.simulated_noise(parameters.noise, parameters.scale, (RUNS, counts.size), generator)
    shape = parameters.noise_shape
    copies = [consistent_users(counts + row, shape, parameters.bins.lower, fit) for row in noise]
    rows = np.array([copy @ parameters.bins.representative for copy in copies])
    return np.sum(copies, axis=1) / histogram.num_users, rows / histogram.num_rows


def questions(histogram: ContributionHistogram) -> list[regret.Question]:
    """Mean and Sum at epsilon = 1, values in [0, 1] of worst-case variance."""
    problem = mean.MeanProblem(histogram, epsilon=1.0, value_bound=1.0, value_variance=0.25)
    counted = total.TotalProblem(Amounts.from_histogram(histogram), 1.0, measure=Measure.ABSOLUTE)
    return [
        regret.smooth_question(problem),
        regret.cap_question(problem),
        regret.total_question(counted, histogram),
        regret.total_question(replace(counted, epsilon=0.01), histogram),
    ]


def gaussian() -> None:
    """Gaussian noise beside Laplace noise, default bins."""
    print(
        "\nThe other noise, epsilon_choice = 0.1: regret of smooth weights, cap, sum at eps 1 and 0.01: median / 95 %"
    )
    for key in SAMPLES:
        histogram = samples.load(key).histogram
        for noise, delta in ((CopyNoise.LAPLACE, None), (CopyNoise.GAUSSIAN, 1e-6)):
            parameters = PrivateCopyParameters(0.1, noise=noise, delta=delta)
            found = regret.simulate(questions(histogram), parameters, RUNS, seed=1)
            words = "   ".join(f"{one.median:8.3%} /{one.high:8.3%}" for one in found)
            print(f"  {key:36s} {noise.value:18s} scale {parameters.scale:6.2f}  {words}")


def main() -> None:
    """All tables."""
    rows_without_noise()
    for epsilon in (0.1, 0.01):
        fits(epsilon, PublicBins())
    fits(0.1, PublicBins(growth=1.2))
    fits(0.1, PublicBins(largest=1_000_000))
    gaussian()


if __name__ == "__main__":
    main()
