"""The main journeys in a real browser. The fixture `page` also refuses console errors and foreign requests."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, WebSocket, expect

from dpcore import mean
from dpcore.answer.against import SLIDER_EPSILONS
from dpcore.common.wording import format_count
from dpcore.data import samples
from pages.shared.fields.setting import DEFAULT_EPSILON
from pages.shared.speed import SOCKET_PATH
from tests.browser.browser import enter, press, settle, stop_button

ROOT = Path(__file__).resolve().parents[2]
SHOP_EVENTS = ROOT / "sample_data" / "shop_events.csv"
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}


def go_to(page: Page, title: str, whole: bool = True, folded: bool = False) -> None:
    """To another page by the sidebar, which may be `folded`.

    The runs that Training begins by itself are made `whole` or to a first figure.
    """
    navigation = page.locator(".st-key-navigation")
    link = navigation.get_by_role("link", name=title, include_hidden=folded).first
    if folded:
        link.evaluate("e => e.click()")
    else:
        if not link.is_visible():  # Its group is closed.
            navigation.get_by_text("Models", exact=True).click()
        link.click()
    heading = "How much may one user contribute?" if title == "Home" else title
    # Not `expect`: while it fails, Playwright writes down the whole page each time, 6 % of the browser's time.
    page.get_by_role("heading", level=1, name=heading).wait_for()
    if title == "Classifier" and not whole:
        # Its runs take 7 s of processor time.
        page.wait_for_selector(".st-key-training_methods_loss .js-plotly-plot .main-svg", state="attached")
        with contextlib.suppress(TimeoutError):  # They may have ended by themselves.
            stop_button(page).click(timeout=3_000)
    settle(page)


def choose_file(page: Page, name: str, content: bytes) -> None:
    page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content}
    )
    settle(page)


def own_bound(page: Page) -> Locator:
    """The field of a bound of one's own, under the card."""
    return page.get_by_role("spinbutton", name="Compare your own bound")


def read_best_cap(page: Page) -> str:
    number = page.locator(".st-key-mean_card .sweetspot-number .value")
    return number.inner_text().removesuffix(" per user")


def plot(page: Page) -> dict[str, Any]:
    """Traces by name and axis ranges, as Plotly has drawn them; without those of before the last movement."""
    page.wait_for_selector(".st-key-mean_error .js-plotly-plot .scatterlayer .trace", state="attached")
    drawn_value: dict[str, Any] = page.evaluate(
        """() => {
            const plot = document.querySelector('.st-key-mean_error .js-plotly-plot');
            return {
                x: plot.layout.xaxis.range, y: plot.layout.yaxis.range,
                traces: Object.fromEntries(plot._fullData.filter(t => t.meta !== 'before').map(
                    t => [t.name, [Array.from(t.x), Array.from(t.y)]])),
            };
        }"""
    )
    return drawn_value


def epsilon_slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Privacy budget ε")


def move_epsilon(page: Page, steps: int) -> None:
    slider = epsilon_slider(page)
    slider.focus()
    for _ in range(steps):
        slider.press("ArrowRight")
    settle(page)


def epsilon(page: Page) -> float:
    return float(page.get_by_role("spinbutton", name="ε, exactly").input_value())


def copied_link(page: Page) -> str:
    page.get_by_text("Copy link").click()
    link = page.get_by_test_id("stPopoverBody").get_by_role("code").inner_text()
    page.keyboard.press("Escape")
    return link


def short_axes(light: int, heavy: int) -> str:
    """A link to Mean where users have one of two sizes: on the ranges 1 to 2 and 5 to 10, Plotly has written errors."""
    groups = f"data=two-groups&data.light_users=3&data.light_rows={light}&data.heavy_users=3&data.heavy_rows={heavy}"
    return f"mean?link=1&{groups}&epsilon=1"


