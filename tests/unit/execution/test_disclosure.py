"""Which definitions go into a request."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.errors import DefinitionError, UnknownFormat, UnknownTool
from toolwire.execution.disclosure import Disclosure, Index, count_definitions
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import ToolCall
from toolwire.tools import Tier, ToolDefinition

THINGS = ("issue", "invoice", "branch", "customer", "meeting", "ticket", "photo", "server", "playlist", "recipe")
DONE = {
    "list": (Tier.CRAWL, "List every {} that there is, newest first."),
    "read": (Tier.WALK, "Read one {} with all its fields."),
    "create": (Tier.RUN, "Create a new {}."),
    "delete": (Tier.RUN, "Delete a {} for good."),
    "export": (Tier.WALK, "Export each {} as a CSV file."),
}


def definition(verb: str, thing: str) -> ToolDefinition:
    tier, told = DONE[verb]
    return ToolDefinition(
        f"{verb}_{thing}",
        told.format(thing),
        {"type": "object", "properties": {"id": {"type": "string", "description": f"The id of the {thing}."}}},
        tier=tier,
    )


def many() -> ToolRegistry:
    return ToolRegistry([definition(verb, thing) for verb in DONE for thing in THINGS])


def disclosed(registry: ToolRegistry | None = None, **options: Any) -> Disclosure:
    return Disclosure(registry or many(), **{"format": "openai_chat", "budget_tokens": 0} | options)


def names(disclosure: Disclosure, tier: Tier = Tier.RUN) -> list[str]:
    return [one.name for one in disclosure.request(tier).definitions]


class TestRequest:
    def test_all_go_where_they_fit(self) -> None:
        registry = many()
        request = disclosed(registry, budget_tokens=100_000).request(Tier.RUN)
        assert request.definitions == registry.definitions()
        assert (request.deferred, request.tokens) == (0, request.whole)

    def test_the_tier_counts_first(self) -> None:
        request = disclosed(budget_tokens=100_000).request(Tier.CRAWL)
        assert [one.name for one in request.definitions] == [f"list_{thing}" for thing in THINGS]

    @pytest.mark.need(35)
    def test_beyond_the_budget_the_model_has_to_ask(self) -> None:
        request = disclosed(always=["read_issue", "list_issue"]).request(Tier.RUN)
        assert [one.name for one in request.definitions] == ["read_issue", "list_issue", "find_tools"]
        assert request.deferred == len(THINGS) * len(DONE) - 2
        assert request.tokens.tokens < request.whole.tokens / 5

    def test_what_was_found_stays_and_stands_last(self) -> None:
        disclosure = disclosed(always=["list_issue"])
        disclosure.find("remove a photo", Tier.RUN, limit=1)
        disclosure.find("delete_photo read_recipe", Tier.RUN, limit=2)
        assert names(disclosure)[:2] == ["list_issue", "find_tools"]
        assert set(names(disclosure)[2:]) >= {"delete_photo", "read_recipe"}
        before = names(disclosure)
        disclosure.find("invoice", Tier.RUN)
        assert names(disclosure)[: len(before)] == before

    def test_what_was_found_goes_with_its_tier(self) -> None:
        disclosure = disclosed(always=["delete_issue"])
        disclosure.find("delete_photo", Tier.RUN, limit=1)
        assert names(disclosure, Tier.WALK) == ["find_tools"]

    def test_all_disclosed_needs_no_search(self) -> None:
        disclosure = disclosed(ToolRegistry([definition("list", "issue")]))
        disclosure.find("issues", Tier.RUN)
        assert names(disclosure) == ["list_issue"]

    def test_servers_are_named(self) -> None:
        registry = many()
        registry.register(ToolDefinition("say", "Say."), server="chat")
        (find,) = disclosed(registry).request(Tier.RUN).definitions
        assert find.description.endswith("Some are of these servers: chat.")

    @pytest.mark.parametrize("hide", [{"hidden": True}, {"tier": Tier.RUN}])
    def test_what_must_not_be_seen_is_never_found(self, hide: dict[str, Any]) -> None:
        registry = many()
        registry.register(ToolDefinition("secret", "The secret tool."), **hide)
        disclosure = disclosed(registry, always=["secret"])
        assert disclosure.find("secret", Tier.WALK) == []
        assert names(disclosure, Tier.WALK) == ["find_tools"]

    def test_disabled_tools_go(self) -> None:
        registry = many()
        disclosure = disclosed(registry)
        disclosure.find("delete_photo", Tier.RUN, limit=1)
        registry.enable("delete_photo", enabled=False)
        assert names(disclosure) == ["find_tools"]
        assert "delete_photo" not in [one.name for one in disclosure.find("delete_photo", Tier.RUN, limit=20)]

    def test_a_name_that_is_taken(self) -> None:
        registry = ToolRegistry([ToolDefinition("find_tools")])
        with pytest.raises(DefinitionError, match="give `Disclosure` another"):
            disclosed(registry)
        assert disclosed(registry, name="more_tools").name == "more_tools"

    def test_unknown_names_are_errors(self) -> None:
        with pytest.raises(UnknownTool, match="no tool 'dance'"):
            disclosed(always=["dance"])


class TestAnswer:
    def test_a_call_is_answered_with_names(self) -> None:
        call = ToolCall("find_tools", {"query": "delete a photo", "limit": "2"}, id="1")
        result = disclosed().answer(call, Tier.RUN)
        assert result is not None
        assert isinstance(result.result, dict)
        assert result.result["found"][0]["name"] == "delete_photo"
        assert len(result.result["found"]) == 2
        assert result.call_id == "1"

    def test_long_descriptions_are_cut(self) -> None:
        registry = ToolRegistry([ToolDefinition("long", "word " * 100)])
        result = disclosed(registry).answer(ToolCall("find_tools", {"query": "word"}), Tier.RUN)
        assert result is not None
        assert isinstance(result.result, dict)
        assert result.result["found"][0]["description"].endswith("word…")

    def test_nothing_found_says_so(self) -> None:
        result = disclosed().answer(ToolCall("find_tools", {"query": "zebra"}), Tier.RUN)
        assert result is not None
        assert result.result == "No tool fits these words. Try others, or fewer."

    @pytest.mark.parametrize(
        "arguments", [{}, {"query": ["a"]}, {"query": "a", "limit": 0}, {"query": "a", "limit": 99}]
    )
    def test_wrong_arguments_are_told(self, arguments: dict[str, Any]) -> None:
        result = disclosed().answer(ToolCall("find_tools", arguments), Tier.RUN)
        assert result is not None
        assert "not valid" in (result.error or "")

    def test_other_calls_are_not_its_own(self) -> None:
        assert disclosed().answer(ToolCall("read_issue", {}), Tier.RUN) is None


class TestIndex:
    @pytest.mark.parametrize(
        ("query", "first"),
        [
            ("delete_photo", "delete_photo"),
            ("Please delete my photos!", "delete_photo"),
            ("deleting of photos", "delete_photo"),
            ("readIssue", "read_issue"),
            ("csv of customers", "export_customer"),
            ("I want to see recipes, newest first", "list_recipe"),
        ],
    )
    def test_the_best_comes_first(self, query: str, first: str) -> None:
        assert Index(many()).search(query)[0].name == first

    def test_no_words_find_nothing(self) -> None:
        assert Index(many()).search("the of a") == []
        assert Index([]).search("photo") == []

    def test_odd_schemas_can_be_searched(self) -> None:
        odd = ToolDefinition("odd", parameters={"type": "object", "properties": {"a": True, "b": {"description": 5}}})
        assert Index([odd]).search("odd") == [odd]

    def test_no_more_than_asked_for(self) -> None:
        assert [len(Index(many()).search("photo", limit=limit)) for limit in (-1, 0, 2, 50)] == [0, 0, 2, 5]


class TestCount:
    @pytest.mark.mission("F43")
    @pytest.mark.need(35)
    def test_each_way_of_writing_costs_its_own(self) -> None:
        tools = many().definitions()
        counts = {
            format: count_definitions(tools, format=format).tokens for format in ("openai_chat", "hermes", "gemini")
        }
        assert len(set(counts.values())) == 3
        assert all(1_000 < tokens < 10_000 for tokens in counts.values())

    def test_a_tokenizer_counts(self) -> None:
        found = count_definitions(many(), format="hermes", tokenizer=len)
        assert not found.estimated
        assert found.by == "len"

    def test_unknown_formats_are_errors(self) -> None:
        with pytest.raises(UnknownFormat):
            count_definitions([], format="morse")


def test_of_two_tools_with_a_word_the_one_with_fewer_other_words_is_found_first() -> None:
    short = ToolDefinition("a", "Convert currency.", {"type": "object", "properties": {}})
    long = ToolDefinition("b", f"Convert currency. {'Rates come from many banks. ' * 5}", short.parameters)
    for tools in ((short, long), (long, short)):
        assert Index(tools).search("currency") == [short, long]


def test_definitions_that_cost_just_the_budget_are_all_disclosed() -> None:
    registry = many()
    whole = disclosed(registry).request(Tier.RUN).whole.tokens
    assert [disclosed(registry, budget_tokens=whole - less).request(Tier.RUN).deferred for less in (0, 1)] == [0, 50]


def test_one_tool_may_be_asked_for() -> None:
    result = disclosed().answer(ToolCall("find_tools", {"query": "photo", "limit": 1}), Tier.RUN)
    assert result is not None
    assert isinstance(result.result, dict)
    assert len(result.result["found"]) == 1


def test_a_registry_of_another_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="registry must be a ToolRegistry"):
        Disclosure([], format="hermes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="budget_tokens must be a number of tokens"):
        Disclosure(many(), format="hermes", budget_tokens="5")  # type: ignore[arg-type]


def test_tools_that_a_resumed_conversation_has_called_stay_disclosed() -> None:
    disclosure = disclosed()
    disclosure.keep(["read_photo", "gone", "read_photo", "list_issue"])
    assert names(disclosure) == ["find_tools", "read_photo", "list_issue"]


def test_the_tool_that_finds_takes_an_object_with_a_query() -> None:
    parameters = disclosed().definition().parameters
    assert (parameters["type"], parameters["required"]) == ("object", ["query"])
    assert {name: schema["type"] for name, schema in parameters["properties"].items()} == {
        "query": "string",
        "limit": "integer",
    }


def test_a_word_of_the_name_counts_more_than_one_of_the_description() -> None:
    schema = {"type": "object", "properties": {}}
    named = ToolDefinition("convert", "Change one into another with rates of many banks.", schema)
    described = ToolDefinition("change", "Convert one.", schema)
    assert Index([described, named]).search("convert") == [named, described]


def test_tool_that_is_removed_during_a_request_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    disclosure = disclosed()

    def lookup(registry: ToolRegistry, name: str) -> Any:
        raise UnknownTool(f"{name} was removed")

    monkeypatch.setattr(ToolRegistry, "lookup", lookup)
    assert names(disclosure) == ["find_tools"]
