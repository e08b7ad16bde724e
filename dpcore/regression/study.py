"""Ours beside caps while ε, rows or users vary, and the figures and the table of the paper."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.paper_figure import Line, PaperFigure
from dpcore.answer.plot import Axis, Style, linear_axis
from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.data.samples import RegressionRows, simulate_drugs, simulate_news
from dpcore.regression import examples, sample_limiting, working_set
from dpcore.regression.estimate import ordinary_residual_variance, prediction_error
from dpcore.regression.parameters import RegressionGenerator
from dpcore.regression.problem import RegressionProblem
from dpcore.regression.sample_limiting import CapDraws

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
ROWS = (600, 1200, 1800, 2400, 3000)
"""The paper's range of figure 1."""
EXPONENTS = (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0)
"""The paper's range of figure 2, 1 < alpha <= 2."""
EXAMPLE_G = {1: (2, 3, 4, 6, 8, 12, 16, 20), 3: (2, 4, 8, 16, 32, 64)}
"""Sizes g at which examples 1 and 3 are solved."""
TOLERANCE = 1e-6
"""Relative gap of a point of a curve: far below what can be seen."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Ours, the best cap and no cap at several values; squared errors.

    Attributes:
        values: What was varied, those values that were finished, shape (k,).
        best_weights: Total variance of the coefficients, (label unit / feature unit)^2, and expected squared error of
            the prediction, label unit squared, computed from the labels; shape (2, k).
        cap: The same of sample limiting, each error at the cap that is best for it, in expectation over draws.
        no_cap: The same of ordinary least squares on all rows.
        max_contributions: The cap of least variance; of the last repeat where there are several.
        worst_gap: Largest relative gap that was left to the lower bound.
        stop_reason: How it ended, a sentence.
    """

    values: FloatArray
    best_weights: FloatArray
    cap: FloatArray
    no_cap: FloatArray
    max_contributions: IntArray
    worst_gap: float
    stop_reason: str


@dataclass(frozen=True, eq=False)
class ExampleSweep:
    """An example of an unbounded gap at several sizes g; total variances, all of shape (k,).

    Attributes:
        g: The sizes that were finished.
        optimum: The optimum found.
        lower_bound: What no unbiased linear estimator goes below there.
        reference: Example 1: the optimum in closed form; example 3: the paper's upper bound on it, 6 / g.
        cap: The best cap, in expectation over draws.
        claimed_cap: What the paper proves of every cap: 1 / (4 g^3), and g / 9.
        max_contributions: The best cap.
        stop_reason: How it ended, a sentence.
    """

    g: IntArray
    optimum: FloatArray
    lower_bound: FloatArray
    reference: FloatArray
    cap: FloatArray
    claimed_cap: FloatArray
    max_contributions: IntArray
    stop_reason: str


_Point = tuple[FloatArray, int, float]
"""Errors of ours, of the best cap and of no cap, shape (3, 2), as in `Sweep`; the cap of least variance; the gap."""


def _solve_point(
    problem: RegressionProblem, draws: Callable[[], CapDraws], labels: FloatArray, should_stop: ShouldStop
) -> _Point | None:
    """Solve one question by all three methods; None if that was stopped."""
    solution = working_set.solve(problem, working_set.SolverOptions(TOLERANCE), should_stop=should_stop)
    cap_draws = draws()
    if should_stop():
        return None
    curve = sample_limiting.curve(problem, cap_draws)
    best, predicting = curve.best, curve.best_prediction
    errors = (
        (solution.variance, prediction_error(problem, solution, labels).total),
        (curve.variance[best], curve.prediction_error[predicting]),
        (curve.variance[-1], curve.prediction_error[-1]),
    )
    return np.array(errors), int(curve.caps[best]), solution.certificate.relative_gap


