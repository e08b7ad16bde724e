"""Data: samples, files good and hostile, generators; what is in use stays unless it is replaced."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np
import pytest

from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from pages.shared.session import session
from tests.pages.driving import (
    SHOP_EVENTS,
    chart,
    check,
    data,
    errors,
    go,
    list_figure_keys,
    numbers,
    open_app,
    open_on_file,
    read_notices_below,
    shown_texts,
    unescape_markdown,
    upload,
    use,
)
from tests.pages.your_data.conftest import histogram_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)
GOOD = b"user,count\na,3\nb,4\nc,4\n"

# One of each kind: the core's own tests have every hostile file and its sentence.
BAD_COUNTS = b"user,count\na,-1\nb,x\nc,2.5\n"


def test_before_anything_is_chosen_the_default_sample_is_in_use():
    app = open_app("Data")
    assert data(app) == samples.load(session.DEFAULT_SAMPLE)
    (heading,) = app.header
    assert unescape_markdown(heading.value) == f"In use: {samples.SAMPLES[session.DEFAULT_SAMPLE].title}"
    assert "4,372 users" in shown_texts(app)
    assert "406,829 rows" in shown_texts(app)


@pytest.mark.long
def test_samples_are_switched():
    app = open_app("Data")
    for key in samples.SAMPLES:
        check(app.selectbox(key="your_data.sample").set_value(key).run())
        assert data(app) == samples.load(key)
        assert samples.SAMPLES[key].title in unescape_markdown(app.header[0].value)
        assert not errors(app)


@pytest.mark.long
def test_the_sample_file_uploaded_is_reduced_as_a_counter_reduces_it():
    app = use(upload(open_app("Data"), SHOP_EVENTS, "shop_events.csv"))
    rows = list(csv.DictReader(io.StringIO(SHOP_EVENTS.decode())))
    per_user = Counter(row["user_id"] for row in rows)
    assert histogram_of(app) == dict(sorted(Counter(per_user.values()).items()))
    assert data(app).values.values.sum() == pytest.approx(sum(float(row["amount"]) for row in rows))
    assert data(app).disclosure is Disclosure.PRIVATE
    assert f"{len(per_user)} users" in shown_texts(app)
    # The histogram as it is drawn: users per size.
    drawn = chart(app, "distribution_counts")["data"][0]
    assert dict(zip(numbers(drawn["x"]), numbers(drawn["y"]), strict=True)) == histogram_of(app)


@pytest.mark.long
def test_the_distribution_is_drawn_as_the_field_draws_it():
    app = use(upload(open_app("Data"), b"size,users\n1,6\n2,2\n10,2\n"))
    (tail,) = chart(app, "distribution_tail")["data"]
    # Shares of the 10 users with at least 1, 2 and 10 rows.
    assert numbers(tail["x"]).tolist() == [1, 2, 10]
    assert numbers(tail["y"]) == pytest.approx([1.0, 0.4, 0.2])
    shares = chart(app, "distribution_shares")["data"][0]
    # The heaviest fifth (two users with 10 rows each) hold 20 of the 30 rows.
    at_a_fifth = np.searchsorted(numbers(shares["x"]), 0.2, side="right") - 1
    assert numbers(shares["y"])[[at_a_fifth, -1]] == pytest.approx([20 / 30, 1.0])


def test_bad_generator_parameters_give_all_sentences_and_keep_the_data_and_what_was_entered():
    app = open_app("Data")
    check(app.segmented_control(key="your_data.data_source").set_value("Generate").run())
    dataset_before = data(app)
    app.number_input(key="your_data.generator_field_zipf_alpha").set_value(9.0)
    app.number_input(key="your_data.generator_field_zipf_num_users").set_value(-4).run()
    check(app.button(key="generate").click().run())
    assert "“Exponent α” must lie between 0.001 and 5; got 9" in errors(app)
    assert "must be a whole number" in errors(app)
    assert "num_users" not in errors(app).lower()
    assert data(app) is dataset_before
    assert app.number_input(key="your_data.generator_field_zipf_alpha").value == 9.0
    app.number_input(key="your_data.generator_field_zipf_alpha").set_value(1.2)
    check(app.number_input(key="your_data.generator_field_zipf_num_users").set_value(500).run())
    check(app.button(key="generate").click().run())
    assert not errors(app)
    assert data(app).histogram == samples.ZipfSizes(1.2, 500, 1_000, 1).build_histogram()


def a_good_file_works(app) -> None:
    use(upload(app, GOOD, "good.csv"))
    assert histogram_of(app) == {3: 1, 4: 2}
    assert not errors(app)
    assert "In use: good.csv" in unescape_markdown(app.header[0].value)


def test_a_file_that_cannot_be_read_gives_a_sentence_and_the_app_goes_on():
    app = open_app("Data")
    dataset_before = data(app)
    upload(app, PNG, "hostile<b>[x](y).csv")
    assert "this is a png picture" in errors(app).lower()
    assert "hostile<b>[x](y).csv was not read" in errors(app)
    assert "The data in use stay as they were." in errors(app)
    assert not [button for button in app.button if button.key == "use_upload"]
    assert data(app) is dataset_before
    a_good_file_works(app)


def test_all_that_is_wrong_with_a_column_is_said_at_once_and_the_app_goes_on():
    app = open_app("Data")
    dataset_before = data(app)
    upload(app, BAD_COUNTS)
    assert not errors(app)
    use(app)
    for line, text in ((2, "a negative number"), (3, "text where"), (4, "not a whole number")):
        assert f"Line {line}, column count: {text}" in errors(app)
        assert f"Line {line}, column count: {text}" in read_notices_below(app, "use_upload")
    assert data(app) is dataset_before
    assert app.button(key="use_upload")  # the file is still there to be corrected by other columns
    a_good_file_works(app)


def test_columns_and_kind_can_be_corrected():
    # Taken for counts; in truth each row is an event whose user stands in the second column.
    app = upload(open_app("Data"), b"user,count\na,7\nb,7\nc,8\n")
    assert app.radio(key="your_data.upload_kind").value.name == "COUNTS"
    events = next(o for o in type(app.radio(key="your_data.upload_kind").value) if o.name == "EVENTS")
    check(app.radio(key="your_data.upload_kind").set_value(events).run())
    check(app.selectbox(key="your_data.upload_role_" + "user").set_value("count").run())
    use(app)
    assert histogram_of(app) == {1: 1, 2: 1}


@pytest.mark.long
def test_rows_without_a_user_can_count_as_one_user():
    app = upload(open_app("Data"), b"user_id,amount\na,3\n,4\n,5\n,6\n")
    one_user = next(o for o in type(app.radio(key="your_data.upload_missing").value) if o.name == "ONE_USER")
    check(app.radio(key="your_data.upload_missing").set_value(one_user).run())
    assert histogram_of(use(app)) == {1: 1, 3: 1}


def test_a_file_can_be_discarded():
    app = upload(open_app("Data"), GOOD)
    dataset_before = data(app)
    check(app.button(key="discard_upload").click().run())
    assert not [button for button in app.button if button.key == "use_upload"]
    assert data(app) is dataset_before


@pytest.mark.long
def test_a_file_that_waits_for_its_columns_survives_page_switches():
    app = upload(open_app("Data"), SHOP_EVENTS, "shop_events.csv")
    check(app.selectbox(key="your_data.upload_role_" + "value").set_value("(none)").run())
    go(app, "Mean")
    go(app, "Data")
    assert app.selectbox(key="your_data.upload_role_" + "value").value == "(none)"
    use(app)
    assert data(app).values is None
    assert data(app).histogram == samples.load("shop-events").histogram


def test_uploads_are_private_until_the_person_says_otherwise_and_the_next_one_again():
    app = upload(open_app("Data"), GOOD)
    check(app.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run())
    use(app)
    assert data(app).disclosure is Disclosure.PUBLIC
    assert "do not publish" not in shown_texts(app).lower()
    use(upload(app, b"user,count\na,1\nb,2\n"))
    assert data(app).disclosure is Disclosure.PRIVATE
    assert "do not publish" in shown_texts(app).lower()


@pytest.mark.long
@pytest.mark.parametrize(
    "table", [None, b"size,users\n1,1\n", b"size,users\n7,2\n", b"size,users\n1000000000000,3\n"]
)
def test_every_axis_of_the_distribution_has_its_range(table):
    app = open_app("Data")
    if table is not None:
        use(upload(app, table))
    for name in ("counts", "tail", "shares"):
        (control,) = [s for s in app.select_slider if str(s.key).startswith(f"distribution_{name}_x")]
        assert len(control.options) >= 2
        before = chart(app, f"distribution_{name}")["layout"]["xaxis"]["range"]
        check(control.set_value((control.value[0], control.value[0])).run())
        after = chart(app, f"distribution_{name}")["layout"]["xaxis"]["range"]
        assert after[0] < after[1] <= before[1] + 0.1


@pytest.mark.long
def test_a_session_made_on_a_file_is_what_the_widgets_leave():
    # `driving.open_on_file` stands for these runs in tests of other pages.
    driven = go(use(upload(open_app("Data"), SHOP_EVENTS, "shop.csv")), "Quantile")
    app = check(open_on_file(SHOP_EVENTS, "Quantile", "shop.csv").run())
    assert data(driven) == data(app)
    assert shown_texts(driven) == shown_texts(app)
    assert list_figure_keys(driven) == list_figure_keys(app)


@pytest.mark.long
def test_dates_make_a_user_and_month_the_unit_and_a_text_counts_as_yes():
    rows = b"user_id,day,said\na,2025-01-05,Y\na,2025-01-06,N\na,2025-02-01,y\nb,2025-02-01,N\nb,,Y\nb,2026-02-01,Y\n"
    app = upload(open_app("Data"), rows)
    check(app.selectbox(key="your_data.upload_role_value").set_value("said").run())
    check(app.text_input(key="your_data.upload_yes").set_value("Y").run())
    check(app.selectbox(key="your_data.upload_date").set_value("day").run())
    dataset_before = data(app)
    assert "Periods need a column of dates" in errors(app)
    check(app.button(key="use_upload").click().run())
    assert data(app) is dataset_before
    check(app.text_input(key="your_data.upload_span").set_value("2025-01-01 to 2026-01-01 by month").run())
    check(app.number_input(key="your_data.upload_person_epsilon").set_value(15.0).run())
    assert "group privacy gives ε = 12. Of the total ε = 15, 3 remains." in shown_texts(app)
    use(app)
    assert histogram_of(app) == {1: 2, 2: 1}
    assert sorted(data(app).values.values) == [0, 0, 1, 1]
    assert "3 user-months" in shown_texts(app)
    assert "2 rows have no date in day from 2025-01-01 to before 2026-01-01" in shown_texts(app)
    go(app, "Sum and count")
    assert "Per user and month; whole person: ε = 12 of 15" in shown_texts(app)
