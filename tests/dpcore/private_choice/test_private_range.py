"""The range that is chosen privately: exact privacy over neighbours, wrong variants, the draw."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Neighbours, ReleaseFacts
from dpcore.dataset import Values
from dpcore.private_choice import private_range
from dpcore.private_choice.choice import normalise_log_weights
from dpcore.private_choice.private_range import RangeProblem
from dpcore.private_choice.scores import RESOLUTION
from tests.dpcore.neighbours import list_neighbours
from tests.dpcore.private_choice.range_laws import centre_probabilities, end_probabilities

ADD, REPLACE, VALUES = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER, Neighbours.REPLACE_VALUES)
User = tuple[float, ...]
EXTREME: tuple[User, ...] = (
    (100.0,), (-100.0,), (0.0,), (100.0, -100.0), (100.0,) * 7, (-100.0,) * 7, (100.0, 0.0, 0.0), (1.5, -1.5),
    (3.0,) * 6 + (-100.0,), (1e9,), (-1e9, 1e9),
)  # fmt: skip
BOTH_ENDS = RangeProblem(4.0, 1.0, 1.0, 64.0, centre=0.0)
WIDTHS = BOTH_ENDS.grid


def values_of(users: list[User]) -> Values | None:
    if not users:
        return None
    return Values(np.repeat(np.arange(len(users)), [len(user) for user in users]), np.concatenate(users))


def tables(seed: int, number: int) -> list[list[User]]:
    generator = np.random.default_rng(seed)
    user_tables: list[list[User]] = [[]]
    for _ in range(number - 1):
        # As many as it takes to come near the target on both sides, and some more.
        far = [
            EXTREME[integer]
            for integer in generator.integers(len(EXTREME), size=2)
            for _ in range(generator.integers(6))
        ]
        user_tables.append([*far, *(random_user(generator) for _ in range(generator.integers(0, 6)))])
        # Users beyond all candidates move those on both sides of the target at once, where others stand between them.
        (a, b, c, d), x = generator.integers(0, 7, 4), generator.choice([1.01, 8.0, 30.0], 2)
        user_tables.append([(100.0,)] * a + [(x[0],)] * b * 2 + [(-100.0,)] * c + [(-x[1],)] * d * 2)
    return user_tables


def random_user(generator: np.random.Generator) -> User:
    if generator.random() < 0.4:
        return EXTREME[generator.integers(len(EXTREME))]
    return tuple(np.round(generator.normal(0.0, 10.0, generator.integers(1, 6)), 2).tolist())


def neighbours_of(users: list[User], relation: Neighbours, seed: int) -> list[list[User]]:
    generator = np.random.default_rng(seed)
    other_users = [*EXTREME, *(random_user(generator) for _ in range(3))]
    if relation is ADD:
        return [[*users, other_user] for other_user in other_users]
    return [[other_user, *users[1:]] for other_user in other_users] if users else []


POOL: tuple[User, ...] = (
    *EXTREME, *((x,) for x in (1.01, 8.0, 30.0, -1.01, -8.0, -30.0)),
    *(random_user(np.random.default_rng(seed)) for seed in range(16)),
)  # fmt: skip


def pooled(seed: int, number: int) -> np.ndarray:
    """Tables as numbers of users of each kind of the pool, the first empty, shape (number, kinds)."""
    generator = np.random.default_rng(seed)
    count_tables = np.zeros((number, len(POOL)), dtype=np.int64)
    for table in count_tables[1::2]:
        for integer in generator.integers(len(EXTREME), size=2):
            table[integer] += generator.integers(6)
        np.add.at(table, generator.integers(len(POOL), size=generator.integers(6)), 1)
    kinds_above, kinds_below = (
        np.arange(len(EXTREME), len(EXTREME) + 6)[item] for item in (slice(3), slice(3, 6))
    )
    for table in count_tables[2::2]:
        # Users beyond all candidates move those on both sides of the target at once, where others stand between them.
        table[[0, 1]] = generator.integers(0, 7, 2)
        table[[generator.choice(kinds_above), generator.choice(kinds_below)]] = 2 * generator.integers(
            0, 7, 2
        )
    return count_tables


def laws_of_pool(problem: RangeProblem) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Log chances of each draw, of tables as numbers of users of each kind: what users add to a query adds up."""
    anchor, cap = problem.anchor, int(problem.max_contributions)
    pool_values = [values_of([user]) for user in POOL]
    if problem.clamps_users:
        pool_values, cap = [private_range.scale_deviations(v, anchor, cap) for v in pool_values], 1
    sides = [
        lambda v: (private_range.negate_values(v), problem.list_ends(-anchor)),
        lambda v: (v, problem.list_ends(anchor)),
    ]
    added = [
        np.array([private_range.sum_tails(*side(values), cap) for values in pool_values])
        for side in sides[-problem.num_ends :]
    ]

    def laws(tables: np.ndarray) -> list[np.ndarray]:
        log_chances = []
        for each in added:
            query = np.einsum("tk,kqc->qtc", tables, each)
            log_chances.append(normalise_log_weights(problem.compute_logits((query[0], query[1]), anchor)))
        return log_chances

    return laws


