"""Files that an engine or the command counted: they are opened and answered as the rows themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpcore import total
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_number
from dpcore.contributions import ContributionHistogram
from dpcore.counting import reduce
from dpcore.counting.__main__ import write_histogram_csv, write_pairs_csv
from dpcore.counting.count import to_dataset
from dpcore.data import binned_values, group_pairs, samples
from dpcore.data.column_roles import TableKind
from dpcore.data.totals_per_user import Amounts
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import Contribution, Dataset
from tests.pages.driving import check, count_content, data, errors, go, open_app, shown_texts, upload, use
from tests.pages.your_data.conftest import GZIPPED, panel, until_counted


@pytest.mark.long
def test_engines_show_command_code_and_sql_for_the_columns_chosen():
    app = upload(open_app("Data"), b"kunde_id,amount\na,1\nb,2\n")
    check(app.selectbox(key="your_data.engine").set_value("snowflake").run())
    check(app.text_input(key="your_data.engine_table").set_value("logs.orders").run())
    texts = "\n".join(code.value for code in app.main.code)
    assert "--from 'snowflake://analyst@account" in texts
    assert "--table logs.orders --user kunde_id" in texts
    assert "open_table(backend, 'logs.orders')" in texts
    assert "GROUP BY" in texts
    assert "password" not in texts.lower()
    assert "--values-to" not in texts
    for name, number in (("lower", 0), ("upper", 10), ("bins", 2.5)):
        app.number_input(key=f"your_data.engine_{name}").set_value(number)
    assert "number of bins must be a whole number" in errors(app.run())
    check(app.number_input(key="your_data.engine_bins").set_value(5).run())
    texts = "\n".join(code.value for code in app.main.code)
    assert "--values-to values.json --value-bins 0 10 5" in texts
    assert "value_bins=ValueBins(0.0, 10.0, 5)" in texts
    assert texts.count("GROUP BY") > 2


@pytest.mark.long
def test_binned_totals_are_answered_as_those_of_single_users(everything_is_large, monkeypatch):
    exact = Amounts.from_totals(samples.load("shop-events").totals)
    monkeypatch.setattr(reduce.dataset, "MAX_TOTALS", 10)
    monkeypatch.setattr(reduce.dataset, "MAX_VALUES", 10)
    app = until_counted(use(upload(open_app("Data"), GZIPPED, "shop_events.csv.gz")))
    binned = data(app)
    assert binned.values is None
    assert binned.totals.users.sum() == exact.num_users
    assert binned.totals.totals.size < exact.num_users
    go(app, "Sum and count")
    check(app.segmented_control(key="total.summed").set_value("Values").run())
    assert f"add up to {format_number(exact.total, 4)}" in shown_texts(app)
    # A bin is 0.23 % wide, so the best bound moves by no more, and its error by less.
    problems = [total.TotalProblem(amounts, 1.0) for amounts in (exact, Amounts.from_totals(binned.totals))]
    one, other = (
        total.measure_errors(problem, [total.find_optimal_bound(problem)])[0] for problem in problems
    )
    assert other == pytest.approx(one, rel=3e-3)


@pytest.mark.long
def test_a_distribution_of_pairs_is_opened_with_its_label_and_answers_per_group():
    shop = samples.load("shop-events")
    content = group_pairs.write_distribution(shop).encode()

    def choose_distribution(*files):
        check(app.file_uploader[0].set_value([(name, its, "application/json") for name, its in files]).run())

    app = panel()
    choose_distribution(("pairs.json", content.replace(b'"counted": "rows"', b'"counted": "people"')))
    assert "pairs.json was not read" in errors(app)
    assert "Counted: this must be one of rows, distinct tasks" in errors(app)
    assert "use_distribution" not in {button.key for button in app.button}
    choose_distribution(("a.json", content), ("b.json", content))
    assert "is one file" in errors(app)
    choose_distribution(("pairs.json", content))
    assert "answers from these numbers" in shown_texts(app)
    assert app.radio(key="your_data.upload_public").value is Disclosure.PRIVATE
    assert data(app).name != "pairs.json"
    check(app.button(key="discard_distribution").click().run())
    assert "use_distribution" not in {button.key for button in app.button}
    choose_distribution(("pairs.json", content))
    check(app.button(key="use_distribution").click().run())
    dataset = data(app)
    assert dataset.is_private
    assert dataset.histogram == shop.histogram
    assert dataset.pair_sizes == group_pairs.summarise_pairs(shop.pairs)
    go(app, "Group by")
    assert "Which pairs lie in which group is not known" in shown_texts(app)
    assert "do not publish" in shown_texts(app).lower()
    go(app, "Data")
    choose_distribution(("pairs.json", content))
    check(app.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run())
    check(app.button(key="use_distribution").click().run())
    assert not data(app).is_private


@pytest.mark.long
def test_binned_values_are_opened_and_answer_a_mean_and_a_quantile():
    bins = ValueBins(0.0, 10.0, 5)
    arrays = [0, 0, 1], [3, 1, 4], [0.5, 12.0, 3.5], [0.25, 0.0, 0.5]
    values = binned_values.build_values(*arrays, column="minutes", bins=bins)
    histogram = ContributionHistogram.from_counts([4, 4])
    content = binned_values.write_values(
        Dataset("", "", Disclosure.PRIVATE, histogram, values=values)
    ).encode()
    app = panel()
    check(app.file_uploader[0].set_value([("values.json", content, "application/json")]).run())
    assert "2 users" in shown_texts(app)
    assert "values by user in 5 bins of width 2 from 0 to 10" in shown_texts(app)
    check(app.button(key="use_distribution").click().run())
    assert data(app).values == values
    assert data(app).is_private
    go(app, "Mean")
    assert (app.number_input(key="mean.lower").value, app.number_input(key="mean.upper").value) == (0.0, 10.0)
    assert "Values were counted in 5 bins of width 2" in shown_texts(app)
    # One user has values above all bins, of which only the mean is known.
    assert "this range reaches beyond them" in errors(
        app.number_input(key="mean.upper").set_value(20.0).run()
    )
    go(app, "Quantile")
    assert "The ranks of edges are exact" in shown_texts(app)


def test_pairs_that_an_engine_counted_are_known_by_their_header():
    shop = samples.load("shop-events")
    app = panel()
    check(
        app.file_uploader[0]
        .set_value([("pairs.csv", write_pairs_csv(shop.pairs).encode(), "text/csv")])
        .run()
    )
    assert app.radio(key="your_data.upload_kind").value is TableKind.PAIRS
    assert "Read as one row per pair" in shown_texts(app)
    check(app.button(key="use_upload").click().run())
    dataset = data(app)
    assert dataset.histogram == shop.histogram
    assert dataset.pairs.rows.tolist() == shop.pairs.rows.tolist()
    go(app, "Group by")
    assert not app.exception


@pytest.mark.long
@pytest.mark.parametrize("name", ["histogram.csv", "totals.csv", "tasks.csv", "pairs.csv"])
def test_a_file_that_the_command_wrote_is_the_same_data_in_app_and_call(name, tmp_path):
    shop = samples.load("shop-events")
    rounded = replace(shop.totals, totals=shop.totals.totals.round() + 1)
    written = {
        "histogram.csv": write_histogram_csv(shop),
        "totals.csv": write_histogram_csv(
            replace(
                shop,
                contribution=Contribution.TOTAL,
                histogram=ContributionHistogram.from_counts(rounded.totals.astype(int)),
                totals=rounded,
            )
        ),
        "tasks.csv": write_histogram_csv(replace(shop, contribution=Contribution.DISTINCT_TASKS)),
        "pairs.csv": write_pairs_csv(shop.pairs),
    }[name]
    path = tmp_path / name
    path.write_text(written)
    in_app, in_call = count_content(written.encode(), name), to_dataset(path)
    assert in_app.digest == in_call.digest
    assert in_app.contribution is in_call.contribution
    assert in_app.value_column == in_call.value_column
    assert bool(in_app.value_column) == (name in ("totals.csv", "pairs.csv"))
