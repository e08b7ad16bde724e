"""One DP release of a model, with OpenDP's noise; everything else in this question simulates.

Sums of integers are exact, and discrete Gaussian noise on them has the account of the continuous one
(`integer_sums`): a release has the noise of the curves.

Under a cap the rows are drawn once, before the first step, at most h of each user, each user's from random bits
of its own. For any bits of the others, a user then moves every sum by at most as much as rows of weight 1 can, as under
smooth weights. A guarantee that holds for each draw of the others holds on average over their draws.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpcore.common.checks import Problems
from dpcore.common.mechanisms import GaussianSteps
from dpcore.common.privacy import Charge, Neighbours, ReleaseFacts
from dpcore.common.progress import Progress, ShouldStop, never, silent
from dpcore.contributions import FloatArray, IntArray, rank_within_users
from dpcore.data.column_names import escape_formula
from dpcore.training import account, integer_sums, optimum
from dpcore.training.account import WEIGHT_SUM_BUDGET_SHARE, Cell, Method, get_gradient_sensitivity
from dpcore.training.descent import DirectionAndShare, descend_as_entered, descend_by_rule
from dpcore.training.integer_sums import MAX_USER_NORM, STEPS_PER_BOUND, account_exactly
from dpcore.training.mechanism import Mechanism, Pace, apply_rule
from dpcore.training.rows import ClassifierRows, Scaling

DESCENT_MECHANISM = "discrete Gaussian gradient descent"
OUTPUT_MECHANISM = "discrete Gaussian on the minimiser"


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier as it was released with noise: its coefficients, guarantee and method.

    Attributes:
        theta: Of the scaled features, shape (num_features,); it may be published.
        facts: What is guaranteed and how.
        cell: The method and its bound h.
        noise_std: Standard deviation of the noise on each coordinate of a step's summed gradient, in rows; of output
            perturbation, on each coordinate of θ.
        last_bound: The bound of the last step, in rows: where followed clipped sums came to, which may be published.
    """

    theta: FloatArray
    facts: ReleaseFacts
    cell: Cell
    noise_std: float
    last_bound: float


def draw_rows(rows: ClassifierRows, cap: float) -> ClassifierRows:
    """Draw at most ``cap`` rows of each user by the operating system's random bits; the order of rows stays.

    A user with no more rows keeps all. Two rows share their 64 bits with a chance below 1e-8, even if one user has half
    a million. The first of them is then kept, which favours a row and costs no privacy.
    """
    random_keys = np.frombuffer(secrets.token_bytes(8 * rows.num_rows), dtype=np.uint64)
    drawn_mask = rank_within_users(rows.user_codes, random_keys) < cap
    return ClassifierRows(rows.features[drawn_mask], rows.signs[drawn_mask], rows.user_codes[drawn_mask])


def _compute_squared_sensitivity(mechanism: Mechanism) -> int:
    """Return the squared sensitivity of a step's summed gradient to one user, in squared steps of the grid."""
    return int(get_gradient_sensitivity(mechanism.neighbours)) ** 2 * MAX_USER_NORM**2


def _choose_weight_grid(mechanism: Mechanism, bound: float, num_users: int) -> tuple[int, float]:
    """Return the squared sensitivity of the sum of weights in steps of a grid, and a step in rows.

    If the sum is public, they are 0 and 1.
    """
    sensitivity = account.compute_weight_sensitivity(mechanism.neighbours, bound)
    if not sensitivity:
        return 0, 1.0
    squared_sensitivity = mechanism.steps * _compute_squared_sensitivity(mechanism)
    sensitivity_in_steps = math.isqrt(
        round(squared_sensitivity * WEIGHT_SUM_BUDGET_SHARE / (1.0 - WEIGHT_SUM_BUDGET_SHARE))
    )
    # A user's weight is rounded toward 0, so that two users' differ by one step more than their weights do; one more
    # covers float64, as long as a weight is at most 2^40 steps: with bounds near 1, where a replaced user moves next to
    # nothing, finer steps would be lost in rounding. A coarser step moves by fewer.
    finest_step = bound * 2.0**-40
    if mechanism.neighbours is Neighbours.REPLACE_USER:
        # Nor may all weights together be more steps than OpenDP's sampler takes, 2^53. Their number is public here; for
        # users who come or go it is not, and a weight is at most `root` steps.
        finest_step = max(finest_step, bound * num_users * 2.0**-52)
    return sensitivity_in_steps**2, max(sensitivity / (sensitivity_in_steps - 2), finest_step)


