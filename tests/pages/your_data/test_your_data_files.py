"""Data with files of every kind: several at once, paths, large files in the background, the public demo."""

from __future__ import annotations

import errno
import gzip
import io
import os
import tempfile
import time
from dataclasses import replace

import openpyxl
import pandas as pd
import pytest

from dpcore import counting, total
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import format_number
from dpcore.contributions import ContributionHistogram
from dpcore.counting import formats, reduce
from dpcore.counting.__main__ import write_histogram_csv, write_pairs_csv
from dpcore.counting.count import to_dataset
from dpcore.data import binned_values, group_pairs, samples
from dpcore.data.column_roles import TableKind
from dpcore.data.totals_per_user import Amounts
from dpcore.data.value_bins import ValueBins
from dpcore.dataset import Contribution, Dataset
from dpcore.regression.parameters import DataSource
from pages.shared import streamlit_internals
from pages.shared.data import uploads
from pages.shared.server import access
from pages.your_data import columns, file_upload
from tests.pages.driving import (
    SHOP_EVENTS,
    check,
    count_content,
    data,
    errors,
    finish,
    go,
    open_app,
    read_notices_below,
    shown_texts,
    unescape_markdown,
    upload,
    use,
)

GZIPPED = gzip.compress(SHOP_EVENTS)


def workspaces() -> set[str]:
    """Of this process: others may run beside it."""
    own_text = f"sweetspot-{os.getpid()}-"
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith(own_text)}


def histogram_of(app) -> dict[int, int]:
    histogram = data(app).histogram
    return dict(zip(histogram.sizes.tolist(), histogram.users.tolist(), strict=True))


@pytest.fixture
def everything_is_large(monkeypatch):
    """Uploads lie in a temporary folder, and are counted there, however small."""
    monkeypatch.setattr(file_upload, "MAX_HELD_BYTES", 0)
    monkeypatch.setattr(formats, "read_small", lambda *arguments: None)


@pytest.fixture
def local(monkeypatch):
    monkeypatch.setenv(file_upload.LOCAL, "1")


def panel():
    """A new session in which a file is to be chosen."""
    app = open_app("Data")
    return check(app.segmented_control(key="your_data.data_source").set_value("Upload a file").run())


def until_counted(app):
    return finish(app, "your_data.upload_job")


def choose(app, **roles):
    """Say which columns mean what."""
    for role, column in roles.items():
        check(app.selectbox(key=f"your_data.upload_role_{role}").set_value(column).run())


def look_at(app, path):
    check(app.text_input(key="your_data.upload_path").set_value(str(path)).run())
    return check(app.button(key="look_at_path").click().run())


@pytest.mark.long
def test_compressed_files_give_what_plain_ones_give_and_small_ones_never_touch_a_disk(monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *arguments, **options: pytest.fail("a folder was made"))
    workspaces_before = workspaces()
    plain_dataset = data(use(upload(open_app("Data"), SHOP_EVENTS, "shop_events.csv")))
    packed = data(use(upload(open_app("Data"), GZIPPED, "shop_events.csv.gz")))
    assert packed.histogram == plain_dataset.histogram
    assert packed.totals == plain_dataset.totals
    assert not workspaces() - workspaces_before  # what was uploaded is gone


@pytest.fixture
def list_held_files(monkeypatch):
    """What Streamlit holds of uploaded files, asked while a page runs."""
    managers = []
    real = uploads.free_files

    def spied(files):
        managers.append(streamlit_internals._get_context().uploaded_file_mgr)
        assert any(map(len, managers[-1].file_storage.values()))  # else there was nothing to free
        real(files)

    monkeypatch.setattr(uploads, "free_files", spied)
    return lambda: [file for manager in managers for files in manager.file_storage.values() for file in files]


