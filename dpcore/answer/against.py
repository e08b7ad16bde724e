"""The best bound and its error over ε, beside bounds that people choose without asking, and their plots.

Everything here is pure: numbers in, numbers out. A question declares one function in its ``answer.py``:

``def compare_over_epsilon(dataset: Dataset, parameters: P) -> BoundComparison | MethodComparison | str``

A string says why there is nothing to compare. `show_over_epsilon`, for the tab *Compare*, does the rest. Everything
that does not depend on ε is done once, in that function or behind it. Fields that none of it depends on are listed in
``IGNORED_FIELD_NAMES``, so that they cause no work. The function of a page with data of its own receives these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcore.answer.plot import Axis, Column, Curve, Item, Level, Mark, Plot, Style
from dpcore.answer.section import Cached, Figures, Label, Note, Parts, Search, Table
from dpcore.common.privacy import Provenance
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.common.wording import describe_change, format_entered, format_number, format_percent
from dpcore.contributions import FloatArray, IntArray

SLIDER_EPSILONS = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7,
    1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0,
)  # fmt: skip
"""Values of ε that a slider has, and at which answers are compared."""
EPSILON_LIMITS = (0.01, 30.0)
"""Smallest and largest ε of the curves."""
COARSE_EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""The values of ε if each takes seconds."""
MAX_CACHED_EPSILONS = 256
"""How many values of ε a comparison keeps costly functions at."""
KEY_EPSILON = 1.0
"""The ε of the key under which functions of ε are kept: they do not depend on the one in use."""
USER_SHARES = (0.5, 0.9, 0.95, 0.99)
"""Shares of users whose quantile is often taken as the bound."""


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Several methods of a release, and the cost of each at any ε, all other settings as entered.

    Attributes:
        cost_title: Name of the cost, with its unit.
        method_names: The methods.
        compute_costs: The cost of each at epsilons of shape (k,), shape (methods, k).
        epsilons_with_change_labels: (ε, change there), exact, ascending: a method costs as much as the first.
        best_method_sentence: The best method by range of ε.
        own_provenance: The disclosure of these numbers; None for that of the data in use.
    """

    cost_title: str
    method_names: tuple[str, ...]
    compute_costs: Callable[[FloatArray], FloatArray]
    epsilons_with_change_labels: tuple[tuple[float, str], ...] = ()
    best_method_sentence: str = ""
    own_provenance: Provenance | None = None


@dataclass(frozen=True, eq=False)
class BoundComparison:
    """The best bound at any ε, all other settings as entered.

    Attributes:
        bound_title: Name of the bound, with its unit.
        error_title: Name of the error, with its unit.
        compute_best_bound_and_error: The best bound at an ε, and its error.
        compute_errors: The error at an ε and at bounds, shape (k,); None if candidates are not compared.
        distinct_contributions: Contributions of users, distinct, ascending, shape (n,); empty without candidates.
        users_per_contribution: Users who have each, shape (n,).
        is_integer: Whether a bound is a whole number.
        is_slow: Whether one ε takes so long that all of them are computed beside the page, on request.
        caption: The meaning of the numbers, a sentence below the table; empty if the axes are clear.
        own_provenance: The disclosure of these numbers; None for that of the data in use.
        method_comparison: Methods that are compared, too; None if there are none.
    """

    bound_title: str
    error_title: str
    compute_best_bound_and_error: Callable[[float], tuple[float, float]]
    compute_errors: Callable[[float, FloatArray], FloatArray] | None = None
    distinct_contributions: FloatArray | IntArray = ()  # type: ignore[assignment]
    users_per_contribution: IntArray = ()  # type: ignore[assignment]
    is_integer: bool = True
    is_slow: bool = False
    caption: str = ""
    own_provenance: Provenance | None = None
    method_comparison: MethodComparison | None = None


@dataclass(frozen=True, eq=False)
class BoundCurves:
    """The best bound and its error at each epsilon, as far as they were computed.

    Attributes:
        epsilons: Ascending, shape (k,).
        bounds: The best bound at each.
        errors: Its error.
    """

    epsilons: FloatArray
    bounds: FloatArray
    errors: FloatArray


def build_epsilon_grid(is_slow: bool) -> FloatArray:
    """Build the ascending epsilons of the curves, 0.01 to 30: eight if slow, else those of the slider and between."""
    if is_slow:
        return np.array(COARSE_EPSILONS)
    epsilons = np.unique(np.clip(SLIDER_EPSILONS, *EPSILON_LIMITS))
    return np.sort(np.concatenate((epsilons, np.sqrt(epsilons[1:] * epsilons[:-1]))))


def compute_bound_curves(
    comparison: BoundComparison, progress: Progress = silent, should_stop: ShouldStop = never
) -> BoundCurves:
    """Compute the best bound and its error at each epsilon of the grid.

    If stopped, at those that were done.
    """
    epsilons = build_epsilon_grid(comparison.is_slow)
    bounds_and_errors: list[tuple[float, float]] = []
    for epsilon in epsilons:
        if should_stop():
            break
        bounds_and_errors.append(comparison.compute_best_bound_and_error(float(epsilon)))
        progress(len(bounds_and_errors) / epsilons.size)
    best_bounds, best_errors = np.array(bounds_and_errors, dtype=np.float64).reshape(-1, 2).T
    return BoundCurves(epsilons[: best_bounds.size], best_bounds, best_errors)


def compute_method_curves(comparison: MethodComparison) -> tuple[FloatArray, FloatArray]:
    """Compute the cost of each method over epsilon; return (epsilons, (k,), costs, (methods, k)).

    The epsilons are the grid and the crossings on the axis.
    """
    crossing_epsilons = [
        epsilon for epsilon, _ in comparison.epsilons_with_change_labels if EPSILON_AXIS.contains(epsilon)
    ]
    epsilons = np.unique([*build_epsilon_grid(is_slow=False), *crossing_epsilons])
    return epsilons, comparison.compute_costs(epsilons)


# --- Candidates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A bound that somebody may choose.

    Attributes:
        bound: The bound, in the unit of the contributions.
        reason: Why somebody may choose it.
        error: The error at the ε in use.
        lost_contribution_share: Share of all contributions that it removes.
        num_affected: Number of users who have more.
    """

    bound: float
    reason: str
    error: float
    lost_contribution_share: float
    num_affected: int


