"""One call per question: from whatever a person has in hand, the answer of the page."""

import contextlib
import gc
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pytest
from plotly.io import to_json

import dpcore as ss
from dpcore import questions
from dpcore.common.checks import InvalidInput
from dpcore.common.noise_error import NoiseKind
from dpcore.common.privacy import Disclosure, Neighbours
from dpcore.contributions import ContributionHistogram
from dpcore.counting import count, open_files
from dpcore.counting.count import to_dataset
from dpcore.data import samples
from dpcore.data_owners.parameters import OwnersSource
from dpcore.factorisation.parameters import RatingSource
from dpcore.mean import Target
from dpcore.mean.parameters import Counts, Likeness, MeanParameters, VarianceSource
from dpcore.multitask.parameters import TaskSource
from dpcore.per_group.parameters import Objective
from dpcore.private_choice.parameters import BoundPurpose, PrivateParameters, Relation
from dpcore.private_choice.private_histogram import HistogramNoise
from dpcore.quantile.parameters import BoundFrom, QuantileParameters
from dpcore.regression.parameters import DataSource as RegressionSource
from dpcore.regression.parameters import RegressionGenerator
from dpcore.reply import LIBRARY_BY_NAME, Reply
from dpcore.report import plotly_figures
from dpcore.total.answer import build_answer as total_answered
from dpcore.total.parameters import Summed, TotalParameters
from dpcore.training.mechanism import LossKind, Pace
from dpcore.training.parameters import DataSource as TrainingSource
from dpcore.training.parameters import TrainingParameters
from tests.dpcore.test_inputs_stay import INPUTS, settings_of

pytestmark = pytest.mark.usefixtures("few_subsamples")

EVENTS = samples.FOLDER / "shop_events.csv"
MEAN = {"user": "user_id", "value": "amount", "epsilon": 1, "lower": 0, "upper": 100}


CHOICE = PrivateParameters(
    1.0,
    BoundPurpose.SUM,
    0.5,
    relation=Relation.REPLACE,
    mechanism=HistogramNoise.GAUSSIAN,
    delta=1e-9,
    largest=500,
    margin=3.0,
    guess=40.0,
    guess_factor=2.0,
)
TRAINING = TrainingParameters(
    1.0,
    loss=LossKind.HINGE,
    pace=Pace.ENTERED,
    splits=1,
    neighbours=Neighbours.REPLACE_VALUES,
    source=TrainingSource.GENERATED,
    num_users=30,
    runs=2,
    steps=2,
)


def list_shown_texts(reply: Reply) -> tuple[str, ...]:
    # Rows of a table in memory are numbered otherwise than lines.
    lines = [line for line in str(reply).splitlines() if line not in reply.notes]
    return ("\n".join(lines), *(number.text_to_copy for number in reply.answer.numbers))


@pytest.mark.long
def test_a_path_a_frame_and_an_arrow_table_have_one_answer():
    frame = pd.read_csv(EVENTS)
    of_frame = ss.mean_bound(frame, **MEAN)
    assert of_frame.parameters == MeanParameters(
        1, 0, 100, counts=Counts.PRIVATE, target=Target.TABLE, likeness=Likeness.ENTERED
    )
    assert of_frame.disclosure is Disclosure.PRIVATE
    assert "do not publish" in str(of_frame)
    by_hand = frame.groupby("user_id").size().value_counts().to_dict()
    histogram = to_dataset(frame, "user_id").histogram
    assert dict(zip(histogram.sizes.tolist(), histogram.users.tolist(), strict=True)) == by_hand
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for same in (EVENTS, str(EVENTS), [EVENTS], arrow, frame.set_index("user_id"), frame.astype(object)):
        assert list_shown_texts(ss.mean_bound(same, **MEAN)) == list_shown_texts(of_frame)


def test_counts_need_no_table():
    counts = [3, 1, 1, 40, 2]
    histogram = ContributionHistogram.from_counts(np.array(counts))
    forms = (
        counts,
        tuple(counts),
        np.array(counts),
        pd.Series(counts),
        Counter(dict(zip("abcde", counts, strict=True))),
        histogram,
        to_dataset(histogram, disclosure="public"),
    )
    answers = [ss.count_bound(item, epsilon=1, disclosure="public") for item in forms]
    assert {list_shown_texts(answer) for answer in answers} == {list_shown_texts(answers[0])}
    assert answers[0].disclosure is Disclosure.PUBLIC
    item = total_answered(forms[-1], TotalParameters(1.0))
    assert list_shown_texts(answers[0]) == (str(item), *(number.text_to_copy for number in item.numbers))


