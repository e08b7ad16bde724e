"""The pair that is chosen privately: exact privacy over neighbours, wrong variants, the draw, and what it costs."""

from __future__ import annotations

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
from dpcore.data import samples
from dpcore.dataset import PairSizes
from dpcore.per_group import private_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import PerGroupParameters, Statistic
from dpcore.per_group.private_pair import RESOLUTION, PrivatePairProblem
from dpcore.per_group.selection_rules import SelectionRule
from dpcore.private_choice.choice import log_softmax

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


def problem(neighbours: Neighbours = ADD, epsilon: float = 1.0, release: float = 2.0, gaussian: bool = False):
    kind, delta = (NoiseKind.GAUSSIAN, 1e-5) if gaussian else (NoiseKind.LAPLACE, None)
    asked = PerGroupParameters(
        release, mechanism=kind, delta=delta, neighbours=neighbours, num_groups=4
    )  # 4 x 5 candidates, and users in more groups than the list has.
    return PrivatePairProblem(asked, epsilon, 5)


ALL = tuple(itertools.product((1, 2, 3, 4), (1, 2, 3, 4, 5)))


def log_law(
    asked: PrivatePairProblem,
    users: list[User],
    wrong: str = "",
    candidates: tuple[tuple[int, int], ...] = ALL,
) -> np.ndarray:
    """The law by the definition of its score in floats, pair by pair; ``wrong`` names what is done wrongly."""
    groups_counted = max([len(user) for user in users] or [0]) / asked.num_groups
    noise = {
        (l, c): float(n)
        for l, c, n in zip(*asked.candidates, asked.noise, strict=True)  # noqa: E741
    }

    def kept(l: int, c: int) -> float:  # noqa: E741
        return sum(
            (1.0 if wrong == "share forgotten" else min(1.0, l / len(user))) * sum(min(a, c) for a in user)
            for user in users
        )

    q = {
        at: noise[at] * (groups_counted if wrong == "groups of the data" else 1.0) - kept(*at)
        for at in candidates
    }
    scores = []
    for i in candidates:
        found = []
        for j in candidates:
            if i == j:
                continue
            d_i, d_j, d_m = (l * c for l, c in (i, j, (min(i[0], j[0]), min(i[1], j[1]))))  # noqa: E741
            apart = max(d_i, d_j) - d_m
            if wrong == "smaller distance":
                apart = max(min(d_i, d_j) - d_m, 1)
            elif asked.parameters.neighbours is REPLACE and wrong != "distance of adding":
                apart = d_i + d_j - 2 * d_m
            found.append((q[i] - q[j] + 2.0 / asked.epsilon * (d_i - d_j)) / apart)
        scores.append(max(found))
    weight = np.array([-2.0 * math.log(l * c) for l, c in candidates])  # noqa: E741
    logits = weight - asked.epsilon / (1.0 if wrong == "no 2" else 2.0) * np.array(scores)
    return logits - np.logaddexp.reduce(logits)


def tables(seed: int, number: int) -> list[list[User]]:
    generator = np.random.default_rng(seed)
    found: list[list[User]] = [[]]
    for _ in range(number - 1):
        drawn = []
        for _ in range(generator.integers(0, 9)):
            if generator.random() < 0.4:
                drawn.append(EXTREME[generator.integers(len(EXTREME))])
            else:
                drawn.append(tuple(generator.integers(1, 6, generator.integers(1, 7)).tolist()))
        found.append(drawn)
    return found


def others(seed: int) -> list[User]:
    generator = np.random.default_rng(seed)
    return [*EXTREME, *(tuple(generator.integers(1, 6, generator.integers(1, 7)).tolist()) for _ in range(4))]


def neighbours_of(users: list[User], relation: Neighbours, seed: int) -> list[list[User]]:
    """Some of the neighbours: all others come, and take the place of the first."""
    if relation is ADD:
        return [[*users, other] for other in others(seed)]
    return [[other, *users[1:]] for other in others(seed)] if users else []