def short_axes_are_drawn(page: Page, light: int, heavy: int) -> None:
    """Without errors on the console, which the fixture `page` refuses."""
    # Decades; a little room is left at both ends.
    assert plot(page)["x"] == pytest.approx([math.log10(light), math.log10(heavy)], abs=0.05)
    press(page.get_by_role("tab", name="Rows and users"))
    press(page.get_by_role("tab", name="Weight of a row"))
    page.wait_for_selector(".st-key-mean_weights .scatterlayer .trace", state="attached")


@pytest.mark.long
@pytest.mark.parametrize("server_url", ["app_url", "plain_url"])
def test_from_an_uploaded_file_to_weights_a_link_and_what_a_reload_loses(
    page: Page, server_url: str, new_window: Page, request: pytest.FixtureRequest
) -> None:
    app_url: str = request.getfixturevalue(server_url)
    sockets: list[str] = []

    def note(socket: WebSocket) -> None:
        sockets.append(urlsplit(socket.url).path)

    page.on("websocket", note)
    page.goto(app_url)
    settle(page)
    go_to(page, "Data")
    press(page.get_by_text("Upload a file"))
    choose_file(page, "shop_events.csv", SHOP_EVENTS.read_bytes())
    expect(page.get_by_text("3,016 rows, 3 columns")).to_be_visible()
    # While it waits, what is in use stands aside.
    expect(page.locator(".st-key-in_use")).to_have_count(0)
    task = page.get_by_role("combobox", name=re.compile("Task, product or group"))
    task.scroll_into_view_if_needed()
    settle(page)  # A list that opens while the page still scrolls closes at once.
    task.click()
    press(page.get_by_role("option", name="(none)"))
    press(page.get_by_role("button", name="Use these data"))
    expect(page.get_by_text("In use: shop_events.csv")).to_be_visible()
    histogram = samples.load("shop-events").histogram
    expect(page.locator(".st-key-shell_data")).to_contain_text("private data")
    expect(page.locator(".st-key-shell_data")).to_contain_text(f"{histogram.num_rows:,} rows")

    # The bar says which column answers what, and leads there.
    offers = page.locator(".st-key-your_data_offers")
    expect(offers).to_contain_text("amount →")
    press(offers.get_by_role("link", name="Mean"))
    expect(page.get_by_role("heading", level=1, name="Mean")).to_be_visible()
    # Of private values the range is asked for, and no answer stands before that.
    expect(page.locator(".st-key-mean_card")).to_have_count(0)
    for name, value in (("Lowest value L", "0"), ("Highest value U", "100")):
        enter(page.get_by_role("spinbutton", name=name), value)
    # Nothing that may have been read off the values is in the address: the range is what every release states.
    assert set(parse_qs(urlsplit(page.url).query)) == {
        "link", "data", "epsilon", "lower", "upper", "variance_source", "counts", "target", "likeness", "upload",
        "mechanism", "program", "clamp",
    }  # fmt: skip
    before, cap_before = plot(page), read_best_cap(page)
    move_epsilon(page, 5)
    after = plot(page)
    moved = SLIDER_EPSILONS[SLIDER_EPSILONS.index(DEFAULT_EPSILON) + 5]
    assert epsilon(page) == moved
    assert read_best_cap(page) != cap_before
    assert after["traces"]["Total, bounded rows"] != before["traces"]["Total, bounded rows"]
    assert after["traces"]["Best bound"] != before["traces"]["Best bound"]
    assert after["x"] == before["x"]  # That of errors ends where its curves end.
    # On private data the counts are private too, the variance is the worst case, (U - L)^2 / 4, and a fifth of it is
    # taken to lie between users.
    problem = mean.private_counts.PrivateCountsProblem(
        histogram, moved, 100.0, 2500.0, target=mean.Target.TABLE, user_share=0.2
    )
    assert read_best_cap(page) == format_count(mean.find_best_cap(problem).max_contributions, "row")

    press(page.get_by_role("tab", name="Downloads"))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Weights (CSV)").click()
    assert "PRIVATE-do-not-publish" in waiting.value.suggested_filename
    with Path(waiting.value.path()).open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    # No sum of rows divides these weights, as the counts are private: a user has all rows, or h of them.
    threshold = mean.find_best_smooth(problem).threshold
    weights = mean.find_weight_growth(problem, threshold).compute_scaled_weights(
        threshold, [float(row["size"]) for row in rows]
    )
    assert [float(row["user_weight"]) for row in rows] == pytest.approx(weights.tolist(), rel=1e-12)
    assert [int(row["size"]) * float(row["row_weight"]) for row in rows] == pytest.approx(weights.tolist())
    assert 1 < threshold < max(int(row["size"]) for row in rows)
    assert sum(int(row["users"]) * int(row["size"]) for row in rows) == histogram.num_rows
    assert {row["label"] for row in rows} == {"computed from private data (do not publish)"}

    sentences = (
        page.get_by_test_id("stCode").filter(has_text="At most a fixed number of rows").first.inner_text()
    )
    assert f"at ε = {moved:g}. " in sentences
    assert "computed with Sweet Spot" in sentences
    assert read_best_cap(page) not in sentences, "the data are private"
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Works cited (BibTeX)").click()
    assert Path(waiting.value.path()).read_text(encoding="utf-8").startswith("@inproceedings{dwork2006,")

    link = copied_link(page)
    new_window.goto(link)
    settle(new_window)
    expect(new_window.get_by_role("heading", level=1, name="Mean")).to_be_visible()
    expect(new_window.locator(".st-key-link_problems")).to_be_visible()
    assert epsilon(new_window) == epsilon(page)
    assert new_window.get_by_role("spinbutton", name="Highest value U").input_value() == "100"
    expect(new_window.get_by_test_id("stException")).to_have_count(0)

    page.go_back()
    settle(page)
    page.go_forward()
    settle(page)
    expect(page.locator(".st-key-shell_data")).to_contain_text("shop_events.csv")
    assert "upload=1" in page.url
    assert "shop_events" not in page.url
    page.reload()
    settle(page)
    expect(page.locator(".st-key-link_problems")).to_contain_text(
        "Uploaded data were in use, and they are gone"
    )
    expect(page.locator(".st-key-shell_data")).to_contain_text("Online Retail")
    assert "upload" not in page.url
    page.remove_listener("websocket", note)
    assert (SOCKET_PATH in sockets) == (server_url == "app_url")


