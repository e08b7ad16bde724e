"""Draws plots, figures of papers, and the sections of an answer."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from dpcore.answer import section
from dpcore.answer.answer import Answer
from dpcore.answer.paper_figure import FigureRuns, PaperFigure, build_plot, describe_difference, list_claims
from dpcore.answer.plot import Axis, Plot, Scale
from dpcore.common import wording
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Stage
from dpcore.report import content as report_content
from pages.shared.base import cache, catalogue, keys
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.data import uploads
from pages.shared.fields import fields, jobs, setting
from pages.shared.figures import figures
from pages.shared.session import session

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def show_plot(
    plot: Plot,
    keeps_x: bool = False,
    label: str = "",
    get_field_key: Callable[[str], str] | None = None,
    keeps_y: bool = False,
) -> Plot:
    """Draw a plot with a button for its data, and controls for the ends of log axes; return it as it is drawn.

    Args:
        plot: The plot; its logarithmic axes have controls.
        keeps_x: True if the horizontal axis follows that of another figure.
        label: As in `figures.draw_plot`.
        get_field_key: As in `figures.draw_plot`.
        keeps_y: True if the vertical axis stays as it is.
    """
    key = plot.key.replace("-", "_")
    axes_by_name = ({} if keeps_x else {"x": plot.x}) | ({} if keeps_y else {"y": plot.y})
    axes_by_name = {name: axis for name, axis in axes_by_name.items() if axis.scale is Scale.LOG}
    if not axes_by_name:
        figures.draw_plot(plot, label, get_field_key)
        return plot
    button_text = "Axis ranges" if len(axes_by_name) > 1 else "Axis range"
    with place_controls(f"{key}_ranges", button_text) as (chart, controls):
        limits_by_axis = {name: choose_limits(axis, f"{key}_{name}") for name, axis in axes_by_name.items()}
    if any(ends != axes_by_name[name].limits for name, ends in limits_by_axis.items()):
        plot = plot.with_limits(**limits_by_axis)
    figures.draw_plot(plot, label, get_field_key, controls, chart)
    if hidden_marks := plot.hidden_marks:
        names = " and ".join(mark.name[0].lower() + mark.name[1:] for mark in hidden_marks)
        # An axis without a control of its own stays as it is.
        pairs = itertools.product(hidden_marks, axes_by_name)
        can_widen = any(not getattr(plot, axis).contains(getattr(mark, axis)) for mark, axis in pairs)
        chart.caption(f"Outside the axes: {names}.{f' *{button_text}* widens them.' if can_widen else ''}")
    return plot


def choose_limits(axis: Axis, key: str) -> tuple[float, float]:
    """Draw a control for the ends of a logarithmic axis, and return (from, to), from < to, as they are chosen.

    With other data an axis begins anew. If it follows curves that move, the choice stays.
    """
    data_version = st.session_state[keys.DATA_VERSION]
    key, saved_key = f"{key}_{axis.limits}_{data_version}", f"{key}_kept_{data_version}"
    low, high = axis.limits
    lowest, highest = axis.limits_range or (low / ROOM, high * ROOM)
    stops = list_stops(min(lowest, low), max(highest, high))
    first_stop = max(stop for stop in stops if stop <= low * (1 + 1e-9))
    last_stop = min(stop for stop in stops if stop >= high * (1 - 1e-9))
    # The default goes in by value: only from its being a pair does the slider know that it has two handles.
    default_ends = (first_stop, last_stop if last_stop > first_stop else stops[stops.index(first_stop) + 1])
    state = st.session_state
    saved_ends = state.get(saved_key)
    if saved_ends is not None and key not in state and set(saved_ends) <= set(stops):
        # Before the widget is drawn: afterwards Streamlit lets nobody set what it holds.
        state[key] = saved_ends
    label = wording.capital(axis.name) + (f", {axis.unit}" if axis.unit else "")
    format_stop = wording.percent if axis.number_format.endswith("%") else "{:,.12g}".format
    low, high = st.select_slider(
        label, stops, default_ends, key=key, format_func=format_stop, persist_state="session"
    )
    state[saved_key] = (low, high) if (low, high) != default_ends else None
    if low < high:
        return low, high
    low_index = stops.index(low)
    return (low, stops[low_index + 1]) if low_index + 1 < len(stops) else (stops[low_index - 1], low)


ROOM = 100.0
"""Factor by which the ends of an axis may go beyond its limits, if the axis itself does not say how far."""
STEPS = (1.0, 2.0, 5.0)


def list_stops(low: float, high: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times powers of ten from at most ``low`` to at least ``high``, both above 0."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    stops = [factor * 10.0**exponent for exponent in exponents for factor in STEPS]
    first_index = max((i for i, stop in enumerate(stops) if stop <= low * (1 + 1e-9)), default=0)
    last_index = min((i for i, stop in enumerate(stops) if stop >= high * (1 - 1e-9)), default=len(stops) - 1)
    return tuple(float(f"{stop:.0e}") for stop in stops[first_index : last_index + 1])


@contextlib.contextmanager
def place_controls(key: str, button_text: str) -> Iterator[tuple[DeltaGenerator, DeltaGenerator]]:
    """Make a place for a figure and one for what stands below it; a popover there holds what is drawn within.

    Args:
        key: The key of the popover, unique on the page.
        button_text: The text on its button.

    Yields:
        The place of the figure, and the place below it.
    """
    chart = st.container()
    controls = st.container(horizontal=True, vertical_alignment="center")
    with controls.popover(button_text, icon=":material/straighten:", key=key):
        yield chart, controls


def find_newest_runs(figure: PaperFigure) -> FigureRuns:
    """Return the runs that were computed in this session, or else those that come with the app."""
    _, runs = jobs.find_result(_build_paper_job_key(figure.key)) or (None, None)
    return figure.stored_runs if runs is None else runs


def show_paper_figure(paper_figures: Sequence[PaperFigure], state_key: str = "") -> None:
    """Show a figure in a tab: heading, plot, differences, and the button that computes it now.

    The person's settings do not change it. ``state_key`` holds which of several figures is shown.
    """
    figure = paper_figures[0]
    if len(paper_figures) > 1:
        names_by_key = {figure.key: figure.item_name for figure in paper_figures}
        st.session_state.setdefault(state_key, figure.key)
        selected_key = fields.draw_choice("Of the paper", names_by_key, state_key)
        figure = next(figure for figure in paper_figures if figure.key == selected_key)
    runs = find_newest_runs(figure)
    st.markdown(f"**The paper's setting. {figure.name}: {figure.title}**")
    figures.draw_plot(build_plot(figure, runs))
    describe_paper_figure(figure, runs)
    draw_compute_button(figure)


def describe_paper_figure(figure: PaperFigure, runs: FigureRuns) -> None:
    """Show how far our results lie from the paper's and why, its claims, the setting, and where ours come from."""
    st.markdown(f"{describe_difference(figure, runs)} {figure.difference_note}")
    if figure.claims:
        st.markdown(
            "\n- ".join(["The paper's text about it, and whether ours agree:\n", *list_claims(figure, runs)])
        )
    runs_text = wording.counted(len(runs.seeds), "run")
    origin_text = f"Stored results of {runs.version}" if runs.version else "Computed in this session"
    bars_phrase = "" if figure.ignores_seed else f", {runs_text}; bars are 95 % intervals of their mean"
    st.caption(f"{figure.setting_text} {origin_text}{bars_phrase}.")
    cards.draw_label(Disclosure.PUBLIC)


