"""Links and session files of before: each page opens with what they meant, or a sentence names what is not followed."""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any
from urllib.parse import parse_qsl

import pytest

from dpcore.common.checks import Problems
from dpcore.common.privacy import Disclosure
from dpcore.common.strict_json import JsonValue
from dpcore.common.text_fields import list_field_types, list_former_names
from dpcore.data import samples
from pages.shared.base import catalogue, keys
from pages.shared.base.question import Question
from pages.shared.figures import figures
from pages.shared.figures.figures import Pin
from pages.shared.session import links, own_tables
from tests.pages.driving import begin, check, shown_texts, use_dataset

PRIVATE = dataclasses.replace(samples.load("shop-events"), name="secret.csv", disclosure=Disclosure.PRIVATE)
USERS = "one user, with all their rows, is added or removed"
BEFORE: dict[str, tuple[str, dict[str, Any], str]] = {
    # Title: what a link said when the page was new, what of it is called otherwise or came later, what is not followed.
    "Home": ("", {"users": "the data in use"}, ""),
    "Mean": (
        "lower=0&upper=50&noise=entered&noise_variance=9&counts=public",
        {"variance_source": "entered", "value_variance": 9.0, "target": "population", "likeness": "none"},
        "",
    ),
    "Sum and count": (
        "summed=rows&noise=Gaussian&delta=1e-06&measure=absolute&own_share=0.99&runs=1000&seed=0&num_groups=5",
        {"mechanism": "Gaussian", "delta": 1e-6, "summed": "rows"},
        "Num_groups is not",
    ),
    "Group by": (
        f"statistic=rows&noise=Laplace&neighbours={USERS}&objective=root mean squared error over the groups",
        {"selection": "public list", "num_groups": None, "lower": None, "neighbours": USERS},
        "",
    ),
    "Quantile": (
        "quantiles=0.9&base=uniform&low=0&high=9&weighting=cap&bound_from=values&alpha=0.05&beta=0.05&gamma=0.05"
        "&population=no",
        {
            "neighbours": "one user's values change; everybody's number of rows is public",
            "bound_from": "values",
            "high": 9.0,
            "program": "best known mechanism",
        },
        "",
    ),
    "Bias curves over τ₀": (
        "bias=tightest&loss_variance=0.25&vc_dimension=10&failure_probability=0.05&privacy_form=quadratic"
        "&privacy_constant=1&finite_sample_constant=1&alpha=0.5&population_rows=1000000&draws=100",
        {"privacy_constant": 1.0},
        "",
    ),
    "Classifier": (
        f"delta=1e-05&neighbours={USERS}&loss=logistic&positive_above=0.5&bound=1&steps=60&step_size=1.5"
        "&average=last-half&radius=20&runs=50&held_out=0.25&seed=0&others=output-perturbation&source=sample",
        {
            "bounded_by": "smooth weights",
            "pace": "entered",
            "splits": 1,
            "sampled": 1.0,
            "runs": 50,
            "steps": 60,
        },
        "Others is not",
    ),
    "Linear regression": (
        "lower=0&upper=100&source=generated&noise=entered&noise_variance=4&num_rows=3000",
        {"variance_source": "entered", "residual_variance": 4.0},
        "",
    ),
    "Multi-task weights": (
        "delta=1e-05&source=skewed&loss=strongly-convex&fit=average&num_users=10000&num_tasks=100",
        {"fit": "average", "num_users": 10_000},
        "",
    ),
    "Recommender": (
        "delta=1e-05&source=generated&max_items=100&exponent=0.25&dimension=4&sweeps=2",
        {"algorithm": "statistics", "sweeps": 2},
        "",
    ),
    "Join or train alone": ("owners=64&records=100&unit=record", {"unit": "record", "train_runs": 1}, ""),
    "User-level DP-SGD": (
        "delta=1e-06&batch=128&steps=100&way=both",
        {"sampling": "both", "batch_size": 128},
        "",
    ),
    "Weights vs. caps": (
        "noise=worst&g=10&light_users=50&heavy_size=10&light_size=1",
        {"variance_source": "worst"},
        "",
    ),
    "Budget plan": (
        "lines=users; mean&objective=least sum&noise=Laplace&lower=0&upper=100&program=plain Python",
        {"target": "population", "variance_source": "values", "likeness": "none"},
        "",
    ),
    "Choose with DP": (
        "wanted=sum&epsilon_choice=0.1&relation=add-or-remove&noise=discrete Laplace&largest=10000&margin=3",
        {"user_share": 0.0, "release_delta": None, "margin": 3.0},
        "",
    ),
}
PAGES = [spec for spec in catalogue.QUESTION_BY_NAME.values() if spec.parameters_type is not None]


def plain(value: Any) -> Any:
    return getattr(value, "value", value)