def list_candidates(comparison: BoundComparison, epsilon: float) -> tuple[Candidate, ...]:
    """List bounds that people choose, ascending: the best, round ones, quantiles of users, and the largest.

    A bound with several reasons is listed once; bounds of 0 are left out.

    Args:
        comparison: It must have ``compute_errors``.
        epsilon: The ε in use.
    """
    assert comparison.compute_errors is not None
    contributions = np.asarray(comparison.distinct_contributions, dtype=np.float64)
    users_per_contribution = np.asarray(comparison.users_per_contribution, dtype=np.float64)
    reasons_by_bound: dict[float, list[str]] = {}

    def add_candidate(bound: float, reason: str) -> None:
        """Add a reason why somebody may choose a bound; a bound of 0 is ignored."""
        if bound > 0.0:
            reasons_by_bound.setdefault(bound, []).append(reason)

    add_candidate(float(comparison.compute_best_bound_and_error(epsilon)[0]), "best")
    least_amount = float(contributions[contributions > 0.0][0])
    for round_bound in _list_round_numbers(least_amount, float(contributions[-1]), comparison.is_integer):
        add_candidate(round_bound, ROUND_REASON)
    cumulative_users = np.cumsum(users_per_contribution)
    for share in USER_SHARES:
        # A share of users is taken exactly: 0.9 times ten users is nine, whatever float64 makes of it.
        quantile_index = int(np.searchsorted(cumulative_users, share * cumulative_users[-1] * (1.0 - 1e-12)))
        quantile_reason = "median" if share == 0.5 else f"{format_percent(share)} of users have at most this"
        add_candidate(float(contributions[quantile_index]), quantile_reason)
    add_candidate(float(contributions[-1]), "the most that a user has")
    candidate_bounds = np.array(sorted(reasons_by_bound))
    candidate_errors = comparison.compute_errors(epsilon, candidate_bounds)
    total_contributions = float(contributions @ users_per_contribution)
    candidates = []
    for bound, candidate_error in zip(candidate_bounds.tolist(), candidate_errors.tolist(), strict=True):
        reasons = [reason for reason in reasons_by_bound[bound] if reason != ROUND_REASON] or [ROUND_REASON]
        lost_share = (
            float(np.maximum(contributions - bound, 0.0) @ users_per_contribution) / total_contributions
        )
        num_affected = int(users_per_contribution[contributions > bound].sum())
        candidates.append(Candidate(bound, "; ".join(reasons), candidate_error, lost_share, num_affected))
    return tuple(candidates)