class StoppedError(Exception):
    """A release was stopped, and there is no model.

    Attributes:
        was_drawn: Whether noise may have been drawn by then, so that what it costs is spent.
    """

    def __init__(self, was_drawn: bool) -> None:
        """Set the message, and whether noise may have been drawn."""
        super().__init__("the release was stopped")
        self.was_drawn = was_drawn


def train_once(
    rows: ClassifierRows,
    mechanism: Mechanism,
    cell: Cell,
    charge: Charge | None = None,
    progress: Progress = silent,
    should_stop: ShouldStop = never,
) -> Model:
    """Train one model with (ε, δ), with fresh noise at every call, and return it.

    Args:
        rows: All users that the model learns from.
        mechanism: What is trained and how; its ε and δ are spent.
        cell: The method and its bound h, in rows; chosen without a look at these data, else ε does not cover the
            choice. Followed clipped sums need no choice.
        charge: Told what the release guarantees before anything is drawn.
        progress: Told the share of steps done.
        should_stop: Asked before anything is drawn, and between steps.

    Raises:
        InvalidInput: The settings are none that a release can have; nothing was drawn.
        StoppedError: It was stopped; it says whether noise may have been drawn.

    Source: Epasto et al. 2020, algorithm 2, with noisy gradient descent as its learner; for a cap, Amin et al. 2019,
        algorithm 1; for clipped sums, McMahan, Ramage, Talwar and Zhang 2018.
    """
    mechanism, gaussian_steps, facts = _price_release(rows, mechanism, cell)
    if charge is not None:
        charge(facts)
    release = _Release(rows, mechanism, cell, gaussian_steps, facts, progress, should_stop)
    release.report_progress(0.0, was_drawn=False)
    if cell.method is Method.OUTPUT:
        return release.perturb_minimiser()
    return release.descend_by_rule() if mechanism.pace is Pace.RULE else release.descend_as_entered()


def compute_guarantee(rows: ClassifierRows, mechanism: Mechanism, cell: Cell) -> ReleaseFacts:
    """Return the guarantee that `train_once` would charge; nothing is drawn, and only public sizes matter.

    Raises:
        InvalidInput: The settings are none that a release can have.
    """
    return _price_release(rows, mechanism, cell)[2]


def _price_release(
    rows: ClassifierRows, mechanism: Mechanism, cell: Cell
) -> tuple[Mechanism, GaussianSteps, ReleaseFacts]:
    """Return the mechanism as the method changes it, the noise of the whole release, and its guarantee; draw nothing.

    Raises:
        InvalidInput: The bound is out of range, users are sampled, or the method asks for another loss.
    """
    perturbs_output = cell.method is Method.OUTPUT
    with Problems() as problems:
        problems.between(1e-6, 1e9, bound=cell.bound)
        if mechanism.sampled < 1.0:
            problems.add("a release takes all users in every step")
        if mechanism.user_share < 1.0:
            problems.add("a release is no first look: its noise is that of all users")
        if perturbs_output and not mechanism.loss.has_bounded_slope:
            problems.add("output perturbation needs a loss of bounded slope")
    bound_follows = cell.method is Method.FOLLOWED
    mechanism = replace(mechanism, clip=mechanism.clip * cell.clip)
    mechanism = apply_rule(mechanism) if bound_follows else mechanism
    num_features, num_steps = rows.num_features, mechanism.steps
    if perturbs_output:
        squared_sensitivity = _compute_output_sensitivity(mechanism, num_features) ** 2
        num_ints = num_features
    elif mechanism.pace is Pace.RULE:
        squared_sensitivity = choose_rule_grid(mechanism, bound_follows).squared_total_sensitivity
        num_ints = num_steps * (num_features + bound_follows) + 1
    else:
        squared_weight_sensitivity, _ = _choose_weight_grid(mechanism, cell.bound, rows.num_users)
        squared_sensitivity = num_steps * _compute_squared_sensitivity(mechanism) + squared_weight_sensitivity
        num_ints = num_steps * num_features + 1
    gaussian_steps = account_exactly(squared_sensitivity, num_ints, mechanism.epsilon, mechanism.delta)
    mechanism_name = OUTPUT_MECHANISM if perturbs_output else DESCENT_MECHANISM
    epsilon, delta = gaussian_steps.epsilon, gaussian_steps.delta
    return mechanism, gaussian_steps, ReleaseFacts(epsilon, delta, mechanism.neighbours, mechanism_name)


