"""The solution for a learner under a cap on data, with its plots and words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Band, Curve, Item, Level, Mark, Plot, Style, Toggle, standard
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, STYLE_BY_PART, Number, RelativeError
from dpcore.answer.axes import ROWS_UNIT, build_user_bars
from dpcore.answer.handle import Handle
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import noise_error
from dpcore.common.checks import EPSILON_RANGE
from dpcore.common.wording import (
    PERCENT,
    format_count,
    format_digits,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.optimal_cap import NEIGHBOURS, BiasProblem, ErrorParts, LearningCap
from dpcore.learning.parameters import FIELDS_BESIDE_DATA, CapUnit, LearningParameters

NUM_CURVE_POINTS = 240
LEAK_SENTENCE = standard.warn_of_leak("this bound was")


@dataclass(frozen=True)
class LearningSolution:
    """All that depends on data and parameters, but not on the user's own cap.

    Attributes:
        problem: The question on these data.
        best_choice: The best whole cap.
        near_optimal: Smallest and largest cap within 5 % of the best bound.
        curve_columns: What the figures draw at whole caps, ascending, as columns of shape (points,);
            see `compute_curves`.
    """

    problem: BiasProblem
    best_choice: LearningCap
    near_optimal: tuple[int, int]
    curve_columns: Mapping[str, FloatArray]

    def convert_to_fraction(self, cap: float) -> float:
        """Return tau_0 of a cap in rows per user; above all rows together it stays 1."""
        return min(cap / float(self.problem.histogram.num_rows), 1.0)

    def compute_error_parts_at(self, cap: float) -> ErrorParts:
        """Compute the bound on the excess risk in its parts at one cap, in rows per user."""
        return optimal_cap.compute_error_parts(self.problem, self.convert_to_fraction(cap))


def solve(dataset: Dataset, parameters: LearningParameters) -> LearningSolution:
    """Find the best cap for these data, and compute the curves around it."""
    problem = parameters.build_problem(dataset.histogram)
    best_choice = optimal_cap.find_best_cap(problem)
    tau_0 = np.union1d(
        optimal_cap.choose_fractions(problem.histogram, NUM_CURVE_POINTS), [best_choice.fraction]
    )
    near_optimal = optimal_cap.find_caps_within(problem, best_choice)
    return LearningSolution(problem, best_choice, near_optimal, compute_curves(problem, tau_0))


def compute_curves(problem: BiasProblem, fractions: npt.ArrayLike) -> dict[str, FloatArray]:
    """Compute the bound on the excess risk in its parts, and every bound on the bias (twice), as columns over tau_0.

    Columns: ``cap_rows``, ``tau_0``, ``kept_share``, ``largest_share``, ``users_capped``, ``bias_twice``,
    ``finite_sample``, ``privacy_noise``, ``bound``, and ``twice_`` and its name for every bound on the bias. A bound
    that does not apply is infinite.

    Args:
        problem: The question.
        fractions: tau_0 in (0, 1], shape (q,).
    """
    tau_0 = np.asarray(fractions, dtype=np.float64)
    cap_statistics = optimal_cap.compute_statistics(problem.histogram, tau_0)
    error_parts = optimal_cap.compute_error_parts(problem, tau_0)
    return {
        "cap_rows": tau_0 * problem.histogram.num_rows,
        "tau_0": tau_0,
        "kept_share": cap_statistics.kept_share,
        "largest_share": cap_statistics.max_share,
        "users_capped": cap_statistics.users_capped,
        "bias_twice": error_parts.twice_bias,
        "finite_sample": error_parts.finite_sample,
        "privacy_noise": error_parts.privacy,
        "bound": error_parts.total,
        **{
            f"twice_{term.value}": 2.0 * biases
            for term, biases in optimal_cap.compute_bias_terms(problem, tau_0).items()
        },
    }


IGNORED_FIELD_NAMES = FIELDS_BESIDE_DATA


def compare_over_epsilon(dataset: Dataset, parameters: LearningParameters) -> BoundComparison:
    """Build the comparison over epsilon: functions for the best cap, and for the excess risk at caps."""
    problem, histogram = parameters.build_problem(dataset.histogram), dataset.histogram

    def find_best_bound(epsilon: float) -> tuple[float, float]:
        """Return the best cap in rows, and its bound on the excess risk."""
        best_choice = optimal_cap.find_best_cap(replace(problem, epsilon=epsilon))
        return float(best_choice.cap), best_choice.total

    def compute_errors(epsilon: float, caps: FloatArray) -> FloatArray:
        """Return the bound on the excess risk at each cap in rows."""
        fractions = np.minimum(caps / float(histogram.num_rows), 1.0)
        return optimal_cap.compute_error_parts(replace(problem, epsilon=epsilon), fractions).total

    panel_titles = "Best bound (rows per user)", "Bound on the excess risk"
    return BoundComparison(*panel_titles, find_best_bound, compute_errors, histogram.sizes, histogram.users)


def find_choices_by_term(problem: BiasProblem) -> dict[BiasTerm, LearningCap]:
    """Find the best whole cap for these data under every bound on the bias."""
    return {term: optimal_cap.find_best_cap(replace(problem, bias=term)) for term in BiasTerm}


PART_NAME_BY_FIELD = {"twice_bias": BIAS, "finite_sample": SAMPLING, "privacy": NOISE}
"""The names of the parts of the excess risk, as fields of `LearningCap` and `ErrorParts`."""
HELP_BY_NUMBER_KEY = {
    "max_contributions": "Upper bound on contributions per user.",
    "bound": "By how much the model's risk exceeds that of the best model, with probability 1 − δ (theorem 1).",
    "bias_twice": "A bound changes the mix of users that a model is judged on. Theorem 1 counts this bias twice.",
    "finite_sample": "Cost of a finite sample: C √(d log(n/δ) / n_τ).",
    "privacy_noise": "Cost of hiding one user: F(largest share, 1/ε, 3/δ).",
}


def list_risk_parts(cap_or_parts: LearningCap | ErrorParts) -> dict[str, float]:
    """Return the three parts of the excess risk as numbers by name; the bias is counted twice."""
    return {name: float(getattr(cap_or_parts, field_name)) for field_name, name in PART_NAME_BY_FIELD.items()}


TRIVIAL_BOUND = Level("Above 1 it promises nothing", 1.0, label="No guarantee above 1")
"""Above it a bound on losses in [0, 1] says nothing."""
COLUMN_BY_PART_NAME = {BIAS: "bias_twice", SAMPLING: "finite_sample", NOISE: "privacy_noise"}
CURVE_NAME_AND_DASH_BY_TERM = {
    BiasTerm.LOG_KEPT: ("Prop. 1: share kept", "solid"),
    BiasTerm.VARIANCE_KEPT: ("Prop. 1: Var(H), share kept", "dash"),
    BiasTerm.LOG_FRACTION: ("Prop. 1: τ₀", "dot"),
    BiasTerm.VARIANCE_FRACTION: ("Prop. 1: Var(H), τ₀", "longdash"),
    BiasTerm.COROLLARY_1: ("Corollary 1", "longdashdot"),
}
"""Name and dash pattern of the curves of the paper's bounds on the bias; propositions 2 and 3 make proposition 1."""
MARKED_CAPS = (("Best bound", Style.CAP, "diamond"), ("Your own bound", Style.ENTERED, "square"))


