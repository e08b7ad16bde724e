"""What fields begin with for new data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpcore.dataset import Dataset
from pages.shared.base.round_numbers import rounded_out


def propose_settings(
    now: Mapping[str, Any], usual: Mapping[str, Any], reset: Collection[str] = ()
) -> dict[str, Any]:
    """Return the settings that follow from the data, each with a note that it was proposed.

    A setting that the user changed stays. One of ``reset`` was chosen for other data and is proposed again.
    """
    return {
        key: value
        for name, value in usual.items()
        if name in reset or now[name] == now[f"{name}_proposed"]
        for key in (name, f"{name}_proposed")
    }


def propose_range(
    data: Dataset,
    now: Mapping[str, Any],
    ends: tuple[str, str],
    initial: tuple[float | None, float | None] = (None, None),
) -> dict[str, Any]:
    """Return the range of public values, rounded; a range that the user entered stays.

    For private values there is no range, and the page asks for one: a range that nobody chose would clamp values
    without a word and stand in programs. For a release nothing is proposed.

    Args:
        data: The new data.
        now: What the fields hold.
        ends: Names of the two fields.
        initial: The range of data without values.
    """
    before = now[ends[0]], now[ends[1]]
    if data.release is not None or before not in (now["proposed"] or initial, (None, None)):
        return {}
    proposed = (None, None) if data.is_private else initial
    if data.values is not None and not data.is_private:
        proposed = rounded_out(float(data.values.values.min()), float(data.values.values.max()))
    return {ends[0]: proposed[0], ends[1]: proposed[1], "proposed": proposed}
