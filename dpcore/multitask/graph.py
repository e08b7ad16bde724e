"""The bipartite graph of users and tasks, and sums along it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray, IntArray
from dpcore.dataset import Pairs

TaskCodes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """The tasks of each user: one row of tasks per user.

    Build it with `from_pairs`. A user may have no task (they count in n); a task has at least one user.

    Attributes:
        starts: Where each user's tasks begin in ``tasks``, and the end, shape (num_users + 1,), int64.
        tasks: Task codes 0 .. num_tasks - 1 sorted by user, ascending within, shape (num_pairs,), int32.
        num_tasks: m.

    Source: Omega of Krichene et al. 2023, section 2.1.
    """

    starts: IntArray
    tasks: TaskCodes
    num_tasks: int

    @classmethod
    def from_pairs(cls, pairs: Pairs, num_users: int | None = None) -> TaskGraph:
        """Index distinct pairs by user.

        Args:
            pairs: Distinct user-task pairs.
            num_users: n, where it is more than the largest user code + 1 (users without a task).

        Raises:
            InvalidInput: A task without users (its error is unbounded), or ``num_users`` too small.
        """
        num_coded_users = int(pairs.user_codes[-1]) + 1
        with Problems() as problems:
            if num_users is not None and num_users < num_coded_users:
                problems.add(
                    f"num_users must be at least {num_coded_users:,}, the users in the pairs; got {num_users:,}"
                )
            sizes = np.bincount(pairs.task_codes, minlength=pairs.num_tasks)
            if not sizes.all():
                empty = int(np.argmin(sizes > 0))
                num_further = int((sizes == 0).sum()) - 1
                further_text = f" (and {num_further:,} more)" if num_further else ""
                problems.add(
                    f"task {empty} has no users{further_text}",
                    remedy="Leave such tasks out (`drop_empty_tasks`)",
                )
        per_user = np.bincount(pairs.user_codes, minlength=num_users or num_coded_users)
        starts = np.concatenate(([0], np.cumsum(per_user))).astype(np.int64)
        return cls(starts, pairs.task_codes.astype(np.int32), pairs.num_tasks)

    @property
    def num_users(self) -> int:
        """Return n, users without a task included."""
        return self.starts.size - 1

    @property
    def num_pairs(self) -> int:
        """Return |Omega|."""
        return self.tasks.size

    @cached_property
    def task_sizes(self) -> IntArray:
        """Count n_i, users per task, shape (num_tasks,)."""
        return np.bincount(self.tasks, minlength=self.num_tasks).astype(np.int64)

    @cached_property
    def tasks_per_user(self) -> IntArray:
        """Count n^j, shape (num_users,)."""
        return np.diff(self.starts)

    @cached_property
    def users(self) -> npt.NDArray[np.int32]:
        """Return the user code of every pair, shape (num_pairs,)."""
        return np.repeat(np.arange(self.num_users, dtype=np.int32), self.tasks_per_user)

    @cached_property
    def matrix(self) -> Any:
        """Build the sparse matrix of users by tasks, 1 where a user contributes."""
        from scipy.sparse import csr_matrix

        # 12 bytes a pair; a product with it takes about 1.5 ns a pair, in one pass without a temporary.
        shape = (self.num_users, self.num_tasks)
        return csr_matrix((np.ones(self.num_pairs), self.tasks, self.starts), shape=shape)

    def sum_by_user(self, per_task: FloatArray) -> FloatArray:
        """Sum a task's number over each user's tasks: (num_tasks,) -> (num_users,)."""
        return np.asarray(self.matrix @ per_task)

    def sum_by_task(self, per_user: FloatArray) -> FloatArray:
        """Sum a user's number over each task's users: (num_users,) -> (num_tasks,)."""
        return np.asarray(self.matrix.T @ per_user)

    def sum_pairs_by_task(self, per_pair: FloatArray) -> FloatArray:
        """Sum a pair's number over each task: (num_pairs,) -> (num_tasks,)."""
        return np.asarray(np.bincount(self.tasks, per_pair, self.num_tasks), dtype=np.float64)

    def select_users(self, user_codes: IntArray) -> TaskGraph:
        """Select some users, in the given order; tasks keep their codes and may be empty."""
        rows = self.matrix[user_codes]
        return TaskGraph(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), self.num_tasks)


def drop_empty_tasks(pairs: Pairs) -> Pairs:
    """Renumber tasks so that each has a user; their order stays."""
    kept_tasks, codes = np.unique(pairs.task_codes, return_inverse=True)
    return replace(pairs, task_codes=codes, num_tasks=int(kept_tasks.size))
