"""The solution for a learner under a cap on data, and its words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.answer import standard
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, Number
from dpcore.answer.axes import ROWS_UNIT
from dpcore.answer.methods import Methods, write_guarantee
from dpcore.common import noise_error, wording
from dpcore.common.privacy import Neighbours
from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.learning import optimal_cap
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.learning.optimal_cap import BiasProblem, ErrorParts, LearningCap
from dpcore.learning.parameters import NOT_ABOUT_DATA, LearningParameters

CURVE_POINTS = 240
LEAKS = standard.warn_of_leak("this bound was")


@dataclass(frozen=True)
class LearningSolution:
    """All that depends on data and question, but not on a cap of the person's own.

    Attributes:
        problem: The question on these data.
        choice: The best whole cap.
        near_optimal: Smallest and largest cap within 5 % of the best bound.
        curves: What the figures draw at whole caps, ascending, as columns of shape (points,);
            see `compute_curves`.
    """

    problem: BiasProblem
    choice: LearningCap
    near_optimal: tuple[int, int]
    curves: Mapping[str, FloatArray]

    def fraction(self, cap: float) -> float:
        """Return tau_0 of a cap in rows per user; above all rows together it stays 1."""
        return min(cap / float(self.problem.histogram.num_rows), 1.0)

    def error_parts_at(self, cap: float) -> ErrorParts:
        """Compute the bound in its parts at one cap, in rows per user."""
        return optimal_cap.compute_error_parts(self.problem, self.fraction(cap))


def solve(dataset: Dataset, parameters: LearningParameters) -> LearningSolution:
    """Find the best cap for these data, and compute the curves around it."""
    problem = parameters.problem(dataset.histogram)
    choice = optimal_cap.find_best_cap(problem)
    tau_0 = np.union1d(optimal_cap.choose_fractions(problem.histogram, CURVE_POINTS), [choice.fraction])
    near_optimal = optimal_cap.find_caps_within(problem, choice)
    return LearningSolution(problem, choice, near_optimal, compute_curves(problem, tau_0))


def compute_curves(problem: BiasProblem, fractions: npt.ArrayLike) -> dict[str, FloatArray]:
    """Compute the bound of a capped learner in its parts, and every bound on the bias (twice), as columns.

    Columns: ``cap_rows``, ``tau_0``, ``kept_share``, ``largest_share``, ``users_capped``, ``bias_twice``,
    ``finite_sample``, ``privacy_noise``, ``bound``, and ``twice_`` and its name for every bound on the bias. A bound
    that does not apply is infinite.

    Args:
        problem: The question.
        fractions: tau_0 in (0, 1], shape (q,).
    """
    tau_0 = np.asarray(fractions, dtype=np.float64)
    statistics = optimal_cap.compute_statistics(problem.histogram, tau_0)
    parts = optimal_cap.compute_error_parts(problem, tau_0)
    return {
        "cap_rows": tau_0 * problem.histogram.num_rows,
        "tau_0": tau_0,
        "kept_share": statistics.kept_share,
        "largest_share": statistics.max_share,
        "users_capped": statistics.users_capped,
        "bias_twice": parts.bias,
        "finite_sample": parts.finite_sample,
        "privacy_noise": parts.privacy,
        "bound": parts.total,
        **{
            f"twice_{term.value}": 2.0 * bias
            for term, bias in optimal_cap.compute_bias_terms(problem, tau_0).items()
        },
    }


NOT_COMPARED = NOT_ABOUT_DATA


def against_epsilon(dataset: Dataset, parameters: LearningParameters) -> BoundComparison:
    """Compute the best cap and its bound on the excess risk at any epsilon."""
    problem, histogram = parameters.problem(dataset.histogram), dataset.histogram

    def find_best(epsilon: float) -> tuple[float, float]:
        choice = optimal_cap.find_best_cap(replace(problem, epsilon=epsilon))
        return float(choice.cap), choice.total

    def compute_errors(epsilon: float, caps: FloatArray) -> FloatArray:
        fractions = np.minimum(caps / float(histogram.num_rows), 1.0)
        return optimal_cap.compute_error_parts(replace(problem, epsilon=epsilon), fractions).total

    return BoundComparison(
        "Best bound (rows per user)",
        "Bound on the excess risk",
        find_best,
        compute_errors,
        histogram.sizes,
        histogram.users,
    )


def solve_rivals(problem: BiasProblem) -> dict[BiasTerm, LearningCap]:
    """Find the best cap under every bound on the bias."""
    return {term: optimal_cap.find_best_cap(replace(problem, bias=term)) for term in BiasTerm}


PART_NAMES = {"bias": BIAS, "finite_sample": SAMPLING, "privacy": NOISE}
"""The names of the parts of the excess risk, as fields of `LearningCap` and `ErrorParts`."""
NUMBER_HELPS = {
    "max_contributions": "Upper bound on contributions per user.",
    "bound": "The most by which the risk of the model found exceeds that of the best model, with probability 1 − δ "
    "(theorem 1). A risk is an expected loss, between 0 and 1.",
    "tau_0": "The same bound as a share of all rows, in which the paper states its results.",
    "bias_twice": "A bound changes whose rows count how much; a model is then judged on the wrong mix of users. "
    "Theorem 1 carries this bias twice: once for the model returned, once for the best one.",
    "finite_sample": "What any learner pays for seeing a finite sample: C √(d log(n/δ) / n_τ). It grows as rows are "
    "thrown away.",
    "privacy_noise": "What hiding one user costs: F(largest share, 1/ε, 3/δ). It grows with the largest share of a "
    "user.",
}


def get_parts(bound: LearningCap | ErrorParts) -> dict[str, float]:
    """Return the parts of the excess risk by name; they add up to it."""
    return {name: float(getattr(bound, field)) for field, name in PART_NAMES.items()}


def build_numbers(solution: LearningSolution) -> tuple[Number, ...]:
    """Build the best cap, the bound on the excess risk there, and the parts of that bound."""
    choice, helps = solution.choice, NUMBER_HELPS
    cap, total, fraction, parts = choice.max_contributions, choice.total, choice.fraction, get_parts(choice)
    shares = {name: wording.percent(part / total) if total > 0.0 else "" for name, part in parts.items()}
    largest_part = max(parts, key=lambda name: parts[name])
    largest_text = f"({shares[largest_part]} {largest_part.lower()})" if total > 0.0 else ""
    cap_text, key = wording.counted(cap, "row"), "max_contributions"
    return (
        Number("Best bound", cap_text, "per user", helps[key], cap, ROWS_UNIT, key),
        Number(
            "Excess risk, at most", wording.number(total), largest_text, helps["bound"], total, key="bound"
        ),
        Number(
            "As a share of all rows",
            wording.number(fraction),
            help=helps["tau_0"],
            value=fraction,
            key="tau_0",
        ),
        *(
            Number(name, wording.number(part), share and f"{share} of it", helps[key], part, key=key)
            for (name, part), share, key in zip(
                parts.items(), shares.values(), ("bias_twice", "finite_sample", "privacy_noise"), strict=True
            )
        ),
    )


def write_facts(solution: LearningSolution, own_bound: int | None) -> dict[str, str]:
    """Explain the choice in sentences, each under its heading."""
    histogram, choice = solution.problem.histogram, solution.choice
    cap, total = choice.max_contributions, choice.total
    changes = []
    for name, other_cap in (("half", cap // 2), ("double", 2 * cap)):
        if other_cap >= 1:
            bound = float(solution.error_parts_at(other_cap).total)
            is_finite = math.isfinite(bound)
            cost = (
                f"costs {wording.change(bound, total)}" if is_finite else "is where this limit does not apply"
            )
            changes.append(f"{name} ({wording.number(other_cap)}) {cost}")
    share_before = wording.percent(histogram.max_size / histogram.num_rows)
    affected = f"nobody has more rows than that; the heaviest user holds {share_before} of all rows."
    if choice.users_capped:
        statistics = optimal_cap.compute_statistics(histogram, choice.fraction)
        affected = (
            f"{wording.counted(choice.users_capped, 'user')} of {wording.number(histogram.num_users)} "
            f"{wording.agreeing(choice.users_capped, 'has', 'have')} more rows than that, and "
            f"{wording.percent(float(statistics.cut_share))} of all rows are left out. The heaviest user's share falls "
            f"from {share_before} to {wording.percent(float(statistics.max_share))}."
        )
    kept_rows = np.minimum(histogram.sizes, max(choice.cap, 1.0))
    factor = math.sqrt(noise_error.design_effect(kept_rows, histogram.users))
    facts = {
        "Half or double": ", ".join(changes) + ".",
        "Who is affected": affected,
        noise_error.NAME: "the limit lets users differ, but takes the rows of one user as independent draws. If a "
        f"share ρ = {noise_error.ASSUMED_SHARE} of the variance of a loss lies between users, the finite-sample part "
        f"is about {wording.number(factor)} times as large.",
    }
    if own_bound is not None:
        parts = solution.error_parts_at(own_bound)
        own_total, name = float(parts.total), f"Your own bound, {wording.counted(own_bound, 'row')}"
        facts[name] = "this limit on the bias says nothing there: less than a quarter of the rows is kept."
        if math.isfinite(own_total):
            parts_text = ", ".join(
                f"{part_name.lower()} {wording.number(part)}" for part_name, part in get_parts(parts).items()
            )
            facts[name] = standard.compare_own_bound(
                "excess risk", own_total, total, lambda risk: f"at most {wording.number(risk)} ({parts_text})"
            )
    return facts


def write_detail(solution: LearningSolution, dataset: Dataset) -> str:
    """Write how the headline must be qualified; empty where it need not be."""
    choice, problem = solution.choice, solution.problem
    sentences = {
        "**An excess risk above 1 promises nothing**, since losses lie in [0, 1]: it only says which bound is "
        "better.": choice.total >= 1.0,
        "This bound cuts nobody's rows, since privacy noise costs less here than the bias of any lower one.": (
            choice.users_capped == 0
        ),
        "Users are taken to be alike (Var(H) = 0), so a bound biases nothing.": (
            problem.loss_variance == 0.0 and problem.bias.needs_variance
        ),
        "There is only one user, so the model learns from that user alone.": problem.histogram.num_users == 1,
        LEAKS: dataset.is_private,
    }
    return " ".join(sentence for sentence, is_true in sentences.items() if is_true)


def describe_near_optimal(solution: LearningSolution) -> str:
    """Write from which cap to which one the excess risk stays near the least."""
    low, high = solution.near_optimal
    problem = solution.problem
    if problem.histogram.max_size == 1 == high:
        return "nobody has more than one row, so there is nothing to choose."
    text = standard.write_range(low, high, "row", objective="the least excess risk", others="the next bounds")
    if low < high == problem.histogram.max_size and not problem.bias.needs_only_the_fraction:
        text += " Nobody has more rows."
    return text


def describe_formulae(parameters: LearningParameters) -> str:
    """Write how the bias and the privacy noise are bounded, with the formulae."""
    term, privacy = parameters.bias, parameters.privacy
    factor = privacy.constant * math.log(3.0 / parameters.failure_probability) ** privacy.log_power
    exponent = "" if privacy.power == 1.0 else f"^{{{wording.digits(privacy.power)}}}"
    power = rf"$(\text{{share}}/\varepsilon){exponent}$"
    sentences = [f"Bias at most ${term.formula}$. It needs: {term.needs[:1].lower()}{term.needs[1:]}."]
    if term is BiasTerm.TIGHTEST and parameters.loss_variance == 0.25:
        sentences.append("At Var(H) = 1/4 the worst case is always the smaller of the two.")
    if not term.needs_variance:
        sentences.append("Var(H) is not used.")
    form = f"F = {wording.number(factor)} {power}"
    if privacy.log_power:
        form += f", that is $C \\ln^2(3/\\delta)$ {power} with C = {wording.number(privacy.constant)}"
    sentences.append(f"{form}; share is the largest that one user holds of what is kept.")
    return " ".join(sentences)


def list_rival_rows(
    solution: LearningSolution, rivals: Mapping[BiasTerm, LearningCap], own_bound: int | None
) -> list[dict[str, str]]:
    """List all bounds on the bias for a table, one entry per bound, each twice as in theorem 1."""

    def list_biases(fraction: float) -> dict[BiasTerm, str]:
        biases = optimal_cap.compute_bias_terms(solution.problem, fraction)
        return {
            term: wording.number(2.0 * float(bias)) if np.isfinite(bias) else "does not apply"
            for term, bias in biases.items()
        }

    columns = {"Twice, at the best bound": list_biases(solution.choice.fraction)}
    if own_bound is not None:
        columns["Twice, at your own bound"] = list_biases(solution.fraction(own_bound))
    rows = []
    for term, choice in rivals.items():
        needs = (
            "the share of rows"
            if term.needs_only_the_fraction
            else "all shares"
            if term.needs_shares
            else "$n_\\tau/n$"
        )
        rows.append(
            {
                "Way": term.group,
                "Bound": term.title,
                "Needs": f"{needs}, Var(H)" if term.needs_variance else needs,
                **{column: biases[term] for column, biases in columns.items()},
                "Best bound under it": wording.counted(round(choice.cap), "row"),
                "Its excess risk": wording.number(choice.total),
                "Formula": f"${term.formula}$",
            }
        )
    return rows


def write_methods(solution: LearningSolution, dataset: Dataset, parameters: LearningParameters) -> Methods:
    """Write the best cap; the bound on the excess risk that it minimises promises no accuracy, and is not stated."""
    cap = solution.choice.max_contributions
    return Methods(
        guarantee=write_guarantee(
            "A model was trained by a private learner, and released,",
            parameters.epsilon,
            Neighbours.ADD_OR_REMOVE_USER,
        ),
        sentences=f"The learner saw at most {wording.counted(cap, 'row')} of each user, which are "
        f"{wording.percent(solution.choice.fraction)} of all rows.",
        public_sentences="The learner saw at most a fixed number of rows of each user.",
        disclosure=dataset.provenance,
        rule="The bound minimises an upper bound on the excess risk of the learner [@amin2019, theorem 1], "
        f"with the bias counted twice, VC dimension {parameters.vc_dimension}, failure probability "
        f"{wording.entered(parameters.failure_probability)}, and hidden constants of "
        f"{wording.entered(parameters.finite_sample_constant)} and "
        f"{wording.entered(parameters.privacy_constant)} for the finite sample and for privacy; it compares "
        "bounds and promises no accuracy.",
    )
