"""The settings of the page *Recommender*: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcore.common.checks import EPSILON_RANGE, Problems
from dpcore.common.parameters import LINE, TAB, Option, Parameters, of_data, public, range_end
from dpcore.common.text_fields import build_from, parse_checked_numbers, parse_numbers
from dpcore.factorisation.allocation import Spending
from dpcore.factorisation.choice_study import ChoiceStudy
from dpcore.factorisation.fit import RIDGE_TO_NOISE, GradientSteps
from dpcore.factorisation.generator import GeneratedRatings
from dpcore.factorisation.implicit import RIDGE_TO_NOISE as IMPLICIT_RIDGE
from dpcore.factorisation.implicit import ImplicitSettings
from dpcore.factorisation.model import LARGEST_RATING, OWN_COORDINATE, FactorSettings, RatingRange
from dpcore.factorisation.rating_study import RatingStudy
from dpcore.multitask.problem import DELTA_RANGE

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


class RatingSource(Option):
    """The source of the ratings."""

    DATA = "data", "Your data"
    GENERATED = "generated", "Generated"


class Algorithm(Option):
    """How item vectors are learned from the users'; both are algorithm 3 of Krichene et al. 2023."""

    STATISTICS = "statistics", "Least squares"
    DESCENT = "descent", "Gradient steps"


GENERATED, OF_DATA = ("source", (RatingSource.GENERATED,)), ("source", (RatingSource.DATA,))
DESCENT = ("algorithm", (Algorithm.DESCENT,))


