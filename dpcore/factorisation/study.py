"""The grid of runs of all studies: models on the same splits and noise over ε, measured by error and recall."""

from __future__ import annotations

import abc
import copy
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from dpcore.common.noise_error import Summary, summarise_runs
from dpcore.common.progress import ShouldStop, never
from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.allocation import Scheme, Spending
from dpcore.factorisation.fit import OnSweep
from dpcore.factorisation.model import FactorModel
from dpcore.factorisation.ratings import NUM_BUCKETS, Buckets, Ratings, assign_buckets
from dpcore.multitask.problem import PrivacyTarget


class ModelKind(enum.Enum):
    """A model that is compared; the value is its name on the page."""

    GLOBAL_MEAN = "Overall mean, no privacy"
    ITEM_MEAN = "Item means, no privacy"
    POPULAR = "Most popular, no privacy"
    NO_PRIVACY = "Factorisation, no privacy"
    PRIVATE_MEAN = "DP item means"
    PRIVATE_OFFSETS = "DP item means, users' own offsets"
    PRIVATE_POPULAR = "DP most popular"
    UNIFORM = "DP uniform sampling"
    TAIL = "DP tail sampling"
    ADAPTIVE = "DP adaptive weights"

    @property
    def is_private(self) -> bool:
        """Return True if the model keeps the guarantee, and so depends on epsilon."""
        return self.value.startswith("DP ")


SCHEME_BY_KIND: Mapping[ModelKind, Scheme] = {ModelKind[scheme.name]: scheme for scheme in Scheme}
"""The private factorisations."""
Models = Mapping[tuple[ModelKind, float], Any]
"""Models by kind and epsilon; 0 without privacy."""
FACTORISATION = ModelKind.ADAPTIVE
"""Compared with the baseline of a study, and fitted last."""


@dataclass(frozen=True)
class Split:
    """Ratings to train on, and test users' known ratings and those to be predicted or recalled.

    All tables keep the users' codes: a user without ratings in one has an empty row there.
    """

    train: Ratings
    history: Ratings
    test: Ratings


