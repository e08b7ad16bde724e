"""Reports, their JSON and their scripts from hand-made content: labels, what is left out, what comes back."""

import ast
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.answer import Answer, Axis, Number, Plot
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data.column_roles import Roles, TableKind
from dpcore.data.design_matrix import Design, Feature, FeatureKind
from dpcore.dataset import Contribution, Dataset, Values
from dpcore.mean import Counts, MeanParameters, VarianceSource
from dpcore.multitask.parameters import MultitaskParameters, TaskSource
from dpcore.multitask.problem import Loss
from dpcore.multitask.weights import BudgetFit
from dpcore.report import content, script
from dpcore.report.content import JSON_SCHEMA_NAME, Line, Report, write_report_json
from dpcore.report.report_html import write_report_html
from dpcore.report.script import CodeBuilder

PUBLIC, PRIVATE, RELEASE = Disclosure.PUBLIC, Disclosure.PRIVATE, Disclosure.DP_RELEASE
CREATED = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[3]


def plot(key: str, title: str, alt: str, columns: dict[str, Any], disclosure: Disclosure) -> Plot:
    """A figure that draws nothing."""
    axis = Axis("x", limits=(1.0, 2.0))
    return Plot(key, title, alt, axis, axis, (), disclosure, columns)


def report(disclosure: Disclosure, number: float = 771.0) -> Report:
    """A report in which every part computed from data says ``number``."""
    number_text = f"{number:g}"
    line = Line("Users", number_text, disclosure, note=number_text, help=number_text, number=number)
    answer = Answer(
        headline=f"Cap at **{number_text}**",
        detail=number_text,
        numbers=(Number("Users", number_text, number_text, number_text, number),),
        facts={"Users": number_text},
        proofs=(("Cap", Certificate(number, number, "an argument"), "Exact."),),
        assumptions=("Counts are public",),
        disclosure=disclosure,
        parameters=MeanParameters(1.0),
        write_json=lambda: json.dumps({"answer": number}),
    )
    return Report(
        page_title="Mean",
        question="How much?",
        setting_lines=(Line("Privacy budget", "1", PUBLIC, number=1.0),),
        summary_lines=(line,),
        answers=(("", answer),),
        figures=(
            plot("own", "Own figure", number_text, {"x": [number, math.inf, math.nan]}, disclosure),
            plot("public", "Public figure", "flat", {"x": np.array([1, 2])}, PUBLIC),
        ),
        formulae_markdown="$x$",
        disclosure=disclosure,
        release_lines=(Line("x1", "0.5", RELEASE, number=0.5, label="DP release, ε = 1"),),
    )


def labels(value: object) -> list[tuple[dict[str, object], str]]:
    """Every JSON object with a label, and the label."""
    labelled = []
    if isinstance(value, dict):
        labelled += [(value, str(value["label"]))] if "label" in value else []
        value = list(value.values())
    if isinstance(value, list):
        labelled += [label for item in value for label in labels(item)]
    return labelled


def test_the_json_is_strict_and_labels_every_number():
    document = json.loads(
        write_report_json(report(PRIVATE), CREATED), parse_constant=lambda text: pytest.fail(text)
    )
    assert document["schema"] == JSON_SCHEMA_NAME
    assert document["holds_private_numbers"] is True
    (own_figure, public) = document["figures"]
    assert own_figure["columns"]["x"] == [771.0, None, None]
    assert public["columns"]["x"] == [1, 2]
    assert own_figure["label"] == document["answers"][0]["label"] == PRIVATE.label
    assert public["label"] == document["question"]["label"] == PUBLIC.label
    assert document["releases"][0] == {
        "name": "x1",
        "value": "0.5",
        "number": 0.5,
        "label": "DP release, ε = 1",
    }
    assert document["answers"][0]["headline"] == "Cap at 771"
    number_text = [
        label
        for labelled_object, label in labels(document)
        if "771" in json.dumps({**labelled_object, "numbers": 0, "facts": 0})
    ]
    assert number_text
    assert set(number_text) == {PRIVATE.label}


