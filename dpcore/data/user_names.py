"""Names of columns that suggest users: their words, and which of two columns says who."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.data.column_names import split_name, split_words

_USER_WORDS = (  # by decreasing certainty
    split_words(
        "user userid uid username customer customerid client clientid author account member patient visitor subscriber "
        "person participant respondent worker contributor player student buyer seller reviewer rater voter employee "
        "household committer owner screenname nickname login resource driver passenger rider subject applicant guest "
        "sender receiver recipient caller callee payer payee follower followee kunde nutzer benutzer"
    ),
    split_words("email mail session sessionid device deviceid cookie ip phone"),
    split_words("id name who"),
)
_PEOPLE_WORDS = split_words(
    "users customers clients authors accounts members patients visitors subscribers people persons participants "
    "respondents workers contributors players students buyers reviewers raters employees"
)
_IDENTIFYING_WORDS = split_words("id uid name key no nr number num code hash hashed pseudonym login of the e")
_SIDE_WORDS = [
    "sender receiver recipient",
    "caller callee",
    "payer payee",
    "follower followee",
    "buyer seller",
]
_SIDE_WORD_SETS = tuple(map(split_words, _SIDE_WORDS))
"""Words of columns that name different people of one row."""
_ATTRIBUTE_WORDS = split_words(
    "age agent type kind class tier level segment category group gender sex race language locale country city state "
    "region zip postcode address location lat lon latitude longitude status role rank title plan active verified "
    "casual association education occupation job income followers friends description url since joined born birth"
)
"""Words that tell a quality of a user, which many users share: user_agent, member_casual."""
TIME_WORDS = split_words(
    "time times timestamp datetime date day week month quarter year hour minute datum zeit"
)
COUNT_WORDS = split_words(
    "count counts cnt n rows contributions contribution num nb records events frequency anzahl freq"
)
# In order of preference.
VALUE_WORDS_IN_ORDER = (
    *("value", "amount", "price", "rating", "score", "total", "cost", "revenue", "sales", "spend"),
    *("quantity", "qty", "stars", "duration", "payment", "salary", "income", "weight", "balance"),
    *(
        "fare",
        "tip",
        "bill",
        "fee",
        "charge",
        "charges",
        "spending",
        "minutes",
        "hours",
        "seconds",
        "distance",
    ),
    *("val", "v", "betrag", "wert", "preis", "menge"),
)
TASK_WORDS_IN_ORDER = (
    *("task", "product", "item", "category", "group", "partition", "movie", "film", "book", "song", "artist"),
    *("track", "article", "page", "url", "domain", "stockcode", "sku", "genre", "topic", "shop", "store"),
    *("country", "tag", "model", "brand", "channel", "department", "school", "hospital", "clinic"),
)
VALUE_WORDS = frozenset(VALUE_WORDS_IN_ORDER)


def score_as_users(column_name: str) -> float:
    """Return a score above 0, at most 3.3, if a column's name suggests users; 0 if it does not."""
    name_words = set(split_name(column_name))
    # screen_name is one word here, and user_name is two.
    name_words = name_words - {"screen"} | ({"screenname"} if {"screen", "name"} <= name_words else set())
    if name_words & (_ATTRIBUTE_WORDS | TIME_WORDS):
        return 0.0
    for word_list_rank, known_words in enumerate(_USER_WORDS):
        if name_words & known_words and not name_words & (COUNT_WORDS | VALUE_WORDS):
            other_words = name_words - known_words - _IDENTIFYING_WORDS
            if word_list_rank == len(_USER_WORDS) - 1 and other_words:  # order_id, product_name
                return 0.0
            # The rank decides; what follows, less than 1 in all, orders columns of one rank.
            return 3.0 - word_list_rank + 0.3 * (bool(name_words & {"id", "uid"})) - 0.5 * bool(other_words)
    return 0.0


def counts_people(column_name: str) -> bool:
    """Return True if a column's name says that it has numbers of people."""
    name_words = set(split_name(column_name))
    user_number_words = name_words & {"num", "number", "n", "count", "how"} and name_words & _USER_WORDS[0]
    return "per" not in name_words and bool(name_words & _PEOPLE_WORDS or user_number_words)


def list_other_user_columns(column_names: Sequence[str], used_columns: Sequence[str]) -> list[str]:
    """List the unused columns whose names suggest users, the likeliest first."""
    unused_columns = [
        column_name
        for column_name in column_names
        if column_name not in used_columns and score_as_users(column_name) > 0
    ]
    return sorted(unused_columns, key=score_as_users, reverse=True)


def find_two_people(columns: Sequence[str]) -> tuple[str, str] | None:
    """Return two columns that name different people of one row, such as sender and receiver; None if there are none."""
    for words in _SIDE_WORD_SETS:
        columns_by_word = {word: column for column in columns for word in set(split_name(column)) & words}
        if len(set(columns_by_word.values())) > 1:
            first_column, second_column = sorted(set(columns_by_word.values()), key=columns.index)[:2]
            return first_column, second_column
    return None


def find_other_person(column_names: Sequence[str], user_column: str) -> str | None:
    """Return the likeliest other column whose name has a word for people that the user's lacks; None if none."""
    user_words = set(split_name(user_column)) & _USER_WORDS[0]
    for other_column in list_other_user_columns(column_names, [user_column]) if user_words else ():
        other_user_words = set(split_name(other_column)) & _USER_WORDS[0]
        if other_user_words and other_user_words != user_words:
            return other_column
    return None
