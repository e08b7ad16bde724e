"""Data with files of every kind: several at once, paths, large files in the background, the public demo."""

from __future__ import annotations

import errno
import os
import tempfile
import time

import openpyxl
import pytest

from dpcore import counting
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.regression.parameters import DataSource
from pages.shared import streamlit_internals
from pages.shared.data import uploads
from pages.shared.server import access
from pages.your_data import file_upload
from tests.pages.driving import (
    SHOP_EVENTS,
    check,
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
from tests.pages.your_data.conftest import GZIPPED, histogram_of, panel, until_counted


def workspaces() -> set[str]:
    """Of this process: others may run beside it."""
    own_text = f"sweetspot-{os.getpid()}-"
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith(own_text)}


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


@pytest.mark.long
def test_a_path_may_be_a_pattern(tmp_path, local):
    for number in (1, 2):
        (tmp_path / f"part{number}.csv").write_text(f"user,v\nu{number},1\n")
    app = look_at(panel(), tmp_path / "part*.csv")
    use(app)
    assert data(app).histogram.num_users == 2
    assert "No file is called like" in errors(look_at(panel(), tmp_path / "none*.csv"))
