"""Links: what is written is read back; hostile ones get sentences; none holds a number from private data."""

from __future__ import annotations

import contextlib
import itertools
import math
import typing
from dataclasses import MISSING, fields, replace
from types import NoneType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore import mean
from dpcore.common.checks import EPSILON_RANGE, InvalidInput
from dpcore.common.parameters import Field, Parameters, declared_fields, fields_by_name
from dpcore.common.privacy import Disclosure
from dpcore.common.text_fields import list_field_types, to_fields
from dpcore.common.wording import format_number
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.mean.table_values import clamp
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.plan.parameters import PlanParameters
from pages.shared.base import catalogue, keys
from pages.shared.fields import setting
from pages.shared.session import links, session
from tests.pages.driving import (
    begin,
    check,
    count_content,
    data,
    enter_range,
    errors,
    go,
    list_metrics,
    look_at,
    open_app,
    open_on_file,
    read_address,
    read_shown_link,
    shown_texts,
    upload,
    use,
    use_dataset,
)

ADDRESS = "http://127.0.0.1:8501/anything?link=7"
WITH_PARAMETERS = [spec for spec in catalogue.PAGES if spec.parameters_type is not None]


TEXTS = (
    "1, 2.5",
    "0.25",
    "2; 64",
    "users; rows within 2%",
    "median within 3; quantile 0.3 within 1% weight 2",
)


def values_of(declared: Field, hint: Any) -> st.SearchStrategy[Any]:
    """Return the values that a field may have by its declaration; its class may refuse them beside others.

    No link holds that a field was emptied which has a number at first.
    """
    types = typing.get_args(hint) or (hint,)
    low, high = declared.limits or (-(10**9), 10**9)
    if allowed := declared.stops or tuple(declared.options or ()):
        values: st.SearchStrategy[Any] = st.sampled_from(allowed)
    elif declared.value_type is bool:
        values = st.booleans()
    elif declared.value_type is str:
        values = st.sampled_from(TEXTS)
    elif declared.is_integer:
        values = st.integers(math.ceil(low), math.floor(high)).map(int if int in types else float)
    else:
        values = st.floats(low, high)
    return st.none() | values if NoneType in types and declared.initial is None else values


@st.composite
def parameters_of(draw, spec) -> Any:
    """Change one field after the other, with those that go with it or stand beside it, as far as the class takes it."""
    ends = {"epsilon": 1.0, "lower": 0.0, "upper": 1.0}
    parameters = spec.parameters_type(
        **{f.name: ends[f.name] for f in fields(spec.parameters_type) if f.default is MISSING}
    )
    with contextlib.suppress(InvalidInput):
        parameters = replace(parameters, epsilon=draw(st.floats(*EPSILON_RANGE)))
    declared, hints = declared_fields(spec.parameters_type), list_field_types(spec.parameters_type)
    drawn = {name: draw(values_of(field, hints[name])) for name, field in declared.items()}
    for name, following in itertools.pairwise([*drawn, ""]):
        changes = {name: drawn[name]}
        for other, field in declared.items():
            if field.only_with is not None and field.only_with[0] == name:
                goes = drawn[name] in field.only_with[1]
                changes[other] = drawn[other] if goes else fields_by_name(spec.parameters_type)[other].default
        beside = {following: drawn[following]} if following else {}
        for item in (changes | beside, changes):
            with contextlib.suppress(InvalidInput):
                parameters = replace(parameters, **item)
                break
    return parameters


ORIGINS = st.one_of(
    st.sampled_from([*samples.SAMPLES, session.UPLOADED]).map(session.Origin),
    st.builds(
        samples.ZipfSizes,
        alpha=st.floats(0.01, 5.0),
        num_users=st.integers(1, 10**12),
        max_contributions=st.integers(1, 10**6),
        seed=st.integers(0, 2**32 - 1),
    ).map(lambda generator: session.Origin(generator.key, to_fields(generator))),
)


def query(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query, keep_blank_values=True, strict_parsing=True))


