"""Tools under one roof."""

import threading
from itertools import count

import pytest

import toolwire
from toolwire import DefinitionError, Tier, ToolContext, ToolDefinition
from toolwire.errors import ConfigurationError, UnknownTool
from toolwire.execution.registry import ToolRegistry


def read(path: str) -> str:
    """Reads a file."""
    return path


def other(path: str) -> str:
    """Does something else."""
    return path


@pytest.mark.mission("D2", "D60")
def test_a_tool_is_told_and_read_by_being_registered() -> None:
    registry = ToolRegistry()

    @registry.register
    def get_weather(city: str) -> str:
        """The weather."""
        return city

    text = toolwire.prompt(registry, format="hermes")
    assert "get_weather" in text
    parsed = toolwire.parse(
        '{"name": "get_weather", "arguments": {"city": "Rome"}}', format="bare_json", tools=registry
    )
    assert parsed.tool_calls[0].arguments == {"city": "Rome"}
    assert registry.lookup("get_weather").run is get_weather
    assert get_weather("x") == "x"


@pytest.mark.parametrize("kind", ["registry", "owner"])
def test_a_registry_among_tools_is_refused(kind: str) -> None:
    inner = ToolRegistry([read])
    tool = inner if kind == "registry" else type("McpRouter", (), {"registry": inner})()
    passed = "ToolRegistry is not .* pass it alone" if kind == "registry" else "McpRouter is not .* pass its registry"
    with pytest.raises(DefinitionError, match=passed):
        ToolRegistry([other, tool])


def test_one_name_is_one_tool() -> None:
    registry = ToolRegistry([read])
    with pytest.raises(DefinitionError, match="has a tool of this name already"):
        registry.register(other, name="read")
    registry.remove("read")
    registry.register(other, name="read")
    assert registry.lookup("read").run is other


@pytest.mark.mission("A3")
def test_equal_names_of_two_servers_are_kept_apart() -> None:
    registry = ToolRegistry()
    registry.register(ToolDefinition("search"), server="web", run=read)
    assert [tool.name for tool in registry] == ["search"]
    registry.register(ToolDefinition("search"), server="docs", run=other)
    assert [tool.name for tool in registry] == ["web.search", "docs.search"]
    assert registry.lookup("docs.search").run is other
    assert registry.lookup("search", "docs").run is other
    assert registry.lookup("docs.search", "local").run is other
    assert registry.lookup("docs.search", "docs").run is other
    assert registry.lookup("docs.search", "no_such_server").run is other
    with pytest.raises(UnknownTool, match=r"Several tools are called 'search'; say which: web.search, docs.search"):
        registry.lookup("search")
    with pytest.raises(DefinitionError, match="server 'docs' has a tool"):
        registry.register(ToolDefinition("search"), server="docs")
    registry.remove_server("web")
    assert [tool.name for tool in registry] == ["search"]
    with pytest.raises(UnknownTool):
        registry.lookup("other", "docs")


@pytest.mark.mission("C26", "F35")
@pytest.mark.need(10, 40)
def test_an_unknown_name_is_answered_with_the_nearest_and_the_list() -> None:
    registry = ToolRegistry([read, other])
    with pytest.raises(UnknownTool, match=r"There is no tool 'raed'; did you mean read\? There are: read, other."):
        registry.lookup("raed")
    with pytest.raises(UnknownTool, match=r"There is no tool 'zzz'\. There are: read, other\."):
        registry.lookup("zzz")
    with pytest.raises(UnknownTool, match="There are no tools"):
        ToolRegistry().lookup("x")
    many = ToolRegistry(ToolDefinition(f"t{number}") for number in range(30))
    with pytest.raises(UnknownTool, match="and 10 more"):
        many.lookup("zzz")


@pytest.mark.mission("C39", "C40")
def test_hidden_and_disabled_tools() -> None:
    registry = ToolRegistry([read])
    registry.register(other, hidden=True)
    assert [tool.name for tool in registry] == ["read"]
    assert [tool.name for tool in registry.definitions(hidden=True)] == ["read", "other"]
    assert registry.lookup("other").run is other
    registry.enable("read", enabled=False)
    assert ("read" in registry, "other" in registry) == (False, True)
    assert list(registry) == []
    with pytest.raises(UnknownTool, match="switched off"):
        registry.lookup("read")
    registry.enable("read")
    assert "read" in registry
    assert len(registry) == 2


@pytest.mark.mission("C39", "D1", "G1")
def test_tiers_and_descriptions() -> None:
    asked = count()
    registry = ToolRegistry()
    registry.register(read, tier=Tier.WALK, description=lambda: f"{next(asked)}", requires_confirmation=True)
    registry.register(other, description="Mine.")
    assert [tool.name for tool in registry.definitions(tier=Tier.CRAWL)] == ["other"]
    first, second = registry.definitions(tier=Tier.RUN)[0], registry.definitions(servers=[""])[1]
    assert (first.tier, first.requires_confirmation, second.description) == (Tier.WALK, True, "Mine.")
    assert registry.definitions(servers=["none"]) == []
    assert int(registry.definitions()[0].description) > int(first.description)