def test_streamlit_holds_no_file_that_was_read(list_held_files):
    app = open_app("Data")
    for content in (SHOP_EVENTS, GZIPPED[:-9], b"\x89PNG"):
        upload(app, content)
        assert list_held_files() == [], content[:9]


def test_streamlit_holds_no_table_that_was_read(list_held_files):
    app = check(open_app("Linear regression"))
    check(app.segmented_control(key="regression.source").set_value(DataSource.UPLOAD).run())
    check(app.file_uploader[0].upload("shop.csv", SHOP_EVENTS).run())
    assert app.button(key="regression_use")
    assert list_held_files() == []


@pytest.mark.long
def test_who_is_asked_where_no_name_says_it():
    app = upload(open_app("Data"), b"chamber,vote\nhouse,1\nsenate,0\nhouse,1\n")
    assert app.selectbox(key="your_data.upload_role_user").value == columns.NO_COLUMN
    assert "No name says who a row belongs to" in shown_texts(app)
    use(app)
    assert "No column is chosen for user" in errors(app)
    choose(app, user="chamber")
    assert "There are only 2 users: does chamber really say who?" in shown_texts(app)
    use(app)
    assert histogram_of(app) == {1: 1, 2: 1}


def test_two_columns_of_people_are_one_person_or_refused():
    app = upload(open_app("Data"), b"household,member,v\na,1,2\na,1,3\na,2,3\nb,1,4\n")
    people = app.radio(key="your_data.upload_people")
    assert people.label == "Is the pair with member the person?"
    check(people.set_value(columns.PeopleAnswer.EACH).run())
    assert "each of these columns names a person" in errors(app)
    use(app)
    assert data(app).privacy_unit != ("household",)
    check(app.radio(key="your_data.upload_people").set_value(columns.PeopleAnswer.PAIR).run())
    use(app)
    assert data(app).privacy_unit == ("household", "member")
    assert histogram_of(app) == {1: 2, 2: 1}


@pytest.mark.long
def test_a_workbook_asks_for_its_sheet_and_a_path_may_be_a_folder_of_folders(local, tmp_path):
    book = openpyxl.Workbook()
    for name, num_rows in (("Small", 2), ("Large", 3)):
        sheet = book.create_sheet(name)
        for row in (["user", "amount"], *([f"u{index}", index] for index in range(num_rows))):
            sheet.append(row)
    book.remove(book.active)
    book.save(tmp_path / "t.xlsx")
    app = upload(panel(), (tmp_path / "t.xlsx").read_bytes(), "t.xlsx")
    assert app.selectbox(key="your_data.upload_sheet").value == "Small"
    app = finish(
        check(app.selectbox(key="your_data.upload_sheet").set_value("Large").run()), "your_data.look_job"
    )
    assert histogram_of(use(app)) == {1: 3}
    for day in (1, 2):
        (tmp_path / f"sales/day={day}").mkdir(parents=True)
        (tmp_path / f"sales/day={day}/part.csv").write_text("user,amount\nu1,3\n")
    app = look_at(panel(), tmp_path / "sales")
    assert "day" in app.selectbox(key="your_data.upload_role_task").options
    assert histogram_of(use(app)) == {2: 1}


@pytest.mark.long
def test_the_separator_may_be_named():
    app = check(panel().text_input(key="your_data.upload_separator").set_value("*").run())
    assert histogram_of(use(upload(app, b"user*amount\nu1*3\nu1*4\n"))) == {2: 1}


@pytest.mark.long
def test_answers_of_yes_and_no_bring_their_range_once_the_person_confirms_them():
    rows = "".join(f"u{row % 4},{'yes' if row % 3 else 'no'}\n" for row in range(24))
    app = upload(panel(), f"user,churned\n{rows}".encode())
    assert app.selectbox(key="your_data.upload_role_value").value == "churned"
    check(app.checkbox(key="your_data.upload_share").check().run())
    app = go(use(app), "Mean")
    assert [app.number_input(key=f"mean.{end}").value for end in ("lower", "upper")] == [0.0, 1.0]
    assert data(app).is_private


