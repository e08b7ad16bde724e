"""Page, call, command, plan and program give one number: some of the settings of `benchmarks/agreement.py`."""

from __future__ import annotations

import pytest

from benchmarks import agreement


@pytest.mark.long_for(
    "rows", "rows per group", "sums per group", "users per group", "mean0", "sum0", "sum1", "median"
)
@pytest.mark.parametrize(
    "setting", [*agreement.draw_settings(6), *agreement.ISSUE_SETTINGS], ids=lambda setting: setting.line
)
def test_a_setting_has_one_number_everywhere(setting: agreement.Setting) -> None:
    assert agreement.find_differences(setting) == []
