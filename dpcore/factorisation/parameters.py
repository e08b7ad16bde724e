"""The settings of the page *Recommender*: everything but the data."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

import numpy as np

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.text_fields import build_from, parse_checked_numbers, parse_numbers
from dpcore.dataset import Dataset
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.descent import GradientSteps
from dpcore.factorisation.fit import RIDGE_TO_NOISE
from dpcore.factorisation.generator import GeneratedRatings
from dpcore.factorisation.implicit import RIDGE_TO_NOISE as IMPLICIT_RIDGE
from dpcore.factorisation.implicit import ImplicitSettings
from dpcore.factorisation.implicit_study import ImplicitStudy
from dpcore.factorisation.model import LARGEST_RATING, OWN_COORDINATE, FactorSettings, RatingRange
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.study import Study
from dpcore.multitask.budget import DELTA_RANGE, PrivacyTarget

MAX_PAGE_CELLS = 40_000_000
"""Users times items that are drawn while a person waits: about 0.4 s."""
MAX_PAGE_RATINGS = 2_000_000
MAX_EPSILONS = 4
MAX_REPEATS = 20
LARGE = GeneratedRatings(num_users=69_878, num_items=10_677, ratings_per_user=143.1)
"""The size of MovieLens 10M: 10 million ratings."""
CHOICE_SPREAD = 1.5
"""How much taste decides what generated users choose, for implicit feedback: else there is nothing to recommend but
what is popular."""


class RatingSource(enum.Enum):
    """The source of the ratings."""

    DATA = "data"
    GENERATED = "generated"


class Algorithm(enum.Enum):
    """The way in which item vectors are learned from the users'; both are algorithm 3 of Krichene et al. 2023."""

    STATISTICS = "statistics"
    DESCENT = "descent"


