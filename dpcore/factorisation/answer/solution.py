"""The solution for a recommender: who gets the budget, and how well the trained models predict.

The training on the page's default ratings takes ten seconds, and comes stored with the program. To make it anew:
``python -c "from dpcore.factorisation.answer import solution; solution.train_and_store()"``. A test trains one seed of
it again.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from dpcore.answer.against import MAX_CACHED_EPSILONS, BoundComparison
from dpcore.common.checks import InvalidInput, refuse
from dpcore.common.privacy import Disclosure, Provenance
from dpcore.contributions import ContributionHistogram, FloatArray
from dpcore.dataset import Dataset
from dpcore.factorisation.allocation import BudgetShares, Scheme, Spending, divide_budget
from dpcore.factorisation.parameters import FactorisationParameters, RatingSource
from dpcore.factorisation.ratings import NUM_BUCKETS, Ratings, assign_buckets
from dpcore.factorisation.study import FACTORISATION, ModelKind, StudyResult, run


def load_ratings(parameters: FactorisationParameters, dataset: Dataset | None) -> Ratings:
    """Draw the generated ratings, or load those of the data, as the parameters say.

    Raises:
        InvalidInput: The data hold no ratings.
    """
    if (generator := parameters.generator) is not None:
        return generator.draw(np.random.default_rng(parameters.data_seed))
    ratings = Ratings.from_pairs(None if dataset is None else dataset.pairs)
    if ratings is None:
        raise refuse("this needs ratings, and these data have none")
    return ratings


def find_disclosure(parameters: FactorisationParameters, dataset: Dataset | None) -> Provenance:
    """Return the disclosure of everything that is computed from the ratings."""
    if parameters.generator is not None or dataset is None:
        return Disclosure.PUBLIC
    return dataset.provenance


MIN_SEEDS = 3
"""For a clear verdict."""


@dataclass(frozen=True)
class BaselineComparison:
    """The gain of a training over its baseline at one epsilon: one comparison, declared before, so its interval holds.

    Attributes:
        result: The training.
        epsilon_index: Of the epsilon in the study.
        epsilon: At which it was trained.
        factorisation_score: Mean RMSE or recall of the factorisation over seeds.
        gain: By how much that is better than the baseline of the study, paired by seed; negative where it is worse.
        gain_half_width: Half of its interval; NaN with one seed.
        num_seeds: That are done.
    """

    result: StudyResult
    epsilon_index: int
    epsilon: float
    factorisation_score: float
    gain: float
    gain_half_width: float
    num_seeds: int

    def find_measure(self, model_kind: ModelKind) -> tuple[float, float]:
        """Return a model's mean RMSE, or recall of choices, over seeds on all items, and half of the interval."""
        summary = self.result.summarise(model_kind)
        return float(summary.means[self.epsilon_index, 0]), float(summary.half_widths[self.epsilon_index, 0])

    @property
    def is_clear(self) -> bool:
        """Return True if there are enough seeds, and the interval of the gain over the baseline excludes 0."""
        return self.num_seeds >= MIN_SEEDS and abs(self.gain) > self.gain_half_width

    @property
    def is_worth_it(self) -> bool:
        """Return True if the factorisation is shown to be better."""
        return self.is_clear and self.gain > 0.0

    @property
    def is_worse(self) -> bool:
        """Return True if the factorisation is shown to be worse."""
        return self.is_clear and self.gain < 0.0


def list_baseline_comparisons(result: StudyResult) -> list[BaselineComparison]:
    """List a `BaselineComparison` for each epsilon at which adaptive weights have a finished run."""
    factorisation_summary = result.summarise(FACTORISATION)
    difference_summary = result.compare(FACTORISATION, result.study.baseline)
    gain_sign = -1.0 if result.study.main_measure == "rmse" else 1.0
    return [
        BaselineComparison(
            result,
            int(epsilon_index),
            result.study.epsilons[epsilon_index],
            float(factorisation_summary.means[epsilon_index, 0]),
            gain_sign * float(difference_summary.means[epsilon_index, 0]),
            float(difference_summary.half_widths[epsilon_index, 0]),
            int(factorisation_summary.run_counts[epsilon_index, 0]),
        )
        for epsilon_index in np.flatnonzero(np.isfinite(factorisation_summary.means[:, 0]))
    ]


