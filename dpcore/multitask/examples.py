"""Features and labels along a graph, which the learning algorithms read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import FloatArray, IntArray
from dpcore.multitask.graph import TaskGraph


@dataclass(frozen=True, eq=False)
class Examples:
    """One example (x_ij, y_ij) per pair of user and task.

    Attributes:
        graph: Who contributes to what.
        features: x_ij, finite, in the graph's order, shape (num_pairs, dimension).
        labels: y_ij, finite, shape (num_pairs,).

    Raises:
        InvalidInput: Shapes do not fit the graph, or a number is not finite.
    """

    graph: TaskGraph
    features: FloatArray
    labels: FloatArray

    def __post_init__(self) -> None:
        with Problems() as problems:
            if self.features.ndim != 2 or self.features.shape[0] != self.graph.num_pairs:
                problems.add(f"features must have shape ({self.graph.num_pairs:,}, dimension)")
            if self.labels.shape != (self.graph.num_pairs,):
                problems.add(f"labels must have shape ({self.graph.num_pairs:,},)")
            if not (np.all(np.isfinite(self.features)) and np.all(np.isfinite(self.labels))):
                problems.add("features and labels must be finite numbers")

    @property
    def dimension(self) -> int:
        """Return d, the number of entries of a feature vector."""
        return int(self.features.shape[1])

    @cached_property
    def by_task(self) -> IntArray:
        """Compute the order that sorts pairs by task, shape (num_pairs,)."""
        return np.argsort(self.graph.tasks, kind="stable")

    @cached_property
    def features_by_task(self) -> FloatArray:
        """Return `features` in the order `by_task`."""
        return np.ascontiguousarray(self.features[self.by_task])

    @cached_property
    def labels_by_task(self) -> FloatArray:
        """Return `labels` in the order `by_task`."""
        return np.asarray(self.labels[self.by_task])

    @cached_property
    def squared_lengths_by_task(self) -> FloatArray:
        """Return |x_ij|^2 in the order `by_task`."""
        return np.asarray(np.einsum("pd,pd->p", self.features_by_task, self.features_by_task))


def clip_rows(rows: FloatArray, bound: float) -> FloatArray:
    """Scale every row (last axis) down to Euclidean length ``bound``; shorter ones stay.

    Source: clip of Krichene et al. 2023, algorithm 1, line 2; also the projection onto a ball.
    """
    lengths = np.sqrt(np.einsum("...d,...d->...", rows, rows))
    return np.asarray(rows * np.minimum(1.0, bound / np.maximum(lengths, bound))[..., None])


@dataclass(frozen=True, eq=False)
class EvaluationExamples:
    """Examples kept for testing; a task may have none.

    Attributes:
        tasks: Task code of each, shape (num_examples,).
        features: Shape (num_examples, dimension).
        labels: Shape (num_examples,).
    """

    tasks: IntArray
    features: FloatArray
    labels: FloatArray

    def root_mean_squared_error(self, coefficients: FloatArray) -> float:
        """Compute the root of the mean of (<theta_i, x> - y)^2 over all examples, in the labels' unit.

        Args:
            coefficients: theta, shape (num_tasks, dimension).

        Source: Krichene et al. 2023, appendix D.1, "Metrics".
        """
        predicted = np.einsum("pd,pd->p", self.features, coefficients[self.tasks])
        return float(np.sqrt(np.mean((predicted - self.labels) ** 2)))
