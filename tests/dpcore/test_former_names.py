"""Settings that were renamed are still accepted under their former names: by calls, commands, links and files."""

import json
import warnings

import pandas as pd
import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.common.text_fields import list_former_names
from dpcore.questions import QUESTIONS, find_parameters_type
from dpcore.report.settings_file import read_settings

RENAMED = [
    (call, former, name)
    for call in QUESTIONS
    for former, name in list_former_names(find_parameters_type(call)).items()
]


def test_a_former_name_means_the_same_and_warns() -> None:
    rows = {"data": [1] * 90 + [10] * 10, "epsilon": 1, "disclosure": "public"}
    with pytest.warns(DeprecationWarning, match="wanted of private_bound is now called purpose"):
        former = ss.private_bound(**rows, wanted="sum")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(ss.private_bound(**rows, purpose="sum")) == str(former)
    assert json.loads(former.to_json())["question"]["parameters"]["purpose"] == "sum"


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Own_bound stands here under its former name own_cap, too"):
        ss.learning_bound([1, 2], epsilon=1, own_cap=1, own_bound=2)


@pytest.mark.parametrize(("call", "former", "name"), RENAMED)
def test_no_former_name_is_a_setting_of_today(call: str, former: str, name: str) -> None:
    settings = (
        ss.__dict__[call].__signature__.parameters
        if call in ss.__dict__
        else getattr(ss, call).__signature__.parameters
    )
    assert name in settings
    assert former not in settings


def test_a_former_option_of_a_command_is_renamed_and_said(tmp_path, capsys) -> None:
    from dpcore.cli.command import main

    table = tmp_path / "rows.csv"
    table.write_text("user\na\na\nb\n", encoding="utf-8")
    words = ["learning", str(table), "--user", "user", "--epsilon", "1", "--disclosure", "public"]
    assert main([*words, "--own-bound", "1"]) == 0
    today = capsys.readouterr()
    assert main([*words, "--own-cap=1"]) == 0
    former = capsys.readouterr()
    assert (former.out, today.err) == (today.out, "")
    assert former.err == "--own-cap is now called --own-bound.\n"


def test_a_file_of_settings_may_have_former_names(tmp_path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("own_cap = 1\n", encoding="utf-8")
    with pytest.warns(DeprecationWarning, match="own_cap"):
        reply = ss.learning_bound([1, 2, 2], epsilon=1, **read_settings(file))
    assert reply.parameters.own_bound == 1


def test_options_overrule_former_names_and_values_in_a_file_of_settings(tmp_path, capsys) -> None:
    from dpcore.cli.command import main

    table, file = tmp_path / "rows.csv", tmp_path / "settings.toml"
    table.write_text("user,shop\na,x\na,y\nb,x\n", encoding="utf-8")
    file.write_text('user = "user"\ngroup = "shop"\nepsilon = 1\nnoise = "Gaussian"\n', encoding="utf-8")
    words = ["group", str(file), str(table), "--disclosure", "public", "--statistic", "Distinct Users"]
    assert main([*words, "--mechanism", "Laplace"]) == 0
    out, err = capsys.readouterr()
    assert err.count("is now called") == 2
    today = [
        "group",
        str(table),
        "--user",
        "user",
        "--group",
        "shop",
        "--epsilon",
        "1",
        "--disclosure",
        "public",
    ]
    assert main([*today, "--statistic", "users"]) == 0
    assert capsys.readouterr().out == out


def test_the_warning_points_at_the_line_of_the_caller() -> None:
    settings = {"epsilon": 1, "own_cap": 1}
    with pytest.warns(DeprecationWarning, match="own_cap") as caught:
        ss.learning_bound([1, 2], **settings)
    with pytest.warns(DeprecationWarning, match="own_cap") as caught_of_selection:
        ss.select_privately("learning_bound", [1, 2], {**settings, "public_rows": 3}, 0.1)
    assert {warning.filename for warning in (*caught, *caught_of_selection)} == {__file__}


def test_a_former_value_means_the_same_and_warns() -> None:
    table = {"user": ["a", "a", "b"], "shop": ["x", "y", "x"], "paid": [1.0, 2.0, 3.0]}
    settings = {"data": pd.DataFrame(table), "user": "user", "group": "shop", "value": "paid", "epsilon": 1}
    with pytest.warns(DeprecationWarning, match="'distinct users' of statistic is now called 'users'"):
        former = ss.group_bounds(**settings, statistic="distinct users")
    assert former.parameters == ss.group_bounds(**settings, statistic="users").parameters
