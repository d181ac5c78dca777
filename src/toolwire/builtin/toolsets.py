"""Tools that come with Toolwire: files below allowed roots, commands, and ways for a model to end its turn."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from toolwire.builtin.editing import Editing
from toolwire.builtin.matching import Edit
from toolwire.builtin.reading import MAX_READ_CHARACTERS, Reading
from toolwire.builtin.run_command import Commands, CommandSettings
from toolwire.builtin.turn_tools import ask_question, converse, task_completion
from toolwire.runtime.allowed_roots import AllowedRoots
from toolwire.tools import Tier, Tool, tool

__all__ = [
    "AllowedRoots",
    "CommandSettings",
    "Edit",
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
    """All built-in tools for some roots, up to a tier; without a root only those that end a turn.

    Args:
        roots: directories below which files may be touched, or one `AllowedRoots`.
        tier: tools of higher ones are left out.
        commands: how commands are run.
        suggestions: see `reading_tools`.

    Raises:
        ToolError: a root is not a directory.
    """
    allowed = _allowed(roots)
    found = (
        *reading_tools(allowed, suggestions=suggestions),
        *editing_tools(allowed),
        *command_tools(allowed, settings=commands),
        *ending_tools(),
    )
    return tuple(one for one in found if one.definition.tier <= tier)


def reading_tools(
    *roots: Root | AllowedRoots,
    characters: int = MAX_READ_CHARACTERS,
    ripgrep: bool = True,
    suggestions: bool = True,
) -> Tools:
    """`list_dir`, `read_file` and `search_files`; none of them without a root.

    Args:
        roots: see `builtin_tools`.
        characters: of a file that one `read_file` gives back; one line has at most a tenth of that.
        ripgrep: whether to use it where it is installed; what is found is the same.
        suggestions: whether the error of a path that is not there names what may have been meant: what has the same
            name in another directory, or nearly that name in the same one. No policy is asked about these names.

    Raises:
        ToolError: a root is not a directory.
    """
    allowed = _allowed(roots)
    if not allowed.roots:
        return ()
    from toolwire.builtin.searching import Searching  # here, because it loads what starts programs

    reading = Reading(allowed, characters=characters, suggestions=suggestions)
    searching = Searching(allowed, ripgrep=ripgrep, suggestions=suggestions)
    return (
        tool(tier=Tier.WALK, untrusted=True)(reading.list_dir),
        tool(tier=Tier.WALK, untrusted=True)(reading.read_file),
        tool(tier=Tier.CRAWL, untrusted=True)(searching.search_files),
    )


def editing_tools(*roots: Root | AllowedRoots) -> Tools:
    """`write_file` and `apply_diff`, each of which somebody has to agree to; none of them without a root.

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
    """`execute_command`, which somebody has to agree to each time; none without a root.

    Args:
        roots: see `builtin_tools`; a command begins below them, and may do what this process may do.
        settings: how commands are run.

    Raises:
        ToolError: a root is not a directory.
    """
    allowed = _allowed(roots)
    if not allowed.roots:
        return ()
    commands = Commands(allowed, settings)
    made = tool(tier=Tier.RUN, requires_confirmation=True, untrusted=True, preview=commands.preview)
    return (made(commands.execute_command),)


def ending_tools() -> Tools:
    """`task_completion`, `ask_question` and `converse`, with which a model ends its turn."""
    return tuple(tool(ends_turn=True)(function) for function in (task_completion, ask_question, converse))


def _allowed(roots: tuple[Root | AllowedRoots, ...]) -> AllowedRoots:
    if len(roots) == 1 and isinstance(roots[0], AllowedRoots):
        return roots[0]
    return AllowedRoots(*(one for one in roots if not isinstance(one, AllowedRoots)))