@dataclass(frozen=True)
class RuleGrid:
    """Squared sensitivities of a release by the rule, and what one user adds to its counts, all in integers.

    Attributes:
        squared_gradient_sensitivity: Squared sensitivity of a step's summed gradient.
        count_unit: What a user within the bound adds to a count, and one beyond takes off; 0 where nobody is counted.
        squared_count_sensitivity: Squared sensitivity of a step's count.
        num_users_unit: What a user adds to the number of users; 0 where that is public.
        squared_total_sensitivity: Squared sensitivity of everything together.
    """

    squared_gradient_sensitivity: int
    count_unit: int
    squared_count_sensitivity: int
    num_users_unit: int
    squared_total_sensitivity: int


def choose_rule_grid(mechanism: Mechanism, bound_follows: bool) -> RuleGrid:
    """Return integer sensitivities of the descent by the rule, whose shares are those of `account.split_budget`.

    They agree to a millionth.
    """
    gradient_share, count_share, num_users_share = account.split_budget(mechanism.neighbours, bound_follows)
    squared_gradient_sensitivity = _compute_squared_sensitivity(mechanism)
    count_unit = math.isqrt(round(MAX_USER_NORM**2 * count_share / gradient_share))
    squared_count_sensitivity = int(get_gradient_sensitivity(mechanism.neighbours)) ** 2 * count_unit**2
    squared_sensitivity_of_all_steps = mechanism.steps * squared_gradient_sensitivity
    num_users_unit = math.isqrt(round(squared_sensitivity_of_all_steps * num_users_share / gradient_share))
    return RuleGrid(
        squared_gradient_sensitivity,
        count_unit,
        squared_count_sensitivity,
        num_users_unit,
        # The total of the rounded integers: it pays for what rounding shifts from one part to another.
        squared_sensitivity_of_all_steps + mechanism.steps * squared_count_sensitivity + num_users_unit**2,
    )


