"""Dividing budgets among tasks: our optimisers beside CVXPY, and alone at sizes that CVXPY cannot finish.

Run ``python -m benchmarks.multitask`` from the root. MovieLens is used where SWEETSPOT_BENCH_DATA names a
folder that has ``ml1m_user_movie_rating.csv``; nothing of it is written anywhere. Every solver's answer is
made feasible and certified by the same formula, and ours is asked for the gap that the other reached.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dpcore.data.task_facets import Pairs
from dpcore.multitask import exact, sampling, weights
from dpcore.multitask.experiment import Experiment, HeavyTailed, run_experiment
from dpcore.multitask.problem import (
    Allocation,
    Loss,
    PrivacyTarget,
    TaskGraph,
    TaskProblem,
    compare_budgets,
    drop_empty_tasks,
)

BUDGET = 0.05
SMALLEST_ASKED = 1e-9
USABLE_GAP = 0.05
"""A solver whose answer is further off than this has not answered; no ratio is printed."""


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a title, columns aligned."""
    widths = [max(len(r[k]) for r in (head, *rows)) for k in range(len(head))]
    print(f"\n{title}")
    for row in (head, ["-" * w for w in widths], *rows):
        print(
            "  ".join(
                cell.rjust(w) if k else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
        )


def measure(work: Callable[[], Any], min_seconds: float = 0.3) -> tuple[float, Any]:
    """Return the seconds of the fastest run, and the last result; at least one run, more until ``min_seconds``."""
    best, seconds = np.inf, 0.0
    result = None
    while seconds < min_seconds:
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        best, seconds = min(best, took), seconds + took
    return best, result


def draw_graph(num_users: int, num_tasks: int, tasks_per_user: float, seed: int = 0) -> TaskGraph:
    """Draw a heavy-tailed graph without empty tasks."""
    setting = HeavyTailed(num_users, num_tasks, tasks_per_user, zipf_exponent=0.9)
    return TaskGraph.from_pairs(drop_empty_tasks(setting.draw(np.random.default_rng(seed))), num_users)


def read_movielens(head: int | None = None) -> TaskGraph | None:
    """Return the MovieLens 1M ratings as a graph of users and movies, or of its first users; None without them."""
    path = Path(os.environ.get("SWEETSPOT_BENCH_DATA", "")) / "ml1m_user_movie_rating.csv"
    if "SWEETSPOT_BENCH_DATA" not in os.environ or not path.exists():
        return None
    columns = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1), dtype=np.int64)
    users, movies = (np.unique(column, return_inverse=True)[1] for column in columns.T)
    if head is not None:
        users, movies = users[users < head], movies[users < head]
    keys = np.unique(users * (movies.max() + 1) + movies)
    users, movies = keys // (movies.max() + 1), keys % (movies.max() + 1)
    return TaskGraph.from_pairs(drop_empty_tasks(Pairs(users, movies, int(movies.max()) + 1)))


