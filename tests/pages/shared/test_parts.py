"""The pure parts of pages: figures, text from outside, inputs."""

from __future__ import annotations

import math
import string

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpcore import mean
from dpcore.answer import axes
from dpcore.answer.against import SLIDER_EPSILONS
from dpcore.common.privacy import Disclosure
from dpcore.common.wording import escape_text
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset
from dpcore.mean.answer import build_answer
from dpcore.report import plotly_figures
from dpcore.start import answer as start_answer
from dpcore.start.parameters import StartParameters
from pages.shared.base import catalogue, question
from pages.shared.screen import layout, sections
from pages.shared.session import session
from tests.pages.driving import ROOT

MAX_POINTS = 500
SHOP = samples.load("shop-events")
HISTOGRAMS = {
    "one user": ContributionHistogram(sizes=[1], users=[1]),
    "one size": ContributionHistogram(sizes=[7], users=[20]),
    "widest": ContributionHistogram(sizes=[1, 10**12], users=[10**12, 1]),
    "61 sizes": ContributionHistogram(sizes=np.arange(1, 62), users=np.ones(61)),
    "301 sizes": ContributionHistogram(sizes=np.arange(1, 302), users=np.ones(301)),
    "1e5 sizes": ContributionHistogram(
        sizes=np.arange(1, 100_001), users=np.maximum(1, 1e9 / np.arange(1, 100_001) ** 1.5).astype(int)
    ),
    "1e6 sizes": ContributionHistogram(sizes=np.arange(1, 1_000_001), users=np.ones(1_000_000)),
    "sample": samples.load(session.DEFAULT_SAMPLE).histogram,
}


def answer_mean(histogram, epsilon, value_bound=1.0):
    dataset = Dataset("", "", Disclosure.PUBLIC, histogram)
    return build_answer(dataset, mean.MeanParameters(epsilon=epsilon, upper=value_bound, own_bound=3))


def figures_of(histogram, epsilon=1.0):
    view = answer_mean(histogram, epsilon)
    data = Dataset("any", "", Disclosure.PUBLIC, histogram)
    start = start_answer.build_answer(data, StartParameters(epsilon, 3))
    return {
        "start": plotly_figures.draw_plot(start.plots["start-tradeoff"]()),
        **{key: plotly_figures.draw_plot(plot()) for key, plot in view.plots.items()},
        **{
            name: plotly_figures.draw_plot(drawn(data))
            for name, drawn in axes.PLOTTER_BY_DISTRIBUTION.items()
        },
    }


def shift_of(epsilon):
    parameters = mean.MeanParameters(epsilon, upper=100.0, variance_source=mean.VarianceSource.FROM_VALUES)
    return plotly_figures.draw_plot(build_answer(SHOP, parameters).plots["mean-shift"]())


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_no_trace_has_more_than_500_points_and_all_are_numbers(name):
    for key, figure in figures_of(HISTOGRAMS[name]).items():
        for trace in figure.data:
            if trace.x[0] is None:  # an entry of the legend only
                continue
            assert 1 <= len(trace.x) == len(trace.y) <= MAX_POINTS, (key, trace.name)
            assert np.all(np.isfinite(np.asarray(trace.x, dtype=float))), (key, trace.name)
            assert np.all(np.isfinite(np.asarray(trace.y, dtype=float))), (key, trace.name)
            assert np.all(np.asarray(trace.x, dtype=float) > 0), (key, trace.name)


@pytest.mark.long_for("1e6 sizes")
@pytest.mark.parametrize("name", HISTOGRAMS)
def test_axes_are_named_and_fixed(name):
    units = ("per user", "share", "Share", "Users per size", "unit of the values", "1 = ")
    for key, figure in figures_of(HISTOGRAMS[name]).items():
        for axis in (figure.layout.xaxis, figure.layout.yaxis):
            assert any(unit in axis.title.text for unit in units), (key, axis.title.text)
            assert axis.range[0] < axis.range[1], key
            assert all(math.isfinite(end) for end in axis.range), key


