"""Sets of built-in tools: for reading, editing, running commands and ending a turn."""

from __future__ import annotations

import os
from functools import partial
from types import NoneType
from typing import Any

from toolwire._surface import check_type
from toolwire.builtin.editing import Editing
from toolwire.builtin.matching import Edit
from toolwire.builtin.reading import MAX_READ_CHARACTERS, Reading
from toolwire.builtin.run_command import Commands, CommandSettings
from toolwire.builtin.turn_tools import ask_question, converse, final_answer, task_completion
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.tools import TIER, Tier, Tool, tool

__all__ = [
    "AllowedRoots",
    "CommandSettings",
    "Edit",
    "answer_tool",
    "builtin_tools",
    "command_tools",
    "editing_tools",
    "ending_tools",
    "reading_tools",
]

Root = str | os.PathLike[str]
Tools = tuple[Tool[..., Any], ...]


def builtin_tools(
    *roots: Root | AllowedRoots,
    tier: Tier = Tier.RUN,
    commands: CommandSettings | None = None,
    suggestions: bool = True,
) -> Tools:
    """Return all built-in tools up to a tier; without roots, only those that end a turn.

    Args:
        roots: directories below which files may be used, or one `AllowedRoots`.
        tier: the highest tier.
        commands: how commands are run.
        suggestions: see `reading_tools`.

    Raises:
        ToolError: a root is not a directory.
    """
    check_type("tier", tier, Tier, TIER)
    check_type("commands", commands, (CommandSettings, NoneType), "CommandSettings or None")
    allowed = _allowed(roots)
    tools = (
        *reading_tools(allowed, suggestions=suggestions),
        *editing_tools(allowed),
        *command_tools(allowed, settings=commands),
        *ending_tools(),
    )
    return tuple(candidate for candidate in tools if candidate.definition.tier <= tier)


def reading_tools(
    *roots: Root | AllowedRoots,
    characters: int = MAX_READ_CHARACTERS,
    ripgrep: bool = True,
    suggestions: bool = True,
    short_files_whole: bool = False,
) -> Tools:
    """Return `list_dir`, `read_file` and `search_files`; nothing without roots.

    Args:
        roots: see `builtin_tools`.
        characters: maximum length of a result of `read_file`; a line has at most a tenth of that.
        ripgrep: use ripgrep where it is installed; the results are the same without it.
        suggestions: suggest existing paths for a path that does not exist: the same name in other directories, or
            similar names in the same one. The policy is not asked about these names.
        short_files_whole: let `read_file` return a file that fits into a result whole, whatever lines are asked for:
            small models ask for the line that a search found, and miss what is above it.

    Raises:
        ToolError: a root is not a directory.
    """
    allowed = _allowed(roots)
    if not allowed.roots:
        return ()
    from toolwire.builtin.searching import Searching  # here, because it loads what starts programs

    reading = Reading(allowed, characters=characters, suggestions=suggestions, short_files_whole=short_files_whole)
    searching = Searching(allowed, ripgrep=ripgrep, suggestions=suggestions)
    return (
        tool(tier=Tier.WALK, untrusted=True)(reading.list_dir),
        tool(tier=Tier.WALK, untrusted=True)(reading.read_file),
        tool(tier=Tier.CRAWL, untrusted=True)(searching.search_files),
    )


def editing_tools(*roots: Root | AllowedRoots) -> Tools:
    """Return `write_file` and `apply_diff`, which need approval for each call; nothing without roots.

    Raises:
        ToolError: a root is not a directory.
    """
    allowed = _allowed(roots)
    if not allowed.roots:
        return ()
    editing = Editing(allowed)
    changing = partial(tool, tier=Tier.RUN, requires_confirmation=True)
    return (
        changing(preview=editing.preview_write)(editing.write_file),
        changing(preview=editing.preview_diff, untrusted=True)(editing.apply_diff),  # its errors quote the file
    )


def command_tools(*roots: Root | AllowedRoots, settings: CommandSettings | None = None) -> Tools:
    """Return `execute_command`, which needs approval for each call; nothing without roots.

    Args:
        roots: see `builtin_tools`; a command starts below them, and may do whatever this process may do.
        settings: how commands are run.

    Raises:
        ToolError: a root is not a directory.
    """
    allowed = _allowed(roots)
    if not allowed.roots:
        return ()
    commands = Commands(allowed, settings)
    command_tool = tool(tier=Tier.RUN, requires_confirmation=True, untrusted=True, preview=commands.preview)
    return (command_tool(commands.execute_command),)


def ending_tools() -> Tools:
    """Return `task_completion`, `ask_question` and `converse`, with which a model ends its turn."""
    return tuple(tool(ends_turn=True)(function) for function in (task_completion, ask_question, converse))


def answer_tool() -> Tool[[str], str]:
    """Return `final_answer`, with which a model gives its answer and ends its turn.

    It is for small models, which rather write an answer in prose than a second call. With `require_tool_call`, each of
    their answers is a call, of another tool or of this one. `RunEnded.has_result` does not count it.
    """
    return tool(gives_answer=True)(final_answer)


def _allowed(roots: tuple[Root | AllowedRoots, ...]) -> AllowedRoots:
    if len(roots) == 1 and isinstance(roots[0], AllowedRoots):
        return roots[0]
    return AllowedRoots(*(root for root in roots if not isinstance(root, AllowedRoots)))
