"""Two-group limits and the supremum, against brute force that shares no formula with them."""

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from dpcore.common.checks import InvalidInput
from dpcore.gap_examples.compare import compare
from dpcore.gap_examples.two_groups import (
    build_two_group_problem,
    compute_integer_cap_limit,
    compute_real_cap_limit,
    compute_supremum,
    find_worst_noise,
)

CAPS = np.arange(1.0, 3001.0)


def brute_limit(p: float, t: float) -> float:
    """Best cap among 1 .. 3000 and infinity over the best threshold of a fine grid, R already infinite."""
    q = 1.0 - p
    capped = min((1.0 / (p + q * CAPS) + t * CAPS**2 / (p + q * CAPS) ** 2).min(), t / q**2)
    h = np.geomspace(1.0, max(2.0, 4.0 * q / t), 20001)
    return float(capped / ((p + t * h**2) / (p + q * h) ** 2).min())


@pytest.mark.thinned
@pytest.mark.parametrize("p", [0.05, 0.2, 1 / 3, 0.4, 0.456, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("t", [0.02, 0.2, 0.44, 0.6, 0.9, 3.0])
def test_whole_cap_limit_is_that_of_brute_force(p: float, t: float) -> None:
    assert float(compute_integer_cap_limit(p, t).ratios) == pytest.approx(brute_limit(p, t), rel=1e-6)


def test_the_issue_values_at_the_papers_noise() -> None:
    limits = compute_integer_cap_limit([0.5, 0.4])
    assert limits.ratios == pytest.approx([1.5, 25 / 16], rel=1e-14)
    assert limits.best_caps.tolist() == [1.0, 2.0]
    shares = np.linspace(0.0, 1.0, 10001)
    curve = compute_integer_cap_limit(shares).ratios
    assert curve.max() == pytest.approx(25 / 16, rel=1e-12)
    assert shares[curve.argmax()] == pytest.approx(0.4)
    assert curve[[0, -1]] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("p", [0.0, 0.1, 0.3, 1 / 3, 0.36, 0.4, 0.45, 0.5, 0.6, 0.9, 1.0])
def test_fine_cap_limit_is_a_minimum_over_real_caps(p: float) -> None:
    q = 1.0 - p
    x = np.geomspace(1.0, 1e9, 400001)
    smallest = (1.0 / (p + q * x) + q * (x / (p + q * x)) ** 2).min()
    limit = compute_real_cap_limit(p)
    assert float(limit.ratios) == pytest.approx(smallest, rel=1e-8)
    if np.isfinite(limit.best_caps):
        cap = float(limit.best_caps)
        assert 1.0 / (p + q * cap) + q * (cap / (p + q * cap)) ** 2 == pytest.approx(smallest, rel=1e-8)


def test_fine_cap_limit_has_no_jumps_and_its_largest_at_two_fifths() -> None:
    shares = np.linspace(0.0, 1.0, 10001)
    curve = compute_real_cap_limit(shares).ratios
    assert np.abs(np.diff(curve)).max() < 3e-4
    assert (curve.max(), shares[curve.argmax()]) == pytest.approx((25 / 16, 0.4))


@pytest.mark.parametrize(("light", "heavy"), [(1, 3), (3, 7), (2, 3), (1, 1), (7, 3)])
def test_integer_instances_approach_the_whole_cap_limit_from_below(light: int, heavy: int) -> None:
    sizes = [2, 3, 4, 6, 10, 30, 100, 10**3, 10**4, 10**6, 10**9]
    ratios = [compare(build_two_group_problem(light, heavy, r)).ratio for r in sizes]
    limit = float(compute_integer_cap_limit(light / (light + heavy)).ratios)
    assert np.all(np.diff(ratios) >= -1e-12)
    assert ratios[-1] == pytest.approx(limit, rel=1e-6)
    assert ratios[-1] <= limit * (1.0 + 1e-12)


@pytest.mark.parametrize(("light", "heavy"), [(1, 4), (3, 7), (2, 3), (9, 11), (7, 3)])
def test_integer_instances_approach_the_fine_cap_limit(light: int, heavy: int) -> None:
    limit = float(compute_real_cap_limit(light / (light + heavy)).ratios)
    problem = build_two_group_problem(light, heavy, heavy_size=10**11, light_size=10**5)
    assert compare(problem).ratio == pytest.approx(limit, rel=1e-4)


def test_the_supremum_is_where_a_global_search_over_both_parameters_ends() -> None:
    top = compute_supremum()
    search = differential_evolution(
        lambda x: -brute_small(x[0], x[1]), [(0.02, 0.98), (0.02, 3.0)], seed=1, tol=1e-10
    )
    assert -search.fun == pytest.approx(top.ratio, rel=1e-7)
    assert -search.fun <= top.ratio * (1.0 + 1e-12)
    assert search.x == pytest.approx([top.light_share, top.noise_per_user], abs=1e-4)


def brute_small(p: float, t: float) -> float:
    """As `brute_limit`, with the best threshold h = max(1, q / t) put in instead of a grid."""
    q, k = 1.0 - p, CAPS[:200]
    h = max(1.0, q / t)
    capped = min((1.0 / (p + q * k) + t * k**2 / (p + q * k) ** 2).min(), t / q**2)
    return float(capped * (p + q * h) ** 2 / (p + t * h**2))


def test_the_supremum_to_the_printed_digits_and_its_defining_equations() -> None:
    top = compute_supremum()
    assert round(top.ratio, 5) == 1.56493
    assert (round(top.light_share, 6), round(top.noise_per_user, 6)) == (0.456214, 0.4362)
    p, t = top.light_share, top.noise_per_user
    q = 1.0 - p
    caps = [(1.0 / (p + q * k) + t * k**2 / (p + q * k) ** 2) * (p + q**2 / t) for k in (1.0, 2.0, 3.0, 4.0)]
    assert caps[1] == pytest.approx(caps[2], rel=1e-12)
    assert caps[1] == pytest.approx(top.ratio, rel=1e-12)
    assert min(caps[0], caps[3]) > top.ratio * 1.001
    assert float(compute_integer_cap_limit(p, t).ratios) == pytest.approx(top.ratio, rel=1e-12)


@pytest.mark.long
def test_no_point_of_a_fine_grid_exceeds_the_supremum() -> None:
    p = np.linspace(0.0, 1.0, 1001)[:, None]
    t = np.geomspace(1e-3, 30.0, 2001)[None, :]
    limit = compute_integer_cap_limit(p, t).ratios
    assert limit.max() <= compute_supremum().ratio
    assert limit.min() >= 1.0 - 1e-12
    # docs/gap.md, case t >= q: the largest there is that of (3 - q) / (3 - 4 q + 2 q^2 + q^3).
    q = np.linspace(0.56, 0.6, 100_001)
    largest = float(((3.0 - q) / (3.0 - 4.0 * q + 2.0 * q**2 + q**3)).max())
    assert round(largest, 5) == 1.56346
    assert largest - 2e-4 < np.where(t >= 1.0 - p, limit, 0.0).max() <= largest


@pytest.mark.parametrize("k", range(1, 30))
def test_docs_step_ties_of_larger_caps_are_lower(k: int) -> None:
    """Where caps k and k + 1 tie the ratio is E_k(w): below max E_2, for k = 1 wherever a tie is allowed."""
    w = np.linspace(1e-3, 40.0, 40001)
    threshold = w * (k / (w + k) + (k + 1) / (w + k + 1))
    tied = (w + threshold) * (1.0 / (w + k) + k**2 / (threshold * (w + k) ** 2))
    allowed = tied[threshold >= 1.0]
    top = compute_supremum().ratio
    assert allowed.max() == pytest.approx(top, rel=1e-7) if k == 2 else allowed.max() < top - 5e-4


def test_the_quoted_integer_instance_by_brute_force() -> None:
    problem = compute_supremum().build_problem()
    assert problem.histogram.sizes.tolist() == [1, 10**6]
    assert problem.histogram.users.tolist() == [26, 31]
    rho = 2.0 * (problem.value_bound / problem.epsilon) ** 2 / problem.value_variance
    assert round(rho, 4) == 24.8722
    caps = np.arange(1.0, 10**6 + 1.0)
    kept_rows = 26.0 + 31.0 * caps
    capped = (1.0 / kept_rows + rho * (caps / kept_rows) ** 2).min()
    h = np.linspace(1.0, 2.0, 200001)
    smooth = ((26.0 + 31.0 * h**2 / 1e6 + rho * h**2) / (26.0 + 31.0 * h) ** 2).min()
    assert round(capped / smooth, 6) == 1.564928
    assert compare(problem).ratio == pytest.approx(capped / smooth, rel=1e-9)


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match=r"(?i)light_share"):
        compute_integer_cap_limit([0.5, 1.2])
    with pytest.raises(InvalidInput, match=r"(?i)noise_per_user"):
        compute_integer_cap_limit(0.5, [0.0, 1.0])
    with pytest.raises(InvalidInput, match=r"(?i)heavy_size must be above"):
        build_two_group_problem(1, 1, heavy_size=3, light_size=3)
    with pytest.raises(InvalidInput) as refused:
        build_two_group_problem(0, 1, heavy_size=0, noise_ratio=-1.0)
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize("p", [0.02, 0.15, 0.34, 0.4562, 0.5, 0.6, 0.75, 0.9, 0.985])
def test_worst_noise_is_that_of_a_fine_grid(p: float) -> None:
    worst = find_worst_noise(p)
    grid = np.geomspace(1e-4, 50.0, 100_001)
    on_grid = compute_integer_cap_limit(p, grid).ratios.max()
    # The ratio changes by less than its argument's relative step, 1.3e-4, and no grid point may beat the worst.
    assert -1e-7 < float(worst.ratios) - on_grid < 2e-4
    assert float(compute_integer_cap_limit(p, float(worst.noise_per_user)).ratios) == pytest.approx(
        float(worst.ratios)
    )


def test_worst_noise_peaks_at_the_supremum() -> None:
    best = compute_supremum()
    worst = find_worst_noise(best.light_share)
    assert float(worst.ratios) == pytest.approx(best.ratio, rel=1e-12)
    assert float(worst.noise_per_user) == pytest.approx(best.noise_per_user)
    assert find_worst_noise(np.linspace(0.001, 0.999, 999)).ratios.max() < best.ratio
    with pytest.raises(InvalidInput, match=r"(?i)strictly between"):
        find_worst_noise([0.5, 1.0])
