"""Calls of the core that the page Many tasks repeats, cached by content; see `pages.shared.cache`."""

from __future__ import annotations

from dpcore.contributions import FloatArray
from dpcore.dataset import Dataset
from dpcore.multitask.budget import BudgetComparison, PrivacyTarget, compare
from dpcore.multitask.fit import WeightRule
from dpcore.multitask.parameters import MultitaskParameters
from dpcore.multitask.problem import Allocation, Loss
from dpcore.multitask.synthetic import HeavyTailed, SkewedTasks
from pages.multitask import answer as multitask_view
from pages.multitask import compare as multitask_compare
from pages.multitask import detail_figures
from pages.shared.cache import cached, cached_for_all


@cached(max_entries=2)
def tasks(
    digest: str,
    generator: SkewedTasks | HeavyTailed | None,
    seed: int,
    _parameters: MultitaskParameters,
    _dataset: Dataset,
) -> multitask_view.Tasks | None:
    """Users and tasks of the page Many tasks; ``digest`` and ``seed`` say which, by the source."""
    return multitask_view.load_tasks(_parameters, _dataset)


@cached(max_entries=8)
def curve(key: str, loss: Loss, rule: WeightRule, _tasks: multitask_view.Tasks) -> multitask_view.Curve:
    """The total bound over mu."""
    return multitask_view.curve(_tasks, loss, rule)


@cached(max_entries=4)
def sampling(key: str, loss: Loss, _tasks: multitask_view.Tasks) -> Allocation:
    """The best uniform sampling."""
    return multitask_view.best_sampling(_tasks, loss)


@cached_for_all(max_entries=32)
def budget(target: PrivacyTarget) -> BudgetComparison:
    """Exact and sufficient beta; they depend on no data."""
    return compare(target)


@cached_for_all(max_entries=8)
def budgets(delta: float) -> dict[str, FloatArray]:
    """Both over epsilon; they depend on no data."""
    return detail_figures.budget_columns(delta)


@cached(max_entries=4)
def _view(
    key: str, question: multitask_view.WeightQuestion, _tasks: multitask_view.Tasks
) -> multitask_view.MultitaskView:
    over_exponents = curve(key, question.loss, question.rule.with_exponent(0.0), _tasks)
    return multitask_view.compute(_tasks, question, over_exponents, sampling(key, question.loss, _tasks))


@cached(max_entries=4)
def _methods(
    key: str,
    loss: Loss,
    exponent: float,
    totals: tuple[float, float],
    _tasks: multitask_view.Tasks,
    _optima: multitask_compare.Optima,
) -> list[multitask_compare.ComparedAllocation]:
    return multitask_compare.methods(_tasks, loss, exponent, sampling(key, loss, _tasks), _optima)


def methods(
    of: multitask_view.Tasks, loss: Loss, exponent: float, optima: multitask_compare.Optima
) -> list[multitask_compare.ComparedAllocation]:
    """Every way of dividing the budget, beside the optimum of its kind."""
    # A search that was stopped and one that was not have different totals.
    totals = optima.same_for_all.total_bound, optima.free.total_bound
    return _methods(of.key, loss, exponent, totals, of, optima)


@cached(max_entries=4)
def _counts(
    key: str,
    question: multitask_view.WeightQuestion,
    budget: float,
    settings: tuple[float, int, bool, int],
    _tasks: multitask_view.Tasks,
    _parameters: MultitaskParameters,
) -> multitask_compare.CountsView:
    return multitask_compare.private_counts(_tasks, question, budget, _parameters)


def counts(
    of: multitask_view.Tasks, question: multitask_view.WeightQuestion, parameters: MultitaskParameters
) -> multitask_compare.CountsView:
    """One draw of the private counts."""
    settings = (
        parameters.count_share,
        parameters.count_max_tasks,
        parameters.count_covers,
        parameters.count_seed,
    )
    return _counts(of.key, question, budget(parameters.target).exact, settings, of, parameters)


def answer(
    digest: str, parameters: MultitaskParameters, dataset: Dataset
) -> multitask_view.MultitaskView | None:
    """The answer of the page Many tasks; None where the data have no pairs.

    Raises:
        InvalidInput: The generator drew nothing, or c = C log n with a single user.
    """
    generator = parameters.generator
    # A generated graph does not depend on the data, nor the data's on the seed.
    which, seed = (digest, 0) if generator is None else ("", parameters.graph_seed)
    found = tasks(which, generator, seed, parameters, dataset)
    if found is None:
        return None
    question = multitask_view.WeightQuestion(
        loss=parameters.loss.loss,
        rule=WeightRule(parameters.exponent, parameters.fit, parameters.log_constant),
        max_tasks=parameters.max_tasks,
    )
    return _view(found.key, question, found)
