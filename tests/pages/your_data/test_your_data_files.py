"""Your data with files of every kind: several at once, paths, large files in the background, the public demo."""

from __future__ import annotations

import errno
import gzip
import io
import os
import tempfile
import time

import pandas as pd
import pytest

from dpcore import counting, total
from dpcore.common import wording
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.counting import formats, reduce
from dpcore.counting.__main__ import write_pairs_csv
from dpcore.data import group_pairs, samples
from dpcore.data.column_roles import TableKind
from dpcore.data.totals_per_user import Amounts
from dpcore.dataset import Contribution
from dpcore.regression.parameters import DataSource
from pages.shared import streamlit_internals
from pages.shared.data import uploads
from pages.shared.server import access
from pages.your_data import file_upload
from tests.pages.driving import (
    SHOP_EVENTS,
    below,
    check,
    data,
    errors,
    finish,
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
    monkeypatch.setenv(file_upload.LOCAL, "1")


def panel():
    """A new session in which a file is to be chosen."""
    at = open_app("Your data")
    return check(at.segmented_control(key="your_data.data_source").set_value("Upload a file").run())


def until_counted(at):
    return finish(at, "your_data.upload_job")


def choose(at, **roles):
    """Say which columns mean what."""
    for role, column in roles.items():
        check(at.selectbox(key=f"your_data.upload_role_{role}").set_value(column).run())


def look_at(at, path):
    check(at.text_input(key="your_data.upload_path").set_value(str(path)).run())
    return check(at.button(key="look_at_path").click().run())


def test_compressed_files_give_what_plain_ones_give_and_small_ones_never_touch_a_disk(monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *arguments, **options: pytest.fail("a folder was made"))
    before = workspaces()
    plain = data(use(upload(open_app("Your data"), SHOP_EVENTS, "shop_events.csv")))
    packed = data(use(upload(open_app("Your data"), GZIPPED, "shop_events.csv.gz")))
    assert packed.histogram == plain.histogram
    assert packed.totals == plain.totals
    assert not workspaces() - before  # what was uploaded is gone


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
    at = open_app("Your data")
    for content in (SHOP_EVENTS, GZIPPED[:-9], b"\x89PNG"):
        upload(at, content)
        assert list_held_files() == [], content[:9]


def test_streamlit_holds_no_table_that_was_read(list_held_files):
    at = check(open_app("Regression"))
    check(at.segmented_control(key="regression.source").set_value(DataSource.UPLOAD).run())
    check(at.file_uploader[0].upload("shop.csv", SHOP_EVENTS).run())
    assert at.button(key="regression_use")
    assert list_held_files() == []


def test_what_a_contribution_is_and_who_a_user_is_can_be_chosen():
    at = upload(open_app("Your data"), b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,y,4\n")
    choose(at, user="client", task="task")
    check(at.multiselect(key="your_data.upload_further").set_value(["shop"]).run())
    check(at.selectbox(key="your_data.upload_contribution").set_value(Contribution.DISTINCT_TASKS).run())
    assert "user = client" in shown_texts(at)
    use(at)
    assert histogram_of(at) == {1: 2}
    assert data(at).privacy_unit == ("client", "shop")
    assert "1 row repeats a user and task" in shown_texts(at)
    # The same columns are taken for the same again, until somebody says otherwise.
    upload(at, b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,x,4\n")
    assert "user = client" in shown_texts(at)
    assert "which has the same columns" in shown_texts(at)
    check(at.multiselect(key="your_data.upload_further").set_value([]).run())
    check(at.multiselect(key="your_data.upload_further_task").set_value(["shop"]).run())
    assert "task (column 2) = shop" in shown_texts(at)
    use(at)
    assert data(at).pairs.label == "task × shop"
    assert data(at).pairs.num_tasks == 2


def test_what_was_said_of_other_data_with_the_same_columns_does_not_make_these_public():
    at = upload(open_app("Your data"), b"who,amount\na,1\na,2\nb,3\n")
    check(at.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run())
    use(at)
    assert data(at).disclosure is Disclosure.PUBLIC
    upload(at, b"who,amount\nc,1\n")
    assert at.radio(key="your_data.upload_public").value is Disclosure.PRIVATE


def test_the_form_folds_once_its_data_are_in_use_and_not_before_what_is_wrong_was_said():
    def folded():
        return [block.label for block in at.expander if block.label == "Bring another file"]

    at = panel()
    assert not folded()
    upload(at, SHOP_EVENTS)
    assert folded()
    assert at.radio(key="your_data.upload_kind")
    use(at)
    assert folded()
    with pytest.raises(KeyError):
        at.radio(key="your_data.upload_kind")
    upload(at, b"\x89PNG\r\n\x1a\n")
    assert errors(at)
    assert not folded()


def test_a_large_file_is_counted_in_the_background(everything_is_large):
    before = workspaces()
    at = upload(open_app("Your data"), GZIPPED, "shop_events.csv.gz")
    assert "not yet counted" in shown_texts(at)
    assert workspaces() - before  # it waits there, in a temporary folder
    at = until_counted(use(at))
    assert "In use: shop_events.csv.gz" in unescaped(at.header[0].value)
    assert not workspaces() - before
    assert data(at).histogram == samples.load("shop-events").histogram
    assert data(at).values is not None


def test_columns_of_a_file_between_blanks_without_a_header_are_named_by_the_person():
    rows = "".join(f" {k % 3:05} 199701{k:02}  {k % 4} {k}.50\n" for k in range(10, 22))
    at = upload(open_app("Your data"), rows.encode(), "master.txt")
    assert "Fields stand between blanks" in shown_texts(at)
    names = at.text_input(key="your_data.upload_names")
    assert names.value == "column 1, column 2, column 3, column 4"
    check(names.set_value("user, day").run())
    assert errors(at).count("There are 4 columns, and 2 names") == 1
    assert "There are 4 columns, and 2 names" in below(at, "your_data.upload_names")
    check(at.text_input(key="your_data.upload_names").set_value("buyer, day, discs, dollars").run())
    assert not errors(at)
    check(at.selectbox(key="your_data.upload_role_user").set_value("buyer").run())
    check(at.selectbox(key="your_data.upload_role_value").set_value("dollars").run())
    in_use = data(use(at))
    assert in_use.histogram == ContributionHistogram([4], [3])
    assert in_use.values.column == "dollars"
    assert sorted(in_use.values.values) == [k + 0.5 for k in range(10, 22)]
    assert in_use.layout.files[0].names == ("buyer", "day", "discs", "dollars")


def test_copies_in_a_large_file_are_looked_for_on_request(everything_is_large):
    content = b"user_id,product,amount\na,x,1\na,x,1\nb,y,2\n"
    at = until_counted(use(upload(open_app("Your data"), content)))
    assert "Exact copies of rows were not looked for" in shown_texts(at)
    at = upload(at, content)
    check(at.checkbox(key="your_data.upload_copies").set_value(True).run())
    at = until_counted(use(at))
    assert "1 row is an exact copy of an earlier one." in shown_texts(at)
    assert "were not looked for" not in shown_texts(at)
    assert not upload(at, b"user_id,product\na,x\n").checkbox


def test_stop_leaves_the_data_and_the_file(everything_is_large, monkeypatch):
    def slow(source, roles, sensitivity, *, counts_copies, progress, should_stop):
        while not should_stop():
            progress(0.25)
            time.sleep(0.02)
        return counting.CountResult(None, 1.0, "Stopped; the data in use stay as they were.")

    at = upload(open_app("Your data"), GZIPPED)
    in_use = data(at)
    with monkeypatch.context() as patched:
        patched.setattr(counting, "count", slow)
        assert use(at).get("progress")
        go(at, "Mean")  # the app goes on meanwhile
        go(at, "Your data")
        at.button(key="your_data.upload_job_stop").click().run()
        at = until_counted(at)
    assert "Stopped; the data in use stay as they were." in below(at, "use_upload")
    assert data(at) is in_use
    at = until_counted(use(at))
    assert data(at) is not in_use


def test_a_file_is_read_by_its_path_and_where_it_vanishes_that_is_said(
    local, everything_is_large, tmp_path, monkeypatch
):
    path = tmp_path / "events [1].csv"
    path.write_bytes(SHOP_EVENTS)
    # Relative to where the person started the app, not to where its files lie.
    monkeypatch.setenv(file_upload.FOLDER, str(tmp_path))
    at = look_at(panel(), path.name)
    path.unlink()
    before = data(at)
    at = until_counted(use(at))
    assert "File events [1].csv: the file is gone" in errors(at)
    assert data(at) is before
    assert at.file_uploader
    assert "No such file" in errors(look_at(at, path))
    path.write_bytes(SHOP_EVENTS)
    at = until_counted(use(look_at(at, path)))
    assert not errors(at)
    assert "In use: events [1].csv" in unescaped(at.header[0].value)
    assert data(at).histogram == samples.load("shop-events").histogram
    assert path.read_bytes() == SHOP_EVENTS  # the person's own file stays


def fails(*arguments, **options):
    raise KeyError("s3cr3t")


def no_room(*arguments, **options):
    raise OSError(errno.ENOSPC, "No space left on device")


UNFORESEEN = "An error that nobody foresaw ended this (KeyError, test_your_data_files.py line"
FULL = "The file shop_events.csv was not read.\n- The temporary folder is full. Free space there"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"open_files": fails}, UNFORESEEN),
        ({"count": fails}, UNFORESEEN),
        ({"count": fails, "formats.read_small": lambda *arguments: None}, UNFORESEEN),
        ({"HELD_BYTES": 0, "shutil.copyfileobj": no_room}, FULL),
        ({"HELD_BYTES": 0, "tempfile.mkdtemp": no_room}, FULL),
    ],
    ids=["look", "count a small file", "count a large file", "copy", "folder"],
)
def test_whatever_ends_in_an_error_is_said_and_the_panel_goes_on(monkeypatch, changes, says):
    before, at = workspaces(), open_app("Your data")
    in_use = data(at)
    with monkeypatch.context() as patched:
        for name, new in changes.items():
            of_python = name.startswith(("shutil.", "tempfile."))
            patched.setattr(name if of_python else f"dpcore.counting.{name}", new)
        upload(at, SHOP_EVENTS, "shop_events.csv")
        if "count" in changes:
            at = until_counted(use(at))
    error_text = errors(at)
    assert "s3cr3t" not in shown_texts(at)
    assert says in error_text
    assert data(at) is in_use
    at = until_counted(use(upload(at, SHOP_EVENTS, "shop_events.csv")))
    assert not errors(at)
    assert data(at).histogram == samples.load("shop-events").histogram
    assert not workspaces() - before


