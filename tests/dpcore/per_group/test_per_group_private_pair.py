"""The pair that is chosen privately: exact privacy over neighbours, wrong variants, the draw, and what it costs."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpcore.common import mechanisms
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours, ReleaseFacts
from dpcore.common.programs import Program
from dpcore.data import samples
from dpcore.data.task_facets import PairSizes
from dpcore.per_group import private_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import RESOLUTION, PrivatePairProblem
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.private_choice.choice import normalise_log_weights
from tests.dpcore.neighbours import list_neighbours

ADD, REPLACE = Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER
User = tuple[int, ...]
"""Amounts of one user, one per group."""
EXTREME: tuple[User, ...] = (
    (1,), (5,), (1, 1, 1, 1), (5, 5, 5, 5), (5,) * 40, (1,) * 40, (5, 1), (5, 1, 1, 1), (2, 2), (3,) * 4,
    (2,) * 40, (4, 4, 4), (5, 5),
)  # fmt: skip


def pairs_of(users: list[User]) -> Any:
    if not users:
        return None
    codes = np.repeat(np.arange(len(users)), [len(user) for user in users])
    groups = np.concatenate([np.arange(len(user)) for user in users])
    return UserGroupPairs(codes, groups, np.concatenate(users), 40)


def make_problem(
    neighbours: Neighbours = ADD, epsilon: float = 1.0, release: float = 2.0, gaussian: bool = False
):
    mechanism, delta = (NoiseKind.GAUSSIAN, 1e-5) if gaussian else (NoiseKind.LAPLACE, None)
    parameters = PerGroupParameters(
        release, mechanism=mechanism, delta=delta, neighbours=neighbours, num_groups=4
    )  # 4 x 5 candidates, and users in more groups than the list has.
    return PrivatePairProblem(parameters, epsilon, 5)


ALL_PAIRS = tuple(itertools.product((1, 2, 3, 4), (1, 2, 3, 4, 5)))


def log_law(
    pair_problem: PrivatePairProblem,
    users: list[User],
    wrong: str = "",
    candidates: tuple[tuple[int, int], ...] = ALL_PAIRS,
) -> np.ndarray:
    """The law by the definition of its score in floats, pair by pair; ``wrong`` names what is done wrongly."""
    groups_counted = max([len(user) for user in users] or [0]) / pair_problem.num_groups
    noise = {
        (l, c): float(n)
        for l, c, n in zip(*pair_problem.candidates, pair_problem.total_noises, strict=True)  # noqa: E741
    }

    def sum_kept(l: int, c: int) -> float:  # noqa: E741
        return sum(
            (1.0 if wrong == "share forgotten" else min(1.0, l / len(user))) * sum(min(a, c) for a in user)
            for user in users
        )

    q = {
        at: noise[at] * (groups_counted if wrong == "groups of the data" else 1.0) - sum_kept(*at)
        for at in candidates
    }
    scores = []
    for i in candidates:
        log_odds = []
        for j in candidates:
            if i == j:
                continue
            d_i, d_j, d_m = (l * c for l, c in (i, j, (min(i[0], j[0]), min(i[1], j[1]))))  # noqa: E741
            distance = max(d_i, d_j) - d_m
            if wrong == "smaller distance":
                distance = max(min(d_i, d_j) - d_m, 1)
            elif pair_problem.parameters.neighbours is REPLACE and wrong != "distance of adding":
                distance = d_i + d_j - 2 * d_m
            log_odds.append((q[i] - q[j] + 2.0 / pair_problem.epsilon * (d_i - d_j)) / distance)
        scores.append(max(log_odds))
    weight = np.array([-2.0 * math.log(l * c) for l, c in candidates])  # noqa: E741
    logits = weight - pair_problem.epsilon / (1.0 if wrong == "no 2" else 2.0) * np.array(scores)
    return logits - np.logaddexp.reduce(logits)


def tables(seed: int, number: int) -> list[list[User]]:
    generator = np.random.default_rng(seed)
    user_tables: list[list[User]] = [[]]
    for _ in range(number - 1):
        users = []
        for _ in range(generator.integers(0, 9)):
            if generator.random() < 0.4:
                users.append(EXTREME[generator.integers(len(EXTREME))])
            else:
                users.append(tuple(generator.integers(1, 6, generator.integers(1, 7)).tolist()))
        user_tables.append(users)
    return user_tables


def other_users(seed: int) -> list[User]:
    generator = np.random.default_rng(seed)
    return [*EXTREME, *(tuple(generator.integers(1, 6, generator.integers(1, 7)).tolist()) for _ in range(4))]


def neighbours_of(users: list[User], relation: Neighbours, seed: int) -> list[list[User]]:
    """Some of the neighbours: all others come, and take the place of the first."""
    if relation is ADD:
        return [[*users, other_user] for other_user in other_users(seed)]
    return [[other_user, *users[1:]] for other_user in other_users(seed)] if users else []


def compute_log_law(pair_problem: PrivatePairProblem, users: list[User]) -> np.ndarray:
    return np.log(private_pair.compute_probabilities(pair_problem, pairs_of(users)))


POOL: tuple[User, ...] = (
    *EXTREME,
    *other_users(1)[-4:],
    *other_users(2)[-4:],
    *other_users(3)[-4:],
    *other_users(4)[-4:],
)


def laws_of_pool(pair_problem: PrivatePairProblem) -> Callable[[np.ndarray], np.ndarray]:
    """Log chances, of tables as numbers of users of each kind: what users with k groups keep together adds up."""
    k = np.unique([len(user) for user in POOL])
    added = np.zeros((len(POOL), k.size, 5), dtype=np.int64)
    for pool_index, user in enumerate(POOL):
        single_user = pairs_of([user])
        (size,), (sums,) = pair_problem.sum_kept_by_groups(single_user)
        added[pool_index, np.searchsorted(k, size)] = sums

    def laws(tables: np.ndarray) -> np.ndarray:
        distances = pair_problem.score_distances(
            pair_problem.combine_shares(k, np.einsum("tu,ukc->tkc", tables, added))
        )
        return normalise_log_weights(
            pair_problem.log_prior - pair_problem.epsilon / (2.0 * pair_problem.sensitivity) * distances
        )

    return laws


def draw_count_tables(seed: int, number: int) -> np.ndarray:
    """Tables of up to eight users, the first empty, as numbers of users of each kind, shape (number, kinds)."""
    generator = np.random.default_rng(seed)
    count_tables = np.zeros((number, len(POOL)), dtype=np.int64)
    for table in count_tables[1:]:
        for _ in range(generator.integers(0, 9)):
            table[generator.integers(len(EXTREME) if generator.random() < 0.4 else len(POOL))] += 1
    return count_tables


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_no_neighbour_moves_a_log_chance_by_more_than_epsilon(relation: Neighbours, gaussian: bool) -> None:
    problem, count_tables = make_problem(relation, gaussian=gaussian), draw_count_tables(3 + gaussian, 400)
    laws = laws_of_pool(problem)
    table_indices, neighbours = list_neighbours(count_tables, relation)
    largest = float(np.abs(laws(count_tables)[table_indices] - laws(neighbours)).max())
    assert largest <= 1.0 + 1e-9
    assert largest > 0.8  # Else a law that hears nobody would pass, too.


def test_the_law_of_a_pool_is_that_of_its_users() -> None:
    for relation, table in itertools.product((ADD, REPLACE), draw_count_tables(7, 10)[1:]):
        users = [user for user, times in zip(POOL, table, strict=True) for _ in range(times)]
        computed = laws_of_pool(make_problem(relation))(table[None])[0]
        np.testing.assert_allclose(computed, compute_log_law(make_problem(relation), users), atol=1e-5)


def test_the_law_is_that_of_the_definition() -> None:
    for relation, users in itertools.product((ADD, REPLACE), tables(5, 12)):
        problem = make_problem(relation, epsilon=0.7)
        np.testing.assert_allclose(compute_log_law(problem, users), log_law(problem, users), atol=2e-4)


WRONG = {
    ADD: ("smaller distance", "no 2", "share forgotten", "groups of the data"),
    REPLACE: ("no 2", "share forgotten"),
}


@pytest.mark.long_but("Neighbours.ADD_OR_REMOVE_USER-groups of the data", "Neighbours.REPLACE_USER-no 2")
@pytest.mark.parametrize(("relation", "wrong"), [(r, w) for r, all_ in WRONG.items() for w in all_])
def test_the_same_search_catches_what_is_wrong(relation: Neighbours, wrong: str) -> None:
    problem = make_problem(relation)

    def find_largest_ratio(mistake: str) -> float:
        largest = 0.0
        for seed, users in enumerate(tables(3, 8)):
            own_law = log_law(problem, users, mistake)
            for neighbour in neighbours_of(users, relation, seed):
                largest = max(largest, float(np.abs(own_law - log_law(problem, neighbour, mistake)).max()))
        return largest

    assert find_largest_ratio(wrong) > 1.05
    assert find_largest_ratio("") <= 1.0 + 1e-9


def test_replacing_a_user_needs_the_distance_of_replacing() -> None:
    """Two candidates, i = (4, 1) and j = (1, 5), D = 4 and 5, D_m = 1. A user with 1 in each of 40 groups keeps 4 under
    i and 1 under j; one with 5 in one group keeps 1 under i and 5 under j. Where the first is replaced by the second,
    K_i - K_j falls from 3 to -4, by 7 = 4 + 5 - 2. Divided by max(4, 5) - 1 = 4 the score moves by 7/4, by 7 by 1; and
    s_j = -s_i, so that the log odds move by epsilon times as much.
    """
    problem, rest, two = make_problem(REPLACE, release=1.0), [(1,) * 40] * 4, ((4, 1), (1, 5))

    def measure_movement(wrong: str) -> float:
        own_law, neighbour_law = (
            log_law(problem, [first_user, *rest], wrong, two) for first_user in ((1,) * 40, (5,))
        )
        assert (own_law[0] - own_law[1]) - (neighbour_law[0] - neighbour_law[1]) == pytest.approx(
            7 / 4 if wrong else 1.0
        )
        return float(np.abs(own_law - neighbour_law).max())

    assert measure_movement("") <= 1.0
    assert measure_movement("distance of adding") > 1.7


def test_a_pair_less_changes_nothing() -> None:
    problem = make_problem()
    fewer = (*ALL_PAIRS[:7], *ALL_PAIRS[8:])
    for users in tables(8, 6):
        own_law = log_law(problem, users, "", fewer)
        for neighbour in neighbours_of(users, ADD, 1):
            assert np.abs(own_law - log_law(problem, neighbour, "", fewer)).max() <= 1.0 + 1e-9


def test_counts_sums_and_users_are_the_same_where_they_should_be() -> None:
    """A sum whose unit is 0.25 with amounts of so many quarters is the count; of users only L0 is left."""
    users: list[User] = [(3, 1, 2), (5,), (1, 1, 4, 4)]
    rows = pairs_of(users)
    # With noise of real numbers: that on counts is whole in OpenDP.
    parameters = dataclasses.replace(make_problem().parameters, program=Program.PYTHON)
    of_rows = dataclasses.replace(make_problem(), parameters=parameters)
    parameters = dataclasses.replace(parameters, statistic=Statistic.SUM)
    of_sum = PrivatePairProblem(parameters, 1.0, 5, 0.25)
    sums = UserGroupPairs(rows.user_codes, rows.group_codes, rows.rows, 40, rows.rows * 0.25)
    np.testing.assert_allclose(of_sum.total_noises, 0.25 * of_rows.total_noises)
    np.testing.assert_allclose(
        private_pair.compute_probabilities(of_sum, sums),
        private_pair.compute_probabilities(of_rows, rows),
        rtol=1e-6,
    )
    # What is negative counts as 0, and what is beyond the maximum as the maximum.
    beyond = UserGroupPairs(
        rows.user_codes, rows.group_codes, rows.rows, 40, np.where(rows.rows > 2, 1e9, -3.0)
    )
    high = UserGroupPairs(
        rows.user_codes, rows.group_codes, rows.rows, 40, np.where(rows.rows > 2, 1.25, 0.0)
    )
    assert of_sum.compute_distances(beyond) == of_sum.compute_distances(high)
    of_users = PrivatePairProblem(dataclasses.replace(parameters, statistic=Statistic.USERS), 1.0, 5)
    assert of_users.candidates[0].tolist() == [1, 2, 3, 4]
    assert set(of_users.candidates[1]) == {1}
    assert of_users.compute_distances(rows) == of_users.compute_distances(
        pairs_of([(1,) * len(user) for user in users])
    )


def test_how_pairs_are_distributed_is_enough() -> None:
    users: list[User] = [(3, 1, 2), (5,), (1, 1, 4, 4), (3, 1)]
    rows = pairs_of(users)
    sizes = PairSizes(
        np.repeat([len(user) for user in users], [len(user) for user in users]),
        rows.rows,
        np.ones(rows.num_pairs, dtype=np.int64),
        np.bincount(rows.group_codes, weights=rows.rows).astype(np.int64),
        np.bincount(rows.group_codes),
    )
    assert make_problem().compute_distances(sizes) == make_problem().compute_distances(rows)
    np.testing.assert_allclose(
        private_pair.compute_errors(make_problem(), sizes), private_pair.compute_errors(make_problem(), rows)
    )


@pytest.mark.long
def test_steps_do_not_overflow() -> None:
    """Numbers beyond 64 bits: the same chances as by floats of the definition, up to the grid's size."""
    problem = PrivatePairProblem(PerGroupParameters(1e-3, num_groups=10**8), 1.0, 10**9)
    rows = UserGroupPairs([0, 0, 1], [0, 1, 0], [10**9, 1, 7], 10**8)
    scores = problem.compute_scores(rows)
    assert all(abs(score) < 2**62 + 2**50 for score in scores)
    assert (
        private_pair.compute_probabilities(problem, rows)[0] > 0.5
    )  # 1e11 users short: the weights and the price decide.


