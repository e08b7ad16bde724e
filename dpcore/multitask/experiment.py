"""The experiment of appendix C: test error against the exponent mu, by algorithm, skew and epsilon.

As in the paper, task sizes n_i are taken to be public, so nothing is spent on counting; step sizes use them
and nothing else. The paper gives neither regularisation nor clipping bounds nor steps; those of `Experiment`
were chosen on other seeds. Features and labels of the generator fit Gamma_x = Gamma_* = 1, up to label noise.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.common.over_runs import summary
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.dataset import Pairs
from dpcore.multitask.budget import PrivacyTarget, exact_budget
from dpcore.multitask.descent import DescentSettings, fit_descent, isotropic_rates
from dpcore.multitask.examples import Examples, HeldOut
from dpcore.multitask.graph import TaskGraph
from dpcore.multitask.problem import TaskProblem
from dpcore.multitask.ridge import RidgeSettings, RidgeSums, perturbed, solve, weighted_sums
from dpcore.multitask.synthetic import LinearModel, SkewedTasks
from dpcore.multitask.weights import expected_totals, normalised_weights


class Algorithm(enum.Enum):
    """Which of the paper's two algorithms."""

    SUFFICIENT_STATISTICS = "sufficient statistics (algorithm 1)"
    GRADIENT_DESCENT = "noisy gradient descent (algorithm 2)"


