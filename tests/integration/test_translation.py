"""The benchmark of translations, on rows of its own; `benchmarks/translation.py` needs a folder of recordings."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "translation.py"
REQUEST = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}],
    "temperature": 0.5,
    "logit_bias": {"1": 2},
}
ANSWER = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--rows", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def folder_with(folder: Path, **fields: Any) -> Path:
    row = {"id": "r1", "api": "openai_chat", "status": 200, "stream": False, **fields}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    return folder


def test_each_value_has_a_verdict(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = run(folder_with(tmp_path, request=REQUEST, response=ANSWER), "--target", "gemini", "--json", str(out))
    assert result.returncode == 0, result.stdout + result.stderr
    figures = json.loads(out.read_text("utf-8"))
    (asked,), (answered,) = figures["requests"], figures["answers"]
    # The texts and the temperature, the model in the address, and the note on the bias.
    assert {name: asked[name] for name in ("kept", "respelled", "noted", "lost")} == {
        "kept": 1, "respelled": 3, "noted": 1, "lost": 0,
    }  # fmt: skip
    assert (answered["lost"], answered["kept"] + answered["respelled"]) == (0, 4)


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("system_prompt", '{"text": part.text}', "messages[].content"),
        ("temperature", '"generationConfig.temperature": "temperature",', "temperature"),
    ],
)
def test_a_lost_value_is_found(tmp_path: Path, name: str, value: str, path: str) -> None:
    """A copy of the package that loses a value without a note has exit status 1."""
    source = (ROOT / "src" / "toolwire" / "providers" / "gemini.py").read_text("utf-8")
    assert source.count(value) == 1
    lossy = source.replace(
        value, '{"text": ""}' if name == "system_prompt" else '"generationConfig.temp": "temperature",'
    )
    patch = tmp_path / "sitecustomize.py"
    patch.write_text(_PATCH.format(source=lossy), "utf-8")
    command = [sys.executable, str(SCRIPT), "--rows", str(folder_with(tmp_path, request=REQUEST)), "--show", "9"]
    result = subprocess.run(
        [*command, "--target", "gemini"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"openai_chat: {path} in gemini" in result.stdout


_PATCH = """
import importlib.abc, importlib.util, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "toolwire.providers.gemini":
            return None
        return importlib.util.spec_from_loader(name, Loader())

class Loader(importlib.abc.InspectLoader):
    def get_source(self, fullname):
        return {source!r}

sys.meta_path.insert(0, Finder())
"""


def test_text_of_another_speaker_does_not_count(tmp_path: Path) -> None:
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        import translation
    finally:
        sys.path.remove(str(SCRIPT.parent))
    members = translation.Members("gemini", translation.REQUESTS["gemini"])
    (said,) = members.leaves({"systemInstruction": {"parts": [{"text": "Be brief."}]}})
    by_user = members.leaves({"contents": [{"role": "user", "parts": [{"text": "Be brief."}]}]})
    assert translation.Translation("gemini", by_user, [], same=False).verdict(said) == "lost"
    assert translation.Translation("gemini", [said], [], same=False).verdict(said) == "kept"


def test_without_recordings_it_says_so(tmp_path: Path) -> None:
    result = run(tmp_path / "none")
    assert result.returncode == 2
    assert "no recordings" in result.stderr
