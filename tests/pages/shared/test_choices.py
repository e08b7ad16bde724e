"""What is chosen stays chosen, whatever run of the page was under way."""

from __future__ import annotations

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetStates

from dpcore.regression.parameters import DataSource
from dpcore.training.mechanism import LossKind
from tests.pages.driving import check, open_app


@pytest.mark.parametrize(
    ("page", "kind", "key", "other"),
    [
        ("Linear regression", "segmented_control", "regression.source", DataSource.UPLOAD),
        pytest.param("Classifier", "selectbox", "training.loss", LossKind.HINGE, marks=pytest.mark.long),
    ],
)
def test_no_run_sets_what_only_a_person_has_chosen(page, kind, key, other):
    """The browser's messages do not name what lies in a popover before that is opened.

    A run that tells the browser then to set a choice takes back what a person pressed before the run had ended.
    """
    app = check(open_app(page))
    widget = getattr(app, kind)(key=key)
    for value in (app.session_state[key], other):
        check(widget.set_value(value).run())
        check(app._run(WidgetStates()))  # of a browser that has opened no popover yet
        widget = getattr(app, kind)(key=key)
        assert widget.value == value
        assert not widget.proto.set_value
        default = widget.proto.default  # shown where the browser draws it for the first time
        chosen = default if isinstance(default, int) else next(iter(default))
        assert widget.options[chosen] == str(widget.format_func(value))