def test_a_hostile_link_gives_sentences_and_no_address_to_click(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/mean?link=1&data=http://example.org/x&epsilon=3")
    settle(page)
    problems = page.locator(".st-key-link_problems")
    expect(problems).to_contain_text("No sample or generator is called")
    expect(problems.locator("a")).to_have_count(0)
    assert epsilon(page) == 3.0


def everything_is_reached_by_the_keyboard(page: Page) -> None:
    """The inputs come first, then the figure, then the answer."""
    in_order = [
        ".st-key-epsilon", ".st-key-mean-lower", ".st-key-mean-upper", ".st-key-mean_more",
        ".st-key-mean_error", ".st-key-mean_card",
    ]  # fmt: skip
    press(page.get_by_role("tab", name="Downloads"))
    page.evaluate("() => { document.activeElement.blur(); window.getSelection().removeAllRanges(); }")
    page.mouse.click(2, 2)
    page.evaluate(
        """(inOrder) => {
            window.reached = [];
            window.met = [];
            window.note = () => {
                let e = document.activeElement;
                const place = inOrder.find(name => e.closest(name));
                if (place && !met.includes(place)) met.push(place);
                while (e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
                reached.push((e.getAttribute('role') || e.tagName.toLowerCase()) + ' ' +
                    (e.getAttribute('aria-label') || e.innerText || e.value || ''));
            };
            document.addEventListener('focusin', note);
        }""",
        in_order,
    )
    for _ in range(120):
        page.keyboard.press("Tab")
    page.evaluate("document.removeEventListener('focusin', note)")
    assert page.evaluate("met") == in_order
    reached = [" ".join(name.split()) for name in page.evaluate("reached")]
    everything = "\n".join(reached)
    for wanted_text in (
        "Home", "Data", "Privacy budget ε", "ε, exactly", "Copy link", "Lowest value L", "Highest value U",
        "More settings", "Copy 762", "Get code", "Axis ranges", "CSV", "Pin this", "Downloads",
        "Sentences (text)", "Sentences (LaTeX)", "Works cited (BibTeX)", "Weights (CSV)", "Choice (JSON)",
    ):  # fmt: skip
        assert wanted_text in everything, f"{wanted_text!r} is not among\n{everything}"
    # A figure's tools are one stop, and so are tabs; arrows move between them.
    tools = page.locator(".st-key-mean_error .modebar-btn")
    tools.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tools.nth(1)).to_be_focused()
    assert [tools.nth(at).get_attribute("tabindex") for at in range(3)] == ["-1", "0", "-1"]
    page.get_by_role("tab", name="Downloads").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle(page)
    expect(page.get_by_role("tab", name="How this is computed")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("Searle, Casella and McCulloch").first).to_be_visible()


