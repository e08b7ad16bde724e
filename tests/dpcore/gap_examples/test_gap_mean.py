"""Ratios on mean problems: closed forms, brute force over caps, the proofs on random instances."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import differential_evolution

from dpcore import mean
from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.gap_examples.compare import (
    PAPER_BOUND,
    build_problem_of_noise_ratio,
    carry_out_fourfold_proof,
    compare,
    compute_variance_ratios,
)
from dpcore.gap_examples.two_groups import (
    build_theorem_2_problem,
    compute_supremum,
    compute_theorem_2,
    find_dominating_groups,
)

ROUNDING = 1e-9
REAL_CAPS_SUPREMUM = 25.0 / 16.0
"""Supremum of the ratio when caps may be any real number; proved in docs/gap.md."""
ROUNDING_BOUND = 1.0 + 4.0 ** (1.0 / 3.0)
"""The bound for whole caps that follows from v'(h*) <= 2 v(h*) and rounding h*: weaker, with a short proof."""


def instances(max_size: int, max_users: int) -> st.SearchStrategy[tuple[list[int], list[int], float]]:
    """Ascending sizes, users, and a noise ratio from far too little noise to far too much."""
    return st.lists(st.integers(1, max_size), min_size=1, max_size=7, unique=True).flatmap(
        lambda sizes: st.tuples(
            st.just(sorted(sizes)),
            st.lists(st.integers(1, max_users), min_size=len(sizes), max_size=len(sizes)),
            st.floats(-4.0, 8.0).map(lambda e: 10.0**e),
        )
    )


def problem_of(sizes: list[int], users: list[int], rho: float) -> mean.MeanProblem:
    return build_problem_of_noise_ratio(ContributionHistogram.from_table(sizes, users), rho)


def brute_cap(sizes: list[int], users: list[int], rho: float) -> float:
    """Claim 2 at every whole cap from s_1 to s_m, in units of sigma^2."""
    caps = np.arange(min(sizes), max(sizes) + 1, dtype=float)
    kept_rows = (np.minimum(caps[:, None], np.array(sizes, float)) * np.array(users, float)).sum(axis=1)
    return float((1.0 / kept_rows + rho * (caps / kept_rows) ** 2).min())


@pytest.mark.parametrize("g", [1, 2, 10, 100, 1000])
def test_theorem_2_is_exact_not_only_a_bound(g: int) -> None:
    truth, comparison = compute_theorem_2(g), compare(build_theorem_2_problem(g))
    assert comparison.noise_ratio == pytest.approx(g, rel=1e-12)
    # The paper's instance in fractions: v(1), each user weighing 1 / (2 g), and v'(h) with n_h = g + g h.
    by_hand = g * Fraction(1, 2 * g) ** 2 + g * g * Fraction(1, 2 * g * g) ** 2 + g * Fraction(1, 2 * g) ** 2
    caps = (Fraction(1, g + g * h) + g * Fraction(h, g + g * h) ** 2 for h in range(1, g + 1))
    smallest = min(caps)
    assert by_hand == Fraction(2 * g + 1, 4 * g * g)
    assert smallest == Fraction(3, 4 * g)
    assert comparison.smooth_choice.squared_error == pytest.approx(float(by_hand), rel=1e-12)
    assert comparison.cap_choice.squared_error == pytest.approx(float(smallest), rel=1e-12)
    assert (truth.smooth_variance, truth.capped_variance) == (by_hand, smallest)
    assert truth.ratio == smallest / by_hand
    assert comparison.ratio == pytest.approx(float(truth.ratio), rel=1e-12)
    assert truth.ratio < 1.5


@settings(max_examples=100, deadline=None)
@given(instances(10**6, 10**6))
def test_every_ratio_lies_between_one_and_the_supremum(instance: tuple[list[int], list[int], float]) -> None:
    comparison = compare(problem_of(*instance))
    assert 1.0 - ROUNDING <= comparison.ratio <= compute_supremum().ratio * (1.0 + ROUNDING)
    assert comparison.ratio_at_least <= comparison.ratio * (1.0 + ROUNDING)
    assert comparison.ratio <= comparison.ratio_at_most * (1.0 + ROUNDING)