def log_laws(problem: RangeProblem, users: list[User]) -> list[np.ndarray]:
    return [np.log(law) for law in end_probabilities(problem, values_of(users), problem.anchor)]


def most_moved(problem: RangeProblem, seed: int, number: int) -> float:
    """Largest log ratio of a pair of ends drawn independently: that of L and that of U add up."""
    laws, count_tables = laws_of_pool(problem), pooled(seed, number)
    largest = 0.0
    for chunk in np.array_split(count_tables, 8):  # Small enough for the processor's memory.
        table_indices, neighbours = list_neighbours(chunk, problem.neighbours)
        log_ratios = [a[table_indices] - b for a, b in zip(laws(chunk), laws(neighbours), strict=True)]
        largest = max(
            largest,
            sum(m.max(axis=1) for m in log_ratios).max(),
            sum(-m.min(axis=1) for m in log_ratios).max(),
        )
    return float(largest)


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", [ADD, REPLACE, VALUES])
@pytest.mark.parametrize("known", [False, True])
def test_no_neighbour_moves_a_log_chance_by_more_than_epsilon(known: bool, relation: Neighbours) -> None:
    ends = {"centre": None, "lower": 0.0} if known else {}
    problem = dataclasses.replace(BOTH_ENDS, neighbours=relation, max_contributions=2 if known else 1, **ends)
    assert 0.6 < most_moved(problem, 4, 400) <= 1.0 + 1e-9


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", [ADD, REPLACE, VALUES])
def test_clamped_users_move_a_log_chance_by_at_most_epsilon(relation: Neighbours) -> None:
    problem = dataclasses.replace(BOTH_ENDS, neighbours=relation, max_contributions=3, clamps_users=True)
    assert 0.5 < most_moved(problem, 4, 400) <= 1.0 + 1e-9


def test_the_law_of_clamped_users_is_that_of_the_definition() -> None:
    problem = dataclasses.replace(BOTH_ENDS, epsilon_release=8.0, max_contributions=3, clamps_users=True)
    for users in tables(6, 15):
        # One row per user: three rows or more count in full, one row a third.
        one_row_each = [(min(len(user), 3) / 3.0 * float(np.mean(user)),) for user in users]
        for computed, expected in zip(log_laws(problem, users), reference(one_row_each), strict=True):
            np.testing.assert_allclose(computed, expected, atol=1e-5)
    largest = np.finfo(np.float64).max
    values = private_range.scale_deviations(Values([0, 0, 1], [largest, largest, -largest]), 5.0, 1)
    assert values.values.tolist() == [largest, -largest]


def test_the_law_of_a_pool_is_that_of_its_users() -> None:
    for table in pooled(7, 12):
        users = [user for user, times in zip(POOL, table, strict=True) for _ in range(times)]
        for problem in (
            BOTH_ENDS,
            dataclasses.replace(BOTH_ENDS, centre=None, lower=0.0, max_contributions=3),
            dataclasses.replace(BOTH_ENDS, max_contributions=3, clamps_users=True),
        ):
            for computed, expected in zip(
                laws_of_pool(problem)(table[None]), log_laws(problem, users), strict=True
            ):
                np.testing.assert_allclose(computed[0], expected, atol=1e-5)


