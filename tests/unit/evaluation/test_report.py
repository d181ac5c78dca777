from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.unit.evaluation.scripted_models import PARIS, TOOL

from toolwire import ConfigurationError
from toolwire.evaluation.asked_model import ModelChoice
from toolwire.evaluation.call_scoring import AcceptableCall, ExpectedCalls
from toolwire.evaluation.column_names import ColumnNames
from toolwire.evaluation.inspect_tasks import AskedQuestion
from toolwire.evaluation.intervals import adjusted, paired_test, share_of
from toolwire.evaluation.model_answer import ModelAnswer
from toolwire.evaluation.readings import READINGS
from toolwire.evaluation.report import Column, make_report, report_json
from toolwire.evaluation.report_markdown import report_markdown
from toolwire.evaluation.report_page import heat_maps, interval, percent, report_html
from toolwire.evaluation.suite import BrokenRow, SuiteQuestion, text_message
from toolwire.evaluation.verdicts import question_from_json, question_to_json, verdicts
from toolwire.tools import definitions

TOOLS = tuple(definitions([TOOL]).values())
EXPECTED = ExpectedCalls("calls", (AcceptableCall("get_weather", {"city": ["Paris"]}),))


def question(id: str, expected: ExpectedCalls = EXPECTED) -> SuiteQuestion:
    return SuiteQuestion(id, "g", (text_message("user", "Weather?"),), TOOLS, expected)


def asked(id: str, text: str = PARIS, *, choice: ModelChoice | None = None, **members: Any) -> AskedQuestion:
    answer = ModelAnswer(**{"outcome": "answered", "format": "hermes", "text": text, **members})
    return AskedQuestion(choice or ModelChoice("m", "hermes"), question(id), answer, {})


def test_shares_have_wilson_intervals() -> None:
    share = share_of([True] * 8 + [False] * 2)  # the example of Wilson's interval in textbooks: 0.490 to 0.943
    assert (share.count, share.total) == (8, 10)
    assert (round(share.low, 3), round(share.high, 3)) == (0.490, 0.943)
    assert share_of([]).value is None and interval(share_of([])) == "-" and percent(None) == "-"
    assert interval(share) == "8 of 10 (49 % to 94 %)"


def test_columns_are_compared_on_common_questions() -> None:
    rights = {
        "a": {str(at): True for at in range(10)},
        "b": {str(at): at >= 6 for at in range(1, 12)},
    }
    test = paired_test("a", "b", rights)
    assert (test.questions, test.only_first, test.only_second) == (9, 5, 0)
    assert test.p == pytest.approx(2 * 0.5**5)
    first, second = adjusted([test, paired_test("a", "a", rights)])
    assert first.adjusted_p == pytest.approx(2 * test.p) and second.p == 1.0
    assert adjusted([]) == []


def test_questions_without_an_answer_are_shown_once_with_what_had_arrived() -> None:
    late = asked("2", "<tool_call><b>", outcome="timeout", detail="no complete answer within 3 seconds")
    refused = asked("3", "", outcome="error", detail="HTTP 500", choice=ModelChoice("n", "hermes", "auto"))
    report = make_report([asked("1"), late, refused, asked("4", outcome="not_asked")])
    assert [(entry.model, entry.question, entry.outcome) for entry in report.unanswered] == [
        ("m · hermes", "2", "timeout"),
        ("m · hermes", "4", "not_asked"),
        ("n · hermes · constrain auto", "3", "error"),
    ]
    assert report_json(report)["unanswered"][0]["text"] == "<tool_call><b>"
    page = report_html(report)
    assert page.count("&lt;tool_call&gt;&lt;b&gt;") == 1
    assert "not in time: no complete answer within 3 seconds" in page and "failed: HTTP 500" in page
    # The chart has no bar for a model without answers, which would reach from 0 to 100 %.
    assert set(re.findall(r'aria-label="[^"]*; label: (\w+)', page)) == {"m"}
    text = report_markdown(report)
    assert "- 2, m · hermes: not in time: no complete answer within 3 seconds" in text.replace("\\", "")
    assert "- 4, m · hermes: not asked\n" in text
    for write in (report_html, report_markdown):
        assert "Questions without" not in write(make_report([asked("1")]))


