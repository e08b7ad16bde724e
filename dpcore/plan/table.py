"""The curves of a plan's lines, read off a data set.

All lines are under one relation: one user is added or removed, with all their rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.errors import refusal
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.contributions import FloatArray, log_spaced
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Contribution, Dataset
from dpcore.mean import private_counts, public_counts
from dpcore.mean.parameters import assumed_of_users
from dpcore.mean.read_values import ReadValues
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, PerGroupProblem, Statistic
from dpcore.per_group.passes import errors_by_groups
from dpcore.per_group.sorted_pairs import SortedPairs
from dpcore.plan.budget import Program
from dpcore.plan.curves import BoundCurve, Curve, RankCurve, TotalCurve, caps_to_try, few_digits
from dpcore.plan.lines import USUAL_SHARE, Line, Released
from dpcore.plan.parameters import PlanParameters
from dpcore.quantile import QuantileProblem, WeightKind, output
from dpcore.quantile.base_distribution import uniform_base
from dpcore.quantile.mechanism import errors_over_epsilon
from dpcore.total.parameters import Summed, user_totals

NEIGHBOURS = Neighbours.ADD_OR_REMOVE_USER
MOST_AMOUNTS, MOST_GROUPS = 64, 128
"""Pairs of bounds of a line per group that are looked at: so many amounts, and so many numbers of groups."""
MOST_CAPS = 2**17
"""Bounds on rows of a mean that are looked at: all where no user has more rows, else so many, log-spaced."""
SIGNED_BOUNDS = 2048
"""Bounds on totals of both signs that are looked at."""
_RANK_BOUNDS = 12
EPSILONS_OF_RANKS = np.geomspace(1e-4, 1e3, 33)
"""At which the error of a quantile is computed; between them it is read."""
RANK_ROWS = 20_000
"""Rows beyond which the error of a quantile is computed on fewer distinct values, to 1 %, where rows weigh by user."""
_RANK_CELLS = 2_000_000
"""Rows times subsamples over which the error of a quantile under a bound on rows is averaged."""
_QUIET = 1e3
"""Epsilon at which squares of bias and noise are told apart: there the noise is a few digits of the whole."""


@dataclass(frozen=True, eq=False)
class PlannedLine:
    """A line on given data.

    Attributes:
        line: What is released.
        curve: Its least squared error.
        value: What its relative error is relative to, above 0 or 0; NaN of a quantile, whose error is a share of rows.
        unit: Of its error and its bound's amount.
        wanted: The wanted error in that unit; NaN where it is a share of a value of 0.
        every: Whether all bounds of its kind were looked at: whole caps, real bounds on totals, whole pairs of groups
            and rows. Where not, a proof covers those that were.
        assumes: What its error assumes of users; sentences without their full stop.
        ranked: The question of a quantile for weights by user, its rows sorted.
    """

    line: Line
    curve: Curve
    value: float
    unit: str
    wanted: float
    every: bool = True
    assumes: tuple[str, ...] = ()
    ranked: QuantileProblem | None = None

    @property
    def weight(self) -> float:
        """Of its squared error: 1 / wanted^2, times the line's own weight."""
        return self.line.weight / self.wanted**2


def planned(data: Dataset, parameters: PlanParameters) -> tuple[PlannedLine, ...]:
    """Every line with its curve.

    Raises:
        InvalidInput: The data lack what a line needs, or a relative error is wanted of a value of 0; all at once.
    """
    found: list[PlannedLine] = []
    with Problems() as problems:
        if data.contribution is not Contribution.ROWS:
            problems.add(
                "a plan counts rows, and in these data something else is counted as a contribution",
                remedy="Count rows, under Your data",
            )
        for line in parameters.asked if not problems.found else ():
            with problems.collecting():
                found.append(_planned(data, parameters, line))
    return tuple(found)


