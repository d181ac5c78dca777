"""What becomes of each member of recorded requests and answers when they are translated: nothing may be lost silently.

    python benchmarks/translation.py                         # all pairs of APIs, requests and answers
    python benchmarks/translation.py --show 20               # with the members that are lost most often
    python benchmarks/translation.py --source gemini --target openai_chat --id 3f2a
    python benchmarks/translation.py --json out.json
    python benchmarks/translation.py --write                 # benchmarks/translation.json, for the table in docs

Each recorded body is decoded by its API and encoded by every API, its own among them. Then each value in it, leaf by
leaf, gets one of four verdicts:

- kept: the new body has the value at a member of the same name and meaning;
- respelled: it has the value at a member of the same meaning with another name, or in another form by a rule below;
- noted: it does not, and a note names the member or what contains it;
- lost: none of these. One lost value makes the exit status 1.

`request_members.py` and `answer_members.py` say what members mean; they do not use Toolwire. A value of the new body
counts for one value of the old one, text counts only for the same speaker, and the notes are those of this one
translation.

The recordings are not part of this repository. `--rows` names a folder with `*.jsonl` files, whose lines have `api`,
`status`, `request` and `response`. Without them the benchmark says so and ends with status 2.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from answer_members import ANSWERS, WITHOUT_MODEL
from body_leaves import Leaf, Members, camel, text_of
from request_members import DEFAULTS, IN_ADDRESS, REQUESTS
from rich.progress import track

import toolwire
from toolwire.errors import DefinitionError

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT.parent / "shared" / "conformance" / "recorded"
SEAL = base64.b64encode(b'{"provider":').decode()
"""The beginning of reasoning of another API that is in a signature, as JSON in base64."""
FIGURES = ROOT / "benchmarks" / "translation.json"
VERDICTS = ("kept", "respelled", "noted", "lost")
APIS = tuple(REQUESTS)

_OWN = ""  # the meaning of a member that only its API knows
_SPOKEN = ("text", "reasoning", "result", "citation.text", "citation.part")
_GENERIC = frozenset(
    ("messages", "content", "contents", "input", "output", "parts", "tools", "type", "role", "data", "text", "source",
     "function")
)  # fmt: skip
"""Names in paths of notes that say nothing about which value is lost."""


class Translation:
    """One translated body, in which the leaves of the original are looked for.

    Args:
        target: the API of the translation.
        leaves: its leaves.
        notes: the notes of the translation.
        same: whether the original is of the same API.
    """

    def __init__(self, target: str, leaves: Iterable[Leaf], notes: Iterable[toolwire.Note], *, same: bool) -> None:
        self._target = target
        self._same = same
        self._found: dict[tuple[str, str, str], list[Leaf]] = defaultdict(list)
        self._meanings: Counter[str] = Counter()
        self._spoken: dict[str, list[str]] = defaultdict(list)
        for leaf in leaves:
            self._found[leaf.key].append(leaf)
            self._meanings[leaf.meaning] += 1
            if leaf.meaning in _SPOKEN:
                self._spoken[leaf.speaker].append(text_of(leaf.value))
        self._joined = {speaker: "\n".join(texts) for speaker, texts in self._spoken.items()}
        self._glued = {speaker: "".join(texts) for speaker, texts in self._spoken.items()}
        self._carried = {item for found in self._found.values() for leaf in found for item in _carried(leaf)}
        # Members that only this API knows may move within a body of it, such as a file from a result to a message.
        self._own = {(leaf.name, key[2]) for key, leaves in self._found.items() for leaf in leaves if not leaf.meaning}
        self._offered = {key[2] for key in self._found if key[0] == "tool.name"}
        self._wheres = [note.where for note in notes]
        names = [frozenset(re.split(r"[/.\s'\[\]=,]+", where)) - _GENERIC - {""} for where in self._wheres]
        self._named = [named | frozenset(map(camel, named)) for named in names]

    def verdict(self, leaf: Leaf) -> str:
        """Return what became of a leaf; the leaf that was found for it counts for no other."""
        if leaf.meaning.startswith("tool.") and self._is_withheld(leaf):
            return "noted"
        if found := self._found.get(leaf.key):
            at = next((at for at, other in enumerate(found) if other.name == leaf.name), 0)
            other = found.pop(at)
            return "kept" if other.name == leaf.name else "respelled"
        if self._same and leaf.meaning == _OWN:
            respelled = (leaf.name, text_of(leaf.value)) in self._own
        else:
            respelled = self._is_carried(leaf) or self._is_respelled(leaf)
        if respelled:
            return "respelled"
        return "noted" if self._is_noted(leaf) else "lost"

    def _is_carried(self, leaf: Leaf) -> bool:
        """Return whether an item of reasoning that goes back to the original's API has the value."""
        value = text_of(leaf.value)
        return (leaf.name, value) in self._carried or (leaf.meaning == "seal" and ("signature", value) in self._carried)

    def _is_respelled(self, leaf: Leaf) -> bool:
        meaning, value = leaf.meaning, leaf.value
        if value in DEFAULTS.get(meaning, ()) or meaning in IN_ADDRESS.get(self._target, ()):
            return True
        match meaning:
            case "text" | "reasoning" | "citation.text" | "citation.part":
                return self._contains(leaf)
            case "call.id" | "result.id":  # they pair calls with results, and some APIs pair these by position
                return self._meanings["call.name"] > 0 or self._meanings[meaning] > 0
            case "result.name":  # the call has it
                return any(key[0] == "call.name" and key[2] == value for key in self._found)
            case "finish":  # Responses says it in two members
                return ("finish", "", text_of(value)) in self._found
            case "citation.start" | "citation.end" if self._target in _CITED_BLOCKS:
                return self._meanings["citation"] + self._meanings["citation.title"] > 0
            case "result.error":
                texts = self._spoken["tool"]
                return any(text.startswith("Error: ") or '"error"' in text for text in texts)
            case "effort.switch":
                return value not in ("disabled", False) and bool(self._meanings["effort"] + self._meanings[meaning])
            case "output.kind" | "output.name" | "output.strict":  # implied by a schema that is guaranteed
                return any(name.startswith("output.schema") for name in self._meanings)
            case "media":
                return self._is_shown(str(value))
            case "media.type":  # a server that is given an address learns the type from there
                return self._meanings["media"] > 0
            case "compact_at.kind":
                return self._meanings["compact_at"] > 0
            case "media.name":
                return value in self._joined.get("user", "") or value in self._joined.get("tool", "")
            case "choice" if value == "required":
                return self._meanings["choice.name"] > 0
        return meaning.startswith(("tool.schema", "output.schema")) and self._is_schema_respelled(leaf)

    def _is_schema_respelled(self, leaf: Leaf) -> bool:
        """Return whether another keyword in the same place says the same."""
        place, _, name = leaf.meaning.rpartition("/")
        match name:
            case "nullable":
                return (f"{place}/type", "", "null") in self._found
            case "const":
                return (f"{place}/enum", "", text_of(leaf.value)) in self._found
        return False

    def _contains(self, leaf: Leaf) -> bool:
        """Return whether a text of the same speaker contains this one."""
        joined, value = self._joined.get(leaf.speaker, ""), leaf.value
        text = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        # A text that is cited in parts is divided into blocks.
        glued = "".join(self._glued.get(leaf.speaker, "").split())
        return text in joined or text_of(value) in joined or "".join(text.split()) in glued

    def _is_shown(self, data: str) -> bool:
        """Return whether the text of a document is part of a message."""
        try:
            text = base64.b64decode(data, validate=True).decode().strip()
        except ValueError:
            return False
        return any(text in joined for joined in self._joined.values())

    def _is_noted(self, leaf: Leaf) -> bool:
        """Return whether a note names the member, or what contains it."""
        if leaf.meaning.startswith(("tool.schema", "output.schema")):
            return self._is_schema_noted(leaf)
        names = set(leaf.path.replace("[]", "").split(".")) | leaf.labels | set(re.split(r"[./]", leaf.meaning))
        names |= {leaf.meaning} | _NOTED_AS.get(leaf.meaning, frozenset())
        if leaf.meaning.startswith("output.") and "output" in self._wheres:
            return True
        return any(not named.isdisjoint(names) for named in self._named)

    def _is_schema_noted(self, leaf: Leaf) -> bool:
        """Return whether a note names the tool, or a part of its schema that contains the leaf or is beside it."""
        _, _, pointer = leaf.meaning.partition("/")
        for where in self._wheres:
            tool, _, place = where.removeprefix("tools/").partition("/")
            if (tool in leaf.labels or tool == "output") and f"/{pointer}/".startswith(f"/{place}".rstrip("/")):
                return True
            if (tool in leaf.labels or tool == "output") and place.rpartition("/")[0] == pointer.rpartition("/")[0]:
                return True
        return False

    def _is_withheld(self, leaf: Leaf) -> bool:
        """Return whether a tool is not offered, with a note that this expresses the choice of tools."""
        return "tool_choice" in self._wheres and not leaf.labels & self._offered


