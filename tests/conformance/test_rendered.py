"""Rendered text occurs verbatim in the prompts of publishers' own templates."""

from pathlib import Path

import pytest
from tests.conformance.rendered import blocks, prompts

import toolwire

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "rendered"
LEAST = {"definitions": 58, "calls": 58, "results": 70}
"""Number of blocks, of 87, 81 and 81, that occur verbatim. The others differ in JSON's spacing, in additions of a
template to a result, or in a listing in Python or of a single family."""


@pytest.mark.need(18)
@pytest.mark.skipif(not FOLDER.is_dir(), reason="prompts made by publishers' templates are not beside this checkout")
def test_rendered_blocks_occur_in_publishers_prompts() -> None:
    counts = dict.fromkeys(LEAST, 0)
    for row in prompts(FOLDER):
        for kind, text in blocks(row):
            counts[kind] += text in row["prompt"]
    assert all(counts[kind] >= least for kind, least in LEAST.items()), counts


@pytest.mark.skipif(not FOLDER.is_dir(), reason="prompts made by publishers' templates are not beside this checkout")
def test_the_format_is_detected_from_publishers_prompts() -> None:
    rows = [row for row in prompts(FOLDER) if any(message.get("tool_calls") for message in row["messages"])]
    wrong = [row["id"] for row in rows if toolwire.detect_from_template(row["prompt"]).format != row["format"]]
    assert len(wrong) <= 3, wrong  # those write no call in full, or with other white space
