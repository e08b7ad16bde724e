"""Paper comparison: a figure is chosen, computed anew, and leads to the page and the tab that it belongs to."""

from __future__ import annotations

import pytest

from dpcore.data_owners.paper import DIFFERENCES_NOTE
from dpcore.learning.paper import FIGURES
from pages.papers import contents
from pages.shared.base import catalogue, keys
from tests.pages.driving import check, finish, list_figure_keys, open_app, shown_texts

FIGURE = FIGURES[1].key


@pytest.mark.long
def test_a_figure_is_computed_anew_and_leads_to_its_page() -> None:
    app = open_app("Paper comparison")
    assert list_figure_keys(app) == ["paper_epasto_table_1_drugs"]
    check(app.selectbox(key="papers.figure").set_value("huang-table-1").run())
    assert list_figure_keys(app) == ["paper_huang_table_1"]
    # The reason for a large difference stands beside it, and once more below with the rest.
    assert [m.value for m in app.markdown].count(f"{DIFFERENCES_NOTE.split('. ')[0]}.") == 1
    check(app.selectbox(key="papers.figure").set_value(FIGURE).run())
    assert list_figure_keys(app) == ["paper_amin_figure_3a"]
    assert "Stored results" in shown_texts(app)
    check(app.button(key="compute_amin_figure_3a").click().run())
    app = finish(app, "paper_job_amin_figure_3a")
    assert "Computed in this session" in shown_texts(app)
    assert "Stored results" not in shown_texts(app)
    check(app.button(key="papers_go").click().run())
    assert app.title[0].value == "Bias curves over τ₀"
    assert {"learning_figure_3_cost", "paper_amin_figure_3a"} & set(list_figure_keys(app)) == {
        "paper_amin_figure_3a"
    }


def test_a_row_of_the_lists_opens_its_page_at_the_tab(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test cannot press a button within a table: what a press does, with the row that it names."""
    state: dict[str, object] = {"papers.open_items": {"row": 1, "label": "x"}}
    monkeypatch.setattr(contents.st, "session_state", state)
    places = [None, ("Join or train alone", "Unequal owners"), ("Mean", "")]
    assert contents.list_labels(places) == [None, "Join or train alone, Unequal owners", "Mean"]
    contents._open_clicked_page("papers.open_items", tuple(places))
    assert state["data_owners.tabs"] == "Unequal owners"
    assert state[keys.TOUR_DESTINATION] == catalogue.find_page("Join or train alone").page_path
