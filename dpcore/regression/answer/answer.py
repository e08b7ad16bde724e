"""The answer for a linear regression and its tabs, as all readers take them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpcore.answer import section
from dpcore.answer.answer import Answer, add_choice
from dpcore.answer.section import BEHIND, Parts, Sections
from dpcore.answer.standard import show_other_solver
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Stage
from dpcore.common.strict_json import certificate_fields
from dpcore.dataset import Dataset
from dpcore.regression import draw, study, working_set
from dpcore.regression.answer import plots, words
from dpcore.regression.answer.solution import RegressionSolution, solve
from dpcore.regression.estimate import ErrorTarget, compute_variances
from dpcore.regression.parameters import ASSUMPTIONS, RegressionGenerator, RegressionParameters

AT_ONCE = 100_000
"""Entries of X up to which a curve against epsilon starts by itself."""
REPEATS = 3
"""Data sets that are generated at each value."""


def describe_basis(answer: Answer, dataset: Dataset) -> Parts:
    """Say what the answer is computed with, and show all methods beside each other."""
    yield section.Note(words.describe_basis(answer.solution))
    yield "**All methods beside each other**"
    formats = {"Times the best": "%.3g", "Privacy noise": "%.2g %%"}
    formats |= dict.fromkeys(("Standard error, coefficients", "Error, predictions"), "%.4g")
    columns = words.tabulate_methods(answer.solution)
    yield section.Table(columns, "Errors of all methods", formats, key="regression_methods")
    yield section.Note(words.describe_methods(answer.solution))


def show_bounds(answer: Answer, dataset: Dataset) -> Parts:
    """Show the error against the bound."""
    if answer.solution.caps is None:
        yield section.Note("No bound has been tried yet, or the trial was stopped.", "info")
    else:
        yield section.Figures((plots.plot_caps(answer.solution, answer.solution.target),), "xy")


def show_weights(answer: Answer, dataset: Dataset) -> Parts:
    """Show the weights of users' rows, by size and by direction."""
    yield (
        "**Look at** the heavy users on the right: with no bound one of them sets the noise. The best weights hold "
        "everybody at one level and let light users count for more."
    )
    by_size = section.Figures((answer.plots["regression-weights"](),), titled=True)
    yield section.Columns(([by_size], _show_directions(answer.solution)))
    yield section.Label()


def _show_directions(solution: RegressionSolution) -> Parts:
    names = {method: plots.METHODS[method][0] for method in reversed(plots.list_weights(solution))}
    method = yield section.Choice("weights_of", "Share of each coefficient's weight, under", names)
    yield section.Figures((plots.plot_directions(solution, method),), titled=True)


def show_over_epsilon(answer: Answer, dataset: Dataset) -> Parts:
    """Show the error against epsilon, on the data of the answer."""
    solution, problem, parameters = answer.solution, answer.solution.problem, answer.parameters
    yield "**Look at** the distance between orange and blue: the best weights gain it over the best bound at each ε."
    if not solution.draws.num_draws:
        yield section.Note("This needs the trial of bounds, which was stopped.", "info")
        return
    sweep = yield section.Search(
        "over_epsilon",
        (parameters.lower, parameters.upper, problem.residual_variance),
        lambda tell, stop: study.over_epsilon(
            problem, solution.draws, solution.labels, progress=tell, should_stop=stop
        ),
        "Solving at 12 values of ε",
        "" if problem.features.size <= AT_ONCE else "Solve at 12 values of ε",
        describe_stop=study.describe_stop,
    )
    yield from _show_sweep(sweep, "epsilon", solution)
    if solution.target is ErrorTarget.PREDICTIONS:
        yield section.Note(words.FIT)
    yield section.Label()


def _show_sweep(sweep: study.Sweep | None, name: str, solution: RegressionSolution) -> Parts:
    if sweep is None or not sweep.values.size:
        return
    yield plots.plot_sweep(sweep, name, solution)
    yield section.Note(
        f"Every point of the best weights is proved to a gap of {sweep.columns['gap'].max():.0e}."
    )