def test_an_empty_table_draws_by_public_numbers_alone() -> None:
    problem = make_problem()
    np.testing.assert_allclose(
        np.log(private_pair.compute_probabilities(problem, None)), log_law(problem, []), atol=1e-5
    )


@pytest.mark.long
def test_draws_follow_the_law_and_are_charged_before() -> None:
    from scipy.stats import chisquare

    problem, rows = make_problem(epsilon=2.0), pairs_of([(3, 1, 2), (5,), (1, 1, 4, 4), (2, 2)] * 3)
    draw = mechanisms.make_selector(problem.compute_scores(rows), 2.0 * problem.sensitivity / problem.epsilon)
    observed = np.bincount([draw() for _ in range(3000)], minlength=20)
    law = private_pair.compute_probabilities(problem, rows)
    often = law * 3000 >= 5
    assert often.sum() > 3
    draw_count_tables = [np.r_[x[often][:-1], x[often][-1] + x[~often].sum()] for x in (observed, law * 3000)]
    assert chisquare(*draw_count_tables).pvalue > 1e-4  # A false alarm once in 10,000 runs.
    charges: list[ReleaseFacts] = []
    selection = private_pair.choose_pair(problem, rows, charges.append)
    assert charges == [selection.facts]
    assert 0.0 < selection.facts.epsilon <= 2.0
    assert (selection.max_groups, selection.max_amount) in ALL_PAIRS
    assert problem.sensitivity == RESOLUTION + 1

    def refuse(_: ReleaseFacts) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        private_pair.choose_pair(problem, rows, refuse)


