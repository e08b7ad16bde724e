"""One DP release of a model, with OpenDP's noise; everything else in this question simulates.

Sums of whole numbers (`whole`) are exact, and discrete Gaussian noise on them has the account of the continuous one
(`exact_steps`): a release has the noise of the curves.

Under a cap the rows are drawn once, before the first step, at most h of each user, each user's from random bits of its
own. Whatever bits the others had, a user then moves every sum by at most what rows of weight 1 can, which is as much as
under smooth weights; and a guarantee that holds for each draw of the others holds on average over their draws.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import Problems
from dpcore.common.mechanisms import GaussianSteps
from dpcore.common.privacy import Charge, Neighbours, ReleaseFacts
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray
from dpcore.training import account, followed, optimum, output, pace
from dpcore.training.account import WEIGHT_SHARE
from dpcore.training.exact_steps import exact_gaussian_steps
from dpcore.training.mechanism import Mechanism, Pace
from dpcore.training.rows import ClassifierRows
from dpcore.training.weighting import (
    Cell,
    Method,
    gradient_steps,
    ranks_within_users,
    smooth_weights,
    weight_sensitivity,
)
from dpcore.training.whole import CELLS, USER, whole_gradients, whole_user_sums

MECHANISM = "discrete Gaussian gradient descent"
OUTPUT_MECHANISM = "discrete Gaussian on the minimiser"


@dataclass(frozen=True, eq=False)
class Model:
    """A released model.

    Attributes:
        theta: Of the scaled features, shape (num_features,); it may be published.
        facts: What is guaranteed and how.
        cell: The method and its bound h.
        noise: Standard deviation of the noise on each coordinate of a step's summed gradient, in rows; of output
            perturbation, on each coordinate of θ.
        last_bound: The bound of the last step, in rows: where followed clipped sums came to, which may be published.
    """

    theta: FloatArray
    facts: ReleaseFacts
    cell: Cell
    noise: float
    last_bound: float


def drawn_rows(rows: ClassifierRows, cap: float) -> ClassifierRows:
    """At most ``cap`` rows of each user, drawn by the operating system's random bits; the order of rows stays.

    A user with no more rows keeps all. Two rows share their 64 bits with a chance below 1e-8 even where one user has
    half a million; then the first of them is kept, which favours a row and costs no privacy.
    """
    keys = np.frombuffer(secrets.token_bytes(8 * rows.num_rows), dtype=np.uint64)
    kept = ranks_within_users(rows, keys) < cap
    return ClassifierRows(rows.features[kept], rows.signs[kept], rows.users[kept])


def _squared_sensitivity(mechanism: Mechanism) -> int:
    """Squared sensitivity of a step's whole numbers, as a whole number."""
    return int(gradient_steps(mechanism.neighbours)) ** 2 * USER**2


@dataclass(frozen=True)
class _WeightGrid:
    """How the sum of weights is released: ``squared`` of 0 where it is public."""

    squared: int
    step: float


def _weight_grid(mechanism: Mechanism, bound: float, num_users: int) -> _WeightGrid:
    moved = weight_sensitivity(mechanism.neighbours, bound)
    if not moved:
        return _WeightGrid(0, 1.0)
    gradients = mechanism.steps * _squared_sensitivity(mechanism)
    root = math.isqrt(round(gradients * WEIGHT_SHARE / (1.0 - WEIGHT_SHARE)))
    # A user's weight is rounded toward 0, so that two users' differ by one step more than their weights do; one more
    # covers float64, as long as a weight is at most 2^40 steps: with bounds near 1, where a replaced user moves next to
    # nothing, finer steps would be lost in rounding. A coarser step moves by fewer.
    finest = bound * 2.0**-40
    if mechanism.neighbours is Neighbours.REPLACE_USER:
        # Nor may all weights together be more steps than OpenDP's sampler takes, 2^53. Their number is public here; for
        # users who come or go it is not, and a weight is at most `root` steps.
        finest = max(finest, bound * num_users * 2.0**-52)
    return _WeightGrid(root**2, max(moved / (root - 2), finest))