@pytest.mark.long
def test_what_a_contribution_is_and_who_a_user_is_can_be_chosen():
    app = upload(open_app("Data"), b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,y,4\n")
    choose(app, user="client", task="task")
    check(app.multiselect(key="your_data.upload_further").set_value(["shop"]).run())
    check(app.selectbox(key="your_data.upload_contribution").set_value(Contribution.DISTINCT_TASKS).run())
    assert "user = client" in shown_texts(app)
    use(app)
    assert histogram_of(app) == {1: 2}
    assert data(app).privacy_unit == ("client", "shop")
    assert "1 row repeats a user and task" in shown_texts(app)
    # The same columns are taken for the same again, until somebody says otherwise.
    upload(app, b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,x,4\n")
    assert "user = client" in shown_texts(app)
    assert "which has the same columns" in shown_texts(app)
    check(app.multiselect(key="your_data.upload_further").set_value([]).run())
    check(app.multiselect(key="your_data.upload_further_task").set_value(["shop"]).run())
    assert "task (column 2) = shop" in shown_texts(app)
    use(app)
    assert data(app).pairs.label == "task × shop"
    assert data(app).pairs.num_tasks == 2


def test_what_was_said_of_other_data_with_the_same_columns_does_not_make_these_public():
    app = upload(open_app("Data"), b"who,amount\na,1\na,2\nb,3\n")
    check(app.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run())
    use(app)
    assert data(app).disclosure is Disclosure.PUBLIC
    upload(app, b"who,amount\nc,1\n")
    assert app.radio(key="your_data.upload_public").value is Disclosure.PRIVATE


def test_the_form_folds_once_its_data_are_in_use_and_not_before_what_is_wrong_was_said():
    def folded():
        return [block.label for block in app.expander if block.label == "Bring another file"]

    app = panel()
    assert not folded()
    upload(app, SHOP_EVENTS)
    assert folded()
    assert app.radio(key="your_data.upload_kind")
    use(app)
    assert folded()
    with pytest.raises(KeyError):
        app.radio(key="your_data.upload_kind")
    upload(app, b"\x89PNG\r\n\x1a\n")
    assert errors(app)
    assert not folded()


@pytest.mark.long
def test_a_large_file_is_counted_in_the_background(everything_is_large):
    workspaces_before = workspaces()
    app = upload(open_app("Data"), GZIPPED, "shop_events.csv.gz")
    assert "not yet counted" in shown_texts(app)
    assert workspaces() - workspaces_before  # it waits there, in a temporary folder
    app = until_counted(use(app))
    assert "In use: shop_events.csv.gz" in unescape_markdown(app.header[0].value)
    assert not workspaces() - workspaces_before
    assert data(app).histogram == samples.load("shop-events").histogram
    assert data(app).values is not None


@pytest.mark.long
def test_columns_of_a_file_between_blanks_without_a_header_are_named_by_the_person():
    rows = "".join(f" {k % 3:05} 199701{k:02}  {k % 4} {k}.50\n" for k in range(10, 22))
    app = upload(open_app("Data"), rows.encode(), "master.txt")
    assert "Fields stand between blanks" in shown_texts(app)
    names = app.text_input(key="your_data.upload_names")
    assert names.value == "column 1, column 2, column 3, column 4"
    check(names.set_value("user, day").run())
    assert errors(app).count("There are 4 columns, and 2 names") == 1
    assert "There are 4 columns, and 2 names" in read_notices_below(app, "your_data.upload_names")
    check(app.text_input(key="your_data.upload_names").set_value("buyer, day, discs, dollars").run())
    assert not errors(app)
    check(app.selectbox(key="your_data.upload_role_user").set_value("buyer").run())
    check(app.selectbox(key="your_data.upload_role_value").set_value("dollars").run())
    in_use = data(use(app))
    assert in_use.histogram == ContributionHistogram([4], [3])
    assert in_use.values.column == "dollars"
    assert sorted(in_use.values.values) == [k + 0.5 for k in range(10, 22)]
    assert in_use.layout.files[0].names == ("buyer", "day", "discs", "dollars")


@pytest.mark.long
def test_copies_in_a_large_file_are_looked_for_on_request(everything_is_large):
    content = b"user_id,product,amount\na,x,1\na,x,1\nb,y,2\n"
    app = until_counted(use(upload(open_app("Data"), content)))
    assert "Exact copies of rows were not looked for" in shown_texts(app)
    app = upload(app, content)
    check(app.checkbox(key="your_data.upload_copies").set_value(True).run())
    app = until_counted(use(app))
    assert "1 row is an exact copy of an earlier one." in shown_texts(app)
    assert "were not looked for" not in shown_texts(app)
    assert not upload(app, b"user_id,product\na,x\n").checkbox


@pytest.mark.long
def test_stop_leaves_the_data_and_the_file(everything_is_large, monkeypatch):
    def slow(source, roles, sensitivity, *, counts_copies, progress, should_stop):
        while not should_stop():
            progress(0.25)
            time.sleep(0.02)
        return counting.CountResult(None, 1.0, "Stopped; the data in use stay as they were.")

    app = upload(open_app("Data"), GZIPPED)
    in_use = data(app)
    with monkeypatch.context() as patched:
        patched.setattr(counting, "count", slow)
        assert use(app).get("progress")
        go(app, "Mean")  # the app goes on meanwhile
        go(app, "Data")
        app.button(key="your_data.upload_job_stop").click().run()
        app = until_counted(app)
    assert "Stopped; the data in use stay as they were." in read_notices_below(app, "use_upload")
    assert data(app) is in_use
    app = until_counted(use(app))
    assert data(app) is not in_use


@pytest.mark.long
def test_a_file_is_read_by_its_path_and_where_it_vanishes_that_is_said(
    local, everything_is_large, tmp_path, monkeypatch
):
    path = tmp_path / "events [1].csv"
    path.write_bytes(SHOP_EVENTS)
    # Relative to where the person started the app, not to where its files lie.
    monkeypatch.setenv(file_upload.FOLDER, str(tmp_path))
    app = look_at(panel(), path.name)
    path.unlink()
    dataset_before = data(app)
    app = until_counted(use(app))
    assert "File events [1].csv: the file is gone" in errors(app)
    assert data(app) is dataset_before
    assert app.file_uploader
    assert "No file is called like" in errors(look_at(app, path))  # its name looks like a pattern
    path.write_bytes(SHOP_EVENTS)
    app = until_counted(use(look_at(app, path)))
    assert not errors(app)
    assert "In use: events [1].csv" in unescape_markdown(app.header[0].value)
    assert data(app).histogram == samples.load("shop-events").histogram
    assert path.read_bytes() == SHOP_EVENTS  # the person's own file stays


def fails(*arguments, **options):
    raise KeyError("s3cr3t")


def no_room(*arguments, **options):
    raise OSError(errno.ENOSPC, "No space left on device")


UNFORESEEN = "An error that nobody foresaw ended this (KeyError, test_your_data_files.py line"
FULL = "The file shop_events.csv was not read.\n- The temporary folder is full. Free space there"


@pytest.mark.long_but("folder")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"open_files": fails}, UNFORESEEN),
        ({"count": fails}, UNFORESEEN),
        ({"count": fails, "formats.read_small": lambda *arguments: None}, UNFORESEEN),
        ({"pages.your_data.file_upload.MAX_HELD_BYTES": 0, "shutil.copyfileobj": no_room}, FULL),
        ({"pages.your_data.file_upload.MAX_HELD_BYTES": 0, "tempfile.mkdtemp": no_room}, FULL),
    ],
    ids=["look", "count a small file", "count a large file", "copy", "folder"],
)
def test_whatever_ends_in_an_error_is_said_and_the_panel_goes_on(monkeypatch, changes, says):
    workspaces_before, app = workspaces(), open_app("Data")
    in_use = data(app)
    with monkeypatch.context() as patched:
        for name, new in changes.items():
            is_full_name = name.startswith(("shutil.", "tempfile.", "pages."))
            patched.setattr(name if is_full_name else f"dpcore.counting.{name}", new)
        upload(app, SHOP_EVENTS, "shop_events.csv")
        if "count" in changes:
            app = until_counted(use(app))
    error_text = errors(app)
    assert "s3cr3t" not in shown_texts(app)
    assert says in error_text
    assert data(app) is in_use
    app = until_counted(use(upload(app, SHOP_EVENTS, "shop_events.csv")))
    assert not errors(app)
    assert data(app).histogram == samples.load("shop-events").histogram
    assert not workspaces() - workspaces_before