@dataclass(frozen=True)
class Study(abc.ABC):
    """What the studies of ratings and of choices have in common.

    Attributes:
        epsilons: Of the guarantee, each with ``delta``.
        delta: Of the guarantee.
        private_settings: Of every private factorisation.
        non_private_settings: Of the factorisation without privacy.
        max_items: k.
        count_share: Share of the budget for noisy counts.
        exponent: mu of the adaptive weights.
        ridge_to_noise: What the items' ridge grows by per unit of noise.
        repeats: Seeds; each has its own split and noise, shared by all models.
        seed: Of all randomness.
        model_kinds: The models that are fitted.
        bucket_share: Share of the items that are in buckets, the most popular ones.
        main_measure: "rmse" or "recall".
        baseline: What a factorisation with adaptive weights is compared with, declared before any training: one
            comparison, so that its interval is what it says.
    """

    epsilons: tuple[float, ...] = (1.0, 5.0, 20.0)
    delta: float = 1e-5
    private_settings: Any = None
    non_private_settings: Any = None
    max_items: int = 100
    count_share: float = 0.12
    exponent: float = 0.25
    ridge_to_noise: float = 0.0
    repeats: int = 3
    seed: int = 1
    model_kinds: tuple[ModelKind, ...] = ()
    bucket_share: float = 1.0
    main_measure: ClassVar[str]
    baseline: ClassVar[ModelKind]

    def build_spending(self, epsilon: float) -> Spending:
        """Return the `Spending` of this study at one epsilon: budget and its division among releases."""
        target, sweeps = PrivacyTarget(epsilon, self.delta), self.private_settings.sweeps
        return Spending.from_target(target, self.count_share, sweeps, self.max_items, *self.count_releases())

    def count_sweeps(self) -> int:
        """Return how many sweeps all factorisations of one seed take, where private ones are fitted at each epsilon."""
        num_private_fits = len(self.epsilons) * len(SCHEME_BY_KIND.keys() & set(self.model_kinds))
        reference_sweeps = self.non_private_settings.sweeps if ModelKind.NO_PRIVACY in self.model_kinds else 0
        return int(reference_sweeps + num_private_fits * self.private_settings.sweeps)

    @abc.abstractmethod
    def count_releases(self) -> tuple[int, int]:
        """Return how many releases of a sweep a user moves by up to sqrt(k), and how many, Gram matrices, by 1."""

    @abc.abstractmethod
    def split(self, ratings: Ratings, rng: np.random.Generator) -> Split:
        """Split a table into training, history and test for one seed.

        Raise InvalidInput if nothing is left on one side.
        """

    @abc.abstractmethod
    def fit(
        self,
        kind: ModelKind,
        train: Ratings,
        epsilon: float,
        seed: int,
        models: Models,
        on_sweep: OnSweep,
    ) -> Any:
        """Fit and return one model, and call ``on_sweep`` after each sweep.

        ``models`` are those of this seed so far.
        """

    @abc.abstractmethod
    def measure(self, model: Any, split: Split, buckets: Buckets) -> tuple[FloatArray, FloatArray]:
        """Return errors and recalls of a model, over all items and then by bucket, shape (1 + NUM_BUCKETS,) each."""


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Errors and recall of every run of a study.

    Attributes:
        study: What was run.
        rmse: Shape (models of the study, epsilons, repeats, 1 + NUM_BUCKETS), over all items and then by bucket, rarest
            first; NaN for runs that were not reached, and for a study of choices. Models without privacy have the
            same numbers at each epsilon.
        recall: Likewise.
        item_train_counts: Training ratings of each item in the first split, shape (num_items,); 0 before it was made,
            and shape (0,) in a stored training.
        first_seed_models: The fitted models of the first seed.
        is_finished: True if all runs were reached.
    """

    study: Study
    rmse: FloatArray
    recall: FloatArray
    item_train_counts: IntArray
    first_seed_models: Models = field(default_factory=dict)
    is_finished: bool = False

    def select_runs(self, model_kind: ModelKind, measure_name: str = "") -> FloatArray:
        """Return a measure of a model in each run, shape (epsilons, repeats, 1 + NUM_BUCKETS).

        An empty ``measure_name`` stands for the main measure.
        """
        measure_array: FloatArray = getattr(self, measure_name or self.study.main_measure)
        return np.asarray(measure_array[self.study.model_kinds.index(model_kind)])

    def summarise(self, model_kind: ModelKind, measure_name: str = "") -> Summary:
        """Summarise a measure of a model over seeds; arrays have shape (epsilons, 1 + NUM_BUCKETS)."""
        return summarise_runs(self.select_runs(model_kind, measure_name))

    def compare(self, model_kind: ModelKind, reference_kind: ModelKind, measure_name: str = "") -> Summary:
        """Summarise the measure of a model less that of a reference, paired by seed; shapes as in `summarise`."""
        reference_runs = self.select_runs(reference_kind, measure_name)
        return summarise_runs(self.select_runs(model_kind, measure_name) - reference_runs)


class ProgressReport(Protocol):
    """A callback that gets the progress of a study."""

    def __call__(self, share_done: float, partial_result: StudyResult | None = None) -> None:
        """Receive the share done after each sweep and, after all models of one epsilon, the results so far."""


class _StopError(Exception):
    """The sign that the study is to stop."""


def run(
    ratings: Ratings,
    study: Study,
    report_progress: ProgressReport = lambda share, partial_result=None: None,
    should_stop: ShouldStop = never,
) -> StudyResult:
    """Fit and measure every model at every epsilon with every seed; after a stop, return what was reached.

    Args:
        ratings: Ratings, or what users chose; each seed splits the table anew.
        study: What to run.
        report_progress: Told after each sweep, and after all models of one epsilon.
        should_stop: Asked before each model and after each sweep; where it says yes, what is finished is returned.

    Returns:
        Errors and recall of every model that was reached, by epsilon, seed and bucket.

    Raises:
        InvalidInput: A split leaves nothing to train on or nothing to test.

    Source: Krichene et al. 2023, section 5, for the models that are compared; pairing and intervals are ours.
    """
    shape = (len(study.model_kinds), len(study.epsilons), study.repeats, 1 + NUM_BUCKETS)
    first_seed_models: dict[tuple[ModelKind, float], Any] = {}
    zeros = np.zeros(ratings.num_items, dtype=np.int64)
    result = StudyResult(study, np.full(shape, np.nan), np.full(shape, np.nan), zeros, first_seed_models)
    private_kinds = [kind for kind in study.model_kinds if kind.is_private]
    fits_without_privacy = [(kind, None) for kind in study.model_kinds if not kind.is_private]
    private_fits = [(kind, i) for i in range(len(study.epsilons)) for kind in private_kinds]
    num_sweeps, num_sweeps_done = max(study.count_sweeps() * study.repeats, 1), 0

    def stop_if_asked() -> None:
        """Raise `_StopError` if the study is to stop."""
        if should_stop():
            raise _StopError

    def report_sweep() -> None:
        """Report that one sweep more is done, and stop if the study is to stop."""
        nonlocal num_sweeps_done
        num_sweeps_done += 1
        report_progress(num_sweeps_done / num_sweeps)
        stop_if_asked()

    try:
        for seed_index in range(study.repeats):
            split_sequence, noise_sequence = np.random.SeedSequence([study.seed, seed_index]).spawn(2)
            noise_seed = int(noise_sequence.generate_state(1)[0])
            stop_if_asked()
            split = study.split(ratings, np.random.default_rng(split_sequence))
            buckets = assign_buckets(split.train.item_counts, study.bucket_share)
            if seed_index == 0:
                result = replace(result, item_train_counts=split.train.item_counts)
            seed_models: dict[tuple[ModelKind, float], Any] = {}
            for model_kind, epsilon_index in (*fits_without_privacy, *private_fits):
                stop_if_asked()
                epsilon = 0.0 if epsilon_index is None else study.epsilons[epsilon_index]
                model = study.fit(model_kind, split.train, epsilon, noise_seed, seed_models, report_sweep)
                seed_models[model_kind, epsilon] = model
                if seed_index == 0:
                    first_seed_models[model_kind, epsilon] = model
                epsilon_selector = slice(None) if epsilon_index is None else epsilon_index
                result_index = study.model_kinds.index(model_kind), epsilon_selector, seed_index
                result.rmse[result_index], result.recall[result_index] = study.measure(model, split, buckets)
                if epsilon_index is not None and model_kind is private_kinds[-1]:
                    # Of its own, since the arrays go on changing.
                    report_progress(num_sweeps_done / num_sweeps, copy.deepcopy(result))
    except _StopError:
        return result
    return replace(result, is_finished=True)


RECALL_SIZE = 20
"""k of Recall@k over all items and the most popular bucket; each rarer bucket has 20 more."""
MAX_RECALL_USERS = 2_000
"""Users over whom recall is averaged, at most: it takes a score for each user and item."""
_MAX_CELLS = 4_000_000


def measure(
    model: FactorModel, train: Ratings, test: Ratings, bucket_of_item: Buckets, measures_recall: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Measure the errors of predictions, and on request the recall, of a model over all items and by bucket.

    Users solve for their vectors from their training ratings.

    Returns:
        Root mean squared errors and recalls, over all test ratings and then over those of each bucket, each of shape
        (1 + NUM_BUCKETS,); NaN where there is nothing to measure, and for a recall that was not asked for.
    """
    user_vectors = model.solve_user_vectors(train)
    squared_errors = (model.predict(user_vectors, test) - test.values) ** 2
    # The first entry is of all items, also of those outside the buckets.
    item_set_indices = bucket_of_item[test.items] + 1
    counts, error_sums = (
        np.bincount(item_set_indices, weights, 1 + NUM_BUCKETS) for weights in (None, squared_errors)
    )
    counts[0], error_sums[0] = counts.sum(), error_sums.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        rmse_by_item_set = np.sqrt(error_sums / counts)
    recall = np.full(1 + NUM_BUCKETS, np.nan)
    if measures_recall:
        recall = compute_recall(user_vectors, model.item_vectors, train, test, bucket_of_item)
    return rmse_by_item_set, recall


