"""The handle of a figure: its simulated releases have the error on the card, and its users are those of the data."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats

from dpcore import total
from dpcore.answer import axes, handle
from dpcore.answer.answer import STYLE_BY_PART
from dpcore.answer.selected_bound import find_selected_excess, mark_selected_bound
from dpcore.common.noise_error import Measure, NoiseKind
from dpcore.common.privacy import Disclosure
from dpcore.contributions import ContributionHistogram
from dpcore.data import samples
from dpcore.dataset import Dataset, Values
from dpcore.learning import LearningParameters
from dpcore.learning import answer as learning_answer
from dpcore.learning.bias_bounds import BiasTerm
from dpcore.mean import Counts, MeanParameters
from dpcore.mean import answer as mean_answer
from dpcore.mean.parameters import Likeness, choose_defaults
from dpcore.per_group import answer as per_group_answer
from dpcore.per_group.means import compute_mean_error
from dpcore.per_group.moments import compute_error_parts, compute_pair_error
from dpcore.per_group.parameters import Objective, PerGroupParameters, Statistic
from dpcore.report import plotly_figures
from dpcore.start import answer as start_answer
from dpcore.start.parameters import StartParameters
from dpcore.total import answer as total_answer
from dpcore.total.parameters import Summed, TotalParameters
from pages.shared import figure
from pages.shared.figures import figures


def place_dots(dots: handle.Dots, loss: float, magnitude: float, deviation: float = 0.0) -> np.ndarray:
    """Place the dots as the browser does: release minus truth."""
    sampling_draws = 0.0 if dots.unit_sampling_draws is None else dots.unit_sampling_draws
    return magnitude * dots.unit_noise_draws + deviation * sampling_draws - loss


@pytest.mark.parametrize("noise", NoiseKind)
def test_draws_are_of_the_noise_with_a_mean_magnitude_of_1(noise):
    unit_noise = handle.draw_unit_noise(noise)
    assert unit_noise.shape == (handle.NUM_DOT_SETS, handle.NUM_DOTS)
    law = stats.laplace() if noise is NoiseKind.LAPLACE else stats.norm(scale=math.sqrt(math.pi / 2))
    # The law's own mean magnitude is 1, and the draws are of the law.
    assert law.expect(abs) == pytest.approx(1.0)
    assert stats.kstest(unit_noise.ravel(), law.cdf).pvalue > 0.01
    # The set that is seen first is nearer to the law than most.
    off = np.abs(np.abs(unit_noise).mean(axis=1) - 1.0)
    assert off[0] < np.median(off)


@pytest.mark.thinned
@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("measure", [Measure.ABSOLUTE, Measure.RMSE])
@pytest.mark.parametrize("own", [None, 20.0, 300.0])
def test_the_spread_of_the_dots_is_the_error_on_the_card_within_its_interval(noise, measure, own):
    data = samples.load("shop-events")
    parameters = TotalParameters(1.0, mechanism=noise, objective=measure, own_bound=own, delta=(
        1e-4 if noise is NoiseKind.GAUSSIAN else None
    ))  # fmt: skip
    answer = total_answer.build_answer(data, parameters)
    plot = answer.plots["total-error"]()
    figure_handle = plot.handle
    bounds = np.asarray(figure_handle.bounds)
    position = int(np.abs(np.log(bounds / figure_handle.initial_value)).argmin())
    short, mean = (
        np.asarray(values)[position]
        for values in (figure_handle.dots.losses_without_noise, figure_handle.dots.noise_magnitudes)
    )
    dots = place_dots(figure_handle.dots, float(short), float(mean)).ravel()
    each = np.abs(dots) if measure is Measure.ABSOLUTE else dots**2
    error = float(total.compute_errors(answer.solution.problem, bounds[position]).measure_error(measure))
    expected = error if measure is Measure.ABSOLUTE else error**2
    # Four standard errors of the mean of independent draws.
    assert abs(each.mean() - expected) <= 4.0 * each.std() / math.sqrt(each.size)
    assert np.asarray(figure_handle.errors)[position] == pytest.approx(error)


def test_of_totals_of_both_signs_dots_lie_where_the_cuts_put_them():
    totals = np.array([-500.0, *range(1, 100)])
    rows, users = ContributionHistogram.from_counts(np.ones(totals.size, int)), np.arange(totals.size)
    data = Dataset("signed", "", Disclosure.PUBLIC, rows, values=Values(users, totals, "euros"))
    parameters = TotalParameters(1.0, summed=Summed.VALUES, own_bound=80.0)
    plot = total_answer.build_answer(data, parameters).plots["total-signed"]()
    figure_handle = plot.handle
    assert figure_handle.initial_value == 80.0
    bounds, missing = (
        np.asarray(values) for values in (figure_handle.bounds, figure_handle.dots.losses_without_noise)
    )
    cut = [(totals - totals.clip(-bound, bound)).sum() for bound in bounds]
    assert missing == pytest.approx(cut)
    # Small bounds cut the many positive totals, large ones the single negative one.
    assert missing.min() < 0.0 < missing.max()
    # Mean distance of the dots, and the curve.
    position = int(np.abs(bounds - figure_handle.initial_value).argmin())
    noise, error = (
        float(np.asarray(values)[position])
        for values in (figure_handle.dots.noise_magnitudes, figure_handle.errors)
    )
    off = np.abs(place_dots(figure_handle.dots, missing[position], noise)).ravel()
    assert abs(off.mean() - error) <= 4.0 * off.std() / math.sqrt(off.size)
    # Ends of two sizes lie on no curve of one bound.
    apart = dataclasses.replace(parameters, lower=-10.0, upper=80.0)
    assert total_answer.build_answer(data, apart).plots["total-signed"]().handle is None


@pytest.mark.parametrize(
    "asked",
    [
        MeanParameters(1.0, lower=0.0, upper=100.0, **choose_defaults(samples.load("shop-events"))),
        MeanParameters(0.3, lower=0.0, upper=100.0, own_bound=20),
        MeanParameters(1.0, lower=0.0, upper=100.0, counts=Counts.PRIVATE),
    ],
    ids=["values read", "counts only, own bound", "private counts"],
)
def test_the_dots_of_a_mean_have_its_error_shift_and_draw_of_rows_included(asked):
    answer = mean_answer.build_answer(samples.load("shop-events"), asked)
    plot = answer.plots["mean-error"]()
    figure_handle = plot.handle
    bounds = np.asarray(figure_handle.bounds)
    position = int(np.abs(np.log(bounds / figure_handle.initial_value)).argmin())
    short, noise, drawn = (
        float(np.asarray(values)[position])
        for values in (
            figure_handle.dots.losses_without_noise,
            figure_handle.dots.noise_magnitudes,
            figure_handle.dots.sampling_deviations,
        )
    )
    squares = place_dots(figure_handle.dots, short, noise, drawn).ravel() ** 2
    expected = float(np.asarray(figure_handle.errors)[position]) ** 2
    # Four standard errors of a mean of independent draws; of Laplace noise, a normal draw and a shift none has more
    # than a Laplace draw alone, sqrt(6 - 1) of its mean.
    assert abs(squares.mean() - expected) <= 4.0 * math.sqrt(5.0) * expected / math.sqrt(squares.size)
    if asked.likeness is Likeness.FROM_VALUES:
        # Dots lie on the side to which leaving rows out moves the mean.
        assert short == pytest.approx(-float(np.asarray(answer.solution.capped_errors.shift)[position]))
        assert short != 0.0
        assert drawn > 0.0


def test_draws_besides_noise_are_normal_and_not_those_of_the_noise():
    noise = handle.draw_unit_noise(NoiseKind.LAPLACE)
    drawn = handle.draw_unit_sampling(NoiseKind.LAPLACE)
    # Each is there once: only their order goes by the noise.
    assert np.unique(drawn[:, 0]).size == handle.NUM_DOT_SETS
    # Together, the set that is seen first has about the spread of both laws.
    both = (noise[0] + drawn[0]) ** 2
    assert both.mean() == pytest.approx(2.0 + 1.0, rel=0.25)
    drawn, noise = drawn.ravel(), noise.ravel()
    assert stats.kstest(drawn, stats.norm().cdf).pvalue > 0.01
    assert abs(stats.pearsonr(drawn, noise).statistic) < 3.0 / math.sqrt(drawn.size)


def test_where_nothing_is_released_there_are_no_dots_and_what_has_no_bound_is_drawn_at_the_top():
    parameters = LearningParameters(1.0, bias=BiasTerm.COROLLARY_1)
    plot = learning_answer.build_answer(samples.load("shop-events"), parameters).plots["learning-bound"]()
    assert plot.handle.dots is None
    payload = figures.describe_handle(plot, plot.handle)
    assert payload["dots"] is None
    assert payload["parts_add_up"]
    assert json.dumps(payload, allow_nan=False)
    assert max(payload["errors"]) == figures.UNBOUNDED_STAND_IN


GROUPED = samples.load("shop-events")
GAUSSIAN = {"mechanism": NoiseKind.GAUSSIAN, "delta": 1e-6}


@pytest.mark.long_for("mean, without parts")
@pytest.mark.parametrize(
    "asked",
    [
        PerGroupParameters(1.0),
        PerGroupParameters(1.0, own_groups=3, own_amount=9.0, **GAUSSIAN),
        PerGroupParameters(0.5, objective=Objective.MEAN_RMSE),
        PerGroupParameters(1.0, statistic=Statistic.USERS),
        PerGroupParameters(3.0, statistic=Statistic.SIGNED_SUM, **GAUSSIAN),
        PerGroupParameters(5.0, statistic=Statistic.MEAN, lower=0.0, upper=100.0),
    ],
    ids=["rows", "own pair, Gaussian", "mean of roots", "users", "signed sum", "mean, without parts"],
)
def test_the_dots_of_a_pair_have_its_error_and_their_parts_those_of_the_map(asked):
    answer = per_group_answer.build_answer(GROUPED, asked)
    plot = answer.plots["per-group-error"]()
    figure_handle = plot.handle
    assert figure_handle.dots.dots_name == ("groups" if figure_handle.error_parts else "errors of this size")
    # The place of the grid at which it stands, nearest by ratio; a pair of one's own lies between two of its places.
    groups, amounts = np.asarray(plot.columns["max_groups"]), np.asarray(plot.columns["max_amount"])
    l0, amount = figure_handle.initial_value, figure_handle.second_bound.initial_value
    position = int((np.abs(np.log(groups / l0)) + np.abs(np.log(amounts / amount))).argmin())
    error = float(np.asarray(plot.columns["error"])[position])
    problem = answer.solution.problem
    mean = asked.statistic is Statistic.MEAN
    exact = (compute_mean_error if mean else compute_pair_error)(
        problem, int(groups[position]), float(amounts[position])
    )
    assert error == pytest.approx(exact)
    columns = (figure_handle.dots.losses_without_noise, figure_handle.dots.noise_magnitudes)
    short, noise = (0.0 if column is None else float(np.asarray(column)[position]) for column in columns)
    drawn = float(np.asarray(figure_handle.dots.sampling_deviations)[position])
    squares = place_dots(figure_handle.dots, short, noise, drawn).ravel() ** 2
    # As for a mean: four standard errors, of at most sqrt(5) of a mean square.
    assert abs(squares.mean() - error**2) <= 4.0 * math.sqrt(5.0) * error**2 / math.sqrt(squares.size)
    if mean:
        assert not figure_handle.error_parts
        return
    error_parts = compute_error_parts(problem, int(groups[position]), float(amounts[position]))
    expected = {
        "bias": error_parts.clipping_part + error_parts.omission_part,
        "sampling": error_parts.sampling_part,
        "noise": error_parts.noise_part,
    }
    for name, part in expected.items():
        assert float(np.asarray(plot.columns[name])[position]) ** 2 == pytest.approx(
            error * part, abs=1e-9 * error**2
        )
    if (
        asked.statistic is Statistic.USERS
    ):  # Nobody counts twice in a group: the figure is a curve, and so are the parts.
        drawn = {trace.name: list(trace.y) for trace in plotly_figures.draw_plot(plot).data}
        assert drawn["Noise"] == pytest.approx(np.asarray(plot.columns["noise"]).tolist())
    payload = figures.describe_handle(plot, figure_handle)
    assert len(payload["bounds"]) * len(payload["second_bound"]["bounds"]) == len(payload["errors"])
    assert figures.list_handle_keys(figure_handle, "per_group.{}".format) == (
        "per_group.own_groups",
        "per_group.own_amount",
    )


def test_the_dots_of_start_are_off_by_what_its_card_says_on_average():
    data = samples.load("online-retail-lines")
    for bound in (None, 60):
        answer = start_answer.build_answer(data, StartParameters(1.0, bound))
        plot = answer.plots["start-tradeoff"]()
        figure_handle = plot.handle
        bounds = np.asarray(plot.columns["bound"])
        position = int(np.abs(np.log(bounds / figure_handle.initial_value)).argmin())
        short, noise = (float(np.asarray(plot.columns[name])[position]) for name in ("bias", "mean_noise"))
        away = np.abs(place_dots(figure_handle.dots, short, noise))
        error = answer.solution.evaluate_error(float(bounds[position]))
        assert abs(away.mean() - error) <= 4.0 * away.std() / math.sqrt(away.size)
        # Where it stands first is at the number on the card.
        if bound is None:
            assert error == pytest.approx(answer.numbers[1].value, rel=0.01)


ON_SHOP = {
    "start": lambda: start_answer.build_answer(GROUPED, StartParameters(1.0)),
    "mean": lambda: mean_answer.build_answer(
        GROUPED, MeanParameters(1.0, lower=0.0, upper=100.0, **choose_defaults(GROUPED))
    ),
    "total": lambda: total_answer.build_answer(GROUPED, TotalParameters(1.0, objective=Measure.RMSE)),
    "total, Gaussian": lambda: total_answer.build_answer(
        GROUPED, TotalParameters(1.0, Summed.VALUES, NoiseKind.GAUSSIAN, 1e-6, Measure.RMSE)
    ),
    "total, at most": lambda: total_answer.build_answer(
        GROUPED, TotalParameters(1.0, objective=Measure.BOUND)
    ),
    "per_group": lambda: per_group_answer.build_answer(GROUPED, PerGroupParameters(1.0)),
    "learning": lambda: learning_answer.build_answer(GROUPED, LearningParameters(1.0)),
}


@pytest.mark.parametrize("page", ON_SHOP)
def test_figure_and_card_say_the_same_parts_in_the_same_colours_and_these_make_the_error(page):
    answer = ON_SHOP[page]()
    plot = answer.plots[next(iter(answer.plots))]()
    figure_handle = plot.handle
    assert [part.name for part in answer.error_parts] == list(figure_handle.error_parts)
    assert {part.name for part in answer.error_parts} <= {"Bias", "Sampling", "Noise"}
    payload = {
        part["name"]: part["colour"] for part in figures.describe_handle(plot, figure_handle)["error_parts"]
    }
    drawn = {trace.name: trace for trace in plotly_figures.draw_plot(plot).data}
    size, error = {part.name: part.value for part in answer.error_parts}, answer.numbers[1].value
    for name, values in figure_handle.error_parts.items():
        column = np.asarray(values, dtype=float)
        assert payload[name] == plotly_figures.LINE_BY_STYLE[STYLE_BY_PART[name]]["color"]
        if page == "per_group":  # A map has no curves; its place is that of the pair.
            position = int(np.argmin(np.asarray(plot.columns["error"])))
            assert float(column[position]) == pytest.approx(size[name])
            continue
        assert drawn[name].line.color == payload[name]
        # What the card says lies on the curve, between two of its points; a bound on totals is rounded.
        slack = 0.05 if page == "total, Gaussian" else 1e-9
        next_position = int(
            np.searchsorted(np.asarray(figure_handle.bounds, dtype=float), figure_handle.initial_value)
        )
        near = column[max(next_position - 1, 0) : next_position + 1]
        assert near.min() * (1 - slack) <= size[name] <= near.max() * (1 + slack)
    squares = math.sqrt(sum(value**2 for value in size.values()))
    expected = {
        "start": lambda: size["Bias"] + size["Noise"] * math.exp(-size["Bias"] / size["Noise"]),
        "learning": lambda: sum(size.values()),
        "total, at most": lambda: sum(size.values()),
    }.get(page, lambda: squares)()
    assert error == pytest.approx(expected)


def test_of_private_data_dots_say_that_they_are_the_model_s_alone():
    for disclosure in (Disclosure.PUBLIC, Disclosure.PRIVATE):
        data = dataclasses.replace(GROUPED, disclosure=disclosure)
        plot = total_answer.build_answer(data, TotalParameters(1.0)).plots["total-error"]()
        payload = figures.describe_handle(plot, plot.handle)
        private = disclosure is Disclosure.PRIVATE
        assert payload["dots"]["is_private"] == private
        assert figure.compute_strip_pixels(payload) == figure.STRIP_PIXELS + private * figure.NOTE_PIXELS


def some_of(counts):
    values, users = np.unique(counts, return_counts=True)
    return axes.build_user_bars(values, users, "rows")


def test_users_are_some_of_all_from_the_heaviest_to_the_lightest():
    rng = np.random.default_rng(5)
    sizes = np.sort(rng.zipf(1.4, 3_000).clip(max=5_000))[::-1]
    users_shown = some_of(sizes)
    assert users_shown.contributions[0] == sizes[0]
    assert users_shown.contributions[-1] == sizes[-1]
    assert (np.diff(users_shown.contributions) <= 0).all()
    # The ten heaviest are all there.
    assert users_shown.contributions[:10].tolist() == sizes[:10].tolist()
    assert handle.MAX_BARS / 2 < users_shown.contributions.size <= handle.MAX_BARS
    assert "of 3,000 users" in users_shown.title
    few = some_of(np.array([3, 1, 2]))
    assert few.contributions.tolist() == [3.0, 2.0, 1.0]
    assert few.title == "Bars: 3 users"


@pytest.mark.parametrize("bound", [20.0, 140.0, 400.0])
def test_a_bound_that_was_chosen_with_dp_errs_so_much_more_than_the_best(bound):
    answer = total_answer.build_answer(samples.load("shop-events"), TotalParameters(1.0))
    plot = answer.plots["total-error"]()
    assert find_selected_excess(plot) is None
    solution = answer.solution
    least_error = min(solution.compute_error(float(other)) for other in range(1, 500))
    excess = find_selected_excess(mark_selected_bound(plot, bound))
    assert excess == pytest.approx(solution.compute_error(bound) / least_error - 1.0, rel=0.02, abs=2e-3)
