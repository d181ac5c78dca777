"""The next literal: texts with which nodes of the exported descriptions can begin."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]


def firsts(nodes: list[Node]) -> list[str]:
    """Return the texts with which the nodes can begin."""
    if not nodes:
        return []
    node, rest = nodes[0], nodes[1:]
    match node["node"]:
        case "Lit":
            more = firsts(rest) if node["need"] != "required" else []
            return [node["text"], *node["also"], *more]
        case "OneOf":
            return [text for option in node["options"] for text in firsts([*option, *rest])]
        case "AnyOrder":
            return [text for group in node["groups"] for text in firsts(group)] + firsts(rest)
        case "Many" | "Params":
            return firsts(node["nodes"]) + firsts(rest)
        case "Again":
            return firsts(node["many"]["nodes"]) + firsts(rest)
        case "Call":
            return firsts([*node["nodes"], *rest])
        case "Args":
            return ["{", *firsts(rest)]
        case "Elements":
            return [node["token"] + "<", *firsts(rest)]
        case "EndCall":
            return firsts(rest)
    return _openings(node)


def _openings(node: Node) -> list[str]:
    """Return the texts with which a node begins that is never missing."""
    match node["node"]:
        case "Tag":
            return [node["open"] + node["name"]]
        case "JsonCall":
            return ["{", "["]
        case "TokenArgs":
            return ["{"]
        case "KeywordArgs":
            return ["("]
        case "PyCalls":
            return [node["open"]]
    return []
