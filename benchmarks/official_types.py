"""Are translated requests valid? Recorded requests, encoded for every API, against official types and servers' rules.

    pip install openai anthropic google-genai mistralai cohere ollama groq boto3
    python benchmarks/official_types.py                     # all pairs of APIs
    python benchmarks/official_types.py --target mistral --show 5

The types are those of the providers' own clients, and boto3's model of the service. The rules are those that servers
are known to enforce and types do not say: alphabets and lengths of names and ids, results after their calls, roles that
take turns, content that is not empty. A rule that the original breaks too does not count. A target whose client is not
installed is skipped, which the table shows. One invalid request makes the exit status 1. The recordings are those of
`translation.py`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from rich.progress import track
from translation import APIS, ROWS, recorded

import toolwire
from toolwire.errors import DefinitionError
from toolwire.providers.bedrock_converse import for_boto3

Json = dict[str, Any]
Check = Callable[[Json], object]


def _exhausted(value: Any) -> Any:
    """Return a validated value with every lazy iterable in it read, which validates its items."""
    if isinstance(value, Mapping):
        return {key: _exhausted(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [_exhausted(item) for item in value]


def _typed_dicts(module: str, fill: Callable[[Json], Json] = lambda body: body) -> Check:
    """Return a check against the parameters in a module of a client, for requests with and without a stream."""
    types = importlib.import_module(module)
    names = [name for name in dir(types) if name.endswith(("ParamsNonStreaming", "ParamsStreaming"))]
    adapters = {name.endswith("ParamsStreaming"): TypeAdapter(getattr(types, name)) for name in names}
    whole = adapters or {
        False: TypeAdapter(types.CompletionCreateParams),
        True: TypeAdapter(types.CompletionCreateParams),
    }
    return lambda body: _exhausted(whole[bool(body.get("stream"))].validate_python(fill(body)))


def _with_defaults(body: Json) -> Json:
    """Return a body with the members of functions that the types require although the server does not."""
    defaults = {"strict": None, "parameters": None}
    tools = [{**defaults, **tool} if tool.get("type") == "function" else tool for tool in body.get("tools") or ()]
    return {**body, "tools": tools} if tools else body


def _openai_responses() -> Check:
    return _typed_dicts("openai.types.responses.response_create_params", _with_defaults)


def _gemini() -> Check:
    types = importlib.import_module("google.genai.types")

    def check(body: Json) -> None:
        for content in [*body["contents"], *([body["systemInstruction"]] if "systemInstruction" in body else [])]:
            types.Content.model_validate(content)
        for tool in body.get("tools") or ():
            types.Tool.model_validate(tool)
        types.ToolConfig.model_validate(body.get("toolConfig") or {})
        types.GenerationConfig.model_validate(body.get("generationConfig") or {})

    return check


def _bedrock() -> Check:
    session = importlib.import_module("botocore.session").get_session()
    validator = importlib.import_module("botocore.validate").ParamValidator()
    shape = session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape

    def check(body: Json) -> None:
        params = {name: value for name, value in body.items() if name not in ("model", "stream")}
        report = validator.validate(for_boto3({"modelId": "m", **params}), shape)
        if report.has_errors():
            raise ValueError(report.generate_report())

    return check


def _cohere() -> Check:
    types = importlib.import_module("cohere")

    def check(body: Json) -> None:
        TypeAdapter(list[types.ChatMessageV2]).validate_python(body["messages"])
        TypeAdapter(list[types.ToolV2]).validate_python(body.get("tools") or [])

    return check


def _mistral() -> Check:
    models = importlib.import_module("mistralai.client.models")
    return models.ChatCompletionRequest.model_validate


def _ollama() -> Check:
    types = importlib.import_module("ollama._types")
    return types.ChatRequest.model_validate


CHECKS: dict[str, Callable[[], Check]] = {
    "openai_chat": lambda: _typed_dicts("openai.types.chat.completion_create_params"),
    "openai_responses": _openai_responses,
    "anthropic_messages": lambda: _typed_dicts("anthropic.types.beta.message_create_params"),
    "gemini": _gemini,
    "bedrock_converse": _bedrock,
    "cohere": _cohere,
    "mistral": _mistral,
    "ollama": _ollama,
    "groq": lambda: _typed_dicts("groq.types.chat.completion_create_params"),
}

# -- rules of servers --------------------------------------------------------------------------------------------

_WORD = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAMES = {
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.\-]{0,63}"),
    "cohere": re.compile(r".+"),
    "ollama": re.compile(r".+"),
}
_IDS = {
    "openai_chat": re.compile(r"[\x21-\x7e]{1,40}"),
    "groq": re.compile(r"[\x21-\x7e]{1,40}"),
    "openai_responses": re.compile(r"[\x21-\x7e]{1,64}"),
    "anthropic_messages": re.compile(r"[a-zA-Z0-9_-]+"),
    "bedrock_converse": re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
    "mistral": re.compile(r"[a-zA-Z0-9]{9}"),
}


def broken_rules(api: str, body: Json) -> Iterator[str]:
    """Yield the rules of a server that a body breaks."""
    messages = body.get("messages") or body.get("contents") or body.get("input") or []
    if not messages:
        yield "there is no message"
        return
    for name in filter(None, _tool_names(body)):
        if not _NAMES.get(api, _WORD).fullmatch(name):
            yield f"name of a tool: {name}"
    yield from _broken_order(api, messages if isinstance(messages, list) else [])


def _kind(rule: str) -> str:
    """Return the words of a rule that do not depend on the request."""
    return rule.partition(" of ")[0].partition(":")[0]


def _tool_names(body: Json) -> Iterator[str]:
    for tool in body.get("tools") or (body.get("toolConfig") or {}).get("tools") or ():
        for declared in tool.get("functionDeclarations") or ():
            yield declared["name"]
        yield str((tool.get("function") or tool.get("custom") or tool.get("toolSpec") or tool).get("name") or "")


def _broken_order(api: str, messages: list[Any]) -> Iterator[str]:
    waiting: list[str] = []  # ids of calls without a result
    before = ""
    for at, message in enumerate(messages):
        role = message.get("role") or ""
        calls, results = list(_calls(message)), list(_results(message))
        for id in (*calls, *results):
            if not _IDS.get(api, re.compile(r".*")).fullmatch(id):
                yield f"id of a call: {id}"
        if waiting and not results and not calls and role not in ("assistant", "model") and api != "openai_responses":
            yield f"a call has no result before message {at}"
            waiting = []
        for id in results:
            if id in waiting:
                waiting.remove(id)
            elif id:
                yield f"a result has no call in message {at}"
        waiting += calls
        if role == before and api == "bedrock_converse":
            yield f"two messages of {role} in a row"
        before = role
        if not calls and not results and role and _is_empty(message):
            yield f"an empty message of {role}"


def _calls(message: Json) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        yield str(call.get("id") or "")
    if message.get("type") in ("function_call", "custom_tool_call"):
        yield message["call_id"]
    for block in _blocks(message):
        if block.get("type") == "tool_use":
            yield block["id"]
        if isinstance(use := block.get("toolUse"), Mapping) and use.get("type") != "server_tool_use":
            yield use["toolUseId"]


def _results(message: Json) -> Iterator[str]:
    if message.get("role") == "tool":
        yield str(message.get("tool_call_id") or "")
    if message.get("type") in ("function_call_output", "custom_tool_call_output"):
        yield message["call_id"]
    for block in _blocks(message):
        if block.get("type") == "tool_result":
            yield block["tool_use_id"]
        if isinstance(result := block.get("toolResult"), Mapping) and message.get("role") == "user":
            yield result["toolUseId"]


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_empty(message: Json) -> bool:
    content = message.get("content", message.get("parts"))
    others = message.keys() - {"role", "content", "parts", "type"}
    return content in (None, "", [], [{"text": ""}]) and not others


# -- the run -----------------------------------------------------------------------------------------------------


def main() -> int:
    """Run the checks; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--source", choices=APIS, action="append")
    parser.add_argument("--target", choices=APIS, action="append")
    parser.add_argument("--id", default="", help="only rows whose id contains this text")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="the N most frequent errors of each target")
    options = parser.parse_args()
    rows = recorded(options.rows, options.source or APIS, options.id) if options.rows.is_dir() else []
    rows = [row for row in rows if isinstance(row.get("request"), Mapping)]
    if not rows:
        print(f"no recordings in {options.rows}", file=sys.stderr)
        return 2
    invalid = 0
    print(f"{'target':20}{'requests':>9}{'of other APIs':>14}{'valid types':>12}{'valid rules':>12}")
    for target in options.target or APIS:
        try:
            check = CHECKS[target]()
        except ImportError as error:
            print(f"{target:20} skipped: {error}")
            continue
        counts, errors = _checked(rows, target, check)
        invalid += counts["translated"] - min(counts["types"], counts["rules"])
        print(f"{target:20}{counts['all']:9}{counts['translated']:14}{counts['types']:12}{counts['rules']:12}")
        for error, count in errors.most_common(options.show):
            print(f"  {count:5} {error}")
    return int(invalid > 0)


def _checked(rows: list[Json], target: str, check: Check) -> tuple[Counter[str], Counter[str]]:
    """Return the counts of one target, those of valid requests among those of other APIs, and the errors."""
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for row in track(rows, target, transient=True):
        try:
            request = toolwire.get_api(row["api"]).decode_request(row["request"])
            body = toolwire.get_api(target).encode_request(request)
        except DefinitionError:
            continue
        counts["all"] += 1
        if row["api"] == target:
            continue
        counts["translated"] += 1
        try:
            check({"model": "m", **json.loads(json.dumps(body))})
            counts["types"] += 1
        except (ValidationError, ValueError, TypeError, KeyError) as error:
            errors[f"{row['api']} {row['id']}: {re.sub(chr(10), ' ', str(error))[:300]}"] += 1
        before = set(map(_kind, broken_rules(row["api"], row["request"])))
        broken = [rule for rule in broken_rules(target, body) if _kind(rule) not in before]
        counts["rules"] += not broken
        errors.update(f"{row['api']} {row['id']}: {rule}" for rule in broken[:1])
    return counts, errors


if __name__ == "__main__":
    sys.exit(main())
