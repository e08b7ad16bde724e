"""Counting files in tests, and what is expected of it."""

import gzip
from collections import Counter

import pyarrow as pa
import pytest

from dpcore import counting
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data.column_roles import Roles, TableKind

WHO = Roles(TableKind.EVENTS, user="user_id")
LONG = "user_id,v\n" + "".join(f"u{k % 50},{k}\n" for k in range(60_000))
SMALL = counting.MAX_SMALL_BYTES
SIZES = [0, SMALL]
"""Bytes up to which a file becomes a table in memory: never, and as the app does.

Both ways lead through DuckDB, and what is counted from its rows is one code. Only what comes before that differs: how
lines and cells become rows, and how the place of a row is found. So only tests of these run in both ways.
"""


def count_files(paths, roles=WHO, small_bytes=0, **options):
    source = counting.open_files(paths if isinstance(paths, list) else [paths], small_bytes=small_bytes)
    result = counting.count(source, roles, Disclosure.PRIVATE, **options).dataset
    assert source.is_complete or small_bytes < SMALL
    return result


def sentences(paths, roles=WHO, small_bytes=0, **options):
    with pytest.raises(InvalidInput) as refused:
        count_files(paths, roles, small_bytes, **options)
    return [problem.sentence for problem in refused.value.problems]


def histogram_of(counts):
    return ContributionHistogram.from_counts(list(counts))


def histogram_of_users(users):
    """Return the histogram of users, one entry per row; None is nobody."""
    return histogram_of(Counter(user for user in users if user is not None).values())


def gzipped(content):
    """Return the content packed as fast as can be: how well does not matter."""
    return gzip.compress(content, 1)


def zstd(content):
    packed = pa.Codec("zstd").compress(content, asbytes=True)
    assert isinstance(packed, bytes)
    return packed
