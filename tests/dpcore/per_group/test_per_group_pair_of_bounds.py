"""The best pair against all pairs."""

from itertools import pairwise, product

import numpy as np
import pytest

from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Neighbours
from dpcore.per_group import pair_of_bounds as module
from dpcore.per_group import passes as passes_module
from dpcore.per_group.moments import compute_pair_error
from dpcore.per_group.pair_of_bounds import find_best_pair
from dpcore.per_group.pairs import UserGroupPairs
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.per_group.passes import Passes, compute_parts_by_max_groups
from dpcore.per_group.problem import PerGroupProblem
from dpcore.per_group.sorted_pairs import SortedPairs
from tests.dpcore.per_group.conftest import random_pairs


def build_parameters(
    epsilon: float, objective: Objective, noise: NoiseKind, **more: object
) -> PerGroupParameters:
    delta = None if noise is NoiseKind.LAPLACE else 1e-5
    floor = 3.0 if objective.needs_floor else None
    return PerGroupParameters(epsilon, mechanism=noise, delta=delta, objective=objective, floor=floor, **more)


@pytest.mark.long_but("Objective.MEAN_RELATIVE")
@pytest.mark.parametrize("objective", Objective)
def test_no_pair_of_a_full_enumeration_is_better(objective: Objective) -> None:
    nothing, inside = 0, 0
    for seed, noise, epsilon in product(range(5), NoiseKind, (0.1, 1.0, 8.0)):
        relation = Neighbours.REPLACE_USER if seed % 2 else Neighbours.ADD_OR_REMOVE_USER
        pairs = random_pairs(seed, users=12, groups=7, rows=90)
        problem = PerGroupProblem(pairs, build_parameters(epsilon, objective, noise, neighbours=relation))
        best = find_best_pair(problem)
        errors = {
            (l0, linf): compute_pair_error(problem, l0, linf)
            for l0, linf in product(range(1, 8), range(1, int(problem.amounts.max()) + 2))
        }
        smallest = min(*errors.values(), problem.error_of_nothing)
        assert best.error == pytest.approx(smallest, rel=1e-12)
        assert best.certificate.relative_gap <= 1e-11
        if best.releases_nothing:
            nothing += 1
            assert best.max_amount == 0.0
            assert best.error == problem.error_of_nothing
        else:
            inside += best.max_groups > 1 and best.max_amount > 1
            assert errors[best.max_groups, int(best.max_amount)] == pytest.approx(best.error, rel=1e-13)
    assert nothing
    assert inside


