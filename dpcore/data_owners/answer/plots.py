"""Plots of data owners as data, and the results of a training in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcore.answer import Axis, Bars, Border, Column, Curve, Hatching, Item, Level, Mark, Plot, Regions, Style
from dpcore.answer.answer import Answer
from dpcore.answer.plot import names_axis, share_axis
from dpcore.common.privacy import Disclosure, Provenance, format_rounded_up
from dpcore.common.wording import (
    capitalise,
    format_count,
    format_digits,
    format_entered,
    format_number,
    format_percent,
)
from dpcore.contributions import FloatArray, build_log_grid
from dpcore.data_owners import regimes
from dpcore.data_owners.answer.solution import BOUND_FUNCTION_BY_SETTING, OwnersSolution
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.paper import STYLE_BY_FORM
from dpcore.data_owners.regimes import RANGE_BY_AXIS, MapAxis, Regime
from dpcore.data_owners.study import Form, StudyResult
from dpcore.data_owners.training import compute_replaced_epsilon
from dpcore.dataset import Dataset

if TYPE_CHECKING:
    import pandas as pd


CLAUSE_BY_REGIME = {
    Regime.ALONE: "working alone has the smaller bound",
    Regime.JOINT_ONLY: "joining pays with joint privacy and not with full privacy",
    Regime.FULL_TOO: "joining pays with joint and with full privacy",
}
NUM_CURVE_POINTS = 160
MAP_FILE_STRIDE = 4


def _make_axis(map_axis: MapAxis) -> Axis:
    """Build the axis of a quantity of the map, over the map's range."""
    return Axis(map_axis.label, "", RANGE_BY_AXIS[map_axis], number_format=",.3~g")


def plot_regime_map(solution: OwnersSolution) -> Plot:
    """Plot over two quantities which settings beat working alone, where there is no bound, and the person's point."""
    regime_map = solution.regime_map
    x, y = regime_map.x_values, regime_map.y_values
    joint_gains, full_gains = regime_map.joint_gains, regime_map.full_gains
    file_slices = (slice(None, None, MAP_FILE_STRIDE),) * 2
    file_x_values, file_y_values = np.meshgrid(x[::MAP_FILE_STRIDE], y[::MAP_FILE_STRIDE])
    file_columns: dict[str, npt.ArrayLike] = {
        regime_map.x_axis.value: file_x_values.ravel(),
        regime_map.y_axis.value: file_y_values.ravel(),
        "regime": [
            "" if math.isnan(point_regime) else Regime(int(point_regime)).name.lower()
            for point_regime in regime_map.regimes[file_slices].ravel().tolist()
        ],
        "alone_over_joint": np.exp(joint_gains[file_slices]).ravel(),
        "alone_over_full": np.exp(full_gains[file_slices]).ravel(),
        "says_nothing": regime_map.vacuous_mask[file_slices].ravel().astype(int),
        "not_covered": regime_map.uncovered_mask[file_slices].ravel().astype(int),
    }
    point_phrase = " and ".join(
        f"{map_axis.label} = {format_number(solution.get_coordinate(map_axis))}"
        for map_axis in (regime_map.x_axis, regime_map.y_axis)
    )
    has_equal_gains = np.array_equal(joint_gains, full_gains, equal_nan=True)
    regime_styles = (
        ("Train alone", Style.CUSTOMARY),
        ("Join: joint privacy only", Style.CAP),
        ("Join" if has_equal_gains else "Join: full privacy pays, too", Style.SAMPLING),
    )
    joint_border_label = "Joining begins to pay" if has_equal_gains else "Joint privacy begins to pay"
    area_items: list[Item] = [
        Regions(x, y, regime_map.regimes, regime_styles, ("bound alone : joint", np.exp(joint_gains))),
        Hatching("No guarantee here", x, y, regime_map.vacuous_mask),
        Hatching("Not covered: ε > 10 or δ ≥ 1/n", x, y, regime_map.uncovered_mask, "."),
        Border(joint_border_label, x, y, joint_gains, Style.CAP),
    ]
    if not has_equal_gains:
        area_items.append(Border("Full privacy begins to pay", x, y, full_gains, Style.SAMPLING, "dash"))
    return Plot(
        "owners-map",
        "Who should join",
        f"At {point_phrase}, your point, {CLAUSE_BY_REGIME[solution.regime]}.",
        _make_axis(regime_map.x_axis),
        _make_axis(regime_map.y_axis),
        (*area_items, _mark_person(solution)),
        solution.disclosure,
        file_columns,
        is_main=True,
    )


