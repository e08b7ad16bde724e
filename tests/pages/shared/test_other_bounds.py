"""The line below a card with the bounds of other releases of the same data."""

import dataclasses

from streamlit.testing.v1 import AppTest

from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from tests.pages.driving import check, confirm, go, open_app, read_number, shown_texts, use_dataset

SHOP = samples.load("shop-events")


def list_others(app: AppTest) -> list[str]:
    labels = [link.proto.label for link in app.main.get("page_link")]
    return [label for label in labels if label.startswith(("Mean: ", "Sum and count: "))]


def test_each_page_names_the_bounds_that_the_other_pages_show() -> None:
    app = check(use_dataset(open_app("Mean", epsilon="0.5"), SHOP).run())
    mean_text, (count_label,) = read_number(app, "mean_card")["value"], list_others(app)
    assert list_others(go(app, "Sum and count")) == [f"Mean: {mean_text}"]
    assert count_label == f"Sum and count: {read_number(app, 'total_card')['value']}"
    # A setting of one page moves its bound on the other, too.
    check(app.number_input(key="epsilon").set_value(3.0).run())
    (label,) = list_others(app)
    assert label == f"Mean: {read_number(go(app, 'Mean'), 'mean_card')['value']}" != f"Mean: {mean_text}"


def test_bounds_read_off_private_data_are_labelled_and_never_beside_one_that_was_chosen_with_dp() -> None:
    secret = dataclasses.replace(SHOP, name="secret.csv", disclosure=Disclosure.PRIVATE)
    app = check(use_dataset(open_app("Sum and count"), secret).run())
    assert list_others(app) == []  # Mean has no range yet.
    app.session_state["mean.lower"], app.session_state["mean.upper"] = 0.0, 100.0
    check(app.run())
    assert [label.partition(":")[0] for label in list_others(app)] == ["Mean"]
    assert "Best bound of other releases (do not publish):" in shown_texts(app)
    confirm(app, "total_card_draw")
    assert list_others(app) == []
