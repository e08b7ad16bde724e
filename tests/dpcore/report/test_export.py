"""Files that a person takes away, read back by other readers."""

import csv
import io
import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore import mean
from dpcore.common import strict_json
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.mean.answer import answer as mean_files
from dpcore.mean.answer import build_answer
from dpcore.mean.table_values import ValueSummary
from dpcore.report import content as report_document

histograms = st.dictionaries(st.integers(1, 10**6), st.integers(1, 10**6), min_size=1, max_size=12).map(
    lambda table: ContributionHistogram(sizes=sorted(table), users=[table[s] for s in sorted(table)])
)


def read_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@given(histograms, st.floats(1e-3, 1e2), st.sampled_from(Disclosure))
def test_weights_add_up_to_one_over_the_file(histogram, epsilon, disclosure):
    problem = mean.MeanProblem(histogram, epsilon, 2.0, 0.7)
    cap, smooth = mean.find_best_cap(problem), mean.find_best_smooth(problem)
    rows = read_rows(
        mean_files.write_weights_csv(problem, smooth.threshold, cap.max_contributions, disclosure)
    )
    assert [int(row["size"]) for row in rows] == histogram.sizes.tolist()
    assert [int(row["users"]) for row in rows] == histogram.users.tolist()
    exact = {name: [Fraction(row[name]) for row in rows] for name in rows[0] if name != "label"}

    def total(*names):
        return float(sum(math.prod(entries) for entries in zip(*(exact[n] for n in names), strict=True)))

    assert total("users", "size", "row_weight") == pytest.approx(1.0, rel=1e-12)
    assert total("users", "user_weight") == pytest.approx(1.0, rel=1e-12)
    assert total("users", "rows_kept_at_cap", "capped_row_weight") == pytest.approx(1.0, rel=1e-12)
    assert all(int(row["rows_kept_at_cap"]) == min(int(row["size"]), cap.max_contributions) for row in rows)
    assert {row["label"] for row in rows} == {disclosure.label}
    assert all(float(row["row_weight"]) > 0 for row in rows)


def test_the_error_can_be_computed_again_from_the_file():
    histogram = ContributionHistogram(sizes=[1, 3, 10], users=[200, 20, 1])
    problem = mean.MeanProblem(histogram, 1.0, 1.0, 0.25)
    smooth = mean.find_best_smooth(problem)
    rows = read_rows(mean_files.write_weights_csv(problem, smooth.threshold, 3, Disclosure.PUBLIC))
    # sigma^2 times the sum of squared weights, and Laplace noise for the heaviest user's weight.
    sampling = 0.25 * sum(int(r["users"]) * int(r["size"]) * float(r["row_weight"]) ** 2 for r in rows)
    noise = 2.0 * max(float(r["user_weight"]) for r in rows) ** 2
    assert sampling + noise == pytest.approx(smooth.squared_error)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_columns_keep_every_digit(values):
    rows = read_rows(
        report_document.write_columns({"a": values, "n": range(len(values))}, Disclosure.DP_RELEASE)
    )
    assert [float(row["a"]) for row in rows] == values
    assert [int(row["n"]) for row in rows] == list(range(len(values)))
    assert {row["label"] for row in rows} == {"computed from a DP release"}


# As a spreadsheet reads a cell, whatever stands around it: https://owasp.org/www-community/attacks/CSV_Injection.
RUN = ("=", "@", "+", "-", "\t", "\r", "\uff1d", "\uff20", "\uff0b", "\uff0d")
HOSTILE = ["=cmd|' /C calc'!A0", "@sum(1)", "+x", "-x", "\uff1d1+1", "a,=1+1", "-5", "+2.5e3", "plain"]


def runs(cell):
    try:
        return float(cell.strip()) != float(cell.strip())
    except ValueError:
        return cell.strip().startswith(RUN)


def test_no_cell_of_a_file_is_a_formula():
    columns = {name: HOSTILE[: len(HOSTILE)] for name in HOSTILE}
    text = report_document.write_columns(columns, Disclosure.PUBLIC)
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if runs(cell)]
    # What is none stays as it is.
    assert {"-5", "+2.5e3", "plain", "a,=1+1"} <= set(cells)
    assert read_rows(text)[0]["'=cmd|' /C calc'!A0"] == "'=cmd|' /C calc'!A0"
    noted = report_document.write_columns(
        {"a": [1]}, Disclosure.PUBLIC, [f"axis x: {name}" for name in HOSTILE]
    )
    lines = [line for line in noted.splitlines() if line.startswith("#")]
    assert len(lines) == 1 + len(HOSTILE)
    for delimiter in ",;\t":
        assert not [cell for row in csv.reader(lines, delimiter=delimiter) for cell in row if runs(cell)]


def choice(variance_source=mean.VarianceSource.FROM_VALUES, **options):
    data = samples.load("shop-events")
    parameters = mean.MeanParameters(epsilon=0.5, upper=100.0, variance_source=variance_source, **options)
    problem = parameters.build_problem(data.histogram, ValueSummary.from_dataset(data, 0.0, 100.0))
    cap, smooth = mean.find_best_cap(problem), mean.find_best_smooth(problem)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = build_answer(data, parameters).write_json()
    return json.loads(text, parse_constant=refuse), problem, cap, smooth


def test_the_choice_holds_question_and_answer():
    document, problem, cap, smooth = choice(own_bound=7)
    assert document["schema"] == strict_json.CHOICE_SCHEMA
    question = document["question"]
    assert (question["epsilon"], question["upper"], question["own_bound"]) == (0.5, 100.0, 7)
    assert question["neighbours"] == mean.NEIGHBOURS.value
    assert document["data"]["num_rows"] == problem.histogram.num_rows
    assert document["data"]["value_variance"] == problem.value_variance
    answer = document["answer"]
    assert answer["max_contributions"] == cap.max_contributions
    assert answer["threshold"] == smooth.threshold
    for name, best in (("cap", cap), ("smooth", smooth)):
        assert answer[name]["variance"] == best.squared_error
        assert answer[name]["standard_error"] ** 2 == pytest.approx(best.squared_error)
        variance_parts = answer[name]["sampling_variance"] + answer[name]["privacy_variance"]
        assert variance_parts == pytest.approx(best.squared_error)
        assert answer[name]["proved_relative_gap"] <= 1e-6
    assert document["assumptions"] == list(mean.ASSUMPTIONS)


def test_every_part_with_numbers_has_a_label():
    document, *_ = choice()
    assert [document[section]["label"] for section in ("question", "data", "answer")] == ["public input"] * 3


def test_an_entered_variance_is_public_even_on_private_data():
    document, *_ = choice(mean.VarianceSource.ENTERED, value_variance=12.0)
    assert document["data"]["value_variance_label"] == "public input"
    assert document["data"]["value_variance"] == 12.0