@dataclass(frozen=True)
class FactorisationParameters(Parameters):
    """The question on the page, without the data."""

    delta: float = public.number(1e-5, "δ", DELTA_RANGE, name="δ")
    """At most this much probability that ε does not hold. Well below 1 / (number of users)."""
    source: RatingSource = public.choice(RatingSource.GENERATED, "Ratings")
    """Your data need a column of items and a column of ratings, chosen in *Your data*."""
    # Whoever generates ratings may make them like the data.
    num_users: int = of_data.number(
        6_000, "Users", (100, 10**6), name="the number of users", only_with=GENERATED, step=1000
    )
    """The number of users. The default is about the size of MovieLens 1M."""
    num_items: int = of_data.number(
        3_700, "Items", (10, 10**5), name="the number of items", only_with=GENERATED, step=100
    )
    """The number of items; their popularity falls as a power of their rank."""
    ratings_per_user: float = of_data.number(
        100.0, "Ratings per user", name="the number of ratings per user", only_with=GENERATED
    )
    """The average number of ratings per user."""
    rank: int = public.number(6, "Planted rank", (1, 50), only_with=GENERATED)
    """In how many ways tastes differ."""
    data_seed: int = public.number(1, "Seed of the ratings", (0, 2**32 - 1), only_with=GENERATED)
    """The same seed draws the same ratings."""
    lowest: float = range_end(0.5, "Lowest rating", "the lowest rating", width=180, only_with=OF_DATA)
    """Public: what the lowest rating is by design. Lower ones are raised to it."""
    highest: float = range_end(5.0, "Highest rating", "the highest rating", width=180, only_with=OF_DATA)
    """Public: what the highest rating is by design. Higher ones are lowered to it."""
    algorithm: Algorithm = public.choice(Algorithm.STATISTICS, "Algorithm")
    """Least squares from noisy sums (DPALS), or noisy gradient steps with each user's gradient clipped (DPSGD)."""
    steps: int = public.number(2, "Steps per sweep", (1, 50), name="the number of steps", only_with=DESCENT)
    """Each step is a release and costs budget."""
    gradient_bound: float = of_data.number(
        1.0, "Gradient bound Γ", (1e-6, 1e9), name="the gradient bound", only_with=DESCENT
    )
    """In units of the ratings: where a user's residual is larger, their gradient is clipped."""
    max_items: int = of_data.number(
        100,
        "Items per user, k",
        (1, 10**6),
        name="the number of items per user",
        step=10,
        width=150,
        place=LINE,
    )
    """A user's squared weights sum to at most k. Uniform and tail sampling keep k ratings of weight 1."""
    exponent: float = of_data.number(
        0.25,
        "Favour rare items, μ",
        (0.0, 1.0),
        slider=(0.0, 1.0, 0.05),
        format="%.3g",
        width=180,
        place=LINE,
    )
    """Adaptive weights: an item with noisy count n gets weight n^−μ. The paper does best with μ between 1/4
    and 1/2."""
    count_share: float = public.number(
        0.12, "Share of the budget for counts", (0.001, 0.9), name="the share for counts"
    )
    """The cost of noisy counts per item, which tail and adaptive weights need. The paper: 12 %, 14 % and 20 % at ε
    = 1, 5 and 20."""
    dimension: int = public.number(4, "Dimension d", (2, 32), name="the dimension")
    """Coordinates of an item vector; the first is the item's own level."""
    sweeps: int = public.number(2, "Sweeps T", (1, 10), name="the number of sweeps")
    """How often item vectors are learned anew. Each sweep costs budget."""
    user_ridge: float = of_data.number(10.0, "Ridge of users", (1e-3, 1e6))
    """λ of the users' own vectors, which never leave them."""
    ridge_to_noise: float = of_data.number(
        RIDGE_TO_NOISE, "Ridge of items per noise", (0.0, 1e6), name="the ridge of items"
    )
    """λ of the items is 5 plus this many times the noise s, so that items that drown in noise fall back to the
    overall mean."""
    train_epsilons: str = public.text("1, 5, 20", "Also train at ε", max_length=120, place=TAB)
    """One to four numbers, separated by commas; the ε of the page is always trained."""
    repeats: int = public.number(3, "Seeds", (1, MAX_REPEATS), name="the number of seeds", place=TAB)
    """1 to 20. Each has its own split and noise, which all models share; intervals need two."""
    train_seed: int = public.number(1, "Seed of the training", (0, 2**32 - 1), place=TAB)
    """The same seed gives the same splits and noise."""
    item: int = of_data.number(1, "Item, by popularity", (1, 10**6), name="the item", width=180, place=TAB)
    """1 is the item with the most ratings."""
    chosen_from: float = of_data.number(
        4.0,
        "Chosen from a rating of",
        (-LARGEST_RATING, LARGEST_RATING),
        name="what counts as chosen",
        width=180,
        place=TAB,
    )
    """Ratings of at least this count as choices, and all others as none. The paper takes 4 of 5."""
    unobserved: float = public.number(
        0.5,
        "Weight of what was not chosen, α₀",
        (1e-3, 100.0),
        name="the weight of what was not chosen",
        width=250,
        place=TAB,
    )
    """How much a pair that was not chosen counts as a no, against 1 for one that was."""

    def _check_together(self, problems: Problems) -> None:
        if self.source is RatingSource.GENERATED:
            self._check_generator(problems)
        else:
            problems.ascending(**{"the lowest rating": self.lowest, "the highest": self.highest})
        for epsilon in parse_checked_numbers(
            problems, "epsilons to train at", self.train_epsilons, MAX_EPSILONS
        ):
            problems.between(*EPSILON_RANGE, **{"each epsilon to train at": epsilon})

    def _check_generator(self, problems: Problems) -> None:
        if problems.entries:
            return
        if self.num_users * self.num_items > MAX_PAGE_CELLS:
            problems.add(f"users times items must be at most {MAX_PAGE_CELLS:,}")
        fits = problems.between(
            1.0, self.num_items / 2.0, **{"the number of ratings per user": self.ratings_per_user}
        )
        if fits and self.num_users * self.ratings_per_user > MAX_PAGE_RATINGS:
            problems.add(f"users times ratings per user must be at most {MAX_PAGE_RATINGS:,}")

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Return the epsilons that a training runs: those that were entered, and that of the page, ascending."""
        return tuple(sorted({*parse_numbers(self.train_epsilons), self.epsilon}))

    @property
    def of_ratings(self) -> FactorisationParameters:
        """Return the parameters without those that the ratings do not depend on."""
        names = ("source", "num_users", "num_items", "ratings_per_user", "rank", "data_seed")
        return FactorisationParameters(1.0, **{name: getattr(self, name) for name in names})

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
    def study(self) -> RatingStudy:
        """Return the study that *Train* runs."""
        settings = FactorSettings(self.dimension, self.sweeps, self.user_ridge, own_coordinate=OWN_COORDINATE)
        return build_from(
            RatingStudy, self, settings=settings, steps=self.gradient_steps, seed=self.train_seed
        )

    @property
    def choice_study(self) -> ChoiceStudy:
        """Return the study that *Train on choices* runs; its other settings are those of `ImplicitSettings`."""
        return build_from(
            ChoiceStudy,
            self,
            settings=ImplicitSettings(unobserved=self.unobserved),
            ridge_to_noise=IMPLICIT_RIDGE,
            seed=self.train_seed,
        )

    @property
    def large_study(self) -> RatingStudy:
        """Return a study at the size of MovieLens 10M: one epsilon, one seed, no recall."""
        limits = RatingRange(LARGE.lowest, LARGE.highest)
        return replace(self.study, epsilons=(self.epsilon,), repeats=1, with_recall=False, limits=limits)