def test_what_is_published_is_the_same_whatever_the_private_numbers():
    one, other = (content.remove_private(report(PRIVATE, number)) for number in (771.0, 12.5))
    assert write_report_json(one, CREATED) == write_report_json(other, CREATED)
    assert write_report_html(one, CREATED) == write_report_html(other, CREATED)
    assert not one.holds_private
    assert "771" not in write_report_json(one, CREATED)
    assert [figure.key for figure in one.figures] == ["public"]
    assert [line.value_text for line in one.release_lines] == ["0.5"], "a DP release may be published"
    assert one.answer.assumptions == ("Counts are public",)
    assert one.answer.write_json is None
    number_text = " ".join(one.omitted_sections)
    for text in ("Summary of the data", "The choice", "Own figure"):
        assert text in number_text


@pytest.mark.parametrize("kind", [PUBLIC, RELEASE])
def test_of_other_data_everything_may_be_published(kind):
    full_report = report(kind)
    assert not full_report.holds_private
    published = content.remove_private(full_report)
    assert published.omitted_sections == ()
    for name in {f.name for f in fields(full_report)} - {"omitted_sections"}:
        assert getattr(published, name) == getattr(full_report, name), name


@pytest.mark.parametrize(
    "part",
    [
        {"summary_lines": (Line("a", "1", PRIVATE),)},
        {"setting_lines": (Line("a", "1", PRIVATE),)},
        {"release_lines": (Line("a", "1", PRIVATE),)},
        {"figures": (plot("a", "a", "a", {}, PRIVATE),)},
        {"disclosure": PRIVATE},
    ],
    ids=lambda part: next(iter(part)),
)
def test_one_private_part_makes_the_report_private(part):
    full_report = replace(report(PUBLIC), **part)
    assert full_report.holds_private
    assert not content.remove_private(full_report).holds_private


def test_the_summary_of_data_names_nobody_and_labels_all():
    data = samples.load("shop-events")
    lines = content.summarise_dataset(replace(data, disclosure=PRIVATE))
    assert {line.disclosure for line in lines} == {PRIVATE}
    numbers = {line.name: line.number for line in lines if line.number is not None}
    # Counted from the file itself: 3,016 rows below a header, 400 different users, none with more than 140.
    assert (numbers["Rows"], numbers["Users"], numbers["Rows of the heaviest user"]) == (3016, 400, 140)
    ids = {
        row.split(b",")[0].decode()
        for row in samples.SAMPLES["shop-events"].path.read_bytes().splitlines()[1:]
    }
    text = " ".join(line.value_text for line in lines)
    assert len(ids) == 400
    assert not [item for item in ids if item in text.split()]


def rebuilt(value: object) -> object:
    """The object that its Python builds."""
    code = CodeBuilder()
    expression = code.write(value)
    names: dict[str, object] = {}
    exec("\n".join([*code.list_import_lines(), f"made = {expression}"]), names)
    return names["made"]


@given(
    st.floats(0.01, 100.0),
    st.floats(-1e9, 1e9),
    st.floats(1e-3, 1e6),
    st.one_of(st.none(), st.integers(1, 10**9)),
    st.sampled_from(Counts),
)
def test_parameters_come_back_with_every_digit(epsilon, lower, width, own_bound, counts):
    parameters = MeanParameters(
        epsilon,
        lower,
        lower + width,
        variance_source=VarianceSource.FROM_VALUES,
        value_variance=None,
        own_bound=own_bound,
        counts=counts,
    )
    assert rebuilt(parameters) == parameters


