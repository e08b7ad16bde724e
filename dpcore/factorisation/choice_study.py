"""Studies of choices, without ratings: recall of all models for users who are held out whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpcore.common.checks import Problems, refuse
from dpcore.contributions import FloatArray
from dpcore.factorisation import implicit
from dpcore.factorisation.fit import OnSweep
from dpcore.factorisation.implicit import ImplicitSettings, PopularityModel
from dpcore.factorisation.measures import BUCKETS, Buckets, compute_recall
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.study import SCHEMES, Fitted, ModelKind, Split, Study

CHOICE_KINDS = (ModelKind.POPULAR, ModelKind.NO_PRIVACY, ModelKind.PRIVATE_POPULAR, *SCHEMES)
TEST_SHARE = 0.2
"""Of what a test user chose, this is to be recalled; the rest is known. Source: Liang et al. 2018, as in the paper."""


@dataclass(frozen=True)
class ChoiceStudy(Study):
    """The models, settings and splits of a study of choices.

    Attributes:
        test_users: Probability with which a user is held out of training; of more than `measures.RECALL_USERS` the
            first are tested.

    Source: Krichene et al. 2023, section 5 and figures 2, 4, 7, 9 and 10; the baseline of what is popular is ours.
    """

    settings: ImplicitSettings = field(default_factory=ImplicitSettings)
    reference: ImplicitSettings = field(
        default_factory=lambda: ImplicitSettings(dimension=12, sweeps=8, unobserved=0.1)
    )
    max_items: int = 50
    ridge_to_noise: float = implicit.RIDGE_TO_NOISE
    models: tuple[ModelKind, ...] = CHOICE_KINDS
    test_users: float = 0.1
    main_measure: ClassVar[str] = "recall"
    baseline: ClassVar[ModelKind] = ModelKind.PRIVATE_POPULAR

    def check(self, problems: Problems) -> None:
        """Check the share of users that is held out, and that counts are paid for."""
        problems.between(0.001, 0.99, count_share=self.count_share)
        problems.between(0.001, 0.9, test_users=self.test_users)

    def count_releases(self) -> tuple[int, int]:
        """Count sums and vectors of the items, and one Gram matrix."""
        return 2, 1

    def split(self, table: Ratings, rng: np.random.Generator) -> Split:
        """Hold out users, and of each of them a fifth of what they chose.

        Raises:
            InvalidInput: Nothing is left on one side.

        Source: Liang et al. 2018, which Krichene et al. 2023 follow for recall (section 5).
        """
        is_test_user = rng.random(table.num_users, dtype=np.float32) < self.test_users
        is_test_choice = np.repeat(is_test_user, np.diff(table.starts))
        is_to_recall = rng.random(table.num_ratings, dtype=np.float32) < TEST_SHARE
        masks = (~is_test_choice, is_test_choice & ~is_to_recall, is_test_choice & is_to_recall)
        if not all(mask.any() for mask in masks):
            remedy = "Bring more users, or hold out more of them"
            raise refuse("nothing is left to train on or to test", remedy=remedy)
        return Split(*(table.select(mask) for mask in masks))

    def fit(
        self, model: ModelKind, train: Ratings, epsilon: float, seed: int, fitted: Fitted, on_sweep: OnSweep
    ) -> Any:
        """Fit one model."""
        match model:
            case ModelKind.POPULAR:
                return PopularityModel(train.item_counts)
            case ModelKind.NO_PRIVACY:
                return implicit.fit(train, self.reference, on_sweep)
            case ModelKind.PRIVATE_POPULAR:
                return PopularityModel(implicit.release_popularity(train, self.spending(epsilon), seed))
        spending = self.spending(epsilon)
        return implicit.fit_private(
            train, self.settings, SCHEMES[model], spending, self.exponent, self.ridge_to_noise, seed, on_sweep
        )

    def measure(self, model: Any, split: Split, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
        """Measure recall."""
        users = model.solve_user_vectors(split.history)
        recalls = compute_recall(users, model.item_vectors, split.history, split.test, buckets)
        return np.full(1 + BUCKETS, np.nan), recalls
