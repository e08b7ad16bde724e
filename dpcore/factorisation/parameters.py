"""The settings of the page *Recommender*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.parameters import LINE, TAB, Option, Parameters, of_data, public, range_end
from dpcore.common.text_fields import build_from, parse_checked_numbers, parse_numbers
from dpcore.factorisation import implicit
from dpcore.factorisation.allocation import Spending
from dpcore.factorisation.fit import RIDGE_TO_NOISE, GradientSteps
from dpcore.factorisation.model import LARGEST_RATING, OWN_COORDINATE, FactorSettings, RatingRange
from dpcore.factorisation.ratings import GeneratedRatings
from dpcore.factorisation.studies import ChoiceStudy, RatingStudy
from dpcore.multitask.problem import DELTA_RANGE

MAX_PAGE_CELLS = 40_000_000
"""Users times items: they are drawn in about 0.4 s."""
MAX_PAGE_RATINGS = 2_000_000
MAX_EPSILONS = 4
RATING_LIMITS = (-LARGEST_RATING, LARGEST_RATING)
MAX_REPEATS = 20
CHOICE_SPREAD = 1.5
"""For implicit feedback: with 0 taste decides nothing."""


class RatingSource(Option):
    """Whether the ratings are those of the data in use or generated."""

    DATA = "data", "Your data"
    GENERATED = "generated", "Generated"


class Algorithm(Option):
    """How item vectors are learned from the users'; both are algorithm 3 of Krichene et al. 2023."""

    STATISTICS = "statistics", "Least squares"
    DESCENT = "descent", "Gradient steps"


GENERATED, OF_DATA = ("source", (RatingSource.GENERATED,)), ("source", (RatingSource.DATA,))
IF_DESCENT = ("algorithm", (Algorithm.DESCENT,))