def test_errors_are_those_of_the_groups() -> None:
    """F by hand: every group's |bias| and mean noise, the bias from the shares that are kept."""
    problem, users = make_problem(), [(3, 1, 2), (5,), (1, 1, 4, 4)]
    rows = pairs_of(users)
    for index, (groups, amount) in enumerate(ALL_PAIRS):
        bias = np.zeros(4)
        for user in users:
            share = min(1.0, groups / len(user))
            bias[: len(user)] += [a - share * min(a, amount) for a in user]
        # Whole noise of scale b = L0 L-infinity / epsilon at epsilon = 2 has E|z| = 1 / sinh(1 / b).
        expected = bias.sum() + 4 / math.sinh(2.0 / (groups * amount))
        assert private_pair.compute_errors(problem, rows)[index] == pytest.approx(expected, rel=1e-5)


def test_a_draw_is_nearly_the_best_pair_on_a_sample() -> None:
    """On the shop's products, x = epsilon of the choice times groups over epsilon well above 5."""
    data = samples.load("shop-events")
    problem = PrivatePairProblem(PerGroupParameters(1.0, num_groups=data.pairs.num_tasks), 0.5, 10_000)
    rows = UserGroupPairs.from_facet(data.pairs)
    errors = private_pair.compute_errors(problem, rows)
    assert private_pair.find_expected_excess(problem) == 0.05
    assert float(private_pair.compute_probabilities(problem, rows) @ errors) < 1.05 * float(errors.min())


def test_what_cannot_be_is_refused_with_all_reasons() -> None:
    parameters = PerGroupParameters(1.0)
    with pytest.raises(InvalidInput, match="number of groups") as refused:
        PrivatePairProblem(parameters, 0.0, 0, -1.0)
    assert len(refused.value.problems) == 5
    for wrong, reason in (
        (dataclasses.replace(parameters, statistic=Statistic.SIGNED_SUM, num_groups=3), "signed sum"),
        (
            dataclasses.replace(
                parameters,
                selection=SelectionRule.TRUNCATED_GEOMETRIC,
                selection_share=0.5,
                selection_delta=1e-6,
            ),
            "public list",
        ),
    ):
        with pytest.raises(InvalidInput, match=reason):
            PrivatePairProblem(wrong, 1.0, 10)