def test_the_page_shows_twenty_answers_of_a_column() -> None:
    late = [asked(f"late-{at}", outcome="timeout") for at in range(21)]
    wrong = [asked(f"wrong-{at}", "Hello.") for at in range(22)]
    page = report_html(make_report([*late, *wrong], ["strict"]))
    assert "21, of which 20 are shown" in page and "22 wrong, of which 20 are shown" not in page
    page = report_html(make_report([*late, *wrong], ["whole_message"]))
    assert "22 wrong, of which 20 are shown" in page
    assert "<code>wrong-19</code>" in page and "<code>wrong-20</code>" not in page
    assert "<code>late-19</code>" in page and "<code>late-20</code>" not in page


def test_parts_of_names_that_all_columns_share_are_shown_once() -> None:
    choices = [ModelChoice("m", format, "auto", url="http://server/v1") for format in ("hermes", "react")]
    report = make_report(
        [
            *(asked("1", choice=choice, format=choice.format) for choice in choices),
            asked("2", outcome="timeout", choice=choices[0]),
        ]
    )
    shared = "m at http://server/v1 · constrain auto"
    assert report.columns[0].column.name.startswith("m at http://server/v1 · hermes · constrain auto · ")
    text = report_markdown(report).replace("\\", "")
    assert f"All columns: {shared}\n" in text and text.count("http://server") == 1
    assert "| hermes · whole_message |" in text and "- 2, hermes: not in time" in text
    page = report_html(report)
    # The table of models and formats names the model once more.
    assert f"All columns: <strong>{shared}</strong>" in page and page.count("http://server/v1") == 2
    names = ColumnNames([Column("m", "hermes", constrain, "strict") for constrain in ("", "auto")])
    assert (names.shared, names("m · hermes · strict"), names("m · hermes · constrain auto · strict")) == (
        "m · strict",
        "hermes",
        "hermes · constrain auto",
    )
    assert ColumnNames([Column("m", "hermes", "", "strict")]).shared == ""


def test_a_report_on_one_question_counts_it_as_one() -> None:
    report = make_report([asked("1")], ["strict"])
    page = " ".join(report_html(report).split())
    assert "1 question, 1 column." in page and "so there is nothing to compare" in page
    assert "1 question." in report_markdown(report)
    assert "accounts for 1 comparison (" in " ".join(report_html(make_report([asked("1")], READINGS[:2])).split())


def test_figures_of_a_column() -> None:
    report = make_report(
        [
            asked("1", seconds=1.0, input_tokens=10, output_tokens=2, money=0.5),
            asked("2", f"<tool_call>{PARIS}</tool_call>", seconds=3.0, input_tokens=20, output_tokens=4, money=0.25),
            asked("3", "<tool_call>{]", seconds=2.0, notes=("constrain: refused",)),
            asked("4", outcome="timeout"),
            asked("5", outcome="error", detail="down"),
        ],
        ["whole_message", "strict"],
    )
    whole, strict = report.columns
    assert whole.column == Column("m", "hermes", "", "whole_message", "rules")
    assert whole.outcomes == {"answered": 3, "timeout": 1, "error": 1}
    assert (whole.right.count, whole.right.total, strict.right.count) == (2, 3, 1)
    assert (whole.well_formed.count, whole.irrelevance.total) == (2, 0)
    assert (whole.seconds, whole.slow_seconds, whole.money) == (2.0, 3.0, 0.75)
    assert (whole.input_tokens, whole.output_tokens) == (10.0, 2.0)
    assert whole.repairs == {"fallback": 1} and sum(whole.problems.values()) >= 1
    assert whole.notes == {"constrain: refused": 1}
    assert [wrong.question for wrong in report.wrong] == ["3"]
    assert json.loads(json.dumps(report_json(report)))["columns"][0]["name"] == "m · hermes · whole_message"


def test_a_right_call_in_an_unfinished_answer_is_not_right() -> None:
    entry = asked("1", f"<tool_call>{PARIS}</tool_call>", outcome="timeout")
    for verdict in verdicts(entry.question, entry.answer):
        assert (verdict.right, verdict.well_formed, verdict.fault) == (False, False, None)


