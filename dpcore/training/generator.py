"""Generated rows of a logistic model whose best θ is known, owned by users with a heavy tail of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.common import wording
from dpcore.common.checks import Problems, refuse
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset, LabelledRows
from dpcore.training.rows import Scaling

MAX_GENERATED_ROWS = 200_000
MAX_GENERATED_USERS = 50_000
MAX_INFORMATIVE_FEATURES = 20


@dataclass(frozen=True, eq=False)
class GeneratedTable:
    """A generated table with its true coefficients.

    Attributes:
        dataset: With the facet `table`; its first feature is the intercept.
        scaling: Public ranges of its features.
        theta: θ* of the scaled features, shape (num_features,): without user effects the logistic loss of the
            population is least there.
    """

    dataset: Dataset
    scaling: Scaling
    theta: FloatArray


@dataclass(frozen=True)
class TrainingGenerator:
    """The population from which rows are generated.

    Users' sizes follow a discrete Pareto law: P(s > k) = (k + 1)^-α, cut at ``max_rows``. Features are uniform
    on [-1, 1], beside an intercept. A label is 1 with probability 1 / (1 + e^-(θ*·x + u)), with x scaled to
    norm at most 1, all informative entries of θ* of the same size ``signal`` with alternating signs, and u a
    user's own effect, normal of standard deviation ``user_effect``, times the square root of the user's size
    over the median size.

    Attributes:
        num_users: m, 10 to `MAX_GENERATED_USERS`.
        exponent: α, 0.5 to 5; smaller is more uneven.
        max_rows: Of one user, 1 to 10,000.
        informative: Features that labels depend on, 1 to `MAX_INFORMATIVE_FEATURES`.
        signal: Size of each entry of θ*, 0 to 100.
        user_effect: 0 to 10; above 0, heavy users differ from light ones.
        seed: At least 0.

    Raises:
        InvalidInput: A field is out of its range; all at once.
    """

    num_users: int = 600
    exponent: float = 1.1
    max_rows: int = 60
    informative: int = 6
    signal: float = 5.0
    user_effect: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.whole(10, MAX_GENERATED_USERS, num_users=self.num_users)
            problems.between(0.5, 5.0, exponent=self.exponent)
            problems.whole(1, 10_000, max_rows=self.max_rows)
            problems.whole(1, MAX_INFORMATIVE_FEATURES, informative=self.informative)
            problems.between(0.0, 100.0, signal=self.signal)
            problems.between(0.0, 10.0, user_effect=self.user_effect)
            problems.whole(0, 2**31, seed=self.seed)

    def generate(self) -> GeneratedTable:
        """Generate the table, its public ranges, and θ*.

        Raises:
            InvalidInput: The draw has more than `MAX_GENERATED_ROWS` rows.
        """
        rng = np.random.default_rng([self.seed, 20])
        pareto_draws = np.floor(rng.random(self.num_users) ** (-1.0 / self.exponent))
        sizes = np.minimum(np.maximum(pareto_draws, 1.0), self.max_rows).astype(np.int64)
        num_rows = int(sizes.sum())
        if num_rows > MAX_GENERATED_ROWS:
            raise refuse(
                f"these users have {num_rows:,} rows; at most {MAX_GENERATED_ROWS:,} are generated",
                remedy="Take fewer users, fewer rows of one user, or a larger exponent",
            )
        users = rng.permutation(np.repeat(np.arange(self.num_users), sizes))
        features = np.column_stack((np.ones(num_rows), rng.uniform(-1.0, 1.0, (num_rows, self.informative))))
        scaling = Scaling((None, *((-1.0, 1.0),) * self.informative), float(np.sqrt(1 + self.informative)))
        signs = np.where(np.arange(self.informative) % 2, -1.0, 1.0)
        theta = self.signal * np.concatenate(([0.5], signs))
        effects = self.user_effect * rng.standard_normal(self.num_users)
        effects *= np.sqrt(sizes / np.median(sizes))
        score = scaling.apply(features) @ theta + effects[users]
        labels = (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-score))).astype(np.float64)
        names = ("intercept", *(f"x{feature_index + 1}" for feature_index in range(self.informative)))
        source_text = (
            f"Generated: {wording.counted(self.num_users, 'user')} with a Pareto law of rows (exponent "
            f"{wording.entered(self.exponent)}, at most {self.max_rows:,}), a logistic model with "
            f"{wording.counted(self.informative, 'feature')} and an intercept, user effects of "
            f"{wording.entered(self.user_effect)}, seed {self.seed}."
        )
        dataset = Dataset(
            name=f"Generated, {num_rows:,} rows",
            source=source_text,
            disclosure=Disclosure.PUBLIC,
            histogram=ContributionHistogram.from_counts(sizes),
            table=LabelledRows(features, labels, users, names, "y"),
        )
        return GeneratedTable(dataset, scaling, theta)
