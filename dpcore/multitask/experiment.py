"""The experiment on generated tasks: test error over the exponent mu, and the paper's figure.

The experiment is that of appendix C, by algorithm, skew and epsilon. As in the paper, task sizes n_i are taken to be
public, so nothing is spent on counting; step sizes use them and nothing else. The paper gives neither regularisation
nor clipping bounds nor steps; those of `RIDGE_SETTINGS` and `DESCENT_SETTINGS` were chosen on other seeds. Features
and labels of the generator fit Gamma_x = Gamma_* = 1, up to label noise.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpcore.answer.paper_figure import Claim, Line, PaperFigure
from dpcore.answer.plot import Axis, Style, linear_axis
from dpcore.common.checks import refuse
from dpcore.common.noise_error import Summary, summarise_runs
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray
from dpcore.data.task_facets import Pairs
from dpcore.multitask import learners
from dpcore.multitask.learners import DescentSettings, Examples, RidgeSettings, RidgeSums
from dpcore.multitask.problem import PrivacyTarget, TaskGraph, TaskProblem, compute_exact_budget
from dpcore.multitask.weights import allocate_normalised, estimate_task_totals

MAX_PAIRS_PER_CHUNK = 10_000_000
"""Users times tasks that are drawn at a time."""


@dataclass(frozen=True)
class SkewedTasks:
    """Appendix C: task i is of interest to each user independently with probability q_i.

    q_i has density a x^(a - 1) on [0, 1] and is scaled so that a user has ``tasks_per_user`` tasks on
    average; a probability that scaling lifts above 1 is 1.

    Attributes:
        num_users: n.
        num_tasks: m.
        power: a > 0; 1 is more skewed than 2.
        tasks_per_user: Sum of q_i, above 0.
    """

    num_users: int = 10_000
    num_tasks: int = 100
    power: float = 1.0
    tasks_per_user: float = 20.0

    def draw(self, rng: np.random.Generator) -> Pairs:
        """Draw q, then which user has which task.

        Users and tasks without a pair keep their codes.

        Raises:
            InvalidInput: Not a single pair came up.
        """
        raw_probabilities = rng.power(self.power, self.num_tasks)
        probabilities = np.minimum(raw_probabilities * self.tasks_per_user / raw_probabilities.sum(), 1.0)
        num_users_per_chunk = max(MAX_PAIRS_PER_CHUNK // self.num_tasks, 1)
        user_chunks, task_chunks = [], []
        for first_user_code in range(0, self.num_users, num_users_per_chunk):
            chunk_shape = (min(num_users_per_chunk, self.num_users - first_user_code), self.num_tasks)
            indices_in_chunk, task_codes = np.nonzero(rng.random(chunk_shape) < probabilities)
            user_chunks.append(indices_in_chunk + first_user_code)
            task_chunks.append(task_codes)
        if not any(chunk_user_codes.size for chunk_user_codes in user_chunks):
            raise refuse("not a single pair came up", remedy="Take more users, or more tasks per user")
        return Pairs(np.concatenate(user_chunks), np.concatenate(task_chunks), self.num_tasks)


@dataclass(frozen=True)
class HeavyTailed:
    """Tasks by Zipf's law with log-normal numbers of tasks per user, as in catalogues.

    Each user draws a log-normal number of tasks (at most m) by popularity, with repetition; repeated draws
    count once, so that the heaviest users have somewhat fewer than they drew.

    Attributes:
        num_users: n.
        num_tasks: m.
        tasks_per_user: Mean number of draws, at least 1.
        zipf_exponent: Popularity of the i-th task is i^(-s), s in [0, 3].
        activity_spread: Standard deviation of the logarithm of a user's number of draws, in [0, 3].
    """

    num_users: int = 10_000
    num_tasks: int = 1_000
    tasks_per_user: float = 30.0
    zipf_exponent: float = 1.0
    activity_spread: float = 1.0

    def draw(self, rng: np.random.Generator) -> Pairs:
        """Draw the distinct pairs of users and tasks; tasks that nobody drew keep their codes."""
        # Of mean 1, whatever the spread.
        draw_factors = rng.lognormal(-(self.activity_spread**2) / 2.0, self.activity_spread, self.num_users)
        draws_per_user = np.clip(np.ceil(draw_factors * self.tasks_per_user), 1, self.num_tasks)
        popularity = np.arange(1, self.num_tasks + 1, dtype=np.float64) ** -self.zipf_exponent
        cumulative_popularity = np.cumsum(popularity) / popularity.sum()
        user_codes = np.repeat(np.arange(self.num_users), draws_per_user.astype(np.int64))
        popularity_ranks = np.searchsorted(cumulative_popularity, rng.random(user_codes.size))
        task_codes = np.minimum(popularity_ranks, self.num_tasks - 1)
        pair_keys = np.unique(user_codes * self.num_tasks + task_codes)
        return Pairs(pair_keys // self.num_tasks, pair_keys % self.num_tasks, self.num_tasks)


class Algorithm(enum.Enum):
    """The paper's two algorithms."""

    SUFFICIENT_STATISTICS = "sufficient statistics (algorithm 1)"
    GRADIENT_DESCENT = "noisy gradient descent (algorithm 2)"