def test_reading_a_file_can_be_stopped(monkeypatch):
    def endless(paths, names, *, owned_folder, should_stop):
        while not should_stop():
            time.sleep(0.02)
        raise counting.StoppedError

    before = workspaces()
    monkeypatch.setattr(counting, "open_files", endless)
    monkeypatch.setattr(file_upload, "WAIT_SECONDS", 0.05)
    at = panel()
    check(at.file_uploader[0].upload("book.xlsx", b"PK").run())
    assert "Reading…" in shown_texts(at)
    assert not at.file_uploader
    at.button(key="your_data.look_job_stop").click().run()
    at = finish(at, "your_data.look_job")
    assert "Stopped; the data in use stay as they were." in shown_texts(at)
    assert at.file_uploader
    assert not workspaces() - before


def test_without_local_there_is_no_path(monkeypatch):
    monkeypatch.delenv(file_upload.LOCAL, raising=False)
    at = panel()
    assert at.file_uploader
    assert "your_data.upload_path" not in [field.key for field in at.text_input]


def test_a_public_demo_takes_no_data_and_says_so(local, monkeypatch):
    monkeypatch.setenv(access.SERVED, "1")
    at = panel()
    assert "uploads and paths are switched off" in shown_texts(at)
    assert not at.file_uploader
    assert not [button for button in at.button if button.key == "look_at_path"]
    check(at.segmented_control(key="your_data.data_source").set_value("Generate").run())
    check(at.button(key="generate").click().run())
    assert not errors(at)


