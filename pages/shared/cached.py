"""Calls of the core that a rerun repeats, cached by content.

Streamlit hashes only a sample of a large array, and heavy tails are exactly what a sample misses: so the key is
the data's digest and the frozen question, and the data themselves pass by as ``_argument``. Everything is kept
per session, since uploads are private to the person who made them, and as a resource, since answers are frozen
and pickling millions of users on every rerun would cost more than the answer.
"""

from __future__ import annotations

import streamlit as st

from dpcore import gap_examples, learning, mean, quantile
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.dataset import Dataset, Values
from dpcore.mean import user_effects
from dpcore.private_choice.parameters import PrivateParameters
from dpcore.quantile.parameters import QuantileParameters
from dpcore.total import TotalProblem
from dpcore.total import parameters as total_parameters
from dpcore.total import strategies as total_strategies
from dpcore.total.groups import GroupedProblem
from dpcore.total.strategies import NoiseComparison, StrategyCurves
from pages.gap_examples import answer as gap_view
from pages.learning import answer as learning_view
from pages.learning import population
from pages.mean import answer as mean_view
from pages.private_choice import answer as private_view
from pages.quantile import answer as quantile_view
from pages.shared.value_range import Outside
from pages.start import figures
from pages.total import answer as total_view
from pages.total import grouped, signed
from pages.total import strategies as total_strategies_view


@st.cache_resource(max_entries=8, scope="session", show_spinner=False)
def clamped_values(digest: str, lower: float, upper: float, _dataset: Dataset) -> user_effects.Clamped | None:
    """Values forced into [lower, upper], per user; None where the data have no values."""
    return user_effects.clamp(_dataset.values, lower, upper) if _dataset.values is not None else None


@st.cache_resource(max_entries=8, scope="session", show_spinner=False)
def values_outside(digest: str, lower: float, upper: float, _values: Values) -> Outside:
    """How many values lie outside [lower, upper]."""
    values = _values.values
    return Outside(int((values < lower).sum()), int((values > upper).sum()), values.size)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def mean_answer(
    digest: str, parameters: mean.MeanParameters, _clamped: user_effects.Clamped | None, _dataset: Dataset
) -> mean_view.MeanView:
    """The Mean page's answer; ``_clamped`` follows from data and parameters."""
    if _clamped is None:
        return mean_view.compute(_dataset.histogram, parameters, None)
    return mean_view.compute(_dataset.histogram, parameters, _clamped.variance, _clamped.mean)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def start_tradeoff(digest: str, epsilon: float, _dataset: Dataset) -> figures.Tradeoff:
    """The Start page's curves and their sweet spot."""
    return figures.tradeoff(_dataset.histogram, epsilon)


@st.cache_resource(max_entries=8, scope="session", show_spinner=False)
def held_totals(
    digest: str, summed: total_parameters.Summed, _dataset: Dataset
) -> total_parameters.UserTotals:
    """What every user adds to the sum."""
    return total_parameters.user_totals(_dataset, summed)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def total_answer(
    digest: str, parameters: total_parameters.TotalParameters, _held: total_parameters.UserTotals
) -> total_view.TotalView:
    """The answer of Sum and count, where no total is negative."""
    return total_view.compute(_held, parameters)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def signed_answer(
    digest: str, parameters: total_parameters.TotalParameters, _held: total_parameters.UserTotals
) -> signed.SignedView:
    """The answer of Sum and count, where some totals are negative."""
    return signed.compute(_held, parameters)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def grouped_answer(
    digest: str, parameters: total_parameters.TotalParameters, _dataset: Dataset, _problem: GroupedProblem
) -> grouped.GroupedView:
    """Counts per group."""
    return grouped.compute(_dataset, _problem, parameters.own_groups)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def noise_comparison(
    digest: str,
    summed: total_parameters.Summed,
    epsilon: float,
    measure: Measure,
    delta: float,
    _problem: TotalProblem,
) -> NoiseComparison:
    """The best bound under either noise."""
    return total_strategies.compare_noises(_problem, delta)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def strategy_curves(
    digest: str,
    summed: total_parameters.Summed,
    noise: tuple[NoiseKind, float | None],
    measure: Measure,
    share: float,
    _problem: TotalProblem,
) -> StrategyCurves:
    """Relative error of four strategies over epsilon."""
    return total_strategies_view.curves_of_strategies(_problem, share)


@st.cache_resource(max_entries=32, scope="session", show_spinner=False)
def learning_answer(
    digest: str, parameters: learning.LearningParameters, _dataset: Dataset
) -> learning_view.LearningView:
    """The answer of Learning under a cap; ``parameters`` without what does not change it."""
    return learning_view.compute(parameters.problem(_dataset.histogram))


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def learning_rivals(
    digest: str, parameters: learning.LearningParameters, _dataset: Dataset
) -> learning_view.Rivals:
    """The best cap under every bound on the bias; ``parameters`` as above."""
    return learning_view.rivals(parameters.problem(_dataset.histogram))


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def learning_population_view(
    parameters: learning.LearningParameters,
) -> population.PopulationView:
    """Figures 2 and 3; ``parameters`` without what does not change them."""
    return population.compute(parameters)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def gap_answer(digest: str, parameters: mean.MeanParameters, _dataset: Dataset) -> gap_view.GapView:
    """The answer on the person's data of the page on the largest gap."""
    return gap_view.compute(_dataset.histogram, parameters)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def gap_comparison(
    parameters: gap_examples.GapParameters, kind: gap_examples.InstanceKind
) -> gap_examples.Comparison:
    """Both optima of an instance that does not depend on data."""
    return gap_view.compare_instance(parameters, kind)


@st.cache_resource(max_entries=4, show_spinner=False)
def gap_growth(example: int) -> gap_view.Growth:
    """How the gap of a regression example grows; it depends on no data."""
    return gap_view.growth(example)


@st.cache_resource(max_entries=32, show_spinner=False)
def gap_regression(example: int, g: int) -> gap_view.RegressionStep:
    """A regression example at one g; it depends on no data."""
    return gap_view.regression_step(example, g)


@st.cache_resource(max_entries=2, scope="session", show_spinner="Sorting the values")
def quantile_rows(
    digest: str, base: tuple[object, ...], _parameters: QuantileParameters, _values: Values
) -> quantile.QuantileProblem:
    """A question with its rows sorted; ``base`` is all of ``_parameters`` that the rows depend on."""
    problem = quantile.QuantileProblem(_values, 0.5, 1.0, _parameters.base_distribution())
    _ = problem.rows
    return problem


@st.cache_resource(max_entries=2, scope="session", show_spinner=False)
def quantile_answer(
    digest: str,
    parameters: QuantileParameters,
    tried: tuple[int, int],
    _problem: quantile.QuantileProblem,
    _choices: quantile_view.Choices,
) -> quantile_view.QuantileView:
    """The Quantile page's answer. ``tried``: how many bounds the search got to, since it can be stopped."""
    return quantile_view.compute(parameters, _problem, _choices)


@st.cache_resource(max_entries=16, scope="session", show_spinner=False)
def private_answer(digest: str, parameters: PrivateParameters, _dataset: Dataset) -> private_view.PrivateView:
    """The answer of Choose privately; its simulated part is short."""
    return private_view.compute(_dataset.histogram, parameters)