Panel = tuple[Algorithm, float, float]
"""An algorithm, a skew a, and an epsilon."""
DIMENSION = 5
"""d of appendix C."""
LABEL_NOISE = 1e-3
"""sigma_F of appendix C."""
TEST_SHARE = 0.2
"""Share of pairs held out."""
RIDGE_SETTINGS, DESCENT_SETTINGS = RidgeSettings(), DescentSettings(gradient_bound=0.5, num_steps=10)


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
        delta: Of the guarantee.
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
    delta: float = 1e-5


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """Test errors of all runs.

    Attributes:
        experiment: What was run.
        errors_by_panel: Root mean squared test error by panel, shape (exponents, repeats); NaN for runs not reached.
    """

    experiment: Experiment
    errors_by_panel: Mapping[Panel, FloatArray]

    @property
    def num_runs(self) -> int:
        """Return the number of runs of the whole experiment, finished or not."""
        return sum(panel_errors.size for panel_errors in self.errors_by_panel.values())

    @property
    def num_runs_done(self) -> int:
        """Return the number of finished runs: algorithm, skew, epsilon, exponent and repeat."""
        return sum(int(np.isfinite(panel_errors).sum()) for panel_errors in self.errors_by_panel.values())

    def summarise(self, panel: Panel, is_relative: bool = False) -> Summary:
        """Summarise the test errors of a panel over the repeats done: a mean and a standard error per exponent.

        Args:
            panel: Algorithm, skew and epsilon.
            is_relative: True for errors relative to those of exponent 0, paired over repeats.
        """
        errors_of_panel = self.errors_by_panel[panel]
        if is_relative:
            errors_of_panel = errors_of_panel / errors_of_panel[self.experiment.exponents.index(0.0)]
        return summarise_runs(errors_of_panel)

    def compare_exponents(self, panel: Panel, exponent: float, reference_exponent: float) -> Summary:
        """Summarise the error at the reference exponent minus that at ``exponent``, paired over repeats.

        The mean is above 0 if ``exponent`` is better.
        """
        errors_of_panel, find_index = self.errors_by_panel[panel], self.experiment.exponents.index
        gains = errors_of_panel[find_index(reference_exponent)] - errors_of_panel[find_index(exponent)]
        return summarise_runs(gains, axis=0)


