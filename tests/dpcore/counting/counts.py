"""Counting files in tests, and what is expected of it."""

import gzip

import pyarrow as pa
import pytest

from dpcore import counting
from dpcore.common.errors import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data.column_roles import Roles, TableKind

WHO = Roles(TableKind.EVENTS, user="user_id")
SIZES = [0, counting.SMALL_BYTES]
"""Bytes up to which a file is read into memory: never, and as the app does."""


def counted(paths, roles=WHO, small_bytes=0, **options):
    source = counting.open_files(paths if isinstance(paths, list) else [paths], small_bytes=small_bytes)
    result = counting.count(source, roles, Disclosure.PRIVATE, **options).dataset
    assert source.complete or small_bytes < counting.SMALL_BYTES
    return result


def sentences(paths, roles=WHO, small_bytes=0, **options):
    with pytest.raises(InvalidInput) as refused:
        counted(paths, roles, small_bytes, **options)
    return [problem.sentence for problem in refused.value.problems]


def histogram_of(counts):
    return ContributionHistogram.from_counts(list(counts))


def gzipped(content):
    """Packed as fast as can be: how well does not matter."""
    return gzip.compress(content, 1)


def zstd(content):
    packed = pa.Codec("zstd").compress(content, asbytes=True)
    assert isinstance(packed, bytes)
    return packed
