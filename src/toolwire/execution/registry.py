"""The tools that a program has, under one roof: functions, definitions, and those of servers.

A tool is known by its server ("" for one of this program) and its name. Models see a name of their own for it: the
plain name where no other tool has it, else `server.name`. Both lead back to the tool.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import RLock
from types import NoneType
from typing import Any

from typing_extensions import Unpack

from toolwire._surface import check_type, wrong_type
from toolwire.errors import ConfigurationError, DefinitionError, UnknownTool
from toolwire.runtime.isolation.isolated_call import importable
from toolwire.schema.signatures import (
    ArgumentConverter,
    DependencyType,
    argument_converter,
    context_parameter,
    dependency_type,
)
from toolwire.text.suggest import check_options, closest, did_you_mean, first_of
from toolwire.tools import (
    DEFAULT_BEHAVIOR,
    TIER,
    BehaviorOptions,
    Tier,
    Tool,
    ToolBehavior,
    ToolDefinition,
    as_definition,
    definition_changes,
)

LOCAL = "local"
"""The server that some formats write for tools without a server; models write it for other tools too."""
SUGGESTED = 3
LISTED = 20
"""Maximum number of names in the message for an unknown name."""

Description = str | Callable[[], str]


@dataclass(slots=True)
class _Entry:
    """A tool as it was registered; its definition is made when it is first asked for."""

    source: Any
    key: tuple[str, str]  # server and name
    description: Description | None
    changes: dict[str, Any]
    run: Callable[..., Any] | None
    behavior: ToolBehavior
    hidden: bool = False
    disabled: bool = False
    definition: ToolDefinition | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """A tool that was looked up.

    Attributes:
        definition: as models see it, under the name that they use.
        name: its own name.
        run: the function behind it, or None if only its definition is here.
        read: converts JSON arguments to the types of the function's signature; None if that changes nothing.
        behavior: how it is run.
        is_async: calling it returns an awaitable.
        is_stream: calling it returns an async generator, whose values are progress and whose last one is the result.
        context: the parameter that gets the context of the call; "" if there is none.
    """

    definition: ToolDefinition
    name: str
    run: Callable[..., Any] | None
    read: ArgumentConverter | None = None
    behavior: ToolBehavior = DEFAULT_BEHAVIOR
    is_async: bool = False
    is_stream: bool = False
    context: str = ""


class ToolRegistry:
    """Tools by server and name; safe to use from several threads.

    It is an iterable of the definitions that models may see, so it is accepted wherever tools are.
    """

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        """Begin with some tools.

        Raises:
            DefinitionError: see `register`.
            TypeError: the tools are not a collection.
        """
        if isinstance(tools, Tool | str) or not isinstance(tools, Iterable):
            raise wrong_type("tools", tools, "an iterable of tools")
        self._lock = RLock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._ready: dict[tuple[str, str], Registered] = {}  # by server and name as calls wrote them
        self._shared: Counter[str] = Counter()  # how many tools have a name
        self._version = 0
        self._needs: tuple[int, dict[str, DependencyType]] = (-1, {})
        for tool in tools:
            self.register(tool)

    def register(
        self,
        tool: Any,
        *,
        name: str = "",
        server: str = "",
        description: Description | None = None,
        hidden: bool = False,
        run: Callable[..., Any] | None = None,
        **options: Unpack[BehaviorOptions],
    ) -> Any:
        """Add a tool and return it, so that this can be used as a decorator of a function.

        Args:
            tool: a function, a `Tool`, or a definition in any shape; see `as_definition`.
            name: its name, if not its own.
            server: the server that it belongs to.
            description: the description for models, if not its own; a function is called each time it is needed.
            hidden: the tool can be called, but models do not see it.
            run: the function to call, for a tool that is only a definition.
            options: `tier`, `requires_confirmation`, `untrusted`, `preview`, `check`, `isolated`, `ends_turn` and
                others, as for the decorator `tool`; an option that is left out stays as the tool itself says.
                Hints of a server about its own tools are only options if the server is trusted.

        Raises:
            DefinitionError: another tool of this server has the name, or the tool has none; or it is to be isolated and
                another process could not import it. Or the tool is a registry, or an object that has one.
            TypeError: an option is unknown.
        """
        check_options("register", options, BehaviorOptions.__annotations__)
        if isinstance(getattr(tool, "registry", tool), ToolRegistry):
            kind, registry = type(tool).__name__, "it" if isinstance(tool, ToolRegistry) else "its registry"
            raise DefinitionError(
                f"{kind} is not a tool but has several: pass {registry} alone as the tools, and add others with its "
                "method `register`"
            )
        own_name = name or _name_of(tool)
        key = server, own_name
        changes: dict[str, Any] = {"server": server} if server else {}
        own_tool = tool if isinstance(tool, Tool) else None
        entry = _Entry(
            tool,
            key,
            description,
            changes | definition_changes(options),
            run=run or (own_tool.function if own_tool else _function(tool)),
            behavior=(own_tool.behavior if own_tool else DEFAULT_BEHAVIOR).replace(options),
            hidden=hidden,
        )
        if entry.behavior.isolation is not None and entry.run is not None:
            importable(entry.run, own_name)
            if context_parameter(entry.run):
                raise DefinitionError("a tool in a process of its own cannot get the context of a call", tool=own_name)
        if "." in server:
            raise DefinitionError(f"the name of its server must not contain a dot, as {server!r} does", tool=own_name)
        with self._lock:
            if key in self._entries:
                where = f"the server {server!r}" if server else "this registry"
                raise DefinitionError(f"{where} has a tool of this name already", tool=own_name)
            # The tool `a.b` of this program and the tool `b` of the server `a` would share a name in rules and calls.
            if (full := _full(key)) in {_full(other) for other in self._entries if other[0] != server}:
                raise DefinitionError(f"another tool is known as {full!r}, which this one would be too", tool=own_name)
            self._entries[key] = entry
            self._shared[own_name] += 1
            self._changed()
        return tool

    def remove(self, name: str, server: str = "") -> None:
        """Forget a tool of this very server.

        Raises:
            UnknownTool: there is none.
        """
        with self._lock:
            self._forget(self._exactly(name, server).key)

    def remove_server(self, server: str) -> None:
        """Forget all tools of a server."""
        with self._lock:
            for key in [key for key in self._entries if key[0] == server]:
                self._forget(key)

    def _forget(self, key: tuple[str, str]) -> None:
        del self._entries[key]
        self._shared[key[1]] -= 1
        self._changed()

    def _changed(self) -> None:
        # All of it, and not one entry: a second tool of a name changes the name under which the first one is exposed.
        self._ready.clear()
        self._version += 1

    def enable(self, name: str, server: str = "", *, enabled: bool = True) -> None:
        """Let a tool of this very server be called and be seen again; or not, with `enabled=False`.

        Raises:
            UnknownTool: there is none.
        """
        with self._lock:
            self._exactly(name, server).disabled = not enabled
            self._changed()

    def definitions(
        self, *, tier: Tier | None = None, hidden: bool = False, servers: Iterable[str] | None = None
    ) -> list[ToolDefinition]:
        """The definitions that models may see, in the order in which the tools were registered.

        Args:
            tier: only those that a session of this tier may run.
            hidden: hidden ones as well.
            servers: only those of these servers ("" is this program).

        Raises:
            DefinitionError: a tool cannot be used.
        """
        check_type("tier", tier, (Tier, NoneType), f"{TIER}, or None")
        selected = None if servers is None else set(servers)
        with self._lock:
            entries = [
                entry
                for entry in self._entries.values()
                if not entry.disabled
                and (hidden or not entry.hidden)
                and (selected is None or entry.key[0] in selected)
            ]
            # Under the lock, because the definition is built and stored on first use.
            definitions = [self._definition(entry) for entry in entries]
        return [definition for definition in definitions if tier is None or definition.tier <= tier]

    def known(self) -> list[ToolDefinition]:
        """Return all tools to compare names with, including hidden, disabled and unusable ones.

        An unusable tool is represented by its name alone.
        """
        with self._lock:
            return [definition for entry in self._entries.values() for definition in self._named(entry)]

    def needed_dependencies(self) -> dict[str, str]:
        """Return the name of the type of the dependencies, by the name of each tool that does not work without them."""
        return {tool: needed.name for tool, needed in self._dependency_types().items() if not needed.optional}

    def check_dependencies(self, deps: object) -> None:
        """Check that the tools can work with these dependencies.

        Args:
            deps: the dependencies of a run; None if there are none.

        Raises:
            ConfigurationError: a tool needs dependencies, and there are none.
            TypeError: a tool names a class of which the dependencies are not an instance.
        """
        for tool, needed in self._dependency_types().items():
            if deps is None and not needed.optional:
                raise ConfigurationError(f"the tool {tool} needs dependencies, {needed.name}: pass deps=... to the run")
            if deps is not None and not needed.admits(deps):
                raise wrong_type("deps", deps, f"of the type {needed.name}, which the tool {tool} names")

    def _dependency_types(self) -> dict[str, DependencyType]:
        """Return the type of the dependencies by the name of each tool that names one."""
        with self._lock:
            version, types = self._needs
            if version != self._version:  # each run asks, and annotations are read slowly
                types = {
                    self._exposed(entry): needed
                    for entry in self._entries.values()
                    if entry.run is not None and not entry.disabled and (needed := dependency_type(entry.run))
                }
                self._needs = self._version, types
            return types

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        return self._version

    def __repr__(self) -> str:
        """Return the names of the tools, as far as they fit."""
        names = [f"{server}.{name}" if server else name for server, name in list(self._entries)]
        more = f", {len(names) - LISTED} more" if len(names) > LISTED else ""
        return f"<ToolRegistry of {len(names)} tools: {', '.join(names[:LISTED]) or 'none'}{more}>"

    def __iter__(self) -> Iterator[ToolDefinition]:
        """Yield the definitions that models may see."""
        return iter(self.definitions())

    def __len__(self) -> int:
        """Return the number of tools, including hidden and disabled ones."""
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        """Return whether a tool can be called by this name."""
        with self._lock:
            return isinstance(name, str) and any(not entry.disabled for entry in self._matching(name, ""))

    def lookup(self, name: str, server: str = "") -> Registered:
        """Return the tool that a call names.

        Raises:
            UnknownTool: there is none, it is disabled, or several servers have one; the message lists what there is.
            DefinitionError: the tool cannot be used.
        """
        # Without the lock: reading one key of a dict is atomic, and each call of a tool comes through here.
        ready = self._ready.get((server, name))
        if ready is not None:
            return ready
        with self._lock:
            entry = self._find(name, server)
            if entry.disabled:
                raise UnknownTool(f"The tool {name!r} is switched off.{self._known()}")
            registered = Registered(
                self._definition(entry),
                entry.key[1],
                entry.run,
                # An isolated tool converts them in its own process, because the converted values need not be JSON.
                None if entry.run is None or entry.behavior.isolation else argument_converter(entry.run),
                entry.behavior,
                inspect.iscoroutinefunction(entry.run),
                inspect.isasyncgenfunction(entry.run),
                "" if entry.run is None else context_parameter(entry.run),
            )
            # A description that is a function is called each time. Servers that a model made up are not cached: the
            # cache would grow without a bound.
            if not callable(entry.description) and server in ("", entry.key[0]):
                self._ready[server, name] = registered
            return registered

    # -- names ---------------------------------------------------------------------------------------------------

    def _find(self, name: str, server: str) -> _Entry:
        check_type("name", name, str, "text")
        matches = self._matching(name, server)
        if len(matches) == 1:
            return matches[0]
        if matches:
            # Taking the first would let a new server take over the calls of another one's tool.
            full = ", ".join(_full(entry.key) for entry in matches)
            raise UnknownTool(f"Several tools are called {name!r}; say which: {full}.")
        # A suggestion must not betray a tool that this model is not to know.
        names = [self._exposed(entry) for entry in self._entries.values() if not (entry.hidden or entry.disabled)]
        hint = did_you_mean(closest(name, names, limit=SUGGESTED)) or "."
        of = f" of the server {server!r}" if server else ""
        raise UnknownTool(f"There is no tool {name!r}{of}{hint}{self._known()}")

    def _matching(self, name: str, server: str) -> list[_Entry]:
        """Return the entries that a name may mean: the exact one, or all that have the name."""
        if server == LOCAL and not any(key[0] == LOCAL for key in self._entries):
            server = ""
        exact = self._entries.get((server, name))
        if exact is not None:
            return [exact]
        if not server:
            return [entry for entry in self._entries.values() if name in (entry.key[1], _full(entry.key))]
        if any(key[0] == server for key in self._entries):
            # Formats without a field for the server write the exposed name.
            return [
                entry for entry in self._entries.values() if entry.key[0] == server and self._exposed(entry) == name
            ]
        # Some formats write a server that there is not, and mean this program, or name the server with the tool. A
        # call for a server that is gone must not reach another server's tool of that name.
        return [entry for entry in self._entries.values() if _full(entry.key) == name]

    def _exactly(self, name: str, server: str) -> _Entry:
        """Return the entry of this very server.

        Raises:
            UnknownTool: there is none.
        """
        entry = self._entries.get((server, name))
        if entry is not None:
            return entry
        # Without a server the name may still be that of a server's tool, if no other has it.
        matches = self._matching(name, server) if not server else []
        if len(matches) == 1:
            return matches[0]
        raise UnknownTool(f"There is no tool {name!r}{f' of the server {server!r}' if server else ''}.{self._known()}")

    def _exposed(self, entry: _Entry) -> str:
        server, name = entry.key
        return name if not server or self._shared[name] == 1 else f"{server}.{name}"

    def _known(self) -> str:
        names = [self._exposed(entry) for entry in self._entries.values() if not (entry.hidden or entry.disabled)]
        if not names:
            return " There are no tools."
        return f" There are: {first_of(names, LISTED)}."

    def _named(self, entry: _Entry) -> Iterator[ToolDefinition]:
        server, name = entry.key
        try:
            # Without its description, since one that is a function may fail or be slow, and only the name is needed.
            yield self._definition(entry, described=False)
        except DefinitionError:
            with suppress(DefinitionError):  # a name that no tool can have
                yield ToolDefinition(name, server=server)

    def _definition(self, entry: _Entry, *, described: bool = True) -> ToolDefinition:
        if entry.definition is None:
            definition = as_definition(entry.source, name=entry.key[1], strict=True)
            entry.definition = replace(definition, **entry.changes)
        changes: dict[str, Any] = {}
        if (name := self._exposed(entry)) != entry.definition.name:
            changes["name"] = name
        if described and entry.description is not None:
            changes["description"] = entry.description if isinstance(entry.description, str) else entry.description()
        return replace(entry.definition, **changes) if changes else entry.definition


def _full(key: tuple[str, str]) -> str:
    """Return a tool's name with its server's name before it."""
    server, name = key
    return f"{server}.{name}" if server else name


def _function(tool: Any) -> Callable[..., Any] | None:
    """Return the function, if a function is registered."""
    return tool if callable(tool) and not isinstance(tool, type) else None


def _name_of(tool: Any) -> str:
    """Return the name of a tool, without building its schema if possible."""
    if isinstance(tool, ToolDefinition):
        return tool.name
    if isinstance(tool, Tool):
        return tool.definition.name
    if _function(tool) is not None and str(getattr(tool, "__name__", "")).isidentifier():
        return str(tool.__name__)
    return as_definition(tool).name