def check(mechanism: Mechanism, cell: Cell) -> None:
    """Say what no release can have.

    Raises:
        InvalidInput: The bound is out of range, users are sampled, or the method asks for another pace or loss.
    """
    with Problems() as problems:
        problems.between(1e-6, 1e9, bound=cell.bound)
        if mechanism.sampled < 1.0:
            problems.add("a release takes all users in every step")
        if mechanism.look < 1.0:
            problems.add("a release is no first look: its noise is that of all users")
        if mechanism.pace is Pace.ENTERED and cell.method is Method.OUTPUT:
            problems.add("a release by output perturbation has its penalty by the rule")
        if cell.method is Method.OUTPUT and not mechanism.loss.has_bounded_slope:
            problems.add("output perturbation needs a loss of bounded slope")


class StoppedError(Exception):
    """A release was stopped, and there is no model.

    Attributes:
        drawn: Whether noise may have been drawn by then, so that what it costs is spent.
    """

    def __init__(self, drawn: bool) -> None:
        super().__init__("the release was stopped")
        self.drawn = drawn


@dataclass(frozen=True)
class _Beside:
    """Who watches the work, and may stop it."""

    progress: Progress
    should_stop: ShouldStop

    def tell(self, share: float, drawn: bool) -> None:
        self.progress(share)
        if self.should_stop():
            raise StoppedError(drawn)


