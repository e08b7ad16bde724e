"""The settings of a training apart from the bound: its loss, and its steps by a private rule.

The rule for steps and step size looks at no private data but the number of users, which is paid for. All T steps
together are one Gaussian (`account`), so that their number costs nothing: noise of a step is √T times that of one
release. The distance that the descent travels is what costs. With every step divided by the bound h, the noise of one
step has standard deviation κ √T on each coordinate. Momentum m carries it on by 1 / (1 - m) steps. Where the loss is
flat, T steps of length η leave noise of norm η κ √d T / (1 - m) on θ. The rule travels until this norm is
`MAX_NOISE_NORM`, and no faster than is stable on the sum of all users' losses. Many users are so given all the way to
the minimum, few are stopped early.

That length is right where the minimum is near. Where it is far, noisy gradients still point one way after a third of
all steps. Their fading mean is then longer than under noise alone, and steps grow, up to `MAX_STEP_GROWTH` times, while
this lasts. Gradients are released anyway, with noise of a size that is public, so that this costs no privacy.

The model is a mean of all iterates with weights that rise with their number. It forgets earlier iterates while noisy
gradients point one way. Near the minimum, noise has a third less variance in it than in the mean of the last half.
Where the descent is still under way, it lies nearer to the end. It costs no privacy, either.

The constants were chosen on generated data and samples, on no data of the person who trains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.parameters import Option
from dpcore.common.privacy import Neighbours
from dpcore.contributions import FloatArray

HINGE_WIDTH = 0.5
"""γ: the smoothed hinge is a parabola between margins 1 - γ and 1."""


class LossKind(Option):
    """The loss of one row; all are convex, and smooth in the margin."""

    LOGISTIC = "logistic", "Logistic"
    SQUARED = "squared", "Squared"
    HINGE = "smoothed-hinge", "Smoothed hinge"

    @property
    def smoothness(self) -> float:
        """Return the largest second derivative of the loss by the margin; with |x| <= 1 it bounds that by θ, too."""
        if self is LossKind.LOGISTIC:
            return 0.25
        return 1.0 if self is LossKind.SQUARED else 1.0 / HINGE_WIDTH

    @property
    def has_bounded_slope(self) -> bool:
        """Return True if a row with |x| <= 1 has a gradient of norm at most 1 for all θ."""
        return self is not LossKind.SQUARED

    def evaluate(self, margins: FloatArray) -> FloatArray:
        """Compute the loss at each margin.

        Logistic: log(1 + e^-m), the cross entropy. Squared: (1 - m)² / 2, which is (y - θ·x)² / 2. Smoothed
        hinge: 0 from m = 1 on, 1 - m - γ/2 up to 1 - γ, and (1 - m)² / (2 γ) between.

        Source: Epasto et al. 2020, appendix E.2, for the logistic one; Shalev-Shwartz, Zhang 2013, equation 4,
        for the smoothed hinge.
        """
        if self is LossKind.LOGISTIC:
            return np.asarray(np.logaddexp(0.0, -margins))
        shortfalls = 1.0 - margins
        if self is LossKind.SQUARED:
            return 0.5 * shortfalls * shortfalls
        clipped_shortfalls = np.clip(shortfalls, 0.0, HINGE_WIDTH)
        linear_losses = np.maximum(shortfalls - HINGE_WIDTH, 0.0)
        return clipped_shortfalls * clipped_shortfalls / (2.0 * HINGE_WIDTH) + linear_losses

    def differentiate(self, margins: FloatArray) -> FloatArray:
        """Compute the derivative by the margin; the gradient by θ is this times y x."""
        if self is LossKind.LOGISTIC:
            # NumPy's exp uses a processor's vector instructions: a third of the time of SciPy's `expit`, and as exact.
            # For a margin above 709, e^m is infinite, and the slope 0.
            with np.errstate(over="ignore"):
                return np.asarray(-1.0 / (1.0 + np.exp(margins)))
        if self is LossKind.SQUARED:
            return margins - 1.0
        return np.clip((margins - 1.0) / HINGE_WIDTH, -1.0, 0.0)

    def differentiate_twice(self, margins: FloatArray) -> FloatArray:
        """Compute the second derivative by the margin; at the smoothed hinge's kinks, that from inside."""
        if self is LossKind.LOGISTIC:
            first_derivatives = self.differentiate(margins)
            # The slope is -p, p = 1 / (1 + e^m), and the curvature p (1 - p).
            return np.asarray(-first_derivatives * (1.0 + first_derivatives))
        if self is LossKind.SQUARED:
            return np.ones_like(margins)
        return np.where((margins > 1.0 - HINGE_WIDTH) & (margins < 1.0), 1.0 / HINGE_WIDTH, 0.0)


