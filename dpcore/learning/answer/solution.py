"""The solution for a learner under a cap on data, and its words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore import learning
from dpcore.answer.against import BoundComparison
from dpcore.answer.answer import BIAS, NOISE, SAMPLING, ErrorPart, Number, build_error_parts
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

Limits = tuple[tuple[float, float], tuple[float, float]]
"""(from, to) of the cap's axis and of the bound's."""


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
        """Return the bound in its parts at one cap, in rows per user."""
        return optimal_cap.error_parts(self.problem, self.fraction(cap))

    def bound_at(self, cap: float) -> float:
        """Return the bound at one cap, in rows per user."""
        return float(self.error_parts_at(cap).total)


def solve(data: Dataset, parameters: LearningParameters) -> LearningSolution:
    """Find the best cap for these data, and compute the curves around it."""
    problem = parameters.problem(data.histogram)
    choice = optimal_cap.best_cap(problem)
    tau_0 = np.union1d(optimal_cap.fractions_for_curves(problem.histogram, CURVE_POINTS), [choice.fraction])
    return LearningSolution(
        problem=problem,
        choice=choice,
        near_optimal=optimal_cap.caps_within(problem, choice),
        curves=compute_curves(problem, tau_0),
    )


def compute_curves(problem: BiasProblem, fractions: npt.ArrayLike) -> dict[str, FloatArray]:
    """Return the bound of a capped learner in its parts, and every bound on the bias (twice), as columns.

    Columns: ``cap_rows``, ``tau_0``, ``kept_share``, ``largest_share``, ``users_capped``, ``bias_twice``,
    ``finite_sample``, ``privacy_noise``, ``bound``, and ``twice_`` and its name for every bound on the bias. A bound
    that does not apply is infinite.

    Args:
        problem: The question.
        fractions: tau_0 in (0, 1], shape (q,).
    """
    tau_0 = np.asarray(fractions, dtype=np.float64)
    cap_statistics, parts = (
        optimal_cap.statistics(problem.histogram, tau_0),
        optimal_cap.error_parts(problem, tau_0),
    )
    return {
        "cap_rows": tau_0 * problem.histogram.num_rows,
        "tau_0": tau_0,
        "kept_share": cap_statistics.kept_share,
        "largest_share": cap_statistics.max_share,
        "users_capped": cap_statistics.users_capped,
        "bias_twice": parts.bias,
        "finite_sample": parts.finite_sample,
        "privacy_noise": parts.privacy,
        "bound": parts.total,
        **{
            f"twice_{term.value}": 2.0 * values
            for term, values in optimal_cap.bias_terms(problem, tau_0).items()
        },
    }


NOT_COMPARED = NOT_ABOUT_DATA


def against_epsilon(data: Dataset, parameters: LearningParameters) -> BoundComparison:
    """Return the best cap and its bound on the excess risk at any epsilon."""
    problem, rows = parameters.problem(data.histogram), float(data.histogram.num_rows)

    def best(epsilon: float) -> tuple[float, float]:
        choice = optimal_cap.best_cap(replace(problem, epsilon=epsilon))
        return float(choice.cap), choice.total

    def error(epsilon: float, caps: FloatArray) -> FloatArray:
        fractions = np.minimum(caps / rows, 1.0)
        return np.asarray(optimal_cap.error_parts(replace(problem, epsilon=epsilon), fractions).total)

    histogram = data.histogram
    return BoundComparison(
        "Best bound (rows per user)",
        "Bound on the excess risk",
        best,
        error,
        histogram.sizes,
        histogram.users,
    )


def solve_rivals(problem: BiasProblem) -> dict[BiasTerm, LearningCap]:
    """Return the best cap under every bound on the bias."""
    return {term: optimal_cap.best_cap(replace(problem, bias=term)) for term in BiasTerm}


def axis_limits(solution: LearningSolution) -> Limits:
    """Return (from, to) of the cap's axis, in rows per user, and of the bound's; no number that is entered moves them.

    The cap's axis ends where nobody has more rows, or at n where the bound on the bias goes on falling. The
    bound's axis starts below what sampling alone costs at d = 1, since a smaller bound would be of no interest,
    and ends at 10: above 1 a bound says nothing.
    """
    n, heaviest = float(solution.problem.histogram.num_rows), float(solution.problem.histogram.max_size)
    largest_cap = n if solution.problem.bias.needs_only_the_fraction else min(n, 2.0 * heaviest)
    smallest_bound = math.sqrt(math.log(20.0 * n) / n)
    return (1.0, max(largest_cap, 2.0)), (
        10.0 ** math.floor(math.log10(max(smallest_bound, 1e-9) / 2.0)),
        10.0,
    )


def list_capped_users(
    solution: LearningSolution, cap: int, limit: int = 50
) -> tuple[dict[str, FloatArray], int]:
    """Return who loses rows under a cap, as columns, and how many further sizes are not listed."""
    capped = optimal_cap.capped_users(solution.problem.histogram, solution.fraction(cap), limit)
    return {
        "size": capped.sizes,
        "users": capped.users,
        "rows_cut": capped.rows_cut,
        "share_before": capped.share_before,
        "share_after": np.full(capped.sizes.shape, capped.share_after),
    }, capped.sizes_left_out


def write_headline(solution: LearningSolution) -> str:
    """Say how many rows of each user to keep."""
    return f"Keep at most {wording.counted(solution.choice.max_contributions, 'row')} of each user."


def list_numbers(solution: LearningSolution) -> tuple[Number, ...]:
    """Return the best cap, the bound on the excess risk there, and the parts of that bound."""
    choice = solution.choice
    cap, total, share = choice.max_contributions, choice.total, choice.fraction
    largest = f"({_largest_part(choice)})" if total > 0.0 else ""

    def build_part(label: str, value: float, key: str, help: str) -> Number:
        note = f"{wording.percent(value / total)} of it" if total > 0.0 else ""
        return Number(label, wording.number(value), note, help, value, key=key)

    return (
        Number(
            "Best bound", wording.counted(cap, "row"), "per user", _CAP, cap, ROWS_UNIT, "max_contributions"
        ),
        Number("Excess risk, at most", wording.number(total), largest, _BOUND, total, key="bound"),
        Number("As a share of all rows", wording.number(share), help=_FRACTION, value=share, key="tau_0"),
        build_part(BIAS, choice.bias, "bias_twice", _BIAS),
        build_part(SAMPLING, choice.finite_sample, "finite_sample", _FINITE),
        build_part(NOISE, choice.privacy, "privacy_noise", _PRIVACY),
    )


def list_facts(solution: LearningSolution, own_bound: int | None) -> dict[str, str]:
    """Explain the choice in sentences, each under its heading."""
    sentences = {
        "Half or double": _half_or_double(solution),
        "Who is affected": _describe_affected(solution),
        noise_error.NAME: _describe_alike_rows(solution),
    }
    if own_bound is not None:
        sentences[f"Your own bound, {wording.counted(own_bound, 'row')}"] = _describe_own_bound(
            solution, own_bound
        )
    return sentences


_CAP = "Upper bound on contributions per user."
_FRACTION = "The same bound as a share of all rows. The paper states its results in it."
_BOUND = (
    "The most by which the risk of the model found exceeds that of the best model, with probability 1 − δ (theorem "
    "1). A risk is an expected loss, between 0 and 1."
)
_BIAS = (
    "A bound changes whose rows count how much; a model is then judged on the wrong mix of users. Theorem 1 carries "
    "this bias twice: once for the model returned, once for the best one."
)
_FINITE = (
    "What any learner pays for seeing a finite sample: C √(d log(n/δ) / n_τ). It grows as rows are "
    "thrown away."
)
_PRIVACY = (
    "What hiding one user costs: F(largest share, 1/ε, 3/δ). It grows with the largest share of a user."
)


def _name_parts(bound: LearningCap | ErrorParts) -> dict[str, float]:
    values = {BIAS: bound.bias, SAMPLING: bound.finite_sample, NOISE: bound.privacy}
    return {name: float(value) for name, value in values.items()}


def _largest_part(optimal_cap: LearningCap) -> str:
    shares = _name_parts(optimal_cap)
    name = max(shares, key=shares.__getitem__)
    return f"{wording.percent(shares[name] / optimal_cap.total)} {name.lower()}"


def list_error_parts(solution: LearningSolution) -> tuple[ErrorPart, ...]:
    """Return the parts of the excess risk at the best cap; they add up to it."""
    return build_error_parts(_name_parts(solution.choice), wording.number)


LEAKS = (
    "Your data are private, and a bound read off them is too: using it in a release reveals something about who has "
    "how many rows."
)


def write_detail(solution: LearningSolution, dataset: Dataset) -> str:
    """Say how the headline must be qualified; empty where it need not be."""
    choice, settings = solution.choice, solution.problem
    sentences = []
    if choice.total >= 1.0:
        sentences.append(
            "**An excess risk above 1 promises nothing**, since losses lie in [0, 1]: it only says which bound is "
            "better."
        )
    if choice.users_capped == 0:
        sentences.append(
            "This bound cuts nobody's rows, since privacy noise costs less here than the bias of any lower one."
        )
    if settings.loss_variance == 0.0 and settings.bias.needs_variance:
        sentences.append("Users are taken to be alike (Var(H) = 0), so a bound biases nothing.")
    if solution.problem.histogram.num_users == 1:
        sentences.append("There is only one user, so the model learns from that user alone.")
    if dataset.is_private:
        sentences.append(LEAKS)
    return " ".join(sentences)


def describe_near_optimal(solution: LearningSolution) -> str:
    """Say from which cap to which one the excess risk stays near the least."""
    low, high = solution.near_optimal
    if low == high:
        if solution.problem.histogram.max_size == 1:
            return "nobody has more than one row, so there is nothing to choose."
        return f"only {wording.counted(low, 'row')}; its neighbours are more than 5{wording.PERCENT} worse."
    no_more = (
        " or more, as nobody has more rows"
        if high == solution.problem.histogram.max_size and not solution.problem.bias.needs_only_the_fraction
        else ""
    )
    return (
        f"any bound from {wording.number(low)} to {wording.counted(high, 'row')}{no_more} stays within "
        f"5{wording.PERCENT} of the least excess risk."
    )


def _half_or_double(solution: LearningSolution) -> str:
    cap, best = solution.choice.max_contributions, solution.choice.total
    phrases = []
    for name, other_cap in (("half", cap // 2), ("double", 2 * cap)):
        if other_cap < 1:
            continue
        bound = solution.bound_at(other_cap)
        costs = (
            f"costs {wording.change(bound, best)}"
            if math.isfinite(bound)
            else "is where this limit does not apply"
        )
        phrases.append(f"{name} ({wording.number(other_cap)}) {costs}")
    return ", ".join(phrases) + "."


def _describe_affected(solution: LearningSolution) -> str:
    histogram, choice = solution.problem.histogram, solution.choice
    share_before = histogram.max_size / histogram.num_rows
    if choice.users_capped == 0:
        return f"nobody has more rows than that; the heaviest user holds {wording.percent(share_before)} of all rows."
    statistics = optimal_cap.statistics(histogram, choice.fraction)
    return (
        f"{wording.counted(choice.users_capped, 'user')} of {wording.number(histogram.num_users)} "
        f"{wording.agreeing(choice.users_capped, 'has', 'have')} more rows than that, and "
        f"{wording.percent(float(statistics.cut_share))} of all rows are left out. The heaviest user's share falls "
        f"from {wording.percent(share_before)} to {wording.percent(float(statistics.max_share))}."
    )


def _describe_alike_rows(solution: LearningSolution) -> str:
    histogram = solution.problem.histogram
    kept_rows = np.minimum(histogram.sizes, max(solution.choice.cap, 1.0))
    times = math.sqrt(noise_error.design_effect(kept_rows, histogram.users))
    return (
        "the limit lets users differ in what is learnt from them, but takes the rows of one user as independent draws. "
        f"If a share ρ = {noise_error.ASSUMED_SHARE} of the variance of a loss lies between users, the finite-sample "
        "part is "
        f"about {wording.number(times)} times as large."
    )


def _describe_own_bound(solution: LearningSolution, cap: int) -> str:
    error_parts = solution.error_parts_at(cap)
    total = float(error_parts.total)
    if not math.isfinite(total):
        return "this limit on the bias says nothing there: less than a quarter of the rows is kept."
    split = ", ".join(
        f"{name.lower()} {wording.number(value)}" for name, value in _name_parts(error_parts).items()
    )
    return (
        f"excess risk at most {wording.number(total)} ({split}), {wording.change(total, solution.choice.total)}"
        " compared with the best bound."
    )


def describe_formulae(parameters: LearningParameters) -> str:
    """Say how the bias and the privacy noise are bounded, with the formulae."""
    term, privacy = parameters.bias, parameters.privacy
    factor = privacy.constant * math.log(3.0 / parameters.failure_probability) ** privacy.log_power
    form = f"F = {wording.number(factor)} {_power(privacy.power)}"
    if privacy.log_power:
        form += f", that is $C \\ln^2(3/\\delta)$ {_power(2.0)} with C = {wording.number(privacy.constant)}"
    words = [f"Bias at most ${term.formula}$. It needs: {term.needs[:1].lower()}{term.needs[1:]}."]
    if term is BiasTerm.TIGHTEST and parameters.loss_variance == 0.25:
        words.append("At Var(H) = 1/4 the worst case is always the smaller of the two.")
    if not term.needs_variance:
        words.append("Var(H) is not used.")
    words.append(f"{form}; share is the largest that one user holds of what is kept.")
    return " ".join(words)


def _power(power: float) -> str:
    return r"$(\text{share}/\varepsilon)" + ("$" if power == 1.0 else f"^{{{wording.digits(power)}}}$")


def list_rival_rows(
    solution: LearningSolution, rivals: Mapping[BiasTerm, LearningCap], own_bound: int | None
) -> list[dict[str, str]]:
    """Return the table of all bounds on the bias, one entry per bound, each twice as in theorem 1."""
    at_best = optimal_cap.bias_terms(solution.problem, solution.choice.fraction)
    at_own = (
        optimal_cap.bias_terms(solution.problem, solution.fraction(own_bound))
        if own_bound is not None
        else {}
    )
    rows = []
    for term in BiasTerm:
        choice = rivals[term]
        row = {
            "Way": term.group,
            "Bound": term.title,
            "Needs": _needs(term),
            "Twice, at the best bound": _bound(2.0 * float(at_best[term])),
        }
        if at_own:
            row["Twice, at your own bound"] = _bound(2.0 * float(at_own[term]))
        row["Best bound under it"] = wording.counted(round(choice.cap), "row")
        row["Its excess risk"] = wording.number(choice.total)
        row["Formula"] = f"${term.formula}$"
        rows.append(row)
    return rows


def _needs(term: BiasTerm) -> str:
    share_needed = (
        "the share of rows"
        if term.needs_only_the_fraction
        else "all shares"
        if term.needs_shares
        else "$n_\\tau/n$"
    )
    return f"{share_needed}, Var(H)" if term.needs_variance else share_needed


def _bound(value: float) -> str:
    return wording.number(value) if math.isfinite(value) else "does not apply"


def describe_files(label: str) -> str:
    """Describe the contents of the files of the curves and of the choice."""
    return (
        "**Choice** holds the question, the best bound, what each part contributes, and the proof. **Curves** hold "
        "the excess risk in its parts and every limit on the bias, twice, one line per bound; what does not apply "
        f"is `inf`. Label in both: *{label}*."
    )


def write_methods(
    solution: LearningSolution, data: Dataset, parameters: learning.LearningParameters
) -> Methods:
    """State the best cap; the bound on the excess risk that it minimises promises no accuracy, and is not stated."""
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
        disclosure=data.provenance,
        rule="The bound minimises an upper bound on the excess risk of the learner [@amin2019, theorem 1], "
        f"with the bias counted twice, VC dimension {parameters.vc_dimension}, failure probability "
        f"{wording.entered(parameters.failure_probability)}, and hidden constants of "
        f"{wording.entered(parameters.finite_sample_constant)} and "
        f"{wording.entered(parameters.privacy_constant)} for the finite sample and for privacy; it compares "
        "bounds and promises no accuracy.",
    )
