"""The base of the facets of a dataset: arrays that nobody changes, with a digest."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from functools import cached_property

import numpy as np

from dpcore.common.checks import Problems
from dpcore.contributions import ByDigest

_LATER_FIELDS = ("num_rows_each", "standard_deviations", "bins")
"""Fields that older session files lack: where they are None they are no part of a digest."""


class ArrayFacet(ByDigest):
    """Base of dataclasses of arrays: the arrays become int64 or float64 by their types and read-only.

    Facets are equal if their contents are.
    """

    def __post_init__(self) -> None:
        filled_fields = [f for f in fields(self) if getattr(self, f.name) is not None]  # type: ignore[arg-type]
        array_fields = [f for f in filled_fields if "Array" in f.type]
        for array_field in array_fields:
            entry_type = np.int64 if array_field.type.startswith("Int") else np.float64
            field_values = getattr(self, array_field.name)
            # Nobody else can write to a read-only array of the right type: copies would double the memory.
            is_array = isinstance(field_values, np.ndarray)
            is_shareable = is_array and field_values.base is None and not field_values.flags.writeable
            array = np.array(field_values, entry_type, order="C", copy=None if is_shareable else True)
            object.__setattr__(self, array_field.name, array)
        problems = Problems()
        self._check(problems)
        problems.raise_if_any()
        for array_field in array_fields:
            getattr(self, array_field.name).flags.writeable = False

    def _check(self, problems: Problems) -> None:
        """Add a problem for every fault of the attributes; subclasses replace it, and this one adds none."""

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the content, hexadecimal; it is as private as the data."""
        hasher = hashlib.sha256(type(self).__name__.encode())
        for digest_field in fields(self):  # type: ignore[arg-type]
            field_value = getattr(self, digest_field.name)
            if field_value is None and digest_field.name in _LATER_FIELDS:
                continue
            hasher.update(
                field_value.ravel().data
                if isinstance(field_value, np.ndarray)
                else repr(field_value).encode()
            )
        return hasher.hexdigest()