def test_engines_show_command_code_and_sql_for_the_columns_chosen():
    at = upload(open_app("Your data"), b"kunde_id,amount\na,1\nb,2\n")
    check(at.selectbox(key="your_data.engine").set_value("snowflake").run())
    check(at.text_input(key="your_data.engine_table").set_value("logs.orders").run())
    texts = "\n".join(code.value for code in at.main.code)
    assert "--from 'snowflake://analyst@account" in texts
    assert "--table logs.orders --user kunde_id" in texts
    assert "open_table(backend, 'logs.orders')" in texts
    assert "GROUP BY" in texts
    assert "password" not in texts.lower()


def test_the_heaviest_users_are_ranks_and_sizes():
    at = use(upload(open_app("Your data"), b"user_id\nanna\nanna\nbert\nanna\n"))
    table = at.table[0].value
    assert table.index.tolist() == [1, 2]
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


def test_binned_totals_are_answered_as_those_of_single_users(everything_is_large, monkeypatch):
    exact = Amounts.from_totals(samples.load("shop-events").totals)
    monkeypatch.setattr(reduce.dataset, "MAX_TOTALS", 10)
    monkeypatch.setattr(reduce.dataset, "MAX_VALUES", 10)
    at = until_counted(use(upload(open_app("Your data"), GZIPPED, "shop_events.csv.gz")))
    binned = data(at)
    assert binned.values is None
    assert binned.totals.users.sum() == exact.num_users
    assert binned.totals.totals.size < exact.num_users
    go(at, "Sum and count")
    check(at.segmented_control(key="total.summed").set_value("Values").run())
    assert f"add up to {wording.number(exact.total, 4)}" in shown_texts(at)
    # A bin is 0.23 % wide, so the best bound moves by no more, and its error by less.
    problems = [total.TotalProblem(amounts, 1.0) for amounts in (exact, Amounts.from_totals(binned.totals))]
    one, other = (
        total.measure_errors(problem, [total.find_optimal_bound(problem)])[0] for problem in problems
    )
    assert other == pytest.approx(one, rel=3e-3)