_CITED_BLOCKS = ("anthropic_messages", "bedrock_converse")
"""APIs whose citations belong to a whole block of text, which begins and ends with the statement."""


def _carried(leaf: Leaf) -> Iterator[tuple[str, str]]:
    """Yield the names and values of another API's item of reasoning that a leaf of the answer carries back to it."""
    if "reasoning_details[].data." in leaf.path:
        yield leaf.name, text_of(leaf.value)
    elif leaf.meaning == "seal" and str(leaf.value).startswith(SEAL):
        todo: list[tuple[str, Any]] = [("", json.loads(base64.b64decode(leaf.value)))]
        while todo:
            name, value = todo.pop()
            if isinstance(value, Mapping):
                todo += value.items()
            elif isinstance(value, list):
                todo += ((name, item) for item in value)
            else:
                yield name, text_of(value)


_NOTED_AS: dict[str, frozenset[str]] = {
    "effort": frozenset(("reasoning_effort",)),
    "effort.switch": frozenset(("reasoning_effort",)),
    "choice": frozenset(("tool_choice",)),
    "choice.name": frozenset(("tool_choice",)),
    "seal": frozenset(("reasoning",)),
    "compact_at.kind": frozenset(("compact_at", "context_management")),
    "call.server": frozenset(("namespace",)),
    "cache": frozenset(("cache_control", "cachePoint")),
    "cache.ttl": frozenset(("cache_control", "cachePoint")),
    "media": frozenset(("image", "document", "audio", "video")),
    "media.type": frozenset(("image", "document", "audio", "video")),
    "media.name": frozenset(("document",)),
}
"""Words of notes for meanings, beside their own."""


