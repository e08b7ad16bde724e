"""Measures of a model: errors and recall over test ratings, by popularity of the item, and an item's neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.model import FactorModel
from dpcore.factorisation.ratings import Ratings

BUCKETS = 5
RECALL_SIZE = 20
"""k of Recall@k over all items, and in the bucket of the most popular; each rarer bucket has as many more."""
RECALL_USERS = 2_000
"""Users over whom recall is averaged, the first ones with a test rating: it takes a score for each user and item."""
_CELLS = 4_000_000


def assign_buckets(item_counts: IntArray) -> npt.NDArray[np.int8]:
    """Assign each item to a bucket, 0 for the rarest to `BUCKETS` - 1, with equally many items in each (up to one).

    Source: Krichene et al. 2023, section 5, "Impact on head and tail tasks".

    Args:
        item_counts: Ratings of each item in *training*, shape (num_items,).

    Source: Krichene et al. 2023, section 5, "Impact on head and tail tasks".
    """
    order = np.argsort(item_counts, kind="stable")
    buckets = np.empty(item_counts.size, dtype=np.int8)
    buckets[order] = np.arange(item_counts.size) * BUCKETS // item_counts.size
    return buckets


@dataclass(frozen=True, eq=False)
class Measurements:
    """Errors and recall of a model on test ratings, over all items and in each bucket.

    Attributes:
        rmse: Root mean squared error over all ratings, then over those of each bucket, shape (1 + BUCKETS,); NaN
            where a bucket has no test rating.
        recall: Recall likewise; NaN where it was not asked for, or there is nothing to recall.
    """

    rmse: FloatArray
    recall: FloatArray


def measure(
    model: FactorModel, train: Ratings, test: Ratings, buckets: npt.NDArray[np.int8], with_recall: bool = True
) -> Measurements:
    """Measure errors and recall of a model whose users have solved for their vectors from their training ratings."""
    vectors = model.solve_user_vectors(train)
    squared_errors = (model.predict(vectors, test) - test.values) ** 2
    item_buckets = buckets[test.items]
    bucket_counts = np.bincount(item_buckets, minlength=BUCKETS)
    sums = np.bincount(item_buckets, squared_errors, BUCKETS)
    with np.errstate(invalid="ignore", divide="ignore"):
        rmse = np.sqrt(np.concatenate(([sums.sum() / bucket_counts.sum()], sums / bucket_counts)))
    recalls = (
        compute_recall(vectors, model.item_vectors, train, test, buckets)
        if with_recall
        else np.full(1 + BUCKETS, np.nan)
    )
    return Measurements(rmse, recalls)


def list_recall_sizes() -> IntArray:
    """Return k over all items, then in each bucket: 20, 100, 80, 60, 40, 20. Source: footnote 1."""
    return np.asarray(RECALL_SIZE * np.concatenate(([1], np.arange(BUCKETS, 0, -1))))


def compute_recall(
    user_vectors: FloatArray,
    item_vectors: FloatArray,
    history: Ratings,
    test: Ratings,
    buckets: npt.NDArray[np.int8],
) -> FloatArray:
    """Average |test items in a user's top k| / min(k, test items) over users; items of their history are left out.

    Args:
        user_vectors: Shape (num_users, d).
        item_vectors: Shape (num_items, d); a larger inner product is recommended first.
        history: What each user rated in training.
        test: What is to be recalled; of more than `RECALL_USERS` users who have some, the first ones count.
        buckets: Of the items.

    Returns:
        Over all items, then in each bucket, shape (1 + BUCKETS,); NaN where there is nothing to recall.

    In a bucket only its test items count, with the bucket's k; the top k is always among all items. Source: Krichene
    et al. 2023, appendix D.1, with min(k, test items) as the denominator.
    """
    sizes = list_recall_sizes()
    max_rank = min(int(sizes.max()), item_vectors.shape[0])
    test_users = np.flatnonzero(np.diff(test.starts))[:RECALL_USERS]
    sums, users = np.zeros(1 + BUCKETS), np.zeros(1 + BUCKETS)
    users_per_block = max(_CELLS // item_vectors.shape[0], 1)
    for first in range(0, test_users.size, users_per_block):
        block = test_users[first : first + users_per_block]
        scores = user_vectors[block] @ item_vectors.T
        seen_row, seen_ratings = _find_ratings(history, block)
        scores[seen_row, history.items[seen_ratings]] = -np.inf
        top = np.argpartition(-scores, max_rank - 1, axis=1)[:, :max_rank]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
        top = np.take_along_axis(top, order, axis=1)
        # An item that is not among the top has a rank that no k reaches.
        rank = np.full(scores.shape, max_rank, dtype=np.int32)
        np.put_along_axis(rank, top, np.arange(max_rank, dtype=np.int32)[None, :], axis=1)
        row, test_ratings = _find_ratings(test, block)
        ranks, item_buckets = rank[row, test.items[test_ratings]], buckets[test.items[test_ratings]]
        for measure_index, k in enumerate(sizes):
            is_counted = (
                np.ones(row.size, dtype=bool) if measure_index == 0 else item_buckets == measure_index - 1
            )
            num_tests = np.bincount(row[is_counted], minlength=block.size)
            hits = np.bincount(row[is_counted & (ranks < k)], minlength=block.size)
            has_tests = num_tests > 0
            sums[measure_index] += np.sum(hits[has_tests] / np.minimum(num_tests[has_tests], k))
            users[measure_index] += has_tests.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / users)


def _find_ratings(ratings: Ratings, users: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for the ratings of some users, the user's row among them and the rating's index in the table."""
    lengths = ratings.starts[users + 1] - ratings.starts[users]
    user_rows = np.repeat(np.arange(users.size), lengths)
    row_starts = np.cumsum(lengths) - lengths
    return user_rows, np.arange(user_rows.size) - row_starts[user_rows] + ratings.starts[users][user_rows]