@pytest.mark.parametrize(
    "value",
    [
        MultitaskParameters(
            0.3, source=TaskSource.HEAVY_TAILED, loss=Loss.CONVEX, fit=BudgetFit.FULL, count_covers=False,
            experiment_epsilons="1, 2",
        ),
        samples.TwoGroups(500, 1, 20, 30),
        Design("y\"'\n", "u", (Feature("x"), Feature("z", FeatureKind.CATEGORIES, "a\\")), False),
        Roles(TableKind.EVENTS, user="u", further_user=("v",), contribution=Contribution.TOTAL, value="w"),
        [1] * 100,
        (1.5,),
        (),
        None,
        True,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_every_kind_of_value_comes_back(value):
    assert rebuilt(value) == value


def test_arrays_come_back_and_strange_things_are_refused():
    assert rebuilt(np.array([3, 1])) == [3, 1]
    assert rebuilt(np.float64(0.1)) == 0.1
    with pytest.raises(TypeError, match="set"):
        CodeBuilder().write({1})


def histogram_data(kind: Disclosure, sizes: int = 3, name: str = 'x"\n"""') -> Dataset:
    all_sizes = np.arange(1, sizes + 1)
    return Dataset(name, "a file", kind, ContributionHistogram(sizes=all_sizes, users=all_sizes[::-1] * 7))


def data_of(text: str) -> Dataset:
    """What the data cell of a script builds."""
    names: dict[str, object] = {}
    imports = text.split("# %% What it uses")[1].split("# %% ")[0]
    exec(imports + text.split("# %% The data")[1].split("# %% ")[0], names)
    labelled = names["data"]
    assert isinstance(labelled, Dataset)
    return labelled


def mean_script(source: script.ScriptSource, public_only: bool = False) -> str:
    script_text = script.write_script(
        "Mean",
        MeanParameters(1.0),
        source,
        "dpcore.mean.answer",
        CREATED,
        public_only,
        ("mean_bound", {"epsilon": 1.0, "lower": 0.0, "upper": 1.0}),
    )
    ast.parse(script_text)
    assert script_text.count("# %% ") == 5
    return script_text


@pytest.mark.long
def test_a_script_runs_where_it_says_that_it_is_to_be_put(tmp_path):
    text = mean_script(script.ScriptSource(histogram_data(PUBLIC)))
    assert "put it into the folder of Sweet Spot's README" in text
    readmes_folder, downloads = tmp_path / "app", tmp_path / "downloads"
    downloads.mkdir()
    shutil.copytree(ROOT / "dpcore", readmes_folder / "dpcore", ignore=shutil.ignore_patterns("__pycache__"))
    outcome = {}
    for folder in (readmes_folder, downloads):
        (folder / "choice.py").write_text(text, encoding="utf-8")
        outcome[folder] = subprocess.run(
            [sys.executable, str(folder / "choice.py")],
            cwd=readmes_folder,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert outcome[readmes_folder].returncode == 0, outcome[readmes_folder].stderr
    assert "No module named 'dpcore'" in outcome[downloads].stderr, "being started there is not enough"


def test_small_public_data_stand_in_the_script():
    data = histogram_data(PUBLIC)
    assert data_of(mean_script(script.ScriptSource(data))) == data


def test_samples_and_generators_are_named():
    text = mean_script(script.ScriptSource(samples.load("requests-commits"), sample_key="requests-commits"))
    assert data_of(text) == samples.load("requests-commits")
    generator = samples.ZipfSizes(1.5, 1000, 50, 3)
    text = mean_script(script.ScriptSource(samples.generate_dataset(generator), generator=generator))
    assert data_of(text) == samples.generate_dataset(generator)
    assert "50" in text.split("# %% The data")[1].split("# %% ")[0]


@pytest.mark.parametrize(("kind", "sizes"), [(PRIVATE, 3), (PUBLIC, script.MAX_INLINE_SIZES + 1)])
def test_private_and_long_histograms_are_read_from_their_file(kind, sizes, tmp_path, monkeypatch):
    from dpcore.report import content as report_document

    data = histogram_data(kind, sizes)
    text = mean_script(script.ScriptSource(data))
    name = "histogram-PRIVATE-do-not-publish.csv" if kind is PRIVATE else "histogram.csv"
    columns = {"size": data.histogram.sizes, "users": data.histogram.users}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=f"The file {name} is missing. Download it on the page Data"):
        data_of(text)
    (tmp_path / name).write_text(report_document.write_columns(columns, kind), encoding="utf-8")
    assert data_of(text).histogram == data.histogram
    assert data_of(text).disclosure is kind
    assert ("do not publish" in text.split("\n# %%")[0]) is (kind is PRIVATE)


def test_the_name_of_private_data_is_left_out_where_asked():
    values = Values(np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]), "amount")
    data = Dataset(
        "secret.csv", "a file", PRIVATE, ContributionHistogram.from_counts([2, 1]), ("user",), values=values
    )
    with_name, unnamed = (
        mean_script(script.ScriptSource(data, needs_rows=True), one) for one in (False, True)
    )
    assert "secret.csv" in with_name
    assert "secret.csv" not in unnamed
    assert "your-file.csv" in unnamed
    for text in (with_name, unnamed):
        assert "user='user'" in text.replace('"', "'")
        assert "value='amount'" in text.replace('"', "'")
