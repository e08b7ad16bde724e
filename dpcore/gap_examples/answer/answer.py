"""The answer for the gain of weights over the best cap, its sentences and its tabs."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcore import mean
from dpcore.answer import section, standard
from dpcore.answer.answer import Answer, Number, ReleaseSetting
from dpcore.answer.axes import ROWS_UNIT
from dpcore.answer.methods import Methods, cite_noise, write_guarantee
from dpcore.answer.unit import state_unit
from dpcore.code.forms import OfferedPrograms
from dpcore.code.release_spec import Quantity
from dpcore.common.privacy import Disclosure, Neighbours, Provenance
from dpcore.common.wording import PERCENT, choose_word, format_count, format_number, format_percent
from dpcore.dataset import Dataset
from dpcore.gap_examples import regression, two_groups
from dpcore.gap_examples.answer import solution as plots
from dpcore.gap_examples.answer.solution import GapSolution, solve
from dpcore.gap_examples.compare import Comparison, compare
from dpcore.gap_examples.parameters import NUM_USERS, GapParameters
from dpcore.mean.answer.answer import write_bound_forms

WORTHWHILE_RATIO = 1.05
"""Below this ratio of variances a cap is recommended: every library has caps, few have weights."""


def format_gain(ratio: float) -> str:
    """Format by how much a ratio exceeds 1, in percent; 0 % if by rounding alone."""
    return format_percent(max(ratio - 1.0, 0.0), 3) if ratio - 1.0 > 5e-6 else f"0{PERCENT}"


def describe_ratio(comparison: Comparison) -> str:
    """Write one sentence: the ratio, and between which limits certificates prove it."""
    ratio_at_least, ratio_at_most = comparison.ratio_at_least, comparison.ratio_at_most
    is_exact_ratio = ratio_at_most - ratio_at_least <= 1e-9 * ratio_at_most
    limits_phrase = f"between {ratio_at_least:.6f} and {ratio_at_most:.6f}"
    proof_phrase = "to within rounding" if is_exact_ratio else limits_phrase
    return f"The exact optimisers give {comparison.ratio:.6f}, proved {proof_phrase}."


def write_headline(comparison: Comparison) -> str:
    """Write one sentence: which cap to set, or to use weights if they gain enough."""
    gain_text = format_gain(comparison.ratio)
    if comparison.ratio < WORTHWHILE_RATIO:
        rows_text = format_count(comparison.cap_choice.max_contributions, "row")
        return f"Keep at most {rows_text} per user: weights gain only {gain_text}."
    return f"Use smooth weights: the best bound has {gain_text} more variance."


def build_numbers(comparison: Comparison) -> tuple[Number, ...]:
    """Build the numbers of the answer: ratio of variances, ratio of errors, best cap, noise ratio."""
    ratio, noise_ratio, error_ratio = comparison.ratio, comparison.noise_ratio, math.sqrt(comparison.ratio)
    cap, noise_text = comparison.cap_choice.max_contributions, format_number(noise_ratio)
    rows_text, noise_unit = format_count(cap, "row"), choose_word(noise_ratio, "row", "rows")
    max_note = f"(on any data at most {format_gain(math.sqrt(two_groups.compute_supremum().ratio))})"
    gain_text, error_text = format_gain(ratio), f"{format_gain(error_ratio)} more"
    error_help = f"Standard error with the best bound, against the best smooth weights. The ratio is {error_ratio:.4f}."
    ratio_help = "Variance of the mean with the best bound over that with the best smooth weights."
    noise_help = "2 (B/ε)²/σ²: the noise if one user holds all the weight, in variances of a row."
    return (
        Number(
            "Best bound against weights",
            gain_text,
            "more variance",
            f"{ratio_help} It is {ratio:.4f}.",
            ratio,
            key="ratio",
            clipboard_text=gain_text,
        ),
        Number("Standard error", error_text, max_note, error_help, error_ratio, key="error_ratio"),
        Number("Best bound", rows_text, "per user", "Least variance.", cap, ROWS_UNIT, "max_contributions"),
        Number("Noise ratio ρ", noise_text, noise_unit, noise_help, noise_ratio, "rows", "noise_ratio"),
    )


def build_facts(solution: GapSolution) -> dict[str, str]:
    """Build the facts beside the answer: texts by heading."""
    comparison = solution.comparison
    if comparison.problem.histogram.sizes.size == 1:
        ratio_text = "all users have equally many rows, so bounded rows and weights are the same."
    elif comparison.problem.value_variance == 0.0:
        ratio_text = "without sampling error the best bound and the best weights are the same."
    else:
        threshold_text = format_number(comparison.smooth_choice.threshold)
        ratio_text = f"the best weights have the bound {threshold_text}. {describe_ratio(comparison)}"
    sentence_by_title = {
        "Here": ratio_text,
        "Any data": f"the ratio is below {two_groups.compute_supremum().ratio:.5f}; theorem 3 of the paper says at "
        "most 4. See *Any noise*.",
    }
    sentence_by_title["If you must bound rows"] = standard.write_near_optimal_range(
        *solution.near_optimal_caps, "row", objective_text="the best bound's error"
    )
    if solution.domination is not None:
        light_share_text = format_percent(solution.domination.light_share)
        sentence_by_title["Why not more"] = (
            f"give {light_share_text} of the users one row and the rest unlimited rows. Their best weights are no "
            f"worse and their best bound is no better; their ratio is {solution.domination.limit_ratio:.4f}."
        )
    return sentence_by_title


def write_proof(solution: GapSolution) -> tuple[str, ...]:
    """Write the proof of theorem 3 on these data, one sentence or more for each step."""
    proof = solution.proof
    cap_text, sampling_limit = format_number(proof.max_contributions), 2 if proof.case_number == 1 else 4
    if proof.case_number == 1:
        case_sentence = (
            f"**Case 1**, α ≥ ½: round up, **h′ = ⌈h\\*⌉ = {cap_text}**. Heavy users alone lose rows, so the sampling "
            "error at most doubles."
        )
    else:
        case_sentence = (
            "**Case 2**, α < ½: pass over the share 1 − 1/(2(1 − α)) of the heavy users, "
            f"{format_count(proof.heavy_user_rank, 'user')}; the last of these has **h′ = {cap_text}** "
            f"{choose_word(proof.max_contributions, 'row', 'rows')}."
        )
    return (
        f"The best weights have the bound **h\\* = {format_number(proof.threshold, 4)}**. Users with at most h\\* "
        f"rows hold the share **α = {format_percent(proof.share_below, 3)}** of the weight.",
        case_sentence,
        f"h′ has {proof.sampling_factor:.3f} times the sampling error of the best weights (at most {sampling_limit}) "
        f"and {proof.privacy_factor:.3f} times their noise (at most 4), together **{proof.ratio:.3f} times (at most "
        "4)**.",
    )


def write_methods(solution: GapSolution, dataset: Dataset, parameters: GapParameters) -> Methods:
    """Write the methods text: the recommended cap or weights, and the ratio of the variances."""
    comparison, noise_text = solution.comparison, cite_noise("Laplace")
    if comparison.ratio < WORTHWHILE_RATIO:
        rows_text = format_count(comparison.cap_choice.max_contributions, "row")
        step_phrase = f"At most {rows_text} per user, drawn at random, were kept"
    else:
        threshold_text = format_number(comparison.smooth_choice.threshold, 6)
        step_phrase = (
            f"Rows were weighted: no user weighs more than {threshold_text} rows [@epasto2020, section 3]"
        )
    return Methods(
        guarantee_text=write_guarantee(
            "The mean was released", parameters.epsilon, Neighbours.REPLACE_VALUES
        ),
        procedure=f"{step_phrase}, and {noise_text} was added to the mean. "
        f"The best bound on rows per user has {comparison.ratio:.4f} times the variance of the best weights.",
        public_procedure=f"The total weight of each user's rows was bounded, and {noise_text} was added to the mean.",
        disclosure=dataset.provenance,
        rule_sentence="The best bound and the best weights minimise the expected squared error of the released mean; "
        f"weights were preferred from a ratio of variances of {format_number(WORTHWHILE_RATIO)} on.",
        subject_phrase="The ratio",
    )


# --- tabs ---------------------------------------------------------------------------------------------------


def solve_beside_page(dataset: Dataset, parameters: GapParameters) -> section.Solver:
    """Find the solution on these data, cached; what is entered in the tabs on instances does not change it.

    A generator for `Solver`.
    """
    solution = yield section.Cached(solve, (dataset, parameters.build_mean_parameters()))
    return section.SearchResult(solution)


def show_proof(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab with the paper's proof, carried out on these data."""
    if answer.code is None:
        yield "**Get code** needs the range of a value: enter it on *Mean*."
    yield "**The proof of theorem 3, on these data**"
    yield "\n".join(f"{i}. {sentence}" for i, sentence in enumerate(write_proof(answer.solution), 1))
    if answer.disclosure is Disclosure.PRIVATE:
        yield section.Label()