@settings(max_examples=60, deadline=None)
@given(instances(300, 50))
def test_the_ratio_is_that_of_brute_force_over_all_caps(instance: tuple[list[int], list[int], float]) -> None:
    sizes, users, rho = instance
    comparison = compare(problem_of(*instance))
    thresholds = np.geomspace(sizes[0], sizes[-1], 4001)[:, None]
    s, u = np.array(sizes, float), np.array(users, float)
    user_weights = np.minimum(thresholds, s)
    user_weights /= (user_weights * u).sum(axis=1, keepdims=True)
    smooth = ((user_weights**2 / s * u).sum(axis=1) + rho * user_weights.max(axis=1) ** 2).min()
    # A grid can only be above the optimum, by a square of its step.
    assert comparison.smooth_choice.squared_error <= smooth * (1.0 + ROUNDING)
    assert comparison.ratio == pytest.approx(brute_cap(*instance) / smooth, rel=2e-4)
    assert comparison.cap_choice.squared_error == pytest.approx(brute_cap(*instance), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(instances(10**6, 10**6))
def test_the_papers_construction_costs_at_most_four(instance: tuple[list[int], list[int], float]) -> None:
    comparison = compare(problem_of(*instance))
    proof = carry_out_fourfold_proof(comparison)
    assert comparison.ratio * (1.0 - ROUNDING) <= proof.ratio <= PAPER_BOUND * (1.0 + ROUNDING)
    assert proof.privacy_factor <= 4.0 * (1.0 + ROUNDING)
    assert proof.sampling_factor <= (2.0 if proof.case_number == 1 else 4.0) * (1.0 + ROUNDING)
    assert instance[0][0] <= proof.max_contributions <= instance[0][-1]


@settings(max_examples=80, deadline=None)
@given(instances(60, 12))
def test_the_papers_construction_user_by_user(instance: tuple[list[int], list[int], float]) -> None:
    sizes, users, _rho = instance
    proof = carry_out_fourfold_proof(compare(problem_of(*instance)))
    each = sorted(s for s, u in zip(sizes, users, strict=True) for _ in range(u))
    p = sum(s <= proof.threshold for s in each)
    rows = sum(each[:p])
    alpha = rows / (rows + (len(each) - p) * proof.threshold)
    if alpha >= 0.5:
        expected = math.ceil(proof.threshold)
    else:
        eta = 1.0 - 1.0 / (2.0 * (1.0 - alpha))
        expected = each[p + math.ceil((len(each) - p) * eta) - 1]  # s_{p+r}, counted from 1 in the paper
    assert (proof.case_number, proof.max_contributions) == (1 if alpha >= 0.5 else 2, expected)


def test_both_cases_of_the_papers_proof_occur() -> None:
    assert carry_out_fourfold_proof(compare(problem_of([1, 100], [10, 10], 10.0))).case_number == 1
    # Little noise: the threshold is high, and the few rows below it carry under half the weight.
    second = carry_out_fourfold_proof(compare(problem_of([1, 50, 60, 70, 5000], [1, 3, 3, 3, 1], 0.5)))
    assert second.case_number == 2
    assert second.max_contributions > second.threshold


@settings(max_examples=100, deadline=None)
@given(instances(10**6, 10**6))
def test_elementary_bounds(instance: tuple[list[int], list[int], float]) -> None:
    problem = problem_of(*instance)
    best = mean.find_best_smooth(problem)
    h = best.threshold
    assert float(mean.compute_capped_variance(problem, h)) <= 2.0 * best.squared_error * (1.0 + ROUNDING)
    rounded = mean.compute_capped_variance(problem, [math.floor(h), math.ceil(h)]).min()
    assert rounded <= ROUNDING_BOUND * best.squared_error * (1.0 + ROUNDING)


def test_without_sampling_error_there_is_no_gap_and_nothing_to_dominate() -> None:
    problem = mean.MeanProblem(ContributionHistogram.from_table([1, 9], [3, 2]), 1.0, 1.0, 0.0)
    comparison = compare(problem)
    assert comparison.ratio == pytest.approx(1.0)
    assert comparison.noise_ratio == math.inf
    assert carry_out_fourfold_proof(comparison).ratio <= 4.0
    with pytest.raises(InvalidInput, match="sampling error"):
        find_dominating_groups(comparison)


@settings(max_examples=100, deadline=None)
@given(instances(10**6, 10**6))
def test_a_two_group_limit_dominates_every_instance(instance: tuple[list[int], list[int], float]) -> None:
    comparison = compare(problem_of(*instance))
    limit = find_dominating_groups(comparison)
    assert comparison.ratio <= limit.limit_ratio * (1.0 + ROUNDING)
    assert limit.limit_ratio <= compute_supremum().ratio * (1.0 + ROUNDING)


@settings(max_examples=100, deadline=None)
@given(instances(200, 50))
def test_the_dominating_line_lies_between_rows_kept_and_the_level_curve(
    instance: tuple[list[int], list[int], float],
) -> None:
    sizes, users, rho = instance
    limit = find_dominating_groups(compare(problem_of(*instance)))
    h = np.arange(1.0, 3.0 * max(sizes) + 1.0)
    kept_rows = (np.minimum(h[:, None], np.array(sizes, float)) * np.array(users, float)).sum(axis=1)
    line = limit.num_light_users + limit.num_heavy_users * h
    assert np.all(kept_rows <= line * (1.0 + ROUNDING))
    # Below the level curve means that a cap on the line is no better than the instance's best.
    assert np.all(1.0 / line + rho * (h / line) ** 2 >= brute_cap(*instance) * (1.0 - ROUNDING))


@settings(max_examples=80, deadline=None)
@given(instances(10**6, 10**6))
def test_batch_agrees_with_the_exact_optimisers(instance: tuple[list[int], list[int], float]) -> None:
    sizes, users, rho = instance
    comparison, batch = compare(problem_of(*instance)), compute_variance_ratios(sizes, users, rho)
    assert float(batch.smooth_variances) == pytest.approx(comparison.smooth_choice.squared_error, rel=1e-9)
    assert float(batch.capped_variances) == pytest.approx(comparison.cap_choice.squared_error, rel=1e-9)


@settings(max_examples=80, deadline=None)
@given(instances(10**6, 10**6), st.floats(0.01, 1.0))
def test_real_caps_never_reach_25_over_16(instance: tuple[list[int], list[int], float], scale: float) -> None:
    sizes, users, rho = instance
    real = float(compute_variance_ratios(np.array(sizes) * scale, users, rho, uses_integer_caps=False).ratios)
    assert 1.0 - ROUNDING <= real <= REAL_CAPS_SUPREMUM * (1.0 + ROUNDING)


def test_batch_broadcasts_and_real_caps_match_a_fine_grid() -> None:
    rng = np.random.default_rng(5)
    sizes = np.sort(rng.integers(1, 40, size=(30, 3)), axis=1).astype(float)
    users, rho = rng.uniform(0.1, 5.0, size=(30, 3)), rng.uniform(0.1, 20.0, size=30)
    batch = compute_variance_ratios(sizes, users, rho, uses_integer_caps=False)
    caps = np.linspace(0.0, 1.0, 20001)[1:, None] * 40.0
    for i in range(30):
        kept_rows = (np.minimum(caps, sizes[i]) * users[i]).sum(axis=1)
        best = (1.0 / kept_rows + rho[i] * (caps[:, 0] / kept_rows) ** 2).min()
        assert float(batch.capped_variances[i]) == pytest.approx(best, rel=1e-5)
    single = compute_variance_ratios(sizes[3], users[3], rho[3], uses_integer_caps=False)
    assert float(single.ratios) == pytest.approx(float(batch.ratios[3]), rel=1e-14)


@pytest.mark.long_but("2")
@pytest.mark.parametrize("num_groups", [2, 3, 5])
def test_a_search_over_instances_comes_close_to_the_supremum_and_cannot_arrive(num_groups: int) -> None:
    # Whole sizes up to 3,000, whole users up to 1,000 a group and a real noise ratio, all on log scales.
    def read_instance(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        whole = np.rint(np.exp(logs[:-1]))
        return np.sort(whole[:num_groups], axis=0).T, whole[num_groups:].T, np.exp(logs[-1])

    tops = np.log([3000] * num_groups + [1000] * (num_groups + 1))
    worst = differential_evolution(
        lambda logs: -compute_variance_ratios(*read_instance(logs)).ratios,
        [*((0.0, top) for top in tops[:-1]), (math.log(1e-3), tops[-1])],
        popsize=40, maxiter=150, tol=0.0, polish=False, vectorized=True, updating="deferred", rng=num_groups,
    )  # fmt: skip
    sizes, users, noise_ratio = read_instance(worst.x)
    comparison = compare(problem_of(sizes, users, float(noise_ratio)))
    assert comparison.ratio == pytest.approx(-worst.fun, rel=1e-9)
    assert 1.55 < comparison.ratio < compute_supremum().ratio
    assert comparison.cap_choice.squared_error == pytest.approx(
        brute_cap(sizes, users, float(noise_ratio)), rel=1e-12
    )


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput) as refused:
        compute_variance_ratios([3.0, 1.0], [1.0, -1.0], 0.0)
    assert len(refused.value.problems) == 3
    with pytest.raises(InvalidInput, match=r"(?i)g must be a whole number"):
        build_theorem_2_problem(0)
    with pytest.raises(InvalidInput, match=r"(?i)noise_ratio"):
        build_problem_of_noise_ratio(ContributionHistogram.from_table([1], [1]), math.nan)
