"""MCP servers in files: ours in TOML, other programs' in JSON; what is wrong is said with its place."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolwire import Tier
from toolwire import mcp as public
from toolwire.config.tables import load_configuration
from toolwire.errors import ConfigurationError
from toolwire.mcp import jsonc
from toolwire.mcp.servers import Launch, McpServer, by_name, load_servers

TOML = """
[mcp.servers.files]
command = "npx"
args = ["-y", "server-files", "."]
cwd = "~"
env = { DEBUG = "1" }
timeout = 5
trusted = true

[mcp.servers.files.tools.write_file]
tier = "run"
confirm = true

[mcp.servers.tracker]
url = "https://tracker.example.com/mcp"
headers = { Authorization = "Bearer ${TOKEN}" }
tier = "WALK"
enabled = false
tools.drop = { enabled = false }
"""


def written(folder: Path, text: str, name: str = "servers.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_servers_are_read_from_toml(tmp_path: Path) -> None:
    path = written(tmp_path, TOML)
    files, tracker = load_servers(path)
    assert (files.name, files.command, files.args) == ("files", "npx", ("-y", "server-files", "."))
    assert (files.timeout, files.trusted, files.source) == (5.0, True, str(path))
    assert files.settings("write_file").tier is Tier.RUN
    assert files.settings("write_file").confirm
    assert files.settings("other").confirm is None
    assert (tracker.tier, tracker.enabled, tracker.settings("drop").enabled) == (Tier.WALK, False, False)
    assert load_configuration(path).mcp["servers"]["files"]["command"] == "npx"
    assert load_servers(written(tmp_path, "[profiles.a]\nmodel = 'x'\n")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[mcp.servers.a]\ncommand = "x"\nfoo = 1', "servers.toml:3: mcp.servers.a.foo: there is no such key"),
        ("[mcp.servers.a]\ncommand = 5", "servers.toml:2: mcp.servers.a.command: Input should be a valid string"),
        ('[mcp.servers.a]\ncommand = "x"\ntier = "FLY"', "servers.toml:3: mcp.servers.a.tier: a tier is one of CRAWL"),
        ('[mcp.servers.a]\ncommand = "x"\ntier = 2', "servers.toml:3: mcp.servers.a.tier: a tier is one of CRAWL"),
        (
            '[mcp.servers.a]\ncommand = "x"\ntimeout = 0',
            "servers.toml:3: mcp.servers.a.timeout: Input should be greater",
        ),
        (
            '[mcp.servers.a]\ncommand = "x"\nargs = "y"',
            "servers.toml:3: mcp.servers.a.args: Input should be a valid tuple",
        ),
        ("[mcp.servers.a]\n", "servers.toml:1: mcp.servers.a: a server has either a command or a url"),
        ('[mcp.servers.a]\ncommand = "x"\nurl = "http://h"', "servers.toml:1: mcp.servers.a: a server has either"),
        ('[mcp.servers.a]\ncommand = "x"\nheaders = { A = "b" }', "headers has no meaning for a server with a command"),
        ('[mcp.servers.a]\nurl = "http://h"\nargs = ["b"]', "args has no meaning for a server with a url"),
        ('[mcp.servers.a]\nurl = "http://h"\ntransport = "stdio"', "the transport stdio needs a command"),
        (
            '[mcp.servers.a]\nurl = "file:///x"',
            "servers.toml:2: mcp.servers.a.url: a url begins with http:// or https://",
        ),
        ('[mcp.servers.a]\nurl = "http://u:p@h/"', "servers.toml:2: mcp.servers.a.url: the url must not name a user"),
        ('[mcp.servers."a b"]\ncommand = "x"', "a server's name is 1 to 64 letters, digits, _ and -, not 'a b'"),
        ('[mcp.servers.a]\nname = "b"\ncommand = "x"', "servers.toml:2: mcp.servers.a.name: unknown key"),
        (
            '[mcp.servers.a]\ncommand = "x"\n[mcp.servers.a.tools.t]\ntiers = 1',
            "servers.toml:4: mcp.servers.a.tools.t.tiers",
        ),
        ("[mcp]\nserver = 1", "servers.toml:1: mcp: only tables [mcp.servers.NAME] are allowed here"),
        ("[mcp.servers]\na = 5", "servers.toml:2: mcp.servers.a: a table or an object is expected"),
        ("[mcp", "servers.toml: "),
    ],
)
def test_toml_error_names_line_and_key(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_servers(written(tmp_path, text))
    assert message in str(caught.value)


def test_files_of_other_programs_are_read(tmp_path: Path) -> None:
    desktop = '{"mcpServers": {"Brave Search": {"command": "npx", "args": ["-y", "b"], "env": {"KEY": "${env:KEY}"}}}}'
    (server,) = load_servers(written(tmp_path, desktop, "desktop.json"))
    assert (server.name, server.command, server.env) == ("Brave-Search", "npx", {"KEY": "${env:KEY}"})
    editor = """{
      // kept by an editor
      "servers": {
        "a": {"type": "stdio", "command": "a", "disabled": true,},
        "b": {"type": "http", "url": "https://b.example/mcp", "headers": {"X": "1"}}, /* two
        lines */ "c": {"type": "streamable-http", "url": "https://c.example/mcp"},
        "d": {"type": "sse", "url": "https://d.example/sse", "alwaysAllow": ["*"]},
        "e": {"serverUrl": "https://e.example/mcp"},
        "f": {"httpUrl": "https://f.example/mcp", "enabled": false},
      },
      "inputs": []
    }"""
    servers = {server.name: server for server in load_servers(written(tmp_path, editor, "mcp.json"))}
    kinds = {name: item.transport for name, item in servers.items()}
    assert kinds == {"a": "stdio", "b": "http", "c": "http", "d": "sse", "e": None, "f": None}
    assert [name for name, item in servers.items() if not item.enabled] == ["a", "f"]
    nested = '{"mcp": {"servers": {"a": {"command": "x"}}}}'
    assert [server.name for server in load_servers(written(tmp_path, nested, "settings.json"))] == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mcpServers": {\n"a": {"command": 5}}}', "a.json:2: mcpServers.a.command: Input should be a valid string"),
        ('{"mcpServers": {"a": {\n"url": "file:///x"}}}', "a.json:2: mcpServers.a.url: a url begins with"),
        ('{"servers": {\n"a": {"type": "ws", "url": "http://h"}}}', "a.json:2: servers.a.transport: Input should be"),
        ('{"servers": {\n"a": []}}', "a.json:2: servers.a: a table or an object is expected"),
        (
            '{"servers": {"a b": {"command": "x"},\n"a-b": {"command": "x"}}}',
            "a.json:2: 'a-b' cannot be a server's name; 'a b'",
        ),
        ('{"servers": {\n"": {"command": "x"}}}', "a.json:2: '' cannot be a server's name"),
        (
            '{"servers": {"a": {"command": "x",\n"command": "y"}}}',
            "a.json:2: the key 'command' appears a second time",
        ),
        ('{"other": 1}', "a.json: it has no object mcpServers or servers"),
        ("[1]", "a.json: it has no object mcpServers or servers"),
        ('{"servers":\n{', "a.json:2: a key in double quotes is missing"),
    ],
)
def test_json_error_names_line_and_key(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_servers(written(tmp_path, text, "a.json"))
    assert message in str(caught.value)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_servers(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A}", "one"),
        ("x${A}y${env:A}z", "xoneyonez"),
        ("${B:-else}", "else"),
        ("${EMPTY:-else}", "else"),
        ("${EMPTY}", ""),
        ("${env:B:-}", ""),
        ("$A", "$A"),
        ("${C}", "${A}"),
    ],
)
def test_variables_are_expanded_once(text: str, filled: str) -> None:
    environment = {"A": "one", "EMPTY": "", "C": "${A}"}
    server = McpServer(name="a", command="x", args=(text,), env={"V": text})
    launch = server.launch(environment)
    assert (launch.argv, launch.env) == (("x", filled), {"V": filled})


@pytest.mark.parametrize("text", ["${NONE}", "${env:NONE}", "${input:key}", "${workspaceFolder}/x", "${}", "${a b}"])
def test_unusable_variable_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="the server a: "):
        McpServer(name="a", url="https://h/", headers={"X": text}).launch({})


def test_cwd_is_relative_to_the_file(tmp_path: Path) -> None:
    text = '[mcp.servers.a]\ncommand = "x"\ncwd = "sub"\n[mcp.servers.b]\ncommand = "x"\ncwd = "/abs"\n'
    a, b = load_servers(written(tmp_path, text))
    assert (a.launch().cwd, b.launch().cwd) == (str(tmp_path / "sub"), "/abs")


def test_paths_are_relative_to_toml_file_or_current_directory_for_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    for folder in (tmp_path, directory):
        (folder / "server.py").touch()
    monkeypatch.chdir(directory)
    (from_toml,) = load_servers(written(tmp_path, '[mcp.servers.a]\ncommand = "python3"\nargs = ["server.py"]\n'))
    text = '{"mcpServers": {"a": {"command": "python3", "args": ["server.py"]}}}'
    (from_json,) = load_servers(written(tmp_path, text, "mcp.json"))
    assert (from_toml.launch().cwd, from_json.launch().cwd) == (str(tmp_path), str(directory))


@pytest.mark.parametrize(
    ("command", "args", "bound"),
    [
        ("bin/run", (), True),
        ("python3", ("server.py",), True),
        ("python3", ("-m", "server"), True),
        ("python3", ("--root=.",), True),
        ("npx", ("-y", "local-package"), True),
        ("npx", ("-y", "@scope/package"), True),
        ("python3", ("/opt/server.py", "--quiet", "serve"), False),
        ("python3", ("https://h/mcp",), False),
    ],
)
def test_approval_covers_the_directory_where_it_matters(
    command: str, args: tuple[str, ...], bound: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[Launch] = []
    for name in ("mine", "strangers"):
        for file in ("bin/run", "server.py", "node_modules/local-package"):
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o755)
        monkeypatch.chdir(tmp_path / name)
        launches.append(McpServer(name="a", command=command, args=args).launch())
    first, second = launches
    assert (first.hash != second.hash, first.cwd == str(tmp_path / "mine")) == (bound, bound)
    assert (f"in {tmp_path}/mine" in first.shown) is bound


def test_approval_covers_the_program_file(tmp_path: Path) -> None:
    hashes = set[str]()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").touch(mode=0o755)
        launch = McpServer(name="a", command="tool", env={"PATH": str(tmp_path / name)}).launch()
        assert launch.program == str(tmp_path / name / "tool")
        assert f"the program is {launch.program}" in launch.shown
        hashes.add(launch.hash)
    assert len(hashes) == 2


def test_variable_values_are_hidden_but_part_of_the_hash() -> None:
    stdio = McpServer(name="a", command="/bin/false", args=("--api-key", "${K}"), env={"DB": "postgres://u:${K}@h/"})
    web = McpServer(name="a", url="https://h/mcp?key=${K}")
    for server in (stdio, web):
        item, other = server.launch({"K": "s3cret"}), server.launch({"K": "another"})
        assert item.hash != other.hash
        assert item.shown == other.shown
        assert "s3cret" not in item.shown
        assert "${K}" in item.shown


def test_launch_is_shown_completely_except_secrets() -> None:
    launch = Launch(
        "stdio",
        ("npx", "-y", "a b", "", "q'uote", "\u202e\x1b", "--key=x"),
        {"DEBUG": "1", "API_KEY": "s3cret", "GH_PAT": "s3cret", "PATH": "/x", "NODE_OPTIONS": "--require x"},
        "/work dir",
    )
    assert launch.shown.splitlines() == [
        'runs npx -y "a b" "" "q\'uote" "\\u202e\\u001b" --key=x',
        'in "/work dir"',
        "with API_KEY=(a secret)",
        "with DEBUG=1",
        "with GH_PAT=(a secret)",
        'with NODE_OPTIONS="--require x"',
        "with PATH=/x",
    ]
    web = Launch("http", url="https://h/mcp", headers={"Authorization": "Bearer s3cret"})
    assert web.shown == "connects to https://h/mcp\nwith the header Authorization: (a secret)"


def test_launch_hash_covers_every_part() -> None:
    parts: list[dict[str, Any]] = [
        {},
        {"argv": ("a", "b c")},
        {"argv": ("a", "b", "c")},
        {"env": {"A": "1"}},
        {"env": {"A": "2"}},
        {"env": {"A1": ""}},
        {"cwd": "/x"},
        {"program": "/bin/x"},
        {"url": "https://h/"},
        {"headers": {"A": "1"}},
    ]
    assert len({Launch("stdio", **part).hash for part in parts}) == len(parts)
    assert Launch("http").hash != Launch("sse").hash
    assert Launch("stdio", env={"A": "1", "B": "2"}).hash == Launch("stdio", env={"B": "2", "A": "1"}).hash


def test_servers_have_unique_names() -> None:
    a = McpServer(name="a", command="x")
    assert by_name([a]) == {"a": a}
    with pytest.raises(ConfigurationError, match="two servers are called a"):
        by_name([a, a])
    with pytest.raises(ConfigurationError, match="needs a name"):
        by_name([McpServer(command="x")])


VALUES = ['{"a": [1, 2.5e3, -0, "x\\n\\u00e9", true, false, null, {}, []]}', '"x"', "[[[]]]", " 7 ", '"\\ud83d\\ude00"']


@pytest.mark.parametrize("text", VALUES)
def test_jsonc_reads_plain_json_alike(text: str) -> None:
    assert jsonc.read(text)[0] == json.loads(text)


def test_jsonc_reads_comments_and_trailing_commas_and_counts_lines() -> None:
    text = '\ufeff{ // one\n "a": [1, /* {"x" */ 2,], # '.replace("# ", "") + '\n\n "b": {"c": "//no", },\n}'
    value, lines = jsonc.read(text)
    assert value == {"a": [1, 2], "b": {"c": "//no"}}
    assert lines == {("a",): 2, ("a", "0"): 2, ("a", "1"): 2, ("b",): 4, ("b", "c"): 4}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{", 1),
        ('{"a"\n1}', 2),
        ('{"a": 1\n"b": 2}', 2),
        ("{a: 1}", 1),
        ("[1\n2]", 2),
        ("[,]", 1),
        ("{,}", 1),
        ("1 2", 1),
        ("01", 1),
        ("NaN", 1),
        ("'a'", 1),
        ('"a\nb"', 1),
        ('"\\x"', 1),
        ("/* never", 1),
        ("[" * 100, 1),
        ('{"a":' * 100, 1),
    ],
)
def test_invalid_jsonc_is_an_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(jsonc.JsoncError) as caught:
        jsonc.read(text)
    assert caught.value.line == line


def test_public_names_are_imported_lazily() -> None:
    assert [name for name in public.__all__ if not hasattr(public, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        public.nothing  # noqa: B018
    code = "import sys, toolwire.mcp.servers, toolwire.cli; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
