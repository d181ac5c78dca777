"""The report of an evaluation in Chromium: what axe-core says of it, its width, and that it asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.inspector_page import chromium
from tests.integration.npm_packages import installed
from tests.unit.evaluation.scripted_models import PARIS
from tests.unit.evaluation.test_report import asked

from toolwire.evaluation.asked_model import ModelChoice
from toolwire.evaluation.report import make_report
from toolwire.evaluation.report_page import report_html

FORMATS = ("hermes", "react", "phi4", "granite", "jamba", "pythonic", "harmony", "kimi_k2", "xlam", "step3")
SCREENS = [(width, scheme) for width in (1280, 400) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on ten formats, with right and wrong answers."""
    choices = [ModelChoice("m", format, constrain) for format in FORMATS for constrain in ("", "required")]
    texts = {"1": "No.", "2": "{", "3": PARIS}
    answers = [asked(id, text, choice=choice, format=choice.format) for choice in choices for id, text in texts.items()]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_html(make_report(answers)), "utf-8")
    return path


@pytest.mark.npm
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_axe_finds_nothing(browser: Any, report: Path, width: int, scheme: str) -> None:
    source = (installed("axe-core@4.14.1") / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.evaluate(f"{source}; undefined")
    result = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert [each["id"] for each in result["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert requests == [report.as_uri()]
    page.close()


@pytest.mark.npm
def test_a_sheet_of_paper_shows_all_formats(browser: Any, report: Path) -> None:
    page = browser.new_page(viewport={"width": 794, "height": 1123})  # A4
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") == 794
    page.close()