def test_a_file_of_a_histogram_needs_no_columns(tmp_path):
    file = tmp_path / "histogram.csv"
    file.write_text("size,users\n1,2\n2,1\n3,1\n40,1\n", encoding="utf-8")
    assert list_shown_texts(ss.count_bound(file, epsilon=1)) == list_shown_texts(
        ss.count_bound([3, 1, 1, 40, 2], epsilon=1)
    )


def test_users_of_a_frame_are_those_of_its_file(tmp_path):
    users = ["a ", "a", None, "7", 7, "NA", "null", "b\u00a0", "B", "cafe\u0301", "caf\u00e9"]
    frame = pd.DataFrame({"who": pd.Series(users, dtype=object), "what": 1.0})
    file = tmp_path / "events.csv"
    frame.to_csv(file, index=False)
    source = open_files([file])
    roles = replace(source.roles, user="who", value=None, task=None)
    assert to_dataset(frame, "who").histogram == count(source, roles, Disclosure.PRIVATE).dataset.histogram


@pytest.mark.parametrize("dtype", ["Int64", "float64", "string", "category"])
def test_ids_are_the_same_whatever_their_type(dtype):
    users = pd.Series([1, 1, 2, 30]).astype(dtype)
    assert to_dataset(pd.DataFrame({"u": users}), "u").histogram == ContributionHistogram.from_counts(
        [2, 1, 1]
    )


@pytest.mark.long
def test_every_other_question_answers():
    frame = pd.read_csv(EVENTS)
    user = {"user": "user_id", "epsilon": 1}
    total = ss.sum_bound(frame, value="amount", **user)
    assert total.parameters == TotalParameters(1, Summed.VALUES)
    groups = ss.group_bounds(frame, group=["product"], objective="root_mean_square", **user)
    assert groups.parameters.objective is Objective.ROOT_MEAN_SQUARE
    quantile_settings = {"value": "amount", "lower": 0, "upper": 100, **user}
    private = ss.quantile_bound(frame, **quantile_settings).parameters
    assert (private.high, private.protects_users, private.bound_from.value) == (100, True, "counts")
    quantile_settings["program"] = "plain Python"
    public = ss.quantile_bound(frame, disclosure="public", **quantile_settings).parameters
    assert (public.protects_users, public.bound_from.value) == (False, "values")
    entered_parameters = ss.quantile_bound(
        frame, neighbours=public.neighbours.name.lower(), **quantile_settings
    ).parameters
    assert not entered_parameters.protects_users  # What is said holds.
    assert ss.learning_bound(frame, **user).bound >= 1
    assert len(ss.weights_gain(frame, **user).numbers)
    generated = TRAINING.generator.generate()
    trained = ss.training_bound(generated, epsilon=1, **SHORT)
    assert (trained.parameters.source, trained.forms) == (TrainingSource.UPLOAD, {})
    table, _ = RegressionGenerator(60, 1, 0).build_dataset()
    weighted = ss.regression_weights(table, epsilon=1, lower=-300, upper=300)
    assert weighted.parameters.source is RegressionSource.UPLOAD
    assert weighted.forms
    training_settings = {"repeats": 1, "sweeps": 1, "train_epsilons": "1", "lower": 0, "upper": 100}
    with pytest.raises(InvalidInput, match="Lower is missing"):
        ss.rating_weights(frame, value="amount", group="product", **user)
    rated = ss.rating_weights(frame, value="amount", group="product", **training_settings, **user)
    assert rated.parameters.source is RatingSource.DATA
    assert rated.solution.ratings.num_users == frame["user_id"].nunique()
    with pytest.raises(InvalidInput, match="This needs ratings"):
        ss.rating_weights(frame, **training_settings, **user)
    # A person's own data are meant where they are given, whatever the page begins with.
    tasks = ss.task_weights(frame, group="product", **user)
    assert (tasks.parameters.source, tasks.disclosure) == (TaskSource.DATA, Disclosure.PRIVATE)
    assert tasks.solution.tasks.graph.num_pairs == len(frame[["user_id", "product"]].drop_duplicates())
    owned = ss.owners(frame, **user)
    assert (owned.parameters.source, owned.disclosure) == (OwnersSource.DATA, Disclosure.PRIVATE)
    private = ss.mean_bound(frame, counts="private", **MEAN)
    assert private.parameters.counts is Counts.PRIVATE


TICKETS = samples.FOLDER / "support_tickets.csv"
SHORT = {"runs": 2, "splits": 1, "pace": "entered", "steps": 2}
"""Of a training; by the rule it takes 200 steps."""
LABELLED = {"user": "customer", "label": "escalated", "features": ["words", "channel"], "epsilon": 1}