def test_reading_a_file_can_be_stopped(monkeypatch):
    def endless(paths, names, *, owned_folder, should_stop, **reading):
        while not should_stop():
            time.sleep(0.02)
        raise counting.StoppedError

    workspaces_before = workspaces()
    monkeypatch.setattr(counting, "open_files", endless)
    monkeypatch.setattr(file_upload, "WAIT_SECONDS", 0.05)
    app = panel()
    check(app.file_uploader[0].upload("book.xlsx", b"PK").run())
    assert "Reading…" in shown_texts(app)
    assert not app.file_uploader
    app.button(key="your_data.look_job_stop").click().run()
    app = finish(app, "your_data.look_job")
    assert "Stopped; the data in use stay as they were." in shown_texts(app)
    assert app.file_uploader
    assert not workspaces() - workspaces_before


def test_without_local_there_is_no_path(monkeypatch):
    monkeypatch.delenv(file_upload.LOCAL, raising=False)
    app = panel()
    assert app.file_uploader
    assert "your_data.upload_path" not in [field.key for field in app.text_input]


def test_a_public_demo_takes_no_data_and_says_so(local, monkeypatch):
    monkeypatch.setenv(access.SERVED, "1")
    app = panel()
    assert "uploads and paths are switched off" in shown_texts(app)
    assert not app.file_uploader
    assert not [button for button in app.button if button.key == "look_at_path"]
    check(app.segmented_control(key="your_data.data_source").set_value("Generate").run())
    check(app.button(key="generate").click().run())
    assert not errors(app)


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


