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
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.common.progress import Stage
from dpcore.common.wording import capitalise, format_count, format_percent
from dpcore.report import content as report_content
from pages.shared.base import cache, catalogue, keys
from pages.shared.base.question import Question
from pages.shared.card import cards
from pages.shared.data import uploads
from pages.shared.fields import fields, jobs, searches, setting
from pages.shared.figures import figures
from pages.shared.session import session

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def show_plot(
    plot: Plot,
    keeps_x: bool = False,
    label_text: str = "",
    get_field_key: Callable[[str], str] | None = None,
    keeps_y: bool = False,
) -> Plot:
    """Draw a plot with a button for its data, and controls for the ends of log axes; return it as it is drawn.

    Args:
        plot: The plot; its logarithmic axes have controls.
        keeps_x: True if the horizontal axis follows that of another figure.
        label_text: As in `figures.draw_plot`.
        get_field_key: As in `figures.draw_plot`.
        keeps_y: True if the vertical axis stays as it is.
    """
    figure_key = plot.key.replace("-", "_")
    axes_by_name = ({} if keeps_x else {"x": plot.x}) | ({} if keeps_y else {"y": plot.y})
    axes_by_name = {axis_name: axis for axis_name, axis in axes_by_name.items() if axis.scale is Scale.LOG}
    if not axes_by_name:
        figures.draw_plot(plot, label_text, get_field_key)
        return plot
    button_text = "Axis ranges" if len(axes_by_name) > 1 else "Axis range"
    with place_controls(f"{figure_key}_ranges", button_text) as (figure_slot, controls_slot):
        limits_by_axis = {
            axis_name: draw_limits_control(axis, f"{figure_key}_{axis_name}")
            for axis_name, axis in axes_by_name.items()
        }
    if any(
        axis_limits != axes_by_name[axis_name].limits for axis_name, axis_limits in limits_by_axis.items()
    ):
        plot = plot.with_limits(limits_by_axis.get("x"), limits_by_axis.get("y"))
    figures.draw_plot(plot, label_text, get_field_key, controls_slot, figure_slot)
    if hidden_marks := plot.hidden_marks:
        mark_names_text = " and ".join(mark.name[0].lower() + mark.name[1:] for mark in hidden_marks)
        # An axis without a control of its own stays as it is.
        marks_and_axes = itertools.product(hidden_marks, axes_by_name)
        can_widen = any(
            not getattr(plot, axis).contains(getattr(mark, axis)) for mark, axis in marks_and_axes
        )
        figure_slot.caption(
            f"Outside the axes: {mark_names_text}.{f' *{button_text}* widens them.' if can_widen else ''}"
        )
    return plot


def draw_limits_control(axis: Axis, widget_key: str) -> tuple[float, float]:
    """Draw a control for the ends of a logarithmic axis, and return (from, to), from < to, as they are chosen.

    With other data an axis begins anew. If it follows curves that move, the choice stays.
    """
    data_version = st.session_state[keys.DATA_VERSION]
    widget_key, saved_key = f"{widget_key}_{axis.limits}_{data_version}", f"{widget_key}_kept_{data_version}"
    low_end, high_end = axis.limits
    lowest, highest = axis.settable_range or (low_end / AXIS_ROOM, high_end * AXIS_ROOM)
    stops = list_stops(min(lowest, low_end), max(highest, high_end))
    first_stop = max(stop for stop in stops if stop <= low_end * (1 + 1e-9))
    last_stop = min(stop for stop in stops if stop >= high_end * (1 - 1e-9))
    # The default goes in by value: only from its being a pair does the slider know that it has two handles.
    default_limits = (first_stop, last_stop if last_stop > first_stop else stops[stops.index(first_stop) + 1])
    state = st.session_state
    saved_limits = state.get(saved_key)
    if saved_limits is not None and widget_key not in state and set(saved_limits) <= set(stops):
        # Before the widget is drawn: afterwards Streamlit lets nobody set what it holds.
        state[widget_key] = saved_limits
    axis_label = capitalise(axis.name) + (f", {axis.unit}" if axis.unit else "")
    format_stop = format_percent if axis.number_format.endswith("%") else "{:,.12g}".format
    low_end, high_end = st.select_slider(
        axis_label, stops, default_limits, key=widget_key, format_func=format_stop, persist_state="session"
    )
    state[saved_key] = (low_end, high_end) if (low_end, high_end) != default_limits else None
    if low_end < high_end:
        return low_end, high_end
    lower_index = stops.index(low_end)
    return (
        (low_end, stops[lower_index + 1])
        if lower_index + 1 < len(stops)
        else (stops[lower_index - 1], low_end)
    )


