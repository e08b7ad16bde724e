"""Figures in a real browser: they stay while a slider moves, and are saved, printed, darkened and missed in words."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, WebSocket, expect

from dpcore.answer import Style
from dpcore.report import charts
from pages.shared.figure import FIGURE_SCRIPT, PLOTLY_SCRIPT, STRIP_PIXELS, TOGGLES_PIXELS
from pages.shared.speed import SOCKET_PATH as AHEAD
from tests.browser.browser import settle
from tests.browser.test_journeys import NARROW, WIDE, go_to, short_axes, short_axes_are_drawn

SHOP = "mean?link=1&data=shop-events&epsilon=1"


def figure(page: Page, key: str = "mean_error") -> Locator:
    """The element that Plotly draws in, once its curves are there."""
    plot = page.locator(f".st-key-{key} .js-plotly-plot")
    plot.locator(".scatterlayer .trace").first.wait_for(state="attached")
    return plot


def curves(plot: Locator) -> str:
    text: str = plot.evaluate("e => JSON.stringify(e._fullData.map(t => [t.name, Array.from(t.y)]))")
    return text


def step(page: Page, plot: Locator, key: str) -> None:
    """One step of epsilon's slider, until its curves have come."""
    curves_before = curves(plot)
    page.locator(".st-key-epsilon_slider").get_by_role("slider").press(key)
    page.wait_for_function(
        "([e, before]) => JSON.stringify(e._fullData.map(t => [t.name, Array.from(t.y)])) !== before",
        arg=[plot.element_handle(), curves_before],
    )
    settle(page)


def place(page: Page, plot: Locator) -> dict[str, Any]:
    """Where the page stands, and what of the figure must not change with its curves."""
    box: dict[str, Any] = plot.evaluate(
        """e => ({
            scrolled: document.querySelector("[data-testid='stMain']").scrollTop,
            x: e._fullLayout.xaxis.range, y: e._fullLayout.yaxis.range,
            box: (({x, y, width, height}) => [x, y, width, height])(e.getBoundingClientRect()),
            hidden: e._fullData.filter(t => t.visible === 'legendonly').map(t => t.name),
            same: e.dataset.seen === 'yes',
        })"""
    )
    return box


CALLED_BY_HAND = """async ([script, plotly]) => {
    const show = (await import(script)).default;
    const host = document.createElement("div");
    document.body.append(host);
    const call = (y) => show({
        data: new TextEncoder().encode(JSON.stringify({
            figure: {
                data: [{ name: "curve", x: [1, 2], y, mode: "lines", line: { width: 2 } }],
                layout: { xaxis: { range: [1, 2] } },
            },
            alt: "", fileName: "", csv: "", height: 200, ghost: true,
        })),
        parentElement: host,
    }, plotly);
    const pale = async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return host.querySelector(".js-plotly-plot").data.length - 1;
    };
    const found = {};
    const ended = call([1, 2]);
    const last = call([1, 3]);
    ended();
    found.stands = host.children.length;
    found.refined = await pale();
    // Where one message follows another at once, Streamlit ends the call for the first before it calls for the second.
    const [before] = host.children;
    call([1, 2])();
    const next = call([1, 3]);
    found.same = host.children.length === 1 && host.children[0] === before;
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    const changed = call([1, 4]);
    found.changed = await pale();
    host.remove();
    last();
    next();
    found.until = host.children.length;
    changed();
    found.left = host.children.length;
    return found;
}"""