@dataclass(frozen=True)
class FactorisationParameters(Parameters):
    """The settings of *Recommender*, as entered, without the data."""

    delta: float = public.number(1e-5, "δ", DELTA_RANGE, name="δ")
    """The probability with which ε may fail, well below 1 / (number of users)."""
    source: RatingSource = public.choice(RatingSource.GENERATED, "Ratings")
    """Data need items and ratings (*Data*)."""
    # Whoever generates ratings may make them like the data.
    num_users: int = of_data.number(
        6_000, "Users", (100, 10**6), name="the number of users", only_with=GENERATED, step=1000
    )
    """By default about as many as in MovieLens 1M."""
    num_items: int = of_data.number(
        3_700, "Items", (10, 10**5), name="the number of items", only_with=GENERATED, step=100
    )
    """Their popularity falls as a power of their rank."""
    ratings_per_user: float = of_data.number(
        100.0, "Ratings per user", name="the number of ratings per user", only_with=GENERATED
    )
    """On average."""
    rank: int = public.number(6, "Planted rank", (1, 50), only_with=GENERATED)
    """The number of ways in which tastes differ."""
    data_seed: int = public.number(1, "Seed of the ratings", (0, 2**32 - 1), only_with=GENERATED)
    """The seed of the generator."""
    lowest: float = range_end(0.5, "Lowest rating", "the lowest rating", width=180, only_with=OF_DATA)
    """Public, by design. Lower ratings are raised to it."""
    highest: float = range_end(5.0, "Highest rating", "the highest rating", width=180, only_with=OF_DATA)
    """Public, by design. Higher ratings are lowered to it."""
    algorithm: Algorithm = public.choice(Algorithm.STATISTICS, "Algorithm")
    """Least squares from noisy sums (DPALS), or noisy steps with clipped gradients (DPSGD)."""
    steps: int = public.number(
        2, "Steps per sweep", (1, 50), name="the number of steps", only_with=IF_DESCENT
    )
    """Each costs budget."""
    gradient_bound: float = of_data.number(1.0, "Gradient bound Γ", (1e-6, 1e9), only_with=IF_DESCENT)
    """The largest residual, in the ratings' unit, whose gradient is not clipped."""
    max_items: int = of_data.number(
        100, "Items per user, k", (1, 10**6), name="items per user", step=10, width=150, place=LINE
    )
    """A user's squared weights sum to at most k."""
    exponent: float = of_data.number(
        0.25, "Weight exponent μ", (0.0, 1.0), slider=(0.0, 1.0, 0.05), format="%.3g", width=180, place=LINE
    )
    """An item with noisy count n weighs n^−μ. The paper takes 1/4 to 1/2."""
    count_share: float = public.number(0.12, "Share of the budget for counts", (0.001, 0.9))
    """Tail and adaptive weights need noisy counts. The paper spends 12 % to 20 %."""
    dimension: int = public.number(4, "Dimension d", (2, 32))
    """Coordinates of an item vector; the first is its level."""
    sweeps: int = public.number(2, "Sweeps T", (1, 10), name="the number of sweeps")
    """How often item vectors are learned. Each costs budget."""
    user_ridge: float = of_data.number(10.0, "Ridge of users", (1e-3, 1e6))
    """λ of the users' vectors, which never leave them."""
    ridge_to_noise: float = of_data.number(RIDGE_TO_NOISE, "Ridge of items per noise", (0.0, 1e6))
    """λ of the items is 5 plus this times the noise s."""
    train_epsilons: str = public.text("1, 5, 20", "Also train at ε", max_length=120, place=TAB)
    """One to four numbers, besides the ε of the page."""
    repeats: int = public.number(3, "Seeds", (1, MAX_REPEATS), name="the number of seeds", place=TAB)
    """Splits and noises. A clear answer needs three."""
    train_seed: int = public.number(1, "Seed of the training", (0, 2**32 - 1), place=TAB)
    """The seed of splits and noise."""
    item: int = of_data.number(1, "Item, by popularity", (1, 10**6), name="the item", width=180, place=TAB)
    """1 has the most ratings."""
    chosen_from: float = of_data.number(
        4.0, "Chosen from a rating of", RATING_LIMITS, name="what counts as chosen", width=180, place=TAB
    )
    """Lower ratings are no choices. The paper takes 4 of 5."""
    unobserved: float = public.number(
        0.5, "Weight of what was not chosen, α₀", (1e-3, 100.0), width=250, place=TAB
    )
    """Against 1 for what was chosen."""

    def _check_together(self, problems: Problems) -> None:
        """Add problems of the range of the data's ratings or the size of generated ones, and of the epsilons."""
        if self.source is RatingSource.DATA:
            problems.ascending(**{"the lowest rating": self.lowest, "the highest": self.highest})
        elif not problems.entries:
            if self.num_users * self.num_items > MAX_PAGE_CELLS:
                problems.add(f"users times items must be at most {MAX_PAGE_CELLS:,}")
            mean_by_name = {"the number of ratings per user": self.ratings_per_user}
            num_ratings = self.num_users * self.ratings_per_user
            if problems.between(1.0, self.num_items / 2.0, **mean_by_name) and num_ratings > MAX_PAGE_RATINGS:
                problems.add(f"users times ratings per user must be at most {MAX_PAGE_RATINGS:,}")
        epsilons = parse_checked_numbers(problems, "epsilons to train at", self.train_epsilons, MAX_EPSILONS)
        for epsilon in epsilons:
            problems.between(*EPSILON_RANGE, **{"each epsilon to train at": epsilon})

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return the epsilons that a training runs: those that were entered, and that of the page, ascending."""
        return tuple(sorted({*parse_numbers(self.train_epsilons), self.epsilon}))

    @property
    def ratings_parameters(self) -> FactorisationParameters:
        """Return parameters at ε = 1 with only those settings that the ratings depend on; the others have defaults."""
        field_names = ("source", "num_users", "num_items", "ratings_per_user", "rank", "data_seed")
        return FactorisationParameters(
            1.0, **{field_name: getattr(self, field_name) for field_name in field_names}
        )

    @property
    def generator(self) -> GeneratedRatings | None:
        """Return the generator of the ratings; None if the data have ratings."""
        return None if self.source is RatingSource.DATA else self.population

    @property
    def population(self) -> GeneratedRatings:
        """Return the generator of made-up ratings with the entered settings, also if the ratings come from data."""
        return GeneratedRatings(self.num_users, self.num_items, self.ratings_per_user, rank=self.rank)

    @property
    def rating_range(self) -> RatingRange:
        """Return the public range of the ratings: that of the generator, or the one entered for the data's ratings."""
        if (generator := self.generator) is not None:
            return RatingRange(generator.lowest, generator.highest)
        return RatingRange(self.lowest, self.highest)

    @property
    def gradient_steps(self) -> GradientSteps | None:
        """Return the gradient steps of the algorithm that takes them; None for the other."""
        if self.algorithm is Algorithm.STATISTICS:
            return None
        return GradientSteps(self.steps, self.gradient_bound)

    @property
    def spending(self) -> Spending:
        """Return the `Spending` of the page's epsilon: budget and its division among releases."""
        return self.study.build_spending(self.epsilon)

    @property
    def study(self) -> RatingStudy:
        """Return the study that *Train* runs."""
        settings = FactorSettings(self.dimension, self.sweeps, self.user_ridge, own_coordinate=OWN_COORDINATE)
        return build_from(RatingStudy, self, private_settings=settings, seed=self.train_seed)

    @property
    def choice_study(self) -> ChoiceStudy:
        """Return the study that *Train on choices* runs."""
        return build_from(
            ChoiceStudy,
            self,
            private_settings=implicit.ImplicitSettings(unobserved_weight=self.unobserved),
            ridge_to_noise=implicit.RIDGE_TO_NOISE,
            seed=self.train_seed,
            # A choice counts 1, whatever the unit of ratings is.
            gradient_steps=None if self.gradient_steps is None else GradientSteps(self.steps),
        )