def find_baseline_comparison(result: StudyResult, epsilon: float) -> BaselineComparison | None:
    """Return the comparison at the trained epsilon nearest to a given one, by ratio; None if nothing was trained."""
    baseline_comparisons = list_baseline_comparisons(result)
    return min(baseline_comparisons, key=lambda c: abs(math.log(c.epsilon / epsilon)), default=None)


@dataclass(frozen=True, eq=False)
class FactorisationSolution:
    """The shares of the budget and the training that sentences and plots are made of.

    Attributes:
        parameters: The question.
        ratings: The table.
        disclosure: Of everything that is computed from the ratings.
        budget_shares: Who gets the budget under each scheme.
        result: Of the training for this question, as far as it is; None before.
    """

    parameters: FactorisationParameters
    ratings: Ratings
    disclosure: Provenance
    budget_shares: tuple[BudgetShares, ...]
    result: StudyResult | None = None

    @cached_property
    def count_ranges(self) -> list[tuple[int, int]]:
        """Return the fewest and the most ratings of an item in each bucket, rarest first; (0, 0) for an empty one."""
        item_counts, bucket_of_item = self.ratings.item_counts, assign_buckets(self.ratings.item_counts)
        counts_by_bucket = [item_counts[bucket_of_item == bucket] for bucket in range(NUM_BUCKETS)]
        return [(int(c.min()), int(c.max())) if c.size else (0, 0) for c in counts_by_bucket]

    def find_shares(self, scheme: Scheme) -> BudgetShares:
        """Return the budget shares of one scheme."""
        return next(scheme_shares for scheme_shares in self.budget_shares if scheme_shares.scheme is scheme)

    @property
    def baseline_comparison(self) -> BaselineComparison | None:
        """Return the comparison at the trained epsilon nearest to the page's; None if nothing was trained there."""
        return None if self.result is None else find_baseline_comparison(self.result, self.parameters.epsilon)


def solve(dataset: Dataset | None, parameters: FactorisationParameters) -> FactorisationSolution:
    """Compute the budget shares of every scheme, and train every model on every seed.

    Args:
        dataset: With ratings; None where they are generated, as the parameters say.
        parameters: The parameters; if data are given, their ratings are used whatever the source says.

    Raises:
        InvalidInput: The data are missing, hold no ratings, or so few that a split leaves nothing to train on or test.
    """
    if dataset is None and parameters.source is RatingSource.DATA:
        raise refuse("no data were given, and the settings name your own ratings")
    if dataset is not None:
        parameters = replace(parameters, source=RatingSource.DATA)
    ratings = load_ratings(parameters, dataset)
    unscaled_shares = (
        divide_budget(ratings, scheme, *choose_share_settings(parameters, scheme)) for scheme in Scheme
    )
    budget_shares = tuple(replace_noise(scheme_shares, parameters) for scheme_shares in unscaled_shares)
    disclosure, training_result = find_disclosure(parameters, dataset), run(ratings, parameters.study)
    return FactorisationSolution(parameters, ratings, disclosure, budget_shares, training_result)


STORED_RESULT_PATH = Path(__file__).with_name("stored.json")
STORED_PARAMETERS = FactorisationParameters(epsilon=1.0)
"""Settings of the stored training, at any epsilon of the page."""
NUM_STORED_DIGITS = 6
"""After the point, of an error."""


def find_stored(parameters: FactorisationParameters) -> StudyResult | None:
    """Return the stored training, without its models; None unless only ε and the item differ from its parameters."""
    ignored_by_field = {
        field_name: getattr(STORED_PARAMETERS, field_name) for field_name in ("epsilon", "item")
    }
    return _read_stored() if replace(parameters, **ignored_by_field) == STORED_PARAMETERS else None


@functools.cache
def _read_stored() -> StudyResult:
    """Read the stored training: its errors and recalls, without models and counts."""
    runs_by_measure = json.loads(STORED_RESULT_PATH.read_text(encoding="utf-8"))
    rmse, recall = (np.array(runs_by_measure[measure_name]) for measure_name in ("rmse", "recall"))
    return StudyResult(STORED_PARAMETERS.study, rmse, recall, np.zeros(0, dtype=np.int64), is_finished=True)


