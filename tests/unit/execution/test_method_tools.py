"""Tools from the methods of an object."""

import asyncio
from functools import cached_property, lru_cache
from typing import Any

import pytest
from pydantic import BaseModel

from toolwire import (
    DefinitionError,
    Session,
    Tier,
    ToolCall,
    ToolContext,
    ToolExecutor,
    ToolRegistry,
    tool,
    tool_options,
    tools_from,
)


@tool
def helper(x: int) -> int:
    return x


class Base:
    def first(self) -> str:
        """The first."""
        return "base"

    @tool_options(destructive=True)
    def wipe(self) -> str:
        return "wiped"


class Shop(Base):
    label = "a shop"
    shared = helper

    class Nested:
        pass

    def __init__(self) -> None:
        self.stock = {"tea": 3}
        self.callback = print

    def count(self, item: str) -> int:
        """Count an item.

        Args:
            item: the item.
        """
        return self.stock[item]

    @tool_options(tier=Tier.WALK, name="order_item")
    async def order(self, context: ToolContext[Any], item: str, amount: int = 1) -> int:
        """Order an item."""
        self.stock[item] += amount
        return self.stock[item]

    def wipe(self) -> str:
        return "all gone"

    @tool_options(untrusted=True)
    @staticmethod
    def doubled(x: int) -> int:
        return 2 * x

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @lru_cache  # noqa: B019
    def cached(self, x: int) -> int:
        return x

    @property
    def total(self) -> int:
        raise AssertionError("properties are not read")

    @cached_property
    def lazy(self) -> int:
        raise AssertionError("properties are not read")

    def _hidden(self) -> None: ...


def run(registry: ToolRegistry, name: str, **arguments: Any) -> Any:
    call = ToolCall(name, arguments, "c1")
    outcome = asyncio.run(ToolExecutor(registry, confirm=lambda _: True).run(call, Session(tier=Tier.RUN)))
    assert outcome.result.success, outcome.result.error
    return outcome.result.result


def test_public_methods_become_tools_that_share_the_object() -> None:
    shop = Shop()
    registry = ToolRegistry(tools_from(shop))
    definitions = {definition.name: definition for definition in registry}
    assert list(definitions) == ["first", "wipe", "helper", "count", "order_item", "doubled", "name", "cached"]
    assert definitions["count"].description == "Count an item."
    assert definitions["count"].parameters["properties"]["item"]["description"] == "the item."
    assert list(definitions["order_item"].parameters["properties"]) == ["item", "amount"]
    assert (definitions["count"].tier, definitions["order_item"].tier) == (Tier.CRAWL, Tier.WALK)
    assert definitions["doubled"].untrusted
    assert run(registry, "order_item", item="tea", amount=2) == 5
    assert (run(registry, "count", item="tea"), shop.stock) == (5, {"tea": 5})
    assert (run(registry, "doubled", x=4), run(registry, "name"), run(registry, "helper", x=1)) == (8, "Shop", 1)
    assert shop.wipe() == "all gone", "a decorated method is called as before"


def test_overriding_method_keeps_the_options_of_the_one_it_overrides() -> None:
    (wipe,) = tools_from(Shop(), only=["wipe"])
    assert (wipe.definition.tier, wipe.definition.requires_confirmation) == (Tier.RUN, True)

    class Careless(Shop):
        @tool_options(destructive=False, tier=Tier.CRAWL)
        def wipe(self) -> str:
            return "nothing"

    (wipe,) = tools_from(Careless(), only=["wipe"])
    assert (wipe.definition.tier, wipe.definition.requires_confirmation) == (Tier.CRAWL, False)


def test_options_by_method_override_declared_ones() -> None:
    (order,) = tools_from(Shop(), only=["order"], options={"order": {"name": "buy", "destructive": True}})
    assert (order.definition.name, order.definition.tier, order.definition.requires_confirmation) == (
        "buy",
        Tier.WALK,
        True,
    )


def test_methods_of_the_standard_library_and_pydantic_are_not_used() -> None:
    class Cart(BaseModel):
        items: list[str] = []

        def add(self, item: str) -> None:
            self.items.append(item)

    class Table(dict[str, int]):
        def size(self) -> int:
            return len(self)

        clear = None  # type: ignore[assignment]

    assert [method_tool.definition.name for method_tool in tools_from(Cart())] == ["add"]
    Cart.__module__ = "platform"  # a module of the user's that shadows one of the standard library
    assert [method_tool.definition.name for method_tool in tools_from(Cart())] == ["add"]
    assert [method_tool.definition.name for method_tool in tools_from(Table())] == ["size"]


def test_mistakes_are_reported() -> None:
    with pytest.raises(DefinitionError, match="object has no public methods"):
        tools_from(object())
    with pytest.raises(DefinitionError, match=r"Shop has no public method 'cuont'; did you mean count"):
        tools_from(Shop(), options={"cuont": {}})
    with pytest.raises(DefinitionError, match="Shop has no public method '_hidden'"):
        tools_from(Shop(), only=["_hidden"])
    with pytest.raises(TypeError, match="instance must be an object, such as Shop"):
        tools_from(Shop)
    with pytest.raises(TypeError, match="only must be an iterable of names"):
        tools_from(Shop(), only="count")
    with pytest.raises(TypeError, match="teir"):
        tool_options(teir=Tier.RUN)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="tier must be a Tier"):
        tools_from(Shop(), options={"count": {"tier": "RUN"}})  # type: ignore[typeddict-item]

    class Odd:
        def many(self, *items: str) -> None: ...

    with pytest.raises(DefinitionError, match="many"):
        tools_from(Odd())


def test_options_of_another_type_are_an_error() -> None:
    with pytest.raises(TypeError, match="options must be a mapping from names of methods to options"):
        tools_from(Shop(), options=["count"])  # type: ignore[arg-type]


def test_a_name_like_no_other_is_an_error_without_a_suggestion() -> None:
    with pytest.raises(DefinitionError, match=r"has no public method 'xyzzy'\.$"):
        tools_from(Shop(), only=["xyzzy"])


def test_a_method_that_a_subclass_takes_away_is_not_a_tool() -> None:
    class Quiet(Shop):
        count = None  # type: ignore[assignment]

    assert "count" in [method_tool.definition.name for method_tool in tools_from(Shop())]
    assert "count" not in [method_tool.definition.name for method_tool in tools_from(Quiet())]