def what_is_cleared_or_typed_stays_gets_a_sentence_and_can_be_filled_again(page: Page) -> None:
    """At the end ε is 0.5."""
    best_cap_before = read_best_cap(page)
    field = page.get_by_role("spinbutton", name="Highest value U")
    enter(field, "")
    expect(page.get_by_test_id("stAlert")).to_be_visible()
    assert field.input_value() == ""
    enter(field, "1")
    assert read_best_cap(page) == best_cap_before
    own = own_bound(page)
    for text in ("7", ""):
        enter(own, text)
        assert own.input_value() == text
        assert ("Your own bound" in plot(page)["traces"]) is bool(text)

    # What is typed stays as well.
    alert = page.get_by_test_id("stAlert")
    enter(own, "1.5")
    expect(alert).to_contain_text(
        "Your own bound must be a whole number between 1 and 1,000,000,000,000; got"
    )
    assert own.input_value() == "1.5"
    enter(own, "7")
    expect(alert).to_have_count(0)
    assert own.input_value() == "7"
    assert "Your own bound" in plot(page)["traces"]
    field = page.get_by_role("spinbutton", name="ε, exactly")
    field.fill("5000")
    field.press("Enter")
    expect(alert).to_contain_text("ε must lie between 0.000001 and 1,000; got 5000")
    settle(page)
    expect(page.locator(".st-key-mean_card")).to_have_count(0)
    assert field.input_value() == "5000"
    enter(field, "0.5")
    expect(alert).to_have_count(0)
    expect(page.locator(".st-key-mean_card")).to_be_visible()


def test_mean_is_copied_from_used_by_the_keyboard_cleared_typed_in_moved_and_reloaded(
    page: Page, app_url: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{app_url}/mean")
    settle(page)
    text = page.locator(".st-key-mean_card .value").inner_text()
    page.locator(".st-key-mean_card").get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == text.split()[0].replace(",", "")

    everything_is_reached_by_the_keyboard(page)
    what_is_cleared_or_typed_stays_gets_a_sentence_and_can_be_filled_again(page)

    # The address follows the slider without filling the history, and a reload comes back to it.
    entries = page.evaluate("history.length")
    for _ in range(3):
        epsilon_slider(page).press("ArrowRight")
        settle(page)
    moved_message = f"{SLIDER_EPSILONS[SLIDER_EPSILONS.index(0.5) + 3]:g}"
    assert parse_qs(urlsplit(page.url).query)["epsilon"] == [moved_message]
    assert page.evaluate("history.length") == entries
    page.reload()
    settle(page)
    assert page.get_by_role("spinbutton", name="ε, exactly").input_value() == moved_message
    expect(page.locator(".st-key-link_problems")).to_have_count(0)
