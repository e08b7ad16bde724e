"""Draws the sections of an answer, and answers what they ask for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from dpcore.answer import Answer, Plot, section
from dpcore.answer.stage import Stage
from dpcore.common.checks import InvalidInput
from dpcore.report import document
from pages.shared.base import tables
from pages.shared.base.question import Question
from pages.shared.card import cards, number_elements
from pages.shared.fields import fields, jobs, runner, setting
from pages.shared.figures import figures
from pages.shared.screen import paper, plots, value_range
from pages.shared.session import session, stand_ins


def contents(renderer: Renderer, sections: Mapping[str, Any], tabs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tabs of a page: those that it draws itself, and those that show the sections of an answer."""

    def content(name: str, part: Any) -> Any:
        if isinstance(part, Mapping):
            return contents(renderer, part, {}) | tabs.get(name, {})
        return lambda: renderer.show(part)

    return {**tabs, **{name: content(name, part) for name, part in sections.items()}}


@dataclass(frozen=True)
class Renderer:
    """Draws the sections of one answer.

    Attributes:
        question: The question of the page.
        answer: The answer.
        data: What it is about.
        main: The main figure as it is drawn.
        label: What stands above the figures; empty for nothing.
        is_final: False if another answer will replace this one.
    """

    question: Question
    answer: Answer
    data: Any
    main: Plot
    label: str = ""
    is_final: bool = True

    def show(self, part: section.Section) -> None:
        """Draw a section."""
        try:
            section.walk(part(self.answer, self.data), self._draw)
        except InvalidInput as refused:
            fields.say(refused.problems)

    def _draw(self, part: section.Part) -> Any:
        """Draw a part; return what the section asks for."""
        match part:
            case str():
                st.markdown(part)
            case section.Note(text, icon):
                st.info(text, icon=f":material/{icon}:") if icon else st.caption(text)
            case section.Refusal(error):
                fields.say(error.problems)
            case section.Label(disclosure, after):
                cards.label(self.answer.disclosure if disclosure is None else disclosure, after=after)
            case Plot():
                plots.draw(part, self.label)
            case section.Figures():
                self._draw_figures(part)
            case section.Table():
                self._draw_table(part)
            case section.Numbers(numbers):
                with st.container(horizontal=True):
                    for number in numbers:
                        number_elements.single(number.label, number.text, number.note, number.help)
            case section.File():
                self._draw_file(part)
            case section.Fields(names, shares):
                if shares:
                    fields.columns(self.question, shares, *names)
                else:
                    fields.draw_row(self.question, *names)
            case section.Choice():
                key = self.question.key(part.key)
                if st.session_state.get(key) not in part.options:
                    st.session_state[key] = part.first
                return fields.choice(part.label, part.options, key)
            case section.Integer(key, label, limits, initial, step, help):
                st.session_state.setdefault(self.question.key(key), initial)
                return fields.whole_number(label, self.question.key(key), *limits, step, help)
            case section.Window():
                return self._draw_window(part)
            case section.Missing(needed, remedy):
                stand_ins.show_stand_in(self.data, needed, remedy)
            case section.Proposal(label, icon, settings):
                key = f"{self.question.name}_{'_'.join(settings)}_use"
                fields.button(label, key, icon, setting.enter, settings)
            case section.PrivateRange():
                value_range.offer_draw(self.data)
            case section.Row(parts):
                with st.container(horizontal=True, vertical_alignment="center"):
                    section.walk(parts, self._draw)
            case section.Link(page, label, icon):
                st.page_link(session.page_file(page), label=label, icon=f":material/{icon}:")
            case section.Columns(columns):
                for place, column in zip(st.columns(len(columns), gap="large"), columns, strict=True):
                    with place:
                        section.walk(column, self._draw)
            case section.PaperFigures(paper_figures):
                st.divider()
                paper.show(paper_figures)
            case section.Cached():
                return runner.compute(part)
            case section.Search():
                return self._draw_search(part)
        return None

    def _draw_window(self, part: section.Window) -> tuple[float, float]:
        with plots.place_controls(part.key, part.button, "") as (chart, below):
            low, high = st.slider(
                part.label,
                *part.widest,
                value=part.initial,
                step=(part.widest[1] - part.widest[0]) / 1000.0,
                format="%.4g",
                key=f"{part.key}_{session.data_version()}_{part.widest}",
            )
        limits = (low, high) if low < high else part.initial
        plots.draw(part.draw(limits), self.label, button_place=below, figure_place=chart)
        return limits

    def _draw_figures(self, part: section.Figures) -> None:
        ends = {axis: getattr(self.main, axis).limits for axis in part.main_axes}
        several = [plot.with_limits(**ends) for plot in part.plots]
        if len(several) == 1 and part.controls:
            plots.show(several[0], "x" not in part.controls, self.label, keeps_y="y" not in part.controls)
            return
        places = st.columns(len(several))
        if part.controls:
            key = several[0].key.replace("-", "_")
            with st.popover("Axis ranges", icon=":material/straighten:", key=f"{key}_ranges"):
                across = plots.choose_limits(several[0].x, f"{key}_x")  # All have one horizontal axis.
                several = [
                    p.with_limits(across, plots.choose_limits(p.y, f"{p.key}_y".replace("-", "_")))
                    for p in several
                ]
        for place, plot in zip(places, several, strict=True):
            with place:
                if part.titled:
                    st.markdown(f"**{plot.title}**")
                plots.draw(plot, self.label)

    def _draw_table(self, part: section.Table) -> None:
        if part.plain:
            st.table(pd.DataFrame(part.columns), hide_index=True)
            return
        columns, height = pd.DataFrame(part.columns), "content" if part.full else "auto"
        tables.show(columns, part.alt, part.key or None, part.formats, part.titles, height=height)

    def _draw_file(self, part: section.File) -> None:
        disclosure, content = part.disclosure or self.answer.disclosure, part.content
        key, help, is_table = part.name.replace(".", "_"), part.help or None, isinstance(content, Mapping)
        if isinstance(content, Mapping):
            notes = figures.question_notes()  # Read now: the file is made when its button is pressed.
            content = functools.partial(document.write_columns, content, disclosure, notes)
        cards.file_button(part.label, part.name, disclosure, content, key=key, quiet=is_table, help=help)

    def _draw_search(self, part: section.Search) -> Any:
        run = runner.Run(self.question, part, self.data, session.is_same_for_all())
        key = run.key.replace(".", "_")
        if part.button:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                fields.draw_all(self.question, *part.fields)
                if fields.button(part.button, f"{key}_start", part.icon):
                    run.start()
        elif not self.is_final:
            st.caption("The figure follows the exact answer.")
            return None
        else:
            run.ask()
        is_running = jobs.watch(run.key, part.doing, part.measured)
        found = run.found()
        if found.value is None or is_running:
            if part.idle and not is_running:
                st.caption(part.idle)
            return None
        if found.stage is Stage.EARLIER:
            st.caption(part.outdated)
            return found.value if part.shows_outdated else None
        if stopped := part.describe_stop(found.value):
            st.warning(stopped, icon=":material/stop_circle:")
            fields.button("Compute again", f"{key}_again", "refresh", run.forget)
        return found.value