@dataclass(frozen=True)
class Experiment:
    """What is run; the defaults are appendix C's, where it gives them.

    Attributes:
        algorithms: Which algorithms.
        powers: a, the skews: 1 more, 2 less.
        epsilons: Each above 0.
        exponents: mu, each in [0, 1].
        repeats: Independent draws of everything, 1 to 1000.
        seed: Of all randomness, at least 0. Within a repeat all exponents share data and noise.
        num_users: n.
        num_tasks: m.
        tasks_per_user: On average.
        dimension: d, 1 to 50.
        label_noise: sigma_F >= 0.
        delta: Of the guarantee.
        test_share: Share of pairs held out, in (0, 1).
        ridge: Settings of algorithm 1.
        descent: Settings of algorithm 2.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    algorithms: tuple[Algorithm, ...] = tuple(Algorithm)
    powers: tuple[float, ...] = (1.0, 2.0)
    epsilons: tuple[float, ...] = (1.0, 5.0)
    exponents: tuple[float, ...] = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
    repeats: int = 5
    seed: int = 0
    num_users: int = 10_000
    num_tasks: int = 100
    tasks_per_user: float = 20.0
    dimension: int = 5
    label_noise: float = 1e-3
    delta: float = 1e-5
    test_share: float = 0.2
    ridge: RidgeSettings = field(default_factory=RidgeSettings)
    descent: DescentSettings = field(default_factory=lambda: DescentSettings(gradient_bound=0.5, steps=10))

    def __post_init__(self) -> None:
        with Problems() as problems:
            for name in ("algorithms", "powers", "epsilons", "exponents"):
                if not getattr(self, name):
                    problems.add(f"{name} must not be empty")
            for exponent in self.exponents:
                problems.between(0.0, 1.0, exponents=exponent)
            problems.whole(1, 1000, repeats=self.repeats)
            problems.whole(0, 2**32 - 1, seed=self.seed)
            problems.whole(1, 50, dimension=self.dimension)
            problems.non_negative(label_noise=self.label_noise)
            problems.between(0.01, 0.99, test_share=self.test_share)
        # These check themselves.
        for epsilon in self.epsilons:
            PrivacyTarget(epsilon, self.delta)
        for power in self.powers:
            self.tasks(power)

    def tasks(self, power: float) -> SkewedTasks:
        """The generator of the graph at one skew."""
        return SkewedTasks(self.num_users, self.num_tasks, power, self.tasks_per_user)


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """Test errors, one per run.

    Attributes:
        experiment: What was run.
        rmse: Root mean squared test error, shape (algorithms, powers, epsilons, exponents, repeats); NaN for
            runs that were not reached.
        finished: Whether all runs were.
    """

    experiment: Experiment
    rmse: FloatArray
    finished: bool

    def mean(self) -> FloatArray:
        """Mean over the repeats done, shape (algorithms, powers, epsilons, exponents); NaN without any."""
        return self._over_repeats(self.rmse)[0]

    def standard_error(self) -> FloatArray:
        """Standard error of `mean`; NaN below two repeats."""
        return self._over_repeats(self.rmse)[1]

    def relative(self) -> tuple[FloatArray, FloatArray]:
        """Errors relative to those of exponent 0, paired over repeats.

        Returns:
            Mean of the quotients and its standard error, each of shape
            (algorithms, powers, epsilons, exponents).
        """
        at = self.experiment.exponents.index(0.0)
        return self._over_repeats(self.rmse / self.rmse[..., at : at + 1, :])

    def advantage(self, exponent: float, other: float) -> tuple[FloatArray, FloatArray]:
        """By how much one exponent's error is below another's, paired over repeats.

        Returns:
            Mean difference other - exponent, and its standard error, each of shape
            (algorithms, powers, epsilons).
        """
        chosen = [self.experiment.exponents.index(mu) for mu in (exponent, other)]
        return self._over_repeats(self.rmse[..., chosen[1], :] - self.rmse[..., chosen[0], :])

    @staticmethod
    def _over_repeats(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = summary(values, axis=-1)
        return found.mean, found.standard_error


def run(
    experiment: Experiment, progress: Progress = silent, should_stop: ShouldStop = never, workers: int = 2
) -> ExperimentResult:
    """Run it, repeats side by side in threads.

    Args:
        experiment: What to run.
        progress: Called from this thread with the share of runs done.
        should_stop: Asked from this thread about four times a second; where it says yes, what is done so
            far is returned.
        workers: Threads.
    """
    algorithms, powers = experiment.algorithms, experiment.powers
    shape = (len(algorithms), len(powers), len(experiment.epsilons), len(experiment.exponents))
    rmse = np.full((*shape, experiment.repeats), np.nan)
    runs_done = [0]
    lock, stop = threading.Lock(), threading.Event()

    def one(power_at: int, repeat: int) -> None:
        for *where, value in _repeat(experiment, power_at, repeat, stop.is_set):
            algorithm_at, epsilon_at, exponent_at = where
            with lock:
                rmse[algorithm_at, power_at, epsilon_at, exponent_at, repeat] = value
                runs_done[0] += 1

    jobs = [(p, r) for r in range(experiment.repeats) for p in range(len(powers))]
    with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
        waiting: set[Future[None]] = {pool.submit(one, *job) for job in jobs}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.25, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                progress(runs_done[0] / rmse.size)
                if should_stop():
                    stop.set()
        finally:
            # Also where progress or should_stop raised: the threads must not run on.
            stop.set()
    return ExperimentResult(experiment, rmse, bool(np.isfinite(rmse).all()))


def _repeat(
    experiment: Experiment, power_at: int, repeat: int, stopped: ShouldStop
) -> Iterator[tuple[int, int, int, float]]:
    """All runs of one repeat at one skew: (algorithm, epsilon, exponent, rmse), places by number."""
    if stopped():
        return
    data_seed, noise_seed = np.random.SeedSequence([experiment.seed, power_at, repeat]).spawn(2)
    train, test = draw_examples(experiment, experiment.powers[power_at], np.random.default_rng(data_seed))
    # Weights for a budget of 1; those for beta are sqrt(beta) times as large.
    problem = TaskProblem.from_graph(train.graph, 1.0)
    budgets = [exact_budget(PrivacyTarget(e, experiment.delta)) for e in experiment.epsilons]
    for exponent_at, exponent in enumerate(experiment.exponents):
        weights = normalised_weights(problem, exponent).pair_weights()
        for algorithm_at, algorithm in enumerate(experiment.algorithms):
            if stopped():
                return
            fit = _FITS[algorithm](experiment, train, problem, exponent, weights)
            for epsilon_at, budget in enumerate(budgets):
                if stopped():
                    return
                coefficients = fit(budget, np.random.default_rng(noise_seed))
                yield algorithm_at, epsilon_at, exponent_at, test.root_mean_squared_error(coefficients)


Learner = Callable[[float, np.random.Generator], FloatArray]


def _fit_statistics(
    experiment: Experiment, train: Examples, problem: TaskProblem, exponent: float, weights: FloatArray
) -> Learner:
    settings = experiment.ridge
    sums = weighted_sums(train, weights, settings)
    on_matrix = settings.matrix_sensitivity(train.dimension, ridge_is_counted=True)

    def fit(budget: float, rng: np.random.Generator) -> FloatArray:
        # The sums are linear in the weights: every epsilon shares one pass over the pairs.
        scaled = RidgeSums(np.sqrt(budget) * sums.matrices, np.sqrt(budget) * sums.vectors)
        return solve(
            perturbed(scaled, on_matrix, settings.vector_sensitivity, rng), settings.coefficient_bound
        )

    return fit


def _fit_descent(
    experiment: Experiment, train: Examples, problem: TaskProblem, exponent: float, weights: FloatArray
) -> Learner:
    totals = expected_totals(problem, exponent)

    def fit(budget: float, rng: np.random.Generator) -> FloatArray:
        rates = isotropic_rates(np.sqrt(budget) * totals, train.dimension, experiment.descent.steps)
        return fit_descent(train, np.sqrt(budget) * weights, experiment.descent, rates, rng).coefficients

    return fit


_FITS = {Algorithm.SUFFICIENT_STATISTICS: _fit_statistics, Algorithm.GRADIENT_DESCENT: _fit_descent}


def draw_examples(experiment: Experiment, power: float, rng: np.random.Generator) -> tuple[Examples, HeldOut]:
    """Graph, features and labels, split at random; tasks without a training user are left out of both.

    Raises:
        InvalidInput: A share so small that nothing is left to train on or to test.
    """
    pairs = experiment.tasks(power).draw(rng)
    model = LinearModel.draw(
        experiment.num_users, pairs.num_tasks, experiment.dimension, experiment.label_noise, rng
    )
    labels = model.labels(pairs, rng)
    train = rng.random(labels.size) >= experiment.test_share
    known = np.bincount(pairs.task_codes[train], minlength=pairs.num_tasks) > 0
    test = ~train & known[pairs.task_codes]
    if not train.any() or not test.any():
        raise refusal(
            "nothing is left to train on or to test", remedy="Take more users, or more tasks per user"
        )
    codes = (np.cumsum(known) - 1)[pairs.task_codes]
    users = pairs.user_codes
    kept = Pairs(users[train], codes[train], int(known.sum()))
    graph = TaskGraph.from_pairs(kept, experiment.num_users)
    return (
        Examples(graph, model.users[users[train]], labels[train]),
        HeldOut(codes[test], model.users[users[test]], labels[test]),
    )
