"""Who is a user: what is proposed for a table, and what is asked."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from dpcore.common.checks import InvalidInput
from dpcore.counting import MemoryFile, open_files
from dpcore.counting.count import to_dataset
from dpcore.counting.frames import write_parquet
from dpcore.data.column_roles import TableKind
from dpcore.data.user_names import find_other_person

DAY = pd.Timestamp("2024-03-01 07:30:00")


def repeat(*cells):
    """Four rows, of which the first two are of one kind."""
    return [cells[0], cells[0], *cells[1:], *cells[1:]][:4]


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("columns", "user"),
    [
        # A time is nobody, whatever it is called, and a quality has few "users".
        ({"pickup": [DAY] * 4, "fare": [3.0, 4.0, 5.0, 6.0]}, None),
        ({"started": [DAY, DAY, DAY, DAY + pd.Timedelta("1h")], "member_casual": repeat("member", "casual")}, None),
        ({"chamber": repeat("house", "senate"), "vote": [1, 0, 1, 1]}, None),
        ({"user_agent": repeat("x", "y"), "page": repeat("a", "b")}, None),
        ({"customer_since": [DAY] * 4, "customer": repeat("a", "b")}, "customer"),
        # An id of rows is nobody; one that repeats may be somebody, after every better name.
        ({"id": [1, 2, 3, 4], "text": repeat("a", "b")}, None),
        ({"id": repeat(1, 2), "text": repeat("a", "b")}, "id"),
        ({"id": repeat(1, 2), "screen_name": repeat("a", "b")}, "screen_name"),
        ({"id": repeat(1, 2), "visitor": repeat("a", "b")}, "visitor"),
        ({"case": repeat(1, 2), "org:resource": repeat("a", "b")}, "org:resource"),
        ({"id": repeat(1, 2), "device": repeat("a", "b"), "account": [3, 4, 3, 3]}, "account"),
        # Mail addresses that repeat are somebody without a name that says so.
        ({"column": repeat("a@b.de", "c@d.de"), "text": repeat("a", "b")}, "column"),
        # Of two people per row nobody but a person can choose.
        ({"sender": repeat("a", "b"), "receiver": repeat("c", "d")}, None),
    ],
)  # fmt: skip
def test_the_user_is_proposed_alike_for_every_format_or_left_open(columns, user):
    frame = pd.DataFrame(columns)
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    contents = {
        "t.csv": frame.to_csv(index=False).encode(),
        "t.jsonl": frame.to_json(orient="records", lines=True, date_format="iso").encode(),
        "t.parquet": parquet.getvalue(),
        "frame": write_parquet(frame, []),
    }
    for name, content in contents.items():
        roles = open_files([MemoryFile(content)], [name]).roles
        assert (roles.kind, roles.user) == (TableKind.EVENTS, user), name


@pytest.mark.parametrize("text", ["date,count\n2024-01-01,4\n2024-01-02,5\n", "year,users\n2001,3\n2002,4\n"])
def test_no_time_is_a_user_or_a_size(text):
    roles = open_files([MemoryFile(text.encode())], ["t.csv"]).roles
    assert (roles.user, roles.size) == (None, None)


def notes_of(sizes):
    users = [f"u{index}" for index, size in enumerate(sizes) for _ in range(size)]
    return " ".join(to_dataset(pd.DataFrame({"user": users}), user="user").notes)


def test_few_users_and_users_of_one_row_are_doubted():
    assert "There are only 19 users" in notes_of([2] * 19)
    assert "users" not in notes_of([2] * 20)
    assert "Nearly every user has one contribution" in notes_of([2] + [1] * 19)
    assert "Nearly" not in notes_of([2, 2] + [1] * 18)


def test_two_columns_that_name_people_are_asked_about():
    assert find_other_person(["household", "member_id", "amount"], "household") == "member_id"
    assert find_other_person(["user_id", "user_name", "session"], "user_id") is None


def test_a_row_of_two_people_is_refused():
    frame = pd.DataFrame({"sender": ["a", "b"], "receiver": ["b", "c"]})
    with pytest.raises(InvalidInput, match="each of these columns names a person") as refused:
        to_dataset(frame, user=["sender", "receiver"])
    assert "join both into one column" in str(refused.value)
    assert to_dataset(frame, user="sender").histogram.num_users == 2