def draw_compute_button(figure: PaperFigure) -> None:
    """Draw the button that computes the figure anew as work beside the page, its progress, or what it lacks."""
    if figure.run_once is None:
        st.caption("The paper's own data do not come with the app: see `docs/papers_data.md`.")
        return
    job_key = _build_paper_job_key(figure.key)
    if jobs.show_progress(job_key, f"Computing {figure.item_name[0].lower()}{figure.item_name[1:]}"):
        return
    request_and_runs = jobs.find_result(job_key)
    if request_and_runs is not None and request_and_runs[1] is None:
        st.caption(":material/stop_circle: Stopped: what is shown was there before.")
    runs_text = wording.counted(len(figure.x_values) * (1 if figure.ignores_seed else figure.num_runs), "run")
    help = f"{runs_text} beside the page; they replace what is shown in this window."
    button_key = f"compute_{figure.key.replace('-', '_')}"

    def compute(progress: Callable[..., None], should_stop: Callable[[], bool]) -> FigureRuns | None:
        """Compute the figure's runs anew; None if it was stopped."""
        return figure.compute(progress=progress, should_stop=should_stop)

    start_job = functools.partial(jobs.start_job, job_key, figure.key, compute, is_heavy=True)
    fields.draw_button("Compute it now", button_key, "play_arrow", start_job, help=help)


