"""Public lists of names as MovieLens publishes them, with made-up content, and what a page may call an item."""

import pytest

from dpcore.common.checks import InvalidInput
from dpcore.counting.text import choose_names, read_names

LISTS = {
    "movies.dat": "1::Sad Robots (1999)::Animation|Children's\n7::Two: a Story, Told (2001)::Drama\n".encode(
        "latin-1"
    ),
    "u.item": b"1|Sad Robots (1999)|01-Jan-1999||http://x/a?b,c|0|1\n7|Two: a Story, Told (2001)|01-Jan-2001|||1|0\n",
    "movies.csv": b"movieId,title,genres\n1,Sad Robots (1999),Animation|Children\n"
    b'7,"Two: a Story, Told (2001)",Drama\n',
    "tabs": "\ufeff1\tSad Robots (1999)\r\n7\tTwo: a Story, Told (2001)\r\n\r\n".encode(),
    "semicolons": b"1;Sad Robots (1999)\n7;Two: a Story, Told (2001)\n",
}


@pytest.mark.parametrize("content", LISTS.values(), ids=LISTS)
def test_lists_are_read_as_they_come(content: bytes) -> None:
    names_read = read_names(content)
    assert (names_read["1"], names_read["7"]) == ("Sad Robots (1999)", "Two: a Story, Told (2001)")


def test_letters_beyond_ascii_in_an_old_file() -> None:
    assert read_names("1::Amélie (2001)::Comedy\n2::Café::Drama\n".encode("latin-1"))["1"] == "Amélie (2001)"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"one\ntwo\nthree\n", b"\x00\x01\x02\x03", b"1,\n2,\n"])
def test_what_is_no_list_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_names(content)


def test_a_name_that_stands_in_private_rows_alone_is_not_shown() -> None:
    ids, public = ("1", "my diary", "7"), {"1": "Sad Robots (1999)", "7": "Two"}
    assert choose_names(ids, None, is_private=False) == ids
    assert choose_names(ids, public, is_private=False) == ("Sad Robots (1999)", "my diary", "Two")
    assert choose_names(ids, public, is_private=True) == ("Sad Robots (1999)", "item 1", "Two")
    assert choose_names(ids, None, is_private=True) == ("item 0", "item 1", "item 2")