def _planned(data: Dataset, parameters: PlanParameters, line: Line) -> PlannedLine:
    kind = line.released
    instead = {
        Released.SUM: data.totals is not None and bool(data.totals.column),
        Released.GROUP_SUMS: data.pairs is not None,
    }
    if kind.of_values and data.values is None and not instead.get(kind):
        raise refusal(f"{line.what} needs a column of values, and these data have none")
    if kind.per_group and data.pairs is None:
        raise refusal(f"{line.what} needs groups, and these data have none")
    variance = parameters.noise.unit_variance
    every = True
    assumes: tuple[str, ...] = ()
    ranked: QuantileProblem | None = None
    if kind is Released.USERS:
        users = float(data.histogram.num_users)
        # A user counts once however many rows they have: noise at sensitivity 1 and no bias, or 0 is published in its
        # place.
        curve: Curve = BoundCurve([0.0, users**2], [variance, 0.0], [1.0, 0.0])
        value, unit = users, "users"
    elif kind is Released.ROWS:
        amounts = Amounts.from_histogram(data.histogram)
        curve, value, unit = TotalCurve(amounts, variance, whole=True), amounts.total, "rows"
    elif kind is Released.SUM:
        curve, value = _sum(data, variance)
        unit = _column(data)
    elif kind is Released.MEAN:
        curve, value, assumes = _mean(data, parameters)
        unit = _column(data)
    elif kind is Released.QUANTILE:
        (curve, ranked), value, unit = _quantile(data, parameters, line), math.nan, "share of rows"
    else:
        curve, value, unit = _groups(data, parameters, kind)
    if isinstance(curve, BoundCurve):
        every = curve.every
    elif isinstance(curve, RankCurve):
        every = False
    wanted = USUAL_SHARE if line.wanted is None else line.wanted
    if line.relative and kind is not Released.QUANTILE:
        if value == 0.0:
            raise refusal(
                f"{line.what} is 0 on these data, so that a share of it is no error to want",
                remedy=f"Write it in its unit: {line.what} within 10",
            )
        wanted *= abs(value)
    return PlannedLine(line, curve, value, unit, wanted, every, assumes, ranked)


def _column(data: Dataset) -> str:
    if data.values is not None:
        return data.values.column
    return data.totals.column if data.totals is not None else ""


