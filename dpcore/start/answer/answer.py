"""The answer of the first page: sentences, numbers and plots."""

from __future__ import annotations

from dpcore.answer import Answer, Number
from dpcore.answer.answer import BIAS, NOISE, build_error_parts
from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.start import presets
from dpcore.start.answer import plots
from dpcore.start.answer.found import CELLS, Tradeoff, solve
from dpcore.start.parameters import StartParameters

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
        plots={"start-tradeoff": lambda: plots.plot_tradeoff(solution, bound, disclosure)},
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