def find_neighbours(model: FactorModel, item: int, num_neighbours: int = 6) -> IntArray:
    """Return the items most similar to one item, most similar first, shape (num_neighbours,), without the item.

    Similar means a large inner product of item vectors, as in table 3 of Krichene et al. 2023. The coordinate
    of the item's level is left out, since all good items agree in it.
    """
    return np.asarray(find_nearest(_learned_coordinates(model), np.array([item]), num_neighbours)[0])


def compute_overlap(
    model: FactorModel, reference: FactorModel, items: IntArray, num_neighbours: int = 20
) -> FloatArray:
    """Compute the share of each item's nearest items that another model has too, shape of ``items``.

    Source: Krichene et al. 2023, figure 11.

    Source: Krichene et al. 2023, figure 11.
    """
    return compare_neighbours(
        _learned_coordinates(model), _learned_coordinates(reference), items, num_neighbours
    )


def _learned_coordinates(model: FactorModel) -> FloatArray:
    """Return the item vectors without the offset coordinate."""
    return model.item_vectors[:, int(model.settings.offset > 0.0) :]


def compare_neighbours(
    vectors: FloatArray, reference: FloatArray, items: IntArray, num_neighbours: int = 20
) -> FloatArray:
    """Compute the overlap for two tables of item vectors, each of shape (num_items, d) with its own d."""
    overlaps = np.empty(items.size)
    items_per_block = max(_CELLS // vectors.shape[0], 1)
    for first in range(0, items.size, items_per_block):
        block = items[first : first + items_per_block]
        own_neighbours, reference_neighbours = (
            find_nearest(vectors, block, num_neighbours),
            find_nearest(reference, block, num_neighbours),
        )
        # Each list names an item once: equal neighbours are items of both.
        merged = np.sort(np.hstack([own_neighbours, reference_neighbours]), axis=1)
        overlaps[first : first + items_per_block] = (merged[:, 1:] == merged[:, :-1]).sum(
            axis=1
        ) / own_neighbours.shape[1]
    return overlaps


def find_nearest(vectors: FloatArray, items: IntArray, num_neighbours: int) -> IntArray:
    """Find the items of the largest inner products with each of some items, shape (items, num_neighbours)."""
    scores = vectors[items] @ vectors.T
    scores[np.arange(items.size), items] = -np.inf
    num_neighbours = min(num_neighbours, scores.shape[1] - 1)
    top = np.argpartition(-scores, num_neighbours - 1, axis=1)[:, :num_neighbours]
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(top, order, axis=1))