@pytest.mark.mission("D1")
def test_a_schema_is_made_when_it_is_asked_for() -> None:
    def broken(x: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Cannot be told."""

    registry = ToolRegistry([read])
    registry.register(broken)
    with pytest.raises(DefinitionError):
        registry.definitions()
    registry.remove("broken")
    assert registry.definitions()[0] is registry.definitions()[0]


def test_several_threads() -> None:
    registry = ToolRegistry()
    errors: list[BaseException] = []

    def work(start: int) -> None:
        try:
            for number in range(start, start + 50):
                registry.register(ToolDefinition(f"t{number}"))
                registry.lookup(f"t{number}")
                list(registry)
                if number % 2:
                    registry.remove(f"t{number}")
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(at * 100,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(registry) == 8 * 25


def test_what_was_for_a_server_that_is_gone_runs_nowhere_else() -> None:
    registry = ToolRegistry()
    registry.register(read, name="send", server="bank")
    registry.register(other, name="send", server="evil")
    registry.remove_server("bank")
    with pytest.raises(UnknownTool, match="There is no tool 'send' of the server 'bank'"):
        registry.lookup("send", "bank")
    assert registry.lookup("evil.send", "local").run is other


def test_a_tool_that_was_looked_up_is_gone_once_it_is_removed() -> None:
    registry = ToolRegistry([read])
    registry.lookup("read")
    registry.remove("read")
    with pytest.raises(UnknownTool):
        registry.lookup("read")
    registry.register(other, name="read")
    assert registry.lookup("read").run is other


def test_only_the_tool_of_this_server_is_removed_or_switched() -> None:
    registry = ToolRegistry([read])
    for change in (registry.remove, registry.enable):
        with pytest.raises(UnknownTool):
            change("read", "nowhere")
    assert registry.lookup("read").run is read


def test_a_full_name_is_one_tool() -> None:
    registry = ToolRegistry()
    registry.register(read, name="mail.send")
    with pytest.raises(DefinitionError, match=r"another tool is known as 'mail\.send'"):
        registry.register(other, name="send", server="mail")
    with pytest.raises(DefinitionError, match="must not contain a dot"):
        registry.register(other, name="c", server="a.b")
    registry.register(other, name="send", server="post")
    registry.register(other, name="read", server="mail")
    assert len(registry) == 3


@pytest.mark.parametrize("state", ["hidden", "disabled"])
def test_no_suggestion_betrays_a_tool_that_is_hidden_or_disabled(state: str) -> None:
    registry = ToolRegistry([read])
    registry.register(other, name="wipe_disk", hidden=state == "hidden")
    if state == "disabled":
        registry.enable("wipe_disk", enabled=False)
    with pytest.raises(UnknownTool, match="no tool 'wipe_disc'") as refused:
        registry.lookup("wipe_disc")
    assert "wipe_disk" not in str(refused.value)


def test_names_are_known_without_calling_a_function_that_describes() -> None:
    described: list[str] = []

    def describe() -> str:
        described.append("called")
        return "Reads."

    registry = ToolRegistry()
    registry.register(read, description=describe)
    assert [tool.name for tool in registry.known()] == ["read"]
    assert not described
    assert registry.lookup("read").definition.description == "Reads."


def test_servers_that_a_model_made_up_are_not_remembered() -> None:
    registry = ToolRegistry()
    registry.register(read, server="files")
    for server in ("local", "files", "local"):
        assert registry.lookup("read", server).run is read
    assert {server for server, _ in registry._ready} == {"files"}


def test_definitions_are_asked_for_by_a_tier() -> None:
    with pytest.raises(TypeError, match="tier must be"):
        ToolRegistry([read]).definitions(tier="walk")  # type: ignore[arg-type]


class Shop:
    """Dependencies of tools."""


def price_of(context: ToolContext[Shop], item: str) -> str:
    """Returns a price."""
    return item


def look_around(context: ToolContext[Shop | None]) -> str:
    """Looks around."""
    return ""


def test_dependencies_are_checked_by_the_types_that_tools_name() -> None:
    registry = ToolRegistry([read, price_of, look_around])
    assert registry.needed_dependencies() == {"price_of": "Shop"}
    registry.check_dependencies(Shop())
    with pytest.raises(ConfigurationError, match="the tool price_of needs dependencies, Shop"):
        registry.check_dependencies(None)
    with pytest.raises(TypeError, match="deps must be of the type Shop"):
        registry.check_dependencies("a shop")
    ToolRegistry([read, look_around]).check_dependencies(None)


def test_local_is_no_server_unless_one_is_called_so() -> None:
    """Formats that name servers show `local` in their examples, and models copy it."""
    tools = ToolRegistry()
    schema = {"type": "object"}
    tools.register(ToolDefinition("here", "x", schema), run=lambda: 1)
    tools.register(ToolDefinition("temperature", "x", schema), server="weather", run=lambda: 2)
    assert tools.lookup("here", "local").definition.server == ""
    assert tools.lookup("temperature", "local").definition.server == "weather"
    tools.register(ToolDefinition("temperature", "x", schema), server="other", run=lambda: 3)
    with pytest.raises(UnknownTool, match="Several tools"):
        tools.lookup("temperature", "local")
    tools.register(ToolDefinition("mine", "x", schema), server="local", run=lambda: 4)
    assert tools.lookup("mine", "local").definition.server == "local"
    with pytest.raises(UnknownTool):
        tools.lookup("here", "local")