def test_the_heaviest_users_are_ranks_and_sizes():
    app = use(upload(open_app("Data"), b"user_id\nanna\nanna\nbert\nanna\n"))
    table = app.table[0].value
    assert table.index.tolist() == [1, 2]
    assert table["Rows"].tolist() == ["3", "1"]
    assert table["Share of all"].tolist() == ["75\xa0%", "25\xa0%"]
    assert "anna" not in table.to_string() + shown_texts(app)


def test_formulas_are_shown_as_text():
    content = b"user_id,=1+1\n=cmd|' /C calc'!A0,-5\n@sum,+x\n-2.5,ok\n"
    app = upload(open_app("Data"), content)
    frame = app.dataframe[0].value
    assert list(frame.columns) == ["user_id", "'=1+1"]
    assert frame["user_id"].tolist() == ["'=cmd|' /C calc'!A0", "'@sum", "-2.5"]
    assert frame["'=1+1"].tolist() == ["-5", "'+x", "ok"]


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


@pytest.mark.parametrize(
    ("page", "key", "there", "use_button"),
    [
        ("Linear regression", "regression.source", DataSource.UPLOAD, "regression_use"),
        ("Data", "your_data.data_source", "Upload a file", "use_upload"),
    ],
    ids=["Linear regression", "Data"],
)
def test_a_late_message_that_still_names_a_file_changes_nothing(page, key, there, use_button):
    """The browser's next message may come before it has taken the old uploader away: the file is gone by then."""
    app = check(open_app(page))
    check(app.segmented_control(key=key).set_value(there).run())
    app.file_uploader[0].upload("shop.csv", SHOP_EVENTS)
    message = app._tree.get_widget_states()
    check(app.run())
    assert app.button(key=use_button)
    check(app._run(message))
    assert app.button(key=use_button)


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


