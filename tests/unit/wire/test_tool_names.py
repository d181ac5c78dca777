"""Which known tool a written name can mean."""

from __future__ import annotations

import pytest

from toolwire.wire.tool_names import ToolNames

NAMES = ToolNames(["search", "files.read_file", "web__fetch", "a.open", "b.open", "Get", "get_"])


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("search", "search"),
        ("search()", "search"),
        ("`search`", "search"),
        ("SEARCH", "search"),
        ("functions.search", "search"),
        ("default_api.search", "search"),
        ("server__search", "search"),
        ("server.tools.search", "search"),
        ("tools/search", "search"),
        ("files.read_file", "files.read_file"),
        ("files_read_file", "files.read_file"),
        ("files-read-file", "files.read_file"),
        ("files.read\\_file", "files.read_file"),
        ("read_file", "files.read_file"),
        ("fetch", "web__fetch"),
        ("a.open", "a.open"),
        ("open", ""),
        ("c.open", ""),
        ("Get", "Get"),
        ("get", "Get"),
        ("searching", ""),
        ("re search", ""),
        ("", ""),
        (".", ""),
        ("search.", ""),
    ],
)
def test_a_name_stands_for_the_one_tool_that_it_can_mean(written: str, name: str) -> None:
    assert NAMES.resolve(written) == name


def test_names_that_differ_only_in_their_separators_are_never_confused() -> None:
    names = ToolNames(["get_user", "get-user"])
    assert (names.resolve("get_user"), names.resolve("get-user"), names.resolve("get.user")) == (
        "get_user",
        "get-user",
        "",
    )


@pytest.mark.parametrize(
    ("tools", "written", "name"),
    [
        (["get_user"], "getUser", "get_user"),
        (["get_user"], "GetUser", "get_user"),
        (["get_user", "getUser"], "getUser", "getUser"),
        (["get_user", "getUser"], "GetUser", ""),
        (["get_user", "getuser"], "GetUser", ""),
        (["get_user", "web.getUser"], "GetUser", ""),
        (["get-user-2"], "getUser2", ""),
        (["getUser"], "get_user", "getUser"),
        (["getUser"], "getuser", "getUser"),
        (["get_user"], "functions.getUser", "get_user"),
        (["api.getUser"], "get_user", "api.getUser"),
        (["get_user", "getUser"], "getUser", "getUser"),
        (["get_user", "get-user"], "getUser", ""),
        (["get_user", "getUser"], "Get-User", ""),
        (["get_user"], "GETUSER", ""),
    ],
)
def test_capitals_stand_for_separators(tools: list[str], written: str, name: str) -> None:
    assert ToolNames(tools).resolve(written) == name


def test_markup_around_a_name_leaves_it_that_name() -> None:
    names = ToolNames(["get_user", "get-user"])
    for written in ("`get_user`", " get\\_user ", '"get_user"', "'get_user'()", "get_user()"):
        assert names.resolve(written) == "get_user", written
    assert names.resolve("GET_USER") == ""


def test_a_name_of_one_tool_without_a_prefix_is_preferred() -> None:
    names = ToolNames(["open", "files.open"])
    assert [names.resolve(written) for written in ("open", "Open", "files.open", "files_open", "x.open")] == [
        "open", "open", "files.open", "files.open", "open",
    ]  # fmt: skip


def test_parts_of_a_name_are_left_out_from_the_front_only() -> None:
    names = ToolNames(["a.b.c", "d__e:f/g"])
    assert [names.resolve(written) for written in ("b.c", "B_C", "c", "x.a.b.c", "a.b", "b")] == [
        "a.b.c", "a.b.c", "a.b.c", "a.b.c", "", "",
    ]  # fmt: skip
    assert {names.resolve(written) for written in ("e:f/g", "f/g", "g")} == {"d__e:f/g"}


def test_an_empty_name_means_no_tool() -> None:
    names = ToolNames(["search."])
    assert names.resolve("") == names.resolve("``") == names.resolve("x.") == ""
    assert names.resolve("search.") == "search."


def test_a_written_name_has_at_most_256_characters_unless_it_is_the_tool_s_own() -> None:
    long = "f" * 300
    names = ToolNames(["search", long])
    assert (names.resolve(long), names.resolve(f"`{long}`")) == (long, "")
    assert names.resolve("x" * 249 + ".search") == "search"
    assert names.resolve("x" * 250 + ".search") == ""


def test_a_tool_is_contained_by_its_own_name_alone() -> None:
    assert "search" in NAMES
    assert "Search" not in NAMES
