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
    """Users and tasks of the page Many tasks; ``digest`` and ``seed`` say which, by the source."""
    return core.load_tasks(_parameters, _dataset)


@cached(max_entries=8)
def curve(key: str, loss: Loss, rule: WeightRule, _tasks: core.Tasks) -> core.ExponentCurve:
    """The total bound over mu."""
    return core.compute_curve(_tasks, loss, rule)


@cached(max_entries=4)
def sampling(key: str, loss: Loss, _tasks: core.Tasks) -> Allocation:
    """The best uniform sampling."""
    return core.find_best_sampling(_tasks, loss)


@cached_for_all(max_entries=32)
def budget(target: PrivacyTarget) -> BudgetComparison:
    """Exact and sufficient beta; they depend on no data."""
    return compare_budgets(target)


@cached_for_all(max_entries=8)
def budgets(delta: float) -> dict[str, FloatArray]:
    """Both over epsilon; they depend on no data."""
    return plots.build_budget_columns(delta)


@cached(max_entries=4)
def _weighed(key: str, question: core.WeightQuestion, _tasks: core.Tasks) -> core.WeightComparison:
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


def methods(of: core.WeightComparison, optima: core.Optima) -> list[answer.ComparedAllocation]:
    """Every way of dividing the budget, beside the optimum of its kind."""
    # A search that was stopped and one that was not have different totals.
    totals = optima.task_optimum.total_bound, optima.user_task_optimum.total_bound
    return _methods(of.tasks.key, of.problem.loss, of.rule.exponent, totals, of.tasks, optima)


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


def counts(of: MultitaskSolution) -> answer.CountsSolution:
    """One draw of the private counts."""
    p = of.parameters
    settings = (p.count_share, p.count_max_tasks, p.count_covers, p.count_seed)
    return _counts(of.tasks.key, of.comparison.question, of.budgets.exact, settings, of.tasks, p)


def found(digest: str, parameters: MultitaskParameters, dataset: Dataset) -> MultitaskSolution | None:
    """What is found without the optima; None where the data have no pairs.

    Raises:
        InvalidInput: The generator drew nothing, or c = C log n with a single user.
    """
    generator = parameters.generator
    # A generated graph does not depend on the data, nor the data's on the seed.
    which, seed = (digest, 0) if generator is None else ("", parameters.graph_seed)
    of = tasks(which, generator, seed, parameters, dataset)
    if of is None:
        return None
    weighed = _weighed(of.key, core.WeightQuestion.from_parameters(parameters), of)
    return MultitaskSolution(parameters, weighed, budget(parameters.target))