@dataclass(frozen=True)
class FactorisationParameters:
    """The question on the page, without the data.

    Attributes:
        epsilon: Privacy budget.
        delta: Of the guarantee, in `dpcore.multitask.budget.DELTA_RANGE`.
        source: The data's pairs, or the generator.
        num_users: Of the generator.
        num_items: Of the generator.
        ratings_per_user: On average, of the generator.
        rank: Planted, of the generator.
        data_seed: Of the generator.
        lowest: Lower end of the public range of the data's ratings; ratings below count as it.
        highest: Upper end of that range; ratings above count as it.
        algorithm: Sums and their solution (DPALS, algorithm 1) or gradient steps (AdaDPSGD, algorithm 2).
        steps: S, gradient steps in a sweep, 1 to 50.
        gradient_bound: Gamma of the gradient steps, in the ratings' unit.
        max_items: k: a user's squared weights sum to at most this.
        exponent: mu of the adaptive weights, in [0, 1].
        count_share: Share of the budget for noisy counts.
        dimension: d of the private models, 2 to 32.
        sweeps: T, 1 to 10.
        user_ridge: lambda of the users.
        ridge_to_noise: What the ridge of the items grows by per unit of noise.
        train_epsilons: Trained besides ``epsilon``, separated by spaces or commas.
        repeats: Seeds of a training.
        train_seed: Of splits and noise.
        item: Whose neighbours are shown, by popularity: 1 for the item with the most ratings.
        chosen_from: Of implicit feedback: ratings of at least this count as chosen.
        unobserved: Of implicit feedback: alpha_0, the weight of a pair that was not chosen.

    Raises:
        InvalidInput: All problems at once.
    """

    epsilon: float
    delta: float = 1e-5
    source: RatingSource = RatingSource.GENERATED
    num_users: int = 6_000
    num_items: int = 3_700
    ratings_per_user: float = 100.0
    rank: int = 6
    data_seed: int = 1
    lowest: float = 0.5
    highest: float = 5.0
    algorithm: Algorithm = Algorithm.STATISTICS
    steps: int = 2
    gradient_bound: float = 1.0
    max_items: int = 100
    exponent: float = 0.25
    count_share: float = 0.12
    dimension: int = 4
    sweeps: int = 2
    user_ridge: float = 10.0
    ridge_to_noise: float = RIDGE_TO_NOISE
    train_epsilons: str = "1, 5, 20"
    repeats: int = 3
    train_seed: int = 1
    item: int = 1
    chosen_from: float = 4.0
    unobserved: float = 0.5

    def __post_init__(self) -> None:
        with Problems() as problems:
            problems.between(*EPSILON_RANGE, epsilon=self.epsilon)
            problems.between(*DELTA_RANGE, delta=self.delta)
            self._check_generator(problems)
            problems.ascending(**{"the lowest rating": self.lowest, "the highest": self.highest})
            problems.whole(1, 10**6, max_items=self.max_items, item=self.item)
            problems.between(0.0, 1.0, exponent=self.exponent)
            problems.between(0.001, 0.9, count_share=self.count_share)
            problems.whole(2, 32, dimension=self.dimension)
            problems.whole(1, 10, sweeps=self.sweeps)
            problems.whole(1, 50, steps=self.steps)
            problems.between(1e-6, 1e9, gradient_bound=self.gradient_bound)
            problems.between(1e-3, 1e6, user_ridge=self.user_ridge)
            problems.between(0.0, 1e6, ridge_to_noise=self.ridge_to_noise)
            problems.whole(1, MAX_REPEATS, repeats=self.repeats)
            problems.whole(0, 2**32 - 1, data_seed=self.data_seed, train_seed=self.train_seed)
            problems.between(-LARGEST_RATING, LARGEST_RATING, chosen_from=self.chosen_from)
            problems.between(1e-3, 100.0, unobserved=self.unobserved)
            self._check_epsilons(problems)

    def _check_generator(self, problems: Problems) -> None:
        sizes = problems.whole(100, 10**6, num_users=self.num_users)
        sizes &= problems.whole(10, 10**5, num_items=self.num_items)
        problems.whole(1, 50, rank=self.rank)
        if not sizes:
            return
        if self.num_users * self.num_items > MAX_PAGE_CELLS:
            problems.add(f"users times items must be at most {MAX_PAGE_CELLS:,}")
        fits = problems.between(1.0, self.num_items / 2.0, ratings_per_user=self.ratings_per_user)
        if fits and self.num_users * self.ratings_per_user > MAX_PAGE_RATINGS:
            problems.add(f"users times ratings per user must be at most {MAX_PAGE_RATINGS:,}")

    def _check_epsilons(self, problems: Problems) -> None:
        for epsilon in parse_checked_numbers(
            problems, "epsilons to train at", self.train_epsilons, MAX_EPSILONS
        ):
            problems.between(*EPSILON_RANGE, **{"each epsilon to train at": epsilon})

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return the epsilons that a training runs: those that were entered, and that of the page, ascending."""
        return tuple(sorted({*parse_numbers(self.train_epsilons), self.epsilon}))

    @property
    def generator(self) -> GeneratedRatings | None:
        """Return the generator of the ratings; None if the data have ratings."""
        return None if self.source is RatingSource.DATA else self.population

    @property
    def population(self) -> GeneratedRatings:
        """Return users like those of the generator, whatever the source is."""
        return GeneratedRatings(
            num_users=self.num_users,
            num_items=self.num_items,
            ratings_per_user=self.ratings_per_user,
            rank=self.rank,
        )

    @property
    def limits(self) -> RatingRange:
        """Return the public range of the ratings."""
        if (generator := self.generator) is not None:
            return RatingRange(generator.lowest, generator.highest)
        return RatingRange(self.lowest, self.highest)

    @property
    def target(self) -> PrivacyTarget:
        """Return the guarantee that every user gets."""
        return PrivacyTarget(self.epsilon, self.delta)

    @property
    def gradient_steps(self) -> GradientSteps | None:
        """Return the gradient steps of the algorithm that takes them; None for the other."""
        if self.algorithm is Algorithm.STATISTICS:
            return None
        return GradientSteps(self.steps, self.gradient_bound)

    @property
    def spending(self) -> Spending:
        """Divide the budget at the page's epsilon."""
        return self.study.spending(self.epsilon)

    @property
    def study(self) -> Study:
        """Return the study that *Train* runs."""
        settings = FactorSettings(self.dimension, self.sweeps, self.user_ridge, own_coordinate=OWN_COORDINATE)
        return build_from(Study, self, settings=settings, steps=self.gradient_steps, seed=self.train_seed)

    @property
    def implicit_study(self) -> ImplicitStudy:
        """Return the study that *Train on choices* runs; its other settings are those of `ImplicitSettings`."""
        return build_from(
            ImplicitStudy,
            self,
            settings=ImplicitSettings(unobserved=self.unobserved),
            ridge_to_noise=IMPLICIT_RIDGE,
            seed=self.train_seed,
        )

    @property
    def large_study(self) -> Study:
        """Return a study at the size of MovieLens 10M: one epsilon, one seed, no recall."""
        study = replace(self.study, epsilons=(self.epsilon,), repeats=1, with_recall=False)
        return replace(study, limits=RatingRange(LARGE.lowest, LARGE.highest))


def load_ratings(parameters: FactorisationParameters, dataset: Dataset | None = None) -> Ratings | None:
    """Load the table that the parameters name; None if the data should have ratings and have none."""
    generator = parameters.generator
    if generator is not None:
        return generator.draw(np.random.default_rng(parameters.data_seed))
    return None if dataset is None or dataset.pairs is None else Ratings.from_pairs(dataset.pairs)
