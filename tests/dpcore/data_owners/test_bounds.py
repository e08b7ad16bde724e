"""Bounds of data owners against the printed formulas, collapses, and crossings against root finding."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.common.certificate import Certificate
from dpcore.common.checks import InvalidInput
from dpcore.contributions import ContributionHistogram
from dpcore.data_owners import bounds, regimes
from dpcore.data_owners.bounds import (
    Collaboration,
    ProtectedPart,
    Unit,
    bound_alone,
    bound_smooth_joint,
    bound_together,
    bound_trivially,
    bound_without_privacy,
    compute_joint_saving,
    compute_printed_bound_alone,
    compute_printed_bound_of_users,
    compute_printed_saving,
)
from dpcore.data_owners.network_parts import NUM_PARAMETERS, SIZE_BY_LAYER, PersonalPart
from dpcore.data_owners.parameters import OwnersParameters, OwnersSource
from dpcore.data_owners.regimes import RANGE_BY_AXIS, MapAxis, Regime, compute_regime_map, find_regime

DRAWS = 10_000
ISSUE = OwnersParameters(epsilon=1.0, owners=37, records=100, shared=7_850, personal=0).build_collaboration()


def draw_owners(seed: int, **fixed: object) -> Collaboration:
    """Random owners, every number an array of `DRAWS`."""
    rng = np.random.default_rng(seed)

    def log(low: float, high: float) -> np.ndarray:
        return np.exp(rng.uniform(math.log(low), math.log(high), DRAWS))

    records = np.rint(log(1, 1e5))
    fields: dict[str, object] = {
        "epsilon": log(0.01, 100),
        "delta": log(1e-12, 1e-2),
        "owners": np.rint(log(2, 1e4)),
        "records": records,
        "records_per_unit": np.exp(rng.uniform(0, 1, DRAWS) * np.log(records)),
        "shared": np.rint(log(1, 1e7)),
        "personal": np.rint(log(1, 1e4)),
        "personal_diameter": log(1e-3, 1e2),
        "shared_diameter": log(1e-3, 1e2),
        "lipschitz": log(0.1, 10),
        "privacy_constant": log(0.1, 10),
    }
    return Collaboration(**{**fields, **fixed})


def select_draw(collaboration: Collaboration, index: int) -> dict[str, float]:
    return {name: float(np.broadcast_to(value, DRAWS)[index]) for name, value in vars(collaboration).items()}


def test_bounds_are_the_printed_formulas_letter_by_letter() -> None:
    draws = draw_owners(1)
    computed = {
        "alone": bound_alone(draws),
        "none": bound_without_privacy(draws),
        "joint": bound_together(draws, ProtectedPart.JOINT),
        "full": bound_together(draws, ProtectedPart.FULL),
        "smooth": bound_smooth_joint(draws),
    }
    for i in range(0, DRAWS, 500):
        f = select_draw(draws, i)
        n, m, ell, k, eps, delta, lip = (
            f[name] for name in ("owners", "records", "shared", "personal", "epsilon", "delta", "lipschitz")
        )
        r, c = m / f["records_per_unit"], f["privacy_constant"]
        dx, du = f["personal_diameter"], f["shared_diameter"]
        radius = math.sqrt(n * dx**2 + du**2)
        base, log = 1 / math.sqrt(m * n), math.log(m / (r * delta))
        expected = {
            "alone": lip * math.sqrt((dx**2 + du**2) / m),
            "none": lip * math.sqrt((n * dx**2 + du**2) / (m * n)),
            "joint": radius * lip * (base + c * math.sqrt(ell * log) / (eps * n * r)),
            "full": radius * lip * (base + c * math.sqrt((n * k + ell) * log) / (eps * n * r)),
            "smooth": radius * lip * (base + c * ell / (eps * n * math.sqrt(m * r))),
        }
        for name, value in expected.items():
            assert computed[name][i] == pytest.approx(value, rel=1e-12), name


def test_numbers_that_nobody_has_are_refused_all_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"(?is)epsilon must be above 0.*personal must be at least 0"):
        draw_owners(1, epsilon=0.0, personal=-1.0)
    with pytest.raises(InvalidInput, match=r"(?i)records.per.unit must be above 0"):
        draw_owners(1).replace(records_per_unit=np.array([1.0, math.nan]))


def test_collapses_to_simpler_settings() -> None:
    draws = draw_owners(2)
    joint, full, none = (
        bound_together(draws, ProtectedPart.JOINT),
        bound_together(draws, ProtectedPart.FULL),
        bound_without_privacy(draws),
    )
    assert np.all(none <= joint)
    assert np.all(joint <= full)
    without_part = draws.replace(personal=0.0)  # k = 0: joint privacy is full privacy
    np.testing.assert_allclose(
        bound_together(without_part, ProtectedPart.JOINT),
        bound_together(without_part, ProtectedPart.FULL),
        rtol=1e-15,
    )
    np.testing.assert_allclose(  # ℓ = 0: nothing gets noise
        bound_together(draws.replace(shared=0.0), ProtectedPart.JOINT), none, rtol=1e-15
    )
    single = draws.replace(owners=1.0)  # n = 1: no DP is working alone, and joining never pays
    np.testing.assert_allclose(bound_without_privacy(single), bound_alone(single), rtol=1e-14)
    assert np.all(np.isinf(bounds.find_epsilon_star(single, ProtectedPart.JOINT)))
    # One record per user: the user level is the record level; as printed (A.3) it is not, by a factor of about m.
    records = draws.replace(records_per_unit=1.0)
    s = np.sqrt(np.log(1 / np.asarray(draws.delta))) / draws.epsilon
    expected = (
        s
        * np.sqrt(draws.count_noisy_parameters(ProtectedPart.FULL))
        / draws.num_all_records
        * draws.privacy_constant
    )
    np.testing.assert_allclose(
        bound_together(records, ProtectedPart.FULL) - none,
        draws.joint_diameter * draws.lipschitz * expected,
        rtol=1e-7,
    )
    many = np.asarray(draws.records) >= 100.0
    printed = compute_printed_bound_of_users(records) - none
    assert np.all(printed[many] > 99.0 * (bound_together(records, ProtectedPart.FULL) - none)[many])
    assert np.all(
        np.isinf(bounds.find_epsilon_star(draws.replace(shared_diameter=0.0), ProtectedPart.JOINT))
    )  # ρ = 1
    np.testing.assert_allclose(bound_trivially(draws), bound_alone(draws.replace(records=1.0)), rtol=1e-15)


def test_with_the_printed_sum_one_owner_would_gain_from_joining_itself() -> None:
    single = ISSUE.replace(owners=1.0, personal_diameter=1.0)
    assert float(compute_printed_bound_alone(single) / bound_without_privacy(single)) == pytest.approx(
        math.sqrt(2.0)
    )
    assert float(bound_alone(single) / bound_without_privacy(single)) == pytest.approx(1.0)


def test_what_joint_privacy_saves_is_less_than_printed() -> None:
    # √(1,280 + 7,850) − √7,850 = 6.95 where √1,280 = 35.8 is printed; s is dropped there as well.
    collaboration = ISSUE.replace(owners=128.0, personal=10.0, delta=math.exp(-1.0))
    assert float(
        compute_joint_saving(collaboration) / compute_printed_saving(collaboration)
    ) == pytest.approx(6.95 / 35.78, rel=1e-3)


def find_crossing(low: np.ndarray, high: np.ndarray, pays: object) -> np.ndarray:
    """Where ``pays`` changes from no to yes between logs, all draws at once."""
    for _ in range(200):
        middle = (low + high) / 2.0
        yes = pays(np.exp(middle))
        low, high = np.where(yes, low, middle), np.where(yes, middle, high)
    return np.exp(high)


def check_roots(closed_form: np.ndarray, root: np.ndarray, finite: np.ndarray) -> None:
    assert finite.sum() > 0.1 * DRAWS
    np.testing.assert_allclose(closed_form[finite], root[finite], rtol=1e-8)


WIDE = (np.full(DRAWS, math.log(1e-30)), np.full(DRAWS, math.log(1e30)))


@pytest.mark.long
@pytest.mark.parametrize("private", ProtectedPart)
def test_closed_crossings_are_the_roots_of_the_bounds(private: ProtectedPart) -> None:
    draws = draw_owners(3 if private is ProtectedPart.JOINT else 4)
    # Where joining gains next to nothing even without privacy, the difference of the bounds is rounding.
    clear = bounds.compute_advantage(draws) > 1e-6

    epsilon = bounds.find_epsilon_star(draws, private)
    root = find_crossing(
        *WIDE, lambda e: bound_together(draws.replace(epsilon=e), private) < bound_alone(draws)
    )
    check_roots(epsilon, root, clear & (epsilon < 1e20) & (epsilon > 1e-20))

    records = bounds.find_records_star(draws, private)
    root = find_crossing(
        *WIDE,
        lambda m: bound_together(draws.replace(records=m), private) < bound_alone(draws.replace(records=m)),
    )
    check_roots(records, root, clear & (records < 1e20) & (records > 1e-20))

    share = draws.records_per_unit / draws.records
    with_units = draws.replace(records_per_unit=share * draws.records)
    limit = bounds.find_records_limit(with_units, private)

    def stops(m: np.ndarray) -> np.ndarray:
        collaboration = draws.replace(records=m, records_per_unit=share * m)
        # The log of a unit's records over δ must stay above 0.
        with np.errstate(invalid="ignore"):
            return ~(bound_together(collaboration, private) < bound_alone(collaboration)) & (
                share * m > 1.001 * np.asarray(draws.delta)
            )

    root = find_crossing(*WIDE, stops)
    check_roots(limit, root, clear & (limit < 1e20) & (share * limit > 1.01 * np.asarray(draws.delta)))


def owners_star(collaboration: Collaboration) -> np.ndarray:
    """n of D_X = 0 in closed form: √n* = (c_s + √(c_s² + 4 c_a κ c_p s √(ℓ/m))) / (2 c_a κ)."""
    alone_weight = np.asarray(collaboration.alone_constant * collaboration.evenness)
    noise = (
        collaboration.privacy_constant
        * collaboration.privacy_scale
        * np.sqrt(np.asarray(collaboration.shared) / collaboration.records)
    )
    root = np.sqrt(np.square(collaboration.sampling_constant) + 4.0 * alone_weight * noise)
    return np.asarray(np.square((collaboration.sampling_constant + root) / (2.0 * alone_weight)))


def test_the_number_of_owners_without_a_personal_part() -> None:
    draws = draw_owners(5, personal=0.0, personal_diameter=0.0, sampling_constant=1.3, alone_constant=0.7)
    owners = owners_star(draws)
    root = find_crossing(
        *WIDE,
        lambda n: (
            bound_together(draws.replace(owners=n), ProtectedPart.JOINT)
            < bound_alone(draws.replace(owners=n))
        ),
    )
    check_roots(owners, root, owners < 1e20)
    # The issue's and the notes' figures.
    assert float(owners_star(ISSUE)) == pytest.approx(36.1, abs=0.05)
    assert float(owners_star(ISSUE.replace(records=1000.0))) == pytest.approx(13.1, abs=0.05)
    assert bounds.find_owners_needed(ISSUE, ProtectedPart.JOINT) == 37
    assert find_regime(ISSUE) is Regime.FULL_TOO
    assert find_regime(ISSUE.replace(owners=36.0)) is Regime.ALONE


@given(st.integers(0, DRAWS - 1), st.sampled_from(ProtectedPart))
def test_the_number_of_owners_needed_is_the_first_that_pays(index: int, private: ProtectedPart) -> None:
    collaboration = Collaboration(**select_draw(draw_owners(6), index))
    needed = bounds.find_owners_needed(collaboration, private)

    def pays(n: float) -> bool:
        with_owners = collaboration.replace(owners=n)
        return float(bound_together(with_owners, private)) < float(bound_alone(with_owners)) * (1.0 - 1e-12)

    if needed is None:
        assert not pays(1e12)
    else:
        assert pays(needed * (1.0 + 1e-6))
        assert not pays(needed - 1.0)


def test_a_gain_of_a_millionth_of_a_millionth_keeps_its_digits() -> None:
    # With 50 digits: ρ - 1 of about 1e-12 and 1e-18, where the difference of two float64 has no digit left.
    from decimal import Decimal, localcontext

    for diameter in (1e6, 1e9):
        collaboration = ISSUE.replace(owners=37.0, personal_diameter=diameter, shared_diameter=1.0)
        with localcontext() as digits:
            digits.prec = 50
            n, personal = Decimal(37), Decimal(diameter)
            exact = (n * (personal**2 + 1) / (n * personal**2 + 1)).sqrt() - 1
        assert float(bounds.compute_advantage(collaboration)) == pytest.approx(float(exact), rel=1e-12)
        assert 0.0 < float(bounds.compute_advantage(collaboration)) < 2e-12
    # n from which joining pays, by the definition with 50 digits: √(m n) (ρ - 1) > s √ℓ.
    collaboration = ISSUE.replace(personal_diameter=1e3, records=1e12)
    needed = bounds.find_owners_needed(collaboration, ProtectedPart.JOINT)
    with localcontext() as digits:
        digits.prec = 50

        def pays(n: int) -> bool:
            personal, count = Decimal(1000), Decimal(n)
            rho = (count * (personal**2 + 1) / (count * personal**2 + 1)).sqrt()
            noise = (
                Decimal(float(collaboration.privacy_scale))
                * Decimal(float(collaboration.count_noisy_parameters(ProtectedPart.JOINT))).sqrt()
            )
            return (Decimal(float(collaboration.records)) * count).sqrt() * (rho - 1) > noise

        assert pays(needed)
        assert needed == 1 or not pays(needed - 1)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (MapAxis.OWNERS, MapAxis.EPSILON),
        (MapAxis.SHARED, MapAxis.RECORDS),
        (MapAxis.PERSONAL, MapAxis.OWNERS),
    ],
)
def test_a_map_holds_the_regime_of_every_point(x: MapAxis, y: MapAxis) -> None:
    base = ISSUE.replace(personal=200.0, personal_diameter=0.05, records_per_unit=2.0)
    regime_map = compute_regime_map(base, x, y, num_columns=23, num_rows=17)
    for i in range(17):
        for j in range(23):
            point = base.replace(**{x.value: regime_map.x_values[j], y.value: regime_map.y_values[i]})
            if point.records_per_unit > point.records * (1 + 1e-9):
                assert math.isnan(regime_map.regimes[i, j])
                continue
            assert regime_map.regimes[i, j] == find_regime(point)
            assert regime_map.vacuous_mask[i, j] == (
                float(bound_together(point, ProtectedPart.JOINT)) >= float(bound_trivially(point))
            )
            assert regime_map.uncovered_mask[i, j] == (point.epsilon > 10 or point.delta >= 1 / point.owners)
    assert len(np.unique(regime_map.regimes[np.isfinite(regime_map.regimes)])) >= 2
    assert (regime_map.x_values[0], regime_map.x_values[-1]) == pytest.approx(RANGE_BY_AXIS[x])


def test_with_whole_owners_units_grow_along_the_axis_of_records() -> None:
    base = ISSUE.replace(records_per_unit=ISSUE.records)
    regime_map = compute_regime_map(
        base, MapAxis.RECORDS, MapAxis.EPSILON, protects_owner=True, num_columns=9, num_rows=7
    )
    for i, j in ((0, 0), (6, 8), (3, 5), (6, 0)):
        point = base.replace(
            records=regime_map.x_values[j],
            records_per_unit=regime_map.x_values[j],
            epsilon=regime_map.y_values[i],
        )
        assert regime_map.regimes[i, j] == find_regime(point)


def test_capped_owners_are_summed_one_by_one() -> None:
    rng = np.random.default_rng(8)
    counts = np.rint(np.exp(rng.normal(3, 1.5, 300))).astype(int) + 1
    histogram = ContributionHistogram.from_counts(counts)
    for cap in (1.0, 4.0, 21.0, 1e9):
        kept_records = np.minimum(counts, cap)
        collaboration = regimes.build_capped_collaboration(histogram, cap, ISSUE, protects_owner=True)
        weights = kept_records / kept_records.sum()
        mean_alone = float(np.sum(weights / np.sqrt(counts)))
        assert float(bound_alone(collaboration)) == pytest.approx(mean_alone, rel=1e-12)
        assert float(collaboration.num_all_records) == pytest.approx(kept_records.sum(), rel=1e-12)
        assert collaboration.records_per_unit == cap
    equal = regimes.build_capped_collaboration(
        ContributionHistogram([50], [37]), 50.0, ISSUE, protects_owner=False
    )
    assert float(equal.evenness) == pytest.approx(1.0)
    assert float(bound_alone(equal)) == pytest.approx(float(bound_alone(ISSUE.replace(records=50.0))))


@given(
    st.dictionaries(st.integers(1, 3000), st.integers(1, 50), min_size=1, max_size=8),
    st.floats(0.01, 100.0),
    st.sampled_from([1.0, 30.0, 7850.0, 1e7]),
)
def test_the_best_cap_is_the_best_of_all(table: dict[int, int], epsilon: float, shared: float) -> None:
    sizes = sorted(table)
    histogram = ContributionHistogram(sizes, [table[s] for s in sizes])
    collaboration = ISSUE.replace(epsilon=epsilon, shared=shared)
    best = regimes.find_best_cap(histogram, collaboration)
    all_bounds = regimes.compute_joint_bounds(histogram, np.arange(1.0, sizes[-1] + 1.0), collaboration)
    assert best.joint_bound <= all_bounds.min() * (1.0 + regimes.TOLERANCE)
    assert best.joint_bound == pytest.approx(float(all_bounds[best.cap - 1]), rel=1e-12)
    assert best.certificate.lower_bound <= all_bounds.min() * (1.0 + 1e-12)
    assert best.certificate.proves(2.0 * regimes.TOLERANCE)
    low, high = best.near_optimal
    assert low <= best.cap <= high
    assert all_bounds[low - 1] <= regimes.NEAR_OPTIMAL_FACTOR * best.joint_bound * (1 + 1e-12)
    assert all_bounds[high - 1] <= regimes.NEAR_OPTIMAL_FACTOR * best.joint_bound * (1 + 1e-12)
    worst = float(all_bounds.max())  # a bad answer is not proved
    if worst > 1.1 * best.joint_bound:
        assert not Certificate(worst, best.certificate.lower_bound, "").proves(0.09)


def test_a_huge_owner_is_answered_at_once() -> None:
    histogram = ContributionHistogram([1, 10, 10**6, 10**12], [10**6, 10**4, 10, 1])
    best = regimes.find_best_cap(histogram, ISSUE)
    assert best.certificate.proves(2.0 * regimes.TOLERANCE)
    assert 1 <= best.cap <= 10**12


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        OwnersParameters(
            epsilon=0.0, owners=0, records=5, unit=Unit.USER, records_per_user=9.0, shared_diameter=0.0,
            personal_diameter=0.0, x_axis=MapAxis.OWNERS, y_axis=MapAxis.OWNERS,
        )  # fmt: skip
    message = " ".join(p.sentence for p in refused.value.problems)
    for words in ("Epsilon", "number of owners", "cannot have more records", "diameters", "axes"):
        assert words in message


def test_the_personal_part_sets_sizes_and_diameters_and_entered_numbers_replace_them() -> None:
    for part in PersonalPart:
        sizes = OwnersParameters(1.0, personal_part=part).model_sizes
        assert sizes["shared"] + sizes["personal"] == NUM_PARAMETERS
        assert sizes["personal"] == sum(SIZE_BY_LAYER[layer] for layer in part.layers)
        # One range of all parameters: a part of k of them is √k times as long, and the whole model 1.
        assert math.hypot(sizes["personal_diameter"], sizes["shared_diameter"]) == pytest.approx(1.0)
        ratio = sizes["personal_diameter"] / sizes["shared_diameter"]
        assert ratio == pytest.approx(math.sqrt(sizes["personal"] / sizes["shared"]))
        assert bound_alone(OwnersParameters(1.0, personal_part=part).build_collaboration()) == pytest.approx(
            1.0 / math.sqrt(1_000)
        )
    # The layers by their shapes, as table 2 counts them.
    assert list(SIZE_BY_LAYER.values()) == [16 * (25 + 1), 32 * (16 * 25 + 1), 32 * 49 * 11, 32 * 49 * 11]
    entered = OwnersParameters(1.0, shared=30, personal=10, shared_diameter=2.0).model_sizes
    assert entered == {"shared": 30, "personal": 10, "personal_diameter": 0.5, "shared_diameter": 2.0}
    assert OwnersParameters(1.0, shared=0, personal=0).model_sizes["shared_diameter"] == 1.0
    with pytest.raises(InvalidInput, match="diameters"):
        OwnersParameters(1.0, shared=0, personal_diameter=0.0)


def test_units_of_protection() -> None:
    user = OwnersParameters(1.0, records=100, unit=Unit.USER, records_per_user=5.0).build_collaboration()
    assert (
        user.records_per_unit,
        OwnersParameters(1.0, unit=Unit.OWNER).build_collaboration().records_per_unit,
    ) == (
        5.0,
        1_000.0,
    )
    data = OwnersParameters(1.0, source=OwnersSource.DATA, unit=Unit.USER, records_per_user=50.0)
    with pytest.raises(InvalidInput, match="largest owner"):
        data.build_collaboration_of_histogram(ContributionHistogram([3], [2]))
