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

from dpcore.common.checks import Problems, refuse
from dpcore.common.noise_error import summarise_runs
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.dataset import Pairs
from dpcore.multitask.budget import PrivacyTarget, compute_exact_budget
from dpcore.multitask.descent import DescentSettings, compute_isotropic_rates, fit_descent
from dpcore.multitask.examples import EvaluationExamples, Examples
from dpcore.multitask.graph import TaskGraph
from dpcore.multitask.problem import TaskProblem
from dpcore.multitask.ridge import RidgeSettings, RidgeSums, compute_weighted_sums, perturb, solve_sums
from dpcore.multitask.synthetic import LinearModel, SkewedTasks
from dpcore.multitask.weights import allocate_normalised, expect_totals


class Algorithm(enum.Enum):
    """The paper's two algorithms."""

    SUFFICIENT_STATISTICS = "sufficient statistics (algorithm 1)"
    GRADIENT_DESCENT = "noisy gradient descent (algorithm 2)"


@dataclass(frozen=True)
class Experiment:
    """The settings of an experiment; the defaults are appendix C's, where it gives them.

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
        """Return the generator of the graph at one skew."""
        return SkewedTasks(self.num_users, self.num_tasks, power, self.tasks_per_user)


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """Test errors of all runs.

    Attributes:
        experiment: What was run.
        rmse: Root mean squared test error, shape (algorithms, powers, epsilons, exponents, repeats); NaN for
            runs that were not reached.
        finished: Whether all runs were.
    """

    experiment: Experiment
    rmse: FloatArray
    finished: bool

    def average(self) -> FloatArray:
        """Average over the repeats done, shape (algorithms, powers, epsilons, exponents); NaN without any."""
        return self._summarise(self.rmse)[0]

    def compute_standard_error(self) -> FloatArray:
        """Compute the standard error of `average`; NaN below two repeats."""
        return self._summarise(self.rmse)[1]

    def compare_with_uniform(self) -> tuple[FloatArray, FloatArray]:
        """Compute errors relative to those of exponent 0, paired over repeats.

        Returns:
            Mean of the quotients and its standard error, each of shape
            (algorithms, powers, epsilons, exponents).
        """
        zero_index = self.experiment.exponents.index(0.0)
        return self._summarise(self.rmse / self.rmse[..., zero_index : zero_index + 1, :])

    def compare_exponents(self, exponent: float, reference: float) -> tuple[FloatArray, FloatArray]:
        """Compute by how much one exponent's error is below another's, paired over repeats.

        Returns:
            Mean difference other - exponent, and its standard error, each of shape
            (algorithms, powers, epsilons).
        """
        exponent_indices = [
            self.experiment.exponents.index(compared_exponent) for compared_exponent in (exponent, reference)
        ]
        return self._summarise(
            self.rmse[..., exponent_indices[1], :] - self.rmse[..., exponent_indices[0], :]
        )

    @staticmethod
    def _summarise(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard error over repeats."""
        repeat_summary = summarise_runs(values, axis=-1)
        return repeat_summary.mean, repeat_summary.standard_error