def _mark_person(solution: OwnersSolution) -> Mark:
    """Build the mark of the person's point; if that is outside the map, the mark is at the nearest edge."""
    map_axes = (solution.regime_map.x_axis, solution.regime_map.y_axis)
    coordinate_by_axis = {map_axis: solution.get_coordinate(map_axis) for map_axis in map_axes}
    x, y = (float(np.clip(coordinate_by_axis[map_axis], *RANGE_BY_AXIS[map_axis])) for map_axis in map_axes)
    if [x, y] == list(coordinate_by_axis.values()):
        return Mark("You", x, y, Style.ENTERED, "square", label="You")
    hover_lines = (f"{map_axis.label}: {format_number(c)}" for map_axis, c in coordinate_by_axis.items())
    hover_text = "<br>".join(("In fact:", *hover_lines))
    return Mark("You (outside the map)", x, y, Style.ENTERED, "square-open", hover_text=hover_text)


def plot_bounds(solution: OwnersSolution) -> Plot:
    """Plot the bound of every setting over the number of owners."""
    spaced_numbers = np.geomspace(*RANGE_BY_AXIS[MapAxis.OWNERS], NUM_CURVE_POINTS)
    owner_numbers = np.unique(np.r_[spaced_numbers, solution.collaboration.owners])
    scaled_collaboration = solution.collaboration.replace(owners=owner_numbers)
    alone_bounds, no_privacy_bounds, joint_bounds, full_bounds = (
        np.broadcast_to(compute_bound(scaled_collaboration), owner_numbers.shape)
        for compute_bound in BOUND_FUNCTION_BY_SETTING.values()
    )
    bounds_on_axis = np.r_[alone_bounds, no_privacy_bounds, solution.trivial_bound]
    bound_limits = float(bounds_on_axis.min()), 4.0 * float(bounds_on_axis.max())
    x = Column("owners", owner_numbers)
    num_owners = solution.get_coordinate(MapAxis.OWNERS)
    return Plot(
        "owners-bounds",
        "Bounds against the number of owners",
        "All bounds but that of working alone fall with the number of owners.",
        _make_axis(MapAxis.OWNERS),
        Axis("bound on the excess loss", "", bound_limits, number_format=",.3~g"),
        (
            Curve("Alone", x, Column("alone", alone_bounds), Style.ENTERED),
            Curve("Together, no privacy", x, Column("no_privacy", no_privacy_bounds), Style.SAMPLING),
            Curve("Together, joint privacy", x, Column("joint_privacy", joint_bounds), Style.CAP),
            Curve("Together, full privacy", x, Column("full_privacy", full_bounds), Style.PRIVACY),
            Level("Above: nothing is said", solution.trivial_bound),
            Mark("You", num_owners, solution.bound_joint, Style.ENTERED, "square", label="You"),
        ),
        solution.disclosure,
        height=420,
    )


def plot_cap(solution: OwnersSolution, dataset: Dataset) -> Plot:
    """Plot the bound of joint privacy over the cap per owner, with whole owners protected."""
    histogram, cap_choice = dataset.histogram, solution.cap_choice
    largest_size = max(float(histogram.max_size), 2.0)
    marked_caps = [] if cap_choice is None else [float(cap_choice.cap)]
    spaced_caps = np.rint(build_log_grid(1.0, largest_size, NUM_CURVE_POINTS, extra_points=marked_caps))
    caps = np.unique(np.clip(spaced_caps, 1, largest_size))
    collaboration = solution.parameters.build_collaboration()
    sampling_parts, privacy_parts = regimes.split_bound(histogram, caps, collaboration)
    cap_bounds = sampling_parts + privacy_parts
    privacy_floor = max(float(privacy_parts.min()), float(cap_bounds.min()) / 30.0)
    lowest_limit = min(float(sampling_parts.min()), privacy_floor)
    description = "The bound against the cap."
    items: list[Item] = [
        Curve("Bound, whole owners protected", caps, cap_bounds, Style.CAP),
        Curve("its sampling part", caps, sampling_parts, Style.SAMPLING),
        Curve("its privacy part", caps, privacy_parts, Style.PRIVACY),
    ]
    if cap_choice is not None:
        items.append(Mark("Best bound on records", cap_choice.cap, cap_choice.joint_bound, Style.SMOOTH))
        description = f"The bound is smallest at {format_count(cap_choice.cap, 'record')} per owner."
    unit, axis_title, cap_limits = "records per owner", "Cap τ, records per owner", (1.0, largest_size)
    kept_records = np.asarray(histogram.count_kept_rows(caps), dtype=np.float64)
    return Plot(
        "owners-cap",
        "Records kept of each owner",
        description,
        Axis("cap τ", unit, cap_limits, title=axis_title, number_format=",.3~g"),
        Axis("bound on the excess loss", "", (lowest_limit, float(cap_bounds.max())), number_format=",.3~g"),
        items,
        dataset.provenance,
        {"cap": caps, "bound": cap_bounds, "sampling_part": sampling_parts, "kept_records": kept_records},
        height=420,
    )