def show_paper_figures(answer: Answer, dataset: Dataset) -> Parts:
    """Show figures 1 and 2 with the parameters of the answer, and below them the paper's own."""
    generator, epsilon = answer.parameters.generator, answer.parameters.epsilon
    yield (
        f"**With your settings** at ε = {wording.entered(epsilon)}: the mean over {REPEATS} generated data sets of "
        f"{wording.counted(generator.num_features, 'feature')} and noise {wording.entered(generator.label_noise)}. "
        "σ² is the generator's, B the range of its labels. The paper shows squared prediction errors at ε = 1; the "
        "squares are in the figures' data."
    )

    def show_generated(name: str, heading: str, generators: Mapping[float, RegressionGenerator]) -> Parts:
        yield heading
        sweep = yield section.Search(
            f"over_{name}",
            (next(iter(generators.values())), epsilon),
            lambda tell, stop: study.over_generated(
                generators, epsilon, REPEATS, progress=tell, should_stop=stop
            ),
            f"Solving {len(generators) * REPEATS} problems",
            f"Solve at {len(generators)} values",
            shows_outdated=True,
            describe_stop=study.describe_stop,
            of_data=False,
        )
        yield from _show_sweep(sweep, name, answer.solution)

    by_rows = show_generated(
        "rows",
        f"**Against the number of rows** (α = {wording.entered(generator.exponent)}; the paper: 1.5)",
        {n: replace(generator, num_rows=int(n)) for n in study.ROWS},
    )
    by_exponent = show_generated(
        "exponent",
        f"**Against inequality** (n = {generator.num_rows:,}; the paper: 3,000)",
        {exponent: replace(generator, exponent=exponent) for exponent in study.EXPONENTS},
    )
    yield section.Columns((by_rows, by_exponent))
    yield section.Label(Disclosure.PUBLIC)
    yield section.PaperFigures(study.FIGURES)


def show_search(answer: Answer, dataset: Dataset) -> Parts:
    """Show the gap by iteration, live while the search goes on, and what a general solver finds."""
    problem, estimate = answer.solution.problem, answer.solution.best_estimate
    yield "The figure shows the gap between the best weights so far and a bound that no weights go below."
    if answer.solution.stage is Stage.FIRST:
        yield section.Live(lambda: plots.plot_gap(tuple(estimate.steps), answer.disclosure))
        return
    plot = plots.plot_gap(estimate.steps, answer.disclosure)
    yield f"{estimate.stop_reason} {plot.alt}"
    yield plot
    is_large = problem.features.size > working_set.MOST_ENTRIES
    yield from show_other_solver(
        "cvxpy",
        problem.digest,
        lambda stop: working_set.compare_solvers(problem, stop),
        "Total variance",
        f"A general solver is offered up to {working_set.MOST_ENTRIES:,} entries of C." if is_large else "",
    )
    yield section.Label()


EXAMPLE_TEXTS = {
    1: (
        "**Example 1**: no noise in the labels, two directions at right angles. In the first, one user holds one long "
        "row and g² users hold g short ones; in the second, one user holds g rows and g² users hold one each. A bound "
        "must be large for the first and small for the second; weights need not choose. The optimum is 1/(g² + 1)²; "
        "the paper's C has 1/g⁴. (Its weight 1/g² per row does not satisfy CX = I; 1/g³ does.)"
    ),
    3: (
        "**Example 3**: all rows have length 1, σ² = 1, and 2d(B/ε)² = g. One user holds g rows of the first "
        "direction; each of g others holds one of it and g − 1 of the second. The paper shows at most 6/g for weights, "
        "and for any bound at least g/9 in half of the draws."
    ),
}


def show_examples(answer: Answer, dataset: Dataset) -> Parts:
    """Show the two examples of an unbounded gap, with the true optimum."""
    names = {number: f"Example {number}" for number in EXAMPLE_TEXTS}
    number = yield section.Choice("example", "Example of the paper", names)
    yield EXAMPLE_TEXTS[number]
    sweep = yield section.Search(
        "examples",
        number,
        lambda tell, stop: study.over_examples(number, progress=tell, should_stop=stop),
        f"Solving at {len(study.EXAMPLE_G[number])} sizes",
        describe_stop=study.describe_stop,
        is_complete=lambda sweep: sweep.is_complete,
        of_data=False,
        kept=2,
    )
    if sweep is None or not sweep.values.size:
        return
    plot = plots.plot_example(sweep, number)
    yield plot
    yield plot.alt
    yield section.Label(Disclosure.PUBLIC)


