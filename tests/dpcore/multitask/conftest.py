"""Small graphs for the multi-task tests."""

from collections.abc import Callable

import numpy as np
import pytest

from dpcore.data.task_facets import Pairs
from dpcore.multitask.problem import Allocation, Loss, TaskGraph, TaskProblem
from dpcore.multitask.weights import compute_task_weights

DenseToGraph = Callable[[np.ndarray], TaskGraph]
DrawGraph = Callable[..., TaskGraph]


def _graph_of(dense: np.ndarray) -> TaskGraph:
    users, tasks = np.nonzero(dense)
    return TaskGraph.from_pairs(Pairs(users, tasks, dense.shape[1]), dense.shape[0])


def build_problem(
    sizes: np.ndarray, num_users: int, budget: float, loss: Loss = Loss.STRONGLY_CONVEX
) -> TaskProblem:
    """Build a problem on tasks of these sizes; the first users have all tasks."""
    return TaskProblem(_graph_of(np.arange(num_users)[:, None] < sizes), budget, loss)


def allocate_unclipped(problem: TaskProblem, exponent: float, inflation: float = 1.0) -> Allocation:
    """Return the weights of equation 11, whatever users then spend."""
    weights = compute_task_weights(problem, exponent, inflation)
    return Allocation("unclipped", problem, weights, np.ones(problem.graph.num_users))


@pytest.fixture(scope="session")
def graph_of() -> DenseToGraph:
    """Return a graph from a dense users x tasks table of zeros and ones."""
    return _graph_of


@pytest.fixture(scope="session")
def random_graph() -> DrawGraph:
    """Draw a graph with skewed tasks in which every task has a user; some users may have none."""

    def draw(seed: int, num_users: int = 20, num_tasks: int = 6) -> TaskGraph:
        rng = np.random.default_rng(seed)
        dense = rng.random((num_users, num_tasks)) < rng.beta(0.7, 1.5, num_tasks)
        empty = ~dense.any(axis=0)
        dense[rng.integers(0, num_users, int(empty.sum())), np.flatnonzero(empty)] = True
        return _graph_of(dense)

    return draw


@pytest.fixture(scope="session")
def dense_of() -> Callable[[TaskGraph], np.ndarray]:
    """Return the dense users x tasks table of a graph, by a loop."""

    def dense(graph: TaskGraph) -> np.ndarray:
        table = np.zeros((graph.num_users, graph.num_tasks))
        for user in range(graph.num_users):
            for task in graph.task_codes[graph.starts[user] : graph.starts[user + 1]]:
                table[user, task] = 1.0
        return table

    return dense