TITLE = "Accuracy by training"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
TEXTS_BY_FORM = {
    Form.FULL: ("full privacy", "In the paper's table 1 it is above for every n."),
    Form.SEPARATE: ("working alone", "In the paper's table 1 it is above from n = 256 on."),
}
NAME_BY_UNIT = {Unit.RECORD: "one record", Unit.USER: "one user", Unit.OWNER: "a whole owner"}


def list_lines(result: StudyResult) -> list[tuple[str, str, Form, int]]:
    """List (name, column name, form, index of ε) of each line: private forms at every ε, others once with 0."""
    lines = []
    for form, (form_name, *_) in STYLE_BY_FORM.items():
        if not form.is_private:
            lines.append((form_name, form.value, form, 0))
            continue
        for epsilon_index, epsilon in enumerate(result.study.epsilons):
            column_name = f"{form.value}_epsilon_{format_digits(epsilon)}"
            lines.append((f"{form_name}, ε = {format_entered(epsilon)}", column_name, form, epsilon_index))
    return lines


def build_columns(result: StudyResult) -> dict[str, FloatArray]:
    """Build the columns of the plot's file by name.

    They are the numbers of owners, and of each line the mean, smallest and largest test accuracy over runs, shape
    (owners,).
    """
    columns: dict[str, FloatArray] = {"owners": np.array(result.study.numbers_of_owners, dtype=np.float64)}
    for _, column_name, form, epsilon_index in list_lines(result):
        accuracies_by_run = result.accuracies_by_form[form][epsilon_index]
        # The extremes are NaN only where nothing ran.
        columns |= {
            column_name: result.average_accuracies(form)[epsilon_index],
            f"{column_name}_smallest": np.fmin.reduce(accuracies_by_run, axis=1),
            f"{column_name}_largest": np.fmax.reduce(accuracies_by_run, axis=1),
        }
    return columns


def plot_accuracy(
    result: StudyResult, disclosure: Provenance = Disclosure.PUBLIC, has_paper: bool = True
) -> Plot:
    """Plot test accuracy over the number of owners; with a single number, a bar for each form.

    ``has_paper`` adds sentences on the paper's tables to the plot's description.
    """
    columns, owner_numbers = build_columns(result), result.study.numbers_of_owners
    items: list[Item] = []
    smallest_mean = 1.0
    for line_name, column_name, form, epsilon_index in list_lines(result):
        mean_accuracies = columns[column_name]
        if np.isnan(mean_accuracies).all():
            continue
        smallest_mean = min(smallest_mean, float(np.nanmin(mean_accuracies)))
        _, line_style, line_symbol = STYLE_BY_FORM[form]
        item_options: dict[str, Any] = {}
        if len(result.study.seeds) > 1:
            item_options["low_ends"] = columns[f"{column_name}_smallest"]
            item_options["high_ends"] = columns[f"{column_name}_largest"]
        if len(owner_numbers) == 1:
            item_options |= {"is_unnamed": True, "gap_share": 0.2, "is_overlaid": True}
            items.insert(0, Bars(line_name, mean_accuracies, [line_name], line_style, **item_options))
        else:
            line_dash = DASHES[epsilon_index] if form.is_private else "longdash"
            item_options |= {"dash": line_dash, "width": 2.0, "symbol": line_symbol}
            items.append(Curve(line_name, columns["owners"], mean_accuracies, line_style, **item_options))
    lowest_tick = max(math.floor(10.0 * smallest_mean - 0.3) / 10.0, 0.0)
    owner_limits = min(owner_numbers) / 1.15, max(owner_numbers) * 1.15
    owner_ticks = tuple((n, format_number(n)) for n in owner_numbers)
    x_axis = Axis("owners, n", "", owner_limits, number_format=",", named_ticks=owner_ticks)
    y_axis = share_axis("test accuracy", (lowest_tick, 1.0), number_format=".1%")
    if len(owner_numbers) == 1:
        x_axis, y_axis = replace(y_axis, limits=(0.0, 1.0)), names_axis("form", " ")
    return Plot(
        "owners-accuracy",
        "Accuracy against the number of owners",
        " ".join(
            f"{heading}: {sentence}" for heading, sentence in write_directions(result, has_paper).items()
        )
        or "Nothing has run yet.",
        x_axis,
        y_axis,
        items,
        disclosure,
        columns,
        height=420,
    )