def test_a_distribution_of_pairs_is_opened_with_its_label_and_answers_per_group():
    shop = samples.load("shop-events")
    content = group_pairs.write_distribution(shop).encode()

    def choose_distribution(*files):
        check(at.file_uploader[0].set_value([(name, its, "application/json") for name, its in files]).run())

    at = panel()
    choose_distribution(("pairs.json", content.replace(b'"counted": "rows"', b'"counted": "people"')))
    assert "pairs.json was not read" in errors(at)
    assert "Counted: this must be one of rows, distinct tasks" in errors(at)
    assert "use_distribution" not in {button.key for button in at.button}
    choose_distribution(("a.json", content), ("b.json", content))
    assert "is one file" in errors(at)
    choose_distribution(("pairs.json", content))
    assert "answers from these numbers" in shown_texts(at)
    assert at.radio(key="your_data.upload_public").value is Disclosure.PRIVATE
    assert data(at).name != "pairs.json"
    check(at.button(key="discard_distribution").click().run())
    assert "use_distribution" not in {button.key for button in at.button}
    choose_distribution(("pairs.json", content))
    check(at.button(key="use_distribution").click().run())
    used = data(at)
    assert used.is_private
    assert used.histogram == shop.histogram
    assert used.pair_sizes == group_pairs.summarise_pairs(shop.pairs)
    go(at, "Per group")
    assert "Which pairs lie in which group is not known" in shown_texts(at)
    assert "do not publish" in shown_texts(at)
    go(at, "Your data")
    choose_distribution(("pairs.json", content))
    check(at.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run())
    check(at.button(key="use_distribution").click().run())
    assert not data(at).is_private


@pytest.mark.parametrize(
    ("page", "key", "there", "use_button"),
    [
        ("Regression", "regression.source", DataSource.UPLOAD, "regression_use"),
        ("Your data", "your_data.data_source", "Upload a file", "use_upload"),
    ],
    ids=["Regression", "Your data"],
)
def test_a_late_message_that_still_names_a_file_changes_nothing(page, key, there, use_button):
    """The browser's next message may come before it has taken the old uploader away: the file is gone by then."""
    at = check(open_app(page))
    check(at.segmented_control(key=key).set_value(there).run())
    at.file_uploader[0].upload("shop.csv", SHOP_EVENTS)
    message = at._tree.get_widget_states()
    check(at.run())
    assert at.button(key=use_button)
    check(at._run(message))
    assert at.button(key=use_button)


def test_pairs_that_an_engine_counted_are_known_by_their_header():
    shop = samples.load("shop-events")
    at = panel()
    check(
        at.file_uploader[0].set_value([("pairs.csv", write_pairs_csv(shop.pairs).encode(), "text/csv")]).run()
    )
    assert at.radio(key="your_data.upload_kind").value is TableKind.PAIRS
    assert "Read as one row per pair" in shown_texts(at)
    check(at.button(key="use_upload").click().run())
    used = data(at)
    assert used.histogram == shop.histogram
    assert used.pairs.rows.tolist() == shop.pairs.rows.tolist()
    go(at, "Per group")
    assert not at.exception


def test_a_duration_is_refused_with_a_unit_to_convert_to():
    table = pd.DataFrame({"user": ["a", "a", "b"], "duration": pd.to_timedelta([90, 30, 60], "s")})
    content = io.BytesIO()
    table.to_parquet(content)
    at = panel()
    check(at.file_uploader[0].set_value([("waits.parquet", content.getvalue(), "")]).run())
    choose(at, value="duration")
    check(at.button(key="use_upload").click().run())
    assert "holds durations, not numbers" in errors(at)
    assert "total_seconds" in errors(at)
