"""The page *Release sheet*: the release that was seen last, fields for its numbers, and nothing of earlier data."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from tests.pages.driving import check, go, open_app, shown_texts, unescape_markdown, use_dataset


def test_the_sheet_states_the_release_that_was_seen_last_until_the_data_change():
    app = open_app("Release sheet")
    assert "Nothing to state yet" in shown_texts(app)
    app = check(app.button(key="release_sheet_example").click().run())
    assert "| count of rows | … |" in unescape_markdown(shown_texts(app))
    app = open_app("Mean", link="1", data="shop-events", epsilon="1", lower="0", upper="100")
    app = go(app, "Release sheet")
    app = check(app.text_input[0].set_value("43.97").run())
    app = check(app.text_input[1].set_value("0.75 *").run())
    assert "| mean | 43.97 | 0.75 * | at most" in unescape_markdown(shown_texts(app))
    app = go(go(app, "Sum and count"), "Release sheet")
    assert "| count of rows | … |" in unescape_markdown(shown_texts(app))
    app = check(app.selectbox[0].set_value("mean").run())
    assert "43.97" in shown_texts(app)  # What was pasted stays with its release.
    private = replace(samples.load("shop-events"), name="mine.csv", disclosure=Disclosure.PRIVATE)
    app = go(use_dataset(app, private), "Release sheet")
    assert "Nothing to state yet" in shown_texts(app)
    app = go(go(app, "Sum and count"), "Release sheet")
    assert "| count of rows | … | not stated | not stated |" in unescape_markdown(shown_texts(app))
    assert "Choose the bound with DP" in shown_texts(app)
