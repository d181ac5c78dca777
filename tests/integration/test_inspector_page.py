"""The inspector's page in Chromium: the list, one request, its actions, keys, and what axe-core says of each state.

The content policy of the page is in force, and an error of the page fails the test. Without Chromium these tests are
skipped.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.inspector_page import Served, chromium, open_page
from tests.integration.npm_packages import installed
from tests.unit.inspector.recorded_exchanges import KEY, PRICES, WRITTEN, api_model, inspected, question, text_model

from toolwire.gateway.model_table import ServedModel
from toolwire.inspector.inspector import Inspector, InspectorOptions
from toolwire.inspector.inspector_app import InspectorApp

BROKEN = 'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa\n'
HOSTILE = '</script><img src=x onerror="document.title=1"><b>bold</b>'
SESSION = {"x-claude-code-session-id": "session-1"}
WIDE, NARROW = (1440, 900), (390, 844)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A gateway that has answered requests of each kind."""

    def make() -> Any:
        return inspected(
            ServedModel("writes-text", (text_model(reasoning="Paris, then."),)),
            ServedModel("in-another-api", (api_model(model=""),), prices=PRICES),
            ServedModel("cut-off", (text_model(BROKEN),)),
            ServedModel("broken", (api_model((429, b'{"error":{"message":"slow down"}}')),)),
            ServedModel("hostile", (text_model(HOSTILE),)),
        )[0]

    gateway = Served(make)
    for number, text in enumerate(("Weather in Paris?", "Weather in Rome?")):
        path, body = question("messages", "in-another-api", text=text, stream=number == 0)
        gateway.post(path, body, SESSION)
    gateway.ask("chat", "cut-off")
    gateway.ask("messages", "broken")
    gateway.ask("chat", "hostile", text=HOSTILE)
    gateway.ask("chat", "in-another-api")
    gateway.ask("chat", "writes-text")
    yield gateway
    gateway.stop()


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    opened = open_page(browser, served)
    opened.wait_for_selector(".row")
    yield opened
    assert opened.errors == []
    opened.context.close()


def until(page: Any, script: str) -> None:
    """Wait until an expression of the page is true; playwright's own function for this breaks the content policy."""
    for _ in range(300):
        if page.evaluate(script):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {script}")


def choose(page: Any, model: str, nth: int = 0) -> None:
    page.locator(".row", has_text=model).nth(nth).click()
    page.wait_for_selector(f"article h2:has-text('{model}')")


def test_the_list_shows_each_request_in_one_row(page: Any) -> None:
    assert page.locator(".row").count() == 7
    first = page.locator(".row").first.inner_text()
    for word in ("writes-text", "get_weather", "2 repairs", "claude-cli 2.1.330", "Chat → Text (hermes)"):
        assert word in first
    assert "1 problem" in page.locator(".row", has_text="cut-off").inner_text()
    assert "429" in page.locator(".row", has_text="broken").inner_text()
    assert "70 → 12" in page.locator(".row", has_text="in-another-api").first.inner_text()
    assert page.url.endswith("/inspector")  # the key is not in the address any more


def test_one_request_shows_the_raw_text_beside_what_was_read(page: Any) -> None:
    choose(page, "writes-text")
    steps = page.locator("tr.step")
    assert "".join(steps.locator("td.raw").all_inner_texts()).replace("\n", "") != ""
    assert page.locator(".event.call .text").first.inner_text() == "get_weather"
    card = page.locator(".card")
    assert '"days": "3"' in card.inner_text() and '"days": 3' in card.inner_text()
    assert "coerced" in card.inner_text() and "missing_close" in card.inner_text()
    assert page.locator("#s-translation").inner_text() == "Translation"


def test_an_answer_can_be_stepped_through(page: Any) -> None:
    choose(page, "writes-text")
    page.get_by_label("First step").click()
    page.wait_for_selector(".snapshot")
    assert "get_weather" not in page.locator(".snapshot").inner_text()
    page.locator(".steps").focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
        if "get_weather(" in page.locator(".snapshot").inner_text():
            break
    snapshot = page.locator(".snapshot").inner_text()
    assert "get_weather(" in snapshot and snapshot.rstrip().endswith("…")
    page.keyboard.press("End")
    until(page, "document.querySelector('.snapshot')?.innerText.includes('\"days\": 3})')")
    assert page.locator("tr.current").count() == 1


