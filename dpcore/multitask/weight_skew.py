"""The effect of user-dependent weights on a task's loss: they skew it, as a rule toward users with few tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.contributions import FloatArray
from dpcore.multitask.problem import Allocation


@dataclass(frozen=True, eq=False)
class WeightSkew:
    """The distance of each task's weighted loss from the plain one, which weighs its users equally.

    The bounds count noise only. Where users' weights within a task differ, the minimiser of the weighted loss
    is that of another mixture of users: a bias wherever heavy and light users answer differently, and none
    where the task's relation is the same for all.

    Attributes:
        total_variation: Share of the task's weight that sits with other users than in the plain loss (total variation
            distance), in [0, 1), shape (num_tasks,).
        user_size_ratio: Weighted over plain mean number of tasks of the task's users, shape (num_tasks,):
            below 1 means skewed toward light users.
        effective_share: Kish's effective sample size over n_i, W_i^2 / (n_i sum_j w_ij^2), in (0, 1].
    """

    total_variation: FloatArray
    user_size_ratio: FloatArray
    effective_share: FloatArray

    @property
    def largest(self) -> float:
        """Return the largest `total_variation` of any task."""
        return float(self.total_variation.max())


def compute_skew(allocation: Allocation) -> WeightSkew:
    """Compute the skew of an allocation's weights; zero everywhere if nobody is clipped. Reads the private graph.

    Raises:
        InvalidInput: The problem has no graph.
    """
    graph = allocation.problem.require_graph()
    scales = allocation.user_scales
    assert scales is not None
    sizes = graph.task_sizes.astype(np.float64)
    totals = graph.sum_by_task(scales)
    # Within a task the task's own factor cancels: only users' factors matter.
    equal_weights = totals / sizes
    differences = np.abs(np.repeat(scales, graph.tasks_per_user) - equal_weights[graph.tasks])
    tasks_per_user = graph.tasks_per_user.astype(np.float64)
    weighted_task_counts = graph.sum_by_task(scales * tasks_per_user) / totals
    return WeightSkew(
        total_variation=np.asarray(graph.sum_pairs_by_task(differences) / (2.0 * totals)),
        user_size_ratio=np.asarray(weighted_task_counts / (graph.sum_by_task(tasks_per_user) / sizes)),
        effective_share=np.asarray(totals**2 / (sizes * graph.sum_by_task(scales**2))),
    )
