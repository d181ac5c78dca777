"""Files written: whole or not at all, and only what was shown."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from toolwire import ToolCall
from toolwire.builtin.editing import Editing
from toolwire.builtin.matching import Edit
from toolwire.builtin.toolsets import editing_tools
from toolwire.errors import ToolError
from toolwire.execution.executor import ToolExecutor
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import ToolResult
from toolwire.policy.approval import Approval
from toolwire.policy.session import Session
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.tools import Tier


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "allowed"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    return root


@pytest.fixture
def editing(root: Path) -> Editing:
    return Editing(AllowedRoots(root))


def edits(*pairs: tuple[str, str]) -> list[Edit]:
    return [Edit(search=search, replace=replace) for search, replace in pairs]


def test_files_are_written(root: Path, editing: Editing) -> None:
    assert editing.write_file("a.txt", "new\n") == "wrote 4 bytes, 1 lines, to a.txt"
    assert editing.write_file("x/y/z.txt", "é") == "wrote 2 bytes, 1 lines, to x/y/z.txt"
    assert (root / "a.txt").read_text() == "new\n"
    assert (root / "x/y/z.txt").read_text() == "é"
    assert editing.write_file("empty", "") == "wrote 0 bytes, 0 lines, to empty"
    for path in ("../out", "/etc/x", "x", "x/y/z.txt/w", "", "new/../../out"):
        with pytest.raises(ToolError):
            editing.write_file(path, "bad")
    with pytest.raises(ToolError, match="surrogate"):
        editing.write_file("a.txt", "\ud800")
    assert sorted(os.listdir(root)) == ["a.txt", "empty", "x"]


def test_files_are_edited(root: Path, editing: Editing) -> None:
    assert editing.apply_diff("a.txt", edits(("two", "2"))) == "made 1 edit in a.txt"
    assert editing.apply_diff("a.txt", edits(("one ", "1"), ("2", "two"))) == (
        "made 2 edits in a.txt; edit 1 fits apart from white space at the ends of lines"
    )
    assert (root / "a.txt").read_text() == "1\ntwo\nthree\n"
    (root / "b").write_bytes(b"a\xff")
    (root / "c").write_bytes(b"a\0")
    for path, message in (
        ("none", "write_file creates files"),
        ("b", "not UTF-8"),
        ("c", "not UTF-8"),
        (".", "director"),
    ):
        with pytest.raises(ToolError, match=message):
            editing.apply_diff(path, edits(("a", "b")))


def test_links_are_followed_inside_the_root_and_nowhere_else(root: Path, editing: Editing) -> None:
    (root / "link").symlink_to("a.txt")
    (root.parent / "secret").write_text("one\n")
    (root / "out").symlink_to("../secret")
    editing.apply_diff("link", edits(("one", "1")))
    assert (root / "link").is_symlink()
    assert (root / "a.txt").read_text().startswith("1\n")
    for work in (
        lambda: editing.apply_diff("out", edits(("one", "1"))),
        lambda: editing.write_file("out", "x"),
        lambda: editing.preview_write({"path": "out", "content": "x"}),
    ):
        with pytest.raises(ToolError, match="outside"):
            work()
    assert (root.parent / "secret").read_text() == "one\n"


@pytest.mark.mission("C34")
def test_previews_match_the_changes(root: Path, editing: Editing) -> None:
    arguments: dict[str, Any] = {"path": "a.txt", "edits": edits(("two", "2\n2b"))}
    assert editing.preview_diff(arguments) == "--- a.txt\n+++ a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three"
    editing.apply_diff(**arguments)
    assert (root / "a.txt").read_text() == "one\n2\n2b\nthree\n"
    assert (
        editing.preview_write({"path": "n/m", "content": "x\n"}) == "--- (no such file)\n+++ n/m\n@@ -0,0 +1,1 @@\n+x"
    )
    assert not (root / "n").exists()
    (root / "b").write_bytes(b"\0\xff")
    assert "(replaces 2 bytes that are not text)" in editing.preview_write({"path": "b", "content": "x\n"})
    shown = editing.preview_diff({"path": "a.txt", "edits": edits(("one \n2", "1\n2"))})
    assert shown.startswith("(edit 1 fits apart from white space at the ends of lines)\n--- a.txt")


@pytest.mark.mission("C35")
def test_impossible_previews_raise(root: Path, editing: Editing) -> None:
    for path in ("../x", "missing/../x", "/etc/x", "."):
        with pytest.raises(ToolError):
            editing.preview_write({"path": path, "content": "x"})
    with pytest.raises(ToolError, match="nowhere"):
        editing.preview_diff({"path": "a.txt", "edits": edits(("no", "yes"))})
    with pytest.raises(ToolError, match="surrogate"):
        editing.preview_write({"path": "a.txt", "content": "\udfff"})
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_file_that_changed_since_its_preview_is_not_written(root: Path, editing: Editing) -> None:
    write: dict[str, Any] = {"path": "a.txt", "content": "mine\n"}
    change: dict[str, Any] = {"path": "a.txt", "edits": edits(("two", "2"))}
    new: dict[str, Any] = {"path": "new.txt", "content": "mine\n"}
    editing.preview_write(write)
    editing.preview_diff(change)
    editing.preview_write(new)
    (root / "a.txt").write_text("one\ntwo\nsomebody else's\n")
    (root / "new.txt").write_text("somebody else's\n")
    for work in (
        lambda: editing.write_file(**write),
        lambda: editing.apply_diff(**change),
        lambda: editing.write_file(**new),
    ):
        with pytest.raises(ToolError, match="has changed since"):
            work()
    assert (root / "a.txt").read_text() == "one\ntwo\nsomebody else's\n"
    assert (root / "new.txt").read_text() == "somebody else's\n"
    editing.preview_diff(change)
    editing.apply_diff(**change)
    assert (root / "a.txt").read_text() == "one\n2\nsomebody else's\n"
    editing.write_file("a.txt", "not shown, so nothing to compare")


def test_the_definitions_of_editing_tools(root: Path) -> None:
    assert editing_tools() == ()
    for tool in editing_tools(root):
        assert tool.definition.tier is Tier.RUN
        assert tool.definition.requires_confirmation
        assert tool.behavior.preview is not None


def test_permissions_are_preserved_and_failures_leave_no_files(
    root: Path, editing: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").chmod(0o751)
    editing.write_file("a.txt", "x")
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o751

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    for path in ("a.txt", "p/q/r"):
        with pytest.raises(ToolError, match="No space left"):
            editing.write_file(path, "y")
    assert (root / "a.txt").read_text() == "x"
    assert os.listdir(root) == ["a.txt"]


def test_equal_pending_calls_are_distinct(root: Path) -> None:
    """Each runs only on what its own diff began with, whatever was shown for the other one since."""
    registry = ToolRegistry(editing_tools(root))
    call = ToolCall("write_file", {"path": "same.txt", "content": "new\n"})
    (root / "same.txt").write_text("v1\n")

    async def both() -> list[ToolResult]:
        approved, shown = [asyncio.Event(), asyncio.Event()], [asyncio.Event(), asyncio.Event()]

        def ask(which: int) -> Callable[[Approval], Awaitable[bool]]:
            async def confirm(approval: Approval) -> bool:
                assert f"-v{which + 1}" in approval.preview
                shown[which].set()
                return await approved[which].wait()

            return confirm

        tasks = []
        for which in (0, 1):
            (root / "same.txt").write_text(f"v{which + 1}\n")
            executor = ToolExecutor(registry, confirm=ask(which))
            tasks.append(asyncio.create_task(executor.execute([call], Session(tier=Tier.RUN))))
            await shown[which].wait()
        approved[0].set()
        first = await tasks[0]
        (root / "same.txt").write_text("v3\n")
        approved[1].set()
        return [*first, *await tasks[1]]

    assert ["has changed" in (result.error or "") for result in asyncio.run(both())] == [True, True]
    assert (root / "same.txt").read_text() == "v3\n"


def test_a_path_of_a_directory_is_refused(root: Path, editing: Editing) -> None:
    for path in ("fresh/", "fresh/."):
        for write in (
            lambda at: editing.write_file(at, "x"),
            lambda at: editing.preview_write({"path": at, "content": "x"}),
        ):
            with pytest.raises(ToolError, match="names a directory"):
                write(path)
    assert not (root / "fresh").exists()