def plot_bound(solution: LearningSolution, dataset: Dataset, parameters: LearningParameters) -> Plot:
    """Plot the excess risk, its parts and twice the paper's bounds on the bias over the cap, and mark the best cap."""
    best_choice, curve_columns = solution.best_choice, solution.curve_columns
    histogram = solution.problem.histogram
    cap, own_bound = best_choice.max_contributions, parameters.own_bound
    caps = curve_columns["cap_rows"]
    part_columns = {name: curve_columns[column] for name, column in COLUMN_BY_PART_NAME.items()}
    items: list[Item] = [
        Curve("Excess risk", caps, curve_columns["bound"], Style.TOTAL),
        *(Curve(name, caps, part_column, STYLE_BY_PART[name]) for name, part_column in part_columns.items()),
        *(
            Curve(
                name,
                caps,
                curve_columns[f"twice_{term.value}"],
                Style.BIAS,
                dash=dash,
                width=1.5,
                label=f"Bias ({name[:1].lower()}{name[1:]})",
            )
            for term, (name, dash) in CURVE_NAME_AND_DASH_BY_TERM.items()
        ),
        TRIVIAL_BOUND,
    ]
    if solution.near_optimal[0] < solution.near_optimal[1]:
        items.append(Band(f"Within 5{PERCENT} of the best", *solution.near_optimal))
    for (name, mark_style, mark_symbol), marked_cap in zip(MARKED_CAPS, (cap, own_bound), strict=True):
        # Under Corollary 1 a low cap has no bound; on a log axis 0 has no place.
        marked_risk = (
            math.inf if marked_cap is None else float(solution.compute_error_parts_at(marked_cap).total)
        )
        if marked_cap is not None and 0.0 < marked_risk < math.inf:
            items.append(Mark(name, marked_cap, marked_risk, mark_style, mark_symbol))
    cap_handle = Handle(  # Nothing is released, so there are no dots.
        "Bound",
        caps,
        curve_columns["bound"],
        own_bound or cap,
        "own_bound",
        is_integer=True,
        error_parts=part_columns,
        parts_add_up=True,
        user_bars=(build_user_bars(histogram.sizes, histogram.users, "rows"),),
    )
    return Plot(
        "learning-bound",
        "Excess risk against the bound",
        f"The excess risk is smallest at {format_count(cap, 'row')} per user, at most "
        f"{format_number(best_choice.total)}. Lower bounds bias more, higher ones need more noise.",
        *_build_axes(solution, parameters.cap_unit),
        items,
        dataset.provenance,
        curve_columns,
        is_main=True,
        handle=cap_handle,
        toggles=(
            Toggle("Parts", tuple(part_columns)),
            Toggle("Other bounds", _list_hidden_bounds(solution, parameters.bias)),
        ),
    )