@pytest.mark.parametrize("objective", Objective)
def test_a_pass_gives_the_error_at_every_number_of_groups(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small blocks, so that sums are carried from one to the next; every limit, so that users enter at once.
    monkeypatch.setattr(passes_module, "BLOCK_ENTRIES", 14)
    pairs = random_pairs(3, users=30, groups=7, rows=200)
    problem = PerGroupProblem(pairs, build_parameters(2.0, objective, NoiseKind.GAUSSIAN))
    passes = Passes(problem.parameters, problem.weights, SortedPairs.from_problem(problem))
    most = int(pairs.groups_per_user.max())
    for amount in (1.0, 3.0, 50.0):
        errors = np.array([compute_pair_error(problem, cap, amount) for cap in range(1, most + 1)])
        for limit in [*np.linspace(errors.min() * 0.9, errors.max() * 3, 12), 1e300]:
            minimum = passes.find_minimum(amount, amount, float(limit))
            assert minimum.error_bound == pytest.approx(min(errors.min(), limit), rel=1e-12)
            if errors.min() < limit:
                assert minimum.max_groups == 1 + int(np.argmin(errors))


@pytest.mark.long
def test_the_bound_of_an_interval_lies_below_every_pair_in_it() -> None:
    for objective, noise in product(Objective, NoiseKind):
        problem = PerGroupProblem(random_pairs(1, rows=150), build_parameters(1.5, objective, noise))
        passes = Passes(problem.parameters, problem.weights, SortedPairs.from_problem(problem))
        for low, high in ((1, 3), (2, 9), (4, 4), (5, 30)):
            bound = passes.find_minimum(low, high, 1e300).error_bound
            inside = [
                compute_pair_error(problem, l0, c) for l0, c in product(range(1, 5), range(low, high + 1))
            ]
            assert bound <= min(inside) * (1 + 1e-12)


@pytest.mark.long
def test_sums_are_bounded_by_a_real_number() -> None:
    kinds = (Statistic.SUM, Statistic.SIGNED_SUM)
    for seed, noise, statistic in product(range(3), NoiseKind, kinds):
        objective = tuple(Objective)[seed]
        signed = statistic is Statistic.SIGNED_SUM
        problem = PerGroupProblem(
            random_pairs(seed, users=15, rows=120, shift=2.0 if signed else 0.0),
            build_parameters(2.0, objective, noise, statistic=statistic),
        )
        tolerance = 1e-3 if signed else 1e-6
        best = find_best_pair(problem, tolerance=tolerance)
        assert best.certificate.proves(tolerance)
        fine = np.linspace(0.05, float(np.abs(problem.amounts).max()), 80)
        around = np.clip(best.max_amount * np.array([0.99, 0.9999, 1.0001, 1.01]), 1e-9, None)
        tried = [*fine.tolist(), *around.tolist()]
        smallest = min(compute_pair_error(problem, l0, c) for l0, c in product(range(1, 5), tried))
        assert best.error <= smallest / (1 - tolerance)
        assert best.certificate.lower_bound <= smallest * (1 + 1e-12)


def sums_of(amounts: np.ndarray) -> UserGroupPairs:
    """40 users, each in the first so many of 12 groups, with these amounts over and over."""
    per_user = 1 + np.arange(40) % 12
    users = np.repeat(np.arange(40), per_user)
    groups = np.arange(users.size) - np.repeat(np.cumsum(per_user) - per_user, per_user)
    return UserGroupPairs.from_arrays(users, groups, 12, row_values=np.resize(amounts, users.size))


@pytest.mark.long
@pytest.mark.parametrize("objective", Objective)
def test_another_unit_of_a_sum_scales_bound_and_error_and_changes_nothing_else(objective: Objective) -> None:
    # Each piece between two amounts has one least point at most, so that a fine grid within it comes near any pair.
    laplace, gaussian = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
    cases = (laplace, 5.0, [1.0, 2.0]), (laplace, 1.0, [0.5, 1.0, 3.0, 40.0]), (gaussian, 5.0, [1.0])
    for seed, (noise, epsilon, several) in enumerate(cases):
        amounts = np.random.default_rng(seed).choice(several, 60)
        rescaled = []
        for unit in (0.01, 300.0, 1e-9):
            floor = 3.0 * unit if objective.needs_floor else None
            problem = PerGroupProblem(
                sums_of(amounts * unit),
                PerGroupParameters(
                    epsilon,
                    Statistic.SUM,
                    mechanism=noise,
                    delta=None if noise is NoiseKind.LAPLACE else 1e-5,
                    objective=objective,
                    floor=floor,
                ),
            )
            best = find_best_pair(problem)
            error = best.error if objective.is_relative else best.error / unit
            rescaled.append((best.max_groups, round(best.max_amount / unit, 4), round(error, 6)))
            pair_error = compute_pair_error(problem, best.max_groups, best.max_amount)
            assert best.error == pytest.approx(min(pair_error, problem.error_of_nothing), rel=1e-12)
            edges = np.r_[0.0, np.unique(problem.amounts)]
            fine = np.concatenate([np.linspace(a, b, 5)[1:] for a, b in pairwise(edges)])
            tried = {
                (cap, float(c)): compute_pair_error(problem, cap, float(c))
                for cap in range(1, 13)
                for c in fine
            }
            assert best.error <= min(*tried.values(), problem.error_of_nothing) * (1 + 1e-6)
            assert best.certificate.lower_bound <= min(tried.values()) * (1 + 1e-12)
            for c in (fine[-1], fine[3]):
                every = [tried[cap, float(c)] for cap in range(1, 13)]
                assert compute_parts_by_max_groups(problem, float(c))[0] == pytest.approx(every, rel=1e-9)
        assert len(set(rescaled)) == 1


@pytest.mark.long
def test_bounds_of_intervals_of_real_amounts_lie_below_every_pair_and_are_exact_between_amounts() -> None:
    for objective, noise, signed in product(Objective, NoiseKind, (False, True)):
        statistic = Statistic.SIGNED_SUM if signed else Statistic.SUM
        pairs = random_pairs(4, users=12, rows=60, shift=1.5 if signed else 0.0)
        problem = PerGroupProblem(pairs, build_parameters(1.0, objective, noise, statistic=statistic))
        passes = Passes(problem.parameters, problem.weights, SortedPairs.from_problem(problem))
        occurring = np.unique(np.abs(problem.amounts))
        between = float(occurring[len(occurring) // 2]), float(occurring[len(occurring) // 2 + 1])
        for low, high in ((0.0, 3.0), (1.0, 2.5), (0.2, 50.0), between):
            bound = passes.find_minimum(low, high, 1e300).error_bound
            inside = [
                compute_pair_error(problem, l0, c)
                for l0, c in product(range(1, 5), np.linspace(low, high, 60))
                if c > 0.0
            ]
            assert bound <= min(inside) * (1 + 1e-12)
            if (low, high) == between and not signed and not objective.is_rooted:
                assert bound == pytest.approx(min(inside), rel=1e-4)


@pytest.mark.long
def test_a_sample_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    users = (3_000 * rng.random(30_000) ** 2).astype(int)
    pairs = UserGroupPairs.from_arrays(users, (60 * rng.random(users.size) ** 3).astype(int), 60)
    for noise, objective in product(NoiseKind, (Objective.ROOT_MEAN_SQUARE, Objective.MEAN_RMSE)):
        problem = PerGroupProblem(pairs, build_parameters(1.0, objective, noise))
        monkeypatch.undo()
        searched = find_best_pair(problem)
        monkeypatch.setattr(module, "MIN_SAMPLED_ENTRIES", 400)
        guessed = find_best_pair(problem)
        assert (guessed.max_groups, guessed.max_amount) == (searched.max_groups, searched.max_amount)
        assert searched.max_groups > 2
        assert guessed.certificate.relative_gap <= 1e-11


def test_users_and_one_row_each_need_only_one_pass(small: UserGroupPairs) -> None:
    problem = PerGroupProblem(small, PerGroupParameters(5.0, Statistic.USERS))
    best = find_best_pair(problem)
    assert best.num_evaluations == 1
    assert best.max_amount == 1.0


def test_a_stopped_search_says_so_and_proves_less() -> None:
    problem = PerGroupProblem(random_pairs(2, users=30, groups=3, rows=4_000), PerGroupParameters(4.0))
    searched = find_best_pair(problem)
    short = find_best_pair(problem, max_passes=2)
    assert short.stop_reason.startswith("Stopped")
    assert not short.certificate.proves(1e-9)
    assert short.certificate.lower_bound <= searched.error <= short.error
    assert find_best_pair(problem, should_stop=lambda: True).stop_reason.startswith("Stopped")
