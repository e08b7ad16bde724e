"""What the mathematics finds for a recommender: who gets the budget, and what a training says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.answer.against import Against, remembered
from dpcore.common.errors import refusal
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import Scheme
from dpcore.factorisation.budget import Spending
from dpcore.factorisation.measures import BUCKETS, buckets_of
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource, load_ratings
from dpcore.factorisation.ratings import Ratings
from dpcore.factorisation.shares import BudgetShares, budget_shares
from dpcore.factorisation.study import BASELINE, FACTORISATION, KINDS, MEANS, SCHEMES, Kind, StudyResult, run


@dataclass(frozen=True, eq=False)
class RatingsInUse:
    """The table, and what it is.

    Attributes:
        ratings: The table.
        key: Names it in caches.
        disclosure: Of everything computed from it.
        spreads: Fewest and most ratings of an item in each bucket, rarest first.
    """

    ratings: Ratings
    key: str
    disclosure: Provenance
    spreads: tuple[tuple[int, int], ...]


def key_of(parameters: FactorisationParameters, data: Dataset | None) -> str:
    """Names the table that the parameters ask for."""
    generator = parameters.generator
    if generator is not None:
        return repr((generator, parameters.data_seed))
    return "" if data is None else data.digest


def load(parameters: FactorisationParameters, data: Dataset | None) -> RatingsInUse | None:
    """The table that the parameters name; None where it is the data's and they hold no ratings."""
    ratings = load_ratings(parameters, data)
    if ratings is None:
        return None
    kind = Disclosure.PUBLIC if parameters.generator is not None or data is None else data.provenance
    counts, buckets = ratings.item_counts, buckets_of(ratings.item_counts)
    there = [counts[buckets == bucket] for bucket in range(BUCKETS)]
    spreads = tuple((int(c.min()), int(c.max())) if c.size else (0, 0) for c in there)
    return RatingsInUse(ratings, key_of(parameters, data), kind, spreads)


FEWEST_SEEDS = 3
"""Below which nothing is said to be clear."""


@dataclass(frozen=True)
class Verdict:
    """What a training says at one epsilon: one comparison, declared before it, so that its interval holds.

    Attributes:
        epsilon: At which it was trained.
        error: Mean RMSE of the factorisation over seeds, `study.FACTORISATION`.
        error_half: Half of that mean's interval; NaN with one seed.
        beats: By how much that is below the error of item means with users' own offsets, `study.BASELINE`, paired by
            seed; negative where it is above.
        beats_half: Half of that interval; NaN with one seed.
        seeds: That are done.
    """

    epsilon: float
    error: float
    error_half: float
    beats: float
    beats_half: float
    seeds: int

    @property
    def is_clear(self) -> bool:
        """Whether there are enough seeds, and their interval leaves no doubt about the sign."""
        return self.seeds >= FEWEST_SEEDS and abs(self.beats) > self.beats_half

    @property
    def is_worth_it(self) -> bool:
        """Whether the factorisation is shown to be better."""
        return self.is_clear and self.beats > 0.0

    @property
    def is_worse(self) -> bool:
        """Whether it is shown to be worse."""
        return self.is_clear and self.beats < 0.0


@dataclass(frozen=True, eq=False)
class FactorisationFound:
    """Everything that words and plots are made of.

    Attributes:
        parameters: The question.
        table: The ratings.
        shares: Who gets the budget under each scheme.
        result: Of the training for this question, as far as it is; None before.
        finished: Whether that training is not at work any more.
    """

    parameters: FactorisationParameters
    table: RatingsInUse
    shares: tuple[BudgetShares, ...]
    result: StudyResult | None = None
    finished: bool = False

    def share(self, scheme: Scheme) -> BudgetShares:
        """Of one scheme."""
        return next(found for found in self.shares if found.scheme is scheme)

    @property
    def at(self) -> int | None:
        """Place of the trained epsilon nearest to that of the question; None where nothing was trained."""
        return None if self.result is None else nearest(self.result, self.parameters.epsilon)

    @property
    def verdict(self) -> Verdict | None:
        """At the trained epsilon nearest to the page's; None where nothing was trained there."""
        return None if self.result is None else verdict(self.result, self.parameters.epsilon)


NO_RATINGS = "This needs ratings, and these data have none."


def find(
    data: Dataset | None, parameters: FactorisationParameters, should_stop: ShouldStop = never
) -> FactorisationFound:
    """Weigh the items, and train every model on every seed.

    Args:
        data: With ratings; None where they are generated, as the parameters say.
        parameters: The question; of data that are given, their ratings are meant, whatever its source is.
        should_stop: Asked before each sweep; where it says yes, what is finished is the result.

    Raises:
        InvalidInput: There are no data where they are asked for, they hold no ratings, or so few that a split leaves
            nothing to train on or to test.
    """
    if data is None and parameters.source is RatingSource.DATA:
        raise refusal("no data were given, and the settings name ratings of one's own")
    of = parameters if data is None else replace(parameters, source=RatingSource.DATA)
    table = load(of, data)
    if table is None:
        raise refusal(NO_RATINGS[:-1])
    shares = tuple(share_of(table, of, scheme) for scheme in Scheme)
    result = run(table.ratings, of.study, should_stop=should_stop)
    return FactorisationFound(of, table, shares, result, finished=True)


