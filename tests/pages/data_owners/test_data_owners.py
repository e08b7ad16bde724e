"""Join or train alone: answer, words, plots and code as pure functions; one opened session for the wiring."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcore as ss
from dpcore.answer import Answer, Bars, Hatching
from dpcore.code import ReleaseSpec, write
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.programs import Program
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.data_owners import bounds, regimes
from dpcore.data_owners.answer import OwnersSolution, answer, build_answer, plots, solve
from dpcore.data_owners.answer.plots import TrainingCard
from dpcore.data_owners.answer.solution import tabulate_bounds
from dpcore.data_owners.bounds import ProtectedPart, Unit, bound_alone, bound_together
from dpcore.data_owners.network_parts import PersonalPart
from dpcore.data_owners.parameters import TRAINING_FIELDS, OwnersParameters, OwnersSource
from dpcore.data_owners.regimes import MapAxis, Regime
from dpcore.data_owners.study import Form, RecordSource, Study, StudyResult
from dpcore.data_owners.training import read_table
from dpcore.dataset import Dataset, LabelledRows
from dpcore.report import charts, plotly_figures
from dpcore.report.content import remove_private
from dpcore.report.script import ScriptSource
from pages.data_owners import contents, question, upload
from pages.shared.base import keys
from pages.shared.report import report_content
from tests.pages.driving import (
    check,
    errors,
    finish,
    list_figure_keys,
    open_app,
    open_tab,
    raw_texts,
    read_address,
    shown_texts,
)
from tests.pages.reporting import REPORT_TIME

LINES = samples.load("online-retail-lines")
SECRET = Dataset("secret.csv", "", Disclosure.PRIVATE, ContributionHistogram([1, 20, 400], [50, 30, 5]))
LINEAR: dict[str, Any] = {"owners": 64, "records": 100, "shared": 7_850, "personal": 0}
"""A linear model of pictures of 28 × 28 pixels in ten classes, all of it shared."""
PERSONAL: dict[str, Any] = {"personal": 100, "personal_diameter": 0.1, "shared_diameter": 1.0}


def solve_owners(data: Dataset = LINES, **fields: Any) -> OwnersSolution:
    parameters = OwnersParameters(**{"epsilon": 1.0, **LINEAR, **fields})
    of_data = parameters.source is OwnersSource.DATA
    return solve(data if of_data else question.find_disclosure(parameters, data), parameters)


def answer_owners(data: Dataset = LINES, **fields: Any) -> Answer:
    solution = solve_owners(data, **fields)
    return build_answer(data, solution.parameters, solution)


PAYING = "When joining pays"


def test_the_card_says_the_issue_s_sentence_and_36_owners_do_not_suffice() -> None:
    told = answer_owners()
    sentence = "By these bounds (constants 1), 37 owners of 100 records each must join before sharing pays."
    assert sentence in told.detail
    assert (told.numbers[0].text, told.numbers[0].text_to_copy) == ("37", "37")
    assert told.headline == "Join: 64 owners do better together."
    assert told.disclosure is Disclosure.PUBLIC
    for owners, regime in ((36, Regime.ALONE), (37, Regime.FULL_TOO)):
        solution = solve_owners(owners=owners)
        assert solution.regime is regime
        assert (solution.bound_joint < solution.bound_alone) == (owners == 37)
    assert (
        answer.write_headline(solve_owners(owners=36)) == "Train alone: joining does not pay for 36 owners."
    )


def test_every_regime_has_its_headline() -> None:
    solution = solve_owners(**PERSONAL, owners=1000)
    assert (solution.regime, answer.write_headline(solution)) == (
        Regime.FULL_TOO,
        "Join: 1,000 owners do better together.",
    )
    middle_solution = solve_owners(**PERSONAL, owners=1000, epsilon=0.3)
    assert middle_solution.joint_paying_epsilon < 0.3 < middle_solution.full_paying_epsilon
    assert middle_solution.regime is Regime.JOINT_ONLY
    assert "full privacy would lose" in answer.write_headline(middle_solution)
    never = solve_owners(shared_diameter=0.0, personal_diameter=1.0, personal=5)
    assert answer.write_headline(never) == "Train alone: joining never pays, however many join."
    single = answer.write_headline(solve_owners(owners=1))
    assert single == "One owner has nobody to join."
    assert build_answer(LINES, never.parameters, never).numbers[0].text == "none suffice"
    assert build_answer(LINES, never.parameters, never).facts.get(PAYING) is None


def test_the_page_opens_where_joint_and_full_privacy_differ() -> None:
    told = ss.owners(epsilon=1)
    solution = told.solution
    assert solution.regime is Regime.JOINT_ONLY
    assert solution.bound_joint < solution.bound_alone < solution.bound_full
    assert solution.parameters == OwnersParameters(1.0)
    assert "full privacy would lose" in told.headline
    assert answer.CAVEAT in told.answer.caveat
    assert answer.CAVEAT in dict(told.answer.all_facts).values()  # So reports and scripts have it.
    assert answer.CAVEAT.replace("**", "") in str(told.answer)
    assert ss.owners(epsilon=1, personal_part="none").answer.caveat == ""
    assert ss.owners(epsilon=1, personal=0).answer.caveat == ""
    # What is personal decides: a larger part has less noise and gains less by sharing.
    counts = [ss.owners(epsilon=1, personal_part=part.value).bound for part in PersonalPart]
    assert counts == sorted(counts)
    assert "for 19" in ss.owners(epsilon=1, personal_part="conv1+conv2").facts["What the paper measured"]
    assert "What the paper measured" not in ss.owners(epsilon=1, shared=10).facts


def test_what_the_theorem_does_not_cover_is_said() -> None:
    assert "up to ε = 10" in answer_owners(epsilon=11.0).detail
    assert "below 1/n" in answer_owners(delta=1e-3, owners=1000).detail
    assert "says nothing here" in answer_owners(epsilon=0.01, owners=2).detail
    assert "**" not in answer_owners().detail


def test_the_interval_that_is_good_enough_holds_the_crossings() -> None:
    found = solve_owners()
    assert build_answer(LINES, found.parameters, found).facts[PAYING] == "from 29 records each."
    for records, pays in ((29, True), (28, False)):
        app = found.collaboration.replace(records=float(records))
        assert (float(bound_together(app, ProtectedPart.JOINT)) < float(bound_alone(app))) is pays
    whole = solve_owners(unit=Unit.OWNER, owners=10_000, shared=10)
    most = math.floor(float(bounds.find_records_limit(whole.collaboration, ProtectedPart.JOINT)))
    assert f"up to {most:,} records each" in build_answer(LINES, whole.parameters, whole).facts[PAYING]
    for records, pays in ((most, True), (most + 1, False)):
        app = whole.collaboration.replace(records=float(records), records_per_unit=float(records))
        assert (float(bound_together(app, ProtectedPart.JOINT)) < float(bound_alone(app))) is pays
    # Without a shared part joining never stops to pay.
    free = solve_owners(unit=Unit.OWNER, shared=0, **{**PERSONAL, "personal": 5})
    assert build_answer(LINES, free.parameters, free).facts[PAYING].endswith("any number of records each.")


def test_owners_of_private_data_get_a_cap_and_its_label() -> None:
    found = solve_owners(SECRET, source=OwnersSource.DATA, unit=Unit.OWNER, shared=10, own_bound=100)
    every = regimes.compute_joint_bounds(SECRET.histogram, np.arange(1.0, 401.0), found.collaboration)
    assert found.cap_choice.joint_bound == pytest.approx(float(every.min()), rel=1e-6)
    told = build_answer(SECRET, found.parameters, found)
    assert told.disclosure is Disclosure.PRIVATE
    assert answer.LEAK_WARNING in told.detail
    assert f"at most {found.cap_choice.cap} record" in told.headline
    assert any(name == "Your bound on records, 100 records" for name in told.facts)
    assert found.bound_at_own_cap == pytest.approx(float(every[99]))
    assert [name for name, _, _ in told.proofs] == ["Cap per owner"]
    assert found.gaining_limit_and_count is not None
    limit, count = found.gaining_limit_and_count
    assert count == sum(u for s, u in ((1, 50), (20, 30), (400, 5)) if s < limit)
    ((_, cap),) = told.code.forms
    assert isinstance(cap, ReleaseSpec)
    assert f"MAX_ROWS = {found.cap_choice.cap}" in write(cap, Program.PYTHON).text
    curve = told.plots["owners-cap"]()
    assert curve.disclosure is Disclosure.PRIVATE
    assert np.min(np.asarray(curve.columns["bound"])) == pytest.approx(found.cap_choice.joint_bound)


def test_owners_entered_beside_private_data_are_as_private_as_these() -> None:
    opening = {"owners": 1_000, "records": 1_000}
    public, defaults = solve_owners(), solve_owners(SECRET, **opening)
    assert (public.disclosure, defaults.disclosure) == (Disclosure.PUBLIC, Disclosure.PUBLIC)
    for asked in ({"owners": 65}, {"records": 99}, {"unit": Unit.USER, "records_per_user": 4.0, **opening}):
        assert solve_owners(**asked).disclosure is Disclosure.PUBLIC
        solution = solve_owners(SECRET, **asked)
        assert solution.disclosure is Disclosure.PRIVATE
        assert answer.LEAK_WARNING in build_answer(SECRET, solution.parameters, solution).detail
        told_of = build_answer(SECRET, solution.parameters, solution)
        choice = json.loads(told_of.write_json())
        assert {choice["question"]["label"], choice["answer"]["label"]} == {Disclosure.PRIVATE.label}
        report = contents.build_report(told_of, ScriptSource(SECRET))
        assert report.disclosure is Disclosure.PRIVATE
        assert report.summary_lines is not None
        assert {line.disclosure for line in report.summary_lines} == {Disclosure.PRIVATE}
        # Its script knows what kind of numbers it holds, though it reads no data.
        assert "data = Disclosure.PRIVATE" in report_content.write_script(report, REPORT_TIME, False)
    # What is declared public stays so, and what fields begin with was read off nothing. A private table of the
    # page's own counts as data.
    assert (
        solve_owners(SECRET, **opening, unit=Unit.USER, records_per_user=5.0).disclosure is Disclosure.PUBLIC
    )
    assert solve_owners(SECRET, **opening, shared=10, delta=1e-6).disclosure is Disclosure.PUBLIC
    asked = OwnersParameters(1.0, owners=65)
    assert question.find_disclosure(asked, LINES, make_own_table().dataset) is Disclosure.PRIVATE


def test_the_map_has_the_point_its_regimes_and_its_hatched_areas() -> None:
    found = solve_owners(**PERSONAL)
    whole = plots.plot_regime_map(found)
    drawn = plotly_figures.draw_plot(whole)
    names = [trace.name for trace in drawn.data]
    assert names[1:3] == ["No guarantee here", "Not covered: ε > 10 or δ ≥ 1/n"]
    assert {"Joint privacy begins to pay", "Full privacy begins to pay"} <= set(names)
    (you,) = [trace for trace in drawn.data if trace.name == "You"]
    assert (you.x[0], you.y[0]) == (64.0, 1.0)
    np.testing.assert_array_equal(drawn.data[0].z, found.regime_map.regimes.astype(np.float32))
    assert len(drawn.layout.annotations) == 3
    same = plotly_figures.draw_plot(plots.plot_regime_map(solve_owners()))
    assert "Joining begins to pay" in [trace.name for trace in same.data]
    outside = plots.plot_regime_map(solve_owners(owners=10**6)).items[-1]
    assert (outside.name, outside.x) == ("You (outside the map)", 1e4)
    assert "Owners, n: 1,000,000" in outside.hover_text
    assert (
        plots.plot_regime_map(solve_owners(x_axis=MapAxis.SHARED, y_axis=MapAxis.RECORDS)).x.heading
        == "Shared parameters, ℓ"
    )
    # The areas cover exactly what the bounds say nothing about.
    mask, hatching = (
        found.regime_map.vacuous_mask,
        next(item for item in whole.items if isinstance(item, Hatching)),
    )
    np.testing.assert_array_equal(hatching.values != 0.0, mask)
    rectangles = charts.cover_by_rectangles(mask, found.regime_map.x_values, found.regime_map.y_values)
    for i, j in ((0, 0), (10, 3), (40, 60), (69, 99), (5, 40)):
        x, y = found.regime_map.x_values[j], found.regime_map.y_values[i]
        inside = any(a[0] <= x <= a[1] and b[0] <= y <= b[1] for a, b in rectangles)
        assert inside == mask[i, j]
    assert {len(np.asarray(values)) for values in whole.columns.values()} == {25 * 18}
    assert set(np.asarray(whole.columns["regime"])) == {"alone", "joint_only", "full_too"}


def test_the_table_of_bounds_names_what_is_corrected() -> None:
    rows = tabulate_bounds(solve_owners(unit=Unit.USER, records_per_user=5.0, **PERSONAL))
    full = rows["Setting"].index("Together, full privacy")
    printed, ours = rows["As printed"][full], rows["The unit protected"][full]
    assert printed > ours  # r = 20 is left out there


def test_the_choice_holds_bounds_and_crossings() -> None:
    content = json.loads(answer_owners().write_json())
    assert content["answer"]["owners_needed_joint"] == 37
    assert content["answer"]["epsilon_star_joint"] == pytest.approx(0.5368, rel=1e-3)
    assert "data" not in content
    private = answer_owners(SECRET, source=OwnersSource.DATA)
    assert json.loads(private.write_json())["data"]["num_owners"] == 85
    with pytest.raises(InvalidInput, match="no data to take owners from"):
        solve(Disclosure.PUBLIC, private.parameters)


def make_study_result(runs: int = 1) -> StudyResult:
    """Accuracies with known directions; of two budgets and two numbers of owners."""
    study = Study((4, 64), (0.25, 1.0), seeds=tuple(range(runs)))
    scores = {
        Form.SEPARATE: [[0.9, 0.7]],
        Form.FULL: [[0.5, 0.5], [0.8, 0.8]],
        Form.JOINT: [[0.7, 0.6], [0.9, 0.9]],
        Form.NON_PRIVATE: [[0.95, 0.95]],
        Form.NON_PRIVATE_PERSONAL: [[0.96, 0.96]],
    }
    arrays = {form: np.repeat(np.array(a)[:, :, None], runs, axis=2) for form, a in scores.items()}
    return StudyResult(study, arrays, 1000, 250, 650, "digits")


def test_directions_are_counted_against_the_standard_error() -> None:
    study_result = make_study_result()
    # √(2 · 0.8 · 0.2/250) = 0.036 and less at 0.9; 0.9 against 0.9 is neither.
    assert study_result.compare_forms(Form.JOINT, Form.FULL).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert study_result.compare_forms(Form.JOINT, Form.SEPARATE).tolist() == [[-1.0, -1.0], [0.0, 1.0]]
    said = list(plots.write_directions(study_result).values())
    assert "above in 4 of 4 pairs of ε and n, below in 0" in said[0]
    assert "above in 1 of 4 pairs of ε and n, below in 2. In the paper's table 1" in said[1]
    assert "paper" not in " ".join(list(plots.write_directions(study_result, has_paper=False).values())[:2])
    assert "0.150 at n = 4 and 0.100 at n = 64" in said[2]
    study_result.accuracies_by_form[Form.JOINT][:] = np.nan
    assert not plots.write_directions(study_result)
    assert np.isnan(study_result.compare_forms(Form.JOINT, Form.SEPARATE)).all()


def test_the_figure_of_accuracies_has_every_form_and_whiskers_of_several_runs() -> None:
    for runs in (1, 3):
        study_result = make_study_result(runs)
        study_result.accuracies_by_form[Form.JOINT][0, 0, 0] = 0.66
        figure = plotly_figures.draw_plot(plots.plot_accuracy(study_result))
        assert [trace.name for trace in figure.data][1:3] == [
            "Joint privacy, ε = 0.25",
            "Joint privacy, ε = 1",
        ]
        assert len([trace for trace in figure.data if trace.mode != "text"]) == 7
        assert (figure.data[1].error_y.array is not None) is (runs > 1)
        assert figure.data[1].y[0] == pytest.approx(0.66 if runs == 1 else (0.66 + 0.7 + 0.7) / 3)
        assert figure.layout.yaxis.range[0] < 0.5
    single = make_study_result()
    single = replace(
        single,
        study=replace(single.study, numbers_of_owners=(4,)),
        accuracies_by_form={form: array[:, :1] for form, array in single.accuracies_by_form.items()},
    )
    accuracy = plots.plot_accuracy(single)
    assert all(isinstance(item, Bars) for item in accuracy.items)
    bars = {bar.y[0]: bar.x[0] for bar in plotly_figures.draw_plot(accuracy).data}
    assert (len(bars), bars["Joint privacy, ε = 1"], next(reversed(bars))) == (7, 0.9, "Alone")
    table = plots.tabulate_accuracy(make_study_result())
    assert table.loc["Joint privacy, ε = 1", "n = 64"] == 0.9


def test_the_report_holds_what_training_found_under_its_own_label() -> None:
    public, secret = (
        TrainingCard(make_study_result(3), disclosure, disclosure is Disclosure.PUBLIC)
        for disclosure in (Disclosure.PUBLIC, Disclosure.PRIVATE)
    )
    report = contents.build_report(answer_owners(), ScriptSource(LINES), public)
    assert report.disclosure is Disclosure.PUBLIC
    made = remove_private(report)
    title, told = made.answers[1]
    assert title == "Accuracy by training"
    assert "n = 4, 64 owners at ε = 0.25, 1" in told.headline
    assert "One record is protected, at δ = 0.00001." in told.detail
    assert [name for name, _ in told.all_facts][:2] == [
        "Joint privacy against full privacy",
        "Joint privacy against working alone",
    ]
    (figure,) = [figure for figure in made.figures if figure.key == "owners-accuracy"]
    assert np.asarray(figure.columns["joint_epsilon_1"]).tolist() == [0.9, 0.9]
    assert "above in 4 of 4" in report_content.write_html(report, REPORT_TIME, True)
    # Of private records nothing of it is published, though the bounds beside them are public.
    report = contents.build_report(answer_owners(), ScriptSource(LINES), secret)
    assert report.disclosure is Disclosure.PRIVATE
    made = remove_private(report)
    assert "owners-accuracy" not in {figure.key for figure in made.figures}
    assert "Figure: Accuracy against the number of owners" in made.omitted_sections
    assert (
        "The choice (Accuracy by training): headline, numbers, facts and certificates"
        in made.omitted_sections
    )
    assert made.answers[1][1].detail == ""
    assert made.answers[1][1].all_facts == ()
    assert "37 owners of 100 records" in made.answer.detail
    assert "above in 4 of 4" not in report_content.write_html(report, REPORT_TIME, True)
    assert "above in 4 of 4" in report_content.write_html(report, REPORT_TIME, False)
    stopped = make_study_result()
    stopped.accuracies_by_form[Form.NON_PRIVATE][:] = np.nan
    assert "stopped after" in TrainingCard(stopped, Disclosure.PUBLIC, True).card.detail


def test_fields_of_the_training_make_its_study_and_are_judged() -> None:
    asked = OwnersParameters(
        1.0, train_owners="64 4,16", train_epsilons="1, 0.25", train_runs=2, train_seed=7
    )
    assert (asked.study.numbers_of_owners, asked.study.epsilons, asked.study.seeds) == (
        (4, 16, 64),
        (0.25, 1.0),
        (7, 8),
    )
    assert asked.without(*TRAINING_FIELDS) == OwnersParameters(1.0)
    with pytest.raises(InvalidInput) as refused:
        OwnersParameters(1.0, train_owners="4, 65", train_epsilons="one", train_runs=0)
    said = " ".join(p.sentence for p in refused.value.problems)
    for wrong in ("between 2 and 64; got 65", "separated by commas; got 'one'", "number of runs"):
        assert wrong in said
    with pytest.raises(InvalidInput, match="1 to 6"):
        OwnersParameters(1.0, train_owners="2 3 4 5 6 7 8")


def make_own_table() -> upload.OwnersTable:
    owners, labels = np.repeat([0, 1], 15), np.tile([0.0, 1.0, 2.0], 10)
    rows = LabelledRows(np.c_[labels, np.arange(30.0)], labels, owners, ("a", "b"))
    histogram = ContributionHistogram.from_counts([15, 15])
    data = Dataset("own.csv", "", Disclosure.PRIVATE, histogram, table=rows)
    return upload.OwnersTable(read_table(data), data)


def test_the_page_answers_follows_its_inputs_and_refuses_in_sentences() -> None:
    app = open_app("Join or train alone")
    assert "802 owners of 1,000 records each" in shown_texts(app)
    assert f":material/warning: {answer.CAVEAT}" in raw_texts(app)
    check(app.selectbox(key="data_owners.personal_part").set_value(PersonalPart.NOTHING).run())
    assert "29 owners of 1,000 records each" in shown_texts(app)
    assert answer.CAVEAT not in raw_texts(app)
    assert "owners_map" in list_figure_keys(app)
    check(app.number_input(key="data_owners.owners").set_value(20.0).run())
    assert "## Train alone: joining does not pay for 20 owners." in raw_texts(app)
    for tab in ("Bounds", "Unequal owners", "Downloads", "How this is computed"):
        open_tab(app, "data_owners", tab)
    app.session_state["data_owners.tabs"] = "Accuracy"
    app.session_state["data_owners.train_owners"] = "4"
    app.session_state["data_owners.train_epsilons"] = "1"
    check(app.run())
    check(app.button(key="owners_train").click().run())
    app = finish(app, "data_owners.training_job")
    assert "owners_accuracy" in list_figure_keys(app)
    assert "**Joint privacy against full privacy:** above in 1 of 1" in raw_texts(app)
    open_tab(app, "data_owners", "Downloads")
    assert "accuracies of the last training. Their label: *public input*" in shown_texts(app)
    open_tab(app, "data_owners", "Accuracy")
    check(app.number_input(key="data_owners.train_seed").set_value(2.0).run())
    assert "These are for earlier settings" in shown_texts(app)
    # A table of one's own: its accuracies are as private as it is, and those of the digits are gone.
    app.session_state["data_owners.train_on"] = RecordSource.UPLOAD
    check(app.run())
    assert "owners_accuracy" not in list_figure_keys(app)
    app.session_state["data_owners.loaded"] = make_own_table()
    check(app.run())
    assert "30 records of 2 owners" in shown_texts(app)
    check(app.button(key="owners_train").click().run())
    app = finish(app, "data_owners.training_job")
    assert "owners_accuracy" in list_figure_keys(app)
    assert "Do not publish" in raw_texts(app)
    # One relation for each: the training's own, and what its ε is by the one of the bounds.
    assert "whose records are zeroed" in shown_texts(app)
    assert "For a unit that is replaced, as in the bounds" in shown_texts(app)
    assert "added or removed" not in shown_texts(app)
    # The table names owners and no users, so that none can be protected.
    app.session_state["data_owners.unit"], app.session_state["data_owners.records_per_user"] = Unit.USER, 2.0
    check(app.run())
    assert "The table does not say which user a record is of" in errors(app)
    app.session_state["data_owners.unit"] = Unit.RECORD
    open_tab(app, "data_owners", "Downloads")
    assert "owners_report_public_html" in {button.key for button in app.get("download_button")}
    assert {"owners", "records"} & set(read_address(app)) == set()
    check(app.number_input(key="data_owners.owners").set_value(0.5).run())
    assert "The number of owners n must be a whole number" in errors(app)
    assert "owners_map" not in list_figure_keys(app)
    check(app.number_input(key="data_owners.owners").set_value(30.0).run())
    app.session_state["data_owners.source"] = OwnersSource.DATA
    app.session_state["data_owners.unit"] = Unit.OWNER
    open_tab(app, "data_owners", "Unequal owners")
    assert "owners_cap" in list_figure_keys(app)
    assert app.session_state[keys.PAGE_PARAMETERS].source is OwnersSource.DATA
    app.session_state["data_owners.unit"] = Unit.USER
    app.session_state["data_owners.records_per_user"] = 1e9
    check(app.run())
    assert "more records than the largest owner" in errors(app)
