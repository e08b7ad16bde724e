"""Calls of the core that the page Many tasks repeats, cached by content; see `pages.shared.base.cache`."""

from __future__ import annotations

from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.multitask.answer import MultitaskSolution, answer, plots
from dpcore.multitask.answer import solution as core
from dpcore.multitask.experiment import HeavyTailed, SkewedTasks
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, BudgetComparison, Loss, PrivacyTarget
from dpcore.multitask.problem import compare_budgets as compare_budgets
from dpcore.multitask.weights import WeightRule
from pages.shared.base.cache import cached, cached_for_all


@cached(max_entries=2)
def tasks(
    digest: str,
    generator: SkewedTasks | HeavyTailed | None,
    seed: int,
    _parameters: MultitaskParameters,
    _dataset: Dataset,
) -> core.Tasks | None:
    """Return users and tasks of the page Many tasks; ``digest`` and ``seed`` say which, by the source."""
    return core.load_tasks(_parameters, _dataset)


@cached(max_entries=8)
def curve(key: str, loss: Loss, rule: WeightRule, _tasks: core.Tasks) -> core.ExponentCurve:
    """Return the total bound over mu."""
    return core.compute_curve(_tasks, loss, rule)


@cached(max_entries=4)
def sampling(key: str, loss: Loss, _tasks: core.Tasks) -> Allocation:
    """Return the best uniform sampling."""
    return core.find_best_sampling(_tasks, loss)


@cached_for_all(max_entries=32)
def budget(target: PrivacyTarget) -> BudgetComparison:
    """Return exact and sufficient beta; they depend on no data."""
    return compare_budgets(target)


@cached_for_all(max_entries=8)
def budgets(delta: float) -> dict[str, FloatArray]:
    """Return exact and sufficient beta over epsilon; they depend on no data."""
    return plots.build_budget_columns(delta)


@cached(max_entries=4)
def _compare_weights(key: str, question: core.WeightQuestion, _tasks: core.Tasks) -> core.WeightComparison:
    over_exponents = curve(key, question.loss, question.rule.with_exponent(0.0), _tasks)
    return core.compare_weights(_tasks, question, over_exponents, sampling(key, question.loss, _tasks))


@cached(max_entries=4)
def _methods(
    key: str,
    loss: Loss,
    exponent: float,
    totals: tuple[float, float],
    _tasks: core.Tasks,
    _optima: core.Optima,
) -> list[answer.ComparedAllocation]:
    return answer.compare_with_optima(_tasks, loss, exponent, sampling(key, loss, _tasks), _optima)


def list_compared_allocations(
    comparison: core.WeightComparison, optima: core.Optima
) -> list[answer.ComparedAllocation]:
    """Return every way of dividing the budget, each with the optimum of its kind."""
    # A search that was stopped and one that was not have different totals.
    totals = optima.task_optimum.total_bound, optima.user_task_optimum.total_bound
    return _methods(
        comparison.tasks.key,
        comparison.problem.loss,
        comparison.rule.exponent,
        totals,
        comparison.tasks,
        optima,
    )


@cached(max_entries=4)
def _counts(
    key: str,
    question: core.WeightQuestion,
    budget: float,
    settings: tuple[float, int, bool, int],
    _tasks: core.Tasks,
    _parameters: MultitaskParameters,
) -> answer.CountsSolution:
    return answer.simulate_counts(_tasks, question, budget, _parameters)


def counts(solution: MultitaskSolution) -> answer.CountsSolution:
    """Return one simulated draw of the private counts."""
    p = solution.parameters
    settings = (p.count_share, p.count_max_tasks, p.count_covers, p.count_seed)
    return _counts(
        solution.tasks.key, solution.comparison.question, solution.budgets.exact, settings, solution.tasks, p
    )


def solve(digest: str, parameters: MultitaskParameters, dataset: Dataset) -> MultitaskSolution | None:
    """Return the solution without the optima; None if the data have no pairs.

    Raises:
        InvalidInput: The generator drew nothing, or c = C log n with a single user.
    """
    generator = parameters.generator
    # A generated graph does not depend on the data, nor the data's on the seed.
    which, seed = (digest, 0) if generator is None else ("", parameters.graph_seed)
    data = tasks(which, generator, seed, parameters, dataset)
    if data is None:
        return None
    comparison = _compare_weights(data.key, core.WeightQuestion.from_parameters(parameters), data)
    return MultitaskSolution(parameters, comparison, budget(parameters.target))
