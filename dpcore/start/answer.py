"""The first trade-off: its solution, its plot, and the answer made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore import total
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import BIAS, NOISE, STYLE_BY_PART, Answer, Number, RelativeError, build_error_parts
from dpcore.answer.axes import NUM_CURVE_POINTS, build_user_bars
from dpcore.answer.handle import Dots, Handle, Spread, draw_unit_noise
from dpcore.answer.plot import Axis, Curve, Item, Mark, Plot, Style
from dpcore.common.noise_error import Measure
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.wording import format_count, format_entered, format_percent
from dpcore.contributions import MAX_SIZE, ContributionHistogram, FloatArray, build_log_grid
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Dataset
from dpcore.start import parameters as start_parameters
from dpcore.start.parameters import StartParameters, UserPreset

AXIS_END_OVER_MAX_SIZE = 5
"""How far beyond the heaviest user the bounds go, as a factor: there a bound cuts nobody, and noise alone grows."""


@dataclass(frozen=True)
class Tradeoff:
    """Bias, noise and error of a private count over the bound T, and the best T.

    At most T rows of each user are counted, and Laplace noise of scale T / epsilon is added.

    Attributes:
        histogram: How many rows users have.
        problem: The question.
        curve_errors: Over the bounds of the curves; ``bias`` is what is thrown away, in rows.
        best_choice: The bound with the smallest expected error.
    """

    histogram: ContributionHistogram
    problem: total.TotalProblem
    curve_errors: total.TotalErrors
    best_choice: total.TotalChoice

    def evaluate(self, bound: float) -> total.TotalErrors:
        """Compute bias, mean noise and expected error of the count at one bound, in rows."""
        return total.compute_errors(self.problem, bound)

    def evaluate_error(self, bound: float) -> float:
        """Compute the expected error of the count at one bound, as a share of it."""
        return float(self.evaluate(bound).absolute_errors) / self.num_rows

    @property
    def num_rows(self) -> float:
        """Return the number of all rows."""
        return float(self.histogram.num_rows)


def _build_problem(histogram: ContributionHistogram, epsilon: float) -> total.TotalProblem:
    """Build the problem of choosing the bound of a private count of all rows, at one epsilon."""
    row_amounts = Amounts.from_histogram(histogram)
    return total.TotalProblem(row_amounts, epsilon, measure=Measure.ABSOLUTE, is_integer=True)


IGNORED_FIELD_NAMES = ("bound",)


def compare_over_epsilon(dataset: Dataset, parameters: StartParameters) -> BoundComparison:
    """Describe the comparison of the best bound and its error over epsilon.

    Its functions compute both for the data in use or the simulated users.
    """
    histogram = start_parameters.choose_dataset(dataset, parameters.users).histogram
    problem = _build_problem(histogram, 1.0)

    def evaluate_errors(epsilon: float, bounds: FloatArray) -> FloatArray:
        """Compute the error of a count at each bound, as a share of it, at this epsilon."""
        return np.asarray(
            total.measure_errors(replace(problem, epsilon=epsilon), bounds) / float(histogram.num_rows)
        )

    def find_best_bound(epsilon: float) -> tuple[float, float]:
        """Find the best bound at this epsilon, and return it with its error."""
        best_bound = total.find_optimal_bound(replace(problem, epsilon=epsilon))
        return best_bound, float(evaluate_errors(epsilon, np.array(best_bound)))

    return BoundComparison(
        "Sweet spot (rows per user)", "Error of a private count (share of it)",
        find_best_bound, evaluate_errors, histogram.sizes, histogram.users,
        own_provenance=None if parameters.users is UserPreset.IN_USE else Disclosure.PUBLIC,
    )  # fmt: skip


def solve(dataset: Dataset, parameters: StartParameters) -> Tradeoff:
    """Compute bias, noise and error of a private count over a grid of bounds, and the best bound.

    The grid runs over the axis of the figure, and the best bound is one of its points. Method: Amin et al. 2019,
    section 3.
    """
    histogram = start_parameters.choose_dataset(dataset, parameters.users).histogram
    problem = _build_problem(histogram, parameters.epsilon)
    best_choice, grid_bounds = (
        total.find_best_choice(problem),
        build_log_grid(*choose_axis_limits(histogram), NUM_CURVE_POINTS),
    )
    # The best bound is a point of the curve, so that the handle can stop there.
    curve_bounds = np.union1d(grid_bounds, best_choice.max_total or 1.0)
    return Tradeoff(
        histogram=histogram,
        problem=problem,
        curve_errors=total.compute_errors(problem, curve_bounds),
        best_choice=best_choice,
    )


def choose_axis_limits(histogram: ContributionHistogram) -> tuple[float, float]:
    """Return the lowest and highest bound of the axis: 1, and 5 times the rows of the heaviest user.

    The upper end is at most `MAX_SIZE`. No setting changes them.
    """
    return 1.0, float(min(histogram.max_size * AXIS_END_OVER_MAX_SIZE, MAX_SIZE))


MAX_DOTS_IN_ERRORS = 5.0
"""Ends of the axis of simulated counts, in best errors: at the best bound hardly one of them lies beyond."""
PLOT_HEIGHT = 350
"""In pixels: with the questions above it and the users below it, it is seen whole on a screen of 1280 x 800."""


def plot_tradeoff(solution: Tradeoff, bound: int | None, provenance: Provenance) -> Plot:
    """Plot bias, noise and expected error over the bound, with marks at the best bound and at the user's own."""
    best_choice, histogram, num_rows = solution.best_choice, solution.histogram, solution.num_rows
    columns_by_name = {
        "bound": solution.curve_errors.bounds,
        "bias": solution.curve_errors.bias / num_rows,
        "mean_noise": solution.curve_errors.mean_noise / num_rows,
        "expected_error": solution.curve_errors.absolute_errors / num_rows,
    }
    curve_bounds, bias_shares, noise_shares, error_shares = columns_by_name.values()
    items: list[Item] = [
        Curve("Expected error", curve_bounds, error_shares, Style.TOTAL),
        Curve(NOISE, curve_bounds, noise_shares, STYLE_BY_PART[NOISE]),
    ]
    if np.any(cut_mask := bias_shares > 0.0):  # A log axis has no place for 0.
        items.append(Curve(BIAS, curve_bounds[cut_mask], bias_shares[cut_mask], STYLE_BY_PART[BIAS]))
    if best_choice.max_total > 0:
        best_error = float(best_choice.errors.absolute_errors) / num_rows
        items.append(Mark("Sweet spot", best_choice.max_total, best_error, Style.TOTAL))
    if bound is not None:
        items.append(Mark("Your own bound", bound, solution.evaluate_error(bound), Style.ENTERED, "square"))
    noise_draws = draw_unit_noise(solution.problem.mechanism)
    max_dot_share = MAX_DOTS_IN_ERRORS * float(error_shares.min())
    bound_handle = Handle(
        "Bound", curve_bounds, error_shares, bound or best_choice.max_total or 1.0, "bound", is_integer=True,
        error_parts={BIAS: bias_shares, NOISE: noise_shares},
        user_bars=(build_user_bars(histogram.sizes, histogram.users, "rows"),),
        dots=Dots(bias_shares, noise_shares, noise_draws, Spread.MEAN, max_dot_share, "%", dots_name="counts"),
        best_bound=best_choice.max_total or None,
    )  # fmt: skip
    return Plot(
        "start-tradeoff", "Dropped rows and noise of each bound",
        "As the bound grows, fewer rows are lost and more noise is needed.",
        Axis("bound", "rows per user", choose_axis_limits(histogram), number_format=",.3~r"),
        Axis("error of the count", "share of it", (0.001, 10.0), number_format=".2~%"),
        items, provenance, columns_by_name, is_main=True, height=PLOT_HEIGHT, handle=bound_handle,
    )  # fmt: skip