def _list_hidden_bounds(solution: LearningSolution, used_term: BiasTerm) -> tuple[str, ...]:
    """List the curve names of the paper's bounds that are hidden at first.

    These are all but the bound in use and the one that is smallest at the best cap.
    """
    biases_by_term = optimal_cap.compute_bias_terms(solution.problem, solution.best_choice.fraction)
    least_bias_term = min(CURVE_NAME_AND_DASH_BY_TERM, key=lambda term: float(biases_by_term[term]))
    return tuple(
        name
        for term, (name, _) in CURVE_NAME_AND_DASH_BY_TERM.items()
        if term not in (least_bias_term, used_term)
    )


def _build_axes(solution: LearningSolution, cap_unit: CapUnit) -> tuple[Axis, Axis]:
    """Build the axes of the cap and of the excess risk; no number that is entered moves them.

    Caps are in rows, as those of the handle and of marks; in the unit tau_0 the ticks name shares of all rows.
    The cap's axis ends where nobody has more rows, or at n where the bound on the bias goes on falling. The bound's
    axis starts below the cost of sampling alone at d = 1, since a smaller bound would be of no interest. It ends at 10,
    because a bound above 1 is vacuous.
    """
    n, max_size = float(solution.problem.histogram.num_rows), float(solution.problem.histogram.max_size)
    largest_cap = n if solution.problem.bias.needs_only_the_fraction else min(n, 2.0 * max_size)
    cap_limits = (1.0, max(largest_cap, 2.0))
    smallest_risk = max(math.sqrt(math.log(20.0 * n) / n), 1e-9) / 2.0
    tick_powers = range(-math.floor(math.log10(n)), 1) if cap_unit is CapUnit.FRACTION else ()
    mantissas = (1, 2, 5) if cap_limits[1] < 100.0 else (1,)
    cap_axis = Axis(
        "bound",
        ROWS_UNIT,
        cap_limits,
        title="τ₀, the bound as a share of all rows" if tick_powers else "",
        named_ticks=tuple(
            (n * s * 10.0**p, f"{s * 10.0**p:g}") for p in tick_powers for s in mantissas if s * 10.0**p <= 1
        ),
        # A cap of the person's own may lie where nobody has as many rows.
        settable_range=(cap_limits[0], max(cap_limits[1], n)),
        number_format=",.4~g",
    )
    return cap_axis, Axis("excess risk, at most", "", (10.0 ** math.floor(math.log10(smallest_risk)), 10.0))


def build_numbers(solution: LearningSolution) -> tuple[Number, ...]:
    """Build the numbers of the answer: best cap, excess risk there, tau_0, and the three parts of that risk."""
    best_choice, total = solution.best_choice, solution.best_choice.total
    values_by_part = list_risk_parts(best_choice)
    share_text_by_part = {
        part_name: format_percent(part_value / total) if total > 0.0 else ""
        for part_name, part_value in values_by_part.items()
    }
    relative_error_note = f"({measure_relative_error(best_choice).text})"
    cap, cap_key = best_choice.max_contributions, "max_contributions"
    part_numbers = [
        Number(
            part_name,
            format_number(part_value),
            share_text_by_part[part_name] and f"{share_text_by_part[part_name]} of it",
            HELP_BY_NUMBER_KEY[cap_key],
            part_value,
            key=cap_key,
        )
        for (part_name, part_value), cap_key in zip(
            values_by_part.items(), COLUMN_BY_PART_NAME.values(), strict=True
        )
    ]
    fraction, bound_help = best_choice.fraction, HELP_BY_NUMBER_KEY["bound"]
    return (
        Number(
            "Best bound",
            format_count(cap, "row"),
            "per user",
            HELP_BY_NUMBER_KEY[cap_key],
            cap,
            ROWS_UNIT,
            cap_key,
        ),
        Number(
            "Excess risk, at most", format_number(total), relative_error_note, bound_help, total, key="bound"
        ),
        Number("τ₀", format_number(fraction), "of all rows", value=fraction, key="tau_0"),
        *part_numbers,
    )