MAX_ROUND_BOUNDS = 12
ROUND_REASON = "round number"


def _list_round_numbers(smallest_number: float, largest_number: float, is_integer: bool) -> list[float]:
    """List 1, 2, 5 times powers of ten up to the largest number.

    The first is the power at or below the smallest number. If they are more than 12, only powers are listed.
    """
    smallest_number = max(smallest_number, 1.0 if is_integer else largest_number / 1e6)
    first_exponent, last_exponent = (int(np.floor(np.log10(n))) for n in (smallest_number, largest_number))
    exponents = range(first_exponent, last_exponent + 1)
    round_numbers = [float(f"{digit}e{exponent}") for exponent in exponents for digit in (1, 2, 5)]
    round_numbers = [number for number in round_numbers if number <= largest_number]
    if len(round_numbers) <= MAX_ROUND_BOUNDS:
        return round_numbers
    return [number for number in round_numbers if f"{number:.0e}".startswith("1")]


def tabulate_candidates(candidates: Sequence[Candidate]) -> list[dict[str, str]]:
    """Build the rows of a table of candidates: texts by heading."""
    smallest_error = min(candidate.error for candidate in candidates)
    return [
        {
            "Bound": format_number(c.bound),
            "How it is come by": c.reason,
            "Error": format_number(c.error),
            "Against the best": "" if c.error == smallest_error else describe_change(c.error, smallest_error),
            "Above the bound": format_percent(c.lost_contribution_share),
            "Users over it": format_number(c.num_affected),
        }
        for c in candidates
    ]


EPSILON_AXIS = Axis("ε", "", EPSILON_LIMITS, title="Privacy budget ε", number_format=".3~g")
METHOD_STYLES = (Style.CAP, Style.SMOOTH, Style.SAMPLING, Style.CUSTOMARY, Style.PRIVACY)
"""Styles of the methods, in their order."""


def plot_best(
    question_name: str,
    comparison: BoundComparison,
    curves: BoundCurves,
    epsilon: float,
    best_bound_and_error: tuple[float, float] | None,
    provenance: Provenance,
) -> tuple[Plot, ...]:
    """Plot the best bound over ε, and below it its error over ε, each with a mark at the question's own ε if known.

    Args:
        question_name: Of the question.
        comparison: What is compared.
        curves: From `compute_bound_curves`.
        epsilon: In use.
        best_bound_and_error: The best bound there and its error; None where that is not known.
        provenance: Of the data.
    """
    best_bound, best_error = best_bound_and_error or (0.0, 0.0)
    epsilon_column, bound_and_error_plots = Column("epsilon", curves.epsilons), []
    for quantity_name, column_name, axis_title, curve_values, value_in_use in (
        ("bound", "best_bound", comparison.bound_title, curves.bounds, best_bound),
        ("error", "error", comparison.error_title, curves.errors, best_error),
    ):
        items: list[Item] = [
            Curve("best at each ε", epsilon_column, Column(column_name, curve_values), Style.TOTAL),
            Level("ε in use", epsilon, is_vertical=True),
        ]
        if value_in_use > 0.0:
            items.append(Mark("ε in use", epsilon, value_in_use, Style.TOTAL, is_unnamed=True))
        curve_end_points = [(curve_values[i], curves.epsilons[i]) for i in (0, -1) if curve_values.size]
        curve_end_texts = [f"{format_number(y)} at ε = {format_entered(x)}" for y, x in curve_end_points]
        plot = Plot(
            f"{question_name}-{quantity_name}-over-epsilon",
            f"Best {quantity_name} over ε",
            f"The best {quantity_name} goes from {' to '.join(curve_end_texts)}.",
            EPSILON_AXIS,
            _build_axis(axis_title),
            items,
            provenance,
            height=340,
        )
        bound_and_error_plots.append(plot)
    return tuple(bound_and_error_plots)