def of_module(asked: PrivatePairProblem, users: list[User]) -> np.ndarray:
    return np.log(private_pair.compute_probabilities(asked, pairs_of(users)))


POOL: tuple[User, ...] = (*EXTREME, *others(1)[-4:], *others(2)[-4:], *others(3)[-4:], *others(4)[-4:])


def laws_of_pool(asked: PrivatePairProblem) -> Callable[[np.ndarray], np.ndarray]:
    """Log chances, of tables as numbers of users of each kind: what users with k groups keep together adds up."""
    k = np.unique([len(user) for user in POOL])
    added = np.zeros((len(POOL), k.size, 5), dtype=np.int64)
    for kind, user in enumerate(POOL):
        alone = pairs_of([user])
        (size,), (sums,) = asked.kept_by_groups(alone)
        added[kind, np.searchsorted(k, size)] = sums

    def laws(tables: np.ndarray) -> np.ndarray:
        far = asked.score_distances(asked.combine_shares(k, np.einsum("tu,ukc->tkc", tables, added)))
        return log_softmax(asked.log_prior - asked.epsilon / (2.0 * asked.sensitivity) * far)

    return laws


def pooled(seed: int, number: int) -> np.ndarray:
    """Tables of up to eight users, the first empty, as numbers of users of each kind, shape (number, kinds)."""
    generator = np.random.default_rng(seed)
    found = np.zeros((number, len(POOL)), dtype=np.int64)
    for table in found[1:]:
        for _ in range(generator.integers(0, 9)):
            table[generator.integers(len(EXTREME) if generator.random() < 0.4 else len(POOL))] += 1
    return found


