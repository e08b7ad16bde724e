"""The report in a real browser: from the sample events to a file, and that file opened with the network off."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import plotly.graph_objects as go
import pytest
from playwright.sync_api import Page, expect

from dpcore.answer import Answer, Axis, Number, Plot
from dpcore.common.certificate import Certificate
from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from dpcore.mean import MeanParameters
from dpcore.report import plotly_figures, report_html
from dpcore.report.content import Line, Report
from dpcore.report.markup import escape_markdown
from tests.browser.browser import press, settle
from tests.browser.conftest import Opened
from tests.browser.test_journeys import NARROW, WIDE, go_to


def download(page: Page, name: str, folder: Path, within: str = "body") -> Path:
    with page.expect_download() as waiting:
        page.locator(within).get_by_role("button", name=name, exact=True).click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def nothing_sticks_out_at_the_side(report: Page, width: int) -> None:
    assert report.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.long
def test_from_the_sample_events_to_a_report_that_needs_no_network(
    page: Page, app_url: str, open_offline: Opened, tmp_path: Path
) -> None:
    page.goto(f"{app_url}/your-data")
    settle(page)
    # Five clicks, and no word of documentation.
    page.get_by_role("combobox", name="Sample").click()
    press(page.get_by_role("option", name=samples.SAMPLES["shop-events"].title))
    expect(page.locator(".st-key-shell_data")).to_contain_text("3,016 rows")
    go_to(page, "Mean")
    headline = page.locator(".st-key-mean_card h2").inner_text()
    press(page.get_by_role("tab", name="Downloads"))
    file = download(page, "Report (HTML)", tmp_path)
    assert file.name == "mean-report.html"

    report = open_offline(file, viewport=NARROW, color_scheme="dark")
    expect(report.locator(".headline")).to_have_text(headline)
    assert report.locator(".js-plotly-plot").count() == 6
    assert report.locator("math").count() > 10
    for viewport in (NARROW, WIDE):
        report.set_viewport_size(viewport)  # type: ignore[arg-type]
        for plot in report.locator(".plot").all():
            expect(plot.locator(".main-svg").first).to_be_visible()
            box, lines = plot.bounding_box(), plot.locator(".scatterlayer .trace")
            assert lines.count() >= 1
            assert box["width"] <= viewport["width"]
        nothing_sticks_out_at_the_side(report, viewport["width"])
        report.emulate_media(color_scheme="light")

    # Figures move: a click on a toggle in the legend shows its curves.
    first = report.locator(".plot").first
    before = first.locator(".scatterlayer .trace").count()
    first.locator(".legendtoggle").first.click()
    expect(first.locator(".scatterlayer .trace")).not_to_have_count(before)

    # Printed from a narrow window they fit the paper.
    report.set_viewport_size(NARROW)  # type: ignore[arg-type]
    report.emulate_media(media="print")
    report.evaluate("dispatchEvent(new Event('beforeprint'))")
    for plot in report.locator(".plot").all():
        expect(plot.locator(".main-svg").first).to_have_attribute("width", "680")
    assert report.pdf(prefer_css_page_size=True).startswith(b"%PDF")


HOSTILE = '</script><script>alert(1)</script><img src="https://evil.example/x" onerror=alert(2)>$x$**b**\\'
LINKED = '<a href="https://evil.example/">name</a>' + HOSTILE


def test_hostile_names_do_nothing_in_a_browser(
    open_offline: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, shown_text = Disclosure.PRIVATE, escape_markdown(LINKED)
    line = Line(shown_text, shown_text, kind, shown_text, shown_text)
    axis = Axis("x", limits=(1.0, 2.0))
    answer = Answer(
        headline=shown_text,
        detail=shown_text,
        numbers=(Number(shown_text, shown_text, shown_text, shown_text),),
        assumptions=(shown_text,),
        disclosure=kind,
        facts={shown_text: shown_text},
        proofs=((LINKED, Certificate(1.0, 1.0, LINKED), shown_text),),
        parameters=MeanParameters(1.0),
    )
    report = Report(
        page_title="Mean",
        question=LINKED,
        answers=((LINKED, answer),),
        figures=(Plot("one", LINKED, LINKED, axis, axis, (), kind, {LINKED: [1.0]}),),
        setting_lines=(line,),
        summary_lines=(line,),
        disclosure=kind,
        formulae_markdown=shown_text,
        release_lines=(line,),
        omitted_sections=(LINKED,),
    )
    fig = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name=LINKED, text=[LINKED, LINKED], mode="markers+text"))
    fig.update_layout(xaxis_title=LINKED, title=LINKED, showlegend=True, height=300)
    monkeypatch.setattr(plotly_figures, "draw_plot", lambda plot: fig)
    file = tmp_path / "hostile.html"
    text = report_html.write_report_html(report, datetime(2026, 11, 21, tzinfo=UTC))
    file.write_text(text, encoding="utf-8")
    page = open_offline(file, viewport=WIDE)
    expect(page.locator(".plot .main-svg").first).to_be_visible()
    page.wait_for_timeout(300)
    assert page.locator("img, a[href], script[src], link, iframe").count() == 0
    assert (
        page.locator("a").evaluate_all(
            "all => all.filter(a => a.href || a.getAttribute('xlink:href')).length"
        )
        == 0
    )
    assert page.locator("script").count() == 3
    expect(page.locator("h2").first).to_contain_text(LINKED)
    expect(page.locator(".headline")).to_have_text(LINKED)