@pytest.mark.few(4)
@pytest.mark.parametrize("spec", WITH_PARAMETERS, ids=lambda spec: spec.title)
@settings(max_examples=40)
@given(choice=st.data())
def test_a_link_is_read_back_as_it_was_written(spec, choice):
    parameters, origin = choice.draw(parameters_of(spec)), choice.draw(ORIGINS)
    link = links.write_link(ADDRESS, spec.url_path, origin, links.list_parameter_fields(parameters))
    assert urlsplit(link)[:3] == ("http", "127.0.0.1:8501", f"/{spec.url_path}")
    read_origin, widgets, problems = links.read_link(query(link), spec)
    assert (read_origin, problems) == (origin, [])
    read_parameters = spec.parameters_type(**{name: widgets[key] for name, key in spec.widget_keys.items()})
    assert read_parameters == parameters.without(*parameters.unused_names)
    # A bad epsilon loses no other field.
    _, others, problems = links.read_link({**query(link), "epsilon": "x"}, spec)
    assert any("epsilon cannot be read" in problem.sentence.lower() for problem in problems)
    assert others == {key: value for key, value in widgets.items() if key != keys.EPSILON}


@pytest.mark.parametrize("spec", WITH_PARAMETERS, ids=lambda spec: spec.title)
def test_every_field_of_the_parameters_has_a_widget_of_its_own(spec):
    assert set(spec.widget_keys) == {f.name for f in fields(spec.parameters_type) if f.init}
    assert len(set(spec.widget_keys.values())) == len(spec.widget_keys)


@pytest.mark.parametrize(
    "spec", [s for s in catalogue.PAGES if s.parameters_type is None], ids=lambda spec: spec.title
)
@given(epsilon=st.floats(1e-6, 1e3), origin=ORIGINS)
def test_a_link_to_a_page_without_parameters_carries_data_and_epsilon(spec, epsilon, origin):
    link_content = links.read_link(
        query(
            links.write_link(ADDRESS, spec.url_path, origin, links.list_parameter_fields(Parameters(epsilon)))
        ),
        spec,
    )
    assert link_content == (origin, {keys.EPSILON: epsilon}, [])


HOSTILE = {
    "unknown field": ({"colour": "red"}, "colour is not a parameter of this page"),
    "script as a field": ({"<script>alert(1)</script>": "1"}, "is not a parameter of this page"),
    "script as a value": ({"epsilon": "<script>alert(1)</script>"}, "Epsilon cannot be read"),
    "huge bound": ({"upper": "1e300"}, "must lie between 1e−9 and 1,000,000,000"),
    "beyond float": ({"lower": "1e999"}, "Lowest value L must be a finite number"),
    "not a number": ({"epsilon": "nan"}, "Epsilon must lie between"),
    "blank": ({"epsilon": ""}, "Epsilon cannot be read"),
    "long text": ({"lower": "9" * 90_000}, "Lower cannot be read"),
    "huge text": ({"lower": "9" * 100_000}, "fields and 100,0"),
    "huge whole number": ({"own_bound": "9" * 190}, "Your own bound must be a whole number"),
    "fraction": ({"own_bound": "1.5"}, "Own_bound cannot be read"),
    "no such source": ({"variance_source": "loud"}, "variance_source cannot be read"),
    "variance too large": ({"variance_source": "entered", "value_variance": "3"}, "cannot vary by more than"),
    "variance without its source": (
        {"value_variance": "0.1"},
        'can be set only with "Entered" as what is known of the values',
    ),
    "wrong version": ({"link": "0"}, "another version of the app"),
    # Streamlit ignores an address with more than 1,000 fields altogether.
    "very many fields": ({f"f{i}": "1" for i in range(900)}, "this link has 903 fields"),
    "script as data": ({"data": "<script>alert(1)</script>"}, "No sample or generator is called '<script>"),
    "upload": ({"data": "upload"}, "This link was made on uploaded data, which a link does not carry"),
    "bad generator": (
        {
            "data": "zipf",
            "data.alpha": "nan",
            "data.num_users": "1e300",
            "data.max_contributions": "5",
            "data.seed": "1",
        },
        "Num_users cannot be read",
    ),
    "unknown generator field": ({"data": "two-groups", "data.x": "1"}, "x is not a parameter"),
    "field of a sample": ({"data.<b>x</b>": "1"}, "<b>x</b> is not a parameter of a sample"),
}


@pytest.mark.few(9)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_links_give_sentences_and_the_app_goes_on(name):
    given_fields, sentence = HOSTILE[name]
    app = begin("Mean", **{"link": "1", "data": "requests-commits", "epsilon": "3", **given_fields})
    assert "The link could not be followed in full" in errors(app)
    assert sentence.lower() in errors(app).lower()
    assert len(errors(app)) < 3_000
    assert len(read_shown_link(app)) < 1_000
    assert list_metrics(app)  # the answer stands, on defaults or on what could be read
    if name != "unknown field":
        return
    assert errors(check(app.run()))
    # Dismissed once, it stays away.
    check(app.button(key="dismiss_link_problems").click().run())
    assert not errors(app)
    assert not errors(go(app, "Home"))


