"""Ours beside caps while epsilon, the number of rows or the inequality of users varies (the paper's figures)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import EPSILON_RANGE, Problems, refuse
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.regression import examples, sample_limiting, working_set
from dpcore.regression.parameters import RegressionGenerator
from dpcore.regression.prediction import prediction_error
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
