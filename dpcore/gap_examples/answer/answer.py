"""The answer for the gain of weights over the best cap and its tabs, as all readers take them."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcore import mean
from dpcore.answer import section
from dpcore.answer.answer import Answer, ReleaseSetting
from dpcore.code.choice import Quantity
from dpcore.code.forms import CodeChoice
from dpcore.common import wording
from dpcore.common.privacy import Disclosure, Neighbours, Provenance
from dpcore.dataset import Dataset
from dpcore.gap_examples import two_groups
from dpcore.gap_examples.answer import plots
from dpcore.gap_examples.answer import solution as words
from dpcore.gap_examples.answer.solution import GapSolution, certify, solve
from dpcore.gap_examples.compare import Comparison, compare
from dpcore.gap_examples.parameters import NUM_USERS, GapParameters
from dpcore.mean.answer.answer import mean_forms


def solve_beside_page(dataset: Dataset, parameters: GapParameters) -> section.Solver:
    """Compare cap and weights; what is entered in the steps on instances does not matter."""
    solution = yield section.Cached(solve, (dataset, parameters.mean_parameters()))
    return section.SearchResult(solution)


def show_proof(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the paper's proof at work on these data."""
    if answer.code is None:
        yield "**Code for your library:** it needs the range of a value, which you enter on *Mean*."
    yield "**The proof of theorem 3, on these data**"
    yield "\n".join(f"{i}. {sentence}" for i, sentence in enumerate(words.write_proof(answer.solution), 1))
    if answer.disclosure is Disclosure.PRIVATE:
        yield section.Label()


def offer_instance(
    comparison: Comparison, key: str, disclosure: Provenance = Disclosure.PUBLIC
) -> section.Row:
    """Offer the instance as CSV, which *Your data* opens, and as JSON."""
    table = section.File(
        "Instance (CSV)",
        f"{key}_instance.csv",
        lambda: two_groups.instance_csv(comparison.problem, disclosure),
        disclosure,
        "Rows per user, users, and the noise ratio. *Your data* opens it under *Upload a file*.",
    )
    proof = section.File(
        "Instance with proof (JSON)",
        f"{key}_instance.json",
        lambda: two_groups.instance_json(comparison, disclosure),
        disclosure,
    )
    return section.Row((table, proof))


def offer_data(answer: Answer, dataset: Dataset) -> section.Parts:
    """Offer the data as an instance."""
    yield (
        "**Instance** holds how many users have how many rows, with the noise ratio; with proof, also both optima and "
        f"what proves them. section.Label in both: *{answer.disclosure.label}*."
    )
    yield offer_instance(answer.solution.comparison, "gap_data", answer.disclosure)


