"""The help of each call: every setting once, in order, by the names of the page's fields."""

import importlib
import inspect
import pydoc
import re
from dataclasses import fields as dataclass_fields

import pytest

import dpcore as ss
from dpcore import questions

pytestmark = pytest.mark.usefixtures("few_subsamples")


@pytest.mark.parametrize("name", questions.QUESTIONS)
def test_calls_and_fields_agree_by_name(name):
    question, parameters_type = questions.QUESTIONS[name], questions.find_parameters_type(name)
    fields = {field.name for field in dataclass_fields(parameters_type) if field.init}
    fixed, renamed = set(question.fixed_settings), question.field_names_by_setting
    assert fixed | set(renamed.values()) <= fields, "a field was renamed, and not in QUESTIONS"
    settings = fields - fixed - set(renamed.values()) | set(renamed)
    assert (
        set(inspect.signature(getattr(ss, name)).parameters)
        == {"data", *question.column_arguments} | settings
    )
    named = question.required_settings, question.nullable_settings, question.required_with_data
    for names in (*named, question.derived_settings):
        assert set(names) <= settings, "a setting was renamed, and not in QUESTIONS"


@pytest.mark.parametrize("name", questions.QUESTIONS)
def test_help_tells_every_setting_once(name):
    question, call = questions.QUESTIONS[name], getattr(ss, name)
    fields = set(
        inspect.signature(
            importlib.import_module(f"dpcore.{question.package_name}.answer").build_answer
        ).parameters
    )
    assert "parameters" in fields
    assert fields & {"data", "dataset"}
    settings = set(inspect.signature(call).parameters) - {"data"}
    explained = [
        line.strip().partition(":")[0]
        for line in inspect.getdoc(call).splitlines()
        if line.startswith("    ")
    ]
    for setting in settings:
        (text,) = [line for line in inspect.getdoc(call).splitlines() if line.startswith(f"    {setting}: ")]
        assert len(text) > len(setting) + 8, f"{setting} is not explained"
        assert explained.count(setting) == 1
    assert name in dir(ss)


@pytest.mark.parametrize("name", questions.QUESTIONS)
def test_help_has_columns_then_the_question_then_privacy_and_names_the_class_of_the_reply(name):
    signature, text = inspect.signature(getattr(ss, name)), inspect.getdoc(getattr(ss, name))
    arguments = list(signature.parameters)
    starts = [text.index(f"    {argument}: ") for argument in arguments]
    assert starts == sorted(starts)
    question = questions.QUESTIONS[name]
    names = [
        argument for argument in arguments if argument in question.column_arguments or argument == "epsilon"
    ]
    expected = [
        "user",
        "value",
        "group",
        "label",
        "features",
        "epsilon",
        "disclosure",
        "missing",
        "separator",
    ]
    assert [argument for argument in names if argument in expected] == [e for e in expected if e in names]
    assert (arguments[0], arguments[1]) == ("data", "user")
    own = (
        set(arguments)
        - set(question.column_arguments)
        - {"data", "epsilon", "delta", "mechanism", "neighbours"}
    )
    places = [arguments.index(argument) for argument in own]
    assert arguments.index("user") < min(places)
    assert max(places) < arguments.index("epsilon")
    # The class that it names is that of the reply, and describes its attributes.
    path = re.search(r"`help\(([\w.]+)\)`", text)[1]
    assert pydoc.locate(path) is type(ss.count_bound([1, 2], epsilon=1))
    assert {"bound", "error", "numbers", "headline", "facts"} <= set(
        re.findall(r"\w+", pydoc.render_doc(path))
    )