def test_problems_failures_and_losses_are_told(page: Any) -> None:
    choose(page, "cut-off")
    assert "incomplete: it must not run" in page.locator("article").inner_text()
    assert "truncated" in page.locator(".problems").first.inner_text()
    choose(page, "broken")
    assert "slow down" in page.locator(".banner").inner_text()
    choose(page, "in-another-api")
    assert "max_tokens" in page.locator(".notes").inner_text()
    assert "$0.000" in page.locator(".facts").inner_text()


def test_the_first_difference_of_the_prompt_is_shown_and_leads_to_the_request_before(page: Any) -> None:
    page.locator(".row", has_text="in-another-api").nth(1).click()
    page.wait_for_selector(".difference")
    text = page.locator(".prefix").inner_text()
    assert "request #1" in text and "messages[0]" in text and "Rome" in text and "Paris" in text
    page.locator(".prefix .link").click()
    until(page, "document.querySelector('.route')?.innerText.includes('#1 ')")


def test_text_of_models_and_clients_is_only_text(page: Any) -> None:
    choose(page, "hostile")
    page.wait_for_selector("#s-answer")
    assert HOSTILE in page.locator("#s-answer ~ .prose").inner_text()
    assert page.locator("article img, article b:has-text('bold')").count() == 0
    assert page.title() == "Toolwire inspector"


def test_keys_move_search_pin_and_go_back(page: Any) -> None:
    page.locator(".list").focus()
    page.keyboard.press("j")
    page.wait_for_selector("article h2:has-text('writes-text')")
    page.keyboard.press("j")
    page.wait_for_selector("article h2:has-text('in-another-api')")
    assert page.locator(".list").get_attribute("aria-activedescendant")
    assert page.evaluate("document.activeElement.className") == "list"
    page.keyboard.press("k")
    page.wait_for_selector("article h2:has-text('writes-text')")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'title'")
    page.keyboard.press("p")
    page.wait_for_selector("button[aria-pressed=true]")
    page.keyboard.press("p")
    page.wait_for_selector("button[aria-pressed=false]")
    page.keyboard.press("Escape")
    until(page, "document.activeElement.className === 'list'")
    page.keyboard.press("/")
    page.keyboard.type("slow down")
    until(page, "document.querySelectorAll('.row').length === 1")
    assert page.locator(".total").inner_text() == "1 of 7 requests"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


def test_search_finds_content_and_filters_find_problems(page: Any) -> None:
    page.fill("#search", "rome")
    until(page, "document.querySelectorAll('.row').length === 1")
    page.fill("#search", "")
    page.get_by_label("with problems").check()
    until(page, "document.querySelectorAll('.row').length === 2")
    page.fill("#search", "no such text")
    page.wait_for_selector(".list.empty")


def test_the_same_bytes_can_be_read_in_another_format(page: Any) -> None:
    choose(page, "writes-text")
    page.get_by_label("Read as").select_option("")
    page.wait_for_selector(".banner.note")
    assert page.locator(".card").count() == 0
    page.get_by_role("button", name="Back to it").click()
    page.wait_for_selector(".card")


def test_a_request_can_be_sent_again_copied_and_saved(page: Any) -> None:
    choose(page, "writes-text")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as curl").click()
    page.wait_for_selector(".toast:not(:empty)")
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl --no-buffer ")
    with page.expect_download() as download:
        page.get_by_text("Save as test row").click()
    assert json.loads(Path(download.value.path()).read_text())["text"] == WRITTEN
    page.get_by_label("Send again to").fill("cut-off")
    page.get_by_role("button", name="Send", exact=True).click()
    page.wait_for_selector("article h2:has-text('cut-off')")
    assert "sent again" in page.locator(".row").first.inner_text()


def test_an_answer_grows_on_the_page_while_it_arrives(browser: Any) -> None:
    held: dict[str, asyncio.Event] = {}

    def make() -> Any:
        held["event"] = asyncio.Event()
        return inspected(ServedModel("*", (text_model(waits=held["event"]),)))[0]

    served = Served(make)
    page = open_page(browser, served)
    page.wait_for_selector(".list.empty")
    asking = threading.Thread(target=lambda: served.ask("chat", "slow"))
    asking.start()
    page.locator(".row", has_text="slow").click()
    page.wait_for_selector(".tag.call:has-text('is being written')")
    assert "running" in page.locator("h2").inner_text()
    served.call(held["event"].set)
    page.wait_for_selector("h2 .state.done")
    page.wait_for_selector(".tag.repair:has-text('missing_close')")
    asking.join(20)
    assert page.errors == []
    page.context.close()
    served.stop()


