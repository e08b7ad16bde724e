"""What a person takes away does what the page shows: the code is run, the files are read back."""

import csv
from pathlib import Path

import numpy as np
import pytest

from dpcore.multitask import exact, sampling, weights
from dpcore.multitask.answer import sections
from dpcore.multitask.problem import TaskProblem

LABEL = "computed from private data (do not publish)"


def _run(code: str, graph, folder: Path, monkeypatch) -> np.ndarray:
    np.save(folder / "user_codes.npy", graph.user_codes.astype(np.int64))
    np.save(folder / "task_codes.npy", graph.task_codes.astype(np.int64))
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    exec(compile(code, "downloaded.py", "exec"), names)
    return np.asarray(names["pair_weights"])


@pytest.mark.parametrize("method", ["clipped", "full", "free"])
def test_the_code_computes_the_weights(random_graph, tmp_path, monkeypatch, method: str) -> None:
    problem = TaskProblem(random_graph(13, 25, 6), 0.3)
    allocation = {
        "clipped": lambda: weights.allocate_by_power(problem, 0.5),
        "full": lambda: weights.allocate_normalised(problem, 0.25),
        "free": lambda: exact.find_best_user_task_weights(problem),
    }[method]()
    (tmp_path / "task_weights.csv").write_text(sections.write_task_weights(allocation, LABEL))
    pair_weights = _run(sections.write_numpy_code(allocation), problem.graph, tmp_path, monkeypatch)
    np.testing.assert_allclose(pair_weights, allocation.compute_pair_weights(), rtol=1e-9)


def test_the_sampling_code_keeps_k_tasks(random_graph, tmp_path, monkeypatch) -> None:
    problem = TaskProblem(random_graph(13, 25, 6), 0.3)
    allocation = sampling.allocate_uniform_sampling(problem, 2)
    (tmp_path / "task_weights.csv").write_text(sections.write_task_weights(allocation, LABEL))
    pair_weights = _run(sections.write_numpy_code(allocation), problem.graph, tmp_path, monkeypatch)
    budget_use = np.bincount(problem.graph.user_codes, pair_weights**2, problem.graph.num_users)
    np.testing.assert_allclose(budget_use, 0.15 * np.minimum(problem.graph.tasks_per_user, 2))


def test_task_weights_are_read_back(random_graph) -> None:
    allocation = weights.allocate_by_power(TaskProblem(random_graph(2), 0.3), 0.5)
    label, *body = sections.write_task_weights(allocation, LABEL).splitlines()
    assert label == f"# {LABEL}"
    rows = list(csv.DictReader(body))
    np.testing.assert_array_equal([int(r["users"]) for r in rows], allocation.problem.graph.task_sizes)
    np.testing.assert_array_equal([float(r["mean_weight"]) for r in rows], allocation.mean_weights)
    assert sum(float(r["share_of_bound"]) for r in rows) == pytest.approx(1.0)


def test_pair_weights_are_read_back_from_pieces(random_graph, monkeypatch) -> None:
    monkeypatch.setattr(sections, "PAIRS_PER_CSV_PIECE", 7)
    graph = random_graph(3)
    allocation = weights.allocate_by_power(TaskProblem(graph, 0.3), 0.5)
    label, *body = sections.write_pair_weights(allocation, LABEL).splitlines()
    assert LABEL in label
    rows = list(csv.DictReader(body))
    np.testing.assert_array_equal([int(r["user"]) for r in rows], graph.user_codes)
    np.testing.assert_array_equal([int(r["task"]) for r in rows], graph.task_codes)
    np.testing.assert_array_equal([float(r["weight"]) for r in rows], allocation.compute_pair_weights())