@dataclass(frozen=True)
class _Release:
    """A release whose (ε, δ) is charged already, and its three ways to a model; the noise is drawn in integers."""

    rows: ClassifierRows
    mechanism: Mechanism
    cell: Cell
    gaussian_steps: GaussianSteps
    facts: ReleaseFacts
    progress: Progress
    should_stop: ShouldStop

    def report_progress(self, share_done: float, was_drawn: bool) -> None:
        """Report the share of the work that is done; raise `StoppedError` with ``was_drawn`` if the work is to stop."""
        self.progress(share_done)
        if self.should_stop():
            raise StoppedError(was_drawn)

    def choose_rows(self) -> ClassifierRows:
        """Return the rows to train on: all, or under a cap a new random draw of at most the cap of each user."""
        return draw_rows(self.rows, self.cell.bound) if self.cell.method is Method.CAP else self.rows

    def sum_gradients(self, rows: ClassifierRows, bound: float, theta: FloatArray) -> tuple[IntArray, int]:
        """Sum bounded gradients in steps of ``bound × clip / STEPS_PER_BOUND``, and count the users within the bound.

        The count is 0 for weights and caps, which count nobody.
        """
        if self.cell.method in (Method.FOLLOWED, Method.CLIPPED_SUM):
            user_sums, within_mask = integer_sums.round_user_sums(rows, self.mechanism, bound, theta)
            return user_sums.sum(axis=0), int(within_mask.sum())
        # Under a cap min(h, s) rows are left, so that smooth weights of bound h weigh each of them 1.
        return integer_sums.round_gradients(rows, self.mechanism, bound, theta).sum(axis=0), 0

    def descend_by_rule(self) -> Model:
        """Draw noise and return a model of the descent by the rule, as `simulate_descents` does in one run."""
        rows, mechanism, gaussian_steps = self.choose_rows(), self.mechanism, self.gaussian_steps
        bound_follows = self.cell.method is Method.FOLLOWED
        rule_grid = choose_rule_grid(mechanism, bound_follows)
        std_for_sensitivity_1 = gaussian_steps.scale / math.sqrt(rule_grid.squared_total_sensitivity)
        unit_noise = get_gradient_sensitivity(mechanism.neighbours) * std_for_sensitivity_1
        # The number of users is public, or released with noise.
        num_users = float(rows.num_users)
        if rule_grid.num_users_unit:
            user_unit = rule_grid.num_users_unit
            noisy_user_units = gaussian_steps.release(np.array([user_unit * rows.num_users]), user_unit**2)
            num_users = max(float(noisy_user_units[0]) / user_unit, unit_noise)

        def take_direction(theta: FloatArray, bounds: FloatArray, step_number: int) -> DirectionAndShare:
            """Release the sum of gradients over the bound, and, if the bound follows, the share of users within it."""
            # Before the first step noise was drawn for the number of users only, where that is released.
            self.report_progress(
                (step_number - 1) / mechanism.steps, was_drawn=step_number > 1 or rule_grid.num_users_unit > 0
            )
            gradient_sum, num_within = self.sum_gradients(rows, float(bounds[0]), theta[:, 0])
            noisy_sum = gaussian_steps.release(gradient_sum, rule_grid.squared_gradient_sensitivity)
            direction = np.asarray(noisy_sum / STEPS_PER_BOUND)[:, None]
            if not bound_follows:
                return direction, None
            within_minus_beyond = np.array([rule_grid.count_unit * (2 * num_within - rows.num_users)])
            noisy_within_minus_beyond = gaussian_steps.release(
                within_minus_beyond, rule_grid.squared_count_sensitivity
            )
            # (2 within - n) / (2 n) + 1/2 = within / n, of released numbers.
            return direction, noisy_within_minus_beyond / (2.0 * rule_grid.count_unit * num_users) + 0.5

        direction_noise_std = gaussian_steps.scale / STEPS_PER_BOUND
        rule_plan = account.plan_rule_noise(mechanism, bound_follows)
        rule_plan = replace(rule_plan, unit_noise=unit_noise, direction_noise_std=direction_noise_std)
        first_bounds, num_users_per_run = np.array([self.cell.bound]), np.array([num_users])
        theta_and_bounds = descend_by_rule(
            take_direction, mechanism, rows.num_features, num_users_per_run, first_bounds, rule_plan
        )
        assert theta_and_bounds is not None  # `report_progress` raises where it is stopped.
        mean_theta, last_bounds = theta_and_bounds
        last_noise_std = direction_noise_std * float(last_bounds[0]) * mechanism.clip
        return Model(mean_theta[:, 0], self.facts, self.cell, last_noise_std, float(last_bounds[0]))

    def descend_as_entered(self) -> Model:
        """Draw noise and return a model of the descent with entered steps, as `descent.train_cells` does in one run."""
        rows, mechanism = self.choose_rows(), self.mechanism
        gaussian_steps, bound = self.gaussian_steps, self.cell.bound
        squared_weight_sensitivity, weight_grid_step = _choose_weight_grid(mechanism, bound, rows.num_users)
        # The sum of weights, public or with noise, at least that of one user.
        user_weights = np.minimum(bound, rows.sizes)
        weight_sum = math.fsum(user_weights)
        if squared_weight_sensitivity:
            sum_in_steps = np.trunc(user_weights / weight_grid_step).astype(np.int64).sum(keepdims=True)
            noisy_sum_in_steps = float(gaussian_steps.release(sum_in_steps, squared_weight_sensitivity)[0])
            weight_sum = max(noisy_sum_in_steps * weight_grid_step, bound)
        gradient_grid_step = bound * mechanism.clip / STEPS_PER_BOUND
        squared_gradient_sensitivity = _compute_squared_sensitivity(mechanism)

        def take_gradient(theta: FloatArray, step_number: int) -> FloatArray:
            """Release the sum of bounded gradients, shape of θ; raise `StoppedError` if the work is to stop."""
            self.report_progress(
                (step_number - 1) / mechanism.steps,
                was_drawn=step_number > 1 or squared_weight_sensitivity > 0,
            )
            gradient_sum, _ = self.sum_gradients(rows, bound, theta[:, 0])
            noisy_sum = gaussian_steps.release(gradient_sum, squared_gradient_sensitivity)
            return np.asarray(gradient_grid_step * noisy_sum)[:, None]

        theta = descend_as_entered(take_gradient, mechanism, rows.num_features, np.array([weight_sum]))
        assert theta is not None  # `report_progress` raises where it is stopped.
        return Model(theta[:, 0], self.facts, self.cell, gaussian_steps.scale * gradient_grid_step, bound)

    def perturb_minimiser(self) -> Model:
        """Release the minimiser of the penalised sum of losses, on a grid, with noise once.

        The objective is μ-strongly convex, so that the minimiser lies within |g| / μ of the point whose gradient is
        g. The search ends where that is small enough, on any data, so no failure reveals anything about them. The
        sensitivity has twice the slack in it, and √d for rounding to the nearest step.
        """
        rows, mechanism, bound = self.rows, self.mechanism, self.cell.bound
        unit_noise = account.plan_rule_noise(mechanism, False).unit_noise
        penalty_factor = optimum.choose_penalty(unit_noise, rows.num_features, bound)
        row_weights = account.compute_smooth_weights(rows.sizes, bound)[rows.user_codes]
        gradient_tolerance = _MINIMISER_TOLERANCE * bound
        theta = optimum.fit_to_gradient(
            rows, mechanism.loss, row_weights, penalty_factor, gradient_tolerance, self.should_stop
        )
        self.report_progress(0.9, was_drawn=False)
        grid_step = bound / penalty_factor / _OUTPUT_GRID_STEPS
        theta_in_steps = np.rint(theta / grid_step).astype(np.int64)
        squared_sensitivity = _compute_output_sensitivity(mechanism, rows.num_features) ** 2
        noisy_steps = self.gaussian_steps.release(theta_in_steps, squared_sensitivity)
        noisy_theta = mechanism.project(np.asarray(grid_step * noisy_steps, dtype=np.float64)[:, None])
        return Model(noisy_theta[:, 0], self.facts, self.cell, self.gaussian_steps.scale * grid_step, bound)


