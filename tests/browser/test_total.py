"""Sum and count in a real browser: from the uploaded sample events to a simulated figure, a file and two reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dpcore import total
from dpcore.common.noise_error import NoiseKind
from dpcore.data import samples
from dpcore.data.totals_per_user import Amounts
from pages.shared.fields.setting import DEFAULT_EPSILON
from tests.browser.browser import settle
from tests.browser.conftest import Opened
from tests.browser.test_journeys import SHOP_EVENTS, WIDE, choose_file, go_to, press
from tests.browser.test_report import download, nothing_sticks_out_at_the_side


def traces(page: Page, key: str) -> dict[str, list[list[float]]]:
    """Name to [x, y] of the figure with this key, as Plotly has drawn it."""
    page.wait_for_selector(f".st-key-{key} .js-plotly-plot .scatterlayer .trace", state="attached")
    drawn: dict[str, list[list[float]]] = page.evaluate(
        """key => Object.fromEntries(document.querySelector(`.st-key-${key} .js-plotly-plot`)._fullData
            .map(t => [t.name, [Array.from(t.x), Array.from(t.y)]]))""",
        key,
    )
    return drawn


def the_bound_is_dragged(page: Page, best: int) -> None:
    """By the pointer and by keys: users are cut and releases move at once, and the server hears of the end."""
    figure = page.locator(".st-key-total_error")
    handle, seen = figure.get_by_role("slider", name="Bound"), figure.locator(".sweetspot-seen")
    expect(handle).to_have_attribute("aria-valuenow", str(best))
    dots = seen.locator("circle")
    expect(dots).to_have_count(20)
    own = page.get_by_role("spinbutton", name="Compare your own bound")
    before = [dot.get_attribute("cx") for dot in dots.all()]
    box = handle.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 80, y + 40, steps=4)
    let_go = int(str(handle.get_attribute("aria-valuenow")))
    assert let_go < best / 2
    expect(seen).to_contain_text(f"Bound {let_go}: cuts")
    assert [dot.get_attribute("cx") for dot in dots.all()] != before
    expect(own).to_have_value("")
    page.mouse.up()
    settle(page)
    expect(own).to_have_value(str(let_go))
    expect(page.get_by_text(f"Your own bound, {let_go} rows").first).to_be_visible()
    handle.press("ArrowRight")
    expect(own).not_to_have_value(str(let_go))
    settle(page)
    assert int(own.input_value()) == int(str(handle.get_attribute("aria-valuenow"))) > let_go
    own.fill("")
    own.press("Enter")
    settle(page)
    expect(handle).to_have_attribute("aria-valuenow", str(best))


def test_from_the_events_file_to_a_bound_a_simulation_a_file_and_two_reports(
    page: Page, app_url: str, open_offline: Opened, tmp_path: Path
) -> None:
    page.goto(f"{app_url}/your-data")
    settle(page)
    press(page.get_by_text("Upload a file"))
    choose_file(page, "shop_events.csv", SHOP_EVENTS.read_bytes())
    press(page.get_by_role("button", name="Use these data"))
    go_to(page, "Sum and count")

    data = samples.load("shop-events")
    rows = total.best_bound(
        total.TotalProblem(Amounts.from_histogram(data.histogram), DEFAULT_EPSILON, whole=True)
    )
    card = page.locator(".st-key-total_card")
    expect(card).to_contain_text(f"Keep at most {rows.max_total:g} rows of each user")
    expect(card).to_contain_text("computed from private data: do not publish")

    the_bound_is_dragged(page, int(rows.max_total))

    press(page.get_by_role("radio", name="Values"))
    press(page.get_by_role("button", name="More settings"))
    press(page.get_by_role("radio", name="Gaussian"))
    page.keyboard.press("Escape")
    delta = page.get_by_role("spinbutton", name="δ")
    delta.fill("1e-4")
    delta.press("Enter")
    settle(page)
    problem = total.TotalProblem(Amounts.from_totals(data.totals), DEFAULT_EPSILON, NoiseKind.GAUSSIAN, 1e-4)
    best = total.best_bound(problem)
    assert traces(page, "total_error")["Best bound"][0] == [pytest.approx(best.max_total)]
    press(page.get_by_role("tab", name="Measures and noise"))
    expect(page.get_by_text("Laplace noise is better")).to_be_visible()

    press(page.get_by_role("tab", name="Four ways to choose a bound"))
    press(page.get_by_role("button", name="Simulate"))
    expect(page.get_by_text("1,000 runs of each simulated point")).to_be_visible()
    settle(page)
    simulated = [name for name in traces(page, "total_strategies") if name.endswith("simulated")]
    assert len(simulated) == 4

    press(page.get_by_role("tab", name="Downloads"))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Choice (JSON)").click()
    assert "PRIVATE-do-not-publish" in waiting.value.suggested_filename
    found = json.loads(Path(waiting.value.path()).read_text(encoding="utf-8"))
    assert found["answer"]["max_total"] == pytest.approx(best.max_total)
    assert found["answer"]["label"] == "computed from private data (do not publish)"

    # One report may be published, and the other is whole.
    headline = card.locator("h2").inner_text()
    public = download(page, "Report (HTML)", tmp_path, within=".st-key-total_report_public_html")
    assert public.name == "total-report-public.html"
    report = open_offline(public, viewport=WIDE)
    expect(report.locator("header")).to_contain_text("Left out, since computed from them")
    expect(report.locator(".headline")).to_have_count(0)
    expect(report.locator("body")).not_to_contain_text("3,016")

    private = download(page, "Report (HTML)", tmp_path, within=".st-key-total_report_html")
    assert private.name == "total-report-PRIVATE-do-not-publish.html"
    report = open_offline(private, viewport=WIDE)
    expect(report.locator(".headline")).to_have_text(headline)
    expect(report.locator("header")).to_contain_text("Do not publish")
    expect(report.locator("body")).to_contain_text("3,016")
    expect(report.locator(".plot .main-svg").first).to_be_visible()
    nothing_sticks_out_at_the_side(report, WIDE["width"])