def over_epsilon(
    problem: RegressionProblem,
    draws: CapDraws,
    labels: FloatArray,
    epsilons: Sequence[float] = EPSILONS,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Sweep:
    """Solve the same question at several epsilons.

    Args:
        problem: The question; its epsilon is not used.
        draws: At least one draw of caps on the same features and owners, with prediction errors.
        labels: y, shape (num_rows,), as they enter the release.
        epsilons: To solve at.
        progress: Told the share done.
        should_stop: Asked often; the values finished by then are returned.

    Raises:
        InvalidInput: An epsilon is out of range.
    """
    with Problems() as problems:
        for epsilon in epsilons:
            problems.between(*EPSILON_RANGE, epsilon=epsilon)

    def solve_at(epsilon: float) -> _Point | None:
        problem_there = problem.with_settings(epsilon, problem.value_bound, problem.residual_variance)
        return _solve_point(problem_there, lambda: draws, labels, should_stop)

    return _sweep(epsilons, solve_at, progress)


def over_generated(
    generators: Sequence[RegressionGenerator],
    values: Sequence[float],
    epsilon: float,
    repeats: int = 3,
    *,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Sweep:
    """Solve the question on generated data of several kinds, each averaged over a few seeds.

    sigma^2 is the generator's own and B the range of the generated labels.

    Args:
        generators: One for each value.
        values: What stands on the axis for each.
        epsilon: Privacy budget.
        repeats: Seeds to average over, from each generator's own on, 1 to 100.
        progress: Told the share done.
        should_stop: Asked often; the values finished by then are returned.

    Raises:
        InvalidInput: ``epsilon`` or ``repeats`` is out of range.

    Source: Epasto et al. 2020, figures 1 and 2 (which average 10 draws of noise; here its expectation is
        exact, and the data are averaged over instead).
    """
    with Problems() as problems:
        problems.between(*EPSILON_RANGE, epsilon=epsilon)
        problems.whole(1, 100, repeats=repeats)
    by_value = dict(zip(values, generators, strict=True))

    def solve_at(value: float) -> _Point | None:
        points = []
        for repeat in range(repeats):
            generator = replace(by_value[value], seed=by_value[value].seed + repeat)
            generated = generator.generate()
            bound = float(np.ptp(generated.labels))
            problem = RegressionProblem(
                generated.features, generated.user_codes, epsilon, bound, generator.label_noise**2
            )
            draws = functools.partial(
                sample_limiting.study, problem, labels=generated.labels, should_stop=should_stop
            )
            point = _solve_point(problem, draws, generated.labels, should_stop)
            if point is None:
                return None
            points.append(point)
        errors, caps, gaps = zip(*points, strict=True)
        return np.mean(errors, axis=0), caps[-1], max(gaps)

    return _sweep(values, solve_at, progress)


def over_examples(
    example: int, *, progress: Progress = silent, should_stop: ShouldStop = never
) -> ExampleSweep:
    """Solve example 1 or 3 at the sizes of `EXAMPLE_G`.

    Args:
        example: 1 or 3.
        progress: Told the share done.
        should_stop: Asked often; the sizes finished by then are returned.

    Raises:
        InvalidInput: Another example.

    Source: Epasto et al. 2020, examples 1 and 3, claims 3 and 9.
    """
    if example not in EXAMPLE_G:
        raise refuse(f"example must be 1 or 3; got {example!r}")
    make, sizes, rows = (examples.example_1 if example == 1 else examples.example_3), EXAMPLE_G[example], []
    for g in sizes:
        problem = make(g)
        best = working_set.solve(problem, should_stop=should_stop)
        curve = sample_limiting.solve(
            problem, sample_limiting.CapOptions(caps=tuple(range(1, g + 1))), should_stop=should_stop
        )
        if should_stop():
            break
        cost, cap = float(curve.variance[curve.best]), curve.max_contributions
        rows.append((g, best.variance, best.certificate.lower_bound, cost, cap))
        progress(len(rows) / len(sizes))
    g_of, optimum, bound, cost_of, cap_of = np.array(rows, dtype=np.float64).reshape(len(rows), 5).T
    return ExampleSweep(
        g=g_of.astype(np.int64),
        optimum=optimum,
        lower_bound=bound,
        reference=1.0 / (g_of**2 + 1.0) ** 2 if example == 1 else 6.0 / g_of,
        cap=cost_of,
        claimed_cap=1.0 / (4.0 * g_of**3) if example == 1 else g_of / 9.0,
        max_contributions=cap_of.astype(np.int64),
        stop_reason=_describe_stop(len(rows), len(sizes), "sizes"),
    )


def _sweep(values: Sequence[float], solve_at: Callable[[float], _Point | None], progress: Progress) -> Sweep:
    done: list[_Point] = []
    for value in values:
        point = solve_at(value)
        if point is None:
            break
        done.append(point)
        progress(len(done) / len(values))
    best_weights, cap, no_cap = (
        np.array([errors for errors, _, _ in done]).reshape(len(done), 3, 2).transpose(1, 2, 0)
    )
    return Sweep(
        values=np.array(values[: len(done)], dtype=np.float64),
        best_weights=best_weights,
        cap=cap,
        no_cap=no_cap,
        max_contributions=np.array([best for _, best, _ in done], dtype=np.int64),
        worst_gap=max((gap for _, _, gap in done), default=0.0),
        stop_reason=_describe_stop(len(done), len(values), "points"),
    )


def _describe_stop(done: int, total: int, noun: str) -> str:
    return f"All {total} {noun}." if done == total else f"Stopped after {done} of {total} {noun}."


PAPER = "Epasto et al. 2020"
EXPONENT, PAPER_ROWS, EPSILON = 1.5, 3000, 1.0
"""The paper's α, n and ε where it does not vary them."""
PAPER_EPSILONS = (1.0, 2.0, 3.0)
ROUNDS = 10
"""Data sets: the paper repeats its experiments 10 times."""
DRAWS = 10
"""Draws of a cap's rows over which the expectation is taken; over noise it is exact."""
DRUGS = {"weights": (3.1, 2.5, 2.3), "best_bound": (24.8, 7.7, 4.5), "no_bound": (95.4, 25.2, 12.4)}
NEWS = {
    "weights": (1696.3, 440.1, 166.2),
    "best_bound": (96344.4, 24110.0, 10648.3),
    "no_bound": (4862670.7, 1201568.9, 550989.2),
}
"""Table 1 as printed, at the three ε."""
METHODS = (
    ("no_bound", "No bound", Style.ENTERED, "square"),
    ("best_bound", "Best bound", Style.CAP, "diamond"),
    ("weights", "Best weights", Style.SMOOTH, "circle"),
)
DATA = (
    "Generated as the paper does: 10 features, 5 of them with a coefficient, label noise 20, rows per user by "
    "Zipf's law. "
    "σ² is the generator's, and B the range of its labels. 10 data sets; over noise the expectation is exact."
)
STAND_IN = (
    "These are made-up rows with the paper's numbers of rows and users, and its largest user; 10 data sets."
)
OPEN = (
    "The paper draws bars and prints no numbers. It says that weights have always less error, by orders of "
    "magnitude where "
    "no bound is set; so have ours. How many of the 10 features have a coefficient, and B, it leaves open."
)


@functools.lru_cache(maxsize=64)
def errors(rows: int, exponent: float, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Return the expected squared error of the prediction, label unit squared: no bound, best bound, best weights."""
    generator = RegressionGenerator(num_rows=rows, exponent=exponent, seed=seed + 1)
    sweep = over_generated([generator], [0.0], epsilon, 1)
    return float(sweep.no_cap[1][0]), float(sweep.cap[1][0]), float(sweep.best_weights[1][0])


def errors_on_rows(rows: RegressionRows, epsilon: float) -> dict[str, float]:
    """Return the expected squared error of the prediction by each method, label unit squared.

    B is the largest label, and σ² that of ordinary least squares: both are read off data that are public.

    Raises:
        InvalidInput: Features are linearly dependent.
    """
    variance = ordinary_residual_variance(rows.features, rows.labels)
    value_bound = float(np.abs(rows.labels).max())
    problem = RegressionProblem(rows.features, rows.users, epsilon, value_bound, variance)
    draws = sample_limiting.study(problem, sample_limiting.CapOptions(draws=DRAWS), rows.labels)
    sweep = over_epsilon(problem, draws, rows.labels, (epsilon,))
    return _name_errors((float(sweep.no_cap[1, 0]), float(sweep.cap[1, 0]), float(sweep.best_weights[1, 0])))


def _name_errors(errors: tuple[float, float, float]) -> dict[str, float]:
    return {key: error for (key, *_), error in zip(METHODS, errors, strict=True)}


def _by_epsilon(rows: float, seed: int) -> dict[str, float]:
    return {
        f"{key}_{epsilon:g}": error
        for epsilon in PAPER_EPSILONS
        for key, error in _name_errors(errors(int(rows), EXPONENT, epsilon, seed)).items()
    }


ERROR = Axis("average squared error of the prediction", "label unit squared", number_format=".3g")
ROW_TICKS = tuple((float(n), f"{n:,}") for n in ROWS)
OVER_ROWS = linear_axis("rows n", (500.0, 3100.0), number_format=",", named_ticks=ROW_TICKS)
EXPONENT_TITLE = "Exponent α of rows per user (smaller: more uneven)"
OVER_EXPONENTS = linear_axis("exponent α of rows per user", (1.05, 2.05), title=EXPONENT_TITLE)
OVER_EPSILON = Axis(
    "privacy budget ε", "", (0.9, 3.3), named_ticks=tuple((e, f"{e:g}") for e in PAPER_EPSILONS)
)
LINES = tuple(Line(*method) for method in METHODS)
DASHES = dict(zip(PAPER_EPSILONS, ("solid", "dash", "dashdot"), strict=True))

FIGURES = (
    PaperFigure(
        "epasto-figure-1",
        PAPER,
        "Figure 1",
        "error over the number of rows",
        f"α = {EXPONENT}, ε = {EPSILON:g}. {DATA}",
        "Regression",
        "Figures 1 and 2",
        OVER_ROWS,
        ERROR,
        tuple(map(float, ROWS)),
        LINES,
        lambda rows, seed: _name_errors(errors(int(rows), EXPONENT, EPSILON, seed)),
        ROUNDS,
        OPEN,
    ),
    PaperFigure(
        "epasto-figure-2",
        PAPER,
        "Figure 2",
        "error over the inequality of users",
        f"n = {PAPER_ROWS:,}, ε = {EPSILON:g}. {DATA}",
        "Regression",
        "Figures 1 and 2",
        OVER_EXPONENTS,
        ERROR,
        EXPONENTS,
        LINES,
        lambda exponent, seed: _name_errors(errors(PAPER_ROWS, exponent, EPSILON, seed)),
        ROUNDS,
        f"{OPEN} Its caption names α = 1.5, which is what it varies.",
    ),
    PaperFigure(
        "epasto-figure-3",
        PAPER,
        "Figure 3",
        "figure 1 at three ε",
        f"α = {EXPONENT}, ε = 1, 2 and 3. {DATA}",
        "Regression",
        "Figures 1 and 2",
        OVER_ROWS,
        ERROR,
        tuple(map(float, ROWS)),
        tuple(
            Line(f"{key}_{epsilon:g}", f"{name}, ε = {epsilon:g}", style, symbol, DASHES[epsilon])
            for key, name, style, symbol in METHODS
            for epsilon in PAPER_EPSILONS
        ),
        _by_epsilon,
        ROUNDS,
        OPEN,
    ),
    PaperFigure(
        "epasto-table-1-drugs",
        PAPER,
        "Table 1, drugs",
        "errors on drugs",
        f"The paper takes 3,107 reviews of 502 drugs, which may not be passed on. {STAND_IN}",
        "Regression",
        "Figures 1 and 2",
        OVER_EPSILON,
        ERROR,
        PAPER_EPSILONS,
        tuple(Line(*method, paper_values=DRUGS[method[0]]) for method in METHODS),
        lambda epsilon, seed: errors_on_rows(simulate_drugs(seed), epsilon),
        ROUNDS,
        "Other data, so that only directions can be compared: weights err least, and by far where no bound is set.",
    ),
    PaperFigure(
        "epasto-table-1-news",
        PAPER,
        "Table 1, news",
        "errors on news",
        f"The paper takes 3,452 posts of 297 news sources, which do not come with the app. {STAND_IN}",
        "Regression",
        "Figures 1 and 2",
        OVER_EPSILON,
        ERROR,
        PAPER_EPSILONS,
        tuple(Line(*method, paper_values=NEWS[method[0]]) for method in METHODS),
        lambda epsilon, seed: errors_on_rows(simulate_news(seed), epsilon),
        ROUNDS,
        "Other data, so that only directions can be compared: weights err least, by a factor of more than a thousand "
        "where no bound is set.",
    ),
)