def write_directions(result: StudyResult, has_paper: bool = True) -> dict[str, str]:
    """Write how often joint privacy is more accurate than other forms: sentences by heading.

    Args:
        result: Accuracies.
        has_paper: True if the paper's figures stand beside; not for records of one's own.
    """
    sentence_by_heading, owner_numbers = dict[str, str](), result.study.numbers_of_owners
    for other_form, (form_name, paper_sentence) in TEXTS_BY_FORM.items():
        accuracy_signs = result.compare_forms(Form.JOINT, other_form)
        num_compared_pairs = int(np.isfinite(accuracy_signs).sum())
        if not num_compared_pairs:
            continue
        num_above, num_below = int((accuracy_signs == 1.0).sum()), int((accuracy_signs == -1.0).sum())
        count_phrase = f"above in {num_above} of {num_compared_pairs} pairs of ε and n, below in {num_below}."
        comparison_sentences = f"{count_phrase} {paper_sentence}" if has_paper else count_phrase
        sentence_by_heading[f"Joint privacy against {form_name}"] = comparison_sentences
    accuracy_gains = result.average_accuracies(Form.JOINT) - result.average_accuracies(Form.FULL)
    if len(owner_numbers) > 1 and np.isfinite(accuracy_gains).all():
        first_gain, *_, last_gain = accuracy_gains.mean(axis=0)
        sentence_by_heading["The gain of joint over full privacy"] = (
            f"{first_gain:.3f} at n = {owner_numbers[0]} and {last_gain:.3f} at n = {owner_numbers[-1]}; in the "
            "paper (section 4.1.2) it grows."
        )
    return sentence_by_heading


def tabulate_accuracy(result: StudyResult) -> pd.DataFrame:
    """Tabulate mean test accuracies, a row per line of the plot, a column per number of owners."""
    import pandas as pd

    columns_by_name = build_columns(result)
    accuracies_by_line = {
        line_name: columns_by_name[column_name] for line_name, column_name, *_ in list_lines(result)
    }
    return pd.DataFrame(accuracies_by_line, index=[f"n = {n}" for n in result.study.numbers_of_owners]).T


def write_settings(result: StudyResult) -> str:
    """Write sentences on how the models were trained and tested, and the ε if a unit is replaced."""
    study, training_options = result.study, result.study.training_options
    replaced_epsilon_clauses = [
        f"ε = {format_entered(epsilon)} is ε = {format_rounded_up(compute_replaced_epsilon(epsilon, study.delta), 3)}"
        for epsilon in study.epsilons
    ]
    return (
        f"{format_number(result.num_records)} training and {format_number(result.num_tests)} test records; "
        f"{format_number(result.num_parameters)} shared, as many personal parameters. Full privacy is W, joint W with "
        f"V, alone V. {format_count(len(study.seeds), 'run')}; whiskers show the extremes. {training_options.steps} "
        f"full-batch steps, gradients clipped to {format_entered(training_options.clip)}, both chosen on other "
        "seeds. ε is for a unit whose records are zeroed, while the numbers of records and units are public. For a "
        f"unit that is replaced, as in the bounds, {' and '.join(replaced_epsilon_clauses)} at δ = "
        f"{format_entered(study.delta)}."
    )


@dataclass(frozen=True, eq=False)
class TrainingCard:
    """The card and the plot of a training that has ended.

    Attributes:
        result: Its accuracies, with the settings that they are for.
        disclosure: Of the records behind them.
        has_paper: True if the paper's figures stand beside; not for records of one's own.
    """

    result: StudyResult
    disclosure: Provenance
    has_paper: bool

    @property
    def is_private(self) -> bool:
        """Return True if the accuracies must not be published."""
        return self.disclosure is Disclosure.PRIVATE

    @property
    def plot(self) -> Plot:
        """Plot test accuracy over the number of owners."""
        return plot_accuracy(self.result, self.disclosure, self.has_paper)

    @property
    def card(self) -> Answer:
        """Build an answer without numbers: what was trained, and how often joint privacy is the more accurate form."""
        study, share_done = self.result.study, self.result.share_done
        epsilons_text = ", ".join(format_entered(epsilon) for epsilon in study.epsilons)
        owners_text = ", ".join(format_number(n) for n in study.numbers_of_owners)
        stop_sentence = "" if share_done == 1.0 else f" It was stopped after {format_percent(share_done)}."
        unit_text = capitalise(NAME_BY_UNIT[study.unit])
        if study.unit is Unit.USER:
            unit_text += f" ({format_count(study.records_per_user, 'record')})"
        return Answer(
            headline=f"Trained on {self.result.records_name} for n = {owners_text} owners at ε = {epsilons_text}.",
            detail=f"{unit_text} is protected, at δ = {format_entered(study.delta)}.{stop_sentence} "
            f"{write_settings(self.result)} The script does not train.",
            numbers=(),
            facts=write_directions(self.result, self.has_paper),
            assumptions=(
                "Neighbouring data sets of the training differ in one unit of protection, whose records are zeroed; "
                "their numbers of records and units are public",
            ),
            disclosure=self.disclosure,
        )
