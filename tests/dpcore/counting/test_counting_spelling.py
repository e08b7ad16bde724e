"""Users that are written so that they may not be who they seem: it is said, and nobody is joined."""

import pytest

from dpcore.counting import reduce_files
from dpcore.data.column_roles import Roles, TableKind
from dpcore.dataset import Contribution
from tests.dpcore.counting.counts import SMALL, WHO, count_files


@pytest.mark.parametrize(
    ("roles", "number"),
    [
        (WHO, 3),
        (Roles(TableKind.EVENTS, user="user_id", task="t", contribution=Contribution.DISTINCT_TASKS), 2),
        (Roles(TableKind.EVENTS, user="user_id", value="v", contribution=Contribution.TOTAL), 7),
    ],
)
def test_users_called_na_and_the_like_are_said(put, roles, number):
    path = put("user_id,t,v\nNA,x,2\nNA,x,1\nnull,y,4\nNancy,x,1\nnone left,y,1\nzz,,1\n")
    notes = count_files(path, roles, SMALL).notes
    assert any(note.startswith(f"{number} contributions are of users called NA, null") for note in notes)
    fine = count_files(put("user_id,t,v\nNancy,x,2\nnone left,x,1\nzz,,1\n"), roles, SMALL).notes
    assert not any("users called NA" in note for note in fine)


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ("7 7.0 8", True), ("7.0 8.0", False), ("7 8 08", False), ("a7 b7.0", False), ("7 a.0", False),
        ("7 v1.0 2.5", False), ("7.0 x7", False),
    ],
)  # fmt: skip
def test_users_with_and_without_decimals_are_said(put, users, said):
    data = count_files(put("user_id,v\n" + "".join(f"{user},1\n" for user in users.split())), WHO, SMALL)
    assert any("Some users are written like 7.0 and others like 7" in note for note in data.notes) == said
    assert data.histogram.num_users == len(users.split())


@pytest.mark.thinned
@pytest.mark.parametrize(
    ("users", "number"),
    [
        (["a b", "a\u00a0b", "a\u3000b", "a\u2009b"], 3),
        (["ab", "a\u200bb", "ab\ufeff", "a\u00adb"], 3),
        (["zo\u00eb", "zoe\u0308"], 1),
        (["c\u00a0", "c", "d\u00a0", "d"], 2),
        (["a b", "ab", "A b", "\u00e9", "e", "\u4e00\u3000\u4e8c", "\uff11", "1"], 0),
    ],
)
@pytest.mark.parametrize(
    "roles",
    [
        WHO,
        Roles(TableKind.EVENTS, user="t", further_user=("user_id",), value="v"),
        Roles(TableKind.COUNTS, user="user_id", count="v"),
    ],
    ids=["one column", "two columns", "counts"],
)
def test_users_that_look_the_same_are_said_with_their_number(put, users, number, roles):
    rows = [*users, *(users if roles.kind is TableKind.EVENTS else []), ""]
    data = count_files(put("user_id,t,v\n" + "".join(f"{user},x,1\n" for user in rows)), roles, SMALL)
    said = [note for note in data.notes if "Unicode form" in note]
    assert data.histogram.num_users == len(users)  # it is said, and nothing is joined
    assert [note.split(" user")[0] for note in said] == ([str(number)] if number else [])


def test_how_users_are_written_is_said_in_parts_too(put, monkeypatch):
    real = reduce_files.FileReduction.__init__

    def begin(self, *arguments, **options):
        real(self, *arguments, **options)
        self._passes = 7

    monkeypatch.setattr(reduce_files.FileReduction, "__init__", begin)
    similar_rows = "".join(f"u{k}{end},x,1\n" for k in range(40) for end in (" z", "\u00a0z", "\u200b z"))
    notes = " ".join(
        count_files(put("user_id,t,v\n" + "NA,x,2\n" * 3 + "7,x,1\n7.0,x,1\n" + similar_rows)).notes
    )
    assert "3 contributions are of users called NA" in notes
    assert "Some users are written like 7.0" in notes
    assert "80 users look like others but for spaces" in notes
