"""The tools that an agent offers: all of them in every task, unless a gate or a tier is configured."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import toolwire
from toolwire import ConfigurationError, ParsedResponse, Tier, ToolCall
from toolwire.agent import Agent, AgentConfig
from toolwire.agent.run_events import TaskStarted, ToolFinished
from toolwire.execution.executor import ToolExecutor
from toolwire.policy import Policy, Rule, TierGate
from toolwire.policy.session import Session
from toolwire.testing import ScriptedBackend


@toolwire.tool
def read_order(number: int) -> str:
    """Return an order."""
    return f"order {number}"


@toolwire.tool(tier=Tier.RUN)
def order_tea(cups: int) -> str:
    """Order tea."""
    return f"{cups} cups ordered"


@toolwire.tool(destructive=True)
def delete_order(number: int) -> str:
    """Delete an order for good."""
    return f"order {number} deleted"


TOOLS = [read_order, order_tea, delete_order]
NAMES = ["read_order", "order_tea", "delete_order"]
TASKS = [
    # English: orders, consents, and wishes that no verb of a list announces.
    "Order tea.",
    "Yes, go ahead.",
    "Tea for three, please",
    "ok",
    "Same as last time.",
    "Make it two instead.",
    "That one is wrong, get rid of it.",
    "I changed my mind about number 7.",
    "We are out of milk again.",
    "Sort out the overdue invoices.",
    "Let Maria know that I am late.",
    "Can you push the meeting to Friday?",
    "The door should be locked at night.",
    "Turn the lights off when I leave.",
    "Refund the second item.",
    "Put the receipts where they belong.",
    "Ship it!",
    "Undo that.",
    "Please see to it that the report is out by noon.",
    "Number 12 goes to the new address.",
    "Bump the version and tag it.",
    "Free the port that the old server uses.",
    "Mark all of them as read.",
    "The usual, but without sugar.",
    "Book me a table for two tonight",
    "rm the temp dir",
    "Top up the card with 20 euros.",
    "What is there?",
    "Is there any tea left, and if not, can we get some?",
    "",
    # Other languages.
    "Bestell drei Tassen Tee und lösch die alte Bestellung.",
    "Ja, mach das bitte.",
    "Commande du thé.",
    "Annule la commande numéro 7, s'il te plaît.",
    "Pide dos tés y borra el pedido anterior.",
    "Sí, adelante.",
    "Ordina tre tè per favore.",
    "Encomenda chá para três.",
    "Bestel twee koppen thee.",
    "Beställ te och ta bort den gamla beställningen.",
    "Zamów herbatę.",
    "Objednej čaj a zruš starou objednávku.",
    "Закажи чай",
    "Видали замовлення номер сім.",
    "Çay sipariş et.",
    "Παράγγειλε τσάι.",
    "اطلب الشاي واحذف الطلب القديم",
    "תזמין תה ותמחק את ההזמנה הישנה",
    "चाय मँगवाओ और पुराना ऑर्डर हटा दो",
    "請訂三杯茶",
    "好的，去做吧。",
    "お茶を注文してください",
    "차 세 잔 주문해 줘",
    "สั่งชาสามแก้ว",
    "Đặt trà cho ba người.",
]
"""Everyday tasks; most of them change something."""


def offered(backend: ScriptedBackend) -> list[list[str]]:
    return [[tool.name for tool in request.tools] for request in backend.requests]


def run(agent: Agent, task: str, **options: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [event async for event in agent.run(task, **options)]

    return asyncio.run(main())


@pytest.mark.parametrize("task", TASKS)
def test_all_tools_are_offered_whatever_the_words_of_the_task(task: str) -> None:
    backend = ScriptedBackend([ParsedResponse("done")])
    started = run(Agent(backend, TOOLS), task)[0]
    assert offered(backend) == [NAMES]
    assert isinstance(started, TaskStarted)
    assert (started.intent.tier, started.locked) == (Tier.RUN, ())


def test_there_are_fifty_five_tasks() -> None:
    assert len(set(TASKS)) == 55


def test_tools_stay_the_same_throughout_a_conversation() -> None:
    session = Session()
    call = ToolCall("order_tea", {"cups": 2}, "1")
    backend = ScriptedBackend(
        [ParsedResponse("", tool_calls=(call,)), ParsedResponse("ordered"), ParsedResponse("two cups")]
    )
    agent = Agent(backend, TOOLS)
    end = run(agent, "Write to the kitchen: tea for two.", session=session)[-1]
    run(agent, "How many was that?", history=end.messages, session=session)
    assert offered(backend) == [NAMES] * 3


def test_tool_without_a_tier_runs_unasked_and_a_destructive_one_needs_an_approval() -> None:
    assert (read_order.definition.tier, read_order.definition.requires_confirmation) == (Tier.CRAWL, False)
    assert (delete_order.definition.tier, delete_order.definition.requires_confirmation) == (Tier.RUN, True)
    calls = tuple(ToolCall(name, {"number": 7}, name) for name in ("read_order", "delete_order"))
    backend = ScriptedBackend([ParsedResponse("", tool_calls=calls), ParsedResponse("done")])
    results = {
        event.outcome.call.name: event.outcome.result
        for event in run(Agent(backend, TOOLS), "Go ahead.")
        if isinstance(event, ToolFinished)
    }
    assert results["read_order"].text == "order 7"
    assert not results["delete_order"].success


@pytest.mark.parametrize(
    ("options", "tier", "confirms"),
    [
        ({"destructive": True, "requires_confirmation": False}, Tier.RUN, False),
        ({"destructive": True, "tier": Tier.WALK}, Tier.WALK, True),
        ({"destructive": False}, Tier.CRAWL, False),
    ],
)
def test_other_options_have_the_last_word_over_destructive(options: Any, tier: Tier, confirms: bool) -> None:
    definition = read_order.replace(**options).definition
    assert (definition.tier, definition.requires_confirmation) == (tier, confirms)


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (AgentConfig(gate="intent"), ["read_order"]),
        (AgentConfig(gate=TierGate()), ["read_order"]),
        (AgentConfig(gate=TierGate(min_tier=Tier.RUN)), NAMES),
        (AgentConfig(tier=Tier.CRAWL), ["read_order"]),
    ],
)
def test_gate_and_tier_are_asked_for(config: AgentConfig, names: Sequence[str]) -> None:
    backend = ScriptedBackend([ParsedResponse("done")])
    started = run(Agent(backend, TOOLS, config), "What is order 7?")[0]
    assert offered(backend) == [names]
    assert started.locked == tuple(name for name in NAMES if name not in names), "what is held back is reported"


def test_gate_beside_a_tier_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="a tier or a gate, not both"):
        AgentConfig(tier=Tier.RUN, gate="intent")


# -- executors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "ignored"),
    [
        ({"policy": Policy([Rule("deny", "order_tea")])}, "policy="),
        ({"config": AgentConfig(timeout=5)}, "AgentConfig"),
    ],
)
def test_setting_that_an_executor_would_ignore_is_an_error(options: Any, ignored: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{ignored}.* has no effect beside executor="):
        Agent(
            ScriptedBackend([]),
            TOOLS,
            executor=lambda registry, confirm: ToolExecutor(registry, confirm=confirm),
            **options,
        )


def test_policy_that_the_executor_refuses_is_refused_with_the_agent() -> None:
    with pytest.raises(ConfigurationError, match="oder_tea"):
        Agent(ScriptedBackend([]), TOOLS, policy=Policy([Rule("deny", "oder_tea")]))


@pytest.mark.parametrize(
    ("own", "default", "message"),
    [
        (None, 0.01, "wait took longer than 0.01 seconds"),
        (0.01, None, "wait took longer than 0.01 seconds"),
        (0.01, 60.0, "wait took longer than 0.01 seconds"),
        (60.0, 0.01, None),
    ],
)
def test_timeout_of_a_tool_replaces_the_one_of_the_agent(
    own: float | None, default: float | None, message: str | None
) -> None:
    @toolwire.tool(timeout=own)
    async def wait() -> str:
        """Wait for a moment."""
        await asyncio.sleep(0.03)
        return "waited"

    backend = ScriptedBackend([ParsedResponse("", tool_calls=(ToolCall("wait", {}, "1"),)), ParsedResponse("done")])
    events = run(Agent(backend, [wait], AgentConfig(timeout=default)), "Wait.")
    (result,) = [event.outcome.result for event in events if isinstance(event, ToolFinished)]
    if message is None:
        assert result.text == "waited"
    else:
        assert message in (result.error or "")