@pytest.mark.long
def test_a_table_with_labels_is_one_call_and_its_codes_are_those_of_pandas():
    frame = pd.read_csv(TICKETS)
    feature_settings = {"levels": {"channel": ["email", "phone"]}, "ranges": {"words": (0, 400)}, **SHORT}
    trained = [ss.training_bound(item, **LABELLED, **feature_settings) for item in (frame, str(TICKETS))]
    assert {list_shown_texts(item) for item in trained} == {list_shown_texts(trained[0])}
    table = trained[0].subject.dataset.table
    assert table.feature_names == ("intercept", "words", "channel: phone")
    np.testing.assert_array_equal(table.features[:, 1], frame["words"])
    np.testing.assert_array_equal(table.features[:, 2], frame["channel"] == "phone")
    np.testing.assert_array_equal(table.labels, frame["escalated"])
    np.testing.assert_array_equal(table.user_codes, pd.factorize(frame["customer"])[0])
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    fit = {"user": "customer", "label": "hours_waited", "epsilon": 1, "lower": 0, "upper": 48}
    weighted = ss.regression_weights(arrow, **fit, features=["words", "years"], intercept=False)
    weights = weighted.bound
    assert weights["rows"].sum() == len(frame)
    # What one user moves at most, in the sum of all coefficients, sets the noise (Epasto et al. 2020, section 5):
    # scale b = (U - L) times the largest weight, over epsilon.
    scale = next(item.value for item in weighted.answer.numbers if item.label.startswith("Laplace noise"))
    assert 48 * weights["weight"].max() == pytest.approx(scale)
    for wrong, parts in (
        ({"user": "who", "label": None}, ("there is no column who", "names the label")),
        (
            {"features": ["wordz"], "levels": {"years": [1]}},
            ("no column wordz", "At least two", "no feature"),
        ),
    ):
        with pytest.raises(InvalidInput) as refused:
            ss.training_bound(frame, **(LABELLED | wrong))
        assert all(entry.lower() in str(refused.value).lower() for entry in parts)
    with pytest.raises(InvalidInput, match="range of words is missing"):
        ss.training_bound(frame, **LABELLED, disclosure="public")
    with pytest.raises(InvalidInput, match="which is no feature"):
        ss.training_bound(frame, **LABELLED, disclosure="public", ranges={"words": (0, 1), "years": (0, 1)})


def test_weights_and_pairs_are_named_and_what_is_no_number_is_none():
    frame = pd.read_csv(EVENTS)
    user = {"user": "user_id", "epsilon": 1}
    gain = ss.weights_gain(frame, **user)
    assert (
        gain.bound.max_contributions == ss.mean_bound(frame, **MEAN, counts="public", likeness="none").bound
    )
    assert gain.bound.variance_ratio == pytest.approx(gain.error**2)
    tasks = ss.task_weights(frame, group="product", **user)
    users = frame.drop_duplicates(["user_id", "product"])["product"].value_counts()
    assert sorted(tasks.bound["users"]) == sorted(users)
    # Algorithm 1 of Krichene et al. 2023: weights are proportional to n ** -mu.
    factor = tasks.bound["factor"] * tasks.bound["users"] ** tasks.parameters.exponent
    assert factor.max() == pytest.approx(factor.min())
    rated = ss.rating_weights(epsilon=1, num_users=100, num_items=20, ratings_per_user=5, repeats=1, sweeps=1)
    assert rated.bound[["uniform", "tail", "adaptive"]].sum().to_list() == pytest.approx([1, 1, 1])
    assert rated.error == rated.answer.numbers[0].value
    choice = ss.private_bound(frame, **user)
    assert (choice.bound, choice.error) == (None, None)
    for answer in (gain, tasks, rated, choice):
        assert 3 <= len(str(answer).splitlines()) <= 5
        assert "**" not in str(answer)


def test_the_package_is_light_until_it_is_asked():
    program = "import sys, dpcore; print({'numpy', 'pandas', 'streamlit', 'plotly'} & set(sys.modules)); dpcore.mean_bound([1, 2], epsilon=1, lower=0, upper=1); print({'streamlit', 'plotly'} & set(sys.modules))"  # fmt: skip  # noqa: E501
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "set()"]
    with pytest.raises(AttributeError, match="no attribute"):
        _ = ss.no_such_question


