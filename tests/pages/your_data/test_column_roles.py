"""What columns mean: who a user is, what a contribution is, and answers of yes and no."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from dpcore.dataset import Contribution
from pages.your_data import columns
from tests.pages.driving import check, data, errors, go, open_app, shown_texts, upload, use
from tests.pages.your_data.conftest import choose, histogram_of, panel


@pytest.mark.long
def test_who_is_asked_where_no_name_says_it():
    app = upload(open_app("Data"), b"chamber,vote\nhouse,1\nsenate,0\nhouse,1\n")
    assert app.selectbox(key="your_data.upload_role_user").value == columns.NO_COLUMN
    assert "No name says who a row belongs to" in shown_texts(app)
    use(app)
    assert "No column is chosen for user" in errors(app)
    choose(app, user="chamber")
    assert "There are only 2 users: does chamber really say who?" in shown_texts(app)
    use(app)
    assert histogram_of(app) == {1: 1, 2: 1}


def test_two_columns_of_people_are_one_person_or_refused():
    app = upload(open_app("Data"), b"household,member,v\na,1,2\na,1,3\na,2,3\nb,1,4\n")
    people = app.radio(key="your_data.upload_people")
    assert people.label == "Is the pair with member the person?"
    check(people.set_value(columns.PeopleAnswer.EACH).run())
    assert "each of these columns names a person" in errors(app)
    use(app)
    assert data(app).privacy_unit != ("household",)
    check(app.radio(key="your_data.upload_people").set_value(columns.PeopleAnswer.PAIR).run())
    use(app)
    assert data(app).privacy_unit == ("household", "member")
    assert histogram_of(app) == {1: 2, 2: 1}


@pytest.mark.long
def test_answers_of_yes_and_no_bring_their_range_once_the_person_confirms_them():
    rows = "".join(f"u{row % 4},{'yes' if row % 3 else 'no'}\n" for row in range(24))
    app = upload(panel(), f"user,churned\n{rows}".encode())
    assert app.selectbox(key="your_data.upload_role_value").value == "churned"
    check(app.checkbox(key="your_data.upload_share").check().run())
    app = go(use(app), "Mean")
    assert [app.number_input(key=f"mean.{end}").value for end in ("lower", "upper")] == [0.0, 1.0]
    assert data(app).is_private


@pytest.mark.long
def test_what_a_contribution_is_and_who_a_user_is_can_be_chosen():
    app = upload(open_app("Data"), b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,y,4\n")
    choose(app, user="client", task="task")
    check(app.multiselect(key="your_data.upload_further").set_value(["shop"]).run())
    check(app.selectbox(key="your_data.upload_contribution").set_value(Contribution.DISTINCT_TASKS).run())
    assert "user = client" in shown_texts(app)
    use(app)
    assert histogram_of(app) == {1: 2}
    assert data(app).privacy_unit == ("client", "shop")
    assert "1 row repeats a user and task" in shown_texts(app)
    # The same columns are taken for the same again, until somebody says otherwise.
    upload(app, b"shop,client,task,value\na,1,x,2\na,1,x,3\nb,1,x,4\n")
    assert "user = client" in shown_texts(app)
    assert "which has the same columns" in shown_texts(app)
    check(app.multiselect(key="your_data.upload_further").set_value([]).run())
    check(app.multiselect(key="your_data.upload_further_task").set_value(["shop"]).run())
    assert "task (column 2) = shop" in shown_texts(app)
    use(app)
    assert data(app).pairs.label == "task × shop"
    assert data(app).pairs.num_tasks == 2


def test_a_duration_is_refused_with_a_unit_to_convert_to():
    table = pd.DataFrame({"user": ["a", "a", "b"], "duration": pd.to_timedelta([90, 30, 60], "s")})
    content = io.BytesIO()
    table.to_parquet(content)
    app = panel()
    check(app.file_uploader[0].set_value([("waits.parquet", content.getvalue(), "")]).run())
    choose(app, value="duration")
    check(app.button(key="use_upload").click().run())
    assert "holds durations, not numbers" in errors(app)
    assert "total_seconds" in errors(app)