def _sum(data: Dataset, variance: float) -> tuple[Curve, float]:
    held = user_totals(data, Summed.VALUES)
    if held.amounts is not None:
        return TotalCurve(held.amounts, variance), held.amounts.total
    if held.signed is None:
        raise refusal(held.refusal.rstrip("."))
    # Totals of both signs, each clamped to [-T, T]; what is cut may cancel, so the bias need not fall as T grows.
    x = held.signed
    sizes = np.unique(np.abs(x))
    few = sizes.size <= SIGNED_BOUNDS
    bounds = sizes if few else np.unique(np.quantile(sizes, np.linspace(0.0, 1.0, SIGNED_BOUNDS // 2)))
    if sizes[-1] > 0.0:
        bounds = np.union1d(bounds, log_spaced(float(sizes[-1]) * 1e-3, float(sizes[-1]), SIGNED_BOUNDS))
    bounds = np.union1d(few_digits(bounds), [0.0])
    plus, minus = (Amounts.from_totals(np.maximum(sign * x, 0.0)) for sign in (1.0, -1.0))
    bias = plus.excess(bounds) - minus.excess(bounds)
    return BoundCurve(bias**2, variance * bounds**2, bounds, every=False), float(x.sum())


def _mean(data: Dataset, parameters: PlanParameters) -> tuple[Curve, float, tuple[str, ...]]:
    """The mean with private counts of `dpcore.mean` under whole caps, its value, and what the error assumes."""
    problem, value = mean_problem(data, parameters)
    caps, every = caps_to_try(data.histogram.max_size, MOST_CAPS)
    alpha, beta = mean_parts(problem, caps, parameters.noise)
    return BoundCurve(alpha, beta, caps, every=every), value, assumed_of_users(problem)


def mean_parts(
    problem: private_counts.PrivateCountsProblem, caps: FloatArray, noise: NoiseKind
) -> tuple[FloatArray, FloatArray]:
    """(Squared error without noise, variance of the noise at v = 1) of a mean under caps, the problem at epsilon 1."""
    parts = public_counts.capped_error(problem, caps)
    # At epsilon = 1 and Laplace noise the privacy variance is that of v = 1.
    beta = parts.privacy_variance * (noise.unit_variance / NoiseKind.LAPLACE.unit_variance)
    return parts.sampling_variance + parts.shift**2, beta


def mean_problem(
    data: Dataset, parameters: PlanParameters
) -> tuple[private_counts.PrivateCountsProblem, float]:
    """The question of a mean line as *Mean* asks it, at epsilon 1, and the mean that the release is to come close to.

    That is the mean of the rows at hand before clamping where the error is one on these rows, else the mean after it.
    """
    asked = parameters.of_mean
    read = ReadValues.of(data, asked.lower, asked.upper)
    assert read is not None
    problem = asked.problem(data.histogram, read=read)
    assert isinstance(problem, private_counts.PrivateCountsProblem)
    # Libraries give half of the line's budget to the sum around the middle and half to the number of rows. With Laplace
    # noise that doubles the variance of the pair. With Gaussian noise it does not: half of rho each is sqrt(2) sigma on
    # half of the range, (B h / 2)^2 2 sigma^2 (1 + (2 p - 1)^2) = (B h sigma)^2 (p^2 + (1 - p)^2), which is the pair's.
    split = parameters.program is not Program.PYTHON and parameters.noise is NoiseKind.LAPLACE
    release = private_counts.Release.CENTRED_SPLIT if split else private_counts.Release.PAIR
    value = read.clamped.mean if problem.table is None else read.clamped.unclamped_mean
    return replace(problem, release=release), value


def _groups(data: Dataset, parameters: PlanParameters, kind: Released) -> tuple[Curve, float, str]:
    assert data.pairs is not None
    statistic = {
        Released.GROUP_USERS: Statistic.USERS,
        Released.GROUP_ROWS: Statistic.ROWS,
        Released.GROUP_SUMS: Statistic.SUM,
    }[kind]
    if kind is Released.GROUP_SUMS and data.pairs.sums is not None and data.pairs.sums.min() < 0.0:
        statistic = Statistic.SIGNED_SUM
    asked = PerGroupParameters(_QUIET, statistic, parameters.noise, parameters.delta)
    problem = PerGroupProblem(UserGroupPairs.from_facet(data.pairs), asked)
    facet = SortedPairs.of(problem)
    largest = float(np.abs(problem.amounts).max())
    if problem.whole:
        amounts, every = caps_to_try(int(largest), MOST_AMOUNTS)
    elif largest > 0.0:
        positive = np.abs(problem.amounts)[problem.amounts != 0.0]
        ladder = log_spaced(max(float(positive.min()), largest * 1e-4), largest, MOST_AMOUNTS)
        amounts, every = few_digits(ladder), False
    else:
        amounts, every = np.array([]), True
    groups, all_groups = caps_to_try(int(facet.sizes[0]), MOST_GROUPS)
    places = groups.astype(np.int64) - 1
    alpha, beta = [np.array([problem.error_of_nothing**2])], [np.zeros(1)]
    first, second = [np.zeros(1)], [np.zeros(1)]
    for amount in amounts.tolist():
        noise = asked.pair_noise(groups, amount)
        # Squares of bias and of noise add up in the error; a difference below 0 is rounding.
        alpha.append(np.maximum(errors_by_groups(problem, amount, facet)[places] ** 2 - noise**2, 0.0))
        beta.append((noise / asked.unit_noise) ** 2)
        first.append(groups)
        second.append(np.full(groups.shape, amount))
    curve = BoundCurve(
        np.concatenate(alpha),
        np.concatenate(beta),
        np.concatenate(first),
        np.concatenate(second),
        every and all_groups,
    )
    totals = problem.per_group(problem.amounts)
    unit = {Released.GROUP_USERS: "users", Released.GROUP_ROWS: "rows"}.get(kind, data.pairs.value_column)
    return curve, float(np.mean(np.abs(totals))), unit


def _quantile(data: Dataset, parameters: PlanParameters, line: Line) -> tuple[RankCurve, QuantileProblem]:
    # The curve is that of weights by user for all programs, which is one pass per bound. A bound on rows at the same h
    # errs as much to 5 % (measured on the sample events from epsilon = 0.3 to 3), and takes a pass per subsample.
    problem, kind = quantile_problem(data, parameters, line), rank_weights(parameters)
    if data.histogram.num_rows > RANK_ROWS:
        problem = problem.thinned()
    top = float(problem.histogram.max_size)
    bounds = np.unique(log_spaced(float(problem.histogram.min_size), top, _RANK_BOUNDS))
    if kind is WeightKind.CAP:
        bounds = np.unique(np.round(bounds))
    epsilons = EPSILONS_OF_RANKS
    errors = np.array([errors_over_epsilon(problem, WeightKind.SMOOTH, float(h), epsilons) for h in bounds])
    v = rank_v(epsilons, parameters.noise)
    order = np.argsort(v)
    return RankCurve(v[order], errors[:, order], bounds), problem


def rank_weights(parameters: PlanParameters) -> WeightKind:
    """How rows count in a quantile: OpenDP's counts rows, at most h of each user; plain Python weighs them by user."""
    return WeightKind.CAP if parameters.program is Program.OPENDP else WeightKind.SMOOTH


def quantile_problem(data: Dataset, parameters: PlanParameters, line: Line) -> QuantileProblem:
    """The question of one quantile line, at epsilon 1."""
    assert data.values is not None
    assert line.quantile is not None
    assert parameters.lower is not None
    assert parameters.upper is not None
    base = uniform_base(parameters.lower, parameters.upper)
    return QuantileProblem(data.values, line.quantile, 1.0, base, neighbours=NEIGHBOURS)


def rank_v(epsilons: FloatArray, noise: NoiseKind) -> FloatArray:
    """v of a line that draws a quantile by the exponential mechanism with these epsilons.

    With Laplace noise epsilons add up: v = 1 / epsilon^2. Beside Gaussian noise rho adds up: the exponential mechanism
    is epsilon^2 / 8-zCDP, a Gaussian mu^2 / 2-zCDP, so that mu^2 = epsilon^2 / 4 and v = 1 / mu^2.

    Source: Cesar and Rogers 2021 (bounded range), for epsilon^2 / 8.
    """
    return np.asarray((1.0 if noise is NoiseKind.LAPLACE else 4.0) / np.asarray(epsilons) ** 2)


def rank_epsilon(v: float, noise: NoiseKind) -> float:
    """The inverse of `rank_v`."""
    return math.sqrt((1.0 if noise is NoiseKind.LAPLACE else 4.0) / v)


def exact_rank_error(
    data: Dataset, parameters: PlanParameters, planned: PlannedLine, v: float, bound: float
) -> float:
    """Expected rank error of a quantile line at exactly this v and bound, with the rows that its program counts.

    Where rows are many and weigh by user it is exact to 1 %: see `dpcore.quantile.mechanism.ThinRows`.
    """
    epsilon, kind = rank_epsilon(v, parameters.noise), rank_weights(parameters)
    if kind is WeightKind.SMOOTH and planned.ranked is not None:
        return float(errors_over_epsilon(planned.ranked, kind, bound, np.array([epsilon]))[0])
    problem = quantile_problem(data, parameters, planned.line).with_epsilon(epsilon)
    if kind is WeightKind.CAP:
        problem = problem.with_subsamples(max(4, min(64, _RANK_CELLS // data.histogram.num_rows)))
    return float(output(problem, kind, bound).expected_rank_error)
