"""Graphs and examples, generated: appendix C of Krichene et al. 2023, and a heavy-tailed graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray
from dpcore.dataset import Pairs
from dpcore.multitask.examples import clip_rows

MAX_CELLS = 2_000_000_000
"""Users times tasks that may be drawn one by one: about 15 s."""
CHUNK = 10_000_000


@dataclass(frozen=True)
class SkewedTasks:
    """Appendix C: task i is of interest to each user independently with probability q_i.

    q_i has density a x^(a - 1) on [0, 1] and is scaled so that a user has ``tasks_per_user`` tasks on
    average; a probability that scaling lifts above 1 is 1.

    Attributes:
        num_users: n, 1 to 1e7.
        num_tasks: m, 1 to 1e6; n m is at most 2e9.
        power: a > 0; 1 is more skewed than 2.
        tasks_per_user: Sum of q_i, above 0.

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    num_users: int = 10_000
    num_tasks: int = 100
    power: float = 1.0
    tasks_per_user: float = 20.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            sizes_hold = problems.whole(1, 10**7, num_users=self.num_users)
            sizes_hold &= problems.whole(1, 10**6, num_tasks=self.num_tasks)
            if sizes_hold and self.num_users * self.num_tasks > MAX_CELLS:
                problems.add(f"num_users times num_tasks must be at most {MAX_CELLS:,}")
            problems.between(0.01, 100.0, power=self.power)
            if sizes_hold:
                problems.between(1e-6, float(self.num_tasks), tasks_per_user=self.tasks_per_user)

    def draw(self, rng: np.random.Generator) -> Pairs:
        """Draw q, then every pair. Users and tasks without a pair keep their codes.

        Raises:
            InvalidInput: Not a single pair came up.
        """
        raw_probabilities = rng.power(self.power, self.num_tasks)
        probabilities = np.minimum(raw_probabilities * self.tasks_per_user / raw_probabilities.sum(), 1.0)
        users_per_chunk = max(CHUNK // self.num_tasks, 1)
        users, tasks = [], []
        for first in range(0, self.num_users, users_per_chunk):
            shape = (min(users_per_chunk, self.num_users - first), self.num_tasks)
            user_indices, task_codes = np.nonzero(rng.random(shape) < probabilities)
            users.append(user_indices + first)
            tasks.append(task_codes)
        return _make_pairs(np.concatenate(users), np.concatenate(tasks), self.num_tasks)


@dataclass(frozen=True)
class HeavyTailed:
    """Tasks by Zipf's law with log-normal numbers of tasks per user, as in catalogues.

    Each user draws a log-normal number of tasks (at most m) by popularity, with repetition; repeated draws
    count once, so that the heaviest users have somewhat fewer than they drew.

    Attributes:
        num_users: n, 1 to 1e7.
        num_tasks: m, 1 to 1e6.
        tasks_per_user: Mean number of draws, at least 1; n times this is at most 2e7.
        zipf_exponent: Popularity of the i-th task is i^(-s), s in [0, 3].
        user_spread: Standard deviation of the logarithm of a user's number of draws, in [0, 3].

    Raises:
        InvalidInput: Out of range; all problems at once.
    """

    num_users: int = 10_000
    num_tasks: int = 1_000
    tasks_per_user: float = 30.0
    zipf_exponent: float = 1.0
    user_spread: float = 1.0

    def __post_init__(self) -> None:
        with Problems() as problems:
            is_valid = problems.whole(1, 10**7, num_users=self.num_users)
            problems.whole(1, 10**6, num_tasks=self.num_tasks)
            is_valid &= problems.between(1.0, 1e6, tasks_per_user=self.tasks_per_user)
            if is_valid and self.num_users * self.tasks_per_user > 2e7:
                problems.add("num_users times tasks_per_user must be at most 20,000,000")
            problems.between(0.0, 3.0, zipf_exponent=self.zipf_exponent, user_spread=self.user_spread)

    def draw(self, rng: np.random.Generator) -> Pairs:
        """Draw the graph; tasks that nobody drew keep their codes."""
        # Of mean 1, whatever the spread.
        activities = rng.lognormal(-(self.user_spread**2) / 2.0, self.user_spread, self.num_users)
        num_draws = np.clip(np.ceil(activities * self.tasks_per_user), 1, self.num_tasks).astype(np.int64)
        popularity = np.arange(1, self.num_tasks + 1, dtype=np.float64) ** -self.zipf_exponent
        cumulative = np.cumsum(popularity) / popularity.sum()
        users = np.repeat(np.arange(self.num_users), num_draws)
        tasks = np.minimum(np.searchsorted(cumulative, rng.random(users.size)), self.num_tasks - 1)
        pair_keys = np.unique(users * self.num_tasks + tasks)
        return _make_pairs(pair_keys // self.num_tasks, pair_keys % self.num_tasks, self.num_tasks)


def _make_pairs(users: np.ndarray, tasks: np.ndarray, num_tasks: int) -> Pairs:
    """Make pairs, or raise `InvalidInput` if there are none."""
    if users.size == 0:
        raise refuse("not a single pair came up", remedy="Take more users, or more tasks per user")
    return Pairs(users, tasks, num_tasks)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Appendix C's true model: y_ij = <u_j, theta_i> + noise.

    Attributes:
        users: u_j, standard normal projected on the unit ball, shape (num_users, d).
        tasks: theta_i, the same, shape (num_tasks, d).
        label_noise: sigma_F, standard deviation of the noise.
    """

    users: FloatArray
    tasks: FloatArray
    label_noise: float

    @classmethod
    def draw(
        cls, num_users: int, num_tasks: int, dimension: int, label_noise: float, rng: np.random.Generator
    ) -> LinearModel:
        """Draw users and tasks."""
        users = clip_rows(rng.normal(size=(num_users, dimension)), 1.0)
        tasks = clip_rows(rng.normal(size=(num_tasks, dimension)), 1.0)
        return cls(users, tasks, label_noise)

    def draw_labels(self, pairs: Pairs, rng: np.random.Generator) -> FloatArray:
        """Draw one label per pair, shape (num_pairs,)."""
        exact_labels = np.einsum("pd,pd->p", self.users[pairs.user_codes], self.tasks[pairs.task_codes])
        return np.asarray(exact_labels + self.label_noise * rng.normal(size=exact_labels.size))