_MINIMISER_TOLERANCE = 1e-6
"""Largest distance to the exact minimiser, as a share of how far a user moves it."""
_OUTPUT_GRID_STEPS = 2**28
"""Steps of the grid in how far a user moves the minimiser."""


def _compute_output_sensitivity(mechanism: Mechanism, num_features: int) -> int:
    """Return the sensitivity of the minimiser to one user, in steps of the grid."""
    sensitivity = get_gradient_sensitivity(mechanism.neighbours) * (1.0 + 2.0 * _MINIMISER_TOLERANCE)
    return math.ceil(sensitivity * _OUTPUT_GRID_STEPS + math.sqrt(num_features)) + 1


@dataclass(frozen=True, eq=False)
class ReleaseRecord:
    """A release as it was made, kept so that it is never repeated unasked.

    Attributes:
        question: What it answers: digest of the rows, mechanism, method and bound.
        raw_feature_names: Of the features, shape (num_features,).
        scaling: How features are brought to norm 1 before the model is applied.
        model: What was drawn.
        positive_meaning: What a score above 0 says of a row, as ``kind = cat``.
    """

    question: object
    raw_feature_names: tuple[str, ...]
    scaling: Scaling
    model: Model
    positive_meaning: str

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the features, as a spreadsheet may open them."""
        return [escape_formula(name) for name in self.raw_feature_names]

    @property
    def range_ends(self) -> FloatArray:
        """Return the lowest and the highest value of each feature, NaN without a range, shape (2, num_features)."""
        return np.array([value_range or (np.nan, np.nan) for value_range in self.scaling.feature_ranges]).T


def write_models(records: Sequence[ReleaseRecord]) -> str:
    """Write every released model as CSV, one line per feature.

    Columns: ``draw``, ``feature``, its range, ``norm``, ``theta``, ``positive``, method and bounds, ``label``.

    A feature with a range is clipped to it and mapped to [-1, 1]; then a row longer than ``norm`` is shortened
    to it, and all are divided by it. A score above 0 means the class in ``positive``.
    """
    model_frames = []
    for draw_number, record in enumerate(records, 1):
        columns_by_name = {
            "draw": draw_number,
            "feature": record.feature_names,
            "lowest": record.range_ends[0],
            "highest": record.range_ends[1],
            "norm": record.scaling.norm,
            "theta": record.model.theta,
            "positive": escape_formula(record.positive_meaning),
            "method": record.model.cell.method.value,
            "bound": record.model.cell.reach,
            "last_bound": record.model.last_bound,
            "label": record.model.facts.label,
        }
        model_frames.append(pd.DataFrame(columns_by_name))
    return pd.concat(model_frames).to_csv(index=False, lineterminator="\n")