# -- translations ------------------------------------------------------------------------------------------------


@dataclass
class Pair:
    """The verdicts on all bodies of one API in another, or in itself.

    Attributes:
        bodies: number of translated bodies.
        refused: number of bodies that could not be decoded or encoded, each with an error.
        verdicts: number of leaves by verdict.
        lost: number of lost leaves by path, and the rows with the first of each.
    """

    bodies: int = 0
    refused: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, row: str, leaves: Iterable[Leaf], translation: Translation) -> None:
        """Add the verdicts on one body."""
        self.bodies += 1
        for leaf in leaves:
            verdict = translation.verdict(leaf)
            self.verdicts[verdict] += 1
            if verdict == "lost":
                shown = re.sub(r"/\d+", "/0", leaf.meaning) if "/" in leaf.meaning else leaf.path
                self.lost[shown] += 1
                self.examples.setdefault(shown, f"{row} {text_of(leaf.value)[:60]!r}")


def request_verdicts(row: Json, targets: Iterable[str], pairs: Mapping[tuple[str, str], Pair]) -> None:
    """Translate the request of a row into every target."""
    source = row["api"]
    leaves = Members(source, REQUESTS[source]).leaves(row["request"])
    for target in targets:
        pair, notes = pairs[source, target], toolwire.Notes()
        try:
            request = toolwire.get_api(source).decode_request(row["request"])
            body = toolwire.get_api(target).encode_request(request, notes=notes)
        except DefinitionError:
            pair.refused += 1
            continue
        pair.add(row["id"], leaves, _translation(target, REQUESTS, body, notes, same=source == target))


def answer_verdicts(row: Json, targets: Iterable[str], pairs: Mapping[tuple[str, str], Pair]) -> None:
    """Translate the answer of a row into every target."""
    source = row["api"]
    leaves = Members(source, ANSWERS[source]).leaves(row["response"])
    model = next((leaf.value for leaf in leaves if leaf.meaning == "model"), "")
    for target in targets:
        places = [leaf for leaf in leaves if not (leaf.meaning == "model" and target in WITHOUT_MODEL)]
        notes = toolwire.Notes()
        response = toolwire.get_api(source).decode_response(row["response"])
        body = toolwire.get_api(target).encode_response(response, model=model, notes=notes)
        pairs[source, target].add(row["id"], places, _translation(target, ANSWERS, body, notes, same=source == target))