def test_only_columns_that_differ_in_one_respect_are_compared() -> None:
    choices = [ModelChoice(model, "hermes", constrain) for model in ("a", "b") for constrain in ("", "auto")]
    report = make_report([asked("1", choice=choice) for choice in choices], ["strict"])  # type: ignore[arg-type]
    pairs = {(test.first, test.second) for test in report.comparisons}
    assert len(pairs) == 4 and ("a · hermes · strict", "b · hermes · constrain auto · strict") not in pairs


def test_default_prompt_is_one_column_with_and_without_its_name() -> None:
    styles = {"1": "", "2": "rules", "3": "brief"}
    answers = [asked(id, choice=ModelChoice("m", "hermes", prompt=style)) for id, style in styles.items()]
    report = make_report(answers, ["strict"])
    assert [(figures.column.prompt, figures.right.total) for figures in report.columns] == [("rules", 2), ("brief", 1)]
    assert len({figures.column.name for figures in report.columns}) == 2


def test_servers_of_one_model_are_columns_of_their_own() -> None:
    choices = [ModelChoice("m", url=f"http://{host}/v1") for host in ("a", "b")]
    answers = [
        asked("1", choice=choice, format="", native_calls=(("get_weather", {"city": "Paris"}),)) for choice in choices
    ]
    names = [figures.column.name for figures in make_report(answers).columns]
    assert names == ["m at http://a/v1 · native", "m at http://b/v1 · native"]


def test_a_heat_map_for_each_constraint() -> None:
    choices = [ModelChoice("a", "hermes"), ModelChoice("b", "hermes"), ModelChoice("a", "hermes", "auto")]
    report = make_report([asked("1", choice=choice) for choice in choices])
    first, second = heat_maps(report.columns)
    assert (first["constrain"], first["down"], first["rows"], first["columns"]) == ("", "model", ["a", "b"], ["hermes"])
    assert (second["constrain"], second["rows"]) == ("auto", ["a"])
    page = report_html(report)
    assert page.count('class="heat"') == 3 and "<svg" in page


def test_many_formats_of_one_model_are_below_each_other() -> None:
    report = make_report(
        [asked("1", choice=ModelChoice("a", format), format=format) for format in ("hermes", "react", "phi4")]
    )
    (map,) = heat_maps(report.columns)
    assert (map["down"], map["rows"], map["columns"]) == ("format", ["hermes", "react", "phi4"], ["a"])
    assert set(map["cells"]) == {("hermes", "a"), ("react", "a"), ("phi4", "a")}


def test_a_report_without_answers_says_why() -> None:
    with pytest.raises(ConfigurationError, match=r"there is no answer to report on$"):
        make_report([])
    with pytest.raises(ConfigurationError, match="there is no answer to report on: down"):
        make_report([asked("1", outcome="error", detail="down")])


def test_markdown_and_html_in_names_are_text() -> None:
    hostile = "a|b <script>alert(1)</script> [x](y) \u202e\nnext"
    report = make_report(
        [asked("1", choice=ModelChoice(hostile, "hermes"))], suite=hostile, broken=[BrokenRow(hostile, hostile)]
    )
    text = report_markdown(report)
    assert not re.search(r"(?<!\\)[<>\[\]]", text) and "\u202e" not in text
    assert text.count(r"a\|b \<script\>alert\(1\)\</script\>") >= 4
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = {line.replace(r"\|", "").count("|") for line in rows[: rows.index(next(r for r in rows if "first" in r))]}
    assert cells == {10}


def test_questions_survive_json() -> None:
    for rule in (EXPECTED, ExpectedCalls("no_call"), ExpectedCalls("any_call")):
        original = question("1", rule)
        copy = question_from_json(json.loads(json.dumps(question_to_json(original))))
        assert (copy.id, copy.group, copy.expected) == (original.id, original.group, original.expected)
        assert copy.messages == original.messages
        assert [(tool.name, tool.parameters) for tool in copy.tools] == [(tool.name, tool.parameters) for tool in TOOLS]


def test_a_format_that_is_asked_for_by_two_names_counts_once() -> None:
    by_default = ModelChoice("m")  # the best format of this model is hermes too
    report = make_report([asked("1"), asked("1", choice=by_default), asked("2", choice=by_default)], ["strict"])
    assert [(figures.right.total, figures.outcomes) for figures in report.columns] == [(2, {"answered": 2})]