def train_and_store() -> None:
    """Train on the page's default ratings, and write the file of the stored training."""
    result = run(load_ratings(STORED_PARAMETERS, None), STORED_PARAMETERS.study)
    runs_by_measure = {m: getattr(result, m).round(NUM_STORED_DIGITS).tolist() for m in ("rmse", "recall")}
    STORED_RESULT_PATH.write_text(f"{json.dumps(runs_by_measure)}\n", encoding="utf-8")


def replace_noise(budget_shares: BudgetShares, parameters: FactorisationParameters) -> BudgetShares:
    """Return the shares of the budget with the noise that the budget of the parameters leads to.

    If counts are not needed, they get no share, and the noise is smaller.
    """
    spending = parameters.spending
    # Gradient steps need counts for their length.
    if not budget_shares.scheme.needs_counts and parameters.gradient_steps is None:
        spending = replace(spending, count_share=0.0)
    return replace(budget_shares, noise_std=spending.noise_std)


def choose_share_settings(parameters: FactorisationParameters, scheme: Scheme) -> tuple[Spending, float]:
    """Return the spending and exponent that the shares of a scheme depend on, for a cache.

    Settings that the scheme ignores are set alike. The adaptive scheme alone reads mu. The uniform one
    reads no counts: its weights are the same at each budget.
    """
    spending = parameters.spending
    spending = spending if scheme.needs_counts else replace(spending, budget=1.0, count_share=0.0)
    return spending, parameters.exponent if scheme is Scheme.ADAPTIVE else 0.0


IGNORED_FIELD_NAMES = (
    "max_items", "exponent", "count_share", "dimension", "user_ridge", "ridge_to_noise", "lowest", "highest",
    "gradient_bound", "train_epsilons", "repeats", "train_seed", "item", "chosen_from", "unobserved",
)  # fmt: skip


def compare_over_epsilon(dataset: Dataset, parameters: FactorisationParameters) -> BoundComparison | str:
    """Build the comparison over epsilon of items per user and noise over signal, or return a sentence why not.

    The scheme is uniform sampling. With k ratings per user, noise grows with √k, and the signal is what is kept: Σ
    min(k, ratings of a user) over the items. Between two numbers of ratings that users have, the quotient first rises
    and then falls in k, so that the minimum is at one of them.
    """
    try:
        ratings = load_ratings(parameters, dataset)
    except InvalidInput as refused:
        return refused.problems[0].sentence
    ratings_per_user = np.diff(ratings.starts)
    histogram = ContributionHistogram.from_counts(ratings_per_user[ratings_per_user > 0])
    mean_kept_per_item = histogram.count_kept_rows(histogram.sizes.astype(np.float64)) / ratings.num_items
    best_max_items = float(histogram.sizes[int(np.argmin(np.sqrt(histogram.sizes) / mean_kept_per_item))])

    @functools.lru_cache(MAX_CACHED_EPSILONS)
    def compute_unit_noise(epsilon: float) -> float:
        """Return s at k = 1, with nothing spent on counts, which uniform sampling does not need."""
        spending = replace(parameters, epsilon=epsilon, max_items=1).spending
        return replace(spending, count_share=0.0).noise_std

    def compute_error(epsilon: float, max_items: FloatArray) -> FloatArray:
        """Return noise over signal of an average item at each number of items per user."""
        noise_times_items = compute_unit_noise(epsilon) * np.sqrt(max_items) * ratings.num_items
        return np.asarray(
            noise_times_items / histogram.count_kept_rows(np.asarray(max_items, dtype=np.float64))
        )

    return BoundComparison(
        "Best number of items per user, k",
        "Noise over signal, average item",
        lambda epsilon: (best_max_items, float(compute_error(epsilon, np.array(best_max_items)))),
        compute_error,
        histogram.sizes,
        histogram.users,
        caption="Under uniform sampling. The best k is the same at every ε; above 1, no item's vector is learned well.",
        own_provenance=Disclosure.PUBLIC if parameters.source is RatingSource.GENERATED else None,
    )
