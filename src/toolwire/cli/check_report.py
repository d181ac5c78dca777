"""The report of `toolwire check`: a table, objects for a program, JUnit, and a file with all exchanges."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.text import Text

from toolwire.cli.console import console, labelled, print_rows, safe, styled
from toolwire.probes.probe import STATUSES, Probe, ProbeResult, Status
from toolwire.text.truncate import truncate

INTERRUPTION = "the check was interrupted"
"""Why probes that were left have no result."""
STYLES: dict[Status, str] = {"passed": "green", "failed": "red", "not shown": "yellow"}
MAX_WRITTEN = 100_000
"""Maximum length of a request or an answer in the file with all exchanges, in characters."""
MAX_SHOWN = 4_000
"""Maximum length of a request or an answer in JUnit's report, in characters."""
_XML_CONTROLS = {code: "\ufffd" for code in (*range(0x20), 0xFFFE, 0xFFFF) if chr(code) not in "\t\n\r"}
"""Characters that XML cannot contain, except surrogates."""

Hidden = Callable[[str], str]
"""Returns a text without the secrets in it."""


def counts_of(results: Iterable[ProbeResult]) -> dict[str, int]:
    """Return the number of results of each status."""
    counts = Counter(result.status for result in results)
    return {status: counts[status] for status in STATUSES}


def result_row(result: ProbeResult) -> dict[str, str]:
    """Return a result as an object, without its exchanges."""
    return {
        "probe": result.probe.id,
        "theme": result.probe.theme,
        "title": result.probe.title,
        "status": result.status,
        "reason": result.reason,
        "source": result.probe.source,
    }


class ResultTable:
    """The table of results, whose rows are printed one by one as the probes end.

    Args:
        probes: all probes that run, whose names decide how wide the columns are.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        # One fault of a server can break most rules, each with the same words.
        self._first_with: dict[str, str] = {}
        self._widths = {
            "result": max(map(len, STATUSES)),
            "theme": max((len(probe.theme) for probe in probes), default=0),
            "probe": max((len(probe.id) for probe in probes), default=0),
        }
        self._has_header = False

    def show(self, result: ProbeResult) -> None:
        """Print the row of a result."""
        reason = result.reason or result.probe.title
        first = self._first_with.setdefault(reason, result.probe.id)
        row = (
            styled(result.status, STYLES[result.status]),
            styled(result.probe.theme),
            styled(result.probe.id),
            styled(reason if first == result.probe.id else f"the same as for {first}"),
        )
        columns = (*self._widths, "rule or reason")
        print_rows(columns, [row], fold=columns[-1:], widths=self._widths, header=not self._has_header)
        self._has_header = True


def show_summary(results: Sequence[ProbeResult]) -> None:
    """Print the sources of the rules that are broken, and the counts."""
    screen = console()
    for result in results:
        if result.status == "failed":
            screen.print(labelled("rule", f"{result.probe.id}: {result.probe.title} {result.probe.source}", "dim"))
    summary = ", ".join(f"{count} {status}" for status, count in counts_of(results).items())
    screen.print(Text(safe(summary), style="bold"))


def write_report(path: str, target: dict[str, str], results: Sequence[ProbeResult], hidden: Hidden) -> None:
    """Write a JSON file with the results, and with the requests and answers that they name by their position.

    Raises:
        OSError: the file cannot be written.
    """
    # Many probes read the same exchange, and a faulty server can send long ones.
    positions: dict[int, int] = {}
    exchanges: list[dict[str, Any]] = []
    for exchange in (exchange for result in results for exchange in result.exchanges):
        if id(exchange) not in positions:
            positions[id(exchange)] = len(exchanges)
            exchanges.append(exchange.as_json(_shortened(hidden, MAX_WRITTEN)))
    report = {
        **target,
        "counts": counts_of(results),
        "results": [
            {**result_row(result), "exchanges": [positions[id(exchange)] for exchange in result.exchanges]}
            for result in results
        ],
        "exchanges": exchanges,
    }
    # Only ASCII: whatever shows the file, no character of an answer controls a terminal.
    Path(path).write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def write_junit(path: str, target: str, results: Sequence[ProbeResult], hidden: Hidden) -> None:
    """Write the results as a report of JUnit: a suite for each theme, a case for each probe.

    Raises:
        OSError: the file cannot be written.
    """
    root = ElementTree.Element("testsuites", name=_xml(f"toolwire check {target}"))
    _count(root, results)
    # Probes of one theme may be apart, because they run in the order of their requests.
    for theme in dict.fromkeys(result.probe.theme for result in results):
        group = [result for result in results if result.probe.theme == theme]
        suite = ElementTree.SubElement(root, "testsuite", name=theme)
        _count(suite, group)
        for result in group:
            _add_case(suite, result, hidden)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _count(element: ElementTree.Element, results: Sequence[ProbeResult]) -> None:
    counts = counts_of(results)
    element.set("tests", str(len(results)))
    element.set("failures", str(counts["failed"]))
    element.set("skipped", str(counts["not shown"]))
    element.set("errors", "0")


def _add_case(suite: ElementTree.Element, result: ProbeResult, hidden: Hidden) -> None:
    seconds = sum(exchange.pieces[-1].seconds for exchange in result.exchanges if exchange.pieces)
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"toolwire.check.{result.probe.theme}", name=result.probe.id, time=f"{seconds:.3f}"
    )
    if result.status == "not shown":
        ElementTree.SubElement(case, "skipped", message=_xml(result.reason))
    # Requests and answers of rules that are followed would make the report too large for most build servers.
    if result.status != "failed":
        return
    failure = ElementTree.SubElement(case, "failure", message=_xml(result.reason), type="rule")
    failure.text = _xml(f"{result.probe.title} {result.probe.source}")
    output = ElementTree.SubElement(case, "system-out")
    shown = _shortened(hidden, MAX_SHOWN)
    output.text = _xml("\n\n".join(_exchange_text(exchange.as_json(shown)) for exchange in result.exchanges))


def _exchange_text(exchange: dict[str, Any]) -> str:
    answer = exchange["answer"] or exchange["error"]
    return f"POST {exchange['url']}\n{exchange['sent']}\n\nHTTP {exchange['status']}\n{answer}"


def _shortened(hidden: Hidden, limit: int) -> Hidden:
    """Return a function that hides secrets and then shortens: half a secret could not be recognized any more."""
    return lambda text: truncate(hidden(text), limit, where="middle")


def _xml(text: str) -> str:
    """Return a text without characters that XML cannot contain."""
    return text.translate(_XML_CONTROLS).encode("utf-8", "replace").decode("utf-8")