def solve_by_cvxpy(problem: TaskProblem, solver: str) -> tuple[float, float]:
    """Return seconds, and the relative gap that the answer is proved to: both sides recomputed from the graph."""
    import cvxpy as cp

    graph = problem.graph
    costs = problem.graph.task_sizes.astype(float) ** -problem.loss.gamma
    # In units of equation 11, unclipped: entries near 1, where solvers are at their best.
    unit = weights.allocate_by_power(
        problem,
        problem.loss.best_exponent,
        weights.find_inflation_without_clipping(problem, problem.loss.best_exponent),
    )
    scale = unit.task_weights**2 / problem.budget
    start = time.perf_counter()
    p = cp.Variable(problem.graph.num_tasks)
    limits = [graph.matrix.multiply(scale).tocsr() @ p <= 1.0]
    costs_in_units = costs / scale / np.sum(costs / scale)
    question = cp.Problem(cp.Minimize(cp.sum(cp.multiply(costs_in_units, cp.inv_pos(p)))), limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Solution may be inaccurate": the gap below says by how much.
        if solver == "SCS":
            question.solve(solver=solver, eps_abs=1e-6, eps_rel=1e-6, max_iters=5_000)
        else:
            question.solve(solver=solver)
    took = time.perf_counter() - start
    squared = scale * np.maximum(np.asarray(p.value), 1e-9)
    squared *= problem.budget / graph.sum_by_user(squared).max()
    value = float(np.sum(costs / squared))
    multipliers = np.maximum(np.asarray(limits[0].dual_value), 0.0)
    return took, (value - exact.compute_lower_bound(problem, multipliers)) / value


def compare_with_cvxpy() -> None:
    """Print problem (9) at equal certified gaps."""
    graphs = {
        "generated 500 x 100": draw_graph(500, 100, 10.0),
        "generated 2,000 x 300": draw_graph(2_000, 300, 20.0),
        "generated 5,000 x 1,000": draw_graph(5_000, 1_000, 30.0),
    }
    real = read_movielens(head=600)
    if real is not None:
        graphs[f"MovieLens, {real.num_users} users x {real.num_tasks:,}"] = real
    rows = []
    for name, graph in graphs.items():
        for loss in Loss:
            problem = TaskProblem(graph, BUDGET, loss)
            graph.sum_by_user(np.zeros(graph.num_tasks))  # The index is built before anybody's clock starts.
            for solver in ("CLARABEL", "SCS"):
                cvxpy_seconds, gap = solve_by_cvxpy(problem, solver)
                tolerance = float(np.clip(gap, SMALLEST_ASKED, 0.5))
                our_seconds, answer = measure(
                    lambda p=problem, t=tolerance: exact.find_best_task_weights(p, t)
                )
                own_gap = f"{answer.certificate.relative_gap:.0e}"
                ratio = f"{cvxpy_seconds / our_seconds:,.0f} x" if gap < USABLE_GAP else "no answer"
                row = (
                    name,
                    str(loss.gamma),
                    f"{graph.num_pairs:,}",
                    solver,
                    f"{cvxpy_seconds:.3f}",
                    f"{gap:.0e}",
                )
                rows.append((*row, f"{our_seconds:.4f}", own_gap, ratio))
    head = ("graph", "gamma", "pairs", "solver", "its s", "its gap", "our s", "our gap", "ratio")
    print_table(
        "Problem (9) at the gap the other reached (ours: best of runs in 0.3 s; the others: one run)",
        head,
        rows,
    )


def read_peak_memory() -> float:
    """Return the largest resident memory of this process so far, MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss of a new process begins at its parent's on Linux; this does not.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024.0 if sys.platform != "darwin" else 2**20
    )


def _measure_large_graph(
    name: str, codes: tuple[Any, Any, int], loss: Loss, tolerance: float
) -> tuple[str, ...]:
    """Return the table row of one large graph; in a process of its own, so that its peak memory is its own."""
    pairs = Pairs(*codes)
    memory = read_peak_memory()
    start = time.perf_counter()
    graph = TaskGraph.from_pairs(pairs)
    graph.sum_by_user(np.zeros(graph.num_tasks))
    index = time.perf_counter() - start
    problem = TaskProblem(graph, BUDGET, loss)
    start = time.perf_counter()
    best = exact.find_best_task_weights(problem, tolerance)
    solved = time.perf_counter() - start
    start = time.perf_counter()
    best_per_user = exact.find_best_user_task_weights(problem, tolerance)
    freed = time.perf_counter() - start
    assert best.certificate is not None
    assert best_per_user.certificate is not None
    peak = read_peak_memory()
    return (
        f"{name}, {graph.num_users:,} x {graph.num_tasks:,}",
        str(loss.gamma),
        f"{graph.num_pairs:,}",
        f"{tolerance:.0e}",
        f"{index:.2f}",
        f"{solved:.2f}",
        f"{best.certificate.relative_gap:.0e}",
        f"{freed:.2f}",
        f"{best_per_user.certificate.relative_gap:.0e}",
        f"{peak:,.0f}",
        f"{memory:,.0f}",
    )


def print_large_graphs() -> None:
    """Print time and peak memory of large graphs."""
    graphs = {"generated": draw_graph(70_000, 10_600, 178.0), "MovieLens 1M": read_movielens()}
    rows = []
    for name, graph in graphs.items():
        if graph is None:
            continue
        codes = (graph.user_codes, graph.task_codes, graph.num_tasks)
        for loss, tolerance in ((loss, tolerance) for loss in Loss for tolerance in (1e-4, 1e-6)):
            with get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(_measure_large_graph, (name, codes, loss, tolerance)))
    head = ("graph", "gamma", "pairs", "asked", "index s", "(9) s", "gap", "free s", "gap")
    head += ("peak MB", "before MB")
    print_table("Large graphs alone (peak memory of the process; before: with the pairs alone)", head, rows)


def print_allocations() -> None:
    """Print what each method achieves on real and generated graphs: total bound, relative to uniform weights."""
    graphs = {"generated 10,000 x 1,000": draw_graph(10_000, 1_000, 30.0)}
    real = read_movielens()
    if real is not None:
        graphs["MovieLens 1M"] = real
    head = ("method", "bound", "tail fifth", "head fifth", "clipped", "budget used", "moved", "largest moved")
    for name, graph in graphs.items():
        for loss in Loss:
            problem = TaskProblem(graph, BUDGET, loss)
            mu = loss.best_exponent
            uniform = weights.allocate_by_power(problem, 0.0)
            answers = (
                uniform,
                weights.allocate_by_power(problem, mu),
                weights.allocate_by_power(
                    problem, mu, weights.compute_logarithmic_inflation(problem.graph.num_users)
                ),
                weights.allocate_by_power(problem, mu, weights.find_inflation_without_clipping(problem, mu)),
                weights.allocate_normalised(problem, mu),
                sampling.find_best_uniform_sampling(problem),
                exact.find_best_task_weights(problem),
                exact.find_best_user_task_weights(problem),
            )
            labels = (
                "uniform, c = 1",
                "eq. 11-12, c = 1",
                "eq. 11-12, c = log n",
                "eq. 11-12, c clips nobody",
            )
            labels += ("eq. 11, normalised per user", answers[5].name, answers[6].name, answers[7].name)
            rows = [_build_row(label, a, uniform) for label, a in zip(labels, answers, strict=True)]
            print_table(f"{name}, gamma = {loss.gamma} (bounds over those of uniform weights)", head, rows)


def _build_row(label: str, answer: Allocation, uniform: Allocation) -> tuple[str, ...]:
    slices = weights.slice_by_size(answer, uniform)
    skew = weights.compute_skew(answer)
    clipped = "" if answer.clipped_user_share is None else f"{answer.clipped_user_share:.1%}"
    return (
        label,
        f"{answer.total_bound / uniform.total_bound:.3f}",
        f"{slices[0].ratio:.3f}",
        f"{slices[-1].ratio:.3f}",
        clipped,
        f"{answer.budget_uses.mean() / answer.problem.budget:.1%}",
        f"{skew.mean():.3f}",
        f"{skew.max():.3f}",
    )


def print_conversions() -> None:
    """Print the exact conversion beside the paper's."""
    rows = []
    for epsilon in (0.5, 1.0, 5.0, 20.0):
        budgets = compare_budgets(PrivacyTarget(epsilon, 1e-5))
        paper = "" if budgets.sufficient_budget is None else f"{budgets.sufficient_budget:.5f}"
        gain = "" if budgets.weight_gain is None else f"{budgets.weight_gain:.2f} x"
        rows.append((f"{epsilon:g}", paper, f"{budgets.exact_budget:.5f}", gain))
    print_table("beta at delta = 1e-5", ("epsilon", "paper", "exact", "more weight"), rows)


def print_experiment() -> None:
    """Print the whole figure of appendix C, both algorithms."""
    setting = Experiment()
    start = time.perf_counter()
    result = run_experiment(setting)
    took = time.perf_counter() - start
    head = ("algorithm", "a", "epsilon", *(f"{mu:g}" for mu in setting.exponents))
    rows = []
    for panel in result.errors_by_panel:
        algorithm, power, epsilon = panel
        means = result.summarise(panel).means
        rows.append((algorithm.value, f"{power:g}", f"{epsilon:g}", *(f"{x:.4f}" for x in means)))
    print_table(f"Test error against mu: {result.num_runs} runs in {took:.1f} s, two threads", head, rows)


def main() -> None:
    """Run all parts, or those named."""
    measurements = {
        "conversions": print_conversions,
        "cvxpy": compare_with_cvxpy,
        "alone": print_large_graphs,
        "allocations": print_allocations,
        "experiment": print_experiment,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*measurements, []], help="all where none is named")
    for name in parser.parse_args().parts or measurements:
        measurements[name]()


if __name__ == "__main__":
    main()
