"""The grammar of a message: a format, tools and a tool choice, as text for an engine that constrains decoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, assert_never, get_args

from toolwire._surface import check_choice, check_type
from toolwire.errors import DefinitionError
from toolwire.grammars.algebra import EMPTY
from toolwire.grammars.gbnf_writer import write_gbnf
from toolwire.grammars.lark_writer import write_lark
from toolwire.grammars.message_rules import message_rules
from toolwire.grammars.schema_writer import write_schema
from toolwire.grammars.structural_tag_writer import excludes_markers, write_structural_tag
from toolwire.tools import ToolDefinition, definitions
from toolwire.wire.format_registry import get_format
from toolwire.wire.syntax import Lit, WireFormat, as_written

GrammarSyntax = Literal["lark", "gbnf", "structural_tag", "json_schema"]
"""The languages in which grammars are written."""
GrammarReasoning = Literal["none", "allowed", "open"]
"""Places of reasoning: nowhere, before everything else, or already begun by the prompt."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar as an engine takes it.

    Attributes:
        text: the grammar; JSON for the syntaxes that are JSON.
        syntax: its language.
        widened: everything that it offers beyond the schemas of the tools, in words; the calls are validated as always.
        special_tokens: markers of the format that a server has to keep in the text, in case they are special tokens.
    """

    text: str
    syntax: GrammarSyntax
    widened: tuple[str, ...] = ()
    special_tokens: tuple[str, ...] = ()


def grammar(
    tools: Iterable[Any],
    *,
    format: str | WireFormat,
    tool_choice: str = "auto",
    parallel: bool = True,
    reasoning: GrammarReasoning = "none",
    syntax: GrammarSyntax = "lark",
    primed: str | None = None,
    text_after: bool = False,
) -> Grammar:
    """Return the grammar of a message in which a model may call tools.

    Args:
        tools: definitions of the tools.
        format: a format's name or alias.
        tool_choice: "auto" (text, and then calls if the model wants), "required" (calls and nothing else), "none" (text
            without calls), or the name of the only tool that can be called, exactly once. A tool with the name of a
            choice cannot be named.
        parallel: a message may contain several calls.
        reasoning: "none", "allowed" (it may come before everything else), or "open" (the prompt has begun it).
        syntax: the language of the grammar.
        primed: the end of the prompt that is part of the text; by default the end of the format's own template.
        text_after: text may follow the calls, for a reader that stops the model there; else nothing may.

    Raises:
        UnknownFormat: no such format.
        DefinitionError: a tool cannot be used, its schema admits nothing, or the format or syntax cannot express this.
        TypeError, ValueError: an argument has another type, or `reasoning` another value.
    """
    check_type("tool_choice", tool_choice, str, "auto, required, none or a tool's name")
    check_type("parallel", parallel, bool, "True or False")
    check_type("text_after", text_after, bool, "True or False")
    check_type("primed", primed, (str, NoneType), "text or None")
    check_choice("reasoning", reasoning, get_args(GrammarReasoning))
    wire = get_format(format)
    by_name = definitions(tools, strict=True)
    chosen, mode, parallel = _chosen(by_name, tool_choice, parallel)
    if syntax not in (syntaxes := get_args(GrammarSyntax)):
        raise DefinitionError(f"there is no syntax {syntax!r}; there are {', '.join(syntaxes)}")
    message, reading = message_rules(
        wire,
        chosen,
        choice_of=mode,
        parallel=parallel,
        reasoning=reasoning,
        primed=wire.primed if primed is None else primed,
        text_after=text_after,
    )
    match syntax:
        case "lark":
            text = write_lark(message.root, message.rules)
        case "gbnf":
            text = write_gbnf(message.root, message.rules)
        case "structural_tag":
            text = write_structural_tag(message)
        case "json_schema":
            if mode != "required" or message.reasoning != EMPTY:
                raise DefinitionError(
                    "a JSON Schema has no place for text: it needs the tool choice required, or the name of a tool"
                )
            return Grammar(write_schema(reading), syntax, reading.widened_values, _special_tokens(wire))
        case _:
            assert_never(syntax)
    engine_excludes = syntax == "structural_tag" and excludes_markers(message) and not text_after
    permitted = message.permitted_markers(engine_excludes=engine_excludes)
    widened = (*reading.rules.widened, *(f"text may contain {marker!r}, a marker of calls" for marker in permitted))
    return Grammar(text, syntax, widened, _special_tokens(wire))


def _chosen(
    by_name: Mapping[str, ToolDefinition], tool_choice: str, parallel: bool
) -> tuple[list[ToolDefinition], str, bool]:
    is_mode = tool_choice in ("auto", "required", "none")  # whatever the tools' names are
    if tool_choice in by_name and not is_mode:
        return [by_name[tool_choice]], "required", False
    if not is_mode:
        offered = ", ".join(by_name) or "no tools"
        raise DefinitionError(f"tool_choice is auto, required, none or a tool's name ({offered}), not {tool_choice!r}")
    if tool_choice == "required" and not by_name:
        raise DefinitionError("a call is required, and there is no tool")
    return list(by_name.values()), tool_choice, parallel


def _special_tokens(wire: WireFormat) -> tuple[str, ...]:
    """Return the markers of a format that may be special tokens of its models."""
    written = (node.text for node, _ in as_written(wire.blocks[0] if wire.blocks else ()) if isinstance(node, Lit))
    return tuple(dict.fromkeys(text for text in written if text[0] in "<[" and text[-1] in ">]"))