def _build_paper_job_key(key: str) -> str:
    """Return the session key of the work on a figure."""
    return f"paper_job_{key.replace('-', '_')}"


def list_contents(renderer: Renderer, sections: Mapping[str, Any], tabs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of each tab by its name: those that the page draws itself, and the answer's sections."""

    def build_content(name: str, section_or_group: Any) -> Any:
        """Build the content of a tab: a function that draws a section, or inner tabs by name."""
        if isinstance(section_or_group, Mapping):
            return list_contents(renderer, section_or_group, {}) | tabs.get(name, {})
        return lambda: renderer.show(section_or_group)

    return {**tabs, **{name: build_content(name, entry) for name, entry in sections.items()}}


@dataclass(frozen=True)
class Renderer:
    """Draws the sections of one answer.

    Attributes:
        question: The question of the page.
        answer: The answer.
        data: What it is about.
        main_plot: The main figure as it is drawn; None if there is none.
        label: What stands above the figures; empty for nothing.
        is_final: False if another answer will replace this one.
        is_shared: True if everybody has these data, so that all sessions share the results.
    """

    question: Question
    answer: Answer
    data: Any
    main_plot: Plot | None = None
    label: str = ""
    is_final: bool = True
    is_shared: bool = False

    def show(self, content: section.Section) -> None:
        """Draw a section; the problems of an input that it refuses stand below what it has drawn."""
        try:
            section.walk(content(self.answer, self.data), self._draw)
        except InvalidInput as error:
            fields.show_problems(error.problems)

    def _draw(self, part: section.Part) -> Any:
        """Draw a part; return what a section asks it for, such as a chosen value or a result; None of other parts."""
        match part:
            case str():
                st.markdown(part)
            case section.Note(text, icon):
                st.info(text, icon=f":material/{icon}:") if icon else st.caption(text)
            case section.Label(disclosure, after):
                cards.draw_label(self.answer.disclosure if disclosure is None else disclosure, prefix=after)
            case Plot():
                figures.draw_plot(part, self.label)
            case section.Live(draw):
                st.fragment(lambda: figures.draw_plot(draw(), self.label), run_every=jobs.POLL_SECONDS)()
            case section.Figures():
                self._draw_figures(part)
            case section.Table():
                self._draw_table(part)
            case section.Numbers(numbers):
                with st.container(horizontal=True):
                    options: dict[str, Any] = {"delta_color": "off", "delta_arrow": "off"}
                    for number in numbers:
                        st.metric(number.label, number.text, number.note, help=number.help or None, **options)
            case section.File():
                self._draw_file(part)
            case section.Fields(names, shares):
                fields.draw_field_row(self.question, *names, shares=shares)
            case section.Choice():
                key = self.question.get_key(part.key)
                if st.session_state.get(key) not in part.texts_by_value:
                    st.session_state[key] = part.first_value
                return fields.draw_choice(part.label, part.texts_by_value, key)
            case section.Integer(key, label, limits, initial, step, help):
                st.session_state.setdefault(self.question.get_key(key), initial)
                return fields.draw_whole_number(label, self.question.get_key(key), *limits, step, help)
            case section.Window():
                return self._draw_window(part)
            case section.Missing(needed, remedy):
                st.info(session.explain_missing(self.data, needed), icon=":material/info:")
                session.draw_data_link(remedy)
            case section.Proposal(label, icon, settings):
                key = f"{self.question.name}_{'_'.join(settings)}_use"
                fields.draw_button(label, key, icon, setting.enter_values, settings)
            case section.PrivateRange():
                cards.offer_range(self.data)
            case section.ItemNames(noun):
                uploads.show_item_names_upload(self.question, self.data, f"{noun}s")
                return uploads.list_task_names(self.data, noun)
            case section.Row(parts):
                with st.container(horizontal=True, vertical_alignment="center"):
                    section.walk(parts, self._draw)
            case section.Link(page, label, icon):
                st.page_link(catalogue.find_page(page).page_path, label=label, icon=f":material/{icon}:")
            case section.Columns(columns):
                for container, column in zip(st.columns(len(columns), gap="large"), columns, strict=True):
                    with container:
                        section.walk(column, self._draw)
            case section.PaperFigures(paper_figures):
                st.divider()
                state_key = self.question.get_key("paper_figure") if len(paper_figures) > 1 else ""
                show_paper_figure(paper_figures, state_key)
            case section.Cached():
                return cache.compute_cached(part)
            case section.Search():
                return self._draw_search(part)
        return None

    def _draw_window(self, part: section.Window) -> tuple[float, float]:
        """Draw a plot over the interval of a slider and return it; the initial interval if the slider's ends meet."""
        with place_controls(part.key, part.button_text) as (chart, controls):
            low, high = st.slider(
                part.label,
                *part.widest_interval,
                value=part.initial_interval,
                step=(part.widest_interval[1] - part.widest_interval[0]) / 1000.0,
                format="%.4g",
                key=f"{part.key}_{st.session_state[keys.DATA_VERSION]}_{part.widest_interval}",
            )
        limits = (low, high) if low < high else part.initial_interval
        figures.draw_plot(part.draw(limits), self.label, button_place=controls, figure_place=chart)
        return limits

    def _draw_figures(self, part: section.Figures) -> None:
        """Draw plots beside each other, with controls of their axes if the part asks for them."""
        limits_by_axis = {axis: getattr(self.main_plot, axis).limits for axis in part.axes_with_main_limits}
        plots = [plot.with_limits(**limits_by_axis) for plot in part.plots]
        axis_names = part.controlled_axes
        if len(plots) == 1 and axis_names:
            show_plot(plots[0], "x" not in axis_names, self.label, keeps_y="y" not in axis_names)
            return
        containers = st.columns(len(plots))
        if axis_names:
            key = plots[0].key.replace("-", "_")
            with st.popover("Axis ranges", icon=":material/straighten:", key=f"{key}_ranges"):
                x_limits = choose_limits(plots[0].x, f"{key}_x")  # All have one horizontal axis.
                plots = [
                    p.with_limits(x_limits, choose_limits(p.y, f"{p.key}_y".replace("-", "_"))) for p in plots
                ]
        for container, plot in zip(containers, plots, strict=True):
            with container:
                if part.has_titles:
                    st.markdown(f"**{plot.title}**")
                figures.draw_plot(plot, self.label)

    def _draw_table(self, part: section.Table) -> None:
        """Draw a table: as static text if it has formulae, else as `figures.show_table` does."""
        import pandas as pd  # The first figure does not wait for it.

        frame = pd.DataFrame(part.columns_or_rows)
        if part.has_formulae:
            st.table(frame, hide_index=True)
            return
        height = "content" if part.shows_all_rows else "auto"
        figures.show_table(
            frame, part.alt, part.key or None, part.formats_by_column, part.titles_by_column, height=height
        )

    def _draw_file(self, part: section.File) -> None:
        """Draw the button that downloads a file."""
        disclosure, content = part.disclosure or self.answer.disclosure, part.columns_or_writer
        has_columns = isinstance(content, Mapping)
        if isinstance(content, Mapping):
            # Now: the file is made at a press of its button.
            notes = figures.list_public_inputs(figures.get_answered_parameters())
            content = functools.partial(report_content.write_columns, content, disclosure, notes)
        key = part.name.replace(".", "_")
        cards.draw_file_button(
            part.label, part.name, disclosure, content, key=key, is_quiet=has_columns, help=part.help
        )

    def _draw_search(self, part: section.Search) -> Any:
        """Draw the button of a search, or start one without a button, and its progress; return its result.

        Return None if it has none to show; a result for earlier settings is shown only if the part says so.
        """
        search_run = jobs.SearchRun(self.question, part, self.data, self.is_shared)
        key = search_run.job_key.replace(".", "_")
        if part.button_text:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                fields.draw_fields(self.question, *part.field_names)
                if fields.draw_button(part.button_text, f"{key}_start", part.icon, is_main=part.is_main):
                    search_run.start()
                    if search_run.get_result().stage is Stage.FINAL:
                        st.rerun()  # The answer above may read the result.
        elif not self.is_final:
            st.caption("The figure follows the exact answer.")
            return None
        else:
            search_run.start_if_needed()
        is_running = jobs.show_progress(search_run.job_key, part.progress_text, part.is_measured)
        search_result = search_run.get_result()
        if search_result.value is None or (is_running and search_result.stage is not Stage.FIRST):
            if part.idle_text and not is_running:
                st.caption(part.idle_text)
            return None
        if search_result.stage is Stage.EARLIER:
            st.caption(part.outdated_text)
            return search_result.value if part.shows_outdated else None
        if not is_running and (stop_text := part.describe_stop(search_result.value)):
            st.warning(stop_text, icon=":material/stop_circle:")
            fields.draw_button("Compute again", f"{key}_again", "refresh", search_run.forget)
        return search_result.value
