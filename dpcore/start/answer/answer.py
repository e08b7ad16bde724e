"""The first trade-off: its solution, its plot, and the answer made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore import total
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import BIAS, NOISE, STYLES, Answer, Number, build_error_parts
from dpcore.answer.axes import CURVE_POINTS, sample_users
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise
from dpcore.answer.plot import Axis, Curve, Item, Mark, Plot, Style, share_axis
from dpcore.common import wording
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.parameters import StartParameters
from dpcore.start.presets import UserPreset

CELLS = 12
"""Counts in the table that is released, such as rows per month over a year. With a single count the best bound at
epsilon = 1 is the heaviest user's (rank 1 / epsilon), and there would be no trade-off to see."""
AXIS_FACTOR = 5
"""How far beyond the heaviest user the bounds go, as a factor: there a bound cuts nobody, and noise alone grows."""


@dataclass(frozen=True)
class Tradeoff:
    """A table of `CELLS` counts released at once, with at most T rows of each user counted over the whole table.

    One user changes the table by at most T in all, so each count gets Laplace noise of scale T / epsilon. Every
    count is assumed to lose the same share of its rows. Then `CELLS` times one count and its noise is the sum
    of all rows released at epsilon / `CELLS` (`dpcore.total`), and both have the same relative error. If counts
    lose different shares, their mean error is larger, since it is convex in the loss, and at most bias and mean
    noise together.

    Attributes:
        histogram: How many rows users have.
        problem: The question.
        errors: Over the bounds of the curves; ``errors.bias`` is what is thrown away, in rows of all counts together.
        best: The bound with the smallest expected error.
        near_optimal: Smallest and largest bound within 5 % of the best.
        single_count_bound: The best bound of one count of all rows with all of epsilon to itself, as on the page of
            sums and counts.
    """

    histogram: ContributionHistogram
    problem: total.TotalProblem
    errors: total.TotalErrors
    best: total.TotalChoice
    near_optimal: tuple[float, float]
    single_count_bound: float

    def evaluate(self, bound: float) -> total.TotalErrors:
        """Evaluate the errors at one bound."""
        return total.errors(self.problem, bound)

    def evaluate_error(self, bound: float) -> float:
        """Evaluate the expected error of a count at one bound, as a share of it."""
        return float(self.evaluate(bound).absolute_error) / self.num_rows

    @property
    def num_rows(self) -> float:
        """Return the number of all rows."""
        return float(self.histogram.num_rows)


def build_problem(histogram: ContributionHistogram, epsilon: float) -> total.TotalProblem:
    """Build the problem at an epsilon: all cells of the table together are one sum at epsilon / `CELLS`."""
    return total.TotalProblem(
        Amounts.from_histogram(histogram), epsilon / CELLS, measure=Measure.ABSOLUTE, is_integer=True
    )


NOT_COMPARED = ("bound",)


def against_epsilon(dataset: Dataset, parameters: StartParameters) -> BoundComparison:
    """Return the sweet spot and its error at any epsilon, of the data in use or of the simulated users."""
    in_use = parameters.users is UserPreset.IN_USE
    histogram = presets.choose_dataset(dataset, parameters.users).histogram
    rows, problem = float(histogram.num_rows), build_problem(histogram, 1.0)

    def problem_at(epsilon: float) -> total.TotalProblem:
        return replace(problem, epsilon=epsilon / CELLS)

    def error(epsilon: float, bounds: FloatArray) -> FloatArray:
        return np.asarray(total.measure_errors(problem_at(epsilon), bounds) / rows)

    def best(epsilon: float) -> tuple[float, float]:
        bound = total.optimal_bound(problem_at(epsilon))
        return bound, float(error(epsilon, np.array(bound)))

    return BoundComparison(
        "Sweet spot (rows per user)",
        f"Error of each of {CELLS} private counts (share of it)",
        best,
        error,
        histogram.sizes,
        histogram.users,
        provenance=None if in_use else Disclosure.PUBLIC,
    )


def solve(dataset: Dataset, parameters: StartParameters) -> Tradeoff:
    """Compute bias, noise and error over the bound, and the best bound, as of one sum (Amin et al. 2019, section 3)."""
    histogram = presets.choose_dataset(dataset, parameters.users).histogram
    problem = build_problem(histogram, parameters.epsilon)
    return Tradeoff(
        histogram=histogram,
        problem=problem,
        errors=total.errors(problem, log_spaced(*choose_axis_limits(histogram), CURVE_POINTS)),
        best=total.best_bound(problem),
        near_optimal=total.find_near_optimal_bounds(problem),
        single_count_bound=total.optimal_bound(replace(problem, epsilon=parameters.epsilon)),
    )


def choose_axis_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """Choose the ends of the bound's axis, which no setting moves."""
    return 1.0, float(min(histogram.max_size * AXIS_FACTOR, MAX_SIZE))


MAX_ERRORS = 5.0
"""Ends of the axis of simulated counts, in best errors: at the best bound hardly one of them lies beyond."""
HEIGHT = 330
"""In pixels: with the questions above it and the users below it, it is seen whole on a screen of 1280 x 800."""


