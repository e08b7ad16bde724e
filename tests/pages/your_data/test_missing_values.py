"""Missing values: their rows are left out or replaced by the rule that the person sets."""

from __future__ import annotations

import pytest

from dpcore.common.privacy import Disclosure
from pages.your_data import columns
from tests.pages.driving import check, data, errors, open_app, shown_texts, upload, use
from tests.pages.your_data.conftest import histogram_of, panel

BLANKS = b"user,amount\na,1\na,\nb,3\nb,oops\nc,5\n"


def set_rule(app, rule):
    check(app.selectbox(key="your_data.upload_rule").set_value(rule).run())


@pytest.mark.long
def test_missing_values_are_left_out_or_replaced_next_to_the_message():
    app = upload(open_app("Data"), BLANKS)
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    for disclosure, rule in (
        (Disclosure.PUBLIC, columns.BlankRule.REFUSE),
        (Disclosure.PRIVATE, columns.BlankRule.DROP),
    ):
        check(app.radio(key="your_data.upload_public").set_value(disclosure).run())
        app.run()
        assert app.selectbox(key="your_data.upload_rule").value is rule
    set_rule(app, columns.BlankRule.REFUSE)
    use(app)
    assert "replaced by a public number or their rows left out" in errors(app)
    assert "after the app found a blank" not in shown_texts(app)
    set_rule(app, columns.BlankRule.DROP)
    assert "after the app found a blank" in shown_texts(app)
    use(app)
    assert histogram_of(app) == {1: 3}
    assert data(app).layout.dropped_column == "amount"
    # Of public data the fix is a button at the message.
    app = upload(open_app("Data"), BLANKS)
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    use(check(app.radio(key="your_data.upload_public").set_value(Disclosure.PUBLIC).run()))
    check(app.button(key="drop_missing").click().run())
    assert (histogram_of(app), data(app).disclosure) == ({1: 3}, Disclosure.PUBLIC)


@pytest.mark.long
def test_private_rows_are_left_out_where_one_of_several_values_is_missing():
    app = upload(open_app("Data"), b"user,amount,tax\na,1,2\nb,3,\nb,,4\nc,5,6\n")
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    check(app.multiselect(key="your_data.upload_further_values").set_value(["tax"]).run())
    check(app.run())
    assert app.selectbox(key="your_data.upload_rule").value is columns.BlankRule.DROP
    use(app)
    assert "after the app found a blank" not in shown_texts(app)
    assert histogram_of(app) == {1: 2}


@pytest.mark.long
def test_the_rule_for_missing_values_is_set_before_the_file_is_opened():
    app = panel()
    set_rule(app, columns.BlankRule.REPLACE)
    check(app.number_input(key="your_data.upload_constant").set_value(2.5).run())
    upload(app, BLANKS)
    check(app.selectbox(key="your_data.upload_role_value").set_value("amount").run())
    assert app.selectbox(key="your_data.upload_rule").value is columns.BlankRule.REPLACE
    use(app)
    assert "after the app found a blank" not in shown_texts(app)
    assert sorted(data(app).values.values) == [1, 2.5, 2.5, 3, 5]