AXIS_ROOM = 100.0
"""Factor by which the ends of an axis may go beyond its limits, if the axis itself does not say how far."""
STOP_FACTORS = (1.0, 2.0, 5.0)


def list_stops(low_end: float, high_end: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times powers of ten from at most ``low_end`` to at least ``high``, both above 0."""
    exponents = range(math.floor(math.log10(low_end)), math.ceil(math.log10(high_end)) + 1)
    stops = [factor * 10.0**exponent for exponent in exponents for factor in STOP_FACTORS]
    first_index = max((i for i, stop in enumerate(stops) if stop <= low_end * (1 + 1e-9)), default=0)
    last_index = min(
        (i for i, stop in enumerate(stops) if stop >= high_end * (1 - 1e-9)), default=len(stops) - 1
    )
    return tuple(float(f"{stop:.0e}") for stop in stops[first_index : last_index + 1])


@contextlib.contextmanager
def place_controls(popover_key: str, button_text: str) -> Iterator[tuple[DeltaGenerator, DeltaGenerator]]:
    """Make a place for a figure and one for what stands below it; a popover there holds what is drawn within.

    Args:
        popover_key: The key of the popover, unique on the page.
        button_text: The text on its button.

    Yields:
        The place of the figure, and the place below it.
    """
    figure_slot = st.container()
    controls_slot = st.container(horizontal=True, vertical_alignment="center")
    with controls_slot.popover(button_text, icon=":material/straighten:", key=popover_key):
        yield figure_slot, controls_slot


def find_newest_runs(figure: PaperFigure) -> FigureRuns:
    """Return the runs that were computed in this session, or else those that come with the app."""
    _, newest_runs = jobs.find_result(_build_paper_job_key(figure.key)) or (None, None)
    return figure.stored_runs if newest_runs is None else newest_runs


def show_paper_figure(paper_figures: Sequence[PaperFigure], choice_key: str = "") -> None:
    """Show a figure in a tab: heading, plot, differences, and the button that computes it now.

    The person's settings do not change it. ``choice_key`` holds which of several figures is shown.
    """
    figure = paper_figures[0]
    if len(paper_figures) > 1:
        item_name_by_key = {figure.key: figure.item_name for figure in paper_figures}
        st.session_state.setdefault(choice_key, figure.key)
        selected_key = fields.draw_choice("Of the paper", item_name_by_key, choice_key)
        figure = next(figure for figure in paper_figures if figure.key == selected_key)
    figure_runs = find_newest_runs(figure)
    st.markdown(f"**The paper's setting. {figure.name}: {figure.title}**")
    figures.draw_plot(build_plot(figure, figure_runs))
    describe_paper_figure(figure, figure_runs)
    draw_compute_button(figure)


def describe_paper_figure(figure: PaperFigure, figure_runs: FigureRuns) -> None:
    """Show how far our results lie from the paper's and why, its claims, the setting, and where ours come from."""
    st.markdown(f"{describe_difference(figure, figure_runs)} {figure.difference_note}")
    if figure.claims:
        st.markdown(
            "\n- ".join(
                ["The paper's text about it, and whether ours agree:\n", *list_claims(figure, figure_runs)]
            )
        )
    runs_text = format_count(len(figure_runs.seeds), "run")
    origin_text = (
        f"Stored results of {figure_runs.version}" if figure_runs.version else "Computed in this session"
    )
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
    runs_text = format_count(len(figure.x_values) * (1 if figure.ignores_seed else figure.num_runs), "run")
    help_text = f"{runs_text} beside the page; they replace what is shown in this window."
    button_key = f"compute_{figure.key.replace('-', '_')}"

    def compute_runs(progress: Callable[..., None], should_stop: Callable[[], bool]) -> FigureRuns | None:
        """Compute the figure's runs anew; None if it was stopped."""
        return figure.compute(progress=progress, should_stop=should_stop)

    start_job = functools.partial(jobs.start_job, job_key, figure.key, compute_runs, is_heavy=True)
    fields.draw_button("Compute it now", button_key, "play_arrow", start_job, help=help_text)


def _build_paper_job_key(figure_key: str) -> str:
    """Return the session key of the work on a figure."""
    return f"paper_job_{figure_key.replace('-', '_')}"


def list_contents(
    renderer: Renderer, sections_by_tab: Mapping[str, Any], own_content_by_tab: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the content of each tab by its name: those that the page draws itself, and the answer's sections."""

    def build_content(tab_name: str, section_or_group: Any) -> Any:
        """Build the content of a tab: a function that draws a section, or inner tabs by name."""
        if isinstance(section_or_group, Mapping):
            return list_contents(renderer, section_or_group, {}) | own_content_by_tab.get(tab_name, {})
        return lambda: renderer.show(section_or_group)

    return {
        **own_content_by_tab,
        **{
            tab_name: build_content(tab_name, section_or_group)
            for tab_name, section_or_group in sections_by_tab.items()
        },
    }


@dataclass(frozen=True)
class Renderer:
    """Draws the sections of one answer.

    Attributes:
        question: The question of the page.
        answer: The answer.
        data: What it is about.
        main_plot: The main figure as it is drawn; None if there is none.
        label_text: What stands above the figures; empty for nothing.
        is_final: False if another answer will replace this one.
        is_shared: True if everybody has these data, so that all sessions share the results.
    """

    question: Question
    answer: Answer
    data: Any
    main_plot: Plot | None = None
    label_text: str = ""
    is_final: bool = True
    is_shared: bool = False

    def show(self, content: section.Section) -> None:
        """Draw a section; the problems of an input that it refuses stand below what it has drawn."""
        try:
            section.walk_parts(content(self.answer, self.data), self._draw)
        except InvalidInput as error:
            fields.show_problems(error.problems)

    def _draw(self, section_part: section.Part) -> Any:
        """Draw a part; return what a section asks it for, such as a chosen value or a result; None of other parts."""
        match section_part:
            case str():
                st.markdown(section_part)
            case section.Note(text, icon):
                st.info(text, icon=f":material/{icon}:") if icon else st.caption(text)
            case section.Label(disclosure, after):
                cards.draw_label(
                    self.answer.disclosure if disclosure is None else disclosure, text_above=after
                )
            case Plot():
                figures.draw_plot(section_part, self.label_text)
            case section.Live(draw):
                st.fragment(lambda: figures.draw_plot(draw(), self.label_text), run_every=jobs.POLL_SECONDS)()
            case section.Figures():
                self._draw_figures(section_part)
            case section.Table():
                self._draw_table(section_part)
            case section.Numbers(numbers):
                with st.container(horizontal=True):
                    metric_options: dict[str, Any] = {"delta_color": "off", "delta_arrow": "off"}
                    for number in numbers:
                        st.metric(
                            number.label, number.text, number.note, help=number.help or None, **metric_options
                        )
            case section.File():
                self._draw_file(section_part)
            case section.Fields(names, shares):
                fields.draw_field_row(self.question, *names, width_shares=shares)
            case section.Choice():
                widget_key = self.question.get_key(section_part.key)
                if st.session_state.get(widget_key) not in section_part.texts_by_value:
                    st.session_state[widget_key] = section_part.first_value
                return fields.draw_choice(section_part.label, section_part.texts_by_value, widget_key)
            case section.Integer(entry_name, label, limits, initial, step, help):
                st.session_state.setdefault(self.question.get_key(entry_name), initial)
                return fields.draw_whole_number(label, self.question.get_key(entry_name), *limits, step, help)
            case section.Window():
                return self._draw_window(section_part)
            case section.Missing(needed, remedy):
                st.info(session.explain_missing(self.data, needed), icon=":material/info:")
                session.draw_data_link(remedy)
            case section.Proposal(label, icon, settings):
                widget_key = f"{self.question.name}_{'_'.join(settings)}_use"
                fields.draw_button(label, widget_key, icon, setting.enter_values, settings)
            case section.PrivateRange():
                cards.draw_range_button(self.data)
            case section.ItemNames(noun):
                uploads.show_item_names_upload(self.question, self.data, f"{noun}s")
                return uploads.list_task_names(self.data, noun)
            case section.Row(parts):
                with st.container(horizontal=True, vertical_alignment="center"):
                    section.walk_parts(parts, self._draw)
            case section.Link(page, label, icon):
                st.page_link(catalogue.find_page(page).page_path, label=label, icon=f":material/{icon}:")
            case section.Columns(columns):
                for container, column in zip(st.columns(len(columns), gap="large"), columns, strict=True):
                    with container:
                        section.walk_parts(column, self._draw)
            case section.PaperFigures(paper_figures):
                st.divider()
                state_key = self.question.get_key("paper_figure") if len(paper_figures) > 1 else ""
                show_paper_figure(paper_figures, state_key)
            case section.Cached():
                return cache.compute_cached(section_part)
            case section.Search():
                return self._draw_search(section_part)
        return None

    def _draw_window(self, window: section.Window) -> tuple[float, float]:
        """Draw a plot over the interval of a slider and return it; the initial interval if the slider's ends meet."""
        with place_controls(window.key, window.button_text) as (figure_slot, controls_slot):
            low_end, high_end = st.slider(
                window.label,
                *window.widest_interval,
                value=window.initial_interval,
                step=(window.widest_interval[1] - window.widest_interval[0]) / 1000.0,
                format="%.4g",
                key=f"{window.key}_{st.session_state[keys.DATA_VERSION]}_{window.widest_interval}",
            )
        interval_limits = (low_end, high_end) if low_end < high_end else window.initial_interval
        figures.draw_plot(
            window.make_plot(interval_limits),
            self.label_text,
            button_slot=controls_slot,
            figure_slot=figure_slot,
        )
        return interval_limits

    def _draw_figures(self, plots_part: section.Figures) -> None:
        """Draw plots beside each other, with controls of their axes if the part asks for them."""
        limit_options = {
            f"{axis}_limits": getattr(self.main_plot, axis).limits
            for axis in plots_part.axes_with_main_limits
        }
        plots = [plot.with_limits(**limit_options) for plot in plots_part.plots]
        controlled_axis_names = plots_part.controlled_axes
        if len(plots) == 1 and controlled_axis_names:
            show_plot(
                plots[0],
                "x" not in controlled_axis_names,
                self.label_text,
                keeps_y="y" not in controlled_axis_names,
            )
            return
        containers = st.columns(len(plots))
        if controlled_axis_names:
            figure_key = plots[0].key.replace("-", "_")
            with st.popover("Axis ranges", icon=":material/straighten:", key=f"{figure_key}_ranges"):
                x_limits = draw_limits_control(plots[0].x, f"{figure_key}_x")  # All have one horizontal axis.
                plots = [
                    p.with_limits(x_limits, draw_limits_control(p.y, f"{p.key}_y".replace("-", "_")))
                    for p in plots
                ]
        for container, plot in zip(containers, plots, strict=True):
            with container:
                if plots_part.has_titles:
                    st.markdown(f"**{plot.title}**")
                figures.draw_plot(plot, self.label_text)

    def _draw_table(self, table: section.Table) -> None:
        """Draw a table: as static text if it has formulae, else as `figures.show_table` does."""
        import pandas as pd  # The first figure does not wait for it.

        table_frame = pd.DataFrame(table.columns_or_rows)
        if table.has_formulae:
            st.table(table_frame, hide_index=True)
            return
        table_height = "content" if table.shows_all_rows else "auto"
        figures.show_table(
            table_frame,
            table.alt,
            table.key or None,
            table.formats_by_column,
            table.titles_by_column,
            height=table_height,
        )

    def _draw_file(self, download: section.File) -> None:
        """Draw the button that downloads a file."""
        disclosure, columns_or_writer = (
            download.disclosure or self.answer.disclosure,
            download.columns_or_writer,
        )
        has_columns = isinstance(columns_or_writer, Mapping)
        if isinstance(columns_or_writer, Mapping):
            # Now: the file is made at a press of its button.
            note_lines = figures.list_public_inputs(figures.get_answered_parameters())
            columns_or_writer = functools.partial(
                report_content.write_columns, columns_or_writer, disclosure, note_lines
            )
        button_key = download.name.replace(".", "_")
        cards.draw_file_button(
            download.label,
            download.name,
            disclosure,
            columns_or_writer,
            button_key=button_key,
            is_quiet=has_columns,
            help_text=download.help,
        )

    def _draw_search(self, search: section.Search) -> Any:
        """Draw the button of a search, or start one without a button, and its progress; return its result.

        Return None if it has none to show; a result for earlier settings is shown only if the part says so.
        """
        search_run = searches.SearchRun(self.question, search, self.data, self.is_shared)
        search_key = search_run.job_key.replace(".", "_")
        if search.button_text:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                fields.draw_fields(self.question, *search.field_names)
                if fields.draw_button(
                    search.button_text, f"{search_key}_start", search.icon, is_main=search.is_main
                ):
                    search_run.start()
                    if search_run.get_result().stage is Stage.FINAL:
                        st.rerun()  # The answer above may read the result.
        elif not self.is_final:
            st.caption("The figure follows the exact answer.")
            return None
        else:
            search_run.start_if_needed()
        is_running = jobs.show_progress(search_run.job_key, search.progress_text, search.is_measured)
        search_result = search_run.get_result()
        if search_result.value is None or (is_running and search_result.stage is not Stage.FIRST):
            if search.idle_text and not is_running:
                st.caption(search.idle_text)
            return None
        if search_result.stage is Stage.EARLIER:
            st.caption(search.outdated_text)
            return search_result.value if search.shows_outdated else None
        if not is_running and (stop_text := search.describe_stop(search_result.value)):
            st.warning(stop_text, icon=":material/stop_circle:")
            fields.draw_button("Compute again", f"{search_key}_again", "refresh", search_run.forget)
        return search_result.value