def _translation(
    target: str, tables: Mapping[str, str], body: Json, notes: toolwire.Notes, *, same: bool
) -> Translation:
    return Translation(target, Members(target, tables[target]).leaves(body), notes, same=same)


def recorded(folder: Path, sources: Iterable[str], id: str) -> list[Json]:
    """Return the rows of some APIs whose ids contain a text."""
    rows: list[Json] = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["api"] in sources and row["status"] == 200 and id in row["id"]:
                rows.append(row)
    return rows


def measured(rows: list[Json], targets: Iterable[str]) -> dict[str, dict[tuple[str, str], Pair]]:
    """Return the verdicts on requests and on whole answers, by pairs of APIs."""
    tables: dict[str, dict[tuple[str, str], Pair]] = {"requests": defaultdict(Pair), "answers": defaultdict(Pair)}
    for row in track(rows, "recordings", transient=True):
        if isinstance(row.get("request"), Mapping):
            request_verdicts(row, targets, tables["requests"])
        if isinstance(row.get("response"), Mapping) and not row["stream"]:
            answer_verdicts(row, targets, tables["answers"])
    return tables


# -- output ------------------------------------------------------------------------------------------------------


def figures(tables: Mapping[str, Mapping[tuple[str, str], Pair]], *, paths: bool) -> Json:
    """Return the verdicts as JSON; `paths`: with the paths of the lost members."""
    return {
        name: [
            {
                "source": source,
                "target": target,
                "bodies": pair.bodies,
                "refused": pair.refused,
                **{verdict: pair.verdicts[verdict] for verdict in VERDICTS},
                **({"lost_paths": dict(pair.lost.most_common())} if paths else {}),
            }
            for (source, target), pair in pairs.items()
        ]
        for name, pairs in tables.items()
    }


def show(tables: Mapping[str, Mapping[tuple[str, str], Pair]], most: int) -> None:
    """Print a table of the pairs, and the members that are lost most often."""
    for name, pairs in tables.items():
        print(f"\n{name:19} {'target':18}{'bodies':>7}{'refused':>8}" + "".join(f"{word:>11}" for word in VERDICTS))
        for (source, target), pair in pairs.items():
            counts = "".join(f"{pair.verdicts[verdict]:11}" for verdict in VERDICTS)
            print(f"{source:19} {target:18}{pair.bodies:7}{pair.refused:8}{counts}")
        paths: Counter[tuple[str, str]] = Counter()
        targets: dict[tuple[str, str], list[str]] = defaultdict(list)
        examples: dict[tuple[str, str], str] = {}
        for (source, target), pair in pairs.items():
            for path, count in pair.lost.items():
                paths[source, path] += count
                targets[source, path].append(target)
                examples.setdefault((source, path), pair.examples[path])
        for key, count in paths.most_common(most):
            print(f"{count:7} {key[0]}: {key[1]} in {', '.join(targets[key])}; {examples[key]}")
        total = sum((pair.verdicts for pair in pairs.values()), Counter())
        print(f"{name}: " + ", ".join(f"{total[verdict]} {verdict}" for verdict in VERDICTS))


def main() -> int:
    """Run the benchmark; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--source", choices=APIS, action="append", help="only bodies of this API")
    parser.add_argument("--target", choices=APIS, action="append", help="only into this API")
    parser.add_argument("--id", default="", help="only rows whose id contains this text")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="the N members that are lost most often")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write {FIGURES.name}, for the table in docs")
    options = parser.parse_args()
    rows = recorded(options.rows, options.source or APIS, options.id) if options.rows.is_dir() else []
    if not rows:
        print(f"no recordings in {options.rows}", file=sys.stderr)
        return 2
    tables = measured(rows, options.target or APIS)
    show(tables, options.show)
    if options.json:
        options.json.write_text(json.dumps(figures(tables, paths=True), indent=1) + "\n", "utf-8")
    if options.write:
        FIGURES.write_text(json.dumps(figures(tables, paths=False), indent=1) + "\n", "utf-8")
    return int(any(pair.lost for pairs in tables.values() for pair in pairs.values()))


if __name__ == "__main__":
    sys.exit(main())