def run_experiment(
    experiment: Experiment, progress: Progress = silent, should_stop: ShouldStop = never, num_workers: int = 2
) -> ExperimentResult:
    """Run the experiment in parallel threads; after a stop, errors of runs not reached are NaN.

    Args:
        experiment: What to run.
        progress: Called from this thread with the share of runs done.
        should_stop: Asked from this thread about four times a second; where it says yes, what is done so
            far is returned.
        num_workers: Threads.
    """
    errors_shape = len(experiment.exponents), experiment.repeats
    panels = itertools.product(experiment.algorithms, experiment.powers, experiment.epsilons)
    result = ExperimentResult(experiment, {panel: np.full(errors_shape, np.nan) for panel in panels})
    stop_event = threading.Event()
    with ThreadPoolExecutor(max_workers=num_workers) as pool:
        futures = [
            pool.submit(_run_repeat, result, power, repeat_index, stop_event.is_set)
            for repeat_index in range(experiment.repeats)
            for power in experiment.powers
        ]
        try:
            are_running = True
            while are_running:
                are_running = bool(wait(futures, timeout=0.25).not_done)
                progress(result.num_runs_done / result.num_runs)
                if should_stop():
                    stop_event.set()
        finally:
            # Also where progress or should_stop raised: the threads must not run on.
            stop_event.set()
    for future in futures:
        future.result()
    return result


def _run_repeat(result: ExperimentResult, power: float, repeat_index: int, should_stop: ShouldStop) -> None:
    """Write the test errors of one repeat at one skew into the result, for each algorithm, epsilon and exponent.

    Returns early once ``should_stop`` says so.
    """
    experiment = result.experiment
    if should_stop():
        return
    seed_sequence = np.random.SeedSequence([experiment.seed, experiment.powers.index(power), repeat_index])
    data_sequence, noise_sequence = seed_sequence.spawn(2)
    data_rng = np.random.default_rng(data_sequence)
    training_examples, test_examples = draw_examples(experiment, power, data_rng)
    # Weights for a budget of 1; those for beta are sqrt(beta) times as large.
    problem = TaskProblem(training_examples.graph, 1.0)
    budgets_by_epsilon = {
        e: compute_exact_budget(PrivacyTarget(e, experiment.delta)) for e in experiment.epsilons
    }
    for exponent_index, exponent in enumerate(experiment.exponents):
        pair_weights = allocate_normalised(problem, exponent).compute_pair_weights()
        ridge_sums = learners.compute_weighted_sums(training_examples, pair_weights, RIDGE_SETTINGS)
        task_totals = estimate_task_totals(problem, exponent)
        for algorithm, epsilon in itertools.product(experiment.algorithms, experiment.epsilons):
            if should_stop():
                return
            budget_root, rng = math.sqrt(budgets_by_epsilon[epsilon]), np.random.default_rng(noise_sequence)
            if algorithm is Algorithm.SUFFICIENT_STATISTICS:
                # The sums are linear in the weights: every epsilon shares one pass over the pairs.
                scaled_sums = RidgeSums(budget_root * ridge_sums.matrices, budget_root * ridge_sums.vectors)
                noisy_sums = learners.perturb_sums(scaled_sums, RIDGE_SETTINGS, rng)
                coefficients = learners.solve_sums(noisy_sums, RIDGE_SETTINGS.coefficient_bound)
            else:
                scaled_totals, scaled_weights = budget_root * task_totals, budget_root * pair_weights
                step_rates = learners.compute_isotropic_rates(
                    scaled_totals, DIMENSION, DESCENT_SETTINGS.num_steps
                )
                coefficients = learners.fit_descent(
                    training_examples, scaled_weights, DESCENT_SETTINGS, step_rates, rng
                )
            test_error = test_examples.compute_root_mean_squared_error(coefficients)
            result.errors_by_panel[algorithm, power, epsilon][exponent_index, repeat_index] = test_error


