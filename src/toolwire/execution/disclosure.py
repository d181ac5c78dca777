"""Choose the definitions of a request: those of the session's tier, and of many tools only those that are needed.

Definitions cost tokens in every request. If those of a tier do not fit a budget, the model gets a few and
`find_tools`, with which it finds the others; the tools it found stay for the conversation. Hidden and disabled
tools, and those above the tier, are never found.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolwire._surface import check_number, check_type
from toolwire.errors import DefinitionError, UnknownTool
from toolwire.execution.outcomes import invalid_arguments
from toolwire.execution.registry import ToolRegistry
from toolwire.messages import ToolCall, ToolResult
from toolwire.providers.negotiation import DefinitionAdapter
from toolwire.schema.validation import validate
from toolwire.text.identity_cache import IdentityCache
from toolwire.text.tokens import TokenCount, Tokenizer, count_tokens
from toolwire.text.truncate import shorten
from toolwire.text.word_set import word_set
from toolwire.tools import Tier, ToolDefinition

BUDGET_TOKENS = 8_000
"""Maximum size of all definitions in a request, in tokens; beyond it tools are found on demand."""
FIND_TOOLS = "find_tools"
FOUND = 5
"""Number of tools that one search discloses."""
MAX_FOUND = 20
SUMMARY = 200
"""Maximum length of a description in a result of `find_tools`, in characters; the next request has all of it."""
LISTED_SERVERS = 20
NOTHING_FOUND = "No tool fits these words. Try others, or fewer."


def count_definitions(tools: Iterable[Any], *, format: str, tokenizer: Tokenizer | None = None) -> TokenCount:
    """Count the tokens of definitions in a request.

    Args:
        tools: anything that `toolwire.parse` takes.
        format: the wire format that they are written in, or the API that they are sent to. What a provider makes of
            them is not known; its JSON is counted as it is sent.
        tokenizer: see `count_tokens`.

    Raises:
        UnknownFormat: there is none of that name.
        DefinitionError: a tool cannot be used.
    """
    rendered = DefinitionAdapter(format).render(list(tools))
    return count_tokens(rendered if isinstance(rendered, str) else json.dumps(rendered, ensure_ascii=False), tokenizer)


@dataclass(frozen=True, slots=True)
class Disclosed:
    """The tools of the next request.

    Attributes:
        definitions: new ones last, so that a provider's cache of the prompt stays valid.
        deferred: how many more can be found.
        tokens: what these definitions cost.
        whole: what all of them would cost.
    """

    definitions: list[ToolDefinition]
    deferred: int
    tokens: TokenCount
    whole: TokenCount


class Disclosure:
    """The tools of one conversation, disclosed step by step.

    Args:
        registry: the tools.
        format: how definitions are written; see `count_definitions`.
        budget_tokens: what definitions may cost before they are found on demand; 0: always on demand.
        always: names of tools that are always disclosed, besides those that end the turn.
        tokenizer: counts the tokens; see `count_tokens`.
        name: of the tool that finds the others.

    Raises:
        DefinitionError: the registry has a tool of this name itself.
        UnknownTool: `always` names a tool that there is not.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        format: str,
        budget_tokens: int = BUDGET_TOKENS,
        always: Iterable[str] = (),
        tokenizer: Tokenizer | None = None,
        name: str = FIND_TOOLS,
    ) -> None:
        check_type("registry", registry, ToolRegistry, "a ToolRegistry")
        check_number("budget_tokens", budget_tokens, "a number of tokens", whole=True)
        if name in registry:
            raise DefinitionError("the registry has a tool of this name; give `Disclosure` another", tool=name)
        self.name = name
        self._registry = registry
        self._format = format
        self._budget = budget_tokens
        self._always = tuple(dict.fromkeys(registry.lookup(tool_name).definition.name for tool_name in always))
        self._tokenizer = tokenizer
        self._counts = IdentityCache(16)
        self._found: dict[str, None] = {}  # in the order in which they were disclosed

    def request(self, tier: Tier) -> Disclosed:
        """Return the tools of the next request, in a session of this tier.

        Raises:
            DefinitionError: a tool cannot be used.
        """
        definitions = {tool.name: tool for tool in self._registry.definitions(tier=tier)}
        total = self._count(definitions.values())
        if total.tokens <= self._budget:
            return Disclosed(list(definitions.values()), 0, total, total)
        # New tools come last and the order before them stays, so that a provider can reuse its cache of the prompt.
        # A model that has to call a tool in every answer could not end its turn without those that do.
        ending = [name for name in definitions if self._ends_turn(name)]
        early = {name: definitions[name] for name in (*self._always, *ending) if name in definitions}
        late = {name: definitions[name] for name in self._found if name in definitions and name not in early}
        rest = [tool for name, tool in definitions.items() if name not in early and name not in late]
        chosen = [*early.values(), self.definition(rest), *late.values()]
        # With nothing left to find, the tool that finds would only cost tokens.
        if not rest:
            chosen = list(definitions.values())
        return Disclosed(chosen, len(rest), self._count(chosen), total)

    def _ends_turn(self, name: str) -> bool:
        try:
            return self._registry.lookup(name).behavior.ends_turn
        except UnknownTool:  # another thread has removed it
            return False

    def _count(self, tools: Iterable[ToolDefinition]) -> TokenCount:
        counted = list(tools)
        count = partial(count_definitions, counted, format=self._format, tokenizer=self._tokenizer)
        return self._counts.get(count, counted)

    def definition(self, deferred: Sequence[ToolDefinition] = ()) -> ToolDefinition:
        """Return the definition of the tool that finds the others."""
        # A model searches for tools of servers that it knows of, so the description lists them.
        servers = sorted({tool.server for tool in deferred if tool.server})[:LISTED_SERVERS]
        among = f" Some are of these servers: {', '.join(servers)}." if servers else ""
        return ToolDefinition(
            self.name,
            "Find more tools by what they do. Not all tools are listed here: if none of those you see does what you "
            f"need, search before you say that it cannot be done. What is found can be called afterwards.{among}",
            {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "What the tool should do, in a few words, or a tool's name.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_FOUND,
                        "description": f"How many tools to find; {FOUND} if not given.",
                    },
                },
                "required": ["query"],
            },
        )

    def keep(self, names: Iterable[str]) -> None:
        """Disclose tools that a resumed conversation has called before."""
        # A dict and not a set, since it keeps the order in which they were disclosed.
        self._found |= {name: None for name in names if name in self._registry}

    def find(self, query: str, tier: Tier, *, limit: int = FOUND) -> list[ToolDefinition]:
        """Disclose and return the tools that fit a query best, the best first; including disclosed ones."""
        # Built anew for each search, because tools come and go with their servers.
        matches = Index(self._registry.definitions(tier=tier)).search(query, limit=limit)
        self._found |= dict.fromkeys(tool.name for tool in matches)
        return matches

    def answer(self, call: ToolCall, tier: Tier) -> ToolResult | None:
        """Return the result of a call of `find_tools`; None for a call of any other tool, which is an executor's."""
        if call.name != self.name:
            return None
        # The model wrote these arguments like those of any tool, so they are checked like them.
        definition = self.definition()
        arguments = definition.fit(call.arguments)
        if issues := validate(arguments, definition.parameters):
            why = "; ".join(map(str, issues))
            return ToolResult(call.id, call.name, error=f"{invalid_arguments(self.name)} {why}")
        matches = self.find(arguments["query"], tier, limit=arguments.get("limit") or FOUND)
        if not matches:
            return ToolResult(call.id, call.name, NOTHING_FOUND)
        return ToolResult(call.id, call.name, listing(matches))


