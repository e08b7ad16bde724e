"""The settings of a training apart from the bound: one frozen object for core, page and files."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.parameters import Option
from dpcore.common.privacy import Neighbours
from dpcore.training.losses import LossKind

MAX_STEPS = 1000


class Average(Option):
    """The iterates that are averaged into the model; all choices are equally private."""

    ALL = "all", "All iterates"
    LAST_HALF = "last-half", "The last half"
    LAST = "last", "The last alone"

    def first_step(self, steps: int) -> int:
        """Return the number of the first step, from 1, whose iterate is averaged."""
        return {Average.ALL: 1, Average.LAST_HALF: steps // 2 + 1, Average.LAST: steps}[self]


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
        pace: By the rule of `dpcore.training.pace`, which looks at nothing but the number of users, and in place of
            ``steps``, ``step_size``, ``average`` and ``sampled`` (`apply_rule` sets them); or as entered.
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
                    "a share of the users in each step is accounted for users who come or go only",
                    remedy="Take all users in every step, or add or remove a user",
                )

    @property
    def learning_rate(self) -> float:
        """Return η, the factor of a mean gradient."""
        return self.step_size / self.loss.smoothness