def draw_examples(
    experiment: Experiment, power: float, rng: np.random.Generator
) -> tuple[Examples, Examples]:
    """Draw graph, features and labels, and return training and test examples on the tasks that have training users.

    Features u_j of users and coefficients theta_i of tasks are standard normal, projected on the unit ball. The label
    of a pair is <u_j, theta_i> and normal noise.

    Raises:
        InvalidInput: Nothing is left to train on or to test.
    """
    skewed_tasks = SkewedTasks(experiment.num_users, experiment.num_tasks, power, experiment.tasks_per_user)
    pairs = skewed_tasks.draw(rng)
    pair_users, pair_tasks, num_tasks = pairs.user_codes, pairs.task_codes, pairs.num_tasks
    pair_features = learners.clip_rows(rng.normal(size=(experiment.num_users, DIMENSION)), 1.0)[pair_users]
    coefficients = learners.clip_rows(rng.normal(size=(num_tasks, DIMENSION)), 1.0)
    pair_labels = np.einsum("pd,pd->p", pair_features, coefficients[pair_tasks])
    pair_labels += LABEL_NOISE * rng.normal(size=pair_users.size)
    training_mask = rng.random(pair_labels.size) >= TEST_SHARE
    trained_task_mask = np.bincount(pair_tasks[training_mask], minlength=num_tasks) > 0
    test_mask = ~training_mask & trained_task_mask[pair_tasks]
    if not training_mask.any() or not test_mask.any():
        remedy_sentence = "Take more users, or more tasks per user"
        raise refuse("nothing is left to train on or to test", remedy=remedy_sentence)
    new_task_codes, num_tasks = (np.cumsum(trained_task_mask) - 1)[pair_tasks], int(trained_task_mask.sum())

    def select_examples(selected_mask: npt.NDArray[np.bool_]) -> Examples:
        """Return the examples of the pairs in the mask, on a graph of them alone."""
        selected_pairs = Pairs(pair_users[selected_mask], new_task_codes[selected_mask], num_tasks)
        graph = TaskGraph.from_pairs(selected_pairs, experiment.num_users)
        return Examples(graph, pair_features[selected_mask], pair_labels[selected_mask])

    return select_examples(training_mask), select_examples(test_mask)


LINE_BY_ALGORITHM = {
    Algorithm.SUFFICIENT_STATISTICS: ("sums", "AdaDPALS", Style.SMOOTH, "circle"),
    Algorithm.GRADIENT_DESCENT: ("descent", "AdaDPSGD", Style.CAP, "triangle-up"),
}
"""Key, name, style and symbol in figure 6."""


def _run_figure_6(exponent: float, seed: int, epsilon: float = 1.0) -> dict[str, float]:
    """Return one run's test RMSE at one exponent, by key: algorithm and skew, as ``sums_1``."""
    result = run_experiment(Experiment(epsilons=(epsilon,), exponents=(exponent,), repeats=1, seed=seed))
    return {
        f"{LINE_BY_ALGORITHM[algorithm][0]}_{power:g}": float(panel_errors[0, 0])
        for (algorithm, power, _), panel_errors in result.errors_by_panel.items()
    }


_FIGURE_6 = PaperFigure(
    "krichene-figure-6",
    "Krichene et al. 2023",
    "Figure 6",
    "error on synthetic tasks over the exponent μ",
    "ε = 1, δ = 1e-5, 10,000 users with 20 of 100 tasks. Ridge, clipping and steps are ours.",
    "Multi-task weights",
    "Experiment",
    linear_axis("exponent μ", (-0.03, 1.03)),
    Axis("root mean squared error"),
    (0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0),
    tuple(
        Line(f"{key}_{power:g}", f"{name}, a = {power:g}", style, symbol, dash)
        for key, name, style, symbol in LINE_BY_ALGORITHM.values()
        for power, dash in ((1.0, "solid"), (2.0, "dash"))
    ),
    _run_figure_6,
    10,
    "The paper prints no numbers, but says that larger μ help much at small ε.",
    claims=(
        Claim(
            "With uniform weights (μ = 0) the estimate is poorer than at μ = 1/2",
            "appendix C",
            lambda c: all(column[0] > column[4] for column in c.values()),
        ),
        Claim(
            "μ = 1/2 is suggested; the best μ varies (1/4 to 3/4)",
            "appendix C",
            lambda c: all(2 <= np.argmin(column) <= 5 for column in c.values()),
        ),
    ),
)
FIGURES = (
    _FIGURE_6,
    replace(
        _FIGURE_6,
        key="krichene-figure-6-epsilon-5",
        item_name="Figure 6, ε = 5",
        setting_text=_FIGURE_6.setting_text.replace("ε = 1", "ε = 5"),
        run_once=functools.partial(_run_figure_6, epsilon=5.0),
    ),
)