@pytest.mark.long_for("1e6 sizes")
@pytest.mark.parametrize("name", HISTOGRAMS)
def test_axis_ranges_do_not_depend_on_epsilon(name):
    before, after = figures_of(HISTOGRAMS[name], 0.01), figures_of(HISTOGRAMS[name], 30.0)
    for key, figure in before.items():
        assert figure.layout.xaxis.range == after[key].layout.xaxis.range, key
        if key != "mean-error":  # Its axis of errors follows the curves.
            assert figure.layout.yaxis.range == after[key].layout.yaxis.range, key


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_what_is_drawn_is_what_the_csv_holds(name):
    data = Dataset("any", "", Disclosure.PUBLIC, HISTOGRAMS[name])
    for item in axes.PLOTTER_BY_DISTRIBUTION.values():
        plot = item(data)
        x, y = list(plot.columns.values())[:2]
        trace = plotly_figures.draw_plot(plot).data[0]
        assert np.array_equal(trace.x, x)
        assert np.array_equal(trace.y, y)
        assert plot.alt


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_classes_of_sizes_hold_all_users_and_rows(name):
    histogram = HISTOGRAMS[name]
    columns = axes.tabulate_classes(histogram)
    assert len(columns["rows_per_user"]) <= 13
    seen = 0
    for words, users, rows in zip(columns["rows_per_user"], columns["users"], columns["rows"], strict=True):
        ends = [int(end.replace(",", "")) for end in words.split("–")]
        in_class = (histogram.sizes >= ends[0]) & (histogram.sizes <= ends[-1])
        assert users == histogram.users[in_class].sum()
        assert rows == pytest.approx(
            float(np.dot(histogram.sizes[in_class].astype(float), histogram.users[in_class]))
        )
        seen += in_class.sum()
    assert seen == histogram.sizes.size
    assert sum(columns["share_of_users"]) == pytest.approx(1.0)
    assert sum(columns["share_of_rows"]) == pytest.approx(1.0)
    assert axes.plot_classes(Dataset("any", "", Disclosure.PUBLIC, histogram)).alt


def test_binned_counts_keep_the_number_of_users():
    histogram = HISTOGRAMS["1e5 sizes"]
    columns = axes.tabulate_counts(histogram)
    assert columns["size"].size < 100
    # Users per size, averaged over a bin, fall with the size as i^-1.5 does.
    slope = np.polyfit(np.log(columns["size"][:60]), np.log(columns["users"][:60]), 1)[0]
    assert slope == pytest.approx(-1.5, abs=0.05)


def test_the_tail_thinned_out_is_the_tail():
    histogram = HISTOGRAMS["1e5 sizes"]
    columns = axes.tabulate_tail(histogram)
    for size, share in zip(columns["size"], columns["share_of_users"], strict=True):
        at_least = histogram.users[histogram.sizes >= size].sum()
        assert share == pytest.approx(at_least / histogram.num_users)
    assert columns["size"][[0, -1]].tolist() == [1.0, 100_000.0]


def test_markers_lie_on_their_curves():
    for epsilon in (0.01, 1.0, 100.0):
        view = answer_mean(SHOP.histogram, epsilon, 10.0)
        figure = plotly_figures.draw_plot(view.plots["mean-error"]())
        named = {trace.name: trace for trace in figure.data}
        for curve, marker in (
            ("Total, bounded rows", "Best bound"),
            ("Total, smooth weights", "Best smooth weights"),
        ):
            x, y = np.asarray(named[curve].x), np.asarray(named[curve].y)
            (at,) = np.flatnonzero(x == named[marker].x[0])
            assert y[at] == pytest.approx(named[marker].y[0])
            assert y[at] == pytest.approx(y.min())


# --- text from outside --------------------------------------------------------------------------------------

JOINER = "\N{WORD JOINER}"  # invisible; keeps addresses from becoming links