def test_a_duration_is_refused_with_a_unit_to_convert_to():
    table = pd.DataFrame({"user": ["a", "a", "b"], "duration": pd.to_timedelta([90, 30, 60], "s")})
    content = io.BytesIO()
    table.to_parquet(content)
    app = panel()
    check(app.file_uploader[0].set_value([("waits.parquet", content.getvalue(), "")]).run())
    choose(app, value="duration")
    check(app.button(key="use_upload").click().run())
    assert "holds durations, not numbers" in errors(app)
    assert "total_seconds" in errors(app)


BLANKS = b"user,amount\na,1\na,\nb,3\nb,oops\nc,5\n"


def set_rule(app, rule):
    check(app.selectbox(key="your_data.upload_rule").set_value(rule).run())


def test_missing_values_are_left_out_or_replaced_next_to_the_message():
    app = upload(open_app("Data"), BLANKS)
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    for disclosure, rule in (
        (Disclosure.PUBLIC, columns.BlankRule.REFUSE),
        (Disclosure.PRIVATE, columns.BlankRule.DROP),
    ):
        check(app.radio(key="your_data.upload_public").set_value(disclosure).run())
        app.run()
        assert app.selectbox(key="your_data.upload_rule").value is rule
    set_rule(app, columns.BlankRule.REFUSE)
    use(app)
    assert "replaced by a public number or their rows left out" in errors(app)
    assert "after the app found a blank" not in shown_texts(app)
    set_rule(app, columns.BlankRule.DROP)
    assert "after the app found a blank" in shown_texts(app)
    use(app)
    assert histogram_of(app) == {1: 3}
    assert data(app).layout.dropped_column == "amount"
    # Of public data the fix is a button at the message.
    app = upload(open_app("Data"), BLANKS)
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    use(check(app.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run()))
    check(app.button(key="drop_missing").click().run())
    assert (histogram_of(app), data(app).disclosure) == ({1: 3}, Disclosure.PUBLIC)


@pytest.mark.long
def test_rows_are_not_left_out_for_missing_values_of_several_columns():
    app = upload(open_app("Data"), b"user,amount,tax\na,1,2\nb,3,4\n")
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    check(app.multiselect(key="your_data.upload_further_values").set_value(["tax"]).run())
    check(app.run())
    assert app.selectbox(key="your_data.upload_rule").value is columns.BlankRule.REFUSE
    use(app)
    assert data(app).histogram.num_users == 2


@pytest.mark.long
def test_the_rule_for_missing_values_is_set_before_the_file_is_opened():
    app = panel()
    set_rule(app, columns.BlankRule.REPLACE)
    check(app.number_input(key="your_data.upload_constant").set_value(2.5).run())
    upload(app, BLANKS)
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    assert app.selectbox(key="your_data.upload_rule").value is columns.BlankRule.REPLACE
    use(app)
    assert "after the app found a blank" not in shown_texts(app)
    assert sorted(data(app).values.values) == [1, 2.5, 2.5, 3, 5]


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


@pytest.mark.long
def test_a_path_may_be_a_pattern(tmp_path, local):
    for number in (1, 2):
        (tmp_path / f"part{number}.csv").write_text(f"user,v\nu{number},1\n")
    app = look_at(panel(), tmp_path / "part*.csv")
    use(app)
    assert data(app).histogram.num_users == 2
    assert "No file is called like" in errors(look_at(panel(), tmp_path / "none*.csv"))