def zoom_place_and_element_are_kept(page: Page, plot: Locator) -> None:
    """While a slider moves, and where the sidebar folds; the figure carries the mark ``seen``."""
    plot.scroll_into_view_if_needed()
    full_place = place(page, plot)
    area = plot.locator(".nsewdrag").first.bounding_box()
    # A box over the middle of the plot, and curves that a toggle shows.
    page.mouse.move(area["x"] + 0.3 * area["width"], area["y"] + 0.3 * area["height"])
    page.mouse.down()
    page.mouse.move(area["x"] + 0.6 * area["width"], area["y"] + 0.8 * area["height"], steps=4)
    page.mouse.up()
    assert {"Noise", "Noise (label)"} < set(full_place["hidden"])
    toggle = page.locator(".st-key-mean_error").get_by_role("button", name="Parts of the error")
    toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "true")
    settle(page)
    before = place(page, plot)
    assert "Noise" not in before["hidden"]
    for axis in ("x", "y"):
        low, high = before[axis]
        assert full_place[axis][0] < low < high < full_place[axis][1]
    plot.page.wait_for_function(
        "e => (e._fullLayout.annotations ?? []).some(({ text }) => text.startsWith('Outside this view: Best'))",
        arg=plot.element_handle(),
    )
    code = page.get_by_role("button", name="Get code")
    box = code.bounding_box()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        step(page, plot, key)
        assert place(page, plot) == before
        # However many lines the answer takes, the buttons beside the figure stay where they are.
        assert code.bounding_box() == box
    # The curves of the next range are drawn over the pale ones of the last movement, which no legend names.
    names = plot.evaluate("e => e._fullData.map(t => [t.name, t.showlegend])")
    assert ["Total, bounded rows, before", False] in names
    # The sidebar folds: the figure takes the room, and keeps the zoom.
    page.get_by_test_id("stSidebarCollapseButton").locator("button").evaluate("e => e.click()")
    page.wait_for_function(
        "([e, w]) => e._fullLayout.width > w", arg=[plot.element_handle(), before["box"][2]]
    )
    wider = place(page, plot)
    assert (wider["x"], wider["y"], wider["same"]) == (before["x"], before["y"], True)


def number_and_figure_agree(page: Page) -> None:
    number = page.locator(".st-key-mean_card").get_by_role("heading").inner_text()
    cap = re.search(r"[\d,]+", number)
    around = page.locator(".st-key-mean_error").get_by_role("figure")
    expect(around).to_have_accessible_name(re.compile(rf"smallest at {cap[0]} rows? per user"))


def curves_come_ahead(page: Page, plot: Locator, ahead: list[str | bytes]) -> None:
    """And a slider moved fast ends with its last answer."""
    slider = page.locator(".st-key-epsilon_slider").get_by_role("slider")
    step(page, plot, "ArrowLeft")
    assert len(ahead) == 1
    assert str(ahead[0]).startswith('mean_error\n{"figure":')
    number_and_figure_agree(page)
    for key in ["ArrowLeft"] * 4 + ["ArrowRight"] * 2 + ["ArrowLeft"] * 5:
        slider.press(key)
        page.wait_for_timeout(60)
    settle(page)
    number_and_figure_agree(page)


def heard_ahead(page: Page) -> list[str | bytes]:
    """What comes by the socket that brings figures before the page, from now on."""
    ahead: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        if socket.url.endswith(AHEAD):
            socket.on("framereceived", lambda payload: ahead.append(payload))

    page.on("websocket", listen)
    return ahead


def download(page: Page, button: Locator) -> Path:
    with page.expect_download() as caught:
        button.focus()
        button.press("Enter")
    return Path(caught.value.path()).rename(
        Path(caught.value.path()).with_name(caught.value.suggested_filename)
    )


def strokes(pdf: bytes, colour: str) -> int:
    """How often a PDF takes this colour for its lines."""
    content = b""
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            content += zlib.decompress(stream) + b"\n"
        except zlib.error:  # not compressed, or a font
            continue
    wanted = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    colours = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) RG", content)
    return sum(all(abs(float(a) - b) < 1e-3 for a, b in zip(one, wanted, strict=True)) for one in colours)


def dark_comes_in_place_what_is_saved_is_white_and_paper_is_white_and_narrower(
    page: Page, plot: Locator
) -> None:
    """The figure carries the mark ``seen``; the page is light and wide again afterwards."""

    def grounds() -> list[str]:
        page.wait_for_timeout(300)
        settle(page)
        colours: list[str] = plot.evaluate(
            "e => [e._fullLayout.paper_bgcolor, e._fullLayout.font.color, e.dataset.seen]"
        )
        return colours

    assert grounds() == ["#FFFFFF", "#08151B", "yes"]
    page.emulate_media(color_scheme="dark")
    assert grounds() == ["#10191D", "#E8EEF0", "yes"]
    # Saved by the keyboard it is on white, whatever the page is.
    around = page.locator(".st-key-mean_error").get_by_role("figure", name=re.compile("error"))
    png = download(page, around.get_by_role("button", name="Save this figure as PNG"))
    assert png.name == "mean-error.png"
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    svg = download(page, around.get_by_role("button", name="Save this figure as SVG"))
    assert svg.name == "mean-error.svg"
    text = svg.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "rgb(255, 255, 255)" in text
    assert "rgb(16, 25, 29)" not in text  # the dark page
    for part in ("Bound (rows per user)", "against the bound", "Bounded rows", "@font-face"):
        assert part in text
    csv = download(page, around.get_by_role("button", name="Save the data of this figure as CSV"))
    assert csv.name == "mean-error.csv"
    assert "# public input: epsilon = 1\n" in csv.read_text(encoding="utf-8")
    # Saving has changed nothing of what is seen.
    assert grounds() == ["#10191D", "#E8EEF0", "yes"]
    before = place(page, plot)
    # The blue of the cap is drawn on paper.
    assert strokes(page.pdf(), charts.LINE_BY_STYLE[Style.CAP]["color"]) >= 1
    assert place(page, plot) == before
    # What is printed: white, and no wider than the paper.
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size(NARROW)
    page.emulate_media(media="print")
    fits = plot.evaluate(
        """e => [...e.querySelectorAll('.main-svg')].map(
            svg => svg.getBoundingClientRect().width - e.parentElement.getBoundingClientRect().width)"""
    )
    assert max(fits) <= 1
    assert plot.evaluate("e => e._fullLayout.paper_bgcolor") == "#FFFFFF"
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert grounds()[0] == "#10191D"
    page.emulate_media(media="null", color_scheme="light")
    page.set_viewport_size(WIDE)
    assert grounds() == ["#FFFFFF", "#08151B", "yes"]