def rendered(markdown: str) -> str:
    """What a reader sees: a backslash before punctuation is not shown (CommonMark, section 2.4).

    Nothing that may start markup, formula, HTML, entity or one of Streamlit's directives stands unescaped.
    """
    literal, characters = "", iter(markdown)
    for character in characters:
        if character == "\\":
            character = next(characters)
            assert character in string.punctuation
        else:
            assert character not in "\\`*_{}[]()#+-.!|<>~$:&"
        literal += character
    return literal.replace(JOINER, "")


@example("[x](javascript:alert(1)).csv <script>alert(1)</script> http://example.org")
@example("a\nb\n\n# c")
@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_is_literal(text):
    message = " ".join(text.split())
    assert rendered(escape_text(text)) == message


@given(st.text(max_size=300), st.integers(2, 100))
def test_long_text_is_cut(text, most):
    message = " ".join(text.split())
    seen = (
        escape_text(text.replace("\\", "/").replace(JOINER, ""), most).replace("\\", "").replace(JOINER, "")
    )
    assert len(seen) <= most
    if len(message) > most:
        assert escape_text(text, most).endswith("…")


@given(low=st.floats(1e-12, 1e12), factor=st.floats(1.0, 1e9))
def test_a_ladder_spans_what_it_must_in_steps_of_1_2_5(low, factor):
    rungs = sections.list_stops(low, low * factor)
    assert rungs[0] <= low * (1 + 1e-8)
    assert rungs[-1] >= low * factor * (1 - 1e-8)
    for rung in rungs:
        assert f"{rung:.0e}"[0] in "125"
        assert float(f"{rung:.0e}") == rung
    ratios = np.asarray(rungs[1:]) / np.asarray(rungs[:-1])
    assert np.all((ratios > 1.99) & (ratios < 2.51))
    # No shorter ladder does.
    assert len(rungs) == 1 or rungs[1] > low * (1 - 1e-8)


@given(epsilon=st.floats(1e-6, 1e3))
def test_the_slider_stands_nearest_to_epsilon(epsilon):
    step = layout.find_nearest_step(epsilon)
    assert step in SLIDER_EPSILONS
    for epsilon_step in SLIDER_EPSILONS:
        assert abs(math.log(step / epsilon)) <= abs(math.log(epsilon_step / epsilon)) + 1e-12


@given(low=st.floats(-2e8, 2e8), width=st.just(0.0) | st.floats(1e-6, 3e8))
def test_proposed_value_bounds_hold_all_values_and_are_round(low, width):
    lower, upper = question.round_range_outward(low, low + width)
    # The shortest interval that the Mean page takes is 1e-9.
    assert lower <= low + 1e-9
    assert upper >= low + width - 1e-9
    assert mean.MeanParameters(epsilon=1.0, lower=lower, upper=upper).value_bound > 0
    for bound in (lower, upper):
        assert bound == 0.0 or f"{abs(bound):.9e}"[:11] in ("1.000000000", "2.000000000", "5.000000000")


@given(low=st.floats(-1e300, 1e300), high=st.floats(-1e300, 1e300))
def test_proposed_value_bounds_are_valid_for_any_values(low, high):
    lower, upper = question.round_range_outward(min(low, high), max(low, high))
    assert mean.MeanParameters(epsilon=1.0, lower=lower, upper=upper).value_bound > 0


def test_start_s_axis_goes_beyond_the_heaviest_user_as_far_as_bounds_do():
    for name, end in (("one user", 5.0), ("301 sizes", 1505.0), ("widest", 10**12)):
        data = Dataset("any", "", Disclosure.PUBLIC, HISTOGRAMS[name])
        plot = start_answer.build_answer(data, StartParameters(1.0)).plots["start-tradeoff"]()
        assert plot.x.limits[1] == end


def test_every_page_is_registered_at_an_address_of_its_own():
    assert {path.parent.name for path in (ROOT / "pages").rglob("page.py")} == {
        *catalogue.PAGE_FOLDERS,
        *catalogue.STEP_FOLDERS,
    }
    assert len({spec.url_path for spec in catalogue.PAGES}) == len(catalogue.PAGES)
