"""Sentences that several questions share."""

from dpcore.answer import standard


def test_a_leak_names_its_source_and_the_remedy():
    text = standard.warn_of_leak("this bound was", "the values", "Use counts.")
    assert text.startswith("Your data are private, and **this bound was computed from the values**.")
    assert text.endswith("publishing it reveals something about the values. Use counts.")
    assert standard.warn_of_leak("this bound was").endswith(standard.CHOOSE_PRIVATELY_REMEDY)
