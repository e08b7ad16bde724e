"""The optimiser of (max u)^2 + A sum u^2/s: against loops, brute force, CVXPY, and its own certificates."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpcore.common import weights
from dpcore.common.checks import CertificateError, InvalidInput
from dpcore.contributions import ContributionHistogram

COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=25)
TRADE_OFFS = st.one_of(st.just(0.0), st.floats(-6, 6).map(lambda x: 10.0**x))
HUGE = st.dictionaries(
    st.floats(0, 12).map(lambda x: int(10.0**x)),
    st.floats(0, 12).map(lambda x: int(10.0**x)),
    min_size=1,
    max_size=8,
).map(lambda d: ContributionHistogram(sizes=sorted(d), users=[d[s] for s in sorted(d)]))


def objective(user_weights: list[float], counts: list[int], trade_off: float) -> float:
    """(*) by its definition, one term per user."""
    assert math.isclose(math.fsum(user_weights), 1.0, rel_tol=1e-12)
    return max(user_weights) ** 2 + trade_off * math.fsum(
        u * u / s for u, s in zip(user_weights, counts, strict=True)
    )


def smooth_user_weights(counts: list[int], h: float) -> list[float]:
    kept_total = math.fsum(min(h, s) for s in counts)
    return [min(h, s) / kept_total for s in counts]


@given(COUNTS, TRADE_OFFS, st.floats(0, 1))
def test_smooth_losses_by_definition(counts: list[int], trade_off: float, share: float) -> None:
    h = min(counts) + share * (max(counts) - min(counts))
    total = weights.compute_smooth_losses(ContributionHistogram.from_counts(counts), h).total(trade_off)
    assert total == pytest.approx(objective(smooth_user_weights(counts, h), counts, trade_off), rel=1e-12)


@given(COUNTS, st.integers(1, 45))
def test_capped_losses_by_definition(counts: list[int], cap: int) -> None:
    losses = weights.compute_capped_losses(ContributionHistogram.from_counts(counts), cap)
    rows = [1.0 / sum(min(cap, s) for s in counts)] * sum(min(cap, s) for s in counts)
    assert losses.squared_weights == pytest.approx(math.fsum(w * w for w in rows), rel=1e-12)
    assert losses.largest_weight == pytest.approx(cap * rows[0], rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_smooth_optimum_against_cvxpy(seed: int) -> None:
    # One variable per user: neither the grouping by size nor the form min(h, s) / n_h is assumed.
    import cvxpy as cp

    rng = np.random.default_rng(seed)
    counts = np.minimum(rng.zipf(1.6, size=rng.integers(2, 30)), 500)
    trade_off = 10.0 ** rng.uniform(-2, 2)
    u, t = cp.Variable(counts.size), cp.Variable()
    goal = cp.square(t) + trade_off * cp.sum_squares(cp.multiply(1 / np.sqrt(counts), u))
    problem = cp.Problem(cp.Minimize(goal), [u >= 0, u <= t, cp.sum(u) == 1])
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    problem.solve(solver=cp.CLARABEL, **tight)
    best = weights.find_best_smooth(ContributionHistogram.from_counts(counts), trade_off)
    assert float(best.losses.total(trade_off)) == pytest.approx(problem.value, rel=1e-6)
    result = np.array(smooth_user_weights(counts.tolist(), best.bound))
    np.testing.assert_allclose(result, u.value, atol=2e-4 * result.max())


@given(COUNTS, TRADE_OFFS)
def test_best_cap_against_every_cap(counts: list[int], trade_off: float) -> None:
    h = ContributionHistogram.from_counts(counts)
    best = weights.find_best_cap(h, trade_off)
    totals = {}
    for cap in range(min(counts), max(counts) + 1):
        kept = sum(min(cap, s) for s in counts)
        totals[cap] = (cap / kept) ** 2 + trade_off / kept
    smallest = min(totals.values())
    assert best.losses.total(trade_off) == pytest.approx(smallest, rel=1e-13)
    assert best.bound == min(cap for cap, total in totals.items() if total <= smallest * (1 + 1e-14))
    assert best.certificate.relative_gap <= weights.CAP_TOLERANCE * (1 + 1e-9)


@given(COUNTS, TRADE_OFFS)
def test_no_threshold_on_a_fine_grid_is_better(counts: list[int], trade_off: float) -> None:
    best = weights.find_best_smooth(ContributionHistogram.from_counts(counts), trade_off)
    assert min(counts) <= best.bound <= max(counts)
    value = best.losses.total(trade_off)
    for h in np.linspace(min(counts), max(counts), 120):
        assert value <= objective(smooth_user_weights(counts, h), counts, trade_off) * (1 + 1e-12)
    assert abs(best.certificate.relative_gap) <= 1e-9


@given(COUNTS, TRADE_OFFS, st.data())
def test_no_other_weights_are_better(counts: list[int], trade_off: float, data: st.DataObject) -> None:
    raw = data.draw(
        st.lists(st.floats(0, 1), min_size=len(counts), max_size=len(counts)).filter(lambda w: sum(w) > 0.01)
    )
    other = [w / math.fsum(raw) for w in raw]
    best = weights.find_best_smooth(ContributionHistogram.from_counts(counts), trade_off)
    assert best.certificate.lower_bound <= objective(other, counts, trade_off) * (1 + 1e-12)


@given(HUGE, st.floats(-30, 199))
def test_certificates_hold_at_any_scale(h: ContributionHistogram, exponent: float) -> None:
    trade_off = 10.0**exponent
    assert abs(weights.find_best_smooth(h, trade_off).certificate.relative_gap) <= 1e-9
    assert weights.find_best_cap(h, trade_off).certificate.relative_gap <= weights.CAP_TOLERANCE * (1 + 1e-9)


def test_certificate_where_the_root_is_one_rounding_below_the_largest_size() -> None:
    # A q / (A I + 1) rounds to just below s_m here; the dual bound at that root alone is worth nothing.
    h = ContributionHistogram(sizes=[2051, 8475, 9563, 45974], users=[798486, 364738645, 93, 8461571811])
    assert weights.find_best_smooth(h, 2.3e45).certificate.relative_gap <= 1e-12


@given(COUNTS, TRADE_OFFS, TRADE_OFFS)
def test_more_weight_on_sampling_never_lowers_a_bound(counts: list[int], one: float, other: float) -> None:
    h = ContributionHistogram.from_counts(counts)
    low, high = sorted((one, other))
    assert weights.find_smooth_root(h, low) <= weights.find_smooth_root(h, high) * (1 + 1e-12)
    assume(high > low * (1 + 1e-9))
    assert weights.find_best_cap(h, low).bound <= weights.find_best_cap(h, high).bound


@given(COUNTS, st.floats(-3, 3).map(lambda x: 10.0**x), st.floats(0, 50))
def test_the_dual_bound_holds_at_any_h(counts: list[int], trade_off: float, h: float) -> None:
    histogram = ContributionHistogram.from_counts(counts)
    value = float(weights.find_best_smooth(histogram, trade_off).losses.total(trade_off))
    assert weights.compute_lower_bound(histogram, trade_off, h) <= value * (1 + 1e-12)


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
def test_a_wrong_root_is_not_proved(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    h = ContributionHistogram(sizes=[1, 3, 10, 40], users=[200, 50, 20, 5])
    right = weights.find_smooth_root(h, 0.1)
    assert 1 < right * 0.5 < right * 2 < 40  # not clamped, so every factor is a wrong answer
    monkeypatch.setattr(weights, "find_smooth_root", lambda *_: right * factor)
    assert weights.find_best_smooth(h, 0.1).certificate.relative_gap > 1e-4


@pytest.mark.parametrize("steps", [-3, -1, 1, 3])
def test_a_wrong_cap_is_not_proved(steps: int) -> None:
    # Interval bounds reach down to the best cap, whatever value is to be proved.
    h = ContributionHistogram(sizes=[1, 3, 10, 40], users=[200, 50, 20, 5])
    best = weights.find_best_cap(h, 1.0)
    wrong = float(weights.compute_capped_losses(h, best.bound + steps).total(1.0))
    right = float(best.losses.total(1.0))
    bound = weights.compute_cap_lower_bound(h, 1.0, wrong)
    assert wrong > right * (1 + 1e-5)
    assert bound <= right < wrong * (1 - weights.CAP_TOLERANCE)


def test_an_impossible_bound_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    h = ContributionHistogram(sizes=[1, 3], users=[5, 5])
    truth = weights.compute_lower_bound
    monkeypatch.setattr(weights, "compute_lower_bound", lambda *a: truth(*a) * 1.001)
    with pytest.raises(CertificateError):
        weights.find_best_smooth(h, 1.0)
    cap_truth = weights.compute_cap_lower_bound
    monkeypatch.setattr(weights, "compute_cap_lower_bound", lambda *a: cap_truth(*a) * 1.001)
    with pytest.raises(CertificateError):
        weights.find_best_cap(h, 1.0)


@pytest.mark.parametrize("find", [weights.find_best_smooth, weights.find_best_cap])
def test_named_cases(find: Callable[[ContributionHistogram, float], weights.Optimum]) -> None:
    several = ContributionHistogram(sizes=[2, 3, 10], users=[4, 5, 1])
    assert find(several, 0.0).bound == 2
    assert "Without sampling error" in find(several, 0.0).stop_reason
    equal = ContributionHistogram(sizes=[7], users=[9])
    # Nine equal users: each weighs 1/9, and with 63 rows A sum u^2/s = A / 63.
    assert find(equal, 2.0).bound == 7
    assert float(find(equal, 2.0).losses.total(2.0)) == pytest.approx(1 / 81 + 2 / 63, rel=1e-14)
    assert "equally many rows" in find(equal, 2.0).stop_reason
    one = find(ContributionHistogram(sizes=[50], users=[1]), 3.0)
    assert float(one.losses.total(3.0)) == pytest.approx(1 + 3 / 50, rel=1e-14)
    assert one.certificate.relative_gap == pytest.approx(0, abs=1e-9)
    assert find(several, 1e9).bound == pytest.approx(10, rel=1e-6)
    assert "Exact" in find(several, 1e9).stop_reason


def test_a_small_trade_off_is_clamped() -> None:
    best = weights.find_best_smooth(ContributionHistogram(sizes=[5, 6], users=[10, 10]), 1e-3)
    assert best.bound == 5
    assert "every user weighs the same" in best.stop_reason
    assert best.certificate.relative_gap == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, 1e201, None, "1"])
def test_refused_trade_offs(bad: float) -> None:
    h = ContributionHistogram(sizes=[1], users=[1])
    for find in (weights.find_best_smooth, weights.find_best_cap):
        with pytest.raises(InvalidInput, match="Trade_off"):
            find(h, bad)


@given(st.floats(1, 50), st.floats(0.01, 100))
def test_stretch_of_a_parabola(best: float, limit: float) -> None:
    low, high = weights.find_interval_within(
        lambda x: (x - best) ** 2, best, 0.5, 80.0, limit, is_integer=False
    )
    assert low == pytest.approx(max(0.5, best - math.sqrt(limit)), rel=1e-8)
    assert high == pytest.approx(min(80.0, best + math.sqrt(limit)), rel=1e-8)
    assert max((low - best) ** 2, (high - best) ** 2) <= limit


@given(st.integers(1, 80), st.floats(0, 1000))
def test_stretch_of_whole_numbers(best: int, limit: float) -> None:
    result = weights.find_interval_within(
        lambda x: (x - best) ** 2, float(best), 1.0, 80.0, limit, is_integer=True
    )
    inside = [x for x in range(1, 81) if (x - best) ** 2 <= limit]
    assert result == (inside[0], inside[-1])