def as_json(spec: Question, name: str, text: str) -> Any:
    """What a session file of then held: numbers as numbers."""
    now = (list_former_names(spec.parameters_type) | spec.replacements_by_former_name).get(name, name)
    hint = list_field_types(spec.parameters_type).get(now if isinstance(now, str) else name, str)
    if text in ("yes", "no"):
        return text == "yes"
    return float(text) if {float, int} & {hint, *typing.get_args(hint)} else text


@pytest.mark.parametrize("spec", PAGES, ids=lambda spec: spec.title)
def test_a_session_file_and_a_pin_of_before_keep_their_meaning(spec) -> None:
    """A page that was seen has its fields of then in a file; what came later means there what it means in a link."""
    link_text, meant, refused = BEFORE[spec.title]
    settings_saved = {name: as_json(spec, name, text) for name, text in parse_qsl(link_text)}
    aside = Problems()
    entries = links.read_settings(JsonValue({spec.name: settings_saved}, "settings", aside), aside)
    if settings_saved:  # Of a page that had no fields a file says nothing.
        assert {name: plain(entries[spec.get_key(name)]) for name in meant} == meant
    assert all("no such field" in problem.message for problem in aside.entries)
    assert bool(aside.entries) is bool(refused)
    # A pin is what was said when it was made: no field of today changes it.
    settings = (("Noise", "entered"), ("A field of then", "gone"))
    numbers = ("Best cap", "3 rows per user"), ("Standard error", "0.4")
    pin = Pin(spec.name, "ε = 1", "shop.csv", 1.0, *numbers, 0.1, "", settings, Disclosure.PRIVATE)
    file = json.loads(json.dumps([own_tables.PIN_CODEC.write(pin)]))
    (read,) = own_tables.pins_from_json(JsonValue(file, "pins", Problems()))
    assert figures.tabulate_pin(read) == figures.tabulate_pin(pin)


def test_of_a_page_that_nobody_saw_a_file_of_before_says_nothing() -> None:
    """What data propose for it is there by itself, and is proposed anew."""
    aside = Problems()
    (question,) = (spec for spec in PAGES if spec.name == "quantile")
    settings = {"quantile": {"low": 0.0, "high": 9.0, "bound_from": "counts", "own_bound": None}}
    entries = links.read_settings(JsonValue(settings, "settings", aside), aside)
    assert question.get_key("neighbours") not in entries
    for spec in catalogue.PAGES:
        for data in (samples.load("shop-events"), PRIVATE):
            if spec.propose_values is not None:
                names = dict.fromkeys((*spec.fields, *spec.origins_by_entry))
                assert {*spec.propose_values(data, names)} & {*spec.fields} <= {*spec.proposed_field_names}


@pytest.mark.long
def test_a_choice_of_a_link_that_private_data_change_is_named() -> None:
    """Public counts were said of other data: these begin with private counts, and a sentence says both."""
    for title, field, link, words in (
        (
            "Quantile",
            "neighbours",
            "low=0&high=9&weighting=smooth",
            "What epsilon protects the link says One user's values",
        ),
        ("Mean", "counts", "lower=0&upper=9&counts=public", "Contribution counts are the link says Public"),
    ):
        app = begin(title, link="1", data="upload", epsilon="1", **dict(parse_qsl(link)))
        key = f"{catalogue.find_page(title).name}.{field}"
        public = app.session_state[key]
        check(use_dataset(app, PRIVATE).run())
        assert app.session_state[key] is not public
        assert words in shown_texts(app).replace("*", "")
        check(app.button(key="dismiss_link_problems").click().run())
        assert words not in shown_texts(app).replace("*", "")


@pytest.mark.parametrize("spec", PAGES, ids=lambda spec: spec.title)
def test_a_link_of_before_opens_with_its_old_meaning_or_says_what_is_not_followed(spec) -> None:
    link_text, meant, refused = BEFORE[spec.title]
    fields = {"link": "1", "data": "shop-events", "epsilon": "2"} | dict(parse_qsl(link_text))
    origin, values, problems = links.read_link(fields, spec)
    assert origin.name == "shop-events"
    assert values[keys.EPSILON] == 2.0
    followed_values = {name: plain(values[spec.get_key(name)]) for name in meant}
    assert followed_values == meant
    sentences = " ".join(problem.sentence for problem in problems)
    assert refused in sentences
    assert bool(problems) is bool(refused), sentences


def test_what_a_session_file_says_by_todays_name_holds() -> None:
    aside = Problems()
    settings = {"training": {"others": "nothing", "bound": 2.0}}
    entries = links.read_settings(JsonValue(settings, "settings", aside), aside)
    assert (plain(entries["training.bounded_by"]), entries["training.bound"]) == ("smooth weights", 2.0)
    assert [problem.location for problem in aside.entries] == ["settings, training, others"]
    (question,) = (spec for spec in PAGES if spec.name == "mean")
    assert question.rename_former_fields({"noise": "old", "variance_source": "new"}, str) == {
        "variance_source": "new"
    }
