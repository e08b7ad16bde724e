"""The page's parameters, its instance files, and the pieces that the page draws."""

import json
import math

import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data.guessed_roles import guess_roles
from dpcore.gap_examples import two_groups as gap_examples_files
from dpcore.gap_examples.compare import compare, compute_noise_ratio
from dpcore.gap_examples.parameters import GapParameters
from dpcore.gap_examples.two_groups import build_theorem_2_problem, compute_supremum
from dpcore.mean import VarianceSource


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("g", 4, "must be one of"),
        ("light_users", 100, "between 1 and 99"),
        ("heavy_size", 6, "must be one of"),
        ("noise_per_user", math.nan, "the noise per user, t = ρ / m must lie"),
        ("example", 2, "must be one of"),
        ("variance_source", VarianceSource.FROM_VALUES, "must be one of worst, entered"),
        ("value_variance", 0.1, 'σ² can be set only with "Entered"'),
    ],
)
def test_what_cannot_be_is_refused_in_words(field: str, value: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?i){says}"):
        GapParameters(1.0, **{field: value})


def test_two_groups_are_the_instance_of_the_sliders() -> None:
    two = GapParameters(1.0, light_users=40, heavy_size=7, light_size=5).build_two_group_problem()
    assert (two.histogram.sizes.tolist(), two.histogram.users.tolist()) == ([5, 35], [40, 60])
    # rho = q m / s
    assert compute_noise_ratio(two) == pytest.approx(60 / 5)


def test_an_instance_file_is_one_that_your_data_opens() -> None:
    problem = compute_supremum().build_problem()
    text = gap_examples_files.write_instance_csv(problem, Disclosure.PUBLIC)
    table = counting.read_table(text.encode(), "instance.csv")
    data = counting.build_dataset(table, guess_roles(table), Disclosure.PUBLIC)
    assert data.histogram == problem.histogram
    assert f"{compute_noise_ratio(problem)!r}" in text


def test_an_instance_file_says_how_to_have_its_ratio_again() -> None:
    comparison = compare(build_theorem_2_problem(10))
    document = json.loads(gap_examples_files.write_instance_json(comparison, Disclosure.PUBLIC))
    instance, answer = document["instance"], document["answer"]
    reread = GapParameters(instance["epsilon_for_unit_values"]).build_mean_parameters()
    histogram = ContributionHistogram(instance["sizes"], instance["users"])
    assert compare(reread.build_problem(histogram)).ratio == pytest.approx(10 / 7)
    assert answer["ratio"] == pytest.approx(10 / 7)
    assert answer["ratio_at_least"] <= answer["ratio"] <= answer["ratio_at_most"]
    assert document["label"] == "public input"


def test_an_instance_without_sampling_error_is_still_a_file() -> None:
    silent = GapParameters(
        1.0, variance_source=VarianceSource.ENTERED, value_variance=0.0
    ).build_mean_parameters()
    comparison = compare(silent.build_problem(ContributionHistogram([1, 5], [3, 2])))
    document = json.loads(gap_examples_files.write_instance_json(comparison, Disclosure.PRIVATE))
    assert document["instance"]["noise_ratio"] is None
    assert "do not publish" in document["label"]