@pytest.mark.long_for("quantile-parameters3")
@pytest.mark.parametrize(
    ("of", "parameters"),
    [
        (
            "mean",
            MeanParameters(
                0.5,
                -3.0,
                7.0,
                variance_source=VarianceSource.ENTERED,
                value_variance=2.0,
                own_bound=4,
                counts=Counts.PRIVATE,
                target=Target.TABLE,
                likeness=Likeness.ENTERED,
                user_share=0.7,
            ),
        ),
        ("total", TotalParameters(1.0, own_bound=3.0)),
        ("total", TotalParameters(1.0, Summed.VALUES, mechanism=NoiseKind.GAUSSIAN, delta=1e-6)),
        ("quantile", QuantileParameters(1.0, "0.1, 0.9", low=-1.0, high=2.0, bound_from=BoundFrom.COUNTS)),
        ("training", TRAINING),
        ("private_choice", CHOICE),
    ],
)
def test_parameters_come_back_from_the_call_that_is_written_for_them(of, parameters):
    name, settings = questions.find_call(of, parameters)
    data = None if of == "training" else samples.load("shop-events")
    assert getattr(ss, name)(data, **settings).parameters == parameters


@pytest.mark.long
def test_plotly_takes_every_plot_as_it_is_drawn():
    """The renderer has nothing checked while it draws: here Plotly checks each property of each trace."""
    events, one = samples.load("shop-events"), {"epsilon": 1.0}
    answers = [
        ss.mean_bound(events, lower=0.0, upper=100.0, own_bound=7, counts="private", **one),
        ss.mean_bound(events, lower=0.0, upper=100.0, own_bound=7, **one),
        ss.sum_bound(events, **one),
        ss.group_bounds(events, own_groups=2, own_amount=5.0, **one),
        ss.quantile_bound(events, quantiles="0.5, 0.9", lower=0.0, upper=100.0, **one),
        ss.learning_bound(events, own_bound=3, **one),
        ss.weights_gain(events, **one),
        ss.private_bound(events, purpose="sum", **one),
        ss.training_bound(num_users=30, source="generated", runs=2, splits=1, **one),
        ss.regression_weights(num_rows=60, lower=-300.0, upper=300.0, **one),
    ]
    plots = [[make() for make in answer.plots.values()] for answer in answers]
    # White paper has other colours, and the same traces: the first plot of each.
    figures = [plotly_figures.draw_plot(plot) for of in plots for plot in of]
    for item in (*figures, *(plotly_figures.draw_on_white(of[0]) for of in plots)):
        plain_content = json.loads(to_json(item, validate=False))
        assert json.loads(to_json(go.Figure(plain_content), validate=False)) == plain_content


def written_forms(answer: Reply, library: str) -> dict[str, str]:
    """The forms that the library has, with their programs."""
    programs = {}
    for form in answer.forms:
        with contextlib.suppress(InvalidInput):
            programs[form] = answer.code(library, form)
    return programs


@pytest.mark.few(7)
@pytest.mark.long_for("examples_bound", "training_bound")
@pytest.mark.parametrize("call", questions.QUESTIONS)
def test_a_request_for_code_gives_the_nearest_form_or_names_what_has_it(call: str) -> None:
    """Of every question and library: the first form that there is, with a comment where it is not the first of all."""
    make, names = INPUTS["text columns"]
    answer = getattr(ss, call)(make(), **settings_of(call, names))
    lacking = 0
    for library in LIBRARY_BY_NAME:
        programs, first = written_forms(answer, library), next(iter(answer.forms), "")
        if not programs:
            assert library != "python" or not first
            # Only what is lacking is said, not what would differ in a program.
            with pytest.raises(
                InvalidInput, match=r"[Pp]lain Python|another library|no program for this"
            ) as refused:
                answer.code(library)
            assert len(str(refused.value)) < 300
        elif first in programs:
            assert answer.code(library) == programs[first]
        else:
            lacking += 1
            form, text = next(iter(programs.items()))
            comment, _, rest = answer.code(library).partition("\n")
            assert rest == text
            mark = "--" if library == "bigquery" else "#"
            assert comment == f"{mark} {library} has no program for {first!r}. This one is for {form!r}."
    assert lacking == (4 if call == "task_weights" else 0)


@pytest.mark.long
def test_a_plan_with_a_quantile_has_a_program_for_opendp() -> None:
    for program in ("python", "opendp"):
        answer = ss.plan_bounds(
            EVENTS, user="user_id", value="amount", epsilon=1, lower=0, upper=100, lines="users; median",
            program=program,
        )  # fmt: skip
        assert ".dp.quantile(" in answer.code("opendp")
        assert ("by user" in answer.code("opendp")) == (program == "python")


def test_the_collector_of_cycles_goes_on_after_a_call_as_before():
    for was_enabled in (True, False):
        (gc.enable if was_enabled else gc.disable)()
        try:
            ss.count_bound([3] * 100, epsilon=1)
            assert gc.isenabled() == was_enabled
        finally:
            gc.enable()
