"""Sentences that several questions share."""

import pytest

from dpcore.answer import standard


def test_a_leak_names_its_source_and_the_remedy():
    text = standard.warn_of_leak("this bound was", "the values", "Use counts.")
    assert text.startswith("Your data are private, and **this bound was computed from the values**.")
    assert text.endswith("publishing it reveals something about the values. Use counts.")
    assert standard.warn_of_leak("this bound was").endswith(standard.CHOOSE_PRIVATELY)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"low": 2, "high": 1234, "noun": "row"},
            "2 to 1,234 rows, within 5\N{NO-BREAK SPACE}% of the least error.",
        ),
        ({"low": 1, "high": 1, "noun": "row"}, "only 1 row, within 5\N{NO-BREAK SPACE}% of the least error."),
        (
            {"low": 0.5, "high": 0.5, "name": "μ", "others": "the next ones"},
            "only μ = 0.5; the next ones are more than 5\N{NO-BREAK SPACE}% worse.",
        ),
        (
            {"low": 0.375, "high": 0.6, "name": "μ", "objective": "the bound"},
            "μ = 0.375 to 0.6, within 5\N{NO-BREAK SPACE}% of the bound.",
        ),
    ],
)
def test_a_near_optimal_range_is_written_with_its_unit(arguments, text):
    assert standard.write_range(**arguments) == text