NOISE_ASSUMPTION = (
    "A count of all rows is released with Laplace noise of scale bound/ε; neighbours add or remove one user (Amin et "
    "al. 2019, section 3)"
)


def build_answer(dataset: Dataset, parameters: StartParameters, solution: Tradeoff | None = None) -> Answer:
    """Find the best bound for a count, and the effect of the bound that is set.

    Args:
        dataset: How many rows users have; invented users replace them if the settings name some.
        parameters: The settings; without a bound, text and plot leave it out.
        solution: Result of `solve` for both; computed here by default.

    Returns:
        The answer; its ``solution`` is a `Tradeoff`. Plots are computed when they are asked for.

    Source: Amin et al. 2019, section 3; the exact error as in `dpcore.total.errors`.
    """
    solution = solve(dataset, parameters) if solution is None else solution
    own_bound, best_choice, num_rows = parameters.bound, solution.best_choice, solution.num_rows
    provenance = start_parameters.choose_dataset(dataset, parameters.users).provenance
    answer = Answer(
        "With so few users and so small an ε, every bound adds more noise than there is to count.",
        detail=_write_detail(solution, parameters), numbers=(), assumptions=(NOISE_ASSUMPTION,),
        disclosure=provenance, parameters=parameters, solution=solution,
        plots={"start-tradeoff": lambda: plot_tradeoff(solution, own_bound, provenance)},
    )  # fmt: skip
    if best_choice.max_total == 0:
        return answer
    best_bound_text = format_count(best_choice.max_total, "row")
    error_share = float(best_choice.errors.absolute_errors) / num_rows
    bound_options: dict[str, str] = {"unit": "rows per user", "key": "max_contributions"}
    bound_number = Number(
        "Sweet spot", best_bound_text, "per user", value=best_choice.max_total, **bound_options
    )
    best_error_text = format_percent(error_share)
    error_number = Number(
        "Error", best_error_text, "of the count", value=error_share, unit="share of the count"
    )
    errors_by_part = {BIAS: best_choice.errors.bias, NOISE: best_choice.errors.mean_noise}
    shares_by_part = {
        part_name: float(part_error) / num_rows for part_name, part_error in errors_by_part.items()
    }
    return replace(
        answer,
        headline=f"For one count, keep at most {best_bound_text} per user.",
        numbers=(bound_number, error_number),
        error_parts=build_error_parts(shares_by_part, format_percent),
        relative_error=RelativeError(error_share, "the count"),
    )  # fmt: skip


def _write_detail(solution: Tradeoff, parameters: StartParameters) -> str:
    """Write the sentences below the headline: the release, and the errors at the user's own bound, if one is set."""
    sentences = [
        f"For **one count** with ε = {format_entered(parameters.epsilon)}. Each release has its own best bound."
    ]
    if parameters.bound is not None:
        own_errors = solution.evaluate(parameters.bound)
        own_error_text, own_bias_text, own_noise_text = (
            format_percent(float(own_error_in_rows) / solution.num_rows)
            for own_error_in_rows in (own_errors.absolute_errors, own_errors.bias, own_errors.mean_noise)
        )
        own_bound_text = format_count(parameters.bound, "row")
        own_parts_phrase = f"bias {own_bias_text}, noise {own_noise_text}"
        sentences.append(
            f"With **{own_bound_text}** the count is off by **{own_error_text}**: {own_parts_phrase}."
        )
    return " ".join(sentences)