def compute_recall(
    user_vectors: FloatArray, item_vectors: FloatArray, history: Ratings, test: Ratings, buckets: Buckets
) -> FloatArray:
    """Compute the mean over users of |test items in their top k| / min(k, test items), over all items and by bucket.

    A user's history is never recommended.

    Args:
        user_vectors: Shape (num_users, d).
        item_vectors: Shape (num_items, d); a larger inner product is recommended first.
        history: What each user rated in training.
        test: What is to be recalled; of more than `MAX_RECALL_USERS` users who have some, the first ones count.
        buckets: Of the items.

    Returns:
        Over all items, then in each bucket, shape (1 + NUM_BUCKETS,); NaN where there is nothing to recall.

    In a bucket only its test items count, with the bucket's k; the top k is always among all items. Source: Krichene
    et al. 2023, appendix D.1, with min(k, test items) as the denominator.
    """
    # k over all items, then in each bucket: 20, 100, 80, 60, 40, 20 (footnote 1).
    recall_sizes = RECALL_SIZE * np.concatenate(([1], np.arange(NUM_BUCKETS, 0, -1)))
    num_ranked = min(int(recall_sizes.max()), item_vectors.shape[0])
    tested_users = np.flatnonzero(np.diff(test.starts))[:MAX_RECALL_USERS]
    recall_sums, users_per_item_set = np.zeros(1 + NUM_BUCKETS), np.zeros(1 + NUM_BUCKETS)
    users_per_block = max(_MAX_CELLS // item_vectors.shape[0], 1)
    for first_user in range(0, tested_users.size, users_per_block):
        block_users = tested_users[first_user : first_user + users_per_block]
        item_scores = user_vectors[block_users] @ item_vectors.T
        history_rows, history_positions = _find_ratings(history, block_users)
        item_scores[history_rows, history.items[history_positions]] = -np.inf
        top_items = _find_largest(item_scores, num_ranked)
        # An item that is not among the top has a rank that no k reaches.
        item_ranks = np.full(item_scores.shape, num_ranked, dtype=np.int32)
        np.put_along_axis(item_ranks, top_items, np.arange(num_ranked, dtype=np.int32)[None, :], axis=1)
        test_rows, test_positions = _find_ratings(test, block_users)
        test_ranks = item_ranks[test_rows, test.items[test_positions]]
        test_buckets = buckets[test.items[test_positions]]
        for measure_index, k in enumerate(recall_sizes):
            counted_test_mask = (test_buckets == measure_index - 1) | (measure_index == 0)
            test_counts = np.bincount(test_rows[counted_test_mask], minlength=block_users.size)
            hits = np.bincount(test_rows[counted_test_mask & (test_ranks < k)], minlength=block_users.size)
            tested_mask = test_counts > 0
            recall_sums[measure_index] += np.sum(hits[tested_mask] / np.minimum(test_counts[tested_mask], k))
            users_per_item_set[measure_index] += tested_mask.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(recall_sums / users_per_item_set)


def _find_ratings(ratings: Ratings, user_codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for the ratings of some users, the user's row among them and the rating's index in the table."""
    first_rating_of_user = ratings.starts[user_codes]
    ratings_per_user = ratings.starts[user_codes + 1] - first_rating_of_user
    user_rows = np.repeat(np.arange(user_codes.size), ratings_per_user)
    row_starts = np.cumsum(ratings_per_user) - ratings_per_user
    return user_rows, np.arange(user_rows.size) - row_starts[user_rows] + first_rating_of_user[user_rows]


def compare_neighbours(
    vectors: FloatArray, reference_vectors: FloatArray, item_codes: IntArray, num_neighbours: int = 20
) -> FloatArray:
    """Compute which share of each item's nearest items is the same under two sets of vectors, shape of ``item_codes``.

    Args:
        vectors: Of all items, shape (num_items, d); `FactorModel.coordinates_without_level` of a model.
        reference_vectors: Likewise, with a d of their own.
        item_codes: Which items.
        num_neighbours: How many are nearest.

    Source: Krichene et al. 2023, figure 11.
    """
    overlaps = np.empty(item_codes.size)
    items_per_block = max(_MAX_CELLS // vectors.shape[0], 1)
    for first_item in range(0, item_codes.size, items_per_block):
        item_block = item_codes[first_item : first_item + items_per_block]
        neighbour_lists = [find_nearest(v, item_block, num_neighbours) for v in (vectors, reference_vectors)]
        # Each list names an item once: equal neighbours are items of both.
        sorted_neighbours = np.sort(np.hstack(neighbour_lists), axis=1)
        shared_counts = (sorted_neighbours[:, 1:] == sorted_neighbours[:, :-1]).sum(axis=1)
        overlaps[first_item : first_item + items_per_block] = shared_counts / neighbour_lists[0].shape[1]
    return overlaps


def find_nearest(item_vectors: FloatArray, item_codes: IntArray, num_neighbours: int) -> IntArray:
    """Return the other items with the largest inner products with each of ``item_codes``, largest first.

    Shape (items, num_neighbours), or fewer columns if there are fewer other items.
    """
    inner_products = item_vectors[item_codes] @ item_vectors.T
    inner_products[np.arange(item_codes.size), item_codes] = -np.inf
    num_neighbours = min(num_neighbours, inner_products.shape[1] - 1)
    return _find_largest(inner_products, num_neighbours)


def _find_largest(score_rows: FloatArray, num_columns: int) -> IntArray:
    """Return the columns of each row's largest scores, largest first, shape (rows, num_columns)."""
    top_columns = np.argpartition(-score_rows, num_columns - 1, axis=1)[:, :num_columns]
    column_order = np.argsort(-np.take_along_axis(score_rows, top_columns, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(top_columns, column_order, axis=1))
