"""Tables of ratings and the generator."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.data.group_pairs import build_pairs
from dpcore.data.task_facets import Pairs
from dpcore.factorisation.ratings import GeneratedRatings, Ratings
from tests.dpcore.factorisation.conftest import table


def test_columns_in_any_order_make_the_same_table() -> None:
    columns = Ratings.from_columns([0, 0, 2], [1, 3, 0], [5.0, 1.0, 2.0], 5)
    other = Ratings.from_columns([2, 0, 0], [0, 3, 1], [2.0, 1.0, 5.0], 5)
    for name in ("starts", "items", "values"):
        assert np.array_equal(getattr(columns, name), getattr(other, name))
    assert columns.starts.tolist() == [0, 2, 2, 3]
    assert columns.item_counts.tolist() == [1, 1, 0, 1, 0]


def test_pairs_of_several_rows_have_their_mean_rating() -> None:
    pairs = build_pairs([0, 0, 1], [1, 1, 0], 2, "movie", np.array([4.0, 5.0, 2.0]), "stars")
    ratings = Ratings.from_pairs(pairs)
    assert ratings.values.tolist() == [4.5, 2.0]
    assert Ratings.from_pairs(Pairs(np.array([0, 1]), np.array([0, 0]), 1)) is None


def test_a_split_is_a_partition_and_both_halves_keep_their_codes() -> None:
    ratings = table(1, users=200)
    train, test = ratings.split(0.3, np.random.default_rng(1))
    assert train.num_users == test.num_users == 200

    def list_rows(*tables: Ratings) -> list[tuple[int, int, float]]:
        return sorted(row for t in tables for row in zip(t.graph.user_codes, t.items, t.values, strict=True))

    assert list_rows(train, test) == list_rows(ratings)
    assert test.num_ratings / ratings.num_ratings == pytest.approx(0.3, abs=0.07)


@pytest.mark.parametrize(
    ("starts", "items", "values"),
    [
        ([0, 2], [1, 1], [1.0, 2.0]),
        ([0, 2], [1, 0], [1.0, 2.0]),
        ([0, 2], [0, 9], [1.0, 2.0]),
        ([0, 3], [0, 1], [1.0, 2.0]),
        ([0, 2], [0, 1], [1.0, np.nan]),
        ([1, 2], [0, 1], [1.0, 2.0]),
    ],
)
def test_what_is_no_table_is_refused(starts: list[int], items: list[int], values: list[float]) -> None:
    with pytest.raises(InvalidInput):
        Ratings(np.array(starts), np.array(items, np.int32), np.array(values), 5)


def test_the_generator_gives_what_it_says() -> None:
    setting = GeneratedRatings(4_000, 300, 40.0, zipf_exponent=1.0, activity_spread=0.5)
    ratings = setting.draw(np.random.default_rng(5))
    # Independent cells: 160,000 expected ratings, standard deviation below 400.
    assert ratings.num_ratings == pytest.approx(160_000, rel=0.02)
    assert set(np.unique(ratings.values * 2.0)) <= set(range(1, 11))
    sizes = np.sort(ratings.item_counts)[::-1]
    # Where nobody is near to rating everything, popularity falls as 1 / rank.
    slope = np.polyfit(np.log(np.arange(30, 300)), np.log(sizes[30:]), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.1)
    repeated = setting.draw(np.random.default_rng(5))
    assert np.array_equal(repeated.items, ratings.items)
    assert np.array_equal(repeated.values, ratings.values)


def test_generated_ratings_have_the_spread_that_is_planted() -> None:
    spreads = {"user_offset_spread": 0.0, "rounding_step": 0.0, "error_spread": 0.0}
    quiet = GeneratedRatings(3_000, 60, 25.0, 0.0, 0.0, 3, lowest=-50.0, highest=50.0, **spreads)
    ratings = quiet.draw(np.random.default_rng(1))
    # Variance of an offset and of <taste, trait>: 0.45^2 + 0.5^2; 60 items make it uncertain by a fifth.
    assert ratings.values.var() == pytest.approx(0.4525, rel=0.6)
    # Users' own offsets: the variance of users' means rises by that, 0.36 with a standard error of 0.01.
    with_own = replace(quiet, user_offset_spread=0.6).draw(np.random.default_rng(1))
    means = [
        np.bincount(one.graph.user_codes, one.values) / np.diff(one.starts) for one in (with_own, ratings)
    ]
    assert means[0].var() - means[1].var() == pytest.approx(0.36, abs=0.05)
    dense = np.zeros((3_000, 60))
    dense[ratings.graph.user_codes, ratings.items] = 1.0
    # With Zipf exponent 0 and equal activity every cell is as likely.
    assert dense.mean(axis=0) == pytest.approx(25.0 / 60.0, abs=0.05)
