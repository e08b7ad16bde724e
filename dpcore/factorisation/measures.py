"""Measures of a model: errors and recall over test ratings, by popularity of the item, and an item's neighbours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.model import FactorModel
from dpcore.factorisation.ratings import Ratings

BUCKETS = 5
Buckets = npt.NDArray[np.int8]
RECALL_SIZE = 20
"""k of Recall@k over all items, and in the bucket of the most popular; each rarer bucket has as many more."""
RECALL_USERS = 2_000
"""Users over whom recall is averaged, the first ones with a test rating: it takes a score for each user and item."""
_CELLS = 4_000_000


def assign_buckets(item_counts: IntArray) -> Buckets:
    """Assign each item to a bucket, 0 for the rarest to `BUCKETS` - 1, with equally many items in each (up to one).

    Args:
        item_counts: Ratings of each item in *training*, shape (num_items,).

    Source: Krichene et al. 2023, section 5, "Impact on head and tail tasks".
    """
    order = np.argsort(item_counts, kind="stable")
    buckets = np.empty(item_counts.size, dtype=np.int8)
    buckets[order] = np.arange(item_counts.size) * BUCKETS // item_counts.size
    return buckets


def measure(
    model: FactorModel, train: Ratings, test: Ratings, buckets: Buckets, with_recall: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Measure errors and recall of a model whose users have solved for their vectors from their training ratings.

    Returns:
        Root mean squared errors and recalls, over all test ratings and then over those of each bucket, each of shape
        (1 + BUCKETS,); NaN where there is nothing to measure, and for a recall that was not asked for.
    """
    vectors = model.solve_user_vectors(train)
    squared_errors = (model.predict(vectors, test) - test.values) ** 2
    item_buckets = buckets[test.items]
    bucket_counts = np.bincount(item_buckets, minlength=BUCKETS)
    sums = np.bincount(item_buckets, squared_errors, BUCKETS)
    with np.errstate(invalid="ignore", divide="ignore"):
        rmse = np.sqrt(np.concatenate(([sums.sum() / bucket_counts.sum()], sums / bucket_counts)))
    recall = np.full(1 + BUCKETS, np.nan)
    if with_recall:
        recall = compute_recall(vectors, model.item_vectors, train, test, buckets)
    return rmse, recall


def compute_recall(
    user_vectors: FloatArray,
    item_vectors: FloatArray,
    history: Ratings,
    test: Ratings,
    buckets: Buckets,
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
    # k over all items, then in each bucket: 20, 100, 80, 60, 40, 20 (footnote 1).
    sizes = RECALL_SIZE * np.concatenate(([1], np.arange(BUCKETS, 0, -1)))
    max_rank = min(int(sizes.max()), item_vectors.shape[0])
    test_users = np.flatnonzero(np.diff(test.starts))[:RECALL_USERS]
    sums, users = np.zeros(1 + BUCKETS), np.zeros(1 + BUCKETS)
    users_per_block = max(_CELLS // item_vectors.shape[0], 1)
    for first in range(0, test_users.size, users_per_block):
        block = test_users[first : first + users_per_block]
        scores = user_vectors[block] @ item_vectors.T
        seen_row, seen_ratings = _find_ratings(history, block)
        scores[seen_row, history.items[seen_ratings]] = -np.inf
        top = _find_largest(scores, max_rank)
        # An item that is not among the top has a rank that no k reaches.
        rank = np.full(scores.shape, max_rank, dtype=np.int32)
        np.put_along_axis(rank, top, np.arange(max_rank, dtype=np.int32)[None, :], axis=1)
        row, test_ratings = _find_ratings(test, block)
        ranks, item_buckets = rank[row, test.items[test_ratings]], buckets[test.items[test_ratings]]
        for measure_index, k in enumerate(sizes):
            is_counted = (item_buckets == measure_index - 1) | (measure_index == 0)
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


def compare_neighbours(
    vectors: FloatArray, reference: FloatArray, items: IntArray, num_neighbours: int = 20
) -> FloatArray:
    """Compute the share of each item's nearest items that other vectors give it too, shape of ``items``.

    Args:
        vectors: Of all items, shape (num_items, d); `FactorModel.learned_coordinates` of a model.
        reference: Likewise, with a d of their own.
        items: Which items.
        num_neighbours: How many are nearest.

    Source: Krichene et al. 2023, figure 11.
    """
    overlaps = np.empty(items.size)
    items_per_block = max(_CELLS // vectors.shape[0], 1)
    for first in range(0, items.size, items_per_block):
        block = items[first : first + items_per_block]
        neighbours = [find_nearest(table, block, num_neighbours) for table in (vectors, reference)]
        # Each list names an item once: equal neighbours are items of both.
        merged = np.sort(np.hstack(neighbours), axis=1)
        num_shared = (merged[:, 1:] == merged[:, :-1]).sum(axis=1)
        overlaps[first : first + items_per_block] = num_shared / neighbours[0].shape[1]
    return overlaps


def find_nearest(vectors: FloatArray, items: IntArray, num_neighbours: int) -> IntArray:
    """Find the items of the largest inner products with each of some items, shape (items, num_neighbours)."""
    scores = vectors[items] @ vectors.T
    scores[np.arange(items.size), items] = -np.inf
    num_neighbours = min(num_neighbours, scores.shape[1] - 1)
    return _find_largest(scores, num_neighbours)


def _find_largest(scores: FloatArray, number: int) -> IntArray:
    """Return the columns of the largest scores of each row, largest first, shape (rows, number)."""
    top = np.argpartition(-scores, number - 1, axis=1)[:, :number]
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(top, order, axis=1))