SECTIONS: Sections = {
    BEHIND: describe_basis,
    "Studies": {
        "Against the bound": show_bounds,
        "Weights": show_weights,
        "Against ε": show_over_epsilon,
        "Figures 1 and 2": show_paper_figures,
        "Search": show_search,
        "Examples": show_examples,
    },
}


def build_answer(
    dataset: Dataset | None, parameters: RegressionParameters, solution: RegressionSolution | None = None
) -> Answer:
    """Find how much each row should weigh in a linear regression of private labels on public features.

    Args:
        dataset: Labels, features and owners, as `dpcore.regression.problem.build_dataset` makes them of a table;
            None where they are generated, as the parameters say.
        parameters: The question.
        solution: What `solve` found for both, or what its searches have found so far; searched for here by default.

    Returns:
        The answer; its ``solution`` is a `RegressionSolution`. Plots are computed when they are asked for.

    Raises:
        InvalidInput: The data have no labels and features, or do not fit the question.

    Examples:
        By symmetry all rows weigh 1/2; the noise is 1/2 of the range of a label, over ε.

        >>> import pandas as pd
        >>> import dpcore as ss
        >>> table = pd.DataFrame({"user": list("abcd"), "x": [-1, 1, -1, 1], "y": [1, 2, 3, 4]})
        >>> answer = ss.regression_weights(table, user="user", label="y", features=["x"], epsilon=1, lower=0, upper=5)
        >>> print(answer.bound["weight"].round(3).tolist(), round(answer.error, 3))
        [0.5, 0.5, 0.5, 0.5] 2.5

    Source: Epasto et al. 2020, section 5.
    """
    solved = solve(dataset, parameters) if solution is None else solution
    disclosure, estimate = solved.data.provenance, solved.best_estimate
    # The main figure is the first.
    targets = sorted(ErrorTarget, key=lambda target: target is not solved.target)
    errors = {plots.ERROR_KEYS[t]: functools.partial(plots.plot_errors, solved, t) for t in targets}
    caps = {plots.CAP_KEYS[t]: functools.partial(plots.plot_caps, solved, t) for t in ErrorTarget}
    answer = Answer(
        headline="Weight the rows, do not bound them.",
        detail=words.write_detail(solved),
        numbers=words.list_numbers(solved),
        assumptions=ASSUMPTIONS,
        disclosure=disclosure,
        facts=words.list_facts(solved),
        proofs=(("Best weights", estimate.certificate, estimate.stop_reason),),
        code=words.write_forms(solved),
        near_optimal=words.describe_near_optimal(solved),
        parameters=solved.parameters,
        solution=solved,
        plots={
            **errors,
            **(caps if solved.caps is not None else {}),
            "regression-weights": lambda: plots.plot_weights(solved),
        },
        make_methods=lambda: words.write_methods(solved),
        bound=lambda: draw.tabulate_users(solved.problem, estimate),
        files={"regression_matrix.parquet": lambda: draw.write_matrix(solved.problem, estimate, disclosure)},
        sections=SECTIONS,
    )
    return add_choice(
        answer,
        solved.data,
        "linear regression with private labels",
        lambda: _list_details(solved),
        question={
            "data_source": solved.parameters.source.value,  # In every choice, ``source`` is the work with the method.
            "mechanism": "Laplace",
            "source": "Epasto et al. 2020, Smoothly Bounding User Contributions in DP, section 5",
        },
        data={
            "feature_names": list(solved.problem.feature_names),
            "residual_variance": solved.problem.residual_variance,
            "residual_variance_label": disclosure.label
            if solved.variance_is_estimated
            else Disclosure.PUBLIC.label,
        },
        schema="sweetspot/regression/1",
    )


def _list_details(solution: RegressionSolution) -> dict[str, object]:
    estimate, caps = solution.best_estimate, solution.caps
    return {
        "total_variance": estimate.variance,
        "sampling_variance": estimate.sampling_variance,
        "privacy_variance": estimate.privacy_variance,
        "laplace_scale": estimate.noise.scale,
        "largest_user_weight": estimate.largest_user_weight,
        "standard_errors": np.sqrt(compute_variances(solution.problem, estimate)).tolist(),
        **certificate_fields(estimate.certificate),
        "ended": estimate.stop_reason,
        "max_contributions": None if caps is None else caps.max_contributions,
        "best_cap_total_variance": None if caps is None else float(caps.variance[caps.best]),
    }