def offer_instance(
    comparison: Comparison, file_stem: str, disclosure: Provenance = Disclosure.PUBLIC
) -> section.File:
    """Build the download of an instance as a CSV file, which the page *Data* opens."""
    return section.File(
        "Instance (CSV)",
        f"{file_stem}_instance.csv",
        lambda: two_groups.write_instance_csv(comparison.problem, disclosure),
        disclosure,
        "*Data* opens it under *Upload a file*.",
    )


def offer_data(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the download of the rows per user of the data, with the noise ratio."""
    yield f"Rows per user and the noise ratio. Label: *{answer.disclosure.label}*."
    yield offer_instance(answer.solution.comparison, "gap_data", answer.disclosure)


def show_theorem_2(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab on the paper's example 2: the ratio over g, the exact variances at g, and the instance."""
    g = answer.parameters.g
    yield "The ratio approaches 3/2 as g grows."
    yield section.Fields(("g",))
    exact_variances = two_groups.compute_theorem_2(g)
    v, v_cap, ratio = exact_variances.smooth_variance, exact_variances.capped_variance, exact_variances.ratio
    comparison: Comparison = yield section.Cached(compare, (two_groups.build_theorem_2_problem(g),))
    variance_plot = plots.plot_variances(comparison, key="gap-theorem-2-variances")
    yield section.Figures((plots.plot_theorem_2(g), variance_plot))
    yield (
        rf"""
$$
\begin{{aligned}}
v &= \frac{{2g+1}}{{4g^2}} = \frac{{{v.numerator}}}{{{v.denominator}}} = {float(v):.6g} \\[4pt]
v' &= \frac{{3}}{{4g}} = \frac{{{v_cap.numerator}}}{{{v_cap.denominator}}} = {float(v_cap):.6g} \\[4pt]
\frac{{v'}}{{v}} &= \frac{{3g}}{{2g+1}} = \frac{{{ratio.numerator}}}{{{ratio.denominator}}} = {float(ratio):.6f}
\end{{aligned}}
$$

In units of σ², with 2(B/ε)² = gσ². The paper gives both variances, at bound 1, as limits; they are exact.
"""
    )
    yield section.Note(describe_ratio(comparison))
    yield offer_instance(comparison, "gap_theorem_2")


def show_two_groups(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab on two groups: the ratio over the share of light users, its computation, and the instance."""
    yield "The paper has p = 50 %; p = 40 % is worse. Raise R: the dotted curve rises to a limit."
    yield section.Fields(("light_users", "heavy_size", "light_size"))
    parameters: GapParameters = answer.parameters
    num_light_users = parameters.light_users
    comparison: Comparison = yield section.Cached(compare, (parameters.build_two_group_problem(),))
    ratio_plot = plots.plot_two_groups(num_light_users, parameters.heavy_size, parameters.light_size)
    variance_plot = plots.plot_variances(comparison, key="gap-two-groups-variances")
    yield section.Figures((ratio_plot, variance_plot))
    p, compared_caps = num_light_users / NUM_USERS, (1, 2, 3)
    q = 1.0 - p
    variance_texts = [f"{1.0 / (p + q * x) + q * x * x / (p + q * x) ** 2:.4f}" for x in compared_caps]
    integer_cap_limit = two_groups.compute_integer_cap_limit(p)
    light_share_text = f"{num_light_users}{PERCENT}"
    fine_formula = "1/(1 − p)" if p <= 1.0 / 3.0 else "(5p − 1)/(4p²)" if p <= 0.5 else "2 − p"
    yield (
        rf"""
A share p = {light_share_text} of the users has s rows, the others, q, have R·s; 2(B/ε)² = σ²qm/s. As R → ∞, with
s = 1, the best weights have variance σ²/m, and a bound of x rows has σ²/m times

$$
\frac{{1}}{{p+qx}} + \frac{{q\,x^2}}{{(p+qx)^2}}.
$$

| bound x | {" | ".join(map(str, compared_caps))} | → ∞ |
|---|{"---|" * (len(compared_caps) + 1)}
| times σ²/m | {" | ".join(variance_texts)} | {1.0 / q:.4f} |

Best is {_name_cap(integer_cap_limit)}: **{float(integer_cap_limit.ratios):.4f}**. With fine bounds (s → ∞) the best is
{fine_formula} = **{float(two_groups.compute_real_cap_limit(p).ratios):.4f}**.
"""
    )
    yield section.Note(
        f"The instance has {NUM_USERS} users and ρ = {format_number(comparison.noise_ratio)}. "
        f"{describe_ratio(comparison)}"
    )
    yield offer_instance(comparison, "gap_two_groups")


def _name_cap(ratio_limit: two_groups.RatioLimit) -> str:
    """Return "bound 2", say, for the best cap of a limit of one instance; "no bound at all" if it is infinite."""
    best_cap = float(ratio_limit.best_caps)
    return f"bound {best_cap:.0f}" if math.isfinite(best_cap) else "no bound at all"


def show_any_noise(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab on any noise: the ratio over the share of light users, at this noise and at the worst."""
    ratio_supremum = two_groups.compute_supremum()
    yield "The star is the most that any instance, also of more groups, can reach: docs/gap.md proves it."
    yield section.Fields(("noise_per_user",))
    noise_per_user = answer.parameters.noise_per_user
    yield plots.plot_any_noise(noise_per_user)
    worst_light_share = plots.find_worst_share(noise_per_user)
    ratio_limit = two_groups.compute_integer_cap_limit(worst_light_share, noise_per_user)
    threshold = max(1.0, (1.0 - worst_light_share) / noise_per_user)
    yield (
        f"At p = {format_percent(worst_light_share, 3)}, the worst share: bound {threshold:.3f} for the weights, "
        f"{_name_cap(ratio_limit)}, ratio **{float(ratio_limit.ratios):.5f}**."
    )
    comparison: Comparison = yield section.Cached(compare, (ratio_supremum.build_problem(),))
    num_light_users, num_heavy_users = comparison.problem.histogram.users.tolist()
    yield section.Note(
        f"An instance near it: {num_light_users} users with 1 row, {num_heavy_users} with "
        f"{comparison.problem.histogram.max_size:,}, ρ = {comparison.noise_ratio:.4f}. {describe_ratio(comparison)}"
    )
    yield offer_instance(comparison, "gap_largest")


def show_regression(answer: Answer, dataset: Dataset) -> section.Parts:
    """Yield the tab on linear regression, where the ratio grows with g without limit."""
    yield "For linear regression the gap grows without bound."
    yield section.Fields(("example", "regression_g"))
    example_number, g = answer.parameters.example, answer.parameters.regression_g
    regression_step = yield section.Cached(regression.solve_regression_step, (example_number, g), num_kept=32)
    growth_columns = yield section.Cached(regression.compute_growth, (example_number,), num_kept=4)
    yield plots.plot_growth(growth_columns, regression_step)
    yield _write_regression(regression_step)
    yield section.Link("Linear regression", "Find the best C on other data", "arrow_forward")


def _write_regression(regression_step: regression.RegressionStep) -> str:
    """Write sentences that compare sample limiting with the paper's matrix C and with the best C."""
    example = regression_step.example
    g, best_variance = example.g, example.best_variance
    proof_sentence = "it is too large to be solved while you wait."
    if regression_step.certificate is not None:
        solved_variance = regression_step.certificate.value
        is_same = abs(solved_variance / best_variance - 1.0) <= 1e-7
        solved_value_text = "the same" if is_same else format_number(solved_variance, 6)
        certificate_text = regression_step.certificate.sentence
        proof_sentence = f"the solver of *Linear regression* finds {solved_value_text}. {certificate_text}"
    if example.example_number == 1:
        paper_remark = "The paper prints the weight 1/g² where CX = I asks for 1/g³, which is used here."
    else:
        paper_remark = (
            f"Shown is the expected variance. The paper's bound for sample limiting, "
            f"{format_number(example.limiting_bound)}, holds with probability "
            f"{format_percent(regression_step.guaranteed_probability, 3)} or more (paper: ½)."
            + (" Below g = 8 the paper's bounds do not separate the two." if g < 8 else "")
        )
    return (
        f"**{format_count(example.num_rows, 'row')} of {format_count(example.num_users, 'user')}.** Variance of "
        f"the paper's C: {format_number(example.feasible_variance, 4)} (its bound: "
        f"{format_number(example.weights_bound, 4)}), of the best C: **{format_number(best_variance, 4)}**. "
        f"Sample limiting at its best bound, {regression_step.best_threshold}, has "
        f"**{format_number(regression_step.ratio, 4)}** and {format_number(regression_step.best_ratio, 4)} times as "
        f"much. The best C is a closed form; {proof_sentence}\n\n{paper_remark}"
    )


SECTIONS: section.Sections = {
    section.BEHIND: show_proof,
    "On any data": {
        "Paper's example": show_theorem_2,
        "Two groups": show_two_groups,
        "Any noise": show_any_noise,
        "Regression": show_regression,
    },
    section.DOWNLOADS: offer_data,
}


class CapAndWeights(NamedTuple):
    """The best cap, the best threshold of smooth weights, and the ratio of their variances.

    Attributes:
        max_contributions: The best cap.
        threshold: Of the best smooth weights.
        variance_ratio: Variance of the cap over that of the weights.
    """

    max_contributions: int
    threshold: float
    variance_ratio: float


ValueRange = tuple[float, float]
"""The range of a value, L and U."""


def build_answer(
    dataset: Dataset,
    parameters: GapParameters,
    solution: GapSolution | None = None,
    value_range: ValueRange | None = None,
) -> Answer:
    """Compare the best cap with the best smooth weights, on these data and on the paper's examples.

    Args:
        dataset: How many rows users have.
        parameters: The question.
        solution: The solution of `solve` for both; computed here by default.
        value_range: The range of a value, which a program for a library needs; what is best depends on it only
            through its ratio to sigma. None writes no program.

    Returns:
        The answer; its ``solution`` is a `GapSolution`. Plots are computed when they are asked for.

    Examples:
        With one row of each user the variance is (90 + 10 + 8) / 100². With the best weights it is 1 / 101.11, and
        the ratio of the two is 1.092.

        >>> import dpcore as ss
        >>> answer = ss.weights_gain([1] * 90 + [10] * 10, epsilon=1)
        >>> print(answer.bound.max_contributions, round(answer.bound.variance_ratio, 3))
        1 1.092

    Source: Epasto et al. 2020, section 3.3; docs/gap.md.
    """
    solution = solve(dataset, parameters.build_mean_parameters()) if solution is None else solution
    comparison = solution.comparison
    cap_choice, smooth_choice, problem = comparison.cap_choice, comparison.smooth_choice, comparison.problem
    gain_text = format_gain(two_groups.compute_supremum().ratio)
    limit_sentence = f"For any data set the excess is at most {gain_text}."
    offered_programs: OfferedPrograms | None = None
    if value_range is not None and value_range[0] < value_range[1]:
        mean_parameters = mean.MeanParameters(parameters.epsilon, *value_range)
        cap, threshold = cap_choice.max_contributions, smooth_choice.threshold
        offered_programs = write_bound_forms(
            cap, threshold, Neighbours.REPLACE_VALUES, dataset, mean_parameters
        )
    lower, upper = value_range or (None, None)
    answer = Answer(
        headline=write_headline(comparison),
        detail=f"{limit_sentence} {standard.PUBLIC_COUNTS_CAVEAT}" if dataset.is_private else limit_sentence,
        numbers=build_numbers(comparison),
        assumptions=mean.ASSUMPTIONS,
        disclosure=dataset.provenance,
        facts=build_facts(solution),
        proofs=(
            ("Bounded rows", cap_choice.certificate, cap_choice.stop_reason),
            ("Smooth weights", smooth_choice.certificate, smooth_choice.stop_reason),
        ),
        code=offered_programs,
        parameters=parameters,
        solution=solution,
        plots={"gap-data": lambda: plots.plot_variances(comparison, dataset.provenance)},
        make_methods=lambda: write_methods(solution, dataset, parameters),
        write_json=lambda: two_groups.write_instance_json(comparison, dataset.provenance),
        setting=ReleaseSetting(
            Quantity.MEAN,
            parameters.epsilon,
            Neighbours.REPLACE_VALUES,
            lower=lower,
            upper=upper,
            variance_share=problem.value_variance / problem.value_bound**2,
            program=problem.program,
        ),
        sections=SECTIONS,
        bound=CapAndWeights(cap_choice.max_contributions, smooth_choice.threshold, comparison.ratio),
    )
    unit_answer: Answer = state_unit(answer, dataset)
    return unit_answer
