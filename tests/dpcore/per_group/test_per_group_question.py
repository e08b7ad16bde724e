"""The pairs, the question and its sensitivities."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import GaussianNoise, LaplaceNoise, Neighbours
from dpcore.common.programs import Program
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.problem import PerGroupProblem

RELATIONS = (Neighbours.ADD_OR_REMOVE_USER, Neighbours.REPLACE_USER)
GAUSSIAN = {"mechanism": NoiseKind.GAUSSIAN, "delta": 1e-6}


def test_entries_in_any_order_are_added_up_by_user_and_group() -> None:
    users, groups, values = [3, 1, 3, 1, 3], [0, 2, 0, 1, 2], [1.0, 2.0, 4.0, 8.0, 16.0]
    pairs = UserGroupPairs.from_arrays(users, groups, 4, row_values=values)
    assert pairs.user_codes.tolist() == [1, 1, 3, 3]
    assert pairs.group_codes.tolist() == [1, 2, 0, 2]
    assert pairs.rows.tolist() == [1, 1, 2, 1]
    assert pairs.sums.tolist() == [8.0, 2.0, 5.0, 16.0]
    assert pairs.sums_of_squares.tolist() == [64.0, 4.0, 17.0, 256.0]
    assert pairs.groups_per_user.tolist() == [2, 2]
    arrays = UserGroupPairs(
        pairs.user_codes, pairs.group_codes, pairs.rows, 4, pairs.sums, pairs.sums_of_squares
    )
    for name in ("user_codes", "group_codes", "rows", "sums", "sums_of_squares"):
        assert np.array_equal(getattr(arrays, name), getattr(pairs, name))
    with pytest.raises(ValueError, match="read-only"):
        pairs.rows[0] = 5


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (([1, 0], [0, 0], [1, 1], 1), "sorted"),
        (([0, 0], [1, 1], [1, 1], 2), "distinct"),
        (([0, 0], [0, 2], [1, 0], 2), "out of range.*one row"),
        (([0, 1], [0, 0], [1, 1], 1, [1.0, math.nan]), "must be finite"),
        (([0, 1], [0, 0], [1, 1], 1, [1.0]), "sums must have one entry per pair"),
        (([], [], [], 0), "not empty"),
    ],
)
def test_pairs_that_cannot_be_are_refused(arrays: tuple[object, ...], words: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?is){words}"):
        UserGroupPairs(*arrays)


def test_all_problems_of_the_parameters_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        PerGroupParameters(
            1.0,
            statistic="rows",
            mechanism=NoiseKind.GAUSSIAN,
            neighbours=Neighbours.REPLACE_VALUES,
            objective=Objective.MEAN_RELATIVE,
        )
    words = str(refused.value).lower()
    for needed in ("statistic", "δ is missing", "neighbouring data", "floor is missing"):
        assert needed in words
    with pytest.raises(InvalidInput, match=r"(?is)floor can be set only.*lowest value L can be set only"):
        PerGroupParameters(1.0, floor=3.0, lower=0.0)
    with pytest.raises(InvalidInput, match=r"(?is)lower must lie below.*not divided"):
        PerGroupParameters(
            1.0, Statistic.MEAN, objective=Objective.MEAN_RELATIVE, floor=1.0, lower=2.0, upper=1.0
        )
    with pytest.raises(InvalidInput, match="No group reaches"):
        PerGroupProblem(
            UserGroupPairs.from_arrays([0], [0], 1),
            PerGroupParameters(1.0, objective=Objective.LARGE_GROUPS, floor=2.0),
        )


def test_a_sum_needs_sums_of_at_least_zero(small: UserGroupPairs) -> None:
    parameters = PerGroupParameters(1.0, Statistic.SUM)
    with pytest.raises(InvalidInput, match="hold no sums"):
        PerGroupProblem(UserGroupPairs.from_arrays([0], [0], 1), parameters)
    with pytest.raises(InvalidInput, match=r"1 of 2 sums.*any sign"):
        PerGroupProblem(UserGroupPairs.from_arrays([0, 1], [0, 0], 1, row_values=[-1.0, 2.0]), parameters)
    assert PerGroupProblem(small, parameters).totals.sum() == pytest.approx(small.sums.sum(), rel=1e-12)


vectors = st.lists(st.integers(0, 9), min_size=6, max_size=6)


@settings(max_examples=60)
@given(
    left=vectors,
    right=vectors,
    max_groups=st.integers(1, 6),
    max_amount=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_one_user_moves_the_release_by_no_more_than_declared(
    left: list[int], right: list[int], max_groups: int, max_amount: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)

    def bounded(amounts: list[int]) -> np.ndarray:
        vector = np.minimum(np.array(amounts, dtype=float), max_amount)
        present = np.flatnonzero(vector)
        dropped = rng.permutation(present)[max_groups:]
        vector[dropped] = 0.0
        return vector

    one, other = bounded(left), bounded(right)
    for noise, order in ((NoiseKind.LAPLACE, 1), (NoiseKind.GAUSSIAN, 2)):
        delta = None if order == 1 else 1e-6
        for relation, change in zip(RELATIONS, (one, one - other), strict=True):
            parameters = PerGroupParameters(1.0, mechanism=noise, delta=delta, neighbours=relation)
            norm = np.linalg.norm(change, order)
            assert norm <= float(
                parameters.compute_norm_sensitivity(parameters.compute_pair_norm(max_groups, max_amount))
            ) * (1 + 1e-12)


def test_sums_of_any_sign_and_means_move_by_no_more_than_declared_and_reach_it() -> None:
    rng = np.random.default_rng(5)
    for noise, order in (({}, 1), (GAUSSIAN, 2)):
        for relation in RELATIONS:
            parameters = PerGroupParameters(1.0, Statistic.SIGNED_SUM, neighbours=relation, **noise)
            declared = float(parameters.compute_norm_sensitivity(parameters.compute_pair_norm(3, 4)))
            largest = 0.0
            for _ in range(400):
                vectors = np.zeros((2, 8))
                for vector in vectors:
                    vector[rng.permutation(8)[:3]] = np.clip(rng.normal(0.0, 5.0, 3), -4.0, 4.0)
                change = vectors[0] if relation is RELATIONS[0] else vectors[0] - vectors[1]
                largest = max(largest, float(np.linalg.norm(change, order)))
            assert largest <= declared * (1 + 1e-12)
            # All three at one end, and in the same groups at the other.
            most = np.full(3, 4.0) if relation is RELATIONS[0] else np.full(3, 8.0)
            assert np.linalg.norm(most, order) == pytest.approx(declared, rel=1e-14)
            mean = PerGroupParameters(
                1.0, Statistic.MEAN, neighbours=relation, lower=-1.0, upper=9.0, **noise
            )
            # Two entries of at least 0 per group, from either end of the range: 4 rows add 40 to them together.
            entries = PerGroupParameters(1.0, neighbours=relation, **noise)
            declared, largest = float(entries.compute_norm_sensitivity(entries.compute_pair_norm(3, 40))), 0.0
            for _ in range(400):
                vectors = np.zeros((2, 8, 2))
                for vector in vectors:
                    above = 40.0 * rng.random(3)
                    vector[rng.permutation(8)[:3]] = np.stack([above, rng.random() * (40.0 - above)], axis=1)
                change = vectors[0] if relation is RELATIONS[0] else vectors[0] - vectors[1]
                largest = max(largest, float(np.linalg.norm(change.ravel(), order)))
            assert largest <= declared * (1 + 1e-12)
            # In three groups all rows of one user at the upper, all of the other at the lower end.
            ends = np.r_[40.0, 40.0, 40.0, 0.0, 0.0, 0.0]
            change = ends if relation is RELATIONS[0] else ends - ends[::-1]
            assert np.linalg.norm(change, order) == pytest.approx(declared, rel=1e-12)
            # Half the difference of the two, and their sum over the length of the range.
            entry = float(entries.compute_norm_noise_std(entries.compute_pair_norm(3, 40)))
            assert mean.compute_mean_noise(3, 4) == pytest.approx(
                (entry / math.sqrt(2.0), entry * math.sqrt(2.0) / 10.0), rel=1e-12
            )


def test_the_declared_sensitivity_is_reached() -> None:
    # Two users of 3 disjoint groups each, 4 rows in each: removing one moves three groups, replacing moves six.
    gone, come = np.array([4, 4, 4, 0, 0, 0.0]), np.array([0, 0, 0, 4, 4, 4.0])
    for noise, order in (({}, 1), (GAUSSIAN, 2)):
        for relation, change in zip(RELATIONS, (gone, gone - come), strict=True):
            parameters = PerGroupParameters(1.0, neighbours=relation, **noise)
            assert float(
                parameters.compute_norm_sensitivity(parameters.compute_pair_norm(3, 4))
            ) == pytest.approx(np.linalg.norm(change, order), rel=1e-14)


def test_noise_is_that_of_the_declared_sensitivity() -> None:
    for relation, (epsilon, groups, amount) in product(RELATIONS, [(0.3, 4, 7.0), (2.0, 1, 0.5)]):
        laplace = PerGroupParameters(epsilon, neighbours=relation, program=Program.PYTHON)
        s = float(laplace.compute_norm_sensitivity(laplace.compute_pair_norm(groups, amount)))
        deviation = math.sqrt(LaplaceNoise.for_release(s, epsilon).variance)
        assert float(laplace.compute_pair_noise_std(groups, amount)) == pytest.approx(deviation, rel=1e-14)
        assert float(laplace.compute_norm_noise_std(groups * amount)) == pytest.approx(deviation, rel=1e-14)
        gaussian = PerGroupParameters(epsilon, neighbours=relation, program=Program.PYTHON, **GAUSSIAN)
        s = float(gaussian.compute_norm_sensitivity(gaussian.compute_pair_norm(groups, amount)))
        deviation = GaussianNoise.for_release(s, epsilon, 1e-6).scale
        assert float(gaussian.compute_pair_noise_std(groups, amount)) == pytest.approx(deviation, rel=1e-14)
        assert float(gaussian.compute_norm_noise_std(math.sqrt(groups) * amount)) == pytest.approx(
            deviation, rel=1e-14
        )