def reference(users: list[User], wrong: str = "", epsilon: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Log chances of -w and of w by the definition, user by user, in floats."""
    log_chances = []
    candidates = np.r_[-WIDTHS[::-1], WIDTHS] if wrong == "either side" else WIDTHS
    for sign in (-1.0, 1.0):
        ends = []
        for beyond in (np.greater, np.greater_equal):
            query = np.zeros(candidates.size)
            for user in users:
                rows = beyond(sign * np.array(user)[:, None], candidates).sum(axis=0)
                query += rows / (1 if wrong == "rows" else len(user))
            ends.append(query)
        target = 0.25 + 2.0 / epsilon
        distance = np.maximum(np.maximum(ends[0] - target, target - ends[1]), 0.0)
        logits = -1.5 * np.log(np.abs(candidates)) - epsilon / 2.0 * distance
        log_chances.append(logits - np.logaddexp.reduce(logits))
    return log_chances[0], log_chances[1]


def test_the_law_is_that_of_the_definition() -> None:
    for users in tables(6, 15):
        for computed, expected in zip(log_laws(BOTH_ENDS, users), reference(users), strict=True):
            np.testing.assert_allclose(computed, expected, atol=1e-5)


@pytest.mark.long
def test_the_same_search_catches_what_is_wrong() -> None:
    def find_largest_ratio(relation: Neighbours, wrong: str) -> float:
        largest = 0.0
        for seed, users in enumerate(tables(4, 12)):
            own_law = reference(users, wrong)
            for neighbour in neighbours_of(users, relation, seed):
                log_ratios = [a - b for a, b in zip(own_law, reference(neighbour, wrong), strict=True)]
                largest = max(largest, sum(m.max() for m in log_ratios), -sum(m.min() for m in log_ratios))
        return largest

    assert find_largest_ratio(ADD, "") <= 1.0 + 1e-9
    assert find_largest_ratio(ADD, "rows") > 2.0  # One user of seven rows counts seven times.
    assert find_largest_ratio(REPLACE, "") > 1.1  # Replaced, with both ends at the price of one.
    # Pairs with L >= U among the candidates: a row between them lies beyond both.
    assert find_largest_ratio(ADD, "either side") > 1.1


def test_shares_of_both_sides_never_exceed_a_user() -> None:
    """Rounding included, over users of all sizes and a cap below and above them."""
    generator = np.random.default_rng(2)
    for cap in (1, 4, 50):
        for _ in range(20):
            user = tuple(generator.normal(0.0, 10.0, generator.integers(1, 40)).tolist())
            for values in (values_of([user]), values_of([user, user])):
                count = 1 if values is not None and values.user_codes.max() == 0 else 2
                share_above = private_range.sum_tails(values, np.array([0.0, 1e-9]), cap)[1][0]
                share_below = private_range.sum_tails(
                    private_range.negate_values(values), np.array([0.0, 1e-9]), cap
                )[1][0]
                assert 0 <= share_above + share_below <= count * RESOLUTION
    (share,), _ = private_range.sum_tails(values_of([(5.0, 1.0, 7.0)]), np.array([3.0]), 6)
    assert share == 2 * RESOLUTION // 6  # Two of three rows above, of a user with half of the cap.


@pytest.mark.long
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_centre_that_is_drawn_is_paid_for(relation: Neighbours) -> None:
    """The median at a quarter of epsilon, and the half-width at the rest, whatever the centre was."""
    problem = dataclasses.replace(BOTH_ENDS, centre=None, neighbours=relation)
    centre_ratio, width_ratio = 0.0, 0.0
    for seed, users in enumerate(tables(9, 12)):
        for neighbour in neighbours_of(users, relation, seed):
            own_law, neighbour_law = (
                np.log(centre_probabilities(problem, values_of(item))) for item in (users, neighbour)
            )
            centre_ratio = max(centre_ratio, float(np.abs(own_law - neighbour_law).max()))
            for centre in (0.0, -64.0, float(problem.centres[3])):
                (a,), (b,) = (
                    end_probabilities(problem, values_of(item), centre) for item in (users, neighbour)
                )
                width_ratio = max(width_ratio, float(np.abs(np.log(a) - np.log(b)).max()))
    assert 0.15 < centre_ratio <= 0.25 + 1e-9
    assert 0.4 < width_ratio <= 0.75 + 1e-9


def test_a_centre_is_near_the_median_where_there_are_many_users() -> None:
    generator = np.random.default_rng(1)
    users = [tuple(generator.normal(20.0, 1.0, 3).tolist()) for _ in range(3000)]
    problem = dataclasses.replace(BOTH_ENDS, centre=None)
    law = centre_probabilities(problem, values_of(users))
    assert law @ (np.abs(problem.centres - 20.0) < 1.0) > 0.95


def test_centres_far_from_all_data_weigh_less() -> None:
    """Sixty users about 8, heard at an epsilon of 8 and not at 0.1, where all centres alike would be drawn anywhere."""
    generator = np.random.default_rng(3)
    values = values_of([tuple(generator.normal(8.0, 2.0, 2).tolist()) for _ in range(60)])
    for epsilon, power in ((0.1, 1.0), (8.0, 0.5)):
        problem = RangeProblem(1.0, epsilon, 0.01, 1e6, users=60.0)
        law = centre_probabilities(problem, None)
        expected = np.maximum(np.abs(problem.centres), 0.01) ** -power
        np.testing.assert_allclose(law, expected / expected.sum(), rtol=1e-5)
        distances = np.abs(problem.centres - 8.0)
        mean_distance = centre_probabilities(problem, values) @ distances
        unweighted = np.exp(np.log(centre_probabilities(problem, values)) - problem.centre_log_prior)
        assert mean_distance < 1.01 * (unweighted / unweighted.sum()) @ distances
        if epsilon < 1.0:
            assert mean_distance < 0.2 * (unweighted / unweighted.sum()) @ distances


def test_an_empty_table_draws_from_the_weights_alone() -> None:
    for law in end_probabilities(BOTH_ENDS, None, 0.0):
        np.testing.assert_allclose(law, WIDTHS**-1.5 / (WIDTHS**-1.5).sum(), rtol=1e-5)


def test_candidates_that_are_the_centre_in_floats_are_left_out() -> None:
    problem = RangeProblem(1.0, 1.0, 1e-3, 1e3, centre=1e14)
    assert problem.list_ends(1e14)[0] > 1e14
    assert -problem.list_ends(-1e14)[0] < 1e14
    with pytest.raises(InvalidInput, match="can be told from 0"):
        RangeProblem(1.0, 1.0, 1e-6, 1e-4, centre=1e14)


@pytest.mark.long
def test_a_draw_follows_the_law_and_is_charged_once_before() -> None:
    generator = np.random.default_rng(5)
    values = values_of([tuple(generator.normal(0.0, 8.0, 4).tolist()) for _ in range(60)])
    problem = dataclasses.replace(BOTH_ENDS, epsilon=4.0)
    selections = [private_range.choose(problem, values) for _ in range(300)]
    lower, upper = end_probabilities(problem, values, 0.0)
    for law, found in (
        (lower, [-selection.lower for selection in selections]),
        (upper, [selection.upper for selection in selections]),
    ):
        # Smirnov's bound on the largest difference of the shares, for a false alarm of 1e-4: sqrt(ln(2e4) / (2 n)).
        shares_reached = np.searchsorted(np.sort(found), WIDTHS * (1 + 1e-9)) / 300
        assert np.abs(shares_reached - np.cumsum(law)).max() < math.sqrt(math.log(2e4) / 600)
    charges: list[ReleaseFacts] = []
    for variant in (
        problem,
        dataclasses.replace(problem, centre=None),
        dataclasses.replace(problem, neighbours=REPLACE),
    ):
        charges.clear()
        found = private_range.choose(variant, values, charges.append)
        assert charges == [found.facts]
        assert found.facts.epsilon == 4.0
        assert found.lower < found.upper
    with_known_end = private_range.choose(dataclasses.replace(problem, centre=None, lower=-3.5), values)
    assert with_known_end.lower == -3.5

    def refuse(_: ReleaseFacts) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        private_range.choose(problem, values, refuse)


def test_what_the_ends_cost_together() -> None:
    """Halved where a user is replaced and both ends are drawn; never more than was asked for in all."""
    for epsilon in (1e-5, 0.1, 0.3, 1.0, 1e3):
        of_both = dataclasses.replace(BOTH_ENDS, epsilon=epsilon)
        assert of_both.epsilon_of_end == epsilon
        for relation in (REPLACE, VALUES):
            assert dataclasses.replace(of_both, neighbours=relation).epsilon_of_end * 2 == epsilon
            of_one = dataclasses.replace(of_both, neighbours=relation, centre=None, lower=0.0)
            assert of_one.epsilon_of_end == epsilon
        with_centre = dataclasses.replace(of_both, centre=None)
        assert with_centre.epsilon_of_end < 0.75 * epsilon * (1 + 1e-15)


def test_what_cannot_be_is_refused_with_all_reasons() -> None:
    with pytest.raises(InvalidInput) as refused:
        RangeProblem(0.0, 0.0, 2.0, 1.0, centre=1.0, lower=0.0, max_contributions=0)
    assert len(refused.value.problems) == 5