def neighbours_in_pool(tables: np.ndarray, relation: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    """Every neighbour with one user of the pool more, or with that one for one of its own, and whose it is."""
    kinds = tables.shape[1]
    of = np.repeat(np.arange(len(tables)), kinds)
    other = tables[of] + np.tile(np.eye(kinds, dtype=np.int64), (len(tables), 1))
    if relation is REPLACE:
        other[np.arange(len(of)), np.argmax(tables[of] > 0, axis=1)] -= 1
        some = tables[of].any(axis=1)
        of, other = of[some], other[some]
    return of, other


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_no_neighbour_moves_a_log_chance_by_more_than_epsilon(relation: Neighbours, gaussian: bool) -> None:
    asked, drawn = problem(relation, gaussian=gaussian), pooled(3 + gaussian, 400)
    laws = laws_of_pool(asked)
    of, other = neighbours_in_pool(drawn, relation)
    most = float(np.abs(laws(drawn)[of] - laws(other)).max())
    assert most <= 1.0 + 1e-9
    assert most > 0.8  # Else a law that hears nobody would pass, too.


def test_the_law_of_a_pool_is_that_of_its_users() -> None:
    for relation, table in itertools.product((ADD, REPLACE), pooled(7, 10)[1:]):
        users = [user for user, times in zip(POOL, table, strict=True) for _ in range(times)]
        found = laws_of_pool(problem(relation))(table[None])[0]
        np.testing.assert_allclose(found, of_module(problem(relation), users), atol=1e-5)


def test_the_law_is_that_of_the_definition() -> None:
    for relation, users in itertools.product((ADD, REPLACE), tables(5, 12)):
        asked = problem(relation, epsilon=0.7)
        np.testing.assert_allclose(of_module(asked, users), log_law(asked, users), atol=2e-4)


WRONG = {
    ADD: ("smaller distance", "no 2", "share forgotten", "groups of the data"),
    REPLACE: ("no 2", "share forgotten"),
}


@pytest.mark.parametrize(("relation", "wrong"), [(r, w) for r, all_ in WRONG.items() for w in all_])
def test_the_same_search_catches_what_is_wrong(relation: Neighbours, wrong: str) -> None:
    asked = problem(relation)

    def most(of: str) -> float:
        found = 0.0
        for seed, users in enumerate(tables(3, 8)):
            own = log_law(asked, users, of)
            for other in neighbours_of(users, relation, seed):
                found = max(found, float(np.abs(own - log_law(asked, other, of)).max()))
        return found

    assert most(wrong) > 1.05
    assert most("") <= 1.0 + 1e-9


def test_replacing_a_user_needs_the_distance_of_replacing() -> None:
    """Two candidates, i = (4, 1) and j = (1, 5), D = 4 and 5, D_m = 1. A user with 1 in each of 40 groups keeps 4 under
    i and 1 under j; one with 5 in one group keeps 1 under i and 5 under j. Where the first is replaced by the second,
    K_i - K_j falls from 3 to -4, by 7 = 4 + 5 - 2. Divided by max(4, 5) - 1 = 4 the score moves by 7/4, by 7 by 1; and
    s_j = -s_i, so that the log odds move by epsilon times as much.
    """
    asked, rest, two = problem(REPLACE, release=1.0), [(1,) * 40] * 4, ((4, 1), (1, 5))

    def moved(wrong: str) -> float:
        own, other = (log_law(asked, [one, *rest], wrong, two) for one in ((1,) * 40, (5,)))
        assert (own[0] - own[1]) - (other[0] - other[1]) == pytest.approx(7 / 4 if wrong else 1.0)
        return float(np.abs(own - other).max())

    assert moved("") <= 1.0
    assert moved("distance of adding") > 1.7


def test_a_pair_less_changes_nothing() -> None:
    asked = problem()
    fewer = (*ALL[:7], *ALL[8:])
    for users in tables(8, 6):
        own = log_law(asked, users, "", fewer)
        for other in neighbours_of(users, ADD, 1):
            assert np.abs(own - log_law(asked, other, "", fewer)).max() <= 1.0 + 1e-9


def test_counts_sums_and_users_are_the_same_where_they_should_be() -> None:
    """A sum whose unit is 0.25 with amounts of so many quarters is the count; of users only L0 is left."""
    users: list[User] = [(3, 1, 2), (5,), (1, 1, 4, 4)]
    rows = pairs_of(users)
    counted = problem()
    asked = dataclasses.replace(counted.parameters, statistic=Statistic.SUM)
    of_sum = PrivatePairProblem(asked, 1.0, 5, 0.25)
    sums = UserGroupPairs(rows.user_codes, rows.group_codes, rows.rows, 40, rows.rows * 0.25)
    np.testing.assert_allclose(of_sum.noise, 0.25 * counted.noise)
    np.testing.assert_allclose(
        private_pair.compute_probabilities(of_sum, sums),
        private_pair.compute_probabilities(counted, rows),
        rtol=1e-6,
    )
    # What is negative counts as 0, and what is beyond the maximum as the maximum.
    beyond = UserGroupPairs(
        rows.user_codes, rows.group_codes, rows.rows, 40, np.where(rows.rows > 2, 1e9, -3.0)
    )
    high = UserGroupPairs(
        rows.user_codes, rows.group_codes, rows.rows, 40, np.where(rows.rows > 2, 1.25, 0.0)
    )
    assert of_sum.distances(beyond) == of_sum.distances(high)
    alone = PrivatePairProblem(dataclasses.replace(asked, statistic=Statistic.USERS), 1.0, 5)
    assert alone.candidates[0].tolist() == [1, 2, 3, 4]
    assert set(alone.candidates[1]) == {1}
    assert alone.distances(rows) == alone.distances(pairs_of([(1,) * len(user) for user in users]))


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
    assert problem().distances(sizes) == problem().distances(rows)
    np.testing.assert_allclose(
        private_pair.compute_errors(problem(), sizes), private_pair.compute_errors(problem(), rows)
    )


def test_steps_do_not_overflow() -> None:
    """Numbers beyond 64 bits: the same chances as by floats of the definition, up to the grid's size."""
    asked = PrivatePairProblem(PerGroupParameters(1e-3, num_groups=10**8), 1.0, 10**9)
    rows = UserGroupPairs([0, 0, 1], [0, 1, 0], [10**9, 1, 7], 10**8)
    found = asked.scores(rows)
    assert all(abs(score) < 2**62 + 2**50 for score in found)
    assert (
        private_pair.compute_probabilities(asked, rows)[0] > 0.5
    )  # 1e11 users short: the weights and the price decide.


def test_an_empty_table_draws_by_public_numbers_alone() -> None:
    asked = problem()
    np.testing.assert_allclose(
        np.log(private_pair.compute_probabilities(asked, None)), log_law(asked, []), atol=1e-5
    )


def test_draws_follow_the_law_and_are_charged_before() -> None:
    from scipy.stats import chisquare

    asked, rows = problem(epsilon=2.0), pairs_of([(3, 1, 2), (5,), (1, 1, 4, 4), (2, 2)] * 3)
    draw = mechanisms.make_selection(asked.scores(rows), 2.0 * asked.sensitivity / asked.epsilon)
    observed = np.bincount([draw() for _ in range(3000)], minlength=20)
    law = private_pair.compute_probabilities(asked, rows)
    often = law * 3000 >= 5
    assert often.sum() > 3
    pooled = [np.r_[x[often][:-1], x[often][-1] + x[~often].sum()] for x in (observed, law * 3000)]
    assert chisquare(*pooled).pvalue > 1e-4  # A false alarm once in 10,000 runs.
    told: list[ReleaseFacts] = []
    found = private_pair.choose_pair(asked, rows, told.append)
    assert told == [found.facts]
    assert 0.0 < found.facts.epsilon <= 2.0
    assert (found.max_groups, found.max_amount) in ALL
    assert asked.sensitivity == RESOLUTION + 1

    def refuse(_: ReleaseFacts) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        private_pair.choose_pair(asked, rows, refuse)


def test_errors_are_those_of_the_groups() -> None:
    """F by hand: every group's |bias| and mean noise, the bias from the shares that are kept."""
    asked, users = problem(), [(3, 1, 2), (5,), (1, 1, 4, 4)]
    rows = pairs_of(users)
    for at, (groups, amount) in enumerate(ALL):
        bias = np.zeros(4)
        for user in users:
            share = min(1.0, groups / len(user))
            bias[: len(user)] += [a - share * min(a, amount) for a in user]
        expected = bias.sum() + 4 * groups * amount / 2.0  # b = L0 L-infinity / epsilon at epsilon = 2.
        assert private_pair.compute_errors(asked, rows)[at] == pytest.approx(expected, rel=1e-5)


def test_a_draw_is_nearly_the_best_pair_on_a_sample() -> None:
    """On the shop's products, x = epsilon of the choice times groups over epsilon well above 5."""
    data = samples.load("shop-events")
    asked = PrivatePairProblem(PerGroupParameters(1.0, num_groups=data.pairs.num_tasks), 0.5, 10_000)
    rows = UserGroupPairs.from_facet(data.pairs)
    found = private_pair.compute_errors(asked, rows)
    assert asked.public_figure >= 5.0
    assert float(private_pair.compute_probabilities(asked, rows) @ found) < 1.05 * float(found.min())


def test_what_cannot_be_is_refused_with_all_reasons() -> None:
    asked = PerGroupParameters(1.0)
    with pytest.raises(InvalidInput, match="number of groups") as refused:
        PrivatePairProblem(asked, 0.0, 0, -1.0)
    assert len(refused.value.problems) == 5
    for other, reason in (
        (dataclasses.replace(asked, statistic=Statistic.SIGNED_SUM, num_groups=3), "signed sum"),
        (
            dataclasses.replace(
                asked,
                selection=SelectionRule.TRUNCATED_GEOMETRIC,
                selection_share=0.5,
                selection_delta=1e-6,
            ),
            "public list",
        ),
    ):
        with pytest.raises(InvalidInput, match=reason):
            PrivatePairProblem(other, 1.0, 10)