@pytest.mark.long
def test_a_figure_from_its_room_to_its_leave(page: Page, app_url: str) -> None:
    """One load of the app: each step goes on where the one before it left the figure."""
    ahead = heard_ahead(page)
    page.goto(f"{app_url}/{SHOP}")
    # It has its room before it arrives.
    room = page.locator(".st-key-figure_mean_error")
    room.wait_for(state="attached")
    early = room.evaluate("e => e.getBoundingClientRect().height")
    settle(page)
    plot = figure(page)
    # What stands below it while its bound is dragged has its room, too.
    assert plot.evaluate("e => e._fullLayout.height") + TOGGLES_PIXELS + STRIP_PIXELS == early
    assert room.evaluate("e => e.getBoundingClientRect().height") == early
    value = page.evaluate(
        CALLED_BY_HAND, [f"{app_url}{FIGURE_SCRIPT.address}", f"{app_url}{PLOTLY_SCRIPT.address}"]
    )
    # One figure stands until its place has left the page and its last call ends; pale curves come with what a person
    # changed, not with a refinement.
    assert value == {"stands": 1, "refined": 0, "same": True, "changed": 1, "until": 1, "left": 0}

    plot.evaluate("e => { e.dataset.seen = 'yes' }")
    dark_comes_in_place_what_is_saved_is_white_and_paper_is_white_and_narrower(page, plot)
    curves_come_ahead(page, plot, ahead)
    zoom_place_and_element_are_kept(page, plot)

    # It is given up when it leaves, and not before.
    page.evaluate(
        """() => {
            window.purged = [];
            const purge = Plotly.purge;
            Plotly.purge = e => { purged.push(Boolean(e.data)); return purge(e); };
        }"""
    )
    go_to(page, "Data", folded=True)
    assert page.evaluate("purged").count(True) >= 1
    # Another figure comes where the last one stood; the script is not asked for again.
    figure(page, "distribution_counts")
    assert page.evaluate("document.querySelectorAll('script[src*=\"/assets/plotly\"]').length") == 1


@pytest.mark.long
def test_a_script_that_does_not_arrive_leaves_a_sentence_and_figures_come_without_the_socket(
    page: Page, app_url: str, expected_problems: list[str]
) -> None:
    expected_problems.append("Failed to load resource")
    page.route("**/assets/plotly-*", lambda route: route.abort())
    # Playwright has no way to take this back, so this test closes the page at its end.
    page.route_web_socket(f"**{AHEAD}", lambda socket: socket.close())
    ahead = heard_ahead(page)
    # Of few and short sizes the axis is short: there Plotly has written errors to the console.
    page.goto(f"{app_url}/{short_axes(1, 2)}")
    alert = page.locator(".st-key-mean_error").get_by_role("alert")
    expect(alert).to_contain_text("The figure cannot be drawn: a script did not arrive.")
    expect(alert).to_contain_text("What it would show: ")
    settle(page)
    # The next change tries again.
    page.unroute("**/assets/plotly-*")
    page.locator(".st-key-epsilon_slider").get_by_role("slider").press("ArrowLeft")
    plot = figure(page)
    expect(alert).to_have_count(0)
    settle(page)
    short_axes_are_drawn(page, 1, 2)
    # Where no socket gets through, Streamlit brings the curves.
    step(page, plot, "ArrowRight")
    assert not ahead
    number_and_figure_agree(page)
    page.close()