def plot_methods(
    question_name: str, comparison: MethodComparison, epsilon: float, provenance: Provenance
) -> Plot:
    """Plot the cost of every method over ε, with the ε in use and the crossings with the first method.

    Args:
        question_name: Name of the question.
        comparison: What is compared.
        epsilon: In use.
        provenance: Of the numbers.
    """
    epsilons, method_costs = compute_method_curves(comparison)
    epsilon_column = Column("epsilon", epsilons)
    styled_costs = zip(comparison.method_names, method_costs, METHOD_STYLES, strict=False)
    items: list[Item] = [
        Curve(method_name, epsilon_column, Column(method_name, costs), style, width=2.0)
        for method_name, costs, style in styled_costs
    ]
    for crossing_epsilon, change_label in comparison.epsilons_with_change_labels:
        if crossing_epsilon in epsilons:
            cost = float(method_costs[0, np.searchsorted(epsilons, crossing_epsilon)])
            items.append(
                Mark(change_label, crossing_epsilon, cost, Style.ENTERED, "circle-open", is_unnamed=True)
            )
    return Plot(
        f"{question_name}-ways-over-epsilon",
        "What each way costs over ε",
        comparison.best_method_sentence or "What each way costs over ε.",
        EPSILON_AXIS,
        _build_axis(comparison.cost_title),
        (*items, Level("ε in use", epsilon, is_vertical=True)),
        provenance,
    )


def _build_axis(title: str) -> Axis:
    """Build the log axis of a bound or an error from its title, a name with the unit in brackets."""
    quantity_name, unit = re.fullmatch(r"(.*?)(?: \((.*)\))?", title, flags=re.DOTALL).groups("")  # type: ignore[union-attr]
    return Axis(f"{quantity_name[:1].lower()}{quantity_name[1:]}", unit, title=title, number_format=",.4~g")


# --- The section ------------------------------------------------------------------------------------------------------

Comparison = BoundComparison | MethodComparison | str
"""A comparison over ε, or a sentence on why there is none."""


def build_cache_key(parameters: Any, ignored_field_names: Collection[str]) -> Any:
    """Return the parameters with ε = 1 and defaults in the fields that no comparison depends on.

    Raises:
        InvalidInput: The parameters are not valid at that ε.
    """
    return replace(parameters.without(*ignored_field_names), epsilon=KEY_EPSILON)


def show_over_epsilon(
    question_name: str,
    compare: Callable[[Any, Any], Comparison],
    ignored_field_names: Collection[str],
    dataset: Any,
    parameters: Any,
) -> Parts:
    """Yield what a question compares over ε, or a note on why it compares nothing.

    Args:
        question_name: Of the question.
        compare: The function ``compare_over_epsilon`` of its answer.
        ignored_field_names: Fields that no comparison depends on: ``IGNORED_FIELD_NAMES`` of its answer.
        dataset: What the question is about.
        parameters: The question's parameters.
    """
    key_parameters, epsilon = build_cache_key(parameters, ignored_field_names), parameters.epsilon
    comparison: Comparison = yield Cached(compare, (dataset, key_parameters), num_kept=8)
    if isinstance(comparison, str):
        yield Note(comparison)
        return
    provenance = comparison.own_provenance or dataset.provenance
    method_comparison = (
        comparison if isinstance(comparison, MethodComparison) else comparison.method_comparison
    )
    if method_comparison is not None:
        yield f"**Against ε:** {method_comparison.best_method_sentence}"
        yield plot_methods(question_name, method_comparison, epsilon, provenance)
        yield Label(provenance)
    if isinstance(comparison, MethodComparison):
        return
    yield "**Against ε:** the best bound, and the error that it reaches"
    best_bound_and_error = None if comparison.is_slow else comparison.compute_best_bound_and_error(epsilon)
    curves: BoundCurves | None = yield (
        Search(
            "against_job",
            key_parameters,
            lambda progress, stop: compute_bound_curves(comparison, progress, stop),
            "Looking for the best bound at each ε",
            button_text="Compute over ε",
            idle_text=f"It is looked for at {len(COARSE_EPSILONS)} values of ε, which takes a while.",
            is_heavy=True,
        )
        if comparison.is_slow
        else Cached(compute_bound_curves, (comparison,))
    )
    if curves is not None and curves.epsilons.size:
        yield Figures(plot_best(question_name, comparison, curves, epsilon, best_bound_and_error, provenance))
    if comparison.compute_errors is not None:
        yield "**Bounds that people take**, beside the best one at this ε"
        candidate_rows = tabulate_candidates(list_candidates(comparison, epsilon))
        yield Table(candidate_rows, "Candidate bounds with their errors", shows_all_rows=True)
        error_title = comparison.error_title
        axis_titles_text = f"{comparison.bound_title}; {error_title[0].lower()}{error_title[1:]}."
        yield Note(f"{axis_titles_text} {comparison.caption}".strip())
        yield Label(provenance)