def run_experiment(
    experiment: Experiment, progress: Progress = silent, should_stop: ShouldStop = never, workers: int = 2
) -> ExperimentResult:
    """Run the experiment, with the repeats in parallel threads.

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

    def run_repeat(power_index: int, repeat: int) -> None:
        for *indices, value in _run_repeat(experiment, power_index, repeat, stop.is_set):
            algorithm_index, epsilon_index, exponent_index = indices
            with lock:
                rmse[algorithm_index, power_index, epsilon_index, exponent_index, repeat] = value
                runs_done[0] += 1

    jobs = [
        (power_index, repeat) for repeat in range(experiment.repeats) for power_index in range(len(powers))
    ]
    with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
        pending: set[Future[None]] = {pool.submit(run_repeat, *job) for job in jobs}
        try:
            while pending:
                done, pending = wait(pending, timeout=0.25, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                progress(runs_done[0] / rmse.size)
                if should_stop():
                    stop.set()
        finally:
            # Also where progress or should_stop raised: the threads must not run on.
            stop.set()
    return ExperimentResult(experiment, rmse, bool(np.isfinite(rmse).all()))


def _run_repeat(
    experiment: Experiment, power_index: int, repeat: int, should_stop: ShouldStop
) -> Iterator[tuple[int, int, int, float]]:
    """Yield all runs of one repeat at one skew: (algorithm, epsilon, exponent, rmse), the first three as indices."""
    if should_stop():
        return
    data_seed, noise_seed = np.random.SeedSequence([experiment.seed, power_index, repeat]).spawn(2)
    train, test = draw_examples(experiment, experiment.powers[power_index], np.random.default_rng(data_seed))
    # Weights for a budget of 1; those for beta are sqrt(beta) times as large.
    problem = TaskProblem.from_graph(train.graph, 1.0)
    budgets = [
        compute_exact_budget(PrivacyTarget(epsilon, experiment.delta)) for epsilon in experiment.epsilons
    ]
    for exponent_index, exponent in enumerate(experiment.exponents):
        weights = allocate_normalised(problem, exponent).compute_pair_weights()
        for algorithm_index, algorithm in enumerate(experiment.algorithms):
            if should_stop():
                return
            fit = _FITS[algorithm](experiment, train, problem, exponent, weights)
            for epsilon_index, budget in enumerate(budgets):
                if should_stop():
                    return
                coefficients = fit(budget, np.random.default_rng(noise_seed))
                yield (
                    algorithm_index,
                    epsilon_index,
                    exponent_index,
                    test.root_mean_squared_error(coefficients),
                )


Learner = Callable[[float, np.random.Generator], FloatArray]


def _fit_statistics(
    experiment: Experiment, train: Examples, problem: TaskProblem, exponent: float, weights: FloatArray
) -> Learner:
    """Prepare algorithm 1 on some training examples."""
    settings = experiment.ridge
    sums = compute_weighted_sums(train, weights, settings)
    matrix_noise = settings.matrix_sensitivity(train.dimension, ridge_is_counted=True)

    def fit(budget: float, rng: np.random.Generator) -> FloatArray:
        # The sums are linear in the weights: every epsilon shares one pass over the pairs.
        scaled = RidgeSums(np.sqrt(budget) * sums.matrices, np.sqrt(budget) * sums.vectors)
        return solve_sums(
            perturb(scaled, matrix_noise, settings.vector_sensitivity, rng), settings.coefficient_bound
        )

    return fit


def _fit_descent(
    experiment: Experiment, train: Examples, problem: TaskProblem, exponent: float, weights: FloatArray
) -> Learner:
    """Prepare algorithm 2 on some training examples."""
    totals = expect_totals(problem, exponent)

    def fit(budget: float, rng: np.random.Generator) -> FloatArray:
        rates = compute_isotropic_rates(np.sqrt(budget) * totals, train.dimension, experiment.descent.steps)
        return fit_descent(train, np.sqrt(budget) * weights, experiment.descent, rates, rng).coefficients

    return fit


_FITS = {Algorithm.SUFFICIENT_STATISTICS: _fit_statistics, Algorithm.GRADIENT_DESCENT: _fit_descent}


def draw_examples(
    experiment: Experiment, power: float, rng: np.random.Generator
) -> tuple[Examples, EvaluationExamples]:
    """Draw graph, features and labels, and split them at random, without tasks that have no training user.

    Raises:
        InvalidInput: A share so small that nothing is left to train on or to test.
    """
    pairs = experiment.tasks(power).draw(rng)
    model = LinearModel.draw(
        experiment.num_users, pairs.num_tasks, experiment.dimension, experiment.label_noise, rng
    )
    labels = model.draw_labels(pairs, rng)
    is_training = rng.random(labels.size) >= experiment.test_share
    has_training_user = np.bincount(pairs.task_codes[is_training], minlength=pairs.num_tasks) > 0
    is_test = ~is_training & has_training_user[pairs.task_codes]
    if not is_training.any() or not is_test.any():
        raise refuse(
            "nothing is left to train on or to test", remedy="Take more users, or more tasks per user"
        )
    codes = (np.cumsum(has_training_user) - 1)[pairs.task_codes]
    users = pairs.user_codes
    training_pairs = Pairs(users[is_training], codes[is_training], int(has_training_user.sum()))
    graph = TaskGraph.from_pairs(training_pairs, experiment.num_users)
    return (
        Examples(graph, model.users[users[is_training]], labels[is_training]),
        EvaluationExamples(codes[is_test], model.users[users[is_test]], labels[is_test]),
    )