MIXED = {
    "out of range": ({"upper": "1e300"}, {}, "Not followed: upper"),
    "cannot be read": ({"upper": "high"}, {}, "Upper cannot be read"),
    "two bad ones": ({"upper": "high", "own_bound": "-3"}, {}, "Not followed: upper, own_bound"),
    "unknown": ({"colour": "red"}, {"upper": 5.0}, "colour is not a parameter"),
    # A source of the variance and the variance hold only together.
    "pair": (
        {"variance_source": "entered", "value_variance": "7", "upper": "6"},
        {"upper": 6.0, "value_variance": 7.0},
        "",
    ),
    "half a pair": (
        {"variance_source": "entered"},
        {"upper": 5.0, "variance_source": mean.VarianceSource.WORST_CASE},
        "followed: variance_source",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_good_in_a_link_is_followed_and_what_is_bad_is_named(name):
    changed, expected, sentence = MIXED[name]
    link = {
        "link": "1",
        "data": "requests-commits",
        "epsilon": "3",
        "lower": "-1",
        "upper": "5",
        "own_bound": "9",
    }
    app = begin("Mean", **(link | changed))
    assert sentence.lower() in errors(app).lower()
    assert bool(errors(app)) is bool(sentence)
    assert data(app) == samples.load("requests-commits")
    taken = app.session_state[keys.PAGE_PARAMETERS]
    assert (taken.epsilon, taken.lower) == (3.0, -1.0)
    assert taken.own_bound == (None if "own_bound" in changed else 9)
    assert {field: getattr(taken, field) for field in expected} == expected
    assert list_metrics(app)


@pytest.mark.parametrize("title", ["Home", "Mean", "Linear regression"])
def test_a_reload_says_that_an_upload_is_gone(title):
    # What a reload is to the app: a new session, with the mark that the old one left in its address.
    app = open_app(title, **{links.UPLOAD_MARK: "1"})
    assert "This page was loaded anew" in errors(app)
    assert "they are gone" in errors(app)
    assert f"Shown instead: {data(app).name}" in errors(app)
    check(app.button(key="dismiss_link_problems").click().run())
    assert not errors(app)
    assert "Here until" not in shown_texts(app)


@pytest.mark.long
@given(
    fields=st.dictionaries(
        st.sampled_from(
            ["link", "data", "epsilon", "lower", "upper", "variance_source", "own_bound", "data.alpha"]
        )
        | st.text(max_size=8),
        st.sampled_from(["1", "0.5", "nan", "inf", "-inf", "1e300", "", "zipf", "worst", "entered", "１"])
        | st.text(max_size=12),
    ),
    spec=st.sampled_from(catalogue.PAGES),
)
def test_reading_any_fields_raises_nothing_but_invalid_input(fields, spec):
    with contextlib.suppress(InvalidInput):
        origin, widgets, _ = links.read_link({**fields, "link": "1"}, spec)
        assert all(not (isinstance(v, float) and not math.isfinite(v)) for v in widgets.values())
        if origin.name not in samples.GENERATORS:
            origin.load()


CRAFTED = (
    "", " ", "nan", "inf", "-inf", "1e999", "-1e999", "1e-999", "-0", "0x10", "1_000", "1,5", "１", "٣",
    "1e3\n", "0" * 5000,
    "9" * 300, "true", "None", "null", "[]", "{}", "<script>alert(1)</script>", "$x^2$", "[a](javascript:b)", "`rm`",
    "../../etc/passwd", "%00", "\x00", "\ud800", "a\u202eb", "'; DROP TABLE users; --", "{{7*7}}", "__class__",
)  # fmt: skip


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_crafted_values_of_every_field_are_refused_in_sentences_or_followed(step):
    """One in ``step`` of the values; each stands in fields of every kind."""
    tried = 0
    for spec in WITH_PARAMETERS:
        firsts = {name: spec.get_initial_value(name) for name in spec.widget_keys}
        for number, name in enumerate(spec.widget_keys):
            for text in CRAFTED[number % step :: step]:
                tried += 1
                fields = {"link": "1", "epsilon": "1", name: text}
                _, values, problems = links.read_link(fields, spec)
                where = (spec.title, name, text[:20])
                # What stands in the session afterwards makes an object that is valid.
                made = {n: values.get(k, firsts[n]) for n, k in spec.widget_keys.items()}
                if not problems:
                    assert links.text_fields.to_fields(spec.parameters_type(**made)), where
                elif name != "epsilon":
                    # Its text is quoted in short only, and nothing else is lost.
                    assert values["epsilon"] == 1.0, where
                assert all(0 < len(problem.sentence) < 600 for problem in problems), where
    assert tried > 70 * len(WITH_PARAMETERS) / step


def test_fields_that_are_not_ours_are_left_alone():
    app = open_app("Mean", utm_source="letter", epsilon="nonsense")
    assert not errors(app)
    assert app.number_input(key=keys.EPSILON).value == setting.DEFAULT_EPSILON


@pytest.mark.long
def test_the_link_of_every_page_opens_it_with_the_same_data_and_epsilon():
    app = open_app("Data")
    check(app.segmented_control(key="your_data.data_source").set_value("Generate").run())
    app.number_input(key="your_data.generator_field_zipf_seed").set_value(77)
    check(app.number_input(key="your_data.generator_field_zipf_alpha").set_value(1.3).run())
    check(app.button(key="generate").click().run())
    check(go(app, "Mean").number_input(key=keys.EPSILON).set_value(0.77).run())
    assert data(app).histogram == samples.ZipfSizes(1.3, 10_000, 1_000, 77).build_histogram()
    for title in [spec.title for spec in catalogue.PAGES]:
        look_at(app, title)
        other = begin(title, **query(read_shown_link(app)))
        assert other.title[0].value == app.title[0].value
        assert not errors(other)
        assert data(other) == data(app)
        assert (
            title in ("Data", "Paper comparison", "Release sheet")
            or other.number_input(key=keys.EPSILON).value == 0.77
        )


def test_an_address_follows_the_page_and_brings_it_back():
    app = open_app("Mean", link="1", data="shop-events", epsilon="3", lower="0", upper="500", own_bound="7")
    check(app.segmented_control(key="mean.counts").set_value("Private too").run())
    address = read_address(app)
    assert address == query(read_shown_link(app))
    other = open_app("Mean", **address)
    assert not errors(other)
    assert read_address(other) == address


def test_the_address_of_private_data_holds_only_what_is_public():
    rows = "".join(f"u{k},{k}\n" for k in range(9))
    content = ("user_id,amount\n" + rows).encode()
    app = open_on_file(content, "Mean")
    enter_range(app, -3.5, 93.25)
    app.number_input(key="mean.own_bound").set_value(6.0)
    check(app.segmented_control(key="mean.counts").set_value("Private too").run())
    assert read_address(app) == {
        "link": "1",
        "data": "upload",
        "epsilon": "1",
        # The range is asked of what the quantity is, and every release states it.
        "lower": "-3.5",
        "upper": "93.25",
        "clamp": "rows",
        "mechanism": "Laplace",
        "program": "OpenDP",
        "variance_source": "worst",
        "counts": "private",
        "target": "table",
        "likeness": "entered",
        links.UPLOAD_MARK: "1",
    }
    # Loaded anew, the page has what is public, says what is gone, and complains of nothing that was never there.
    other = open_app("Mean", **read_address(app))
    assert [p.message for p in other.session_state[keys.LINK_PROBLEMS]] == [links.DATA_GONE]
    assert other.session_state["mean.counts"].value == "private"
    # So a person who brings the file again is not asked for it again.
    assert (other.session_state["mean.lower"], other.session_state["mean.upper"]) == (-3.5, 93.25)
    again = check(use_dataset(other, count_content(content, "file.csv")).run())
    assert (again.session_state["mean.lower"], again.session_state["mean.upper"]) == (-3.5, 93.25)
    assert "What range can a value have?" not in shown_texts(again)


def test_what_was_pinned_is_said_to_be_gone_after_a_reload():
    app = open_app("Mean", link="1", data="shop-events", epsilon="3")
    without = read_address(app)
    check(app.button(key="mean_pin").click().run())
    with_pin = read_address(app)
    assert with_pin == without | {links.PINS_MARK: "1"}
    assert query(read_shown_link(app)) == without  # whoever gets a link has lost nothing
    other = open_app("Mean", **with_pin)
    assert [p.message for p in other.session_state[keys.LINK_PROBLEMS]] == [links.PINS_GONE]
    assert "This page was loaded anew" in "".join(warning.value for warning in other.warning)
    assert read_address(other) == without


def test_a_link_is_followed_once():
    app = open_app("Mean", link="1", data="requests-commits", epsilon="3")
    check(app.number_input(key=keys.EPSILON).set_value(0.5).run())
    go(app, "Home")
    go(app, "Mean")
    assert app.number_input(key=keys.EPSILON).value == 0.5


@pytest.mark.long
def test_a_link_holds_no_number_computed_from_private_data():
    # 137 users with 2 rows each and one with 41; values 17.31 and 91.77 make every figure distinctive.
    rows = [f"u{k},{value}" for k in range(137) for value in (17.31, 91.77)]
    rows += [f"heavy,{17.31 + 0.5 * k}" for k in range(41)]
    app = use(upload(open_app("Data"), ("user_id,amount\n" + "\n".join(rows)).encode(), "secret.csv"))
    dataset = data(app)
    assert dataset.disclosure is Disclosure.PRIVATE
    assert dataset.histogram == ContributionHistogram(sizes=[2, 41], users=[137, 1])
    go(app, "Mean").number_input(key="mean.lower").set_value(0.0)
    check(app.number_input(key="mean.upper").set_value(100.0).run())
    check(app.segmented_control(key="mean.variance_source").set_value("From values").run())
    variance = clamp(dataset.values, 0.0, 100.0).variance
    assert f"σ² = {format_number(variance)}" in shown_texts(app)
    problem = mean.MeanProblem(dataset.histogram, setting.DEFAULT_EPSILON, 100.0, variance)
    computed = [
        138, 315, 41, variance, clamp(dataset.values, 0.0, 100.0).mean, dataset.values.values.max(),
        mean.find_best_cap(problem).standard_error, mean.find_best_smooth(problem).threshold,
    ]  # fmt: skip
    for title in [spec.title for spec in catalogue.PAGES]:
        assert_link_tells_nothing(read_shown_link(look_at(app, title)), title, computed)


def assert_link_tells_nothing(link, title, computed):
    """Nothing of these numbers, and of the data only that there was an upload."""
    # What also stands in the link of a session that never saw these data tells nothing of them.
    link_fields, fresh = query(link), query(read_shown_link(open_app(title)))
    telling = {text for name, text in link_fields.items() if text != fresh.get(name)}
    for number in computed:
        for text in (f"{number:g}", str(number), f"{number:.3g}"):
            assert text not in telling, (text, link)
    assert "secret" not in link
    # Nothing but the page's parameters, which are what the person entered, and the word for an upload.
    expected = {"link": "1", "data": "upload", "epsilon": f"{setting.DEFAULT_EPSILON:g}"}
    if catalogue.find_page(title).parameters_type is None:
        assert link_fields == expected
    elif title == "Mean":
        assert link_fields == {
            **expected,
            "lower": "0",
            "upper": "100",
            "clamp": "rows",
            "mechanism": "Laplace",
            "program": "OpenDP",
            "variance_source": "values",
            "counts": "private",
            "target": "table",
            "likeness": "entered",
            "user_share": "0.2",  # assumed before there were data
        }
    elif title == "Quantile":  # The range that a value can have was entered on Mean.
        ends = {"low": 0.0, "high": 100.0}
        assert link_fields == {
            **links.list_parameter_fields(
                catalogue.find_page(title).parameters_type(setting.DEFAULT_EPSILON, **ends)
            ),
            **expected,
            "bound_from": "counts",  # One read off the values would leak.
        }
    elif catalogue.find_page(title).has_own_data:
        assert link_fields == {**fresh, **expected}
    elif title == "Budget plan":  # No line yet, and what was entered on Mean.
        parameters = PlanParameters(
            setting.DEFAULT_EPSILON,
            lines="",
            target=mean.Target.TABLE,
            likeness=mean.Likeness.ENTERED,
        )
        assert link_fields == {**links.list_parameter_fields(parameters), **expected}
    else:
        assert link_fields == {
            **links.list_parameter_fields(
                catalogue.find_page(title).parameters_type(setting.DEFAULT_EPSILON)
            ),
            **expected,
        }


def test_a_link_leaves_out_what_does_not_go_with_its_choices():
    fields_written = links.list_parameter_fields(MultitaskParameters(1.0, source=TaskSource.SKEWED, skew=2.0))
    assert fields_written["skew"] == "2"
    assert not {"zipf_exponent", "user_spread", "log_constant"} & {*fields_written}
    fields_written = links.list_parameter_fields(MultitaskParameters(1.0, source=TaskSource.DATA))
    assert not {"num_users", "num_tasks", "skew", "graph_seed"} & {*fields_written}
