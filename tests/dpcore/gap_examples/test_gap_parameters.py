"""The page's parameters, its instance files, and the pieces that the page draws."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore import counting
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import from_fields, to_fields
from dpcore.contributions import ContributionHistogram
from dpcore.data.column_roles import guess_roles
from dpcore.gap_examples import files as gap_examples_files
from dpcore.gap_examples.batch import ratios, worst_noise_ratio
from dpcore.gap_examples.compare import compare, noise_ratio, with_noise_ratio
from dpcore.gap_examples.domination import level_curve
from dpcore.gap_examples.parameters import (
    EVALUATIONS,
    HEAVY_SIZES,
    REGRESSION_G,
    THEOREM_G,
    GapParameters,
    InstanceKind,
    table_histogram,
    table_text,
)
from dpcore.gap_examples.two_groups import supremum, theorem_2_problem
from dpcore.mean import VarianceSource

groups = st.lists(
    st.tuples(st.integers(1, 10**9), st.integers(1, 10**6)), min_size=1, max_size=8, unique_by=lambda g: g[0]
)


@given(groups)
def test_a_table_survives_its_text_and_fits_a_link(drawn: list[tuple[int, int]]) -> None:
    histogram = ContributionHistogram.from_table(*zip(*drawn, strict=True))
    text = table_text(histogram.sizes, histogram.users)
    assert table_histogram(text) == histogram
    assert len(text) <= 200


@given(
    groups,
    st.sampled_from(THEOREM_G),
    st.sampled_from(HEAVY_SIZES),
    st.sampled_from(InstanceKind),
)
def test_parameters_survive_a_link(
    drawn: list[tuple[int, int]], g: int, heavy_size: int, simulated: InstanceKind
) -> None:
    asked = GapParameters(
        epsilon=0.3,
        variance_source=VarianceSource.ENTERED,
        value_variance=0.1,
        g=g,
        heavy_size=heavy_size,
        table=table_text(*zip(*drawn, strict=True)),
        table_noise_ratio=1.0 / 3.0,
        evaluations=EVALUATIONS[-1],
        regression_g=REGRESSION_G[0],
        simulated=simulated,
    )
    assert from_fields(GapParameters, to_fields(asked)) == asked


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("g", 4, "must be one of"),
        ("light_users", 100, "between 1 and 99"),
        ("heavy_size", 6, "must be one of"),
        ("noise_per_user", math.nan, "noise_per_user"),
        ("table", "1x2x3", "a table reads like"),
        ("table", "", "a table reads like"),
        ("table", "0x1", "at least 1"),
        ("table", "1x1 1x2 1x3 1x4 1x5 1x6 1x7 1x8 1x9", "at most 8 groups"),
        ("table", "1x5000000000", "at most 1,000,000,000"),
        ("num_groups", 9, "num_groups"),
        ("seed", -1, "seed"),
        ("example", 2, "must be one of"),
        ("runs", 10, "runs"),
        ("variance_source", VarianceSource.FROM_VALUES, "worst or entered"),
        ("value_variance", 0.1, "its source is not"),
    ],
)
def test_what_cannot_be_is_refused_in_words(field: str, value: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?i){says}"):
        GapParameters(1.0, **{field: value})  # type: ignore[arg-type]


def test_each_instance_is_what_its_step_says() -> None:
    asked = GapParameters(1.0, g=20, light_users=40, heavy_size=7, light_size=5, table="3x1 2x9")
    own = ContributionHistogram([2, 4], [1, 1])
    found = {kind: dataclasses.replace(asked, simulated=kind).simulated_problem(own) for kind in InstanceKind}
    two = found[InstanceKind.TWO_GROUPS]
    assert (two.histogram.sizes.tolist(), two.histogram.users.tolist()) == ([5, 35], [40, 60])
    # rho = q m / s
    assert noise_ratio(two) == pytest.approx(60 / 5)
    assert found[InstanceKind.TABLE].histogram.sizes.tolist() == [1, 9]
    assert noise_ratio(found[InstanceKind.TABLE]) == pytest.approx(asked.table_noise_ratio)
    assert noise_ratio(found[InstanceKind.THEOREM_2]) == pytest.approx(20)
    # B = 1, sigma^2 = 1/4, epsilon = 1
    assert found[InstanceKind.DATA].histogram == own
    assert noise_ratio(found[InstanceKind.DATA]) == pytest.approx(8.0)
    assert compare(found[InstanceKind.LARGEST]).ratio == pytest.approx(supremum().ratio, abs=2e-6)


def test_an_instance_file_is_one_that_your_data_opens() -> None:
    problem = supremum().problem()
    text = gap_examples_files.instance_csv(problem, Disclosure.PUBLIC)
    table = counting.read_table(text.encode(), "instance.csv")
    data = counting.build_dataset(table, guess_roles(table), Disclosure.PUBLIC)
    assert data.histogram == problem.histogram
    assert f"{noise_ratio(problem)!r}" in text


def test_an_instance_file_says_how_to_have_its_ratio_again() -> None:
    both = compare(theorem_2_problem(10))
    document = json.loads(gap_examples_files.instance_json(both, Disclosure.PUBLIC))
    instance, answer = document["instance"], document["answer"]
    again = GapParameters(instance["epsilon_for_unit_values"]).mean_parameters()
    histogram = ContributionHistogram(instance["sizes"], instance["users"])
    assert compare(again.problem(histogram)).ratio == pytest.approx(10 / 7)
    assert answer["ratio"] == pytest.approx(10 / 7)
    assert answer["ratio_at_least"] <= answer["ratio"] <= answer["ratio_at_most"]
    assert document["label"] == "public input"


def test_an_instance_without_sampling_error_is_still_a_file() -> None:
    silent = GapParameters(1.0, variance_source=VarianceSource.ENTERED, value_variance=0.0).mean_parameters()
    both = compare(silent.problem(ContributionHistogram([1, 5], [3, 2])))
    document = json.loads(gap_examples_files.instance_json(both, Disclosure.PRIVATE))
    assert document["instance"]["noise_ratio"] is None
    assert "do not publish" in document["label"]


@given(groups, st.floats(1e-3, 1e6))
def test_the_level_curve_is_where_a_cap_would_be_as_good_as_the_best(
    drawn: list[tuple[int, int]], rho: float
) -> None:
    both = compare(with_noise_ratio(ContributionHistogram.from_table(*zip(*drawn, strict=True)), rho))
    caps = np.unique(np.rint(np.geomspace(1.0, 3.0 * both.cap.max_contributions, 30)))
    rows = level_curve(both, caps)
    assert 1.0 / rows + both.noise_ratio * (caps / rows) ** 2 == pytest.approx(
        np.full(caps.shape, both.cap.variance), rel=1e-9
    )
    kept = both.problem.histogram.kept_rows(caps)
    assert np.all(kept <= rows * (1.0 + 1e-9))


def test_worst_noise_ratio_is_no_worse_than_a_finer_search() -> None:
    for sizes, users in (([1, 10], [10, 10]), ([1, 5, 40], [50, 30, 20]), ([3, 4], [1, 9])):
        found = ratios(sizes, users, worst_noise_ratio(sizes, users)).ratio
        fine = ratios(sizes, users, np.geomspace(1e-4, 1e4, 300_001)).ratio.max()
        assert found == pytest.approx(fine, abs=1e-4)