def show_theorem_2(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the instance of section 3.3."""
    g = answer.parameters.g
    yield (
        "**Look at** the ratio as g grows: half of the users have one row, half have g. The ratio approaches 3/2 "
        "but never reaches it."
    )
    yield section.Fields(("g",))
    exact = two_groups.theorem_2(g)
    v, v_cap, ratio = exact.smooth_variance, exact.capped_variance, exact.ratio
    yield plots.plot_theorem_2(g)
    yield (
        rf"""
$$
\begin{{aligned}}
v &= \frac{{2g+1}}{{4g^2}} = \frac{{{v.numerator}}}{{{v.denominator}}} = {float(v):.6g} \\[4pt]
v' &= \frac{{3}}{{4g}} = \frac{{{v_cap.numerator}}}{{{v_cap.denominator}}} = {float(v_cap):.6g} \\[4pt]
\frac{{v'}}{{v}} &= \frac{{3g}}{{2g+1}} = \frac{{{ratio.numerator}}}{{{ratio.denominator}}} = {float(ratio):.6f}
\end{{aligned}}
$$

In units of σ², with 2(B/ε)² = gσ²: {wording.counted(g, "user")} with 1 row and {wording.counted(g, "user")} with
{wording.counted(g, "row")}. A bound of 1 is best for both. The paper gives both variances as limits; they are exact.
"""
    )
    comparison: Comparison = yield section.Cached(compare, (two_groups.theorem_2_problem(g),))
    yield section.Note(certify(comparison))
    yield offer_instance(comparison, "gap_theorem_2")


def show_two_groups(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show other shares than those of the paper."""
    yield (
        "**Look at** p = 40 % instead of the paper's 50 %: there two groups reach 25/16 = 1.5625. Raise R "
        "and watch the dotted curve rise to a limit."
    )
    yield section.Fields(("light_users", "heavy_size", "light_size"))
    parameters: GapParameters = answer.parameters
    light, heavy_size, light_size = parameters.light_users, parameters.heavy_size, parameters.light_size
    yield plots.plot_two_groups(light, heavy_size, light_size)
    p, percent = light / NUM_USERS, wording.PERCENT
    yield (
        rf"""
A share p = {light}{percent} of the users has s rows, q = {NUM_USERS - light}{percent} has R·s; 2(B/ε)² = σ²qm/s.
As R → ∞, with s = 1, the best weights have variance σ²/m, and a bound of x rows has σ²/m times

$$
\frac{{1}}{{p+qx}} + \frac{{q\,x^2}}{{(p+qx)^2}}.
$$

{_tabulate_caps(p)}

{_write_best_cap(p)}
"""
    )
    comparison: Comparison = yield section.Cached(compare, (parameters.two_groups(),))
    yield section.Note(
        f"The instance: {wording.counted(light, 'user')} with {wording.counted(light_size, 'row')}, "
        f"{wording.counted(NUM_USERS - light, 'user')} with "
        f"{wording.counted(light_size * heavy_size, 'row')}, ρ = {wording.number(comparison.noise_ratio)}. "
        f"{certify(comparison)}"
    )
    yield offer_instance(comparison, "gap_two_groups")


def _tabulate_caps(p: float) -> str:
    """Write the formula at some caps, as a table."""
    q, caps = 1.0 - p, (1, 2, 3)
    terms = [f"{1.0 / (p + q * x) + q * x * x / (p + q * x) ** 2:.4f}" for x in caps]
    return (
        f"| bound x | {' | '.join(map(str, caps))} | → ∞ |\n|---|{'---|' * (len(caps) + 1)}\n"
        f"| times σ²/m | {' | '.join(terms)} | {1.0 / q:.4f} |"
    )


def _write_best_cap(p: float) -> str:
    """Write the best cap, among whole ones and among finely set ones."""
    whole_caps, fine_caps = two_groups.whole_cap_limit(p), two_groups.fine_cap_limit(p)
    formula = "1/(1 − p)" if p <= 1.0 / 3.0 else "(5p − 1)/(4p²)" if p <= 0.5 else "2 − p"
    return (
        f"Best is {_name_cap(whole_caps)}: **{float(whole_caps.ratio):.4f}**. Where bounds can be set finely (s → ∞ "
        f"too) the best is {formula} = **{float(fine_caps.ratio):.4f}**."
    )


def _name_cap(limit: two_groups.RatioLimit) -> str:
    """Name the best cap of a limit."""
    return f"bound {float(limit.cap):.0f}" if math.isfinite(limit.cap) else "no bound at all"


def show_any_noise(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show the gap with the noise set free."""
    best = two_groups.supremum()
    yield (
        "**Look at** where the blue curve touches the dashed one as you move the noise: the star, "
        f"{best.ratio:.5f}, is the most that any instance can reach."
    )
    yield section.Fields(("noise_per_user",))
    t = answer.parameters.noise_per_user
    yield plots.plot_any_noise(t)
    p = plots.find_worst_share(t)
    limit = two_groups.whole_cap_limit(p, t)
    yield (
        f"At t = {wording.entered(t)} the worst share is p = {wording.percent(p, 3)}: bound "
        f"{max(1.0, (1.0 - p) / t):.3f} for the weights, {_name_cap(limit)}, ratio **{float(limit.ratio):.5f}**. The "
        f"largest of all is at p = {best.light_share:.6f}, t = {best.noise_per_user:.6f}, where bounds {best.caps[0]} "
        f"and {best.caps[1]} tie: **{best.ratio:.6f}**. More groups do not help: docs/gap.md proves it."
    )
    comparison: Comparison = yield section.Cached(compare, (two_groups.supremum().problem(),))
    sizes, users = comparison.problem.histogram.sizes, comparison.problem.histogram.users
    yield section.Note(
        f"An instance near it: {wording.counted(int(users[0]), 'user')} with "
        f"{wording.counted(int(sizes[0]), 'row')}, {users[1]} with {sizes[1]:,}, "
        f"ρ = {comparison.noise_ratio:.4f}. {certify(comparison)}"
    )
    yield offer_instance(comparison, "gap_largest")


def show_regression(answer: Answer, dataset: Dataset) -> section.Parts:
    """Show where the gap has no bound."""
    yield (
        "**Look at** the left figure: for linear regression the gap grows without bound, unlike that for a "
        "mean."
    )
    yield section.Fields(("example", "regression_g"))
    number, g = answer.parameters.example, answer.parameters.regression_g
    step = yield section.Cached(plots.solve_regression_step, (number, g), kept=32)
    growth = yield section.Cached(plots.compute_growth, (number,), kept=4)
    yield section.Figures((plots.plot_growth(growth, step), plots.plot_thresholds(step)))
    yield _write_regression(step)
    yield section.Link("Regression", "Find the best C on other data", "arrow_forward")


def _write_regression(step: plots.RegressionStep) -> str:
    """Write how the paper's C and the best one compare with sample limiting."""
    example, g, optimum = step.example, step.example.g, step.example.optimum
    better = "better" if step.ratio > 1.0 else "worse, since it is feasible but not the best,"
    proof = "the instance is too large to be solved while you wait."
    if step.certificate is not None:
        solved = step.certificate.value
        same = "the same" if abs(solved / optimum - 1.0) <= 1e-7 else wording.number(solved, 6)
        proof = f"the solver of *Regression* finds {same}. {step.certificate.sentence}"
    if example.number == 1:
        formula = " = 1/(g² + 1)²"
        remark = (
            "One user's far point pins the first coefficient down, at the price of a large weight; one heavy user "
            "disturbs the second. One bound must serve both. The paper prints the weight 1/g² where CX = I asks for "
            "1/g³; 1/g³ is used here. At g = 1 the paper's C is 4 times worse, at g = 2 equal."
        )
    else:
        formula = ""
        remark = (
            "Which rows are kept is drawn at random; shown is the expected variance. The paper's bound for sample "
            f"limiting, g/9 = {wording.number(example.limiting_bound)}, is to hold with probability ½: exactly, it "
            f"holds with probability {wording.percent(step.guaranteed_probability, 3)} or more at every bound."
            + (" Below g = 8 the paper's bounds do not separate the two." if g < 8 else "")
        )
    return (
        f"**{wording.counted(example.num_rows, 'row')} of {wording.counted(example.num_users, 'user')}.** The paper's "
        f"C has variance {wording.number(example.feasible_variance, 4)} (its bound: "
        f"{wording.number(example.weights_bound, 4)}). Sample limiting at its best bound, {step.best_threshold}, has "
        f"{wording.number(float(step.limited_variances.min()), 4)}: C is {better} by the factor "
        f"**{wording.number(step.ratio, 4)}**.\n\nThe best C has variance **{wording.number(optimum, 4)}**{formula}: "
        f"sample limiting at its best has {wording.number(step.best_ratio, 4)} times that, the paper's C "
        f"{wording.number(example.feasible_variance / optimum, 4)} times. That is a closed form; {proof}\n\n{remark}"
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
    """Compare the best cap with the best smooth weights on the examples of the paper.

    Args:
        dataset: How many rows users have.
        parameters: The question.
        solution: What `solve` found for both; computed here by default.
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
    solution = solve(dataset, parameters.mean_parameters()) if solution is None else solution
    comparison = solution.comparison
    return Answer(
        headline=words.write_headline(comparison),
        detail=words.write_detail(dataset),
        numbers=words.build_numbers(comparison),
        assumptions=mean.ASSUMPTIONS,
        disclosure=dataset.provenance,
        facts=words.build_facts(solution),
        proofs=(
            ("Bounded rows", comparison.cap.certificate, comparison.cap.stop_reason),
            ("Smooth weights", comparison.smooth.certificate, comparison.smooth.stop_reason),
        ),
        code=_build_code(solution, dataset, parameters.epsilon, value_range),
        near_optimal=words.describe_near_optimal(solution),
        parameters=parameters,
        solution=solution,
        plots={"gap-data": lambda: plots.plot_variances(solution, dataset)},
        make_methods=lambda: words.write_methods(solution, dataset, parameters),
        choice=lambda: two_groups.instance_json(comparison, dataset.provenance),
        setting=ReleaseSetting(
            Quantity.MEAN,
            parameters.epsilon,
            Neighbours.REPLACE_VALUES,
            lower=None if value_range is None else value_range[0],
            upper=None if value_range is None else value_range[1],
            variance_share=comparison.problem.value_variance / comparison.problem.value_bound**2,
        ),
        sections=SECTIONS,
        bound=CapAndWeights(comparison.cap.max_contributions, comparison.smooth.threshold, comparison.ratio),
    )


def _build_code(
    solution: GapSolution, dataset: Dataset, epsilon: float, value_range: ValueRange | None
) -> CodeChoice | None:
    """Return the programs for a mean with both bounds, or None if the value range is unknown or empty."""
    if value_range is None or not value_range[0] < value_range[1]:
        return None
    comparison, mean_parameters = solution.comparison, mean.MeanParameters(epsilon, *value_range)
    cap, threshold = comparison.cap.max_contributions, comparison.smooth.threshold
    return mean_forms(cap, threshold, Neighbours.REPLACE_VALUES, dataset, mean_parameters)