def measure_relative_error(cap_choice: LearningCap) -> RelativeError:
    """Return the bound on the excess risk over the largest loss, 1."""
    return RelativeError(cap_choice.total, "the largest loss, 1")


def write_facts(solution: LearningSolution, own_bound: int | None) -> dict[str, str]:
    """Explain the best cap in sentences, each under its heading, and compare the user's own bound if there is one."""
    histogram, best_choice = solution.problem.histogram, solution.best_choice
    cap, total = best_choice.max_contributions, best_choice.total
    best_cap_statistics = optimal_cap.compute_statistics(histogram, best_choice.fraction)
    cut_share = float(best_cap_statistics.cut_share)
    affected_users_text = standard.describe_affected(best_choice.users_capped, histogram.num_users, cut_share)
    max_share_before_text = format_percent(histogram.max_size / histogram.num_rows)
    max_share_after_text = format_percent(float(best_cap_statistics.max_share))
    kept_sizes = np.minimum(histogram.sizes, max(best_choice.cap, 1.0))
    noise_factor_text = format_number(
        math.sqrt(noise_error.compute_design_effect(kept_sizes, histogram.users))
    )
    texts_by_heading = {}
    # Corollary 1 does not apply to low caps.
    if math.isfinite(solution.compute_error_parts_at(max(cap // 2, 1)).total):
        texts_by_heading["Half or double"] = standard.compare_half_and_double(
            cap,
            lambda caps: [float(solution.compute_error_parts_at(other_cap).total) for other_cap in caps],
            format_number,
            "excess risk",
        )
    texts_by_heading |= {
        "Who is affected": f"{affected_users_text} Share of the heaviest user: {max_share_before_text}, then "
        f"{max_share_after_text}.",
        noise_error.ASSUMPTION_LABEL: "the limit takes the rows of one user as independent draws; at ρ = "
        f"{noise_error.ASSUMED_USER_SHARE} the finite-sample part is about {noise_factor_text} times as large.",
    }
    if own_bound is not None:
        own_bound_parts = solution.compute_error_parts_at(own_bound)
        part_texts = (
            f"{name.lower()} {format_number(x)}" for name, x in list_risk_parts(own_bound_parts).items()
        )
        parts_text = ", ".join(part_texts)
        own_bound_risk = float(own_bound_parts.total)
        own_bound_heading = f"Your own bound, {format_count(own_bound, 'row')}"
        texts_by_heading[own_bound_heading] = (
            "this limit on the bias does not apply there: less than a quarter of the rows is kept."
        )
        if math.isfinite(own_bound_risk):
            texts_by_heading[own_bound_heading] = standard.compare_own_bound(
                "excess risk",
                own_bound_risk,
                total,
                lambda risk: f"at most {format_number(risk)} ({parts_text})",
            )
    return texts_by_heading


def write_detail(solution: LearningSolution, dataset: Dataset) -> str:
    """Write the sentences that qualify the headline; empty if none applies.

    They say that the excess risk is at least 1, that users are taken to be alike, or that the bound leaks private
    data.
    """
    best_choice, problem = solution.best_choice, solution.problem
    least_epsilon = find_least_epsilon(solution)
    remedy_sentence = (
        f" From ε = {format_number(least_epsilon)} on it is below 1." if math.isfinite(least_epsilon) else ""
    )
    conditions_by_sentence = {
        f"**An excess risk above 1 promises nothing**: it only compares bounds.{remedy_sentence}": best_choice.total
        >= 1.0,
        "Users are taken to be alike (Var(H) = 0), so a bound biases nothing.": (
            problem.loss_variance == 0.0 and problem.bias.needs_variance
        ),
        LEAK_SENTENCE: dataset.is_private,
    }
    return " ".join(sentence for sentence, is_true in conditions_by_sentence.items() if is_true)


def find_least_epsilon(solution: LearningSolution) -> float:
    """Find the ε from which on some plotted cap has an excess risk below 1, rounded up; infinite if there is none."""
    problem, curve_columns = solution.problem, solution.curve_columns
    allowed_noise = 1.0 - curve_columns["bias_twice"] - curve_columns["finite_sample"]
    # The noise falls as ε to the power of F.
    least_epsilons = problem.epsilon * (curve_columns["privacy_noise"] / allowed_noise)[
        allowed_noise > 0.0
    ] ** (1.0 / problem.privacy.power)
    least_epsilon = float(least_epsilons.min(initial=math.inf))
    if not 0.0 < least_epsilon < EPSILON_RANGE[1]:
        return math.inf
    rounding_unit = 10.0 ** (math.floor(math.log10(least_epsilon)) - 1)
    return math.ceil(least_epsilon * (1.0 + 1e-9) / rounding_unit) * rounding_unit


def describe_near_optimal(solution: LearningSolution) -> str:
    """Write the range of caps whose excess risk stays near the least."""
    other_caps_text = (
        "the next bounds" if solution.near_optimal[1] < solution.problem.histogram.max_size else ""
    )
    return standard.write_near_optimal_range(
        *solution.near_optimal, "row", objective_text="the best", worse_choices_phrase=other_caps_text
    )


def describe_formulae(parameters: LearningParameters) -> str:
    """Write how the bias and the privacy noise are bounded, with the formulae."""
    bias_term, privacy_term = parameters.bias, parameters.privacy
    noise_factor = float(privacy_term.compute_error(1.0, 1.0, parameters.failure_probability))
    latex_exponent = "" if privacy_term.power == 1.0 else f"^{{{format_digits(privacy_term.power)}}}"
    latex_power = rf"$(\text{{share}}/\varepsilon){latex_exponent}$"
    sentences = [
        f"Bias at most ${bias_term.formula}$. It needs: {bias_term.needs_text[:1].lower()}{bias_term.needs_text[1:]}."
    ]
    if not bias_term.needs_variance:
        sentences.append("Var(H) is not used.")
    formula_text = f"F = {format_number(noise_factor)} {latex_power}"
    if privacy_term.log_power:
        formula_text += (
            f", that is $C \\ln^2(3/\\delta)$ {latex_power} with C = {format_number(privacy_term.constant)}"
        )
    return f"{' '.join(sentences)} {formula_text}; share is the largest of one user in what is kept."


def list_bias_bound_rows(
    solution: LearningSolution, choices_by_term: Mapping[BiasTerm, LearningCap], own_bound: int | None
) -> list[dict[str, str]]:
    """List the rows of a table of all bounds on the bias, one row per bound, with each bound taken twice."""
    fractions_by_column = {"Twice, at the best bound": solution.best_choice.fraction}
    if own_bound is not None:
        fractions_by_column["Twice, at your own bound"] = solution.convert_to_fraction(own_bound)
    biases_by_column = {
        column_name: optimal_cap.compute_bias_terms(solution.problem, fraction)
        for column_name, fraction in fractions_by_column.items()
    }

    def format_twice(bias: FloatArray) -> str:
        """Write twice one bound on the bias, or that it does not apply."""
        return format_number(2.0 * float(bias)) if np.isfinite(bias) else "does not apply"

    return [
        {
            "Way": term.way_numerals,
            "Bound": term.title,
            "Needs": term.needs_text,
            **{column: format_twice(bias_by_term[term]) for column, bias_by_term in biases_by_column.items()},
            "Best bound under it": format_count(round(best_choice.cap), "row"),
            "Its excess risk": format_number(best_choice.total),
            "Formula": f"${term.formula}$",
        }
        for term, best_choice in choices_by_term.items()
    ]


def write_methods(solution: LearningSolution, dataset: Dataset, parameters: LearningParameters) -> Methods:
    """Write the methods text: guarantee, rows per user and rule of choice; the excess risk itself is not stated."""
    cap_text = format_count(solution.best_choice.max_contributions, "row")
    finite_sample_text = format_entered(parameters.finite_sample_constant)
    failure_text = format_entered(parameters.failure_probability)
    statement_start = "A model was trained by a private learner, and released,"
    return Methods(
        guarantee_text=write_guarantee(statement_start, parameters.epsilon, NEIGHBOURS),
        procedure=f"The learner saw at most {cap_text} per user.",
        public_procedure="The learner saw at most a fixed number of rows per user.",
        disclosure=dataset.provenance,
        rule_sentence="The bound minimises an upper bound on the excess risk of the learner [@amin2019, theorem 1], "
        f"with VC dimension {parameters.vc_dimension}, failure probability {failure_text}, and constants of "
        f"{finite_sample_text} for the finite sample and {format_entered(parameters.privacy_constant)} for privacy. "
        "It promises no accuracy.",
    )
