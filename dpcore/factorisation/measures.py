"""How good a model is: errors and recall over test ratings, by popularity of the item, and an item's neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcore.contributions import FloatArray, IntArray
from dpcore.factorisation.model import FactorModel
from dpcore.factorisation.ratings import Ratings

BUCKETS = 5
RECALL_AT = 20
"""k of Recall@k over all items, and in the bucket of the most popular; each rarer bucket has as many more."""
RECALL_USERS = 2_000
"""Users over whom recall is averaged, the first ones with a test rating: it takes a score for each user and item."""
_CELLS = 4_000_000


def buckets_of(item_counts: IntArray) -> npt.NDArray[np.int8]:
    """Bucket of each item, 0 for the rarest to `BUCKETS` - 1, equally many items in each (up to one).

    Args:
        item_counts: Ratings of each item in *training*, shape (num_items,).

    Source: Krichene et al. 2023, section 5, "Impact on head and tail tasks".
    """
    order = np.argsort(item_counts, kind="stable")
    out = np.empty(item_counts.size, dtype=np.int8)
    out[order] = np.arange(item_counts.size) * BUCKETS // item_counts.size
    return out


@dataclass(frozen=True, eq=False)
class Measured:
    """What a model reaches on test ratings, over all items and in each bucket.

    Attributes:
        rmse: Root mean squared error over all ratings, then over those of each bucket, shape (1 + BUCKETS,); NaN
            where a bucket has no test rating.
        recall: Recall likewise; NaN where it was not asked for, or there is nothing to recall.
    """

    rmse: FloatArray
    recall: FloatArray


def measure(
    model: FactorModel, train: Ratings, test: Ratings, buckets: npt.NDArray[np.int8], with_recall: bool = True
) -> Measured:
    """Errors and recall of a model whose users have solved for their vectors from their training ratings."""
    vectors = model.user_vectors(train)
    squared = (model.predicted(vectors, test) - test.values) ** 2
    of = buckets[test.items]
    numbers = np.bincount(of, minlength=BUCKETS)
    sums = np.bincount(of, squared, BUCKETS)
    with np.errstate(invalid="ignore", divide="ignore"):
        rmse = np.sqrt(np.concatenate(([sums.sum() / numbers.sum()], sums / numbers)))
    found = (
        recall(vectors, model.item_vectors, train, test, buckets)
        if with_recall
        else np.full(1 + BUCKETS, np.nan)
    )
    return Measured(rmse, found)


def recall_sizes() -> IntArray:
    """k over all items, then in each bucket: 20, 100, 80, 60, 40, 20. Source: footnote 1."""
    return np.asarray(RECALL_AT * np.concatenate(([1], np.arange(BUCKETS, 0, -1))))


def recall(
    user_vectors: FloatArray,
    item_vectors: FloatArray,
    seen: Ratings,
    test: Ratings,
    buckets: npt.NDArray[np.int8],
) -> FloatArray:
    """Mean over users of |test items in their top k| / min(k, test items), items that they have seen left out.

    Args:
        user_vectors: Shape (num_users, d).
        item_vectors: Shape (num_items, d); a larger inner product is recommended first.
        seen: What each user rated in training.
        test: What is to be recalled; of more than `RECALL_USERS` users who have some, the first ones count.
        buckets: Of the items.

    Returns:
        Over all items, then in each bucket, shape (1 + BUCKETS,); NaN where there is nothing to recall.

    In a bucket only its test items count, with the bucket's k; the top k is always among all items. Source: Krichene
    et al. 2023, appendix D.1, with min(k, test items) as the denominator.
    """
    sizes = recall_sizes()
    most = min(int(sizes.max()), item_vectors.shape[0])
    asked = np.flatnonzero(np.diff(test.starts))[:RECALL_USERS]
    sums, users = np.zeros(1 + BUCKETS), np.zeros(1 + BUCKETS)
    rows = max(_CELLS // item_vectors.shape[0], 1)
    for first in range(0, asked.size, rows):
        some = asked[first : first + rows]
        scores = user_vectors[some] @ item_vectors.T
        seen_row, seen_at = _of_users(seen, some)
        scores[seen_row, seen.items[seen_at]] = -np.inf
        top = np.argpartition(-scores, most - 1, axis=1)[:, :most]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
        top = np.take_along_axis(top, order, axis=1)
        # What is not among the top has a rank that no k reaches.
        rank = np.full(scores.shape, most, dtype=np.int32)
        np.put_along_axis(rank, top, np.arange(most, dtype=np.int32)[None, :], axis=1)
        row, at = _of_users(test, some)
        ranks, of = rank[row, test.items[at]], buckets[test.items[at]]
        for place, k in enumerate(sizes):
            counts = np.ones(row.size, dtype=bool) if place == 0 else of == place - 1
            there = np.bincount(row[counts], minlength=some.size)
            hits = np.bincount(row[counts & (ranks < k)], minlength=some.size)
            has = there > 0
            sums[place] += np.sum(hits[has] / np.minimum(there[has], k))
            users[place] += has.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / users)


def _of_users(ratings: Ratings, users: IntArray) -> tuple[IntArray, IntArray]:
    """For the ratings of some users: the place of the user among them, and the place in the table."""
    lengths = ratings.starts[users + 1] - ratings.starts[users]
    row = np.repeat(np.arange(users.size), lengths)
    before = np.cumsum(lengths) - lengths
    return row, np.arange(row.size) - before[row] + ratings.starts[users][row]


def neighbours(model: FactorModel, item: int, number: int = 6) -> IntArray:
    """The items most like one item, most alike first, shape (number,); the item itself left out.

    Alike is a large inner product of item vectors, as in table 3 of Krichene et al. 2023; the coordinate of the item's
    level is left out, in which all good items are alike.
    """
    return np.asarray(nearest(_learned(model), np.array([item]), number)[0])


def overlap(model: FactorModel, reference: FactorModel, items: IntArray, number: int = 20) -> FloatArray:
    """Share of each item's nearest items that it shares with another model, shape of ``items``.

    Source: Krichene et al. 2023, figure 11.
    """
    return overlap_of(_learned(model), _learned(reference), items, number)


def _learned(model: FactorModel) -> FloatArray:
    return model.item_vectors[:, int(model.settings.offset > 0.0) :]


def overlap_of(vectors: FloatArray, reference: FloatArray, items: IntArray, number: int = 20) -> FloatArray:
    """`overlap` of two tables of item vectors, each of shape (num_items, d) with a d of its own."""
    out = np.empty(items.size)
    rows = max(_CELLS // vectors.shape[0], 1)
    for first in range(0, items.size, rows):
        some = items[first : first + rows]
        ours, theirs = nearest(vectors, some, number), nearest(reference, some, number)
        # Each list names an item once: equal neighbours are items of both.
        both = np.sort(np.hstack([ours, theirs]), axis=1)
        out[first : first + rows] = (both[:, 1:] == both[:, :-1]).sum(axis=1) / ours.shape[1]
    return out


def nearest(vectors: FloatArray, items: IntArray, number: int) -> IntArray:
    """The items of the largest inner products with each of some items, shape (items, number); themselves left out."""
    scores = vectors[items] @ vectors.T
    scores[np.arange(items.size), items] = -np.inf
    number = min(number, scores.shape[1] - 1)
    top = np.argpartition(-scores, number - 1, axis=1)[:, :number]
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(top, order, axis=1))
