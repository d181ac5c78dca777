"""What was approved, kept in a file; and results, in both directions."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from toolwire import FilePart, ImagePart, OpaquePart, ToolCall, ToolDefinition, ToolResult
from toolwire.errors import ConfigurationError
from toolwire.mcp import results
from toolwire.mcp.approvals import Approvals
from toolwire.mcp.definitions import (
    DeclaredTool,
    QuarantinedTool,
    clean,
    difference,
    from_stored,
    read_tools,
    repeatable,
)
from toolwire.mcp.oauth import Logins
from toolwire.mcp.results import MAX_IMAGES, MAX_TEXT, from_mcp, to_mcp
from toolwire.mcp.servers import McpServer

A = McpServer(name="a", command="x")
T = {"name": "t", "description": "Does.", "inputSchema": {"type": "object"}}


def test_approvals_are_stored_per_server_and_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.sqlite3"
    first = Approvals(path)
    assert path.stat().st_mode & 0o077 == 0
    assert first.server(A) is None
    first.approve(A, A.launch())
    first.pin(A, {"t": {"name": "t"}, "a": {"name": "a"}})
    second = Approvals(path)
    approved = second.server(A)
    assert approved is not None
    assert (approved.hash, approved.listed) == (A.launch().hash, True)
    assert list(second.tools(A)) == ["t", "a"], "in the order in which they came"
    for other in (A.model_copy(update={"source": "/x.toml"}), A.model_copy(update={"name": "b"})):
        assert second.server(other) is None
        assert second.tools(other) == {}
    second.forget(A)
    assert (first.server(A), first.tools(A)) == (None, {})


def test_user_file_is_in_the_state_directory_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_STATE", str(tmp_path))
    path = tmp_path / "mcp.sqlite3"
    old = sqlite3.connect(path)  # as it was made before, and let all read
    old.execute("CREATE TABLE servers (source TEXT, name TEXT, hash TEXT, shown TEXT, listed INTEGER DEFAULT 0)")
    old.execute("INSERT INTO servers VALUES ('', 'a', 'h', 's', 1)")
    old.commit()
    old.close()
    path.chmod(0o644)
    approvals = Approvals.of_user()
    assert path.stat().st_mode & 0o777 == 0o600
    approved = approvals.server(A)
    assert approved is not None
    assert (approved.hash, approved.listed) == ("h", True)
    Logins.of_user().put(A, "u", "tokens", "{}")
    assert Logins.of_user().get(A, "u", "tokens") == "{}"


def test_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    path.write_text("something else" * 100)
    with pytest.raises(ConfigurationError, match="Without the file, every approval is asked for again"):
        Approvals(path)
    with pytest.raises(ConfigurationError):
        Approvals(tmp_path)


def declared(**more: Any) -> DeclaredTool:
    (tools,), bad = read_tools([{**T, **more}], A)
    assert not bad
    return tools


def test_definitions_are_stored_and_read_back() -> None:
    item = declared(
        name="a b",
        title="T",
        annotations={"readOnlyHint": True, "strict": True, "openWorldHint": 5},
        outputSchema={"type": "string"},
    )
    assert item.definition.name == "a%20b"
    assert item.definition.annotations == {"readOnlyHint": True, "title": "T", "outputSchema": {"type": "string"}}
    again = from_stored(item.stored(), A)
    assert again == item
    assert from_stored({"name": "t"}, A) is None


@pytest.mark.need(36)
@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("plain.name-x/y_1", "plain.name-x/y_1"),
        ("a b", "a%20b"),
        ("a%20b", "a%2520b"),
        ("f(x)", "f%28x%29"),
        ("google:mcp:create-pdf", "google:mcp:create-pdf"),
        ("天气", "天气"),
    ],
)
def test_tool_names_are_escaped_unambiguously(name: str, safe: str) -> None:
    assert declared(name=name).definition.name == safe


def test_escaped_names_do_not_collide() -> None:
    tools, bad = read_tools([{**T, "name": "a b"}, {**T, "name": "a%20b"}], A)
    assert ([item.definition.name for item in tools], bad) == (["a%20b", "a%2520b"], [])


def test_a_tool_that_is_listed_again_is_one_tool_and_two_of_a_name_are_none() -> None:
    other = {**T, "name": "other"}
    tools, bad = read_tools([other, T, {**other, "description": "Changed."}, dict(T), other], A)
    assert [item.name for item in tools] == [T["name"]]
    assert [item.name for item in bad] == ["other", "other"]
    assert {item.reason for item in bad} == {"the server has several tools of this name"}


@pytest.mark.parametrize("given", [None, 5, [], {}, {"name": ""}, {**T, "description": 5}, {**T, "inputSchema": []}])
def test_invalid_tool_is_quarantined(given: Any) -> None:
    tools, (bad,) = read_tools([given], A)
    assert not tools
    assert isinstance(bad, QuarantinedTool)
    assert bad.reason


def test_changed_definition_is_shown_as_a_diff() -> None:
    text = difference(declared(), declared(description="Does.\nAnd sends your key."))
    assert [line for line in text.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        '- "Does."',
        '+ "Does.",',
        '+ "And sends your key."',
    ]


def test_diff_shows_text_for_models_first_and_is_complete() -> None:
    noise = {"type": "object", "properties": {f"f{at}": {"type": "string"} for at in range(1_000)}}
    text = difference(declared(), declared(description="Does. And sends your key.", outputSchema=noise))
    assert len(text) > 30_000
    assert text.index("And sends your key.") < 200
    assert '"f999"' in text
    long = {f"f{at}": True for at in range(5_000)}
    assert read_tools([{**T, "inputSchema": {"type": "object", "properties": long}}], A)[1][0].reason.endswith(
        "too long to be shown"
    )


def _bomb(reference: str, count: int) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"a{at}": {"allOf": [{"$ref": reference.format(at + 1)}] * 2, "$anchor": f"a{at}"} for at in range(count)
    }
    return {
        "type": "object",
        "properties": {"definitions": {"$ref": reference.format(0)}},
        "$defs": {**defs, f"a{count}": {"type": "integer", "$anchor": f"a{count}"}},
    }


@pytest.mark.parametrize("reference", ["#/$defs/a{}", "#a{}"])
@pytest.mark.parametrize("key", ["inputSchema", "outputSchema"])
def test_schema_that_expands_through_references_is_quarantined(reference: str, key: str) -> None:
    assert len(read_tools([{**T, key: _bomb(reference, 4)}], A)[0]) == 1
    for count in (20, 300):
        tools, (bad,) = read_tools([{**T, key: _bomb(reference, count)}], A)
        assert not tools
        assert "schema" in bad.reason


def test_recursive_schema_is_accepted() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert len(read_tools([{**T, "inputSchema": tree}], A)[0]) == 1


@pytest.mark.parametrize("unseen", ["\ufe00", "\u034f", "\u17b4", "\u180b", "\u180f", "\U000e0101", "\u200b"])
def test_invisible_characters_are_removed_or_refused(unseen: str) -> None:
    assert clean(f"a{unseen}b", 99) == "ab"
    assert not read_tools([{**T, "name": f"a{unseen}b"}], A)[0]


def test_clean_removes_control_characters_and_truncates() -> None:
    assert clean("a\tb\n\x1b[1mc\u2028d", 99) == "a\tb\n[1mc\nd"
    assert clean("x" * 50, 10) == "xxxxxxxxxx… (40 characters left out)"
    assert clean("naïve 天气 🙂", 99) == "naïve 天气 🙂"


def result(*content: dict[str, Any], **more: Any) -> CallToolResult:
    return CallToolResult.model_validate({"content": list(content), **more})


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
TEXT = {"type": "text", "text": "x"}
LINK = {"type": "resource_link", "name": "x", "uri": "file:///x"}
SOUND = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}


def resource(**more: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "test://a b", "mimeType": "text/plain", **more}}


@pytest.mark.parametrize(
    ("given", "told", "images"),
    [
        (result(TEXT, IMAGE), "x", 1),
        (result(IMAGE), None, 1),
        (result(IMAGE, structuredContent={"k": 1}), {"k": 1}, 1),
        (result({**IMAGE, "mimeType": "text/html"}), "[an image that cannot be shown: text/html, 3 bytes]", 0),
        (result({**IMAGE, "data": "no base64"}), "[an image that cannot be shown: image/png, 6 bytes]", 0),
        (result({**IMAGE, "data": ""}), "[an image that cannot be shown: image/png, 0 bytes]", 0),
        (result({**IMAGE, "mimeType": "IMAGE/PNG; q=1"}), None, 1),
        (result(resource(text="inside")), "[resource test://a b (text/plain)]\ninside", 0),
        (result(resource(blob="no base64")), "[resource test://a b (text/plain), not shown: 6 bytes]", 0),
        (result(resource(blob="aGk=", mimeType="image/png")), "[resource test://a b (image/png)]", 1),
        (result(*[IMAGE] * (MAX_IMAGES + 1)), "[an image that cannot be shown: image/png, 3 bytes]", MAX_IMAGES),
        (
            result({"type": "text", "text": "x" * (MAX_TEXT + 5)}),
            "x" * MAX_TEXT + "… (5 characters left out)",
            0,
        ),
        (result(structuredContent=[1]), [1], 0),
        (result(structuredContent=float("nan")), "The tool ran, but its result is not JSON.", 0),
    ],
)
def test_server_result_becomes_a_tool_result(given: CallToolResult, told: Any, images: int) -> None:
    converted = from_mcp(given, declared())
    assert (converted.result if converted.success else converted.error) == told
    assert len(converted.images) == images


@pytest.mark.parametrize(
    ("content", "text", "files"),
    [
        ([SOUND], None, (FilePart("AAAA", "audio/wav"),)),
        ([TEXT, SOUND], "x", (FilePart("AAAA", "audio/wav"),)),
        ([{**SOUND, "mimeType": "text/html"}], "[a sound that cannot be played: text/html, 3 bytes]", ()),
        ([{**SOUND, "data": "no base64"}], "[a sound that cannot be played: audio/wav, 6 bytes]", ()),
        (
            [resource(uri="file:///tmp/a%20b.pdf", blob="aGk=", mimeType="application/pdf")],
            "[resource file:///tmp/a%20b.pdf (application/pdf)]",
            (FilePart("aGk=", "application/pdf", name="a b.pdf"),),
        ),
        ([resource(blob="aGk=")], "[resource test://a b (text/plain)]", (FilePart("aGk=", "text/plain", name="a b"),)),
        (
            [resource(blob="aGk=", mimeType="a\nb")],
            "[resource test://a b (a b)]",
            (FilePart("aGk=", name="a b"),),
        ),
        ([SOUND] * 22, "\n".join(["[a sound that cannot be played: audio/wav, 3 bytes]"] * 2), None),
    ],
)
def test_sounds_and_binary_resources_become_files(
    content: list[dict[str, Any]], text: str | None, files: tuple[FilePart, ...] | None
) -> None:
    converted = from_mcp(result(*content), declared())
    assert converted.result == text
    assert converted.files == ((FilePart("AAAA", "audio/wav"),) * 20 if files is None else files)
    assert "AAAA" not in converted.text
    failed = from_mcp(result(*content, isError=True), declared())
    assert (failed.success, failed.files) == (False, converted.files)


def test_content_without_a_text_form_is_passed_on_to_mcp_clients() -> None:
    converted = from_mcp(result(TEXT, LINK), declared())
    assert converted.extra == OpaquePart({"content": [TEXT, LINK]}, "mcp")
    assert to_mcp(converted).model_dump(by_alias=True, exclude_none=True)["content"] == [TEXT, LINK]
    for content in ([TEXT, IMAGE], [TEXT, SOUND], [SOUND]):
        shown = from_mcp(result(*content), declared())
        assert shown.extra is None
        assert to_mcp(shown).model_dump(by_alias=True, exclude_none=True)["content"] == content
    paper = resource(uri="file:///a.pdf", blob="aGk=", mimeType="application/pdf")
    stored = to_mcp(from_mcp(result(paper), declared()))
    assert stored.model_dump(by_alias=True, exclude_none=True)["content"] == [paper]


def test_shaped_result_replaces_the_original_for_clients() -> None:
    result_given = result({"type": "text", "text": "x" * 900}, LINK, structuredContent={"all": "y" * 900})
    call = ToolCall("t", {})
    for declaration in (declared(), declared(outputSchema={"type": "object"})):
        converted = from_mcp(result_given, declaration)
        unchanged = to_mcp(results.shaped(lambda _, result: result)(call, converted))
        assert (len(unchanged.content), unchanged.structured_content) == (2, {"all": "y" * 900})
        short = to_mcp(results.shaped(lambda _, result: replace(result, result="short"))(call, converted))
        assert [block.model_dump(by_alias=True, exclude_none=True) for block in short.content] == [
            {"type": "text", "text": "short"}
        ]
        assert short.structured_content is None


def test_binary_parts_share_one_bound_and_omissions_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_BINARY", 12)
    wide = {**IMAGE, "data": "aGkh" * 3}
    converted = from_mcp(
        result(IMAGE, wide, SOUND, {**SOUND, "data": "AAAA" * 9}, resource(blob="aGkh" * 2)), declared()
    )
    limit = "; the binary parts of a result have at most 9 bytes]"
    assert [len(image.data) for image in converted.images] == [4]
    assert converted.result.splitlines() == [
        f"[an image was left out: image/png, 9 bytes{limit}",
        f"[a sound was left out: audio/wav, 27 bytes{limit}",
        f"[resource test://a b was left out: text/plain, 6 bytes{limit}",
    ]
    assert [file.data for file in converted.files] == ["AAAA"]
    sent = to_mcp(converted).model_dump_json(by_alias=True)
    assert converted.extra is not None
    assert sent.count("was left out") == 3
    assert wide["data"] not in sent
    served = to_mcp(
        ToolResult("", "", "x", images=(ImagePart("aGkh" * 3, "image/png"), ImagePart("aGkh", "image/png")))
    )
    assert [type(block).__name__ for block in served.content] == ["TextContent", "ImageContent", "TextContent"]
    assert (
        from_mcp(result(wide, wide, isError=True), declared()).error
        == f"[an image was left out: image/png, 9 bytes{limit}"
    )


def test_stored_mcp_content_is_bounded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"type": "text", "text": "x" * (MAX_TEXT + 5)}
    assert from_mcp(result(long, LINK), declared()).extra is None
    converted = from_mcp(result(TEXT, structuredContent={"a": "y" * MAX_TEXT}), declared())
    assert (
        converted.text
        == f"x\n[structured content was left out: it has {MAX_TEXT + 9} characters, at most {MAX_TEXT} are taken]"
    )
    assert len(to_mcp(converted).model_dump_json()) < MAX_TEXT
    monkeypatch.setattr(results, "MAX_STORED", 100)
    converted = from_mcp(result({"type": "text", "text": "ü" * 60}, LINK), declared())
    assert converted.extra is None
    oversized = ToolResult("", "", "y", extra=OpaquePart({"content": [TEXT] * 50}, "mcp"))
    assert [block.model_dump()["text"] for block in to_mcp(oversized).content] == ["y"]
    assert converted.text.endswith("[the rest of this result was left out: it has more than 100 bytes]")
    sent = to_mcp(ToolResult("", "", {"a": "z" * MAX_TEXT}))
    assert (sent.structured_content, len(sent.content[0].model_dump()["text"]) < MAX_TEXT + 60) == (None, True)


@pytest.mark.parametrize(
    ("given", "content", "structured", "failed"),
    [
        (ToolResult("", "", "x"), [TEXT], None, False),
        (ToolResult("", "", {"a": 1}), [{"type": "text", "text": '{"a": 1}'}], {"a": 1}, False),
        (ToolResult("", "", [1]), [{"type": "text", "text": "[1]"}], None, False),
        (ToolResult("", ""), [], None, False),
        (ToolResult("", "", error="x"), [TEXT], None, True),
        (ToolResult("", "", "x", images=(ImagePart("aGk=", "image/png"),)), [TEXT, IMAGE], None, False),
        (
            ToolResult("", "", images=(ImagePart(url="https://h/i.png"),)),
            [{"type": "resource_link", "name": "image", "uri": "https://h/i.png"}],
            None,
            False,
        ),
        (ToolResult("", "", "x", extra=OpaquePart({"a": 1}, "anthropic_messages")), [TEXT], None, False),
    ],
)
def test_tool_result_becomes_an_mcp_result(
    given: ToolResult, content: list[Any], structured: Any, failed: bool
) -> None:
    converted = to_mcp(given).model_dump(by_alias=True, exclude_none=True)
    assert converted["content"] == content
    assert (converted.get("structuredContent"), converted["isError"]) == (structured, failed)


@pytest.mark.parametrize(
    ("hints", "may"),
    [
        ({}, False),
        ({"idempotentHint": True}, True),
        ({"idempotentHint": "yes"}, False),
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
        ({"destructiveHint": True, "idempotentHint": True}, True),
    ],
)
def test_only_tools_of_trusted_servers_are_repeatable(hints: dict[str, Any], may: bool) -> None:
    trusted = A.model_copy(update={"trusted": True})
    assert repeatable(declared(annotations=hints), trusted) is may
    assert not repeatable(declared(annotations=hints), A)


def test_declared_tool_is_an_ordinary_definition() -> None:
    assert isinstance(declared().definition, ToolDefinition)
    assert declared().definition.untrusted


def test_files_of_a_result_reach_mcp_clients() -> None:
    files = (
        FilePart("UklGRgAAAABXQVZF", "audio/wav"),
        FilePart("JVBERi0=", "application/pdf", name="a b.pdf"),
        FilePart(url="https://example.org/c.pdf", name="c.pdf"),
        FilePart("A" * (results.MAX_BINARY + 1), "video/mp4"),
    )
    sound, page, link, left_out = to_mcp(ToolResult("1", "f", files=files)).model_dump(exclude_none=True)["content"]
    assert (sound["type"], sound["data"]) == ("audio", files[0].data)
    assert (page["resource"]["uri"], page["resource"]["blob"]) == ("attachment:///a%20b.pdf", files[1].data)
    assert (link["type"], link["uri"]) == ("resource_link", "https://example.org/c.pdf")
    assert "the file video" in left_out["text"]