def plot_tradeoff(solution: Tradeoff, bound: int | None, disclosure: Provenance) -> Plot:
    """Plot bias, noise and error over the bound, with the best one and the bound that is set."""
    errors, share, best = solution.errors, 1.0 / solution.num_rows, solution.best
    histogram, smallest_error = solution.histogram, float(errors.absolute_error.min()) / solution.num_rows
    columns = {
        "bound": errors.bounds,
        "bias": errors.bias * share,
        "mean_noise": errors.noise * share,
        "expected_error": errors.absolute_error * share,
    }
    bounds, bias, noise, error = columns.values()
    parts = {BIAS: bias, NOISE: noise}
    items: list[Item] = [
        Curve("Expected error", bounds, error, Style.TOTAL),
        *(Curve(name, bounds, values, STYLES[name]) for name, values in parts.items()),
    ]
    if best.max_total > 0:
        items.append(Mark("Sweet spot", best.max_total, best.absolute_error * share, Style.SMOOTH, "star"))
    if bound is not None:
        items.append(Mark("Your own bound", bound, solution.evaluate_error(bound), Style.ENTERED, "square"))
    noise_draws = draw_unit_noise(solution.problem.mechanism)
    handle = Handle(
        "Bound",
        bounds,
        error,
        bound or best.max_total or 1.0,
        "bound",
        is_integer=True,
        parts=parts,
        users=(sample_users(histogram.sizes, histogram.users, "rows"),),
        dots=Dots(
            bias, noise, noise_draws, Spread.MEAN, MAX_ERRORS * smallest_error, "%", unit_name="counts"
        ),
        best_value=best.max_total or None,
    )
    return Plot(
        "start-tradeoff",
        "What a bound throws away, and the noise it needs",
        "As the bound grows, fewer rows are thrown away and more noise is needed; the error is smallest in between.",
        Axis("bound", "rows per user", choose_axis_limits(solution.histogram), number_format=",.3~r"),
        share_axis("error of a count", (0.0, 1.0), unit="share of it", number_format=".2~%"),
        items,
        disclosure,
        columns,
        is_main=True,
        height=HEIGHT,
        handle=handle,
    )


ASSUMPTION = (
    f"A table of {CELLS} counts, such as rows per month, is released at once with Laplace noise of scale bound/ε in "
    "each, and every count is taken to lose the same share of its rows; neighbours add or remove one user (Amin et al. "
    "2019, section 3)"
)


def build_answer(dataset: Dataset, parameters: StartParameters, solution: Tradeoff | None = None) -> Answer:
    """Find the best bound for a table of counts, and the effect of the bound that is set.

    Args:
        dataset: How many rows users have; invented users stand in for them where the question names some.
        parameters: The question; without a bound nothing is said or drawn of one.
        solution: What `find` found for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `Tradeoff`. Plots are computed when they are asked for.

    Source: Amin et al. 2019, section 3; the exact error as in `dpcore.total.errors`.
    """
    solution, bound = solve(dataset, parameters) if solution is None else solution, parameters.bound
    disclosure = presets.choose_dataset(dataset, parameters.users).provenance
    best_bound, error_share = solution.best.max_total, solution.best.absolute_error / solution.num_rows
    is_useful = best_bound > 0
    low, high = (wording.number(bound_value) for bound_value in solution.near_optimal)
    rows = wording.counted(best_bound, "row")
    return Answer(
        headline=f"Keep at most {rows} of each user."
        if is_useful
        else "With so few users and so small an ε, every bound gives more noise than count.",
        detail=" ".join(
            filter(
                None,
                (
                    describe_release(parameters.epsilon),
                    describe_single_count(solution),
                    "" if bound is None else describe_bound(solution, bound),
                ),
            )
        ),
        numbers=(
            Number(
                "Sweet spot",
                rows,
                "per user",
                value=best_bound,
                unit="rows per user",
                key="max_contributions",
            ),
            Number(
                "Error",
                wording.percent(error_share),
                "of a count",
                value=error_share,
                unit="share of a count",
            ),
        )
        if is_useful
        else (),
        assumptions=(ASSUMPTION,),
        disclosure=disclosure,
        near_optimal=f"{low} to {high} rows, within 5{wording.PERCENT}." if is_useful and low != high else "",
        parameters=parameters,
        solution=solution,
        plots={"start-tradeoff": lambda: plot_tradeoff(solution, bound, disclosure)},
        error_parts=build_error_parts(
            {BIAS: solution.best.bias / solution.num_rows, NOISE: solution.best.noise / solution.num_rows},
            wording.percent,
        )
        if is_useful
        else (),
    )


def describe_release(epsilon: float) -> str:
    """Describe the release in the picture."""
    entered_bound = wording.entered(epsilon)
    return f"**Released** with ε = {entered_bound}: {CELLS} counts."


def describe_single_count(solution: Tradeoff) -> str:
    """Describe the best bound of a single count; empty if it is the same."""
    if solution.single_count_bound in (0.0, solution.best.max_total):
        return ""
    return f"A single count is best at {wording.counted(solution.single_count_bound, 'row')}."


def describe_bound(solution: Tradeoff, bound: int) -> str:
    """Describe the effect of the bound that is set."""
    errors_at_bound, rows = solution.evaluate(bound), solution.num_rows
    return (
        f"With **{wording.counted(bound, 'row')}** a count is off by "
        f"**{wording.percent(solution.evaluate_error(bound))}**: "
        f"bias {wording.percent(float(errors_at_bound.bias) / rows)}, noise "
        f"{wording.percent(float(errors_at_bound.noise) / rows)}."
    )