def share_of(table: RatingsInUse, parameters: FactorisationParameters, scheme: Scheme) -> BudgetShares:
    """Who gets the budget under one scheme."""
    return paid_for(budget_shares(table.ratings, scheme, *asked_of(parameters, scheme)), parameters)


def paid_for(shares: BudgetShares, parameters: FactorisationParameters) -> BudgetShares:
    """The shares with the noise of the question: it pays for counts where the scheme or the algorithm needs them."""
    if shares.scheme.needs_counts:
        return shares
    spending, steps = parameters.spending, parameters.gradient_steps
    # Gradient steps need counts for their length.
    return replace(
        shares, noise=(spending if steps is not None else replace(spending, count_share=0.0)).noise
    )


def asked_of(parameters: FactorisationParameters, scheme: Scheme) -> tuple[Spending, float]:
    """The budget and the exponent that the shares of a scheme depend on, all else set to one value.

    Only the adaptive scheme reads mu. The uniform one reads no counts: its weights are the same at each budget.
    """
    spending = parameters.spending
    asked = spending if scheme.needs_counts else replace(spending, budget=1.0, count_share=0.0)
    return asked, parameters.exponent if scheme is Scheme.ADAPTIVE else 0.0


NOT_COMPARED = (
    "max_items", "exponent", "count_share", "dimension", "user_ridge", "ridge_to_noise", "lowest", "highest",
    "gradient_bound", "train_epsilons", "repeats", "train_seed", "item", "chosen_from", "unobserved",
)  # fmt: skip


def against_epsilon(data: Dataset, parameters: FactorisationParameters) -> Against | str:
    """The items per user with the least noise over signal of an average item, under uniform sampling, at any epsilon.

    Of k ratings per user, noise grows with √k, and the signal is what is kept: Σ min(k, ratings of a user) over the
    items. Between two numbers of ratings that users have, the quotient first rises and then falls in k, so that the
    least stands at one of them.
    """
    ratings = load_ratings(parameters, data)
    if ratings is None:
        return NO_RATINGS
    counts = np.diff(ratings.starts)
    histogram = ContributionHistogram.from_counts(counts[counts > 0])
    per_item = histogram.kept_rows(histogram.sizes.astype(np.float64)) / ratings.num_items
    best_size = float(histogram.sizes[int(np.argmin(np.sqrt(histogram.sizes) / per_item))])

    @remembered
    def unit_noise(epsilon: float) -> float:
        """s at k = 1, with nothing spent on counts, which uniform sampling does not need."""
        spending = replace(parameters, epsilon=epsilon, max_items=1).spending
        return replace(spending, count_share=0.0).noise

    def error(epsilon: float, most: FloatArray) -> FloatArray:
        k = np.asarray(most, dtype=np.float64)
        return np.asarray(unit_noise(epsilon) * np.sqrt(k) * ratings.num_items / histogram.kept_rows(k))

    return Against(
        "Best number of items per user, k",
        "Noise over signal, average item",
        lambda epsilon: (best_size, float(error(epsilon, np.array(best_size)))),
        error,
        histogram.sizes,
        histogram.users,
        cut="Ratings left out",
        caption="By noise over signal alone (1: as large), under uniform sampling, exact. The best k does not depend "
        "on ε; ε moves the second curve, and where it is above 1 no item's vector is learned well. Errors of trained "
        "models at several ε are the main figure after *Train*.",
        provenance=Disclosure.PUBLIC if parameters.source is RatingSource.GENERATED else None,
    )


def trained_at(result: StudyResult) -> list[int]:
    """Places of the epsilons at which each private model has at least one run."""
    kinds = (*MEANS, *SCHEMES)
    means = np.array([result.mean(kind)[0][:, 0] for kind in kinds])
    return np.flatnonzero(np.isfinite(means).all(axis=0)).tolist()


def nearest(result: StudyResult, epsilon: float) -> int | None:
    """Place of the trained epsilon nearest to one, by ratio; None where none was trained."""
    there = trained_at(result)
    return min(there, key=lambda at: abs(math.log(result.study.epsilons[at] / epsilon)), default=None)


def verdict(result: StudyResult, epsilon: float) -> Verdict | None:
    """What a training says at the trained epsilon nearest to one."""
    at = nearest(result, epsilon)
    if at is None:
        return None
    mean, half = result.mean(FACTORISATION)
    gain, gain_half = result.difference(BASELINE, FACTORISATION)
    return Verdict(
        result.study.epsilons[at],
        float(mean[at, 0]),
        float(half[at, 0]),
        float(gain[at, 0]),
        float(gain_half[at, 0]),
        int(np.isfinite(result.rmse[KINDS.index(FACTORISATION), at, :, 0]).sum()),
    )


def gains(result: StudyResult, kind: Kind, at: int) -> tuple[FloatArray, FloatArray]:
    """By how much a model's RMSE differs from uniform sampling's in each bucket, with half the interval."""
    mean, half = result.difference(kind, Kind.UNIFORM)
    return mean[at, 1:], half[at, 1:]