def listing(tools: Iterable[ToolDefinition]) -> dict[str, Any]:
    """Return the result of a search that found these tools."""
    entries = [{"name": tool.name, "description": _summary(tool.description)} for tool in tools]
    return {"found": entries, "note": "Their definitions follow; they can be called."}


def _summary(description: str) -> str:
    return shorten(" ".join(description.split()), SUMMARY)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ers", "ed", "es", "er", "or", "s", "e", "y")
_STEM = 3
"""Minimum length of a word without its ending, in letters."""
_COMMON = word_set(
    """a an and any are as at be by can could do for from get give have how i if in into is it its me my need of on or
    our please should some that the their them this to tool tools use used using want was we what when where which will
    with would you your"""
)
_WEIGHTS = {"name": 3.0, "server": 2.0, "description": 1.0, "parameters": 0.5}


class Index:
    """Tools that can be searched by words: BM25, in which a word of the name counts more than one of a parameter.

    Words are compared without their endings and in small letters, camel and snake case taken apart. Building it is
    linear in the definitions' text.
    """

    SATURATION = 1.2
    LENGTH = 0.6

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        self._tools = list(tools)
        self._words = [_weighted(tool) for tool in self._tools]
        self._lengths = [sum(words.values()) for words in self._words]
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0
        self._holding = Counter(word for words in self._words for word in words)

    def search(self, query: str, *, limit: int = FOUND) -> list[ToolDefinition]:
        """Return the tools that fit best, the best first; a tool's exact name finds it before all others."""
        stems = set(_stems(query))
        exact = set(query.replace(",", " ").split())
        scored = [
            # Equal scores are settled by the order of registration, so that equal searches give equal results.
            (tool.name in exact, self._score(stems, at), -at, tool)
            for at, tool in enumerate(self._tools)
            if tool.name in exact or not stems.isdisjoint(self._words[at])
        ]
        scored.sort(key=lambda entry: entry[:3], reverse=True)
        return [entry[3] for entry in scored[: max(limit, 0)]]

    def _score(self, asked: set[str], at: int) -> float:
        words, total = self._words[at], len(self._tools)
        length = 1 - self.LENGTH + self.LENGTH * self._lengths[at] / self._mean
        score = 0.0
        for word in asked & words.keys():
            frequency = self._holding[word]
            rarity = math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
            score += rarity * words[word] * (self.SATURATION + 1) / (words[word] + self.SATURATION * length)
        return score


def _weighted(tool: ToolDefinition) -> Counter[str]:
    """Return the words of a definition, each with its weight."""
    properties = tool.parameters.get("properties")
    inner = properties if isinstance(properties, dict) else {}
    descriptions = [
        f"{name} {schema.get('description', '') if isinstance(schema, dict) else ''}" for name, schema in inner.items()
    ]
    texts = {
        "name": tool.name,
        "server": tool.server,
        "description": tool.description,
        "parameters": " ".join(descriptions),
    }
    words: Counter[str] = Counter()
    for place, text in texts.items():
        for word in _stems(text):
            words[word] += _WEIGHTS[place]  # type: ignore[assignment]
    return words


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in map(str.lower, _WORD.findall(text)) if word not in _COMMON]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            return word[: -len(ending)]
    return word