MAX_STEPS = 1000


class Average(Option):
    """The iterates that are averaged into the model; all choices are equally private."""

    ALL = "all", "All iterates"
    LAST_HALF = "last-half", "The last half"
    LAST = "last", "The last alone"

    def find_first_step(self, num_steps: int) -> int:
        """Return the number of the first step, from 1, whose iterate is averaged."""
        return {Average.ALL: 1, Average.LAST_HALF: num_steps // 2 + 1, Average.LAST: num_steps}[self]


class Pace(Option):
    """The source of the number of steps and the step size of a descent."""

    RULE = "rule", "By a rule that looks at no data"
    ENTERED = "entered", "As entered"


@dataclass(frozen=True)
class Mechanism:
    """Full-batch gradient descent with Gaussian noise, projected onto a ball.

    Attributes:
        epsilon: Of the whole training.
        delta: Likewise, strictly between 0 and 1.
        neighbours: Which data sets are neighbours; it also says whether counts are public.
        loss: Of a row.
        steps: T, 1 to `MAX_STEPS`.
        step_size: In units of 1 / (smoothness of the loss), above 0 and below 2, beyond which descent may diverge.
        average: Which iterates make the model.
        radius: Of the ball around 0 that θ is kept in, above 0.
        clip: Norm to which a row's gradient is clipped, above 0.
        sampled: Probability with which each user takes part in a step, by a draw of its own; 1 for everybody in every
            step. Below 1 only where neighbours add or remove a user: amplification by sampling is about that.
        pace: By the rule of `dpcore.training.mechanism`, which looks at nothing but the number of users, and in place
            of ``steps``, ``step_size``, ``average`` and ``sampled`` (`apply_rule` sets them); or as entered.
        user_share: Share of the users that it is simulated on, for a first look: with noise of that share, a mean
            gradient has the noise that it has with all users. 1 for every release.

    Raises:
        InvalidInput: A field is out of its range; all at once.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE_USER
    loss: LossKind = LossKind.LOGISTIC
    steps: int = 60
    step_size: float = 1.5
    average: Average = Average.LAST_HALF
    radius: float = 20.0
    clip: float = 1.0
    sampled: float = 1.0
    pace: Pace = Pace.ENTERED
    user_share: float = 1.0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` with every field that is out of its range or does not suit the relation."""
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.inside(0.0, 1.0, delta=self.delta)
            problems.whole(1, MAX_STEPS, steps=self.steps)
            if problems.positive(step_size=self.step_size) and self.step_size >= 2.0:
                problems.add(f"step_size must be below 2, where descent may diverge; got {self.step_size!r}")
            problems.between(1e-3, 1e6, radius=self.radius)
            problems.between(1e-6, 1e6, clip=self.clip)
            problems.between(1e-6, 1.0, look=self.user_share)
            if problems.between(1e-3, 1.0, **{"the share of users in a step": self.sampled}) and (
                self.sampled < 1.0 and self.neighbours is not Neighbours.ADD_OR_REMOVE_USER
            ):
                problems.add(
                    "a share of the users in each step needs neighbours that add or remove a user",
                    remedy="Take all users in every step, or add or remove a user",
                )

    @property
    def learning_rate(self) -> float:
        """Return η, the factor of a mean gradient: the step size over the smoothness of the loss."""
        return self.step_size / self.loss.smoothness

    def project(self, theta: FloatArray) -> FloatArray:
        """Scale the models whose norm exceeds the radius down to it, shape (d, runs); others stay as they are.

        For noisy models this costs no privacy.
        """
        return np.asarray(theta / np.maximum(np.sqrt(np.einsum("kr,kr->r", theta, theta)) / self.radius, 1.0))


RULE_STEPS = 200
MOMENTUM = 0.9
MAX_NOISE_NORM = 5.0
"""Largest norm of the noise on θ where the loss is flat; the ball has a radius of 20."""
STABLE_STEP_SHARE = 0.75
"""Longest step, in 1 / (smoothness × number of users)."""
FADING_FACTOR = 0.95
"""Weight of the previous steps in the fading mean of noisy gradients."""
SHARE_BEFORE_GROWTH = 0.35
"""Share of the steps before they may grow: until then gradients point one way on all data."""
AGREEMENT_TO_GROW = 3.5
"""Least squared length of that mean, in its average under noise. At 2.5 steps also grew where the descent was about to
settle: with one row per user at ε = 1, the excess rose by a third."""
STEP_GROWTH, MAX_STEP_GROWTH = 1.05, 3.0
"""Factor by which steps grow, or shrink again, at a time; and at most."""
AGREEMENT_TO_FORGET = 2.0
"""As `AGREEMENT_TO_GROW`, for the mean of the iterates to forget by `FADING_FACTOR` in a step."""


def apply_rule(mechanism: Mechanism) -> Mechanism:
    """Return the training with `RULE_STEPS` steps of the default size, all users in each, and the pace of the rule."""
    return replace(
        mechanism,
        steps=RULE_STEPS,
        step_size=Mechanism.step_size,
        average=Average.LAST_HALF,
        sampled=1.0,
        pace=Pace.RULE,
    )


def choose_step_length(
    unit_noise: float,
    num_features: int,
    num_users_per_run: FloatArray,
    mechanism: Mechanism,
    stable_step_share: FloatArray | float = 1.0,
    step_factors: FloatArray | float = 1.0,
) -> FloatArray:
    """Compute η, what the summed gradient over the bound is multiplied with, for each run, shape (runs,).

    Args:
        unit_noise: κ, noise of one release of the whole budget of a vector that a user moves by 1 (or comes or goes
            with 1).
        num_features: d.
        num_users_per_run: n in each run, public or as released, shape (runs,).
        mechanism: Its loss and steps.
        stable_step_share: Of the longest stable step: below 1 where a fixed bound below a row makes gradients over it
            steeper.
        step_factors: What the travel is multiplied with, by `grow_steps`.
    """
    travel_noise_norm = unit_noise * np.sqrt(num_features) * mechanism.steps
    noise_limited_length = (1.0 - MOMENTUM) * MAX_NOISE_NORM / travel_noise_norm
    stable_lengths = STABLE_STEP_SHARE * stable_step_share / (mechanism.loss.smoothness * num_users_per_run)
    return np.asarray(np.minimum(step_factors * noise_limited_length, stable_lengths))


def fade_mean(fading_mean: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the fading mean of noisy gradients over the bound, with the gradient of one step more."""
    return FADING_FACTOR * fading_mean + (1.0 - FADING_FACTOR) * direction


def compute_faded_variance(noise_std: float) -> float:
    """Return the variance of a coordinate of `fade_mean` after many steps of pure noise."""
    # (1 - f)² times the sum of f^(2k) over the steps before.
    return noise_std**2 * (1.0 - FADING_FACTOR) / (1.0 + FADING_FACTOR)


def measure_agreement(fading_mean: FloatArray, noise_std: float, step_number: int) -> FloatArray:
    """Measure how many times as long, squared, the fading mean is as under noise alone, shape (runs,).

    Args:
        fading_mean: `fade_mean`, with the gradient of this step in it, shape (d, runs).
        noise_std: Standard deviation of the noise on each coordinate of a gradient over the bound.
        step_number: Number of this step, from 1.
    """
    squared_norms = np.einsum("kr,kr->r", fading_mean, fading_mean)
    # The mean began at 0: after few steps it holds less noise.
    steady_noise_share = 1.0 - FADING_FACTOR ** (2 * step_number)
    return np.asarray(
        squared_norms / (len(fading_mean) * compute_faded_variance(noise_std) * steady_noise_share)
    )


def grow_steps(
    step_factors: FloatArray, agreements: FloatArray, step_number: int, num_steps: int
) -> FloatArray:
    """Return the factors by which the next steps are longer than the rule's, shape (runs,).

    They stay for the first `SHARE_BEFORE_GROWTH` of the steps; then each grows where gradients point one way, up to
    `MAX_STEP_GROWTH`, and else shrinks, down to 1.

    Args:
        step_factors: How many times as long they were until now.
        agreements: `measure_agreement` at this step.
        step_number: Its number, from 1.
        num_steps: T.
    """
    if step_number <= SHARE_BEFORE_GROWTH * num_steps:
        return step_factors
    return np.where(
        agreements > AGREEMENT_TO_GROW,
        np.minimum(step_factors * STEP_GROWTH, MAX_STEP_GROWTH),
        np.maximum(step_factors / STEP_GROWTH, 1.0),
    )


def average_iterate(
    mean_theta: FloatArray,
    total_weights: FloatArray,
    theta: FloatArray,
    agreements: FloatArray,
    step_number: int,
) -> tuple[FloatArray, FloatArray]:
    """Add the iterate of one step to the weighted mean of the iterates; return the mean and the sum of weights.

    Args:
        mean_theta: Until now, shape (d, runs).
        total_weights: Likewise, shape (runs,); 0 before the first step.
        theta: Iterate of this step, shape of ``mean_theta``.
        agreements: `measure_agreement` at this step.
        step_number: Its number, from 1.
    """
    new_total_weights = (
        total_weights * np.where(agreements > AGREEMENT_TO_FORGET, FADING_FACTOR, 1.0) + step_number
    )
    return mean_theta + step_number / new_total_weights * (theta - mean_theta), new_total_weights
