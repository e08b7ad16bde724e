"""Your data with files of every kind: several at once, paths, large files in the background, the public demo."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import tempfile
import time

import pytest

from dpcore import counting, total
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.counting import files, formats, reduce
from dpcore.data import pair_distribution, samples
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Contribution
from dpcore.regression.parameters import DataSource
from pages.shared import bringing, demo
from pages.your_data import upload_inputs, upload_roles
from tests.pages.driving import (
    SHOP_EVENTS,
    data,
    errors,
    fine,
    finished,
    go,
    open_app,
    shown_texts,
    unescaped,
    upload,
    use,
)

GZIPPED = gzip.compress(SHOP_EVENTS)


def workspaces() -> set[str]:
    """Of this process: others may run beside it."""
    own = f"sweetspot-{os.getpid()}-"
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith(own)}


def histogram_of(at) -> dict[int, int]:
    histogram = data(at).histogram
    return dict(zip(histogram.sizes.tolist(), histogram.users.tolist(), strict=True))


@pytest.fixture
def everything_is_large(monkeypatch):
    """Uploads lie in a temporary folder, and are counted there, however small."""
    monkeypatch.setattr(counting, "HELD_BYTES", 0)
    monkeypatch.setattr(formats, "read_small", lambda *arguments: None)


@pytest.fixture
def local(monkeypatch):
    monkeypatch.setenv(upload_inputs.LOCAL, "1")


def until_counted(at):
    return finished(at, "your_data.upload_job")


def test_compressed_files_give_what_plain_ones_give_and_small_ones_never_touch_a_disk(monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *arguments, **options: pytest.fail("a folder was made"))
    before = workspaces()
    plain = data(use(upload(open_app("Your data"), SHOP_EVENTS, "shop_events.csv")))
    packed = data(use(upload(open_app("Your data"), GZIPPED, "shop_events.csv.gz")))
    assert packed.histogram == plain.histogram
    assert packed.totals == plain.totals
    assert not workspaces() - before  # what was uploaded is gone


@pytest.fixture
def held(monkeypatch):
    """What Streamlit holds of uploaded files, asked while a page runs."""
    managers = []
    real = bringing.get_script_run_ctx

    def spied():
        context = real()
        managers.append(context.uploaded_file_mgr)
        assert any(map(len, managers[-1].file_storage.values()))  # else there was nothing to drop
        return context

    monkeypatch.setattr(bringing, "get_script_run_ctx", spied)
    return lambda: [file for manager in managers for files in manager.file_storage.values() for file in files]


@pytest.mark.parametrize("content", [SHOP_EVENTS, GZIPPED[:-9], b"\x89PNG"])
def test_streamlit_holds_no_file_that_was_read(held, content):
    upload(open_app("Your data"), content)
    assert held() == []


def test_streamlit_holds_no_table_that_was_read(held):
    at = fine(open_app("Regression"))
    fine(at.segmented_control(key="regression.source").set_value(DataSource.UPLOAD).run())
    fine(at.file_uploader[0].upload("shop.csv", SHOP_EVENTS).run())
    assert at.button(key="regression_use")
    assert held() == []


def test_several_files_count_as_one_table():
    at = fine(open_app("Your data"))
    fine(at.segmented_control(key="your_data.data_source").set_value("Upload a file").run())
    one, two = b"user_id,amount\na,1\nb,2\n", b"amount;user_id\n3;a\n"
    fine(at.file_uploader[0].set_value([("one.csv", one, "text/csv"), ("two.csv", two, "text/csv")]).run())
    assert "one.csv and 1 more" in shown_texts(at)
    assert histogram_of(use(at)) == {1: 1, 2: 1}


def test_what_a_contribution_is_and_who_a_user_is_can_be_chosen():
    at = upload(open_app("Your data"), b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,y,4\n")
    fine(at.selectbox(key="your_data.upload_role_" + "user").set_value("client").run())
    fine(at.selectbox(key="your_data.upload_role_" + "task").set_value("task").run())
    fine(at.multiselect(key="your_data.upload_further").set_value(["shop"]).run())
    fine(at.selectbox(key="your_data.upload_contribution").set_value(Contribution.DISTINCT_TASKS).run())
    assert "users in columns client and shop" in shown_texts(at)
    use(at)
    assert histogram_of(at) == {1: 2}
    assert data(at).privacy_unit == ("client", "shop")
    assert "1 row repeats a user and task" in shown_texts(at)
    upload(at, b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,x,4\n")
    fine(at.selectbox(key="your_data.upload_role_" + "user").set_value("client").run())
    fine(at.selectbox(key="your_data.upload_role_" + "task").set_value("task").run())
    fine(at.multiselect(key="your_data.upload_further_task").set_value(["shop"]).run())
    assert "tasks in columns task and shop" in shown_texts(at)
    use(at)
    assert data(at).pairs.label == "task × shop"
    assert data(at).pairs.num_tasks == 2


def test_a_large_file_is_counted_in_the_background(everything_is_large):
    before = workspaces()
    at = upload(open_app("Your data"), GZIPPED, "shop_events.csv.gz")
    assert "not yet counted" in shown_texts(at)
    assert workspaces() - before  # it waits there, in a temporary folder
    at = until_counted(use(at))
    assert "In use: shop_events.csv.gz" in unescaped(at.subheader[0].value)
    assert not workspaces() - before
    assert data(at).histogram == samples.load("shop-events").histogram
    assert data(at).values is not None


def test_copies_in_a_large_file_are_looked_for_on_request(everything_is_large):
    content = b"user_id,product,amount\na,x,1\na,x,1\nb,y,2\n"
    at = until_counted(use(upload(open_app("Your data"), content)))
    assert "Exact copies of rows were not looked for" in shown_texts(at)
    at = upload(at, content)
    fine(at.checkbox(key="your_data.upload_copies").set_value(True).run())
    at = until_counted(use(at))
    assert "1 row is an exact copy of an earlier one." in shown_texts(at)
    assert "were not looked for" not in shown_texts(at)
    assert not upload(at, b"user_id,product\na,x\n").checkbox


def test_stop_leaves_the_data_and_the_file(everything_is_large, monkeypatch):
    def slow(source, roles, sensitivity, *, copies, progress, should_stop):
        while not should_stop():
            progress(0.25)
            time.sleep(0.02)
        return counting.Counted(None, 1.0, "Stopped; the data in use stay as they were.")

    at = upload(open_app("Your data"), GZIPPED)
    in_use = data(at)
    monkeypatch.setattr(counting, "count", slow)
    fine(at.button(key="use_upload").click().run())
    assert at.get("progress")
    go(at, "Mean")  # the app goes on meanwhile
    go(at, "Your data")
    at.button(key="your_data.upload_job_stop").click().run()
    at = until_counted(at)
    assert "Stopped; the data in use stay as they were." in shown_texts(at)
    assert data(at) is in_use
    monkeypatch.undo()
    monkeypatch.setattr(formats, "read_small", lambda *arguments: None)
    at = until_counted(use(at))
    assert data(at) is not in_use


def test_what_a_large_file_is_refused_for_is_said(everything_is_large):
    at = upload(open_app("Your data"), b"user_id,amount\na,1\nb,x\n")
    fine(at.selectbox(key="your_data.upload_role_" + "value").set_value("amount").run())
    in_use = data(at)
    at = until_counted(use(at))
    assert "Line 3, column amount: text where a number" in errors(at)
    assert data(at) is in_use
    assert at.button(key="use_upload")


def test_paths_are_read_only_where_the_app_is_local(local, tmp_path):
    path = tmp_path / "events [1].csv"
    path.write_bytes(SHOP_EVENTS)
    at = open_app("Your data")
    fine(at.segmented_control(key="your_data.data_source").set_value("Upload a file").run())
    fine(at.text_input(key="your_data.upload_path").set_value(str(path)).run())
    fine(at.button(key="look_at_path").click().run())
    use(at)
    assert "In use: events [1].csv" in unescaped(at.subheader[0].value)
    assert path.read_bytes() == SHOP_EVENTS  # the person's own file stays
    fine(at.text_input(key="your_data.upload_path").set_value("/nowhere/at all.csv").run())
    fine(at.button(key="look_at_path").click().run())
    assert "there is no such file" in errors(at)


def look_at(at, path):
    fine(at.text_input(key="your_data.upload_path").set_value(str(path)).run())
    fine(at.button(key="look_at_path").click().run())
    return at


def test_a_file_that_vanishes_is_said_and_the_panel_goes_on(local, everything_is_large, tmp_path):
    path = tmp_path / "events.csv"
    path.write_bytes(SHOP_EVENTS)
    at = open_app("Your data")
    fine(at.segmented_control(key="your_data.data_source").set_value("Upload a file").run())
    look_at(at, path)
    path.unlink()
    before = data(at)
    at = until_counted(use(at))
    assert "File events.csv: the file is no longer there" in errors(at)
    assert data(at) is before
    assert at.file_uploader
    path.write_bytes(SHOP_EVENTS)
    at = until_counted(use(look_at(at, path)))
    assert not errors(at)
    assert data(at).histogram == samples.load("shop-events").histogram


@pytest.mark.parametrize("stage", ["look", "count a small file", "count a large file", "copy"])
def test_whatever_ends_in_an_error_is_said_and_the_panel_goes_on(monkeypatch, stage):
    before = workspaces()

    def fails(*arguments, **options):
        raise KeyError("s3cr3t")

    def no_room(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    at = open_app("Your data")
    in_use = data(at)
    with monkeypatch.context() as patched:
        if stage == "count a large file":
            patched.setattr(formats, "read_small", lambda *arguments: None)
        if stage == "copy":
            patched.setattr(counting, "HELD_BYTES", 0)
            patched.setattr(shutil, "copyfileobj", no_room)
        else:
            patched.setattr(counting, "open_files" if stage == "look" else "count", fails)
        at = upload(at, SHOP_EVENTS, "shop_events.csv")
        if stage.startswith("count"):
            at = until_counted(use(at))
    said = errors(at)
    assert "s3cr3t" not in shown_texts(at)
    if stage == "copy":
        assert "The file shop_events.csv was not read." in said
        assert "The temporary folder is full. Free space there" in said
    else:
        assert "An error that nobody foresaw ended this (KeyError, test_your_data_files.py line" in said
    assert data(at) is in_use
    at = until_counted(use(upload(at, SHOP_EVENTS, "shop_events.csv")))
    assert not errors(at)
    assert data(at).histogram == samples.load("shop-events").histogram
    assert not workspaces() - before


def test_reading_a_file_can_be_stopped(monkeypatch):
    def endless(paths, names, *, owned, should_stop):
        while not should_stop():
            time.sleep(0.02)
        raise counting.StoppedError

    before = workspaces()
    monkeypatch.setattr(counting, "open_files", endless)
    monkeypatch.setattr(upload_inputs, "LOOK_SECONDS", 0.05)
    at = open_app("Your data")
    fine(at.segmented_control(key="your_data.data_source").set_value("Upload a file").run())
    fine(at.file_uploader[0].upload("book.xlsx", b"PK").run())
    assert "Reading…" in shown_texts(at)
    assert not at.file_uploader
    at.button(key="your_data.look_job_stop").click().run()
    at = finished(at, "your_data.look_job")
    assert "Stopped; the data in use stay as they were." in shown_texts(at)
    assert at.file_uploader
    assert not workspaces() - before


def test_without_local_there_is_no_path(monkeypatch):
    monkeypatch.delenv(upload_inputs.LOCAL, raising=False)
    at = open_app("Your data")
    fine(at.segmented_control(key="your_data.data_source").set_value("Upload a file").run())
    assert at.file_uploader
    assert "your_data.upload_path" not in [field.key for field in at.text_input]


def test_a_public_demo_takes_no_data_and_says_so(local, monkeypatch):
    monkeypatch.setenv(demo.SERVED, "1")
    at = open_app("Your data")
    fine(at.segmented_control(key="your_data.data_source").set_value("Upload a file").run())
    assert "uploads and paths are switched off" in shown_texts(at)
    assert not at.file_uploader
    assert not [button for button in at.button if button.key == "look_at_path"]
    fine(at.segmented_control(key="your_data.data_source").set_value("Generate").run())
    fine(at.button(key="generate").click().run())
    assert not errors(at)


def test_engines_show_command_code_and_sql_for_the_columns_chosen():
    at = upload(open_app("Your data"), b"kunde_id,amount\na,1\nb,2\n")
    fine(at.selectbox(key="your_data.engine").set_value("snowflake").run())
    fine(at.text_input(key="your_data.engine_table").set_value("logs.orders").run())
    texts = "\n".join(code.value for code in at.main.code)
    assert "--from 'snowflake://analyst@account" in texts
    assert "--table logs.orders --user kunde_id" in texts
    assert "open_table(backend, 'logs.orders')" in texts
    assert "GROUP BY" in texts
    assert "password" not in texts.lower()


def test_the_heaviest_users_are_ranks_and_sizes():
    at = use(upload(open_app("Your data"), b"user_id\nanna\nanna\nbert\nanna\n"))
    table = at.table[0].value
    assert table.index.tolist() == ["1", "2"]
    assert table["Rows"].tolist() == ["3", "1"]
    assert table["Share of all"].tolist() == ["75\xa0%", "25\xa0%"]
    assert "anna" not in table.to_string() + shown_texts(at)


def test_formulas_are_shown_as_text():
    content = b"user_id,=1+1\n=cmd|' /C calc'!A0,-5\n@sum,+x\n-2.5,ok\n"
    at = upload(open_app("Your data"), content)
    frame = at.dataframe[0].value
    assert list(frame.columns) == ["user_id", "'=1+1"]
    assert frame["user_id"].tolist() == ["'=cmd|' /C calc'!A0", "'@sum", "-2.5"]
    assert frame["'=1+1"].tolist() == ["-5", "'+x", "ok"]


def test_sizes_are_said_in_round_units():
    assert upload_roles._size(999) == "999 bytes"
    assert upload_roles._size(20_400_000_000) == "20 GB"
    assert files.SMALL_BYTES == counting.SMALL_BYTES


def test_binned_totals_are_answered_as_those_of_single_users(everything_is_large, monkeypatch):
    exact = Amounts.from_totals(samples.load("shop-events").totals)
    monkeypatch.setattr(reduce, "MAX_TOTALS", 10)
    monkeypatch.setattr(reduce, "MAX_VALUES", 10)
    at = until_counted(use(upload(open_app("Your data"), GZIPPED, "shop_events.csv.gz")))
    binned = data(at)
    assert binned.values is None
    assert binned.totals.users.sum() == exact.num_users
    assert binned.totals.totals.size < exact.num_users
    go(at, "Sum and count")
    fine(at.segmented_control(key="total.summed").set_value("Values").run())
    assert f"add up to {wording.number(exact.total, 4)}" in shown_texts(at)
    # A bin is 0.23 % wide, so the best bound moves by no more, and its error by less.
    problems = [total.TotalProblem(amounts, 1.0) for amounts in (exact, Amounts.from_totals(binned.totals))]
    one, other = (total.measured(problem, [total.optimal_bound(problem)])[0] for problem in problems)
    assert other == pytest.approx(one, rel=3e-3)


def test_a_distribution_of_pairs_is_opened_with_its_label_and_answers_per_group():
    shop = samples.load("shop-events")
    content = pair_distribution.to_text(shop).encode()
    at = upload(
        open_app("Your data"), content.replace(b'"counted": "rows"', b'"counted": "people"'), "pairs.json"
    )
    assert "pairs.json was not read" in errors(at)
    assert "Counted: this must be one of rows, distinct tasks" in errors(at)
    assert "use_distribution" not in {button.key for button in at.button}
    fine(at.file_uploader[0].set_value([(f"{n}.json", content, "application/json") for n in "ab"]).run())
    assert "is one file, and is brought alone" in errors(at)
    fine(at.file_uploader[0].set_value([("pairs.json", content, "application/json")]).run())
    assert "not which lie in which group" in shown_texts(at)
    assert at.radio(key="your_data.upload_public").value is Disclosure.PRIVATE
    assert data(at).name != "pairs.json"
    fine(at.button(key="discard_distribution").click().run())
    assert "use_distribution" not in {button.key for button in at.button}
    fine(at.file_uploader[0].set_value([("pairs.json", content, "application/json")]).run())
    fine(at.button(key="use_distribution").click().run())
    used = data(at)
    assert used.is_private
    assert used.histogram == shop.histogram
    assert used.pair_sizes == pair_distribution.sizes_of(shop.pairs)
    go(at, "Per group")
    assert "Only how pairs are distributed is known" in shown_texts(at)
    assert "do not publish" in shown_texts(at)
    go(at, "Your data")
    fine(at.file_uploader[0].set_value([("pairs.json", content, "application/json")]).run())
    fine(at.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run())
    fine(at.button(key="use_distribution").click().run())
    assert not data(at).is_private


@pytest.mark.parametrize("page", ["Regression", "Your data"])
def test_a_late_message_that_still_names_a_file_changes_nothing(page):
    """The browser's next message may come before it has taken the old uploader away: the file is gone by then."""
    at = fine(open_app(page))
    key, there = (
        ("regression.source", DataSource.UPLOAD)
        if page == "Regression"
        else ("your_data.data_source", "Upload a file")
    )
    fine(at.segmented_control(key=key).set_value(there).run())
    at.file_uploader[0].upload("shop.csv", SHOP_EVENTS)
    message = at._tree.get_widget_states()
    fine(at.run())
    use = "regression_use" if page == "Regression" else "use_upload"
    assert at.button(key=use)
    fine(at._run(message))
    assert at.button(key=use)