def test_a_narrow_screen_shows_the_list_or_one_request(browser: Any, served: Served) -> None:
    page = open_page(browser, served, width=NARROW[0], height=NARROW[1])
    page.locator(".row").first.click()
    page.wait_for_selector("article")
    assert not page.locator(".side").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    page.get_by_role("button", name="← Requests").click()
    assert page.locator(".side").is_visible() and not page.locator(".page").is_visible()
    assert page.errors == []
    page.context.close()


def test_ten_thousand_requests_do_not_slow_the_page(browser: Any) -> None:
    number = 10_000

    def make() -> Any:
        inspector = Inspector(InspectorOptions(key=KEY, exchanges=number))
        for at in range(number):
            exchange = inspector.begin(f"id{at}", "openai_compatible", "/v1/chat/completions", "", {})
            exchange.model = f"model-{at % 7}"
            inspector.end(exchange, "done")
        return InspectorApp(inspector)

    served = Served(make)
    page = open_page(browser, served)
    until(page, f"document.querySelector('.total')?.textContent === '{number:,} requests'")
    assert page.locator(".row").count() < 60
    page.locator(".list").focus()
    page.keyboard.press("End")
    page.wait_for_selector("#row-id0[aria-selected=true]")
    assert page.locator("#row-id0").get_attribute("aria-posinset") == f"{number}"
    page.fill("#search", "model-3")
    until(page, "document.querySelector('.total')?.textContent.startsWith('1,4')")
    # Work of the page for one key in the list, measured where other processes do not count much: the fastest of many.
    took = page.evaluate(
        """async () => {
            const list = document.querySelector('.list');
            list.focus();
            let fastest = Infinity;
            for (let n = 0; n < 20; n++) {
                const begin = performance.now();
                list.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true }));
                await new Promise((done) => setTimeout(done));
                fastest = Math.min(fastest, performance.now() - begin);
            }
            return fastest;
        }"""
    )
    assert took < 100, f"{took} ms for one key among {number} requests"
    assert page.errors == []
    page.context.close()
    served.stop()


def test_without_a_key_nothing_is_shown(browser: Any, served: Served) -> None:
    page = open_page(browser, served, key="wrong")
    assert "wrong" in page.locator("p").inner_text()
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Open").click()
    page.wait_for_selector(".row")
    page.context.close()


@pytest.mark.npm
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_axe_finds_nothing_in_any_state(browser: Any, served: Served, scheme: str, size: tuple[int, int]) -> None:
    source = (installed("axe-core@4.14.1") / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    page = open_page(browser, served, width=size[0], height=size[1], scheme=scheme)
    page.wait_for_selector(".row")
    page.evaluate(f"{source}; undefined")
    findings: dict[str, list[str]] = {}

    def look(state: str) -> None:
        result = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        rules = [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in result["violations"]]
        if rules:
            findings[state] = rules

    look("list")
    for model in ("writes-text", "cut-off", "broken", "in-another-api"):
        page.locator(".row", has_text=model).first.click()
        page.wait_for_selector(f"article h2:has-text('{model}')")
        for _ in range(3):  # some contain others
            page.evaluate("document.querySelectorAll('article details').forEach((each) => { each.open = true; })")
            page.wait_for_timeout(50)
        look(model)
        if model == "writes-text":
            page.get_by_label("Step back").click()
            page.wait_for_selector(".snapshot")
            look("a step")
            page.get_by_label("Read as").select_option("")
            page.wait_for_selector(".banner.note")
            look("read as")
        if size == NARROW:
            page.get_by_role("button", name="← Requests").click()
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    look("keys")
    page.keyboard.press("Escape")
    page.fill("#search", "no such text")
    page.wait_for_selector(".list.empty")
    look("nothing found")
    locked = open_page(browser, served, width=size[0], height=size[1], scheme=scheme, key="wrong")
    locked.evaluate(f"{source}; undefined")
    result = locked.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    if result["violations"]:
        findings["locked"] = [each["id"] for each in result["violations"]]
    assert findings == {}
    assert page.errors == []
    page.context.close()
    locked.context.close()