def train_once(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    charge: Charge | None = None,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Model:
    """Spend (ε, δ) once: a fresh model at every call.

    Args:
        rows: All users that the model learns from.
        mechanism: What is trained and how; its ε and δ are spent.
        cell: The method and its bound h, in rows; chosen without a look at these data, else ε does not cover the
            choice. Followed clipped sums need no choice.
        charge: Told what the release guarantees before anything is drawn.
        progress: Told the share of steps done.
        should_stop: Asked before anything is drawn, and between steps.

    Raises:
        InvalidInput: What `check` says; nothing was drawn.
        StoppedError: It was stopped; it says whether noise may have been drawn.

    Source: Epasto et al. 2020, algorithm 2, with noisy gradient descent as its learner; for a cap, Amin et al. 2019,
        algorithm 1; for clipped sums, McMahan, Ramage, Talwar and Zhang 2018.
    """
    check(mechanism, cell)
    mechanism = _used(mechanism, cell)
    noise, facts = _price(rows, mechanism, cell)
    if charge is not None:
        charge(facts)
    beside = _Beside(progress, should_stop)
    beside.tell(0.0, drawn=False)
    if cell.method is Method.OUTPUT:
        return _minimiser(rows, mechanism, cell, noise, facts, beside)
    train = _by_rule if mechanism.pace is Pace.RULE else _as_entered
    return train(rows, mechanism, cell, noise, facts, beside)


def guarantee(rows: ClassifierRows, mechanism: Mechanism, cell: Cell) -> ReleaseFacts:
    """What `train_once` would charge; nothing is drawn, and of the rows only public sizes matter.

    Raises:
        InvalidInput: What `check` says.
    """
    check(mechanism, cell)
    return _price(rows, _used(mechanism, cell), cell)[1]


def _used(mechanism: Mechanism, cell: Cell) -> Mechanism:
    """The mechanism as a method takes it."""
    mechanism = replace(mechanism, clip=mechanism.clip * cell.clip)
    return pace.by_rule(mechanism) if cell.method is Method.FOLLOWED else mechanism


def _price(rows: ClassifierRows, mechanism: Mechanism, cell: Cell) -> tuple[GaussianSteps, ReleaseFacts]:
    """The noise of a whole release, and what it guarantees."""
    d, steps, name = rows.num_features, mechanism.steps, MECHANISM
    if cell.method is Method.OUTPUT:
        squared, draws, name = _output_cells(mechanism, d) ** 2, d, OUTPUT_MECHANISM
    elif mechanism.pace is Pace.RULE:
        follows = cell.method is Method.FOLLOWED
        squared, draws = rule_grid(mechanism, follows).total, steps * (d + follows) + 1
    else:
        grid = _weight_grid(mechanism, cell.bound, rows.num_users)
        squared, draws = steps * _squared_sensitivity(mechanism) + grid.squared, steps * d + 1
    noise = exact_gaussian_steps(squared, draws, mechanism.epsilon, mechanism.delta)
    return noise, ReleaseFacts(noise.epsilon, noise.delta, mechanism.neighbours, name)


def _whole_sum(
    rows: ClassifierRows, mechanism: Mechanism, cell: Cell, bound: float, theta: FloatArray
) -> tuple[IntArray, int]:
    """The bounded sum of gradients in steps of ``bound × clip / CELLS``, and how many users are within."""
    if cell.method in (Method.FOLLOWED, Method.CLIPPED_SUM):
        sums, within = whole_user_sums(rows, mechanism, bound, theta)
        return sums.sum(axis=0), int(within.sum())
    return whole_gradients(rows, mechanism, bound, theta).sum(axis=0), 0


@dataclass(frozen=True)
class RuleGrid:
    """How a release by the rule is paid for, in whole numbers.

    Attributes:
        one: Squared sensitivity of a step's summed gradient.
        count: What a user within the bound adds to a count, and one beyond takes off; 0 where nobody is counted.
        counts: Squared sensitivity of a step's count.
        number: What a user adds to the number of users; 0 where that is public.
        total: Squared sensitivity of everything together.
    """

    one: int
    count: int
    counts: int
    number: int
    total: int


def rule_grid(mechanism: Mechanism, follows: bool) -> RuleGrid:
    """The split of the budget by `account.shares`, to a millionth."""
    gradients, counts, number = account.shares(mechanism.neighbours, follows)
    moved, one = int(gradient_steps(mechanism.neighbours)) ** 2, _squared_sensitivity(mechanism)
    count = math.isqrt(round(USER**2 * counts / gradients))
    unit = math.isqrt(round(mechanism.steps * one * number / gradients))
    # Of the whole numbers as rounded: what rounding shifts from one part to another is paid for.
    total = mechanism.steps * (one + moved * count**2) + unit**2
    return RuleGrid(one, count, moved * count**2, unit, total)


def _by_rule(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    noise: GaussianSteps,
    facts: ReleaseFacts,
    beside: _Beside,
) -> Model:
    """As `followed.descend` for one run, in whole numbers."""
    follows, d, steps = cell.method is Method.FOLLOWED, rows.num_features, mechanism.steps
    grid = rule_grid(mechanism, follows)
    one = gradient_steps(mechanism.neighbours) * noise.scale / math.sqrt(grid.total)
    if cell.method is Method.CAP:
        rows = drawn_rows(rows, cell.bound)
    users = float(rows.num_users)
    if grid.number:
        released = noise.release(np.array([grid.number * rows.num_users]), grid.number**2)[0]
        users = max(float(released) / grid.number, one)
    # Public, or released with noise: from here on lengths of steps, bounds and averages are made of released numbers,
    # by post-processing.
    known = np.array([users])
    bound = followed.first_bound(cell.bound, one, d, known) if follows else np.array([cell.bound])
    target = followed.quantile(one, d, known)
    share = 1.0 if follows else min(cell.bound * mechanism.clip, 1.0)
    times, mean = np.ones(1), np.zeros((d, 1))
    theta = before = np.zeros(d)
    model, weight, used = np.zeros((d, 1)), np.zeros(1), cell.bound
    for step in range(1, steps + 1):
        # Before the first step noise was drawn for the number of users only, where that is released.
        beside.tell((step - 1) / steps, drawn=step > 1 or grid.number > 0)
        ahead, used = theta + pace.MOMENTUM * (theta - before), float(bound[0])
        exact, within = _whole_sum(rows, mechanism, cell, used, ahead)
        direction = noise.release(exact, grid.one) / CELLS
        mean = pace.faded(mean, direction[:, None])
        agreeing = pace.agreement(mean, noise.scale / CELLS, step)
        times = pace.growth(times, agreeing, step, steps)
        length = float(pace.step_length(one, d, known, mechanism, share, times)[0])
        before, theta = theta, ahead - length * direction
        theta = theta / max(float(np.linalg.norm(theta)) / mechanism.radius, 1.0)
        if follows:
            balance = np.array([grid.count * (2 * within - rows.num_users)])
            released = noise.release(balance, grid.counts)[0]
            # (2 within - n) / (2 n) + 1/2 = within / n, of released numbers.
            found = np.array([float(released) / (2.0 * grid.count * users) + 0.5])
            bound = followed.next_bound(bound, found, target, steps)
        model, weight = pace.averaged(model, weight, theta[:, None], agreeing, step)
    unit = used * mechanism.clip / CELLS
    return Model(model[:, 0], facts, cell, noise.scale * unit, used)


def _as_entered(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    noise: GaussianSteps,
    facts: ReleaseFacts,
    beside: _Beside,
) -> Model:
    """As `descent.train` for one run, in whole numbers."""
    bound, one = cell.bound, _squared_sensitivity(mechanism)
    grid = _weight_grid(mechanism, bound, rows.num_users)
    if cell.method is Method.CAP:
        # min(h, s) rows are left, so that smooth weights of bound h weigh each of them 1.
        rows = drawn_rows(rows, bound)
    divisor = _weight_sum(rows, bound, grid, noise)
    unit = bound * mechanism.clip / CELLS
    theta = np.zeros(rows.num_features)
    kept, first = np.zeros_like(theta), mechanism.average.first(mechanism.steps)
    for step in range(1, mechanism.steps + 1):
        beside.tell((step - 1) / mechanism.steps, drawn=step > 1 or grid.squared > 0)
        exact, _ = _whole_sum(rows, mechanism, cell, bound, theta)
        theta = theta - mechanism.rate / divisor * unit * noise.release(exact, one)
        theta = theta / max(float(np.linalg.norm(theta)) / mechanism.radius, 1.0)
        if step >= first:
            kept += theta
    return Model(kept / (mechanism.steps - first + 1), facts, cell, noise.scale * unit, bound)


def _weight_sum(rows: ClassifierRows, bound: float, grid: _WeightGrid, noise: GaussianSteps) -> float:
    """The sum of weights, public or with noise, at least that of one user."""
    weights = np.minimum(bound, rows.sizes)
    if not grid.squared:
        return math.fsum(weights)
    whole = np.trunc(weights / grid.step).astype(np.int64).sum(keepdims=True)
    return max(float(noise.release(whole, grid.squared)[0]) * grid.step, bound)


_NEAR = 1e-6
"""How far from the exact minimiser the one that is found may lie, as a share of how far a user moves it."""
_OUTPUT_CELLS = 2**28
"""Steps of the grid in how far a user moves the minimiser."""


def _output_cells(mechanism: Mechanism, num_features: int) -> int:
    """How many steps of the grid a user moves the minimiser at most."""
    moved = gradient_steps(mechanism.neighbours)
    return math.ceil(moved * _OUTPUT_CELLS * (1.0 + 2.0 * _NEAR) + math.sqrt(num_features)) + 1


def _minimiser(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    noise: GaussianSteps,
    facts: ReleaseFacts,
    beside: _Beside,
) -> Model:
    """Output perturbation: the minimiser of the penalised sum of losses, on a grid, with noise once.

    The objective is μ-strongly convex, so that the minimiser lies within |g| / μ of where its gradient is g. The search
    ends where that is small enough, on any data, so that no failure tells of them; the sensitivity has twice the slack
    in it, and √d for rounding to the nearest step.
    """
    d, cells = rows.num_features, _output_cells(mechanism, rows.num_features)
    one = account.rule_plan(mechanism.epsilon, mechanism.delta, mechanism.neighbours, 1, False).one
    penalty = output.penalty_by_rule(one, d, cell.bound)
    weights = smooth_weights(rows.sizes, cell.bound)[rows.users]
    theta = optimum.fit_within(rows, mechanism.loss, weights, penalty, _NEAR * cell.bound, beside.should_stop)
    beside.tell(0.9, drawn=False)
    step = cell.bound / penalty / _OUTPUT_CELLS
    noisy = noise.release(np.rint(theta / step).astype(np.int64), cells**2)
    found = np.asarray(step * noisy, dtype=np.float64)
    found /= max(float(np.linalg.norm(found)) / mechanism.radius, 1.0)
    return Model(found, facts, cell, noise.scale * step, cell.bound)
